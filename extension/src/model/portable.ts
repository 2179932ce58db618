/** A portable pack in words: what is in it, and what a model will be told. */

import type { Imported, PackCounts, SessionSummary } from "../protocol.ts";
import { counted, fileName, listed, plain, type Say, subject } from "./text.ts";

/** What to call the file. */
export function packName(session: SessionSummary, say: Say): string {
  return `${fileName(subject(session, say))}.pack.json`;
}

/** What a pack holds, in one line. */
export function countWords(counts: PackCounts, say: Say): string {
  const { turns, planSteps, notes, fileReferences, modes, artifacts, markers, pins } = counts;
  return listed(
    say("session metadata"),
    counted(turns, say("1 turn"), say("{0} turns", turns)),
    counted(planSteps, say("1 step of the plan"), say("{0} steps of the plan", planSteps)),
    counted(notes, say("1 note"), say("{0} notes", notes)),
    say("the checkpoint"),
    counted(fileReferences, say("1 file reference"), say("{0} file references", fileReferences)),
    counted(modes, say("1 mode change"), say("{0} mode changes", modes)),
    counted(artifacts, say("1 artifact"), say("{0} artifacts", artifacts)),
    counted(markers, say("1 marker"), say("{0} markers", markers)),
    pins === 0 ? "" : counted(pins, say("1 pin"), say("{0} pins", pins)),
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
