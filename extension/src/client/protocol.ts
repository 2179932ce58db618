// Written by `python -m codex_checkpoints.doors.typescript` from its doors/protocol.py.
// Do not edit: change that package and run the command again.

import { NotificationType } from "vscode-jsonrpc";

/**
 * The sessions to list: those in or below `cwd`, and not in or below `outside`.
 *
 * `search` looks in title, task, folder and id; `cursor` is the `nextCursor` of the last answer.
 * `read` reads every session whole first, which takes long; else unknown values are null.  `early`
 * answers as soon as the newest sessions are known, while a server that has just started still
 * reads the others: a caller with `early` asks again.
 */
export interface SessionsParams {
  readonly cwd: string | null;
  readonly outside: readonly string[];
  readonly archived: boolean;
  readonly search: string | null;
  readonly limit: number | null;
  readonly cursor: string | null;
  readonly read: boolean;
  readonly early: boolean;
  readonly workDoneToken: number | string | null;
}

/** The repository in which a session began, as Codex noted it. */
export interface Git {
  readonly commit: string | null;
  readonly branch: string | null;
  readonly repositoryUrl: string | null;
}

/**
 * A proposal to compact before the next turn: `tokens` have reached `trigger`.
 *
 * A compaction stays below `target`.  `tokensSource` is `reported` or `estimated`;
 * `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
 */
export interface Offer {
  readonly tokens: number;
  readonly tokensSource: string;
  readonly trigger: number;
  readonly target: number;
  readonly window: number;
  readonly windowSource: string;
}

/**
 * One session in a list; a null value is unknown before the session was read whole.
 *
 * `startFolder` is the folder in which it began, and `fileTime` the time of the last change of its
 * file, UTC: clients show these where `cwd` or `updatedAt` is null.
 * `contextTokensSource` is `reported` or `estimated`; `continuedBy` the session in which a
 * compaction went on; `parentSession` the one whose subagent this is; `named`: the title was given
 * by a person; `nearlyFull`: its tokens have reached the trigger of its window; `overWindow`: a
 * service reported more tokens than the window has, so the report is ignored; `refused` says why
 * Codex does not resume it, as far as it was read; `branches` counts sessions made from it;
 * `madeBy` is `restore`, `compaction`, `import`, `pull`, or null for Codex; `undone`: the
 * compaction that made it was undone; `source` is its origin, `cli`, `vscode`, `exec`, `mcp`,
 * `subagent`, `review`, `compact`, `memory`, `guardian` or another name; `background`: nobody
 * types in it, so lists fold it away.
 */
export interface SessionSummary {
  readonly sessionId: string;
  readonly path: string;
  readonly cwd: string | null;
  readonly title: string | null;
  readonly task: string | null;
  readonly updatedAt: string | null;
  readonly cliVersion: string | null;
  readonly model: string | null;
  readonly contextTokens: number | null;
  readonly contextTokensSource: string | null;
  readonly contextWindow: number | null;
  readonly windows: number | null;
  readonly compactions: number | null;
  readonly suspectFacts: number | null;
  readonly live: boolean;
  readonly archived: boolean;
  readonly forkedFrom: string | null;
  readonly parentSession: string | null;
  readonly source: string | null;
  readonly background: boolean;
  readonly continuedBy: string | null;
  readonly turns: number | null;
  readonly seq: number | null;
  readonly named: boolean;
  readonly markers: number;
  readonly branches: number;
  readonly madeBy: string | null;
  readonly undone: boolean;
  readonly nearlyFull: boolean | null;
  readonly overWindow: boolean | null;
  readonly refused: string | null;
  readonly git: Git | null;
  readonly offer: Offer | null;
  readonly startFolder: string | null;
  readonly fileTime: string;
}

/**
 * A page of sessions, newest first; `nextCursor` is null on the last one.
 *
 * `left` is how many more there are.
 */
export interface SessionList {
  readonly items: readonly SessionSummary[];
  readonly nextCursor: string | null;
  readonly left: number;
}

/** A session: its id, a unique prefix of 8 characters or more, a path, or its name. */
export interface SessionParams {
  readonly sessionId: string;
}

/**
 * One turn that is not rolled back; `task` is the user's last message in it.
 *
 * `startedAt` is the time of its first message, UTC, null if no record gives it.
 */
export interface TurnEntry {
  readonly turnId: string;
  readonly number: number;
  readonly task: string | null;
  readonly ended: boolean;
  readonly aborted: boolean;
  readonly startedAt: string | null;
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

/**
 * A context that Codex was given; of the text only digest and size are kept.
 *
 * `door` is `hook` or `memory.read`; `event` and `source` are the occasion of a hook; `isCurrent`
 * says whether it would get the very same text now.
 */
export interface Receipt {
  readonly at: string;
  readonly door: string;
  readonly event: string | null;
  readonly source: string | null;
  readonly windowId: string | null;
  readonly seq: number | null;
  readonly digest: string;
  readonly size: number;
  readonly isCurrent: boolean;
}

/**
 * The size of a window, and the trigger and target of a compaction, in tokens.
 *
 * `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
 */
export interface WindowBudget {
  readonly window: number;
  readonly windowSource: string;
  readonly reserve: number;
  readonly trigger: number;
  readonly target: number;
}

/**
 * One session with its turns; `problems` and `skipped` are the unreadable parts.
 *
 * `received` is the last context that Codex was given of it; `outlineBudget` is the smaller
 * model's.
 */
export interface SessionDetail {
  readonly summary: SessionSummary;
  readonly turns: readonly TurnEntry[];
  readonly caps: EffectiveCaps;
  readonly problems: readonly string[];
  readonly skipped: Readonly<Record<string, number>>;
  readonly received: Receipt | null;
  readonly budget: WindowBudget;
  readonly outlineBudget: WindowBudget;
}

/** A session, and a turn for the state at its end. */
export interface ShowParams {
  readonly sessionId: string;
  readonly turnId: string | null;
}

/**
 * A recent artifact; `words` describe its state, empty if it needs no remark.
 *
 * `state` is null for a file that is unchanged since the session saw it, and for a command that
 * did not fail. `seen` says when the session last saw a file, as `turn 4`.
 */
export interface RecentArtifact {
  readonly uri: string;
  readonly kind: string;
  readonly state: string | null;
  readonly words: string;
  readonly seen: string;
}

/**
 * A checkpoint, and its description for people.
 *
 * `changed` are the uris of files that changed since the session saw them.  `planOrigin` says
 * which turn the plan is from, as `from turn 9`, and is empty for the newest turn.  `recent` are
 * the recent artifacts: files first, then commands, then tool outputs.
 */
export interface CheckpointText {
  readonly text: string;
  readonly changed: readonly string[];
  readonly planOrigin: string;
  readonly recent: readonly RecentArtifact[];
}

/** A session, a turn of it, and caps by name that override the effective ones. */
export interface ViewParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly caps: Readonly<Record<string, unknown>> | null;
}

/** A view, and the caps it was made with. */
export interface ViewText {
  readonly text: string;
  readonly caps: EffectiveCaps;
}

/** A session, a turn for the digest at its end, and the budget, null for the usual one. */
export interface DigestParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly tokens: number | null;
}

/**
 * One line: its section, its anchor, its turn, and the reason it is quoted.
 *
 * `tokens` is ceil(UTF-8 bytes / 4) of the line with its LF.
 */
export interface DigestLine {
  readonly section: string;
  readonly ref: string | null;
  readonly turn: number | null;
  readonly turnId: string | null;
  readonly sessionId: string | null;
  readonly text: string;
  readonly tokens: number;
  readonly why: string;
}

/** A digest: its text, its cost, and its lines; `left` counts the omitted entries by section. */
export interface SessionDigest {
  readonly text: string;
  readonly tokens: number;
  readonly budget: number;
  readonly lines: readonly DigestLine[];
  readonly left: Readonly<Record<string, number>>;
}

/**
 * A session, and the anchor of a record of it, or a text that lines contain.
 *
 * `ref` is `#12`, `12`, `t3`, or the id of a message or a call; the text is given from `offset`
 * on, or from a little above the first line that contains `near`, a line as a search returns it.
 * `limit` is the most lines for a `query`.
 */
