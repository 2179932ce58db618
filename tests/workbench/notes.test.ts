/** Facts and decisions in the editor: added, found suspect, verified again, revoked. */

import { execFileSync } from "node:child_process";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { shows, step, Workbench } from "./workbench.ts";

/** Commit the project's files in a new Git repository. */
function commit(lab: Lab): void {
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", ...words], {
      cwd: lab.project,
      env: lab.environment(),
    });
  git("init", "-q");
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
}

test("notes are added, become suspect with their files, are verified again and revoked", async (t) => {
  const lab = Lab.shared();
  lab.write("conf.py", "TTL = 900\n");
  commit(lab);
  writeSession(lab.codexHome, {
    task: "Set the time to live",
    cwd: lab.project,
    plan: ["Read the settings", "Change them"],
    commands: ["cat conf.py", "make test"],
  });
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 1000 } });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const row = (name: string | RegExp): Locator =>
    workbench.checkpoint.getByRole("treeitem", { name });
  const asks = (question: string) => picker.getByText(question);
  /** Answer one question of a sequence: type a text, or choose an item. */
  const answer = async (question: string, text: string) => {
    await asks(question).waitFor();
    await picker.locator("input[type=text]").first().fill(text);
    await page.keyboard.press("Enter");
  };
  const choose = async (question: string, name: string) => {
    await picker.locator(`input[placeholder="${question}"]`).waitFor();
    await picker.locator(".monaco-list-row").filter({ hasText: name }).first().click();
  };
  /** Add a note in one text. */
  const state = async (kind: "Fact" | "Decision", text: string) => {
    await workbench.command("Codex Checkpoints: Add Note…");
    await answer("Fact or decision to remember", text);
    await choose("What is it?", kind);
  };
  /** Accept the preselected evidence. */
  const takes = async (name: string) => {
    await picker.locator('input[placeholder="What is the evidence?"]').waitFor();
    await picker.locator(".monaco-list-row.focused").filter({ hasText: name }).waitFor();
    await page.keyboard.press("Enter");
  };
  await workbench.showCheckpoints();
  await row("file conf.py").waitFor();

  await step(t, "a fact about a file is added from the file's menu", async () => {
    await row("file conf.py").click();
    const editor = workbench.editor("/conf.py");
    const about = "What is true about conf.py?";
    await workbench.menu(editor.getByText("TTL").first(), "Add Fact about This File…", asks(about));
    await answer(about, "auth.ttl = 900 seconds");
    await shows(row("valid, auth.ttl = 900 seconds").and(page.locator('[aria-selected="true"]')));
    await shows(row("Facts, 1 valid, 0 suspect"));
  });

  await step(t, "a standing policy is refused, with a hint", async () => {
    await state("Fact", "Always run the tests first");
    await takes("Set the time to live");
    await page.getByRole("dialog").getByText("This reads like an instruction").first().waitFor();
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "decisions are added, and the replaced one is folded", async () => {
    await state("Decision", "Keep the value in conf.py because it is one place");
    await takes("conf.py");
    await shows(row("Keep the value in conf.py, it is one place"));
    const now = "What holds now?";
    await workbench.menu(row("Keep the value in conf.py"), "Change Note…", asks(now));
    await answer(now, "Read it from the environment");
    await answer("Why?", "deployments differ");
    await choose("What is the evidence?", "Set the time to live");
    await shows(row("Read it from the environment, deployments differ"));
    await shows(row("Superseded, 1"));
    await row("Keep the value in conf.py").waitFor({ state: "hidden" });
  });

  await step(t, "a change on the disk makes the fact suspect, without a click", async () => {
    lab.write("conf.py", "TTL = 600\n");
    await shows(row("suspect, auth.ttl = 900 seconds, conf.py changed"));
    await shows(row("Facts, 0 valid, 1 suspect"));
  });

  await step(t, "the change is shown next to the text in Git", async () => {
    await row("suspect, auth.ttl").locator(".monaco-tl-twistie").click();
    await row("conf.py, changed since the note").click();
    const diff = page.locator(".monaco-diff-editor");
    await diff.getByText("900").first().waitFor();
    await diff.getByText("600").first().waitFor();
    await inEachTheme(workbench, (colours) => workbench.screenshot(`notes in ${colours}`));
  });

  await step(t, "evidence opens its record", async () => {
    await row("Read it from the environment").locator(".monaco-tl-twistie").click();
    await row("from your message").click();
    await inFront(page)
      .getByText(/^Request, \d+ characters$/)
      .waitFor();
  });

  await step(t, "new evidence makes it valid again", async () => {
    const now = "What is true now?";
    await workbench.menu(row("suspect, auth.ttl"), "Verify Again…", asks(now));
    await answer(now, "600 seconds");
    await choose("What is the evidence?", "conf.py");
    await shows(row("valid, auth.ttl = 600 seconds"));
  });

  await step(t, "a note is revoked after confirmation", async () => {
    const revoke = page.getByRole("button", { name: "Revoke", exact: true });
    await workbench.menu(row("valid, auth.ttl"), "Revoke…", revoke);
    await revoke.click();
    await shows(row(/^Facts, none yet/));
  });
});
