/** The digest of a session is opened, and its anchors are followed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";

/** Write a session with content for most sections of a digest. */
function write(lab: Lab): void {
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Make the price list faster",
    cwd: lab.project,
    plan: ["Measure it", "Change it"],
    commands: ["cat shop.py", "sed -i s/1/2/ shop.py", `echo '${LINK}'`],
    output: "read_prices() took 412 ms\n".repeat(700),
    answer: "The list is read twice: read_prices() is called by show() and by total().",
    further: [
      {
        task: "Then read it once",
        commands: ["make check"],
        answer: "It is read once now. Shall I keep the old name?",
      },
    ],
  });
}

test("a digest opens from its session, and its anchors lead to records", async (t) => {
  const lab = Lab.shared();
  write(lab);
  const workbench = await Workbench.open(t, lab, { size: { width: 1500, height: 900 } });
  const { page } = workbench;
  const row = workbench.sessions.getByRole("treeitem", { name: /^Make the price list faster/ });
  const front = inFront(page);
  await workbench.showCheckpoints();

  await step(t, "it opens from the menu, with its cost", async () => {
    await workbench.menu(row, "Open Digest", undefined, "Show");
    await front.getByRole("heading", { name: "Answers" }).waitFor();
    await front.getByText(/^\d+ of at most 8,000 tokens$/).waitFor();
    await inEachTheme(workbench, (colours) => workbench.screenshot(`digest in ${colours}`));
  });

  await step(t, "only anchors and turns are links, whatever a session says", async () => {
    const links = await front.locator("table button").allTextContents();
    assert.ok(links.length >= 5, `${links}`);
    assert.deepEqual(
      links.filter((text) => !/^#?\d+$/.test(text)),
      [],
    );
    assert.equal(await front.locator("a").count(), 0);
  });

  await step(t, "an anchor opens the whole record", async () => {
    const line = front.getByRole("row").filter({ hasText: "The list is read twice" });
    await line
      .first()
      .getByRole("button", { name: /^#\d+$/ })
      .click();
    await front.getByText(/^Answer, \d+ characters$/).waitFor();
    await front.getByRole("button", { name: "turn 1" }).waitFor();
    await front.getByText("is called by show() and by total().").waitFor();
    await workbench.screenshot("record of a digest");
  });

  await step(t, "a long record is read in pieces, to its end", async () => {
    await workbench.command("Codex Checkpoints: Open Digest");
    const line = front.getByRole("row").filter({ hasText: "took 412 ms" });
    await line
      .first()
      .getByRole("button", { name: /^#\d+$/ })
      .click();
    await front.getByText(/^Output, [\d,]+ characters$/).waitFor();
    assert.equal(
      await front.locator(".text > div").filter({ hasText: "took 412 ms" }).count(),
      700,
    );
  });

  await step(t, "the diff of a compaction has its anchors as links", async () => {
    await workbench.menu(row, "Compact Session…");
    await front.getByRole("button", { name: "Show as Diff" }).click();
    const replacement = workbench.editor("codex-checkpoints://then");
    const line = replacement.locator(".view-line").filter({ hasText: /t1\s#\d+\sMake/ });
    await workbench.follow(line.first(), front.getByText(/^Request, \d+ characters$/));
  });
});