export interface RecallParams {
  readonly sessionId: string;
  readonly ref: string | null;
  readonly query: string | null;
  readonly offset: number;
  readonly near: string | null;
  readonly limit: number;
}

/**
 * The record of an anchor: at most 8,000 code points of its text, from `offset` on.
 *
 * `total` is the length of the whole text, redacted.  `turn` is the number of its turn, null in a
 * session that this one continues.  `kind` is `user`, `assistant`, `call`, `output`, `patch` or
 * `summary`, the first record's if several have the number.
 */
export interface Recalled {
  readonly ref: string;
  readonly sessionId: string;
  readonly turn: number | null;
  readonly turnId: string | null;
  readonly kind: string;
  readonly text: string;
  readonly offset: number;
  readonly total: number;
}

/** A line that contains the text, and the anchor of its record. */
export interface Hit {
  readonly ref: string;
  readonly sessionId: string;
  readonly turn: number | null;
  readonly turnId: string | null;
  readonly kind: string;
  readonly line: string;
}

/** The record of an anchor, or the lines that contain a text, the newest first. */
export interface RecallAnswer {
  readonly record: Recalled | null;
  readonly items: readonly Hit[];
}

/**
 * A text, and the sessions to search: those in or below `cwd`, or the archived ones instead.
 *
 * With `sessionId` only one session is searched, with all its bases.  `kind` is `user`,
 * `assistant`, `command`, `output`, `patch` or `error`; with `file` the text is a path, and the
 * hits are the turns that read or changed that file.  `limit` null asks for all hits.
 */
export interface SearchParams {
  readonly text: string;
  readonly cwd: string | null;
  readonly archived: boolean;
  readonly limit: number | null;
  readonly kind: string | null;
  readonly sessionId: string | null;
  readonly workDoneToken: number | string | null;
  readonly partialResultToken: number | string | null;
}

/**
 * A line that contains the text, with its place and its session.
 *
 * `turn` is null for a turn that was rolled back, and before the first one.  `at` is the time of
 * the record, `updated_at` the time of the session's last record.
 */
export interface FoundLine {
  readonly sessionId: string;
  readonly title: string | null;
  readonly cwd: string | null;
  readonly updatedAt: string | null;
  readonly turn: number | null;
  readonly turnId: string | null;
  readonly seq: number;
  readonly kind: string;
  readonly line: string;
  readonly at: string | null;
}

/**
 * Lines, of the newest session first; `more`: the limit left some out.
 *
 * Those that were reported to `partialResultToken` are not repeated.
 */
export interface SearchAnswer {
  readonly items: readonly FoundLine[];
  readonly more: boolean;
}

/**
 * As `SearchParams`, for a search whose hits are grouped by session.
 *
 * `kinds` are several of the kinds, none for all.  `perSession` is the most hits of a session.
 * With `carried` false the bases of a session that is named are not searched.
 */
export interface SearchSessionsParams {
  readonly text: string;
  readonly cwd: string | null;
  readonly archived: boolean;
  readonly limit: number | null;
  readonly perSession: number | null;
  readonly kinds: readonly string[];
  readonly sessionId: string | null;
  readonly carried: boolean;
  readonly workDoneToken: number | string | null;
  readonly partialResultToken: number | string | null;
}

/**
 * A line that contains the text, and its place.
 *
 * `turn` is null for a turn that was rolled back, and before the first one.  `at` is the time of
 * the record.
 */
export interface SearchHit {
  readonly turn: number | null;
  readonly turnId: string | null;
  readonly seq: number;
  readonly kind: string;
  readonly line: string;
  readonly at: string | null;
}

/** The hits in one session, newest first; `count` includes those above the limit. */
export interface SessionHits {
  readonly session: SessionSummary;
  readonly count: number;
  readonly hits: readonly SearchHit[];
}

/**
 * Sessions with hits, the newest first; `more`: the limit of all hits left some out.
 *
 * Those that were reported to `partialResultToken` are not repeated.
 */
export interface SearchSessionsAnswer {
  readonly items: readonly SessionHits[];
  readonly more: boolean;
}

/** A session and one payload of `memory.apply`; with `dryRun` it is only checked. */
export interface ApplyParams {
  readonly sessionId: string;
  readonly payload: unknown;
  readonly dryRun: boolean;
}

/** A `fact` or a `decision` that newer ones replaced for lack of space. */
export interface Evicted {
  readonly kind: string;
  readonly id: string;
}

/**
 * An update that was accepted, or would be.
 *
 * `updateId` is null for a dry run, `id` for a plan; `shortened` names the texts and lists that
 * were cut, `evicted` the notes that were removed to make space.
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
  readonly evicted: readonly Evicted[];
}

/** The basis of a note; `source` is `user`, `file` or `tool_output`. */
export interface NoteEvidence {
  readonly source: string;
  readonly ref: string;
  readonly hash: string | null;
}

/** A dependency of a fact: its hash when the fact was accepted, and its current hash. */
export interface NoteDependency {
  readonly uri: string;
  readonly hash: string | null;
  readonly current: string | null;
  readonly holds: boolean;
}

/**
 * A fact or a decision that counts; the fields of the other kind are null or empty.
 *
 * `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
 * that does not hold.  `evicted`: it does not count any more, since newer ones left no room for
 * it.
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
  readonly evicted: boolean;
}

/** Facts by key, then decisions in the order of their acceptance. */
export interface NoteList {
  readonly items: readonly Note[];
  readonly nextCursor: string | null;
}

/** A session and a note of it; `kind` if a fact and a decision have the same id. */
export interface RevokeParams {
  readonly sessionId: string;
  readonly id: string;
  readonly kind: string | null;
}

/** A note that was revoked. */
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

/** A message or a call that evidence can name; `text` is its beginning. */
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

/**
 * The place of a session among its windows; null if not recorded.
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
 * The history that Codex would send when the session is resumed, without the next turn's part.
 *
 * `items` are response items, calls paired, outputs cut, without ids.  `reconstructed`: a part is
 * made of user messages, since a compaction kept no history.  `contextTokensSource` is `reported`
 * or `estimated`; `contextTokensFlagged`: more than the window, so nothing is decided by it.
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
 * `local`, `remote` or `fresh` for Codex's.  `received` is the last view that Codex was given in
 * it; `compactionId` is the compaction of ours that opened it, and `undone` whether that was
 * undone.
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
  readonly received: Receipt | null;
  readonly compactionId: string | null;
  readonly undone: boolean;
}

/** The windows of a session, the first one first. */
export interface WindowList {
  readonly items: readonly Window[];
  readonly nextCursor: string | null;
}

/** A stretch of older turns, and of the windows they began in; `text` is of its first turn. */
export interface OutlineChunk {
  readonly first: number;
  readonly last: number;
  readonly firstWindow: number;
  readonly lastWindow: number;
  readonly text: string;
}

/** A recent turn: its number from 1, its id, the window it began in, its first words. */
export interface OutlineTurn {
  readonly number: number;
  readonly turnId: string;
  readonly window: number;
  readonly text: string;
}

/** The visible form of a session, bounded: at most 16 chunks, then the recent turns. */
export interface Outline {
  readonly chunks: readonly OutlineChunk[];
  readonly recent: readonly OutlineTurn[];
}

/** How many things were lost, kept, or are unknown; those that are not listed count too. */
export interface Totals {
  readonly lost: number;
  readonly kept: number;
  readonly unknown: number;
}

/**
 * The task, or an open step of the plan, and whether the replacement still contains its text.
 *
 * `ref` is the message or the call it comes from, `seq` the record, null if this session has
 * none.  `lost` is null if part of the replacement is encrypted and nobody can tell.
 */
export interface LostText {
  readonly text: string;
  readonly ref: string | null;
  readonly seq: number | null;
  readonly lost: boolean | null;
}

/**
 * A file that was changed in the window before, and whether the replacement names it.
 *
 * `change` is `add`, `update`, `delete` or `move`; `ref` is the call that did it last.
 */
export interface LostFile {
  readonly uri: string;
  readonly change: string;
  readonly ref: string | null;
  readonly seq: number;
  readonly lost: boolean | null;
}

/** A command that had failed when it was run last, and whether the replacement names it. */
export interface LostCommand {
  readonly command: string;
  readonly exitCode: number | null;
  readonly ref: string | null;
  readonly seq: number;
  readonly lost: boolean | null;
}

