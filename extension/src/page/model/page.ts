/** The session page: how a session went, as a picture and in words (PAG-1, PAG-2). */

import type { CheckpointNode } from "../../checkpoint/model/rows.ts";
import type {
  FileChanges,
  Loss,
  SessionDigest,
  TimelineEvent,
  TimelineTurn,
  TranscriptItem,
  TurnEntry,
  TurnTranscript,
} from "../../client/protocol.ts";
import {
  counted,
  countedIfAny,
  cut,
  dotted,
  listed,
  plain,
  tokenCount,
} from "../../common/model/text.ts";
import { lossWords, lostNames } from "../../compaction/model/texts.ts";
import type { Begun } from "./begun.ts";
import type { LineagePicture } from "./lineage.ts";

export interface SessionView {
  readonly kind: "session";
  readonly sessionId: string;
  /** Of a copy of a session in the remote, which is read-only; null for any other. */
  readonly shared: Shared | null;
  readonly name: string;
  /** Model, folder and the like, in words. */
  readonly about: string;
  /** The path of the session's folder; empty where it is not known. */
  readonly folder: string;
  readonly rows: readonly PageRow[];
  readonly events: readonly PageEvent[];
  /** The number of the newest record, null where it is not known. */
  readonly seq: number | null;
  /** The number of turns in a row. */
  readonly merged: number;
  readonly window: number | null;
  /** The tokens from which the server offers a compaction. */
  readonly trigger: number | null;
  /** Null until it is there. */
  readonly digest: SessionDigest | null;
  /** Null until they are there. */
  readonly files: FileChanges | null;
  readonly kept: readonly KeptList[];
  /** Where a session without a turn of its own comes from; null for any other. */
  readonly begun: Begun | null;
  /** The sessions that it came from and those that came from it, with itself; null until then. */
  readonly lineage: LineagePicture | null;
}

/** Whose session it is, in a sentence, and the name of the person in its conversation. */
export interface Shared {
  readonly note: string;
  readonly speaker: string;
}

/** The plan as it was at the end of a turn; null where there was none. */
export interface PlanThen {
  readonly kind: "planThen";
  readonly turnId: string;
  readonly plan: KeptList | null;
}

/** A list of the checkpoint: the plan, facts, or decisions. */
export interface KeptList {
  readonly id: string;
  readonly title: string;
  readonly count: string;
  readonly items: readonly string[];
}

/** One turn, or several that follow each other: `turn` to `last`. */
export interface PageRow extends Omit<TimelineTurn, "turnId"> {
  readonly last: number;
  /** Each of them; there is at least one. */
  readonly turns: readonly [PageTurn, ...PageTurn[]];
}

/** A turn, which can be chosen and acted on. */
export interface PageTurn {
  readonly turn: number;
  readonly turnId: string;
  readonly task: string;
}

/** An event in words; of a compaction also what it lost. */
export interface PageEvent extends TimelineEvent {
  readonly name: string;
  readonly lost: readonly string[];
}

/** A place in the session that the page is to show: a turn, or null for the newest one, and a
 * record of it, or null for the beginning of its conversation; and what was found there. */
export interface PagePlace {
  readonly kind: "place";
  readonly turn: number | null;
  readonly seq: number | null;
  readonly found: FoundText | null;
}

/** A text that was searched for, and a line that holds it. */
export interface FoundText {
  readonly text: string;
  readonly line: string;
}

/** A part of what was said and done in a turn. */
export interface Conversation {
  readonly kind: "conversation";
  readonly offset: number;
  readonly part: TurnTranscript;
}

/** All of a text that was cut; `left` is how many characters at its end are not read. */
export interface Whole {
  readonly kind: "whole";
  readonly ref: string;
  readonly text: string;
  readonly left: number;
}

/** Where a part of a turn begins, and the next one; null at the end, and where that is not known. */
export interface PartPlace {
  readonly turnId: string;
  readonly offset: number;
  readonly next: number | null;
}

/** How many records a part has, as the server counts them. */
const PART = 200;

/** The next part: of the same turn, else the first of the next turn; null after the last. */
export function partBehind(part: PartPlace, turns: readonly PageTurn[]): PartPlace | null {
  const { turnId, next } = part;
  const at = turns.findIndex((each) => each.turnId === turnId);
  const behind = at === -1 ? undefined : turns[at + 1];
  if (next !== null) {
    return { turnId, offset: next, next: null };
  }
  return behind === undefined ? null : { turnId: behind.turnId, offset: 0, next: null };
}

