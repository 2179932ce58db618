/** Text in a session file stays text: it is not interpreted, rendered or run. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FrameLocator, Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";
const MARKUP = `<img src=x onerror="window.owned=true"><a href="command:x">a</a> **bold** &lt;`;
const SCRIPT = `<script>parent.owned = owned = true</script><img src=x onerror="owned=true">`;
const LONG = "a word and another ".repeat(550);
const OBEYED = "$(trash) \u001b[31mred\u001b]0;owned\u0007 \u202eesrever\u2066";

/** The inert form of `OBEYED`, without control characters. */
const READS = new RegExp(
  ["$(trash)", "[31mred", "esrever"].map((part) => RegExp.escape(part)).join(".*"),
);

/** Elements that the workbench itself adds to trees and the status bar. */
const ITS_OWN = ".label-name, .action-label, .statusbar-item-label";

/** Assert that the elements below a place are plain text. */
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

/** Assert that a page contains only its own elements. */
async function isInertPage(front: FrameLocator, drawn = "none"): Promise<void> {
  const strange = await front.locator("body").evaluate((body, drawn) => {
    const alive = [
      ...body.querySelectorAll("a, img, iframe, svg, script, [onerror], [style*=url]"),
    ];
    const controls = body.textContent?.match(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu) ?? [];
    const scripts = alive.filter(
      (each) => !(each.matches(drawn) || (each instanceof HTMLScriptElement && each.nonce !== "")),
    );
    const wide = document.documentElement.scrollWidth > window.innerWidth;
    return [
      ...scripts.map((each) => each.outerHTML),
      ...controls,
      ...("owned" in window ? ["a script was run"] : []),
      ...(wide ? ["a long line makes the page wide"] : []),
    ];
  }, drawn);
  assert.deepEqual(strange, []);
}

test("markup, escapes, links and icons of a session are shown literally", async (t) => {
  const lab = Lab.shared();
  lab.write("notes.md", `${SCRIPT}\n${LINK}\n${OBEYED}\n${LONG.slice(0, 3000)}\n`);
  const session = writeSession(lab.codexHome, {
    task: `${OBEYED} ${LINK} ${MARKUP} ${SCRIPT} ${LONG}`,
    cwd: lab.project,
    plan: [LINK, MARKUP, SCRIPT, OBEYED, LONG],
    commands: [
      ...["cat notes.md", `cat '${SCRIPT}.md'`, `make '${LINK}'`, `make '${MARKUP}'`],
      ...[`cat '$(gear) ${LINK}.md'`, "cat <b>x.md"],
    ],
    answer: "Done.",
  });
  lab.run("mark", session, "--label", `${LINK} ${SCRIPT}`.slice(0, 120));
  lab.run("pin", session, "notes.md");
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const wrong: string[] = [];
  page.on("dialog", (dialog) => void dialog.dismiss().then(() => wrong.push(dialog.message())));
  const row = workbench.sessions.getByRole("treeitem").nth(1);
  await workbench.showCheckpoints();

  await step(t, "in the lists, the status bar and a hover", async () => {
    await row.filter({ hasText: /\S/ }).waitFor();
    await isInert(workbench.sessions);

    await workbench.checkpoint.getByRole("treeitem", { name: `${LINK}, open` }).waitFor();
    await workbench.checkpoint.getByRole("treeitem", { name: "<img src=x" }).first().waitFor();
    await isInert(workbench.checkpoint);
    await isInert(workbench.status);
    await workbench.checkpoint.getByRole("treeitem", { name: /^Plan/ }).click();
    await page.keyboard.press("End"); // the commands are in the last rows
    await workbench.checkpoint.getByText("make '[link]").waitFor();
    await isInert(workbench.checkpoint);

    await row.hover();
    const hover = page.locator(".monaco-hover:visible, .workbench-hover:visible");
    await hover.getByText(READS).first().waitFor();
    await isInert(hover);
    await workbench.screenshot("hostile text");
  });

  await step(t, "in the documents and on their tabs", async () => {
    await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
    const view = inFront(page);
    await view.getByRole("heading", { name: "Recent files and commands" }).waitFor();
    await isInertPage(view);
    await workbench.command("Codex Checkpoints: Open Digest");
    await view.getByRole("heading", { name: "Digest", level: 1 }).waitFor();
    await isInertPage(view);
    await workbench.command("Codex Checkpoints: Show Checkpoint as JSON");
    const json = workbench.editor("codex-checkpoints://json");
    await json.getByText('"schemaVersion"').waitFor();
    await isInert(json);
    await isInert(page.locator(".tabs-container .tab-label"));
  });

  await step(t, "in the page of the session", async () => {
    const front = inFront(page);
    await workbench.command("Codex Checkpoints: Open Session Page");
    await front.locator("#page[data-ready]").waitFor();
    await isInertPage(front, "svg");
    await page.keyboard.press("ControlOrMeta+w");
  });

  await step(t, "in the pages of a restore", async () => {
    const front = inFront(page);
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) {
        wrong.push(message.text());
      }
    });
    await workbench.command("Codex Checkpoints: Restore from Marker");
    await page.locator(".quick-input-widget:visible .monaco-list-row").first().click();
    await front.getByText("What the new session keeps").waitFor();
    await isInertPage(front);
    await front.getByRole("radio", { name: "Reset context for performance" }).check();
    await front.getByText("[PINNED]").waitFor();
    await front.getByText("parent.owned").first().waitFor();
    await isInertPage(front);
    await workbench.screenshot("restore preview, hostile text");

    await front.getByRole("button", { name: "Restore", exact: true }).click();
    const notice = page.locator(".notification-list-item").filter({ hasText: "Restored “" });
    await notice.waitFor();
    assert.equal(await notice.locator("a.monaco-link, img, script").count(), 0);
    assert.match(await notice.innerText(), /\[link\] \(command:/);
    await notice.getByRole("button", { name: "Details" }).click();
    await front.getByRole("heading", { name: "Restored “" }).waitFor();
    await front.locator("details").evaluateAll((all) => {
      for (const each of all) {
        (each as HTMLDetailsElement).open = true;
      }
    });
    await isInertPage(front);
    await workbench.screenshot("restore details, hostile text");
  });

  assert.equal(await row.isVisible(), true, "the side bar is gone: a command was obeyed");
  assert.deepEqual(wrong, []);
  assert.equal(await page.evaluate(() => "owned" in window), false, "a script was run");
});