/** A file that was read again unchanged, how often, and the last record that did it. */
export interface Reread {
  readonly uri: string;
  readonly times: number;
  readonly ref: string | null;
  readonly seq: number;
}

/**
 * One compaction: the facts its replacement lacks, and the files read again since.
 *
 * `number` is null if a rollback took its window away (`counts` is false).  `sealed`: a part is
 * encrypted, and facts missing from the rest are unknown.  `taskPresent` is null if that is
 * unknown or the session has no task.  `reads` are the reads of files up to the next compaction,
 * `rereadsUnchanged` the reads of files that did not change, `bytes` their output.
 */
export interface Loss {
  readonly number: number | null;
  readonly windowId: string | null;
  readonly openedAtSeq: number;
  readonly openedAt: string | null;
  readonly trigger: string | null;
  readonly strategy: string | null;
  readonly counts: boolean;
  readonly sealed: boolean;
  readonly totals: Totals;
  readonly taskPresent: boolean | null;
  readonly task: LostText | null;
  readonly openPlanSteps: readonly LostText[];
  readonly editedFiles: readonly LostFile[];
  readonly failingCommands: readonly LostCommand[];
  readonly notListed: number;
  readonly reads: number;
  readonly rereadsUnchanged: number;
  readonly bytes: number;
  readonly rereads: readonly Reread[];
}

/** The compactions of a session, the oldest first. */
export interface LossList {
  readonly items: readonly Loss[];
  readonly nextCursor: string | null;
}

/**
 * One turn, or several that follow each other.
 *
 * Number, id, `seq` and start belong to the first one; end, outcome, tokens and window to the last
 * one.  `seq` is the number of its first record.  `endedAt` is null while the turn is open.
 * `reason` says why a turn failed, in Codex's words.  `contextTokens` is the last credible report
 * of the context in use, `mostTokens` the largest, which is higher if it was compacted meanwhile.
 * `filesChanged` counts different files of a turn; `checksFailed` the checks and chores that
 * failed, without looks.
 */
export interface TimelineTurn {
  readonly turn: number;
  readonly turnId: string;
  readonly seq: number;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly outcome: string;
  readonly contextTokens: number | null;
  readonly mostTokens: number | null;
  readonly window: number;
  readonly calls: number;
  readonly filesChanged: number;
  readonly checksFailed: number;
  readonly reason: string | null;
}

/**
 * An event of a session, with the last turn at that time.
 *
 * `kind` is `compaction`, one that was not undone, `marker`, or `branch`: another session was made
 * from this one.  `id` is the id of the compaction of ours, or else of the window; of the marker;
 * of the other session.  All but `kind` are null if not recorded; without a `seq` the turn follows
 * from the time.
 */
export interface TimelineEvent {
  readonly kind: string;
  readonly turn: number | null;
  readonly seq: number | null;
  readonly at: string | null;
  readonly id: string | null;
}

/**
 * The turns of a session that were not rolled back, and its events, each in order.
 *
 * There are at most 400 rows: `merged` is the number of turns that a row represents, usually 1.
 * There are at most the 1,024 newest events.
 */
export interface SessionTimeline {
  readonly turns: readonly TimelineTurn[];
  readonly events: readonly TimelineEvent[];
  readonly merged: number;
}

/** A session, one of its turns by id or number, and how many items of it to leave out. */
export interface TranscriptParams {
  readonly sessionId: string;
  readonly turnId: string;
  readonly offset: number;
}

/**
 * A record of a turn: its text, redacted, and its whole length.
 *
 * `kind` is `user`, `assistant`, `plan`, `call`, `output`, `patch` or `summary`.  A plan has a
 * line a step, with `[x]` in front of a done step, `[>]` of one in progress, else `[ ]`.  A long
 * text is cut: `text` is its beginning and `tail`, for an output only, its end.  `about` is the
 * command of an output; `exitCode` is how it ended, null if the output does not show it.
 * `failed`: a command failed, or a patch was not applied.  `answered`: the output of a call is
 * further on in the turn.
 */
export interface TranscriptItem {
  readonly ref: string;
  readonly kind: string;
  readonly text: string;
  readonly tail: string;
  readonly total: number;
  readonly about: string;
  readonly exitCode: number | null;
  readonly failed: boolean;
  readonly answered: boolean;
  readonly at: string | null;
}

/**
 * A turn with its items from `offset` on; `nextOffset` is null if no more follow.
 *
 * `total` counts all items of the turn.
 */
export interface TurnTranscript {
  readonly turnId: string;
  readonly turn: number | null;
  readonly items: readonly TranscriptItem[];
  readonly nextOffset: number | null;
  readonly total: number;
}

/**
 * Some turns of a session, by id or number: `turnId` alone is that turn.
 *
 * With `afterTurnId` it is all turns after that one, up to `turnId` or to now; with neither the
 * whole session.  `uri` asks for one file only, even if it was only read.  With `texts` the answer
 * has texts and patches; `bases` are by uri texts that files may have had before the session, as
 * git has them, or at some time in it.
 */
export interface ChangesParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly afterTurnId: string | null;
  readonly uri: string | null;
  readonly texts: boolean;
  readonly bases: Readonly<Record<string, string>>;
}

/**
 * One change of a file: its turn and its record, and the rows of its hunks, redacted.
 *
 * `text` is null if no patch shows the change.
 */
export interface FilePatch {
  readonly ref: string;
  readonly turn: number | null;
  readonly text: string | null;
}

/**
 * The effect of the turns on a file.
 *
 * `kind` is `created`, `changed`, `deleted`, `moved`, `put_back` (by git, and left so) or `read`;
 * `movedFrom` and `movedTo` are the other end of a move.  `added` and `removed` count lines, as
 * far as patches show; `turns` are the numbers of the turns that changed it.  `putBack` is the
 * record in which git restored it last; changes since the commit before are not counted then.
 * `seenIn` is the turn in which the session read or changed it last, and `now` compares the
 * present file with that: `same`, `changed`, `gone` or `unknown`.  `before` and `after` are its
 * whole text before the first of these changes and after the turns; null if no hash proves it, if
 * it holds a secret, and without `texts`.
 */
export interface FileChange {
  readonly uri: string;
  readonly kind: string | string;
  readonly movedFrom: string | null;
  readonly movedTo: string | null;
  readonly added: number;
  readonly removed: number;
  readonly turns: readonly number[];
  readonly putBack: string | null;
  readonly seenIn: number | null;
  readonly now: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly patches: readonly FilePatch[];
}

/**
 * The files that were changed, in the order of their names; `left` more are not listed.
 *
 * `unnamed` counts the commands that may have changed files which they do not name.
 */
export interface FileChanges {
  readonly files: readonly FileChange[];
  readonly left: number;
  readonly unnamed: number;
}

/** Two turns by id or number; null is the current state. */
export interface DiffParams {
  readonly sessionId: string;
  readonly fromTurnId: string | null;
  readonly toTurnId: string | null;
}

/**
 * The changes between the ends of two turns.
 *
 * Each entry is `{change, before, after}`; `change` is `added`, `removed` or `changed`.
 * `planReordered`: steps that both have changed places.
 */
export interface Difference {
  readonly sessionId: string;
  readonly fromTurnId: string | null;
  readonly toTurnId: string | null;
  readonly task: Readonly<Record<string, unknown>> | null;
  readonly plan: readonly Readonly<Record<string, unknown>>[];
  readonly planReordered: boolean;
  readonly decisions: readonly Readonly<Record<string, unknown>>[];
  readonly facts: readonly Readonly<Record<string, unknown>>[];
  readonly artifacts: readonly Readonly<Record<string, unknown>>[];
}

/** A session, a label, and the turn to mark; null is the last one that has ended. */
export interface MarkParams {
  readonly sessionId: string;
  readonly label: string;
  readonly turnId: string | null;
}

/**
 * A saved point on a turn; `origin` is `user` or `compaction`.
 *
 * `turnNumber` is null for a turn that was rolled back (`detached`) or of another session.
 * `remark` is `cut_off` if the turn of a new marker was cut off.
 */
export interface Marker {
  readonly checkpointId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly label: string;
  readonly createdAt: string;
  readonly origin: string;
  readonly turnNumber: number | null;
  readonly detached: boolean;
  readonly remark: string | null;
}

