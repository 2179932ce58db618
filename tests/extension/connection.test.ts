import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { receivedNode } from "../../extension/src/checkpoint/model/rows.ts";
import type { ConnectDoor, ConnectReport, Receipt } from "../../extension/src/client/protocol.ts";
import { CODEX_PROBLEMS, DOOR_PROBLEMS } from "../../extension/src/client/words.ts";
import { type ConnectionNode, connectionNodes } from "../../extension/src/connect/model/rows.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");
const FAILURE = { at: "2026-11-20T11:00:00.000Z", sessionId: "s1", code: "storage_error" };

function door(some: Partial<ConnectDoor>): ConnectDoor {
  return {
    door: "hook",
    configured: true,
    trusted: true,
    lastRanAt: "2026-11-20T11:58:00.000Z",
    lastSession: "s1",
    failure: null,
    problem: null,
    next: null,
    wayOut: null,
    ...some,
  };
}

function report(some: Partial<ConnectReport>): ConnectReport {
  return {
    codexHome: "/home/dev/.codex",
    codexPath: "/usr/bin/codex",
    codexVersion: "0.169.0",
    codexProblem: null,
    doors: [door({}), door({ door: "mcp" })],
    hooks: [],
    problems: [],
    wayOut: null,
    written: false,
    changes: [],
    ...some,
  };
}

function rows(some: Partial<ConnectReport>): ConnectionNode[] {
  return connectionNodes(report(some), NOW);
}

const hookRow = (some: Partial<ConnectDoor>): ConnectionNode | undefined =>
  rows({ doors: [door(some)] })[0];

test("a working door shows its last call, and has no button", () => {
  const row = hookRow({});

  assert.equal(row?.row.description, "connected · last ran 2m ago");
  assert.equal(row?.row.icon, "pass");
  assert.equal(row?.row.description, "connected · last ran 2m ago");
  assert.equal(row?.row.icon, "pass");
  assert.equal(row?.step, "");
});

test("a door called just now says so in words", () => {
  const lastRanAt = new Date(NOW).toISOString();

  assert.equal(hookRow({ lastRanAt })?.row.description, "connected · last ran just now");
});

test("a disconnected door has a button to connect it, and none to remove it", () => {
  const some = { configured: false, trusted: null, lastRanAt: null } as const;
  const row = hookRow({ ...some, problem: "not_configured", next: "connect" });

  assert.equal(row?.row.description, "not connected");
  assert.equal(row?.step, "connect");
  assert.equal(row?.isRemovable, false);
});

test("a door in an unreadable file is not shown as disconnected, and nothing is changed", () => {
  const hook = { event: "PreCompact", configured: false, trust: null, enabled: null };
  const hooks = [{ ...hook, lastRanAt: null, lastSession: null, failure: null }];
  const some = { configured: false, trusted: null, lastRanAt: null, next: null } as const;
  const row = rows({ doors: [door({ ...some, problem: "unreadable" })], hooks })[0];

  assert.equal(row?.row.description, "not known whether it is connected");
  assert.deepEqual(row?.children, []);
  assert.equal(row?.isRemovable, false);
});

test("each advice of the server has a button of its own", () => {
  const steps = ["connect", "repair", "trust", "update_codex", "choose_home", "from the future"];

  assert.deepEqual(
    steps.map((next) => hookRow({ problem: "outdated", next })?.step),
    ["connect", "repair", "trust", "update", "home", ""],
  );
});

test("each problem of a door is said in words of its own, and looks like one", () => {
  const states = ["outdated", "program_missing", "no_hooks", "disabled", "untrusted"].map(
    (problem) => hookRow({ problem, lastRanAt: null })?.row,
  );
  const said = states.map((row) => row?.description ?? "");

  assert.equal(new Set(said).size, states.length);
  assert.ok(said.every((words) => !words.startsWith("connected")));
  assert.ok(states.every((row) => row?.icon === "warning"));
});

test("a failed call is a warning, with its code and the server's remedy", () => {
  const row = hookRow({ problem: "failed", failure: FAILURE, wayOut: "Make room on the disk." });

  assert.equal(row?.row.icon, "warning");
  assert.match(row?.row.description ?? "", /^the last call failed: storage_error/);
  assert.match(row?.row.tooltip ?? "", /Make room on the disk\.$/);
  assert.match(row?.row.spoken ?? "", /Make room on the disk\.$/);
});

test("hooks are below their door, each with its status in Codex", () => {
  const hook = { lastRanAt: null, lastSession: null, failure: null, enabled: true };
  const [row] = rows({
    hooks: [
      { event: "SessionStart", configured: true, trust: "trusted", ...hook },
      { event: "PreCompact", configured: true, trust: "untrusted", ...hook },
      { event: "PostCompact", configured: false, trust: null, ...hook },
    ],
  });

  assert.deepEqual(
    row?.children.map(({ row: { label, description, icon } }) => [label, description, icon]),
    [
      ["SessionStart", "trusted · never ran", "pass"],
      ["PreCompact", "not trusted yet · never ran", "circle-large-outline"],
      ["PostCompact", "not connected", "circle-large-outline"],
    ],
  );
});

test("problems and faults of Codex are rows of plain text", () => {
  const found = rows({
    codexVersion: null,
    codexProblem: "codex_not_found",
    problems: ["a\u202eb\nc"],
  });

  assert.deepEqual(
    found.slice(2).map(({ row: { label, description } }) => [label, description]),
    [
      ["Codex", "not found on the PATH"],
      ["a b c", ""],
    ],
  );
});

test("a receipt says whether Codex has this very checkpoint, when it got it and for what", () => {
  const receipt: Receipt = {
    at: "2026-11-20T11:58:00.000Z",
    door: "hook",
    event: "SessionStart",
    source: "compact",
    windowId: "w1",
    seq: 4,
    digest: "sha256:00",
    size: 1200,
    isCurrent: true,
  };
  const now = receivedNode(receipt, NOW).row;
  const earlier = receivedNode({ ...receipt, isCurrent: false, source: "resume" }, NOW).row;

  assert.equal(now.label, "Codex received this checkpoint");
  assert.equal(now.description, "2m ago");
  assert.match(now.tooltip, /After Codex compacted the session\./);
  assert.equal(earlier.label, "Codex received an earlier checkpoint");
  assert.match(earlier.spoken, /When the session was resumed\.$/);
});

test("the view has the words of the terminal for each problem", () => {
  const source = readFileSync("server/codex_checkpoints/sections/connect.py", "utf8");
  const view = JSON.stringify([
    ...Object.keys(DOOR_PROBLEMS).map((problem) => hookRow({ problem })?.row.description),
    ...Object.keys(CODEX_PROBLEMS).map((codexProblem) => rows({ codexProblem }).at(-1)?.row),
  ]);

  for (const words of [...Object.values(DOOR_PROBLEMS), ...Object.values(CODEX_PROBLEMS)]) {
    assert.ok(source.includes(`"${words}"`), words);
    assert.ok(view.includes(words), words);
  }
});
