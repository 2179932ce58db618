/** A compaction in words: what it would do, what it did, and a window of a session. */

import type { Compacted, CompactionPiece, Loss, Window } from "../protocol.ts";
import { lossWords } from "./losses.ts";
import { occasion } from "./received.ts";
import { type Appearance, age, counted, dotted, listed, plain, type Say } from "./text.ts";

/** The figures in one line: `200,716 → ~2,140 tokens · 3 kept · 1 cut · 12 left out`. */
export function figures(done: Compacted, say: Say): string {
  return dotted(
    say("{0} → {1} tokens", tokens(done.tokensBefore, done.tokensBeforeSource), after(done)),
    say("{0} kept", done.kept.length),
    done.truncated.length === 0 ? "" : say("{0} cut", done.truncated.length),
    say("{0} left out", done.dropped.length),
  );
}

/** What was done, for the quiet notice. */
export function notice(done: Compacted, say: Say): string {
  const change = say(
    "{0} → {1} tokens",
    tokens(done.tokensBefore, done.tokensBeforeSource),
    after(done),
  );
  return done.into === "new"
    ? say("Compacted into a new session: {0}. The old one stays as it is.", change)
    : say("Compacted in place: {0}. Nothing that was there is gone.", change);
}

/** The whole report as a document. */
export function reportText(done: Compacted, say: Say): string {
  const rows: [string, string][] = [
    [say("Compaction"), done.compactionId ?? say("not done yet")],
    [say("Source"), done.sourceSessionId],
    [say("Goes on in"), done.sessionId ?? say("a new session")],
    [say("Strategy"), dotted(done.strategy, done.determinism)],
    [say("Placement"), done.placement],
    [say("Tokens before"), tokens(done.tokensBefore, done.tokensBeforeSource)],
    [say("Tokens after"), after(done)],
    [say("Bound stated before"), String(done.bound)],
    [say("Window before"), done.windows.before.current ?? say("not known")],
    [say("Window after"), done.windows.after.current ?? say("not known")],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const head = rows.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`).join("\n");
  const parts: [string, readonly CompactionPiece[]][] = [
    [say("Kept"), done.kept],
    [say("Cut"), done.truncated],
    [say("Left out"), done.dropped],
  ];
  const lists = parts.map(([name, pieces]) =>
    [`${name} (${pieces.length})`, ...pieces.map((piece) => `  ${pieceLine(piece, say)}`)].join(
      "\n",
    ),
  );
  return `${[head, ...lists].join("\n\n")}\n`;
}

/** One window of a session as a row; `loss` is what the compaction that opened it lost. */
export function windowRow(window: Window, loss: Loss | null, now: number, say: Say): Appearance {
  const label = say("Window {0}", window.number);
  const known = (count: number | null) => (count === null ? "?" : count.toLocaleString("en-US"));
  const isFirst = window.number === 0;
  const change = isFirst
    ? ""
    : say("{0} → {1} tokens", known(window.tokensBefore), known(window.tokensAfter));
  const [trigger, strategy] = [plain(window.trigger ?? ""), plain(window.strategy ?? "")];
  const losses = loss === null ? "" : lossWords(loss, say);
  const description = dotted(
    change,
    losses,
    trigger,
    strategy,
    window.openedAt === null ? "" : age(window.openedAt, now, say),
  );
  const { received } = window;
  const receipt =
    received === null
      ? []
      : [
          say("Codex received a checkpoint in it: {0}", plain(received.at)),
          occasion(received, say),
        ];
  const id = window.windowId ?? say("not known");
  const before = window.previousWindowId ?? (isFirst ? say("none") : say("not known"));
  const tooltip = [
    label,
    say("Window ID: {0}", plain(id)),
    say("Previous window ID: {0}", plain(before)),
    say("Opened at record {0}", window.openedAtSeq),
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

function pieceLine(piece: CompactionPiece, say: Say): string {
  return dotted(
    `${piece.place + 1}`,
    plain(piece.kind),
    plain(piece.author),
    counted(piece.tokens, say("1 token"), say("{0} tokens", piece.tokens)),
    plain(piece.fate),
    piece.at === null ? "" : plain(piece.at),
    piece.ref === null ? "" : plain(piece.ref),
  );
}
