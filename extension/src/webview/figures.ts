/** The context before and after, as two bars with their words. */

import { shareOf, sizeText } from "../model/restore.ts";
import { bar, el } from "./draw.ts";

/** Sizes in tokens; null where they are not known. */
export interface Figures {
  readonly before: number | null;
  readonly after: number | null;
  readonly window: number | null;
  /** Whether the size afterwards is an estimate. */
  readonly isEstimate: boolean;
}

/** Draw both. */
export function figures({ before, after, window, isEstimate }: Figures): HTMLElement {
  const row = (name: string, tokens: number | null, about: string) => [
    el("dt", {}, name),
    el("dd", {}, bar(shareOf(tokens, window)), el("span", { class: "size" }, about)),
  ];
  const afterwards = sizeText(after, window);
  return el(
    "dl",
    { class: "figures" },
    ...row("At the marker", before, sizeText(before, window)),
    ...row(
      "In the branch",
      after,
      isEstimate && after !== null ? `about ${afterwards}` : afterwards,
    ),
  );
}
