"""What server and clients say to each other: the wire records and the table of methods.

This module is the single source.  `server` registers exactly the table, the command line prints
the same records, PROTOCOL.md names each of them, and the TypeScript of the extension is made from
it.  So it imports nothing that speaks: no pygls, no service; a wire record is made from values by
`server` and `cli` through `wire_of`.

Field names are camelCase on the wire.  Every field is always sent, `null` where nothing is known.
Times are UTC, ISO 8601 with milliseconds and `Z`.
"""

from __future__ import annotations

from typing import Any

from attrs import Factory, frozen


@frozen
class SessionsParams:
    """Which sessions are wanted.

    `cwd` takes sessions of that folder or below it, `outside` leaves out those of some folders or
    below them; `search` looks in title, task, folder and id;
    `cursor` is the `nextCursor` of the answer before.
    """

    cwd: str | None = None
    outside: tuple[str, ...] = ()
    archived: bool = False
    search: str | None = None
    limit: int | None = None
    cursor: str | None = None
    work_done_token: int | str | None = None


@frozen
class SessionSummary:
    """One session in a list.

    `contextTokensSource` is `reported` or `estimated`; `continuedBy` the session that a compaction
    made current; `parentSession` the one whose subagent this is; `named` whether the title is a
    name that somebody gave.
    """

    session_id: str
    path: str
    cwd: str | None
    title: str | None
    task: str | None
    updated_at: str
    cli_version: str | None
    model: str | None
    context_tokens: int | None
    context_tokens_source: str
    context_window: int | None
    windows: int
    compactions: int
    suspect_facts: int
    live: bool
    archived: bool
    forked_from: str | None
    parent_session: str | None
    continued_by: str | None
    turns: int
    seq: int
    named: bool


@frozen
class SessionList:
    """A page of sessions, newest first; `nextCursor` is null on the last one."""

    items: tuple[SessionSummary, ...]
    next_cursor: str | None


@frozen
class SessionParams:
    """The session by its id, by a unique prefix of 8 characters or more, or by a path."""

    session_id: str


@frozen
class TurnEntry:
    """One turn that is not rolled back; `task` is what the user said last in it."""

    turn_id: str
    number: int
    task: str | None
    ended: bool
    aborted: bool


@frozen
class EffectiveCaps:
    """The caps a view was made with."""

    max_open_plan_steps: int
    max_done_plan_steps: int
    max_decisions: int
    max_facts_valid: int
    max_facts_suspect: int
    max_recent_artifacts: int
    max_value_chars: int


@frozen
class SessionDetail:
    """One session with its turns; `problems` and `skipped` say what could not be read."""

    summary: SessionSummary
    turns: tuple[TurnEntry, ...]
    caps: EffectiveCaps
    problems: tuple[str, ...]
    skipped: dict[str, int]


@frozen
class ShowParams:
    """A session, and a turn of it when the state at its end is wanted."""

    session_id: str
    turn_id: str | None = None


@frozen
class ViewParams:
    """A session, a turn of it, and some caps by name; the others keep their effective value."""

    session_id: str
    turn_id: str | None = None
    caps: dict[str, Any] | None = None


@frozen
class Text:
    """A text as it is stored or injected, byte for byte."""

    text: str


@frozen
class ViewText:
    """A view, and the caps it was made with."""

    text: str
    caps: EffectiveCaps


@frozen
class ApplyParams:
    """A session and one payload of `memory.apply`; with `dryRun` it is only judged."""

    session_id: str
    payload: Any
    dry_run: bool = False


@frozen
class Applied:
    """An update that was accepted, or would be.

    `updateId` is null where it was only judged, `id` for a plan; `shortened` names the texts and
    steps that are kept in part.
    """

    accepted: bool
    dry_run: bool
    session_id: str
    update_id: str | None
    seq: int
    turn_id: str | None
    kind: str
    id: str | None
    shortened: tuple[str, ...]


@frozen
class NoteEvidence:
    """What a note rests on; `source` is `user`, `file` or `tool_output`."""

    source: str
    ref: str
    hash: str | None


