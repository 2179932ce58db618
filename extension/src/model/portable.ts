/** A portable pack in words: what is in it, and what a model will be told. */

import type { Imported, PackCounts, SessionSummary } from "../protocol.ts";
import { fileName, listed, plain, type Say, subject } from "./text.ts";

/** What to call the file. */
export function packName(session: SessionSummary, say: Say): string {
  return `${fileName(subject(session, say))}.pack.json`;
}

/** What a pack holds, in one line. */
export function countWords(counts: PackCounts, say: Say): string {
  return listed(
    say("session metadata"),
    say("{0} turns", counts.turns),
    say("{0} steps of the plan", counts.planSteps),
    say("{0} notes", counts.notes),
    say("the checkpoint"),
    say("{0} file references", counts.fileReferences),
    say("{0} mode changes", counts.modes),
    say("{0} artifacts", counts.artifacts),
    say("{0} markers", counts.markers),
    counts.pins === 0 ? "" : say("{0} pins", counts.pins),
  );
}

/** All that is to be read before a pack becomes a session. */
export function importText(would: Imported, say: Say): string {
  const head = [
    say("Pack: {0}", plain(would.name)),
    say("Made of session {0}", plain(would.sourceSessionId)),
    say("For the folder {0}", plain(would.cwd)),
    say("In it: {0}", countWords(would.counts, say)),
    ...would.leftBehind.map(({ message, count }) => `${count}: ${plain(message)}`),
  ];
  const told = say("What a model will be told (about {0} tokens):", would.handoffTokens);
  const lines = would.handoff.split("\n").map(plainLine);
  return `${head.join("\n")}\n\n${told}\n\n${lines.join("\n")}\n`;
}

/** One line of the text; indentation is part of what it says. */
function plainLine(line: string): string {
  const indent = /^ */.exec(line)?.[0] ?? "";
  return indent + plain(line);
}
