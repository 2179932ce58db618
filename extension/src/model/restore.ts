/** Restores in words: the two ways to go on, figures, and rows to choose from. */

import { MAX_LABEL, MAX_MESSAGES } from "../limits.ts";
import type {
  LineageNode,
  PackItem,
  PackLine,
  RestoreDetails,
  Restored,
  RestoreEntry,
  SessionSummary,
} from "../protocol.ts";
import { counted, cut, dotted, harmless, iconless, listed, plain, subject } from "./text.ts";

export type Mode = "soft" | "hard";

/** How somebody wants to go on; `budget` null is that of the settings. */
export interface RestoreOptions {
  readonly mode: Mode;
  readonly budget: number | null;
  readonly window: number;
  readonly reason: string;
}

/** Read a mode; continuity first where it is none. */
export function readMode(value: unknown): Mode {
  return value === "hard" ? "hard" : "soft";
}

/** Read options as they came from a page, or as the editor kept them. */
export function readOptions(value: unknown): RestoreOptions {
  const { mode, budget, window, reason } = Object(value) as Record<string, unknown>;
  const whole = (some: unknown) => (Number.isSafeInteger(some) ? Math.max(0, Number(some)) : null);
  return {
    mode: readMode(mode),
    budget: whole(budget),
    window: Math.min(whole(window) ?? 0, MAX_MESSAGES),
    reason: typeof reason === "string" ? cut(plain(reason), MAX_LABEL) : "",
  };
}

/** What the two ways are called, everywhere. */
export function modeLabel(mode: string): string {
  return mode === "hard" ? "Reset context for performance" : "Continue with context";
}

export function modeAbout(mode: Mode): string {
  return mode === "hard"
    ? "The branch begins with a fresh context and a short pack of what was recorded; the conversation stays behind in the source."
    : "The branch takes the conversation up to the marker along; the context stays as full as it was there.";
}

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
  const names: Record<string, string> = { step: "Step", decision: "Decision", fact: "Fact" };
  const [, kind = "", own = ""] = /^(step|decision|fact)(?::(.*))?$/s.exec(id) ?? [];
  return /^task(:|$)/.test(id) ? "The task" : kind === "" ? id : `${names[kind]} ${own}`;
}

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

/** Where a budget ends a pack; lines before `lines` are in, the others are left out. */
export interface Cut {
  readonly lines: number;
  readonly tokens: number;
  readonly included: number;
  readonly deferred: number;
  readonly next: PackLine | null;
}

/** Find where a budget ends a pack. */
export function cutAt(lines: readonly PackLine[], budget: number): Cut {
  const outside = lines.findIndex(({ tokens }) => tokens > budget);
  const at = outside === -1 ? lines.length : outside;
  const items = lines.filter(isItem).length;
  const included = lines.slice(0, at).filter(isItem).length;
  return {
    lines: at,
    tokens: lines[at - 1]?.tokens ?? 0,
    included,
    deferred: items - included,
    next: lines.slice(at).find(isItem) ?? null,
  };
}

/** The smallest budget that holds everything. */
export function costOf(lines: readonly PackLine[]): number {
  return lines.at(-1)?.tokens ?? 0;
}

/** The smallest budget that holds one item more. */
export function oneMore(lines: readonly PackLine[], budget: number): number {
  return cutAt(lines, budget).next?.tokens ?? budget;
}

/** The smallest budget that holds all but the last item that is in now. */
export function oneLess(lines: readonly PackLine[], budget: number): number {
  const held = lines.slice(0, cutAt(lines, budget).lines).filter(isItem);
  return held.at(-2)?.tokens ?? 0;
}

