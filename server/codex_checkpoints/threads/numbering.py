"""The lines of a new thread, with ordinals where its history mode has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from codex_checkpoints.threads.contract import Copied, Item, NewThread
from codex_checkpoints.threads.tail import ordinal_of
from codex_checkpoints.threads.writer import line_of


def lines_of(new: NewThread, at: datetime) -> Iterator[bytes]:
    """Yield the lines of a new thread with their LF: its `session_meta`, then its items."""
    stamp = new.meta.get("timestamp")
    head = Item("session_meta", new.meta, stamp if isinstance(stamp, str) else None)
    yield from _numbered((head, *new.items), _first_ordinal(new.meta), at)


def _numbered(items: Iterable[Item | Copied], ordinal: int | None, at: datetime) -> Iterator[bytes]:
    """Yield lines; a copied one keeps its ordinal, and what follows goes on from there."""
    for item in items:
        if isinstance(item, Item):
            yield line_of(item, ordinal, at)
            own = ordinal
        else:
            yield item.line + b"\n"
            own = ordinal_of(item.line)
        if ordinal is not None:
            ordinal = max(ordinal, own + 1 if own is not None else ordinal)


def _first_ordinal(meta: Mapping[str, object]) -> int | None:
    """Return where a history begins to count: behind its base; None in a legacy one."""
    if meta.get("history_mode") != "paginated":
        return None
    match meta.get("history_base"):
        case {"end_ordinal_exclusive": int(end)}:
            return end
        case _:
            return 0
