import assert from "node:assert/strict";
import { test } from "node:test";
import { lineageRows } from "../../extension/src/model/lineage.ts";
import type { LineageNode } from "../../extension/src/protocol.ts";

function node(id: string, parent: string | null, at: string, to: string): LineageNode {
  const cut = { afterTurn: null, turnId: "t1", ordinalExclusive: null, byteOffset: null };
  const link = { kind: "fork", checkpointId: null, operationId: null, at, ...cut };
  const window = { number: 0, windowId: null, previousWindowId: null, openedAtSeq: 0 };
  return {
    id,
    depth: parent === null ? 0 : 1,
    link: parent === null ? null : { parent, ...link },
    title: `About ${id}`,
    available: true,
    archived: false,
    updatedAt: to,
    windows: [{ ...window, openedAt: at }],
  };
}

const hour = (number: number) => `2026-11-20T${number}:00:00.000Z`;

test("each session is a line from its beginning to its last record, on one axis", () => {
  const nodes = [node("a", null, hour(10), hour(14)), node("b", "a", hour(12), hour(18))];

  const rows = lineageRows({ sessionId: "b", root: "a", nodes, circles: [], omitted: 0 });

  assert.deepEqual(
    rows.map(({ from, to, parent }) => [from, to, parent]),
    [
      [0, 0.5, null],
      [0.25, 1, 0],
    ],
  );
  assert.deepEqual(
    rows.map(({ name, isHere }) => [name, isHere]),
    [
      ["About a", false],
      ["About b", true],
    ],
  );
});

test("a session that is gone stands where its child left it, and does not open", () => {
  const gone = { ...node("a", null, hour(10), hour(10)), available: false, windows: [] };
  const nodes = [{ ...gone, updatedAt: null }, node("b", "a", hour(12), hour(13))];

  const [first, second] = lineageRows({
    ...{ sessionId: "b", root: "a", circles: [], omitted: 0 },
    nodes,
  });

  assert.deepEqual([first?.opens, first?.isThere, first?.from], [false, false, 0]);
  assert.equal(second?.parent, 0);
});

test("of a large tree the first sessions are drawn, and the one that is shown", () => {
  const many = Array.from({ length: 100 }, (_, at) => node(`s${at}`, null, hour(10), hour(11)));

  const rows = lineageRows({ sessionId: "s90", root: "s0", nodes: many, circles: [], omitted: 0 });

  assert.equal(rows.length, 61);
  assert.equal(rows.at(-1)?.isHere, true);
});
