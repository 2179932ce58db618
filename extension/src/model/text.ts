/**
 * Words for people, out of values. Whatever comes from a rollout is untrusted: it is shown as one
 * line of plain text, without anything that a terminal or a renderer could obey.
 */

import type { SessionSummary } from "../protocol.ts";

/** How one row looks and sounds; strings are plain text. */
export interface Appearance {
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  /** What a screen reader says. */
  readonly spoken: string;
  readonly icon: string;
  readonly colour: string | null;
}

// C0, DEL, C1, line separators, bidirectional marks, overrides and isolates, tag characters.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]+/gu;

/** One line without control characters; lone surrogates become the replacement character. */
export function plain(text: string): string {
  return text.replace(CONTROLS, " ").toWellFormed().trim();
}

/** At most so many code points, the last one `…` where something was cut. */
export function cut(text: string, most: number): string {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, most - 1).join("")}…`;
}

/** How long ago, in one short word; nothing for a time that cannot be read. */
export function age(stamp: string, now: number): string {
  const minutes = Math.floor((now - Date.parse(stamp)) / 60_000);
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
export function ago(stamp: string, now: number): string {
  const since = age(stamp, now);
  return since === "" || since === "now" ? since : `${since} ago`;
}

/** How full the context is, in percent; null where that is not known. */
export function percent(session: SessionSummary): number | null {
  if (session.contextTokens === null || !session.contextWindow) {
    return null;
  }
  return Math.floor((session.contextTokens * 100) / session.contextWindow);
}

/** The context meter: `34%`, with `~` where the figure is an estimate. */
export function meter(session: SessionSummary): string {
  const share = percent(session);
  if (share === null) {
    return "";
  }
  return session.contextTokensSource === "estimated" ? `~${share}%` : `${share}%`;
}

/**
 * What a session is about: the name that somebody gave it, else what was asked last.  In a branch in
 * which nothing was asked yet that is what its source was asked, so it goes by its marker.
 */
export function subject(session: SessionSummary): string {
  const [task, title] = [plain(session.task ?? ""), plain(session.title ?? "")];
  const isFresh = session.madeBy === "restore" && session.turns === 0;
  return (session.named || isFresh ? title || task : task || title) || "No message yet";
}

/** The right words for a count: those for one, or those for any other number. */
export function counted(count: number, one: string, many: string): string {
  return count === 1 ? one : many;
}

/** The parts that are not empty, separated by a middle dot. */
export function dotted(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

/** The parts that are not empty, as a screen reader should pause. */
export function listed(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}

/** The first words of a text as a name for a tab: nothing that a path could mean. */
export function fileName(text: string): string {
  const safe = text.replace(/[^\p{L}\p{N} _.-]+/gu, " ").replace(/\s+/g, " ");
  return cut(safe.trim(), 24).replace(/^\.+/, "") || "session";
}

/** What a folder is called, without the way to it. */
export function folderName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

/** A text for a label in which `$(name)` would become an icon: it stays as it is written. */
export function iconless(text: string): string {
  return text.replace(/\$\(/g, "\\$(");
}

/** A text for a notification, where `[text](target)` would become a link: it stays text. */
export function harmless(text: string): string {
  return plain(text).replaceAll("](", "] (");
}

/** A stamp in the reader's time zone; as it is written where it is no time. */
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
