/** A state pack within a budget: what is in, what is left out, and what would come in next. */

import type { PackLine } from "../protocol.ts";
import { counted, listed } from "./text.ts";

/** Where a budget ends a pack; lines before `lines` are in, the others are left out. */
export interface Cut {
  readonly lines: number;
  /** What the lines that are in cost. */
  readonly tokens: number;
  readonly included: number;
  readonly deferred: number;
  /** The first item that is left out. */
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

/** What the slider says of itself. */
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
