/** A missing or broken part has a message with a remedy; an untrusted folder runs nothing. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

test("a view without a folder, sessions or a server says so, with a next step", async (t) => {
  const lab = new Lab();
  const codexHome = join(lab.root, "not yet");
  const workbench = await Workbench.open(t, lab, { environment: { CODEX_HOME: codexHome } });
  const { page, sessions, checkpoint, status } = workbench;
  const here = sessions.getByRole("treeitem", { name: "Right here." });
  await workbench.showCheckpoints();

  await step(t, "there is no folder of sessions", async () => {
    await sessions.getByText("There is no folder of Codex sessions yet.").waitFor();
    await checkpoint.getByText("appears here").waitFor();
    await workbench.screenshot("no folder");
  });

  await step(t, "with one but no session here, the other folders are unfolded", async () => {
    writeSession(codexHome, { task: "Somewhere else.", cwd: "/elsewhere" });
    await shows(sessions.getByText("No session in this folder yet"));
    await shows(sessions.getByRole("treeitem", { name: "Somewhere else." }));
    await shows(sessions.getByRole("treeitem", { name: "Other Folders, 1 session" }));
    await workbench.screenshot("none here");
  });

  await step(t, "the last session is archived: the view says so and links to it", async () => {
    const away = sessions.getByRole("treeitem", { name: "Somewhere else." });
    await workbench.menu(away, "Archive Session");
    await shows(sessions.getByText("All your Codex sessions are archived."));
    await sessions.getByText("Show Archived Sessions").click();
    await workbench.menu(away, "Unarchive Session");
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(away);
  });

  await step(t, "the first session of this folder appears", async () => {
    writeSession(codexHome, { task: "Right here.", cwd: lab.project });
    await shows(here);
    await shows(checkpoint.getByRole("treeitem", { name: "Task, Right here." }));
  });

  await step(t, "its archived sessions are counted where it has no others", async () => {
    await workbench.menu(here, "Archive Session");
    await sessions.getByRole("treeitem", { name: "1 archived session in this folder" }).click();
    await workbench.menu(here, "Unarchive Session");
    await workbench.command("Codex Checkpoints: Clear Search and Filter");
    await shows(here);
  });

  await step(t, "a server that exits by itself is restarted", async () => {
    const before = await lab.server();
    process.kill(before, "SIGKILL");
    await becomes(() => lab.servers().some((each) => each !== before), true);
    assert.match(workbench.log, /ended by itself, starting again/);
    assert.doesNotMatch(workbench.log, /not be restarted/);
    await here.waitFor();
    await shows(status.and(page.getByLabel(/no session here|session in view/)));
  });

  await step(
    t,
    "repeated exits are shown in the status bar, and one click restarts it",
    async () => {
      await workbench.killServers();
      const stopped = status.and(page.getByLabel("The server has stopped"));
      await shows(stopped.and(page.locator(".warning-kind")));
      await shows(sessions.getByText("The server has stopped."));
      await workbench.screenshot("stopped");

      await stopped.click();
      await here.waitFor();
      await shows(status.and(page.getByLabel(/no session here|session in view/)));
    },
  );
});

test("without a Python the view says so, and finds one installed later", async (t) => {
  const lab = new Lab();
  writeSession(lab.codexHome, { task: "Waiting.", cwd: lab.project });
  const bin = join(lab.root, "bin");
  mkdirSync(bin);
  const workbench = await Workbench.open(t, lab, {
    environment: { PATH: bin },
    settings: { "codexCheckpoints.python": join(bin, "nothing") },
  });
  await workbench.showView();

  const status = workbench.status.and(workbench.page.getByLabel("found none"));
  await status.and(workbench.page.locator(".error-kind")).waitFor();
  await workbench.sessions.getByText("needs Python 3.11").waitFor();
  await workbench.screenshot("no python");

  await workbench.sessions.getByText("Choose Python Interpreter").click();
  const picker = workbench.page.locator(".quick-input-widget:visible");
  const choice = picker.locator(".monaco-list-row");
  await choice.filter({ hasText: "Browse…" }).waitFor();
  await workbench.screenshot("choose a python");
  await choice.filter({ hasText: "How to Install Python" }).click();
  await workbench.page.getByRole("dialog").getByText("sudo apt install python3").waitFor();
  await workbench.page.keyboard.press("Escape");

  symlinkSync(realPython(), join(bin, "python3"));
  await workbench.sessions.getByText("Try Again").click();
  await workbench.sessions.getByRole("treeitem", { name: "Waiting." }).waitFor();
});

// In parallel, since the first one mostly waits, for half a minute.
suite("a server", { concurrency: 2 }, () => {
  test("a server that never answers times out and is killed", async (t) => {
    const lab = new Lab();
    writeSession(lab.codexHome, { task: "Nobody reads it.", cwd: lab.project });
    const hangs =
      "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)";
    function hanging(): string[] {
      const running = execFileSync("ps", ["-eo", "args="], { encoding: "utf8" }).split("\n");
      return running.filter((line) => line.includes(hangs) && line.includes(lab.root));
    }
    const workbench = await Workbench.open(t, lab, {
      settings: { "codexCheckpoints.server.command": [realPython(), "-I", "-c", hangs, lab.root] },
    });
    await workbench.showView();
    await becomes(() => hanging().length > 0, true);

    await workbench.page
      .locator(".notification-toast")
      .getByText("The command in the setting codexCheckpoints.server.command did not start.")
      .waitFor();
    await workbench.screenshot("never answers");
    await becomes(hanging, []);
  });

  test("an untrusted folder runs none of its programs", async (t) => {
    const lab = new Lab();
    const trace = join(lab.root, "was-run");
    const script = lab.write("run-me", `#!/bin/sh\necho "$0 $*" >> '${trace}'\n`, 0o755);
    lab.write("python3", readFileSync(script, "utf8"), 0o755);
    lab.write(
      ".vscode/settings.json",
      JSON.stringify({
        "codexCheckpoints.server.command": [script],
        "codexCheckpoints.python": script,
        "codexCheckpoints.codexHome": lab.project,
        "codexCheckpoints.stateDir": lab.project,
        "python.defaultInterpreterPath": script,
      }),
    );
    writeSession(lab.codexHome, { task: "Seen all the same.", cwd: lab.project });
    const before = readdirSync(lab.project);
    const workbench = await Workbench.open(t, lab, { untrusted: true });
    await workbench.showCheckpoints();

    await workbench.page
      .getByRole("button", { name: /Restricted Mode/ })
      .first()
      .waitFor();
    await workbench.sessions.getByRole("treeitem", { name: "Seen all the same." }).waitFor();
    await workbench.checkpoint
      .getByRole("treeitem", { name: "Task, Seen all the same." })
      .waitFor();
    await shows(workbench.sessions.getByText("Restricted Mode"));
    await workbench.screenshot("restricted mode");
    assert.equal(existsSync(trace), false, "something that the folder names was run");
    assert.deepEqual(readdirSync(lab.project), before);
  });
});

/** Return the interpreter itself, not a link in a virtual environment or of a version manager. */
function realPython(): string {
  const venv = join(import.meta.dirname, "..", "..", ".venv", "bin", "python");
  const says = "import os, sys; print(os.path.realpath(sys.executable))";
  return execFileSync(venv, ["-c", says], { encoding: "utf8" }).trim();
}