/** The markers of a session in the order of their making. */
export interface MarkerList {
  readonly items: readonly Marker[];
  readonly nextCursor: string | null;
}

/** A session, and a marker by its id or a unique beginning of it. */
export interface UnmarkParams {
  readonly sessionId: string;
  readonly checkpointId: string;
}

/** A marker that was removed. */
export interface Unmarked {
  readonly sessionId: string;
  readonly checkpointId: string;
  readonly removed: boolean;
}

/** A session, a marker of it, and its new label. */
export interface RelabelParams {
  readonly sessionId: string;
  readonly checkpointId: string;
  readonly label: string;
}

/**
 * A session, and one of four: a file, a message, a note, or a text of the user's own.
 *
 * `path` is a file in the folder of the session, or lines of it (`src/a.py#L3-L9`); `message` a
 * reference as for `checkpoints/recall`; `note` the key of a fact or the id of a decision.
 */
export interface PinParams {
  readonly sessionId: string;
  readonly path: string | null;
  readonly message: string | null;
  readonly note: string | null;
  readonly text: string | null;
}

/** A file, or lines of it, or else a message by its anchor, a note, or a text. */
export interface Pin {
  readonly uri: string | null;
  readonly start: number | null;
  readonly end: number | null;
  readonly message: string | null;
  readonly note: string | null;
  readonly text: string | null;
}

/** The pins of a session, the newest last. */
export interface PinList {
  readonly items: readonly Pin[];
  readonly nextCursor: string | null;
}

/**
 * A marker to continue from; `mode` is `soft` or `hard`.
 *
 * `budget` is the tokens of a state pack, null for the setting; `window` the number of the user's
 * last messages in it, 0 to 5; `reason` is quoted in it; `digestTokens` limits the digest up to
 * the marker.
 */
export interface RestoreParams {
  readonly sessionId: string;
  readonly checkpointId: string;
  readonly mode: string;
  readonly budget: number | null;
  readonly window: number;
  readonly reason: string | null;
  readonly digestTokens: number;
  readonly workDoneToken: number | string | null;
}

/** A turn and its session. */
export interface TurnSource {
  readonly sessionId: string;
  readonly turnId: string;
}

/** One thing in the contents, with the part of a pack that it belongs to. */
export interface PackItem {
  readonly part: string;
  readonly id: string;
}

/**
 * One thing that a pack leaves out or shortens.
 *
 * `reason` is `budget`, `filtered` (a finished step, a superseded decision), `evicted` (newer ones
 * took its place), `missing` (a pinned file that does not exist), `no_lines` (it has no such
 * lines), `unreadable`, or `bound` (longer than it may be: it is shortened).
 */
export interface DeferredItem {
  readonly part: string;
  readonly id: string;
  readonly reason: string;
}

/** A warning about a restore: a code, how many things it concerns, a sentence, and the files. */
export interface RestoreWarning {
  readonly code: string;
  readonly count: number;
  readonly message: string;
  readonly files: readonly string[];
}

/**
 * One possible line of a pack; `tokens` is the smallest budget of a pack that holds it.
 *
 * `part` and `id` belong to its item, null for a heading.
 */
export interface PackLine {
  readonly text: string;
  readonly part: string | null;
  readonly id: string | null;
  readonly tokens: number;
}

/**
 * A restore; a preview (`dryRun`) has no ids, no time and no `resume`.
 *
 * `pack` is the text that a hard branch begins with; `headline` and `carried` are for a
 * notification.  `lines` of a hard preview are all possible lines in order: the pack of a budget
 * has those whose `tokens` do not exceed it.  `notes` are the texts of the notes by their `id`.
 */
export interface Restored {
  readonly sourceSessionId: string;
  readonly checkpointId: string;
  readonly sourceTurn: TurnSource;
  readonly label: string;
  readonly mode: string;
  readonly contextReset: boolean;
  readonly markedAt: string;
  readonly included: readonly PackItem[];
  readonly deferred: readonly DeferredItem[];
  readonly warnings: readonly RestoreWarning[];
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
  readonly contextWindow: number | null;
  readonly besideText: string | null;
  readonly pack: string | null;
  readonly packTokens: number | null;
  readonly budget: number | null;
  readonly headline: string;
  readonly carried: string;
  readonly operationId: string | null;
  readonly sessionId: string | null;
  readonly restoredAt: string | null;
  readonly lines: readonly PackLine[];
  readonly notes: Readonly<Record<string, string>>;
  readonly resume: string | null;
  readonly dryRun: boolean;
}

/** A session as source or branch; null lists all restores. */
export interface RestoresParams {
  readonly sessionId: string | null;
}

/** One restore in a list; the last two fields report whether the session files exist. */
export interface RestoreEntry {
  readonly sourceSessionId: string;
  readonly checkpointId: string;
  readonly sourceTurn: TurnSource;
  readonly label: string;
  readonly mode: string;
  readonly contextReset: boolean;
  readonly operationId: string;
  readonly sessionId: string;
  readonly restoredAt: string;
  readonly branchAvailable: boolean;
  readonly sourceAvailable: boolean;
}

/** Restores, the oldest first. */
export interface RestoreList {
  readonly items: readonly RestoreEntry[];
  readonly nextCursor: string | null;
}

/** A restore by its operation. */
export interface RestoreDetailsParams {
  readonly operationId: string;
}

/**
 * Everything about a restore, also if its source or its branch is gone.
 *
 * `chain` leads to the first session; `state` is the checkpoint that a hard branch began with;
 * `pack` is null if the branch is gone or has none.  `sourceUnchanged` says whether the source
 * still begins with the bytes that were restored; null if that cannot be read.
 */
export interface RestoreDetails {
  readonly sourceSessionId: string;
  readonly checkpointId: string;
  readonly sourceTurn: TurnSource;
  readonly label: string;
  readonly mode: string;
  readonly contextReset: boolean;
  readonly markedAt: string;
  readonly included: readonly PackItem[];
  readonly deferred: readonly DeferredItem[];
  readonly warnings: readonly RestoreWarning[];
  readonly tokensBefore: number | null;
  readonly tokensAfter: number | null;
  readonly contextWindow: number | null;
  readonly besideText: string | null;
  readonly pack: string | null;
  readonly packTokens: number | null;
  readonly budget: number | null;
  readonly headline: string;
  readonly carried: string;
  readonly operationId: string;
  readonly sessionId: string;
  readonly restoredAt: string;
  readonly reason: string;
  readonly semantics: number;
  readonly chain: readonly Readonly<Record<string, unknown>>[];
  readonly modes: readonly Readonly<Record<string, unknown>>[];
  readonly references: Readonly<Record<string, unknown>>;
  readonly pinned: readonly Readonly<Record<string, unknown>>[];
  readonly caps: Readonly<Record<string, number>>;
  readonly windows: Readonly<Record<string, unknown>>;
  readonly drift: readonly Readonly<Record<string, unknown>>[];
  readonly missing: readonly Readonly<Record<string, unknown>>[];
  readonly fallbacks: readonly Readonly<Record<string, unknown>>[];
  readonly state: Readonly<Record<string, unknown>> | null;
  readonly resume: string;
  readonly branchTitle: string | null;
  readonly branchAvailable: boolean;
  readonly sourceTitle: string | null;
  readonly sourceAvailable: boolean;
  readonly sourceUnchanged: boolean | null;
}

/**
 * A session, and a turn by id or number, or a marker on one.
 *
 * `files` are the files to restore; null restores all that are on.  `merge` are files to restore
 * although somebody changed other lines of them.  With `texts` a preview has texts, of the named
 * files if any are named.
 */
export interface FilesParams {
  readonly sessionId: string;
  readonly turnId: string | null;
  readonly checkpointId: string | null;
  readonly files: readonly string[] | null;
  readonly merge: readonly string[];
  readonly texts: boolean;
}

/**
 * A file that the session changed after the turn.
 *
 * `state` is the effect of restoring it, or the reason why it is left alone, and `label` the same
 * in words; `proof` is how its earlier bytes are known: `diff`, `hash`, `copy` (made by a hook
 * before Codex wrote it) or `context`.  `added` and `removed` count lines.  `hashNow` is null if
 * there is no file, `hashThen` too, and if it is unknown.  `movedTo` is the place from which it
 * returns.  `offered`: the caller may choose it.  `on`: it is restored by default.  `written`: it
 * was written.  `before` and `after` are its texts now and then, only with `texts`, and null if
 * they hold a secret; `after` of a `new_or_replaced` file is its text in git in the commit at
 * which the session began.
 */
