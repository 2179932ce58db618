"""`audit.jsonl`: the events of all operations, a chain (`core.audit`); `audit.head` is its end.

An event is recorded when its line is.  The head comes after it, so a crash between the two leaves a
head that is older than the file: the next line is chained to what stands there.  A file that is no
continuation of its head was changed by somebody; the next line is chained to the head all the same,
so that the break stays to be found.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

import orjson

from codex_checkpoints.core.audit import NOTHING, PREVIOUS, Head, digest_of, sealed
from codex_checkpoints.core.rollout.fields import load, object_of
from codex_checkpoints.storage import durable

AUDIT = "audit.jsonl"
HEAD = "audit.head"
_LARGEST_HEAD = 4096


class Audit:
    """The audit of a state folder."""

    def __init__(self, state_dir: str) -> None:
        self._path = os.path.join(state_dir, AUDIT)
        self._head = os.path.join(state_dir, HEAD)

    def add(self, event: Mapping[str, object]) -> None:
        """Append an event, sealed and chained, durable on return; raises `StorageError`.

        Only what came behind the head is read.
        """
        with durable.locked(self._path) as file, durable.storage_errors():
            end = self._end(file)
            line = orjson.dumps(sealed({**event, PREVIOUS: end.last}))
            durable.append(file, line + b"\n", os.path.dirname(self._path))
            head = Head(end.lines + 1, digest_of(line), os.fstat(file).st_size)
            with contextlib.suppress(OSError):  # the event is there; an older head is no fault
                told = {"count": head.lines, "last": head.last, "size": head.size}
                durable.replace(self._head, orjson.dumps(told) + b"\n")

    def events(self) -> Iterator[object]:
        """Yield the readable lines, the oldest first; raises `StorageError`."""
        return durable.lines_in(self._path)

    def head(self) -> Head | None:
        """Return the head; None where there is none."""
        try:
            found = object_of(load(durable.read(self._head, _LARGEST_HEAD)))
        except (OSError, durable.TooLarge):
            return None
        match found:
            case {"count": int(count), "last": str(last), "size": int(size)}:
                return Head(count, last, size)
            case _:
                return None

    def lines(self) -> Iterator[tuple[object, str]]:
        """Yield every line, `Unreadable` for what is none, and the digest of its bytes.

        Raises `StorageError`.
        """
        for line in durable.raw_lines_in(self._path):
            yield durable.value_of(line), digest_of((line or b"").removesuffix(b"\n"))

    def _end(self, file: int) -> Head:
        """Return the end of the locked file, or the head that it does not continue."""
        head, size = self.head() or NOTHING, os.fstat(file).st_size
        if size <= head.size:
            return head
        count, last = head.lines, head.last
        with open(os.dup(file), "rb") as behind:
            behind.seek(max(0, head.size - 1))
            if head.size and behind.read(1) != b"\n":
                return head
            for line in behind:
                event = object_of(durable.value_of(line))
                if head.lines and event and event.get(PREVIOUS) != last:
                    return head
                count, last = count + 1, digest_of(line.removesuffix(b"\n"))
        return Head(count, last, size)
