/** Texts for people. Everything from a session file becomes one line without control characters. */

import type { SessionSummary } from "../../client/protocol.ts";

/** The name of the markup of pictures; nothing is loaded from there. */
export const SVG = "http://www.w3.org/2000/svg";

/** A row: what it shows and what a screen reader reads. All texts are plain. */
export interface Appearance {
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly spoken: string;
  readonly icon: string;
  readonly colour: string | null;
}

/** A row by what it shows; its label gives the texts that are missing. */
export function rowOf(some: Partial<Appearance> & Pick<Appearance, "label" | "icon">): Appearance {
  const { label, description = "" } = some;
  const spoken = listed(label, description);
  return { description, tooltip: label, spoken, colour: null, ...some };
}

// C0, DEL, C1, line separators, bidirectional marks, overrides and isolates, tag characters.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]+/gu;

/** One line without control characters; lone surrogates become the replacement character. */
export function plain(text: string): string {
  return text.replace(CONTROLS, " ").toWellFormed().trim();
}

// The same, but for line ends and tabs.
const BUT_LINES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

/** A text of several lines without control characters. */
export function shownText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(BUT_LINES, " ").toWellFormed();
}

/** At most `most` code points, with `…` at the end if something was cut. */
export function cut(text: string, most: number): string {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, most - 1).join("")}…`;
}

/** The time since a stamp in one short word; empty for an invalid stamp. */
export function age(stamp: string | null, now: number): string {
  const minutes = Math.floor((now - Date.parse(stamp ?? "")) / 60_000);
  if (Number.isNaN(minutes)) {
    return "";
  }
  if (minutes < 1) {
    return "now";
  }
  if (minutes < 60) {
    return `${minutes}m`;
  }
  if (minutes < 24 * 60) {
    return `${Math.floor(minutes / 60)}h`;
  }
  return `${Math.floor(minutes / (24 * 60))}d`;
}

/** The same as a phrase: `2m ago`, `now`. */
export function ago(stamp: string | null, now: number): string {
  const since = age(stamp, now);
  return since === "" || since === "now" ? since : `${since} ago`;
}

/** The percentage of the context in use; null if not known. */
export function percent({ contextTokens, contextWindow }: SessionSummary): number | null {
  return contextTokens === null || !contextWindow
    ? null
    : Math.floor((contextTokens * 100) / contextWindow);
}

/** The context meter: `34%`, `~34%` for an estimate, `over` above the window. */
export function meter(session: SessionSummary): string {
  const share = percent(session);
  if (share === null) {
    return "";
  }
  if (isOver(session)) {
    return "over";
  }
  return session.contextTokensSource === "estimated" ? `~${share}%` : `${share}%`;
}

/** The meter for a screen reader. */
export function spokenMeter(session: SessionSummary): string {
  const share = percent(session);
  if (share === null) {
    return "";
  }
  return isOver(session) ? "context over its limit" : `context ${share} percent`;
}

export function isOver({ contextTokens, contextWindow }: SessionSummary): boolean {
  return contextWindow !== null && (contextTokens ?? 0) > contextWindow;
}

/** The one name of a session: the given one, else its first request, which never changes. */
export function subject(session: SessionSummary): string {
  const title = plain(session.title ?? "") || plain(session.task ?? "") || "No message yet";
  const origin = session.named || session.parentSession !== null ? "" : originOf(session);
  return `${origin}${title}`;
}

/** A copy has the first request of its source, so its name says that it is one. */
function originOf({ madeBy, forkedFrom, undone }: SessionSummary): string {
  if (undone) {
    return "Uncompacted: ";
  }
  if (madeBy === "compaction") {
    return "Compacted: ";
  }
  return madeBy === null && forkedFrom !== null ? "Fork: " : "";
}

export function counted(count: number, one: string, many: string): string {
  return count === 1 ? one : many;
}

/** The same, but nothing for none. */
export function countedIfAny(count: number, one: string, many: string): string {
  return count === 0 ? "" : counted(count, one, many);
}

export function tokenCount(tokens: number): string {
  return counted(tokens, "1 token", `${tokens.toLocaleString("en-US")} tokens`);
}

export function dotted(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

/** The parts that are not empty, with pauses for a screen reader. */
export function listed(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}

/** A text as the name of a tab: without anything special in a path. */
export function fileName(text: string): string {
  const safe = text.replace(/[^\p{L}\p{N} _.-]+/gu, " ").replace(/\s+/g, " ");
  return cut(safe.trim(), 24).replace(/^\.+/, "") || "session";
}

export function folderName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

/** Escape `$(name)`, which would become an icon in a label. */
export function iconless(text: string): string {
  return text.replace(/\$\(/g, "\\$(");
}

/** Break `[text](target)`, which would become a link in a notification. */
export function harmless(text: string): string {
  return plain(text).replaceAll("](", "] (");
}

/** A stamp in the reader's time zone; unchanged if it is not valid. */
export function localTime(stamp: string, language: string, timeZone?: string): string {
  const time = new Date(stamp);
  if (Number.isNaN(time.getTime())) {
    return stamp;
  }
  const zone = timeZone === undefined ? {} : { timeZone };
  const looks = { dateStyle: "medium", timeStyle: "medium", ...zone } as const;
  return new Intl.DateTimeFormat(language, looks).format(time);
}

/** The same moment in UTC, to the second. */
export function utcTime(stamp: string): string {
  return stamp.replace(/^(.{10})T(.{8}).*Z$/, "$1 $2 UTC");
}
