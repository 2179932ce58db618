"""Defines the inputs and results of a store of threads; `store` has its methods (STO-1).

A *thread* is one Codex conversation; its history is one or more *rollouts*, of which one is
current.  A store raises no other errors than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, TypeVar

from attrs import Factory, frozen

T = TypeVar("T")

OURS = "codex-checkpoints"
"""The originator of the threads that we make, which alone may be deleted."""

# --- errors --------------------------------------------------------------------------------------


class StoreError(Exception):
    """A store failed; the text is the reason, without any content of a history."""


class ThreadNotFound(StoreError):
    """The thread or rollout does not exist."""


class BadQuery(StoreError):
    """A query that no store could answer; `field` is the wrong part."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class UnreadableSource(StoreError):
    """A rollout that cannot be read."""


class ThreadIsLive(StoreError):
    """Another process has the thread loaded, or keeps its lock: nothing was written."""


class Conflict(StoreError):
    """The thread differs from the caller's version, or the name is taken: nothing was written."""


class Unsupported(StoreError):
    """This store, or this form of a thread, does not support that: nothing was written."""


class StorageFailed(StoreError):
    """The system refused (no space, no permission); everything that existed before is intact."""


# --- histories -----------------------------------------------------------------------------------


@frozen
class Rollout:
    """One rollout as a store lists it.

    `path` is its place in this store; `size` is in bytes, as stored; `modified_ns` is the time of
    the last change, in ns.  `version` is an opaque text that is equal while the rollout is
    unchanged; only its store interprets it (`store.has_only_grown`).
    """

    path: str
    thread_id: str
    rollout_id: str
    archived: bool
    compressed: bool
    size: int
    modified_ns: int
    version: str


def by_rollout_id(rollouts: Iterable[Rollout]) -> dict[str, str]:
    """Return the paths of rollouts by their ids; an active one precedes its archived twin."""
    paths: dict[str, str] = {}
    for rollout in rollouts:
        if rollout.rollout_id not in paths or not rollout.archived:
            paths[rollout.rollout_id] = rollout.path
    return paths


@frozen
class Mark:
    """The position of a reader, with digests of the first and the last bytes before `offset`.

    `source` is an opaque text that is equal while the rollout is not replaced.
    """

    offset: int
    source: str
    head: str
    tail: str


@frozen
class Reading:
    """The mark after the bytes that a reader consumed, and the bytes from there on."""

    mark: Mark
    rest: bytes


@frozen
class Identity:
    """The ids in the name of a rollout; the ids in its first line take precedence."""

    thread_id: str
    rollout_id: str
    compressed: bool = False


@frozen
class HistoryItem:
    """One canonical item of a history, to be written as one line.

    `extra` are further keys of the envelope (`metadata`); `timestamp` is UTC, None for the moment
    of writing.  The store adds the ordinal.
    """

    type: str
    payload: Mapping[str, object]
    timestamp: str | None = None
    extra: Mapping[str, object] = Factory(dict[str, object])


@frozen
class Copied:
    """A line taken from another rollout, without its LF: written byte for byte (WIN-10)."""

    line: bytes


@frozen
class NewThread:
    """A thread to create: `meta` is the payload of its `session_meta`, with `id` and `timestamp`.

    The history mode and the `history_base` in `meta` decide the ordinals.  `items` are read once.
    """

    meta: Mapping[str, object]
    items: Iterable[HistoryItem | Copied] = ()


@frozen
class Appended:
    """The range that an append wrote, from `start` to `end`; `ordinals` None in a legacy one."""

    rollout: Rollout
    start: int
    end: int
    ordinals: tuple[int, int] | None


# --- metadata ------------------------------------------------------------------------------------


class Unset(Enum):
    """The value of a patch's field that changes nothing."""

    UNSET = "unset"


UNSET = Unset.UNSET


