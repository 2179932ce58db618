/** The real Codex CLI works in the project, and the workbench shows it, without a click. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CodexAtWork, STEPS, TASK } from "./codex_at_work.ts";
import { Lab } from "./lab.ts";
import { shows, step, Workbench } from "./workbench.ts";

/** The hash of a file of the project as it lies there now. */
function hashOf(lab: Lab, name: string): string {
  return createHash("sha256")
    .update(readFileSync(join(lab.project, name)))
    .digest("hex");
}

test("what Codex does and what is typed in the editor shows within two seconds", async (t) => {
  const lab = new Lab({ forCodex: true });
  const codex = await CodexAtWork.prepare(t, lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1800, height: 1100 } });
  await workbench.showCheckpoints();
  const row = (name: string | RegExp) => workbench.checkpoint.getByRole("treeitem", { name });
  const file = (name: string) => row(new RegExp(`^file ${RegExp.escape(name)}`));
  const view = workbench.editor("codex-checkpoints://view");
  const json = workbench.editor("codex-checkpoints://json");

  await step(t, "the session appears, with its task, as running", async () => {
    await codex.begin();
    await shows(workbench.sessions.getByRole("treeitem", { name: `${TASK}, running` }));
    await shows(row(`Task, ${TASK}`));
    await shows(workbench.status.and(workbench.page.getByLabel("Codex session running")));
  });

  await step(t, "the plan appears", async () => {
    await codex.goOn();
    await shows(row("Plan, 0 of 3 done"));
    for (const step of STEPS) {
      await shows(row(`${step}, open`));
    }
  });

  await step(t, "the file that it reads appears", async () => {
    await codex.goOn();
    await shows(file("calc/core.py"));
  });

  await workbench.command("Codex Checkpoints: Show View Text");
  await view.getByText("[TASK]").waitFor();
  await workbench.command("View: New Editor Group to the Right");
  await workbench.command("Codex Checkpoints: Show Checkpoint JSON");
  await json.getByText('"schemaVersion"').waitFor();

  await step(t, "the files that it changes appear, in the open documents too", async () => {
    await codex.goOn();
    for (const name of ["CHANGES.md", "calc/core.py"]) {
      await shows(file(name));
      await shows(view.getByText(hashOf(lab, name).slice(0, 12)));
      await shows(json.getByText(hashOf(lab, name)));
    }
  });

  await step(t, "the steps that are done are marked, and a look is no artifact", async () => {
    await codex.goOn(); // a command that only looks
    await codex.goOn();
    await shows(row("Plan, 3 of 3 done"));
    await shows(row(`${STEPS[0]}, done`));
    assert.equal(await row(/^command /).count(), 0);
  });

  await step(t, "an artifact opens on a click", async () => {
    await workbench.command("View: New Editor Group to the Right");
    await file("calc/core.py").click();
    await workbench.editor("/calc/core.py").getByText("a / b").waitFor();
  });

  await step(
    t,
    "an edit in the editor marks the file, and changes the hash everywhere",
    async () => {
      const before = hashOf(lab, "calc/core.py");
      await workbench.editor("/calc/core.py").click();
      await workbench.page.keyboard.press("Control+End");
      await workbench.page.keyboard.type("# typed\n");
      await workbench.save("core.py");
      const after = hashOf(lab, "calc/core.py");
      assert.notEqual(after, before);
      await shows(row("file calc/core.py, changed since Codex saw it"));
      await shows(view.getByText(after.slice(0, 12)));
      await shows(json.getByText(after));
      await workbench.screenshot("codex at work");
    },
  );

  await step(t, "the end of the session appears", async () => {
    await codex.end();
    await shows(workbench.status.and(workbench.page.getByLabel("Codex session in view")));
    await shows(workbench.sessions.getByRole("treeitem", { name: `${TASK}, now` }));
  });
});
