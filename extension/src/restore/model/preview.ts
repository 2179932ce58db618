/** The options, texts, figures and messages of restore pages. */

import { DEFAULT_MESSAGES, MAX_DIGEST, MAX_LABEL, MAX_MESSAGES } from "../../client/limits.ts";
import type {
  PackItem,
  PackLine,
  Restored,
  RestoreEntry,
  SessionSummary,
} from "../../client/protocol.ts";
import { MODE_EFFECTS, MODES, PACK_ITEMS, PACK_PARTS } from "../../client/words.ts";
import {
  counted,
  cut,
  dotted,
  harmless,
  iconless,
  listed,
  plain,
  subject,
  tokenCount,
} from "../../common/model/text.ts";

export type Mode = "soft" | "hard";

/** The options of a restore; `budget` null means the configured budget. */
export interface RestoreOptions {
  readonly mode: Mode;
  readonly budget: number | null;
  readonly window: number;
  /** The token limit of the digest in the pack; 0 for no digest. */
  readonly digestTokens: number;
  readonly reason: string;
}

export function readMode(value: unknown): Mode {
  return value === "hard" ? "hard" : "soft";
}

/** Read options from a page's message or a saved state. */
export function readOptions(value: unknown): RestoreOptions {
  const { mode, budget, window, digestTokens, reason } = Object(value) as Record<string, unknown>;
  const whole = (some: unknown) => (Number.isSafeInteger(some) ? Math.max(0, Number(some)) : null);
  return {
    mode: readMode(mode),
    budget: whole(budget),
    window: Math.min(whole(window) ?? DEFAULT_MESSAGES, MAX_MESSAGES),
    digestTokens: Math.min(whole(digestTokens) ?? 0, MAX_DIGEST),
    reason: typeof reason === "string" ? cut(plain(reason), MAX_LABEL) : "",
  };
}

export function modeLabel(mode: string): string {
  return MODES[readMode(mode)];
}

export function modeAbout(mode: Mode): string {
  return MODE_EFFECTS[mode];
}

export function nameOf(label: string, checkpointId: string): string {
  return cut(plain(label), 80) || plain(checkpointId);
}

export function notice(done: { readonly headline: string; readonly carried: string }): string {
  return harmless(`${done.headline} ${done.carried}`);
}

/** Format a size: `87,856 of 258,400 tokens (34%)`. */
export function sizeText(tokens: number | null, window: number | null): string {
  if (tokens === null) {
    return "not known";
  }
  if (!window) {
    return tokenCount(tokens);
  }
  const shown = tokens.toLocaleString("en-US");
  const share = Math.floor((tokens * 100) / window); // rounded down, as in the session rows
  const percent = tokens > 0 && share === 0 ? "less than 1%" : `${share}%`;
  return `${shown} of ${window.toLocaleString("en-US")} tokens (${percent})`;
}

export function shareOf(tokens: number | null, window: number | null): number | null {
  return tokens === null || !window ? null : Math.min(1, Math.max(0, tokens / window));
}

export function partName(part: string): string {
  return (PACK_PARTS as Readonly<Record<string, string>>)[part] ?? part;
}

/** Name an item of a pack for people; a file and a pinned file go by their id. */
export function itemName({ part, id }: PackItem): string {
  if (part === "notes" && /^task(:|$)/.test(id)) {
    return "The task";
  }
  const [, kind = "", own = ""] = /^(\w+):(.*)$/s.exec(id) ?? [];
  const name = (PACK_ITEMS as Readonly<Record<string, string>>)[`${part}/${kind}`];
  return name === undefined ? id : `${name} ${own}`;
}

export function restoreChoices(restores: readonly RestoreEntry[], time: (stamp: string) => string) {
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

export function sessionName(session: SessionSummary | null, id: string): string {
  return session === null ? plain(id) : cut(subject(session), 80);
}

/** The result of a budget: the pack holds the first `lines` lines. */
export interface Cut {
  readonly lines: number;
  readonly tokens: number;
  readonly included: number;
  readonly deferred: number;
  readonly next: PackLine | null;
}

/** Cut a pack at its budget; `apart` counts omitted items that have no lines. */
export function cutAt(lines: readonly PackLine[], budget: number, apart = 0): Cut {
  const outside = lines.findIndex(({ tokens }) => tokens > budget);
  const at = outside === -1 ? lines.length : outside;
  const outer = lines.slice(at).filter(isItem);
  const left = itemsIn(outer);
  return {
    lines: at,
    tokens: lines[at - 1]?.tokens ?? 0,
    included: itemsIn(lines.filter(isItem)) - left,
    deferred: left + apart,
    next: outer[0] ?? null,
  };
}

/** Count the omitted items that have no lines, such as a digest that did not fit. */
export function leftApart({ lines, deferred }: Pick<Restored, "lines" | "deferred">): number {
  const named = new Set(lines.map(({ part, id }) => `${part} ${id}`));
  const isApart = (item: PackItem) => !named.has(`${item.part} ${item.id}`);
  return deferred.filter((item) => item.reason === "budget" && isApart(item)).length;
}

/** Count the items that the lines belong to; a pin and a digest have several lines. */
function itemsIn(lines: readonly PackLine[]): number {
  return new Set(lines.map(({ part, id }) => `${part} ${id}`)).size;
}

export function costOf(lines: readonly PackLine[]): number {
  return lines.at(-1)?.tokens ?? 0;
}

/** Describe the result of a budget, also for a screen reader. */
export function cutText(cut: Cut, budget: number): string {
  const all = cut.included + cut.deferred;
  const count = (tokens: number) => tokens.toLocaleString("en-US");
  const held = count(cut.tokens);
  const fits = `Items in the pack: ${cut.included} of ${all}, for ${held} tokens.`;
  if (cut.next === null) {
    return cut.deferred === 0 ? `${fits} All of them fit.` : fits;
  }
  const more = cut.next.tokens - budget;
  const [one, many] = ["1 more token adds", `${count(more)} more tokens add`];
  return `${fits} ${counted(more, one, many)} the next one.`;
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

export interface Preview {
  readonly kind: "preview";
  readonly sessionId: string;
  readonly checkpointId: string;
  /** The options of this preview. */
  readonly options: RestoreOptions;
  readonly would: Restored;
  readonly source: string;
  /** The turn number of the marker; null if the session no longer has that turn. */
  readonly turn: number | null;
}