export interface RestoredFile {
  readonly path: string;
  readonly state: string;
  readonly label: string;
  readonly why: string | null;
  readonly proof: string | null;
  readonly added: number;
  readonly removed: number;
  readonly hashNow: string | null;
  readonly hashThen: string | null;
  readonly movedTo: string | null;
  readonly offered: boolean;
  readonly on: boolean;
  readonly written: boolean;
  readonly before: string | null;
  readonly after: string | null;
}

/**
 * The rows of a plan, or of its result; `operationId` is null if nothing was written.
 *
 * `headline` says it in sentences.  `folder` is the session's folder, to which the paths are
 * relative.  `unnamed` counts the commands after the turn that may have changed files without
 * naming them, `remark` says so, and `commands` are the newest of them.
 */
export interface RestoredFiles {
  readonly operationId: string | null;
  readonly sessionId: string;
  readonly turnId: string;
  readonly folder: string;
  readonly headline: string;
  readonly rows: readonly RestoredFile[];
  readonly unnamed: number;
  readonly remark: string | null;
  readonly commands: readonly string[];
}

/** A restore of files, by its operation; it may be an undo itself. */
export interface UndoFilesParams {
  readonly operationId: string;
}

/**
 * The session at one end of a step of the tree, and the kind of the step.
 *
 * `kind` is `restore`, `compaction` or `fork`, `mode` is a restore's, `soft` or `hard`; `at`,
 * `turnId`, `checkpointId` and `operationId` are null if not recorded.  If it is not `available`,
 * only its id is known; `undone`: the compaction that made it was undone.
 */
export interface Branch {
  readonly sessionId: string;
  readonly kind: string;
  readonly mode: string | null;
  readonly at: string | null;
  readonly turnId: string | null;
  readonly checkpointId: string | null;
  readonly operationId: string | null;
  readonly title: string | null;
  readonly available: boolean;
  readonly archived: boolean;
  readonly undone: boolean;
}

/** The session that one was made from, and those made from it, oldest first. */
export interface Branches {
  readonly sessionId: string;
  readonly source: Branch | null;
  readonly items: readonly Branch[];
  readonly nextCursor: string | null;
}

/**
 * How a session was made from its parent, with the exact cut if it is known.
 *
 * `kind` is `restore`, `compaction`, `revert`, `subagent`, `pull`, `fork` or `import`.
 * `afterTurn` is the number of the parent's last turn before the cut, 0 for none.
 */
export interface LineageLink {
  readonly parent: string;
  readonly kind: string;
  readonly at: string | null;
  readonly afterTurn: number | null;
  readonly turnId: string | null;
  readonly ordinalExclusive: number | null;
  readonly byteOffset: number | null;
  readonly checkpointId: string | null;
  readonly operationId: string | null;
}

/** One context window of a session. */
export interface LineageWindow {
  readonly number: number;
  readonly windowId: string | null;
  readonly previousWindowId: string | null;
  readonly openedAtSeq: number | null;
  readonly openedAt: string | null;
}

/**
 * A session or a segment of one; one that is not `available` is only named by another.
 *
 * `undone`: the compaction that made it was undone.
 */
export interface LineageNode {
  readonly id: string;
  readonly depth: number;
  readonly link: LineageLink | null;
  readonly title: string | null;
  readonly available: boolean;
  readonly archived: boolean;
  readonly windows: readonly LineageWindow[];
  readonly updatedAt: string | null;
  readonly undone: boolean;
}

/**
 * The tree of sessions around one, depth first.
 *
 * `circles` are links that were left out since they lead in a circle; `omitted` counts nodes
 * beyond the bound, which spares the session and its ancestors.
 */
export interface Lineage {
  readonly sessionId: string;
  readonly root: string;
  readonly nodes: readonly LineageNode[];
  readonly circles: readonly Readonly<Record<string, unknown>>[];
  readonly omitted: number;
}

/** Events of a session, as source or branch, or of an operation. */
export interface AuditParams {
  readonly sessionId: string | null;
  readonly operationId: string | null;
}

/** Events of the audit log as they were written, the oldest first. */
export interface EventList {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor: string | null;
}

/**
 * A session, and how to compact it.
 *
 * `into` is `new` or `in-place`, `strategy` `checkpoint` or `codex`, `placement` `manual` or
 * `pre_turn`; `digestTokens` is the budget of the digest, null for the setting; `force` overrides
 * `not_smaller`, and `turn_not_complete` of a session not in use.
 */
export interface CompactParams {
  readonly sessionId: string;
  readonly into: string;
  readonly strategy: string;
  readonly placement: string;
  readonly force: boolean;
  readonly digestTokens: number | null;
  readonly workDoneToken: number | string | null;
}

/** A payload that a note replaces: its media type and its size in bytes. */
export interface LeftOut {
  readonly media: string;
  readonly size: number;
}

/**
 * One item of the replaced history: its author, time and line, and its fate.
 *
 * `place` counts the items from 0.  `fate` is `kept`, `truncated`, `replaced`, `over_budget`,
 * `over_target`, `only_payload` or `merged`, where a later message is equal; `cutTokens` is how
 * much a truncated one lost.
 */
export interface CompactionPiece {
  readonly place: number;
  readonly kind: string;
  readonly author: string;
  readonly at: string | null;
  readonly ref: string | null;
  readonly tokens: number;
  readonly fate: string;
  readonly cutTokens: number;
  readonly leftOut: readonly LeftOut[];
}

/** The chain of the source, and the chain of the session where the work continues. */
export interface CompactionWindows {
  readonly before: WindowChain;
  readonly after: WindowChain;
}

/** The result of a hook; `number` counts the hooks of one event from 1. */
export interface HookOutcome {
  readonly number: number;
  readonly outcome: string;
  readonly reason: string | null;
}

/**
 * A message from the user as a replacement has it; `ref` names its record for `recall`.
 *
 * `cutTokens` is the size of the cut in its middle.
 */
export interface KeptMessage {
  readonly ref: string | null;
  readonly at: string | null;
  readonly text: string;
  readonly tokens: number;
  readonly cutTokens: number;
}

/** A warning about a compaction: a code, the number of affected items, and a sentence. */
export interface CompactionWarning {
  readonly code: string;
  readonly count: number;
  readonly message: string;
}

/** The parts of a replacement; `stateTokens` is the size of the how-to text and the view. */
export interface CompactionContents {
  readonly messages: readonly KeptMessage[];
  readonly view: string;
  readonly stateTokens: number;
  readonly digest: SessionDigest;
  readonly warnings: readonly CompactionWarning[];
}

/**
 * A compaction that was done, or a preview (`compactionId` is null), which has `contents`.
 *
 * `sessionId` is the one to resume, `replacement` the history that Codex sends from now on.
 * `tokensBefore`, `tokensAfter` and `bound`, its limit, count everything in use; `tokensBeside` of
 * each is the part besides the history (instructions, tools and standing context), null if the
 * session reported nothing; then these figures are only the history.  `tokensAfter` is
 * `tokensBeside` plus `tokensScale` thousandths of the estimates of everything kept, added and
 * sent again.  `tokensAdded` is the size of the new items: handoff or summary, goal, plan;
 * `digestTokens` the size of the digest in it.  `tokensSentAgain` is the standing context that the
 * next turn sends again.  `remark` is `cut_off` if the last turn was cut off, else `saves_nothing`
 * or `saves_little` if less than a tenth is saved, else null; `remarkText` says it in sentences,
 * and after a compaction whether a goal stays with the old session.  `sizeText` says the limit
 * and `tokensBeside` in sentences; `headline` is for a notification.
 */
