"""The lines of a whole history: those of its bases below the cut, then its own (ROL-5).

Every store whose rollouts can be read by a `RolloutReader` shares this.  What a line says is not
asked, but for its ordinal and, in the first one, for the base.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.threads.contract import (
    BadQuery,
    HistoryPage,
    RolloutReader,
    UnreadableSource,
)
from codex_checkpoints.values import frozen

_LONGEST_CHAIN = 1024


@frozen
class Part:
    """One rollout of a history, up to an ordinal, or else to an offset; or whole."""

    path: str
    end_ordinal: int | None = None
    end_offset: int | None = None


def head(reader: RolloutReader, path: str) -> SessionMeta | None:
    """Return the head of a rollout, None where its first line is none."""
    return head_of(reader.first_line(path))


def parts(
    reader: RolloutReader, path: str, locate: Callable[[str], str | None]
) -> tuple[Part, ...]:
    """Return of which rollouts a history consists, the oldest first.

    Raises `UnreadableSource` for one that is missing, or where they lead in a circle.
    """
    chain = [Part(path)]
    seen = {path}
    own = head(reader, path)
    while own is not None and own.base is not None:
        base = locate(own.base.rollout_id)
        if base is None or base in seen or len(chain) > _LONGEST_CHAIN:
            what = "missing" if base is None else "part of a circle"
            raise UnreadableSource(f"the base {own.base.rollout_id} is {what}")
        seen.add(base)
        # Ordinals say where a base is cut; one without ordinals is cut by its bytes.
        ordinal = own.base.end_ordinal if own.paginated else None
        chain.append(Part(base, ordinal, None if ordinal is not None else own.base.end_offset))
        own = head(reader, base)
    return tuple(reversed(chain))


def page(
    reader: RolloutReader, chain: tuple[Part, ...], cursor: str | None, limit: int | None
) -> HistoryPage:
    """Return lines from a cursor on, at most `limit`; raises `BadQuery`, `UnreadableSource`."""
    if limit is not None and limit < 1:
        raise BadQuery("limit must be at least 1", "limit")
    number, offset = (0, 0) if cursor is None else _from_cursor(cursor, len(chain))
    lines: list[bytes] = []
    while number < len(chain):
        if len(lines) == limit:
            return HistoryPage(tuple(lines), _to_cursor(number, offset))
        room = None if limit is None else limit - len(lines)
        more, offset, ended = _lines_of(reader, chain[number], offset, room)
        lines += more
        if ended:
            number, offset = number + 1, 0
    return HistoryPage(tuple(lines), None)


def _lines_of(
    reader: RolloutReader, part: Part, offset: int, room: int | None
) -> tuple[list[bytes], int, bool]:
    """Return lines of a part, where the next one begins, and whether there is none."""
    lines: list[bytes] = []
    begun: list[bytes] = []  # of a line that has not ended yet: it may be longer than any chunk
    cut = full = False

    def feed(data: bytes) -> int:
        nonlocal offset, cut, full
        start = 0
        while not (cut or full) and (end := data.find(b"\n", start)) >= 0:
            line = b"".join((*begun, data[start:end]))
            start = end + 1
            if line.strip():
                cut, full = _is_behind(line, part), len(lines) == room
            if cut or full:
                return 0
            begun.clear()
            offset += len(line) + 1
            if line.strip():
                lines.append(line)
        begun.append(data[start:])
        return 0 if cut or full else len(data)

    reader.read(part.path, offset, feed, part.end_offset)
    rest = b"" if cut or full else b"".join(begun)
    if full and not cut:
        return lines, offset, False
    if not rest.strip():
        return lines, offset, True
    if len(lines) == room:
        return lines, offset, False
    # What lacks only its LF counts; half a line does not (STO-15).
    if _is_whole(rest) and not _is_behind(rest, part):
        lines.append(rest)
    return lines, offset, True


def _is_behind(line: bytes, part: Part) -> bool:
    """Return whether a line lies behind the ordinal at which its part is cut."""
    return part.end_ordinal is not None and _ordinal(line) >= part.end_ordinal


def _ordinal(line: bytes) -> int:
    """Return the ordinal of a line, -1 for one that has none."""
    try:
        match orjson.loads(line):
            case {"ordinal": int(ordinal)}:
                return ordinal
            case _:
                return -1
    except orjson.JSONDecodeError:
        return -1


def _is_whole(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _to_cursor(number: int, offset: int) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - few read a history by pages

    return urlsafe_b64encode(orjson.dumps([number, offset])).decode()


def _from_cursor(cursor: str, count: int) -> tuple[int, int]:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

    try:
        match orjson.loads(urlsafe_b64decode(cursor.encode())):
            case [int(number), int(offset)] if 0 <= number < count and offset >= 0:
                return number, offset
            case _:
                pass
    except ValueError:
        pass
    raise BadQuery("the cursor is not one of ours", "cursor")
