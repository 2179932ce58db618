/** The page of a session: its turns as a strip, its conversation, and its lists below. */

import type { ToPage, Trouble } from "../common/model/pages.ts";
import {
  chosenIn,
  type PageAction,
  type PageEvent,
  type PageTurn,
  type PlanAtTurn,
  pageActions,
  type SessionView,
} from "../page/model/page.ts";
import { showBegun } from "./begun.ts";
import { showFiles } from "./changedFiles.ts";
import {
  button,
  el,
  fill,
  host,
  keepingFocus,
  page,
  type Shown,
  send,
  TroublePlace,
} from "./draw.ts";
import { drawLineage, listSection, showDigest, showLineage, tableOf } from "./lists.ts";
import { takeWhole } from "./steps.ts";
import { Strip } from "./strip.ts";
import { Transcript } from "./transcript.ts";
import { TurnCard } from "./turnCard.ts";

/** Pause after choosing a turn before its conversation is requested. */
const REST_MS = 150;
/** The same for the plan of a turn, which takes the server longer. */
const PLAN_MS = 500;

class SessionPage implements Shown<SessionView> {
  readonly #title = el("h1");
  readonly #about = el("p.quiet");
  readonly #refused = el("p.note.refused", { role: "note" });
  readonly #actions = el("span.actions");
  readonly #trouble = new TroublePlace();
  readonly #losses = button("Lost in Compaction", "second", () => send({ kind: "losses" }));
  readonly #strip: Strip;
  readonly #card = new TurnCard((turn) => this.#choose(turn));
  readonly #transcript: Transcript;
  readonly #files = el("section.block");
  readonly #begun = el("section.begun", { aria: { label: "No turn" } });
  readonly #kept = el("div");
  readonly #lineage = el("section.block.lineage");
  readonly #lines = el("div.lines", { aria: { hidden: "true" } });
  readonly #done = el("div");
  readonly #digest = el("div");
  readonly #table = el("details", { id: "table" }, el("summary", el("h2", "All turns")));
  #view: SessionView;
  /** The chosen turn; null for the newest. */
  #turnNumber: number | null = null;
  /** The plan at the end of a turn, and the timer that requests another one. */
  #planAtTurn: PlanAtTurn | null = null;
  #askingPlan: number | undefined;
  /** The values from which each part of the page was drawn, as JSON. */
  readonly #drawn = new Map<string, string>();

  constructor(view: SessionView) {
    this.#view = view;
    this.#transcript = new Transcript(
      view,
      (turn) => this.#read(turn),
      () => this.#hideRequest(),
    );
    this.#strip = new Strip(view, (row) => this.#chooseRow(row));
    this.#table.addEventListener("toggle", () => this.#showTable());
    new ResizeObserver(() => drawLineage(this.#lines, this.#view.lineage)).observe(this.#lines);
    const above = el(
      "div",
      el(
        "header",
        el("div", this.#title, this.#about),
        el("div.buttons", this.#actions, this.#losses),
      ),
      view.shared && el("p.note", { role: "note" }, view.shared.note),
      this.#refused,
      this.#trouble.element,
      this.#strip.element,
      this.#card.element,
      this.#begun,
    );
    // The conversation fills the rest of the first screen.
    new ResizeObserver(() => {
      const { bottom } = above.getBoundingClientRect();
      page().style.setProperty("--above", `${Math.ceil(bottom + window.scrollY)}px`);
    }).observe(above);
    fill(
      page(),
      above,
      this.#transcript.element,
      this.#kept,
      this.#files,
      this.#done,
      this.#lineage,
      el("details", { id: "digest" }, el("summary", el("h2", "Digest")), this.#digest),
      this.#table,
    );
  }

  /** Show the session's current state; the focused element keeps the focus. */
  show(view: SessionView): void {
    this.#view = view;
    this.#trouble.clear();
    this.#keepingPlace(() => this.#showAll(view));
    const { rows, events } = view;
    // Reload the newest turn after each record, even if its row stays the same.
    const newest = rows.at(-1);
    const turns = rows.flatMap((row) => {
      const state = JSON.stringify(row === newest ? [row, view.seq] : row);
      return row.turns.map((turn) => [turn, state] as const);
    });
    this.#transcript.show(
      turns.map(([turn]) => turn),
      new Map(turns.map(([{ turnId }, state]) => [turnId, state])),
      eventsByTurn(events),
      this.#turnChosen?.turnId ?? null,
    );
    page().setAttribute("data-ready", String(rows.length));
  }

  #showAll({ events, digest, ...view }: SessionView): void {
    fill(this.#title, view.name);
    fill(this.#about, view.about);
    fill(this.#refused, view.refused);
    this.#refused.hidden = view.refused === "";
    const actions = pageActions(view);
    this.#drawnOnce("actions", [actions], () => fill(this.#actions, ...actions.map(actionButton)));
    this.#losses.hidden = !events.some(({ kind }) => kind === "compaction");
    this.#showChosen();
    this.#drawnOnce("begun", [view.begun, view.refused, view.rows.length === 0], () =>
      showBegun(this.#begun, this.#view),
    );
    this.#drawnOnce("digest", [digest], () => showDigest(this.#done, this.#digest, digest));
    this.#drawnOnce("lineage", [view.lineage], () =>
      showLineage(this.#lineage, this.#lines, view.lineage),
    );
    this.#showTable();
  }

  /** Draw without moving the focused element if it is visible, else the first visible one. */
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

  /** Draw a part of the page if its values changed; the focus stays. */
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
    } else if (message.kind === "planAtTurn") {
      this.#planAtTurn = message;
      this.#showKept();
    } else if (message.kind === "place") {
      this.#chooseOnly(message.turn);
      this.#transcript.highlights.show(message.found);
      this.#open(message.seq);
    }
  }

  get #chosen(): number {
    const { rows } = this.#view;
    const turn = this.#turnNumber;
    const found = turn === null ? -1 : rows.findLastIndex((row) => row.turn <= turn);
    return found === -1 ? rows.length - 1 : found;
  }

  /** The chosen turn; null in a session without turns. */
  get #turnChosen(): PageTurn | null {
    const row = this.#view.rows[this.#chosen];
    return row === undefined ? null : chosenIn(row, this.#turnNumber);
  }

  #chooseRow(at: number): void {
    this.#choose(this.#view.rows[at]?.last ?? null);
  }

  /** Choose a turn, and show its conversation after a pause. */
  #choose(turn: number | null): void {
    this.#chooseOnly(turn);
    const chosen = this.#turnChosen;
    if (chosen !== null) {
      this.#transcript.goTo(chosen.turnId, REST_MS);
    }
  }

