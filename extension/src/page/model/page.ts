/** The model of the session page: the turns as a picture and in words (PAG-1, PAG-2). */

import type { CheckpointNode } from "../../checkpoint/model/rows.ts";
import type {
  FileChanges,
  Loss,
  Recalled,
  SessionDigest,
  SessionSummary,
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
  /** Set for a read-only copy of a session in the remote, else null. */
  readonly shared: Shared | null;
  /** Why Codex does not resume the session, as a sentence; empty if it does. */
  readonly refused: string;
  readonly name: string;
  /** The model, the folder and the like, in words. */
  readonly about: string;
  /** The path of the session's folder; empty if unknown. */
  readonly folder: string;
  readonly rows: readonly PageRow[];
  readonly events: readonly PageEvent[];
  /** The number of the newest record; null if unknown. */
  readonly seq: number | null;
  /** The number of turns per row. */
  readonly merged: number;
  readonly window: number | null;
  /** The token count at which the server offers a compaction. */
  readonly trigger: number | null;
  /** Null until loaded. */
  readonly digest: SessionDigest | null;
  /** Null until loaded. */
  readonly files: FileChanges | null;
  readonly kept: readonly KeptList[];
  /** The source of a session without a turn of its own, else null. */
  readonly begun: Begun | null;
  /** The session with its ancestors and its descendants; null until loaded. */
  readonly lineage: LineagePicture | null;
}

/** Whose session it is, in a sentence, and the person's name in its conversation. */
export interface Shared {
  readonly note: string;
  readonly speaker: string;
}

/** Say why Codex does not resume a session; empty if it does. */
export function refusedSentence({ refused }: SessionSummary): string {
  return refused === null ? "" : `${plain(refused)}.`;
}

/** The actions on a session: writing ones only on this machine, resuming only if Codex does. */
export function pageActions({
  shared,
  refused,
}: Pick<SessionView, "shared" | "refused">): readonly PageAction[] {
  if (shared !== null) {
    return [{ label: "Pull as Branch…", kind: "pull" }];
  }
  const resume: PageAction = { label: "Resume in Terminal", kind: "resume" };
  return [
    ...(refused === "" ? [resume] : []),
    { label: "Compact…", kind: "compact" },
    { label: "Search in This Session…", kind: "search" },
  ];
}

export interface PageAction {
  readonly label: string;
  readonly kind: "resume" | "compact" | "search" | "pull";
}

