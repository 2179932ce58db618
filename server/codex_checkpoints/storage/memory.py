"""Stores everything in this process; `store.RolloutStore` documents the methods.

A rollout is a name and its bytes.  Only the threads in `live` count as loaded by another process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from attrs import evolve

from codex_checkpoints.storage.contract import (
    Appended,
    Copied,
    Feed,
    HistoryItem,
    Identity,
    Mark,
    Reading,
    Rollout,
    Row,
    ThreadIsLive,
    UnreadableSource,
)
from codex_checkpoints.storage.index import Index
from codex_checkpoints.storage.rollout_file import (
    ChunkReader,
    End,
    end_of,
    lines_after,
)
from codex_checkpoints.storage.store import RolloutStore, refuse_archived

PLACE = "memory:"
_PORTION = 1 << 16

StoredRollout = tuple[Rollout, bytes]


class MemoryReader(ChunkReader):
    """Reads the rollouts of a store in memory; `contract.RolloutReader`."""

    def __init__(self, rollouts: Mapping[str, StoredRollout]) -> None:
        self._rollouts = rollouts

    def identify(self, path: str) -> Identity:
        thread_id, _, rollout_id = path.removeprefix(PLACE).partition("/")
        return Identity(thread_id, rollout_id)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        source = _source_of(self._find(path)[0])
        if old is not None and old != self.mark_at(path, old.offset, source):
            return None
        offset, rest = self.read(path, 0 if old is None else old.offset, feed)
        return Reading(self.mark_at(path, offset, source), rest)

    def mark_at(self, path: str, offset: int, source: str) -> Mark:
        return Mark(offset, source, sha256(self._find(path)[1][:offset]).hexdigest(), "")

    def chunks(self, path: str, offset: int, limit: int | None) -> Iterator[bytes]:
        data = self._find(path)[1][offset:limit]
        return (data[at : at + _PORTION] for at in range(0, len(data), _PORTION))

    def _find(self, path: str) -> StoredRollout:
        rollout = self._rollouts.get(path)
        if rollout is None:
            raise UnreadableSource("there is no such rollout")
        return rollout


class InMemoryThreadStore(RolloutStore[None]):
    """Threads that live as long as this object."""

    place = "memory"

    def __init__(self) -> None:
        super().__init__(Index())
        self._rollouts: dict[str, StoredRollout] = {}
        self._given: dict[str, str | None] = {}
        self._changes = 0
        self.reader = MemoryReader(self._rollouts)
        self.live: set[str] = set()
        """The threads that count as loaded by another process."""

    def put(self, thread_id: str, data: bytes, rollout_id: str | None = None) -> Rollout:
        """Place a whole rollout as another process would: new, longer, or a different one."""
        path = f"{PLACE}{thread_id}/{rollout_id or thread_id}"
        before, old = self._rollouts.get(path, (None, b""))
        grown = before is not None and data.startswith(old)
        self._changes += 1
        source = _source_of(before) if before is not None and grown else str(self._changes)
        who = (path, thread_id, rollout_id or thread_id)
        archived = before is not None and before.archived
        state = (len(data), self._changes, f"{source}.{self._changes}")
        rollout = Rollout(*who, archived, False, *state)  # noqa: FBT003
        self._rollouts[path] = rollout, data
        return rollout

    def check_append(self, thread_id: str) -> None:
        rollout = self._newest(thread_id)
        with self._writing(thread_id):
            refuse_archived(rollout)
            self._end(rollout)

    def rollouts(self) -> Mapping[str, Rollout]:
        return {path: rollout for path, (rollout, _) in self._rollouts.items()}

    def has_only_grown(self, old: Rollout, new: Rollout) -> bool:
        return _source_of(old) == _source_of(new) and old.size <= new.size

    def live_threads(self) -> frozenset[str]:
        return frozenset(self.live)

    def name_of(self, row: Row) -> str | None:
        return self._given.get(row.session_id, row.recorded_name)

    def _rollouts_of(self, thread_id: str) -> list[Rollout]:
        return [each for each in self.rollouts().values() if each.thread_id == thread_id]

    def _publish(self, thread_id: str, lines: Iterable[bytes], at: datetime) -> Rollout:
        del at
        return self.put(thread_id, b"".join(lines))

    @contextlib.contextmanager
    def _writing(self, thread_id: str) -> Generator[None]:
        if thread_id in self.live:
            raise ThreadIsLive("another process has the session open")
        yield

    def _append(
        self,
        rollout: Rollout,
        items: Sequence[HistoryItem | Copied],
        at: datetime,
        lock: None,
        expected: str | None,
    ) -> Appended:
        del lock, expected
        old, end = self._rollouts[rollout.path][1], self._end(rollout)
        lines, ordinals = lines_after(end.ordinal, items, at)
        new = (b"\n" if lines and end.torn else b"") + b"".join(lines)
        now = self.put(rollout.thread_id, old + new, rollout.rollout_id) if new else rollout
        return Appended(now, len(old), len(old) + len(new), ordinals)

    def _put(self, rollout: Rollout, lock: None, *, archived: bool) -> None:
        del lock
        data = self._rollouts[rollout.path][1]
        now = self.put(rollout.thread_id, data, rollout.rollout_id)
        self._rollouts[rollout.path] = evolve(now, archived=archived), data

    def _remove(self, rollout: Rollout, lock: None) -> None:
        del lock, self._rollouts[rollout.path]

    def _give_name(self, row: Row, name: str | None, *, listed: bool) -> None:  # noqa: ARG002
        self._given[row.session_id] = name

    def _end(self, rollout: Rollout) -> End:
        """Return the end of a rollout; raises if it cannot be continued."""
        data = self._rollouts[rollout.path][1]
        return end_of(
            lambda start, length: data[start : start + length], len(data), rollout.thread_id
        )


def _source_of(rollout: Rollout) -> str:
    """Return the first part of a version: the change by which the rollout was last replaced."""
    return rollout.version.partition(".")[0]
