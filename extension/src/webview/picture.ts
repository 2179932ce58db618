/** The picture of a session: the context by turn, with its compactions, markers and branches. */

import {
  areaPath,
  heightOf,
  near,
  numbered,
  type PageRow,
  type SessionView,
} from "../model/sessionPage.ts";
import { counted, tokenCount } from "../model/text.ts";
import { el, fill, svg } from "./draw.ts";

/** Pixels: the room for names at the left of the picture and beside it, and its parts downwards. */
const [LEFT, RIGHT, TOP, HEIGHT] = [64, 10, 22, 150];
const FLOOR = TOP + HEIGHT;
const [EDITS, CHECKS, BOTTOM, NUMBERS] = [FLOOR + 14, FLOOR + 28, FLOOR + 36, FLOOR + 44];
/** Pixels of half a number, which would stand beyond the edge. */
const HALF = 16;
/** Pixels between two compactions below which they are only ticks, and of a step without an edge. */
const [CROWDED, DENSE] = [16, 3];

/** Draw the turns of a session, and what happened between them, as wide as there is room. */
export function drawPicture(chart: HTMLElement, view: SessionView, chosen: number): void {
  const { rows, events, window, trigger } = view;
  const wide = chart.clientWidth - LEFT - RIGHT;
  if (wide <= 0) {
    return;
  }
  const frame = { left: 0, top: TOP, width: wide, height: HEIGHT };
  const full = heightOf(rows, window);
  const step = wide / Math.max(1, rows.length);
  const x = (at: number) => near(at * step);
  const y = (tokens: number) => near(FLOOR - (HEIGHT * tokens) / full);
  const level = (tokens: number | null, kind: string) =>
    tokens === null ? null : svg("path", { class: kind, d: `M0,${y(tokens)} H${wide}` });
  // The height of the limit where another stands too near is not written.
  const heights = [...new Set([0, trigger ?? 0, window ?? 0, full])]
    .map((tokens) => [tokens, y(tokens)] as const)
    .filter(([, place], index, all) =>
      all.every(([, other], later) => later <= index || Math.abs(other - place) > 12),
    );
  const at = (turn: number) => rows.findLastIndex((row) => row.turn <= turn);
  const thick = near(Math.max(1, Math.min(5, step - 1)));
  const ticks = (kind: string, place: number, has: (row: PageRow) => boolean) => {
    const places = rows.flatMap((row, index) =>
      has(row) ? `M${near(x(index) + step / 2)},${place - 2.5} v5` : [],
    );
    return svg("path", { class: kind, d: places.join(" "), "stroke-width": String(thick) });
  };
  const box = (kind: string, from: number, to: number, high: number) => {
    const [width, height] = [String(near(to - from)), String(high)];
    return svg("rect", { class: kind, x: String(near(from)), y: String(TOP), width, height });
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
  fill(
    chart,
    svg(
      "svg",
      { width: String(wide + RIGHT), height: String(BOTTOM) },
      ...(isCrowded ? [] : bands).map(([from, to]) => box("band", from, to, HEIGHT)),
      box("chosen", x(chosen), x(chosen) + Math.max(2, step), BOTTOM - TOP),
      rows.length === 0
        ? null
        : svg("path", {
            class: step < DENSE ? "fill dense" : "fill",
            d: areaPath(rows, full, frame),
          }),
      level(window, "limit"),
      level(trigger, "trigger"),
      svg("path", { class: "axis", d: `M0,${FLOOR} H${wide}` }),
      ticks("edits", EDITS, (row) => row.filesChanged > 0),
      ticks("failed", CHECKS, (row) => row.checksFailed > 0),
      ...events.map(({ kind, turn }) =>
        turn === null ? null : mark(kind, near(x(at(turn) + 1)), isCrowded),
      ),
    ),
    ...heights.map(([tokens, place]) => nameAt(tokens.toLocaleString("en-US"), place)),
    nameAt("edits", EDITS),
    nameAt("failed", CHECKS),
    nameAt("turn", NUMBERS),
    ...numbered(rows, wide).map((turn) => {
      return numberAt(turn, LEFT + Math.min(x(at(turn)) + step / 2, wide + RIGHT - HALF));
    }),
  );
}

/** The row at a place of the window. */
export function rowAt(chart: HTMLElement, rows: readonly PageRow[], x: number): number {
  const { left, width } = chart.getBoundingClientRect();
  const share = (x - left - LEFT) / Math.max(1, width - LEFT - RIGHT);
  return Math.max(0, Math.min(rows.length - 1, Math.floor(share * rows.length)));
}

/** A name beside a height of the picture; as an element of the page its contrast can be measured. */
function nameAt(text: string, place: number): HTMLElement {
  const made = el("span.name", text);
  made.style.top = `${place}px`;
  return made;
}

/** The number of a turn below its place in the picture. */
function numberAt(turn: number, place: number): HTMLElement {
  const made = el("span.number", turn.toLocaleString("en-US"));
  made.style.left = `${near(place)}px`;
  made.style.top = `${NUMBERS}px`;
  return made;
}

export function legend({ rows, window, trigger, merged }: SessionView): string {
  const parts = [
    merged > 1 ? `Each step stands for ${merged} turns.` : "",
    window === null
      ? ""
      : `Window: ${tokenCount(window)}${trigger === null ? "" : `, compaction offered from ${trigger.toLocaleString("en-US")}`}.`,
    rows.some(({ mostTokens, contextTokens }) => mostTokens !== contextTokens)
      ? "Bars show each turn’s peak."
      : "",
    counted(rows.length, "", "Use ← → to move between turns."),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** The signs of the picture that occur, and what they mean. */
export function keyOf({ events, window, trigger }: SessionView): readonly HTMLElement[] {
  const line = (tokens: number | null, kind: string, words: string) =>
    tokens === null ? [] : [keyOfLine(kind, words)];
  const sign = ([kind, viewBox]: readonly [string, string]) =>
    el("span", svg("svg", { width: "16", height: "22", viewBox }, mark(kind, 8, false)), kind);
  return [
    ...SIGNS.filter(([kind]) => events.some((event) => event.kind === kind)).map(sign),
    ...line(window, "limit", "window"),
    ...line(trigger, "trigger", "compaction offered"),
  ];
}

/** The signs by their names, and the part of the picture that shows one which stands at 8 pixels. */
const SIGNS = [
  ["compaction", `0 ${FLOOR - 20} 16 22`],
  ["marker", `4 ${TOP - 20} 16 22`],
  ["branch", `4 ${FLOOR - 6} 20 22`],
] as const;

export function keyOfLine(kind: string, words: string): HTMLElement {
  const line = svg("path", { class: `bend ${kind}`, d: "M0,11 H16" });
  return el("span", svg("svg", { width: "16", height: "22" }, line), words);
}

function mark(kind: string, x: number, isCrowded: boolean): SVGElement {
  switch (kind) {
    case "marker":
      return svg("path", { class: "marker", d: `M${x},${TOP} V${TOP - 18} l9,5 l-9,5` });
    case "branch":
      return svg("path", { class: "branch", d: `M${x},${FLOOR} q1,9 12,9 m-4,-3 l4,3 l-4,3` });
    default: {
      const whole = `M${x},${TOP - 4} V${FLOOR} m-4,-8 l4,8 l4,-8`;
      const d = isCrowded ? `M${x},${FLOOR - 5} v10` : whole;
      return svg("path", { class: "compaction", d });
    }
  }
}
