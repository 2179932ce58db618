"""The nouns of the storage boundary: what goes into a store, what comes out, what it refuses.

Values alone; what is asked with them is said in `contract`, from which everybody outside takes
these as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from attrs import Factory

from codex_checkpoints.values import frozen

OURS = "codex-checkpoints"
"""The originator of the threads that we make, which alone may be deleted."""

# --- errors --------------------------------------------------------------------------------------


class StoreError(Exception):
    """What a store could not do; the text says why, without any content of a history."""


class ThreadNotFound(StoreError):
    """There is no such thread, or no such rollout."""


class BadQuery(StoreError):
    """A query that no store could answer; `field` is the wrong part."""

    def __init__(self, message: str, field: str) -> None:
        """Say what is wrong, and with which part."""
        super().__init__(message)
        self.field = field


class UnreadableSource(StoreError):
    """A rollout that cannot be read."""


class ThreadIsLive(StoreError):
    """Another process has the thread loaded, or keeps its lock: nothing was written."""


class Conflict(StoreError):
    """The thread is not as the caller saw it, or the name is taken: nothing was written."""


class Unsupported(StoreError):
    """This store, or this form of a thread, cannot do that: nothing was written."""


class StorageFailed(StoreError):
    """The system refused (no space, no permission): what was there before is whole."""


class KeptHereAlone(StorageFailed):
    """A name is kept and counts, but the system refused to have others told of it."""


# --- histories -----------------------------------------------------------------------------------

Look = tuple[int, int, int]
"""Size, time of change in ns and identity: what must be equal for a rollout to be unchanged."""


@frozen
class Rollout:
    """One rollout as a store lists it; `path` is its place in the store's own terms."""

    path: str
    thread_id: str
    rollout_id: str
    archived: bool
    compressed: bool
    look: Look

    @property
    def size(self) -> int:
        """Return the size in bytes as stored."""
        return self.look[0]

    @property
    def mtime_ns(self) -> int:
        """Return when it was changed last."""
        return self.look[1]


@frozen
class Mark:
    """Where a reader stands in a rollout, and what lies around that place.

    `head` and `tail` are digests of the first and the last bytes before `offset`.
    """

    offset: int
    inode: int
    head: str
    tail: str


@frozen
class Reading:
    """How far a reader came: the mark behind what was consumed, and what lies from there on."""

    mark: Mark
    rest: bytes


@frozen
class Identity:
    """Who a rollout is by its place alone; what its own first line says goes before that."""

    thread_id: str
    rollout_id: str


@frozen
class Item:
    """One canonical item of a history, to be written as one line.

    `extra` are further keys of the envelope (`metadata`); `timestamp` is UTC, the moment of writing
    where it is None.  The ordinal is the store's business.
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
    """A thread to be made: `meta` is the payload of its `session_meta`, with `id` and `timestamp`.

    Its history mode and its `history_base`, if any, stand in `meta`; ordinals follow from them.
    A store goes through `items` once, so that a long history need not be in memory.
    """

    meta: Mapping[str, object]
    items: Iterable[Item | Copied] = ()


@frozen
class Appended:
    """What an append wrote: `ordinals` of the first and last line, None in a legacy history.

    The new bytes lie from `start` to `end` in the rollout.
    """

    rollout: Rollout
    start: int
    end: int
    ordinals: tuple[int, int] | None


@frozen
class HistoryPage:
    """Lines of a history in order, without LF, as they stand; `next_cursor` None at the end."""

    lines: tuple[bytes, ...]
    next_cursor: str | None


# --- metadata ------------------------------------------------------------------------------------


class Unset(Enum):
    """The value of a patch's field that leaves things alone."""

    UNSET = "unset"


UNSET = Unset.UNSET


@frozen
class Row:
    """What a reader found in one rollout, at one look at it; the store only remembers it.

    `session_id` is whom the rollout itself says it is; `context_source` is `reported` or
    `estimated`; `updated_at` the time of the last record, UTC; `recorded_name` a name that the
    history tells; `scratch` says that it was made for a summary, and that nobody works in it;
    `turn_open` says that more is to come in the last turn; `problems` and `skipped`
    are for the diagnosis; `error` stands where the rollout was unreadable.
    """

    rollout: Rollout
    session_id: str
    cwd: str | None = None
    recorded_name: str | None = None
    first_text: str | None = None
    task: str | None = None
    updated_at: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    history_mode: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    context_source: str | None = None
    context_window: int | None = None
    windows: int = 1
    compactions: int = 0
    turns: int = 0
    turn_open: bool = False
    seq: int = -1
    forked_from: str | None = None
    parent_session: str | None = None
    base_rollout: str | None = None
    scratch: bool = False
    problems: str = ""
    skipped: str = ""
    error: str | None = None

    @property
    def path(self) -> str:
        """Return the place of the rollout."""
        return self.rollout.path

    @property
    def rollout_id(self) -> str:
        """Return which rollout it is."""
        return self.rollout.rollout_id

    @property
    def archived(self) -> bool:
        """Return whether the rollout lies among the archived ones."""
        return self.rollout.archived


@frozen
class Patch:
    """The one shape of a metadata change: each field is set, cleared (None) or left alone.

    `name` is what a person calls the thread: durable apart from any index.  `row` replaces what is
    known of one rollout of the thread; None forgets what is known of the rollout `of`.
    """

    name: str | Unset | None = UNSET
    row: Row | Unset | None = UNSET
    of: str | None = None


@frozen
class StoredThread:
    """A thread as a store tells it: what was told of its current rollout, what it is called.

    `name` is the canonical name, else that of an older source: text as it was given.
    """

    row: Row
    name: str | None
    live: bool

    @property
    def thread_id(self) -> str:
        """Return the id of the thread."""
        return self.row.session_id


@frozen
class ThreadQuery:
    """Which threads are wanted.

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


def is_windows_path(path: str) -> bool:
    """Return whether a folder is one of Windows, by how it begins."""
    return path[1:3] in {":\\", ":/"} or path.startswith("\\\\")


@frozen
class ThreadPage:
    """Threads, newest first, then by id; the cursor stays right while others come and go."""

    items: tuple[StoredThread, ...]
    next_cursor: str | None


@frozen
class Touched:
    """What changes at some paths mean for a store.

    `rollouts` are to be looked at again; where `everything` is, more may have come or gone; where
    `lives` is, threads may have been loaded or let go; `foreign` paths are none of the store's.
    """

    rollouts: frozenset[str]
    everything: bool
    lives: bool
    foreign: frozenset[str]


@frozen
class Fault:
    """Something that keeps a store from being whole, in words of the store.

    `code` is one of `home_missing`, `rollouts_missing`, `rollouts_unreadable`, `unnamable`,
    `index_unavailable`, `passed_over` (what is called like a rollout and is none); `reason` is the
    system's, where it gave one, and of what was passed over why.  Of `count` alike `path` is one.
    """

    code: str
    path: str
    reason: str = ""
    count: int = 1
