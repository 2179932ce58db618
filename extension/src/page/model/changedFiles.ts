/** Lists the files that a session had changed by the end of a turn. */

import type { FileChange } from "../../client/protocol.ts";
import { counted, dotted, plain } from "../../common/model/text.ts";

export interface FileRow {
  readonly uri: string;
  readonly name: string;
  /** The file's folder, with a trailing `/`. */
  readonly folder: string;
  readonly kind: "A" | "M" | "D";
  /** Line counts; null if no patch records them or a later turn also changed the file. */
  readonly lines: { readonly added: number; readonly removed: number } | null;
  /** The turns that changed it, and its current state, in words. */
  readonly about: string;
  readonly isOfTurn: boolean;
}

const KINDS: Readonly<Record<string, FileRow["kind"]>> = { created: "A", deleted: "D" };
const NOW: Readonly<Record<string, string>> = { changed: "changed since", gone: "gone since" };
const MOST_TURNS = 6;

/** List the files changed up to a turn, the turn's own first; null means all files. */
export function fileRows(files: readonly FileChange[], turn: number | null): readonly FileRow[] {
  const rows = files
    .filter(({ turns }) => turn === null || turns.length === 0 || turns.some((at) => at <= turn))
    .map((file) => fileRow(file, turn));
  return turn === null
    ? rows
    : [...rows.filter(({ isOfTurn }) => isOfTurn), ...rows.filter(({ isOfTurn }) => !isOfTurn)];
}

function fileRow(file: FileChange, turn: number | null): FileRow {
  const { uri, kind, movedFrom, movedTo, added, removed, turns, now } = file;
  const until = turns.filter((at) => turn === null || at <= turn);
  const isLast = until.length === turns.length;
  const path = plain(uri);
  const name = path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
  const shown = until.slice(-MOST_TURNS).join(", ");
  return {
    uri,
    name,
    folder: path.slice(0, path.length - name.length),
    kind: KINDS[kind] ?? "M",
    lines: isLast && added + removed > 0 ? { added, removed } : null,
    about: dotted(
      counted(until.length, "turn ", "turns ") +
        (until.length > MOST_TURNS ? `… ${shown}` : shown || "?"),
      movedFrom === null ? "" : `from ${plain(movedFrom)}`,
      movedTo === null ? "" : `to ${plain(movedTo)}`,
      kind === "put_back" ? "put back" : "",
      isLast ? (NOW[now] ?? "") : "",
    ),
    isOfTurn: turn !== null && turns.includes(turn),
  };
}
