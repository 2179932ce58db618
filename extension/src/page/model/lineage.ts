/** The lineage of a session as lines on a common time axis (PAG-3). */

import type { Lineage } from "../../client/protocol.ts";
import { countedIfAny, cut, dotted } from "../../common/model/text.ts";
import { madeWords, sessionState, titleOf, turnWords } from "../../sessions/model/branches.ts";

/** The lines, the ends of the axis, and a note on sessions that are not shown. */
export interface LineagePicture {
  readonly rows: readonly LineageRow[];
  readonly began: string | null;
  readonly ended: string | null;
  readonly left: string;
}

/** A session of the tree; `from` and `to` are fractions of the axis. */
export interface LineageRow {
  readonly id: string;
  readonly name: string;
  /** How it was made, and at which point of its source. */
  readonly made: string;
  readonly source: string;
  readonly at: string | null;
  readonly state: string;
  /** The row of its source; null for the first row. */
  readonly parent: number | null;
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly isHere: boolean;
  /** False if the session cannot be opened. */
  readonly opens: boolean;
  readonly isThere: boolean;
}

/** Maximum number of rows; the session itself is always among them. */
const MOST_ROWS = 60;

export function lineagePicture(lineage: Lineage): LineagePicture {
  const titles = new Map(lineage.nodes.map((node) => [node.id, titleOf(node.title, node.id)]));
  const pulledFrom = new Set(
    lineage.nodes.flatMap(({ link }) => (link?.kind === "pull" ? [link.parent] : [])),
  );
  const begins = new Map<string, number>();
  const spans = lineage.nodes.map(({ id, link, windows, updatedAt }) => {
    const above = link === null ? Number.NaN : (begins.get(link.parent) ?? Number.NaN);
    const begin = firstTime(link?.at, windows[0]?.openedAt) ?? above;
    begins.set(id, begin);
    return [begin, Math.max(begin, firstTime(updatedAt) ?? begin)] as const;
  });
  const axis = axisOf(spans.flat());
  const shown = lineage.nodes
    .map((node, at) => ({ node, at }))
    .filter(({ node }, at) => at < MOST_ROWS || node.id === lineage.sessionId);
  const places = new Map(shown.map(({ node }, place) => [node.id, place]));
  const rows = shown.map(({ node, at }) => {
    const { id, link, available } = node;
    const [begin = Number.NaN, end = Number.NaN] = spans[at] ?? [];
    const isHere = id === lineage.sessionId;
    return {
      id,
      name: cut(titles.get(id) ?? "", 48),
      made:
        link === null ? "the original session" : `${madeWords(link.kind, null)}${turnWords(link)}`,
      source: link === null ? "" : (titles.get(link.parent) ?? ""),
      at: link?.at ?? null,
      state: dotted(isHere ? "this session" : "", sessionState(node, pulledFrom.has(id))),
      parent: link === null ? null : (places.get(link.parent) ?? null),
      kind: link?.kind ?? "",
      from: axis.get(begin) ?? 0,
      to: axis.get(end) ?? 0,
      isHere,
      opens: available && link?.kind !== "revert",
      isThere: available,
    };
  });
  const [first, last] = [axis.keys().next().value, [...axis.keys()].at(-1)];
  const stamp = (time: number | undefined) =>
    time === undefined ? null : new Date(time).toISOString();
  return { rows, began: stamp(first), ended: stamp(last), left: leftWords(lineage, rows.length) };
}

/** The minimum distance between two times; a pause of `2 ** APART` minutes is as wide. */
const APART = 4;

/**
 * Map each time to its fraction of the axis, in order.
 * Times keep a minimum distance and long pauses are compressed: on a linear axis a busy minute
 * followed by an idle day would shrink to a point.
 */
function axisOf(times: readonly number[]): ReadonlyMap<number, number> {
  const known = [...new Set(times.filter((time) => !Number.isNaN(time)))].sort((a, b) => a - b);
  let at = 0;
  const places = known.map((time, place) => {
    at += place === 0 ? 0 : APART + Math.log2(1 + (time - (known[place - 1] ?? time)) / 60_000);
    return [time, at] as const;
  });
  return new Map(places.map(([time, place]) => [time, at === 0 ? 0 : place / at]));
}

function leftWords({ nodes, omitted, circles }: Lineage, shown: number): string {
  const more = nodes.length - shown + omitted;
  const round = circles.length;
  return dotted(
    countedIfAny(more, "1 more session", `${more} more sessions`),
    countedIfAny(round, "1 link leads in a circle", `${round} links lead in circles`),
  );
}

function firstTime(...stamps: readonly (string | null | undefined)[]): number | null {
  const times = stamps.map((stamp) => Date.parse(stamp ?? ""));
  return times.find((time) => !Number.isNaN(time)) ?? null;
}
