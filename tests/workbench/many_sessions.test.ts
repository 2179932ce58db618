/** Thousands of sessions: the first page comes at once, the others when they are asked for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { writeSession } from "./rollouts.ts";
import { atOnce, shows, step, Workbench } from "./workbench.ts";

const MANY = 5_000;

test("the first of 5,000 sessions show within two seconds on a warm index", async (t) => {
  const lab = new Lab();
  lab.write("notes.txt", "");
  for (let number = 1; number <= MANY; number += 1) {
    const cwd = number % 2 === 0 ? lab.project : "/elsewhere";
    writeSession(lab.codexHome, { task: `Errand ${number}.`, cwd, age: number });
  }
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const row = (name: string | RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const newest = row(/^Errand 2\., /);

  await step(t, "the index is made", async () => {
    await workbench.showView();
    await newest.waitFor({ timeout: 60_000 });
  });

  // The best of three counts.
  const allowed = atOnce();
  const times: number[] = [];
  while (times.length < 3 && !times.some((time) => time < allowed)) {
    await page.reload();
    await workbench.status.waitFor({ timeout: 60_000 });
    const start = performance.now();
    await newest.waitFor();
    times.push(Math.round(performance.now() - start));
  }
  t.diagnostic(`from the extension's start to the first list: ${times.join(", ")} ms`);
  assert(Math.min(...times) < allowed, `${times} ms; ${Math.round(allowed)} are allowed`);

  await step(t, "more are loaded when asked for", async () => {
    await newest.click();
    await page.keyboard.press("End");
    await row("Other Folders").waitFor();
    await row(/^Errand 100\., /).waitFor();
    assert.equal(await row(/^Errand 102\., /).count(), 0);
    await row("Load more").click();
    await row(/^Errand 102\., /).waitFor();
    await page.keyboard.press("End");
    await row(/^Errand 200\., /).waitFor();
  });

  await step(t, "a search finds the oldest of all", async () => {
    await workbench.command("Codex Checkpoints: Search Sessions…");
    await page.locator(".quick-input-widget:visible input").first().fill(`errand ${MANY}`);
    await page.keyboard.press("Enter");
    await shows(row(new RegExp(`^Errand ${MANY}\\., `)));
    assert.equal(await newest.count(), 0);
  });
});