@frozen
class NoteDependency:
    """An artifact that a fact stands and falls with: its hash then, its hash now."""

    uri: str
    hash: str | None
    current: str | None
    holds: bool


@frozen
class Note:
    """A fact or a decision that counts; what the other kind alone has is null or empty.

    `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
    that does not hold.
    """

    kind: str
    id: str
    value: str | None
    topic: str | None
    decision: str | None
    rationale: str | None
    supersedes: str | None
    superseded_by: str | None
    status: str | None
    why: str | None
    evidence: NoteEvidence
    depends_on: tuple[NoteDependency, ...]
    seq: int
    turn_id: str | None
    accepted_at: str | None


@frozen
class NoteList:
    """Facts by key, then decisions in the order of their acceptance."""

    items: tuple[Note, ...]
    next_cursor: str | None


@frozen
class RevokeParams:
    """A session and a note of it; `kind` where a fact and a decision have the same id."""

    session_id: str
    id: str
    kind: str | None = None


@frozen
class Revoked:
    """A note that counts no longer."""

    session_id: str
    kind: str
    id: str
    seq: int


@frozen
class AnchorsParams:
    """A session, and how many anchors of each source are wanted."""

    session_id: str
    limit: int | None = None


@frozen
class Anchor:
    """Something that evidence may name; `text` are its first words."""

    source: str
    ref: str
    text: str
    seq: int


@frozen
class AnchorList:
    """Messages, tool calls and files, the newest of each first."""

    items: tuple[Anchor, ...]
    next_cursor: str | None


@frozen
class RecordParams:
    """A session, and the `ref` of an anchor of it: a message or a tool call."""

    session_id: str
    ref: str


@frozen
class WindowChain:
    """Where a session stands among its context windows; what no record tells is null.

    `number` counts from 0; `previous` is null in the first window.
    """

    first: str | None
    previous: str | None
    current: str | None
    number: int | None


@frozen
class History:
    """What Codex would send when the session is resumed, without what the next turn adds.

    `items` are response items, calls paired, outputs cut, without ids.  `reconstructed` says that
    part of them had to be made of user messages, since a compaction kept no history of its own.
    `contextTokensSource` is `reported` or `estimated`; with `contextTokensFlagged` the number is
    larger than the window, and nothing is decided by it.
    """

    items: tuple[dict[str, Any], ...]
    reconstructed: bool
    windows: WindowChain
    context_tokens: int | None
    context_tokens_source: str
    context_tokens_flagged: bool
    context_window: int | None


@frozen
class Window:
    """One context window: number 0 is the first, each compaction opened another.

    `trigger` is `manual`, `pre_turn` or `mid_turn`; `strategy` is `checkpoint` or `codex` for ours,
    `local`, `remote` or `fresh` for those of Codex; null is what the file does not tell.
    """

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int
    opened_at: str | None
    trigger: str | None
    strategy: str | None
    tokens_before: int | None
    tokens_after: int | None


@frozen
class WindowList:
    """The windows of a session that count, the first one first."""

    items: tuple[Window, ...]
    next_cursor: str | None


@frozen
class CompactParams:
    """A session, where its work is to go on, and how.

    `into` is `new` or `in-place`, `strategy` is `checkpoint`, `placement` is `manual` or
    `pre_turn`; `force` overrides `not_smaller`, and `turn_not_complete` where nobody holds the
    session.
    """

    session_id: str
    into: str = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False


@frozen
class LeftOut:
    """A payload that a note stands for: its media type, its size in bytes."""

    media: str
    size: int


@frozen
class CompactionPiece:
    """One item of the replaced history: whose it was, when, where, and what became of it.

    `place` counts the items from 0.  `fate` is `kept`, `truncated`, `replaced`, `over_budget`,
    `over_target` or `only_payload`; `cutTokens` is how much a truncated one lost.
    """

    place: int
    kind: str
    author: str
    at: str | None
    ref: str | None
    tokens: int
    fate: str
    cut_tokens: int
    left_out: tuple[LeftOut, ...]


@frozen
class CompactionWindows:
    """The chain of the source, and that of the session where the work goes on."""

    before: WindowChain
    after: WindowChain


