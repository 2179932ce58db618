/** Files are restored to the end of a turn: the choice, diffs, unsaved files, and undo. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

const THEN = "one\ntwo\nthree\n";
const NOW = "one\nTWO\nthree\n";
const DIFF = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

test("only ticked files are restored to the end of a turn", async (t) => {
  const lab = Lab.shared();
  lab.write("a.txt", NOW);
  lab.write("b.txt", NOW);
  lab.write("new.txt", "x\n");
  const path = (name: string) => join(lab.project, name);
  const text = (name: string) => readFileSync(path(name), "utf8");
  const changes = {
    [path("a.txt")]: { type: "update", unified_diff: DIFF, move_path: null },
    [path("b.txt")]: { type: "update", unified_diff: DIFF, move_path: null },
    [path("gone.txt")]: { type: "delete", content: "gone\n" },
    [path("new.txt")]: { type: "add", content: "x\n" },
  };
  writeSession(lab.codexHome, {
    task: "Write in capitals",
    cwd: lab.project,
    answer: "Soon.",
    further: [{ task: "Do it now", changes, answer: "Done." }],
  });
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const session = workbench.sessions.getByRole("treeitem", { name: /^Write in capitals/ });
  const picker = page.locator(".quick-input-widget:visible");
  const row = (name: string) => picker.locator(".monaco-list-row").filter({ hasText: name });
  const toast = page.locator(".notification-toast");
  await workbench.showCheckpoints();
  await session.waitFor();

  const choose = async () => {
    await workbench.menu(session, "Restore Files…");
    await row("Write in capitals").first().click();
    await row("a.txt").waitFor();
  };

  await step(t, "files that can be restored are ticked, and the rest is named", async () => {
    await choose();
    assert.equal(await row("gone.txt").count(), 1);
    assert.equal(await row("new.txt").count(), 0);
    const input = picker.locator("input[placeholder]").first();
    assert.match(
      (await input.getAttribute("placeholder")) ?? "",
      /3 files can be restored\. 1 stays as it is: new\.txt\./,
    );
    await workbench.screenshot("files to restore");
    assert.equal(text("a.txt"), NOW);
  });

  await step(t, "the ticked ones are written, and a button undoes that", async () => {
    await row("b.txt").locator("input[type=checkbox], .monaco-checkbox").first().click();
    await picker.getByRole("button", { name: "OK" }).click();
    await toast.filter({ hasText: "2 files restored." }).waitFor();
    await workbench.screenshot("files restored");
    assert.deepEqual([text("a.txt"), text("b.txt"), text("gone.txt")], [THEN, NOW, "gone\n"]);
    await toast.getByRole("button", { name: "Undo" }).click();
    await toast.filter({ hasText: "2 files put back." }).waitFor();
    for (let tries = 0; existsSync(path("gone.txt")) && tries < 50; tries += 1) {
      await page.waitForTimeout(100);
    }
    assert.deepEqual([text("a.txt"), existsSync(path("gone.txt"))], [NOW, false]);
  });

  await step(t, "a file with unsaved changes is left out on request", async () => {
    await workbench.command("Notifications: Clear All Notifications");
    await page.keyboard.press("Control+P");
    await picker.locator("input").first().fill("a.txt");
    await row("a.txt").first().click();
    await workbench.editor("/a.txt").click();
    await page.keyboard.type("mine ");
    await choose();
    await picker.getByRole("button", { name: "OK" }).click();
    await page.getByRole("button", { name: "Leave Out" }).click();
    await toast.filter({ hasText: "2 files restored." }).waitFor();
    assert.deepEqual([text("a.txt"), text("b.txt")], [NOW, THEN]);
  });
});
