/** Texts about digests and the records that they quote. */

import type { Recalled, SessionDigest } from "../../client/protocol.ts";
import { unpacked } from "../../common/model/documents.ts";
import { counted, dotted, plain, shownText } from "../../common/model/text.ts";
import { linesOf, SECTION_NAMES } from "./sections.ts";

const FIRST_LINE = "[SESSION_DIGEST v1]";

export const NO_DIGEST =
  "Digests are switched off: the setting codexCheckpoints.digestTokens is 0.";

/** A digest as a document: its text, and below that its cost and what it leaves out. */
export function digestText(digest: SessionDigest): string {
  if (digest.text === "") {
    return `${NO_DIGEST}\n`;
  }
  const [cost, most] = [digest.tokens, digest.budget].map((each) => each.toLocaleString("en-US"));
  const foot = dotted(`${cost} of at most ${most} tokens`, leftWords(digest.left));
  return `${digest.text}\n──── ${foot}\n`;
}

/** What a digest leaves out, by section: `left out: 2 requests, 34 key lines`. */
function leftWords(left: SessionDigest["left"]): string {
  const parts = SECTION_NAMES.flatMap((section) => {
    const count = left[section] ?? 0;
    return count > 0 ? [linesOf(section, count)] : [];
  });
  return parts.length === 0 ? "" : `left out: ${parts.join(", ")}`;
}

/** An anchor in a document: its line and columns, and the reference for `checkpoints/recall`. */
export interface Anchor {
  readonly line: number;
  readonly from: number;
  readonly to: number;
  readonly ref: string;
}

/** The anchors of the lines below the first line of a digest. */
export function anchorsIn(text: string): Anchor[] {
  const lines = text.split("\n");
  const start = lines.indexOf(FIRST_LINE);
  return lines.flatMap((content, line) => {
    const [head = "", ref] = /^- (?:t\d+ )?(#\d+)(?= )/.exec(content) ?? [];
    const isAnchor = start >= 0 && line > start && ref !== undefined;
    return isAnchor ? [{ line, from: head.length - ref.length, to: head.length, ref }] : [];
  });
}

/** A record as a document; `text` is as much of it as was read. */
export function recalledText(record: Recalled, text: string): string {
  const title = dotted(
    plain(record.ref),
    plain(record.kind),
    record.turn === null ? "" : `turn ${record.turn}`,
  );
  const left = record.total - record.offset - [...text].length;
  const more = counted(left, "(1 more character)", `(${left} more characters)`);
  const body = record.kind === "output" ? unpacked(text) : text;
  return `──── ${title}\n${shownText(body)}${left > 0 ? `… ${more}` : ""}\n`;
}

const LONGEST_NAME = 128;

/** The names of files that any level of the settings adds; what the server would refuse is not in. */
export function namesIn(levels: readonly unknown[]): readonly string[] {
  const names = levels.flatMap((level) => (Array.isArray(level) ? level : []));
  const fits = (name: unknown): name is string =>
    typeof name === "string" && name !== "" && name.length <= LONGEST_NAME;
  return [...new Set(names.filter(fits))];
}
