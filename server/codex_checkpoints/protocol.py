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

    `cwd` takes sessions of that folder or below it; `search` looks in title, task, folder and id;
    `cursor` is the `nextCursor` of the answer before.
    """

    cwd: str | None = None
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
class Changed:
    """Sessions that are not what they were; ask again for what is shown.

    `seq` counts this server's notifications from 1; a gap means: ask for everything again.
    `reason` is `rollout` or `workspace`.
    """

    session_ids: tuple[str, ...]
    seq: int
    reason: str


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
    Method("checkpoints/doctor", DoctorParams, DoctorReport),
)
EVENTS = (Event("checkpoints/changed", Changed),)

REFUSED = 1
"""The JSON-RPC error code of every refusal; `data` holds `code` and `facts`."""

CODES = (
    "unknown_session",
    "ambiguous_session",
    "unknown_turn",
    "unreadable_source",
    "invalid_payload",
    "storage_error",
    "cancelled",
)
"""The refusal codes in use."""
