import assert from "node:assert/strict";
import { test } from "node:test";
import type { Compacted, CompactionPiece } from "../../extension/src/client/protocol.ts";
import { historyText } from "../../extension/src/common/model/documents.ts";
import { figures, notice, windowRow } from "../../extension/src/compaction/model/texts.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");

function piece(place: number, some: Partial<CompactionPiece> = {}): CompactionPiece {
  const fixed = { kind: "message", author: "user", ref: `m${place}`, tokens: 40, cutTokens: 0 };
  return { place, at: null, fate: "kept", leftOut: [], ...fixed, ...some };
}

function compacted(some: Partial<Compacted> = {}): Compacted {
  const chain = { first: "w0", previous: null, current: "w0", number: 0 };
  return {
    compactionId: "c1",
    sessionId: "s2",
    sourceSessionId: "s1",
    into: "new",
    strategy: "checkpoint",
    determinism: "deterministic",
    placement: "manual",
    standingContext: "rebuilt",
    replacement: [],
    tokensBefore: 200_716,
    tokensBeforeSource: "reported",
    tokensBeside: 1200,
    tokensScale: 1000,
    remark: null,
    remarkText: null,
    tokensAfter: 2140,
    tokensAfterSource: "estimated",
    bound: 21_000,
    sizeText: "At most 21,000 tokens. Instructions and tools stay: about 1,200 tokens.",
    headline: "Compacted in place: [a](command:x).",
    tokensAdded: 900,
    tokensSentAgain: 0,
    digestTokens: 0,
    contextWindow: 258_400,
    kindsBefore: {},
    kindsAfter: {},
    kept: [piece(0), piece(4)],
    dropped: [piece(1, { kind: "function_call", author: "assistant", fate: "replaced" })],
    truncated: [],
    windows: { before: chain, after: { ...chain, current: "w1", number: 1 } },
    hooks: [],
    contents: null,
    resume: "codex resume s2",
    ...some,
  };
}

test("the figures of a compaction are in one line, with estimates marked", () => {
  assert.equal(figures(compacted()), "200,716 → ~2,140 tokens · 2 kept · 1 left out");
  assert.match(figures(compacted({ truncated: [piece(2)] })), / · 1 cut · /);
  assert.match(figures(compacted({ digestTokens: 1204 })), / · digest: 1,204 tokens$/);
});

test("a notice is the server's headline with its remark, and shows no link", () => {
  assert.equal(notice(compacted()), "Compacted in place: [a] (command:x).");
  const remarkText = "Not worth it: saves 522 tokens.";
  assert.equal(notice(compacted({ remarkText })), `${notice(compacted())} ${remarkText}`);
});

test("a window shows the reason for its start, and how full it was before and after", () => {
  const window = {
    number: 1,
    windowId: "w1",
    previousWindowId: "w0",
    openedAtSeq: 31,
    openedAt: "2026-11-20T11:00:00.000Z",
    trigger: "manual",
    strategy: "checkpoint",
    tokensBefore: 200_716,
    tokensAfter: null,
    received: null,
    compactionId: null,
    undone: false,
  };
  const row = windowRow(window, 12, NOW);
  assert.deepEqual(
    [row.label, row.description],
    ["Compacted by Codex, turn 12", "201k → ? · asked for · from the checkpoint · 1h"],
  );
  const none = { trigger: null, strategy: null, tokensBefore: null };
  const first = windowRow({ ...window, ...none, number: 0, previousWindowId: null }, null, NOW);
  assert.deepEqual([first.label, first.description], ["Start of the session", "1h"]);
  assert.equal(windowRow({ ...window, ...none }, null, NOW).label, "New window");
  assert.equal(windowRow({ ...window, compactionId: "c1" }, null, NOW).label, "Compacted");
  assert.match(first.tooltip, /Previous window ID: none/);
  const undone = windowRow({ ...window, compactionId: "c1", undone: true }, null, NOW);
  assert.match(undone.description, /\? · undone since · asked for/);
  const hostile = windowRow({ ...window, trigger: "a\u202eb", strategy: "c\nd" }, null, NOW);
  assert.equal(hostile.description, "201k → ? · a b · c d · 1h");
  assert.match(hostile.spoken, /a b, c d, Window 1$/);
});

test("a history is shown as plain data, and nothing in it has an effect", () => {
  const text = historyText([
    {
      type: "message",
      role: "user",
      content: [{ type: "input_text", text: "Fix\nit\u001b[2J\u{e0041}" }],
    },
    { type: "message", role: "user", content: [{ type: "input_image", image_url: "data:x" }] },
    { type: "function_call", name: "shell", arguments: "{}" },
    { type: "function_call_output", output: "x".repeat(30_000) },
    { type: "function_call_output", output: '{"output":"a\\nb","metadata":{}}' },
    { type: "function_call_output", output: '{"output": broken' },
    { type: "other" },
  ]);

  assert.match(text, /^──── message: user\nFix\nit \[2J \n\n──── message: user\n\[input_image\]\n/);
  assert.match(text, /──── function_call: shell\n\{\}\n/);
  assert.match(text, /x… \(10000 more characters\)\n/);
  assert.match(text, /──── function_call_output\na\nb\n\n/);
  assert.match(text, /──── function_call_output\n\{"output": broken\n/);
  assert.match(text, /──── other\n\{"type":"other"\}\n$/);
  assert.equal(historyText([]), "(nothing)\n");
});
