/** The files of a restore: rows in the server's words, and the texts of a page. */

import type { RestoredFile, RestoredFiles } from "../../client/protocol.ts";
import { SCOPES as NAMES, SCOPE_EFFECTS } from "../../client/words.ts";
import { counted, cut, dotted, iconless, plain } from "../../common/model/text.ts";

/** The parts that a restore brings back. */
export const SCOPES = ["conversation", "files", "both"] as const;
export type Scope = (typeof SCOPES)[number];

/** The files of a restore page; `sentence` describes the plan, or why there is none. */
export interface FilesView {
  readonly kind: "files";
  readonly plan: RestoredFiles | null;
  readonly sentence: string;
  /** The last action, and whether it can be undone. */
  readonly done: RestoredFiles | null;
  readonly canUndo: boolean;
}

/** A row of the picker: file name, action, line counts and reason. */
export function rowWords(file: RestoredFile): {
  readonly label: string;
  readonly description: string;
  readonly detail?: string;
} {
  const label = iconless(cut(plain(file.path), 120));
  const description = dotted(plain(file.label), lineCounts(file));
  return file.why === null
    ? { label, description }
    : { label, description, detail: plain(file.why) };
}

/** Count the lines that a restore adds and removes: `+2 −1`; empty for no change. */
export function lineCounts({ added, removed }: RestoredFile): string {
  return added || removed ? `+${added} −${removed}` : "";
}

export function scopeLabel(scope: Scope): string {
  return NAMES[scope];
}

/** Describe the effect of a restore, and its limits. */
export function promise(scope: Scope): string {
  return SCOPE_EFFECTS[scope];
}

/** The label of the button that restores. */
export function restoreLabel(scope: Scope, ticked: number): string {
  const files = ticked === 0 ? "Files" : counted(ticked, "1 File", `${ticked} Files`);
  return {
    conversation: "Restore",
    files: `Restore ${files}`,
    both: `Restore with ${files}`,
  }[scope];
}

export function readScope(value: unknown): Scope {
  return SCOPES.find((scope) => scope === value) ?? "conversation";
}

export function readPaths(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
