/** The restore page restores the ticked files, with or without the conversation. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { barriers, inFront, isForEverybody } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const TASK = "Write in capitals";
const LABEL = "small letters";
const THEN = "one\ntwo\nthree\n";
const NOW = "one\nTWO\nthree\n";
const MINE = "one\nmine\nthree\n";
const DIFF = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
const UNTAR = "tar xf letters.tar";
const [WIDE, NARROW] = [
  { width: 1440, height: 1000 },
  { width: 1024, height: 900 },
];

/** Write a session whose second turn changed files, and a marker on its first turn. */
function work(lab: Lab): { session: string; text: (name: string) => string | null } {
  const path = (name: string) => join(lab.project, name);
  for (const name of ["a.txt", "b.txt", "mine.txt"]) {
    lab.write(name, name === "mine.txt" ? MINE : NOW);
  }
  lab.write("new.txt", "x\n");
  const update = { type: "update", unified_diff: DIFF, move_path: null };
  const session = writeSession(lab.codexHome, {
    ...{ task: TASK, cwd: lab.project, answer: "Soon.", used: 90_000 },
    further: [
      {
        ...{ task: "Do it now", answer: "Done.", commands: [UNTAR] },
        changes: {
          [path("a.txt")]: update,
          [path("b.txt")]: update,
          [path("mine.txt")]: update,
          [path("gone.txt")]: { type: "delete", content: "gone\n" },
          [path("new.txt")]: { type: "add", content: "x\n" },
        },
      },
    ],
  });
  lab.run("mark", session, "--label", LABEL, "--turn", "1");
  const text = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), "utf8") : null);
  return { session, text };
}

async function openPage(t: TestContext, lab: Lab, untrusted = false): Promise<Workbench> {
  const workbench = await Workbench.open(t, lab, { size: WIDE, untrusted });
  await workbench.showCheckpoints();
  await workbench.sessions.getByRole("treeitem", { name: new RegExp(`^${TASK}`) }).waitFor();
  await restorePage(workbench);
  return workbench;
}

async function restorePage(workbench: Workbench): Promise<void> {
  const { page } = workbench;
  await workbench.command("Codex Checkpoints: Restore from Marker");
  await page.locator(".quick-input-widget:visible").getByText(LABEL).click();
  await inFront(page)
    .getByRole("heading", { name: `Restore “${LABEL}”` })
    .waitFor();
}

