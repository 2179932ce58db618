"""What a model would be sent, the windows it was sent in, and what changed between two turns."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.protocol.receipts import Receipt
from codex_checkpoints.values import frozen


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
    `received` is what Codex was given in it last; `compactionId` names the compaction of ours
    that opened it, by which it can be taken back.
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
    received: Receipt | None
    compaction_id: str | None


@frozen
class WindowList:
    """The windows of a session that count, the first one first."""

    items: tuple[Window, ...]
    next_cursor: str | None


@frozen
class OutlineTurn:
    """A recent turn: its number from 1, its id, the window it began in, its first words."""

    number: int
    turn_id: str
    window: int
    text: str


@frozen
class OutlineChunk:
    """A stretch of older turns, and of the windows they began in; `text` is of its first turn."""

    first: int
    last: int
    first_window: int
    last_window: int
    text: str


@frozen
class Outline:
    """What people see of a session, bounded: at most 16 chunks, then the recent turns."""

    chunks: tuple[OutlineChunk, ...]
    recent: tuple[OutlineTurn, ...]


@frozen
class LostText:
    """The task, or an open step of the plan, and whether the replacement still holds its text.

    `ref` is the message or the call it comes from, `seq` the record, null where none of this
    session's own tells it.  `lost` is null where nobody can tell, since part of the replacement is
    encrypted.
    """

    text: str
    ref: str | None
    seq: int | None
    lost: bool | None


@frozen
class LostFile:
    """A file that was changed in the window before, and whether the replacement names it.

    `change` is `add`, `update`, `delete` or `move`; `ref` is the call that did it last.
    """

    uri: str
    change: str
    ref: str | None
    seq: int
    lost: bool | None


@frozen
class LostCommand:
    """A command that had failed when it was run last, and whether the replacement names it."""

    command: str
    exit_code: int | None
    ref: str | None
    seq: int
    lost: bool | None


@frozen
class Reread:
    """A file that was read again unchanged, how often, and the last record that did it."""

    uri: str
    times: int
    ref: str | None
    seq: int


@frozen
class Loss:
    """One compaction: what its replacement no longer holds, and what was read again since.

    The first six fields are those of the window that it opened; `number` is null where a
    rollback took the window away (`counts` is false).  `sealed` says that part of the replacement
    is encrypted.  `taskPresent` is null where nobody can tell, or nothing was asked for.
    `notListed` counts files and commands beyond those that are listed.

    `reads` are the reads of files up to the next compaction, `rereadsUnchanged` those of files
    that an earlier window had read or written as they are, `bytes` what these printed.  `loop`
    warns of the same files, or the same command with the same outcome, again and again;
    `loopOver` names them.
    """

    number: int | None
    window_id: str | None
    opened_at_seq: int
    opened_at: str | None
    trigger: str | None
    strategy: str | None
    counts: bool
    sealed: bool
    task_present: bool | None
    task: LostText | None
    open_plan_steps: tuple[LostText, ...]
    edited_files: tuple[LostFile, ...]
    failing_commands: tuple[LostCommand, ...]
    not_listed: int
    reads: int
    rereads_unchanged: int
    bytes: int
    rereads: tuple[Reread, ...]
    loop: bool
    loop_over: tuple[str, ...]


@frozen
class LossList:
    """The compactions of a session, the oldest first."""

    items: tuple[Loss, ...]
    next_cursor: str | None


@frozen
class DiffParams:
    """Two states: a turn, by its id or its number, of a session; null is the session as it is now.

    `toSessionId` is the session of the second turn; null for the same as of the first.
    """

    session_id: str
    from_turn_id: str | None
    to_turn_id: str | None
    to_session_id: str | None = None


@frozen
class Difference:
    """What changed between the ends of two turns.

    Each entry is `{change, before, after}`: `change` is `added`, `removed` or `changed`, and the
    other two the record as it was and is, null where there is none.  `planReordered` tells that
    steps which both have changed places.
    """

    session_id: str
    from_turn_id: str | None
    to_session_id: str
    to_turn_id: str | None
    task: dict[str, Any] | None
    plan: tuple[dict[str, Any], ...]
    plan_reordered: bool
    decisions: tuple[dict[str, Any], ...]
    facts: tuple[dict[str, Any], ...]
    artifacts: tuple[dict[str, Any], ...]
