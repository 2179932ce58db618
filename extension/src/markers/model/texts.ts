/** Texts about markers, turns and states. */

import { MAX_LABEL } from "../../client/limits.ts";
import type { Difference, Marker, SessionSummary, TurnEntry } from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  cut,
  dotted,
  fileName,
  iconless,
  listed,
  plain,
  utcTime,
} from "../../common/model/text.ts";

const WHEN_COMPLETE = ["mark", "restore", "restoreFiles", "restoreFile"] as const;
const ALWAYS = ["view", "json", "changes", "compareNow", "compare"] as const;
/** The actions that are buttons on the page of a session. */
const ON_CARD: readonly string[] = ["mark", "restore", "changes"];

export type TurnActionName = (typeof WHEN_COMPLETE | typeof ALWAYS)[number];

/** The actions on a turn in a menu, without those that a card shows as buttons beside it. */
export function turnActions(hasEnded: boolean, isOnCard: boolean): readonly TurnActionName[] {
  const all: readonly TurnActionName[] = [...(hasEnded ? WHEN_COMPLETE : []), ...ALWAYS];
  return isOnCard ? all.filter((name) => !ON_CARD.includes(name)) : all;
}

export function markerRow(marker: Marker, session: SessionSummary, now: number): Appearance {
  const label = labelOf(marker);
  const state = markerState(marker, session);
  const since = age(marker.createdAt, now);
  const origin = marker.origin === "compaction" ? "before a compaction" : "";
  return {
    label: cut(label, 160),
    description: dotted(state, origin, since),
    tooltip: [
      label,
      state,
      `Made at ${utcTime(plain(marker.createdAt))}`,
      `Marker: ${plain(marker.checkpointId)}`,
      `Turn: ${plain(marker.turnId)}`,
    ].join("\n"),
    spoken: listed(`marker ${label}`, state, origin, since),
    ...looks(marker, session),
  };
}

/** The place of a marker: a turn, a rolled back turn, or a turn of the source. */
export function markerState(marker: Marker, session: SessionSummary): string {
  if (marker.sessionId !== session.sessionId) {
    return "on a turn of the original session";
  }
  const number = marker.turnNumber;
  return number === null ? "its turn was rolled back" : `turn ${number}`;
}

export function isDetached(marker: Marker, session: SessionSummary): boolean {
  return marker.detached && marker.sessionId === session.sessionId;
}

export function labelOf(marker: Marker): string {
  return plain(marker.label) || "Marker without a label";
}

function looks(marker: Marker, session: SessionSummary): Pick<Appearance, "icon" | "colour"> {
  if (marker.sessionId !== session.sessionId) {
    return { icon: "references", colour: null };
  }
  return marker.detached
    ? { icon: "debug-disconnect", colour: "list.warningForeground" }
    : { icon: "bookmark", colour: null };
}

/** A turn to choose. */
export interface TurnChoice {
  readonly turn: TurnEntry;
  readonly label: string;
  readonly description: string;
  readonly detail: string;
}

/** The state before turn `number`, which is the end of turn `endOf`. */
export interface EarlierState {
  readonly number: number;
  readonly task: string;
  readonly endOf: string;
}

/** The states before the given turns, newest first; there is none before the first turn. */
export function statesBefore(
  numbers: readonly number[],
  turns: readonly TurnEntry[],
): readonly EarlierState[] {
  return numbers
    .flatMap((number) => {
      const before = turns.findLast((turn) => turn.number < number);
      const task = turns.find((turn) => turn.number === number)?.task ?? "";
      return before === undefined ? [] : [{ number, task, endOf: before.turnId }];
    })
    .reverse();
}

/** The turns of a session with their markers, newest first. */
export function turnChoices(
  turns: readonly TurnEntry[],
  markers: readonly Marker[],
  now: number,
): TurnChoice[] {
  return turns
    .map((turn) => {
      const on = markers.filter(({ turnNumber }) => turnNumber === turn.number);
      const words = cut(plain(turn.task ?? ""), 100) || "No message";
      const labels = on.map((marker) => `“${iconless(cut(labelOf(marker), 60))}”`);
      return {
        turn,
        label: iconless(`${turn.number}  ${words}`),
        description: dotted(
          age(turn.startedAt, now),
          turn.aborted ? "interrupted" : "",
          turn.ended ? "" : "has not ended",
        ),
        detail: labels.length === 0 ? "" : `Marked: ${labels.join(", ")}`,
      };
    })
    .reverse();
}

/** Return why a text cannot be a label; null if it can. */
export function labelProblem(text: string): string | null {
  if (plain(text) === "") {
    return "Enter a text.";
  }
  return [...text.trim()].length > MAX_LABEL ? `${MAX_LABEL} characters at most.` : null;
}

/** A state: a session now, or at the end of a turn. */
export interface Place {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly number: number | null;
  readonly words: string;
}

export function placeNow(sessionId: string, words: string): Place {
  return { sessionId, turnId: null, number: null, words };
}

export function placeOfTurn(
  sessionId: string,
  { turnId, number }: { readonly turnId: string; readonly number: number },
): Place {
  return { sessionId, turnId, number, words: `turn ${number}` };
}

export function placeOfMarker(marker: Marker): Place {
  const { sessionId, turnId, turnNumber: number } = marker;
  return { sessionId, turnId, number, words: fileName(labelOf(marker)) };
}

/** Order two states, the earlier first if that is known. */
export function inOrder(one: Place, other: Place): readonly [Place, Place] {
  const isLater =
    one.turnId === null ||
    (one.number !== null && other.number !== null && one.number > other.number);
  return isLater && other.turnId !== null ? [other, one] : [one, other];
}

/** Make the title of a comparison: `Fix the login: turn 1 ↔ now · plan 2 · files 1`. */
export function comparisonTitle(
  name: string,
  left: Place,
  right: Place,
  found: Difference | null,
): string {
  const title = `${name}: ${cut(left.words, 40)} ↔ ${cut(right.words, 40)}`;
  return dotted(title, found === null ? "" : differenceWords(found));
}

/** Count the differences of each kind. */
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
  return words || "no differences";
}
