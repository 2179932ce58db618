/** A session is compacted from its menu: previewed, compacted, reported and undone. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { barriers, inFront, isForEverybody, tabThrough } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { chosen, shows, step, Workbench } from "./workbench.ts";

/** Read all session files. */
function rollouts(lab: Lab): Map<string, string> {
  const root = join(lab.codexHome, "sessions");
  const names = readdirSync(root, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".jsonl"));
  return new Map(files.map((name) => [name, readFileSync(join(root, name), "utf8")]));
}

/** Return the sign that the stylesheet puts in front of a line. */
function signOf(line: Locator): Promise<string> {
  return line.evaluate((it) => getComputedStyle(it, "::before").content);
}

/** Make distinct lines, so that a larger budget quotes more of them. */
function measured(turn: number, count: number): string {
  const times = (n: number) => `read_${turn}_${n}() took ${n * 7} ms, `.repeat(4);
  const lines = Array.from({ length: count }, (_, n) => times(n));
  return lines.join("\n");
}

test("a session is compacted after a look at Codex's next request", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Change it"],
    commands: [
      "cat shop.py",
      "sed -i s/1/2/ shop.py",
      ...Array.from({ length: 9 }, (_, n) => `make step${n}`),
    ],
    output: measured(0, 100),
    answer: "I have measured it: read_0_7() is called by show() and by total().",
    tokens: 119_000,
    further: [
      ...Array.from({ length: 40 }, (_, n) => ({
        task: `Measure part ${n + 1}`,
        answer: `Part ${n + 1}:\n${measured(n + 1, 8)}`,
      })),
      { task: "Then read them once", answer: "They are read once now." },
    ],
  });
  const before = rollouts(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 900 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const row = (name: string | RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const notice = page.locator(".notification-list-item").filter({ hasText: "Compacted into" });
  const front = inFront(page);
  const button = (name: string) => front.getByRole("button", { name, exact: true });
  const slider = front.getByRole("slider", { name: "Size limit of the digest" });
  const outcome = front.locator("#outcome");
  const tab = page.getByRole("tab", { name: /^Compact “/ });
  await workbench.showCheckpoints();

  await step(t, "a page shows what would be installed, and nothing is written", async () => {
    await workbench.menu(row("Make the shop faster"), "Compact Session…");
    await front.getByRole("heading", { name: "Compact “Make the shop faster”" }).waitFor();
    await outcome.getByText("This is the default.").waitFor();
    await front.getByText("at most").first().waitFor();
    await front.getByText(/^At most [\d,]+ tokens\./).waitFor();
    await front.getByRole("heading", { name: "Your messages" }).click();
    await front.locator("#messages").getByText("Make the shop faster").waitFor();
    await front.getByRole("heading", { name: "State" }).click();
    await front.locator("#state").getByText("[SESSION_CHECKPOINT v1]").waitFor();
    const answers = /^Answers .* \d+ answers left out · the last answer of its turn$/;
    await front.getByRole("heading", { name: answers }).waitFor();
    await front.locator("#digest").getByText("They are read once now.").waitFor();
    assert.deepEqual(rollouts(lab), before);
  });

  await step(t, "the slider marks added and removed lines, by keyboard alone", async () => {
    assert.equal(await front.locator(".comes, .goes").count(), 0);
    await slider.focus();
    await page.keyboard.press("ArrowRight");
    await outcome
      .getByText(/Compared with the default of [\d,]+ tokens: [\d,]+ lines? added/)
      .waitFor();
    const came = front.locator(".comes").first();
    assert.match((await came.textContent()) ?? "", /^Comes: ./);
    assert.match(await signOf(came), /^"\+"/);
    await page.keyboard.press("Home");
    await outcome.getByText(/^No digest\. Compared with .*: [\d,]+ lines removed\.$/).waitFor();
    const gone = front.locator(".goes").first();
    assert.match((await gone.textContent()) ?? "", /^Goes: ./);
    assert.match(await signOf(gone), /^"−"/);
    await front.getByRole("status").getByText("No digest.").waitFor({ state: "attached" });
    assert.equal(await slider.getAttribute("aria-valuetext"), "0 tokens");
    await front.getByRole("spinbutton", { name: "Budget in tokens" }).fill("300");
    await outcome.getByText(/[\d,]+ lines removed\.$/).waitFor();
    await front.locator("#digest").getByText("of at most 300 tokens").waitFor();
  });

  await step(t, "it is accessible in every kind of theme", () =>
    isForEverybody(workbench, "compaction preview"),
  );

  await step(t, "each stop of the Tab key has a name and a visible ring", async () => {
    await slider.focus();
    const stops = await tabThrough(page, 7);
    assert.deepEqual(
      stops.slice(0, 6).map(({ name }) => name),
      [
        "Size limit of the digest",
        "Budget in tokens",
        "Use Default",
        "Compact…",
        "Show as Diff",
        "Copy",
      ],
    );
    for (const { name, ring } of stops) {
      assert(ring >= 3, `the ring around ${name} has a contrast of ${ring}`);
    }
  });

  await step(t, "it fits into a narrow column", async () => {
    await page.setViewportSize({ width: 400, height: 900 });
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    const body = front.locator("body");
    await becomes(() => body.evaluate((it) => it.scrollWidth <= it.clientWidth), true);
    assert.deepEqual(await barriers(page), []);
    await workbench.screenshot("compaction preview narrow");
    await workbench.command("View: Toggle Primary Side Bar Visibility");
    await page.setViewportSize({ width: 1500, height: 900 });
  });

  await step(t, "the anchor of a line opens its record beside it", async () => {
    const line = front.locator("#digest li").filter({ hasText: "They are read once" });
    await line.getByRole("button", { name: /^Record t42 #\d+$/ }).click();
    const record = page.frameLocator("iframe.webview.ready:visible >> nth=1");
    const shown = record.frameLocator("#active-frame");
    await shown.getByRole("heading", { name: /^Record #\d+$/ }).waitFor();
    await shown.getByRole("button", { name: "turn 42" }).waitFor();
    await shown.getByText("They are read once now.").waitFor();
    await workbench.screenshot("compaction preview with a record");
    await workbench.command("View: Close Editor");
  });

  await step(t, "one click copies the replacement", async () => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await button("Copy").click();
    await shows(workbench.part("statusbar").getByText("The replacement is copied"));
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /^──── message: user\nMake the shop faster\n/);
    assert.match(text, /\[SESSION_DIGEST v1\]/);
  });

  await step(t, "one click compares both histories", async () => {
    await button("Show as Diff").click();
    const diff = page.locator(".monaco-diff-editor");
    const then = workbench.editor("codex-checkpoints://then");
    await diff.and(page.locator(":visible")).first().waitFor();
    await then.locator(".view-line").first().waitFor();
    await then.click(); // the editor scrolls to the first change
    await page.keyboard.press("Control+Home");
    await then.getByText("Make the shop faster").first().waitFor();
    await workbench.screenshot("compaction diff");
    assert.deepEqual(rollouts(lab), before);
  });

  await step(t, "the budget and the folding survive another tab in front", async () => {
    await tab.click();
    await front.locator("#digest").getByText("of at most 300 tokens").waitFor();
    await front.locator("#state").getByText("[SESSION_CHECKPOINT v1]").waitFor();
    await button("Compact…").click();
    await picker.getByText("Into a New Session", { exact: true }).waitFor();
    await picker
      .getByText(/Compact “Make the shop faster” .*digest: [12]?\d?\d tokens\)$/)
      .waitFor();
  });

  await step(
    t,
    "a summary by Codex is disabled without Codex, and Enter compacts nothing",
    async () => {
      await picker.getByText("It needs the Codex CLI, which is not on the PATH").waitFor();
      await workbench.screenshot("where to continue");
      await picker.getByText("In Place", { exact: true }).click();
      await page.getByRole("dialog").getByText("Add the compaction to the file").waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.deepEqual(rollouts(lab), before);
    },
  );

  await step(t, "the work continues in a new session, and the old one is unchanged", async () => {
    await row("Make the shop faster").dblclick();
    await page.getByRole("tab", { name: "Make the shop faster", exact: true }).waitFor();
    await tab.click();
    await chosen(button("Compact…"), picker.getByText("Into a New Session", { exact: true }));
    await notice.waitFor();
    await tab.waitFor({ state: "detached" });
    const after = rollouts(lab);
    assert.equal(after.size, 2);
    const made = [...after.keys()].filter((name) => !before.has(name));
    assert.match(after.get(made[0] ?? "") ?? "", /\[SESSION_DIGEST v1\]/);
    for (const [name, text] of before) {
      assert.equal(after.get(name), text);
    }
    await shows(
      workbench.sessions.getByRole("treeitem", { name: /^Compacted: Make the shop faster/ }),
    );
    await shows(workbench.checkpoint.getByRole("treeitem", { name: "Plan, 0 of 2 done" }));
  });

  await step(t, "its row is selected, and its page replaces the old one", async () => {
    await row(/^Compacted: /)
      .and(page.locator('[aria-selected="true"]'))
      .waitFor();
    await page.getByRole("tab", { name: /^Compacted: Make the shop/, selected: true }).waitFor();
    await page
      .getByRole("tab", { name: "Make the shop faster", exact: true })
      .waitFor({ state: "detached" });
    assert.equal(await row("Other Folders").count(), 0);
    await workbench.screenshot("compacted into a new session");
  });

  await step(t, "the report lists kept and omitted parts, and Undo stays", async () => {
    await notice.getByRole("button", { name: "Open Report" }).click();
    await front.getByRole("heading", { name: "Compaction Report" }).waitFor();
    await front.getByRole("heading", { name: "What the model still has" }).waitFor();
    await isForEverybody(workbench, "compaction report");
    await notice.getByRole("button", { name: "Undo" }).waitFor();
    assert.equal(await notice.getByRole("button", { name: "Open Report" }).count(), 0);
  });

  await step(
    t,
    "the page shows the new context next to the old one, and links to the source",
    async () => {
      await row(/^Compacted: Make the shop faster/)
        .getByText("Compacted: Make")
        .dblclick();
      const begun = front.getByRole("region", { name: "No turn" });
      await begun.getByText(/^Compacted from/).waitFor();
      const levels = await begun.getByRole("definition").allInnerTexts();
      const [before = 0, now = 0] = levels.map((each) =>
        Number(/([\d,]+) of/.exec(each)?.[1]?.replaceAll(",", "")),
      );
      assert.equal(levels.length, 2);
      assert.ok(now > 0 && now < before, levels.join(" | "));
      assert.equal(await front.locator(".chart").isVisible(), false);
      await isForEverybody(workbench, "page after a compaction");
      await begun.getByRole("button", { name: "Make the shop faster" }).click();
      await page.getByRole("tab", { name: "Make the shop faster", exact: true }).waitFor();
      await workbench.closeTab();
    },
  );

  await step(t, "the windows of the new session are listed below it", async () => {
    const made = row(/^Compacted: Make the shop faster/);
    if ((await made.getAttribute("aria-expanded")) !== "true") {
      await made.locator(".monaco-tl-twistie").click();
    }
    await shows(row(/^Compacted, .* → .*, asked for, from the checkpoint/));
    await workbench.screenshot("windows of a session");
  });

  await step(t, "a window shows the losses of its compaction", async () => {
    await workbench.button(row(/, Window 1$/), "Lost in Compaction");
    await front.getByRole("heading", { name: "Lost in Compaction" }).waitFor();
    await front.getByText(/^0 of \d+ lost\.$/).waitFor();
    assert.equal(await front.getByRole("cell", { name: "Open step" }).count(), 2);
    await workbench.screenshot("losses");
  });

  await step(t, "a compaction is undone from its window", async () => {
    await workbench.menu(row(/, Window 1$/), "Undo Compaction");
    await shows(workbench.part("statusbar").getByText("Compaction undone."));
    // Below the session one goes on in, so that nobody takes the one for the other.
    const source = row(/^Make the shop faster/).and(page.locator('[aria-expanded="false"]'));
    await shows(source);
    await workbench.screenshot("undone");
    await source.locator(".monaco-tl-twistie").click();
    await shows(row(/^Uncompacted: Make the shop faster/).and(page.locator('[aria-level="3"]')));
  });
});
