"""Cold session files, which Codex packed into one zstd frame, made plain again as Codex does it.

A packed file is never appended to.  It is unpacked beside itself, and goes only when the plain one
stands there complete.  Of both forms of a file the plain one counts, so a process may be killed at
any point.  Reading packed files, without a change to them, is left to `rollout_file`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator

from codex_checkpoints import unfinished
from codex_checkpoints.core.rollout.reader import CHUNK
from codex_checkpoints.threads import publishing
from codex_checkpoints.threads.contract import Conflict, UnreadableSource, Unsupported
from codex_checkpoints.threads.locks import WriterLock

PACKED = ".zst"
_WINDOW_LOG = 25  # a packed file may ask for 32 MiB of memory, no more
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


def unpack(path: str, lock: WriterLock) -> str:
    """Put the plain file into the place of a `.zst`; return its path, durable.

    Time of change and permissions stay those of the packed file.  Killed at any point, this leaves
    the packed file, or both.  Raises `UnreadableSource` when it cannot be unpacked to its end,
    `Conflict` when it is gone or lies there twice and differs, `StorageFailed`.
    """
    lock.check(path)
    if not path.endswith(PACKED):
        raise Unsupported("the session file is plain already")
    plain = path.removesuffix(PACKED)
    if os.path.lexists(plain):
        drop_twin(plain, lock)
        return plain
    with publishing.storage():
        look = _look(path)
        temporary = publishing.temporary_beside(plain)
        unfinished.discard(temporary)  # of somebody who was killed: the lock is ours now
        with publishing.temporary_file(temporary, _plain(path)):
            if os.name != "nt":
                os.chmod(temporary, stat.S_IMODE(look.st_mode))
            os.utime(temporary, ns=(look.st_atime_ns, look.st_mtime_ns))
            publishing.take_name(temporary, plain)
        os.unlink(path)
        publishing.sync_folder(os.path.dirname(path))
    return plain


def drop_twin(path: str, lock: WriterLock) -> None:
    """Remove the packed form that lies beside a plain file, if the plain one holds all of it.

    It would come to light again when the plain file is moved or removed.  Raises `Conflict` when it
    holds anything else, `StorageFailed`.
    """
    lock.check(path)
    packed = path + PACKED
    with publishing.storage():
        if not os.path.lexists(packed):
            return
        if not _begins_with(path, packed):
            raise Conflict("the session file lies there twice, and the two differ")
        os.unlink(packed)
        publishing.sync_folder(os.path.dirname(path))


def _begins_with(path: str, packed: str) -> bool:
    """Return whether a plain file begins with everything that a packed one holds."""
    descriptor = os.open(path, _FLAGS)
    try:
        return all(os.read(descriptor, len(data)) == data for data in _plain(packed))
    except UnreadableSource:
        return False
    finally:
        os.close(descriptor)


def _look(path: str) -> os.stat_result:
    try:
        look = os.stat(path, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Conflict("the session file is gone") from error
    if not stat.S_ISREG(look.st_mode):
        raise UnreadableSource("not a regular file")
    return look


def _plain(path: str) -> Iterator[bytes]:
    """Yield what a packed file holds; raises `UnreadableSource` where it is damaged."""
    # Imported when needed: most homes hold no packed session at all.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415

    options = {int(zstd.DecompressionParameter.window_log_max): _WINDOW_LOG}
    with os.fdopen(os.open(path, _FLAGS), "rb") as packed:
        try:
            with zstd.ZstdFile(packed, options=options) as plain:
                while data := plain.read(CHUNK):
                    yield data
        except (EOFError, zstd.ZstdError) as error:
            raise UnreadableSource(str(error)) from error
