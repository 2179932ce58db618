/**
 * Shared by all pages: creates elements and text, never markup, with all text through `plain`; and
 * handles the extension's messages.
 */

import { REMEDIES } from "../client/model/refusals.ts";
import type { FromPage, ToPage, Trouble } from "../common/model/pages.ts";
import { localTime, plain, SVG, shownText, utcTime } from "../common/model/text.ts";
import { shareOf, sizeText } from "../restore/model/preview.ts";

export type Child = Node | string | null;

/** Attributes of an element; `aria` attributes go without their prefix. */
type Name =
  | ("id" | "class" | "title" | "role" | "for" | "scope" | "datetime" | "start")
  | ("type" | "name" | "min" | "max" | "step" | "maxlength");
export type Looks = Readonly<Partial<Record<Name, string>>> & {
  readonly aria?: Readonly<Record<string, string>>;
};

type Tag = keyof HTMLElementTagNameMap;
type Spec = Tag | `${Tag}.${string}`;
type Made<S extends Spec> = S extends `${infer T extends Tag}.${string}`
  ? HTMLElementTagNameMap[T]
  : HTMLElementTagNameMap[S & Tag];

/** Create an element from a tag with classes, such as `p.quiet`; attributes, if any, come first. */
export function el<S extends Spec>(spec: S, looks: Looks, ...children: readonly Child[]): Made<S>;
export function el<S extends Spec>(spec: S, ...children: readonly Child[]): Made<S>;
export function el(spec: Spec, ...[first = null, ...rest]: readonly (Looks | Child)[]): Element {
  const [tag = "", ...classes] = spec.split(".");
  const made = document.createElement(tag);
  const hasLooks = first !== null && typeof first === "object" && !(first instanceof Node);
  const { aria = {}, ...attributes } = hasLooks ? first : {};
  if (classes.length > 0) {
    made.className = classes.join(" ");
  }
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, plain(value));
  }
  for (const [name, value] of Object.entries(aria)) {
    made.setAttribute(`aria-${name}`, plain(value));
  }
  fill(made, ...((hasLooks ? rest : [first, ...rest]) as readonly Child[]));
  return made;
}

/** Create an SVG element; attribute values are numbers or our own words. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  fill(made, ...children);
  return made;
}

/** Replace the children of an element. */
export function fill(place: Element, ...children: readonly Child[]): void {
  const nodes = children.filter((child) => child !== null);
  place.replaceChildren(...nodes.map((each) => (typeof each === "string" ? inert(each) : each)));
}

/** Remove control characters, but keep leading and trailing blanks. */
function inert(text: string): string {
  return plain(`|${text}|`).slice(1, -1);
}

/** Make a text node of several lines without control characters. */
export function textOf(text: string): Text {
  return document.createTextNode(shownText(text));
}

export function button(
  label: string,
  kind: "first" | "second" | "link",
  press: () => void,
  looks: Looks = {},
): HTMLButtonElement {
  const made = el(`button.${kind}`, { type: "button", ...looks }, label);
  made.addEventListener("click", press);
  return made;
}

/** List the warnings of a restore; null without any. */
export function warningList(warnings: readonly { readonly message: string }[]): Child {
  const list = warnings.map(({ message }) => el("li", message));
  return list.length === 0 ? null : el("ul.warnings", { aria: { label: "Warnings" } }, ...list);
}

/** Make an element per line of a text; empty lines keep their height. */
export function linesOf(text: string): readonly HTMLElement[] {
  const lines = text.replace(/\n$/, "").split("\n");
  return lines.map((line) => el("div", line === "" ? " " : line));
}

export function table(
  label: string,
  head: readonly string[],
  rows: readonly (readonly Child[])[],
): HTMLElement {
  const heads = head.map((each) => el("th", { scope: "col" }, each));
  const body = rows.map((row) => el("tr", ...row.map((cell) => el("td", cell))));
  const parts = [el("thead", el("tr", ...heads)), el("tbody", ...body)];
  return el("div.wide", el("table", { aria: { label } }, ...parts));
}

