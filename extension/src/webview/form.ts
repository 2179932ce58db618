/** The wish of a person: how to go on, within what budget, with what reason. */

import { type Cut, costOf, cutText, oneLess, oneMore, sliderText } from "../model/pack.ts";
import { MOST_MESSAGES, type Mode, modeAbout, modeLabel, type Wish } from "../model/restore.ts";
import type { PackLine } from "../protocol.ts";
import { button, type Child, el, fill } from "./draw.ts";

/** How long a wait before a screen reader is told where the slider came to rest. */
const REST_MS = 300;

/** The two ways to go on. */
export function modeChoice(chosen: Mode, choose: (mode: Mode) => void): HTMLElement {
  const card = (mode: Mode) => {
    const input = el("input", { id: `mode-${mode}`, aria: { describedby: `about-${mode}` } });
    input.type = "radio";
    input.name = "mode";
    input.checked = mode === chosen;
    input.addEventListener("change", () => choose(mode));
    const name = el("label", {}, modeLabel(mode));
    name.htmlFor = input.id;
    const about = el("p", { id: `about-${mode}`, class: "quiet" }, modeAbout(mode));
    about.addEventListener("click", () => input.click());
    return el("div", { class: "card" }, input, el("div", {}, name, about));
  };
  const legend = el("legend", {}, "How to go on");
  return el("fieldset", { class: "modes" }, legend, card("soft"), card("hard"));
}

/** The budget of a pack: a slider that goes line by line, a number, and what comes of it. */
export class Budget {
  readonly element: HTMLElement;
  readonly #slider = el("input", { id: "budget" });
  readonly #number = el("input", { aria: { label: "Budget in tokens" } });
  readonly #outcome = el("p", { id: "outcome", class: "quiet" });
  readonly #told = el("p", { class: "told", role: "status" });
  readonly #more: HTMLButtonElement;
  readonly #cut: (budget: number) => Cut;
  #lines: readonly PackLine[] = [];
  #budget = 0;
  #timer: number | undefined;

  /** `cut` shows a budget and says what it holds; `changed` hears what a person chose. */
  constructor(cut: (budget: number) => Cut, changed: (budget: number) => void) {
    this.#cut = cut;
    this.#slider.type = "range";
    this.#slider.min = "0";
    this.#slider.setAttribute("aria-describedby", "outcome");
    this.#number.type = "number";
    this.#number.min = "0";
    const choose = (budget: number) => {
      this.#set(budget);
      changed(this.#budget);
      window.clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => fill(this.#told, this.#outcomeText()), REST_MS);
    };
    this.#more = button("One More Line", { class: "second" }, () =>
      choose(oneMore(this.#lines, this.#budget)),
    );
    this.#slider.addEventListener("input", () => choose(this.#slider.valueAsNumber));
    this.#slider.addEventListener("keydown", (event) => {
      const steps = {
        ArrowRight: oneMore,
        ArrowUp: oneMore,
        ArrowLeft: oneLess,
        ArrowDown: oneLess,
      };
      const step = steps[event.key as keyof typeof steps];
      if (step !== undefined) {
        event.preventDefault();
        choose(step(this.#lines, Math.min(this.#budget, costOf(this.#lines))));
      }
    });
    this.#number.addEventListener("input", () => {
      const budget = this.#number.valueAsNumber;
      if (Number.isSafeInteger(budget) && budget >= 0) {
        choose(budget);
      }
    });
    const name = el("label", {}, "Budget of the pack");
    name.htmlFor = this.#slider.id;
    const row = el("div", { class: "budget" }, this.#slider, this.#number, "tokens");
    const below = el("div", { class: "outcome" }, this.#outcome, this.#more);
    this.element = el("div", { class: "field" }, name, row, below, this.#told);
  }

  /** Begin with these lines, within this budget. */
  show(lines: readonly PackLine[], budget: number): void {
    this.#lines = lines;
    this.#slider.max = String(costOf(lines));
    this.#set(budget);
  }

  #set(budget: number): void {
    this.#budget = budget;
    const cut = this.#cut(budget);
    this.#slider.value = String(budget);
    const share = this.#slider.valueAsNumber / Math.max(1, costOf(this.#lines));
    this.#slider.style.setProperty("--filled", `${share * 100}%`);
    this.#slider.setAttribute("aria-valuetext", sliderText(cut, budget));
    if (this.#number.valueAsNumber !== budget) {
      this.#number.value = String(budget);
    }
    this.#more.disabled = cut.next === null;
    fill(this.#outcome, this.#outcomeText());
  }

  #outcomeText(): string {
    return cutText(this.#cut(this.#budget), this.#budget);
  }
}

/** How many of the user's last messages come along. */
export function messagesField(wish: Wish, choose: (count: number) => void): HTMLElement {
  const input = el("input", { id: "messages", aria: { describedby: "about-messages" } });
  input.type = "number";
  input.min = "0";
  input.max = String(MOST_MESSAGES);
  input.value = String(wish.window);
  input.addEventListener("input", () => {
    const count = input.valueAsNumber;
    if (Number.isInteger(count) && count >= 0 && count <= MOST_MESSAGES) {
      choose(count);
    }
  });
  const about = `At the end of the pack, as far as the budget reaches. 0 to ${MOST_MESSAGES}.`;
  return field("Last messages of yours", input, about);
}

/** Why. */
export function reasonField(wish: Wish, choose: (reason: string) => void): HTMLElement {
  const input = el("input", { id: "reason", aria: { describedby: "about-reason" } });
  input.type = "text";
  input.maxLength = 160;
  input.value = wish.reason;
  input.addEventListener("input", () => choose(input.value));
  return field("Reason", input, "A few words, kept with the restore. Not needed.");
}

function field(label: string, input: HTMLInputElement, about: string): HTMLElement {
  const name = el("label", {}, label);
  name.htmlFor = input.id;
  const below: Child = el("p", { id: `about-${input.id}`, class: "quiet" }, about);
  return el("div", { class: "field" }, name, input, below);
}
