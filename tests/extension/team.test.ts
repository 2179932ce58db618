import assert from "node:assert/strict";
import { test } from "node:test";
import type { Push, RemoteSession } from "../../extension/src/client/protocol.ts";
import { hitChoices, hitsText, nothingText } from "../../extension/src/team/model/hits.ts";
import { type ListingPage, RemoteListing, rowId } from "../../extension/src/team/model/listing.ts";
import { pushedWords, pushView, shownIn } from "../../extension/src/team/model/preview.ts";
import {
  addressProblem,
  byteWords,
  placeName,
  pulledWords,
  pullWords,
  remoteOf,
  remoteRow,
  remoteSessionRow,
  sharedOf,
} from "../../extension/src/team/model/texts.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");

const folder = { place: "/mnt/sync/codex", owner: "ana", machine: "laptop", isServer: false };
const server = {
  place: "postgresql://ana@db.example.com/codex?sslmode=verify-full",
  owner: "ana",
  machine: "laptop",
  isServer: true,
};

function shared(some: Partial<RemoteSession> = {}): RemoteSession {
  return {
    sessionId: "01a1f866-1577-75b3-94b5-d7c15f455a1c",
    owner: "ben",
    machine: "desk",
    title: "Make the shop faster",
    task: "Cache the prices",
    cwd: "/home/ben/shop",
    git: { commit: null, branch: "fast", repositoryUrl: null },
    updatedAt: "2026-11-20T10:00:00.000Z",
    pushedAt: "2026-11-20T11:00:00.000Z",
    cliVersion: "0.169.0",
    model: "gpt-5.5",
    lines: 1_234,
    bytes: 2_345_678,
    generation: 1,
    team: "shop",
    forkedFrom: null,
    parentSession: null,
    ...some,
  };
}

/** Page reads that the test answers itself, in any order. */
class Reads {
  readonly cursors: (string | null)[] = [];
  readonly #open: { resolve: (page: ListingPage) => void; reject: (error: Error) => void }[] = [];

