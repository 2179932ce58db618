/** A compaction in words: what it would do, what it did, and a window of a session. */

import type { Compacted, CompactionPiece, Loss, Window } from "../protocol.ts";
import { lossWords } from "./losses.ts";
import { occasion } from "./received.ts";
import { type Appearance, age, counted, dotted, listed, plain } from "./text.ts";

/** The figures in one line: `200,716 → ~2,140 tokens · 3 kept · 1 cut · 12 left out`. */
export function figures(done: Compacted): string {
  return dotted(
    `${tokens(done.tokensBefore, done.tokensBeforeSource)} → ${after(done)} tokens`,
    `${done.kept.length} kept`,
    done.truncated.length === 0 ? "" : `${done.truncated.length} cut`,
    `${done.dropped.length} left out`,
  );
}

/** What was done, for the quiet notice. */
export function notice(done: Compacted): string {
  const change = `${tokens(done.tokensBefore, done.tokensBeforeSource)} → ${after(done)} tokens`;
  return done.into === "new"
    ? `Compacted into a new session: ${change}. The old one stays as it is.`
    : `Compacted in place: ${change}. Nothing that was there is gone.`;
}

/** The whole report as a document. */
export function reportText(done: Compacted): string {
  const rows: [string, string][] = [
    ["Compaction", done.compactionId ?? "not done yet"],
    ["Source", done.sourceSessionId],
    ["Goes on in", done.sessionId ?? "a new session"],
    ["Strategy", dotted(done.strategy, done.determinism)],
    ["Placement", done.placement],
    ["Tokens before", tokens(done.tokensBefore, done.tokensBeforeSource)],
    ["Tokens after", after(done)],
    ["Bound stated before", String(done.bound)],
    ["Window before", done.windows.before.current ?? "not known"],
    ["Window after", done.windows.after.current ?? "not known"],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const head = rows.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`).join("\n");
  const parts: [string, readonly CompactionPiece[]][] = [
    ["Kept", done.kept],
    ["Cut", done.truncated],
    ["Left out", done.dropped],
  ];
  const lists = parts.map(([name, pieces]) =>
    [`${name} (${pieces.length})`, ...pieces.map((piece) => `  ${pieceLine(piece)}`)].join("\n"),
  );
  return `${[head, ...lists].join("\n\n")}\n`;
}

/** One window of a session as a row; `loss` is what the compaction that opened it lost. */
export function windowRow(window: Window, loss: Loss | null, now: number): Appearance {
  const label = `Window ${window.number}`;
  const known = (count: number | null) => (count === null ? "?" : count.toLocaleString("en-US"));
  const isFirst = window.number === 0;
  const change = isFirst
    ? ""
    : `${known(window.tokensBefore)} → ${known(window.tokensAfter)} tokens`;
  const [trigger, strategy] = [plain(window.trigger ?? ""), plain(window.strategy ?? "")];
  const losses = loss === null ? "" : lossWords(loss);
  const description = dotted(
    change,
    losses,
    trigger,
    strategy,
    window.openedAt === null ? "" : age(window.openedAt, now),
  );
  const { received } = window;
  const receipt =
    received === null
      ? []
      : [`Codex received a checkpoint in it: ${plain(received.at)}`, occasion(received)];
  const id = window.windowId ?? "not known";
  const before = window.previousWindowId ?? (isFirst ? "none" : "not known");
  const tooltip = [
    label,
    `Window ID: ${plain(id)}`,
    `Previous window ID: ${plain(before)}`,
    `Opened at record ${window.openedAtSeq}`,
    ...receipt,
  ].join("\n");
  const spoken = listed(label, change, losses, trigger, strategy);
  const colour = loss?.loop === true ? "list.warningForeground" : null;
  return { label, description, tooltip, spoken, icon: "window", colour };
}

function after(done: Compacted): string {
  return tokens(done.tokensAfter, done.tokensAfterSource);
}

/** A count; `~` where it is an estimate. */
function tokens(count: number, source: string): string {
  const shown = count.toLocaleString("en-US");
  return source === "estimated" ? `~${shown}` : shown;
}

function pieceLine(piece: CompactionPiece): string {
  return dotted(
    `${piece.place + 1}`,
    plain(piece.kind),
    plain(piece.author),
    counted(piece.tokens, "1 token", `${piece.tokens} tokens`),
    plain(piece.fate),
    piece.at === null ? "" : plain(piece.at),
    piece.ref === null ? "" : plain(piece.ref),
  );
}
