/** What a branch would begin with: the lines of a pack and where it ends, or what travels along. */

import { type Cut, cutAt } from "../model/pack.ts";
import { itemName, partName } from "../model/restore.ts";
import type { PackItem, PackLine, Restored } from "../protocol.ts";
import { type Child, el, fill } from "./draw.ts";

/** A pack of which a budget shows so much. */
export class Pack {
  readonly element = el("section", { class: "goods", aria: { label: "State pack" } });
  readonly #inside = el("ol", { class: "pack" });
  readonly #outside = el("ol", { class: "pack out" });
  readonly #insideTitle = el("h2");
  readonly #outsideTitle = el("h3");
  #lines: readonly PackLine[] = [];
  #rows: HTMLElement[] = [];
  #at = -1;

  /** Take the lines of another pack. */
  show(would: Restored): void {
    this.#lines = would.lines;
    this.#rows = would.lines.map(lineRow);
    this.#at = -1;
    const shortened = would.deferred.filter(({ reason }) => reason === "bound");
    fill(
      this.element,
      this.#insideTitle,
      this.#inside,
      this.#outsideTitle,
      this.#outside,
      ...(shortened.length === 0 ? [] : shortenedList(shortened)),
    );
  }

  /** Show where a budget ends it. */
  cut(budget: number): Cut {
    const cut = cutAt(this.#lines, budget);
    if (cut.lines !== this.#at) {
      this.#at = cut.lines;
      const next = cut.next === null ? -1 : this.#lines.indexOf(cut.next);
      this.#rows.forEach((row, index) => {
        row.classList.toggle("next", index === next);
      });
      fill(this.#inside, ...this.#rows.slice(0, cut.lines));
      fill(this.#outside, ...this.#rows.slice(cut.lines));
      fill(this.#insideTitle, `The branch begins with this (${cut.included})`);
      fill(this.#outsideTitle, `Left out for lack of budget (${cut.deferred})`);
      this.#outsideTitle.hidden = cut.deferred === 0;
      this.#outside.hidden = cut.deferred === 0;
      this.#inside.classList.toggle("nothing", cut.lines === 0);
    }
    return cut;
  }
}

/** What a soft branch takes along. */
export function along(would: Restored, turn: number | null): HTMLElement {
  const parts = new Map<string, PackItem[]>();
  // That there is a notice and a reason tells nobody what travels.
  for (const item of would.included.filter(({ part }) => part !== "notice" && part !== "mode")) {
    parts.set(item.part, [...(parts.get(item.part) ?? []), item]);
  }
  const conversation =
    turn === null ? "The conversation up to the marker" : `The conversation up to turn ${turn}`;
  const groups = [...parts].flatMap(([part, items]) => [
    el("h3", {}, `${partName(part)} (${items.length})`),
    el(
      "ul",
      { class: part === "notes" ? "items words" : "items" },
      ...items.map((item) => el("li", {}, itemName(item))),
    ),
  ]);
  return el(
    "section",
    { class: "goods", aria: { label: "What travels along" } },
    el("h2", {}, "What travels along"),
    el("p", {}, conversation),
    ...groups,
  );
}

function lineRow({ text, id }: PackLine): HTMLElement {
  const isHeading = id === null && text !== "";
  const name = text === "" ? "gap" : isHeading ? "heading" : "line";
  const looks = text === "" ? { class: name, aria: { hidden: "true" } } : { class: name };
  return el("li", looks, text);
}

function shortenedList(items: readonly PackItem[]): Child[] {
  return [
    el("h3", {}, `Shortened (${items.length})`),
    el("p", { class: "quiet" }, "Longer than a pinned content may be in a pack."),
    el("ul", { class: "items" }, ...items.map(({ id }) => el("li", {}, id))),
  ];
}
