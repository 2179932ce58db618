/** Rows of files that come back; the server says them in words. */

import type { RestoredFile } from "../protocol.ts";
import { cut, dotted, iconless, plain } from "./text.ts";

/** A row of the picker: the name, what is done, how many lines, and the reason. */
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

/** How many lines restoring adds and removes: `+2 −1`; empty where it changes none. */
export function lineCounts({ added, removed }: RestoredFile): string {
  return added || removed ? `+${added} −${removed}` : "";
}
