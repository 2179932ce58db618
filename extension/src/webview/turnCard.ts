/** The chosen turn, which stays above the conversation while one reads: its request, its actions. */

import {
  chosenIn,
  type PageRow,
  type PageTurn,
  type SessionView,
  type TurnAction,
  turnName,
  turnText,
} from "../page/model/page.ts";
import { button, type Child, el, fill, keepingFocus, send } from "./draw.ts";

export class TurnCard {
  readonly element = el("section.turn", { aria: { label: "The chosen turn" } });
  readonly #choose: (turn: number) => void;
  /** The values it was drawn from. */
  #drawn = "";

  /** `choose` is told which turn of a row is to be the chosen one. */
  constructor(choose: (turn: number) => void) {
    this.#choose = choose;
  }

  show(row: PageRow | undefined, turn: number | null, { merged, shared }: SessionView): void {
    this.element.hidden = row === undefined;
    const from = JSON.stringify([row, turn, merged]);
    if (this.#drawn !== from) {
      this.#drawn = from;
      keepingFocus(() =>
        fill(this.element, ...this.#parts(row, turn, merged > 1, shared !== null)),
      );
    }
  }

  #parts(
    row: PageRow | undefined,
    turn: number | null,
    isMerged: boolean,
    isReadOnly: boolean,
  ): readonly Child[] {
    if (row === undefined) {
      return [];
    }
    const chosen = chosenIn(row, turn);
    const task = chosen.task === "" ? "No text." : chosen.task;
    return [
      el(
        "div.above",
        el("h2", turnName(row)),
        el("p.quiet.did", { title: turnText(row) }, turnText(row)),
        buttonsOf(row, chosen, isReadOnly),
      ),
      // It has the same height for each turn: nothing moves while one reads on.
      el("p.asked", { title: task }, task),
      isMerged ? this.#turnButtons(row, chosen.turn) : null,
    ];
  }

  /** The turns of a row that stands for several, to choose from. */
  #turnButtons({ turns }: PageRow, chosen: number): HTMLElement {
    const buttons = turns.map(({ turn }) => {
      const aria = { label: `Turn ${turn}`, pressed: String(turn === chosen) };
      return button(String(turn), "second", () => this.#choose(turn), { aria });
    });
    return el("div.turns", { role: "group", aria: { label: "Which turn" } }, ...buttons);
  }
}

/** One that does not apply stays in its place: a button that comes would push what is read. */
function buttonsOf(row: PageRow, { turn, turnId }: PageTurn, isReadOnly: boolean): HTMLElement {
  const act = (label: string, action: TurnAction, applies = true) => {
    const made = button(label, "second", () => send({ kind: "turn", turnId, action }));
    made.disabled = !applies;
    return made;
  };
  const isOver = row.outcome !== "open" || turn !== row.last;
  const changes = act("Show Changed Files", "changes", row.filesChanged > 0);
  return isReadOnly
    ? el("div.buttons", changes)
    : el(
        "div.buttons",
        act("Restore from Here…", "restore", isOver),
        act("Add Marker…", "mark", isOver),
        changes,
        act("More…", "more"),
      );
}