export interface Compacted {
  readonly compactionId: string | null;
  readonly sessionId: string | null;
  readonly sourceSessionId: string;
  readonly into: string;
  readonly strategy: string;
  readonly determinism: string;
  readonly placement: string;
  readonly standingContext: string;
  readonly replacement: readonly Readonly<Record<string, unknown>>[];
  readonly tokensBefore: number;
  readonly tokensBeforeSource: string;
  readonly tokensAfter: number;
  readonly tokensAfterSource: string;
  readonly tokensBeside: number | null;
  readonly tokensScale: number;
  readonly tokensAdded: number;
  readonly tokensSentAgain: number;
  readonly remark: string | null;
  readonly remarkText: string | null;
  readonly bound: number;
  readonly sizeText: string;
  readonly headline: string;
  readonly digestTokens: number;
  readonly contextWindow: number | null;
  readonly kindsBefore: Readonly<Record<string, number>>;
  readonly kindsAfter: Readonly<Record<string, number>>;
  readonly kept: readonly CompactionPiece[];
  readonly dropped: readonly CompactionPiece[];
  readonly truncated: readonly CompactionPiece[];
  readonly windows: CompactionWindows;
  readonly hooks: readonly HookOutcome[];
  readonly contents: CompactionContents | null;
  readonly resume: string | null;
}

/** A compaction by its id, by the id of the session that it made, or by a prefix of one. */
export interface UncompactParams {
  readonly compactionId: string;
}

/** A compaction that was undone; `sessionId` is the one to resume. */
export interface Uncompacted {
  readonly compactionId: string;
  readonly sessionId: string;
  readonly sourceSessionId: string;
  readonly into: string;
  readonly resume: string;
}

/** A session to continue. */
export interface ResumeParams {
  readonly sessionId: string;
  readonly workDoneToken: number | string | null;
}

/** Why a compaction that the settings ask for was refused. */
export interface NotCompacted {
  readonly code: string;
  readonly message: string;
}

/**
 * How to resume a session: the command `resume`, to be run in `cwd`.
 *
 * `cwdGone`: the folder is not on this machine, so Codex starts where it is called.  `compacted`
 * is a compaction that the setting `automatic` required, `notCompacted` why it was refused,
 * `offer` one to propose.  `live`: Codex has the session loaded.  `continuedBy`: the session in
 * which its work went on.  `notice` is a sentence for a notification.
 */
export interface Resumed {
  readonly sessionId: string;
  readonly sourceSessionId: string;
  readonly cwd: string | null;
  readonly cwdGone: boolean;
  readonly live: boolean;
  readonly continuedBy: string | null;
  readonly offer: Offer | null;
  readonly compacted: Compacted | null;
  readonly notCompacted: NotCompacted | null;
  readonly notice: string | null;
  readonly resume: string;
}

/** A session, and the file to write, by its whole path; an existing one needs `force`. */
export interface ExportParams {
  readonly sessionId: string;
  readonly file: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  readonly workDoneToken: number | string | null;
}

/** How many of each kind a pack holds; `notes` are facts and decisions. */
export interface PackCounts {
  readonly sessions: number;
  readonly turns: number;
  readonly notes: number;
  readonly noteEvents: number;
  readonly planSteps: number;
  readonly checkpoints: number;
  readonly fileReferences: number;
  readonly modes: number;
  readonly artifacts: number;
  readonly markers: number;
  readonly pins: number;
  readonly lineage: number;
}

/**
 * The things missing in a pack, or different here.
 *
 * `reason` is `outside_folder`, `older_turns`, `older_notes`, `older_markers`, `pinned_words`,
 * `standing_orders`, `missing_files`, `changed_files`, `suspect_facts` or `distant_markers`.
 */
export interface LeftBehind {
  readonly reason: string;
  readonly count: number;
  readonly message: string;
}

/**
 * A pack that was written, or would be (`dryRun`); `digest` is the hash of its bytes.
 *
 * `headline` is for a notification.
 */
export interface Exported {
  readonly sessionId: string;
  readonly file: string;
  readonly bytes: number;
  readonly digest: string;
  readonly counts: PackCounts;
  readonly headline: string;
  readonly leftBehind: readonly LeftBehind[];
  readonly dryRun: boolean;
}

/** A pack by its whole path, and the folder of the new session; null is the server's own. */
export interface ImportParams {
  readonly file: string;
  readonly cwd: string | null;
  readonly dryRun: boolean;
  readonly workDoneToken: number | string | null;
}

/**
 * A session made from a pack; a preview (`dryRun`) has no ids, no time and no `resume`.
 *
 * `sourceSessionId` is the session that was exported, `handoff` the text that a model gets;
 * `headline` is for a notification.
 */
export interface Imported {
  readonly operationId: string | null;
  readonly sessionId: string | null;
  readonly sourceSessionId: string;
  readonly name: string;
  readonly cwd: string;
  readonly importedAt: string | null;
  readonly digest: string;
  readonly counts: PackCounts;
  readonly headline: string;
  readonly leftBehind: readonly LeftBehind[];
  readonly handoff: string;
  readonly handoffTokens: number;
  readonly resume: string | null;
  readonly dryRun: boolean;
}

/** A session and its new name; an empty one removes the name. */
export interface RenameParams {
  readonly sessionId: string;
  readonly name: string;
}

/** A session to archive, or to take out of the archive. */
export interface MoveParams {
  readonly sessionId: string;
  readonly workDoneToken: number | string | null;
}

/** A session of ours; one with turns of the user's own needs `force`. */
export interface DeleteParams {
  readonly sessionId: string;
  readonly force: boolean;
}

/** A session that was deleted. */
export interface Deleted {
  readonly sessionId: string;
  readonly deleted: boolean;
}

/** No parameters. */
export type NoParams = Readonly<Record<string, never>>;

/**
 * The remote that this machine uses, null if none is set; no connection was made.
 *
 * `isServer`: it is a PostgreSQL server, with teams and an audit, and not a folder.
 */
export interface RemoteChoice {
  readonly place: string | null;
  readonly owner: string | null;
  readonly machine: string | null;
  readonly isServer: boolean;
}

/**
 * A folder by its whole path, or `postgresql://…`.
 *
 * With `make` a remote is created there if there is none; else nothing is created or chosen then.
 */
export interface RemoteSetParams {
  readonly place: string;
  readonly make: boolean;
}

/**
 * The remote of this machine; `made` says whether the folder is already a remote.
 *
 * `unreadable` counts sessions with an unreadable row, mostly because the disk is still syncing.
 */
export interface RemoteStatus {
  readonly place: string;
  readonly owner: string;
  readonly machine: string;
  readonly made: boolean;
  readonly sessions: number;
  readonly bytes: number;
  readonly unreadable: number;
}

/**
 * Filters the sessions of the remote: in or below `cwd`, of the owner `user`, with a text.
 *
 * `cursor` is the `nextCursor` of the last answer.
 */
export interface RemoteSessionsParams {
  readonly cwd: string | null;
  readonly user: string | null;
  readonly search: string | null;
  readonly limit: number | null;
  readonly cursor: string | null;
}

/**
 * A session in the remote; `lines` and `bytes` count its history as it was pushed.
 *
 * `forkedFrom` is the session that it branched off, `parentSession` the one that started it as a
 * subagent; neither need be in the remote.  `team` may read it; null: only its owner may.
 */
export interface RemoteSession {
  readonly sessionId: string;
  readonly owner: string;
  readonly machine: string;
  readonly cwd: string | null;
  readonly title: string | null;
  readonly task: string | null;
  readonly updatedAt: string | null;
  readonly pushedAt: string | null;
  readonly cliVersion: string | null;
  readonly model: string | null;
  readonly forkedFrom: string | null;
  readonly parentSession: string | null;
  readonly git: Git | null;
  readonly lines: number;
  readonly bytes: number;
  readonly generation: number;
  readonly team: string | null;
}

/** Sessions of the remote, the latest first; `unreadable` counts those that cannot be read. */
export interface RemoteSessions {
  readonly items: readonly RemoteSession[];
  readonly nextCursor: string | null;
  readonly unreadable: number;
}

/** A session in the remote: its id, or a unique prefix of 8 characters or more. */
export interface RemoteSessionParams {
  readonly sessionId: string;
  readonly workDoneToken: number | string | null;
}

/**
 * A session of the remote, and a copy of its lines here.
 *
 * `path` can be given as the session to all methods that read one.
 */
export interface RemoteSessionFile {
  readonly session: RemoteSession;
  readonly path: string;
}

