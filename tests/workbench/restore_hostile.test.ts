/** Whatever a session, a label or a pinned file says stays text in the pages of a restore. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { FrameLocator } from "playwright-core";
import { Lab } from "./lab.ts";
import { inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { Workbench } from "./workbench.ts";

const SCRIPT = `<script>parent.owned = owned = true</script><img src=x onerror="owned=true">`;
const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";
const OBEYED = "$(trash) \u001b[31mred \u202eesrever\u2066";
const LONG = "a word and another ".repeat(550);

/** Assert that a page holds nothing but what the page itself is made of. */
async function isInert(front: FrameLocator): Promise<void> {
  const strange = await front.locator("body").evaluate((body) => {
    const alive = [
      ...body.querySelectorAll("a, img, iframe, svg, script, [onerror], [style*=url]"),
    ];
    const controls = body.textContent?.match(/(?![\t\n])\p{Cc}|\p{Bidi_Control}/gu) ?? [];
    const scripts = alive.filter(
      (each) => !(each instanceof HTMLScriptElement && each.nonce !== ""),
    );
    const wide = document.documentElement.scrollWidth > window.innerWidth;
    return [
      ...scripts.map((each) => each.outerHTML),
      ...controls,
      ...("owned" in window ? ["a script was run"] : []),
      ...(wide ? ["a long line makes the page wide"] : []),
    ];
  });
  assert.deepEqual(strange, []);
}

test("nothing in a page of a restore is obeyed, rendered or run", async (t) => {
  const lab = new Lab();
  lab.write("notes.md", `${SCRIPT}\n${LINK}\n${OBEYED}\n${LONG.slice(0, 3000)}\n`);
  const session = writeSession(lab.codexHome, {
    task: `${SCRIPT} ${LINK} ${OBEYED} ${LONG}`,
    cwd: lab.project,
    plan: [SCRIPT, LINK, OBEYED, LONG],
    commands: ["cat notes.md", `cat '${SCRIPT}.md'`],
    answer: "Done.",
  });
  const label = `${LINK} ${SCRIPT}`.slice(0, 120);
  lab.run("mark", session, "--label", label);
  lab.run("pin", session, "notes.md");
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const wrong: string[] = [];
  page.on("dialog", (dialog) => void dialog.dismiss().then(() => wrong.push(dialog.message())));
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) {
      wrong.push(message.text());
    }
  });
  const front = inFront(page);
  await workbench.showCheckpoints();

  await workbench.command("Codex Checkpoints: Restore from Marker");
  await page.locator(".quick-input-widget:visible .monaco-list-row").first().click();
  await front.getByText("What the new session keeps").waitFor();
  await isInert(front);
  await front.getByRole("radio", { name: "Reset context for performance" }).check();
  await front.getByText("[PINNED]").waitFor();
  await front.getByText("parent.owned").first().waitFor();
  await isInert(front);
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
  await isInert(front);
  await workbench.screenshot("restore details, hostile text");
  assert.equal(await workbench.sessions.isVisible(), true, "the side bar is gone: obeyed");
  assert.deepEqual(wrong, []);
});
