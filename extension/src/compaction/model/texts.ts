/** Texts about compactions, their losses, and windows. */

import { occasion } from "../../checkpoint/model/rows.ts";
import type {
  Compacted,
  CompactionPiece,
  Loss,
  Offer,
  SessionSummary,
  Totals,
  Window,
} from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  counted,
  dotted,
  listed,
  plain,
  tokenCount,
  utcTime,
} from "../../common/model/text.ts";

/** The figures in one line: `200,716 → ~2,140 tokens · 3 kept · 1 cut · 12 left out`. */
export function figures(done: Compacted): string {
  return dotted(
    changeText(done),
    `${done.kept.length} kept`,
    done.truncated.length === 0 ? "" : `${done.truncated.length} cut`,
    `${done.dropped.length} left out`,
    done.digestTokens === 0 ? "" : `digest: ${tokenCount(done.digestTokens)}`,
  );
}

export function notice(done: Compacted): string {
  const said =
    done.into === "new"
      ? `Compacted into a new session: ${changeText(done)}. The original stays as it is.`
      : `Compacted in place: ${changeText(done)}. The old history stays in the file.`;
  return done.remarkText === null ? said : `${said} ${plain(done.remarkText)}`;
}

function changeText(done: Compacted): string {
  return `${tokens(done.tokensBefore, done.tokensBeforeSource)} → ${after(done)} tokens`;
}