/** Create a section that can be folded. */
export function fold(
  id: string,
  title: readonly Child[],
  isOpen: boolean,
  ...body: readonly Child[]
): HTMLDetailsElement {
  const made = el("details", { id }, el("summary", ...title), ...body);
  made.open = isOpen;
  return made;
}

/** Pause in changing a budget before a screen reader reads the result. */
const RESTED_MS = 500;

/** A budget in tokens: a slider and a number field, and the result below. */
export class BudgetField {
  readonly slider = el("input", {
    id: "budget",
    type: "range",
    min: "0",
    aria: { describedby: "outcome" },
  });
  readonly number = el("input", { type: "number", min: "0", aria: { label: "Budget in tokens" } });
  readonly element: HTMLElement;
  readonly #outcome = el("p.quiet", { id: "outcome" });
  readonly #spoken = el("p.spoken", { role: "status" });
  #speaking: number | undefined;

  constructor(label: string, beside: Child, choose: (budget: number) => void) {
    for (const input of [this.slider, this.number]) {
      input.addEventListener("input", () => {
        const budget = input.valueAsNumber;
        if (Number.isSafeInteger(budget) && budget >= 0) {
          choose(budget);
        }
      });
    }
    this.element = el(
      "div.field",
      el("label", { for: "budget" }, label),
      el("div.budget", this.slider, this.number, "tokens"),
      el("div.outcome", this.#outcome, beside),
      this.#spoken,
    );
  }

  set(budget: number, words: string): void {
    this.slider.value = String(budget);
    this.slider.setAttribute("aria-valuetext", words);
    if (this.number.valueAsNumber !== budget) {
      this.number.value = String(budget);
    }
    window.clearTimeout(this.#speaking);
  }

  /** Show the result of the budget; a screen reader reads it after a pause. */
  tell(outcome: string): void {
    fill(this.#outcome, outcome);
    window.clearTimeout(this.#speaking);
    this.#speaking = window.setTimeout(() => {
      if (this.#spoken.textContent !== outcome) {
        fill(this.#spoken, outcome); // filling in the same text would read it again
      }
    }, RESTED_MS);
  }
}

/** Show a time in the reader's zone, with UTC in the tooltip. */
export function time(stamp: string): HTMLElement {
  const shown = localTime(stamp, document.documentElement.lang);
  return el("time", { title: utcTime(stamp), datetime: stamp }, shown);
}

/** Draw a bar for a share from 0 to 1; null for no bar. */
export function bar(share: number | null): HTMLElement | null {
  if (share === null) {
    return null;
  }
  const filled = el("span.filled");
  filled.style.width = `${share * 100}%`;
  return el("span.bar", { aria: { hidden: "true" } }, filled);
}

export function page(): HTMLElement {
  const found = document.getElementById("page");
  if (found === null) {
    throw new Error("the page has no place");
  }
  return found;
}

interface Api {
  postMessage(message: FromPage): void;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();

/** The drawn view as JSON; empty if the next one must be drawn in any case. */
let drawn = "";

export function send(message: FromPage): void {
  if (["budget", "preview", "push", "reader"].includes(message.kind)) {
    drawn = ""; // the page waits for the answer
  }
  api.postMessage(message);
}

/** A page: created from the first view, then updated with each later one. */
export interface Shown<View> {
  show(view: View): void;
  complain(trouble: Trouble): void;
  /** Handle a message that is neither a view nor an error. */
  take?(message: ToPage): void;
}

type ViewOf<K extends ToPage["kind"]> = Extract<ToPage, { readonly kind: K }>;

/**
 * Handle the extension's messages. A view equal to the last is not drawn again, which would lose
 * the focus.
 */
export function host<K extends ToPage["kind"]>(
  kind: K,
  title: string,
  made: new (view: ViewOf<K>) => Shown<ViewOf<K>>,
): void {
  let shown: Shown<ViewOf<K>> | null = null;
  const isView = (message: ToPage): message is ViewOf<K> => message.kind === kind;
  // Stored before the first content, so that a window reloaded at once restores the page.
  api.setState(JSON.parse(page().dataset.ids ?? "null"));
  window.addEventListener("message", ({ data: message, origin }: MessageEvent<ToPage>) => {
    if (origin !== window.origin) {
      return; // the extension's messages come through the outer frame, which has the same origin
    }
    if (isView(message)) {
      switchOn();
      const news = JSON.stringify(message);
      if (shown === null) {
        shown = new made(message);
      }
      if (news !== drawn) {
        drawn = news;
        shown.show(message);
      }
    } else if (message.kind === "trouble") {
      drawn = "";
      if (shown === null) {
        fill(page(), el("h1", title), troubleBox(message));
      } else {
        shown.complain(message);
      }
      if (message.gone) {
        switchOff();
      }
    } else {
      shown?.take?.(message);
    }
  });
  send({ kind: "ready" });
}

/** The buttons that are disabled while the page's session is missing. */
let off: readonly HTMLButtonElement[] = [];

function switchOff(): void {
  const all = page().querySelectorAll<HTMLButtonElement>("button:enabled");
  const others = [...all].filter((each) => each.closest(".trouble") === null);
  for (const each of others) {
    each.disabled = true;
  }
  off = [...off, ...others];
}

function switchOn(): void {
  for (const each of off) {
    each.disabled = false;
  }
  off = [];
}

/** The place for an error on a page that keeps its content. */
export class TroublePlace {
  readonly element = el("div");

  show(trouble: Trouble): void {
    fill(this.element, troubleBox(trouble));
  }

  /** Remove the error; if it has the focus, move that to `beside`. */
  clear(beside: HTMLElement | null = null): void {
    const isHere = this.element.contains(document.activeElement);
    fill(this.element);
    if (isHere) {
      beside?.focus();
    }
  }
}

function troubleBox({ sentence, again, remedies }: Trouble): HTMLElement {
  const retry = again ? button("Try Again", "second", () => send({ kind: "again" })) : null;
  const ways = remedies
    .filter((remedy) => remedy !== "again")
    .map((remedy) =>
      button(REMEDIES[remedy].label, "second", () => send({ kind: "remedy", remedy })),
    );
  const buttons = el("div.buttons", retry, ...ways);
  return el("div.trouble", el("p", { role: "alert" }, sentence), buttons);
}

/** A size in tokens (null if unknown), with its name. */
export interface Figure {
  readonly name: string;
  readonly tokens: number | null;
  readonly isEstimate: boolean;
}

export function figures(window: number | null, ...all: readonly Figure[]): HTMLElement {
  const rows = all.flatMap(({ name, tokens, isEstimate }) => {
    const about = isEstimate && tokens !== null ? "about " : "";
    const size = el("span.size", `${about}${sizeText(tokens, window)}`);
    return [el("dt", name), el("dd", bar(shareOf(tokens, window)), size)];
  });
  return el("dl.figures", ...rows);
}

/** Show the sizes before and after a restore. */
export function restoreFigures(
  before: number | null,
  after: number | null,
  window: number | null,
  isEstimate: boolean,
): HTMLElement {
  const marker = { name: "At the marker", tokens: before, isEstimate: false };
  return figures(window, marker, { name: "In the branch", tokens: after, isEstimate });
}

/** Elements with a name of their own. */
const NAMED = "button, summary, input[aria-label]";

/**
 * Redraw; if the focused control is replaced, focus the new control of the same name. While the
 * focus is outside the page, for example in a list of the editor, it stays there.
 */
export function keepingFocus(draw: () => void): void {
  const name = (each: Element | null) => each?.getAttribute("aria-label") ?? each?.textContent;
  const before = document.activeElement;
  const named = before?.matches(NAMED) ? name(before) : null;
  draw();
  if (document.hasFocus() && named !== null && before !== null && !before.isConnected) {
    const all = document.querySelectorAll<HTMLElement>(NAMED);
    [...all].find((each) => name(each) === named)?.focus();
  }
}
