/** The page that previews a restore. */

import { MAX_DIGEST, MAX_LABEL, MAX_MESSAGES } from "../client/limits.ts";
import type { PackItem, PackLine, Restored } from "../client/protocol.ts";
import { HARD_LIMIT, TOO_LONG } from "../client/words.ts";
import { DIGEST, MESSAGES, NO_FILE, REASON } from "../common/model/controls.ts";
import type { ToPage, Trouble } from "../common/model/pages.ts";
import { promise, restoreLabel } from "../restore/model/files.ts";
import {
  type Cut,
  costOf,
  cutAt,
  cutText,
  itemName,
  leftApart,
  type Mode,
  modeAbout,
  modeLabel,
  nameOf,
  type Preview,
  partName,
  type RestoreOptions,
  readOptions,
  sliderText,
} from "../restore/model/preview.ts";
import {
  BudgetField,
  button,
  type Child,
  el,
  fill,
  host,
  keepingFocus,
  page,
  restoreFigures,
  type Shown,
  send,
  TroublePlace,
  time,
  warningList,
} from "./draw.ts";
import { FileChoice, fileNotes, fileRow, PROMISE } from "./files.ts";

/** Pause in typing before the preview is updated. */
const REST_MS = 250;

/** Step of the slider, in tokens. */
const STEP = 100;

/** Warnings that the text below the budget or the list of files replaces. */
const SHOWN_ELSEWHERE = new Set(["pack_truncated", "pack_empty", "drift", "missing_files"]);

