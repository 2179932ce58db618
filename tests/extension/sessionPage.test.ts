import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimelineTurn, TurnEntry } from "../../extension/src/client/protocol.ts";
import { fromPage, keyOf, readState } from "../../extension/src/common/model/pages.ts";
import { PAGE_IDS } from "../../extension/src/common/model/sections.ts";
import {
  areaPath,
  chosenIn,
  eventsOf,
  heightOf,
  nextPart,
  numbered,
  type PageRow,
  pageActions,
  pageEvent,
  pageRows,
  partAtEnd,
  previousPart,
  refusedSentence,
  spokenTurn,
  stepOf,
  stepsOf,
  turnName,
  turnText,
  wholeOf,
  whyDisabled,
} from "../../extension/src/page/model/page.ts";
import { loss, session } from "./values.ts";

function row(turn: number, more: Partial<TimelineTurn> = {}): TimelineTurn {
  const times = { startedAt: "2026-11-20T10:00:00.000Z", endedAt: null };
  const counts = { calls: 1, filesChanged: 0, checksFailed: 0 };
  const known = { turn, turnId: `t${turn}`, seq: turn * 10, outcome: "answered", window: 0 };
  return {
    ...known,
    ...times,
    ...counts,
    contextTokens: null,
    mostTokens: more.contextTokens ?? null,
    reason: null,
    ...more,
  };
}

function turn(number: number): TurnEntry {
  const known = { turnId: `t${number}`, number, task: `Ask ${number}` };
  return { ...known, ended: true, aborted: false, startedAt: null };
}

const single = (more: Partial<TimelineTurn>): PageRow =>
  pageRows([row(1, more)], [turn(1)], 1)[0] as PageRow;

test("the page of a session that Codex refuses says why, and has no button to resume it", () => {
  const refused = refusedSentence(session({ refused: "Codex cannot resume it: no base" }));
  const labels = (of: Parameters<typeof pageActions>[0]) =>
    pageActions(of).map(({ label }) => label);
  const others = ["Compact…", "Search in This Session…"];

  assert.equal(refused, "Codex cannot resume it: no base.");
  assert.equal(refusedSentence(session({})), "");
  assert.deepEqual(labels({ shared: null, refused }), others);
  assert.deepEqual(labels({ shared: null, refused: "" }), ["Resume in Terminal", ...others]);
  const shared = { note: "Session of ana.", speaker: "ana" };
  assert.deepEqual(labels({ shared, refused: "" }), ["Pull as Branch…"]);
});

test("a row of several turns is named by both ends, and each of them can be chosen", () => {
  const turns = Array.from({ length: 8 }, (_, at) => turn(at + 1));

  const rows = pageRows([row(1), row(4), row(7)], turns, 3);

  assert.deepEqual(rows.map(turnName), ["Turns 1–3", "Turns 4–6", "Turns 7–8"]);
  assert.deepEqual(
    rows.map(({ turns }) => turns.map(({ turnId }) => turnId)),
    [
      ["t1", "t2", "t3"],
      ["t4", "t5", "t6"],
      ["t7", "t8"],
    ],
  );
  const [, second] = rows;
  assert.ok(second !== undefined);
  assert.deepEqual(chosenIn(second, 5), { turn: 5, turnId: "t5", task: "Ask 5" });
  assert.equal(chosenIn(second, null).turn, 6);
});

test("a turn is described in one sentence of its actual events", () => {
  assert.equal(turnText(single({ calls: 1 })), "Answered, 1 call.");
  assert.equal(
    turnText(
      single({
        outcome: "aborted",
        contextTokens: 1200,
        calls: 3,
        filesChanged: 2,
        checksFailed: 1,
      }),
    ),
    "Interrupted, context 1,200 tokens, 3 calls, 2 files changed, 1 check failed.",
  );
});

test("a screen reader hears the events of a turn with it", () => {
  const marker = { kind: "marker", turn: 1, seq: 10, at: null, id: "m" };
  const event = pageEvent(marker, "a", null);

  assert.equal(spokenTurn(single({}), [event]), "Turn 1: Ask 1 Answered, 1 call. Marker “a”.");
  assert.deepEqual(
    eventsOf(single({}), [
      { ...event, turn: 2 },
      { ...event, turn: null },
    ]),
    [],
  );
});