test("a restore brings back the ticked files, the conversation, or both", async (t) => {
  const lab = Lab.shared();
  const { session, text } = work(lab);
  const workbench = await openPage(t, lab);
  const { page } = workbench;
  const front = inFront(page);
  const scope = (name: string) => front.getByRole("radio", { name, exact: true });
  const tick = (name: string) => front.getByRole("checkbox", { name: new RegExp(`^${name}, `) });
  const button = (name: string | RegExp): Locator => front.getByRole("button", { name });
  const done = front.getByRole("status").filter({ hasText: /files? (restored|put back)\./ });
  const toast = page.locator(".notification-toast");
  const row = (name: RegExp) => workbench.sessions.getByRole("treeitem", { name });

  await step(t, "the conversation is chosen, and no file with it", async () => {
    await tick("a\\.txt").waitFor();
    assert.equal(await scope("Conversation").isChecked(), true);
    for (const name of ["a\\.txt", "b\\.txt", "gone\\.txt"]) {
      assert.equal(await tick(name).isDisabled(), true);
      assert.equal(await tick(name).isChecked(), false);
    }
    assert.equal(await button("Restore").isEnabled(), true);
    await isForEverybody(workbench, "restore page, conversation");
  });

  await step(
    t,
    "each row has its action and reason; a command with an unknown effect is named",
    async () => {
      const about = (name: string) => front.locator(".file-row").filter({ hasText: name });
      assert.match(await about("a.txt").innerText(), /\+1 −1\s+restore/);
      assert.match(
        await about("gone.txt").innerText(),
        /\+1 −0\s+create · this session deleted it/,
      );
      assert.match(
        await about("mine.txt").innerText(),
        /conflict · the patch in #\d+ cannot be undone/,
      );
      assert.match(await about("new.txt").innerText(), /new or replaced · Codex wrote it as new/);
      assert.equal(await tick("mine\\.txt").count(), 0);
      await front.getByText("1 command after that turn may have changed more files.").waitFor();
      await front.getByText(UNTAR).waitFor();
    },
  );

  await step(t, "a click shows the current file next to the restored one", async () => {
    await front.locator(".file-row").getByRole("button", { name: "a.txt" }).click();
    await page.getByRole("tab", { name: /a\.txt: now ↔ then/ }).waitFor();
    const shown = page.locator(".monaco-diff-editor:visible");
    await shown.locator(".original").getByText("TWO").waitFor();
    await shown.locator(".modified").getByText("two").waitFor();
    await workbench.screenshot("restore page, a difference");
    await workbench.closeTab();
  });

  await step(t, "files alone: the keyboard ticks them, and the button counts them", async () => {
    await scope("Conversation").focus();
    await page.keyboard.press("ArrowDown");
    await becomes(() => tick("a\\.txt").isChecked(), true);
    await becomes(() => tick("gone\\.txt").isChecked(), true);
    await button("Restore 3 Files").waitFor();
    await tick("b\\.txt").focus();
    await page.keyboard.press("Space");
    await button("Restore 2 Files").waitFor();
    assert.equal(await front.getByRole("radio", { name: "Continue with context" }).count(), 0);
    await isForEverybody(workbench, "restore page, files");
    assert.deepEqual([text("a.txt"), text("gone.txt")], [NOW, null]);
  });

  await step(t, "only these are written; the page lists them", async () => {
    await button("Restore 2 Files").focus();
    await page.keyboard.press("Enter");
    await done.getByText("2 files restored.").waitFor();
    assert.deepEqual(await done.locator("li").allInnerTexts(), ["a.txt", "gone.txt"]);
    assert.deepEqual([text("a.txt"), text("b.txt"), text("gone.txt")], [THEN, NOW, "gone\n"]);
    assert.deepEqual([text("mine.txt"), text("new.txt")], [MINE, "x\n"]);
    assert.deepEqual(lab.run("restores"), []);
    await tick("a\\.txt").waitFor({ state: "detached" });
    assert.equal(await front.getByText("Not as they were").count(), 0);
    await workbench.screenshot("restore page, files restored");
  });

  await step(t, "a button undoes that", async () => {
    await done.getByRole("button", { name: "Undo" }).click();
    await done.getByText("2 files put back.").waitFor();
    await tick("a\\.txt").waitFor();
    assert.deepEqual([text("a.txt"), text("gone.txt")], [NOW, null]);
    assert.equal(await done.getByRole("button", { name: "Undo" }).count(), 0);
  });

  await step(
    t,
    "for an unsaved editor of a chosen file the choices are: cancel, leave out, save",
    async () => {
      await page.keyboard.press("Control+P");
      const picker = page.locator(".quick-input-widget:visible");
      await picker.locator("input").first().fill("a.txt");
      await picker.locator(".monaco-list-row").filter({ hasText: "a.txt" }).first().click();
      await workbench.editor("/a.txt").click();
      await page.keyboard.press("Control+Home");
      await page.keyboard.type("mine ");
      await page.getByRole("tab", { name: `Restore “${LABEL}”` }).click();
      await button("Restore 2 Files").click();
      await page.getByText("1 chosen file has unsaved changes.").waitFor();
      await page.getByRole("button", { name: "Cancel", exact: true }).last().click();
      await front.getByText("Cancelled. Nothing was written.").waitFor();
      assert.deepEqual([text("a.txt"), text("gone.txt")], [NOW, null]);
      await button("Restore 2 Files").click();
      await page.getByRole("button", { name: "Leave Out" }).click();
      await done.getByText("1 file restored.").waitFor();
      assert.deepEqual([text("a.txt"), text("gone.txt")], [NOW, "gone\n"]);
      await button("Restore 1 File").click();
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await done.getByText("0 files restored. Not written: a.txt (").waitFor();
      assert.equal(text("a.txt"), `mine ${NOW}`);
      await workbench.screenshot("restore page, a file was left");
      await page.getByRole("tab", { name: "a.txt" }).click();
      await workbench.closeTab();
      lab.write("a.txt", NOW);
      await tick("a\\.txt").waitFor();
    },
  );

  await step(t, "both: the branch is in view, and the ticked file is restored", async () => {
    await workbench.command("Codex Checkpoints: Open Session Page");
    await page.getByRole("tab", { name: TASK }).waitFor();
    await page.getByRole("tab", { name: `Restore “${LABEL}”` }).click();
    await scope("Both").check();
    await front.getByRole("radio", { name: "Reset context for performance" }).check();
    await button("Restore with 1 File").waitFor();
    await isForEverybody(workbench, "restore page, both");
    await button("Restore with 1 File").click();
    await toast.filter({ hasText: "1 file restored." }).waitFor();
    assert.equal(text("a.txt"), THEN);
    const [restore] = lab.run("restores");
    assert.equal(restore.sourceSessionId, session);
    await shows(
      row(new RegExp(`^${LABEL}: ${TASK}, .*context \\d+ percent`)).and(
        page.locator('[aria-selected="true"]'),
      ),
    );
    await page.getByRole("tab", { name: new RegExp(`^${LABEL}: `) }).waitFor();
    assert.equal(await page.getByRole("tab", { name: TASK, exact: true }).count(), 0);
    await shows(workbench.checkpoint.getByRole("treeitem", { name: `Task, ${TASK}` }));
    await workbench.screenshot("restore page, both restored");
  });

  await step(
    t,
    "Undo deletes the branch, puts the file back, and leads to the source",
    async () => {
      await toast.getByRole("button", { name: "Undo" }).click();
      await toast.filter({ hasText: "1 file put back." }).waitFor();
      await row(new RegExp(`^${LABEL}: `)).waitFor({ state: "detached" });
      await shows(row(new RegExp(`^${TASK}`)).and(page.locator('[aria-selected="true"]')));
      await page.getByRole("tab", { name: TASK }).waitFor();
      assert.equal(text("a.txt"), NOW);
    },
  );

  await step(t, "it can be used in a narrow window", async () => {
    await page.setViewportSize(NARROW);
    await restorePage(workbench);
    await scope("Files").check();
    await tick("a\\.txt").waitFor();
    await workbench.screenshot("restore page, files, narrow");
    assert.deepEqual(await barriers(page), []);
  });
});

