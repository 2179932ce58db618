/** Titles of a digest's sections, in order. */

import { DIGEST_SECTIONS } from "../../client/words.ts";
import { counted } from "../../common/model/text.ts";

type Names = readonly [title: string, one: string, many: string];
const SECTIONS: Readonly<Record<string, Names>> = DIGEST_SECTIONS;

export const SECTION_NAMES: readonly string[] = Object.keys(SECTIONS);

export function sectionTitle(section: string): string {
  return SECTIONS[section]?.[0] ?? section;
}

/** Count the lines of a section: `1 request`, `34 key lines`. */
export function linesOf(section: string, count: number): string {
  const [, one, many] = SECTIONS[section] ?? ["", "line", "lines"];
  return `${count.toLocaleString("en-US")} ${counted(count, one, many)}`;
}
