/** A session's knowledge is exported to a file, and imported as a new session. */

import assert from "node:assert/strict";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inFront, isForEverybody } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { shows, step, Workbench } from "./workbench.ts";

test("a session is exported, and imported after a look at the text for a model", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the shop faster",
    cwd: lab.project,
    plan: ["Measure it", "Change it"],
    commands: ["cat shop.py"],
    output: "nobody may carry this away",
    answer: "The answer stays here.",
  });
  const pack = join(lab.project, "shop.pack.json");
  const workbench = await Workbench.open(t, lab);
  const { page } = workbench;
  const front = inFront(page);
  const agree = front.getByRole("button", { name: "Import" });
  await workbench.showCheckpoints();
  const rows = workbench.sessions.getByRole("treeitem", { name: /Make the shop faster/ });

  await step(t, "the export has no text of the conversation", async () => {
    await workbench.menu(rows.first(), "Export Session…", undefined, "Copy and Share");
    await workbench.file(pack);
    await shows(page.getByText("It holds nothing of the conversation."));
    const text = readFileSync(pack, "utf8");
    assert.match(text, /Make the shop faster/);
    assert.doesNotMatch(text, /carry this away|answer stays here/);
  });

  await step(t, "the text for the model is previewed", async () => {
    await workbench.command("Codex Checkpoints: Import Session…");
    await workbench.file(pack);
    await front.getByText("Import this pack as a new session").waitFor();
    await front.getByText("Measure it").waitFor();
    await agree.waitFor();
    await isForEverybody(workbench, "page import");
    assert.equal(await rows.count(), 1);
  });

  await step(t, "then it is a new session", async () => {
    await agree.click();
    await shows(page.getByText("Imported: "));
    await shows(rows.nth(1));
    await workbench.screenshot("imported");
  });

  await step(t, "a long import shows its progress, and can be cancelled", async () => {
    const large = writeLarge(pack, lab.project);
    await workbench.command("Codex Checkpoints: Import Session…");
    await workbench.file(large);
    const toast = page.locator(".notification-toast").filter({ hasText: "Reading the pack" });
    await toast.waitFor();
    await workbench.screenshot("import takes long");
    await toast.hover();
    await toast.getByRole("button", { name: "Cancel" }).click();
    await toast.waitFor({ state: "detached" });
    await page.getByRole("tab", { name: "Import" }).waitFor({ state: "detached" });
    assert.equal(await rows.count(), 2);
  });
});

/** Write a copy of a pack that names many large files, and create those; return its path. */
function writeLarge(pack: string, folder: string): string {
  const content = JSON.parse(readFileSync(pack, "utf8"));
  const { artifacts } = content.checkpoint;
  for (let number = 0; number < 100; number += 1) {
    const uri = `large${number}.bin`;
    artifacts[uri] = { uri, kind: "file", lastObservedSeq: 1 };
    writeFileSync(join(folder, uri), "");
    truncateSync(join(folder, uri), 60 << 20);
  }
  const path = join(folder, "large.pack.json");
  writeFileSync(path, JSON.stringify(content));
  return path;
}