@frozen
class HookOutcome:
    """What came of a hook; `number` counts those of one event from 1.

    `outcome` is `passed`, `blocked`, `failed`, `timed_out`, `not_started` or `garbage`.
    """

    number: int
    outcome: str
    reason: str | None


@frozen
class Compacted:
    """A compaction that was done, or, where `compactionId` is null, that would be.

    `sessionId` is the one to resume, null for a new one that is not there yet.  `replacement` is
    what Codex sends from now on in place of the history.  `tokensBefore` is what decisions go by,
    `tokensReplaced` our estimate of the same history, and `tokensAfter` that of the replacement,
    both without base instructions; `bound` was stated before.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: str
    strategy: str
    determinism: str
    placement: str
    standing_context: str
    replacement: tuple[dict[str, Any], ...]
    tokens_before: int
    tokens_before_source: str
    tokens_replaced: int
    tokens_after: int
    tokens_after_source: str
    bound: int
    kinds_before: dict[str, int]
    kinds_after: dict[str, int]
    kept: tuple[CompactionPiece, ...]
    dropped: tuple[CompactionPiece, ...]
    truncated: tuple[CompactionPiece, ...]
    windows: CompactionWindows
    hooks: tuple[HookOutcome, ...]
    resume: str | None


@frozen
class UncompactParams:
    """A compaction by its id."""

    compaction_id: str


@frozen
class Uncompacted:
    """A compaction that was taken back; `sessionId` is where the work goes on again."""

    compaction_id: str
    session_id: str
    source_session_id: str
    into: str
    resume: str


@frozen
class RenameParams:
    """A session and what to call it; an empty name takes the old one back."""

    session_id: str
    name: str


@frozen
class Deleted:
    """A session that is there no longer."""

    session_id: str
    deleted: bool


@frozen
class DiffParams:
    """A session and two turns of it, each an id or a number."""

    session_id: str
    from_turn_id: str
    to_turn_id: str


@frozen
class Difference:
    """What changed between the ends of two turns.

    Each entry is `{change, before, after}`: `change` is `added`, `removed` or `changed`, and the
    other two the record as it was and is, null where there is none.  `planReordered` tells that
    steps which both have changed places.
    """

    session_id: str
    from_turn_id: str
    to_turn_id: str
    task: dict[str, Any] | None
    plan: tuple[dict[str, Any], ...]
    plan_reordered: bool
    decisions: tuple[dict[str, Any], ...]
    facts: tuple[dict[str, Any], ...]
    artifacts: tuple[dict[str, Any], ...]


@frozen
class MarkParams:
    """A session, what to call the marker, and its turn; null is the last one that has ended."""

    session_id: str
    label: str
    turn_id: str | None = None


@frozen
class Marker:
    """A saved point on a turn.

    `turnNumber` is the number of the turn now, null for a turn that was rolled back since
    (`detached`) or that is another session's.  `origin` is `user` or `compaction`.
    """

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: str
    turn_number: int | None
    detached: bool


@frozen
class MarkerList:
    """The markers of a session in the order of their making."""

    items: tuple[Marker, ...]
    next_cursor: str | None


@frozen
class UnmarkParams:
    """A session and a marker of it, by its id or a unique beginning of it."""

    session_id: str
    checkpoint_id: str


@frozen
class Unmarked:
    """A marker that is there no longer."""

    session_id: str
    checkpoint_id: str
    removed: bool


@frozen
class RelabelParams:
    """A session, a marker of it, and what to call it from now on."""

    session_id: str
    checkpoint_id: str
    label: str


@frozen
class PinParams:
    """A session and a file, or lines of it (`src/a.py#L3-L9`), by a path in its folder."""

    session_id: str
    path: str


@frozen
class Pin:
    """A file, or lines of one, that every state pack of the session offers."""

    uri: str
    start: int | None
    end: int | None


@frozen
class PinList:
    """The pins of a session, the newest last."""

    items: tuple[Pin, ...]
    next_cursor: str | None


@frozen
class RestoreParams:
    """A marker and how to go on from it.

    `mode` is `soft` or `hard`; `budget` the tokens of a state pack, null for the setting; `window`
    how many of the user's last messages it may hold, 0 to 5; `reason` is said in it.
    """

    session_id: str
    checkpoint_id: str
    mode: str
    budget: int | None = None
    window: int = 0
    reason: str | None = None


@frozen
class TurnSource:
    """A turn, with the session that it is of."""

    session_id: str
    turn_id: str


@frozen
class PackItem:
    """One thing that is carried; `part` is the part of a state pack that it belongs to."""

    part: str
    id: str


@frozen
class DeferredItem:
    """One thing that a pack leaves out; `reason` is `budget` or `bound`."""

    part: str
    id: str
    reason: str


@frozen
class RestoreWarning:
    """What a person ought to know of a restore: a code, of how many things, and a sentence."""

    code: str
    count: int
    message: str


@frozen
class Restored:
    """What came of a restore, or would.

    A preview (`dryRun`) has no ids, no time and no `resume`.  `pack` is the text that a hard branch
    begins with, null for a soft one; `headline` and `carried` are for one quiet notification.
    """

    operation_id: str | None
    session_id: str | None
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    mode: str
    restored_at: str | None
    context_reset: bool
    included: tuple[PackItem, ...]
    deferred: tuple[DeferredItem, ...]
    warnings: tuple[RestoreWarning, ...]
    tokens_before: int | None
    tokens_after: int | None
    context_window: int | None
    pack: str | None
    pack_tokens: int | None
    budget: int | None
    headline: str
    carried: str
    resume: str | None
    dry_run: bool


@frozen
class RestoresParams:
    """A session as source or branch; null is every restore."""

    session_id: str | None = None


@frozen
class RestoreEntry:
    """One restore in a list; the two flags say whether the session files are still there."""

    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    mode: str
    restored_at: str
    context_reset: bool
    branch_available: bool
    source_available: bool


@frozen
class RestoreList:
    """Restores, the oldest first."""

    items: tuple[RestoreEntry, ...]
    next_cursor: str | None


@frozen
class RestoreDetailsParams:
    """A restore by its operation."""

    operation_id: str


@frozen
class RestoreDetails:
    """Everything that is known of a restore, also where its source or its branch is gone.

    `chain` leads to the first session; `modes`, `references`, `pinned`, `drift`, `missing` and
    `fallbacks` are as they stand in the record, `state` is the checkpoint that a hard branch began
    with.  `pack` is null where the branch is gone or has none.
    """

    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    marked_at: str
    mode: str
    restored_at: str
    context_reset: bool
    reason: str
    semantics: int
    chain: tuple[dict[str, Any], ...]
    modes: tuple[dict[str, Any], ...]
    references: dict[str, Any]
    pinned: tuple[dict[str, Any], ...]
    included: tuple[PackItem, ...]
    deferred: tuple[DeferredItem, ...]
    warnings: tuple[RestoreWarning, ...]
    tokens_before: int | None
    tokens_after: int | None
    context_window: int | None
    caps: dict[str, int]
    windows: dict[str, Any]
    drift: tuple[dict[str, Any], ...]
    missing: tuple[dict[str, Any], ...]
    fallbacks: tuple[dict[str, Any], ...]
    state: dict[str, Any] | None
    pack: str | None
    pack_tokens: int | None
    budget: int | None
    headline: str
    carried: str
    resume: str
    branch_title: str | None
    branch_available: bool
    source_title: str | None
    source_available: bool


@frozen
class LineageLink:
    """How a session came from its parent, with the exact cut as far as it is known.

    `kind` is `restore`, `compaction`, `revert`, `subagent` or `fork`.
    """

    parent: str
    kind: str
    at: str | None
    turn_id: str | None
    ordinal_exclusive: int | None
    byte_offset: int | None
    checkpoint_id: str | None
    operation_id: str | None


@frozen
class LineageWindow:
    """One context window of a session."""

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int | None
    opened_at: str | None


@frozen
class LineageNode:
    """A session, or a segment of one; `link` is null for the first.

    One that is not `available` is known only because another names it.
    """

    id: str
    depth: int
    link: LineageLink | None
    title: str | None
    available: bool
    archived: bool
    windows: tuple[LineageWindow, ...]


@frozen
class Lineage:
    """The tree that a session stands in, depth first.

    `circles` are links that were left out since they would lead in a circle, each with the child
    that claims it; `omitted` counts nodes beyond the bound.
    """

    session_id: str
    root: str
    nodes: tuple[LineageNode, ...]
    circles: tuple[dict[str, Any], ...]
    omitted: int


@frozen
class AuditParams:
    """Which events are wanted: those of a session, as source or branch, or of an operation."""

    session_id: str | None = None
    operation_id: str | None = None


@frozen
class EventList:
    """Events of the audit, the oldest first, as they were written."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None


