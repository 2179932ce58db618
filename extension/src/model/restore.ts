/** Restores in words: the two ways to go on, figures, and rows to choose from. */

import type { PackItem, RestoreEntry, SessionSummary } from "../protocol.ts";
import { counted, cut, dotted, harmless, iconless, plain, subject } from "./text.ts";

export type Mode = "soft" | "hard";

/** How somebody wants to go on; `budget` null is that of the settings. */
export interface Wish {
  readonly mode: Mode;
  readonly budget: number | null;
  readonly window: number;
  readonly reason: string;
}

/** How many of the user's last messages a pack may hold. */
export const MOST_MESSAGES = 5;

/** Read a mode; continuity first where it is none. */
export function modeOf(value: unknown): Mode {
  return value === "hard" ? "hard" : "soft";
}

/** Read a wish as it came from a page, or out of what the editor kept of one. */
export function wishOf(value: unknown): Wish {
  const { mode, budget, window, reason } = Object(value) as Record<string, unknown>;
  const whole = (some: unknown) => (Number.isSafeInteger(some) ? Math.max(0, Number(some)) : null);
  return {
    mode: modeOf(mode),
    budget: whole(budget),
    window: Math.min(whole(window) ?? 0, MOST_MESSAGES),
    reason: typeof reason === "string" ? cut(plain(reason), 160) : "",
  };
}

/** What the two ways are called, everywhere. */
export function modeLabel(mode: string): string {
  return mode === "hard" ? "Reset context for performance" : "Continue with context";
}

/** What each of them does, in a sentence. */
export function modeAbout(mode: Mode): string {
  return mode === "hard"
    ? "The branch begins with a fresh context and a short pack of what was recorded; the conversation stays behind in the source."
    : "The branch takes the conversation up to the marker along; the context stays as full as it was there.";
}

/** The name that a marker goes by. */
export function nameOf(label: string, checkpointId: string): string {
  return cut(plain(label), 80) || plain(checkpointId);
}

/** The one quiet notice after a restore, made of what the server says. */
export function notice(done: { readonly headline: string; readonly carried: string }): string {
  return harmless(`${done.headline} ${done.carried}`);
}

/** A size: `87,856 of 258,400 tokens (34%)`. */
export function sizeText(tokens: number | null, window: number | null): string {
  if (tokens === null) {
    return "not known";
  }
  const shown = tokens.toLocaleString("en-US");
  if (!window) {
    return counted(tokens, "1 token", `${shown} tokens`);
  }
  const share = Math.round((tokens * 100) / window);
  const percent = tokens > 0 && share === 0 ? "less than 1%" : `${share}%`;
  return `${shown} of ${window.toLocaleString("en-US")} tokens (${percent})`;
}

/** How much of the window is in use, 0 to 1; null where that is not known. */
export function shareOf(tokens: number | null, window: number | null): number | null {
  return tokens === null || !window ? null : Math.min(1, Math.max(0, tokens / window));
}

/** What a part of a pack is called. */
export function partName(part: string): string {
  const names: Record<string, string> = {
    notice: "Notice and lineage",
    mode: "Mode and reason",
    notes: "Notes",
    files: "Files",
    pinned: "Pinned",
    window: "Last messages",
  };
  return names[part] ?? part;
}

/** What an item of a pack is called: a note by its kind, all else by its own name. */
export function itemName({ part, id }: PackItem): string {
  if (part !== "notes") {
    return id;
  }
  const [, kind, own] = /^(task|step|decision|fact)(?::(.*))?$/s.exec(id) ?? [];
  switch (kind) {
    case "task":
      return "The task";
    case "step":
      return `Step ${own ?? ""}`;
    case "decision":
      return `Decision ${own ?? ""}`;
    case "fact":
      return `Fact ${own ?? ""}`;
    default:
      return id;
  }
}

/** A row of a list to choose from. */
export interface Choice {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly operationId: string;
}

/** Restores to choose from, the newest first. */
export function restoreChoices(
  restores: readonly RestoreEntry[],
  time: (stamp: string) => string,
): Choice[] {
  return restores.toReversed().map((each) => ({
    label: iconless(nameOf(each.label, each.checkpointId)),
    description: time(each.restoredAt),
    detail: iconless(
      dotted(
        modeLabel(each.mode),
        each.branchAvailable ? "" : "the branch is gone",
        each.sourceAvailable ? "" : "the source is gone",
      ),
    ),
    operationId: each.operationId,
  }));
}

/** The restore of a marker that was done since a moment, in milliseconds; none was if undefined. */
export function doneSince(
  restores: readonly RestoreEntry[],
  checkpointId: string,
  since: number,
): RestoreEntry | undefined {
  return restores.findLast(
    (each) => each.checkpointId === checkpointId && Date.parse(each.restoredAt) >= since,
  );
}

/** What a session is called where it may be gone. */
export function sessionName(session: SessionSummary | null, id: string): string {
  return session === null ? plain(id) : cut(subject(session), 80);
}