/**
 * A text of one line, and the sessions to search: in or below `cwd`, of the owner `user`.
 *
 * `kinds` are some of `user`, `assistant`, `command` and `file`, none for all.  `limit` is the
 * most hits, null for 500.
 */
export interface SearchRemoteParams {
  readonly text: string;
  readonly cwd: string | null;
  readonly user: string | null;
  readonly kinds: readonly string[];
  readonly limit: number | null;
  readonly workDoneToken: number | string | null;
}

/** The hits in one session of the remote, newest first. */
export interface RemoteSessionHits {
  readonly session: RemoteSession;
  readonly hits: readonly SearchHit[];
}

/** Sessions with hits, the latest first; `more`: the limit left some out. */
export interface SearchRemoteAnswer {
  readonly items: readonly RemoteSessionHits[];
  readonly more: boolean;
}

/** A session in the remote: its id, or a unique prefix of 8 characters or more. */
export interface RemoteDeleteParams {
  readonly sessionId: string;
}

/** A session that was removed from the remote; the sessions here stay. */
export interface RemoteDeleted {
  readonly sessionId: string;
}

/** A session that was shown before a push: its `lines`, and the `digest` of all of them. */
export interface ShownSession {
  readonly sessionId: string;
  readonly lines: number;
  readonly digest: string;
}

/**
 * Selects the sessions to push: named ones, else those in or below `cwd` changed since a time.
 *
 * `since` is ISO 8601; without a zone it is a local time.  `allowRedacted` also pushes sessions
 * with more than 20 secrets, redacted.  `team` may read them; null: only their owner may.  With
 * `dryRun` nothing is sent.  `shown` are the sessions of such an answer: exactly their lines are
 * sent, although a session may have grown.
 */
export interface PushParams {
  readonly sessionIds: readonly string[];
  readonly cwd: string | null;
  readonly since: string | null;
  readonly allowRedacted: boolean;
  readonly team: string | null;
  readonly dryRun: boolean;
  readonly shown: readonly ShownSession[] | null;
  readonly workDoneToken: number | string | null;
}

/**
 * A session that was pushed, or would be.
 *
 * `bytes` is the size of its outgoing history, `sent` the bytes sent by this push.  `redacted`
 * counts secrets by kind, `leftOut` dropped parts by kind: `images`, `audio`, `binary`,
 * `encrypted`, `unreadable`.
 * `state` is `new` before the push, then `pushed`, `unchanged` or `ahead`.  `digest` is the hash
 * of its outgoing history.
 */
export interface PushedSession {
  readonly sessionId: string;
  readonly title: string | null;
  readonly cwd: string | null;
  readonly lines: number;
  readonly bytes: number;
  readonly sent: number;
  readonly redacted: Readonly<Record<string, number>>;
  readonly leftOut: Readonly<Record<string, number>>;
  readonly state: string;
  readonly digest: string;
}

/** A session that is not pushed, and the reason. */
export interface RefusedSession {
  readonly sessionId: string;
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
}

/** One of the longest outgoing texts: its place, its length, and its beginning. */
export interface LeavingText {
  readonly sessionId: string;
  readonly line: number;
  readonly chars: number;
  readonly beginning: string;
}

/**
 * The sessions to send, for a `team` or only for their owner.
 *
 * `kinds` is the number of secret kinds that redaction knows, and `caution` says what that means
 * for a person; `teams` are those for which this login can push; a folder has none.
 */
export interface Push {
  readonly place: string;
  readonly sessions: readonly PushedSession[];
  readonly refused: readonly RefusedSession[];
  readonly longest: readonly LeavingText[];
  readonly kinds: number;
  readonly caution: string;
  readonly team: string | null;
  readonly teams: readonly string[];
}

/**
 * A session in the remote, and the folder of the branch.
 *
 * `into` null uses the folder of the source if it exists here, else the server's own.
 */
export interface PullParams {
  readonly sessionId: string;
  readonly into: string | null;
  readonly workDoneToken: number | string | null;
}

/**
 * The branch that was made here.
 *
 * `digest` is set if the summary of its current window could not be pulled: `made` if it opens
 * with a digest of ours, `failed` if it opens without one, null if nothing was missing.
 * `before` says that another branch of the same session is here already, null if none is.
 */
export interface PulledSession {
  readonly sessionId: string;
  readonly sourceSessionId: string;
  readonly operationId: string;
  readonly title: string | null;
  readonly owner: string;
  readonly machine: string;
  readonly cwd: string;
  readonly lines: number;
  readonly bytes: number;
  readonly notes: number;
  readonly markers: number;
  readonly digest: string | null;
  readonly before: string | null;
  readonly resume: string;
}

/** Connect, or `remove` the connection; `dryRun` and `status` only report. */
export interface ConnectParams {
  readonly dryRun: boolean;
  readonly remove: boolean;
  readonly status: boolean;
}

/** A failed call after the last successful one. */
export interface ConnectFailure {
  readonly at: string;
  readonly sessionId: string | null;
  readonly code: string;
}

/**
 * One way in which Codex calls us: `hook` or `mcp`.
 *
 * `trusted` is null if that is not known; Codex asks for no trust in an MCP server.  `problem` is
 * null or `not_configured`, `unreadable` (whether it is configured is not known),
 * `program_missing`, `outdated` (not as `connect` would write it), `no_hooks`, `disabled`,
 * `untrusted`, `failed`.  `next` is the remedy: null or `connect`, `repair`, `trust`,
 * `update_codex`, `choose_home`; `wayOut` says it in a sentence.
 */
export interface ConnectDoor {
  readonly door: string;
  readonly configured: boolean;
  readonly trusted: boolean | null;
  readonly lastRanAt: string | null;
  readonly lastSession: string | null;
  readonly failure: ConnectFailure | null;
  readonly problem: string | null;
  readonly next: string | null;
  readonly wayOut: string | null;
}

/** A hook of ours; `trust` is Codex's word: `trusted`, `untrusted`, `modified`, `managed`. */
export interface ConnectHook {
  readonly event: string;
  readonly configured: boolean;
  readonly trust: string | null;
  readonly enabled: boolean | null;
  readonly lastRanAt: string | null;
  readonly lastSession: string | null;
  readonly failure: ConnectFailure | null;
}

/** A written or previewed change of a file of Codex. */
export interface ConnectChange {
  readonly path: string;
  readonly action: string;
  readonly diff: string;
  readonly backup: string | null;
}

/**
 * The connection of Codex with us, and the files that were `written` or would be.
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
  readonly problems: readonly string[];
  readonly wayOut: string | null;
  readonly written: boolean;
  readonly changes: readonly ConnectChange[];
}

/** No params. */
export type DoctorParams = Readonly<Record<string, never>>;

/** A finding with its remedy; `severity` is `error`, `warning` or `info`. */
export interface DoctorFinding {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly path: string | null;
  readonly count: number;
  readonly wayOut: string;
}

/** The findings, and the ignored lines with reasons; `skipped` counts lines without a result. */
export interface DoctorReport {
  readonly codexHome: string;
  readonly stateDir: string;
  readonly sessions: number;
  readonly findings: readonly DoctorFinding[];
  readonly skipped: Readonly<Record<string, number>>;
}

/**
 * A page by its kind, and its subject.
 *
 * `losses`, `digest` and `checkpoint` need `sessionId`, the last two take a turn; `record` needs
 * `sessionId` and `name`, the reference; `compaction` and `restore` need `name`, the id of the
 * compaction or the operation; `import` needs `name`, the whole path of a pack, and takes
 * the `folder` of the new session; `connect`, `disconnect` and `doctor` need nothing.
 */
export interface PageParams {
  readonly kind: string;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly name: string | null;
  readonly folder: string | null;
  readonly workDoneToken: number | string | null;
}

/**
 * The target of a part, by its name: never an address.
 *
 * `kind` is `session`, `record`, `turn`, `file`, `command` or `setting`; `name` is an id, the
 * reference of a record, the id or number of a turn, a path as the checkpoint has it, one of
 * `COMMANDS`, or one of `SETTINGS`.  `sessionId` is the session of the target, null if there is
 * none.
 */
export interface PageLink {
  readonly kind: string;
  readonly name: string;
  readonly sessionId: string | null;
}

