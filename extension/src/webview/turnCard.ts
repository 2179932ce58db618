/**
 * The chosen turn, above the conversation while the user scrolls: its figures and its actions, and
 * its request while the conversation does not show that.
 */

import {
  chosenIn,
  type PageRow,
  type PageTurn,
  type SessionView,
  type TurnAction,
  turnName,
  turnText,
  whyDisabled,
} from "../page/model/page.ts";
import { button, type Child, el, fill, keepingFocus, send } from "./draw.ts";

/** The id of the line about the turn. */
const ABOUT = "about-turn";

export class TurnCard {
  readonly element = el("section.turn", { aria: { label: "The chosen turn" } });
  readonly #choose: (turn: number) => void;
  /** The values from which it was drawn, as JSON. */
  #drawn = "";

  /** `choose` is called with the turn that the user picks from a row. */
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

  /** Hide the request while the conversation shows it; its place stays, so that nothing moves. */
  hideRequest(isHidden: boolean): void {
    this.element.classList.toggle("requested", isHidden);
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
    const { open, unchanged } = whyDisabled(row, chosen.turn);
    const about = [turnText(row), unchanged, open].filter((each) => each !== "").join(" ");
    return [
      el(
        "div.above",
        el("h2", turnName(row)),
        el("p.quiet.did", { id: ABOUT, title: about }, about),
        buttonsOf(row, chosen, isReadOnly),
      ),
      // It has the same height for each turn, so that nothing below moves.
      el("p.asked", { title: task }, task),
      isMerged ? this.#turnButtons(row, chosen.turn) : null,
    ];
  }

  /** The buttons for the turns of a row that combines several. */
  #turnButtons({ turns }: PageRow, chosen: number): HTMLElement {
    const buttons = turns.map(({ turn }) => {
      const aria = { label: `Turn ${turn}`, pressed: String(turn === chosen) };
      return button(String(turn), "second", () => this.#choose(turn), { aria });
    });
    return el("div.turns", { role: "group", aria: { label: "Which turn" } }, ...buttons);
  }
}

/**
 * Make the buttons. Inapplicable ones are disabled, since adding one later would move the text; the
 * line above the request says why.
 */
function buttonsOf(row: PageRow, { turn, turnId }: PageTurn, isReadOnly: boolean): HTMLElement {
  const { open, unchanged } = whyDisabled(row, turn);
  const act = (label: string, action: TurnAction, why = "") => {
    const looks = why === "" ? {} : { title: why, aria: { describedby: ABOUT } };
    const made = button(label, "second", () => send({ kind: "turn", turnId, action }), looks);
    made.disabled = why !== "";
    return made;
  };
  const changes = act("Show Changed Files", "changes", unchanged);
  return isReadOnly
    ? el("div.buttons", changes)
    : el(
        "div.buttons",
        act("Restore from Here…", "restore", open),
        act("Add Marker…", "mark", open),
        changes,
        act("More…", "more"),
      );
}
