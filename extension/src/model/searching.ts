/** The rows of a search: hits below their session, and how many there are. */

import type { SearchHit } from "../protocol.ts";
import { ago, counted, cut, dotted, folderName, iconless, plain } from "./text.ts";

/** A hit, or the session that the hits below it are of. */
export type SearchRow =
  | { readonly kind: "session"; readonly label: string }
  | {
      readonly kind: "hit";
      readonly label: string;
      readonly description: string;
      readonly icon: string;
      readonly hit: SearchHit;
    };

const KINDS: Readonly<Record<string, readonly [icon: string, words: string]>> = {
  user: ["account", "you"],
  assistant: ["comment", "Codex"],
  command: ["terminal", "command"],
  output: ["output", "output"],
  file: ["file", ""],
};

/** So much of a line stands in front of the text. */
const BEFORE = 20;
/** A row has room for so much, and for what stands behind it. */
const MOST = 60;

/** The rows of hits that come behind a hit of the session `last`, or are of this one alone. */
export function searchRows(
  hits: readonly SearchHit[],
  text: string,
  last: string | null,
  now: number,
): SearchRow[] {
  let of = last;
  return hits.flatMap((hit): SearchRow[] => {
    const [icon, words] = KINDS[hit.kind] ?? ["circle-small", hit.kind];
    const row: SearchRow = {
      kind: "hit",
      label: iconless(around(plain(hit.line), text)),
      description: dotted(hit.turn === null ? "" : `turn ${hit.turn}`, words),
      icon,
      hit,
    };
    const isSame = hit.sessionId === of;
    of = hit.sessionId;
    return isSame ? [row] : [{ kind: "session", label: sessionOf(hit, now) }, row];
  });
}

function sessionOf({ title, cwd, updatedAt }: SearchHit, now: number): string {
  const name = cut(plain(title ?? "") || "No message yet", 40);
  const folder = cwd === null ? "" : plain(folderName(cwd));
  return iconless(dotted(name, folder, ago(updatedAt, now)));
}

/** A line from shortly before the text on. */
function around(line: string, text: string): string {
  const at = line.toLowerCase().indexOf(text.toLowerCase());
  return cut(at > BEFORE ? `…${line.slice(at - BEFORE)}` : line, MOST);
}

/** How many hits there are, for a title. */
export function searchCount(rows: readonly SearchRow[], more: boolean): string {
  const sessions = rows.filter(({ kind }) => kind === "session").length;
  const hits = rows.length - sessions;
  if (hits === 0) {
    return "nothing found";
  }
  const count = counted(hits, "1 hit", `${hits} hits`);
  const among =
    sessions === 0 ? "" : counted(sessions, " in 1 session", ` in ${sessions} sessions`);
  return `${more ? "the first " : ""}${count}${among}`;
}
