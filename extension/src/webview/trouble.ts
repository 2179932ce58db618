/** What did not work, with the way to ask once more where that may help. */

import type { Trouble } from "../model/pages.ts";
import { button, el } from "./draw.ts";
import { tell } from "./editor.ts";

/** Draw it; a screen reader hears it at once. */
export function troubleBox({ sentence, again }: Trouble): HTMLElement {
  const retry = again
    ? button("Try Again", { class: "second" }, () => tell({ kind: "again" }))
    : null;
  return el("div", { class: "trouble" }, el("p", { role: "alert" }, sentence), retry);
}
