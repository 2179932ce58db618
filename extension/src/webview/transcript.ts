/** The conversation of a session as one document; only the parts near the viewport are loaded. */

import {
  type Conversation,
  type ConversationStep,
  nextPart,
  type PageEvent,
  type PageTurn,
  type PartPlace,
  partAtEnd,
  previousPart,
  type SessionView,
  stepOf,
  stepsOf,
} from "../page/model/page.ts";
import { el, fill, keepingFocus, send, time } from "./draw.ts";
import { Highlights } from "./highlights.ts";
import { eventRows } from "./lists.ts";
import { type Rows, rowsOf, showSteps } from "./steps.ts";

/** Parts nearer than this are loaded, and farther ones removed, in window heights. */
const [NEAR, FAR] = [1.5, 4];

/** A loaded part of a turn. */
interface Part extends PartPlace {
  readonly element: HTMLElement;
  readonly steps: HTMLElement;
  /** The events after the turn; filled only in its last part. */
  readonly events: HTMLElement;
  eventsFrom: string;
  drawn: Rows;
  content: readonly ConversationStep[];
  /** The state of the turn when this was requested. */
  state: string;
}

interface Asked extends PartPlace {
  readonly place: "alone" | "above" | "below" | "again";
  readonly state: string;
}

/** The turn, or a record of it, that stays at the top while parts around it are loaded. */
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
  /** The state of each turn, by its id; when it changes, its loaded parts are reloaded. */
  #states: ReadonlyMap<string, string> = new Map();
  #parts: readonly Part[] = [];
  #asked: Asked | null = null;
  /** Whether the pending request may have failed. */
  #isInDoubt = false;
  #asking: number | undefined;
  #sought: Sought | null = null;
  /** Whether it was scrolled into view, and loading around it still makes it grow. */
  #isOpening = false;
  #takesFocus = false;
  /** The scroll position set by this class; any other comes from the user. */
  #top = 0;
  /** Watches the requests of the loaded turns, each with the id of its turn. */
  readonly #requests: IntersectionObserver;
  readonly #turnOf = new WeakMap<Element, string>();
  /** The turns whose request is at least partly visible. */
  readonly #requested = new Set<string>();

  /**
   * `reads` is called with the turn that the user scrolls to, and `requested` when other requests
   * become visible.
   */
  constructor(
    session: Pick<SessionView, "folder" | "shared">,
    reads: (turn: number) => void,
    requested: () => void,
  ) {
    this.#session = session;
    this.#reads = reads;
    this.#requests = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const turnId = this.#turnOf.get(target) ?? "";
          isIntersecting ? this.#requested.add(turnId) : this.#requested.delete(turnId);
        }
        requested();
      },
      { root: this.element },
    );
    this.element.tabIndex = 0;
    this.element.addEventListener("scroll", () => this.#scrolled());
    window.addEventListener("scroll", () => this.#readOn());
    // The sought place stays visible when the size changes.
    new ResizeObserver(() => this.#keepingPlace(() => {})).observe(this.element);
    for (const act of ["wheel", "pointerdown", "keydown"]) {
      // Do not scroll back after the user did something else.
      window.addEventListener(act, () => this.#leaveOpening(), { capture: true, passive: true });
    }
  }

  /** Check whether the request of a turn is visible. */
  showsRequest(turnId: string): boolean {
    return this.#requested.has(turnId);
  }

  /** Update the turns; the position stays. The first time, go to `chosen`. */
  show(
    turns: readonly PageTurn[],
    states: ReadonlyMap<string, string>,
    events: ReadonlyMap<number, readonly PageEvent[]>,
    chosen: string | null,
  ): void {
    this.#turns = turns;
    this.#states = states;
    this.#events = events;
    this.element.hidden = turns.length === 0;
    const gone = this.#parts.filter(({ turnId }) => !states.has(turnId));
    this.#keepingPlace(() => {
      this.#takeOut(gone);
      this.#showEvents();
    });
    if (this.#asked !== null && !states.has(this.#asked.turnId)) {
      this.#asked = null; // Codex rolled it back
    }
    if (this.#parts.length === 0 && chosen !== null && !states.has(this.#sought?.turnId ?? "")) {
      this.goTo(chosen, 0);
    }
    this.#readOn();
  }

  /** Go to a turn, or to a record of it, after a pause of `rest` milliseconds. */
  goTo(turnId: string, rest: number, seq: number | null = null): void {
    window.clearTimeout(this.#asking);
    this.#asking = undefined;
    this.#sought = { turnId, seq };
    this.#asked = null;
    if (this.#parts.some((part) => part.turnId === turnId && part.offset === 0)) {
      this.#keepingPlace(() => {});
      this.#seek();
      this.#readOn(); // a pending request for another place no longer counts
    } else {
      this.#asking = window.setTimeout(() => {
        this.#asking = undefined;
        this.#ask({ turnId, offset: 0, next: null }, "alone");
      }, rest);
    }
  }

  /** Scroll to a turn or a record, and focus it. */
  open(turnId: string, seq: number | null): void {
    this.#takesFocus = true;
    this.#isOpening = true;
    this.goTo(turnId, 0, seq);
  }

  /** A request failed, maybe the pending one here; the next change repeats it. */
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
    const content = stepsOf(items);
    const existing = this.#parts.find((part) => part.turnId === turnId && part.offset === offset);
    const { folder, shared } = this.#session;
    const where = { turnId, folder, speaker: shared?.speaker ?? "You" };
    const rows = await rowsOf(content, existing?.drawn ?? new Map(), where);
    if (this.#asked !== asked) {
      return; // another place was requested meanwhile
    }
    this.#asked = null;
    this.#waiting.remove();
    const end = partAtEnd(turnId, total);
    if (asked.place === "above" && asked.next === null && offset < end.offset) {
      this.#ask(end, "above"); // only now is the length of the turn above known
      return;
    }
    const there = this.#parts.find((part) => part.turnId === turnId && part.offset === offset);
    const part = there ?? this.#partOf(turnId, offset, items[0]?.at ?? null);
    this.#keepingPlace(() => {
      keepingFocus(() => showSteps(part.steps, rows));
      Object.assign(part, { content, drawn: rows, next: nextOffset, state: asked.state });
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
    this.#watchRequest(part);
    this.#seek();
    this.#readOn();
  }

  /** Watch the request with which a turn begins. */
  #watchRequest({ turnId, offset, content, steps }: Part): void {
    const first = steps.firstElementChild;
    if (offset === 0 && content[0]?.kind === "user" && first !== null) {
      this.#turnOf.set(first, turnId);
      this.#requests.observe(first);
    }
  }

  #partOf(turnId: string, offset: number, at: string | null): Part {
    const turn = this.#turns.find((each) => each.turnId === turnId)?.turn;
    const name = `Turn ${turn}${offset === 0 ? "" : ", continued"}`;
    const steps = el("ol.steps");
    const when = el("span.about", at === null ? null : time(at));
    const events = el("div.events");
    const element = el("article", el("h3", name, " ", when), steps, events);
    const none = { drawn: new Map(), content: [], next: null, state: "", eventsFrom: "[]" };
    return { turnId, offset, element, steps, events, ...none };
  }

  /** Show the events after each turn at its end. */
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
    this.#asked = { ...part, place, state: this.#states.get(part.turnId) ?? "" };
    if (this.#parts.length === 0) {
      this.element.append(this.#waiting);
    }
    send({ kind: "conversation", turnId: part.turnId, offset: part.offset });
  }

  /** Load more until the sought record is found; focus it if requested. */
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
    for (const { content, steps } of parts) {
      const at = stepOf(content, seq);
      if (at !== -1) {
        return steps.children[at] ?? null;
      }
    }
    return null;
  }

  /** Apply a change; the sought place stays at the top, else the position stays. */
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

  /** Load changed and nearby parts; remove distant ones. */
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
      ({ turnId, next, state }) => next === null && state !== this.#states.get(turnId),
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
    const below = scrollHeight - scrollTop - clientHeight < near && nextPart(last, this.#turns);
    const above = scrollTop < near && previousPart(first, this.#turns);
    if (top >= window.innerHeight || bottom <= 0) {
      return; // not visible now
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
