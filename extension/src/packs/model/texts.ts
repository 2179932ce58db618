/** Texts about portable packs. */

import type { PackCounts, SessionSummary } from "../../client/protocol.ts";
import { countedIfAny, fileName, listed, subject } from "../../common/model/text.ts";

export function packName(session: SessionSummary): string {
  return `${fileName(subject(session)).replace(/…$/, "")}.pack.json`;
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
