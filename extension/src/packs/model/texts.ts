/** Texts about portable packs. */

import type { Imported, PackCounts, SessionSummary } from "../../client/protocol.ts";
import { countedIfAny, fileName, listed, plain, subject } from "../../common/model/text.ts";

export function packName(session: SessionSummary): string {
  return `${fileName(subject(session))}.pack.json`;
}

export function countWords(counts: PackCounts): string {
  const { turns, planSteps, notes, fileReferences, modes, artifacts, markers, pins } = counts;
  return listed(
    "the checkpoint",
    countedIfAny(turns, "1 turn", `${turns} turns`),
    countedIfAny(planSteps, "1 plan step", `${planSteps} plan steps`),
    countedIfAny(notes, "1 note", `${notes} notes`),
    countedIfAny(fileReferences, "1 file reference", `${fileReferences} file references`),
    countedIfAny(modes, "1 mode change", `${modes} mode changes`),
    countedIfAny(artifacts, "1 artifact", `${artifacts} artifacts`),
    countedIfAny(markers, "1 marker", `${markers} markers`),
    countedIfAny(pins, "1 pin", `${pins} pins`),
  );
}

/** The preview of an import. */
export function importText(would: Imported): string {
  const head = [
    `Pack: ${plain(would.name)}`,
    `From the session ${plain(would.sourceSessionId)}`,
    `For the folder ${plain(would.cwd)}`,
    `In it: ${countWords(would.counts)}`,
    ...would.leftBehind.map(({ message, count }) => `${count}: ${plain(message)}`),
  ];
  const about = `What a model will be told (about ${would.handoffTokens} tokens):`;
  const lines = would.handoff.split("\n").map(plainLine);
  return `${head.join("\n")}\n\n${about}\n\n${lines.join("\n")}\n`;
}

/** Make a text plain, but keep its indentation. */
function plainLine(line: string): string {
  const indent = /^ */.exec(line)?.[0] ?? "";
  return indent + plain(line);
}
