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
    made current; `parentSession` the one whose subagent this is.
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
    is null or `not_configured`, `incomplete`, `program_missing`, `other_program`.
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
    `reason` is `rollout`, `workspace` or `memory`.
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
    "storage_error",
    "cancelled",
)
"""The refusal codes in use."""
