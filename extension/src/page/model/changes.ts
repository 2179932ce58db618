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

/**
 * Return the context and removed lines of patches, and the context and added lines.
 *
 * With several patches each line is preceded by the turn of its patch (`5.2` is the second patch of
 * turn 5): a later patch often repeats lines of an earlier one, and the editor would align them.
 */
export function excerpts(patches: readonly FilePatch[]): Omit<Sides, "about"> {
  const names = patches.map((patch, at) => nameOf(patch, patches.slice(0, at)));
  const room = Math.max(...names.map(({ length }) => length));
  const inGutter = (row: string, name: string) =>
    names.length > 1 ? `${name.padStart(room)} │ ${row}`.trimEnd() : row;
  const side = (sign: string) =>
    patches
      .flatMap(({ turn, ref, text }, at) => {
        const name = names[at] ?? ref;
        const rows = text
          ? text.split("\n").flatMap((row) => lineOf(row, sign))
          : [text ?? NOT_RECORDED];
        return [
          turn === null ? name : `──── turn ${name}`,
          ...rows.map((row) => inGutter(row, name)),
          "",
        ];
      })
      .join("\n");
  return { before: shownText(side("-")), after: shownText(side("+")) };
}

/** Name a patch by its turn, and by its place among the patches of the turn after the first. */
function nameOf({ turn, ref }: FilePatch, earlier: readonly FilePatch[]): string {
  const place = earlier.filter((each) => each.turn === turn).length;
  return turn === null ? ref : place === 0 ? `${turn}` : `${turn}.${place + 1}`;
}

/** Return a hunk's row as a line of one side; `sign` names the side. */
function lineOf(row: string, sign: string): readonly string[] {
  if (row.startsWith("@@") || row.startsWith("\\")) {
    return row === "@@" ? ["⋯"] : [`⋯ ${row.replace(/^@@[^@]*@@ ?|^@@ ?/, "")}`.trimEnd()];
  }
  const isOther = /^[+-]/.test(row) && !row.startsWith(sign);
  return isOther ? [] : [row.slice(1)];
}