@frozen
class Row:
    """A reader's results for one version of a rollout; the store only keeps them.

    `session_id` is the one in the rollout; `cwd` is the newest folder of the session, and `base`
    the one in its head, to which the paths of its files are relative; `context_source` is
    `reported` or `estimated`; `source` is the origin of the session, and `background` says that
    nobody types in it; `updated_at` the time of the last record, UTC; `recorded_name` a name in the
    history; `scratch` marks a session that was made only for a summary; `turn_open` a last turn
    without an end; `git` is JSON: the commit, branch and URL of the repository; `problems` and
    `skipped` are for `doctor`; `error` is the reason why it is unreadable.  A row is `outdated`
    when a rollout that its own is based on changed.  In the row of a rollout that was not read
    whole (`is_glance`), None means unknown: `windows`, `compactions`, `turns` and `seq` always, and
    other fields if its ends do not give them (rules, "Lists").
    """

    rollout: Rollout
    session_id: str
    cwd: str | None = None
    base: str | None = None
    recorded_name: str | None = None
    first_text: str | None = None
    task: str | None = None
    updated_at: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    source: str | None = None
    background: bool = False
    history_mode: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    context_source: str | None = None
    context_window: int | None = None
    windows: int | None = None
    compactions: int | None = None
    turns: int | None = None
    turn_open: bool | None = None
    seq: int | None = None
    forked_from: str | None = None
    parent_session: str | None = None
    base_rollout: str | None = None
    scratch: bool = False
    git: str = ""
    problems: str = ""
    skipped: str = ""
    error: str | None = None
    outdated: bool = False

    @property
    def folder(self) -> str:
        """Return the folder that lists sort the session under, empty if none is known."""
        return self.cwd or self.base or ""

    @property
    def is_glance(self) -> bool:
        """Return whether only the ends of the rollout were read."""
        return self.seq is None and self.error is None

    @property
    def must_be_read(self) -> bool:
        """Return whether its rollout is read again even if that is unchanged."""
        return self.outdated or self.error is not None  # permissions may have changed

    @property
    def is_blank(self) -> bool:
        """Return whether it was read whole and has neither a head nor a request."""
        return not (self.has_head or self.first_text or self.is_glance or self.error)

    @property
    def has_head(self) -> bool:
        """Return whether its first line is whole and a head."""
        return self.history_mode is not None

    @property
    def at(self) -> str:
        """Return the time that sorts it: the last record's, else of the last change."""
        return self.updated_at or moment(self.rollout.modified_ns)

    @property
    def path(self) -> str:
        """Return the path of the rollout."""
        return self.rollout.path

    @property
    def rollout_id(self) -> str:
        """Return the id of the rollout."""
        return self.rollout.rollout_id

    @property
    def archived(self) -> bool:
        """Return whether the rollout is archived."""
        return self.rollout.archived


@frozen
class Patch:
    """A change of metadata: each field is set, cleared (None) or unchanged.

    `name` is a person's name for the thread, durable without the index; one that is `listed` is
    only in Codex's list of names.  `row` replaces the row of one rollout of the thread; None
    removes the row of the rollout `of`.
    """

    name: str | Unset | None = UNSET
    listed: bool = False
    row: Row | Unset | None = UNSET
    of: str | None = None


@frozen
class StoredThread:
    """A thread: the row of its current rollout, and its name as it was given."""

    row: Row
    name: str | None
    live: bool


@frozen
class ThreadQuery:
    """A query for threads.

    `cwd` takes a folder and all below it, `outside` leaves out some folders and all below them;
    folders of Windows are compared without case.  `search` ignores case.  `cursor` is the
    `next_cursor` of an earlier page of the same query; `limit` None asks for all.
    """

    cwd: str | None = None
    outside: tuple[str, ...] = ()
    archived: bool = False
    search: str | None = None
    limit: int | None = None
    cursor: str | None = None


def in_text(at: datetime) -> str:
    """Return a time in UTC, ISO 8601 with milliseconds and `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def moment(time_ns: int) -> str:
    """Return a system's time in nanoseconds as `in_text`; 1970 for an impossible time."""
    try:
        return in_text(datetime.fromtimestamp(time_ns / 1e9, UTC))
    except (ValueError, OverflowError, OSError):
        return in_text(datetime.fromtimestamp(0, UTC))


