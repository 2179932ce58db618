/** `make run` without VS Code: a workbench behind a password; Ctrl+C ends all its processes. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Child } from "./children.ts";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { shows, step, VSIX, Workbench } from "./workbench.ts";

const ROOT = join(import.meta.dirname, "..", "..");

test("the session named in the environment is open when the window opens", async (t) => {
  const lab = new Lab();
  const python = join(ROOT, ".venv", "bin", "python");
  execFileSync(python, [join(ROOT, "tools", "demo.py"), lab.codexHome, lab.project]);
  const [{ sessionId }] = lab.run("sessions");
  const environment = { CODEX_CHECKPOINTS_OPEN: sessionId };
  const workbench = await Workbench.open(t, lab, { environment });

  const name = "Let the reader take the price lists of all our suppliers.";
  // The window, the server and the first webview of a new profile start at the same time.
  const heading = inFront(workbench.page).getByRole("heading", { name }).first();
  await heading.waitFor({ timeout: 30_000 });
  await shows(workbench.sessions.getByRole("treeitem", { name, selected: true }));
  await inEachTheme(workbench, (colours) => workbench.screenshot(`the demo in ${colours}`));

  await step(t, "a restored page is filled as soon as the extension starts", async () => {
    await workbench.reload("Let the reader take");
    await workbench.status.waitFor();
    await shows(heading);
  });
});

test("make run opens a workbench behind a password, and Ctrl+C ends all of it", async (t) => {
  const lab = new Lab();
  t.after(() => lab.remove());
  const python = join(ROOT, ".venv", "bin", "python");
  const run = [python, join(ROOT, "tools", "run.py"), VSIX, "--in", "browser"];
  const child = new Child(run, { env: { ...lab.environment(), CODEX_HOME: "", PYTHONPATH: "" } });
  t.after(() => child.end());

  await child.prints(/none in .*a demo instead/, 60_000);
  const [, address = ""] = await child.prints(/^Address +(http:\S+)/m, 60_000);
  const [, password = ""] = await child.prints(/^Password +(\S+)/m, 60_000);
  assert(address.startsWith("http://127.0.0.1:"));
  assert(password.length >= 16);
  const answer = await fetch(address, { redirect: "manual" });
  assert.match(answer.headers.get("location") ?? "", /login/);
  assert.deepEqual(readdirSync(lab.user), [], "something was written into the user's home");

  process.kill(child.process.pid as number, "SIGINT");
  assert.equal(await child.ends(15_000), 130, child.output);
  assert.deepEqual(readdirSync(lab.temp), []);
  const left = execFileSync("ps", ["-eo", "args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(lab.root) && !line.startsWith("ps "));
  assert.deepEqual(left, []);
});
