/** The page that previews a compaction for each digest budget. */

import { MAX_DIGEST } from "../client/limits.ts";
import type { KeptMessage } from "../client/protocol.ts";
import { REPLACEMENT } from "../client/words.ts";
import { COMPACT } from "../common/model/controls.ts";
import type { Trouble } from "../common/model/pages.ts";
import { counted, cut, dotted, tokenCount } from "../common/model/text.ts";
import {
  budgetText,
  type CompactionView,
  digestParts,
  readBudget,
} from "../compaction/model/preview.ts";
import {
  BudgetField,
  button,
  type Child,
  el,
  figures,
  fill,
  fold,
  host,
  linesOf,
  page,
  type Shown,
  send,
  TroublePlace,
  warningList,
} from "./draw.ts";
import { link, partRows } from "./quotes.ts";

/** Step of the slider, in tokens. */
const STEP = 500;

/** Pause in moving the slider before the preview is updated. */
const REST_MS = 100;

/** Longer messages are folded. */
const [MOST_LINES, MOST_CHARS] = [6, 600];

class CompactionPage implements Shown<CompactionView> {
  readonly #context = el("div");
  readonly #warnings = el("div");
  readonly #trouble = new TroublePlace();
  readonly #budget: BudgetField;
  readonly #usual = button("Use Default", "second", () => {
    this.#budget.slider.focus(); // the pressed button is now disabled
    this.#choose(null);
  });
  readonly #compact = button("Compact…", "first", () => {
    this.#trouble.clear();
    send({ kind: "compact" });
  });
  readonly #messages = new Part("Your messages");
  readonly #state = new Part("State");
  readonly #digest = new Part("Digest");
  #view: CompactionView;
  /** The chosen budget; null for the default. */
  #chosen: number | null = null;
  #asking: number | undefined;

  constructor(view: CompactionView) {
    this.#view = view;
    this.#budget = new BudgetField("Size limit of the digest", this.#usual, (budget) => {
      if (readBudget(budget) !== null) {
        this.#choose(budget);
      }
    });
    for (const input of [this.#budget.slider, this.#budget.number]) {
      input.max = String(MAX_DIGEST);
    }
    this.#budget.slider.step = String(STEP);
    const form = el(
      "form.left.parts",
      this.#context,
      this.#warnings,
      this.#budget.element,
      this.#trouble.element,
      el(
        "div.buttons",
        this.#compact,
        button("Show as Diff", "second", () => send({ kind: "diff" })),
        button("Copy", "second", () => send({ kind: "copy" })),
      ),
      el("p.quiet", COMPACT),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    const contents = el(
      "div.right",
      fold("messages", this.#messages.title, false, this.#messages.body),
      fold("state", this.#state.title, false, this.#state.body),
      fold("digest", this.#digest.title, true, this.#digest.body),
    );
    fill(
      page(),
      el("header", el("h1", `Compact “${view.name}”`), el("p.quiet", REPLACEMENT)),
      el("div.columns", form, contents),
    );
  }

  /** Show a preview, unless a newer budget is waiting for its own. */
  show(view: CompactionView): void {
    const { contents, usual } = view;
    const { digest, messages } = contents;
    if (digest.budget !== (this.#chosen ?? usual.budget)) {
      return;
    }
    this.#view = view;
    this.#compact.disabled = false;
    this.#trouble.clear(this.#compact);
    page().removeAttribute("aria-busy");
    this.#showContext();
    fill(this.#warnings, warningList(contents.warnings));
    const said = messages.reduce((sum, { tokens }) => sum + tokens, 0);
    const many = counted(messages.length, "1 message", `${messages.length} messages`);
    this.#messages.show(
      messages.length === 0 ? "none" : dotted(tokenCount(said), many),
      el("ul.quotes", ...messages.map(messageRow)),
    );
    const state = contents.view.replace(/\n$/, "").split("\n").map(stateRow);
    this.#state.show(
      dotted(tokenCount(contents.stateTokens), "with the text that explains it"),
      el("ol.pack", ...state),
    );
    const parts = digestParts(digest, usual);
    const size = digest.tokens.toLocaleString("en-US");
    const most = `${size} of at most ${tokenCount(digest.budget)}`;
    this.#digest.show(most, ...parts.flatMap((part) => partRows(part)));
    this.#showBudget();
    this.#budget.tell(budgetText(parts, digest, usual));
    page().setAttribute("data-ready", String(digest.budget));
  }

  complain(trouble: Trouble): void {
    this.#trouble.show(trouble);
    this.#trouble.element.scrollIntoView({ block: "nearest" });
    this.#compact.disabled = trouble.again;
  }

  #choose(budget: number | null): void {
    this.#chosen = budget === this.#view.usual.budget ? null : budget;
    this.#compact.disabled = true; // only a current preview can be installed
    page().setAttribute("aria-busy", "true");
    this.#showBudget();
    window.clearTimeout(this.#asking);
    const ask = () => send({ kind: "budget", budget: this.#chosen });
    this.#asking = window.setTimeout(ask, REST_MS);
  }

  #showBudget(): void {
    const budget = this.#chosen ?? this.#view.usual.budget;
    this.#budget.set(budget, tokenCount(budget));
    this.#usual.disabled = this.#chosen === null;
  }

  #showContext(): void {
    const { tokensBefore, tokensBeforeSource, tokensAfter } = this.#view.would;
    const { contextWindow, sizeText, remarkText } = this.#view.would;
    const isEstimate = tokensBeforeSource === "estimated";
    const both = figures(
      contextWindow,
      { name: "Now", tokens: tokensBefore, isEstimate },
      { name: "Afterwards", tokens: tokensAfter, isEstimate: true },
    );
    const remarks = remarkText === null ? [] : [el("p", remarkText)];
    fill(this.#context, el("h2", "Context"), both, ...remarks, el("p.quiet", sizeText));
  }
}

/** A part of the replacement: its title and its body. */
class Part {
  readonly title: readonly Child[];
  readonly body = el("div");
  readonly #about = el("span.about");

  constructor(title: string) {
    this.title = [el("h2", title), " ", this.#about];
  }

  show(about: string, ...body: readonly Child[]): void {
    fill(this.#about, about);
    fill(this.body, ...body);
  }
}

function messageRow({ ref, text, tokens, cutTokens }: KeptMessage): HTMLElement {
  const lines = linesOf(text);
  const isLong = lines.length > MOST_LINES || text.length > MOST_CHARS;
  const first = text.trim().split("\n", 1)[0] ?? "";
  const body = isLong
    ? el("details", el("summary", cut(first, 160)), ...lines)
    : el("div", ...lines);
  const cutOut = cutTokens === 0 ? "" : `${tokenCount(cutTokens)} cut out of the middle`;
  const about = el("span.why.quiet", dotted(tokenCount(tokens), cutOut));
  const anchor = ref?.startsWith("#") ? ref : "Record";
  return el("li.said", link(ref ?? "", anchor), body, about);
}

function stateRow(line: string): HTMLElement {
  if (line === "") {
    return el("li.gap", { aria: { hidden: "true" } });
  }
  return el("li", { class: line.startsWith("[") ? "heading" : "line" }, line);
}

host("compaction", "Compact", CompactionPage);
