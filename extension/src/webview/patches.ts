/** Shows patches as cards, one per file, and command outputs folded to their ends. */

import { counted } from "../common/model/text.ts";
import { foldedOutput, type PatchFile, readPatch } from "../page/model/patches.ts";
import { button, type Child, el, fill, send, textOf } from "./draw.ts";

/** Number of a card's lines shown at first. */
const MOST_LINES = 30;

const KINDS = { A: "Added", M: "Modified", D: "Deleted" } as const;

/** Show the kind of a change as a coloured letter, with a word for screen readers. */
export function badge(kind: keyof typeof KINDS): HTMLElement {
  const word = KINDS[kind];
  return el(
    "span",
    { class: `badge ${word.toLowerCase()}`, title: word, role: "img", aria: { label: word } },
    kind,
  );
}

/** Count added and removed lines. */
export function lineCount(added: number, removed: number): HTMLElement {
  return el(
    "span.lines-changed",
    el("span.added", `+${added.toLocaleString("en-US")}`),
    " ",
    el("span.deleted", `−${removed.toLocaleString("en-US")}`),
  );
}

/** The context of a step: its turn, the session's folder, and the speaker's name. */
export interface Where {
  readonly turnId: string;
  readonly folder: string;
  readonly speaker: string;
}

/** Make a card per file of a patch; show the text unchanged if it has no files. */
export function patchBlock(text: string, where: Where): HTMLElement {
  const { files, around } = readPatch(text);
  const rest = around === "" ? null : el("code.around", textOf(around));
  return el("div.patch", rest, ...files.map((file) => card(file, where)));
}

function card(file: PatchFile, { turnId, folder }: Where): HTMLElement {
  const { path, movedTo, kind, added, removed, lines } = file;
  const shown = (name: string) =>
    folder !== "" && name.startsWith(`${folder}/`) ? name.slice(folder.length + 1) : name;
  const open = () => send({ kind: "change", uri: movedTo ?? path, turnId });
  const name = movedTo === null ? shown(path) : `${shown(path)} → ${shown(movedTo)}`;
  const head = el(
    "div.file",
    badge(kind),
    button(name, "link", open, { title: "Show the diff of this turn" }),
    lineCount(added, removed),
  );
  const body = el("div.text");
  const show = (some: PatchFile["lines"]) =>
    fill(body, ...some.map(({ text, kind }) => el("div", { class: `piece ${kind}` }, text || " ")));
  show(lines.slice(0, MOST_LINES));
  const more = lines.length - MOST_LINES;
  const unfold = moreButton(more, () => show(lines));
  return el("div.patched", head, lines.length === 0 ? null : body, more > 0 ? unfold : null);
}

/** Make a button that shows the hidden lines and removes itself. */
function moreButton(lines: number, show: () => void): HTMLButtonElement {
  const label = counted(lines, "1 more line", `${lines.toLocaleString("en-US")} more lines`);
  const made = button(label, "link", () => {
    const step = made.closest("li");
    show();
    made.remove();
    step?.querySelector<HTMLElement>(".who button")?.focus({ preventScroll: true });
  });
  made.classList.add("more");
  return made;
}

/** Show a command and its output; a long output shows only its first and last lines. */
export function commandBlock(command: string, printed: string, isOpen: boolean): HTMLElement {
  const title = el("code.command", textOf(command));
  if (printed.trim() === "") {
    return el("div", title);
  }
  const output = el("div.text");
  const folded = isOpen ? null : foldedOutput(printed);
  const showAll = () => fill(output, textOf(printed.replace(/\n$/, "")));
  if (folded === null) {
    showAll();
  } else {
    fill(output, ...foldedParts(folded, showAll));
  }
  return el("div", title, output);
}

function foldedParts(
  { first, left, last }: NonNullable<ReturnType<typeof foldedOutput>>,
  showAll: () => void,
): readonly Child[] {
  return left === 0
    ? [textOf(`${first}\n`), button("Show long lines", "link", showAll)]
    : [textOf(`${first}\n`), moreButton(left, showAll), textOf(`\n${last}`)];
}
