import assert from "node:assert/strict";
import { test } from "node:test";
import { searchCount, searchRows } from "../../extension/src/model/searching.ts";
import type { SearchHit } from "../../extension/src/protocol.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");

function hit(some: Partial<SearchHit> = {}): SearchHit {
  const session = { sessionId: "a", title: "Fix it", cwd: "/home/ana/shop" };
  const time = "2026-11-20T10:00:00.000Z";
  const place = { turn: 3, turnId: "t3", seq: 12, at: time, updatedAt: time };
  return { ...session, ...place, kind: "user", line: "a line", ...some };
}

test("a session stands once above its hits, also when they come in parts", () => {
  const first = searchRows([hit(), hit({ kind: "file" })], "line", null, NOW);
  const rest = searchRows([hit(), hit({ sessionId: "b", title: null })], "line", "a", NOW);

  assert.deepEqual(
    [...first, ...rest].map(({ kind, label }) => `${kind} ${label}`),
    [
      "session Fix it · shop · 2h ago",
      "hit a line",
      "hit a line",
      "hit a line",
      "session No message yet · shop · 2h ago",
      "hit a line",
    ],
  );
  const described = first.map((row) => (row.kind === "hit" ? row.description : ""));
  assert.deepEqual(described, ["", "turn 3 · you", "turn 3"]);
});

test("a long line is shown from shortly before the text on", () => {
  const [, row] = searchRows([hit({ line: `${"x".repeat(90)} Needle here` })], "needle", null, NOW);
  assert.equal(row?.label, `…${"x".repeat(19)} Needle here`);
});

test("texts of a session stay texts", () => {
  const rows = searchRows([hit({ title: "$(a)\u202e", line: "$(b)\u0007" })], "b", null, NOW);
  assert.deepEqual(
    rows.map(({ label }) => label),
    ["\\$(a) · shop · 2h ago", "\\$(b)"],
  );
});

test("the count says how many, in how many sessions, and whether there are more", () => {
  const count = (hits: SearchHit[], more = false) =>
    searchCount(searchRows(hits, "", null, NOW), more);
  assert.equal(count([]), "nothing found");
  assert.equal(count([hit()]), "1 hit in 1 session");
  assert.equal(count([hit(), hit(), hit({ sessionId: "b" })]), "3 hits in 2 sessions");
  assert.equal(count([hit(), hit()], true), "the first 2 hits in 1 session");
});
