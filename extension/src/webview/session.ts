/** The page of a session: its picture, the chosen turn, what is known of it, and its conversation. */

import type { ToPage, Trouble } from "../model/pages.ts";
import {
  chosenIn,
  eventsOf,
  type PageRow,
  type PageTurn,
  type SessionView,
  spokenTurn,
  type TurnAction,
  turnName,
  turnText,
} from "../model/sessionPage.ts";
import { cut } from "../model/text.ts";
import {
  button,
  type Child,
  el,
  fill,
  host,
  keep,
  keepingFocus,
  page,
  type Shown,
  send,
  TroublePlace,
  time,
} from "./draw.ts";
import { drawLineage, eventRows, listSection, showDigest, showLineage, tableOf } from "./lists.ts";
import { drawPicture, keyOf, legend, rowAt } from "./picture.ts";
import { takeWhole } from "./steps.ts";
import { Transcript } from "./transcript.ts";

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
  readonly #key = el("p.key.quiet", { aria: { hidden: "true" } });
  readonly #transcript = new Transcript((turn) => this.#read(turn));
  readonly #kept = el("div");
  readonly #lineage = el("section.block.lineage");
  readonly #lines = el("div.lines", { aria: { hidden: "true" } });
  readonly #done = el("div");
  readonly #digest = el("div");
  readonly #table = el("details", { id: "table" }, el("summary", el("h2", "All turns")));
  #view: SessionView;
  /** The chosen turn; null for the newest one. */
  #turnNumber: number | null = null;
  /** What parts of the page were drawn from. */
  readonly #drawn = new Map<string, string>();

  constructor(view: SessionView) {
    this.#view = view;
    keep({ sessionId: view.sessionId });
    this.#slider.addEventListener("input", () => this.#chooseRow(this.#slider.valueAsNumber - 1));
    const at = (event: MouseEvent) => rowAt(this.#chart, this.#view.rows, event.clientX);
    this.#chart.addEventListener("click", (event) => {
      this.#chooseRow(at(event));
      this.#slider.focus();
    });
    this.#chart.addEventListener("mousemove", (event) => this.#point(at(event)));
    this.#chart.addEventListener("mouseleave", () => this.#point(null));
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
      this.#kept,
      this.#done,
      this.#lineage,
      el("details", { id: "digest" }, el("summary", el("h2", "Digest")), this.#digest),
      this.#table,
      this.#transcript.element,
    );
  }

  /** Show the session as it is now; what has the focus keeps it. */
  show(view: SessionView): void {
    this.#view = view;
    this.#trouble.clear();
    this.#keepingPlace(() => this.#showAll(view));
    const { rows } = view;
    // A record that changes no figure of the newest row is read, too.
    const newest = rows.at(-1);
    const turns = rows.flatMap((row) => {
      const standing = JSON.stringify(row === newest ? [row, view.seq] : row);
      return row.turns.map((turn) => [turn, standing] as const);
    });
    this.#transcript.show(
      turns.map(([turn]) => turn),
      new Map(turns.map(([{ turnId }, standing]) => [turnId, standing])),
      this.#turnChosen?.turnId ?? null,
    );
    page().setAttribute("data-ready", String(rows.length));
  }

  #showAll({ rows, events, merged, kept: lists, digest, ...view }: SessionView): void {
    fill(this.#title, view.name);
    fill(this.#about, view.about);
    this.#losses.hidden = !events.some(({ kind }) => kind === "compaction");
    this.#slider.max = String(Math.max(1, rows.length));
    this.#slider.disabled = rows.length === 0;
    this.#showChosen();
    this.#drawnOnce("kept", [lists], () => fill(this.#kept, ...lists.map(listSection)));
    this.#drawnOnce("digest", [digest], () => showDigest(this.#done, this.#digest, digest));
    this.#drawnOnce("lineage", [view.lineage], () =>
      showLineage(this.#lineage, this.#lines, view.lineage),
    );
    this.#drawnOnce("key", [events, merged, view.window], () =>
      fill(this.#key, ...keyOf(this.#view)),
    );
    this.#showTable();
  }

  /** Draw, and keep in its place what is read: what has the focus, if in sight, or is at the top. */
  #keepingPlace(draw: () => void, read?: HTMLElement): void {
    const isInSight = (each: Element) => {
      const { top, bottom } = each.getBoundingClientRect();
      return bottom > 0 && top < window.innerHeight;
    };
    const all = [document.activeElement ?? page(), ...page().children];
    const kept = read ?? all.find((each) => each !== document.body && isInSight(each)) ?? page();
    const before = kept.getBoundingClientRect().top;
    draw();
    if (kept.isConnected) {
      window.scrollBy(0, kept.getBoundingClientRect().top - before);
    }
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
    this.#transcript.fail();
  }

  take(message: ToPage): void {
    if (message.kind === "conversation") {
      void this.#transcript.take(message);
    } else if (message.kind === "whole") {
      takeWhole(message);
    } else if (message.kind === "place") {
      this.#chooseOnly(message.turn);
      this.#open(message.seq);
    }
  }

  get #chosen(): number {
    const { rows } = this.#view;
    const turn = this.#turnNumber;
    const found = turn === null ? -1 : rows.findLastIndex((row) => row.turn <= turn);
    return found === -1 ? rows.length - 1 : found;
  }

  /** The turn that is chosen, none in a session without turns. */
  get #turnChosen(): PageTurn | null {
    const row = this.#view.rows[this.#chosen];
    return row === undefined ? null : chosenIn(row, this.#turnNumber);
  }

  #chooseRow(at: number): void {
    this.#choose(this.#view.rows[at]?.last ?? null);
  }

  /** Choose a turn, and show its conversation when the choice has rested. */
  #choose(turn: number | null): void {
    this.#chooseOnly(turn);
    const chosen = this.#turnChosen;
    if (chosen !== null) {
      this.#transcript.goTo(chosen.turnId, REST_MS);
    }
  }

  /** Bring the conversation of the chosen turn into sight, or a record of it. */
  #open(seq: number | null): void {
    const chosen = this.#turnChosen;
    if (chosen !== null) {
      this.#transcript.open(chosen.turnId, seq);
    }
  }

  /** The turn that is read is the chosen one. */
  #read(turn: number): void {
    if (turn !== this.#turnChosen?.turn) {
      this.#keepingPlace(() => this.#chooseOnly(turn), this.#transcript.element);
    }
  }

  /** Choose a turn; the newest one, or null, goes along with the session. */
  #chooseOnly(turn: number | null): void {
    const isNewest = turn === this.#view.rows.at(-1)?.last;
    this.#turnNumber = isNewest ? null : turn;
    this.#showChosen();
  }

  #showChosen(): void {
    const { rows, events } = this.#view;
    const row = rows[this.#chosen];
    this.#slider.value = String(this.#chosen + 1);
    this.#slider.setAttribute(
      "aria-valuetext",
      row === undefined ? "No turn yet" : spokenTurn(row, events),
    );
    drawPicture(this.#chart, this.#view, this.#chosen);
    this.#point(null);
    this.#drawnOnce("turn", [row, this.#turnNumber, row && eventsOf(row, events)], () =>
      fill(this.#turn, ...this.#turnParts(row)),
    );
  }

  #turnParts(row: PageRow | undefined): readonly Child[] {
    if (row === undefined) {
      return [el("p.quiet", "No turn yet. The page follows the session.")];
    }
    const when = row.startedAt === null ? null : time(row.startedAt);
    const { turn, turnId, task } = chosenIn(row, this.#turnNumber);
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
        button("Read", "second", () => this.#open(null)),
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

host("session", "Session", SessionPage);