test("the picture is as high as the window, or higher where more was in use", () => {
  assert.equal(heightOf([single({ contextTokens: 100 })], 1000), 1000);
  assert.equal(heightOf([single({ contextTokens: 3000 })], 1000), 3000);
  assert.equal(heightOf([single({ contextTokens: 30 })], null), 30);
  assert.equal(heightOf([], null), 1);
  const compacted = single({ contextTokens: 9, mostTokens: 3000 });
  assert.equal(heightOf([compacted], 1000), 3000, "what was in use before a compaction counts");
  assert.match(turnText(compacted), /context 9 tokens \(peak 3,000\)/);
});

test("round numbers of turns are below the picture, with room between them", () => {
  const rows = (count: number, merged: number) => {
    const turns = Array.from({ length: count }, (_, at) => turn(at + 1));
    const starts = Array.from({ length: Math.ceil(count / merged) }, (_, at) =>
      row(at * merged + 1),
    );
    return pageRows(starts, turns, merged);
  };

  assert.deepEqual(numbered([], 900), []);
  assert.deepEqual(numbered(rows(2, 1), 900), [1, 2]);
  assert.deepEqual(numbered(rows(40, 1), 900), [1, 5, 10, 15, 20, 25, 30, 35, 40]);
  assert.deepEqual(numbered(rows(40, 1), 240), [1, 10, 20, 30, 40]);
  assert.deepEqual(numbered(rows(2000, 5), 300), [1, 500, 1000, 1500, 2000]);
});

test("a compaction shows its losses as soon as they are known", () => {
  const event = { kind: "compaction", turn: 1, seq: 10, at: null, id: "w" };
  const named = { text: "Fix it", ref: null, seq: 1 };
  const step = { text: "Read it", ref: null, seq: 2 };
  const lost = loss({
    openedAtSeq: 10,
    task: { ...named, lost: true },
    openPlanSteps: [
      { ...step, lost: true },
      { ...step, lost: false },
    ],
  });

  const told = pageEvent(event, "", [loss({ openedAtSeq: 9 }), lost]);

  assert.equal(told.name, "Compacted: a new context window begins · 2 lost.");
  assert.deepEqual(told.lost, ["Last request: Fix it", "Open steps of the plan: Read it"]);
  assert.deepEqual(pageEvent(event, "", null).lost, []);
  assert.deepEqual(pageEvent({ ...event, kind: "marker" }, "a", [lost]).lost, []);
  assert.match(pageEvent(event, "", [loss({ openedAtSeq: 10 })]).name, /nothing known to be lost/);
});

test("the conversation continues from part to part and from turn to turn, both ways", () => {
  const turns = [1, 2].map((number) => ({ turn: number, turnId: `t${number}`, task: "" }));
  const first = { turnId: "t1", offset: 0, next: 200 };
  const end = partAtEnd("t1", 201);
  const other = { turnId: "t2", offset: 0, next: null };

  assert.deepEqual(end, { turnId: "t1", offset: 200, next: null });
  assert.deepEqual(nextPart(first, turns), end);
  assert.deepEqual(nextPart(end, turns), other);
  assert.equal(nextPart(other, turns), null);
  assert.deepEqual(previousPart(other, turns), { ...first, next: null });
  assert.deepEqual(previousPart(end, turns), first);
  assert.equal(previousPart(first, turns), null);
  assert.deepEqual(
    [200, 0].map((total) => partAtEnd("t1", total).offset),
    [0, 0],
  );
});

test("a record is found in its step, a call in the step of its output", () => {
  const texts = { text: "", printed: "", about: "" };
  const step = { kind: "command", ...texts, left: 0, hasFailed: false } as const;
  const steps = ["#1", "#3", "#7"].map((ref) => ({ ...step, ref }));

  assert.deepEqual(
    [1, 2, 3, 7, 8].map((seq) => stepOf(steps, seq)),
    [0, 1, 1, 2, -1],
  );
});

