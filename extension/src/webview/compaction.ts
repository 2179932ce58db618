/** The page that previews a compaction: what is installed, for each budget of the digest. */

import { MAX_DIGEST } from "../limits.ts";
import {
  budgetText,
  type CompactionState,
  type CompactionView,
  compactionState,
  digestParts,
  readBudget,
} from "../model/compactionPage.ts";
import type { Trouble } from "../model/pages.ts";
import { counted, cut, dotted, tokenCount } from "../model/text.ts";
import type { KeptMessage } from "../protocol.ts";
import {
  button,
  type Child,
  el,
  figures,
  fill,
  keep,
  kept,
  listen,
  page,
  send,
  troubleBox,
  warningList,
} from "./draw.ts";
import { link, partRows } from "./quotes.ts";

/** One step of the slider, in tokens. */
const STEP = 500;

/** The pause in moving after which the preview is updated. */
const REST_MS = 100;

/** The pause after which a screen reader reads what came of it. */
const RESTED_MS = 500;

/** A message with more is folded. */
const [MOST_LINES, MOST_CHARS] = [6, 600];

class CompactionPage {
  readonly #context = el("div");
  readonly #warnings = el("div");
  readonly #trouble = el("div");
  readonly #slider = el("input", {
    id: "budget",
    type: "range",
    min: "0",
    max: String(MAX_DIGEST),
    step: String(STEP),
    aria: { describedby: "outcome" },
  });
  readonly #number = el("input", {
    type: "number",
    min: "0",
    max: String(MAX_DIGEST),
    aria: { label: "Budget in tokens" },
  });
  readonly #outcome = el("p", { id: "outcome", class: "quiet" });
  readonly #spoken = el("p", { class: "spoken", role: "status" });
  readonly #usual = button("Usual Budget", { class: "second" }, () => {
    this.#slider.focus(); // the button cannot be pressed again
    this.#choose(null);
  });
  readonly #compact = button("Compact…", { class: "first" }, () => {
    fill(this.#trouble);
    send({ kind: "compact" });
  });
  readonly #changes = el("input", { id: "changes", type: "checkbox" });
  readonly #messages: Fold;
  readonly #state: Fold;
  readonly #digest: Fold;
  #view: CompactionView;
  #kept: CompactionState;
  #asking: number | undefined;
  #speaking: number | undefined;

  constructor(view: CompactionView) {
    this.#view = view;
    const { sessionId } = view;
    const known = compactionState(kept());
    this.#kept = known?.sessionId === sessionId ? known : { sessionId, budget: null, folds: {} };
    const fold = (id: string, title: string, isOpen: boolean) =>
      new Fold(id, title, this.#kept.folds[id] ?? isOpen, (open) =>
        this.#keep({ folds: { ...this.#kept.folds, [id]: open } }),
      );
    this.#messages = fold("messages", "Your messages", false);
    this.#state = fold("state", "State", false);
    this.#digest = fold("digest", "Digest", true);
    this.#slider.addEventListener("input", () => this.#choose(this.#slider.valueAsNumber));
    this.#number.addEventListener("input", () => {
      const budget = readBudget(this.#number.valueAsNumber);
      if (budget !== null) {
        this.#choose(budget);
      }
    });
    const only = "Show only added and removed lines";
    this.#changes.addEventListener("change", () => this.#showBudget());
    const nothing = "Nothing is written yet. Next you choose where to continue.";
    const form = el(
      "form",
      { class: "left" },
      this.#context,
      this.#warnings,
      el(
        "div",
        { class: "field" },
        el("label", { for: this.#slider.id }, "Budget of the digest"),
        el("div", { class: "budget" }, this.#slider, this.#number, "tokens"),
        el("div", { class: "outcome" }, this.#outcome, this.#usual),
        el("div", { class: "check" }, this.#changes, el("label", { for: "changes" }, only)),
        this.#spoken,
      ),
      this.#trouble,
      el(
        "div",
        { class: "buttons" },
        this.#compact,
        button("Show as Diff", { class: "second" }, () => send({ kind: "diff" })),
        button("Copy", { class: "second" }, () => send({ kind: "copy" })),
      ),
      el("p", { class: "quiet" }, nothing),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    const parts = [this.#messages, this.#state, this.#digest].map(({ element }) => element);
    const contents = el("div", { class: "right" }, ...parts);
    const about = "What Codex sees instead of the history, from your next message on.";
    fill(
      page(),
      el("header", {}, el("h1", {}, `Compact “${view.name}”`), el("p", { class: "quiet" }, about)),
      el("div", { class: "columns" }, form, contents),
    );
    this.show(view);
  }

  /** Show a preview, unless a newer budget waits for its own. */
  show(view: CompactionView): void {
    const { contents, usual } = view;
    const { digest, messages } = contents;
    if (digest.budget !== (this.#kept.budget ?? usual.budget)) {
      return;
    }
    this.#view = view;
    this.#keep({});
    this.#calm();
    this.#compact.disabled = false;
    page().removeAttribute("aria-busy");
    this.#showContext();
    fill(this.#warnings, warningList(contents.warnings));
    const said = messages.reduce((sum, { tokens }) => sum + tokens, 0);
    const many = counted(messages.length, "1 message", `${messages.length} messages`);
    this.#messages.show(
      messages.length === 0 ? "none" : dotted(tokenCount(said), many),
      el("ul", { class: "quotes" }, ...messages.map(messageRow)),
    );
    const state = contents.view.replace(/\n$/, "").split("\n").map(stateRow);
    this.#state.show(
      dotted(tokenCount(contents.stateTokens), "with the text that explains it"),
      el("ol", { class: "pack" }, ...state),
    );
    const parts = digestParts(digest, usual);
    const size = digest.tokens.toLocaleString("en-US");
    const most = `${size} of at most ${tokenCount(digest.budget)}`;
    this.#digest.show(most, ...parts.flatMap((part) => partRows(part)));
    this.#showBudget();
    fill(this.#outcome, budgetText(parts, digest, usual));
    page().setAttribute("data-ready", String(digest.budget));
    window.clearTimeout(this.#speaking);
    const speak = () => fill(this.#spoken, this.#outcome.textContent);
    this.#speaking = window.setTimeout(speak, RESTED_MS);
  }

  complain(trouble: Trouble): void {
    fill(this.#trouble, troubleBox(trouble));
    this.#trouble.scrollIntoView({ block: "nearest" });
    this.#compact.disabled = trouble.again;
  }

  /** Remove the error; if it had the focus, focus the button beside it. */
  #calm(): void {
    const isHere = this.#trouble.contains(document.activeElement);
    fill(this.#trouble);
    if (isHere) {
      this.#compact.focus();
    }
  }

  #choose(budget: number | null): void {
    this.#keep({ budget: budget === this.#view.usual.budget ? null : budget });
    this.#compact.disabled = true; // only what is shown can be installed
    page().setAttribute("aria-busy", "true");
    this.#showBudget();
    window.clearTimeout(this.#asking);
    const ask = () => send({ kind: "budget", budget: this.#kept.budget });
    this.#asking = window.setTimeout(ask, REST_MS);
    window.clearTimeout(this.#speaking);
  }

  #keep(change: Partial<CompactionState>): void {
    this.#kept = { ...this.#kept, ...change };
    keep(this.#kept);
  }

  #showBudget(): void {
    const budget = this.#kept.budget ?? this.#view.usual.budget;
    this.#slider.value = String(budget);
    this.#slider.style.setProperty("--filled", `${(budget * 100) / MAX_DIGEST}%`);
    this.#slider.setAttribute("aria-valuetext", tokenCount(budget));
    if (this.#number.valueAsNumber !== budget) {
      this.#number.value = String(budget);
    }
    const isUsual = this.#kept.budget === null;
    this.#usual.disabled = isUsual;
    this.#changes.disabled = isUsual;
    page().classList.toggle("changes", this.#changes.checked && !isUsual);
  }

  #showContext(): void {
    const { tokensBefore, tokensBeforeSource, tokensAfter, tokensBeside } = this.#view.would;
    const { contextWindow, bound, remark } = this.#view.would;
    const isEstimate = tokensBeforeSource === "estimated";
    const both = figures(
      contextWindow,
      { name: "Now", tokens: tokensBefore, isEstimate },
      { name: "Afterwards", tokens: tokensAfter, isEstimate: true },
    );
    const stays =
      tokensBeside === 0 ? "" : ` Instructions and tools stay: about ${tokenCount(tokensBeside)}.`;
    const most = `It never takes more than ${tokenCount(bound)}, however long the session is.${stays}`;
    const little = remark === null ? [] : [el("p", {}, remark)];
    fill(
      this.#context,
      el("h2", {}, "Context"),
      both,
      ...little,
      el("p", { class: "quiet" }, most),
    );
  }
}

/** A part of the replacement that can be folded. */
class Fold {
  readonly element: HTMLDetailsElement;
  readonly #about = el("span", { class: "about" });
  readonly #body = el("div");

  constructor(id: string, title: string, isOpen: boolean, folded: (open: boolean) => void) {
    const summary = el("summary", {}, el("h2", {}, title), " ", this.#about);
    this.element = el("details", { id }, summary, this.#body);
    this.element.open = isOpen;
    this.element.addEventListener("toggle", () => folded(this.element.open));
  }

  show(about: string, ...body: readonly Child[]): void {
    fill(this.#about, about);
    fill(this.#body, ...body);
  }
}

function messageRow({ ref, text, tokens, cutTokens }: KeptMessage): HTMLElement {
  const lines = text.split("\n").map((line) => el("div", {}, line === "" ? " " : line));
  const isLong = lines.length > MOST_LINES || text.length > MOST_CHARS;
  const first = text.trim().split("\n", 1)[0] ?? "";
  const body = isLong
    ? el("details", {}, el("summary", {}, cut(first, 160)), ...lines)
    : el("div", {}, ...lines);
  const cutOut = cutTokens === 0 ? "" : `${tokenCount(cutTokens)} cut out of the middle`;
  const about = el("span", { class: "why quiet" }, dotted(tokenCount(tokens), cutOut));
  const anchor = ref?.startsWith("#") ? ref : "Record";
  return el("li", { class: "said" }, link(ref ?? "", anchor), body, about);
}

function stateRow(line: string): HTMLElement {
  if (line === "") {
    return el("li", { class: "gap", aria: { hidden: "true" } });
  }
  return el("li", { class: line.startsWith("[") ? "heading" : "line" }, line);
}

let shown: CompactionPage | null = null;
let drawn = "";
listen((message) => {
  if (message.kind === "compaction") {
    // Drawing again loses the focus, so draw only changes.
    const news = JSON.stringify(message);
    if (shown === null) {
      shown = new CompactionPage(message);
    } else if (news !== drawn) {
      shown.show(message);
    }
    drawn = news;
  } else if (message.kind === "trouble") {
    if (shown === null) {
      fill(page(), el("h1", {}, "Compact"), troubleBox(message));
    } else {
      drawn = "";
      shown.complain(message);
    }
  }
});
