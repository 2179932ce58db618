"""The lines of one rollout, pulled portion by portion, so that memory does not grow with the file.

What the lines of a whole chain are, with its cuts, is left to who asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from codex_checkpoints.core.rollout.fields import is_object, load
from codex_checkpoints.core.rollout.parsing import BOM
from codex_checkpoints.service.reading.session_file import Hear
from codex_checkpoints.threads.contract import RolloutReader

_PORTION = 1 << 24


def _nothing(_portion: bytes) -> None:
    pass


def lines_of(
    reader: RolloutReader, path: str, end: int | None = None, hear: Hear = _nothing
) -> Iterator[bytes]:
    """Yield the lines of one file that are not blank, up to the byte `end`.

    The last may lack its LF if it is whole.  `hear` is given the bytes as they are read.  Raises
    `UnreadableSource`.
    """
    offset, rest = 0, b""
    while True:
        begins = offset == 0
        portion, offset = _portion(reader, path, offset, end)
        if not portion:
            break
        hear(portion)
        *lines, rest = (rest + (portion.removeprefix(BOM) if begins else portion)).split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines if line.strip())
    if rest.strip() and is_object(load(rest)):
        yield rest.removesuffix(b"\r")


def _portion(reader: RolloutReader, path: str, offset: int, end: int | None) -> tuple[bytes, int]:
    """Read on from an offset; return what was read, and where to go on."""
    taken: list[bytes] = []
    size = 0

    def feed(data: bytes) -> int:
        nonlocal size
        if size >= _PORTION:
            return 0
        taken.append(data)
        size += len(data)
        return len(data)

    reached, _ = reader.read(path, offset, feed, end)
    return b"".join(taken), reached
