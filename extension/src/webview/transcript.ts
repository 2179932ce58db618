/** The conversation of a session as one document, of which only what is near is in the page. */

import {
  type Conversation,
  type PageEvent,
  type PageTurn,
  type PartPlace,
  partAtEnd,
  partBefore,
  partBehind,
  type SessionView,
  type Spoken,
  spoken,
  stepOf,
} from "../page/model/page.ts";
import { el, fill, keepingFocus, send, time } from "./draw.ts";
import { Highlights } from "./highlights.ts";
import { eventRows } from "./lists.ts";
import { type Rows, rowsOf, showSteps } from "./steps.ts";

/** What is nearer is read before it is scrolled to, and what is farther is taken out: windows. */
const [NEAR, FAR] = [1.5, 4];

/** A part of a turn that is in the page. */
interface Part extends PartPlace {
  readonly element: HTMLElement;
  readonly steps: HTMLElement;
  /** The events after the turn; filled at its end. */
  readonly events: HTMLElement;
  eventsFrom: string;
  drawn: Rows;
  said: readonly Spoken[];
  /** The state of the turn when this was requested. */
  standing: string;
}

interface Asked extends PartPlace {
  readonly place: "alone" | "above" | "below" | "again";
  readonly standing: string;
}

/** What is kept at the top while more is read around it: a turn, or a record of it. */
interface Sought {
  readonly turnId: string;
  readonly seq: number | null;
}

export class Transcript {
  readonly element = el("div.pane", { role: "region", aria: { label: "Conversation" } });
  readonly highlights = new Highlights(this.element);
  readonly #waiting = el("p.quiet", "Reading…");
  readonly #reads: (turn: number) => void;
  readonly #session: Pick<SessionView, "folder" | "shared">;
  /** The events after each turn, by its number. */
  #events: ReadonlyMap<number, readonly PageEvent[]> = new Map();
  #turns: readonly PageTurn[] = [];
  /** How each turn stands, by its id: a part that was read before is read again. */
  #standing: ReadonlyMap<string, string> = new Map();
  #parts: readonly Part[] = [];
  #asked: Asked | null = null;
  /** Whether what was asked for may never come. */
  #isInDoubt = false;
  #asking: number | undefined;
  #sought: Sought | null = null;
  /** Whether it was brought into sight, and what is read around it still makes it higher. */
  #isOpening = false;
  #takesFocus = false;
  /** Where this scrolled to; from anywhere else a person has scrolled. */
  #top = 0;

  /** `reads` is told the turn that a person has scrolled to. */
  constructor(session: Pick<SessionView, "folder" | "shared">, reads: (turn: number) => void) {
    this.#session = session;
    this.#reads = reads;
    this.element.tabIndex = 0;
    this.element.addEventListener("scroll", () => this.#scrolled());
    window.addEventListener("scroll", () => this.#readOn());
    // What is sought stays in sight when the room changes.
    new ResizeObserver(() => this.#keepingPlace(() => {})).observe(this.element);
    for (const act of ["wheel", "pointerdown", "keydown"]) {
      // Whoever does something else is not brought back.
      window.addEventListener(act, () => this.#leaveOpening(), { capture: true, passive: true });
    }
  }

  /** The turns as they are now; what is read stays where it is. The first time `chosen` is shown. */
  show(
    turns: readonly PageTurn[],
    standing: ReadonlyMap<string, string>,
    events: ReadonlyMap<number, readonly PageEvent[]>,
    chosen: string | null,
  ): void {
    this.#turns = turns;
    this.#standing = standing;
    this.#events = events;
    this.element.hidden = turns.length === 0;
    const gone = this.#parts.filter(({ turnId }) => !standing.has(turnId));
    this.#keepingPlace(() => {
      this.#takeOut(gone);
      this.#showEvents();
    });
    if (this.#asked !== null && !standing.has(this.#asked.turnId)) {
      this.#asked = null; // it was taken back
    }
    if (this.#parts.length === 0 && chosen !== null && !standing.has(this.#sought?.turnId ?? "")) {
      this.goTo(chosen, 0);
    }
    this.#readOn();
  }

  /** Go to a turn, or to a record of it, once the choice has rested for so long. */
  goTo(turnId: string, rest: number, seq: number | null = null): void {
    window.clearTimeout(this.#asking);
    this.#asking = undefined;
    this.#sought = { turnId, seq };
    this.#asked = null;
    if (this.#parts.some((part) => part.turnId === turnId && part.offset === 0)) {
      this.#keepingPlace(() => {});
      this.#seek();
      this.#readOn(); // what was on its way is not waited for any more
    } else {
      this.#asking = window.setTimeout(() => {
        this.#asking = undefined;
        this.#ask({ turnId, offset: 0, next: null }, "alone");
      }, rest);
    }
  }

  /** Bring it into sight with the focus, at a turn or a record. */
  open(turnId: string, seq: number | null): void {
    this.#takesFocus = true;
    this.#isOpening = true;
    this.goTo(turnId, 0, seq);
  }

  /** Something was refused, maybe what was asked for here: it is asked for again with the next change. */
  fail(): void {
    this.#isInDoubt = true;
    this.#waiting.remove();
  }

  #leaveOpening(): void {
    this.#isOpening = false;
    this.#takesFocus = false;
  }

