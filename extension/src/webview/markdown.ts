/** Renders Markdown as elements and text, from the tree of `page/model/markdown.ts`. */

import type { Mark } from "../page/model/markdown.ts";
import { codeBlock } from "./code.ts";
import { type Child, el, send, textOf } from "./draw.ts";
import { loadedParsers } from "./loaded.ts";

/** Level of the heading above a conversation. */
const ABOVE = 3;

/** Render a model's text; unchanged if it cannot be rendered. */
export function markdownBlock(text: string): HTMLElement {
  return blockOf(loadedParsers().readMarkdown(text), text);
}

/** Render a typed text. */
export function typedBlock(text: string): HTMLElement {
  return blockOf(loadedParsers().readTyped(text), text);
}

function blockOf(marks: readonly Mark[] | null, text: string): HTMLElement {
  return marks === null
    ? el("div.words.as-it-is", textOf(text))
    : el("div.words", ...new Drawing().all(marks));
}

class Drawing {
  /** Level of the last heading; the next is at most one level deeper. */
  #level = ABOVE;

  all(marks: readonly Mark[]): readonly Child[] {
    return marks.map((mark) => this.#draw(mark));
  }

  #draw(mark: Mark): Child {
    if (typeof mark === "string") {
      return textOf(mark);
    }
    switch (mark.kind) {
      case "block":
        return codeBlock(mark.language, mark.text);
      case "link":
        return link(mark.address, this.all(mark.children));
      case "list":
        return el("ol", { start: String(mark.start) }, ...this.all(mark.children));
      case "table": {
        const made = el("div.wide", el("table", ...this.all(mark.children)));
        made.tabIndex = 0; // lets the keyboard scroll it on a narrow page
        return made;
      }
      case "h1":
      case "h2":
      case "h3":
      case "h4":
      case "h5":
      case "h6": {
        const level = Math.min(ABOVE + Number(mark.kind.slice(1)), this.#level + 1, 6);
        this.#level = level;
        return el(`h${level as 4 | 5 | 6}`, ...this.all(mark.children));
      }
      default:
        return el(mark.kind, ...this.all(mark.children));
    }
  }
}

/** Make a link that asks the extension, which decides whether to open it. */
function link(address: string, children: readonly Child[]): HTMLElement {
  const made = el("span.link", { role: "link", title: address }, ...children);
  made.tabIndex = 0;
  const follow = () => send({ kind: "link", address });
  made.addEventListener("click", follow);
  made.addEventListener("keydown", ({ key }) => key === "Enter" && follow());
  return made;
}
