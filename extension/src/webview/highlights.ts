/**
 * A text highlighted on a page, by ranges that the browser paints: elements stay as they are, and
 * those that come later are searched as well.
 */

import type { FoundText } from "../page/model/page.ts";
import { spansOf } from "../search/model/rows.ts";

/** A limit on matches: each change of the page searches for them again. */
const MOST = 2_000;

/** The buttons of a step that show what is left out of it. */
const MORE = ".more, .text > button, .rest button";

/** Elements that stand within a line. */
const INLINE = new Set(["A", "B", "CODE", "DEL", "EM", "I", "MARK", "S", "SPAN", "STRONG"]);

export class Highlights {
  readonly #root: HTMLElement;
  #found: FoundText | null = null;
  /** The element whose match is brought into sight as soon as it is there. */
  #sought: Element | null = null;
  readonly #pressed = new WeakSet<HTMLElement>();
  #waiting = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
    const changes = { childList: true, subtree: true, characterData: true };
    new MutationObserver(() => this.#soon()).observe(root, changes);
    for (const act of ["wheel", "pointerdown", "keydown"]) {
      // Whoever does something else is not brought back.
      window.addEventListener(act, () => this.#leave(), { capture: true, passive: true });
    }
    window.addEventListener("keydown", ({ key }) => key === "Escape" && this.show(null));
  }

  /** Highlight a text, or none. */
  show(found: FoundText | null): void {
    this.#found = found;
    CSS.highlights.delete("hit");
    this.#soon();
  }

  /** Bring what was found in an element into sight, and highlight it more than other matches. */
  seek(element: Element): void {
    this.#sought = element;
    this.#soon();
  }

  #leave(): void {
    this.#sought = null;
  }

  #soon(): void {
    if (this.#waiting === 0 && (this.#found !== null || CSS.highlights.size > 0)) {
      this.#waiting = requestAnimationFrame(() => {
        this.#waiting = 0;
        this.#draw();
      });
    }
  }

  #draw(): void {
    const { text, line: wanted } = this.#found ?? { text: "", line: "" };
    const matches = matchesIn(this.#root, text);
    CSS.highlights.set("match", new Highlight(...matches.map(({ range }) => range)));
    const near = matches.filter(({ range }) => this.#sought?.contains(range.startContainer));
    const exact = near.find(({ line }) => bare(line).includes(bare(wanted)));
    // The line itself may come later, with a part that is asked for.
    const { range } = exact ?? near[0] ?? { range: null };
    if (range !== null) {
      this.#sought = exact === undefined ? this.#sought : null;
      CSS.highlights.set("hit", new Highlight(range));
      bringIntoSight(range);
    }
    if (exact === undefined) {
      this.#unfold();
    }
  }

  /** Press what shows more of the step: what is sought may be in a part that is left out. */
  #unfold(): void {
    const buttons = this.#sought?.querySelectorAll<HTMLElement>(MORE) ?? [];
    for (const button of buttons) {
      if (!this.#pressed.has(button)) {
        this.#pressed.add(button);
        button.click();
      }
    }
  }
}

interface Match {
  readonly range: Range;
  /** The line that holds it. */
  readonly line: string;
}

/** Each place in an element that shows a text, as far as it stands in one block. */
function matchesIn(root: HTMLElement, text: string): Match[] {
  const matches: Match[] = [];
  let [line, nodes, block]: [string, [start: number, node: Text][], Element | null] = [
    "",
    [],
    null,
  ];
  const flush = () => {
    for (const [start, end] of spansOf(line, text)) {
      const range = document.createRange();
      range.setStart(...placeOf(nodes, start));
      range.setEnd(...placeOf(nodes, end - 1, 1));
      const before = line.lastIndexOf("\n", start) + 1;
      const [whole = ""] = line.slice(before).split("\n", 1);
      matches.push({ range, line: whole });
    }
    [line, nodes] = ["", []];
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() !== null && matches.length < MOST) {
    const node = walker.currentNode as Text;
    const around = blockOf(node);
    if (around !== block) {
      flush();
      block = around;
    }
    nodes.push([line.length, node]);
    line += node.data;
  }
  flush();
  return matches;
}

/** Scroll all that scrolls around a range, and no more than needed. */
function bringIntoSight(range: Range): void {
  for (let around = range.startContainer.parentElement; around; around = around.parentElement) {
    const isRoot = around === document.scrollingElement;
    const { overflowY } = getComputedStyle(around);
    if (isRoot || overflowY === "auto" || overflowY === "scroll") {
      const box = around.getBoundingClientRect();
      const [top, bottom] = isRoot ? [0, window.innerHeight] : [box.top, box.bottom];
      const margin = (bottom - top) / 4; // a heading may stick to the edge
      const place = range.getBoundingClientRect();
      if (place.top < top + margin || place.bottom > bottom - margin) {
        around.scrollTop += place.top - top - margin;
      }
    }
  }
}

/** A line without its marks of Markdown or of a patch, which a page shows by its looks. */
function bare(line: string): string {
  return line
    .replace(/^\s*[-+#>\s]+/, "")
    .replace(/[*_`]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** The node with a place of a line, and the place in it. */
function placeOf(
  nodes: readonly (readonly [start: number, node: Text])[],
  at: number,
  behind = 0,
): [Text, number] {
  const [start, node] = nodes.findLast(([first]) => first <= at) as [number, Text];
  return [node, at - start + behind];
}

function blockOf(node: Text): Element | null {
  let around = node.parentElement;
  while (around !== null && INLINE.has(around.tagName)) {
    around = around.parentElement;
  }
  return around;
}
