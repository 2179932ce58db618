"""A new thread: whether it can be one, and its lines, with ordinals where its mode has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from codex_checkpoints.threads.contract import Copied, Item, NewThread, Unsupported
from codex_checkpoints.threads.tail import follows, ordinal_of
from codex_checkpoints.threads.writer import line_of

_THREAD_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_thread_id(text: str) -> bool:
    """Return whether a text is the id of a thread as Codex gives them: a UUID in lower case."""
    return _THREAD_ID.fullmatch(text) is not None


def id_of(new: NewThread) -> str:
    """Return the id of a new thread; raise `Unsupported` for a head that Codex would refuse."""
    thread_id = str(new.meta.get("id"))
    if not is_thread_id(thread_id):
        raise Unsupported("a session id is a UUID in lower case")
    if new.meta.get("history_mode", "legacy") not in ("legacy", "paginated"):
        raise Unsupported("a history mode that Codex does not know")
    return thread_id


def lines_of(new: NewThread, at: datetime) -> Iterator[bytes]:
    """Yield the lines of a new thread with their LF: its `session_meta`, then its items.

    Raises `Unsupported` for what would be no line, or a file that Codex refuses.
    """
    stamp = new.meta.get("timestamp")
    head = Item("session_meta", new.meta, stamp if isinstance(stamp, str) else None)
    yield from _numbered(chain((head,), new.items), _first_ordinal(new.meta), at)


def _numbered(items: Iterable[Item | Copied], ordinal: int | None, at: datetime) -> Iterator[bytes]:
    """Yield lines; a copied one keeps its ordinal, and what follows goes on from there."""
    for item in items:
        if isinstance(item, Item):
            yield line_of(item, ordinal, at)
            own = ordinal
        else:
            if not follows(item.line, None):
                raise Unsupported("a copied line is one line of UTF-8")
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
