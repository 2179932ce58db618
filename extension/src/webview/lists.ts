/** Draws the parts below the picture of a session: digest, lineage, lists and table. */

import { cut, dotted } from "../common/model/text.ts";
import { digestParts } from "../compaction/model/preview.ts";
import type { LineagePicture } from "../page/model/lineage.ts";
import { eventsOf, near, type PageEvent, type SessionView, turnName } from "../page/model/page.ts";
import { button, el, fill, send, svg, table, time } from "./draw.ts";
import { keyOfLine } from "./picture.ts";
import { partRows } from "./quotes.ts";

/** Space for the dot at the start of a lineage line, in pixels. */
const DOT = 6;
/** Maximum number of losses shown for a compaction. */
const MOST_LOST = 8;
/** The digest sections shown separately; changed files have a list of their own. */
const SHOWN = ["CHECKS"];

/** Draw an event after a turn; a compaction also lists its losses. */
export function eventRows({ kind, id, name, lost }: PageEvent): readonly HTMLElement[] {
  const shown = lost.slice(0, MOST_LOST).map((each) => el("li", each));
  const more = lost.length - shown.length;
  const all = button("Lost in Compaction", "link", () => send({ kind: "losses" }));
  const rest = more === 0 ? [] : [el("li.quiet", `${more} more: `, all)];
  const title = kind === "branch" && id !== null ? button(name, "link", () => openOther(id)) : name;
  const list = shown.length === 0 ? [] : [el("ul.lost", ...shown, ...rest)];
  return [el("p", title), ...list];
}

export function listSection({ title, count, items }: SessionView["kept"][number]): HTMLElement {
  const rows = items.map((item) => el("li", item));
  const about = el("span.about", count);
  return el("section.block", el("h2", title, " ", about), el("ul", ...rows));
}

function openOther(sessionId: string): void {
  send({ kind: "goTo", sessionId });
}

/** Draw a digest; its checks go into `done`, the other sections into `rest`. */
export function showDigest(done: Element, rest: Element, digest: SessionView["digest"]): void {
  const of = (wanted: boolean) =>
    digest === null
      ? []
      : digestParts(digest, digest).filter(({ section }) => SHOWN.includes(section) === wanted);
  const blocks = of(true).map((part) => {
    const rows = partRows({ ...part, why: "", tokens: 0 }, "h2");
    return el("section.block", ...rows);
  });
  fill(done, ...blocks);
  const parts = of(false).flatMap((part) => partRows(part));
  const none = digest?.budget === 0 ? "The digest is switched off." : "Nothing to quote yet.";
  const why = digest === null ? "Reading the session…" : none;
  fill(rest, ...(parts.length > 0 ? parts : [el("p.quiet", why)]));
}

/** Show the lineage; a session without relatives has none. */
export function showLineage(
  place: HTMLElement,
  lines: HTMLElement,
  picture: LineagePicture | null,
): void {
  place.hidden = (picture?.rows.length ?? 0) < 2;
  if (picture === null || place.hidden) {
    return;
  }
  const { rows, began, ended, left } = picture;
  const items = rows.map(({ id, name, made, source, at, state, opens, isHere }) => {
    const title =
      opens && !isHere
        ? button(name, "link", () => openOther(id))
        : el("span", { class: opens ? "" : "quiet" }, name);
    const from = source === "" ? null : el("span.spoken", ` from “${source}”`);
    const when = at === null ? null : time(at);
    const words = dotted(state, made);
    const about = el("span.about", words, from, when && " · ", when);
    return el("li", { class: isHere ? "row here" : "row" }, title, " ", about);
  });
  const ends = [began, ended].map((stamp) => stamp && time(stamp));
  const axis = el("div.axis.quiet", ...ends);
  const key = [
    ["fork", "forked"],
    ["restore", "restored"],
    ["compaction", "compacted"],
    ["import", "imported"],
    ["pull", "pulled"],
    ["subagent", "subagent"],
  ].filter(([kind]) => rows.some((row) => row.kind === kind));
  fill(
    place,
    el("h2", "Lineage ", el("span.about", left)),
    el("div.tree", el("div", lines, axis), el("ol", ...items)),
    el(
      "p.key.quiet",
      { aria: { hidden: "true" } },
      ...key.map(([kind = "", words = ""]) => keyOfLine(kind, words)),
      el("span", "Long pauses are shortened."),
    ),
  );
  drawLineage(lines, picture);
}

/** Draw a line per session from its start to its last record, with a bend where it branches off. */
export function drawLineage(lines: HTMLElement, picture: LineagePicture | null): void {
  const rows = picture?.rows ?? [];
  const wide = lines.clientWidth - 2 * DOT;
  const high = lines.closest("section")?.querySelector("li")?.offsetHeight ?? 0;
  if (wide <= 0) {
    return;
  }
  const x = (share: number) => near(DOT + share * wide);
  const y = (row: number) => (row + 0.5) * high;
  const drawn = rows.flatMap(({ from, to, parent, isHere, isThere, kind }, row) => {
    const looks = `line ${isHere ? "here" : ""} ${isThere ? "" : "gone"}`;
    const bend = `M${x(from)},${y(parent ?? row)} V${y(row)}`;
    const dot = { cx: String(x(from)), cy: String(y(row)), r: "4.5" };
    // After its last record a source did not change any more until its branches began.
    const leaving = rows.filter((each) => each.parent === row);
    const left = Math.max(to, ...leaving.map((each) => each.from));
    return [
      svg("path", { class: "rest", d: `M${x(to)},${y(row)} H${x(left)}` }),
      ...(parent === null ? [] : [svg("path", { class: `bend ${kind}`, d: bend })]),
      svg("path", { class: looks, d: `M${x(from)},${y(row)} H${x(to) + 1}` }),
      svg("circle", { class: `${looks} dot`, ...dot }),
    ];
  });
  const size = { width: String(wide + 2 * DOT), height: String(rows.length * high) };
  fill(lines, svg("svg", size, ...drawn));
}

/** Make the table with the content of the picture. */
export function tableOf({ rows, events }: SessionView): HTMLElement {
  const head = "Turn Request Ended Context Files Failed Calls Window Began Events".split(" ");
  const body = rows.map((row) => [
    turnName(row).replace(/^Turns? /, ""),
    cut(row.turns[0].task, 80),
    row.outcome,
    row.contextTokens?.toLocaleString("en-US") ?? "",
    String(row.filesChanged),
    String(row.checksFailed),
    String(row.calls),
    String(row.window),
    row.startedAt === null ? "" : time(row.startedAt),
    eventsOf(row, events)
      .map(({ name }) => name)
      .join(" "),
  ]);
  return table("All turns", head, body);
}