  /** Scroll to the conversation of the chosen turn, or to a record of it. */
  #open(seq: number | null): void {
    const chosen = this.#turnChosen;
    if (chosen !== null) {
      this.#transcript.open(chosen.turnId, seq);
    }
  }

  /** Choose the turn that the user scrolled to. */
  #read(turn: number): void {
    if (turn !== this.#turnChosen?.turn) {
      this.#keepingPlace(() => this.#chooseOnly(turn), this.#transcript.element);
    }
  }

  /** Choose a turn; the newest, or null, follows the session. */
  #chooseOnly(turn: number | null): void {
    const isNewest = turn === this.#view.rows.at(-1)?.last;
    this.#turnNumber = isNewest ? null : turn;
    this.#showChosen();
  }

  /** Show the request of the chosen turn once: above the conversation, or in it. */
  #hideRequest(): void {
    this.#card.hideRequest(this.#transcript.showsRequest(this.#turnChosen?.turnId ?? ""));
  }

  #showChosen(): void {
    this.#strip.show(this.#view, this.#chosen);
    this.#card.show(this.#view.rows[this.#chosen], this.#turnNumber, this.#view);
    this.#hideRequest();
    const turn = this.#turnNumber === null ? null : this.#turnChosen;
    window.clearTimeout(this.#askingPlan);
    if (turn !== null && this.#planAtTurn?.turnId !== turn.turnId) {
      const { turnId } = turn;
      this.#askingPlan = window.setTimeout(() => send({ kind: "planAtTurn", turnId }), PLAN_MS);
    }
    this.#showKept();
    this.#drawnOnce("files", [this.#view.files, turn], () =>
      showFiles(this.#files, this.#view.files, turn),
    );
  }

  /** Show facts and decisions as of now, and the plan as of the chosen turn once it is loaded. */
  #showKept(): void {
    const turn = this.#turnNumber === null ? null : this.#turnChosen;
    const then =
      turn === null || this.#planAtTurn?.turnId !== turn.turnId ? null : this.#planAtTurn;
    const { kept } = this.#view;
    const others = kept.filter(({ id }) => id !== "plan");
    const plan = then?.plan && {
      ...then.plan,
      title: `${then.plan.title} as of turn ${turn?.turn}`,
    };
    const lists = then === null ? kept : [...(plan ? [plan] : []), ...others];
    this.#drawnOnce("kept", [lists], () => fill(this.#kept, ...lists.map(listSection)));
  }

  /** Fill the table while it is open: it has as many rows as the picture. */
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

function actionButton({ label, kind }: PageAction, place: number): HTMLElement {
  return button(label, place === 0 ? "first" : "second", () => send({ kind }));
}

function eventsByTurn(events: readonly PageEvent[]): ReadonlyMap<number, readonly PageEvent[]> {
  return Map.groupBy(
    events.filter((event) => event.turn !== null),
    ({ turn }) => turn ?? 0,
  );
}

host("session", "Session", SessionPage);