@frozen
class VerifyParams:
    """Nothing to say."""


@frozen
class VerifyFinding:
    """Something that is not as it was written.

    `code` is `changed_line`, `missing_lines` or `wrong_order` for the audit (`line` counts from 1),
    `changed_record` for the record of a restore, `changed_branch` for the bytes that a branch began
    with, `changed_source` for those that its source had then.
    """

    code: str
    operation_id: str | None
    session_id: str | None
    line: int | None


@frozen
class VerifyReport:
    """How much was checked, and what is wrong with it; `unavailable` files were not checked."""

    events: int
    records: int
    files: int
    unavailable: int
    findings: tuple[VerifyFinding, ...]


@frozen
class DoctorParams:
    """Nothing to say."""


@frozen
class DoctorFinding:
    """One thing worth knowing, with a way out; `severity` is `error`, `warning` or `info`."""

    code: str
    severity: str
    message: str
    path: str | None
    count: int
    way_out: str


@frozen
class DoctorReport:
    """What was found, skipped and why; `skipped` counts what gave nothing, by reason."""

    codex_home: str
    state_dir: str
    sessions: int
    findings: tuple[DoctorFinding, ...]
    skipped: dict[str, int]


@frozen
class ConnectParams:
    """What is wished: to connect, or to `remove`; to see it only (`dryRun`), or how things stand.

    `cwd` is the folder whose project may have a configuration of its own.
    """

    dry_run: bool = False
    remove: bool = False
    status: bool = False
    cwd: str | None = None


