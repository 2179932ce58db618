/** The page of a restore that may come: everything about it is seen before anything is written. */

import type { Preview, Trouble } from "../model/pages.ts";
import { nameOf, type Wish, wishOf } from "../model/restore.ts";
import { button, el, fill, page, time } from "./draw.ts";
import { keep, listen, tell } from "./editor.ts";
import { figures } from "./figures.ts";
import { Budget, messagesField, modeChoice, reasonField } from "./form.ts";
import { along, Pack } from "./goods.ts";
import { troubleBox } from "./trouble.ts";

/** What is typed is asked about when the typing rests. */
const REST_MS = 250;

/** Of these the outcome speaks as the budget changes. */
const SAID_BY_BUDGET = new Set(["pack_truncated", "pack_empty"]);

class PreviewPage {
  readonly #head = el("header");
  readonly #context = el("div");
  readonly #warnings = el("div");
  readonly #trouble = el("div");
  readonly #pack = new Pack();
  readonly #budget: Budget;
  readonly #hardOnly: HTMLElement;
  readonly #goods = el("div", { class: "right" });
  readonly #restore: HTMLButtonElement;
  #preview: Preview;
  #wish: Wish;
  #timer: number | undefined;

  constructor(preview: Preview) {
    this.#preview = preview;
    this.#wish = preview.wish;
    this.#budget = new Budget(
      (budget) => {
        const cut = this.#pack.cut(budget);
        this.#showContext(cut.tokens);
        return cut;
      },
      (budget) => {
        this.#keep({ budget });
        tell({ kind: "wish", wish: this.#wish });
      },
    );
    this.#hardOnly = el(
      "div",
      {},
      this.#budget.element,
      messagesField(this.#wish, (window) => this.#ask({ window })),
    );
    const reason = reasonField(this.#wish, (text) => this.#ask({ reason: text }, REST_MS));
    this.#restore = button("Restore", { class: "first" }, () => {
      this.#restore.disabled = true;
      fill(this.#trouble);
      tell({ kind: "restore", wish: this.#wish });
    });
    const cancel = button("Cancel", { class: "second" }, () => tell({ kind: "cancel" }));
    const promise = "Opens a new session. The source stays as it is.";
    const form = el(
      "form",
      { class: "left" },
      modeChoice(this.#wish.mode, (mode) => this.#ask({ mode })),
      this.#context,
      this.#warnings,
      this.#hardOnly,
      reason,
      el(
        "p",
        { class: "quiet" },
        "Only what was recorded goes over. Note down what must not be lost.",
      ),
      this.#trouble,
      el("div", { class: "buttons" }, this.#restore, cancel),
      el("p", { class: "quiet" }, promise),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    fill(page(), this.#head, el("div", { class: "columns" }, form, this.#goods));
    this.show(preview);
  }

  /** Show an answer, unless another one is on its way. */
  show(preview: Preview): void {
    const { mode, window, reason } = wishOf(this.#wish);
    const told = preview.wish;
    if (told.mode !== mode || told.window !== window || told.reason !== reason) {
      return;
    }
    this.#preview = preview;
    const { would } = preview;
    const isHard = told.mode === "hard";
    this.#hardOnly.hidden = !isHard;
    this.#restore.disabled = false;
    this.#calm();
    this.#showHead();
    this.#showWarnings();
    if (isHard) {
      this.#pack.show(would);
      fill(this.#goods, this.#pack.element);
      this.#budget.show(would.lines, this.#wish.budget ?? would.budget ?? 0);
    } else {
      fill(this.#goods, along(would, preview.turn));
      this.#showContext(null);
    }
    page().setAttribute("data-ready", told.mode);
  }

  /** Say what did not work; what a person has chosen stays. */
  complain(trouble: Trouble): void {
    fill(this.#trouble, troubleBox(trouble));
    this.#trouble.scrollIntoView({ block: "nearest" });
    // What is not seen any more is not done either: it is asked for once more first.
    this.#restore.disabled = trouble.again;
  }

  /** Take back what was said; who asked once more goes on at the button beside it. */
  #calm(): void {
    const isHere = this.#trouble.contains(document.activeElement);
    fill(this.#trouble);
    if (isHere) {
      this.#restore.focus();
    }
  }

  #showHead(): void {
    const { would, source, turn } = this.#preview;
    const where = turn === null ? source : `Turn ${turn} of “${source}”`;
    const name = nameOf(would.label, would.checkpointId);
    fill(
      this.#head,
      el("h1", {}, `Restore “${name}”`),
      el("p", { class: "quiet" }, where, " · ", "marked", " ", time(would.markedAt)),
    );
  }

  #showContext(packTokens: number | null): void {
    const { tokensBefore, tokensAfter, contextWindow, packTokens: asked } = this.#preview.would;
    const isEstimate = packTokens !== null && tokensAfter !== null;
    const after = isEstimate ? tokensAfter - (asked ?? 0) + packTokens : tokensAfter;
    const both = { before: tokensBefore, after, window: contextWindow, isEstimate };
    fill(this.#context, el("h2", {}, "Context"), figures(both));
  }

  #showWarnings(): void {
    const { warnings } = this.#preview.would;
    const others = warnings.filter(({ code }) => !SAID_BY_BUDGET.has(code));
    const list = el(
      "ul",
      { class: "warnings" },
      ...others.map((each) => el("li", {}, each.message)),
    );
    list.setAttribute("aria-label", "Warnings");
    fill(this.#warnings, others.length === 0 ? null : list);
  }

  #keep(change: Partial<Wish>): void {
    this.#wish = { ...this.#wish, ...change };
    const { sessionId, checkpointId } = this.#preview;
    keep({ sessionId, checkpointId, wish: this.#wish });
  }

  #ask(change: Partial<Wish>, rest = 0): void {
    // What is seen is what is done: until the other branch is shown, it cannot be made.
    this.#restore.disabled ||= change.reason === undefined;
    this.#keep(change);
    window.clearTimeout(this.#timer);
    const ask = () => tell({ kind: "preview", wish: this.#wish });
    this.#timer = window.setTimeout(ask, rest);
  }
}

let shown: PreviewPage | null = null;
listen((message) => {
  if (message.kind === "preview") {
    if (shown === null) {
      shown = new PreviewPage(message);
      const { sessionId, checkpointId, wish } = message;
      keep({ sessionId, checkpointId, wish });
    } else {
      shown.show(message);
    }
  } else if (message.kind === "trouble") {
    if (shown === null) {
      fill(page(), el("h1", {}, "Restore"), troubleBox(message));
    } else {
      shown.complain(message);
    }
  }
});
