/** Turns are marked and compared, files pinned, branches opened and deleted, all from the lists. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inFront, isForEverybody } from "./pages.ts";
import { rollBack, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { again, shows, step, Workbench } from "./workbench.ts";

/** Fold or unfold a row. */
function twist(row: Locator): Promise<void> {
  return row.locator(".monaco-tl-twistie").click();
}

test("turns are marked, reverted turns shown and branches opened, all from the lists", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  const made = writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it"],
    commands: ["cat shop.py"],
    answer: "Measured.",
    further: [
      { task: "Now cache the prices", plan: ["Measure it", "Cache them"], answer: "Done." },
      { task: "And write the tests", commands: ["make test"] },
    ],
  });
  // From yesterday: its row moves to today when the session is written, and stays unfolded.
  const day = 60 * 25;
  const sorting = { task: "Sort the prices", cwd: lab.project, age: day, plan: ["Measure it"] };
  const sorted = writeSession(lab.codexHome, {
    ...sorting,
    answer: "Measured.",
    further: [
      { task: "Now sort them", plan: ["Measure it", "Sort them"], answer: "Done." },
      { task: "Sort them twice", plan: ["Measure it", "Undo it"], answer: "Done." },
    ],
  });
  lab.run("mark", sorted, "--label", "measured", "--turn", "1");
  lab.run("mark", sorted, "--label", "sorted prices", "--turn", "2");
  const source = writeSession(lab.codexHome, {
    task: "Make the build shorter",
    cwd: lab.project,
    age: 60,
    plan: ["Measure it"],
    answer: "Measured.",
  });
  const spec = { age: 40, cwd: lab.project, plan: ["Measure it", "Cache it"], answer: "Done." };
  writeSession(lab.codexHome, { task: "Try a cache", branchOf: source, ...spec });
  const gone = "01a1f866-1577-75b3-94b5-d7c15f455a1c";
  writeSession(lab.codexHome, { task: "An orphan", branchOf: gone, ...spec, age: 90 });
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 900 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const choice = (name: string) => picker.getByRole("option", { name });
  const row = (name: string | RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const session = row(/^Make the shop faster/);
  const selected = page.locator('[aria-selected="true"]');
  const notice = (text: string) =>
    page.locator(".notification-list-item").filter({ hasText: text });
  const front = inFront(page);
  const naming = picker.getByText("The name of the marker");
  const answer = async (question: string, text: string) => {
    await picker.getByText(question).waitFor();
    await picker.locator("input[type=text]").first().fill(text);
    await page.keyboard.press("Enter");
  };
  await workbench.showCheckpoints();
  await session.and(page.locator(":not([aria-expanded])")).waitFor();

  await step(t, "the last complete turn is chosen, and an open one is not offered", async () => {
    await workbench.menu(session, "Add Marker…");
    const last = choice("Now cache the prices");
    await last.and(page.locator(".focused")).waitFor();
    await workbench.screenshot("turns to mark");
    assert.equal(await choice("And write the tests").count(), 0);
    await last.click();
  });

  await step(t, "the label is asked for, and the marker is listed below the session", async () => {
    await answer("The name of the marker", "  ");
    await picker.getByText("Enter a text.").waitFor();
    await picker.locator("input[type=text]").first().fill("cached prices");
    await picker.getByText("The name of the marker").waitFor();
    await page.keyboard.press("Enter");
    await shows(session.and(page.locator('[aria-expanded="false"]')));
    await twist(session);
    await shows(row("marker cached prices, turn 2, now"));
  });

  await step(t, "it is renamed from its menu", async () => {
    await workbench.menu(row("marker cached prices"), "Rename Marker…", naming);
    await answer("The name of the marker", "before testing");
    await shows(row("marker before testing, turn 2, now"));
  });

  await step(t, "a session with a marker can be restored from its own menu", async () => {
    await workbench.menu(session, "Restore from Marker…", choice("before testing"));
    await page.keyboard.press("Escape");
    await picker.waitFor({ state: "hidden" });
  });

  await step(t, "a marker renamed in a folded session has its new name when unfolded", async () => {
    const asked = () => workbench.log.split("sessions here: ").length;
    const [marker] = lab.run("marks", made);
    await twist(session);
    await row("marker before testing").waitFor({ state: "hidden" });
    const before = asked();
    lab.run("relabel", made, marker.checkpointId, "before the tests");
    await becomes(() => asked() > before, true);
    await twist(session);
    await shows(row("marker before the tests, turn 2, now"));
    await workbench.menu(row("marker before the tests"), "Rename Marker…", naming);
    await answer("The name of the marker", "before testing");
    await shows(row("marker before testing, turn 2, now"));
  });

  await step(t, "a turn from the list is compared with the marker", async () => {
    await workbench.command("Codex Checkpoints: Show Turns…");
    await choice("Marked: “before testing”").waitFor();
    await choice("Make the shop faster").click();
    await choice("Compare with…").click();
    await choice("before testing, turn 2").click();
    const diff = page.locator(".monaco-diff-editor");
    await diff.getByText("Cache them").first().waitFor();
    await page.getByRole("tab", { name: /turn 1 ↔ before testing · task · plan 1/ }).waitFor();
    await workbench.screenshot("markers");
  });

  await step(t, "an earlier state opens as a view and as a checkpoint", async () => {
    await workbench.command("Codex Checkpoints: Show Turns…");
    await choice("Make the shop faster").click();
    await choice("Show Checkpoint as JSON").click();
    const state = workbench.editor("codex-checkpoints-state://json");
    await state.getByText("Make the shop faster").first().waitFor();
  });

  await step(t, "a file is pinned from its row, and unpinned", async () => {
    const file = (name: string) => workbench.checkpoint.getByRole("treeitem", { name });
    await workbench.menu(file("file shop.py"), "Pin File to Session");
    await shows(file("pinned file shop.py"));
    await shows(file("file shop.py, pinned"));
    await workbench.screenshot("a pinned file");
    await workbench.menu(file("pinned file shop.py"), "Unpin from Session");
    await file("pinned file shop.py").waitFor({ state: "detached" });
  });

  await step(t, "it is removed at once, and restored by Undo", async () => {
    await workbench.menu(row("marker before testing"), "Remove Marker…");
    await row("marker before testing").waitFor({ state: "detached" });
    await session.and(page.locator(":not([aria-expanded])")).waitFor();
    const toast = page.locator(".notification-toast").filter({ hasText: "removed." });
    await toast.getByRole("button", { name: "Undo" }).click();
    await shows(session.and(page.locator("[aria-expanded]")));
  });

  await step(t, "a branch is listed below its source, and links to its own row", async () => {
    await twist(row(/^Make the build shorter/));
    await row("Branch: Try a cache").click();
    await shows(row(/^Try a cache, /).and(selected));
    await twist(row(/^Try a cache, /));
    await shows(row("Source: Make the build shorter"));
    await workbench.screenshot("branches");
  });

  await step(t, "a command leads back to the source", async () => {
    await workbench.menu(row(/^Try a cache, /), "Go to Source", undefined, "Show");
    await shows(row(/^Make the build shorter/).and(selected));
    await shows(workbench.checkpoint.getByRole("treeitem", { name: "Plan, 0 of 1 done" }));
  });

  await step(t, "a missing source is reported", async () => {
    await workbench.menu(row(/^An orphan, /), "Go to Source", undefined, "Show");
    await notice("This session is no longer there.").waitFor();
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "a branch is deleted after confirmation", async () => {
    await workbench.menu(row(/^Try a cache, /), "Delete Session Branch…");
    const sure = page.getByRole("button", { name: "Delete", exact: true });
    await sure.waitFor();
    await page.keyboard.press("Enter"); // keeps the branch
    await sure.waitFor({ state: "detached" });
    await workbench.menu(row(/^Try a cache, /), "Delete Session Branch…");
    await sure.click();
    // The branch has a turn by the user, which needs a second confirmation.
    await page.getByRole("button", { name: "Delete All", exact: true }).click();
    await row(/^Try a cache, /).waitFor({ state: "detached" });
    await row("Branch: Try a cache").waitFor({ state: "detached" });
  });

  await step(t, "its row shows the rollback, and the other marker stays on its turn", async () => {
    await row(/^Sort the prices, /).click();
    await twist(row(/^Sort the prices, /));
    await workbench.button(row("marker sorted prices, turn 2"), "Restore from Marker…");
    await front.getByText("The conversation up to turn 2").waitFor();
    rollBack(lab.codexHome, sorted, 2);
    await shows(row("marker sorted prices, its turn was rolled back"));
    await shows(row("marker measured, turn 1"));
    await shows(workbench.checkpoint.getByRole("treeitem", { name: "Task, Sort the prices" }));
  });

  await step(
    t,
    "its open preview shows the rollback too; the turn can still be restored",
    async () => {
      await front.getByText("The marker's turn has been rolled back since").waitFor();
      await front.getByText("Sort the prices · marked").waitFor();
      await front.getByText("The conversation up to the marker", { exact: true }).waitFor();
      await page.mouse.move(1, 1); // a row's tooltip may cover the page
      // A pending answer may redraw the page with the previous choice.
      const hard = front.getByRole("radio", { name: "Reset context for performance" });
      await again((timeout) => hard.check({ timeout }));
      await front.getByText("[ ] Sort them").waitFor();
      await isForEverybody(workbench, "detached marker");
      await front.getByRole("button", { name: "Restore", exact: true }).click();
      await notice("Restored “").waitFor();
      await shows(row("marker sorted prices, its turn was rolled back"));
    },
  );
});
