import assert from "node:assert/strict";
import { test } from "node:test";
import type { Offer, Window } from "../../extension/src/client/protocol.ts";
import {
  fullWords,
  Hints,
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

  assert.equal(lossWords(sealed), "2 kept, 2 unknown");
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
