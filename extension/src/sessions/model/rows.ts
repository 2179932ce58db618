/** The rows of sessions, their filters and grouping, and the choice of the session to follow. */

import type { SessionSummary, SessionsParams } from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  ago,
  changedAt,
  counted,
  cut,
  dotted,
  folderOf,
  isOver,
  listed,
  percent,
  plain,
  shortMeter,
  spokenMeter,
  subject,
} from "../../common/model/text.ts";
import { madeWords } from "./branches.ts";

/** Maximum label length; the editor cuts it to the width of the view. */
const LABEL = 160;

/**
 * The row of a session; below one with the same title it shows its last message instead, without
 * the first `shared` characters, which all of these have.
 * The editor cuts a row at its end, so the age comes first and the level of the context is a badge.
 */
export function sessionRow(
  session: SessionSummary,
  now: number,
  shared: number | null = null,
): Appearance {
  const about = subject(session);
  const since = age(changedAt(session), now);
  const states = statesOf(session);
  const last = shared === null ? "" : lastMessage(session);
  const name = last !== "" && shared ? `…${last.slice(shared)}` : last || about;
  return {
    label: `${since}  ${cut(name, LABEL)}`.trim(),
    description: "",
    tooltip: sessionFacts(session, states, now).join("\n"),
    spoken: listed(about, cut(last, 120), ...states, since, spokenMeter(session)),
    badge: shortMeter(session),
    ...sessionIcon(session),
  };
}

/** Return the last message of a session, empty if it is the title. */
function lastMessage({ title, task }: SessionSummary): string {
  return task === title ? "" : plain(task ?? "");
}

/** A shorter beginning is shown in each row: it costs less room than it says. */
const SHARED = 8;

/** Return how many characters the last messages of some sessions share, but for their last word. */
export function sharedStart(sessions: readonly SessionSummary[]): number {
  const [first = "", ...others] = sessions.map(lastMessage).filter((text) => text !== "");
  let shared = others.length === 0 ? 0 : first.length;
  for (const other of others) {
    while (!other.startsWith(first.slice(0, shared))) {
      shared -= 1;
    }
  }
  const words = /^(?:\S+ +)*(?=\S+ )/.exec(first.slice(0, shared))?.[0] ?? "";
  return words.length < SHARED ? 0 : words.length;
}

/** Describe the state of a session. */
export function statesOf(session: SessionSummary): string[] {
  const suspect = session.suspectFacts ?? 0;
  return [
    session.live ? "running" : "",
    session.archived ? "archived" : "",
    sourceWord(session),
    isBranch(session) || session.madeBy !== null ? madeWords(session.madeBy ?? "fork", null) : "",
    session.undone ? "compaction undone" : "",
    session.continuedBy === null ? "" : "continued in a compacted session",
    plain(session.refused ?? ""),
    suspect > 0 ? counted(suspect, "1 suspect fact", `${suspect} suspect facts`) : "",
  ].filter((word) => word !== "");
}

const BY_PEOPLE: readonly (string | null)[] = [null, "cli", "vscode"];

/** Name what started a session, unless it is a person in a terminal or an editor. */
function sourceWord({ source, parentSession }: SessionSummary): string {
  if (BY_PEOPLE.includes(source)) {
    return parentSession === null ? "" : "subagent";
  }
  return source === "unknown" ? "unknown source" : plain(source ?? "");
}

/** Check whether a person uses the session; lists show these first, and fold the others. */
export function isPersonal(session: SessionSummary): boolean {
  return !session.background && session.parentSession === null;
}

function sessionIcon(session: SessionSummary): Pick<Appearance, "icon" | "colour"> {
  if (session.live) {
    return { icon: "circle-filled", colour: "charts.green" };
  }
  if (session.refused !== null || (session.suspectFacts ?? 0) > 0) {
    return { icon: "warning", colour: "list.warningForeground" };
  }
  if (session.archived) {
    return { icon: "archive", colour: null };
  }
  if (session.parentSession !== null) {
    return { icon: "type-hierarchy-sub", colour: null };
  }
  if (session.background) {
    return { icon: "server-process", colour: null };
  }
  const own = session.madeBy === "import" ? "package" : meterIcon(session);
  const copy = session.madeBy === "compaction" ? "fold" : "git-branch";
  return { icon: isBranch(session) ? copy : own, colour: null };
}

