/** Tests a session that was made from another one and has no turns yet. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Branch, Window } from "../../extension/src/client/protocol.ts";
import { fromPage } from "../../extension/src/common/model/pages.ts";
import { begunFrom } from "../../extension/src/page/model/begun.ts";
import { session } from "./values.ts";

const SOURCE: Branch = {
  ...{ sessionId: "old", kind: "compaction", mode: null, at: null, turnId: null },
  ...{ checkpointId: null, operationId: null, title: "Make it faster" },
  ...{ available: true, archived: false, undone: false },
};
const WINDOW: Window = {
  ...{ number: 1, windowId: "w", previousWindowId: null, openedAtSeq: 9, openedAt: null },
  ...{ trigger: "manual", strategy: "checkpoint", tokensBefore: 212_000, tokensAfter: 9_000 },
  ...{ received: null, compactionId: "c", undone: false },
};
const of = (source: Branch | null) => ({ sessionId: "new", source, items: [], nextCursor: null });

test("after a compaction the new level is shown beside the old one, with the source", () => {
  const made = session({ contextTokens: 9_500, contextTokensSource: "estimated" });

  assert.deepEqual(begunFrom(made, of(SOURCE), [WINDOW]), {
    ...{ sourceId: "old", source: "Make it faster", made: "Compacted" },
    ...{ before: 212_000, after: 9_500, isEstimate: true },
  });
  assert.equal(begunFrom(session({ contextTokens: null }), of(SOURCE), [WINDOW])?.after, 9_000);
});

test("a missing source has no name, and a restore has no earlier level", () => {
  const restored = { ...SOURCE, kind: "restore", mode: "hard", available: false };

  const begun = begunFrom(session({}), of(restored), [WINDOW]);

  assert.deepEqual(
    [begun?.made, begun?.source, begun?.before],
    ["Restored, context reset", "", null],
  );
  assert.equal(begunFrom(session({}), of(null), []), null);
});

test("a page asks for the plan of a turn", () => {
  assert.deepEqual(fromPage({ kind: "planAtTurn", turnId: "t1" }), {
    kind: "planAtTurn",
    turnId: "t1",
  });
  assert.equal(fromPage({ kind: "planAtTurn", turnId: 1 }), null);
});