class PreviewPage implements Shown<Preview> {
  readonly #head = el("header");
  readonly #files = new FileChoice(() => this.#showScope());
  readonly #promise = el("p.promise", { id: PROMISE });
  readonly #columns = el("div.columns");
  readonly #conversation: HTMLElement;
  readonly #context = el("div");
  readonly #warnings = el("div");
  readonly #trouble = new TroublePlace();
  readonly #pack = new Pack();
  readonly #budget = new BudgetField("Size limit of the pack", null, (budget) => {
    this.#options = { ...this.#options, budget };
    this.#showBudget();
  });
  readonly #hardOnly: HTMLElement;
  readonly #contents = el("div.right");
  readonly #restore: HTMLButtonElement;
  /** Whether the shown preview is current, and no restore is running. */
  #isReady = false;
  /** Why the button is disabled. */
  readonly #why = el("p.quiet", { id: "why", role: "status" });
  #preview: Preview;
  #options: RestoreOptions;
  #timer: number | undefined;

  constructor(preview: Preview) {
    this.#preview = preview;
    this.#options = preview.options;
    this.#budget.slider.step = String(STEP);
    const { window, digestTokens } = this.#options;
    const messages = numberField(
      "messages",
      "Your last messages",
      MESSAGES,
      [window, MAX_MESSAGES],
      (count) => this.#ask({ window: count }),
    );
    const digest = numberField(
      "digest",
      "Digest, in tokens",
      DIGEST,
      [digestTokens, MAX_DIGEST],
      (tokens) => this.#ask({ digestTokens: tokens }, REST_MS),
    );
    this.#hardOnly = el("div", el("p.quiet", HARD_LIMIT), this.#budget.element, messages, digest);
    const reason = el("input", { id: "reason", type: "text", maxlength: String(MAX_LABEL) });
    reason.value = this.#options.reason;
    reason.addEventListener("input", () => this.#ask({ reason: reason.value }, REST_MS));
    this.#restore = button("Restore", "first", () => {
      this.#setReady(false);
      this.#trouble.clear();
      const { scope, chosen } = this.#files;
      send({ kind: "restore", options: this.#options, scope, files: chosen });
    });
    this.#restore.setAttribute("aria-describedby", this.#why.id);
    const cancel = button("Cancel", "second", () => send({ kind: "cancel" }));
    this.#conversation = el(
      "div.parts",
      modeChoice(this.#options.mode, (mode) => this.#ask({ mode })),
      this.#context,
      this.#warnings,
      this.#hardOnly,
      field("Reason", reason, REASON),
    );
    const form = el(
      "form.left.parts",
      this.#files.scopes,
      this.#promise,
      this.#files.element,
      this.#conversation,
      this.#trouble.element,
      el("div.buttons", this.#restore, cancel, this.#why),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    fill(this.#columns, form, this.#contents);
    fill(page(), this.#head, this.#columns);
    this.#showScope();
  }

  /** Show a preview, unless newer options are waiting for their own. */
  show(preview: Preview): void {
    const shown = preview.options;
    const isSame = (["mode", "window", "digestTokens", "reason"] as const).every(
      (name) => shown[name] === readOptions(this.#options)[name],
    );
    if (!isSame) {
      return;
    }
    this.#preview = preview;
    const { would } = preview;
    const isHard = shown.mode === "hard";
    this.#hardOnly.hidden = !isHard;
    this.#setReady(true);
    this.#trouble.clear(this.#restore);
    this.#showHead();
    this.#showWarnings();
    if (isHard) {
      this.#pack.show(would);
      fill(this.#contents, this.#pack.element);
      this.#budget.slider.max = String(Math.ceil(costOf(would.lines) / STEP) * STEP);
      this.#showBudget();
    } else {
      keepingFocus(() => fill(this.#contents, along(would, preview.turn)));
      this.#showContext(null);
    }
    page().setAttribute("data-ready", shown.mode);
  }

  /** Show an error; the chosen options stay. */
  complain(trouble: Trouble): void {
    this.#trouble.show(trouble);
    this.#trouble.element.scrollIntoView({ block: "nearest" });
    // Without a current preview there is no restore.
    this.#setReady(!trouble.again);
  }

  /** Handle the list of files, which arrives after the preview. */
  take(message: ToPage): void {
    if (message.kind === "files") {
      this.#files.show(message);
      // A restore of the conversation may still run.
      this.#setReady(this.#isReady || this.#files.scope === "files");
    }
  }

  #setReady(isReady: boolean): void {
    this.#isReady = isReady;
    this.#showScope();
  }

  /** Show only the parts of the page that apply to the scope. */
  #showScope(): void {
    const { scope, chosen } = this.#files;
    const isFiles = scope === "files";
    fill(this.#promise, promise(scope));
    this.#conversation.hidden = isFiles;
    this.#contents.hidden = isFiles;
    this.#columns.classList.toggle("alone", isFiles);
    fill(this.#restore, restoreLabel(scope, chosen.length));
    const lacksFiles = scope !== "conversation" && chosen.length === 0;
    this.#restore.disabled = !this.#isReady || lacksFiles;
    fill(this.#why, lacksFiles ? NO_FILE : "");
  }

  #showHead(): void {
    const { would, source, turn } = this.#preview;
    const where = turn === null ? source : `Turn ${turn} of “${source}”`;
    const name = nameOf(would.label, would.checkpointId);
    fill(
      this.#head,
      el("h1", `Restore “${name}”`),
      el("p.quiet", where, " · ", "marked", " ", time(would.markedAt)),
    );
  }

  #showBudget(): void {
    const budget = this.#options.budget ?? this.#preview.would.budget ?? 0;
    const cut = this.#pack.cut(budget);
    this.#showContext(cut.tokens);
    this.#budget.set(budget, sliderText(cut, budget));
    this.#budget.tell(cutText(cut, budget));
  }

  #showContext(packTokens: number | null): void {
    const { tokensBefore, tokensAfter, contextWindow, packTokens: asked } = this.#preview.would;
    const { besideText } = this.#preview.would;
    const isEstimate = packTokens !== null && tokensAfter !== null;
    const after = isEstimate ? tokensAfter - (asked ?? 0) + packTokens : tokensAfter;
    const both = restoreFigures(tokensBefore, after, contextWindow, isEstimate);
    const beside = besideText === null ? null : el("p.quiet", besideText);
    fill(this.#context, el("h2", "Context"), both, beside);
  }

  #showWarnings(): void {
    const { warnings } = this.#preview.would;
    const others = warnings.filter(({ code }) => !SHOWN_ELSEWHERE.has(code));
    fill(this.#warnings, warningList(others));
    this.#files.differ(this.#preview.would);
  }

  #ask(change: Partial<RestoreOptions>, rest = 0): void {
    // Restoring needs a current preview; a reason does not change the preview.
    this.#setReady(this.#isReady && change.reason !== undefined);
    this.#options = { ...this.#options, ...change };
    window.clearTimeout(this.#timer);
    const ask = () => send({ kind: "preview", options: this.#options });
    this.#timer = window.setTimeout(ask, rest);
  }
}

function modeChoice(chosen: Mode, choose: (mode: Mode) => void): HTMLElement {
  const card = (mode: Mode) => {
    const aria = { describedby: `about-${mode}` };
    const input = el("input", { id: `mode-${mode}`, type: "radio", name: "mode", aria });
    input.checked = mode === chosen;
    input.addEventListener("change", () => choose(mode));
    const name = el("label", { for: input.id }, modeLabel(mode));
    const about = el("p", { id: `about-${mode}`, class: "quiet" }, modeAbout(mode));
    about.addEventListener("click", () => input.click());
    return el("div.card", input, el("div", name, about));
  };
  const legend = el("legend", "How the new session starts");
  return el("fieldset.modes", legend, card("soft"), card("hard"));
}

function numberField(
  id: string,
  label: string,
  about: string,
  [now, most]: readonly [now: number, most: number],
  choose: (count: number) => void,
): HTMLElement {
  const input = el("input", { id, type: "number", min: "0", max: String(most) });
  input.value = String(now);
  input.addEventListener("input", () => {
    const count = input.valueAsNumber;
    if (Number.isInteger(count) && count >= 0 && count <= most) {
      choose(count);
    }
  });
  return field(`${label} (0 to ${most.toLocaleString("en-US")})`, input, about);
}

function field(label: string, input: HTMLInputElement, about: string): HTMLElement {
  const id = `about-${input.id}`;
  input.setAttribute("aria-describedby", id);
  const name = el("label", { for: input.id }, label);
  return el("div.field", name, input, el("p", { id, class: "quiet" }, about));
}

/** The lines of a pack, split at the budget. */
class Pack {
  readonly element = el("section.contents", { aria: { label: "State pack" } });
  readonly #inside = el("ol.pack");
  readonly #outside = el("ol.pack.out");
  readonly #insideTitle = el("h2");
  readonly #outsideTitle = el("h3");
  #lines: readonly PackLine[] = [];
  /** The number of omitted items that have no lines. */
  #apart = 0;
  #rows: HTMLElement[] = [];
  #at = -1;

  show(would: Restored): void {
    this.#lines = would.lines;
    this.#apart = leftApart(would);
    this.#rows = would.lines.map(lineRow);
    this.#at = -1;
    const shortened = would.deferred.filter(({ reason }) => reason === "bound");
    fill(
      this.element,
      this.#insideTitle,
      this.#inside,
      this.#outsideTitle,
      this.#outside,
      ...(shortened.length === 0 ? [] : shortenedList(shortened)),
    );
  }

  cut(budget: number): Cut {
    const cut = cutAt(this.#lines, budget, this.#apart);
    if (cut.lines !== this.#at) {
      this.#at = cut.lines;
      const next = cut.next === null ? -1 : this.#lines.indexOf(cut.next);
      this.#rows.forEach((row, index) => {
        row.classList.toggle("next", index === next);
      });
      fill(this.#inside, ...this.#rows.slice(0, cut.lines));
      fill(this.#outside, ...this.#rows.slice(cut.lines));
      fill(this.#insideTitle, `The new session starts with this (${cut.included})`);
      fill(this.#outsideTitle, `Left out to stay within the size limit (${cut.deferred})`);
      this.#outsideTitle.hidden = cut.deferred === 0;
      this.#outside.hidden = cut.deferred === 0;
      this.#inside.classList.toggle("nothing", cut.lines === 0);
    }
    return cut;
  }
}

/** List the content that a soft restore copies. */
function along(would: Restored, turn: number | null): HTMLElement {
  const parts = new Map<string, PackItem[]>();
  for (const item of would.included.filter(({ part }) => part !== "notice" && part !== "mode")) {
    parts.set(item.part, [...(parts.get(item.part) ?? []), item]);
  }
  const conversation =
    turn === null ? "The conversation up to the marker" : `The conversation up to turn ${turn}`;
  const notes = fileNotes(would);
  const groups = [...parts].flatMap(([part, all]) => {
    // List a file only once, even if the model also reread some of its lines.
    const items = all.filter(({ id }) => part !== "files" || !id.startsWith("reread:"));
    const rows = items.map((item) =>
      part === "files"
        ? fileRow(item.id, notes.get(item.id))
        : el("li", would.notes[item.id] ?? itemName(item)),
    );
    const list = el("ul", { class: part === "notes" ? "items words" : "items" }, ...rows);
    return [el("h3", `${partName(part)} (${items.length})`), list];
  });
  return el(
    "section.contents",
    { aria: { label: "What the new session keeps" } },
    el("h2", "What the new session keeps"),
    el("p", conversation),
    ...groups,
  );
}

function lineRow({ text, id }: PackLine): HTMLElement {
  const isHeading = id === null && text !== "";
  const name = text === "" ? "gap" : isHeading ? "heading" : "line";
  const looks = text === "" ? { class: name, aria: { hidden: "true" } } : { class: name };
  return el("li", looks, text);
}

function shortenedList(items: readonly PackItem[]): Child[] {
  return [
    el("h3", `Shortened (${items.length})`),
    el("p.quiet", TOO_LONG),
    el("ul.items", ...items.map((item) => el("li", itemName(item)))),
  ];
}

host("preview", "Restore", PreviewPage);
