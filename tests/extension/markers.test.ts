import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  checkpointNodes,
  NO_PIN,
  pathOf,
  pinsNode,
} from "../../extension/src/checkpoint/model/rows.ts";
import type { Branch, Difference, Marker, TurnEntry } from "../../extension/src/client/protocol.ts";
import { cut, plain } from "../../extension/src/common/model/text.ts";
import {
  comparisonTitle,
  differenceWords,
  inOrder,
  isDetached,
  labelProblem,
  markerRow,
  placeNow,
  placeOfMarker,
  placeOfTurn,
  statesBefore,
  turnActions,
  turnChoices,
} from "../../extension/src/markers/model/texts.ts";
import { branchRow, madeWords } from "../../extension/src/sessions/model/branches.ts";
import { contextValueOf, hasBelow, sessionRow } from "../../extension/src/sessions/model/rows.ts";
import { checkpoint, session, told } from "./values.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");
const HOSTILE = "\u001b]8;;x\u0007 $(zap) [click](command:evil) \u202e";

function turn(some: Partial<TurnEntry>): TurnEntry {
  const turnId = `t${some.number ?? 1}`;
  const startedAt = "2026-11-20T11:00:00.000Z";
  const said = { task: "Fix the login", ended: true, aborted: false };
  return { turnId, number: 1, startedAt, ...said, ...some };
}

function marker(some: Partial<Marker>): Marker {
  return {
    checkpointId: "01a20053-5b8b-7217-99eb-065115c46699",
    sessionId: session({}).sessionId,
    turnId: "t3",
    label: "before the rewrite",
    createdAt: "2026-11-20T10:00:00.000Z",
    origin: "user",
    turnNumber: 3,
    detached: false,
    remark: null,
    ...some,
  };
}

function branch(some: Partial<Branch>): Branch {
  return {
    sessionId: "01a20053-5c0d-71f8-9641-1387dfe119cf",
    kind: "restore",
    mode: "hard",
    at: "2026-11-20T11:00:00.000Z",
    turnId: "t3",
    checkpointId: "c1",
    operationId: "o1",
    title: "before the rewrite",
    available: true,
    archived: false,
    undone: false,
    ...some,
  };
}

test("a marker shows its name, its turn and its age", () => {
  const row = markerRow(marker({}), session({}), NOW);

  assert.equal(row.label, "before the rewrite");
  assert.equal(row.description, "turn 3 · 2h");
  assert.equal(row.spoken, "marker before the rewrite, turn 3, 2h");
  assert.equal(row.icon, "bookmark");
  assert.match(row.tooltip, /^Made at 2026-11-20 10:00:00 UTC$/m);
});

test("a marker whose turn was rolled back is shown as detached, to eye and ear", () => {
  const detached = marker({ turnNumber: null, detached: true });
  const row = markerRow(detached, session({}), NOW);

  assert.equal(row.description, "its turn was rolled back · 2h");
  assert.match(row.spoken, /, its turn was rolled back, /);
  assert.notEqual(row.icon, markerRow(marker({}), session({}), NOW).icon);
  assert.ok(isDetached(detached, session({})));
});

test("a marker inherited from the source of a branch is not detached", () => {
  const inherited = marker({ sessionId: "the source", turnNumber: null, detached: true });

  assert.equal(isDetached(inherited, session({})), false);
  const { description } = markerRow(inherited, session({}), NOW);
  assert.equal(description, "on a turn of the original session · 2h");
});

test("the menu of a turn on a page repeats none of the buttons beside it", () => {
  const source = readFileSync("extension/src/webview/turnCard.ts", "utf8");
  const buttons = [...source.matchAll(/"(\w+)", (?:open|unchanged)\)/g)].map(([, name]) => name);
  const names: readonly string[] = turnActions(true, true);

  assert.deepEqual(buttons.sort(), ["changes", "mark", "restore"]);
  assert.deepEqual(
    buttons.filter((name) => names.includes(name ?? "")),
    [],
  );
  assert.deepEqual(
    turnActions(true, false).filter((name) => !names.includes(name)),
    ["mark", "restore", "changes"],
  );
  assert.deepEqual(turnActions(false, true), ["view", "json", "compareNow", "compare"]);
});

