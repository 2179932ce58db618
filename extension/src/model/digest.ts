/** Texts about digests and the records that they quote, and who is told that there are digests. */

import type { Recalled, SessionDigest } from "../protocol.ts";
import { readBudget } from "./compactionPage.ts";
import { shownText, unpacked } from "./documents.ts";
import { linesOf, SECTION_NAMES } from "./sections.ts";
import { counted, dotted, plain } from "./text.ts";

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

/** What a folder sets for the digests of its sessions. */
export interface FolderSettings {
  readonly digestTokens?: number;
  readonly digestIgnore: readonly string[];
}

/** The settings of a folder, without values that the server would refuse; null for none. */
export function folderSettings(tokens: unknown, ignore: unknown): FolderSettings | null {
  const digestTokens = readBudget(tokens);
  const digestIgnore = namesIn([ignore]);
  if (digestTokens === null) {
    return digestIgnore.length === 0 ? null : { digestIgnore };
  }
  return { digestTokens, digestIgnore };
}

/** The part of an editor's memory that is used. */
interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): PromiseLike<void>;
}

/** What is said once of facts that the rules of this version made suspect. */
export function suspectText(count: number): string {
  const one = "1 fact that was valid in an earlier version is suspect now";
  const many = `${count} facts that were valid in an earlier version are suspect now`;
  return `${counted(count, one, many)}: the file they rest on has changed since.`;
}

/** Tells once on a machine where an older version ran; a new user is told nothing. */
export class UpgradeNotice {
  readonly #memory: Memory;
  readonly #isUpgrade: boolean;
  readonly #key: string;

  constructor(memory: Memory, isUpgrade: boolean, key: string) {
    this.#memory = memory;
    this.#key = key;
    this.#isUpgrade = isUpgrade;
  }

  /** Whether the notice is to be shown now; `hasHome` says whether there is a Codex home. */
  async isDue(hasHome: () => Promise<boolean>): Promise<boolean> {
    if (this.#memory.get<boolean>(this.#key) === true) {
      return false;
    }
    if (this.#isUpgrade && !(await hasHome())) {
      return false;
    }
    await this.#memory.update(this.#key, true);
    return this.#isUpgrade;
  }
}
