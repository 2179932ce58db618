/** Whatever a session file says is text: nothing of it is obeyed, rendered or run. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { Workbench } from "./workbench.ts";

const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";
const MARKUP = `<img src=x onerror="window.owned=true"><a href="command:x">a</a> **bold** &lt;`;
const OBEYED = "$(trash) \u001b[31mred\u001b]0;owned\u0007 \u202eesrever\u2066";

/** How that reads when nothing of it is obeyed; what controls is gone. */
const READS = new RegExp(
  ["$(trash)", "[31mred", "esrever"].map((part) => RegExp.escape(part)).join(".*"),
);

/** What the workbench itself puts into trees and status bar. */
const ITS_OWN = ".label-name, .action-label, .statusbar-item-label";

/** Assert that nothing below a place is more than text. */
async function isInert(place: Locator): Promise<void> {
  const strange = await place.evaluateAll((elements, itsOwn) => {
    const alive = "a, img, strong, script, .codicon-trash, .codicon-gear, .detected-link";
    const controls = /(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu;
    return elements.flatMap((element) => [
      ...[...element.querySelectorAll(alive)]
        .filter((each) => !each.matches(itsOwn))
        .map((each) => each.outerHTML),
      ...(element.textContent?.match(controls) ?? []),
    ]);
  }, ITS_OWN);
  assert.deepEqual(strange, []);
}

test("markup, escapes, links and icons of a session are shown as they are written", async (t) => {
  const lab = new Lab();
  writeSession(lab.codexHome, {
    task: `${OBEYED} ${LINK} ${MARKUP}`,
    cwd: lab.project,
    plan: [LINK, MARKUP, OBEYED],
    commands: [`make '${LINK}'`, `make '${MARKUP}'`, `cat '$(gear) ${LINK}.md'`, "cat <b>x.md"],
  });
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await workbench.showCheckpoints();

  const session = workbench.sessions.getByRole("treeitem").nth(1);
  await session.filter({ hasText: /\S/ }).waitFor();
  await isInert(workbench.sessions);

  await workbench.checkpoint.getByText("make '[link]").waitFor();
  await workbench.checkpoint.getByRole("treeitem", { name: `${LINK}, open` }).waitFor();
  await workbench.checkpoint.getByRole("treeitem", { name: "<img src=x" }).first().waitFor();
  await isInert(workbench.checkpoint);
  await isInert(workbench.status);

  await session.hover();
  const hover = page.locator(".monaco-hover:visible, .workbench-hover:visible");
  await hover.getByText(READS).first().waitFor();
  await isInert(hover);
  await workbench.screenshot("hostile text");

  await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
  const view = workbench.editor("codex-checkpoints://view");
  await view.getByText("[RECENT_ARTIFACTS]").waitFor();
  await isInert(view);
  await workbench.command("Codex Checkpoints: Show Checkpoint as JSON");
  const json = workbench.editor("codex-checkpoints://json");
  await json.getByText('"schemaVersion"').waitFor();
  await isInert(json);
  await isInert(page.locator(".tabs-container .tab-label"));

  assert.equal(await session.isVisible(), true, "the side bar is gone: a command was obeyed");
  assert.deepEqual(dialogs, []);
  assert.equal(await page.evaluate(() => "owned" in window), false, "a script was run");
});
