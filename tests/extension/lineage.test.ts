import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineageNode } from "../../extension/src/client/protocol.ts";
import { lineagePicture } from "../../extension/src/page/model/lineage.ts";

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
    undone: false,
    updatedAt: to,
    windows: [{ ...window, openedAt: at }],
  };
}

const START = Date.parse("2026-11-20T10:00:00Z");
const hour = (number: number) => `2026-11-20T${number}:00:00.000Z`;

const minutes = (number: number) => new Date(START + number * 60_000).toISOString();

const tree = (sessionId: string, nodes: readonly LineageNode[]) =>
  lineagePicture({ sessionId, root: "a", nodes, circles: [], omitted: 0 });

test("each session is a line from its beginning to its last record, on one axis", () => {
  const { rows, began, ended } = tree("b", [
    node("a", null, hour(10), hour(14)),
    node("b", "a", hour(12), hour(18)),
  ]);

  const [a, b] = rows;
  assert.ok(a !== undefined && b !== undefined);
  assert.deepEqual([a.from, b.to, b.parent], [0, 1, 0]);
  assert.ok(a.from < b.from && b.from < a.to && a.to < b.to);
  assert.deepEqual([began, ended], [hour(10), hour(18)]);
  assert.deepEqual(
    rows.map(({ name, state }) => [name, state]),
    [
      ["About a", ""],
      ["About b", "this session"],
    ],
  );
});

test("events within a minute remain visible beside a pause of days", () => {
  const { rows } = tree("a", [
    node("a", null, minutes(0), minutes(1)),
    node("b", "a", minutes(10_000), minutes(10_001)),
  ]);

  assert.ok(rows.every(({ from, to }) => to - from > 0.05));
});

test("the source of a pulled branch is in the remote, where it is not here", () => {
  const source = { ...node("a", null, hour(10), hour(14)), available: false };
  const branch = node("b", "a", hour(12), hour(18));
  const link = branch.link && { ...branch.link, kind: "pull" };

  const { rows } = tree("b", [source, { ...branch, link }]);

  assert.deepEqual(
    rows.map(({ state, made }) => [state, made]),
    [
      ["in the remote", "the original session"],
      ["this session", "pulled"],
    ],
  );
});

test("a branch shows how it was made, and where it left its source", () => {
  const left = node("b", "a", hour(12), hour(18));
  const link = left.link && { ...left.link, afterTurn: 2 };
  const [, row] = tree("a", [node("a", null, hour(10), hour(14)), { ...left, link }]).rows;

  assert.deepEqual([row?.made, row?.source], ["forked after turn 2", "About a"]);
});

test("a missing session is drawn where its child left it, and does not open", () => {
  const gone = { ...node("a", null, hour(10), hour(10)), available: false, windows: [] };
  const nodes = [{ ...gone, updatedAt: null }, node("b", "a", hour(12), hour(13))];

  const [first, second] = tree("b", nodes).rows;

  assert.deepEqual([first?.opens, first?.isThere, first?.from], [false, false, 0]);
  assert.equal(first?.state, "no longer here");
  assert.equal(second?.parent, 0);
});

test("a large tree draws its first sessions and the shown one, and says so", () => {
  const nodes = Array.from({ length: 100 }, (_, at) => node(`s${at}`, null, hour(10), hour(11)));
  const asked = { sessionId: "s90", root: "s0", nodes, circles: [{}], omitted: 7 };

  const { rows, left } = lineagePicture(asked);

  assert.equal(rows.length, 61);
  assert.equal(rows.at(-1)?.isHere, true);
  assert.equal(left, "46 more sessions · 1 link leads in a circle");
});