/** The part before one; that of the turn before is the first until it is known how long that is. */
export function partBefore(part: PartPlace, turns: readonly PageTurn[]): PartPlace | null {
  const { turnId, offset } = part;
  if (offset > 0) {
    return { turnId, offset: Math.max(0, offset - PART), next: offset };
  }
  const before = turns[turns.findIndex((each) => each.turnId === turnId) - 1];
  return before === undefined ? null : { turnId: before.turnId, offset: 0, next: null };
}

export function partAtEnd(turnId: string, total: number): PartPlace {
  return { turnId, offset: Math.max(0, Math.ceil(total / PART) - 1) * PART, next: null };
}

/** One step of a conversation; a command includes its output. */
export interface Spoken {
  readonly ref: string;
  readonly kind: "user" | "assistant" | "summary" | "plan" | "command" | "patch";
  /** What was said, or the command. */
  readonly text: string;
  /** What a command printed; empty for anything else. */
  readonly printed: string;
  /** How it ended, in words. */
  readonly about: string;
  /** How many characters of the text, or of what was printed, are left out. */
  readonly left: number;
  readonly hasFailed: boolean;
}

/** The steps of a conversation in order; a call whose output follows is left out. */
export function spoken(items: readonly TranscriptItem[]): readonly Spoken[] {
  return items
    .filter(({ answered }) => !answered)
    .map(({ ref, kind, text, tail, total, about, exitCode, failed: hasFailed }): Spoken => {
      const left = Math.max(0, total - [...text].length - [...tail].length);
      const step = { ref, text, printed: "", about: "", left, hasFailed };
      switch (kind) {
        case "user":
        case "assistant":
        case "summary":
        case "plan":
          return { ...step, kind };
        case "patch":
          return { ...step, kind, about: hasFailed ? "not applied" : "" };
        case "call":
          return { ...step, kind: "command" };
        default: {
          const code = exitCode === null ? (hasFailed ? "failed" : "") : `exit code ${exitCode}`;
          const cut = left === 0 ? "" : `\n⋯ ${charactersLeft(left)} ⋯\n${tail}`;
          const printed = `${text}${cut}`;
          return { ...step, kind: "command", text: about || "Output", printed, about: code };
        }
      }
    });
}

export function charactersLeft(left: number): string {
  return counted(left, "1 more character", `${left.toLocaleString("en-US")} more characters`);
}

/** The place of a step that a record of this number belongs to: its own, or its output's. */
export function stepOf(steps: readonly Spoken[], seq: number): number {
  return steps.findIndex(({ ref }) => Number(ref.slice(1)) >= seq);
}

export type TurnAction = "mark" | "restore" | "changes" | "compare" | "more";

const ACTIONS: readonly string[] = ["mark", "restore", "changes", "compare", "more"];

export function readAction(value: unknown): TurnAction | null {
  return ACTIONS.includes(String(value)) ? (value as TurnAction) : null;
}

/** The rows of the picture, each with what the user asked for in its first turn. */
export function pageRows(
  rows: readonly TimelineTurn[],
  turns: readonly TurnEntry[],
  merged: number,
): readonly PageRow[] {
  return rows.map((row, at) => {
    const last = (rows[at + 1]?.turn ?? row.turn + merged) - 1;
    const end = Math.max(row.turn, Math.min(last, turns.length));
    const [first = { turn: row.turn, turnId: row.turnId, task: "" }, ...others] = turns
      .slice(row.turn - 1, end)
      .map(({ number, turnId, task }) => ({ turn: number, turnId, task: plain(task ?? "") }));
    return { ...row, last: end, turns: [first, ...others] };
  });
}

/** The turn of a row that is chosen; the last one, unless another is. */
export function chosenIn({ turns }: PageRow, turn: number | null): PageTurn {
  return turns.find((each) => each.turn === turn) ?? turns.at(-1) ?? turns[0];
}

/** The number of a row's turn, or of its turns. */
export function turnName({ turn, last }: PageRow): string {
  return turn === last ? `Turn ${turn}` : `Turns ${turn}–${last}`;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  answered: "answered",
  aborted: "interrupted",
  failed: "failed",
  open: "still open",
};