  readonly ask = (cursor: string | null) => {
    this.cursors.push(cursor);
    return new Promise<ListingPage>((resolve, reject) => this.#open.push({ resolve, reject }));
  };

  async answer(at: number, ids: readonly string[], nextCursor: string | null = null) {
    const items = ids.map((sessionId) => shared({ sessionId }));
    this.#open[at]?.resolve({ items, nextCursor });
    await settled();
  }

  async fail(at: number, message: string) {
    this.#open[at]?.reject(new Error(message));
    await settled();
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

function listing(reads: Reads) {
  const made = new RemoteListing(reads.ask, String, () => {});
  const ids = () => made.state.items.map(({ sessionId }) => sessionId);
  return { made, ids };
}

test("the remote is read when its row is unfolded, once, and never before", async () => {
  const reads = new Reads();
  const { made, ids } = listing(reads);

  made.refresh();
  made.more();
  made.retry();
  assert.deepEqual([made.state.phase, reads.cursors], ["unread", []]);

  made.open();
  made.open();
  assert.deepEqual([made.state.phase, reads.cursors], ["reading", [null]]);

  await reads.answer(0, ["a", "b"]);
  made.open();
  assert.deepEqual([made.state.phase, ids(), reads.cursors], ["read", ["a", "b"], [null]]);
});

test("further pages come on request, and a session that moved up is listed once", async () => {
  const reads = new Reads();
  const { made, ids } = listing(reads);
  made.open();
  await reads.answer(0, ["a", "b"], "b");
  assert.ok(made.state.hasMore);

  made.more();
  await reads.answer(1, ["b", "c"]);

  assert.deepEqual(
    [ids(), reads.cursors],
    [
      ["a", "b", "c"],
      [null, "b"],
    ],
  );
  assert.ok(!made.state.hasMore);
});

test("a session that two people pushed has a row of each", async () => {
  const pages: ListingPage[] = [
    { items: [shared({ owner: "ana" })], nextCursor: "next" },
    { items: [shared({ owner: "ana" }), shared({ owner: "ben" })], nextCursor: null },
  ];
  const made = new RemoteListing(
    async (cursor) => pages[cursor === null ? 0 : 1] ?? assert.fail("no page"),
    String,
    () => {},
  );
  made.open();
  await settled();
  made.more();
  await settled();

  const rows = made.state.items.map(rowId);
  assert.deepEqual(rows, [...new Set(rows)]);
  assert.deepEqual(
    made.state.items.map(({ owner }) => owner),
    ["ana", "ben"],
  );
});

test("rows stay when a page cannot be read, and another try asks for the same page", async () => {
  const reads = new Reads();
  const { made, ids } = listing(reads);
  made.open();
  await reads.answer(0, ["a"], "a");
  made.more();
  await reads.fail(1, "the disk is gone");
  assert.deepEqual(
    [made.state.phase, made.state.why, ids()],
    ["failed", "Error: the disk is gone", ["a"]],
  );

  made.retry();
  await reads.answer(2, ["b"]);

  assert.deepEqual(
    [made.state.phase, ids(), reads.cursors],
    ["read", ["a", "b"], [null, "a", "a"]],
  );
});

test("an older answer never replaces a newer one, and none comes after another choice", async () => {
  const reads = new Reads();
  const { made, ids } = listing(reads);
  made.open();
  made.refresh();
  await reads.answer(1, ["new"]);
  await reads.answer(0, ["old"]);
  assert.deepEqual(ids(), ["new"]);

  made.refresh();
  made.forget();
  await reads.answer(2, ["of the other remote"]);
  assert.deepEqual([made.state.phase, ids()], ["unread", []]);
});

test("a remote has its row only when one is set, with its place and never a login", () => {
  assert.equal(remoteOf({ place: null, owner: null, machine: null, isServer: false }), null);
  assert.deepEqual(remoteOf(folder), folder);
  assert.equal(placeName(server), "db.example.com/codex");
  assert.equal(placeName(folder), "codex");
  assert.deepEqual(
    [remoteRow(server).label, remoteRow(server).description],
    ["Team", "db.example.com/codex"],
  );
  assert.equal(remoteRow(folder).label, "Remote");
});

test("a row names the owner of a session, or the machine for one's own", () => {
  const row = remoteSessionRow(shared(), server, NOW);
  assert.deepEqual([row.label, row.description], ["Make the shop faster", "ben · 2h"]);
  assert.equal(row.spoken, "Make the shop faster, ben, 2h, team shop");
  assert.equal(
    row.tooltip,
    [
      "Make the shop faster",
      "Last message: Cache the prices",
      "Pushed by: ben, from desk",
      "Who can read it: team shop",
      "Last change: 2h ago",
      "Pushed: 1h ago",
      "Folder: /home/ben/shop",
      "Branch: fast",
      "Model: gpt-5.5",
      "Size: 1,234 lines, 2.3 MB",
      "Session: 01a1f866-1577-75b3-94b5-d7c15f455a1c",
    ].join("\n"),
  );
  const own = remoteSessionRow(shared({ owner: "ana", team: null }), server, NOW);
  assert.deepEqual([own.description, own.icon], ["desk · 2h", "lock"]);
  assert.equal(remoteSessionRow(shared({ team: null }), folder, NOW).icon, "comment");
});

test("texts of other people lose their control characters, and none is empty", () => {
  const title = "\u202eMake\u0007 it\n$(bug) [x](command:y)";
  const row = remoteSessionRow(shared({ title, owner: "b\u2028en" }), server, NOW);

  assert.doesNotMatch(JSON.stringify(row), /\\u202e|\\u0007|\\u2028/i);
  assert.match(row.description, /^b en/);
  assert.equal(
    remoteSessionRow(shared({ title: null, task: "" }), server, NOW).label,
    "No message yet",
  );
});

test("the page of a remote session names its owner and the time of its push", () => {
  assert.deepEqual(sharedOf(shared(), server, NOW), {
    note: "Session of ben, pushed from desk 1h ago (team shop). Here it is read-only.",
    speaker: "ben",
  });
  assert.deepEqual(sharedOf(shared({ owner: "ana", pushedAt: null }), folder, NOW), {
    note: "Your session, pushed from desk. Here it is read-only.",
    speaker: "You",
  });
  const pushedAt = new Date(NOW).toISOString();
  assert.match(sharedOf(shared({ pushedAt }), folder, NOW).note, /from desk just now\./);
});

test("a pull lists its content before and after", () => {
  const before = pullWords(shared(), server, "/home/ana/shop");
  assert.match(before, /pushed by ben from desk/);
  assert.match(before, /1,234 lines, 2\.3 MB/);
  assert.match(before, /new session for \/home\/ana\/shop; no file does/);
  assert.match(before, /Facts are suspect/);

  const pulled = {
    sessionId: "new",
    sourceSessionId: "old",
    operationId: "o",
    title: null,
    owner: "ben",
    machine: "desk",
    cwd: "/home/ana/shop",
    lines: 1,
    bytes: 10,
    notes: 2,
    markers: 0,
    digest: null,
    before: null,
    resume: "codex resume new",
  };
  assert.equal(pulledWords(pulled), "Pulled as a branch: 1 line, 2 notes.");
  const earlier = "It was pulled before as old.";
  assert.match(
    pulledWords({ ...pulled, before: earlier }),
    /, 2 notes\. It was pulled before as old\.$/,
  );
  assert.match(pulledWords({ ...pulled, digest: "made" }), /opens with our digest\.$/);
  assert.match(pulledWords({ ...pulled, digest: "failed" }), /is missing\. Compact the branch/);
});

test("an address with a password is refused, with the valid form", () => {
  assert.equal(addressProblem("postgresql://ana@db.example.com/codex"), null);
  assert.match(addressProblem("postgresql://ana:s3cret@db.example.com/codex") ?? "", /PGPASSWORD/);
  assert.match(addressProblem("db.example.com") ?? "", /postgresql:\/\/USER@HOST\/DATABASE/);
  assert.match(addressProblem("") ?? "", /postgresql:/);
});

const push: Push = {
  place: folder.place,
  team: null,
  sessions: [
    {
      sessionId: "s1",
      title: "Make the shop faster",
      cwd: "/home/ana/shop",
      lines: 1,
      bytes: 999,
      sent: 0,
      redacted: { github: 2, url_password: 1 },
      leftOut: { images: 3 },
      state: "new",
      digest: "d",
    },
  ],
  refused: [],
  longest: [{ sessionId: "s1", line: 12, chars: 4_000, beginning: "A long\u001b[2J text" }],
  kinds: 38,
  caution: "Redaction knows 38 kinds of secrets and no more.",
  teams: ["shop", "web"],
};

test("the preview of a push lists what leaves, what was redacted, and what never leaves", () => {
  const view = pushView("Make the shop faster", push, folder);

  assert.equal(view?.size, "1 line, 999 B");
  assert.deepEqual(view?.facts, [
    { name: "Redacted: github", value: "2" },
    { name: "Redacted: url password", value: "1" },
    { name: "Left out: images", value: "3" },
  ]);
  assert.deepEqual(view?.longest, [{ line: "12", chars: "4,000", beginning: "A long [2J text…" }]);
  assert.equal(view?.warning, push.caution);
  assert.match(view?.never.join(" ") ?? "", /files.*Hashes.*Images.*private key/);
  assert.deepEqual([view?.unchanged, view?.done], ["", ""]);
});

test("private comes first on a server, teams are a choice; a folder has its readers", () => {
  const teams = pushView("x", push, server)?.readers.map(({ team }) => team);
  assert.deepEqual(teams, [null, "shop", "web"]);

  const readers = pushView("x", push, folder)?.readers;
  assert.deepEqual(
    readers?.map(({ about }) => about),
    ["Everybody who can read the folder /mnt/sync/codex"],
  );
});

test("exactly the shown lines are sent, and a session already there is skipped", () => {
  assert.deepEqual(shownIn(push), [{ sessionId: "s1", lines: 1, digest: "d" }]);
  const sessions = push.sessions.map((each) => ({ ...each, state: "unchanged" }));
  assert.deepEqual(shownIn({ ...push, sessions }), []);
  assert.match(pushView("x", { ...push, sessions }, folder)?.unchanged ?? "", /there already/);
  assert.equal(pushView("x", { ...push, sessions: [] }, folder), null);
});

test("a finished push names its place, its size, and its readers", () => {
  const sent = (state: string, bytes: number) =>
    push.sessions.map((each) => ({ ...each, state, sent: bytes }));

  assert.equal(
    pushedWords({ ...push, sessions: sent("pushed", 12_345), team: "shop" }, server),
    "Pushed to db.example.com/codex · 12.3 kB sent · team shop.",
  );
  assert.equal(pushedWords({ ...push, sessions: sent("pushed", 0) }, folder), "Pushed to codex.");
  assert.match(pushedWords({ ...push, sessions: sent("ahead", 0) }, folder), /^Later lines/);
});

test("sizes are those of the command line", () => {
  assert.deepEqual([0, 999, 1_000, 2_345_678, 7e12].map(byteWords), [
    "0 B",
    "999 B",
    "1.0 kB",
    "2.3 MB",
    "7.0 TB",
  ]);
});

test("hits of the remote are choices below their session's name, without icons of others", () => {
  const hit = {
    ...{ turn: 3, turnId: "t3", seq: 41, kind: "assistant", at: null },
    line: "Cache the $(rocket) prices\u202e",
  };
  const found = { items: [{ session: shared(), hits: [hit] }], more: true };

  const [group] = hitChoices(found, "prices", folder, NOW);

  assert.equal(group?.heading, "Make the shop faster · ben · 2h");
  const [choice] = group?.choices ?? [];
  assert.deepEqual([choice?.description, choice?.icon], ["turn 3", "comment"]);
  assert.equal(choice?.label.replace(/\ufffd/g, ""), "Cache the \\$(rocket) prices");
  assert.deepEqual([choice?.hit, choice?.shared], [hit, shared()]);
  assert.equal(hitsText(found), "The latest 1 hit in 1 session");
  assert.equal(hitsText({ ...found, more: false }), "1 hit in 1 session");
  assert.match(nothingText("prices"), /“prices” is not in the prompts/);
});
