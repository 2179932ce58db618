"""A store that nobody would ship: all of it is one JSON text, read and written as a whole.

It stands for a store from elsewhere.  What it shares with ours is the contract and the few pure
rules of `query`, `history`, `numbering` and `tail` that any store may borrow.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import asdict, evolve

from codex_checkpoints.storage import contract as c
from codex_checkpoints.storage import query as rules
from codex_checkpoints.storage.lines import end_of, id_of, lines_behind, lines_of

EMPTY = '{"data": {}, "rollouts": {}, "rows": {}, "names": {}, "states": {}, "ticks": 0}'


class ToyStore:
    """`contract.ThreadStore` over a text; bytes are kept as Latin-1, which has all of them."""

    place = "a toy"
    watched = ()

    def __init__(self, text: str = EMPTY) -> None:
        self.text = text
        self.live: set[str] = set()

    @property
    def reader(self) -> c.RolloutReader:
        return self

    def close(self) -> None: ...

    def put(self, thread_id: str, data: bytes, rollout_id: str | None = None) -> c.Rollout:
        doc, path = self._doc(), f"{thread_id} {rollout_id or thread_id}"
        old: dict[str, Any] = doc["rollouts"].get(path, {})
        grown = bool(old) and data.startswith(self._data(path))
        doc["ticks"] += 1
        look: c.Look = (len(data), doc["ticks"], old["look"][2] if grown else doc["ticks"])
        doc["rollouts"][path] = asdict(
            c.Rollout(path, thread_id, path[37:], bool(old.get("archived")), False, look)
        )
        doc["data"][path] = data.decode("latin-1")
        self._keep(doc)
        return self.rollouts()[path]

    # --- the bytes ---

    def identify(self, path: str) -> c.Identity:
        return c.Identity(path[:36], path[37:])

    def follow(self, path: str, old: c.Mark | None, feed: c.Feed) -> c.Reading | None:
        inode = self.rollout_at(path).look[2]
        if old is not None and old != self.mark_at(path, old.offset, inode):
            return None
        offset, rest = self.read(path, old.offset if old else 0, feed)
        return c.Reading(self.mark_at(path, offset, inode), rest)

    def read(
        self, path: str, offset: int, feed: c.Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        data = self._data(path)[:limit]
        while offset < len(data) and (consumed := feed(data[offset:])):
            offset += consumed
        return offset, data[offset:]

    def mark_at(self, path: str, offset: int, inode: int) -> c.Mark:
        return c.Mark(offset, inode, str(hash(self._data(path)[:offset])), "")

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        data = self._data(path)[start:]
        return data if len(data) <= longest else None

    def first_line(self, path: str) -> bytes:
        return self._data(path).lstrip().split(b"\n")[0]

    # --- histories ---

    def create_thread(self, new: c.NewThread, at: datetime) -> c.Rollout:
        thread_id = id_of(new)
        if self._own(thread_id):
            raise c.Conflict("there is such a thread")
        return self.put(thread_id, b"".join(lines_of(new, at)))

    def append_items(
        self,
        thread_id: str,
        items: Sequence[c.Item | c.Copied],
        at: datetime,
        expected: c.Look | None = None,
    ) -> c.Appended:
        rollout = self._to_change(thread_id)
        if rollout.archived:
            raise c.Unsupported("archived")
        if expected not in {None, rollout.look}:
            raise c.Conflict("it has gone on")
        data = self._data(rollout.path)
        end = end_of(lambda start, length: data[start : start + length], len(data), thread_id)
        lines, span = lines_behind(end.ordinal, items, at)
        if not lines:
            return c.Appended(rollout, len(data), len(data), None)
        whole = data + (b"\n" if end.torn else b"") + b"".join(lines)
        return c.Appended(
            self.put(thread_id, whole, rollout.rollout_id), len(data), len(whole), span
        )

    def check_append(self, thread_id: str) -> None:
        rollout = self._to_change(thread_id)
        if rollout.archived:
            raise c.Unsupported("archived")
        data = self._data(rollout.path)
        end_of(lambda start, length: data[start : start + length], len(data), thread_id)

    # --- what there is ---

    def rollouts(self) -> Mapping[str, c.Rollout]:
        return {path: _rollout(found) for path, found in self._doc()["rollouts"].items()}

    def places(self) -> Mapping[str, str]:
        return rules.by_rollout_id(self.rollouts().values())

    def look(self, paths: Iterable[str]) -> Mapping[str, c.Rollout | None]:
        return {path: self.rollouts().get(path) for path in paths}

    def rollout_at(self, path: str) -> c.Rollout:
        self._data(path)
        return self.rollouts()[path]

    def beside(self, path: str) -> Mapping[str, str]:
        del path
        return {}

    def rows(self) -> Mapping[str, c.Row]:
        return {path: _row(found) for path, found in self._doc()["rows"].items()}

    def current(self) -> Mapping[str, c.Row]:
        return rules.current(self.rows().values())

    def live_threads(self) -> frozenset[str]:
        return frozenset(self.live)

    def name_of(self, row: c.Row) -> str | None:
        return self._doc()["names"].get(row.session_id, row.recorded_name)

    def read_thread(self, thread_id: str) -> c.StoredThread:
        return self._stored(
            self.current().get(thread_id) or c.Row(self._newest(thread_id), thread_id)
        )

    def list_threads(self, query: c.ThreadQuery) -> c.ThreadPage:
        rows = rules.ordered(self.current().values())
        shown, cursor = rules.page(rows, query, self.name_of)
        return c.ThreadPage(tuple(map(self._stored, shown)), cursor)

    # --- metadata ---

    def update_thread_metadata(self, patches: Iterable[tuple[str, c.Patch]]) -> None:
        doc = self._doc()
        for thread_id, patch in patches:
            if not isinstance(patch.name, c.Unset):
                self.read_thread(thread_id)
                doc["names"][thread_id] = patch.name
            if isinstance(patch.row, c.Row):
                doc["rows"][patch.row.path] = asdict(patch.row)
            elif patch.row is None:
                doc["rows"].pop(patch.of, None)
                doc["states"].pop(patch.of, None)
        self._keep(doc)

    def recall(self, path: str) -> object:
        return self._doc()["states"].get(path)

    def remember(self, path: str, look: c.Look, state: object) -> None:
        doc = self._doc()
        doc["states"][path] = state if look else None
        self._keep(doc)

    # --- lifecycle ---

    def archive_thread(self, thread_id: str) -> c.Rollout:
        return self._move(thread_id, archived=True)

    def unarchive_thread(self, thread_id: str) -> c.Rollout:
        return self._move(thread_id, archived=False)

    def delete_thread(self, thread_id: str) -> None:
        rollout = self._to_change(thread_id)
        heads = {path: rules.head(self, path) for path in self.rollouts()}
        own = heads.pop(rollout.path)
        others = [
            (h.base and h.base.rollout_id, h.forked_from, h.parent_session)
            for h in heads.values()
            if h
        ]
        if not own or own.originator != "codex-checkpoints" or len(self._own(thread_id)) > 1:
            raise c.Conflict("not ours")
        if rules.is_referred_to(rollout, others):
            raise c.Conflict("referred to")
        doc = self._doc()
        for table in ("data", "rollouts", "rows", "states"):
            doc[table].pop(rollout.path, None)
        self._keep(doc)

    # --- surroundings ---

    def touched(self, paths: Iterable[str]) -> c.Touched:
        return c.Touched(frozenset(), everything=False, lives=False, foreign=frozenset(paths))

    def faults(self) -> tuple[c.Fault, ...]:
        return ()

    # --- inside ---

    def _doc(self) -> dict[str, Any]:
        return json.loads(self.text)

    def _keep(self, doc: dict[str, Any]) -> None:
        self.text = json.dumps(doc)

    def _data(self, path: str) -> bytes:
        data = self._doc()["data"].get(path)
        if data is None:
            raise c.UnreadableSource("no such rollout")
        return data.encode("latin-1")

    def _stored(self, row: c.Row) -> c.StoredThread:
        return c.StoredThread(row, self.name_of(row), row.session_id in self.live)

    def _own(self, thread_id: str) -> list[c.Rollout]:
        own = [each for each in self.rollouts().values() if each.thread_id == thread_id]
        return sorted(own, key=rules.age)

    def _newest(self, thread_id: str) -> c.Rollout:
        if not self._own(thread_id):
            raise c.ThreadNotFound("no such thread")
        return self._own(thread_id)[-1]

    def _to_change(self, thread_id: str) -> c.Rollout:
        if thread_id in self.live:
            raise c.ThreadIsLive("loaded")
        return self._newest(thread_id)

    def _move(self, thread_id: str, *, archived: bool) -> c.Rollout:
        if self._to_change(thread_id).archived == archived:
            raise c.Conflict("there already")
        doc = self._doc()
        for rollout in self._own(thread_id):
            doc["rollouts"][rollout.path] = asdict(evolve(rollout, archived=archived))
        self._keep(doc)
        return self._newest(thread_id)


def _rollout(found: dict[str, Any]) -> c.Rollout:
    values: dict[str, Any] = {**found, "look": tuple(found["look"])}
    return c.Rollout(**values)


def _row(found: dict[str, Any]) -> c.Row:
    values: dict[str, Any] = {**found, "rollout": _rollout(found["rollout"])}
    return c.Row(**values)
