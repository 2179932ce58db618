/**
 * Parses Markdown into a tree of values, from which pages make elements; there is no HTML to run.
 * The tree can contain only the kinds below: no HTML, no images, and only links that `readTarget`
 * accepts. A text that is too expensive, or would lose a part of itself, is not rendered at all.
 */

import MarkdownIt, { type MarkdownIt as Parser, type Token } from "markdown-it";
import { readTarget } from "../../common/model/links.ts";
import { shownText } from "../../common/model/text.ts";

export type Mark =
  | string
  | { readonly kind: "block"; readonly language: string; readonly text: string }
  | { readonly kind: "link"; readonly address: string; readonly children: readonly Mark[] }
  | { readonly kind: "list"; readonly start: number; readonly children: readonly Mark[] }
  | { readonly kind: Plain; readonly children: readonly Mark[] };

/** The kinds that map to the element of the same name. */
const PLAIN = [
  ...["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "blockquote", "hr", "br"],
  ...["em", "strong", "s", "code", "table", "thead", "tbody", "tr", "th", "td"],
] as const;
export type Plain = (typeof PLAIN)[number];

/** Limits on the length and the number of tokens of a rendered text; longer texts stay plain. */
const MOST_TEXT = 32_000;
const MOST_TOKENS = 10_000;

/** Deeper nesting would make the parser drop text. */
const DEEPEST = 20;

const MARKDOWN = new MarkdownIt({ html: false, linkify: false, breaks: true })
  .set({ maxNesting: DEEPEST })
  .disable("reference"); // a definition could hide a text that is never shown
/** A typed message keeps its text as it is, except for code in backticks. */
const TYPED = new MarkdownIt("zero", { html: false }).enable(["fence", "backticks"]);

for (const parser of [MARKDOWN, TYPED]) {
  parser.validateLink = (address) => readTarget(address) !== null;
  parser.normalizeLink = (address) => address;
}

/** Parse a model's text; null if it cannot be rendered. */
export function readMarkdown(text: string): readonly Mark[] | null {
  return read(MARKDOWN, text);
}

/** Parse a typed text; null if it cannot be rendered. */
export function readTyped(text: string): readonly Mark[] | null {
  return read(TYPED, text);
}

function read(parser: Parser, text: string): readonly Mark[] | null {
  if (text.length > MOST_TEXT) {
    return null;
  }
  const tokens = parser.parse(shownText(text), {});
  const size = tokens.reduce((sum, { children }) => sum + 1 + (children?.length ?? 0), 0);
  const isWhole = tokens.every(({ level }) => level < DEEPEST - 1);
  return size <= MOST_TOKENS && isWhole ? treeOf(tokens) : null;
}

interface Open {
  readonly token: Token | null;
  readonly children: Mark[];
}

function treeOf(tokens: readonly Token[]): readonly Mark[] {
  const open: Open[] = [{ token: null, children: [] }];
  const add = (...marks: readonly Mark[]) => open.at(-1)?.children.push(...marks);
  for (const token of tokens) {
    if (token.nesting === 1) {
      open.push({ token, children: [] });
    } else if (token.nesting === -1) {
      const closed = open.pop();
      add(...(closed?.token ? closedMark(closed.token, closed.children) : []));
    } else {
      add(...single(token));
    }
  }
  return open[0]?.children ?? [];
}

/** Make a mark with children; items of a list without blank lines have no paragraphs. */
function closedMark(token: Token, children: readonly Mark[]): readonly Mark[] {
  if (token.tag === "a") {
    return [{ kind: "link", address: String(token.attrGet("href") ?? ""), children }];
  }
  if (token.tag === "ol") {
    return [{ kind: "list", start: Number(token.attrGet("start") ?? 1), children }];
  }
  const kind = PLAIN.find((each) => each === token.tag);
  return kind === undefined || token.hidden ? children : [{ kind, children }];
}

function single(token: Token): readonly Mark[] {
  switch (token.type) {
    case "inline":
      return treeOf(token.children ?? []);
    case "fence":
    case "code_block":
      return [{ kind: "block", language: token.info.trim(), text: token.content }];
    case "code_inline":
      return [{ kind: "code", children: [token.content] }];
    case "image":
      return [`${token.content} (${token.attrGet("src") ?? ""})`];
    case "softbreak":
    case "hardbreak":
      return [{ kind: "br", children: [] }];
    case "hr":
      return [{ kind: "hr", children: [] }];
    default:
      return [token.content];
  }
}
