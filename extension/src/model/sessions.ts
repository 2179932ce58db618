/** The rows of sessions, filters, and the choice of the session to follow. */

import type { SessionList, SessionSummary, SessionsParams } from "../protocol.ts";
import { madeWords } from "./branches.ts";
import {
  type Appearance,
  age,
  cut,
  dotted,
  listed,
  meter,
  percent,
  plain,
  subject,
} from "./text.ts";

/** A row for a session; `place` is its folder's name, if that is to be shown. */
export function sessionRow(session: SessionSummary, now: number, place = ""): Appearance {
  const about = subject(session);
  const marks = [
    session.live ? "running" : "",
    isBranch(session) ? "branch" : "",
    session.continuedBy === null ? "" : "continued",
    session.suspectFacts > 0 ? `${session.suspectFacts} suspect` : "",
  ];
  const since = age(session.updatedAt, now);
  const model = plain(session.model ?? "");
  const share = percent(session);
  return {
    // Short, so that the description is visible; the tooltip has the whole text.
    label: cut(about, 40),
    description: dotted(...marks, plain(place), since, model, meter(session)),
    tooltip: sessionFacts(session).join("\n"),
    spoken: listed(
      about,
      ...marks,
      session.parentSession === null ? "" : "subagent",
      session.archived ? "archived" : "",
      plain(place),
      since,
      model,
      share === null ? "" : `context ${share} percent`,
    ),
    ...sessionIcon(session),
  };
}

function sessionIcon(session: SessionSummary): Pick<Appearance, "icon" | "colour"> {
  if (session.live) {
    return { icon: "circle-filled", colour: "charts.green" };
  }
  if (session.suspectFacts > 0) {
    return { icon: "warning", colour: "list.warningForeground" };
  }
  if (session.archived) {
    return { icon: "archive", colour: null };
  }
  if (session.parentSession !== null) {
    return { icon: "type-hierarchy-sub", colour: null };
  }
  const own = session.madeBy === "import" ? "package" : "comment";
  return { icon: isBranch(session) ? "git-branch" : own, colour: null };
}

/** Whether it was made from another session; a subagent is part of its parent. */
export function isBranch(session: SessionSummary): boolean {
  return session.forkedFrom !== null && session.parentSession === null;
}

export function hasBelow(session: SessionSummary): boolean {
  const { markers, branches, compactions } = session;
  return markers > 0 || branches > 0 || compactions > 0 || isBranch(session);
}

/** The context value of its row, for the menu conditions in package.json. */
export function standsFor(session: SessionSummary): string {
  const words = [
    session.archived ? "archivedSession" : "session",
    session.madeBy === null ? "" : "made",
    isBranch(session) ? "branch" : "",
    session.branches > 0 ? "source" : "",
  ];
  return words.filter((word) => word !== "").join(" ");
}

/** The badge at the right edge of a row: at most two characters. */
export interface Badge {
  readonly text: string;
  readonly alert: boolean;
}

/** The context meter as a badge; an alert if a compaction is near or facts are suspect. */
export function badgeOf(session: SessionSummary): Badge {
  const share = percent(session) ?? 0;
  const text = share < 1 ? "" : String(Math.min(99, share));
  return { text, alert: session.nearlyFull || session.suspectFacts > 0 };
}

function sessionFacts(session: SessionSummary): string[] {
  const [title, task] = [session.title, session.task].map((text) => cut(plain(text ?? ""), 160));
  const tokens = session.contextTokens;
  const source = session.contextTokensSource === "estimated" ? "estimated" : "as Codex reported";
  const facts: [string, string | undefined][] = [
    ["Title", title === task ? "" : title],
    ["Task", task],
    ["Folder", plain(session.cwd ?? "")],
    ["Session", plain(session.sessionId)],
    ["Made", session.madeBy === null ? "" : madeWords(session.madeBy, null)],
    ["Model", plain(session.model ?? "")],
    [
      "Context",
      tokens === null ? "" : `${tokens} of ${session.contextWindow ?? "?"} tokens (${source})`,
    ],
    ["Turns", String(session.turns)],
    ["Compactions", String(session.compactions)],
    ["Markers", session.markers === 0 ? "" : String(session.markers)],
    ["Branches", session.branches === 0 ? "" : String(session.branches)],
    ["Suspect facts", session.suspectFacts === 0 ? "" : String(session.suspectFacts)],
    ["Last record", plain(session.updatedAt).replace(/^(.{10})T(.{5}).*Z$/, "$1 $2 UTC")],
    ["Codex", plain(session.cliVersion ?? "")],
  ];
  return facts.filter(([, value]) => value).map(([name, value]) => `${name}: ${value}`);
}

