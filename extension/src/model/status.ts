/** The status bar's text, refusals in words, and warnings. */

import type { SessionSummary, Strayed } from "../protocol.ts";
import { cut, listed, meter, percent, plain, subject } from "./text.ts";

export type ServerState =
  | { readonly kind: "starting" }
  | { readonly kind: "indexing"; readonly percent: number | null }
  | { readonly kind: "ready" }
  | { readonly kind: "stopped" }
  | { readonly kind: "noPython"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Why the server is down; null if it takes requests, or will soon. */
export function whyDown(state: ServerState): string | null {
  if (state.kind === "stopped") {
    return "The server has stopped.";
  }
  return "reason" in state ? state.reason : null;
}

export interface Status {
  readonly text: string;
  readonly tooltip: string;
  readonly spoken: string;
  readonly alert: "none" | "warning" | "error";
  readonly click: "open" | "restart";
}

/** The status for a state; `running` is the running session of this workspace. */
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
    // No text of a session is in here: `$(…)` would become an icon.
    text: share === null ? "$(pulse) Codex" : `$(pulse) ${bar(share)} ${meter(session)}`,
    tooltip: tooltip.filter((line) => line !== "").join("\n"),
    spoken: listed("Codex session running", share === null ? "" : `context ${share} percent`),
    alert: session.nearlyFull ? "warning" : "none",
    click: "open",
  };
}

/** Five blocks, rounded down. */
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

const REFUSALS: Readonly<Record<string, string>> = {
  unknown_session: "This session is no longer here.",
  unknown_checkpoint: "This marker is no longer here.",
  unknown_turn: "This turn is no longer here.",
  unknown_operation: "This restore is no longer here.",
  unknown_compaction: "This compaction is no longer here.",
  unknown_note: "This note is no longer here.",
  unknown_ref: "This record is no longer here, or is one that is never shown.",
  unreadable_source: "The file of this session cannot be read.",
  storage_error: "Not done: a file could not be read or written.",
  session_live: "Not done: another program has this session open.",
  turn_not_complete: "Not done: the turn is not complete yet.",
  not_smaller: "Not done: the context would not become smaller.",
  item_too_large: "Not done: what must be kept does not fit into the context window.",
  codex_failed: "Not done: Codex made no summary.",
  timed_out: "Not done: it took too long.",
  blocked_by_hook: "Not done: a hook that runs before a compaction did not allow it.",
};

const CONFLICTS: Readonly<Record<string, string>> = {
  imported: "Not done: this pack was imported already.",
  compacted: "Not done: the session was compacted meanwhile.",
  undone: "Not done: the compaction was taken back already.",
  later_compaction: "Not done: a later compaction is to be taken back first.",
  gone_on: "Not done: the session went on meanwhile.",
  later_window: "Not done: the session went on meanwhile.",
};

/** A sentence for a refusal, with the server's hint if there is one. */
export function refusalText(code: string, facts: Readonly<Record<string, unknown>>): string {
  const { hint, file, reason } = facts;
  const isFile = code === "unreadable_source" && typeof file === "string";
  const unread = code === "blocked_by_hook" && reason === "settings";
  const words = unread ? "Not done: the settings cannot be read." : REFUSALS[code];
  const known = code === "conflict" ? CONFLICTS[String(reason)] : words;
  const sentence = isFile ? "This file cannot be read." : known;
  return `${sentence ?? `Not done: ${code}.`} ${typeof hint === "string" ? hint : ""}`.trim();
}

/** Tells for each request whether it is still the newest. */
export class Newest {
  #begun = 0;

  begin(): () => boolean {
    this.#begun += 1;
    const own = this.#begun;
    return () => own === this.#begun;
  }
}

/** The files of each session with an open warning. */
export class Drift {
  readonly #waiting = new Map<string, Set<string>>();

  /** Add a notice; true if its session has no open warning. */
  add({ sessionId, uris }: Strayed): boolean {
    const known = this.#waiting.get(sessionId);
    this.#waiting.set(sessionId, new Set([...(known ?? []), ...uris]));
    return known === undefined;
  }

  /** Close a session's warning, and return its files. */
  take(sessionId: string) {
    const uris = this.#waiting.get(sessionId) ?? [];
    this.#waiting.delete(sessionId);
    return [...uris].map((uri) => ({ uri, label: plain(uri) }));
  }
}
