"""The storage boundary: what a store of threads can be asked, whoever keeps the bytes (STO-1).

A *thread* is one Codex conversation; its history lies in one or more *rollouts*, of which one is
current.  A store keeps histories and what is told about them.  It never derives what a history
means (STO-14): whoever reads it tells the store, by the same patch that carries a person's wishes
(STO-4).  Bytes that are there are never changed (STO-16).

Every method raises one of the errors of `terms`, and nothing else that a caller must expect; each
says what is durable when it returns.  `local_store` and `memory_store` keep this contract, and one
suite of tests holds every store to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from codex_checkpoints.threads.terms import (
    OURS,
    UNSET,
    Appended,
    BadQuery,
    Conflict,
    Copied,
    Fault,
    HistoryPage,
    Identity,
    Item,
    KeptHereAlone,
    Look,
    Mark,
    NewThread,
    Patch,
    Reading,
    Rollout,
    Row,
    StorageFailed,
    StoredThread,
    StoreError,
    ThreadIsLive,
    ThreadNotFound,
    ThreadPage,
    ThreadQuery,
    Touched,
    UnreadableSource,
    Unset,
    Unsupported,
    is_windows_path,
)

__all__ = [
    "OURS",
    "UNSET",
    "Appended",
    "BadQuery",
    "Conflict",
    "Copied",
    "Fault",
    "Feed",
    "HistoryPage",
    "Identity",
    "Item",
    "KeptHereAlone",
    "Look",
    "Mark",
    "NewThread",
    "Patch",
    "Reading",
    "Rollout",
    "RolloutReader",
    "Row",
    "StorageFailed",
    "StoreError",
    "StoredThread",
    "ThreadIsLive",
    "ThreadNotFound",
    "ThreadPage",
    "ThreadQuery",
    "ThreadStore",
    "Touched",
    "UnreadableSource",
    "Unset",
    "Unsupported",
    "is_windows_path",
]

Feed = Callable[[bytes], int]
"""Take a chunk, say how many bytes of it were consumed; the rest is offered again."""


class RolloutReader(Protocol):
    """The bytes of rollouts, from any offset on; offsets are those of the plain text.

    A rollout may grow, shrink, be replaced, change its form or vanish while it is read (ROL-2,
    ROL-10); `Mark` is how a reader notices.  All methods but `identify` raise `UnreadableSource`.
    """

    def identify(self, path: str) -> Identity:
        """Say who a rollout is, without a look at it."""
        ...

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed what lies behind `old`, or everything; None where it is no longer the same."""
        ...

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return where it stopped, and the rest.

        What `feed` left is offered again together with what follows; when it takes nothing of a
        full chunk, nothing more is wanted.
        """
        ...

    def mark_at(self, path: str, offset: int, inode: int) -> Mark:
        """Return the mark at an offset."""
        ...

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        """Return what lies from `start` to the end; None when that is more than `longest`."""
        ...

    def first_line(self, path: str) -> bytes:
        """Return the first line that is not blank, or as much of it as is read for that."""
        ...


class ThreadStore(Protocol):
    """Histories of threads, and what is told about them; owned by one thread of execution."""

    @property
    def reader(self) -> RolloutReader:
        """Return how bytes of rollouts are read."""
        ...

    # histories

    def create_thread(self, new: NewThread, at: datetime) -> Rollout:
        """Publish a thread whole; durable and visible to Codex when this returns.

        Raises `Conflict` where the id exists already, `StorageFailed`, and `Unsupported` for a head
        or a line that Codex would refuse, and for an id that is no UUID in lower case.
        """
        ...

    def append_items(
        self,
        thread_id: str,
        items: Sequence[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended:
        """Append to the current rollout in order, inferring nothing (STO-2); durable on return.

        `expected` is the look the caller's decision rests on.  Raises `ThreadNotFound`,
        `ThreadIsLive`, `Conflict` (not as expected), `StorageFailed`, `UnreadableSource` for a
        packed rollout that is damaged, and `Unsupported` for an archived thread, for a history that
        Codex would not resume, and for a line that would not go on with it.
        """
        ...

    def check_append(self, thread_id: str) -> None:
        """Make sure that a thread, as it stands, could be appended to; nothing is made or changed.

        Raises as `append_items` does of the thread itself.  What a packed rollout holds is judged
        when it is unpacked.
        """
        ...

    def load_history(
        self, thread_id: str, cursor: str | None = None, limit: int | None = None
    ) -> HistoryPage:
        """Return lines of the whole history, the bases' below the cut first.

        `cursor` is the `next_cursor` of an earlier page.  Raises `ThreadNotFound`,
        `UnreadableSource`, also for a missing base, and `BadQuery`.
        """
        ...

    # what there is

    def rollouts(self) -> Mapping[str, Rollout]:
        """Look which rollouts there are; return them by path."""
        ...

    def places(self) -> Mapping[str, str]:
        """Return by rollout id where the rollouts lie, as fast as can be: without a look at any."""
        ...

    def look(self, paths: Iterable[str]) -> Mapping[str, Rollout | None]:
        """Look at some rollouts again; None for what is none, or is gone.

        A rollout may have changed its form, so the answer may hold further paths.
        """
        ...

    def rollout_at(self, path: str) -> Rollout:
        """Look at a rollout that a person named, in this store or not.

        Raises `UnreadableSource`.
        """
        ...

    def beside(self, path: str) -> Mapping[str, str]:
        """Return by id the places of the rollouts that lie where this one lies."""
        ...

    def rows(self) -> Mapping[str, Row]:
        """Return by path what readers told of rollouts."""
        ...

    def current(self) -> Mapping[str, Row]:
        """Return the row of the current rollout of each thread, by thread id.

        A thread whose rollouts are all unreadable is none.
        """
        ...

    def live_threads(self) -> frozenset[str]:
        """Return the threads that another process has loaded now."""
        ...

    def name_of(self, row: Row) -> str | None:
        """Return what the thread of a row is called, as it was given: untrusted text."""
        ...

    def read_thread(self, thread_id: str) -> StoredThread:
        """Return one thread, by what was told of its current rollout.

        Raises `ThreadNotFound`.
        """
        ...

    def list_threads(self, query: ThreadQuery) -> ThreadPage:
        """Return threads that fit, by what was told of them.

        Raises `BadQuery` for a negative limit, or a cursor that is not a page's own.
        """
        ...

    # metadata

    def update_thread_metadata(self, patches: Iterable[tuple[str, Patch]]) -> None:
        """Apply patches, each to a thread id: the only way metadata is written (STO-3).

        Names are durable when this returns; what was derived may be lost with the index, and is
        then told again.  Raises `ThreadNotFound` for a name of no thread, `StorageFailed`
        where nothing of the name is kept, and `KeptHereAlone`.
        """
        ...

    def recall(self, path: str) -> object:
        """Return what a reader wanted to find again about a rollout, as JSON values, or None."""
        ...

    def remember(self, path: str, look: Look, state: object) -> None:
        """Keep JSON values for a reader of a rollout; they may be lost at any time."""
        ...

    # lifecycle

    def archive_thread(self, thread_id: str) -> Rollout:
        """Put all rollouts of a thread among the archived ones; done when this returns.

        One that was broken off is finished by the next.  Raises `ThreadNotFound`, `ThreadIsLive`,
        `Conflict` (it is archived already), `Unsupported`, `StorageFailed`.
        """
        ...

    def unarchive_thread(self, thread_id: str) -> Rollout:
        """Put an archived thread back; raises as `archive_thread`."""
        ...

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread that we made and that nothing refers to; its name stays on record.

        Raises `ThreadNotFound`, `ThreadIsLive`, `UnreadableSource`, `StorageFailed`, and `Conflict`
        where it is not ours, has gone on in a later rollout, or is or may be referred to.
        """
        ...

    # surroundings

    @property
    def place(self) -> str:
        """Return where the store is, in words for a person: a folder, or what else it is."""
        ...

    @property
    def watched(self) -> tuple[str, ...]:
        """Return the folders where a change, at any depth, may concern the store."""
        ...

    def touched(self, paths: Iterable[str]) -> Touched:
        """Say what changes at some paths may mean."""
        ...

    def faults(self) -> tuple[Fault, ...]:
        """Return what keeps the store from being whole."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...
