/** Builds pages from elements and texts, never from markup; every text goes through `plain`. */

import type { FromPage, ToPage, Trouble } from "../model/pages.ts";
import { REMEDIES } from "../model/refusals.ts";
import { shareOf, sizeText } from "../model/restore.ts";
import { localTime, plain, SVG, utcTime } from "../model/text.ts";

export type Child = Node | string | null;

/** Attributes of an element; those of `aria` go without their prefix. */
type Name =
  | ("id" | "class" | "title" | "role" | "for" | "scope" | "datetime")
  | ("type" | "name" | "min" | "max" | "step" | "maxlength");
export type Looks = Readonly<Partial<Record<Name, string>>> & {
  readonly aria?: Readonly<Record<string, string>>;
};

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  looks: Looks = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  const { aria = {}, ...attributes } = looks;
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, plain(value));
  }
  for (const [name, value] of Object.entries(aria)) {
    made.setAttribute(`aria-${name}`, plain(value));
  }
  fill(made, ...children);
  return made;
}

/** An element of a picture; its attributes come from numbers and our own words. */
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

/** A text without control characters; it keeps blanks at its ends. */
function inert(text: string): string {
  return plain(`|${text}|`).slice(1, -1);
}

export function button(label: string, looks: Looks, press: () => void): HTMLButtonElement {
  const made = el("button", { type: "button", ...looks }, label);
  made.addEventListener("click", press);
  return made;
}

/** The warnings of a restore; nothing without one. */
export function warningList(warnings: readonly { readonly message: string }[]): Child {
  const list = warnings.map(({ message }) => el("li", {}, message));
  const looks = { class: "warnings", aria: { label: "Warnings" } };
  return list.length === 0 ? null : el("ul", looks, ...list);
}

/** A time in the reader's zone, with UTC as its tooltip. */
export function time(stamp: string): HTMLElement {
  const shown = localTime(stamp, document.documentElement.lang);
  return el("time", { title: utcTime(stamp), datetime: stamp }, shown);
}

/** A bar of a share from 0 to 1; no bar for null. */
export function bar(share: number | null): HTMLElement | null {
  if (share === null) {
    return null;
  }
  const filled = el("span", { class: "filled" });
  filled.style.width = `${share * 100}%`;
  return el("span", { class: "bar", aria: { hidden: "true" } }, filled);
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
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();

export function send(message: FromPage): void {
  api.postMessage(message);
}

/** Handle messages of the editor, and send `ready`. */
export function listen(handle: (message: ToPage) => void): void {
  window.addEventListener("message", ({ data, origin }: MessageEvent<ToPage>) => {
    // The editor sends from the outer frame, which has the same origin.
    if (origin === window.origin) {
      handle(data);
    }
  });
  send({ kind: "ready" });
}

/** The state that survives a reload of the window. */
export function kept(): unknown {
  return api.getState();
}

export function keep(state: unknown): void {
  api.setState(state);
}

export function troubleBox({ sentence, again, remedies }: Trouble): HTMLElement {
  const retry = again
    ? button("Try Again", { class: "second" }, () => send({ kind: "again" }))
    : null;
  const ways = remedies
    .filter((remedy) => remedy !== "again")
    .map((remedy) =>
      button(REMEDIES[remedy].label, { class: "second" }, () => send({ kind: "remedy", remedy })),
    );
  const buttons = el("div", { class: "buttons" }, retry, ...ways);
  return el("div", { class: "trouble" }, el("p", { role: "alert" }, sentence), buttons);
}

/** A size in tokens, null if not known, and its name. */
export interface Figure {
  readonly name: string;
  readonly tokens: number | null;
  readonly isEstimate: boolean;
}

export function figures(window: number | null, ...all: readonly Figure[]): HTMLElement {
  const rows = all.flatMap(({ name, tokens, isEstimate }) => {
    const about = isEstimate && tokens !== null ? "about " : "";
    const size = el("span", { class: "size" }, `${about}${sizeText(tokens, window)}`);
    return [el("dt", {}, name), el("dd", {}, bar(shareOf(tokens, window)), size)];
  });
  return el("dl", { class: "figures" }, ...rows);
}

/** The sizes of a restore. */
export function restoreFigures(
  before: number | null,
  after: number | null,
  window: number | null,
  isEstimate: boolean,
): HTMLElement {
  const marker = { name: "At the marker", tokens: before, isEstimate: false };
  return figures(window, marker, { name: "In the branch", tokens: after, isEstimate });
}

/**
 * Draw anew; a button that had the focus gives it to the one that has its name now. Where the
 * person is elsewhere meanwhile, as in a list of the editor, nothing takes the focus from there.
 */
export function keepingFocus(draw: () => void): void {
  const name = (each: Element | null) => each?.getAttribute("aria-label") ?? each?.textContent;
  const before = document.activeElement;
  const named = before instanceof HTMLButtonElement ? name(before) : null;
  draw();
  if (document.hasFocus() && named !== null && before !== null && !before.isConnected) {
    [...document.querySelectorAll("button")].find((each) => name(each) === named)?.focus();
  }
}
