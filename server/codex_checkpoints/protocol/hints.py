"""Hints about artifacts that an agent was handed."""

from __future__ import annotations

from codex_checkpoints.values import frozen


@frozen
class Hint:
    """What an agent found of one artifact; `verdict` is `authoritative`, `helpful` or `noise`."""

    uri: str
    verdict: str
    suppress_on_hard_restore: bool = False
    pin_for_restore: bool = False


@frozen
class HintsParams:
    """A session, and hints to keep; null asks for those that there are."""

    session_id: str
    items: tuple[Hint, ...] | None = None


@frozen
class HintList:
    """The newest hint of each artifact, in the order in which they came."""

    items: tuple[Hint, ...]
    next_cursor: str | None
