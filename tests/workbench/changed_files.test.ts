/** Changed files: their states in the rows, and diffs with verified texts. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { utimesSync } from "node:fs";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront, isForEverybody } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

function patch(...lines: readonly string[]): string {
  return ["apply_patch <<'EOF'", "*** Begin Patch", ...lines, "*** End Patch", "EOF"].join("\n");
}

test("a person sees the files that a session changed, and later changes", async (t) => {
  const lab = Lab.shared();
  const hourAgo = Date.now() / 1000 - 3600;
  // Written before the session's records, so these count as its own changes.
  utimesSync(lab.write("prices.py", "price = 2\n"), hourAgo, hourAgo);
  utimesSync(lab.write("old.py", "new way\n"), hourAgo, hourAgo);
  lab.write("kept.py", "kept = 1\n");
  const git = (...words: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", ...words], {
      ...{ cwd: lab.project, env: lab.environment(), encoding: "utf8" },
    });
  git("init", "-q");
  git("add", "kept.py");
  git("commit", "-q", "-m", "What was there");
  lab.write("kept.py", "kept = 2\n");
  const session = writeSession(lab.codexHome, {
    task: "Write the price list",
    cwd: lab.project,
    commit: git("rev-parse", "HEAD").trim(),
    commands: [patch("*** Add File: prices.py", "+price = 1")],
    output: "Success. Updated the following files:\n",
    answer: "Written.",
    further: [
      {
        task: "Raise the price",
        commands: [
          patch("*** Update File: prices.py", "@@", "-price = 1", "+price = 2"),
          patch("*** Update File: old.py", "@@", "-old way", "+new way"),
          patch("*** Update File: kept.py", "@@", "-kept = 1", "+kept = 2"),
        ],
        answer: "Raised.",
      },
    ],
  });
  lab.run("mark", session, "--turn", "1", "--label", "first price");
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const file = (name: string) => workbench.checkpoint.getByRole("treeitem", { name });
  const tab = (name: RegExp) => page.getByRole("tab", { name }).waitFor();
  const shown = page.locator(".monaco-diff-editor:visible");
  await workbench.showCheckpoints();

  await step(t, "a file is marked when it changes after the session", async () => {
    await file("file prices.py, as the session left it").waitFor();
    await file("file old.py, as the session left it").waitFor();
    lab.write("prices.py", "price = 3\n");
    lab.write("old.py", "newest way\n");
    await file("file prices.py, changed since turn 2").waitFor();
    await file("file old.py, changed since turn 2").waitFor();
  });

  await step(t, "a click shows the earlier text next to the current one", async () => {
    await file("file prices.py").click();
    await tab(/prices\.py: turn 2 ↔ now/);
    await shown.locator(".original").getByText("price = 2").waitFor();
    await shown.locator(".modified").getByText("price = 3").waitFor();
    await workbench.screenshot("a changed file");
    await workbench.closeTab();
  });

  await step(t, "without a verified text the diff shows the patches and says so", async () => {
    await file("file old.py").click();
    await tab(/old\.py \(from patches\)/);
    await shown.locator(".original").getByText("old way").waitFor();
    await shown.locator(".modified").getByText("new way").waitFor();
    await workbench.screenshot("patches only");
    await workbench.closeTab();
  });

  const entry = (name: string) => page.locator(".multiDiffEntry:visible", { hasText: name });
  const top = async (name: string) => (await entry(name).boundingBox())?.y ?? Number.NaN;

  await step(t, "a comparison has the changed files first, then the texts", async () => {
    await workbench.command("Codex Checkpoints: Show Turns…");
    const choice = page.locator(".quick-input-widget:visible .monaco-list-row");
    await choice.filter({ hasText: "Write the price list" }).click();
    await choice.filter({ hasText: "Compare with Now" }).click();
    await tab(/turn 1 ↔ now/);
    await entry("view.txt").waitFor();
    assert.ok((await top("(from patches)")) < (await top("price = 1")));
    assert.ok((await top("price = 1")) < (await top("view.txt")));
    await workbench.screenshot("compared states");
    await workbench.closeTab();
  });

  await step(t, "the files of the session, or of one turn, are in one tab", async () => {
    await workbench.command("Codex Checkpoints: Show Changed Files");
    await tab(/what changed \(3 files\)/);
    await entry("price = 2").waitFor();
    // Git's text and the session's patches lead to the current text.
    await entry("kept = 2").waitFor();
    assert.equal(await entry("kept.py").getByText("(from patches)").count(), 0);
    await workbench.closeTab();
    await workbench.command("Codex Checkpoints: Open Session Page");
    await inFront(page).getByRole("button", { name: "Show Changed Files", exact: true }).click();
    await tab(/what changed in turn 2 \(3 files\)/);
    await entry("price = 1").waitFor();
    await workbench.closeTab();
  });

  await step(t, "the page lists them, and a name opens its diff", async () => {
    const files = inFront(page).locator(".changed-files li");
    await files
      .filter({ hasText: /^\s*A\s*prices\.py/ })
      .getByText("+2")
      .waitFor();
    await files
      .filter({ hasText: /^\s*M\s*old\.py/ })
      .getByText("−1")
      .waitFor();
    await files.getByText("changed since").first().waitFor();
    await files.first().scrollIntoViewIfNeeded();
    await isForEverybody(workbench, "changed files of a page");
    await files.getByRole("button", { name: "old.py" }).click();
    await tab(/old\.py \(from patches\)/);
    await shown.locator(".modified").getByText("new way").waitFor();
    await workbench.closeTab();
  });

  await step(t, "a patch is a card for each file, which opens the diff of its turn", async () => {
    const card = inFront(page).locator(".patched");
    const prices = card.filter({ hasText: "+price = 2" });
    await prices.getByLabel("Modified").waitFor();
    assert.match(await prices.locator(".lines-changed").innerText(), /^\+1 −1$/);
    assert.equal(await prices.locator(".piece.goes").innerText(), "-price = 1");
    assert.equal(await card.getByLabel("Added").count(), 1);
    assert.equal(await card.getByText("*** Begin Patch").count(), 0);
    await prices.scrollIntoViewIfNeeded();
    await isForEverybody(workbench, "patches of a conversation");
    await prices.getByRole("button", { name: "prices.py" }).click();
    await tab(/prices\.py · turn 2/);
    await shown.locator(".original").getByText("price = 1").waitFor();
    await shown.locator(".modified").getByText("price = 2").waitFor();
    await workbench.closeTab();
    await workbench.closeTab();
  });

  await step(t, "a restore leaves the files, and shows which differ since the marker", async () => {
    await workbench.command("Codex Checkpoints: Restore from Marker");
    const choice = page.locator(".quick-input-widget:visible .monaco-list-row");
    await choice.filter({ hasText: "first price" }).first().click();
    const front = inFront(page);
    await front.getByText("Your files are not changed.").waitFor();
    await workbench.screenshot("restore of changed files");
    const files = front.getByRole("region", { name: "Files", exact: true });
    await files.getByRole("button", { name: "prices.py" }).click();
    await tab(/prices\.py: at the marker ↔ now/);
    await shown.locator(".original").getByText("price = 1").waitFor();
    await shown.locator(".modified").getByText("price = 3").waitFor();
  });
});
