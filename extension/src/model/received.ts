/** What Codex was given of a session last, in words. */

import type { Receipt } from "../protocol.ts";
import { type CheckpointNode, node } from "./node.ts";
import { ago, listed, plain } from "./text.ts";

/** The row that says so below a checkpoint. */
export function receivedNode(receipt: Receipt, now: number): CheckpointNode {
  const label = receipt.isCurrent
    ? "Codex received this checkpoint"
    : "Codex received an earlier checkpoint";
  const when = ago(receipt.at, now);
  return node("received", {
    label,
    description: when,
    tooltip: [label, plain(receipt.at), occasion(receipt), plain(receipt.digest)].join("\n"),
    spoken: listed(label, when, occasion(receipt)),
    icon: receipt.isCurrent ? "check-all" : "history",
  });
}

/** What it was given for. */
export function occasion({ door, event, source }: Receipt): string {
  if (door !== "hook") {
    return "It asked for it.";
  }
  const occasions: Readonly<Record<string, string>> = {
    compact: "After it had compacted the session.",
    resume: "When the session was resumed.",
    fork: "When the session was forked.",
  };
  const known = occasions[source ?? ""];
  return known ?? (event === "UserPromptSubmit" ? "With a prompt." : "");
}
