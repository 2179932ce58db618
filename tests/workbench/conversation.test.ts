/** The conversation of a session: it is rendered, its links are checked, and nothing in it runs. */

import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront, isForEverybody } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { step, Workbench } from "./workbench.ts";

const WIDE = { width: 1440, height: 1000 };

const ANSWER = `## The prices come from a cache now

The slow part was \`total()\` in [src/shop.py](src/shop.py:3): it asked the **same** service *twice*.
See [the manual](https://docs.example.com/caching?a=1) for its limits.

1. The price list is read once
2. \`refresh()\` reads it again:
   - after an hour
   - when somebody asks

\`\`\`python
# Reads the prices once
def total(items: list[str]) -> float:
    return sum(prices["now"][each] * 1.19 for each in items)
\`\`\`

| case | before | after |
| --- | --- | --- |
| cold start | 2.4 s | 0.3 s |
| **warm** | 1.1 s | 0.01 s |

> Nothing else has changed.
`;

/** Markdown that could run, be fetched, or be followed without a check. */
const HOSTILE = `
<script>parent.owned = owned = true</script>
<img src=x onerror="owned=true"> <iframe src="https://tracker.example/frame"></iframe>

[a script](javascript:owned=true) [a command](command:workbench.action.toggleSidebarVisibility)
[data](data:text/html,<script>1</script>) [mail](mailto:a@b.example)

![a picture](https://tracker.example/pixel.png?id=7) ![inline](data:image/svg+xml,<svg/>)

[secrets](../../user/secrets.txt) [passwords](/etc/passwd) [a way out](way-out.txt)

\u202eesrever \u001b[31mred\u0007 ${"x".repeat(3_000)}
`;

/** A turn whose messages are slow to parse. */
const TIRING = [
  ...["- ", "> ", "[", "![", "*a_ ", "|a", "<http:", "a\n=\n", "\u202e"],
  "[a](b.ts) ",
].map((text) => text.repeat(20_000 / text.length));

