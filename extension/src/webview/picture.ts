/** The picture of a session: the context by turn, with its compactions, markers and branches. */

import { counted, tokenCount } from "../common/model/text.ts";
import {
  areaPath,
  heightOf,
  near,
  numbered,
  type PageRow,
  type SessionView,
} from "../page/model/page.ts";
import { el, fill, svg } from "./draw.ts";

/** Margins and vertical layout of a picture, in pixels. */
interface Shape {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly height: number;
  /** Whether it has names and numbers, and rows that mark turns with edits or failures. */
  readonly isFull: boolean;
}

export const PICTURE: Shape = { left: 64, right: 10, top: 22, height: 150, isFull: true };
/** A version 48 pixels high, as wide as the page. */
export const STRIP: Shape = { left: 0, right: 0, top: 12, height: 35, isFull: false };

/** Offsets below the floor of the picture. */
const [EDITS, CHECKS, BOTTOM, NUMBERS] = [14, 28, 36, 44];
/** Half the width of a number, which would be cut off at the edge, in pixels. */
const HALF = 16;
/**
 * Compactions closer than this are drawn as ticks, and narrower turns without an edge, in pixels.
 */
const [CROWDED, DENSE] = [16, 3];

/** Draw the turns of a session and the events between them, in the available width. */
export function drawPicture(
  chart: HTMLElement,
  view: SessionView,
  chosen: number,
  shape: Shape,
): void {
  const { rows, events, window, trigger } = view;
  const { left, right, top, height, isFull } = shape;
  const wide = chart.clientWidth - left - right;
  if (wide <= 0) {
    return;
  }
  const frame = { left: 0, top, width: wide, height };
  const floor = top + height;
  const bottom = isFull ? floor + BOTTOM : floor + 1;
  const full = heightOf(rows, window);
  const step = wide / Math.max(1, rows.length);
  const x = (at: number) => near(at * step);
  const y = (tokens: number) => near(floor - (height * tokens) / full);
  const level = (tokens: number | null, kind: string) =>
    tokens === null ? null : svg("path", { class: kind, d: `M0,${y(tokens)} H${wide}` });
  const at = (turn: number) => rows.findLastIndex((row) => row.turn <= turn);
  const thick = near(Math.max(1, Math.min(7, step - 1)));
  const ticks = (kind: string, place: number, has: (row: PageRow) => boolean) => {
    const places = rows.flatMap((row, index) =>
      has(row) ? `M${near(x(index) + step / 2)},${place - 3.5} v7` : [],
    );
    return svg("path", { class: kind, d: places.join(" "), "stroke-width": String(thick) });
  };
  const box = (kind: string, from: number, to: number, high: number) => {
    const [width, tall] = [String(near(to - from)), String(high)];
    return svg("rect", { class: kind, x: String(near(from)), y: String(top), width, height: tall });
  };
  const compactions = events.filter(({ kind }) => kind === "compaction").length;
  const isCrowded = wide / (compactions + 1) < CROWDED;
  // Every other context window is shaded.
  const ends = events.flatMap(({ kind, turn }) =>
    kind === "compaction" && turn !== null ? [x(at(turn) + 1)] : [],
  );
  const bands = [...ends, wide].flatMap((to, place, all) =>
    place % 2 === 1 ? [[all[place - 1] ?? 0, to] as const] : [],
  );
  const signs = events.map(({ kind, turn }) =>
    turn === null ? null : mark(kind, near(x(at(turn) + 1)), isCrowded, shape),
  );
  const drawn = svg(
    "svg",
    { width: String(wide + right), height: String(bottom) },
    ...(isCrowded ? [] : bands).map(([from, to]) => box("band", from, to, height)),
    box("chosen", x(chosen), x(chosen) + Math.max(2, step), bottom - top),
    rows.length === 0
      ? null
      : svg("path", {
          class: step < DENSE ? "fill dense" : "fill",
          d: areaPath(rows, full, frame),
        }),
    level(window, "limit"),
    level(trigger, "trigger"),
    svg("path", { class: "axis", d: `M0,${floor} H${wide}` }),
    isFull ? ticks("edits", floor + EDITS, (row) => row.filesChanged > 0) : null,
    isFull ? ticks("failed", floor + CHECKS, (row) => row.checksFailed > 0) : null,
    ...signs,
  );
  fill(chart, drawn);
  if (!isFull) {
    return;
  }
  // Omit a label that is too close to another.
  const heights = [...new Set([0, trigger ?? 0, window ?? 0, full])]
    .map((tokens) => [tokens, y(tokens)] as const)
    .filter(([, place], index, all) =>
      all.every(([, other], later) => later <= index || Math.abs(other - place) > 12),
    );
  chart.append(
    ...heights.map(([tokens, place]) => nameAt(tokens.toLocaleString("en-US"), place)),
    nameAt("edits", floor + EDITS),
    nameAt("failed", floor + CHECKS),
    nameAt("turn", floor + NUMBERS),
    ...numbered(rows, wide).map((turn) => {
      const place = Math.min(x(at(turn)) + step / 2, wide + right - HALF);
      return numberAt(turn, left + place, floor + NUMBERS);
    }),
  );
}

