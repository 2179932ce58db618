/** Draws the lines of a digest by section, each with a link to its record. */

import { dotted, tokenCount } from "../common/model/text.ts";
import type { Fate, Part, Piece, Quoted } from "../compaction/model/preview.ts";
import { button, type Child, el, send } from "./draw.ts";

/** The word for a screen reader before a line, and its element; the stylesheet adds the sign. */
const FATES: Readonly<Record<Fate, readonly [word: string, tag: "span" | "ins" | "del"]>> = {
  stays: ["", "span"],
  comes: ["Comes: ", "ins"],
  goes: ["Goes: ", "del"],
};

/** Draw a section, with its title as a heading of this level. */
export function partRows(
  { title, why, tokens, change, left, records }: Part,
  heading: "h2" | "h3" = "h3",
): Child[] {
  const about = dotted(tokens === 0 ? "" : tokenCount(tokens), change, left, why);
  return [
    el(heading, {}, title, " ", el("span.about", about)),
    records.length === 0 ? null : el("ul.quotes", ...records.map(quoteRow)),
  ];
}

function quoteRow({ ref, anchor, why, pieces }: Quoted): HTMLElement {
  const reason = why === "" ? null : el("span.why.quiet", why);
  return el("li", link(ref, anchor), el("div", ...pieces.map(pieceRow)), reason);
}

function pieceRow({ text, fate }: Piece): HTMLElement {
  const [word, tag] = FATES[fate];
  const spoken = word === "" ? null : el("span.spoken", word);
  return el("div", { class: `piece ${fate}` }, spoken, el(tag, {}, text));
}

/** Link to a record; empty for a count. */
export function link(ref: string, anchor: string): HTMLElement {
  const looks = { title: "Show Record", aria: { label: `Record ${anchor}` } };
  const open = () => send({ kind: "record", ref });
  return ref === "" ? el("span") : button(anchor, "link", open, looks);
}
