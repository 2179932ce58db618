"""Defines the context windows of a session, and the text in place of a replaced context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.events import Opener

Strategy = Literal["checkpoint", "codex", "local", "remote", "fresh"]
Trigger = Literal["manual", "pre_turn", "mid_turn"]


@frozen
class HistoryWindow:
    """One window, counted from 0; a value is None if it is not recorded (WIN-9, WIN-12)."""

    number: int
    window_id: str | None
    previous_id: str | None
    opened_seq: int
    opened_at: str | None
    trigger: Trigger | None = None
    strategy: Strategy | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    opener: Opener | None = None


def compacted_in(windows: Iterable[HistoryWindow]) -> list[HistoryWindow]:
    """Return the windows that a compaction opened and no undo removed."""
    found: list[HistoryWindow] = []
    for each in windows:
        if each.opener == "compaction":
            found.append(each)
        elif each.opener == "undo" and found:
            found.pop()
    return found


@frozen
class WindowOpening:
    """How a window was opened, as far as it is known; `number` is None if it does not count."""

    trigger: Trigger | None
    number: int | None


@frozen
class Replacement:
    """The context that a new window begins with.

    `index` counts the opened windows from 0.  `texts` are all texts of it; `sealed`: a part of it
    is encrypted.
    """

    index: int
    seq: int
    at: str | None
    window_id: str | None
    strategy: Strategy | None
    opener: Opener
    texts: Iterable[str]
    sealed: bool