/** The plan at the end of a turn; null if there was none. */
export interface PlanAtTurn {
  readonly kind: "planAtTurn";
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

/** One turn, or the consecutive turns from `turn` to `last`. */
export interface PageRow extends Omit<TimelineTurn, "turnId"> {
  readonly last: number;
  /** The turns of the row, at least one. */
  readonly turns: readonly [PageTurn, ...PageTurn[]];
}

/** A turn that can be selected and acted on. */
export interface PageTurn {
  readonly turn: number;
  readonly turnId: string;
  readonly task: string;
}

/** An event in words; a compaction also lists its losses. */
export interface PageEvent extends TimelineEvent {
  readonly name: string;
  readonly lost: readonly string[];
}

/**
 * A place to show: a turn (null means the newest) and one of its records (null means the beginning
 * of its conversation), with the search match at that place.
 */
export interface PagePlace {
  readonly kind: "place";
  readonly turn: number | null;
  readonly seq: number | null;
  readonly found: FoundText | null;
}

/** A searched text, and a line that contains it. */
export interface FoundText {
  readonly text: string;
  readonly line: string;
}

/** A part of a turn's conversation. */
export interface Conversation {
  readonly kind: "conversation";
  readonly offset: number;
  readonly part: TurnTranscript;
}

/** The full text of a cut step; `left` counts the characters at its end that are not loaded. */
export interface Whole {
  readonly kind: "whole";
  readonly ref: string;
  readonly text: string;
  readonly left: number;
}

/** Where a part of a turn begins, and where the next one does; null at the end or if unknown. */
export interface PartPlace {
  readonly turnId: string;
  readonly offset: number;
  readonly next: number | null;
}

/** The number of records per part; the server uses the same. */
const PART = 200;

/** Return the next part, in the same turn or the next; null after the last part. */
export function nextPart(part: PartPlace, turns: readonly PageTurn[]): PartPlace | null {
  const { turnId, next } = part;
  const at = turns.findIndex((each) => each.turnId === turnId);
  const behind = at === -1 ? undefined : turns[at + 1];
  if (next !== null) {
    return { turnId, offset: next, next: null };
  }
  return behind === undefined ? null : { turnId: behind.turnId, offset: 0, next: null };
}

/** Return the previous part; the first part of the previous turn if its length is unknown. */
export function previousPart(part: PartPlace, turns: readonly PageTurn[]): PartPlace | null {
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
export interface ConversationStep {
  readonly ref: string;
  readonly kind: "user" | "assistant" | "summary" | "plan" | "command" | "patch";
  /** The message, or the command. */
  readonly text: string;
  /** The output of a command, else empty. */
  readonly printed: string;
  /** The outcome, in words. */
  readonly about: string;
  /** The number of characters cut from the text or the output. */
  readonly left: number;
  readonly hasFailed: boolean;
}

/** Return a conversation's steps in order; a call is merged into its output. */
export function stepsOf(items: readonly TranscriptItem[]): readonly ConversationStep[] {
  return items
    .filter(({ answered }) => !answered)
    .map(
      ({ ref, kind, text, tail, total, about, exitCode, failed: hasFailed }): ConversationStep => {
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
      },
    );
}

export function charactersLeft(left: number): string {
  return counted(left, "1 more character", `${left.toLocaleString("en-US")} more characters`);
}

/**
 * Make the full text of a step from the beginning of its record, which ends at `end`, and a later
 * part of it, below a gap if there is one.
 */
export function wholeOf(
  ref: string,
  beginning: string,
  end: number,
  total: number,
  passage: Pick<Recalled, "offset" | "text"> | null,
): Whole {
  const points = [...(passage?.text ?? "")];
  const offset = passage?.offset ?? end;
  const gap = offset - end;
  const later = points.slice(Math.max(0, -gap)).join("");
  const text = `${beginning}${gap > 0 ? `\n⋯ ${charactersLeft(gap)} ⋯\n` : ""}${later}`;
  return { kind: "whole", ref, text, left: total - Math.max(end, offset + points.length) };
}

/** Return the index of the step that contains a record; a call belongs to its output's step. */
export function stepOf(steps: readonly ConversationStep[], seq: number): number {
  return steps.findIndex(({ ref }) => Number(ref.slice(1)) >= seq);
}

export type TurnAction = "mark" | "restore" | "changes" | "compare" | "more";

const ACTIONS: readonly string[] = ["mark", "restore", "changes", "compare", "more"];

export function readAction(value: unknown): TurnAction | null {
  return ACTIONS.includes(String(value)) ? (value as TurnAction) : null;
}

/** Make the rows of the picture, each with the request of its first turn. */
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

/** Return the selected turn of a row, by default its last. */
export function chosenIn({ turns }: PageRow, turn: number | null): PageTurn {
  return turns.find((each) => each.turn === turn) ?? turns.at(-1) ?? turns[0];
}

/** Name a row by the number of its turn or the range of its turns. */
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
  const peak =
    mostTokens === contextTokens ? "" : ` (peak ${(mostTokens ?? 0).toLocaleString("en-US")})`;
  const words = listed(
    OUTCOMES[outcome] ?? plain(outcome),
    contextTokens === null ? "" : `context ${tokenCount(contextTokens)}${peak}`,
    counted(calls, "1 call", `${calls} calls`),
    countedIfAny(filesChanged, "1 file changed", `${filesChanged} files changed`),
    countedIfAny(checksFailed, "1 check failed", `${checksFailed} checks failed`),
  );
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

/** Return why some actions on a turn of a row are disabled; empty for those that are not. */
export function whyDisabled(
  { outcome, last, filesChanged }: PageRow,
  turn: number,
): { readonly open: string; readonly unchanged: string } {
  const isOpen = outcome === "open" && turn === last;
  return {
    open: isOpen ? "It can be marked and restored once it has ended." : "",
    unchanged: filesChanged > 0 ? "" : "No files changed.",
  };
}

/** Describe a row to a screen reader when the slider reaches it. */
export function spokenTurn(row: PageRow, events: readonly PageEvent[]): string {
  const seen = eventsOf(row, events).map(({ name }) => name);
  return [`${turnName(row)}: ${cut(row.turns[0].task, 120)}`, turnText(row), ...seen].join(" ");
}

/** The events after a row, up to the next row. */
export function eventsOf(row: PageRow, events: readonly PageEvent[]): readonly PageEvent[] {
  return events.filter(({ turn }) => turn !== null && row.turn <= turn && turn <= row.last);
}

/** Return the tokens of a full column: the window, or the most in use if that is more. */
export function heightOf(rows: readonly PageRow[], window: number | null): number {
  return Math.max(1, window ?? 0, ...rows.map(({ mostTokens }) => mostTokens ?? 0));
}

/**
 * Choose the turns that are numbered below the picture: the first, and round numbers with enough
 * space between them.
 */
export function numbered(rows: readonly PageRow[], width: number): readonly number[] {
  const last = rows.at(-1)?.last ?? 0;
  const room = (ROOM * last) / Math.max(1, width);
  const scale = 10 ** Math.floor(Math.log10(Math.max(1, room)));
  const step = scale * ([1, 2, 5].find((each) => each * scale >= room) ?? 10);
  const round = Array.from({ length: Math.floor(last / step) }, (_, at) => (at + 1) * step);
  return last === 0 ? [] : [1, ...round.filter((turn) => turn > 1 && turn - 1 >= room / 2)];
}

/** The width of a number and its margin, in pixels. */
const ROOM = 56;

/** Return the outline of the filled area: one step per row, closed along the floor. */
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

/** Put the plan, facts and decisions into words, without empty lists. */
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

/** Put an event into words; `label` is the name of a marker or a branch. */
export function pageEvent(
  event: TimelineEvent,
  label: string,
  losses: readonly Loss[] | null,
): PageEvent {
  // A marker on the previous turn has the same record number.
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
