/** Two states to be compared: what each is called, and how much differs between them. */

import type { Difference, Marker } from "../protocol.ts";
import { labelOf } from "./markers.ts";
import { cut, dotted, fileName } from "./text.ts";

/** A state: a session at the end of a turn, or as it is now. */
export interface Place {
  readonly sessionId: string;
  /** Null is now. */
  readonly turnId: string | null;
  /** The number of the turn; null where that is not known. */
  readonly number: number | null;
  /** What to call it. */
  readonly words: string;
}

/** The state of a session as it is now. */
export function placeNow(sessionId: string, words: string): Place {
  return { sessionId, turnId: null, number: null, words };
}

/** The state at the end of a turn. */
export function placeOfTurn(
  sessionId: string,
  { turnId, number }: { readonly turnId: string; readonly number: number },
): Place {
  return { sessionId, turnId, number, words: `turn ${number}` };
}

/** The state at a marker; it may be a turn of the source. */
export function placeOfMarker(marker: Marker): Place {
  const { sessionId, turnId, turnNumber: number } = marker;
  return { sessionId, turnId, number, words: fileName(labelOf(marker)) };
}

/** Two states with the earlier one at the left, as far as that is known. */
export function inOrder(one: Place, other: Place): readonly [Place, Place] {
  if (one.sessionId !== other.sessionId) {
    return [one, other];
  }
  const isLater =
    one.turnId === null ||
    (one.number !== null && other.number !== null && one.number > other.number);
  return isLater && other.turnId !== null ? [other, one] : [one, other];
}

/** What a comparison is called: `Fix the login: turn 1 ↔ now · plan 2 · files 1`. */
export function comparisonTitle(
  name: string,
  left: Place,
  right: Place,
  found: Difference | null,
): string {
  const title = `${name}: ${cut(left.words, 40)} ↔ ${cut(right.words, 40)}`;
  return dotted(title, found === null ? "" : differenceWords(found));
}

/** How much differs, a word a kind. */
export function differenceWords(found: Difference): string {
  const { task, plan, planReordered, decisions, facts, artifacts } = found;
  const steps = plan.length > 0 ? `plan ${plan.length}` : "";
  const words = dotted(
    task === null ? "" : "task",
    steps || (planReordered ? "order of the plan" : ""),
    decisions.length === 0 ? "" : `decisions ${decisions.length}`,
    facts.length === 0 ? "" : `facts ${facts.length}`,
    artifacts.length === 0 ? "" : `artifacts ${artifacts.length}`,
  );
  return words || "nothing differs";
}
