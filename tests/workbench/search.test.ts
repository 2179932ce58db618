/** A search of 300 sessions by keyboard alone; its hits stay next to the opened pages (PAG-5). */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { again, step, Workbench } from "./workbench.ts";

const LINK = "$(alert) [link](command:workbench.action.toggleSidebarVisibility)";

/** A file with more lines than a patch card shows. */
const PATCH = [
  "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: sale.py",
  ...Array.from({ length: 50 }, (_, at) => `+price_${at} = ${at}`),
  "+cheaper = 2\n*** End Patch\nEOF",
].join("\n");

/** Padding around a line, so that it is not at either end of an output. */
const EMPTY = "nothing here\n".repeat(450);

/** Write two sessions about prices, and 300 with two hits of "errand" each; one has 30 more. */
function write(lab: Lab): void {
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the price list faster",
    cwd: lab.project,
    age: 90,
    commands: ["grep -n read_prices shop.py"],
    output: `${EMPTY}read_prices() took 412 ms\n${EMPTY}`,
    answer: `The list is read twice: Read_Prices is called by show() and by total(). ${LINK}`,
    further: [
      ...Array.from({ length: 12 }, (_, at) => ({
        task: `Then look at part ${at}`,
        answer: "Nothing to do.\n".repeat(30),
      })),
      { task: "Then call read_prices once", answer: "Done." },
    ],
  });
  writeSession(lab.codexHome, {
    task: "Name the cave after read_prices",
    cwd: `${lab.project}-other`,
    age: 2,
    answer: "It opens.",
  });
  for (let number = 1; number <= 300; number++) {
    const answer = number === 4 ? "The errand is done.\n".repeat(31) : `Errand ${number} is done.`;
    const cwd = number % 2 ? lab.project : "/elsewhere";
    const commands = number === 1 ? ["cat shop.py"] : number === 2 ? [PATCH] : [];
    const spec = { task: `Errand ${number}.`, cwd, age: 100 + number, commands, answer };
    writeSession(lab.codexHome, spec);
  }
}

