/** The state of the server, the status bar's text, and the order of requests. */

import { cut, dotted, listed, meter, spokenMeter, subject } from "../../common/model/text.ts";
import type { SessionSummary } from "../protocol.ts";

export type ServerState =
  | { readonly kind: "starting" }
  | { readonly kind: "indexing"; readonly percent: number | null }
  | { readonly kind: "ready" }
  | { readonly kind: "stopped" }
  | { readonly kind: "noPython"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Return why the server is down; null if it accepts requests, or will soon. */
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
  readonly click: "open" | "menu" | "restart";
}

/** Return the status for a server state and the session in view. */
export function statusOf(state: ServerState, session: SessionSummary | null): Status {
  switch (state.kind) {
    case "starting":
      return quiet("$(sync~spin) Codex", "Codex Checkpoints is starting");
    case "indexing":
      return quiet(
        state.percent === null ? "$(sync~spin) Codex" : `$(sync~spin) Codex ${state.percent}%`,
        "Codex Checkpoints is reading your sessions",
      );
    case "ready":
      return session === null
        ? quiet("$(bookmark) Codex", "Codex Checkpoints: no session here yet")
        : sessionStatus(session);
    case "stopped":
      return loud("$(debug-disconnect) Codex", "warning", "The server has stopped");
    case "noPython":
    case "failed":
      return loud("$(error) Codex", "error", state.reason);
    default:
      return state satisfies never;
  }
}

function sessionStatus(session: SessionSummary): Status {
  const suspect = session.suspectFacts ?? 0;
  const full = meter(session);
  const tooltip = [
    cut(subject(session), 80),
    dotted(session.live ? "Running" : "", full === "" ? "" : `Context: ${full}`),
    suspect > 0 ? `Suspect facts: ${suspect}` : "",
    "Click to resume, compact or search",
  ];
  return {
    // No session text: `$(…)` in it would become an icon.
    text: `${session.live ? "$(pulse)" : "$(bookmark)"} ${["Codex", full].join(" ").trim()}`,
    tooltip: tooltip.filter((line) => line !== "").join("\n"),
    spoken: listed(
      session.live ? "Codex session running" : "Codex session in view",
      spokenMeter(session),
    ),
    alert: session.nearlyFull ? "warning" : "none",
    click: "menu",
  };
}

function quiet(text: string, tooltip: string): Status {
  return { text, tooltip, spoken: tooltip, alert: "none", click: "open" };
}

function loud(text: string, alert: "warning" | "error", reason: string): Status {
  const tooltip = `${reason}\nClick to start it again`;
  return { text, tooltip, spoken: listed(reason, "restart"), alert, click: "restart" };
}

/** Checks whether a request is still the newest. */
export class Newest {
  #begun = 0;

  begin(): () => boolean {
    this.#begun += 1;
    const own = this.#begun;
    return () => own === this.#begun;
  }
}

/** Runs one piece of work at a time; calls meanwhile lead to one more run. */
export class OneAtATime {
  readonly #work: () => Promise<void>;
  #isBusy = false;
  #again = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  async run(): Promise<void> {
    this.#again = true;
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    try {
      while (this.#again) {
        this.#again = false;
        await this.#work();
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