def is_windows_path(path: str) -> bool:
    """Return whether a path begins like a Windows path."""
    return path[1:3] in {":\\", ":/"} or path.startswith("\\\\")


def plain_folder(path: str) -> str:
    r"""Return a folder for comparison: without its last slash; a Windows path without case.

    `\\?\C:\x` is `C:\x`, and `\\?\UNC\host\x` is `\\host\x`.
    """
    if not is_windows_path(path):
        return path.rstrip("/")
    text = path.replace("\\", "/").rstrip("/").casefold()
    while text.startswith("//?/"):
        rest = text[4:]
        text = f"//{rest.removeprefix('unc/')}" if rest.startswith("unc/") else rest
    return text


def within(folder: str) -> Callable[[str], bool]:
    """Return a test whether a path is this folder or below it, on the system that wrote both."""
    windows, above = is_windows_path(folder), plain_folder(folder)
    inside = f"{above}/"

    def test(path: str) -> bool:
        if is_windows_path(path) != windows:
            return False
        plain = plain_folder(path)
        return plain == above or plain.startswith(inside)

    return test


def folder_name(path: str) -> str:
    """Return the last part of a folder's path, on any system; the path itself without one."""
    parts = path.replace("\\", "/").split("/") if is_windows_path(path) else path.split("/")
    return next((part for part in reversed(parts) if part), path)


@frozen
class ThreadPage:
    """Threads, newest first, then by id; the cursor stays right while others come and go.

    `left` is how many follow them.
    """

    items: tuple[StoredThread, ...]
    left: int
    next_cursor: str | None


@frozen
class Touched:
    """The effect of changes at some paths on a store.

    `rollouts` are to be read again; with `everything`, some may have come or gone; with `lives`,
    Codex may have loaded threads or released them; `foreign` paths are not the store's.
    """

    rollouts: frozenset[str]
    everything: bool
    lives: bool
    foreign: frozenset[str]


@frozen
class StoreFault:
    """A defect of a store; `path` is one example of `count`.

    `code` is one of `home_missing`, `rollouts_missing`, `rollouts_unreadable`, `index_unavailable`,
    `index_remade`, `passed_over` (named like a rollout, but not one).
    """

    code: str
    path: str
    reason: str = ""
    count: int = 1


Feed = Callable[[bytes], int]
"""Takes a chunk, returns how many bytes of it were consumed; the rest is offered again."""


See = Callable[[Iterable[bytes], Iterable[bytes]], T]
"""Takes pieces of a rollout from its beginning on, and pieces from its end backwards."""


LONGEST_FIRST_LINE = 1 << 22


class RolloutReader(Protocol):
    """The bytes of rollouts, from any offset on; offsets count the plain text.

    A rollout may grow, shrink, be replaced, change its form or vanish while it is read (ROL-2,
    ROL-10); a reader notices that by a `Mark`.  All methods but `identify` raise
    `UnreadableSource`.
    """

    def identify(self, path: str) -> Identity:
        """Return the ids of a rollout by its path."""
        ...

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed the bytes after `old`, or all; None if it is a different rollout now."""
        ...

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return the final offset, and the rest.

        Bytes that `feed` left are offered again together with the next ones; when it takes nothing
        of a full chunk, reading ends.
        """
        ...

    def mark_at(self, path: str, offset: int, source: str) -> Mark:
        """Return the mark at an offset, with this `source`."""
        ...

    def first_line(self, path: str) -> bytes:
        """Return the first line that is not blank, with its LF if it has ended.

        If it does not end within `LONGEST_FIRST_LINE` bytes, return that many of them.
        """
        ...

    def ends(self, path: str, see: See[T]) -> T:
        """Return the result of `see` for the ends of a rollout: up to 1 MiB and 4 MiB of them."""
        ...
