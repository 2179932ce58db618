/** Draws the steps of a conversation: messages, commands with their output, and patches. */

import { type ConversationStep, charactersLeft, type Whole } from "../page/model/page.ts";
import { button, el, fill, send, textOf } from "./draw.ts";
import { markdownBlock, typedBlock } from "./markdown.ts";
import { commandBlock, patchBlock, type Where } from "./patches.ts";
import { link } from "./quotes.ts";

/** Drawn steps in order, by the JSON of their values. */
export type Rows = ReadonlyMap<string, HTMLElement>;

/** Milliseconds of work before yielding to the page, so that scrolling stays smooth. */
const SLICE = 12;

/** Draw steps; unchanged steps keep their elements, and so their folding, focus and position. */
export async function rowsOf(
  steps: readonly ConversationStep[],
  drawn: Rows,
  where: Where,
): Promise<Rows> {
  const rows = new Map<string, HTMLElement>();
  let start = performance.now();
  for (const step of steps) {
    const from = JSON.stringify(step);
    rows.set(from, drawn.get(from) ?? stepRow(step, where));
    if (performance.now() - start > SLICE) {
      await new Promise((resolve) => window.setTimeout(resolve));
      start = performance.now();
    }
  }
  return rows;
}

/** Show steps in a list. */
export function showSteps(place: HTMLElement, rows: Rows): void {
  const now = new Set(rows.values());
  for (const each of [...place.children]) {
    if (!now.has(each as HTMLElement)) {
      each.remove();
    }
  }
  // Leave elements in place: inserting one again would take its focus.
  for (const [at, each] of [...now].entries()) {
    if (place.children[at] !== each) {
      place.insertBefore(each, place.children[at] ?? null);
    }
  }
}

/** Requests for full texts, by record. */
const asked = new Map<string, (whole: Whole) => void>();

/** Show a full text in the step that requested it. */
export function takeWhole(whole: Whole): void {
  asked.get(whole.ref)?.(whole);
  asked.delete(whole.ref);
}

/** Draw a step: a message, or a command with its output folded. */
function stepRow(step: ConversationStep, where: Where): HTMLElement {
  const { ref, kind, about, hasFailed } = step;
  const record = link(ref, ref);
  const head = el(
    "div.who",
    el("span", kind === "user" ? where.speaker : WHO[kind]),
    record,
    el("span", { class: hasFailed ? "failed" : "about" }, about),
  );
  const body = el("div", bodyOf(step, where));
  const rest = el("p.rest.quiet");
  const more = (left: number) => {
    const all = button("Show more", "link", () => {
      asked.set(ref, (whole) => {
        fill(body, bodyOf({ ...step, ...textIn(step, whole.text) }, where, true));
        fill(rest, whole.left > 0 ? `${charactersLeft(whole.left)} are not shown.` : null);
        record.focus({ preventScroll: true });
      });
      send({ kind: "whole", ref });
    });
    fill(rest, `${charactersLeft(left)}. `, all);
  };
  if (step.left > 0) {
    more(step.left);
  }
  return el("li", { class: `step ${kind}` }, head, body, step.left > 0 ? rest : null);
}

/** Return the fields of a step's full text: for a command, its output. */
function textIn({ kind }: ConversationStep, text: string): Partial<ConversationStep> {
  return kind === "command" ? { printed: text } : { text };
}

/** Draw the body of a step; if that fails, as its plain text, so that the others are shown. */
function bodyOf(step: ConversationStep, where: Where, isOpen = false): HTMLElement {
  try {
    return drawnBody(step, where, isOpen);
  } catch (error) {
    reportError(error);
    const { text, printed } = step;
    return el("div.words.as-it-is", textOf(printed === "" ? text : `${text}\n${printed}`));
  }
}

function drawnBody(
  { kind, text, printed }: ConversationStep,
  where: Where,
  isOpen: boolean,
): HTMLElement {
  switch (kind) {
    case "user":
      return typedBlock(text);
    case "assistant":
    case "summary":
      return markdownBlock(text);
    case "plan":
      return el("div.words.as-it-is", textOf(text));
    case "patch":
      return patchBlock(text, where);
    default:
      return commandBlock(text, printed, isOpen);
  }
}

const WHO: Readonly<Record<Exclude<ConversationStep["kind"], "user">, string>> = {
  assistant: "Codex",
  summary: "Summary of a compaction",
  plan: "Plan",
  command: "Ran",
  patch: "Patch",
};
