"""Rebuild a session's history from bytes, as the service does."""

from collections.abc import Sequence

from codex_checkpoints.core.agents.codex.history.items import Item
from codex_checkpoints.core.agents.codex.history.rebuild import (
    Rebuild,
    RebuiltHistory,
    choose,
    history_of,
    windows_of,
)
from codex_checkpoints.core.agents.codex.history.scan import HistoryScan
from codex_checkpoints.core.agents.codex.reader import CHUNK, LinePlace, Reader
from codex_checkpoints.core.fields import list_of, object_of
from codex_checkpoints.core.windows import HistoryWindow

Base = tuple[bytes, int | None]
"""A file of the chain, and the ordinal at which it is cut."""


def history(data: bytes, *bases: Base, chunk: int = CHUNK) -> RebuiltHistory:
    """Return the history of a file, with the files below it, the oldest first."""
    chain = [*bases, (data, None)]
    survey = HistoryScan()
    _feed(survey.reader, chain, LinePlace(0, 0), chunk)
    outline = survey.outline()
    choice = choose(outline)
    rebuild = Rebuild(choice, outline)
    _feed(rebuild.reader, chain, rebuild.start, chunk)
    assert rebuild.found
    return history_of(outline, rebuild)


def windows(data: bytes, *bases: Base) -> tuple[HistoryWindow, ...]:
    """Return the windows of a file."""
    survey = HistoryScan()
    _feed(survey.reader, [*bases, (data, None)], LinePlace(0, 0), CHUNK)
    outline = survey.outline()
    return windows_of(outline, choose(outline))


def _feed(reader: Reader, chain: Sequence[Base], start: LinePlace, chunk: int) -> None:
    for number, (data, limit) in enumerate(chain[start.file :], start.file):
        if number > start.file:
            reader.next_file(limit)
        else:
            reader.begin_file(limit)
        at = start.offset if number == start.file else 0
        rest = b""
        while at < len(data) and not reader.stopped:
            rest += data[at : at + chunk]
            at += chunk
            rest = rest[reader.feed(rest) :]
        if not reader.stopped:
            reader.close(rest)


def said(found: RebuiltHistory) -> list[str]:
    """Write each item as one word: the texts of messages, `type:call_id` of anything else."""
    return [_word(item) for item in found.items]


def _word(item: Item) -> str:
    if item["type"] == "message":
        parts = (object_of(part) for part in list_of(item["content"]))
        return "|".join(str(part.get("text", part["type"])) for part in parts)
    return f"{item['type']}:{item.get('call_id', '')}"