test("no file is restored in an untrusted window", async (t) => {
  const lab = new Lab();
  const { session, text } = work(lab);
  const workbench = await openPage(t, lab, true);
  const { page } = workbench;
  const front = inFront(page);

  await step(t, "the restore page offers the conversation alone, and says why", async () => {
    await front.getByText("This window is in Restricted Mode: no files are restored.").waitFor();
    assert.equal(await front.getByRole("radio", { name: "Files", exact: true }).isDisabled(), true);
    assert.equal(await front.getByRole("radio", { name: "Both", exact: true }).isDisabled(), true);
    assert.equal(await front.getByRole("checkbox").count(), 0);
    await workbench.screenshot("restore page, restricted");
  });

  await step(t, "the commands are not offered", async () => {
    await page.keyboard.press("F1");
    const picker = page.locator(".quick-input-widget:visible");
    await picker.locator("input").first().fill(">Codex Checkpoints: Restore F");
    await picker.getByText("Restore from Marker…").first().waitFor();
    assert.equal(await picker.getByText("Restore Files…").count(), 0);
    await page.keyboard.press("Escape");
    assert.equal(text("a.txt"), NOW);
    assert.deepEqual(lab.run("audit", "--session", session).filter(isFiles), []);
  });

  await step(t, "after trust is granted the files are offered", async () => {
    await workbench.command("Workspaces: Manage Workspace Trust");
    await page.getByRole("button", { name: "Trust", exact: true }).click();
    await page.keyboard.press("Escape"); // the question covers the page
    await front.getByRole("checkbox", { name: /^a\.txt, / }).waitFor();
  });
});

function isFiles({ type }: { readonly type: string }): boolean {
  return type === "FilesRestored";
}
