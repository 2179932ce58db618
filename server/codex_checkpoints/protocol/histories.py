"""What a model would be sent, the windows it was sent in, and what changed between two turns."""

from __future__ import annotations

from typing import Any

from attrs import frozen


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