@frozen
class ConnectDoor:
    """One way in which Codex calls us: `hook` or `mcp`.

    `trusted` is null where that is not known; Codex asks for no trust in an MCP server.  `problem`
    is null or `not_configured`, `incomplete`, `program_missing`, `other_program`, `failed`.
    """

    door: str
    configured: bool
    trusted: bool | None
    last_ran_at: str | None
    last_session: str | None
    problem: str | None


@frozen
class ConnectHook:
    """A hook of ours; `trust` is Codex's word: `trusted`, `untrusted`, `modified`, `managed`."""

    event: str
    configured: bool
    trust: str | None
    enabled: bool | None


@frozen
class ConnectHome:
    """Another Codex home of this user, and whether it is connected."""

    codex_home: str
    connected: bool


@frozen
class ConnectChange:
    """A file of Codex's that was changed, or would be; `action` is `create`, `edit` or `delete`.

    `diff` shows what comes and goes, and nothing of what stays.
    """

    path: str
    action: str
    diff: str
    backup: str | None


@frozen
class ConnectReport:
    """How Codex and we are connected, and what was `written` or would be.

    `codexProblem` is null or `codex_not_found`, `timed_out`, `codex_failed`, `hooks_unknown`.
    """

    codex_home: str
    codex_path: str | None
    codex_version: str | None
    codex_problem: str | None
    doors: tuple[ConnectDoor, ...]
    hooks: tuple[ConnectHook, ...]
    other_homes: tuple[ConnectHome, ...]
    problems: tuple[str, ...]
    way_out: str | None
    written: bool
    changes: tuple[ConnectChange, ...]