test("turns are offered with the newest first", () => {
  const turns = [
    turn({ number: 1 }),
    turn({ number: 2, aborted: true, task: null, startedAt: null }),
    turn({ number: 3, ended: false, task: "And the logout" }),
  ];
  const choices = turnChoices(turns, [marker({ turnNumber: 1 })], NOW);

  assert.deepEqual(
    choices.map(({ label, description, detail }) => [label, description, detail]),
    [
      ["3  And the logout", "1h · has not ended", ""],
      ["2  No message", "interrupted", ""],
      ["1  Fix the login", "1h", "Marked: “before the rewrite”"],
    ],
  );
});

test("a label is not empty and fits the stored length", () => {
  assert.equal(labelProblem(" \u0007 "), "Enter a text.");
  assert.equal(labelProblem("𝔘".repeat(160)), null);
  assert.equal(labelProblem("𝔘".repeat(161)), "160 characters at most.");
});

test("a row leads to a branch, and one to the source", () => {
  const down = branchRow(branch({}), "branch", NOW);
  assert.equal(down.label, "Branch: before the rewrite");
  assert.equal(down.description, "restored, context reset · 1h");
  assert.equal(down.spoken, "Branch: before the rewrite, restored, context reset, 1h");

  const gone = branch({ title: null, available: false, kind: "compaction", mode: null, at: null });
  const up = branchRow(gone, "source", NOW);
  assert.equal(up.label, "Source: 01a20053-5c0d");
  assert.equal(up.description, "no longer here · compacted");
  assert.equal(up.icon, "circle-slash");

  const put = branchRow(branch({ archived: true, mode: "soft" }), "branch", NOW);
  assert.equal(put.description, "archived · restored with context · 1h");
});

test("every way to make a session has its words", () => {
  const kinds = ["restore", "compaction", "import", "revert", "subagent", "fork"];
  assert.equal(new Set(kinds.map((kind) => madeWords(kind, null))).size, kinds.length);
});

test("a session is a leaf unless there is something below it", () => {
  assert.equal(hasBelow(session({})), false);
  assert.equal(hasBelow(session({ forkedFrom: "a", parentSession: "a" })), false);
  for (const some of [{ markers: 1 }, { branches: 1 }, { compactions: 1 }, { forkedFrom: "a" }]) {
    assert.equal(hasBelow(session(some)), true, JSON.stringify(some));
  }
});

test("a branch is distinguished from a source of the same name", () => {
  const made = session({ forkedFrom: "a", madeBy: "restore", archived: true, branches: 2 });

  assert.equal(contextValueOf(made), "archivedSession made branch source");
  assert.equal(contextValueOf(session({})), "session");
  const brought = sessionRow(session({ madeBy: "import" }), NOW);
  assert.equal(brought.icon, "package");
  assert.match(brought.tooltip, /^State: imported$/m);
  const undone = sessionRow(session({ madeBy: "compaction", undone: true }), NOW);
  assert.match(undone.tooltip, /^State: compacted, compaction undone$/m);
  const row = sessionRow({ ...made, archived: false }, NOW);
  assert.match(row.spoken, /, restored, /);
  assert.equal(row.icon, "git-branch");
});

test("states are compared with the earlier one on the left", () => {
  const [first, third] = [1, 3].map((number) => placeOfTurn("a", turn({ number })));
  const now = placeNow("a", "now");
  assert(first && third);

  assert.deepEqual(inOrder(third, first), [first, third]);
  assert.deepEqual(inOrder(now, third), [third, now]);
  assert.deepEqual(inOrder(first, now), [first, now]);
  const detached = placeOfMarker(marker({ turnNumber: null }));
  assert.deepEqual(inOrder(third, detached), [third, detached]);
});

