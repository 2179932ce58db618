// Written by `python -m codex_checkpoints.typescript` from server/codex_checkpoints/protocol.py.
// Do not edit: change that file and run the command again.

import { NotificationType, RequestType } from "vscode-jsonrpc";

/**
 * Which sessions are wanted.
 *
 * `cwd` takes sessions of that folder or below it; `search` looks in title, task, folder and id;
 * `cursor` is the `nextCursor` of the answer before.
 */
export interface SessionsParams {
  readonly cwd: string | null;
  readonly archived: boolean;
  readonly search: string | null;
  readonly limit: number | null;
  readonly cursor: string | null;
  readonly workDoneToken: number | string | null;
}

/**
 * One session in a list.
 *
 * `contextTokensSource` is `reported` or `estimated`; `continuedBy` the session that a compaction
 * made current; `parentSession` the one whose subagent this is.
 */
export interface SessionSummary {
  readonly sessionId: string;
  readonly path: string;
  readonly cwd: string | null;
  readonly title: string | null;
  readonly task: string | null;
  readonly updatedAt: string;
  readonly cliVersion: string | null;
  readonly model: string | null;
  readonly contextTokens: number | null;
  readonly contextTokensSource: string;
  readonly contextWindow: number | null;
  readonly windows: number;
  readonly compactions: number;
  readonly suspectFacts: number;
  readonly live: boolean;
  readonly archived: boolean;
  readonly forkedFrom: string | null;
  readonly parentSession: string | null;
  readonly continuedBy: string | null;
  readonly turns: number;
  readonly seq: number;
}

/** A page of sessions, newest first; `nextCursor` is null on the last one. */
export interface SessionList {
  readonly items: readonly SessionSummary[];
  readonly nextCursor: string | null;
}

/** The session by its id, by a unique prefix of 8 characters or more, or by a path. */
export interface SessionParams {
  readonly sessionId: string;
}

/** One turn that is not rolled back; `task` is what the user said last in it. */
export interface TurnEntry {
  readonly turnId: string;
  readonly number: number;
  readonly task: string | null;
  readonly ended: boolean;
  readonly aborted: boolean;
}

/** The caps a view was made with. */
export interface EffectiveCaps {
  readonly maxOpenPlanSteps: number;
  readonly maxDonePlanSteps: number;
  readonly maxDecisions: number;
  readonly maxFactsValid: number;
  readonly maxFactsSuspect: number;
  readonly maxRecentArtifacts: number;
  readonly maxValueChars: number;
}

/** One session with its turns; `problems` and `skipped` say what could not be read. */
export interface SessionDetail {
  readonly summary: SessionSummary;
  readonly turns: readonly TurnEntry[];
  readonly caps: EffectiveCaps;
  readonly problems: readonly string[];
  readonly skipped: Readonly<Record<string, number>>;
}

/** A session, and a turn of it when the state at its end is wanted. */
export interface ShowParams {
  readonly sessionId: string;
  readonly turnId: string | null;
}

/** A session, a turn of it, and some caps by name; the others keep their effective value. */
export interface ViewParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly caps: Readonly<Record<string, unknown>> | null;
}

/** A text as it is stored or injected, byte for byte. */
export interface Text {
  readonly text: string;
}

/** A view, and the caps it was made with. */
export interface ViewText {
  readonly text: string;
  readonly caps: EffectiveCaps;
}

/** Nothing to say. */
export type DoctorParams = Readonly<Record<string, never>>;

/** One thing worth knowing, with a way out; `severity` is `error`, `warning` or `info`. */
export interface DoctorFinding {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly path: string | null;
  readonly count: number;
  readonly wayOut: string;
}

/** What was found, skipped and why; `skipped` counts what gave nothing, by reason. */
export interface DoctorReport {
  readonly codexHome: string;
  readonly stateDir: string;
  readonly sessions: number;
  readonly findings: readonly DoctorFinding[];
  readonly skipped: Readonly<Record<string, number>>;
}

/**
 * Sessions that are not what they were; ask again for what is shown.
 *
 * `seq` counts this server's notifications from 1; a gap means: ask for everything again.
 * `reason` is `rollout` or `workspace`.
 */
export interface Changed {
  readonly sessionIds: readonly string[];
  readonly seq: number;
  readonly reason: string;
}

/** What the client says at the start; `settings` override `config.toml` by name. */
export interface InitializationOptions {
  readonly codexHome: string | null;
  readonly stateDir: string | null;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The error code of every refusal; its `data` is a `Refused`. */
export const REFUSED = 1;

/** The refusal codes in use. */
export type RefusalCode =
  | "unknown_session"
  | "ambiguous_session"
  | "unknown_turn"
  | "unreadable_source"
  | "invalid_payload"
  | "storage_error"
  | "cancelled";

/** What a refusal carries: its code, and facts that a caller may act on. */
export interface Refused {
  readonly code: RefusalCode;
  readonly facts: Readonly<Record<string, unknown>>;
}

export const SessionsRequest = new RequestType<SessionsParams, SessionList, Refused>(
  "checkpoints/sessions",
);

export const SessionRequest = new RequestType<SessionParams, SessionDetail, Refused>(
  "checkpoints/session",
);

export const ShowRequest = new RequestType<ShowParams, Text, Refused>("checkpoints/show");

export const ViewRequest = new RequestType<ViewParams, ViewText, Refused>("checkpoints/view");

export const DoctorRequest = new RequestType<DoctorParams, DoctorReport, Refused>(
  "checkpoints/doctor",
);

export const ChangedNotification = new NotificationType<Changed>("checkpoints/changed");