@frozen
class Changed:
    """Sessions that are not what they were; ask again for what is shown.

    `seq` counts this server's notifications from 1; a gap means: ask for everything again.
    `reason` is `rollout`, `workspace`, `memory` or `markers`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


@frozen
class Strayed:
    """Files that Codex edited though neither the plan nor recent work speaks of them.

    Sent only where the setting `driftGuard` asks for it, once for the new records of a session.
    `seq` is that of the session after them.
    """

    session_id: str
    uris: tuple[str, ...]
    seq: int


@frozen
class InitializationOptions:
    """What the client says at the start; `settings` override `config.toml` by name."""

    codex_home: str | None = None
    state_dir: str | None = None
    settings: dict[str, Any] = Factory(dict[str, Any])


@frozen
class Method:
    """A request: its name, what is asked and what is answered."""

    name: str
    params: type
    result: type


@frozen
class Event:
    """A notification from the server."""

    name: str
    params: type


METHODS = (
    Method("checkpoints/sessions", SessionsParams, SessionList),
    Method("checkpoints/session", SessionParams, SessionDetail),
    Method("checkpoints/show", ShowParams, Text),
    Method("checkpoints/view", ViewParams, ViewText),
    Method("checkpoints/applyUpdate", ApplyParams, Applied),
    Method("checkpoints/notes", SessionParams, NoteList),
    Method("checkpoints/revokeNote", RevokeParams, Revoked),
    Method("checkpoints/anchors", AnchorsParams, AnchorList),
    Method("checkpoints/record", RecordParams, Text),
    Method("checkpoints/history", SessionParams, History),
    Method("checkpoints/windows", SessionParams, WindowList),
    Method("checkpoints/diff", DiffParams, Difference),
    Method("checkpoints/mark", MarkParams, Marker),
    Method("checkpoints/marks", SessionParams, MarkerList),
    Method("checkpoints/unmark", UnmarkParams, Unmarked),
    Method("checkpoints/relabel", RelabelParams, Marker),
    Method("checkpoints/pin", PinParams, PinList),
    Method("checkpoints/unpin", PinParams, PinList),
    Method("checkpoints/pins", SessionParams, PinList),
    Method("checkpoints/restorePreview", RestoreParams, Restored),
    Method("checkpoints/restore", RestoreParams, Restored),
    Method("checkpoints/restores", RestoresParams, RestoreList),
    Method("checkpoints/restoreDetails", RestoreDetailsParams, RestoreDetails),
    Method("checkpoints/lineage", SessionParams, Lineage),
    Method("checkpoints/audit", AuditParams, EventList),
    Method("checkpoints/verify", VerifyParams, VerifyReport),
    Method("checkpoints/compactPreview", CompactParams, Compacted),
    Method("checkpoints/compact", CompactParams, Compacted),
    Method("checkpoints/uncompact", UncompactParams, Uncompacted),
    Method("checkpoints/rename", RenameParams, SessionSummary),
    Method("checkpoints/archive", SessionParams, SessionSummary),
    Method("checkpoints/unarchive", SessionParams, SessionSummary),
    Method("checkpoints/delete", SessionParams, Deleted),
    Method("checkpoints/connect", ConnectParams, ConnectReport),
    Method("checkpoints/doctor", DoctorParams, DoctorReport),
)
EVENTS = (Event("checkpoints/changed", Changed), Event("checkpoints/strayed", Strayed))

REFUSED = 1
"""The JSON-RPC error code of every refusal; `data` holds `code` and `facts`."""

CODES = (
    "unknown_session",
    "ambiguous_session",
    "unknown_turn",
    "unknown_checkpoint",
    "unknown_operation",
    "turn_not_complete",
    "unreadable_source",
    "session_live",
    "unknown_note",
    "invalid_payload",
    "limit_exceeded",
    "secret_text",
    "policy_text",
    "evidence_missing",
    "evidence_unknown",
    "depends_on_missing",
    "forged_hash",
    "supersedes_unknown",
    "conflict",
    "missing_context",
    "codex_not_found",
    "not_smaller",
    "item_too_large",
    "unsupported_placement",
    "unsupported_strategy",
    "blocked_by_hook",
    "unknown_compaction",
    "storage_error",
    "cancelled",
)
"""The refusal codes in use."""
