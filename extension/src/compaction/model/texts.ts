/** Texts about compactions, losses and context windows. */

import { occasion } from "../../checkpoint/model/rows.ts";
import type {
  Compacted,
  Loss,
  Offer,
  SessionSummary,
  Totals,
  Window,
} from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  dotted,
  harmless,
  listed,
  plain,
  tokenCount,
} from "../../common/model/text.ts";

/** Summarize in one line: `200,716 → ~2,140 tokens · 3 kept · 1 cut · 12 left out`. */
export function figures(done: Compacted): string {
  return dotted(
    changeText(done),
    `${done.kept.length} kept`,
    done.truncated.length === 0 ? "" : `${done.truncated.length} cut`,
    `${done.dropped.length} left out`,
    done.digestTokens === 0 ? "" : `digest: ${tokenCount(done.digestTokens)}`,
  );
}

export function notice({ headline, remarkText }: Compacted): string {
  return harmless([headline, remarkText ?? ""].join(" "));
}

function changeText(done: Compacted): string {
  return `${tokens(done.tokensBefore, done.tokensBeforeSource)} → ${after(done)} tokens`;
}

/** The row of a context window that opened in or after `turn`; null if before the first turn. */
export function windowRow(window: Window, turn: number | null, now: number): Appearance {
  const name = `Window ${window.number}`;
  const known = (count: number | null) => (count === null ? "?" : thousands(count));
  const isFirst = window.number === 0;
  const place = turn === null ? "" : `turn ${turn}`;
  const label = isFirst ? "Start of the session" : listed(madeLabel(window), place);
  const change = isFirst ? "" : `${known(window.tokensBefore)} → ${known(window.tokensAfter)}`;
  const [trigger, strategy] = [wordsFor(window.trigger), wordsFor(window.strategy)];
  const undone = window.undone ? "undone since" : "";
  const description = dotted(change, undone, trigger, strategy, age(window.openedAt, now));
  const { received } = window;
  const receipt =
    received === null
      ? []
      : [`Codex received a checkpoint in it: ${plain(received.at)}`, occasion(received)];
  const id = window.windowId ?? "not known";
  const before = window.previousWindowId ?? (isFirst ? "none" : "not known");
  const tooltip = [
    name,
    `Window ID: ${plain(id)}`,
    `Previous window ID: ${plain(before)}`,
    `Opened at record ${window.openedAtSeq}`,
    ...receipt,
  ].join("\n");
  const spoken = listed(label, change, undone, trigger, strategy, name);
  return { label, description, tooltip, spoken, icon: "window", colour: null };
}

function madeLabel({ compactionId, trigger, strategy }: Window): string {
  if (compactionId !== null) {
    return "Compacted";
  }
  // Undoing a compaction also opens a window; its origin is not recorded.
  return trigger === null && strategy === null ? "New window" : "Compacted by Codex";
}

/** Shorten a token count for a row: `850`, `31k`. */
function thousands(count: number): string {
  return count < 1000 ? String(count) : `${Math.round(count / 1000).toLocaleString("en-US")}k`;
}

/** The trigger or the strategy of a compaction in words. */
const WAYS: Readonly<Record<string, string>> = {
  manual: "asked for",
  pre_turn: "before a turn",
  mid_turn: "during a turn",
  checkpoint: "from the checkpoint",
  codex: "summary by Codex",
  local: "by Codex",
  remote: "by Codex’s service",
  fresh: "with an empty context",
};

function wordsFor(way: string | null): string {
  return WAYS[way ?? ""] ?? plain(way ?? "");
}

function after(done: Compacted): string {
  return tokens(done.tokensAfter, done.tokensAfterSource);
}

function tokens(count: number, source: string): string {
  const shown = count.toLocaleString("en-US");
  return source === "estimated" ? `~${shown}` : shown;
}

interface Kept {
  readonly name: string;
  readonly seq: number | null;
  readonly lost: boolean | null;
}

export function lossWords({ totals, rereadsUnchanged }: Loss): string {
  const { lost, unknown } = totals;
  return dotted(
    unknown > 0 ? uncertain(totals) : lost === 0 ? "" : `${lost} lost`,
    rereadsUnchanged === 0 ? "" : `${rereadsUnchanged} read again`,
  );
}

function uncertain({ lost, kept, unknown }: Totals): string {
  return listed(
    lost === 0 ? "" : `${lost} lost`,
    kept === 0 ? "" : `${kept} kept`,
    `${unknown} unknown`,
  );
}

/** The content before a compaction, by kind. */
function partsOf(loss: Loss): readonly (readonly [title: string, parts: readonly Kept[]])[] {
  const task = loss.task === null ? [] : [{ ...loss.task, name: loss.task.text }];
  const steps = loss.openPlanSteps.map((step) => ({ ...step, name: step.text }));
  const files = loss.editedFiles.map((file) => ({ ...file, name: `${file.change} ${file.uri}` }));
  const commands = loss.failingCommands.map((each) => ({
    ...each,
    name: dotted(each.command, each.exitCode === null ? "" : `exit code ${each.exitCode}`),
  }));
  return [
    ["Last request", task],
    ["Open steps of the plan", steps],
    ["Changed files", files],
    ["Commands that failed", commands],
  ];
}

/** The losses of a compaction, one line each. */
export function lostNames(loss: Loss): readonly string[] {
  return partsOf(loss).flatMap(([title, parts]) =>
    parts.filter(({ lost }) => lost === true).map(({ name }) => `${title}: ${plain(name)}`),
  );
}

export function fullWords({ tokens, window }: Offer): string {
  return tokens > window ? "over its limit" : `${Math.floor((tokens * 100) / window)}% full`;
}

/** Remembers which sessions had a hint. */
export class Hints {
  /** The number of windows of a session at its hint. */
  readonly #shown = new Map<string, number>();
  readonly #since: number;

  constructor(since: number) {
    this.#since = since;
  }

  /**
   * Check whether a hint is due: at most one per window, even if the offer disappears meanwhile.
   */
  isDue({ sessionId, windows, offer, updatedAt }: SessionSummary): boolean {
    if (windows === null || offer === null) {
      return false;
    }
    if (windows <= (this.#shown.get(sessionId) ?? 0) || Date.parse(updatedAt ?? "") < this.#since) {
      return false;
    }
    this.#shown.set(sessionId, windows);
    return true;
  }
}
