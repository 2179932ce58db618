/** The page of a session: its picture, the chosen turn, and below it what is known of it. */

import { digestParts } from "../model/compactionPage.ts";
import type { Trouble } from "../model/pages.ts";
import {
  areaPath,
  type Conversation,
  chosenIn,
  eventsOf,
  type Frame,
  heightOf,
  near,
  numbered,
  type PageEvent,
  type PagePlace,
  type PageRow,
  type PageTurn,
  patchLines,
  type SessionPageState,
  type SessionView,
  type Spoken,
  sessionPageState,
  spoken,
  spokenTurn,
  stepOf,
  type TurnAction,
  turnName,
  turnText,
} from "../model/sessionPage.ts";
import { counted, cut, dotted, tokenCount } from "../model/text.ts";
import type { TranscriptItem } from "../protocol.ts";
import {
  button,
  type Child,
  el,
  fill,
  keep,
  keepingFocus,
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

/** Pixels of the room for the dot at the beginning of a line of the lineage. */
const DOT = 6;
const [EDITS, CHECKS, BOTTOM, NUMBERS] = [FLOOR + 14, FLOOR + 28, FLOOR + 36, FLOOR + 44];
/** Pixels of half a number, which would stand beyond the edge. */
const HALF = 16;
/** Pixels between two compactions below which they are only ticks, and of a step without an edge. */
const [CROWDED, DENSE] = [16, 3];
/** So much of what a compaction lost stands on the page. */
const MOST_LOST = 8;
/** The sections of a digest that stand by themselves. */
const SHOWN = ["CHANGES", "CHECKS"];

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
  readonly #key = el("p", { class: "key quiet", aria: { hidden: "true" } });
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
  readonly #done = el("div");
  readonly #digest = el("div");
  readonly #table = el("details", { id: "table" }, el("summary", {}, el("h2", {}, "All turns")));
  #view: SessionView;
  #state: SessionPageState;
  /** What parts of the page were drawn from. */
  readonly #drawn = new Map<string, string>();
  /** The turn whose conversation is shown, as it was then, and where more of it begins. */
  #told = "";
  #next: number | null = null;
  /** Its items, by where each part of them begins. */
  #parts = new Map<number, readonly TranscriptItem[]>();
  #partsOf = "";
  /** The steps that stand there, each by what it was drawn from. */
  #drawnSteps = new Map<string, HTMLElement>();
  /** The record that is to be shown as soon as it is there. */
  #sought: number | "beginning" | null = null;
  #asking: number | undefined;

  constructor(view: SessionView) {
    this.#view = view;
    const known = sessionPageState(kept());
    const { sessionId } = view;
    this.#state = known?.sessionId === sessionId ? known : { sessionId, turn: null };
    this.#slider.addEventListener("input", () => this.#chooseRow(this.#slider.valueAsNumber - 1));
    const at = (event: MouseEvent) => this.#rowAt(event.clientX);
    this.#chart.addEventListener("click", (event) => {
      this.#chooseRow(at(event));
      this.#slider.focus();
    });
    this.#chart.addEventListener("mousemove", (event) => this.#point(at(event)));
    this.#chart.addEventListener("mouseleave", () => this.#point(null));
    this.#conversation.open = true;
    this.#more.hidden = true;
    this.#conversation.addEventListener("toggle", () => this.#converse(0));
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
        button("Search in This Session…", { class: "second" }, () => send({ kind: "search" })),
        this.#losses,
      ),
      el(
        "section",
        { class: "block", aria: { label: "Context by turn" } },
        el("label", { class: "named", for: "turn" }, "Context by turn"),
        this.#chart,
        el("div", { class: "budget scrubber" }, this.#slider),
        this.#pointed,
        this.#key,
      ),
      this.#turn,
      this.#conversation,
      this.#kept,
      this.#done,
      this.#lineage,
      el("details", { id: "digest" }, el("summary", {}, el("h2", {}, "Digest")), this.#digest),
      this.#table,
    );
    this.show(view);
  }

  /** Show the session as it is now; what has the focus keeps it. */
  show(view: SessionView): void {
    this.#view = view;
    const { rows, events, merged, kept: lists, digest } = view;
    fill(this.#trouble);
    fill(this.#title, view.name);
    fill(this.#about, view.about);
    this.#losses.hidden = !events.some(({ kind }) => kind === "compaction");
    this.#slider.max = String(Math.max(1, rows.length));
    this.#slider.disabled = rows.length === 0;
    this.#showChosen(0);
    this.#drawnOnce("kept", [lists], () => fill(this.#kept, ...lists.map(listSection)));
    this.#drawnOnce("digest", [digest], () => this.#showDigest(digest));
    this.#drawnOnce("lineage", [view.lineage], () => this.#showLineage());
    this.#drawnOnce("key", [events, merged, heightOf(rows, view.window)], () =>
      fill(this.#key, ...keyOf(view)),
    );
    this.#showTable();
    page().setAttribute("data-ready", String(rows.length));
  }

  /** Draw a part of the page where what it is drawn from has changed; the focus stays. */
  #drawnOnce(part: string, from: readonly unknown[], draw: () => void): void {
    const now = JSON.stringify(from);
    if (this.#drawn.get(part) !== now) {
      this.#drawn.set(part, now);
      keepingFocus(draw);
    }
  }

  #showDigest(digest: SessionView["digest"]): void {
    const of = (wanted: boolean) =>
      digest === null
        ? []
        : digestParts(digest, digest).filter(({ section }) => SHOWN.includes(section) === wanted);
    const blocks = of(true).map((part) => {
      const rows = partRows({ ...part, why: "", tokens: 0 }, "h2");
      return el("section", { class: "block" }, ...rows);
    });
    fill(this.#done, ...blocks);
    const parts = of(false).flatMap((part) => partRows(part));
    const body = parts.length > 0 ? parts : [el("p", { class: "quiet" }, noDigest(digest))];
    fill(this.#digest, ...body);
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

  /** The turn that is chosen, none in a session without turns. */
  get #turnChosen(): PageTurn | null {
    const row = this.#view.rows[this.#chosen];
    return row === undefined ? null : chosenIn(row, this.#state.turn);
  }

  #chooseRow(at: number): void {
    this.#choose(this.#view.rows[at]?.last ?? null);
  }

  /** Choose a turn; the newest one, or null, goes along with the session. */
  #choose(turn: number | null): void {
    this.#sought = null;
    const isNewest = turn === this.#view.rows.at(-1)?.last;
    this.#state = { ...this.#state, turn: isNewest ? null : turn };
    this.#showChosen(REST_MS);
  }

  /** Show a turn, and a record in its conversation or its beginning. */
  goTo({ turn, seq }: PagePlace): void {
    this.#choose(turn);
    this.#sought = seq ?? "beginning";
    this.#conversation.open = true;
    this.#told = "";
    this.#converse(0);
  }

  /** Show the chosen turn, and its conversation when the choice has rested for so long. */
  #showChosen(rest: number): void {
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
    this.#drawnOnce("turn", [row, this.#state.turn, row && eventsOf(row, events)], () =>
      fill(this.#turn, ...this.#turnParts(row)),
    );
    this.#converse(rest);
  }

  /** Ask for the conversation of the chosen turn, or for how it goes on. */
  #converse(rest: number): void {
    const chosen = this.#turnChosen;
    const wanted = JSON.stringify([chosen, this.#view.rows[this.#chosen]]);
    if (chosen === null || wanted === this.#told || !this.#conversation.open) {
      return;
    }
    this.#told = wanted;
    const isSame = chosen.turnId === this.#partsOf;
    const from = isSame ? Math.max(0, ...this.#parts.keys()) : 0;
    window.clearTimeout(this.#asking);
    this.#asking = window.setTimeout(() => this.#ask(from), rest);
  }

  #ask(offset: number): void {
    const chosen = this.#turnChosen;
    if (chosen !== null) {
      send({ kind: "conversation", turnId: chosen.turnId, offset });
    }
  }

  /** Show a part of a conversation, unless another turn was chosen meanwhile. */
  tell({ offset, part }: Conversation): void {
    const { turnId, items, nextOffset } = part;
    if (turnId !== this.#turnChosen?.turnId) {
      return;
    }
    const before = turnId === this.#partsOf ? [...this.#parts] : [];
    this.#partsOf = turnId;
    this.#parts = new Map([...before.filter(([from]) => from < offset), [offset, items]]);
    this.#next = nextOffset;
    this.#more.hidden = nextOffset === null;
    const steps = spoken([...this.#parts.values()].flat());
    keepingFocus(() => this.#showSteps(steps));
    if (this.#sought === "beginning") {
      this.#sought = null;
      this.#conversation.scrollIntoView();
      this.#conversation.querySelector("summary")?.focus({ preventScroll: true });
    }
    const at = this.#sought === null ? -1 : stepOf(steps, this.#sought);
    if (at !== -1) {
      this.#sought = null;
      showStep(this.#steps.children[at]);
    } else if (this.#sought !== null && nextOffset !== null) {
      this.#ask(nextOffset);
    }
  }

  /** A step that stood there stays as it is: unfolded, focused, and in its place. */
  #showSteps(steps: readonly Spoken[]): void {
    const before = this.#drawnSteps;
    this.#drawnSteps = new Map(
      steps.map((step) => {
        const from = JSON.stringify(step);
        return [from, before.get(from) ?? stepRow(step)];
      }),
    );
    const now = [...this.#drawnSteps.values()];
    const isSame = (each: HTMLElement, at: number) => each === this.#steps.children[at];
    const kept = now.findIndex((each, at) => !isSame(each, at));
    const stays = kept === -1 ? now.length : kept;
    while (this.#steps.children.length > stays) {
      this.#steps.lastElementChild?.remove();
    }
    this.#steps.append(...now.slice(stays));
  }

  #turnParts(row: PageRow | undefined): readonly Child[] {
    if (row === undefined) {
      return [el("p", { class: "quiet" }, "No turn yet. The page follows the session.")];
    }
    const when = row.startedAt === null ? null : time(row.startedAt);
    const { turn, turnId, task } = chosenIn(row, this.#state.turn);
    // One that does not apply stays in its place: a button that comes would push what is read.
    const act = (label: string, action: TurnAction, applies = true) => {
      const made = button(label, { class: "second" }, () => send({ kind: "turn", turnId, action }));
      made.disabled = !applies;
      return made;
    };
    const isOver = row.outcome !== "open" || turn !== row.last;
    return [
      el("h2", {}, turnName(row), " ", el("span", { class: "about" }, when)),
      row.turns.length === 1 ? null : this.#turnButtons(row, turn),
      el("p", { class: "asked" }, task === "" ? "No text." : task),
      el("p", { class: "quiet" }, turnText(row)),
      ...eventsOf(row, this.#view.events).flatMap(eventRows),
      el(
        "div",
        { class: "buttons" },
        turn === row.turn
          ? button("Show Request", { class: "second" }, () =>
              send({ kind: "record", ref: `#${row.seq}` }),
            )
          : null,
        act("Add Marker…", "mark", isOver),
        act("Restore from Here…", "restore", isOver),
        act("Show Changed Files", "changes", row.filesChanged > 0),
        act("Compare with…", "compare"),
        act("More…", "more"),
      ),
    ];
  }

  /** The turns of a row that stands for several, to choose from. */
  #turnButtons({ turns }: PageRow, chosen: number): HTMLElement {
    const buttons = turns.map(({ turn }) =>
      button(
        String(turn),
        { class: "second", aria: { label: `Turn ${turn}`, pressed: String(turn === chosen) } },
        () => this.#choose(turn),
      ),
    );
    return el("div", { class: "turns", role: "group", aria: { label: "Which turn" } }, ...buttons);
  }

  /** Say beside the pointer's place what is there; the chosen turn is told below. */
  #point(at: number | null): void {
    const row = at === null ? undefined : this.#view.rows[at];
    fill(
      this.#pointed,
      row === undefined
        ? legend(this.#view)
        : `${turnName(row)}: ${cut(row.turns[0].task, 80)} ${turnText(row)}`,
    );
  }

  #rowAt(x: number): number {
    const { left, width } = this.#chart.getBoundingClientRect();
    const share = (x - left - LEFT) / Math.max(1, width - LEFT - RIGHT);
    const { length } = this.#view.rows;
    return Math.max(0, Math.min(length - 1, Math.floor(share * length)));
  }

  #draw(): void {
    const { rows, events, window, trigger } = this.#view;
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
    // The height of the limit where another stands too near is not written.
    const heights = [...new Set([0, trigger ?? 0, window ?? 0, full])]
      .filter((tokens) => tokens <= full)
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
    const across = (from: number, to: number) => ({
      x: String(near(from)),
      width: String(near(to - from)),
    });
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
      this.#chart,
      svg(
        "svg",
        { width: String(wide + RIGHT), height: String(BOTTOM) },
        ...(isCrowded ? [] : bands).map(([from, to]) =>
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

  /** A session alone has no lineage to show. */
  #showLineage(): void {
    const picture = this.#view.lineage;
    this.#lineage.hidden = (picture?.rows.length ?? 0) < 2;
    if (picture === null || this.#lineage.hidden) {
      return;
    }
    const { rows, began, ended, left } = picture;
    const items = rows.map(({ id, name, made, source, at, standing, opens, isHere }) => {
      const title =
        opens && !isHere
          ? button(name, { class: "link" }, () => openOther(id))
          : el("span", { class: opens ? "" : "quiet" }, name);
      const from = source === "" ? null : el("span", { class: "spoken" }, ` from “${source}”`);
      const when = at === null ? null : time(at);
      const words = dotted(standing, made);
      const about = el("span", { class: "about" }, words, from, when && " · ", when);
      return el("li", { class: isHere ? "row here" : "row" }, title, " ", about);
    });
    const axis = el(
      "div",
      { class: "axis quiet" },
      ...[began, ended].map((stamp) => (stamp === null ? null : time(stamp))),
    );
    const key = [
      ["fork", "forked"],
      ["restore", "restored"],
      ["compaction", "compacted"],
      ["import", "imported"],
      ["subagent", "subagent"],
    ].filter(([kind]) => rows.some((row) => row.kind === kind));
    fill(
      this.#lineage,
      el("h2", {}, "Lineage ", el("span", { class: "about" }, left)),
      el("div", { class: "tree" }, el("div", {}, this.#lines, axis), el("ol", {}, ...items)),
      el(
        "p",
        { class: "key quiet", aria: { hidden: "true" } },
        ...key.map(([kind = "", words = ""]) => keyOfLine(kind, words)),
        el("span", {}, "Long pauses are shortened."),
      ),
    );
    this.#drawLineage();
  }

  /** A line for each session from its beginning to its last record, and a bend where it began. */
  #drawLineage(): void {
    const rows = this.#view.lineage?.rows ?? [];
    const wide = this.#lines.clientWidth - 2 * DOT;
    const high = this.#lineage.querySelector("li")?.offsetHeight ?? 0;
    if (wide <= 0) {
      return;
    }
    const x = (share: number) => near(DOT + share * wide);
    const y = (row: number) => (row + 0.5) * high;
    const lines = rows.flatMap(({ from, to, parent, isHere, isThere, kind }, row) => {
      const looks = `line ${isHere ? "here" : ""} ${isThere ? "" : "gone"}`;
      const bend = `M${x(from)},${y(parent ?? row)} V${y(row)}`;
      const dot = { cx: String(x(from)), cy: String(y(row)), r: "3.5" };
      // What left a session after its last record left it as it then was.
      const left = Math.max(
        to,
        ...rows.filter((each) => each.parent === row).map((each) => each.from),
      );
      return [
        svg("path", { class: "rest", d: `M${x(to)},${y(row)} H${x(left)}` }),
        ...(parent === null ? [] : [svg("path", { class: `bend ${kind}`, d: bend })]),
        svg("path", { class: looks, d: `M${x(from)},${y(row)} H${x(to) + 1}` }),
        svg("circle", { class: `${looks} dot`, ...dot }),
      ];
    });
    const size = { width: String(wide + 2 * DOT), height: String(rows.length * high) };
    fill(this.#lines, svg("svg", size, ...lines));
  }

  /** Fill the table while it is open: it has a row for each of the picture. */
  #showTable(): void {
    if (this.#table.open) {
      const { rows, events } = this.#view;
      this.#drawnOnce("table", [rows, events], () => this.#fillTable());
    }
  }

  #fillTable(): void {
    this.#table.querySelector(".wide")?.remove();
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
      "Events",
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
          cut(row.turns[0].task, 80),
          eventsOf(row, this.#view.events)
            .map(({ name }) => name)
            .join(" "),
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

/** The number of a turn below its place in the picture. */
function numberAt(turn: number, place: number): HTMLElement {
  const made = el("span", { class: "number" }, turn.toLocaleString("en-US"));
  made.style.left = `${near(place)}px`;
  made.style.top = `${NUMBERS}px`;
  return made;
}

/** An event of a turn; of a compaction also what it lost. */
function eventRows({ kind, id, name, lost }: PageEvent): readonly HTMLElement[] {
  const shown = lost.slice(0, MOST_LOST).map((each) => el("li", {}, each));
  const more = lost.length - shown.length;
  const rest = more === 0 ? [] : [el("li", { class: "quiet" }, `${more} more: What Was Lost`)];
  const title =
    kind === "branch" && id !== null ? button(name, { class: "link" }, () => openOther(id)) : name;
  const list = shown.length === 0 ? [] : [el("ul", { class: "lost" }, ...shown, ...rest)];
  return [el("p", {}, title), ...list];
}

/** Bring a step into sight, unfolded, with the focus on its record. */
function showStep(step: Element | undefined): void {
  const folded = step?.querySelector("details");
  if (folded) {
    folded.open = true;
  }
  step?.scrollIntoView({ block: "center" });
  step?.querySelector("button")?.focus({ preventScroll: true });
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

/** Whether a number of tokens stands in a picture of this height; so does one that is not known. */
function isInside(tokens: number | null, height: number): boolean {
  return tokens === null || tokens <= height;
}

function legend({ rows, window, trigger, merged }: SessionView): string {
  const parts = [
    merged > 1 ? `There are many turns: each step stands for ${merged} of them.` : "",
    window === null
      ? ""
      : `Window: ${tokenCount(window)}${trigger === null ? "" : `, compaction offered from ${trigger.toLocaleString("en-US")}`}.`,
    isInside(window, heightOf(rows, window)) ? "" : "The picture shows the lowest tenth of it.",
    counted(rows.length, "", "The arrow keys go from turn to turn."),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** The signs of the picture that occur, and what they mean. */
function keyOf({ rows, events, window, trigger }: SessionView): readonly HTMLElement[] {
  const height = heightOf(rows, window);
  const line = (tokens: number | null, kind: string, words: string) =>
    tokens !== null && isInside(tokens, height) ? [keyOfLine(kind, words)] : [];
  const sign = (kind: string, words: string) =>
    el(
      "span",
      {},
      svg("svg", { width: "16", height: "22", viewBox: SIGNS[kind] ?? "" }, mark(kind, 8, false)),
      words,
    );
  const has = (kind: string) => events.some((event) => event.kind === kind);
  return [
    ...(has("compaction") ? [sign("compaction", "compaction")] : []),
    ...(has("marker") ? [sign("marker", "marker")] : []),
    ...(has("branch") ? [sign("branch", "branch")] : []),
    ...line(window, "limit", "window"),
    ...line(trigger, "trigger", "compaction offered"),
  ];
}

/** The part of the picture that shows a sign which stands at 8 pixels. */
const SIGNS: Readonly<Record<string, string>> = {
  compaction: `0 ${FLOOR - 20} 16 22`,
  marker: `4 ${TOP - 20} 16 22`,
  branch: `4 ${FLOOR - 6} 20 22`,
};

function keyOfLine(kind: string, words: string): HTMLElement {
  const line = svg("path", { class: `bend ${kind}`, d: "M0,11 H16" });
  return el("span", {}, svg("svg", { width: "16", height: "22" }, line), words);
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

function listSection({ title, count, items }: SessionView["kept"][number]): HTMLElement {
  const rows = items.map((item) => el("li", {}, item));
  const about = el("span", { class: "about" }, count);
  return el("section", { class: "block" }, el("h2", {}, title, " ", about), el("ul", {}, ...rows));
}

function openOther(sessionId: string): void {
  send({ kind: "goTo", sessionId });
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
  } else if (message.kind === "place") {
    shown?.goTo(message);
  } else if (message.kind === "trouble") {
    drawn = "";
    if (shown === null) {
      fill(page(), el("h1", {}, "Session"), troubleBox(message));
    } else {
      shown.complain(message);
    }
  }
});