export function reportText(done: Compacted): string {
  const rows: [string, string][] = [
    ["Compaction", done.compactionId ?? "not done yet"],
    ["Source", done.sourceSessionId],
    ["Continues in", done.sessionId ?? "a new session"],
    ["How", dotted(wordsFor(done.strategy), wordsFor(done.placement))],
    ["Tokens before", tokens(done.tokensBefore, done.tokensBeforeSource)],
    ["Tokens after", after(done)],
    ["Summary added", tokenCount(done.tokensAdded)],
    ["Digest in it", done.digestTokens === 0 ? "none" : tokenCount(done.digestTokens)],
    ["Size limit", `${tokenCount(done.bound)}, however long the session is`],
    ["Window ID before", done.windows.before.current ?? "not in the session file"],
    ["Window ID after", done.windows.after.current ?? "not made yet"],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const head = rows.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`).join("\n");
  const parts: [string, readonly CompactionPiece[]][] = [
    ["Kept", done.kept],
    ["Cut", done.truncated],
    ["Left out", done.dropped],
  ];
  const lists = parts.map(([name, pieces]) =>
    [`${name} (${pieces.length})`, ...groupLines(pieces)].join("\n"),
  );
  const remark = done.remarkText === null ? [] : [plain(done.remarkText)];
  return `${[head, ...remark, ...lists].join("\n\n")}\n`;
}

/** The row of a context window, opened in or after `turn`; null if no turn had begun. */
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
  // Undoing a compaction opens a window, too; nothing says how it was made.
  return trigger === null && strategy === null ? "New window" : "Compacted by Codex";
}

/** A count of tokens in a row: `850`, `31k`. */
function thousands(count: number): string {
  return count < 1000 ? String(count) : `${Math.round(count / 1000).toLocaleString("en-US")}k`;
}

/** When a compaction came, and how, as people say it. */
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

/** A line for the pieces of a kind and a fate: `  tool call, replaced: 9 · 3,400 tokens`. */
function groupLines(pieces: readonly CompactionPiece[]): string[] {
  const groups = new Map<string, [number, number]>();
  for (const { kind, fate, tokens } of pieces) {
    const about = listed(kind, fate === "kept" ? "" : fate).replaceAll("_", " ");
    const [count, size] = groups.get(about) ?? [0, 0];
    groups.set(about, [count + 1, size + tokens]);
  }
  return [...groups].map(
    ([about, [count, size]]) => `  ${dotted(`${plain(about)}: ${count}`, tokenCount(size))}`,
  );
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

/** How much was lost: `2 of 5 lost`; where not all is known, `3 kept, 2 unknown`. */
function fates(totals: Totals): string {
  const { lost, kept, unknown } = totals;
  return unknown > 0 ? uncertain(totals) : `${lost} of ${lost + kept} lost`;
}

function uncertain({ lost, kept, unknown }: Totals): string {
  return listed(
    lost === 0 ? "" : `${lost} lost`,
    kept === 0 ? "" : `${kept} kept`,
    `${unknown} unknown`,
  );
}

export function lossesText(losses: readonly Loss[]): string {
  if (losses.length === 0) {
    return "This session was never compacted, so nothing was lost.\n";
  }
  const head = [
    "What each compaction lost: what was there before it, and is not in its replacement.",
    "✗ lost   ✓ kept   ? unknown",
  ];
  const parts = losses.toReversed().map((loss) => lossText(loss));
  return `${[head.join("\n"), ...parts].join("\n\n\n")}\n`;
}

function lossText(loss: Loss): string {
  const name = loss.number === null ? "A window that was rolled back" : `Window ${loss.number}`;
  const title = dotted(
    name,
    wordsFor(loss.trigger),
    wordsFor(loss.strategy),
    utcTime(plain(loss.openedAt ?? "")),
  );
  const more = `${loss.notListed} more are`;
  const lists = [
    ...partsOf(loss).map(([title, parts]) => list(title, parts)),
    loss.notListed > 0 ? [`${counted(loss.notListed, "1 more is", more)} not listed.`] : [],
    rereadLines(loss),
  ];
  const body = lists.filter((lines) => lines.length > 0).map((lines) => lines.join("\n"));
  return [title, "─".repeat(60), summaryOf(loss), "", body.join("\n\n")].join("\n");
}

/** How much was lost, and why not all of it is known. */
function summaryOf({ totals, sealed }: Loss): string {
  const { lost, kept, unknown } = totals;
  if (lost + kept + unknown === 0) {
    return "There was nothing to lose.";
  }
  const why = "the provider encrypted this part, and nobody else can read it";
  return unknown > 0 && sealed ? `${fates(totals)}: ${why}.` : `${fates(totals)}.`;
}

/** What stood before a compaction, by kind. */
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

/** What a compaction lost, a line for each. */
export function lostNames(loss: Loss): readonly string[] {
  return partsOf(loss).flatMap(([title, parts]) =>
    parts.filter(({ lost }) => lost === true).map(({ name }) => `${title}: ${plain(name)}`),
  );
}

function list(title: string, parts: readonly Kept[]): string[] {
  if (parts.length === 0) {
    return [];
  }
  const count = (fate: boolean | null) => parts.filter(({ lost }) => lost === fate).length;
  const totals = { lost: count(true), kept: count(false), unknown: count(null) };
  const heading = `${title}: ${fates(totals)}`;
  const lines = parts.map(({ name, seq, lost: isLost }) => {
    const sign = isLost === null ? "?" : isLost ? "✗" : "✓";
    return `  ${sign} ${dotted(plain(name), seq === null ? "" : `#${seq}`)}`;
  });
  return [heading, ...lines];
}

function rereadLines(loss: Loss): string[] {
  if (loss.reads === 0) {
    return [];
  }
  const size = loss.bytes.toLocaleString("en-US");
  const again = `${loss.rereadsUnchanged} (${counted(loss.bytes, "1 byte", `${size} bytes`)})`;
  const repeated = loss.rereadsUnchanged === 0 ? "" : `, unchanged files read again: ${again}`;
  const heading = `Files read since then: ${loss.reads}${repeated}`;
  const rereads = loss.rereads.map(
    ({ uri, times }) => `  ${plain(uri)}: ${counted(times, "once", `${times} times`)}`,
  );
  return [heading, ...rereads];
}

export function fullWords({ tokens, window }: Offer): string {
  return tokens > window ? "over its limit" : `${Math.floor((tokens * 100) / window)}% full`;
}

/** Remembers which sessions had a hint. */
export class Hints {
  /** The number of windows that a session had at its hint. */
  readonly #shown = new Map<string, number>();
  readonly #since: number;

  constructor(since: number) {
    this.#since = since;
  }

  /** Whether a hint is due: at most one a window, also when the offer goes away in a running turn. */
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
