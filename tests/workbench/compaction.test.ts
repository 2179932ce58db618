/** A session is compacted from its menu: looked at first, done, reported, and taken back. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { shows, step, Workbench } from "./workbench.ts";

/** Every session file with its content. */
function rollouts(lab: Lab): Map<string, string> {
  const root = join(lab.codexHome, "sessions");
  const names = readdirSync(root, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".jsonl"));
  return new Map(files.map((name) => [name, readFileSync(join(root, name), "utf8")]));
}

test("a session is compacted after a look at what the model would see", async (t) => {
  const lab = new Lab();
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Change it"],
    commands: ["cat shop.py", ...Array.from({ length: 9 }, (_, n) => `make step${n}`)],
    output: "a line that nobody needs again\n".repeat(150),
    answer: "I have measured it.",
  });
  const before = rollouts(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 900 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const row = (name: string | RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const notice = page.locator(".notification-list-item").filter({ hasText: "Compacted into" });
  await workbench.showCheckpoints();

  await step(t, "both histories stand side by side before anything is done", async () => {
    await workbench.menu(row("Make the shop faster"), "Compact Session…");
    await picker.getByText("Into a New Session", { exact: true }).waitFor();
    const diff = page.locator(".monaco-diff-editor");
    await diff.getByText("function_call").first().waitFor();
    await diff.getByText("SESSION_CHECKPOINT v1").first().waitFor();
    await workbench.screenshot("compaction preview");
    assert.deepEqual(rollouts(lab), before);
  });

  await step(t, "it goes on in a new session, and the old one stays as it is", async () => {
    await picker.getByText("Into a New Session", { exact: true }).click();
    await notice.waitFor();
    const after = rollouts(lab);
    assert.equal(after.size, 2);
    for (const [name, text] of before) {
      assert.equal(after.get(name), text);
    }
    await shows(workbench.sessions.getByRole("treeitem", { name: /^Make the shop faster/ }).nth(1));
    await shows(workbench.checkpoint.getByRole("treeitem", { name: "Plan, 0 of 2 done" }));
  });

  await step(t, "the report tells what was kept and what was left out", async () => {
    await notice.getByRole("button", { name: "Open Report" }).click();
    const report = workbench.editor("codex-checkpoints://text");
    await report.getByText("Left out (").waitFor();
    await workbench.screenshot("compaction report");
  });

  await step(t, "the windows of the new session stand below it", async () => {
    const made = workbench.sessions.locator('[role=treeitem][aria-expanded="false"]').first();
    await made.locator(".monaco-tl-twistie").click();
    await shows(row(/^Window 1, .* tokens, manual, checkpoint/));
    await workbench.screenshot("windows of a session");
  });

  await step(t, "a window tells what its compaction lost", async () => {
    await workbench.button(row(/^Window 1/), "Show What Compactions Lost");
    const losses = workbench.editor("codex-checkpoints://losses");
    await losses.getByText("Last request: 0 of 1 lost").waitFor();
    await losses.getByText("Open steps of the plan: 0 of 2 lost").waitFor();
    await workbench.screenshot("losses");
  });

  await step(t, "a compaction is taken back from its window", async () => {
    await workbench.menu(row(/^Window 1/), "Undo Compaction");
    await shows(workbench.part("statusbar").getByText("The compaction is taken back"));
  });
});