/** The context in use as an icon, in eighths; a bubble if unknown. */
function meterIcon(session: SessionSummary): string {
  const share = percent(session);
  const eighths = Math.min(8, Math.round((share ?? 0) / 12.5));
  const isFull = session.nearlyFull || isOver(session);
  return share === null ? "comment" : `meter-${eighths}${isFull ? "-alert" : ""}`;
}

/** Check whether it was made from another session; a subagent is part of its parent. */
export function isBranch(session: SessionSummary): boolean {
  return session.forkedFrom !== null && session.parentSession === null;
}

/** Check whether a session has child rows; the compactions of an unread one are not known. */
export function hasBelow(session: SessionSummary): boolean {
  const { markers, branches, compactions } = session;
  return markers > 0 || branches > 0 || (compactions ?? 0) > 0 || isBranch(session);
}

/** The context value of its row, for the menu conditions in package.json. */
export function contextValueOf(session: SessionSummary): string {
  const words = [
    session.archived ? "archivedSession" : "session",
    session.madeBy === null ? "" : "made",
    session.refused === null ? "" : "refused",
    isBranch(session) ? "branch" : "",
    session.branches > 0 ? "source" : "",
    session.markers > 0 ? "marked" : "",
  ];
  return words.filter((word) => word !== "").join(" ");
}

function sessionFacts(session: SessionSummary, states: readonly string[], now: number): string[] {
  const [title, task] = [session.title, session.task].map((text) => cut(plain(text ?? ""), 160));
  const facts: [string, string | number | null | undefined][] = [
    ["Last message", title === task ? "" : task],
    ["State", states.join(", ")],
    ["Last change", ago(changedAt(session), now)],
    ["Context", contextWords(session)],
    ["Model", plain(session.model ?? "")],
    ["Folder", plain(folderOf(session))],
    ["Turns", session.turns],
    ["Compactions", session.compactions],
    ["Markers", session.markers],
    ["Branches", session.branches],
    ["Session", plain(session.sessionId)],
    ["Codex", plain(session.cliVersion ?? "")],
  ];
  const known = facts.filter(([, value]) => value).map(([name, value]) => `${name}: ${value}`);
  return [cut(subject(session), 160), ...known];
}

/** The context in words: `12,410 of 258,400 tokens (4%), as Codex reported`. */
export function contextWords(session: SessionSummary): string {
  const { contextTokens, contextWindow, contextTokensSource } = session;
  if (contextTokens === null) {
    return "";
  }
  const count = (tokens: number) => tokens.toLocaleString("en-US");
  const most = contextWindow === null ? "" : ` of ${count(contextWindow)}`;
  const share = isOver(session) ? "over its limit" : `${percent(session)}%`;
  const known = contextWindow === null ? "" : ` (${share})`;
  const source = contextTokensSource === "estimated" ? "estimated" : "as Codex reported";
  return `${count(contextTokens)}${most} tokens${known}, ${source}`;
}

/** An entry of the menu of the status bar: its label, icon and command. */
type Offer = readonly [label: string, icon: string, command: string];

/** The actions on a session in the menu of the status bar, without those that Codex refuses. */
export function actionsOf({ archived, refused }: SessionSummary): readonly Offer[] {
  const resume: Offer = ["Resume in Terminal", "terminal", "resumeSession"];
  const compact: Offer = ["Compact Session…", "fold", "compactSession"];
  return [
    ...(archived || refused !== null ? [] : [resume]),
    ...(archived ? [] : [compact]),
    ["Search Sessions…", "search", "searchSessions"],
    ["Add Note…", "add", "addNote"],
    ["Show Checkpoint", "target", "checkpoint.focus"],
  ];
}

/** Sort sessions by the time that their rows show; the server sorts them by their last record. */
export function newestFirst(sessions: readonly SessionSummary[]): readonly SessionSummary[] {
  return [...sessions].sort(
    (one, other) => Date.parse(changedAt(other)) - Date.parse(changedAt(one)),
  );
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Group sessions by day, then by week and by month, newest first. */
export function byTime(sessions: readonly SessionSummary[], now: number) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const month = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric" });
  return grouped(sessions, (session) => {
    const at = Date.parse(changedAt(session));
    const days = Math.ceil((midnight - at) / DAY_MS);
    if (days < 14) {
      return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 7 ? "This Week" : "Last Week";
    }
    return Number.isNaN(at) ? "Undated" : month.format(at);
  });
}

/** Group sessions by folder; the folder of the newest session comes first. */
export function byFolder(sessions: readonly SessionSummary[]) {
  // Windows also writes the same folder with a `\\?\` prefix.
  return grouped(sessions, (session) =>
    plain(folderOf(session).replace(/^\\\\\?\\(?=[A-Za-z]:)/, "")),
  );
}