/** Return the row at a horizontal position in the window. */
export function rowAt(
  chart: HTMLElement,
  rows: readonly PageRow[],
  x: number,
  shape: Shape,
): number {
  const { left, width } = chart.getBoundingClientRect();
  const share = (x - left - shape.left) / Math.max(1, width - shape.left - shape.right);
  return Math.max(0, Math.min(rows.length - 1, Math.floor(share * rows.length)));
}

/** Make a label at a height of the picture: an element, whose contrast can be measured. */
function nameAt(text: string, place: number): HTMLElement {
  const made = el("span.name", text);
  made.style.top = `${place}px`;
  return made;
}

/** Make the number of a turn below its column. */
function numberAt(turn: number, place: number, height: number): HTMLElement {
  const made = el("span.number", turn.toLocaleString("en-US"));
  made.style.left = `${near(place)}px`;
  made.style.top = `${height}px`;
  return made;
}

export function legend({ rows, window, trigger, merged }: SessionView, isFull: boolean): string {
  const parts = [
    merged > 1 ? `Turns per step: ${merged}.` : "",
    window === null || isFull // its axis has the numbers
      ? ""
      : `Window: ${tokenCount(window)}${trigger === null ? "" : `; compact from ${trigger.toLocaleString("en-US")}`}.`,
    isFull && rows.some(({ mostTokens, contextTokens }) => mostTokens !== contextTokens)
      ? "Bars show each turn’s peak."
      : "",
    isFull ? counted(rows.length, "", "Use ← → to move between turns.") : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Explain the signs that occur in the picture. */
export function keyOf({ events, window, trigger }: SessionView): readonly HTMLElement[] {
  const line = (tokens: number | null, kind: string, words: string) =>
    tokens === null ? [] : [keyOfLine(kind, words)];
  const sign = ([kind, viewBox]: readonly [string, string]) =>
    el(
      "span",
      svg("svg", { width: "16", height: "22", viewBox }, mark(kind, 8, false, PICTURE)),
      kind,
    );
  return [
    ...SIGNS.filter(([kind]) => events.some((event) => event.kind === kind)).map(sign),
    ...line(window, "limit", "window"),
    ...line(trigger, "trigger", "compaction offered"),
  ];
}

const FLOOR = PICTURE.top + PICTURE.height;

/** The names of the signs, and a view box that shows one drawn at x = 8. */
const SIGNS = [
  ["compaction", `0 ${FLOOR - 20} 16 22`],
  ["marker", `4 ${PICTURE.top - 20} 16 22`],
  ["branch", `4 ${FLOOR - 6} 20 22`],
] as const;

export function keyOfLine(kind: string, words: string): HTMLElement {
  const line = svg("path", { class: `bend ${kind}`, d: "M0,11 H16" });
  return el("span", svg("svg", { width: "16", height: "22" }, line), words);
}

function mark(kind: string, x: number, isCrowded: boolean, shape: Shape): SVGElement {
  const { top, height, isFull } = shape;
  const floor = top + height;
  switch (kind) {
    case "marker": {
      const high = Math.min(18, top - 2);
      const d = `M${x},${top} V${top - high} l${high / 2},${high / 4} l${-high / 2},${high / 4}`;
      return svg("path", { class: "marker", d });
    }
    case "branch": {
      const from = isFull ? floor : floor - 12;
      return svg("path", { class: "branch", d: `M${x},${from} q1,9 12,9 m-4,-3 l4,3 l-4,3` });
    }
    default: {
      const whole = `M${x},${top - 4} V${floor} m-4,-8 l4,8 l4,-8`;
      const d = isCrowded ? `M${x},${floor - 5} v10` : whole;
      return svg("path", { class: "compaction", d });
    }
  }
}
