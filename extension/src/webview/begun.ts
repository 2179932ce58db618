/** Draws the context of a session without turns next to the context of its source. */

import type { SessionView } from "../page/model/page.ts";
import { button, el, figures, fill, send } from "./draw.ts";

export function showBegun(place: HTMLElement, { begun, refused, rows, window }: SessionView): void {
  place.hidden = rows.length > 0;
  if (begun === null) {
    fill(place, el("p.quiet", "No turn. When the session goes on, its turns appear here."));
    return;
  }
  const { sourceId, source, made, before, after, isEstimate } = begun;
  const open = button(source, "link", () => send({ kind: "goTo", sessionId: sourceId }));
  const from = source === "" ? "a session that is no longer here" : open;
  const old = { name: "Before", tokens: before, isEstimate: false };
  fill(
    place,
    refused === "" ? el("p", "Its first turn begins when you resume it.") : null,
    el("p", `${made} from `, from),
    figures(window, ...(before === null ? [] : [old]), { name: "Now", tokens: after, isEstimate }),
  );
}
