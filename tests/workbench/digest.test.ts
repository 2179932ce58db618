/** The digest of a session is opened, and its anchors are followed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab } from "./lab.ts";
import { inEachTheme, inFront } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { step, Workbench } from "./workbench.ts";

const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";

/** A session with something for most sections of a digest. */
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
  const digest = workbench.editor("codex-checkpoints://digest");
  const record = workbench.editor("codex-checkpoints://recalled");
  await workbench.showCheckpoints();

  await step(t, "it opens from the menu, with its cost", async () => {
    await workbench.menu(row, "Open Digest");
    await digest.getByText("[SESSION_DIGEST v1]").waitFor();
    await digest.getByText("[OUTCOMES]").waitFor();
    await digest.getByText(/^────\s\d+\sof\sat\smost\s8,000\stokens$/).waitFor();
    await digest.locator(".detected-link").first().waitFor();
    await inEachTheme(workbench, (colours) => workbench.screenshot(`digest in ${colours}`));
  });

  await step(t, "only anchors are links, whatever a session says", async () => {
    const links = await digest.locator(".detected-link").allTextContents();
    assert.ok(links.length >= 5, `${links}`);
    assert.deepEqual(
      links.filter((text) => !/^#\d+$/.test(text)),
      [],
    );
  });

  await step(t, "an anchor opens the whole record", async () => {
    const line = digest.locator(".view-line").filter({ hasText: "The list is read twice" });
    await workbench.follow(
      line.first(),
      record.getByText(/^────\s#\d+\s·\sassistant\s·\sturn\s1$/),
    );
    await record.getByText("is called by show() and by total().").waitFor();
    await workbench.screenshot("record of a digest");
  });

  await step(t, "a long record is read in pieces, to its end or to a stated number", async () => {
    await workbench.command("Codex Checkpoints: Open Digest");
    const line = digest.locator(".view-line").filter({ hasText: "took 412 ms" });
    await workbench.follow(line.first(), record.getByText(/^────\s#\d+\s·\soutput\s·\sturn\s2$/));
    await page.keyboard.press("Control+End");
    // A line number of the end: 700 lines below the title.
    await record.locator(".line-numbers").getByText("700", { exact: true }).waitFor();
  });

  await step(t, "the diff of a compaction has its anchors as links", async () => {
    await workbench.menu(row, "Compact Session…");
    await inFront(page).getByRole("button", { name: "Show as Diff" }).click();
    const replacement = workbench.editor("codex-checkpoints://then");
    const line = replacement.locator(".view-line").filter({ hasText: /t1\s#\d+\sMake/ });
    await workbench.follow(line.first(), record.getByText(/^────\s#\d+\s·\suser\s·\sturn\s1$/));
    await record.getByText("Make the price list faster").waitFor();
  });
});