test("messages are rendered, and nothing in them has an effect", async (t) => {
  const lab = Lab.shared();
  lab.write("src/shop.py", "import prices\n\ndef total(items):\n    return 0\n");
  lab.writeIn(lab.user, "secrets.txt", "secret\n");
  symlinkSync(join(lab.user, "secrets.txt"), join(lab.project, "way-out.txt"));
  writeSession(lab.codexHome, {
    task: "Why is `total()` slow?\n  # not a heading\n__init__ * 2 * 3",
    cwd: lab.project,
    answer: ANSWER,
    further: [
      ...TIRING.map((answer, at) => ({ task: `Tire ${at}`, answer })),
      { task: "Say it all", answer: `${"A long story. ".repeat(700)}\n\n**The end**` },
      { task: "Now be nasty", answer: HOSTILE },
    ],
  });
  const workbench = await Workbench.open(t, lab, { size: WIDE });
  const { page } = workbench;
  const front = inFront(page);
  const pane = front.getByRole("region", { name: "Conversation" });
  const turn = (number: number) =>
    pane
      .getByRole("article")
      .filter({ has: front.getByRole("heading", { name: `Turn ${number} ` }) });
  const read = async (number: number) => {
    const slider = front.getByRole("slider", { name: "Context by turn" });
    await slider.fill(String(number));
    await turn(number).waitFor();
  };
  const wrong: string[] = [];
  page.on("request", (request) => {
    if (/example/.test(request.url())) {
      wrong.push(request.url());
    }
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) {
      wrong.push(message.text());
    }
  });
  await workbench.showCheckpoints();
  await workbench.sessions.getByRole("treeitem").nth(1).getByText(/total/).dblclick();
  await front.locator("#page[data-ready='13']").waitFor();

  await step(t, "hostile Markdown runs nothing, fetches nothing and hides nothing", async () => {
    await turn(13).getByText("passwords").waitFor();
    const seen = await turn(13).innerText();
    for (const said of [
      ...[
        "<script>parent.owned",
        "<img src=x",
        "<iframe src=",
        "[a script](javascript:owned=true)",
      ],
      ...["[a command](command:workbench.", "[data](data:text/html", "[mail](mailto:"],
      ...["a picture (https://tracker.example/pixel.png?id=7)", "![inline](data:"],
    ]) {
      assert.ok(seen.includes(said), said);
    }
    const alive = await front
      .locator("body")
      .evaluate((body) => [
        ...[...body.querySelectorAll("a, img, iframe, object, [onerror], [style*=url]")].map(
          (each) => each.outerHTML,
        ),
        ...(body.textContent?.match(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu) ?? []),
        ...("owned" in window ? ["a script was run"] : []),
        ...(document.documentElement.scrollWidth > window.innerWidth ? ["the page is wide"] : []),
      ]);
    assert.deepEqual(alive, []);
  });

  await step(t, "a link opens only files of the session and of the window", async () => {
    const notice = page.locator(".notification-toast");
    for (const [link, sentence] of [
      ["secrets", "outside the folders"],
      ["passwords", "outside the folders"],
      ["a way out", "symbolic link"],
    ] as const) {
      await turn(13).getByRole("link", { name: link }).click();
      await notice.filter({ hasText: sentence }).first().waitFor();
      await workbench.command("Notifications: Clear All Notifications");
    }
    assert.equal(await page.locator(".tabs-container .tab").count(), 1);
  });

  await step(t, "a long message is cut, and is shown in full when asked for", async () => {
    await read(12);
    await turn(12).getByText("1,813 more characters").waitFor();
    assert.equal(await turn(12).locator("strong").count(), 0);
    await turn(12).getByRole("button", { name: "Show more" }).click();
    await turn(12).locator("strong").getByText("The end").waitFor();
    assert.equal(await turn(12).getByRole("button", { name: "Show more" }).count(), 0);
  });

  await step(t, "slow parsing does not block the page", async () => {
    const longest = front.locator("body").evaluate(async (body) => {
      let [last, most] = [performance.now(), 0];
      while (body.querySelector("article h3")?.textContent?.startsWith("Turn 1 ") !== true) {
        await new Promise((resolve) => setTimeout(resolve));
        most = Math.max(most, performance.now() - last);
        last = performance.now();
      }
      return most;
    });
    for (let number = 11; number > 0; number--) {
      await read(number);
    }
    const most = await longest;
    t.diagnostic(`the longest pause of the page: ${Math.round(most)} ms`);
    assert.ok(most < 1_500, `${Math.round(most)} ms`);
  });

  await step(t, "an answer is rendered, and a request stays as it was typed", async () => {
    const said = turn(1);
    await said
      .getByRole("heading", { name: "The prices come from a cache now", level: 4 })
      .waitFor();
    await said.locator("pre .hljs-comment").getByText("# Reads the prices once").waitFor();
    const [request, answer] = [said.locator(".step.user"), said.locator(".step.assistant")];
    for (const [tag, text] of Object.entries({
      "ol > li": "The price list is read once",
      "ul > li": "after an hour",
      strong: "same",
      em: "twice",
      ":not(pre) > code": "total()",
      td: "cold start",
      blockquote: "Nothing else has changed.",
      ".hljs-keyword": "def",
    })) {
      await answer.locator(tag).filter({ hasText: text }).first().waitFor();
    }
    assert.match(await answer.getByRole("table").innerText(), /cold start\s+2.4 s\s+0.3 s/);
    assert.equal(await request.locator("code").innerText(), "total()");
    assert.match(await request.innerText(), /slow\?\n {2}# not a heading\n__init__ \* 2 \* 3/);
    await isForEverybody(workbench, "conversation rendered");
    await page.setViewportSize({ width: 1024, height: 768 });
    await workbench.screenshot("conversation rendered 1024");
    await page.setViewportSize(WIDE);
  });

  await step(t, "the editor asks before it opens a web address, also by keyboard", async () => {
    await turn(1).getByRole("link", { name: "the manual" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog").filter({ hasText: "docs.example.com/caching" });
    await dialog.waitFor();
    await workbench.screenshot("a web address of a session");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  });

  await step(t, "a file opens at its line", async () => {
    await turn(1).getByRole("link", { name: "src/shop.py" }).click();
    await workbench.editor("src/shop.py").waitFor();
    await becomes(() => page.locator('[id="status.editor.selection"]').innerText(), "Ln 3, Col 1");
    await workbench.closeTab();
  });

  assert.deepEqual(wrong, []);
  assert.equal(await page.evaluate(() => "owned" in window), false);
});
