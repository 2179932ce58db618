/** One file is restored: from a row of the checkpoint, from a diff, and from a turn's menu. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { step, Workbench } from "./workbench.ts";

const TASK = "Count the sheep";

/** Make a patch of one line, as Codex records it. */
function update(before: string, after: string): object {
  const unified_diff = `@@ -1,1 +1,1 @@\n-${before}\n+${after}\n`;
  return { type: "update", unified_diff, move_path: null };
}

test("one file is restored to its state before a turn, after its difference is shown", async (t) => {
  const lab = Lab.shared();
  lab.write("sheep.txt", "three\n");
  lab.write("goats.txt", "nine\n");
  const path = (name: string) => join(lab.project, name);
  const text = (name: string) => readFileSync(path(name), "utf8");
  writeSession(lab.codexHome, {
    ...{ task: TASK, cwd: lab.project, answer: "I will." },
    further: [
      {
        ...{ task: "One more", answer: "Two." },
        changes: {
          [path("sheep.txt")]: update("one", "two"),
          [path("goats.txt")]: update("eight", "nine"),
        },
      },
      {
        ...{ task: "And one more", answer: "Three." },
        changes: { [path("sheep.txt")]: update("two", "three") },
      },
    ],
  });
  const workbench = await Workbench.open(t, lab, { size: { width: 1440, height: 900 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const option = (name: string | RegExp) => picker.getByRole("option", { name });
  const toast = page.locator(".notification-toast");
  const shown = page.locator(".monaco-diff-editor:visible");
  const agree = async () => {
    await toast.getByRole("button", { name: "Restore", exact: true }).click();
    await toast.filter({ hasText: "1 file restored." }).waitFor();
  };
  const undo = async () => {
    await toast.getByRole("button", { name: "Undo" }).click();
    await toast.filter({ hasText: "1 file put back." }).waitFor();
    await workbench.command("Notifications: Clear All Notifications");
    await workbench.command("View: Close All Editors");
  };
  await workbench.showCheckpoints();

  await step(t, "from a row: each state before a turn that changed it can be chosen", async () => {
    const row = workbench.checkpoint.getByRole("treeitem", { name: /^file sheep\.txt/ });
    await workbench.menu(row, "Restore This File…");
    await option("Before Turn 3").waitFor();
    await option("Before Turn 2").click();
    await page.getByRole("tab", { name: /sheep\.txt: now ↔ then/ }).waitFor();
    await shown.locator(".original").getByText("three").waitFor();
    await shown.locator(".modified").getByText("one").waitFor();
    await toast.filter({ hasText: "Restore sheep.txt? restore · +2 −2" }).waitFor();
    await workbench.screenshot("one file to restore");
    assert.equal(text("sheep.txt"), "three\n");
    await agree();
    assert.deepEqual([text("sheep.txt"), text("goats.txt")], ["one\n", "nine\n"]);
    await undo();
    await becomes(() => text("sheep.txt"), "three\n");
  });

  await step(t, "from the changed files: the left side is restored", async () => {
    await workbench.command("Codex Checkpoints: Show Turns…");
    await option(/^Turn 3|And one more/)
      .first()
      .click();
    await option("Show Changed Files").click();
    const entry = page.locator(".multiDiffEntry:visible", { hasText: "sheep.txt" });
    await entry.locator(".modified").getByText("three").waitFor();
    await workbench.menu(entry.locator(".modified .view-line").first(), "Restore This File…");
    await page.getByRole("tab", { name: /sheep\.txt: now ↔ then/ }).waitFor();
    await agree();
    assert.equal(text("sheep.txt"), "two\n");
    await undo();
  });

  await step(t, "from a file that the session page shows", async () => {
    await workbench.command("Codex Checkpoints: Open Session Page");
    const file = inFront(page).getByRole("button", { name: /sheep\.txt/ });
    await file.last().click();
    await shown.locator(".modified").getByText("three").waitFor();
    await workbench.menu(shown.locator(".modified .view-line").first(), "Restore This File…");
    await option("Before Turn 3").click();
    await agree();
    assert.equal(text("sheep.txt"), "two\n");
    await undo();
  });

  await step(t, "from the menu of a turn: one of the files changed after it", async () => {
    await workbench.command("Codex Checkpoints: Show Turns…");
    await option(/^Turn 1|Count the sheep/)
      .first()
      .click();
    await option("Restore Files…").waitFor();
    await option("Restore One File…").click();
    await option(/^goats\.txt/).click();
    await shown.locator(".modified").getByText("eight").waitFor();
    await agree();
    assert.deepEqual([text("sheep.txt"), text("goats.txt")], ["three\n", "eight\n"]);
    await undo();
  });

  await step(t, "a file that cannot be restored has a reason", async () => {
    lab.write("goats.txt", "many\n");
    const row = workbench.checkpoint.getByRole("treeitem", { name: /^file goats\.txt/ });
    await workbench.menu(row, "Restore This File…");
    await toast.filter({ hasText: /Left as it is: goats\.txt \(the patch in #\d+/ }).waitFor();
    assert.equal(text("goats.txt"), "many\n");
  });
});
