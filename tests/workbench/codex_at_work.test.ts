/** The real Codex CLI works in the project, and the workbench shows it, without a click. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { CodexAtWork, STEPS, TASK } from "./codex_at_work.ts";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { atOnce, shows, step, Workbench } from "./workbench.ts";

/** Return the current hash of a file of the project. */
function hashOf(lab: Lab, name: string): string {
  return createHash("sha256")
    .update(readFileSync(join(lab.project, name)))
    .digest("hex");
}

test("work of Codex and typing in the editor show within two seconds", async (t) => {
  const lab = new Lab({ forCodex: true });
  const codex = await CodexAtWork.prepare(t, lab);
  const workbench = await Workbench.open(t, lab, {
    whole: true,
    size: { width: 1800, height: 1100 },
  });
  await workbench.showCheckpoints();
  const row = (name: string | RegExp) => workbench.checkpoint.getByRole("treeitem", { name });
  const file = (name: string) => row(new RegExp(`^file ${RegExp.escape(name)}`));
  const view = inFront(workbench.page);
  const json = workbench.editor("codex-checkpoints://json");

  await step(t, "the session appears, with its task, as running", async () => {
    await codex.begin();
    await shows(workbench.sessions.getByRole("treeitem", { name: `${TASK}, running` }));
    await shows(row(`Task, ${TASK}`));
    await shows(workbench.status.and(workbench.page.getByLabel("Codex session running")));
  });

  await step(t, "the plan appears", async () => {
    await codex.nextStep();
    await shows(row("Plan, 0 of 3 done"));
    for (const step of STEPS) {
      await shows(row(`${step}, open`));
    }
  });

  await step(t, "the file that it reads appears", async () => {
    await codex.nextStep();
    await shows(file("calc/core.py"));
  });

  await workbench.command("Codex Checkpoints: Show Checkpoint as JSON");
  await json.getByText('"schemaVersion"').waitFor();
  await workbench.command("View: New Editor Group to the Right");
  await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
  await view.getByRole("heading", { name: "Task" }).waitFor();

  await step(t, "the files that it changes appear, in the open document and page too", async () => {
    await codex.nextStep();
    for (const name of ["CHANGES.md", "calc/core.py"]) {
      await shows(file(name));
      await shows(view.getByText(hashOf(lab, name).slice(0, 12)));
      await shows(json.getByText(hashOf(lab, name)));
    }
  });

  await step(t, "done steps are marked, and a read-only command is not an artifact", async () => {
    await codex.nextStep(); // a command that only reads
    await codex.nextStep();
    await shows(row("Plan, 3 of 3 done"));
    await shows(row(`${STEPS[0]}, done`));
    assert.equal(await row(/^command /).count(), 0);
  });

  await step(t, "an artifact opens on a click", async () => {
    // A page that has the focus takes it back from the list of commands, and keeps its group.
    await json.getByText('"schemaVersion"').click();
    await workbench.command("View: New Editor Group to the Right");
    await file("calc/core.py").click();
    await workbench.editor("/calc/core.py").getByText("a / b").waitFor();
  });

  await step(
    t,
    "an edit in the editor marks the file, and changes the hash everywhere",
    async () => {
      // An edit right after a patch counts as part of it, until the file has been quiet for a
      // while.
      await shows(row("file calc/core.py, as the session left it"));
      const before = hashOf(lab, "calc/core.py");
      await workbench.editor("/calc/core.py").click();
      await workbench.page.keyboard.press("Control+End");
      await workbench.page.keyboard.type("# typed\n");
      await workbench.save("core.py");
      const after = hashOf(lab, "calc/core.py");
      assert.notEqual(after, before);
      await shows(row("file calc/core.py, changed since turn 1"));
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

test("the page of a session shows each step of Codex as it happens, and nothing moves", async (t) => {
  const lab = new Lab({ forCodex: true });
  const codex = await CodexAtWork.prepare(t, lab);
  // So low that the page scrolls.
  const workbench = await Workbench.open(t, lab, {
    whole: true,
    size: { width: 1200, height: 700 },
  });
  const front = inFront(workbench.page);
  const steps = front.locator(".steps > li");
  const turn = front.getByRole("region", { name: "The chosen turn" });
  const first = steps.first().getByRole("button");
  const follows = async (...what: readonly Locator[]) => {
    const [soon, start] = [atOnce(1_000), performance.now()];
    await Promise.all(what.map((each) => shows(each, soon)));
    const took = Math.round(performance.now() - start);
    t.diagnostic(`it stood there after ${took} ms, of ${Math.round(soon)} that this machine has`);
  };
  // Scroll positions are rounded to whole pixels.
  let top = 0;
  const place = async () => {
    const { top: now, ...found } = await looked();
    const isThere = Math.abs(now - top) <= 1;
    top = now;
    return { ...found, isThere };
  };
  const looked = () =>
    first.evaluate((each) => ({
      top: each.getBoundingClientRect().top,
      focused: each === document.activeElement,
      scrolled: window.scrollY > 0,
      isFirst: "marked" in each,
    }));
  await workbench.showCheckpoints();

  await step(t, "a double click on the running session opens it", async () => {
    await codex.begin();
    const row = workbench.sessions.getByRole("treeitem", { name: `${TASK}, running` });
    await row.getByText(/Fix the division/).dblclick();
    await front.locator(".step.user").getByText(TASK).waitFor();
    await steps.filter({ hasText: TASK }).waitFor();
  });

  await step(t, "the page is scrolled to its conversation", async () => {
    await first.focus();
    await first.evaluate((each) => {
      Object.assign(each, { marked: true });
      const behind = document.createElement("p");
      behind.style.height = "100vh"; // otherwise there is nothing to scroll yet
      document.body.append(behind);
      each.scrollIntoView(); // changes above would now push it down
    });
  });
  await place();
  const before = { focused: true, scrolled: true, isFirst: true, isThere: true };
  assert.deepEqual(await place(), before);

  const tells: readonly [says: string, ...what: Locator[]][] = [
    ["the plan appears", front.getByText(STEPS[0] as string)],
    ["the file that it reads appears", steps.filter({ hasText: "cat calc/core.py" })],
    [
      "the files that it changes appear",
      steps.locator(".patched").filter({ hasText: /^M\s*calc\/core\.py/ }),
      turn.getByText("2 files changed"),
    ],
    ["the command that counts appears", steps.filter({ hasText: "wc -l" })],
    ["the plan is done", front.getByText("3 of 3 done")],
  ];
  for (const [says, ...what] of tells) {
    await step(t, `${says}, and nothing moves`, async () => {
      await codex.nextStep();
      await follows(...what);
      assert.deepEqual(await place(), before);
    });
  }

  await step(t, "the end appears, and nothing moves", async () => {
    await codex.end();
    await follows(turn.getByText(/^Answered/), steps.filter({ hasText: "Fixed." }));
    assert.deepEqual(await place(), before);
    await workbench.screenshot("session page after codex");
  });
});
