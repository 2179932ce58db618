/** Texts of megabytes, and texts that cannot be drawn: the page shows the rest, and goes on. */

import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { step, Workbench } from "./workbench.ts";

const STONES = Array.from({ length: 20_000 }, (_, at) =>
  at === 15_000 ? "the well is here" : `stone ${at}`,
).join("\n");

test("long texts are shown in parts, and a broken one as it is", async (t) => {
  const lab = new Lab(); // the page keeps the scripts that are added below
  writeSession(lab.codexHome, {
    task: "Number the stones",
    cwd: lab.project,
    commands: ["count"],
    output: STONES,
    answer: "They are numbered.",
    further: [
      { task: "Write a wall", answer: `\`\`\`\n${"brick\n".repeat(900_000)}\`\`\`\n` },
      { task: "And a word", answer: "x".repeat(5_000_000) },
      { task: "Thanks", answer: "You are welcome." },
    ],
  });
  writeSession(lab.codexHome, { task: "Break it", cwd: lab.project, age: 5, answer: "It holds." });
  const workbench = await Workbench.open(t, lab, { size: { width: 1440, height: 900 } });
  const { page, search } = workbench;
  const front = inFront(page);
  const pane = front.getByRole("region", { name: "Conversation" });
  const turn = (number: number) =>
    pane
      .getByRole("article")
      .filter({ has: front.getByRole("heading", { name: `Turn ${number} ` }) });
  await workbench.showCheckpoints();

  await step(t, "a message of 5 MB shows its beginning, and how much more there is", async () => {
    await workbench.sessions.getByRole("treeitem").getByText("Number the stones").dblclick();
    await turn(4).getByText("You are welcome.").waitFor();
    await turn(2)
      .getByText(/^5,39\d,\d{3} more characters/)
      .waitFor();
    await turn(3).getByText("xxxxxxxxxxxxxxx…").waitFor();
  });

  await step(t, "a search hit far within an output is scrolled into sight", async () => {
    await workbench.command("Codex Checkpoints: Search Sessions…");
    await page.locator(".quick-input-widget:visible input.input").fill("the well is here");
    await search.getByRole("treeitem", { name: /^the well is here, output, turn 1/ }).waitFor();
    await page.keyboard.press("Enter");
    await search.locator(".monaco-list:focus-within .focused").getByText("the well").waitFor();
    await page.keyboard.press("Enter");
    await becomes(
      () =>
        front.locator("body").evaluate(() => {
          const [hit] = CSS.highlights.get("hit") ?? [];
          const { top = 0, bottom = 0 } = (hit as Range | undefined)?.getBoundingClientRect() ?? {};
          return top > 0 && bottom < window.innerHeight ? String(hit) : "";
        }),
      "the well is here",
    );
    await turn(1)
      .getByText(/stone 1499\d/)
      .waitFor();
    await workbench.screenshot("search hit in a long output");
  });

  await step(t, "a text that cannot be drawn is shown as it is", async () => {
    await page.addInitScript(() => {
      const fails = () => {
        throw new Error("broken on purpose");
      };
      Object.assign(window, { parsers: { readMarkdown: fails, readTyped: fails } });
    });
    await workbench.sessions.getByRole("treeitem").getByText("Break it").dblclick();
    await turn(1).locator(".as-it-is").getByText("Break it").waitFor();
    await turn(1).locator(".as-it-is").getByText("It holds.").waitFor();
    await front.getByText("Reading…").waitFor({ state: "detached" });
  });

  await step(t, "a block of code that cannot be coloured does not stop the next one", async () => {
    await page.addInitScript(() => {
      const blocks = ["first", "second"].map((text) => ({ kind: "block", language: "py", text }));
      const highlight = (_: string, text: string) => {
        if (text === "first") {
          throw new Error("broken on purpose");
        }
        const children = [{ type: "text", value: text }];
        const properties = { className: ["hljs-keyword"] };
        return { children: [{ type: "element", properties, children }] };
      };
      const languages = () => ({ registered: () => true, highlight });
      const parsers = { readMarkdown: () => blocks, readTyped: () => [], languages };
      Object.assign(window, { parsers });
    });
    await workbench.closeTab();
    await workbench.sessions.getByRole("treeitem").getByText("Break it").dblclick();
    await turn(1).locator(".hljs-keyword").getByText("second").waitFor();
    await turn(1).locator("pre").getByText("first").waitFor();
  });
});
