"""Lists of sessions, as the doors show them.

Which sessions fit, and in which order, is the store's to say; nothing is read for a list.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Summary:
    """One session in a list; `None` where nothing is known."""

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
class Page:
    """A part of the list, and where the next part begins."""

    items: tuple[Summary, ...]
    next_cursor: str | None
