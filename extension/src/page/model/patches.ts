/** Splits a patch into files and lines, and folds long outputs. */

import { cut } from "../../common/model/text.ts";

/** A file in a patch. */
export interface PatchFile {
  readonly path: string;
  readonly movedTo: string | null;
  readonly kind: "A" | "M" | "D";
  readonly added: number;
  readonly removed: number;
  readonly lines: readonly PatchLine[];
}

/** A line with its sign, if any, and its effect; `head` begins a hunk. */
export interface PatchLine {
  readonly text: string;
  readonly kind: "comes" | "goes" | "head" | "";
}

export interface Patch {
  readonly files: readonly PatchFile[];
  /** The text around the files, such as the command that applies the patch. */
  readonly around: string;
}

const FILE = /^\*\*\* (Add|Update|Delete) File: (.+)$/;
const MOVE = /^\*\*\* Move to: (.+)$/;
const KINDS = { Add: "A", Update: "M", Delete: "D" } as const;

/** Parse a patch in Codex's format, or the changes recorded in an event. */
export function readPatch(text: string): Patch {
  const around: string[] = [];
  const files: { path: string; to: string | null; kind: "A" | "M" | "D"; lines: string[] }[] = [];
  let isInside = false;
  for (const line of text.split("\n")) {
    const [, how, path] = FILE.exec(line) ?? [];
    const current = isInside ? files.at(-1) : undefined;
    if (how !== undefined && path !== undefined) {
      files.push({ path, to: null, kind: KINDS[how as keyof typeof KINDS], lines: [] });
      isInside = true;
    } else if (/^\*\*\* (Begin|End) Patch/.test(line)) {
      isInside = false;
    } else if (current === undefined) {
      around.push(line);
    } else if (MOVE.test(line)) {
      current.to = MOVE.exec(line)?.[1] ?? null;
    } else if (line !== "*** End of File") {
      current.lines.push(line);
    }
  }
  return { files: files.map(fileOf), around: withoutWrapping(around.join("\n").trim()) };
}

/** Remove the two heredoc lines with which a shell passes the patch. */
function withoutWrapping(around: string): string {
  return around.replace(/^apply_?patch <<-?\s*(['"]?)(\w+)\1\n+\2$/, "");
}

function fileOf(read: {
  readonly path: string;
  readonly to: string | null;
  readonly kind: "A" | "M" | "D";
  readonly lines: readonly string[];
}): PatchFile {
  const { path, to, kind } = read;
  const written = read.lines.at(-1) === "" ? read.lines.slice(0, -1) : read.lines;
  // For a new or deleted file an event records the content, without signs.
  const isContent = kind !== "M" && !written.every((line) => /^(?:[+-]|$|@@)/.test(line));
  const sign = kind === "D" ? "-" : "+";
  const lines = (isContent ? written.map((line) => `${sign}${line}`) : written).map(lineOf);
  const count = (wanted: PatchLine["kind"]) => lines.filter((each) => each.kind === wanted).length;
  return { path, movedTo: to, kind, added: count("comes"), removed: count("goes"), lines };
}

function lineOf(text: string): PatchLine {
  const kind = text.startsWith("@@") ? "head" : (SIGNS[text.charAt(0)] ?? "");
  return { text, kind };
}

const SIGNS: Readonly<Record<string, PatchLine["kind"]>> = { "+": "comes", "-": "goes" };

/** The first and the last lines of a text, and the number of lines between them. */
export interface Folded {
  readonly first: string;
  readonly left: number;
  readonly last: string;
}

/** Lines at each end, characters per line, and the least number of lines worth folding. */
const [ENDS, LONGEST, FEW] = [3, 300, 2];

/** Fold an output to its ends; null if it is too short. */
export function foldedOutput(text: string): Folded | null {
  const lines = text.replace(/\n$/, "").split("\n");
  const left = lines.length - 2 * ENDS;
  if (left <= FEW && lines.every((line) => line.length <= LONGEST)) {
    return null;
  }
  const shown = (some: readonly string[]) => some.map((line) => cut(line, LONGEST)).join("\n");
  return left <= FEW
    ? { first: shown(lines), left: 0, last: "" }
    : { first: shown(lines.slice(0, ENDS)), left, last: shown(lines.slice(-ENDS)) };
}
