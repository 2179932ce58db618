/**
 * Sessions of the remote in the editor: listed on request, read, pulled as a branch, and pushed.
 */

import assert from "node:assert/strict";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Child } from "./children.ts";
import { Lab } from "./lab.ts";
import { inFront, isForEverybody } from "./pages.ts";
import { writeSession } from "./rollouts.ts";
import { becomes } from "./waiting.ts";
import { shows, step, Workbench } from "./workbench.ts";

const PYTHON = join(import.meta.dirname, "..", "..", ".venv", "bin", "python");
const READY_MS = 120_000;

const MARKUP = `<img src=x onerror="window.owned=true"><a href="command:x">a</a>`;
const LINK = "[link](command:workbench.action.toggleSidebarVisibility)";
const TOKEN = ["ghp", "aB3dE6gH9kL2mN5pQ8sT1vW4xZ7yC0fJ2hR6"].join("_");

/** The command line of another machine, with its own home. */
class OtherMachine {
  readonly #lab: Lab;
  readonly codexHome: string;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.codexHome = join(lab.user, "desk");
    mkdirSync(this.codexHome);
  }

  run(...args: readonly string[]) {
    return this.#lab.run(...args, "--codex-home", this.codexHome);
  }
}

test("sessions of the remote are listed, read, pulled and pushed", async (t) => {
  const lab = Lab.shared();
  lab.write("shop.py", "price = 1\n");
  writeSession(lab.codexHome, {
    task: "Write the tests of the shop",
    cwd: lab.project,
    commands: [`export GITHUB_TOKEN=${TOKEN}`],
    answer: "Written.",
  });
  const desk = new OtherMachine(lab);
  const sync = join(lab.user, "sync");
  mkdirSync(sync);
  const there = writeSession(desk.codexHome, {
    task: `Make the shop faster ${LINK}`,
    cwd: "/home/desk/shop",
    plan: ["Measure it", "Cache the prices"],
    commands: ["cat shop.py"],
    answer: "Measured: the prices are slow.",
    further: Array.from({ length: 5 }, (_, at) => ({
      task: `Step ${at + 2}`,
      answer: `Done. ${MARKUP} ${LINK}`,
      changes: { "shop.py": { type: "update", unified_diff: "@@ -1 +1 @@\n-a\n+b\n" } },
      used: 20_000 * (at + 1),
    })),
  });
  desk.run("remote", "set", sync, "--yes");
  desk.run("push", there, "--yes");
  const size = { width: 1440, height: 900 };
  const settings = { "codexCheckpoints.trace": "requests" };
  const workbench = await Workbench.open(t, lab, { size, settings });
  const { page } = workbench;
  const front = inFront(page);
  const dialog = page.getByRole("dialog");
  const picker = page.locator(".quick-input-widget:visible");
  const remote = workbench.sessions.getByRole("treeitem", { name: /^Remote, sync/ });
  const shared = workbench.sessions.getByRole("treeitem", { name: /^Make the shop faster/ });
  await workbench.showCheckpoints();
  const here = workbench.sessions.getByRole("treeitem", { name: /^Write the tests/ });
  await here.waitFor();

  await step(
    t,
    "without a remote there is no row of one, and a push offers to set it",
    async () => {
      assert.equal(await remote.count(), 0);
      await workbench.menu(here, "Push Session…", undefined, "Copy and Share");
      const toast = page.locator(".notification-toast").filter({ hasText: "No remote is set" });
      await toast.getByRole("button", { name: "Set Remote…" }).click();
      await picker.getByText("A Folder That Your Machines Share…").waitFor();
      await workbench.screenshot("set remote");
    },
  );

  await step(t, "an existing remote is chosen without a question", async () => {
    await picker.getByText("A Folder That Your Machines Share…").click();
    await workbench.file(sync, "Use This Folder");
    await shows(page.getByText("sync is the remote of this machine now: 1 session there."));
    await remote.waitFor();
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "nothing is read before the row is unfolded", async () => {
    await workbench.command("Codex Checkpoints: Refresh");
    await becomes(() => /checkpoints\/remote answered/.test(workbench.log), true);
    assert.doesNotMatch(workbench.log, /checkpoints\/remoteSessions/);
    await remote.click();
    await shared.waitFor();
    await workbench.screenshot("remote in the list");
    assert.equal(await shared.locator("a.detected-link, img, strong").count(), 0);
  });

  await step(t, "a click opens its page, read-only, which says whose it is", async () => {
    await shared.click();
    await front.getByText(/^Your session, pushed from .*read-only\.$/).waitFor();
    const conversation = front.getByRole("region", { name: "Conversation" });
    await conversation.getByText("Step 6", { exact: true }).waitFor();
    await conversation.getByText("<img src=x onerror=").first().waitFor();
    assert.equal(await front.locator("img, iframe, a[href], [onerror]").count(), 0);
    const buttons = front.getByRole("button");
    const names = await buttons.allInnerTexts();
    const writing = /Resume|Compact|Marker|Restore|More…|Search in/;
    assert.deepEqual(
      names.filter((name) => writing.test(name)),
      [],
    );
    await isForEverybody(workbench, "remote session page");
    await page.setViewportSize({ width: 1024, height: 768 });
    await workbench.screenshot("remote session page 1024");
    await page.setViewportSize(size);
  });

  await step(t, "a search of the remote leads to the place of a hit", async () => {
    await workbench.menu(remote, "Search Remote…");
    const field = picker.locator("input");
    await field.fill("step 4");
    await page.keyboard.press("Enter");
    await picker.getByPlaceholder("1 hit in 1 session").waitFor();
    await workbench.screenshot("hits of the remote");
    assert.equal(await picker.getByText(/^Make the shop faster/).count(), 1);
    await picker.getByRole("option", { name: /^Step 4/ }).click();
    const place = front.getByRole("region", { name: "Conversation" }).getByText("Step 4");
    await becomes(() => place.first().isVisible(), true);
    await workbench.screenshot("hit of the remote");
    await workbench.command("Codex Checkpoints: Search Remote…");
    await field.fill("nobody said this");
    await page.keyboard.press("Enter");
    await shows(page.getByText(/^“nobody said this” is not in the prompts/));
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "a reloaded window opens no connection", async () => {
    const title = "Push “Write the tests of the shop”";
    const again = front.getByRole("button", { name: "Try Again" });
    await workbench.menu(here, "Push Session…", undefined, "Copy and Share");
    await front.getByRole("heading", { name: title }).waitFor();
    await workbench.reload(title);
    await front.getByText("The remote is asked again when you try again.").waitFor();
    await page.getByRole("tab", { name: /^Make the shop faster/ }).click();
    await front.getByText("This session is in the remote.").waitFor();
    assert.doesNotMatch(workbench.log, /checkpoints\/(push|remoteSessions?)\b/);
    await again.click();
    await front.getByText(/^Your session, pushed from /).waitFor();
    await remote.click();
    await shared.waitFor();
  });

  await step(t, "it is pulled as a branch, which is selected", async () => {
    await front.getByRole("button", { name: "Pull as Branch…" }).click();
    await dialog.getByText("Pull this session as a branch?").waitFor();
    await dialog.getByText(/Facts are suspect until this machine has verified them/).waitFor();
    await workbench.screenshot("pull asks");
    await dialog.getByRole("button", { name: "Pull as Branch" }).click();
    await shows(page.getByText(/^Pulled as a branch: /));
    const name = /^Make the shop faster.*pulled/;
    await workbench.sessions.getByRole("treeitem", { selected: true, name }).waitFor();
    const listed: { sessionId: string; forkedFrom: string | null }[] = lab.run("sessions");
    assert.deepEqual(listed.filter(({ forkedFrom }) => forkedFrom === there).length, 1);
    await front.getByRole("button", { name: "Resume in Terminal" }).waitFor();
    await front.getByText("in the remote · the original session").waitFor();
    await workbench.screenshot("pulled");
    await front.getByRole("heading", { name: "Lineage" }).scrollIntoViewIfNeeded();
    await workbench.screenshot("pulled lineage");
    await workbench.command("Notifications: Clear All Notifications");
  });

  await step(t, "a push previews the data, and sends exactly that", async () => {
    await workbench.menu(here, "Push Session…", undefined, "Copy and Share");
    await front.getByRole("heading", { name: "Push “Write the tests of the shop”" }).waitFor();
    await front.getByText(/^Redacted: /).waitFor();
    await front.getByText(/^Redaction knows \d+ kinds of secrets and no more/).waitFor();
    await front.getByText(/Everybody who can read the folder/).waitFor();
    await isForEverybody(workbench, "push preview");
    await page.setViewportSize({ width: 1024, height: 768 });
    await workbench.screenshot("push preview 1024");
    await page.setViewportSize(size);
    const rows = () => desk.run("sessions", "--remote").length;
    assert.equal(rows(), 1);
    await front.getByRole("button", { name: "Push", exact: true }).click();
    await front.getByText(/^Pushed to sync · .* sent\.$/).waitFor();
    assert.equal(rows(), 2);
    await workbench.screenshot("pushed");
    await page
      .getByRole("tab", { name: /^Make the shop faster/ })
      .first()
      .click();
    await page.getByRole("tab", { name: /^Push “Write the tests/ }).click();
    await front.getByText(/^Pushed to sync/).waitFor();
    const shown = workbench.sessions.getByRole("treeitem", { name: /^Write the tests/ });
    await becomes(() => shown.count(), 2);
  });

  await step(
    t,
    "a session with many secrets is pushed only after consent to redact all",
    async () => {
      const many = Array.from({ length: 25 }, (_, at) => `curl -H 'X: ${TOKEN}${at}' x`);
      writeSession(lab.codexHome, { task: "Call it often", cwd: lab.project, commands: many });
      const row = workbench.sessions.getByRole("treeitem", { name: /^Call it often/ });
      await row.waitFor();
      await workbench.menu(row, "Push Session…", undefined, "Copy and Share");
      await front.getByText(/^Session \S+ holds 25 secrets \(25 github\)\.$/).waitFor();
      await workbench.screenshot("push refused");
      await front.getByRole("button", { name: "Redact All of Them" }).click();
      await front.getByText(/^Redacted: /).waitFor();
      await front.getByRole("button", { name: "Close" }).click();
    },
  );

  await step(t, "an unreachable remote has one row that says so, and a retry", async () => {
    const away = `${sync}-away`;
    renameSync(sync, away);
    await workbench.button(remote, "Refresh Remote");
    const trouble = workbench.sessions.getByRole("treeitem", { name: /^There is no remote in/ });
    await trouble.waitFor();
    assert.equal((await shared.count()) > 0, true);
    await workbench.screenshot("remote away");
    renameSync(away, sync);
    await trouble.click();
    await trouble.waitFor({ state: "detached" });
  });
});

/** Start a PostgreSQL server for the test, with two people of one team. */
async function teamServer(t: TestContext) {
  const program = join(import.meta.dirname, "team_server.py");
  const { PATH, HOME } = process.env;
  const child = new Child([PYTHON, program], { env: { PATH, HOME } });
  t.after(async () => {
    child.process.stdin?.end();
    await child.ends(READY_MS); // it stops the server first
    await child.end();
  });
  const [line] = await child.prints(/^\{.*\}$/m, READY_MS);
  const people: { ana?: string; ben?: string } = JSON.parse(line);
  const stop = async () => {
    child.send("stop");
    await child.prints(/stopped/, READY_MS);
  };
  return { ...people, stop };
}

test("a team on a PostgreSQL server shares sessions, and local work never waits for it", async (t) => {
  const { ana, ben, stop } = await teamServer(t);
  if (ana === undefined || ben === undefined) {
    t.skip("there is no PostgreSQL server here: install the package postgresql");
    return;
  }
  const lab = Lab.shared();
  writeSession(lab.codexHome, { task: "Write the tests", cwd: lab.project, answer: "Written." });
  const desk = new OtherMachine(lab);
  const spec = { task: "Make the shop faster", cwd: "/home/ben/shop", answer: "It is slow." };
  const there = writeSession(desk.codexHome, spec);
  desk.run("remote", "set", ben, "--yes");
  desk.run("push", there, "--team", "shop", "--yes");
  const workbench = await Workbench.open(t, lab, { size: { width: 1440, height: 900 } });
  const { page } = workbench;
  const front = inFront(page);
  const picker = page.locator(".quick-input-widget:visible");
  const row = (name: RegExp) => workbench.sessions.getByRole("treeitem", { name });
  const team = row(/^Team, 127\.0\.0\.1:\d+\/postgres/);
  await workbench.showCheckpoints();

  await step(
    t,
    "an address without a password is accepted, and one with a password refused",
    async () => {
      await workbench.command("Codex Checkpoints: Set Remote…");
      await picker.getByText("A PostgreSQL Server…").click();
      const field = picker.locator("input");
      await field.fill(ana.replace("ana@", "ana:secret@"));
      await picker.getByText(/^Leave the password out/).waitFor();
      await workbench.screenshot("server address with a password");
      await field.fill(ana);
      await page.keyboard.press("Enter");
      await shows(page.getByText(/is the remote of this machine now: 1 session there\.$/));
      await team.waitFor();
      await workbench.command("Notifications: Clear All Notifications");
    },
  );

  await step(t, "the page of another person's session names that person", async () => {
    await team.click();
    await row(/^Make the shop faster, ben/).click();
    await front.getByText(/^Session of ben, pushed from .* \(team shop\)/).waitFor();
    const conversation = front.getByRole("region", { name: "Conversation" });
    await conversation.getByText("ben", { exact: true }).waitFor();
    await workbench.screenshot("session of the team");
  });

  await step(t, "private is the default of a push, and a team is a choice", async () => {
    await workbench.menu(
      row(/^Write the tests/).first(),
      "Push Session…",
      undefined,
      "Copy and Share",
    );
    const own = front.getByRole("radio", { name: "Private" });
    await own.waitFor();
    assert.ok(await own.isChecked());
    await front.getByRole("radio", { name: "Team shop" }).check();
    await isForEverybody(workbench, "push preview for a team");
    await front.getByRole("button", { name: "Push", exact: true }).click();
    await front.getByText(/^Pushed to .* · team shop\.$/).waitFor();
    const listed: { title: string; team: string }[] = desk.run("sessions", "--remote");
    assert.equal(listed.find(({ title }) => title === "Write the tests")?.team, "shop");
  });

  await step(
    t,
    "an unreachable server has one row, and local sessions are listed as usual",
    async () => {
      await stop();
      await workbench.button(team, "Refresh Remote");
      await row(/cannot be reached/).waitFor();
      await workbench.screenshot("team away");
      writeSession(lab.codexHome, { task: "A new local session", cwd: lab.project });
      await shows(row(/^A new local session/));
    },
  );
});
