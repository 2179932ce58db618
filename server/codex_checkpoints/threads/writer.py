"""Writing session files: a new one whole, lines at the end of an old one, its place (STO-12, -16).

Only what is already canonical comes in; what it means, and what is told about it elsewhere, is not
known here.  Bytes that are there are never changed, so everything but a new file needs the thread's
`WriterLock`.  All that this writes by itself is ASCII: a line that a crash cut off is still UTF-8,
and Codex, which refuses a file with any byte that is not, goes on with the next line (STO-15).

What Codex 0.169 makes of `move`: it keeps the path of a thread in a database of its own.  Without
such a row it goes by the folder: what lies in `archived_sessions/` is archived, and `codex
unarchive` takes it back.  With one, it still lists a moved file rightly, but neither resumes,
archives nor unarchives it ("no rollout found"), until it lies in its old place again or the
database is made anew.  Codex itself moves all files of a thread: later segments build on earlier
ones.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Generator, Iterable, Sequence
from datetime import UTC, datetime

from codex_checkpoints.threads import cold, publishing, tail
from codex_checkpoints.threads.contract import Conflict, Copied, Item, Look, Unsupported
from codex_checkpoints.threads.locks import WriterLock
from codex_checkpoints.threads.tree import look_of
from codex_checkpoints.values import frozen

clear_leftovers = publishing.clear_leftovers

_ENVELOPE = frozenset({"timestamp", "ordinal", "type", "payload"})
_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


@frozen
class Written:
    """What an append wrote: the bytes from `start` to `end`, with the LF of a `repaired` last line.

    `ordinals` are those of the first and the last line, None in a legacy history.
    """

    start: int
    end: int
    ordinals: tuple[int, int] | None
    repaired: bool


def line_of(item: Item, ordinal: int | None, at: datetime) -> bytes:
    """Return an item as one line with its LF, in the order of keys that Codex writes.

    `at` stands in where the item has no time of its own.  Raises `Unsupported` for what is no JSON
    that Codex can read: a number that is none, half a surrogate pair, a key of the envelope twice.
    """
    if not _ENVELOPE.isdisjoint(item.extra):
        raise Unsupported("a key of the envelope stands in `extra` as well")
    moment = at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    envelope: dict[str, object] = {"timestamp": item.timestamp or moment}
    if ordinal is not None:
        envelope["ordinal"] = ordinal
    envelope |= {"type": item.type, "payload": dict(item.payload), **item.extra}
    compact = (",", ":")
    try:
        text = json.dumps(envelope, ensure_ascii=False, allow_nan=False, separators=compact)
        text.encode()
    except ValueError as error:  # whose text may hold some of the item
        raise Unsupported("an item that is no JSON in Unicode") from error
    if not text.isascii():
        text = json.dumps(envelope, separators=compact)
    return text.encode("ascii") + b"\n"


def lines_behind(
    last: int | None, items: Sequence[Item | Copied], at: datetime
) -> tuple[list[bytes], tuple[int, int] | None]:
    """Return lines behind one with the ordinal `last`, and the ordinals of their first and last.

    Raises `Unsupported` for a copied line that does not go on there.
    """
    lines: list[bytes] = []
    for number, item in enumerate(items, 1):
        ordinal = None if last is None else last + number
        match item:
            case Item():
                lines.append(line_of(item, ordinal, at))
            case Copied(line=line):
                if not tail.follows(line, ordinal):
                    raise Unsupported("a copied line does not go on with the history")
                lines.append(line + b"\n")
    return lines, (last + 1, last + len(lines)) if last is not None and lines else None


def publish(path: str, lines: Iterable[bytes], nursery: str) -> None:
    """Write a new session file from whole lines; durable and complete when it appears.

    It grows in `nursery`, or beside its place where that is another file system; memory does not
    grow with it.  Raises `Conflict` when there is such a file, packed or not, `StorageFailed`; then
    nothing is left.
    """
    if os.path.lexists(path) or os.path.lexists(path + cold.PACKED):
        raise Conflict("there is such a session file already")
    with publishing.storage():
        os.makedirs(nursery, mode=0o700, exist_ok=True)
        temporary = publishing.temporary_in(nursery, path)
        with publishing.temporary_file(temporary, lines):
            publishing.take_name(temporary, path)


def append(
    path: str, items: Sequence[Item | Copied], at: datetime, lock: WriterLock, expected: Look | None
) -> Written:
    """Append lines to a plain session file in one write, durable when this returns.

    A paginated history is numbered on.  Where the last line has no LF, that is written first.
    Raises `Conflict` when the file is gone or not as `expected`, `Unsupported` for a file or a line
    that Codex would refuse, `StorageFailed`.  After an error the file is as it was: what came to
    the disk is cut off again, unless somebody without the lock has written behind it.
    """
    lock.check(path)
    if path.endswith(cold.PACKED):
        raise Unsupported("a packed session file is not appended to; unpack it first")
    with publishing.storage(), _opened(path) as (file, look):
        if expected is not None and expected != look_of(look):
            raise Conflict("the session file has changed since it was looked at")
        end = tail.end_of(tail.reading(file), look.st_size, lock.thread_id)
        lines, ordinals = lines_behind(end.ordinal, items, at)
        data = (b"\n" if lines and end.torn else b"") + b"".join(lines)
        stop = _write(file, look.st_size, data) if data else look.st_size
        return Written(stop - len(data), stop, ordinals, data[:1] == b"\n")


def check(path: str, thread_id: str) -> None:
    """Make sure that `append` could go on with a plain session file as it is now.

    Raises `Conflict`, `Unsupported` and `StorageFailed` as that does.
    """
    with publishing.storage(), _opened(path) as (file, look):
        tail.end_of(tail.reading(file), look.st_size, thread_id)


def move(source: str, target: str, lock: WriterLock) -> None:
    """Give a session file another place; its time of change stays.  Durable when this returns.

    It is one step: killed, it leaves the file in the old place or in the new one.  Raises
    `Conflict` when the source is gone or the target taken, `StorageFailed`.
    """
    lock.check(source)
    lock.check(target)
    _drop_twin(source, lock)
    with publishing.storage():
        publishing.make_folder(os.path.dirname(target))
        plain = target.removesuffix(cold.PACKED)
        # A file of this name could only come from another move of this thread, and we hold its
        # lock: so this is no race, and one rename is better than a link and a removal.
        if os.path.lexists(plain) or os.path.lexists(plain + cold.PACKED):
            raise Conflict("there is such a session file already")
        try:
            os.rename(source, target)
        except FileNotFoundError as error:
            raise Conflict("the session file is gone") from error
        publishing.sync_folder(os.path.dirname(target))
        publishing.sync_folder(os.path.dirname(source))


def remove(path: str, lock: WriterLock) -> None:
    """Remove a session file, in both forms; durable when this returns.

    One that is gone already is no error.  Raises `Conflict`, `StorageFailed`.
    """
    lock.check(path)
    _drop_twin(path, lock)
    with publishing.storage(), contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    publishing.sync_folder(os.path.dirname(path))


def _drop_twin(path: str, lock: WriterLock) -> None:
    if not path.endswith(cold.PACKED) and os.path.lexists(path):
        cold.drop_twin(path, lock)


def _write(file: int, size: int, data: bytes) -> int:
    """Write all or nothing at the end of a file of `size` bytes; return where the data ends."""
    written = 0
    try:
        while written < len(data):  # once, unless the system takes less
            written += os.write(file, data[written:])
        os.fsync(file)
    except BaseException:
        with contextlib.suppress(OSError):
            if os.fstat(file).st_size == size + written:  # nobody else's bytes behind ours
                os.ftruncate(file, size)
                os.fsync(file)
        raise
    return os.lseek(file, 0, os.SEEK_CUR)


@contextlib.contextmanager
def _opened(path: str) -> Generator[tuple[int, os.stat_result]]:
    """Open a plain session file for appending; raises `Conflict` where it is gone."""
    try:
        file = os.open(path, _FLAGS)
    except FileNotFoundError as error:
        raise Conflict("the session file is gone") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unsupported("a link is not followed") from error
        raise
    try:
        look = os.fstat(file)
        if not stat.S_ISREG(look.st_mode):
            raise Unsupported("not a regular file")
        yield file, look
    finally:
        os.close(file)
