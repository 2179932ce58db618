import assert from "node:assert/strict";
import { test } from "node:test";
import type { DigestLine, SessionDigest } from "../../extension/src/client/protocol.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import {
  budgetText,
  digestParts,
  type Part,
} from "../../extension/src/compaction/model/preview.ts";

function line(section: string, text: string, some: Partial<DigestLine> = {}): DigestLine {
  const [, ref = null] = /^- (?:t\d+ )?(#\d+) /.exec(text) ?? [];
  const place = { turn: null, turnId: null, sessionId: "s" };
  return { section, ref, ...place, text, tokens: 10, why: "a reason", ...some };
}

function digest(budget: number, lines: readonly DigestLine[], left = {}): SessionDigest {
  return { text: "", tokens: 10 * lines.length, budget, lines, left };
}

/** Return the visible content of each part: signs, anchors, lines. */
function seen(parts: readonly Part[]): string[] {
  const signs = { stays: " ", comes: "+", goes: "-" };
  return parts.flatMap(({ title, records }) => [
    title,
    ...records.flatMap(({ anchor, pieces }) =>
      pieces.map(({ fate, text }) => `${signs[fate]} ${anchor} ${text}`),
    ),
  ]);
}

const USUAL = digest(8000, [
  line("STATUS", "- last turn: answered, see #7 there", { ref: null, why: "how it ended" }),
  line("OUTCOMES", "- t2 #9 answered: done"),
  line("OUTCOMES", "- t1 #4 answered: begun"),
  line("KEY_LINES", "- #3 shop.py:\\na = 1\\nb = 2", { why: "lines of a patch" }),
  line("KEY_LINES", "- #5 out: x", { why: "lines of an output" }),
]);

test("the default digest is shown by section, each record with its anchor and its lines", () => {
  const parts = digestParts(USUAL, USUAL);

  assert.deepEqual(seen(parts), [
    "Status",
    "   last turn: answered, see #7 there",
    "Answers",
    "  t2 #9 answered: done",
    "  t1 #4 answered: begun",
    "Key lines",
    "  #3 shop.py:",
    "  #3 a = 1",
    "  #3 b = 2",
    "  #5 out: x",
  ]);
  assert.deepEqual(
    parts.flatMap(({ records }) => records.map(({ ref }) => ref)),
    ["", "#9", "#4", "#3", "#5"],
  );
  assert.equal(budgetText(parts, USUAL, USUAL), "50 tokens in 7 lines. This is the default.");
});

test("another budget marks each line as added or removed, at its place", () => {
  const small = digest(4000, [
    line("STATUS", "- last turn: answered, see #7 there", { ref: null }),
    line("OUTCOMES", "- t2 #9 answered: done"),
    line("CHANGES", "- t1 #6 shop.py"),
    line("KEY_LINES", "- #3 shop.py:\\nb = 2\\nc = 3"),
  ]);

  const parts = digestParts(small, USUAL);

  assert.deepEqual(seen(parts).slice(2), [
    "Answers",
    "  t2 #9 answered: done",
    "- t1 #4 answered: begun",
    "Changed files",
    "+ t1 #6 shop.py",
    "Key lines",
    "  #3 shop.py:",
    "- #3 a = 1",
    "  #3 b = 2",
    "+ #3 c = 3",
    "- #5 out: x",
  ]);
  assert.deepEqual(
    parts.map(({ change }) => change),
    ["", "1 line removed", "1 line added", "1 line added, 2 lines removed"],
  );
  assert.equal(
    budgetText(parts, small, USUAL),
    "40 tokens in 6 lines. Compared with the default of 8,000 tokens: 2 lines added, 3 lines removed.",
  );
});

test("omitted lines are counted by section, even in an empty one", () => {
  const none = digest(300, [], { REQUESTS: 1340, KEY_LINES: 1, OF_LATER: 2 });

  const parts = digestParts(none, none);

  assert.deepEqual(
    parts.map(({ title, left }) => `${title}: ${left}`),
    [
      "Requests: 1,340 requests left out",
      "Key lines: 1 key line left out",
      "OF_LATER: 2 lines left out",
    ],
  );
});

test("without a digest all omitted lines are shown", () => {
  const off = digest(0, []);

  const parts = digestParts(off, USUAL);

  assert.equal(
    budgetText(parts, off, USUAL),
    "No digest. Compared with the default of 8,000 tokens: 7 lines removed.",
  );
  assert.ok(seen(parts).every((each) => !each.startsWith("+")));
});

test("a reason shared by a whole section is shown once, others at their records", () => {
  const [, answers, key] = digestParts(USUAL, USUAL);

  assert.equal(answers?.why, "a reason");
  assert.deepEqual(
    answers?.records.map(({ why }) => why),
    ["", ""],
  );
  assert.equal(key?.why, "");
  assert.deepEqual(
    key?.records.map(({ why }) => why),
    ["lines of a patch", "lines of an output"],
  );
});

test("a command shows its own outcome, so it has no reason beside it", () => {
  const checks = digest(8000, [
    line("CHECKS", "- #3 exit 1: make", { why: "a failing command" }),
    line("CHECKS", "- #5 exit 0: ls", { why: "a command that passed" }),
  ]);

  const [part] = digestParts(checks, checks);

  assert.deepEqual([part?.why, ...(part?.records.map(({ why }) => why) ?? [])], ["", "", ""]);
});

test("a page requests valid budgets, and records by name", () => {
  for (const [budget, read] of [
    [0, 0],
    [32_000, 32_000],
    [32_001, null],
    [-1, null],
    [1.5, null],
    ["8000", null],
    [Number.NaN, null],
  ] as const) {
    assert.deepEqual(fromPage({ kind: "budget", budget }), { kind: "budget", budget: read });
  }
  assert.deepEqual(fromPage({ kind: "record", ref: "#12" }), { kind: "record", ref: "#12" });
  assert.equal(fromPage({ kind: "record", ref: 12 }), null);
  for (const kind of ["compact", "diff", "copy"] as const) {
    assert.deepEqual(fromPage({ kind, more: 1 }), { kind });
  }
});
