/**
 * Draws with elements and text, never with markup: whatever a session says stays text.
 *
 * Every string goes through `plain`, so nothing that controls a renderer comes through either.
 */

import { type FromPage, shareOf, sizeText, type ToPage, type Trouble } from "../model/restore.ts";
import { localTime, plain, utcTime } from "../model/text.ts";

export type Child = Node | string | null;

/** What an element is beside its children; all of it is set as plain strings. */
export interface Looks {
  readonly id?: string;
  readonly class?: string;
  readonly title?: string;
  readonly role?: string;
  readonly aria?: Readonly<Record<string, string>>;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  looks: Looks = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  const { id, class: name, title, role, aria } = looks;
  if (id !== undefined) {
    made.id = id;
  }
  if (name !== undefined) {
    made.className = name;
  }
  if (title !== undefined) {
    made.title = plain(title);
  }
  if (role !== undefined) {
    made.setAttribute("role", role);
  }
  for (const [key, value] of Object.entries(aria ?? {})) {
    made.setAttribute(`aria-${key}`, plain(value));
  }
  fill(made, ...children);
  return made;
}

/** Put something in the place of what an element holds. */
export function fill(place: Element, ...children: readonly Child[]): void {
  const nodes = children.filter((child) => child !== null);
  place.replaceChildren(...nodes.map((each) => (typeof each === "string" ? inert(each) : each)));
}

/** A text without what controls; blanks at its ends are part of it. */
function inert(text: string): string {
  return plain(`|${text}|`).slice(1, -1);
}

export function button(label: string, looks: Looks, press: () => void): HTMLButtonElement {
  const made = el("button", looks, label);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

/** A moment where the reader is, and in UTC under the pointer. */
export function time(stamp: string): HTMLElement {
  const utc = utcTime(stamp);
  const shown = localTime(stamp, document.documentElement.lang);
  const made = el("time", { title: utc }, shown);
  made.dateTime = stamp;
  return made;
}

/** A bar that is filled so far, none where that is not known; words beside it say the same. */
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

/** Handle what the editor sends; ready from now on. */
export function listen(handle: (message: ToPage) => void): void {
  window.addEventListener("message", ({ data, origin }: MessageEvent<ToPage>) => {
    // The editor speaks from the frame around this one, which has the same origin.
    if (origin === window.origin) {
      handle(data);
    }
  });
  send({ kind: "ready" });
}

/** What was kept, also over a reload of the window. */
export function kept(): unknown {
  return api.getState();
}

export function keep(state: unknown): void {
  api.setState(state);
}

export function troubleBox({ sentence, again }: Trouble): HTMLElement {
  const retry = again
    ? button("Try Again", { class: "second" }, () => send({ kind: "again" }))
    : null;
  return el("div", { class: "trouble" }, el("p", { role: "alert" }, sentence), retry);
}

/** Sizes in tokens; null where they are not known. */
export interface Figures {
  readonly before: number | null;
  readonly after: number | null;
  readonly window: number | null;
  /** Whether the size afterwards is an estimate. */
  readonly isEstimate: boolean;
}

export function figures({ before, after, window, isEstimate }: Figures): HTMLElement {
  const row = (name: string, tokens: number | null, about: string) => [
    el("dt", {}, name),
    el("dd", {}, bar(shareOf(tokens, window)), el("span", { class: "size" }, about)),
  ];
  const afterwards = sizeText(after, window);
  return el(
    "dl",
    { class: "figures" },
    ...row("At the marker", before, sizeText(before, window)),
    ...row(
      "In the branch",
      after,
      isEstimate && after !== null ? `about ${afterwards}` : afterwards,
    ),
  );
}
