// Written by `python -m codex_checkpoints.typescript` from server/codex_checkpoints/protocol.py.
// Do not edit: change that file and run the command again.

import { NotificationType, RequestType } from "vscode-jsonrpc";

/**
 * Which sessions are wanted.
 *
 * `cwd` takes sessions of that folder or below it, `outside` leaves out those of some folders or
 * below them; `search` looks in title, task, folder and id;
 * `cursor` is the `nextCursor` of the answer before.
 */
export interface SessionsParams {
  readonly cwd: string | null;
  readonly outside: readonly string[];
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
 * made current; `parentSession` the one whose subagent this is; `named` whether the title is a
 * name that somebody gave.
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
  readonly named: boolean;
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

/** A session and one payload of `memory.apply`; with `dryRun` it is only judged. */
export interface ApplyParams {
  readonly sessionId: string;
  readonly payload: unknown;
  readonly dryRun: boolean;
}

/**
 * An update that was accepted, or would be.
 *
 * `updateId` is null where it was only judged, `id` for a plan; `shortened` names the texts and
 * steps that are kept in part.
 */
export interface Applied {
  readonly accepted: boolean;
  readonly dryRun: boolean;
  readonly sessionId: string;
  readonly updateId: string | null;
  readonly seq: number;
  readonly turnId: string | null;
  readonly kind: string;
  readonly id: string | null;
  readonly shortened: readonly string[];
}

/** What a note rests on; `source` is `user`, `file` or `tool_output`. */
export interface NoteEvidence {
  readonly source: string;
  readonly ref: string;
  readonly hash: string | null;
}

/** An artifact that a fact stands and falls with: its hash then, its hash now. */
export interface NoteDependency {
  readonly uri: string;
  readonly hash: string | null;
  readonly current: string | null;
  readonly holds: boolean;
}

/**
 * A fact or a decision that counts; what the other kind alone has is null or empty.
 *
 * `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
 * that does not hold.
 */
export interface Note {
  readonly kind: string;
  readonly id: string;
  readonly value: string | null;
  readonly topic: string | null;
  readonly decision: string | null;
  readonly rationale: string | null;
  readonly supersedes: string | null;
  readonly supersededBy: string | null;
  readonly status: string | null;
  readonly why: string | null;
  readonly evidence: NoteEvidence;
  readonly dependsOn: readonly NoteDependency[];
  readonly seq: number;
  readonly turnId: string | null;
  readonly acceptedAt: string | null;
}

/** Facts by key, then decisions in the order of their acceptance. */
export interface NoteList {
  readonly items: readonly Note[];
  readonly nextCursor: string | null;
}

/** A session and a note of it; `kind` where a fact and a decision have the same id. */
export interface RevokeParams {
  readonly sessionId: string;
  readonly id: string;
  readonly kind: string | null;
}

/** A note that counts no longer. */
export interface Revoked {
  readonly sessionId: string;
  readonly kind: string;
  readonly id: string;
  readonly seq: number;
}

/** A session, and how many anchors of each source are wanted. */
export interface AnchorsParams {
  readonly sessionId: string;
  readonly limit: number | null;
}

/** Something that evidence may name; `text` are its first words. */
export interface Anchor {
  readonly source: string;
  readonly ref: string;
  readonly text: string;
  readonly seq: number;
}

/** Messages, tool calls and files, the newest of each first. */
export interface AnchorList {
  readonly items: readonly Anchor[];
  readonly nextCursor: string | null;
}

/** A session, and the `ref` of an anchor of it: a message or a tool call. */
export interface RecordParams {
  readonly sessionId: string;
  readonly ref: string;
}

/**
 * Where a session stands among its context windows; what no record tells is null.
 *
 * `number` counts from 0; `previous` is null in the first window.
 */
export interface WindowChain {
  readonly first: string | null;
  readonly previous: string | null;
  readonly current: string | null;
  readonly number: number | null;
}

/**
 * What Codex would send when the session is resumed, without what the next turn adds.
 *
 * `items` are response items, calls paired, outputs cut, without ids.  `reconstructed` says that
 * part of them had to be made of user messages, since a compaction kept no history of its own.
 * `contextTokensSource` is `reported` or `estimated`; with `contextTokensFlagged` the number is
 * larger than the window, and nothing is decided by it.
 */
export interface History {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly reconstructed: boolean;
  readonly windows: WindowChain;
  readonly contextTokens: number | null;
  readonly contextTokensSource: string;
  readonly contextTokensFlagged: boolean;
  readonly contextWindow: number | null;
}

/**
 * One context window: number 0 is the first, each compaction opened another.
 *
 * `trigger` is `manual`, `pre_turn` or `mid_turn`; `strategy` is `checkpoint` or `codex` for ours,
 * `local`, `remote` or `fresh` for those of Codex; null is what the file does not tell.
 */
export interface Window {
  readonly number: number;
  readonly windowId: string | null;
  readonly previousWindowId: string | null;
  readonly openedAtSeq: number;
  readonly openedAt: string | null;
  readonly trigger: string | null;
  readonly strategy: string | null;
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
}

/** The windows of a session that count, the first one first. */
export interface WindowList {
  readonly items: readonly Window[];
  readonly nextCursor: string | null;
}

/** A session and what to call it; an empty name takes the old one back. */
export interface RenameParams {
  readonly sessionId: string;
  readonly name: string;
}

/** A session that is there no longer. */
export interface Deleted {
  readonly sessionId: string;
  readonly deleted: boolean;
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
 * What is wished: to connect, or to `remove`; to see it only (`dryRun`), or how things stand.
 *
 * `cwd` is the folder whose project may have a configuration of its own.
 */
export interface ConnectParams {
  readonly dryRun: boolean;
  readonly remove: boolean;
  readonly status: boolean;
  readonly cwd: string | null;
}

/**
 * One way in which Codex calls us: `hook` or `mcp`.
 *
 * `trusted` is null where that is not known; Codex asks for no trust in an MCP server.  `problem`
 * is null or `not_configured`, `incomplete`, `program_missing`, `other_program`, `failed`.
 */
export interface ConnectDoor {
  readonly door: string;
  readonly configured: boolean;
  readonly trusted: boolean | null;
  readonly lastRanAt: string | null;
  readonly lastSession: string | null;
  readonly problem: string | null;
}

/** A hook of ours; `trust` is Codex's word: `trusted`, `untrusted`, `modified`, `managed`. */
export interface ConnectHook {
  readonly event: string;
  readonly configured: boolean;
  readonly trust: string | null;
  readonly enabled: boolean | null;
}

/** Another Codex home of this user, and whether it is connected. */
export interface ConnectHome {
  readonly codexHome: string;
  readonly connected: boolean;
}

/**
 * A file of Codex's that was changed, or would be; `action` is `create`, `edit` or `delete`.
 *
 * `diff` shows what comes and goes, and nothing of what stays.
 */
export interface ConnectChange {
  readonly path: string;
  readonly action: string;
  readonly diff: string;
  readonly backup: string | null;
}

/**
 * How Codex and we are connected, and what was `written` or would be.
 *
 * `codexProblem` is null or `codex_not_found`, `timed_out`, `codex_failed`, `hooks_unknown`.
 */
export interface ConnectReport {
  readonly codexHome: string;
  readonly codexPath: string | null;
  readonly codexVersion: string | null;
  readonly codexProblem: string | null;
  readonly doors: readonly ConnectDoor[];
  readonly hooks: readonly ConnectHook[];
  readonly otherHomes: readonly ConnectHome[];
  readonly problems: readonly string[];
  readonly wayOut: string | null;
  readonly written: boolean;
  readonly changes: readonly ConnectChange[];
}

/**
 * Sessions that are not what they were; ask again for what is shown.
 *
 * `seq` counts this server's notifications from 1; a gap means: ask for everything again.
 * `reason` is `rollout`, `workspace` or `memory`.
 */
export interface Changed {
  readonly sessionIds: readonly string[];
  readonly seq: number;
  readonly reason: string;
}

/**
 * Files that Codex edited though neither the plan nor recent work speaks of them.
 *
 * Sent only where the setting `driftGuard` asks for it, once for the new records of a session.
 * `seq` is that of the session after them.
 */
export interface Strayed {
  readonly sessionId: string;
  readonly uris: readonly string[];
  readonly seq: number;
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
  | "session_live"
  | "unknown_note"
  | "invalid_payload"
  | "limit_exceeded"
  | "secret_text"
  | "policy_text"
  | "evidence_missing"
  | "evidence_unknown"
  | "depends_on_missing"
  | "forged_hash"
  | "supersedes_unknown"
  | "conflict"
  | "missing_context"
  | "codex_not_found"
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

export const ApplyUpdateRequest = new RequestType<ApplyParams, Applied, Refused>(
  "checkpoints/applyUpdate",
);

export const NotesRequest = new RequestType<SessionParams, NoteList, Refused>("checkpoints/notes");

export const RevokeNoteRequest = new RequestType<RevokeParams, Revoked, Refused>(
  "checkpoints/revokeNote",
);

export const AnchorsRequest = new RequestType<AnchorsParams, AnchorList, Refused>(
  "checkpoints/anchors",
);

export const RecordRequest = new RequestType<RecordParams, Text, Refused>("checkpoints/record");

export const HistoryRequest = new RequestType<SessionParams, History, Refused>(
  "checkpoints/history",
);

export const WindowsRequest = new RequestType<SessionParams, WindowList, Refused>(
  "checkpoints/windows",
);

export const RenameRequest = new RequestType<RenameParams, SessionSummary, Refused>(
  "checkpoints/rename",
);

export const ArchiveRequest = new RequestType<SessionParams, SessionSummary, Refused>(
  "checkpoints/archive",
);

export const UnarchiveRequest = new RequestType<SessionParams, SessionSummary, Refused>(
  "checkpoints/unarchive",
);

export const DeleteRequest = new RequestType<SessionParams, Deleted, Refused>("checkpoints/delete");

export const ConnectRequest = new RequestType<ConnectParams, ConnectReport, Refused>(
  "checkpoints/connect",
);

export const DoctorRequest = new RequestType<DoctorParams, DoctorReport, Refused>(
  "checkpoints/doctor",
);

export const ChangedNotification = new NotificationType<Changed>("checkpoints/changed");

export const StrayedNotification = new NotificationType<Strayed>("checkpoints/strayed");
