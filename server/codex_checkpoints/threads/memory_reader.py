"""The bytes of rollouts that are kept in this process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from attrs import evolve

from codex_checkpoints.threads.contract import (
    Feed,
    Identity,
    Mark,
    Reading,
    Rollout,
    UnreadableSource,
)
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
        """Read from this mapping, whatever comes into it later."""
        self._held = held

    def identify(self, path: str) -> Identity:
        """Say who a rollout is by its place."""
        thread_id, _, rollout_id = path.removeprefix(PLACE).partition("/")
        return Identity(thread_id, rollout_id)

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed what lies behind `old`, or everything; None where it is no longer the same."""
        held = self._find(path)
        if old is not None and old != _mark(held, old.offset):
            return None
        offset, rest = self.read(path, 0 if old is None else old.offset, feed)
        return Reading(_mark(held, offset), rest)

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return where it stopped, and the rest."""
        data = self._find(path).data[:limit]
        # What was left is offered again, together with more.
        while offset < len(data) and (consumed := feed(data[offset : offset + _PORTION])):
            offset += consumed
        return offset, data[offset:]

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        """Return the mark at an offset."""
        return evolve(_mark(self._find(path), offset), inode=inode)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        """Return what lies from `start` to the end; None when that is more than `longest`."""
        data = self._find(path).data[start:]
        return data if len(data) <= longest else None

    def first_line(self, path: str) -> bytes:
        """Return the first line that is not blank."""
        return self._find(path).data.lstrip().partition(b"\n")[0]

    def _find(self, path: str) -> Held:
        held = self._held.get(path)
        if held is None:
            raise UnreadableSource("there is no such rollout")
        return held


def _mark(held: Held, offset: int) -> Mark:
    digest = hashlib.sha256(held.data[:offset]).hexdigest()
    return Mark(offset, held.rollout.look[2], digest, "")
