/** The rows of a search: sessions and their hits, with counts, highlights and texts. */

import type { SearchHit, SessionHits, SessionSummary } from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  changedAt,
  counted,
  cut,
  dotted,
  folderName,
  folderOf,
  listed,
  plain,
  spokenMeter,
  subject,
} from "../../common/model/text.ts";
import { sessionRow, statesOf } from "../../sessions/model/rows.ts";

/** A search: a one-line text, the kinds of hits (none means all), and optionally one session. */
export interface Query {
  readonly text: string;
  readonly kinds: readonly string[];
  readonly session: { readonly sessionId: string; readonly name: string } | null;
}

/** A kind of hits: its icon, its singular name, and the name of its filter. */
interface Kind {
  readonly icon: string;
  readonly one: string;
  readonly many: string;
}

/** The kinds of hits by the server's names, in the order of the filter menu. */
export const KINDS: Readonly<Record<string, Kind>> = {
  user: { icon: "account", one: "request", many: "Requests" },
  assistant: { icon: "comment", one: "answer", many: "Answers" },
  command: { icon: "terminal", one: "command", many: "Commands" },
  output: { icon: "output", one: "output", many: "Outputs" },
  patch: { icon: "diff", one: "patch", many: "Patches" },
  error: { icon: "error", one: "error", many: "Errors" },
};

/** The kind that searches for turns that read or changed a file. */
export const FILE = "file";

const OTHER: Kind = { icon: "file", one: "", many: "Files" };

/** A row: a session, a hit, or a button for the hits above the limit. */
export type SearchNode =
  | GroupNode
  | HitNode
  | { readonly kind: "moreHits"; readonly group: SessionHits }
  | { readonly kind: "moreSessions" };

/** A session with its hits; menus treat it as a session row. */
export interface GroupNode {
  readonly kind: "session";
  readonly session: SessionSummary;
  readonly group: SessionHits;
}

/** A hit; `at` is its index within the session. */
export interface HitNode {
  readonly kind: "hit";
  readonly sessionId: string;
  readonly at: number;
  readonly hit: SearchHit;
}

/** The rows below a session. */
export function hitRows(group: SessionHits): readonly SearchNode[] {
  const { sessionId } = group.session;
  const hits = group.hits.map((hit, at): SearchNode => ({ kind: "hit", sessionId, at, hit }));
  return group.count > hits.length ? [...hits, { kind: "moreHits", group }] : hits;
}

/**
 * Return the hit after or before the chosen row; the first follows the last.
 * From a session row the next hit is the session's first; without a chosen row, the first or the
 * last of all.
 */
export function neighbour(
  hits: readonly HitNode[],
  chosen: SearchNode | null,
  step: 1 | -1,
): HitNode | null {
  let at = step === 1 ? 0 : hits.length - 1;
  if (chosen?.kind === "hit") {
    const isChosen = (each: HitNode) =>
      each.sessionId === chosen.sessionId && each.at === chosen.at;
    at = hits.findIndex(isChosen) + step;
  } else if (chosen?.kind === "session") {
    const { sessionId } = chosen.session;
    const first = hits.findIndex((each) => each.sessionId === sessionId);
    at = step === 1 ? first : first - 1;
  }
  return hits.at(at % hits.length) ?? null;
}

/** The start and the end (exclusive) of a match, in UTF-16 code units. */
export type Span = [start: number, end: number];

/** Find all matches; ASCII letters match in either case unless `wanted` has a capital letter. */
export function spansOf(text: string, wanted: string): Span[] {
  const folded = /\p{Uppercase}/u.test(wanted) ? text : text.replace(/[A-Z]/g, lower);
  const spans: Span[] = [];
  for (let at = folded.indexOf(wanted); at >= 0 && wanted !== ""; ) {
    spans.push([at, at + wanted.length]);
    at = folded.indexOf(wanted, at + wanted.length);
  }
  return spans;
}

function lower(letter: string): string {
  return letter.toLowerCase();
}

/** Maximum characters before the first match: a narrow view cuts the end of the line. */
const BEFORE = 26;
/** No view shows more characters than this. */
const MOST = 250;
/** Maximum length of a name, to leave space for the text beside it. */
const NAME = 60;