function grouped(sessions: readonly SessionSummary[], nameOf: (each: SessionSummary) => string) {
  const groups = new Map<string, SessionSummary[]>();
  for (const session of sessions) {
    const name = nameOf(session);
    groups.set(name, [...(groups.get(name) ?? []), session]);
  }
  return groups;
}

/**
 * Split sessions into those to list and two folded groups: without a message, and background ones.
 */
export function partsOf(sessions: readonly SessionSummary[]) {
  const background = sessions.filter((each) => each.background);
  const ofPeople = sessions.filter((each) => !each.background);
  const withoutMessage = ofPeople.filter(hasNoMessage);
  return withoutMessage.length > 1
    ? { people: ofPeople.filter((each) => !hasNoMessage(each)), withoutMessage, background }
    : { people: ofPeople, withoutMessage: [], background };
}

/** Check whether Codex was started but got no message. */
function hasNoMessage({ title, task, live }: SessionSummary): boolean {
  return !live && plain(title ?? "") === "" && plain(task ?? "") === "";
}

/** This many sessions with the same first request were made by a program, and are folded. */
const ALIKE = 3;

/** Return the sessions to show, and the older ones folded below each for the same first request. */
export function folded(sessions: readonly SessionSummary[]) {
  const isPlain = (each: SessionSummary) => !each.named && !each.live && !isBranch(each);
  const alike = grouped(sessions.filter(isPlain), (each) => `${folderOf(each)}\n${subject(each)}`);
  const older = new Map<string, readonly SessionSummary[]>();
  for (const [first, ...rest] of alike.values()) {
    if (first !== undefined && rest.length + 1 >= ALIKE) {
      older.set(first.sessionId, rest);
    }
  }
  const hidden = new Set([...older.values()].flat());
  return { shown: sessions.filter((each) => !hidden.has(each)), older };
}

/**
 * Put subagents below their parents, compacted sessions below their continuations, and a session
 * whose compaction was undone below its source; without such a parent they are roots.
 */
export function family(sessions: readonly SessionSummary[]) {
  const byId = new Map(sessions.map((session) => [session.sessionId, session]));
  const children = new Map<string, SessionSummary[]>();
  const roots: SessionSummary[] = [];
  for (const session of sessions) {
    const parent = above(session);
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

/** Check for a cycle of parents, which would vanish from the tree. */
function isOwnAncestor(
  session: SessionSummary,
  byId: ReadonlyMap<string, SessionSummary>,
): boolean {
  const seen = new Set<string>();
  let next = above(session);
  while (next !== null && !seen.has(next)) {
    if (next === session.sessionId) {
      return true;
    }
    seen.add(next);
    const further = byId.get(next);
    next = further === undefined ? null : above(further);
  }
  return false;
}

function above({ parentSession, continuedBy, undone, live, forkedFrom }: SessionSummary) {
  return parentSession ?? continuedBy ?? (undone && !live ? forkedFrom : null);
}

/** Return the newest running session of a person. */
export function runningOf(sessions: readonly SessionSummary[]): SessionSummary | null {
  return sessions.find((each) => each.live && isPersonal(each)) ?? null;
}

/** Return the session to follow: the running one, else the newest. */
export function followedOf(sessions: readonly SessionSummary[]): SessionSummary | null {
  const newest = sessions.find((each) => isPersonal(each) && !each.undone);
  return runningOf(sessions) ?? newest ?? sessions[0] ?? null;
}

/** Check whether a session's id is safe in a command line. */
export function isPlainId(sessionId: string): boolean {
  return /^[A-Za-z0-9][\w-]*$/.test(sessionId);
}

/** Check whether a session is named by its file's path, since it is outside the Codex home. */
export function isPath(sessionId: string): boolean {
  return /[\\/]/.test(sessionId);
}

export interface Filter {
  readonly search: string;
  readonly archived: boolean;
}

export const NO_FILTER: Filter = { search: "", archived: false };

export function isFiltered(filter: Filter): boolean {
  return filter.search !== "" || filter.archived;
}

export function filterText(filter: Filter): string {
  return dotted(
    filter.search === "" ? "" : `“${plain(filter.search)}”`,
    filter.archived ? "archived" : "",
  );
}

export function sessionsParams(some: Partial<SessionsParams>): SessionsParams {
  const all = { archived: false, search: null, limit: null, cursor: null, workDoneToken: null };
  return { cwd: null, outside: [], read: false, early: false, ...all, ...some };
}
