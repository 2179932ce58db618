/** Code blocks, highlighted by highlight.js a moment later, so that the page is not delayed. */

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { el, textOf } from "./draw.ts";

const GRAMMARS = {
  ...{ bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin },
  ...{ makefile, markdown, php, python, ruby, rust, sql, swift, typescript, xml, yaml },
};

/** Created lazily, so that a page without code does not pay for it. */
let made: Lowlight | undefined;

function languages(): Lowlight {
  if (made === undefined) {
    made = createLowlight(GRAMMARS);
    made.registerAlias({ bash: ["console", "shell", "shellsession"] });
  }
  return made;
}

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
    const [{ place, language, text }, ...rest] = waiting as readonly [Waiting, ...Waiting[]];
    waiting = rest;
    if (languages().registered(language)) {
      const { children } = languages().highlight(language, text);
      place.replaceChildren(...children.map(coloured));
    }
  }
  if (waiting.length > 0) {
    window.setTimeout(colourSome);
  }
}

type Lowlight = ReturnType<typeof createLowlight>;
type Tree = ReturnType<Lowlight["highlight"]>["children"][number];

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
