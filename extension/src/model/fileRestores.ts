/** Words about files that come back. */

import type { RestoredFile, RestoredFiles } from "../protocol.ts";
import { counted, cut, dotted, iconless, plain } from "./text.ts";

const STATES: Readonly<Record<string, string>> = {
  restore: "restore",
  create: "create",
  move: "move back",
  delete: "delete",
  merge: "somebody changed other lines",
};

/** The files that can be restored, and a sentence about those that stay as they are. */
export function leftWords({ rows, unnamed }: Pick<RestoredFiles, "rows" | "unnamed">): {
  readonly offered: readonly RestoredFile[];
  readonly left: string;
} {
  const offered = rows.filter(({ state }) => state in STATES);
  const others = rows.filter(({ state }) => !(state in STATES) && state !== "same");
  const names = others.slice(0, 3).map(({ path }) => cut(plain(path), 40));
  const more = others.length > names.length ? ", …" : "";
  const stay = counted(
    others.length,
    "1 file stays as it is",
    `${others.length} files stay as they are`,
  );
  const commands = counted(unnamed, "1 command", `${unnamed} commands`);
  const sentences = [
    ...(others.length === 0 ? [] : [`${stay}: ${names.join(", ")}${more}.`]),
    ...(unnamed === 0 ? [] : [`${commands} may have written elsewhere.`]),
  ];
  return { offered, left: sentences.join(" ") };
}

/** A row of the picker: the name, what is done, how many lines, and the reason. */
export function rowWords({ path, state, added, removed, why, proof }: RestoredFile): {
  readonly label: string;
  readonly description: string;
  readonly detail?: string;
} {
  const lines = added || removed ? `+${added} −${removed}` : "";
  const unsure = proof === "context" ? "known by its context alone" : "";
  const label = iconless(cut(plain(path), 120));
  const description = dotted(STATES[state] ?? state, lines, unsure);
  return why === null ? { label, description } : { label, description, detail: plain(why) };
}

/** How many of the chosen files were written, and why the others were not. */
export function writtenWords(rows: readonly RestoredFile[]): string {
  const written = rows.filter((row) => row.written).length;
  const left = rows.filter((row) => !row.written);
  const why = left.map(({ path, why }) => `${cut(plain(path), 60)} ${plain(why ?? "")}`.trim());
  const done = `${counted(written, "1 file", `${written} files`)} restored.`;
  return left.length === 0 ? done : `${done} Not restored: ${why.join("; ")}.`;
}