test("a search of 300 sessions is made, filtered and walked through by keyboard alone", async (t) => {
  const lab = Lab.shared();
  write(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1440, height: 900 } });
  const { page, search } = workbench;
  const { keyboard } = page;
  const front = inFront(page);
  const box = page.locator(".quick-input-widget:visible");
  const input = box.locator("input.input");
  const row = (name: string | RegExp) => search.getByRole("treeitem", { name });
  const focused = search.locator(".monaco-list:focus-within .monaco-list-row.focused");
  const says = (text: string | RegExp) => search.getByText(text).first().waitFor();
  const palette = box.locator('input[placeholder^="Type the name of a command"]');
  /** Run a command by keyboard; the previous action may still move the focus, as in `command`. */
  const run = async (title: string) => {
    const chosen = box.locator(".monaco-list-row.focused").filter({ hasText: title }).first();
    await again(async (timeout) => {
      if (await palette.isVisible()) {
        await keyboard.press("Escape");
      }
      await keyboard.press("F1");
      await palette.waitFor({ timeout });
      await keyboard.insertText(title);
      await chosen.waitFor({ timeout });
      await keyboard.press("Enter");
      await palette.waitFor({ state: "hidden", timeout });
    });
  };
  const openBox = async () => {
    await run("Codex Checkpoints: Search Sessions…");
    await box.locator(".quick-input-title").getByText("Search Sessions").waitFor();
  };
  const searchFor = async (text: string) => {
    await openBox();
    await keyboard.type(text); // replaces the selected text
  };
  /** Press a key until something appears; rows may still be drawn, and move on by then. */
  const pressUntil = async (key: string, there: Locator) => {
    await again(async () => {
      for (let times = 0; times < 40; times++) {
        if ((await there.count()) > 0) {
          return;
        }
        await keyboard.press(key);
        await page.waitForTimeout(50);
      }
      await there.waitFor({ timeout: 1 });
    });
  };
  /** Toggle a kind of hits. */
  const toggle = async (kind: string) => {
    await run("Codex Checkpoints: Filter Hits by Kind…");
    await box.getByText("Outputs").waitFor();
    await keyboard.type(kind);
    await becomes(() => box.locator(".monaco-list-row").count(), 1);
    await keyboard.press("ArrowDown");
    await keyboard.press("Space");
    await keyboard.press("Enter");
  };
  const opened = (line: string) =>
    becomes(
      () =>
        front.locator("body").evaluate(() => {
          const [hit] = CSS.highlights.get("hit") ?? [];
          const range = hit as Range | undefined;
          const { top = 0, bottom = 0 } = range?.getBoundingClientRect() ?? {};
          const isInSight = top > 0 && bottom < window.innerHeight;
          const text = range?.startContainer.textContent ?? "";
          const start = text.lastIndexOf("\n", range?.startOffset) + 1;
          return isInSight ? text.slice(start).split("\n", 1)[0] : "";
        }),
      line,
    );
  await workbench.showCheckpoints();

  await step(t, "hits appear below their session during typing, newest session first", async () => {
    await openBox();
    const began = performance.now();
    await keyboard.type("read_prices");
    await row(/^Name the cave after read_prices, 1 hit, 2m/).waitFor();
    t.diagnostic(
      `the first row came ${Math.round(performance.now() - began)} ms after the first key`,
    );
    await says("“read_prices” · 5 hits in 2 sessions");
    assert.deepEqual(
      await search.getByRole("treeitem").evaluateAll((rows) => rows.map((each) => each.ariaLabel)),
      [
        "Name the cave after read_prices, 1 hit, 2m, project-other",
        "Name the cave after read_prices, request, turn 1",
        "Make the price list faster, 4 hits, 1h, project",
        "Then call read_prices once, request, turn 14",
        `The list is read twice: Read_Prices is called by show() and by total(). ${LINK}, answer, turn 1`,
        "read_prices() took 412 ms, output, turn 1",
        "grep -n read_prices shop.py, command, turn 1",
      ],
    );
    assert.deepEqual(
      await search.locator(".monaco-highlighted-label .highlight").allTextContents(),
      [...["read_prices", "read_prices", "Read_Prices", "read_prices", "read_prices"]],
    );
  });

  await step(t, "another text replaces the previous one, and case may matter", async () => {
    await input.fill("frankincense");
    await says("“frankincense” · no hits");
    await input.fill("Read_Prices");
    await says("“Read_Prices” · 1 hit in 1 session");
    await input.fill("Read_PRICES");
    await says("“Read_PRICES” · no hits; case counts, as it has a capital");
  });

  await step(t, "earlier texts come back with the arrow keys", async () => {
    await keyboard.press("Escape");
    await openBox();
    await input.fill("read_prices");
    await keyboard.press("ArrowUp");
    await becomes(() => input.inputValue(), "Read_PRICES");
    await input.fill("read_prices");
    await says("“read_prices” · 5 hits in 2 sessions");
  });

  await step(
    t,
    "Enter goes to the first hit, and a hit opens its turn with the text in sight",
    async () => {
      await keyboard.press("Enter");
      await focused.filter({ hasText: "Name the cave after read_prices" }).waitFor();
      for (let down = 0; down < 4; down++) {
        await keyboard.press("ArrowDown");
      }
      await focused.filter({ hasText: "read_prices() took 412 ms" }).waitFor();
      await keyboard.press("Enter");
      await page.getByRole("tab", { name: /Make the price list faster/ }).waitFor();
      await opened("read_prices() took 412 ms");
      await says("“read_prices” · 5 hits in 2 sessions");
      await workbench.checkpoint.getByText("Then call read_prices once").first().waitFor();
    },
  );

  await step(t, "the next and the previous hit open from the page as well", async () => {
    await keyboard.press("F4");
    await row(/^grep -n read_prices/)
      .and(page.locator('[aria-selected="true"]'))
      .waitFor();
    await opened("grep -n read_prices shop.py");
    await keyboard.press("F4");
    await page.getByRole("tab", { name: /Name the cave/, selected: true }).waitFor();
    await opened("Name the cave after read_prices");
    await keyboard.press("Shift+F4");
    await page.getByRole("tab", { name: /Make the price list/, selected: true }).waitFor();
  });

  await step(t, "it can be read in each theme, in a wide window and in a narrow one", async () => {
    await inEachTheme(workbench, async (colours) => {
      for (const width of [1024, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        await opened("grep -n read_prices shop.py");
        await workbench.screenshot(`search ${colours} ${width}`);
      }
    });
  });

  await step(
    t,
    "on a page Ctrl+F searches its session, also in parts that are not loaded",
    async () => {
      await front.locator("body").focus();
      await keyboard.press("Control+F");
      await box.getByText("Search in “Make the price list faster”").waitFor();
      await keyboard.type("part 11");
      await row("Then look at part 11, request, turn 13").waitFor();
      await keyboard.press("Enter");
      await focused.filter({ hasText: "Then look at part 11" }).waitFor();
      await keyboard.press("Enter");
      await opened("Then look at part 11");
    },
  );

  await step(t, "a hit in a hidden part of the page unfolds it", async () => {
    await searchFor("cheaper");
    await row("+cheaper = 2, patch, turn 1").waitFor();
    await keyboard.press("Enter");
    await focused.filter({ hasText: "+cheaper = 2" }).waitFor();
    await keyboard.press("Enter");
    await opened("+cheaper = 2");
    await workbench.screenshot("search of a patch");
  });

  await step(t, "kinds of hits are chosen", async () => {
    await searchFor("read_prices");
    await says("“read_prices” · 5 hits in 2 sessions");
    await toggle("Outputs");
    await says(
      "“read_prices” · requests, answers, commands, patches, errors · 4 hits in 2 sessions",
    );
    await focused.filter({ hasText: "Name the cave" }).waitFor();
    await toggle("Outputs");
    await says("“read_prices” · 5 hits in 2 sessions");
    await focused.filter({ hasText: "Name the cave" }).waitFor();
  });

  await step(t, "hits above a limit are loaded on request", async () => {
    await searchFor("errand");
    await says(/^“errand” · \d+ hits in \d+ sessions, the newest$/);
    await keyboard.press("Enter");
    await focused.filter({ hasText: "Errand 1 is done." }).waitFor();
    await pressUntil("ArrowDown", focused.filter({ hasText: "Show 22 more hits" }));
    await workbench.screenshot("search of a common word");
    await keyboard.press("Enter");
    await focused.filter({ hasText: "The errand is done." }).waitFor();
    await row("Show 22 more hits").waitFor({ state: "detached" });
    await pressUntil("End", focused.filter({ hasText: "Search older sessions" }));
    await keyboard.press("Enter");
    await says("“errand” · 630 hits in 300 sessions");
    await focused.filter({ hasText: "Errand 247." }).waitFor();
    await pressUntil("End", focused.filter({ hasText: "Errand 300." }));
  });

  await step(t, "recent searches are repeated, and the results are cleared", async () => {
    await run("Codex Checkpoints: Recent Searches…");
    await box.locator('input[placeholder="Search again for"]').waitFor();
    await keyboard.type("prices");
    await box
      .locator(".monaco-list-row.focused")
      .filter({ hasText: /^read_prices$/ })
      .waitFor();
    await keyboard.press("Enter");
    await says("“read_prices” · 5 hits in 2 sessions");
    await focused.filter({ hasText: "Name the cave" }).waitFor();
    await run("Codex Checkpoints: Clear Search Results");
    await search.getByRole("tab", { name: "Codex Search" }).waitFor({ state: "detached" });
  });

  await step(t, "a file shows the sessions that used it", async () => {
    await keyboard.press("Control+P");
    await box.locator("input").first().fill("shop.py");
    await box.locator(".monaco-list-row").filter({ hasText: "shop.py" }).first().waitFor();
    await keyboard.press("Enter");
    await page.getByRole("tab", { name: /^shop\.py/ }).waitFor();
    await run("Codex Checkpoints: Show Sessions for This File");
    await says(/shop\.py” · 1 hit in 1 session$/);
    await focused.filter({ hasText: "read shop.py" }).waitFor();
    await workbench.screenshot("sessions of a file");
    await keyboard.press("Enter");
    await page.getByRole("tab", { name: "Errand 1.", selected: true }).waitFor();
  });
});