  async take({ offset, part: { turnId, items, nextOffset, total } }: Conversation): Promise<void> {
    const asked = this.#asked;
    if (asked === null || asked.turnId !== turnId || asked.offset !== offset) {
      return;
    }
    const said = spoken(items);
    const standing = this.#parts.find((part) => part.turnId === turnId && part.offset === offset);
    const { folder, shared } = this.#session;
    const where = { turnId, folder, speaker: shared?.speaker ?? "You" };
    const rows = await rowsOf(said, standing?.drawn ?? new Map(), where);
    if (this.#asked !== asked) {
      return; // meanwhile something else was asked for
    }
    this.#asked = null;
    this.#waiting.remove();
    const end = partAtEnd(turnId, total);
    if (asked.place === "above" && asked.next === null && offset < end.offset) {
      this.#ask(end, "above"); // only now it is known how long the turn above is
      return;
    }
    const there = this.#parts.find((part) => part.turnId === turnId && part.offset === offset);
    const part = there ?? this.#partOf(turnId, offset, items[0]?.at ?? null);
    this.#keepingPlace(() => {
      keepingFocus(() => showSteps(part.steps, rows));
      Object.assign(part, { said, drawn: rows, next: nextOffset, standing: asked.standing });
      if (asked.place === "alone") {
        this.#takeOut(this.#parts);
      }
      if (asked.place === "above") {
        this.element.prepend(part.element);
        this.#parts = [part, ...this.#parts];
      } else if (asked.place !== "again") {
        this.element.append(part.element);
        this.#parts = [...this.#parts, part];
      }
      this.#showEvents();
    });
    this.#seek();
    this.#readOn();
  }

  #partOf(turnId: string, offset: number, at: string | null): Part {
    const turn = this.#turns.find((each) => each.turnId === turnId)?.turn;
    const name = `Turn ${turn}${offset === 0 ? "" : ", continued"}`;
    const steps = el("ol.steps");
    const when = el("span.about", at === null ? null : time(at));
    const events = el("div.events");
    const element = el("article", el("h3", name, " ", when), steps, events);
    const none = { drawn: new Map(), said: [], next: null, standing: "", eventsFrom: "[]" };
    return { turnId, offset, element, steps, events, ...none };
  }

  /** Show at the end of each turn the events after it. */
  #showEvents(): void {
    for (const part of this.#parts) {
      const { turnId, next, events } = part;
      const turn = this.#turns.find((each) => each.turnId === turnId)?.turn ?? 0;
      const found = next === null ? (this.#events.get(turn) ?? []) : [];
      const from = JSON.stringify(found);
      if (part.eventsFrom !== from) {
        part.eventsFrom = from;
        keepingFocus(() => fill(events, ...found.flatMap(eventRows)));
      }
    }
  }

  #ask(part: PartPlace, place: Asked["place"]): void {
    this.#isInDoubt = false;
    this.#asked = { ...part, place, standing: this.#standing.get(part.turnId) ?? "" };
    if (this.#parts.length === 0) {
      this.element.append(this.#waiting);
    }
    send({ kind: "conversation", turnId: part.turnId, offset: part.offset });
  }

  /** Look on for the record that is sought; give it the focus where that was asked for. */
  #seek(): void {
    const { turnId, seq } = this.#sought ?? { turnId: "", seq: null };
    const found = this.#elementOf(this.#sought);
    const last = this.#parts.findLast((part) => part.turnId === turnId);
    if (last !== undefined && found === null && last.next !== null) {
      this.#ask({ turnId, offset: last.next, next: null }, "below");
    } else if (last !== undefined && this.#takesFocus) {
      this.#takesFocus = false;
      if (seq !== null && found !== null) {
        this.highlights.seek(found);
      }
      const own = seq === null ? null : found?.querySelector("button");
      (own ?? this.element).focus({ preventScroll: true });
    }
    if (this.#isOpening) {
      this.element.scrollIntoView({ block: "nearest" });
    }
  }

  #elementOf(sought: Sought | null): Element | null {
    const parts = this.#parts.filter(({ turnId }) => turnId === sought?.turnId);
    const seq = sought?.seq ?? null;
    if (seq === null) {
      return parts[0]?.element ?? null;
    }
    for (const { said, steps } of parts) {
      const at = stepOf(said, seq);
      if (at !== -1) {
        return steps.children[at] ?? null;
      }
    }
    return null;
  }

  /** Change what is there; what is sought stays at the top, else what is read where it is. */
  #keepingPlace(change: () => void): void {
    const pane = this.element;
    const edge = pane.getBoundingClientRect().top;
    const isBelow = (each: Element) => each.getBoundingClientRect().bottom > edge;
    const first = this.#parts.find(({ element }) => isBelow(element));
    const read = [...(first?.steps.children ?? [])].find(isBelow) ?? first?.element;
    const before = read?.getBoundingClientRect().top ?? 0;
    change();
    const sought = this.#elementOf(this.#sought);
    const moved =
      sought !== null
        ? sought.getBoundingClientRect().top - edge
        : read?.isConnected
          ? read.getBoundingClientRect().top - before
          : 0;
    if (moved !== 0) {
      pane.scrollTop += moved;
    }
    this.#top = pane.scrollTop;
  }

  #takeOut(parts: readonly Part[]): void {
    const isFocused = parts.some(({ element }) => element.contains(document.activeElement));
    for (const { element } of parts) {
      element.remove();
    }
    this.#parts = this.#parts.filter((each) => !parts.includes(each));
    if (isFocused) {
      this.element.focus({ preventScroll: true });
    }
  }

  #scrolled(): void {
    if (Math.abs(this.element.scrollTop - this.#top) < 1) {
      return;
    }
    this.#top = this.element.scrollTop;
    this.#sought = null;
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    const isAtEnd = scrollTop + clientHeight > scrollHeight - 1;
    const { top, bottom } = this.element.getBoundingClientRect();
    const edge = isAtEnd ? bottom : top + 1;
    const read = this.#parts.findLast(({ element }) => element.getBoundingClientRect().top <= edge);
    const turn = this.#turns.find(({ turnId }) => turnId === read?.turnId);
    if (turn !== undefined) {
      this.#reads(turn.turn);
    }
    this.#readOn();
  }

  /** Read what has changed and what is near; take out what is far away. */
  #readOn(): void {
    const [first, last] = [this.#parts[0], this.#parts.at(-1)];
    if (this.#asked !== null && !this.#isInDoubt) {
      return;
    }
    if (first === undefined || last === undefined) {
      if (this.#sought !== null && this.#asking === undefined) {
        this.#ask({ turnId: this.#sought.turnId, offset: 0, next: null }, "alone");
      }
      return;
    }
    const changed = this.#parts.find(
      ({ turnId, next, standing }) => next === null && standing !== this.#standing.get(turnId),
    );
    if (changed !== undefined) {
      this.#ask(changed, "again");
      return;
    }
    const { top, bottom } = this.element.getBoundingClientRect();
    const [near, far] = [NEAR * window.innerHeight, FAR * window.innerHeight];
    const gone = this.#parts.filter(({ element }) => {
      const place = element.getBoundingClientRect();
      return place.top > bottom + far || place.bottom < top - far;
    });
    if (gone.length > 0) {
      this.#keepingPlace(() => this.#takeOut(gone));
      this.#readOn();
      return;
    }
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    const below = scrollHeight - scrollTop - clientHeight < near && partBehind(last, this.#turns);
    const above = scrollTop < near && partBefore(first, this.#turns);
    if (top >= window.innerHeight || bottom <= 0) {
      return; // nobody reads it now
    }
    if (below) {
      this.#ask(below, "below");
    } else if (above) {
      this.#ask(above, "above");
    } else {
      this.#isOpening = false;
    }
  }
}
