/**
 * Each page that the server describes opens in the editor, is accessible, and is copied as the
 * terminal prints it.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { barriers, inFront, isForEverybody, tabThrough } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { again, step, Workbench } from "./workbench.ts";

const [WIDE, NARROW] = [
  { width: 1440, height: 900 },
  { width: 1024, height: 800 },
];
const TASK = "Make the price list faster";
const HOSTILE = "[link](command:workbench.action.quit) <b>bold</b> \u202etxt";

/** The text of a page without signs, link labels and tooltips. */
interface Words {
  readonly title: string;
  readonly texts: readonly string[];
}

test("each page of the server is read, worked and copied by everybody", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  const session = writeSession(lab.codexHome, {
    task: TASK,
    cwd: lab.project,
    plan: ["Measure it", "Change it"],
    commands: ["cat shop.py", "sed -i s/1/2/ shop.py", `echo '${HOSTILE}'`],
    output: "read_prices() took 412 ms\n".repeat(40),
    answer: "The list is read twice.",
    further: [{ task: "Go on", commands: [], answer: "Done.", compacted: true }],
  });
  lab.run("mark", session, "--label", "before the cache", "--turn", "1");
  const [marker] = lab.run("marks", session);
  lab.run("restore", session, marker.checkpointId, "--mode", "hard");
  const workbench = await Workbench.open(t, lab, { size: WIDE });
  const { page } = workbench;
  const front = inFront(page);
  const row = workbench.sessions.getByRole("treeitem", { name: new RegExp(`^${TASK}`) }).first();
  const opened = (title: string | RegExp) =>
    front.getByRole("heading", { name: title, level: 1 }).waitFor();
  await workbench.showCheckpoints();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);

  /** Press the page's copy button, and return the text. */
  const copy = async (): Promise<string> => {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await front.getByRole("button", { name: "Copy as Text" }).click();
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    await becomes(async () => (await clipboard()) !== "", true);
    return clipboard();
  };

  /** Compare the page's text with the copied text. */
  const isCopied = async () => {
    const shown = await words();
    const copied = await copy();
    for (const text of shown.texts) {
      assert.ok(copied.includes(text), `${shown.title}: ${text}\n${copied}`);
    }
  };
  const words = (): Promise<Words> =>
    front.locator("main").evaluate((main) => {
      // A link to a command has the editor's label, and a time is in the reader's zone.
      const leaves = [...main.querySelectorAll("h2, dt, td, dd, p, .text > div")].filter(
        (each) => each.querySelector("time, button, h2, .sign") === null,
      );
      const texts = leaves.map((each) => each.textContent?.trim() ?? "");
      const title = main.querySelector("h1")?.textContent ?? "";
      return { title, texts: texts.filter((text) => text !== "" && text !== "Context") };
    });

  await step(t, "losses: how many, and of which kind", async () => {
    await workbench.menu(row, "Lost in Compaction", undefined, "Show");
    await opened("Lost in Compaction");
    await front.getByText(/^\d of \d lost\.$/).waitFor();
    await front.getByRole("columnheader", { name: "Fate" }).waitFor();
    await isCopied();
    await isForEverybody(workbench, "page losses");
  });

  await step(t, "its link opens the record with the original text", async () => {
    await front
      .getByRole("button", { name: /^#\d+$/ })
      .first()
      .click();
    await opened(/^Record #\d+$/);
    await front.getByText(TASK).last().waitFor();
    await isCopied();
    await isForEverybody(workbench, "page record");
  });

  await step(t, "the diagnosis, with folders and findings", async () => {
    await workbench.command("Codex Checkpoints: Open Doctor Report");
    await opened("Doctor");
    await front.getByText("State folder").waitFor();
    await isCopied();
    await isForEverybody(workbench, "page doctor");
  });

  await step(t, "the checkpoint, as the model reads it", async () => {
    await workbench.menu(row, "Show Checkpoint as Text", undefined, "Show");
    await opened("Checkpoint");
    await front.getByRole("heading", { name: "Plan" }).waitFor();
    await isForEverybody(workbench, "page checkpoint");
    assert.equal(await copy(), lab.print("view", session));
  });

  await step(t, "the digest, by its sections", async () => {
    await workbench.menu(row, "Open Digest", undefined, "Show");
    await opened("Digest");
    await front.getByText(/^\d+ of at most 8,000 tokens$/).waitFor();
    await isForEverybody(workbench, "page digest");
    assert.equal(await copy(), lab.print("digest", session));
  });

  await step(t, "the connection, before anything is written", async () => {
    await workbench.command("Codex Checkpoints: Connect Codex…");
    await opened("Changes to Codex's Configuration");
    await front.getByText("mcp_servers").first().waitFor();
    await isCopied();
    await isForEverybody(workbench, "page connect");
    await front.getByRole("button", { name: "Cancel" }).click();
    await front.getByRole("heading", { name: "Digest", level: 1 }).waitFor();
  });

  await step(t, "a restore, with its lineage and the copied content", async () => {
    await again(async (timeout) => {
      await workbench.command("Codex Checkpoints: Show Restores…");
      const first = page.locator(".quick-input-widget:visible .monaco-list-row").first();
      await first.click({ timeout });
    });
    await opened("Restored “before the cache”");
    await isCopied();
    await isForEverybody(workbench, "page restore");
  });

  await step(t, "all controls are reached by keyboard, with a visible ring", async () => {
    await front.getByRole("button", { name: "Resume in Terminal" }).focus();
    const stopped = await tabThrough(page, 5);
    assert.deepEqual(
      stopped.map(({ name }) => name),
      ["Resume in Terminal", "Restore Again…", "Copy as Text", "Where it came from", TASK],
    );
    assert.deepEqual(
      stopped.filter(({ ring }) => ring < 3),
      [],
    );
  });

  await step(t, "in a window of 1024 pixels no word in a table is broken", async () => {
    await page.setViewportSize(NARROW);
    await workbench.command("Codex Checkpoints: Open Digest");
    await opened("Digest");
    await workbench.screenshot("page digest narrow");
    assert.deepEqual(await barriers(page), []);
    const broken = await front.locator("th, td:not(:last-child)").evaluateAll((cells) =>
      cells
        .filter((cell) => {
          // Only text nodes: a link's box begins higher than its text.
          const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          const lines = new Set<number>();
          while (texts.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(texts.currentNode);
            for (const { top } of range.getClientRects()) {
              lines.add(Math.round(top));
            }
          }
          return lines.size > (cell.textContent ?? "").trim().split(/\s+/).length;
        })
        .map((cell) => cell.textContent),
    );
    assert.deepEqual(broken, []);
  });
});
