/**
 * Formats texts for people. All text from session files becomes one line without control
 * characters.
 */

import type { SessionSummary } from "../../client/protocol.ts";

/** The XML namespace of SVG; nothing is loaded from there. */
export const SVG = "http://www.w3.org/2000/svg";

/** A row's texts, on screen and for a screen reader. All are plain. */
export interface Appearance {
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly spoken: string;
  readonly icon: string;
  readonly colour: string | null;
  /** At most two characters at the end of the row, which stay when the editor cuts the label. */
  readonly badge?: string;
}

/** Make a row; the label fills in for missing texts. */
export function rowOf(some: Partial<Appearance> & Pick<Appearance, "label" | "icon">): Appearance {
  const { label, description = "" } = some;
  const spoken = listed(label, description);
  return { description, tooltip: label, spoken, colour: null, ...some };
}

// C0, DEL, C1, line separators, bidirectional marks, overrides and isolates, tag characters.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]+/gu;

/** Make a text one line without control characters; replace lone surrogates. */
export function plain(text: string): string {
  return text.replace(CONTROLS, " ").toWellFormed().trim();
}

// The same without line feeds and tabs.
const BUT_LINES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

/** Remove control characters from a text of several lines. */
export function shownText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(BUT_LINES, " ").toWellFormed();
}

/** Cut a text to at most `most` code points, with `…` at the end if it was longer. */
export function cut(text: string, most: number): string {
  const points = [...text];
  return points.length <= most ? text : `${points.slice(0, most - 1).join("")}…`;
}

/** Return the time since a timestamp in one short word; empty if the timestamp is invalid. */
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

/** Return the time since a timestamp as a phrase: `2m ago`, `now`. */
export function ago(stamp: string | null, now: number): string {
  const since = age(stamp, now);
  return since === "" || since === "now" ? since : `${since} ago`;
}

/**
 * Return the time of a session's last record, or of its file while that record is not read.
 *
 * A restored, compacted, imported or pulled session also has the time of its file, if that is
 * later: it was made then, of older records.
 */
export function changedAt({ updatedAt, fileTime, madeBy }: SessionSummary): string {
  const isMadeLater = madeBy !== null && updatedAt !== null && updatedAt < fileTime;
  return isMadeLater ? fileTime : (updatedAt ?? fileTime);
}

/** Return a session's newest folder, or its first one while the newest is not read; may be empty. */
export function folderOf({ cwd, startFolder }: SessionSummary): string {
  return cwd ?? startFolder ?? "";
}

/** Return the percentage of the context in use; null if unknown. */
export function percent({ contextTokens, contextWindow }: SessionSummary): number | null {
  return contextTokens === null || !contextWindow
    ? null
    : Math.floor((contextTokens * 100) / contextWindow);
}

/** Return the context meter: `34%`, `~34%` for an estimate, `over` above the window. */
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

/** Return the meter in two characters: `34`, `!` for a full context; empty if not known. */
export function shortMeter(session: SessionSummary): string {
  const share = percent(session);
  return share === null ? "" : share > 99 ? "!" : String(share);
}

/** Return the meter for a screen reader. */
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

/** A first request shorter than this says little alone: "continue", "hello". */
const TELLING = 12;

/**
 * Return a session's name: its title, else its first request, which never changes; a short first
 * request has the last one beside it.
 */
export function subject(session: SessionSummary): string {
  const [first, last] = [plain(session.title ?? ""), plain(session.task ?? "")];
  const isShort = !session.named && first !== "" && first.length < TELLING;
  const beside = isShort && last.length > first.length ? last : "";
  const nothing = session.live ? "No message yet" : "No message";
  const title = dotted(first, beside) || last || nothing;
  const origin = session.named || session.parentSession !== null ? "" : originOf(session);
  return `${origin}${title}`;
}

/** Describe a copy's origin: its first request is the same as its source's. */
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

/** Like `counted`, but empty for zero. */
export function countedIfAny(count: number, one: string, many: string): string {
  return count === 0 ? "" : counted(count, one, many);
}

export function tokenCount(tokens: number): string {
  return counted(tokens, "1 token", `${tokens.toLocaleString("en-US")} tokens`);
}

export function dotted(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

/** Join the non-empty parts by commas, for a screen reader. */
export function listed(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(", ");
}

/** Make a tab name from a text, without characters that are special in a path. */
export function fileName(text: string): string {
  const safe = text.replace(/[^\p{L}\p{N} _.-]+/gu, " ").replace(/\s+/g, " ");
  return cut(safe.trim(), 24).replace(/^\.+/, "") || "session";
}

export function folderName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

/** Escape `$(name)`, which a label would show as an icon. */
export function iconless(text: string): string {
  return text.replace(/\$\(/g, "\\$(");
}

/** Break `[text](target)`, which a notification would show as a link. */
export function harmless(text: string): string {
  return plain(text).replaceAll("](", "] (");
}

/** Format a timestamp in the reader's time zone; unchanged if it is invalid. */
export function localTime(stamp: string, language: string, timeZone?: string): string {
  const time = new Date(stamp);
  if (Number.isNaN(time.getTime())) {
    return stamp;
  }
  const zone = timeZone === undefined ? {} : { timeZone };
  const looks = { dateStyle: "medium", timeStyle: "medium", ...zone } as const;
  return new Intl.DateTimeFormat(language, looks).format(time);
}

/** Format a timestamp in UTC, to the second. */
export function utcTime(stamp: string): string {
  return stamp.replace(/^(.{10})T(.{8}).*Z$/, "$1 $2 UTC");
}
