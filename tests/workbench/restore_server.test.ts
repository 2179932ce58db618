/** The pages of a restore while their server restarts and their session is deleted. */

import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { Lab } from "./lab.ts";
import { barriers, inFront } from "./pages.ts";
import { fileOf, writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const [SOFT, HARD] = ["Continue with context", "Reset context for performance"];
const REASON = "typed before it went";
const NOTED = "the prices are read for each request";
const SIZE = { width: 1500, height: 1000 };

test("a page of a restore outlives its session and its server, and names unknown values", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  const session = writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Cache the prices"],
    commands: ["cat shop.py"],
    answer: "Measured.",
  });
  lab.run("mark", session, "--label", "before the cache");
  const workbench = await Workbench.open(t, lab, { size: SIZE });
  const { page } = workbench;
  const front = inFront(page);
  const button = (name: string): Locator => front.getByRole("button", { name, exact: true });
  const restore = button("Restore");
  const trouble = front.getByRole("alert");
  const [here, away] = [fileOf(lab.codexHome, session), join(lab.root, "away.jsonl")];
  const mode = (name: string): Locator => front.getByRole("radio", { name });
  const soft = front.getByText("What the new session keeps");
  const hard = front.getByText("[SESSION_RESTORE v1]");
  await workbench.showCheckpoints();
  await workbench.command("Codex Checkpoints: Restore from Marker");
  await page.locator(".quick-input-widget:visible .monaco-list-row").first().click();
  await soft.waitFor();

  await step(t, "a deleted session cannot be restored", async () => {
    renameSync(here, away);
    await trouble.waitFor();
    await workbench.screenshot("restore preview, the session is gone");
    assert.match((await trouble.textContent()) ?? "", /^This session is no longer there\.$/);
    await becomes(() => restore.isDisabled(), true);
    await mode(HARD).check();
    await button("Try Again").click();
    await trouble.waitFor();
    await becomes(() => restore.isDisabled(), true);
  });

  await step(t, "it can be restored once it exists again", async () => {
    renameSync(away, here);
    await trouble.waitFor({ state: "detached" });
    await hard.waitFor();
    await becomes(() => restore.isEnabled(), true);
    await mode(SOFT).check();
    await soft.waitFor();
  });

  await step(t, "a request during a restart of the server is answered by the new one", async () => {
    await mode(HARD).check();
    await hard.waitFor();
    await front.getByLabel("Reason").fill(REASON);
    await front.getByText(`- reason: ${REASON}`).waitFor();
    const before = await lab.server();
    await workbench.command("Codex Checkpoints: Restart Server");
    await mode(SOFT).check();
    await soft.waitFor();
    await mode(HARD).check();
    await front.getByText(`- reason: ${REASON}`).waitFor();
    assert.equal(await trouble.count(), 0);
    assert.notEqual(await lab.server(), before);
  });

  await step(t, "notes made elsewhere appear without a refresh, and the choices stay", async () => {
    const budget = front.getByRole("spinbutton", { name: "Budget in tokens" });
    await budget.fill("7000");
    const evidence = { source: "user", ref: "task" };
    const note = { kind: "fact", key: "shop.slow", value: NOTED, evidence };
    await page.setViewportSize({ ...SIZE, height: 500 });
    const scroller = front.locator("html");
    const scrolled = await scroller.evaluate((html) => {
      html.scrollTop = 40;
      return html.scrollTop;
    });

    lab.run("apply", session, lab.writeIn(lab.root, "note.json", JSON.stringify(note)));

    await front.getByText(NOTED).first().waitFor();
    await workbench.screenshot("restore preview, noted meanwhile");
    assert.equal(await budget.inputValue(), "7000");
    assert.equal(await front.getByLabel("Reason").inputValue(), REASON);
    assert.equal(scrolled, 40);
    assert.equal(await scroller.evaluate((html) => html.scrollTop), scrolled);
    assert.equal(await trouble.count(), 0);
    await page.setViewportSize(SIZE);
  });

  await step(t, "a killed server is reported, and can be restarted from the page", async () => {
    await workbench.killServers();
    await shows(trouble.getByText("The server has stopped."));
    await workbench.screenshot("restore preview, the server is gone");
    assert.deepEqual(await barriers(page), []);
    await becomes(() => restore.isDisabled(), true);
    assert.equal(await front.getByLabel("Reason").inputValue(), REASON);
    await button("Try Again").focus();
    await page.keyboard.press("Enter");
    await trouble.waitFor({ state: "detached" });
    await restore.and(front.locator(":focus")).waitFor();
    await becomes(() => restore.isEnabled(), true);
    assert.equal(await front.getByLabel("Reason").inputValue(), REASON);
  });

  await step(t, "an unanswered restore says where to look for it", async () => {
    const server = await lab.server();
    process.kill(server, "SIGSTOP");
    await restore.click();
    // Shown for a request that takes a while: the restore has started now.
    await page.locator(".notification-list-item").getByText("Restoring").waitFor();
    process.kill(server, "SIGKILL");
    await workbench.killServers();
    await trouble.getByText("to see whether the branch was opened").waitFor();
    await workbench.screenshot("restore preview, nobody answered");
    await button("Try Again").click();
    await trouble.getByText("The server ended before it answered.").waitFor();
    await trouble.getByText("to see whether the branch was opened").waitFor();
    assert.deepEqual(lab.run("restores"), []);
    await becomes(() => restore.isEnabled(), true);
  });

  await step(t, "the details keep their content, and work again with the next server", async () => {
    await restore.click();
    const notice = page.locator(".notification-list-item").filter({ hasText: "Restored “" });
    await notice.getByRole("button", { name: "Details" }).click();
    const heading = front.getByRole("heading", { name: "Restored “before the cache”" });
    await heading.waitFor();
    assert.equal(lab.run("restores").length, 1);
    await workbench.killServers();
    await shows(trouble.getByText("The server has stopped."));
    await workbench.screenshot("restore details, the server is gone");
    assert.deepEqual(await barriers(page), []);
    assert.equal(await heading.isVisible(), true);
    await button("Try Again").click();
    await trouble.waitFor({ state: "detached" });
    await workbench.command("Codex Checkpoints: Restart Server");
    await button("Restore Again…").click();
    await hard.waitFor();
    assert.equal(await trouble.count(), 0);
  });
});
