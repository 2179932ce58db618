/** Titles of a digest's sections, in order. */

import { counted } from "../../common/model/text.ts";

/** The title of each section, and the singular and plural names of its lines. */
const SECTIONS: Readonly<Record<string, readonly [title: string, one: string, many: string]>> = {
  STATUS: ["Status", "line", "lines"],
  REQUESTS: ["Requests", "request", "requests"],
  OUTCOMES: ["Answers", "answer", "answers"],
  CHANGES: ["Changed files", "changed file", "changed files"],
  CHECKS: ["Commands", "command", "commands"],
  PINNED: ["Pins", "pin", "pins"],
  EARLIER_SUMMARY: ["Summary by Codex", "line of Codex's summary", "lines of Codex's summary"],
  KEY_LINES: ["Key lines", "key line", "key lines"],
};

export const SECTION_NAMES: readonly string[] = Object.keys(SECTIONS);

export function sectionTitle(section: string): string {
  return SECTIONS[section]?.[0] ?? section;
}

/** Count the lines of a section: `1 request`, `34 key lines`. */
export function linesOf(section: string, count: number): string {
  const [, one, many] = SECTIONS[section] ?? ["", "line", "lines"];
  return `${count.toLocaleString("en-US")} ${counted(count, one, many)}`;
}
