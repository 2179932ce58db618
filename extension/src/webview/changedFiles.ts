/** Lists the files that a session changed; each opens its diff. */

import { counted } from "../common/model/text.ts";
import { fileRows } from "../page/model/changedFiles.ts";
import type { PageTurn, SessionView } from "../page/model/page.ts";
import { button, el, fill, send } from "./draw.ts";
import { badge, lineCount } from "./patches.ts";

/** Number of files shown at first. */
const MOST = 30;

/** List the files as of the end of a turn; null means the newest. */
export function showFiles(
  place: HTMLElement,
  changes: SessionView["files"],
  turn: PageTurn | null,
): void {
  const rows = changes === null ? [] : fileRows(changes.files, turn?.turn ?? null);
  const all = (changes?.files.length ?? 0) + (changes?.left ?? 0);
  place.hidden = all === 0;
  const until = turn === null ? "" : `up to turn ${turn.turn}: ${rows.length} of `;
  const count = `${until}${all.toLocaleString("en-US")}`;
  const list = el("ul.changed-files");
  const items = rows.map(({ uri, name, folder, kind, lines, about, isOfTurn }) => {
    const turnId = isOfTurn ? (turn?.turnId ?? null) : null;
    const open = () => send({ kind: "change", uri, turnId });
    return el(
      "li",
      { class: isOfTurn ? "file here" : "file" },
      badge(kind),
      button(name, "link", open, { title: uri }),
      el("span.quiet.folder", folder),
      lines === null ? null : lineCount(lines.added, lines.removed),
      el("span.about", isOfTurn ? `${about} · this turn` : about),
    );
  });
  fill(list, ...items.slice(0, MOST));
  const left = items.length - MOST;
  const more = button(counted(left, "1 more file", `${left} more files`), "link", () => {
    fill(list, ...items);
    more.remove();
  });
  fill(place, el("h2", "Changed files ", el("span.about", count)), list, left > 0 ? more : null);
}