test("a comparison is named by its states, and counts the differences", () => {
  const none: Difference = {
    sessionId: "a",
    fromTurnId: "t1",
    toTurnId: "t3",
    task: null,
    plan: [],
    planReordered: false,
    decisions: [],
    facts: [],
    artifacts: [],
  };
  const some = { ...none, task: {}, plan: [{}, {}], facts: [{}], planReordered: true };
  const [left, right] = [1, 3].map((number) => placeOfTurn("a", turn({ number })));
  assert(left && right);

  assert.equal(differenceWords(none), "no differences");
  assert.equal(differenceWords({ ...none, planReordered: true }), "order of the plan");
  assert.equal(
    comparisonTitle("Fix the login", left, right, some),
    "Fix the login: turn 1 ↔ turn 3 · task · plan 2 · facts 1",
  );
});

test("pins have their own part, and mark pinned files", () => {
  const pins = [
    { ...NO_PIN, uri: "src/auth.ts" },
    { ...NO_PIN, uri: "a.py", start: 3, end: 9 },
    { ...NO_PIN, uri: "a.py", start: 4, end: 4 },
  ];
  assert.deepEqual(pins.map(pathOf), ["src/auth.ts", "a.py#L3-L9", "a.py#L4"]);
  assert.equal(pinsNode([]), null);
  const nodes = checkpointNodes(checkpoint, told, [], pins);

  const part = nodes.find(({ id }) => id === "pins");
  assert.deepEqual(
    part?.children.map(({ row, pin }) => [row.label, row.description, row.spoken, pin]),
    [
      ["a.py", "line 4", "pinned file a.py, line 4", pins[2]],
      ["a.py", "lines 3 to 9", "pinned file a.py, lines 3 to 9", pins[1]],
      ["src/auth.ts", "", "pinned file src/auth.ts", pins[0]],
    ],
  );
  const files = nodes.find(({ id }) => id === "artifacts/file")?.children ?? [];
  assert.deepEqual(
    files.map(({ row, pin }) => [row.icon, pin]),
    [
      ["pinned", { ...NO_PIN, uri: "src/auth.ts" }],
      ["file", null],
    ],
  );
});

test("a pinned message opens its record; a note and a text are copied", () => {
  const pins = [
    { ...NO_PIN, message: "#12" },
    { ...NO_PIN, note: "build.command" },
    { ...NO_PIN, text: HOSTILE },
  ];
  const rows = pinsNode(pins)?.children ?? [];

  assert.deepEqual(rows.map(({ row, action }) => [row.label, row.description, action]).slice(1), [
    ["build.command", "note", { kind: "copy", text: "build.command" }],
    ["#12", "message", { kind: "record", ref: "#12" }],
  ]);
  assert.equal(rows[0]?.row.label, cut(plain(HOSTILE), 400));
  assert.equal(new Set(rows.map(({ id }) => id)).size, 3);
});

test("rollout text in markers, turns and branches stays text", () => {
  const rows = [
    markerRow(marker({ label: HOSTILE, turnId: HOSTILE }), session({}), NOW),
    branchRow(branch({ title: HOSTILE }), "branch", NOW),
  ];
  const [choice] = turnChoices(
    [turn({ task: HOSTILE })],
    [marker({ turnNumber: 1, label: HOSTILE })],
    NOW,
  );
  const texts = [...rows.flatMap((row) => [row.label, row.description, row.tooltip, row.spoken])];
  const picked = [choice?.label, choice?.detail].map(String);

  for (const text of [...texts, ...picked]) {
    assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\u202e]/u);
  }
  for (const text of picked) {
    assert.doesNotMatch(text, /(?<!\\)\$\(/, "an icon that the session asked for");
  }
});

test("a file can be shown before each turn that changed it, except the first turn", () => {
  const turns = [1, 2, 4].map((number) => turn({ number, task: `Task ${number}` }));

  assert.deepEqual(statesBefore([1, 2, 4], turns), [
    { number: 4, task: "Task 4", endOf: "t2" },
    { number: 2, task: "Task 2", endOf: "t1" },
  ]);
});
