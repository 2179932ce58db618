/** Patches as cards, one a file; and what commands printed, folded to its ends. */

import { counted } from "../common/model/text.ts";
import { foldedOutput, type PatchFile, readPatch } from "../page/model/patches.ts";
import { button, type Child, el, fill, send, textOf } from "./draw.ts";

/** Lines of a card that are shown at first. */
const MOST_LINES = 30;

const KINDS = { A: "Added", M: "Modified", D: "Deleted" } as const;

/** What a file of a patch did: a letter in its colour, with its word for a screen reader. */
export function badge(kind: keyof typeof KINDS): HTMLElement {
  const word = KINDS[kind];
  return el(
    "span",
    { class: `badge ${word.toLowerCase()}`, title: word, role: "img", aria: { label: word } },
    kind,
  );
}

/** How many lines came and went. */
export function lineCount(added: number, removed: number): HTMLElement {
  return el(
    "span.lines-changed",
    el("span.added", `+${added.toLocaleString("en-US")}`),
    " ",
    el("span.deleted", `−${removed.toLocaleString("en-US")}`),
  );
}

/** What a step is drawn with: its turn, the folder of the session, and who speaks to Codex. */
export interface Where {
  readonly turnId: string;
  readonly folder: string;
  readonly speaker: string;
}

/** A patch: a card for each file; a text in which there is none as it is. */
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

/** A button that shows the lines that are left out, and goes. */
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

/** A command with what it printed; of a long output the first and the last lines. */
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
