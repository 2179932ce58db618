import assert from "node:assert/strict";
import { test } from "node:test";
import type { Offer, Window } from "../../extension/src/client/protocol.ts";
import {
  fullWords,
  Hints,
  lossesText,
  lossWords,
  windowRow,
} from "../../extension/src/compaction/model/texts.ts";
import { loss, session } from "./values.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");

const MUCH = loss({
  openPlanSteps: [
    { text: "Measure it", ref: "c1", seq: 5, lost: true },
    { text: "Change it", ref: "c1", seq: 5, lost: false },
  ],
  editedFiles: [{ uri: "shop.py", change: "update", ref: "c2", seq: 9, lost: true }],
  failingCommands: [{ command: "pytest -q", exitCode: 1, ref: "c3", seq: 12, lost: true }],
  reads: 4,
  rereadsUnchanged: 3,
  bytes: 12_345,
  rereads: [{ uri: "shop.py", times: 3, ref: "c7", seq: 50 }],
});

test("a window shows how much was lost and read again, and whether the session loops", () => {
  assert.equal(lossWords(MUCH), "3 lost · 3 read again");
  assert.equal(lossWords(loss({})), "");
});

test("an unreadable replacement is not reported as lost", () => {
  const task = { text: "Fix the shop", ref: "u1", seq: 3, lost: null };
  const sealed = loss({ sealed: true, task, taskPresent: null });
  assert.equal(lossWords(sealed), "1 unknown");
  assert.match(lossesText([sealed]), /\nLast request: 1 unknown\n {2}\? Fix the shop · #3\n/);
});

test("an unreadable replacement is not counted as kept either", () => {
  const files = [true, false, false].map((isKept, at) => ({
    uri: `f${at}.py`,
    change: "update" as const,
    ref: null,
    seq: 9,
    lost: isKept ? false : null,
  }));
  const sealed = loss({ sealed: true, editedFiles: files });
  const text = lossesText([sealed]);

  assert.equal(lossWords(sealed), "2 kept, 2 unknown");
  assert.match(text, /\n2 kept, 2 unknown: the provider encrypted this part, and nobody else/);
  assert.match(text, /\nChanged files: 1 kept, 2 unknown\n/);
});

test("the document names each thing with its record, and whether it is lost", () => {
  const text = lossesText([loss({ number: 1 }), { ...MUCH, number: 2 }]);

  assert.ok(text.indexOf("Window 2") < text.indexOf("Window 1"), "the newest comes first");
  assert.match(text, /\nLast request: 0 of 1 lost\n {2}✓ Fix the shop · #3\n/);
  assert.match(
    text,
    /\nOpen steps of the plan: 1 of 2 lost\n {2}✗ Measure it · #5\n {2}✓ Change it · #5\n/,
  );
  assert.match(text, /\nChanged files: 1 of 1 lost\n {2}✗ update shop\.py · #9\n/);
  assert.match(text, /\nCommands that failed: 1 of 1 lost\n {2}✗ pytest -q · exit code 1 · #12\n/);
  assert.match(
    text,
    /\nFiles read since then: 4, unchanged files read again: 3 \(12,345 bytes\)\n {2}shop\.py: 3 times/,
  );
});

test("a single unlisted item and a single byte are in the singular", () => {
  const text = lossesText([loss({ notListed: 1, reads: 1, rereadsUnchanged: 1, bytes: 1 })]);

  assert.match(text, /\n1 more is not listed\.\n/);
  assert.match(text, /: 1 \(1 byte\)\n/);
});

test("a session without compactions has lost nothing, and the document says so", () => {
  assert.match(lossesText([]), /never compacted/);
});

test("text of a session in a loss stays one line", () => {
  const task = { text: "a\u202eb\n[c](command:d)", ref: "u1", seq: 3, lost: true };
  const text = lossesText([
    loss({ task, openedAt: "x\u001b[2J", trigger: "\u001b[3J", strategy: "\u009b4J" }),
  ]);

  assert.ok(!["\u001b", "\u009b", "\u202e"].some((control) => text.includes(control)));
  assert.match(text, /✗ a b \[c\]\(command:d\) · #3\n/);
});

test("a window row tells what Codex received in it", () => {
  const window: Window = {
    number: 2,
    windowId: "w2",
    previousWindowId: "w1",
    openedAtSeq: 40,
    openedAt: "2026-11-20T11:00:00.000Z",
    trigger: "mid_turn",
    strategy: "local",
    tokensBefore: 9,
    tokensAfter: 1,
    undone: false,
    received: {
      at: "2026-11-20T11:01:00.000Z",
      door: "hook",
      event: "SessionStart",
      source: "compact",
      windowId: "w2",
      seq: 41,
      digest: "sha256:00",
      size: 900,
      isCurrent: false,
    },
    compactionId: null,
  };
  assert.match(
    windowRow(window, null, NOW).tooltip,
    /Codex received a checkpoint in it: 2026-11-20T11:01:00\.000Z/,
  );
});

const OFFER: Offer = {
  tokens: 200_000,
  tokensSource: "reported",
  trigger: 100_000,
  target: 80_000,
  window: 250_000,
  windowSource: "advertised",
};

test("a nearly full context is announced once, and again in a later window", () => {
  const hints = new Hints(Date.parse("2026-11-20T09:00:00.000Z"));
  const full = session({ offer: OFFER, windows: 1 });

  assert.equal(fullWords(OFFER), "80% full");
  assert.equal(fullWords({ ...OFFER, tokens: OFFER.window + 1 }), "over its limit");
  assert.deepEqual([hints.isDue(full), hints.isDue(full)], [true, false]);
  assert.equal(hints.isDue(session({ offer: null, windows: 2 })), false);
  assert.equal(hints.isDue(session({ offer: OFFER, windows: 2 })), true);
});

test("a context equally full after another turn gives no second hint", () => {
  const hints = new Hints(Date.parse("2026-11-20T09:00:00.000Z"));
  const full = session({ offer: OFFER, windows: 1 });
  const duringTheTurn = session({ offer: null, windows: 1 });

  assert.deepEqual(
    [full, duringTheTurn, full].map((each) => hints.isDue(each)),
    [true, false, false],
  );
});

test("a session idle before the window was opened gives no hint", () => {
  const offer = { tokens: 9, tokensSource: "reported", trigger: 5, target: 4, window: 10 };
  const full = session({ offer: { ...offer, windowSource: "advertised" } });

  assert.equal(new Hints(Date.parse("2026-11-20T10:00:01.000Z")).isDue(full), false);
});