/** Put subagents under their parents; without the parent they are at the top. */
export function family(sessions: readonly SessionSummary[]) {
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  const children = new Map<string, SessionSummary[]>();
  const roots: SessionSummary[] = [];
  for (const session of sessions) {
    const parent = session.parentSession;
    if (parent === null || !byId.has(parent) || isOwnAncestor(session, byId)) {
      roots.push(session);
    } else {
      const siblings = children.get(parent) ?? [];
      siblings.push(session);
      children.set(parent, siblings);
    }
  }
  return { roots, children };
}

/** Without this check a circle of parents would vanish from the tree. */
function isOwnAncestor(
  session: SessionSummary,
  byId: ReadonlyMap<string, SessionSummary>,
): boolean {
  const seen = new Set<string>();
  let next = session.parentSession;
  while (next !== null && !seen.has(next)) {
    if (next === session.sessionId) {
      return true;
    }
    seen.add(next);
    next = byId.get(next)?.parentSession ?? null;
  }
  return false;
}

/** The newest running session that is no subagent. */
export function runningOf(sessions: readonly SessionSummary[]): SessionSummary | null {
  return sessions.find((each) => each.live && each.parentSession === null) ?? null;
}

/** The session to follow: the running one, else the newest. */
export function followedOf(sessions: readonly SessionSummary[]): SessionSummary | null {
  return (
    runningOf(sessions) ??
    sessions.find((each) => each.parentSession === null) ??
    sessions[0] ??
    null
  );
}

/** Whether a session's id can be part of a command line. */
export function isPlainId(sessionId: string): boolean {
  return /^[A-Za-z0-9][\w-]*$/.test(sessionId);
}

export interface Filter {
  readonly search: string;
  readonly archived: boolean;
  readonly running: boolean;
  readonly suspect: boolean;
}

export const NO_FILTER: Filter = { search: "", archived: false, running: false, suspect: false };

export function isFiltered(filter: Filter): boolean {
  return filter.search !== "" || filter.archived || filter.running || filter.suspect;
}

export function filterText(filter: Filter): string {
  return dotted(
    filter.search === "" ? "" : `“${plain(filter.search)}”`,
    filter.running ? "running" : "",
    filter.suspect ? "suspect" : "",
    filter.archived ? "archived" : "",
  );
}

/** Whether a session passes the filters that the server does not know. */
export function isWanted(session: SessionSummary, filter: Filter): boolean {
  return (!filter.running || session.live) && (!filter.suspect || session.suspectFacts > 0);
}

export function sessionsParams(some: Partial<SessionsParams>): SessionsParams {
  const all = { archived: false, search: null, limit: null, cursor: null, workDoneToken: null };
  return { cwd: null, outside: [], ...all, ...some };
}

/** Request pages until `wanted` sessions pass `keep`; `more` tells whether there are further ones. */
export async function collect(
  ask: (cursor: string | null, limit: number) => Promise<SessionList>,
  wanted: number,
  keep: ((session: SessionSummary) => boolean) | null,
) {
  const sessions: SessionSummary[] = [];
  let cursor: string | null = null;
  do {
    const page: SessionList = await ask(cursor, keep === null ? wanted : Math.max(wanted, 500));
    sessions.push(...(keep === null ? page.items : page.items.filter(keep)));
    cursor = page.nextCursor;
  } while (cursor !== null && sessions.length < wanted);
  return { sessions: sessions.slice(0, wanted), more: cursor !== null || sessions.length > wanted };
}
