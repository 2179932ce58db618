import assert from "node:assert/strict";
import { test } from "node:test";
import type { SearchHit, SessionHits } from "../../extension/src/client/protocol.ts";
import {
  groupRow,
  type HitNode,
  hitRow,
  hitRows,
  moreHitsLabel,
  neighbour,
  remembered,
  type SearchState,
  searchText,
  spansOf,
} from "../../extension/src/search/model/rows.ts";
import { session as summary } from "./values.ts";

const NOW = Date.parse("2026-11-20T12:00:00.000Z");
const TIME = "2026-11-20T10:00:00.000Z";

function hit(some: Partial<SearchHit> = {}): SearchHit {
  const place = { turn: 3, turnId: "t3", seq: 12, at: TIME };
  return { ...place, kind: "user", line: "a line", ...some };
}

function group(sessionId: string, hits: number, count = hits): SessionHits {
  const session = summary({ sessionId, title: "Fix it", cwd: "/home/ana/shop", updatedAt: TIME });
  return { session, count, hits: Array.from({ length: hits }, () => hit()) };
}

test("a session says how many hits it has, how old it is, and where it was", () => {
  const { description, spoken } = groupRow(group("a", 2, 12), NOW);
  assert.equal(description, "12 hits · 2h · shop");
  assert.equal(spoken, "Fix it · What is 39 * 40?, 12 hits, 2h, shop, context 4 percent");
  const { session, ...one } = group("a", 1);
  const running = groupRow({ ...one, session: { ...session, live: true } }, NOW);
  assert.equal(
    running.spoken,
    "Fix it · What is 39 * 40?, 1 hit, running, 2h, shop, context 4 percent",
  );
  assert.match(groupRow(group("a", 2, 1_004), NOW).description, /^1,000\+ hits · /);
});

test("a session with a last record that is not read has the time of its file", () => {
  const unread = { updatedAt: null, cwd: null, fileTime: TIME, startFolder: "/home/ana/shop" };
  const { count, hits } = group("a", 1);
  const row = groupRow({ count, hits, session: summary({ title: "Fix it", ...unread }) }, NOW);
  assert.equal(row.description, "1 hit · 2h · shop");
});

test("a hit begins shortly before its first match, with each match highlighted", () => {
  const long = `${"x".repeat(90)} Needle here, and a needle there`;
  const { row, highlights } = hitRow(hit({ line: long }), "needle", NOW);

  assert.equal(row.label, `…${"x".repeat(25)} Needle here, and a needle there`);
  const marked = highlights.map(([start, end]) => row.label.slice(start, end));
  assert.deepEqual(marked, ["Needle", "needle"]);
  assert.equal(row.description, "turn 3");
  assert.equal(row.tooltip, `${long}\nrequest · turn 3 · 2h`);
  assert.equal(row.spoken, `${long}, request, turn 3`);
});

test("text of a session stays plain", () => {
  const { row } = hitRow(hit({ line: "\u202e$(b)\u0007 [a](command:b)", turn: null }), "b", NOW);
  assert.equal(row.label, "$(b)  [a](command:b)");
  assert.equal(row.description, "");
});

test("case counts where the text has a capital, and letters beyond ASCII match as they are", () => {
  assert.deepEqual(spansOf("Ab ab", "ab"), [
    [0, 2],
    [3, 5],
  ]);
  assert.deepEqual(spansOf("Ab ab", "Ab"), [[0, 2]]);
  assert.deepEqual(spansOf("ÉTÉ été", "été"), [[4, 7]]);
  assert.deepEqual(spansOf("aaa", "aa"), [[0, 2]]);
  assert.deepEqual(spansOf("any", ""), []);
});

test("a session with more hits than are shown offers the others", () => {
  assert.equal(hitRows(group("a", 2)).length, 2);
  const last = hitRows(group("a", 2, 12)).at(-1);
  assert.equal(last?.kind === "moreHits" && moreHitsLabel(last.group), "Show 10 more hits");
  assert.equal(moreHitsLabel(group("a", 2, 3)), "Show 1 more hit");
});

test("the next hit follows the chosen row, and the first one comes after the last", () => {
  const [one, two] = [group("a", 2), group("b", 1)];
  const hits = [one, two].flatMap(hitRows).filter((row): row is HitNode => row.kind === "hit");
  const named = (row: HitNode | null) => row && `${row.sessionId}${row.at}`;
  const steps = (from: HitNode | null) =>
    [1, -1].map((step) => named(neighbour(hits, from, step === 1 ? 1 : -1)));

  assert.deepEqual(steps(null), ["a0", "b0"]);
  assert.deepEqual(steps(hits[0] ?? null), ["a1", "b0"]);
  assert.deepEqual(steps(hits[1] ?? null), ["b0", "a0"]);
  assert.deepEqual(steps(hits[2] ?? null), ["a0", "a1"]);
  const second = { kind: "session", session: two.session, group: two } as const;
  assert.equal(named(neighbour(hits, second, 1)), "b0");
  assert.equal(named(neighbour(hits, second, -1)), "a1");
  assert.equal(neighbour([], null, 1), null);
});

test("a search shows its text, its hits so far, and the reason for an empty result", () => {
  const query = { text: "needle", kinds: [], session: null };
  const two = [group("a", 2, 12), group("b", 1)];
  const says = (groups: SessionHits[], state: SearchState, some = {}) =>
    searchText({ ...query, ...some }, groups, state);

  assert.equal(says([], "searching"), "“needle” · searching…");
  assert.equal(says(two, "searching"), "“needle” · 13 hits in 2 sessions, searching…");
  assert.equal(says(two, "stopped"), "“needle” · 13 hits in 2 sessions, stopped");
  assert.equal(says([], "stopped"), "“needle” · no hits, stopped");
  assert.equal(says(two, "limited"), "“needle” · 13 hits in 2 sessions, the newest");
  assert.equal(says([group("a", 1)], "whole"), "“needle” · 1 hit in 1 session");
  assert.equal(
    says([], "whole", { text: "Needle", kinds: ["user", "patch"] }),
    "“Needle” · requests, patches · no hits; case counts, as it has a capital",
  );
  const session = { sessionId: "a", name: "Fix it" };
  assert.equal(
    says([], "whole", { kinds: ["output"], session }),
    "“needle” · outputs · in “Fix it” · no hits",
  );
  assert.equal(says([group("a", 12)], "whole", { session }), "“needle” · in “Fix it” · 12 hits");
  assert.equal(says([], "nowhere"), "No sessions to search yet.");
  assert.equal(says([], "whole", { text: "A.md", kinds: ["file"] }), "“A.md” · no hits");
});

test("searches are remembered, the newest first, each once, and not all of them", () => {
  assert.deepEqual(remembered(["a", "b"], "b"), ["b", "a"]);
  const many = Array.from({ length: 40 }, (_, at) => `text ${at}`);
  assert.equal(remembered(many, "newest").length, 30);
});
