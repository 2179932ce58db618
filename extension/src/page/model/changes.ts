/** The two sides of a diff of a changed file. */

import type { FileChange, FilePatch } from "../../client/protocol.ts";
import { shownText } from "../../common/model/text.ts";

/** The two sides of a diff; `about` is a suffix of the name if they are only excerpts. */
export interface Sides {
  readonly before: string;
  readonly after: string;
  readonly about: string;
}

/** Return the whole texts if both are known, else excerpts from the patches. */
export function sidesOf({ before, after, patches }: FileChange): Sides {
  if (before !== null && after !== null) {
    return { before, after, about: "" };
  }
  return patches.some(hasText)
    ? { ...excerpts(patches), about: " (from patches)" }
    : { before: "", after: NOT_RECORDED, about: " (text not known)" };
}

const NOT_RECORDED = "(Changed by a command. The session does not record how.)";

/** Check whether a patch has its text; a change by a command mostly has none. */
export function hasText({ text }: FilePatch): boolean {
  return text !== null;
}

/** Return the context and removed lines of patches, and the context and added lines. */
export function excerpts(patches: readonly FilePatch[]): Omit<Sides, "about"> {
  const side = (sign: string) =>
    patches
      .flatMap(({ turn, ref, text }) => [
        turn === null ? ref : `──── turn ${turn}`,
        ...(text ? text.split("\n").flatMap((row) => lineOf(row, sign)) : [text ?? NOT_RECORDED]),
        "",
      ])
      .join("\n");
  return { before: shownText(side("-")), after: shownText(side("+")) };
}

/** Return a hunk's row as a line of one side; `sign` names the side. */
function lineOf(row: string, sign: string): readonly string[] {
  if (row.startsWith("@@") || row.startsWith("\\")) {
    return row === "@@" ? ["⋯"] : [`⋯ ${row.replace(/^@@[^@]*@@ ?|^@@ ?/, "")}`.trimEnd()];
  }
  const isOther = /^[+-]/.test(row) && !row.startsWith(sign);
  return isOther ? [] : [row.slice(1)];
}