/** The outcome of a budget in a sentence or two, also for a screen reader. */
export function cutText(cut: Cut, budget: number): string {
  const all = cut.included + cut.deferred;
  const count = (tokens: number) => tokens.toLocaleString("en-US");
  const held = count(cut.tokens);
  const fits = `Items in the pack: ${cut.included} of ${all}, for ${held} tokens.`;
  if (cut.next === null) {
    return `${fits} ${"Nothing is left out."}`;
  }
  const more = cut.next.tokens - budget;
  const enough = counted(
    more,
    "1 token more lets the next one in.",
    `${count(more)} tokens more let the next one in.`,
  );
  return `${fits} ${enough}`;
}

export function sliderText(cut: Cut, budget: number): string {
  const all = cut.included + cut.deferred;
  return listed(
    counted(budget, "1 token", `${budget} tokens`),
    counted(all, `${cut.included} of 1 item`, `${cut.included} of ${all} items`),
  );
}

function isItem({ id }: PackLine): boolean {
  return id !== null;
}

/** A restore as it would be. */
export interface Preview {
  readonly kind: "preview";
  readonly sessionId: string;
  readonly checkpointId: string;
  /** The options that this answers. */
  readonly options: RestoreOptions;
  readonly would: Restored;
  readonly source: string;
  /** The number of the marker's turn, where the session still has it. */
  readonly turn: number | null;
}

/** A restore as it was. */
export interface Details {
  readonly kind: "details";
  readonly details: RestoreDetails;
  readonly events: readonly Readonly<Record<string, unknown>>[];
  readonly lineage: readonly LineageNode[];
  /** The state at the turn, where it can still be told. */
  readonly state: unknown;
}

/** Something did not work; `again` says whether asking once more may help. */
export interface Trouble {
  readonly kind: "trouble";
  readonly sentence: string;
  readonly again: boolean;
}

export type ToPage = Preview | Details | Trouble;

export type FromPage =
  /** It is drawn and can be sent something. */
  | { readonly kind: "ready" }
  /** What did not work may work now. */
  | { readonly kind: "again" }
  /** What a person chose, for the next time that the page is drawn. */
  | { readonly kind: "options"; readonly options: RestoreOptions }
  /** What would come of other options? */
  | { readonly kind: "preview"; readonly options: RestoreOptions }
  | { readonly kind: "restore"; readonly options: RestoreOptions }
  | { readonly kind: "cancel" }
  | { readonly kind: "goTo"; readonly sessionId: string }
  | { readonly kind: "resume" }
  | { readonly kind: "compare" }
  /** Open the preview of another restore from the same marker. */
  | { readonly kind: "another"; readonly mode: Mode };

/** Read what a page says; null for what none of ours would say. */
export function fromPage(value: unknown): FromPage | null {
  const { kind, options, sessionId, mode } = Object(value) as Record<string, unknown>;
  switch (kind) {
    case "ready":
    case "again":
    case "cancel":
    case "resume":
    case "compare":
      return { kind };
    case "options":
    case "preview":
    case "restore":
      return { kind, options: readOptions(options) };
    case "goTo":
      return typeof sessionId === "string" ? { kind, sessionId } : null;
    case "another":
      return { kind, mode: readMode(mode) };
    default:
      return null;
  }
}

/** What the editor keeps of a preview while its window is reloaded. */
export interface PreviewState {
  readonly sessionId: string;
  readonly checkpointId: string;
  readonly options: RestoreOptions;
}

export interface DetailsState {
  readonly operationId: string;
  /** The sections that a person opened or folded. */
  readonly folds: Readonly<Record<string, boolean>>;
}

export function previewState(value: unknown): PreviewState | null {
  const { sessionId, checkpointId, options } = Object(value) as Record<string, unknown>;
  return typeof sessionId === "string" && typeof checkpointId === "string"
    ? { sessionId, checkpointId, options: readOptions(options) }
    : null;
}

export function detailsState(value: unknown): DetailsState | null {
  const { operationId, folds } = Object(value) as Record<string, unknown>;
  if (typeof operationId !== "string") {
    return null;
  }
  const known = Object.entries(Object(folds)).filter(([, open]) => typeof open === "boolean");
  return { operationId, folds: Object.fromEntries(known) as Record<string, boolean> };
}
