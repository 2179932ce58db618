/**
 * One quiet hint when the session in view has become so full that it is worth compacting.
 *
 * A session that Codex has loaded is only spoken of: nothing can be done about it from outside.
 */

import * as vscode from "vscode";
import type { CompactionDesk } from "./compacting.ts";
import type { Following } from "./following.ts";
import { Hints, percentOf } from "./model/offer.ts";
import type { SessionSummary } from "./protocol.ts";
import { turnOff } from "./settings.ts";
import { telling } from "./telling.ts";

/** Tell of it once; the setting turns it off. */
export function offerCompaction(
  following: Following,
  compaction: CompactionDesk,
): vscode.Disposable {
  const hints = new Hints(Date.now());
  return following.onDidChange(({ session }) => {
    if (session !== null && hints.isDue(session)) {
      void telling(() => hint(session, compaction));
    }
  });
}

async function hint(session: SessionSummary, compaction: CompactionDesk): Promise<void> {
  if (session.offer === null) {
    return;
  }
  const compact = "Compact…";
  const off = "Turn Off";
  const share = percentOf(session.offer);
  const [sentence, actions] = session.live
    ? [
        `The running session's context is ${share}% full. When you have ended it in Codex, it can be compacted without a model.`,
        [off],
      ]
    : [`The session's context is ${share}% full: compact it before you go on?`, [compact, off]];
  const chosen = await vscode.window.showInformationMessage(sentence, ...actions);
  if (chosen === compact) {
    await compaction.compact(session);
  } else if (chosen === off) {
    await turnOff("compactionOffer", "off");
  }
}