test("a turn without a report stays as full as the one before", () => {
  const rows = pageRows([row(1, { contextTokens: 50 }), row(2)], [turn(1), turn(2)], 1);

  const path = areaPath(rows, 100, { left: 0, top: 0, width: 20, height: 100 });

  assert.equal(path, "M0,100 L0,50 10,50 10,50 20,50 20,100 Z");
});

test("a command is shown with its output and exit code, and a patch says if it was not applied", () => {
  const item = {
    ...{ at: null, exitCode: null, failed: false, answered: false, about: "", total: 4, tail: "" },
  };
  const ended = { ...item, kind: "output", about: "make check", text: "1 of", tail: "done" };
  const asked = [
    { ...item, ref: "#1", kind: "user", text: "Fix it" },
    { ...item, ref: "#2", kind: "call", text: "make check", answered: true },
    { ...ended, ref: "#3", exitCode: 2, failed: true, total: 9000 },
    { ...item, ref: "#4", kind: "patch", text: "*** Begin Patch" },
    { ...item, ref: "#5", kind: "patch", text: "*** Begin Patch", failed: true },
    { ...ended, ref: "#6", about: "apply_patch", failed: true },
    { ...item, ref: "#7", kind: "call", text: "sleep 9" },
  ];

  assert.deepEqual(
    stepsOf(asked).map((step) => [step.ref, step.kind, step.text, step.about, step.hasFailed]),
    [
      ["#1", "user", "Fix it", "", false],
      ["#3", "command", "make check", "exit code 2", true],
      ["#4", "patch", "*** Begin Patch", "", false],
      ["#5", "patch", "*** Begin Patch", "not applied", true],
      ["#6", "command", "apply_patch", "failed", true],
      ["#7", "command", "sleep 9", "", false],
    ],
  );
  const [, long] = stepsOf(asked);
  assert.equal(long?.printed, "1 of\n⋯ 8,992 more characters ⋯\ndone");
  assert.equal(long?.left, 8_992);
});

test("a page keeps the ids of what it shows", () => {
  assert.deepEqual(readState({ sessionId: "s", turn: 3 }, ["sessionId"]), { sessionId: "s" });
  assert.equal(readState({ sessionId: 1 }, ["sessionId"]), null);
  assert.equal(readState(null, ["sessionId"]), null);
});

test("a page that a reload restored has the key of the page that was open", () => {
  const ids = { sessionId: "", turnId: "", name: "/p/a.json", folder: "/p/b c", kind: "import" };
  const restored = readState(ids, PAGE_IDS);
  assert.equal(keyOf(restored ?? {}), keyOf(ids));
  assert.notEqual(keyOf({ name: "a b", folder: "c" }), keyOf({ name: "a", folder: "b c" }));
});

test("a page requests an action on a turn in known words", () => {
  const asked = { kind: "turn", turnId: "t1", action: "mark" };
  assert.deepEqual(fromPage(asked), asked);
  assert.equal(fromPage({ ...asked, action: "delete" }), null);
});

test("a long record is shown from its beginning, and around the line of a search hit", () => {
  const whole = (passage: { offset: number; text: string } | null) => {
    const { text, left } = wholeOf("#7", "beginning", 9, 100_000, passage);
    return [text, left];
  };
  assert.deepEqual(whole(null), ["beginning", 99_991]);
  assert.deepEqual(whole({ offset: 50_000, text: "around it" }), [
    "beginning\n⋯ 49,991 more characters ⋯\naround it",
    49_991,
  ]);
  assert.deepEqual(whole({ offset: 7, text: "ng, and on" }), ["beginning, and on", 99_983]);
  assert.deepEqual(whole({ offset: 0, text: "begin" }), ["beginning", 99_991]);
  assert.deepEqual(whole({ offset: 9, text: " on" }), ["beginning on", 99_988]);
});

test("a turn says why some of its buttons are disabled", () => {
  assert.deepEqual(whyDisabled(single({ filesChanged: 1 }), 1), { open: "", unchanged: "" });
  assert.deepEqual(whyDisabled(single({ outcome: "open" }), 1), {
    open: "It can be marked and restored once it has ended.",
    unchanged: "No files changed.",
  });
});