/** Summarize a turn in one sentence. */
export function turnText(row: PageRow): string {
  const { calls, filesChanged, checksFailed, contextTokens, mostTokens, outcome } = row;
  const atItsEnd = mostTokens === contextTokens ? "" : " at its end";
  const words = listed(
    OUTCOMES[outcome] ?? plain(outcome),
    contextTokens === null ? "" : `context ${tokenCount(contextTokens)}${atItsEnd}`,
    atItsEnd && `${tokenCount(mostTokens ?? 0)} at its peak`,
    counted(calls, "1 call", `${calls} calls`),
    countedIfAny(filesChanged, "1 file changed", `${filesChanged} files changed`),
    countedIfAny(checksFailed, "1 check failed", `${checksFailed} checks failed`),
  );
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

/** What a screen reader hears of a row as the slider reaches it. */
export function spokenTurn(row: PageRow, events: readonly PageEvent[]): string {
  const seen = eventsOf(row, events).map(({ name }) => name);
  return [`${turnName(row)}: ${cut(row.turns[0].task, 120)}`, turnText(row), ...seen].join(" ");
}

/** The events after a row, up to the next row. */
export function eventsOf(row: PageRow, events: readonly PageEvent[]): readonly PageEvent[] {
  return events.filter(({ turn }) => turn !== null && row.turn <= turn && turn <= row.last);
}

/** What a full column stands for: the window, or more where more was in use. */
export function heightOf(rows: readonly PageRow[], window: number | null): number {
  return Math.max(1, window ?? 0, ...rows.map(({ mostTokens }) => mostTokens ?? 0));
}

/** The turns whose numbers stand below the picture: the first, and round ones with room between. */
export function numbered(rows: readonly PageRow[], width: number): readonly number[] {
  const last = rows.at(-1)?.last ?? 0;
  const room = (ROOM * last) / Math.max(1, width);
  const scale = 10 ** Math.floor(Math.log10(Math.max(1, room)));
  const step = scale * ([1, 2, 5].find((each) => each * scale >= room) ?? 10);
  const round = Array.from({ length: Math.floor(last / step) }, (_, at) => (at + 1) * step);
  return last === 0 ? [] : [1, ...round.filter((turn) => turn > 1 && turn - 1 >= room / 2)];
}

/** Pixels of a number and of the room beside it. */
const ROOM = 56;

/** The outline of the filled area: a step for each row, from the floor to the floor. */
export function areaPath(
  rows: readonly PageRow[],
  full: number,
  { left, top, width, height }: Frame,
): string {
  const step = width / Math.max(rows.length, 1);
  let used = 0;
  const points = rows.flatMap((row, at) => {
    used = row.mostTokens ?? used;
    const y = Math.round(top + height * (1 - Math.min(1, used / full)));
    return [`${near(left + at * step)},${y}`, `${near(left + (at + 1) * step)},${y}`];
  });
  const floor = top + height;
  return `M${near(left)},${floor} L${points.join(" ")} ${near(left + width)},${floor} Z`;
}

export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export function near(value: number): number {
  return Math.round(value * 10) / 10;
}

const KEPT = ["plan", "facts", "decisions"];

/** Plan, facts and decisions in words; what is empty is left out. */
export function keptLists(nodes: readonly CheckpointNode[]): readonly KeptList[] {
  return nodes
    .filter(({ id, children }) => KEPT.includes(id) && children.length > 0)
    .map(({ id, row, children }) => ({
      id,
      title: row.label,
      count: row.description,
      items: children.map((child) => dotted(child.row.label, child.row.description, done(child))),
    }));
}

function done({ row }: CheckpointNode): string {
  return row.icon === "pass-filled" ? "done" : "";
}

/** An event in words; `label` is the name of a marker or a branch. */
export function pageEvent(
  event: TimelineEvent,
  label: string,
  losses: readonly Loss[] | null,
): PageEvent {
  // A marker on the last turn before it stands at the same record.
  const isLoss = event.kind === "compaction";
  const loss = losses?.find(({ openedAtSeq }) => isLoss && openedAtSeq === event.seq);
  const lost = loss === undefined ? [] : lostNames(loss);
  return { ...event, name: eventName(event, label, loss), lost };
}

function eventName({ kind }: TimelineEvent, label: string, loss: Loss | undefined): string {
  switch (kind) {
    case "compaction": {
      const words = loss === undefined ? "" : lossWords(loss) || "nothing known to be lost";
      return `Compacted: a new context window begins${words === "" ? "" : ` · ${words}`}.`;
    }
    case "marker":
      return `Marker “${cut(plain(label), 60) || "without a label"}”.`;
    default:
      return `Branch “${cut(plain(label), 60) || "session"}”.`;
  }
}
