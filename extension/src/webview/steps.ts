/** The steps of a conversation: what was said, commands with their output, patches. */

import { charactersLeft, type Spoken, type Whole } from "../page/model/page.ts";
import { button, el, fill, send, textOf } from "./draw.ts";
import { commandBlock, patchBlock, type Where } from "./patches.ts";
import { link } from "./quotes.ts";

/** The parsers: they are loaded with the first conversation, after the picture. */
type Markdown = typeof import("./markdown.ts");

/** Steps in order, each by the values that it was drawn from. */
export type Rows = ReadonlyMap<string, HTMLElement>;

/** Milliseconds of work between two pauses: whoever scrolls meanwhile is not held up. */
const SLICE = 12;

/** Draw steps; one that was drawn already stays as it is: unfolded, focused, and in its place. */
export async function rowsOf(steps: readonly Spoken[], drawn: Rows, where: Where): Promise<Rows> {
  const markdown = await import("./markdown.ts");
  const rows = new Map<string, HTMLElement>();
  let start = performance.now();
  for (const step of steps) {
    const from = JSON.stringify(step);
    rows.set(from, drawn.get(from) ?? stepRow(step, where, markdown));
    if (performance.now() - start > SLICE) {
      await new Promise((resolve) => window.setTimeout(resolve));
      start = performance.now();
    }
  }
  return rows;
}

/** Show steps in their place. */
export function showSteps(place: HTMLElement, rows: Rows): void {
  const now = new Set(rows.values());
  for (const each of [...place.children]) {
    if (!now.has(each as HTMLElement)) {
      each.remove();
    }
  }
  // What stands already is not touched: to put it in again would take the focus away.
  for (const [at, each] of [...now].entries()) {
    if (place.children[at] !== each) {
      place.insertBefore(each, place.children[at] ?? null);
    }
  }
}

/** The texts that were asked for, by their records; each shows its own. */
const asked = new Map<string, (whole: Whole) => void>();

/** Show a text in full where it was asked for. */
export function takeWhole(whole: Whole): void {
  asked.get(whole.ref)?.(whole);
  asked.delete(whole.ref);
}

/** A step of a conversation: what was said, or a command with its output folded. */
function stepRow(step: Spoken, where: Where, markdown: Markdown): HTMLElement {
  const { ref, kind, about, hasFailed } = step;
  const record = link(ref, ref);
  const head = el(
    "div.who",
    el("span", kind === "user" ? where.speaker : WHO[kind]),
    record,
    el("span", { class: hasFailed ? "failed" : "about" }, about),
  );
  const body = el("div", bodyOf(step, where, markdown));
  const rest = el("p.rest.quiet");
  const more = (left: number) => {
    const all = button("Show all", "link", () => {
      asked.set(ref, (whole) => {
        fill(body, bodyOf({ ...step, ...textIn(step, whole.text) }, where, markdown, true));
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

/** The step with all of its text: of a command what it printed. */
function textIn({ kind }: Spoken, text: string): Partial<Spoken> {
  return kind === "command" ? { printed: text } : { text };
}

function bodyOf(
  { kind, text, printed }: Spoken,
  where: Where,
  markdown: Markdown,
  isOpen = false,
): HTMLElement {
  switch (kind) {
    case "user":
      return markdown.typedBlock(text);
    case "assistant":
    case "summary":
      return markdown.markdownBlock(text);
    case "plan":
      return el("div.words.as-it-is", textOf(text));
    case "patch":
      return patchBlock(text, where);
    default:
      return commandBlock(text, printed, isOpen);
  }
}

const WHO: Readonly<Record<Exclude<Spoken["kind"], "user">, string>> = {
  assistant: "Codex",
  summary: "Summary of a compaction",
  plan: "Plan",
  command: "Ran",
  patch: "Patch",
};
