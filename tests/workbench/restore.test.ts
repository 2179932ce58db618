/** A marker is restored: previewed, restored, reported, read again, and continued in a terminal. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator } from "playwright-core";
import { CodexToResume, LATER, SAID, TASK } from "./codex_to_resume.ts";
import { Lab } from "./lab.ts";
import { barriers, inFront } from "./pages.ts";
import { fileOf } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const [SOFT, HARD] = ["Continue with context", "Reset context for performance"];
const PROMPT = "And now?";
const LABEL = "before the other thing";

/** Return a session's file and its hash. */
function rollout(lab: Lab, session: string): { path: string; digest: string } {
  const path = fileOf(lab.codexHome, session);
  return { path, digest: createHash("sha256").update(readFileSync(path)).digest("hex") };
}

test("a marker is restored in both modes, inspected, and continued in a terminal", async (t) => {
  const lab = new Lab({ forCodex: true });
  const codex = await CodexToResume.work(t, lab);
  const { session, environment } = codex;
  lab.run("mark", session, "--label", LABEL, "--turn", "1");
  const before = rollout(lab, session);
  const size = { width: 1500, height: 1000 };
  // A terminal drawn on a canvas could not be read.
  const settings = { "terminal.integrated.gpuAcceleration": "off" };
  const workbench = await Workbench.open(t, lab, { size, environment, settings });
  const { page } = workbench;
  const picker = page.locator(".quick-input-widget:visible");
  const notice = page.locator(".notification-list-item").filter({ hasText: `Restored “${LABEL}”` });
  const front = inFront(page);
  const button = (name: string | RegExp): Locator => front.getByRole("button", { name });
  const heading = (name: string | RegExp): Locator => front.getByRole("heading", { name });
  await workbench.showCheckpoints();
  let pack = "";

  await step(t, "the preview explains both modes, and nothing is written", async () => {
    await workbench.command("Codex Checkpoints: Restore from Marker");
    await picker.getByText(LABEL).click();
    await heading(`Restore “${LABEL}”`).waitFor();
    await becomes(() => front.getByRole("radio", { name: SOFT }).isChecked(), true);
    await heading("What the new session keeps").waitFor();
    await front.getByRole("radio", { name: HARD }).check();
    await front.getByText("[SESSION_RESTORE v1]").waitFor();
    await front.getByText(`- ${TASK}`).first().waitFor();
    assert.deepEqual(lab.run("restores"), []);
    assert.equal(rollout(lab, session).digest, before.digest);
  });

  await step(t, "a budget shows the included lines and the next one", async () => {
    const slider = front.getByRole("slider", { name: "Size limit of the pack" });
    const outcome = front.locator("#outcome");
    await heading("Left out to stay within the size limit").waitFor({ state: "hidden" });
    await slider.focus();
    await page.keyboard.press("End");
    await outcome.getByText("All of them fit.").waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await heading(/^Left out to stay within the size limit \(/).waitFor();
    assert.match(
      (await slider.getAttribute("aria-valuetext")) ?? "",
      /^100 tokens, \d+ of \d+ items$/,
    );
    await front
      .getByRole("status")
      .getByText(/adds? the next one/)
      .waitFor();
    await workbench.screenshot("restore preview, a small budget");
    await front.getByRole("spinbutton", { name: "Budget in tokens" }).fill("8000");
    await outcome.getByText("All of them fit.").waitFor();
    await front.getByLabel("Your last messages").fill("1");
    await front.getByText("[USER_MESSAGES]").waitFor();
    await front.getByLabel("Reason").fill("the context is full");
    await front.getByText("- reason: the context is full").waitFor();
    const lines = await front.locator(".pack:not(.out) li").allTextContents();
    pack = lines.map((line) => `${line}\n`).join("");
  });

  await step(t, "the choices survive another tab in front", async () => {
    await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
    await heading("Checkpoint").waitFor();
    await page.getByRole("tab", { name: `Restore “${LABEL}”` }).click();
    await front.getByText("- reason: the context is full").waitFor();
    assert.equal(await front.getByLabel("Reason").inputValue(), "the context is full");
  });

  await step(t, "one button opens the branch; one notification confirms it", async () => {
    await button("Restore").click();
    await notice.getByText("new branch created. Context reset. Carried over:").waitFor();
    assert.equal(await page.locator(".monaco-dialog-box").count(), 0);
    await workbench.screenshot("restore notice");
    assert.equal(rollout(lab, session).digest, before.digest);
  });
  const [hard] = lab.run("restores");

  await step(t, "the details show all facts about it", async () => {
    await notice.getByRole("button", { name: "Details" }).click();
    await heading(`Restored “${LABEL}”`).waitFor();
    for (const name of ["Where it came from", /^Lineage/, "Carried over", /^State pack/]) {
      await heading(name).waitFor();
    }
    await workbench.screenshot("restore details");
    assert.deepEqual(await barriers(page), []);
    const moments = front.locator("time").first();
    assert.match(
      (await moments.getAttribute("title")) ?? "",
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/,
    );
    await heading(/^State pack/).click();
    assert.equal(await front.locator(".text").innerText().then(flat), flat(pack));
    await workbench.screenshot("restore details, further down");
  });

  await step(t, "its links open the branch and the source", async () => {
    const task = (text: string) =>
      workbench.checkpoint.getByRole("treeitem", { name: `Task, ${text}` });
    await front
      .getByRole("button", { name: `${LABEL}: ${TASK}`, exact: true })
      .first()
      .click();
    await task(TASK).waitFor();
    await front.getByRole("button", { name: TASK, exact: true }).first().click();
    await task(LATER).waitFor();
  });

  await step(
    t,
    "unfolded parts survive another tab in front; a reload keeps the page",
    async () => {
      await workbench.command("Codex Checkpoints: Show Checkpoint as Text");
      await heading("Checkpoint").waitFor();
      await page.getByRole("tab", { name: `Restored “${LABEL}”` }).click();
      await front.locator(".text").getByText("[SESSION_RESTORE v1]").waitFor();
      await workbench.reload(`Restored “${LABEL}”`);
      await heading(`Restored “${LABEL}”`).waitFor();
      await heading("Where it came from").waitFor();
    },
  );

  await step(
    t,
    "Codex goes on with the branch: the request holds the pack and no more",
    async () => {
      await codex.answers(PROMPT);
      await button("Resume in Terminal").click();
      await typePrompt(workbench, PROMPT);
      const { calls, texts } = await codex.asked();
      assert.equal(calls, 1);
      assert(texts.includes(pack), "the pack is in it, byte for byte");
      assert.equal(
        texts.some((text) => text.includes(SAID) || text.includes(LATER)),
        false,
      );
      await workbench.screenshot("restore resumed");
      await page.keyboard.press("Control+C");
      await page.keyboard.press("Control+C");
    },
  );

  await step(t, "a soft restore offers the other mode for the same marker", async () => {
    await workbench.command("Terminal: Kill All Terminals");
    await workbench.command("View: Close All Editors");
    const restores = lab.run("restores");
    const made = lab.run("restore", session, restores[0].checkpointId, "--mode", "soft");
    await workbench.command("Codex Checkpoints: Show Restores");
    await picker.locator(".monaco-list-row").first().getByText(LABEL).waitFor();
    await picker.locator(".monaco-list-row").first().click();
    await front.getByText("Context not reset").waitFor();
    await front.getByText("Nothing. The context was kept.").waitFor();
    await workbench.screenshot("restore details, soft");
    await button(HARD).click();
    await heading(`Restore “${LABEL}”`).waitFor();
    await shows(front.getByText("[SESSION_RESTORE v1]"), 15_000);
    await becomes(() => front.getByRole("radio", { name: HARD }).isChecked(), true);
    await button("Cancel").click();
    await heading(`Restore “${LABEL}”`).waitFor({ state: "detached" });
    assert.equal(lab.run("restores").length, 2);

    await codex.answers(PROMPT);
    await front.getByText("Context not reset").waitFor();
    await button("Resume in Terminal").click();
    await typePrompt(workbench, PROMPT);
    const { texts } = await codex.asked();
    assert(
      texts.some((text) => text.includes(SAID)),
      "the conversation went along",
    );
    assert.equal(
      texts.some((text) => text.includes(LATER)),
      false,
    );
    assert.notEqual(made.sessionId, hard.sessionId);
  });

  await step(t, "a missing source is shown as missing, not as an error", async () => {
    await workbench.command("Terminal: Kill All Terminals");
    renameSync(before.path, join(lab.root, "gone.jsonl"));
    await front.getByText("no longer here").first().waitFor();
    await workbench.screenshot("restore details, the source is gone");
  });
});

/** Type a prompt into Codex's terminal once it accepts input. */
async function typePrompt(workbench: Workbench, prompt: string): Promise<void> {
  const { page } = workbench;
  const screen = page.locator(".terminal.xterm .xterm-rows");
  const reads = (text: string) =>
    screen.filter({ hasText: new RegExp(text.split(" ").map(RegExp.escape).join("\\s")) });
  // The bottom line names the model once the session is loaded.
  await reads("GPT-5.5 default").waitFor({ timeout: 60_000 });
  await reads("Ask Codex to do anything").waitFor();
  await page.locator(".terminal.xterm").click();
  await page.keyboard.type(prompt, { delay: 40 });
  // Codex takes fast typing for a paste, and its Enter for a line break: so wait for the text
  // first.
  await reads(prompt).waitFor();
  await page.keyboard.press("Enter");
}

function flat(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
