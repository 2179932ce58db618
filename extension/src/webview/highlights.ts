/**
 * Highlights a text on a page with the CSS Custom Highlight API: elements stay unchanged, and
 * elements added later are searched as well.
 */

import type { FoundText } from "../page/model/page.ts";
import { spansOf } from "../search/model/rows.ts";

/** Maximum number of matches: each change of the page repeats the search. */
const MOST = 2_000;

/** The buttons of a step that show its hidden parts. */
const MORE = ".more, .text > button, .rest button";

/** Elements within a line. */
const INLINE = new Set(["A", "B", "CODE", "DEL", "EM", "I", "MARK", "S", "SPAN", "STRONG"]);

export class Highlights {
  readonly #root: HTMLElement;
  #found: FoundText | null = null;
  /** The element whose match is scrolled into view as soon as it appears. */
  #sought: Element | null = null;
  readonly #pressed = new WeakSet<HTMLElement>();
  #waiting = 0;

  constructor(root: HTMLElement) {
    this.#root = root;
    const changes = { childList: true, subtree: true, characterData: true };
    new MutationObserver(() => this.#soon()).observe(root, changes);
    for (const act of ["wheel", "pointerdown", "keydown"]) {
      // Do not scroll back after the user did something else.
      window.addEventListener(act, () => this.#leave(), { capture: true, passive: true });
    }
    window.addEventListener("keydown", ({ key }) => key === "Escape" && this.show(null));
  }

  /** Highlight a text; null for none. */
  show(found: FoundText | null): void {
    this.#found = found;
    CSS.highlights.delete("hit");
    this.#soon();
  }

  /** Scroll to the match in an element, and highlight it more strongly than the others. */
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
    // Searched by itself: on a long page it may lie after the maximum number of matches.
    const near = this.#sought === null ? [] : matchesIn(this.#sought, text);
    const exact = near.find(({ line }) => bare(line).includes(bare(wanted)));
    // The exact line may appear later, in a part that is still loading.
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

  /** Press the buttons that unfold the step: the match may be in a hidden part. */
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
  /** The line around the match. */
  readonly line: string;
}

/** Find all matches in an element; each lies within one block. */
function matchesIn(root: Element, text: string): Match[] {
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

/** Scroll the containers of a range, no further than needed. */
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

/** Remove the Markdown or patch signs of a line, which the page renders. */
function bare(line: string): string {
  return line
    .replace(/^\s*[-+#>\s]+/, "")
    .replace(/[*_`]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** Return the text node at a position of a line, and the offset in it. */
function placeOf(
  nodes: readonly (readonly [start: number, node: Text])[],
  at: number,
  beyond = 0,
): [Text, number] {
  const [start, node] = nodes.findLast(([first]) => first <= at) as [number, Text];
  return [node, at - start + beyond];
}

function blockOf(node: Text): Element | null {
  let around = node.parentElement;
  while (around !== null && INLINE.has(around.tagName)) {
    around = around.parentElement;
  }
  return around;
}
