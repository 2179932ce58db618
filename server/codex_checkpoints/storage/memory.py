"""A store that keeps everything in this process; `contract.ThreadStore` says what the methods do.

A rollout is a name and its bytes.  Only the threads in `live` count as loaded by another process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import orjson
from attrs import evolve

from codex_checkpoints.storage import query as queries
from codex_checkpoints.storage.contract import (
    OURS,
    Appended,
    Conflict,
    Copied,
    Fault,
    Feed,
    HistoryPage,
    Identity,
    Item,
    Look,
    Mark,
    NewThread,
    Patch,
    Reading,
    Rollout,
    Row,
    StoredThread,
    ThreadIsLive,
    ThreadNotFound,
    ThreadPage,
    ThreadQuery,
    Touched,
    UnreadableSource,
    Unset,
    Unsupported,
)
from codex_checkpoints.storage.lines import End, end_of, id_of, lines_behind, lines_of
from codex_checkpoints.values import define

PLACE = "memory:"
_PORTION = 1 << 16


@define
class Held:
    """One rollout: who it is, and its bytes."""

    rollout: Rollout
    data: bytes


class MemoryReader:
    """Reads the rollouts of a store in memory; `contract.RolloutReader`."""

    def __init__(self, held: Mapping[str, Held]) -> None:
        self._held = held

    def identify(self, path: str) -> Identity:
        thread_id, _, rollout_id = path.removeprefix(PLACE).partition("/")
        return Identity(thread_id, rollout_id)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        held = self._find(path)
        if old is not None and old != _mark(held, old.offset):
            return None
        offset, rest = self.read(path, 0 if old is None else old.offset, feed)
        return Reading(_mark(held, offset), rest)

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        data = self._find(path).data[:limit]
        # What was left is offered again, together with more.
        while offset < len(data) and (consumed := feed(data[offset : offset + _PORTION])):
            offset += consumed
        return offset, data[offset:]

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        return evolve(_mark(self._find(path), offset), inode=inode)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        data = self._find(path).data[start:]
        return data if len(data) <= longest else None

    def first_line(self, path: str) -> bytes:
        return self._find(path).data.lstrip().partition(b"\n")[0]

    def _find(self, path: str) -> Held:
        held = self._held.get(path)
        if held is None:
            raise UnreadableSource("there is no such rollout")
        return held


def _mark(held: Held, offset: int) -> Mark:
    digest = hashlib.sha256(held.data[:offset]).hexdigest()
    return Mark(offset, held.rollout.look[2], digest, "")


class InMemoryThreadStore:
    """Threads that live as long as this object; `contract.ThreadStore` without any file."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._rows: dict[str, Row] = {}
        self._names: dict[str, str | None] = {}
        self._states: dict[str, object] = {}
        self._changes = 0
        self.reader = MemoryReader(self._held)
        self.live: set[str] = set()
        """The threads that count as loaded by another process."""

    def put(self, thread_id: str, data: bytes, rollout_id: str | None = None) -> Rollout:
        """Place a whole rollout as another process would: new, longer, or another one."""
        path = f"{PLACE}{thread_id}/{rollout_id or thread_id}"
        held = self._held.get(path)
        grown = held is not None and data.startswith(held.data)
        identity = held.rollout.look[2] if held is not None and grown else len(self._held) + 1
        who = (path, thread_id, rollout_id or thread_id)
        archived = held is not None and held.rollout.archived
        rollout = Rollout(*who, archived, False, self._look(data, identity))  # noqa: FBT003
        self._held[path] = Held(rollout, data)
        return rollout

    # --- histories -------------------------------------------------------------------------------

    def create_thread(self, new: NewThread, at: datetime) -> Rollout:
        thread_id = id_of(new)
        if self._rollouts_of(thread_id):
            raise Conflict("it exists already")
        return self.put(thread_id, b"".join(lines_of(new, at)))

    def append_items(
        self,
        thread_id: str,
        items: Sequence[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended:
        rollout = self._to_write(thread_id)
        if expected is not None and expected != rollout.look:
            raise Conflict("the session has gone on since it was looked at")
        old, end = self._end(rollout)
        lines, ordinals = lines_behind(end.ordinal, items, at)
        new = (b"\n" if lines and end.torn else b"") + b"".join(lines)
        now = self.put(thread_id, old + new, rollout.rollout_id) if new else rollout
        return Appended(now, len(old), len(old) + len(new), ordinals)

    def check_append(self, thread_id: str) -> None:
        self._end(self._to_write(thread_id))

    def load_history(
        self, thread_id: str, cursor: str | None = None, limit: int | None = None
    ) -> HistoryPage:
        chain = queries.parts(self.reader, self._newest(thread_id).path, self.places().get)
        return queries.history_page(self.reader, chain, cursor, limit)

    # --- what there is ---------------------------------------------------------------------------

    def rollouts(self) -> Mapping[str, Rollout]:
        return {path: held.rollout for path, held in self._held.items()}

    def places(self) -> Mapping[str, str]:
        return queries.by_rollout_id(self.rollouts().values())

    def look(self, paths: Iterable[str]) -> Mapping[str, Rollout | None]:
        now = self.rollouts()
        return {path: now.get(path) for path in paths}

    def rollout_at(self, path: str) -> Rollout:
        rollout = self.rollouts().get(path)
        if rollout is None:
            raise UnreadableSource("there is no such rollout")
        return rollout

    def beside(self, path: str) -> Mapping[str, str]:
        del path
        return {}

    def rows(self) -> Mapping[str, Row]:
        return self._rows

    def current(self) -> Mapping[str, Row]:
        return queries.current(self._rows.values())

    def live_threads(self) -> frozenset[str]:
        return frozenset(self.live)

    def name_of(self, row: Row) -> str | None:
        return self._names.get(row.session_id, row.recorded_name)

    def read_thread(self, thread_id: str) -> StoredThread:
        row = self.current().get(thread_id) or Row(self._newest(thread_id), thread_id)
        return self._stored(row)

    def list_threads(self, query: ThreadQuery) -> ThreadPage:
        rows = queries.ordered(self.current().values())
        shown, cursor = queries.page(rows, query, self.name_of)
        return ThreadPage(tuple(map(self._stored, shown)), cursor)

    # --- metadata --------------------------------------------------------------------------------

    def update_thread_metadata(self, patches: Iterable[tuple[str, Patch]]) -> None:
        patches = tuple(patches)
        for thread_id, patch in patches:
            if not isinstance(patch.name, Unset) and thread_id not in self.current():
                self._newest(thread_id)
        for thread_id, patch in patches:
            if not isinstance(patch.name, Unset):
                self._names[thread_id] = patch.name
            if isinstance(patch.row, Row):
                self._rows[patch.row.path] = patch.row
            elif patch.row is None and patch.of is not None:
                self._rows.pop(patch.of, None)
                self._states.pop(patch.of, None)

    def recall(self, path: str) -> object:
        return self._states.get(path)

    def remember(self, path: str, look: Look, state: object) -> None:
        del look
        self._states[path] = orjson.loads(orjson.dumps(state))

    # --- lifecycle -------------------------------------------------------------------------------

    def archive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archived=True)

    def unarchive_thread(self, thread_id: str) -> Rollout:
        return self._move(thread_id, archived=False)

    def delete_thread(self, thread_id: str) -> None:
        rollout = self._to_write(thread_id)
        own = queries.head(self.reader, rollout.path)
        if len(self._rollouts_of(thread_id)) > 1 or own is None or own.originator != OURS:
            raise Conflict("only sessions that codex-checkpoints made are deleted")
        if queries.is_referred_to(rollout, self._lineage(rollout.path)):
            raise Conflict("another session builds on this one or works for it")
        del self._held[rollout.path]
        self._rows.pop(rollout.path, None)
        self._states.pop(rollout.path, None)

    # --- surroundings ----------------------------------------------------------------------------

    @property
    def place(self) -> str:
        return "memory"

    @property
    def watched(self) -> tuple[str, ...]:
        return ()

    def touched(self, paths: Iterable[str]) -> Touched:
        return Touched(frozenset(), everything=False, lives=False, foreign=frozenset(paths))

    def faults(self) -> tuple[Fault, ...]:
        return ()

    def close(self) -> None:
        """Let go of nothing: what is kept goes with the object."""

    # --- inside ----------------------------------------------------------------------------------

    def _look(self, data: bytes, identity: int) -> Look:
        self._changes += 1
        return len(data), self._changes, identity

    def _stored(self, row: Row) -> StoredThread:
        return StoredThread(row, self.name_of(row), row.session_id in self.live)

    def _rollouts_of(self, thread_id: str) -> list[Rollout]:
        own = [held.rollout for held in self._held.values() if held.rollout.thread_id == thread_id]
        return sorted(own, key=queries.age)

    def _newest(self, thread_id: str) -> Rollout:
        own = self._rollouts_of(thread_id)
        if not own:
            raise ThreadNotFound("there is no such session")
        return own[-1]

    def _to_write(self, thread_id: str) -> Rollout:
        rollout = self._newest(thread_id)
        if thread_id in self.live:
            raise ThreadIsLive("another process has the session open")
        return rollout

    def _end(self, rollout: Rollout) -> tuple[bytes, End]:
        """Return the bytes of a rollout, and how it ends; raise where it cannot be continued."""
        if rollout.archived:
            raise Unsupported("an archived session is not continued; unarchive it first")
        data = self._held[rollout.path].data
        end = end_of(
            lambda start, length: data[start : start + length], len(data), rollout.thread_id
        )
        return data, end

    def _move(self, thread_id: str, *, archived: bool) -> Rollout:
        if self._to_write(thread_id).archived == archived:
            raise Conflict(f"the session is {'archived' if archived else 'active'} already")
        for rollout in self._rollouts_of(thread_id):
            held = self._held[rollout.path]
            look = self._look(held.data, rollout.look[2])
            held.rollout = evolve(rollout, archived=archived, look=look)
        return self._newest(thread_id)

    def _lineage(self, without: str) -> Iterable[queries.Named]:
        for path in self._held:
            own = None if path == without else queries.head(self.reader, path)
            if own is not None:
                base = own.base.rollout_id if own.base else None
                yield base, own.forked_from, own.parent_session
