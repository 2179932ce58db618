/** What Codex was given of a session last, in words. */

import type { Receipt } from "../protocol.ts";
import { type CheckpointNode, node } from "./node.ts";
import { ago, listed, plain, type Say } from "./text.ts";

/** The row that says so below a checkpoint. */
export function receivedNode(receipt: Receipt, now: number, say: Say): CheckpointNode {
  const label = receipt.isCurrent
    ? say("Codex received this checkpoint")
    : say("Codex received an earlier checkpoint");
  const when = ago(receipt.at, now, say);
  return node("received", {
    label,
    description: when,
    tooltip: [label, plain(receipt.at), occasion(receipt, say), plain(receipt.digest)].join("\n"),
    spoken: listed(label, when, occasion(receipt, say)),
    icon: receipt.isCurrent ? "check-all" : "history",
  });
}

/** What it was given for. */
export function occasion({ door, event, source }: Receipt, say: Say): string {
  if (door !== "hook") {
    return say("It asked for it.");
  }
  const occasions: Readonly<Record<string, string>> = {
    compact: say("After it had compacted the session."),
    resume: say("When the session was resumed."),
    fork: say("When the session was forked."),
  };
  const known = occasions[source ?? ""];
  return known ?? (event === "UserPromptSubmit" ? say("With a prompt.") : "");
}
