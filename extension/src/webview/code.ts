/** Code blocks, highlighted by highlight.js a moment later, so that the page is not delayed. */

import { el, textOf } from "./draw.ts";
import type { languages } from "./languages.ts";
import { loadedParsers } from "./loaded.ts";

/** Limits: the grammars are slow for long lines. */
const [MOST_TEXT, LONGEST_LINE] = [10_000, 400];
/** Milliseconds of work before yielding to the page. */
const SLICE = 10;

interface Waiting {
  readonly place: HTMLElement;
  readonly language: string;
  readonly text: string;
}

let waiting: readonly Waiting[] = [];

/** Make a block of code; the first word of `info`, the fence's info string, names the language. */
export function codeBlock(info: string, text: string): HTMLElement {
  const place = el("code");
  place.append(textOf(text.replace(/\n$/, "")));
  const language = /^[\w#+-]+/.exec(info)?.[0].toLowerCase() ?? "";
  const isShort = text.length <= MOST_TEXT && !new RegExp(`.{${LONGEST_LINE + 1}}`).test(text);
  if (isShort && language !== "") {
    if (waiting.length === 0) {
      window.setTimeout(colourSome);
    }
    waiting = [...waiting, { place, language, text: place.textContent ?? "" }];
  }
  return el("pre.block-of-code", place);
}

function colourSome(): void {
  const start = performance.now();
  while (waiting.length > 0 && performance.now() - start < SLICE) {
    const [first, ...rest] = waiting as readonly [Waiting, ...Waiting[]];
    waiting = rest;
    try {
      colour(first);
    } catch (error) {
      reportError(error); // its text stays as it is, and the others are coloured
    }
  }
  if (waiting.length > 0) {
    window.setTimeout(colourSome);
  }
}

function colour({ place, language, text }: Waiting): void {
  const known = loadedParsers().languages();
  if (known.registered(language)) {
    const { children } = known.highlight(language, text);
    place.replaceChildren(...children.map(coloured));
  }
}

type Tree = ReturnType<ReturnType<typeof languages>["highlight"]>["children"][number];

/** Make a highlighted element; only the classes are taken from the parser's tree. */
function coloured(node: Tree): Node {
  if (node.type !== "element") {
    return textOf(node.type === "text" ? node.value : "");
  }
  const { className } = node.properties;
  const made = el("span", { class: Array.isArray(className) ? className.join(" ") : "" });
  made.append(...node.children.map(coloured));
  return made;
}
