/** What the status bar says: how the server is, and how full the running session's context is. */

import type { SessionSummary } from "../protocol.ts";
import { cut, isNearlyFull, listed, meter, percent, subject } from "./text.ts";

/** How the server is. */
export type ServerState =
  | { readonly kind: "starting" }
  | { readonly kind: "indexing"; readonly percent: number | null }
  | { readonly kind: "ready" }
  | { readonly kind: "stopped" }
  | { readonly kind: "noPython"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Why nothing can be asked until somebody starts the server again; null where it can, or soon. */
export function whyDown(state: ServerState): string | null {
  switch (state.kind) {
    case "starting":
    case "indexing":
    case "ready":
      return null;
    case "stopped":
      return "The server has stopped.";
    case "noPython":
    case "failed":
      return state.reason;
    default:
      return state satisfies never;
  }
}

/** How the status bar item looks, sounds and reacts. */
export interface Status {
  readonly text: string;
  readonly tooltip: string;
  readonly spoken: string;
  readonly alert: "none" | "warning" | "error";
  readonly click: "open" | "restart";
}

/** The status for a state; `running` is the session being worked on here, if one is. */
export function statusOf(state: ServerState, running: SessionSummary | null): Status {
  switch (state.kind) {
    case "starting":
      return quiet("$(sync~spin) Codex", "Codex Checkpoints is starting");
    case "indexing":
      return quiet(
        state.percent === null ? "$(sync~spin) Codex" : `$(sync~spin) Codex ${`${state.percent}%`}`,
        "Codex Checkpoints is reading your sessions",
      );
    case "ready":
      return running === null
        ? quiet("$(bookmark) Codex", "Codex Checkpoints: no session is running here")
        : runningStatus(running);
    case "stopped":
      return loud("$(debug-disconnect) Codex", "warning", "The server has stopped");
    case "noPython":
    case "failed":
      return loud("$(error) Codex", "error", state.reason);
    default:
      return state satisfies never;
  }
}

function runningStatus(session: SessionSummary): Status {
  const share = percent(session);
  const name = cut(subject(session), 80);
  const tooltip = [
    name,
    share === null ? "" : `Context: ${meter(session)} full`,
    session.suspectFacts > 0 ? `Suspect facts: ${session.suspectFacts}` : "",
    "Click to open the checkpoint",
  ];
  return {
    // Nothing from a session stands in the text: `$(…)` would become an icon there.
    text: share === null ? "$(pulse) Codex" : `$(pulse) ${bar(share)} ${meter(session)}`,
    tooltip: tooltip.filter((line) => line !== "").join("\n"),
    spoken: listed("Codex session running", share === null ? "" : `context ${share} percent`),
    alert: isNearlyFull(session) ? "warning" : "none",
    click: "open",
  };
}

/** Five blocks; nothing is called full before it is. */
function bar(share: number): string {
  const full = Math.max(0, Math.min(5, Math.floor(share / 20)));
  return "▰".repeat(full) + "▱".repeat(5 - full);
}

function quiet(text: string, tooltip: string): Status {
  return { text, tooltip, spoken: tooltip, alert: "none", click: "open" };
}

function loud(text: string, alert: "warning" | "error", reason: string): Status {
  const tooltip = `${reason}\n${"Click to start it again"}`;
  return { text, tooltip, spoken: listed(reason, "restart"), alert, click: "restart" };
}
