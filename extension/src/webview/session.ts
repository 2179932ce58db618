/** The page of a session: its picture, the chosen turn, and below it what is known of it. */

import { digestParts } from "../model/compactionPage.ts";
import type { Trouble } from "../model/pages.ts";
import {
  areaPath,
  type Conversation,
  eventsOf,
  type Frame,
  heightOf,
  near,
  type PageRow,
  patchLines,
  type SessionPageState,
  type SessionView,
  type Spoken,
  sessionPageState,
  spoken,
  spokenTurn,
  type TurnAction,
  turnName,
  turnText,
} from "../model/sessionPage.ts";
import { counted, cut, dotted, tokenCount } from "../model/text.ts";
import {
  button,
  type Child,
  el,
  fill,
  keep,
  kept,
  listen,
  page,
  send,
  svg,
  time,
  troubleBox,
} from "./draw.ts";
import { link, partRows } from "./quotes.ts";

/** Pixels: the room for names at the left of the picture and beside it, and its parts downwards. */
const [LEFT, RIGHT, TOP, HEIGHT] = [64, 10, 22, 150];
const FLOOR = TOP + HEIGHT;
/** The pause in moving after which the conversation of a turn is asked for. */
const REST_MS = 150;

/** Pixels of a row of the lineage, and of the room for the dot at its beginning. */
const [ROW, DOT] = [28, 6];
const [EDITS, CHECKS, BOTTOM] = [FLOOR + 14, FLOOR + 30, FLOOR + 42];

