/** The page of a session: its picture, the chosen turn, and below it what is known of it. */

import type { ToPage, Trouble } from "../model/pages.ts";
import {
  type Conversation,
  chosenIn,
  eventsOf,
  heightOf,
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
import { cut } from "../model/text.ts";
import type { TranscriptItem } from "../protocol.ts";
import {
  button,
  type Child,
  el,
  fill,
  host,
  keep,
  keepingFocus,
  kept,
  linesOf,
  page,
  type Shown,
  send,
  TroublePlace,
  time,
} from "./draw.ts";
import { drawLineage, eventRows, listSection, showDigest, showLineage, tableOf } from "./lists.ts";
import { drawPicture, keyOf, legend, rowAt } from "./picture.ts";
import { link } from "./quotes.ts";

/** The pause in moving after which the conversation of a turn is asked for. */
const REST_MS = 150;

class SessionPage implements Shown<SessionView> {
  readonly #title = el("h1");
  readonly #about = el("p.quiet");
  readonly #trouble = new TroublePlace();
  readonly #losses = button("What Was Lost", "second", () => send({ kind: "losses" }));
  readonly #chart = el("div.chart", { aria: { hidden: "true" } });
  readonly #slider = el("input", { id: "turn", type: "range", min: "1", step: "1" });
  readonly #pointed = el("p.quiet.pointed", { aria: { hidden: "true" } });
  readonly #turn = el("section.turn", { aria: { label: "The chosen turn" } });
  readonly #steps = el("ol.steps");
  readonly #more = button("Show More", "second", () => this.#ask(this.#next ?? 0));
  readonly #key = el("p.key.quiet", { aria: { hidden: "true" } });
  readonly #conversation = el(
    "details",
    { id: "conversation" },
    el("summary", el("h2", "Conversation")),
    this.#steps,
    this.#more,
  );
  readonly #kept = el("div");
  readonly #lineage = el("section.block.lineage");
  readonly #lines = el("div.lines", { aria: { hidden: "true" } });
  readonly #done = el("div");
  readonly #digest = el("div");
  readonly #table = el("details", { id: "table" }, el("summary", el("h2", "All turns")));
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
    const at = (event: MouseEvent) => rowAt(this.#chart, this.#view.rows, event.clientX);
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
    new ResizeObserver(() => drawPicture(this.#chart, this.#view, this.#chosen)).observe(
      this.#chart,
    );
    new ResizeObserver(() => drawLineage(this.#lines, this.#view.lineage)).observe(this.#lines);
    fill(
      page(),
      el("header", this.#title, this.#about),
      this.#trouble.element,
      el(
        "div.buttons",
        button("Resume in Terminal", "first", () => send({ kind: "resume" })),
        button("Compact…", "second", () => send({ kind: "compact" })),
        button("Search in This Session…", "second", () => send({ kind: "search" })),
        this.#losses,
      ),
      el(
        "section.block",
        { aria: { label: "Context by turn" } },
        el("label.named", { for: "turn" }, "Context by turn"),
        this.#chart,
        el("div.budget.scrubber", this.#slider),
        this.#pointed,
        this.#key,
      ),
      this.#turn,
      this.#conversation,
      this.#kept,
      this.#done,
      this.#lineage,
      el("details", { id: "digest" }, el("summary", el("h2", "Digest")), this.#digest),
      this.#table,
    );
  }

  /** Show the session as it is now; what has the focus keeps it. */
  show(view: SessionView): void {
    this.#view = view;
    const { rows, events, merged, kept: lists, digest } = view;
    this.#trouble.clear();
    fill(this.#title, view.name);
    fill(this.#about, view.about);
    this.#losses.hidden = !events.some(({ kind }) => kind === "compaction");
    this.#slider.max = String(Math.max(1, rows.length));
    this.#slider.disabled = rows.length === 0;
    this.#showChosen(0);
    this.#drawnOnce("kept", [lists], () => fill(this.#kept, ...lists.map(listSection)));
    this.#drawnOnce("digest", [digest], () => showDigest(this.#done, this.#digest, digest));
    this.#drawnOnce("lineage", [view.lineage], () =>
      showLineage(this.#lineage, this.#lines, view.lineage),
    );
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

  complain(trouble: Trouble): void {
    this.#trouble.show(trouble);
  }

  take(message: ToPage): void {
    if (message.kind === "conversation") {
      this.#tell(message);
    } else if (message.kind === "place") {
      this.#goTo(message);
    }
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
  #goTo({ turn, seq }: PagePlace): void {
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
    drawPicture(this.#chart, this.#view, this.#chosen);
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
  #tell({ offset, part }: Conversation): void {
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
      return [el("p.quiet", "No turn yet. The page follows the session.")];
    }
    const when = row.startedAt === null ? null : time(row.startedAt);
    const { turn, turnId, task } = chosenIn(row, this.#state.turn);
    // One that does not apply stays in its place: a button that comes would push what is read.
    const act = (label: string, action: TurnAction, applies = true) => {
      const made = button(label, "second", () => send({ kind: "turn", turnId, action }));
      made.disabled = !applies;
      return made;
    };
    const isOver = row.outcome !== "open" || turn !== row.last;
    return [
      el("h2", turnName(row), " ", el("span.about", when)),
      row.turns.length === 1 ? null : this.#turnButtons(row, turn),
      el("p.asked", task === "" ? "No text." : task),
      el("p.quiet", turnText(row)),
      ...eventsOf(row, this.#view.events).flatMap(eventRows),
      el(
        "div.buttons",
        turn === row.turn
          ? button("Show Request", "second", () => send({ kind: "record", ref: `#${row.seq}` }))
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
    const buttons = turns.map(({ turn }) => {
      const aria = { label: `Turn ${turn}`, pressed: String(turn === chosen) };
      return button(String(turn), "second", () => this.#choose(turn), { aria });
    });
    return el("div.turns", { role: "group", aria: { label: "Which turn" } }, ...buttons);
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

  /** Fill the table while it is open: it has a row for each of the picture. */
  #showTable(): void {
    if (this.#table.open) {
      const { rows, events } = this.#view;
      this.#drawnOnce("table", [rows, events], () => {
        this.#table.querySelector(".wide")?.remove();
        this.#table.append(tableOf(this.#view));
      });
    }
  }
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
    "div.who",
    el("span", WHO[kind]),
    link(ref, ref),
    el("span", { class: hasFailed ? "failed" : "about" }, about),
  );
  if (kind === "patch") {
    const lines = patchLines(text).map((line) =>
      el("div", { class: `piece ${line.kind}` }, line.text === "" ? " " : line.text),
    );
    return el("li", { class: `step ${kind}` }, head, el("div.text", ...lines));
  }
  if (kind !== "command") {
    return el("li", { class: `step ${kind}` }, head, el("div.words", ...linesOf(text)));
  }
  const command = el("code", text);
  const folded = el("summary", command);
  const body =
    printed.trim() === "" ? command : el("details", folded, el("div.text", ...linesOf(printed)));
  return el("li", { class: `step ${kind}` }, head, body);
}

const WHO: Readonly<Record<Spoken["kind"], string>> = {
  user: "You",
  assistant: "Codex",
  summary: "Summary of a compaction",
  command: "Ran",
  patch: "Changed",
};

host("session", "Session", SessionPage);
