/** Pictures in every kind of theme, for people to look at. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { Workbench } from "./workbench.ts";

const ROOT = join(import.meta.dirname, "..", "..");

const THEMES = {
  light: { theme: "Light 2026", kind: "vs" },
  dark: { theme: "Dark 2026", kind: "vs-dark" },
  "high contrast dark": { theme: "Dark High Contrast", kind: "hc-black" },
  "high contrast light": { theme: "Light High Contrast", kind: "hc-light" },
};

test("sessions, checkpoint and view text can be read in every kind of theme", async (t) => {
  const lab = new Lab();
  const demo = join(ROOT, "tools", "demo.py");
  execFileSync(join(ROOT, ".venv", "bin", "python"), [demo, lab.codexHome, lab.project]);
  const workbench = await Workbench.open(t, lab);
  await workbench.showCheckpoints();
  const session = workbench.sessions.getByRole("treeitem", { name: /^Read price lists/ });
  await session.click();
  await workbench.checkpoint.getByRole("treeitem", { name: "Plan, 2 of 5 done" }).waitFor();
  await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
  await workbench.editor("codex-checkpoints://view").getByText("SESSION_CHECKPOINT").waitFor();
  for (const [name, { theme, kind }] of Object.entries(THEMES)) {
    await workbench.theme(theme, kind);
    await workbench.screenshot(name);
  }
});