class SessionPage {
  readonly #title = el("h1");
  readonly #about = el("p", { class: "quiet" });
  readonly #trouble = el("div");
  readonly #losses = button("What Was Lost", { class: "second" }, () => send({ kind: "losses" }));
  readonly #chart = el("div", { class: "chart", aria: { hidden: "true" } });
  readonly #slider = el("input", { id: "turn", type: "range", min: "1", step: "1" });
  readonly #pointed = el("p", { class: "quiet pointed", aria: { hidden: "true" } });
  readonly #turn = el("section", { class: "turn", aria: { label: "The chosen turn" } });
  readonly #steps = el("ol", { class: "steps" });
  readonly #more = button("Show More", { class: "second" }, () => this.#ask(this.#next ?? 0));
  readonly #conversation = el(
    "details",
    { id: "conversation" },
    el("summary", {}, el("h2", {}, "Conversation")),
    this.#steps,
    this.#more,
  );
  readonly #kept = el("div");
  readonly #lineage = el("section", { class: "block lineage" });
  readonly #lines = el("div", { class: "lines", aria: { hidden: "true" } });
  readonly #digest = el("div");
  readonly #table = el("details", { id: "table" }, el("summary", {}, el("h2", {}, "All turns")));
  #view: SessionView;
  #state: SessionPageState;
  #drawn = "";
  #tree = "";
  /** The row whose conversation is shown, as it was then, and where more of it begins. */
  #told = "";
  #next: number | null = null;
  #asking: number | undefined;

  constructor(view: SessionView) {
    this.#view = view;
    const known = sessionPageState(kept());
    const { sessionId } = view;
    this.#state = known?.sessionId === sessionId ? known : { sessionId, turn: null };
    this.#slider.addEventListener("input", () => this.#choose(this.#slider.valueAsNumber - 1));
    const at = (event: MouseEvent) => this.#rowAt(event.clientX);
    this.#chart.addEventListener("click", (event) => {
      this.#choose(at(event));
      this.#slider.focus();
    });
    this.#chart.addEventListener("mousemove", (event) => this.#point(at(event)));
    this.#chart.addEventListener("mouseleave", () => this.#point(null));
    this.#conversation.open = true;
    this.#conversation.addEventListener("toggle", () => this.#converse());
    this.#table.addEventListener("toggle", () => this.#showTable());
    new ResizeObserver(() => this.#draw()).observe(this.#chart);
    new ResizeObserver(() => this.#drawLineage()).observe(this.#lines);
    fill(
      page(),
      el("header", {}, this.#title, this.#about),
      this.#trouble,
      el(
        "div",
        { class: "buttons" },
        button("Resume in Terminal", { class: "first" }, () => send({ kind: "resume" })),
        button("Compact…", { class: "second" }, () => send({ kind: "compact" })),
        this.#losses,
      ),
      el(
        "section",
        { class: "block", aria: { label: "Context by turn" } },
        el("label", { class: "named", for: "turn" }, "Context by turn"),
        this.#chart,
        el("div", { class: "budget scrubber" }, this.#slider),
        this.#pointed,
      ),
      this.#turn,
      this.#conversation,
      this.#kept,
      this.#lineage,
      this.#digest,
      this.#table,
    );
    this.show(view);
  }

  /** Show the session as it is now; what has the focus keeps it. */
  show(view: SessionView): void {
    this.#view = view;
    const { rows, events, kept: lists, digest } = view;
    fill(this.#trouble);
    fill(this.#title, view.name);
    fill(this.#about, view.about);
    this.#losses.hidden = !events.some(({ kind }) => kind === "compaction");
    this.#slider.max = String(Math.max(1, rows.length));
    this.#slider.disabled = rows.length === 0;
    this.#showChosen();
    const below = JSON.stringify([lists, digest]);
    if (below !== this.#drawn) {
      this.#drawn = below;
      keepingFocus(() => {
        fill(this.#kept, ...lists.map(listSection));
        const parts = digest === null ? [] : digestParts(digest, digest).flatMap(partRows);
        const about = noDigest(digest);
        const body = parts.length > 0 ? parts : [el("p", { class: "quiet" }, about)];
        fill(this.#digest, el("section", { class: "block" }, el("h2", {}, "Digest"), ...body));
      });
    }
    const tree = JSON.stringify(view.lineage);
    if (tree !== this.#tree) {
      this.#tree = tree;
      keepingFocus(() => this.#showLineage());
    }
    this.#showTable();
    page().setAttribute("data-ready", String(rows.length));
  }

  complain(trouble: Trouble): void {
    fill(this.#trouble, troubleBox(trouble));
  }

  get #chosen(): number {
    const { rows } = this.#view;
    const { turn } = this.#state;
    const found = turn === null ? -1 : rows.findLastIndex((row) => row.turn <= turn);
    return found === -1 ? rows.length - 1 : found;
  }

  #choose(at: number): void {
    const { rows } = this.#view;
    const isNewest = at >= rows.length - 1;
    this.#state = { ...this.#state, turn: isNewest ? null : (rows[at]?.turn ?? null) };
    keep(this.#state);
    this.#showChosen();
  }

  #showChosen(): void {
    const { rows, events } = this.#view;
    const row = rows[this.#chosen];
    keep(this.#state);
    this.#slider.value = String(this.#chosen + 1);
    const share = rows.length < 2 ? 100 : (this.#chosen * 100) / (rows.length - 1);
    this.#slider.style.setProperty("--filled", `${share}%`);
    this.#slider.setAttribute(
      "aria-valuetext",
      row === undefined ? "No turn yet" : spokenTurn(row, events),
    );
    this.#draw();
    this.#point(null);
    keepingFocus(() => fill(this.#turn, ...this.#turnParts(row)));
    this.#converse();
  }

  /** Ask for the conversation of the chosen turn, when the choice has rested. */
  #converse(): void {
    const row = this.#view.rows[this.#chosen];
    const wanted = row === undefined ? "" : JSON.stringify(row);
    if (wanted === this.#told || !this.#conversation.open) {
      return;
    }
    this.#told = wanted;
    window.clearTimeout(this.#asking);
    this.#asking = window.setTimeout(() => this.#ask(0), REST_MS);
  }

  #ask(offset: number): void {
    const row = this.#view.rows[this.#chosen];
    if (row !== undefined) {
      send({ kind: "conversation", turnId: row.turnId, offset });
    }
  }

  /** Show a part of a conversation, unless another turn was chosen meanwhile. */
  tell({ offset, part }: Conversation): void {
    if (part.turnId !== this.#view.rows[this.#chosen]?.turnId) {
      return;
    }
    const steps = spoken(part.items).map(stepRow);
    const before = offset === 0 ? [] : [...this.#steps.children];
    keepingFocus(() => fill(this.#steps, ...before, ...steps));
    this.#next = part.nextOffset;
    this.#more.hidden = part.nextOffset === null;
  }

  #turnParts(row: PageRow | undefined): readonly Child[] {
    if (row === undefined) {
      return [el("p", { class: "quiet" }, "No turn yet. The page follows the session.")];
    }
    const when = row.startedAt === null ? null : time(row.startedAt);
    const act = (label: string, action: TurnAction) =>
      button(label, { class: "second" }, () => send({ kind: "turn", turnId: row.turnId, action }));
    const many = row.turn === row.last ? "" : ` The buttons act on turn ${row.last}.`;
    const isOpen = row.outcome === "open";
    return [
      el("h2", {}, turnName(row), " ", el("span", { class: "about" }, when)),
      el("p", { class: "asked" }, row.task === "" ? "No text." : row.task),
      el("p", { class: "quiet" }, `${turnText(row)}${many}`),
      ...eventsOf(row, this.#view.events).map((event) =>
        event.kind === "branch" && event.id !== null
          ? el(
              "p",
              {},
              button(event.name, { class: "link" }, () => openOther(event.id ?? "")),
            )
          : el("p", {}, event.name),
      ),
      el(
        "div",
        { class: "buttons" },
        button("Show the Request", { class: "second" }, () =>
          send({ kind: "record", ref: `#${row.seq}` }),
        ),
        ...(isOpen ? [] : [act("Add Marker…", "mark"), act("Restore from Here…", "restore")]),
        act("Compare with…", "compare"),
        act("More…", "more"),
      ),
    ];
  }

  /** Say beside the pointer's place what is there; the chosen turn is told below. */
  #point(at: number | null): void {
    const row = at === null ? undefined : this.#view.rows[at];
    fill(
      this.#pointed,
      row === undefined
        ? legend(this.#view)
        : `${turnName(row)}: ${cut(row.task, 80)} ${turnText(row)}`,
    );
  }

  #rowAt(x: number): number {
    const { left, width } = this.#chart.getBoundingClientRect();
    const share = (x - left - LEFT) / Math.max(1, width - LEFT - RIGHT);
    const { length } = this.#view.rows;
    return Math.max(0, Math.min(length - 1, Math.floor(share * length)));
  }

  #draw(): void {
    const { rows, events, window, trigger, merged } = this.#view;
    const wide = this.#chart.clientWidth - LEFT - RIGHT;
    if (wide <= 0) {
      return;
    }
    const frame: Frame = { left: 0, top: TOP, width: wide, height: HEIGHT };
    const full = heightOf(rows, window);
    const step = wide / Math.max(1, rows.length);
    const x = (at: number) => near(at * step);
    const y = (tokens: number) => near(FLOOR - (HEIGHT * tokens) / full);
    const level = (tokens: number | null, kind: string) =>
      tokens === null || tokens > full
        ? null
        : svg("path", { class: kind, d: `M0,${y(tokens)} H${wide}` });
    const at = (turn: number) => rows.findLastIndex((row) => row.turn <= turn);
    const dots = (kind: string, place: number, has: (row: PageRow) => boolean) =>
      rows.flatMap((row, index) =>
        has(row)
          ? [
              svg("circle", {
                class: kind,
                cx: String(near(x(index) + step / 2)),
                cy: String(place),
                r: "2.5",
              }),
            ]
          : [],
      );
    const across = (from: number, to: number) => ({
      x: String(near(from)),
      width: String(near(to - from)),
    });
    // Every other context window is shaded.
    const ends = events.flatMap(({ kind, turn }) =>
      kind === "compaction" && turn !== null ? [x(at(turn) + 1)] : [],
    );
    const bands = [...ends, wide].flatMap((to, place, all) =>
      place % 2 === 1 ? [[all[place - 1] ?? 0, to] as const] : [],
    );
    fill(
      this.#chart,
      svg(
        "svg",
        { width: String(wide + RIGHT), height: String(BOTTOM) },
        ...bands.map(([from, to]) =>
          svg("rect", {
            class: "band",
            ...across(from, to),
            y: String(TOP),
            height: String(HEIGHT),
          }),
        ),
        svg("rect", {
          class: "chosen",
          ...across(x(this.#chosen), x(this.#chosen) + Math.max(2, step)),
          y: String(TOP),
          height: String(BOTTOM - TOP),
        }),
        rows.length === 0 ? null : svg("path", { class: "fill", d: areaPath(rows, full, frame) }),
        level(window, "limit"),
        level(trigger, "trigger"),
        svg("path", { class: "axis", d: `M0,${FLOOR} H${wide}` }),
        ...dots("edits", EDITS, (row) => row.filesChanged > 0),
        ...dots("failed", CHECKS, (row) => row.checksFailed > 0),
        ...events.map(({ kind, turn }) =>
          turn === null ? null : mark(kind, near(x(at(turn) + 1))),
        ),
      ),
      nameAt(full.toLocaleString("en-US"), TOP),
      nameAt("edits", EDITS),
      nameAt("failed", CHECKS),
    );
    this.#chart.classList.toggle("merged", merged > 1);
  }

  /** A session alone has no lineage to show. */
  #showLineage(): void {
    const { lineage } = this.#view;
    this.#lineage.hidden = lineage.length < 2;
    const rows = lineage.map(({ id, name, about, opens, isHere, isThere }) => {
      const standing = isHere ? "this session" : isThere ? "" : "no longer here";
      const title = opens && !isHere ? button(name, { class: "link" }, () => openOther(id)) : name;
      const words = el("span", { class: "about" }, dotted(standing, about));
      return el("li", { class: isHere ? "row here" : "row" }, title, " ", words);
    });
    const tree = el("div", { class: "tree" }, this.#lines, el("ol", {}, ...rows));
    fill(this.#lineage, el("h2", {}, "Lineage"), tree);
    this.#drawLineage();
  }

  /** A line for each session from its beginning to its last record, and a bend where it began. */
  #drawLineage(): void {
    const { lineage } = this.#view;
    const wide = this.#lines.clientWidth - 2 * DOT;
    if (wide <= 0) {
      return;
    }
    const x = (share: number) => near(DOT + share * wide);
    const y = (row: number) => (row + 0.5) * ROW;
    const lines = lineage.flatMap(({ from, to, parent, isHere, isThere, kind }, row) => {
      const looks = `line ${isHere ? "here" : ""} ${isThere ? "" : "gone"}`;
      const bend = `M${x(from)},${y(parent ?? row)} V${y(row)}`;
      const dot = { cx: String(x(from)), cy: String(y(row)), r: "3" };
      return [
        ...(parent === null ? [] : [svg("path", { class: `bend ${kind}`, d: bend })]),
        svg("path", { class: looks, d: `M${x(from)},${y(row)} H${x(to) + 1}` }),
        svg("circle", { class: `${looks} dot`, ...dot }),
      ];
    });
    const size = { width: String(wide + 2 * DOT), height: String(lineage.length * ROW) };
    fill(this.#lines, svg("svg", size, ...lines));
  }

  /** Fill the table while it is open: it has a row for each of the picture. */
  #showTable(): void {
    this.#table.querySelector(".wide")?.remove();
    if (!this.#table.open) {
      return;
    }
    const head = [
      "Turn",
      "Began",
      "Context",
      "Window",
      "Calls",
      "Files",
      "Failed",
      "Ended",
      "Request",
    ];
    const body = this.#view.rows.map((row) =>
      el(
        "tr",
        {},
        ...[
          turnName(row).replace(/^Turns? /, ""),
          row.startedAt === null ? "" : time(row.startedAt),
          row.contextTokens?.toLocaleString("en-US") ?? "",
          String(row.window),
          String(row.calls),
          String(row.filesChanged),
          String(row.checksFailed),
          row.outcome,
          cut(row.task, 80),
        ].map((cell) => el("td", {}, cell)),
      ),
    );
    const heads = head.map((each) => el("th", { scope: "col" }, each));
    const table = el("table", { aria: { label: "All turns" } });
    fill(table, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body));
    this.#table.append(el("div", { class: "wide" }, table));
  }
}

/** A name beside a height of the picture; as an element of the page its contrast can be measured. */
function nameAt(text: string, place: number): HTMLElement {
  const made = el("span", { class: "name" }, text);
  made.style.top = `${place}px`;
  return made;
}

/** A step of a conversation: what was said, or a command with its output folded. */
function stepRow({ ref, kind, text, printed, about, hasFailed }: Spoken): HTMLElement {
  const head = el(
    "div",
    { class: "who" },
    el("span", {}, WHO[kind]),
    link(ref, ref),
    el("span", { class: hasFailed ? "failed" : "about" }, about),
  );
  if (kind === "patch") {
    const lines = patchLines(text).map((line) =>
      el("div", { class: `piece ${line.kind}` }, line.text === "" ? " " : line.text),
    );
    return el("li", { class: `step ${kind}` }, head, el("div", { class: "text" }, ...lines));
  }
  if (kind !== "command") {
    return el(
      "li",
      { class: `step ${kind}` },
      head,
      el("div", { class: "words" }, ...linesOf(text)),
    );
  }
  const command = el("code", {}, text);
  const folded = el("summary", {}, command);
  const body =
    printed.trim() === ""
      ? command
      : el("details", {}, folded, el("div", { class: "text" }, ...linesOf(printed)));
  return el("li", { class: `step ${kind}` }, head, body);
}

const WHO: Readonly<Record<Spoken["kind"], string>> = {
  user: "You",
  assistant: "Codex",
  summary: "Summary of a compaction",
  command: "Ran",
  patch: "Changed",
};

function linesOf(text: string): readonly HTMLElement[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => el("div", {}, line === "" ? " " : line));
}

function noDigest(digest: SessionView["digest"]): string {
  if (digest === null) {
    return "Reading the session…";
  }
  return digest.budget === 0 ? "The digest is switched off." : "Nothing to quote yet.";
}

function legend({ rows, window, trigger, merged }: SessionView): string {
  const parts = [
    merged > 1 ? `A step stands for ${merged} turns.` : "",
    window === null
      ? ""
      : `Window: ${tokenCount(window)}${trigger === null ? "" : `, compaction offered from ${trigger.toLocaleString("en-US")}`}.`,
    counted(rows.length, "", "The arrow keys go from turn to turn."),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

function mark(kind: string, x: number): SVGElement {
  switch (kind) {
    case "marker":
      return svg("path", { class: "marker", d: `M${x},${TOP} V${TOP - 18} l9,5 l-9,5` });
    case "branch":
      return svg("path", { class: "branch", d: `M${x},${FLOOR} q1,9 12,9 m-4,-3 l4,3 l-4,3` });
    default:
      return svg("path", {
        class: "compaction",
        d: `M${x},${TOP - 4} V${FLOOR} m-4,-8 l4,8 l4,-8`,
      });
  }
}

function listSection({ title, count, items }: SessionView["kept"][number]): HTMLElement {
  const rows = items.map((item) => el("li", {}, item));
  const about = el("span", { class: "about" }, count);
  return el("section", { class: "block" }, el("h2", {}, title, " ", about), el("ul", {}, ...rows));
}

function openOther(sessionId: string): void {
  send({ kind: "goTo", sessionId });
}

/** Draw anew; a button that had the focus gives it to the one that has its name now. */
function keepingFocus(draw: () => void): void {
  const name = (each: Element | null) => each?.getAttribute("aria-label") ?? each?.textContent;
  const before = document.activeElement;
  const named = before instanceof HTMLButtonElement ? name(before) : null;
  draw();
  if (named !== null && before !== null && !before.isConnected) {
    [...document.querySelectorAll("button")].find((each) => name(each) === named)?.focus();
  }
}

let shown: SessionPage | null = null;
let drawn = "";
listen((message) => {
  if (message.kind === "session") {
    const news = JSON.stringify(message);
    if (shown === null) {
      shown = new SessionPage(message);
    } else if (news !== drawn) {
      shown.show(message);
    }
    drawn = news;
  } else if (message.kind === "conversation") {
    shown?.tell(message);
  } else if (message.kind === "trouble") {
    drawn = "";
    if (shown === null) {
      fill(page(), el("h1", {}, "Session"), troubleBox(message));
    } else {
      shown.complain(message);
    }
  }
});
