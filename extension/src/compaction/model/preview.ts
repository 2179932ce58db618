/** The model of the compaction preview: its sections, and the effect of another budget (DIG-9). */

import { MAX_DIGEST } from "../../client/limits.ts";
import type {
  Compacted,
  CompactionContents,
  DigestLine,
  SessionDigest,
} from "../../client/protocol.ts";
import { counted, listed, tokenCount } from "../../common/model/text.ts";
import { linesOf, SECTION_NAMES, sectionTitle } from "./sections.ts";

export interface CompactionView {
  readonly kind: "compaction";
  readonly sessionId: string;
  readonly name: string;
  readonly would: Pick<
    Compacted,
    | "tokensBefore"
    | "tokensBeforeSource"
    | "tokensAfter"
    | "sizeText"
    | "contextWindow"
    | "remarkText"
  >;
  readonly contents: CompactionContents;
  /** The digest of the default budget, to compare with. */
  readonly usual: SessionDigest;
}

/** The effect of another budget on a line. */
export type Fate = "stays" | "comes" | "goes";

export interface Piece {
  readonly text: string;
  readonly fate: Fate;
}

/** The lines quoted from one record; `ref` and `anchor` are empty for a count. */
export interface Quoted {
  readonly ref: string;
  readonly anchor: string;
  /** The reason for quoting it, unless the whole section has the same. */
  readonly why: string;
  readonly pieces: readonly Piece[];
}

export interface Part {
  readonly section: string;
  readonly title: string;
  readonly why: string;
  readonly tokens: number;
  /** The effect of the budget, and the omitted lines, in words; empty for none. */
  readonly change: string;
  readonly left: string;
  readonly records: readonly Quoted[];
}

/** Group a digest by section; lines only in the default digest keep their places. */
export function digestParts(now: SessionDigest, usual: SessionDigest): readonly Part[] {
  const lines = [...now.lines, ...usual.lines];
  const found = [...lines.map(({ section }) => section), ...Object.keys(now.left)];
  return [...new Set([...SECTION_NAMES, ...found])].flatMap((section) => {
    const of = ({ lines }: SessionDigest) => lines.filter((line) => line.section === section);
    const left = now.left[section] ?? 0;
    const [here, there] = [of(now), of(usual)];
    if (here.length === 0 && there.length === 0 && left === 0) {
      return [];
    }
    const records = compared(recordsOf(there), recordsOf(here));
    const whys = new Set(records.map(({ why }) => why));
    const [why = ""] = whys.size === 1 ? whys : [];
    return {
      section,
      title: sectionTitle(section),
      why,
      tokens: here.reduce((sum, line) => sum + line.tokens, 0),
      change: changeText(records),
      left: left === 0 ? "" : `${linesOf(section, left)} left out`,
      // In other sections the title and the lines already give the reason.
      records:
        section === "KEY_LINES" && why === ""
          ? records
          : records.map((record) => ({ ...record, why: "" })),
    };
  });
}

/** Describe the size of a digest, and the effect of the budget, in one or two sentences. */
export function budgetText(
  parts: readonly Part[],
  now: SessionDigest,
  usual: SessionDigest,
): string {
  const records = parts.flatMap((part) => part.records);
  const all = records.flatMap(({ pieces }) => pieces.filter(({ fate }) => fate !== "goes")).length;
  const size =
    now.tokens === 0
      ? "No digest."
      : `${tokenCount(now.tokens)} in ${counted(all, "1 line", `${shown(all)} lines`)}.`;
  if (now.budget === usual.budget) {
    return `${size} This is the default.`;
  }
  const change = changeText(records) || "the same lines";
  return `${size} Compared with the default of ${tokenCount(usual.budget)}: ${change}.`;
}

/** Count the added and removed lines; empty for none. */
function changeText(records: readonly Quoted[]): string {
  const pieces = records.flatMap((record) => record.pieces);
  const count = (wanted: Fate) => pieces.filter(({ fate }) => fate === wanted).length;
  const [comes, goes] = [count("comes"), count("goes")];
  return listed(
    comes === 0 ? "" : counted(comes, "1 line added", `${shown(comes)} lines added`),
    goes === 0 ? "" : counted(goes, "1 line removed", `${shown(goes)} lines removed`),
  );
}

/** Read a budget; null, the default, if it is invalid. */
export function readBudget(value: unknown): number | null {
  const fits = Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_DIGEST;
  return fits ? Number(value) : null;
}

function shown(count: number): string {
  return count.toLocaleString("en-US");
}

interface RecordLines {
  readonly ref: string;
  readonly anchor: string;
  readonly whys: Set<string>;
  readonly texts: string[];
}

/** Group the lines by record, without anchors, and split at the quoted text's line breaks. */
function recordsOf(lines: readonly DigestLine[]): ReadonlyMap<string, RecordLines> {
  const records = new Map<string, RecordLines>();
  for (const { ref, text, why } of lines) {
    const [head = "- ", anchor = ""] =
      (ref === null ? null : /^- ((?:t\d+ )?#\d+) /.exec(text)) ?? [];
    const key = ref ?? text;
    const record = records.get(key) ?? { ref: ref ?? "", anchor, whys: new Set(), texts: [] };
    record.whys.add(why);
    record.texts.push(...text.slice(head.length).split("\\n"));
    records.set(key, record);
  }
  return records;
}

function compared(
  before: ReadonlyMap<string, RecordLines>,
  now: ReadonlyMap<string, RecordLines>,
): readonly Quoted[] {
  return merged([...before.keys()], [...now.keys()]).flatMap(({ text: key }) => {
    const record = now.get(key) ?? before.get(key);
    if (record === undefined) {
      return [];
    }
    const { ref, anchor, whys } = record;
    const pieces = merged(before.get(key)?.texts ?? [], now.get(key)?.texts ?? []);
    return { ref, anchor, why: [...whys].join(", "), pieces };
  });
}

/** Merge both lists in the order of `now`; a removed line stays after its predecessor. */
function merged(before: readonly string[], now: readonly string[]): readonly Piece[] {
  const [had, has] = [new Set(before), new Set(now)];
  const gone = new Map<string | null, Piece[]>();
  let place: string | null = null;
  for (const text of before) {
    if (has.has(text)) {
      place = text;
    } else {
      gone.set(place, [...(gone.get(place) ?? []), { text, fate: "goes" }]);
    }
  }
  const pieces = [...(gone.get(null) ?? [])];
  for (const text of now) {
    pieces.push({ text, fate: had.has(text) ? "stays" : "comes" }, ...(gone.get(text) ?? []));
    gone.delete(text);
  }
  return pieces;
}