/**
 * A part of a line.
 *
 * `form` is `text`, `code` or `time` (UTC, ISO 8601); `state` names an icon: `lost`, `kept`,
 * `unknown`, `error`, `warning`, `info`, `done`, `open`, or null.
 */
export interface PagePart {
  readonly text: string;
  readonly form: string;
  readonly state: string | null;
  readonly link: PageLink | null;
}

/** A line: its parts, side by side. */
export interface PageLine {
  readonly parts: readonly PagePart[];
}

/** A label, empty where it repeats the row above, and a value. */
export interface PageRow {
  readonly label: string;
  readonly value: PageLine;
}

/** The names of the columns, and the rows with a part for each column. */
export interface PageTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly PagePart[])[];
}

/**
 * A part of a page below a heading: sentences, then rows, a table and a text, as there are.
 *
 * `id` is unique on its page.  `count` is shown beside the title; `state` is as in `Part`.
 * `isOpen`: the section begins unfolded.  `textForm` is `text`, `prose`
 * or `diff`; the first and the last are in the font of code.
 */
export interface PageSection {
  readonly id: string;
  readonly title: string;
  readonly sentences: readonly PageLine[];
  readonly rows: readonly PageRow[];
  readonly table: PageTable | null;
  readonly text: string | null;
  readonly textForm: string;
  readonly count: number | null;
  readonly state: string | null;
  readonly isOpen: boolean;
}

/**
 * A page: its title, the lines below it, its sections, its commands, and all of it as text.
 *
 * The sections hold every sentence; a client draws them as they are.  `text` is the output of the
 * command line, for the clipboard.  `sessionIds` are the sessions whose changes change the page.
 */
export interface ShownPage {
  readonly title: string;
  readonly about: readonly PageLine[];
  readonly sections: readonly PageSection[];
  readonly actions: readonly PageLink[];
  readonly text: string;
  readonly sessionIds: readonly string[];
}

/**
 * Sessions that changed; ask again for the visible ones.
 *
 * `seq` counts this server's notifications from 1; after a gap ask for everything again.  `reason`
 * is `rollout`, `workspace`, `memory` or `markers`.
 */
export interface Changed {
  readonly sessionIds: readonly string[];
  readonly seq: number;
  readonly reason: string;
}

/**
 * Files that Codex edited although neither the plan nor recent work mentions them.
 *
 * Sent only if the setting `driftGuard` asks for it, once for the new records of a session.  `seq`
 * is the session's `seq` after them.
 */
export interface Strayed {
  readonly sessionId: string;
  readonly uris: readonly string[];
  readonly seq: number;
}

/** Options of the client at the start; `settings` override `config.toml` by name. */
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
  | "unknown_checkpoint"
  | "unknown_operation"
  | "turn_not_complete"
  | "unreadable_source"
  | "session_live"
  | "unknown_note"
  | "unknown_ref"
  | "has_own_turns"
  | "invalid_payload"
  | "limit_exceeded"
  | "secret_text"
  | "policy_text"
  | "evidence_missing"
  | "evidence_unknown"
  | "depends_on_missing"
  | "stale_read"
  | "forged_hash"
  | "supersedes_unknown"
  | "conflict"
  | "missing_context"
  | "codex_not_found"
  | "not_smaller"
  | "item_too_large"
  | "unsupported_placement"
  | "codex_failed"
  | "timed_out"
  | "no_preview"
  | "blocked_by_hook"
  | "unknown_compaction"
  | "never_pushed"
  | "remote_unreachable"
  | "remote_refused"
  | "remote_newer"
  | "remote_full"
  | "remote_damaged"
  | "storage_error"
  | "cancelled";

/** What a refusal carries: its code, and facts that a caller may act on. */
export interface Refused {
  readonly code: RefusalCode;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What is asked for by each method, and what is answered. */
export interface Methods {
  readonly "checkpoints/sessions": [SessionsParams, SessionList];
  readonly "checkpoints/session": [SessionParams, SessionDetail];
  readonly "checkpoints/show": [ShowParams, CheckpointText];
  readonly "checkpoints/view": [ViewParams, ViewText];
  readonly "checkpoints/digest": [DigestParams, SessionDigest];
  readonly "checkpoints/recall": [RecallParams, RecallAnswer];
  readonly "checkpoints/search": [SearchParams, SearchAnswer];
  readonly "checkpoints/searchSessions": [SearchSessionsParams, SearchSessionsAnswer];
  readonly "checkpoints/applyUpdate": [ApplyParams, Applied];
  readonly "checkpoints/notes": [SessionParams, NoteList];
  readonly "checkpoints/revokeNote": [RevokeParams, Revoked];
  readonly "checkpoints/anchors": [AnchorsParams, AnchorList];
  readonly "checkpoints/history": [SessionParams, History];
  readonly "checkpoints/windows": [SessionParams, WindowList];
  readonly "checkpoints/outline": [SessionParams, Outline];
  readonly "checkpoints/losses": [SessionParams, LossList];
  readonly "checkpoints/timeline": [SessionParams, SessionTimeline];
  readonly "checkpoints/transcript": [TranscriptParams, TurnTranscript];
  readonly "checkpoints/changes": [ChangesParams, FileChanges];
  readonly "checkpoints/diff": [DiffParams, Difference];
  readonly "checkpoints/mark": [MarkParams, Marker];
  readonly "checkpoints/marks": [SessionParams, MarkerList];
  readonly "checkpoints/unmark": [UnmarkParams, Unmarked];
  readonly "checkpoints/relabel": [RelabelParams, Marker];
  readonly "checkpoints/pin": [PinParams, PinList];
  readonly "checkpoints/unpin": [PinParams, PinList];
  readonly "checkpoints/pins": [SessionParams, PinList];
  readonly "checkpoints/restorePreview": [RestoreParams, Restored];
  readonly "checkpoints/restore": [RestoreParams, Restored];
  readonly "checkpoints/restores": [RestoresParams, RestoreList];
  readonly "checkpoints/restoreDetails": [RestoreDetailsParams, RestoreDetails];
  readonly "checkpoints/restoreFilesPreview": [FilesParams, RestoredFiles];
  readonly "checkpoints/restoreFiles": [FilesParams, RestoredFiles];
  readonly "checkpoints/undoRestoreFiles": [UndoFilesParams, RestoredFiles];
  readonly "checkpoints/branches": [SessionParams, Branches];
  readonly "checkpoints/lineage": [SessionParams, Lineage];
  readonly "checkpoints/audit": [AuditParams, EventList];
  readonly "checkpoints/compactPreview": [CompactParams, Compacted];
  readonly "checkpoints/compact": [CompactParams, Compacted];
  readonly "checkpoints/uncompact": [UncompactParams, Uncompacted];
  readonly "checkpoints/resume": [ResumeParams, Resumed];
  readonly "checkpoints/export": [ExportParams, Exported];
  readonly "checkpoints/import": [ImportParams, Imported];
  readonly "checkpoints/rename": [RenameParams, SessionSummary];
  readonly "checkpoints/archive": [MoveParams, SessionSummary];
  readonly "checkpoints/unarchive": [MoveParams, SessionSummary];
  readonly "checkpoints/delete": [DeleteParams, Deleted];
  readonly "checkpoints/remote": [NoParams, RemoteChoice];
  readonly "checkpoints/remoteSet": [RemoteSetParams, RemoteStatus];
  readonly "checkpoints/remoteStatus": [NoParams, RemoteStatus];
  readonly "checkpoints/remoteSessions": [RemoteSessionsParams, RemoteSessions];
  readonly "checkpoints/remoteSession": [RemoteSessionParams, RemoteSessionFile];
  readonly "checkpoints/searchRemote": [SearchRemoteParams, SearchRemoteAnswer];
  readonly "checkpoints/remoteDelete": [RemoteDeleteParams, RemoteDeleted];
  readonly "checkpoints/push": [PushParams, Push];
  readonly "checkpoints/pull": [PullParams, PulledSession];
  readonly "checkpoints/connect": [ConnectParams, ConnectReport];
  readonly "checkpoints/doctor": [DoctorParams, DoctorReport];
  readonly "checkpoints/page": [PageParams, ShownPage];
}

export const ChangedNotification = new NotificationType<Changed>("checkpoints/changed");

export const StrayedNotification = new NotificationType<Strayed>("checkpoints/strayed");
