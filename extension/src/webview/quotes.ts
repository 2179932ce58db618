/** The lines of a digest by section, each with what opens its record. */

import { dotted, tokenCount } from "../common/model/text.ts";
import type { Fate, Part, Piece, Quoted } from "../compaction/model/preview.ts";
import { button, type Child, el, send } from "./draw.ts";

/** What a screen reader hears in front of a line, and its element; its sign is in the style. */
const FATES: Readonly<Record<Fate, readonly [word: string, tag: "span" | "ins" | "del"]>> = {
  stays: ["", "span"],
  comes: ["Comes: ", "ins"],
  goes: ["Goes: ", "del"],
};

/** A section; its title is a heading of this kind. */
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

/** What opens a record; an empty place for what is counted. */
export function link(ref: string, anchor: string): HTMLElement {
  const looks = { title: "Show Record", aria: { label: `Record ${anchor}` } };
  const open = () => send({ kind: "record", ref });
  return ref === "" ? el("span") : button(anchor, "link", open, looks);
}
