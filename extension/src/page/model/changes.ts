/** The two sides of a diff of a file that a session changed. */

import type { FileChange, FilePatch } from "../../client/protocol.ts";
import { shownText } from "../../common/model/text.ts";

/** The two sides of a diff of a file; `about` says after its name where they are only parts. */
export interface Sides {
  readonly before: string;
  readonly after: string;
  readonly about: string;
}

/** The whole texts if both are known, else what the patches tell of them. */
export function sidesOf({ before, after, patches }: FileChange): Sides {
  if (before !== null && after !== null) {
    return { before, after, about: "" };
  }
  return patches.some(tells)
    ? { ...excerpts(patches), about: " (from patches)" }
    : { before: "", after: NOT_TOLD, about: " (text not known)" };
}

const NOT_TOLD = "(Changed by a command. The session does not tell how.)";

/** Whether a patch tells what it changed; a command mostly does not. */
export function tells({ text }: FilePatch): boolean {
  return text !== null;
}

/** The lines that patches took away and left, and those that they brought and left. */
export function excerpts(patches: readonly FilePatch[]): Omit<Sides, "about"> {
  const side = (sign: string) =>
    patches
      .flatMap(({ turn, ref, text }) => [
        turn === null ? ref : `──── turn ${turn}`,
        ...(text ? text.split("\n").flatMap((row) => lineOf(row, sign)) : [text ?? NOT_TOLD]),
        "",
      ])
      .join("\n");
  return { before: shownText(side("-")), after: shownText(side("+")) };
}

/** A row of a hunk as a line of one side, the side of this sign. */
function lineOf(row: string, sign: string): readonly string[] {
  if (row.startsWith("@@") || row.startsWith("\\")) {
    return row === "@@" ? ["⋯"] : [`⋯ ${row.replace(/^@@[^@]*@@ ?|^@@ ?/, "")}`.trimEnd()];
  }
  const isOther = /^[+-]/.test(row) && !row.startsWith(sign);
  return isOther ? [] : [row.slice(1)];
}