/** A hit as a row, with the matches in its label. */
export function hitRow(hit: SearchHit, text: string, now: number) {
  const { icon, one } = KINDS[hit.kind] ?? OTHER;
  const line = plain(hit.line);
  const [first] = spansOf(line, text);
  const start = first === undefined || first[0] <= BEFORE ? 0 : first[0] - BEFORE;
  const label = cut(start === 0 ? line : `…${line.slice(start).trimStart()}`, MOST);
  const turn = hit.turn === null ? "" : `turn ${hit.turn}`;
  const since = age(hit.at, now);
  const row: Appearance = {
    label: label.toWellFormed(),
    description: turn,
    tooltip: [line, dotted(one, turn, since)].filter((part) => part !== "").join("\n"),
    spoken: listed(line, one, turn),
    icon,
    colour: null,
  };
  return { row, highlights: spansOf(row.label, text) };
}

/** The row of a session above its hits. */
export function groupRow({ session, count }: SessionHits, now: number): Appearance {
  const row = sessionRow(session, now);
  const hits = hitCount(count);
  const since = age(changedAt(session), now);
  const folder = plain(folderName(folderOf(session)));
  return {
    ...row,
    label: cut(subject(session), NAME),
    description: dotted(hits, since, folder),
    tooltip: `${hits}\n${row.tooltip}`,
    spoken: listed(
      subject(session),
      hits,
      ...statesOf(session),
      since,
      folder,
      spokenMeter(session),
    ),
    badge: "",
  };
}

/** The server returns at most this many hits per session, the newest. */
const KEPT = 1_000;

function counts(count: number): string {
  return count < KEPT ? String(count) : `${KEPT.toLocaleString("en-US")}+`;
}

function hitCount(count: number): string {
  return counted(count, "1 hit", `${counts(count)} hits`);
}

/** The label of the row that loads a session's hits above the limit. */
export function moreHitsLabel({ count, hits }: SessionHits): string {
  const more = count - hits.length;
  return counted(more, "Show 1 more hit", `Show ${more} more hits`);
}

/** Whether a search is running, was stopped, reached its limit, is complete, or had no session. */
export type SearchState = "searching" | "stopped" | "limited" | "whole" | "nowhere";

/** Summarize a search in one line: its text and filters, and its results. */
export function searchText(
  query: Query,
  groups: readonly SessionHits[],
  state: SearchState,
): string {
  if (state === "nowhere") {
    return "No sessions to search yet.";
  }
  const { text, kinds, session } = query;
  const within = session === null ? "" : `in “${cut(plain(session.name), 40)}”`;
  return dotted(
    `“${cut(plain(text), 40)}”`,
    filterNames(kinds),
    within,
    found(query, groups, state),
  );
}

function found(query: Query, groups: readonly SessionHits[], state: SearchState): string {
  const hits = groups.reduce((sum, { count }) => sum + count, 0);
  const many = `${hits.toLocaleString("en-US")} hits`;
  const within = counted(groups.length, " in 1 session", ` in ${groups.length} sessions`);
  const some = `${counted(hits, "1 hit", many)}${query.session === null ? within : ""}`;
  const so = hits === 0 ? "no hits" : some;
  switch (state) {
    case "searching":
      return hits === 0 ? "searching…" : `${so}, searching…`;
    case "stopped":
      return `${so}, stopped`;
    case "limited":
      return `${so}, the newest`;
    default:
      return hits === 0 && doesCaseCount(query) ? `${so}; case counts, as it has a capital` : so;
  }
}

function doesCaseCount({ text, kinds }: Query): boolean {
  return /\p{Uppercase}/u.test(text) && !kinds.includes(FILE);
}

/** List the names of filters: `requests, answers`. */
function filterNames(kinds: readonly string[]): string {
  return listed(...kinds.map((kind) => KINDS[kind]?.many.toLowerCase() ?? ""));
}

/** The number of searches to remember. */
const REMEMBERED = 30;

/** Put a search in front of the recent ones, without duplicates. */
export function remembered(searches: readonly string[], text: string): string[] {
  return [text, ...searches.filter((each) => each !== text)].slice(0, REMEMBERED);
}

/** A single letter matches nearly everywhere. */
const LEAST = 2;

/** Check whether a text is long enough to search for. */
export function isEnough(text: string): boolean {
  return text.trim().length >= LEAST;
}
