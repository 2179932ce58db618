"""Sessions: the list, one of them, its checkpoint and view, its name and place."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.protocol.receipts import Receipt
from codex_checkpoints.values import frozen


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
class Offer:
    """What speaks for a compaction before the next turn: `tokens` have reached `trigger`.

    `tokensSource` is `reported` or `estimated`; `target` is what a compaction stays below;
    `windowSource`, where `window` comes from, is `setting`, `environment`, `advertised` or
    `unknown`.
    """

    tokens: int
    tokens_source: str
    trigger: int
    target: int
    window: int
    window_source: str


@frozen
class SessionSummary:
    """One session in a list.

    `contextTokensSource` is `reported` or `estimated`; `continuedBy` the session that a compaction
    made current; `parentSession` the one whose subagent this is; `named` whether the title is a
    name that somebody gave; `nearlyFull` whether what is in use has reached the trigger of its
    window; `offer` what speaks for a compaction now, null where nothing does; `branches` how many
    sessions came of it; `madeBy` is `restore`, `compaction`, `import`, or null for a session that
    Codex made.
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
    markers: int
    branches: int
    made_by: str | None
    nearly_full: bool
    offer: Offer | None


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
    """One turn that is not rolled back; `task` is what the user said last in it.

    `startedAt` is the time of its first message, UTC, null where no record tells.
    """

    turn_id: str
    number: int
    task: str | None
    ended: bool
    aborted: bool
    started_at: str | None


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
class WindowBudget:
    """How large a window is taken to be, and from where on it is compacted; all in tokens.

    `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
    """

    window: int
    window_source: str
    reserve: int
    trigger: int
    target: int


@frozen
class SessionDetail:
    """One session with its turns; `problems` and `skipped` say what could not be read.

    `received` is what Codex was given of it last.
    `budget` is that of what its model is sent, `outlineBudget` that of the outline
    which people see, by the window of the smaller model.
    """

    summary: SessionSummary
    turns: tuple[TurnEntry, ...]
    caps: EffectiveCaps
    problems: tuple[str, ...]
    skipped: dict[str, int]
    received: Receipt | None
    budget: WindowBudget
    outline_budget: WindowBudget


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
class RenameParams:
    """A session and what to call it; an empty name takes the old one back."""

    session_id: str
    name: str


@frozen
class MoveParams:
    """A session that is to be put away, or back."""

    session_id: str
    work_done_token: int | str | None = None


@frozen
class Deleted:
    """A session that is there no longer."""

    session_id: str
    deleted: bool
