/** The lineage of a session as lines on one time axis (PAG-3). */

import type { Lineage } from "../protocol.ts";
import { lineageChoices } from "./branches.ts";
import { plain } from "./text.ts";

/** A session of the tree; `from` and `to` are shares of the axis. */
export interface LineageRow {
  readonly id: string;
  readonly name: string;
  /** How it was made from the one above, and at which place of it. */
  readonly about: string;
  /** The row of the session that it came from; null for the first one. */
  readonly parent: number | null;
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly isHere: boolean;
  /** False for what cannot be shown. */
  readonly opens: boolean;
  readonly isThere: boolean;
}

/** The most rows of the picture; the one that is shown is always among them. */
const MOST_ROWS = 60;

export function lineageRows(lineage: Lineage): readonly LineageRow[] {
  const choices = lineageChoices(lineage);
  const begins = new Map<string, number>();
  const spans = lineage.nodes.map(({ id, link, windows, updatedAt }) => {
    const above = link === null ? Number.NaN : (begins.get(link.parent) ?? Number.NaN);
    const begin = firstTime(link?.at, windows[0]?.openedAt) ?? above;
    begins.set(id, begin);
    return [begin, Math.max(begin, firstTime(updatedAt) ?? begin)] as const;
  });
  const times = spans.flat().filter((time) => !Number.isNaN(time));
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const share = (time: number) =>
    Number.isNaN(time) || most === least ? 0 : (time - least) / (most - least);
  const shown = lineage.nodes
    .map((node, at) => ({ node, at }))
    .filter(({ node }, at) => at < MOST_ROWS || node.id === lineage.sessionId);
  const places = new Map(shown.map(({ node }, place) => [node.id, place]));
  return shown.map(({ node, at }) => {
    const choice = choices[at];
    const [begin = Number.NaN, end = Number.NaN] = spans[at] ?? [];
    return {
      id: node.id,
      name: plain(choice?.label.replace(/^[\s\u00a0└]+/u, "") ?? node.id),
      about: plain(choice?.detail ?? ""),
      parent: node.link === null ? null : (places.get(node.link.parent) ?? null),
      kind: node.link?.kind ?? "",
      from: share(begin),
      to: share(end),
      isHere: choice?.isHere ?? false,
      opens: choice?.opens ?? false,
      isThere: node.available,
    };
  });
}

function firstTime(...stamps: readonly (string | null | undefined)[]): number | null {
  const times = stamps.map((stamp) => Date.parse(stamp ?? ""));
  return times.find((time) => !Number.isNaN(time)) ?? null;
}
