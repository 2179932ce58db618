"""What the compactions of a session lost: each one in its file, Codex's own included.

Reading is the core's (`core.losses`); here it is given the bytes, what the session remembers, and
what our own records tell of the compactions that we made.  A session that such a compaction began
holds nothing of what that replaced: this is read from the source, as far as the compaction did.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from codex_checkpoints.core.compaction.handoff import COMPACTION
from codex_checkpoints.core.compaction.records import Installed, Range
from codex_checkpoints.core.losses.account import Account
from codex_checkpoints.core.losses.watched import Loss, Readings
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.service.history import ours
from codex_checkpoints.service.reading.first_pass import PacedReader
from codex_checkpoints.service.reading.session_file import (
    Fingerprint,
    SessionFile,
    bases_below,
    read_with,
)
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.standing import last_line_with
from codex_checkpoints.storage.contract import (
    OURS,
    Feed,
    Mark,
    Reading,
    RolloutReader,
    Row,
    UnreadableSource,
)
from codex_checkpoints.storage.durable import StorageError
from codex_checkpoints.values import frozen

LONGEST_WINDOW = 1 << 22
"""Bytes that are read while somebody waits; a window holds as much text in very few sessions."""


def losses_of(sessions: Sessions, session: str) -> tuple[Loss, ...]:
    """Return a loss for each compaction in a session's file, the oldest first (DSC-57, DSC-73).

    Of one with which the session begins it tells what the source held, where that still is as it
    was; else only what the session goes on from is known to have been there.  Raises the refusals
    of `Sessions.find`, `unreadable_source` and `storage_error`.
    """
    row, opened = sessions.open(session)
    source = _source_of(sessions, row.path)
    account = Account(sessions.projections.updates_of(opened), source=source)
    sessions.catalogue.read_with(account.replay, row)
    return _told(sessions, row, account)


def newest_loss(sessions: Sessions, row: Row) -> Loss | None:
    """Return what the newest compaction of a session lost, None where there was none.

    For whoever stands right behind it and cannot wait: the window that it closed is read, and what
    was asked and planned is taken from what is stored.  What is read again later is not told; nor
    is anything, None, where more than `LONGEST_WINDOW` bytes would have to be read.
    Refuses as `losses_of`.
    """
    opened = sessions.catalogue.open(row)
    span = _last_window(sessions, row, opened)
    if span is None:
        return None
    if span.whole:
        found = losses_of(sessions, row.path)
    else:
        account = Account(sessions.projections.updates_of(opened), opened.now())
        found = _told(sessions, row, _read_from(sessions, row, account, opened, span.start))
    return evolve(found[-1], since=Readings()) if found else None


@frozen
class _Span:
    """What has to be read: from a place in the file on, or the whole session with its bases."""

    start: int
    whole: bool


def _last_window(sessions: Sessions, row: Row, opened: SessionFile) -> _Span | None:
    """Return from where on the last window but one has to be read; None where that is too much.

    The whole session is to be read where it has no ordinals to go by, or where that window began in
    another file, be it one that a compaction of ours replaced.  Nothing that is being written is
    compressed.
    """
    head, size = opened.head, opened.mark.offset
    if row.rollout.compressed or head is None:
        return None
    least = max(0, size - LONGEST_WINDOW)
    reader, path = sessions.catalogue.reader, row.path
    if opened.replay.scale.paginated:
        try:
            newest = last_line_with(reader, path, size, (COMPACTION,), least)
            before = None
            if newest is not None:
                before = last_line_with(reader, path, newest, (COMPACTION,), least)
        except UnreadableSource:
            return None
        if before is not None:
            return _Span(before, whole=False)
        if not least and head.base is None and opened.replay.state.seed is None:
            return _Span(0, whole=False)
    return _Span(0, whole=True) if _is_short(sessions, row) else None


def _is_short(sessions: Sessions, row: Row) -> bool:
    """Return whether a session is short enough to be read whole, with what it goes on from."""
    try:
        sizes = [_below(sessions, row.path)]
        for path, source in _sources(sessions, row.path):
            sizes += [source.bytes_before, _below(sessions, path)]
    except UnreadableSource:
        return False
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and row.rollout.size + sum(known) <= LONGEST_WINDOW


def _below(sessions: Sessions, path: str) -> int | None:
    """Return how many bytes of other files a rollout builds on; None where nobody can tell."""
    catalogue = sessions.catalogue
    below, problems = bases_below(catalogue.reader, path, catalogue.chains.locator(path))
    ends = [base.end_offset for _, base in below]
    known = [end for end in ends if end is not None]
    return None if problems or len(known) < len(ends) else sum(known)


def _read_from(
    sessions: Sessions, row: Row, account: Account, opened: SessionFile, start: int
) -> Account:
    """Read the end of a session, numbered as the whole of it is."""
    replay, seed = account.replay, opened.replay.state.seed
    if opened.head is not None:
        replay.begin(opened.head)
    if seed is not None:
        replay.begin_from(seed)
    try:
        _, rest = sessions.catalogue.reader.read(row.path, start, replay.feed)
    except UnreadableSource as error:
        message = f"{row.path} cannot be read: {error}"
        raise Refusal("unreadable_source", message, {"reason": str(error)}) from error
    replay.close(rest)
    return account


# --- what a compaction of ours replaced ----------------------------------------------------------


def _source_of(sessions: Sessions, path: str) -> Account | None:
    """Return the account of what the session at a path goes on from, None where there is none.

    A source may itself have begun so; each is read once, the oldest first.
    """
    account: Account | None = None
    for place, source in reversed([*_sources(sessions, path)]):
        account = _as_it_was(sessions, place, source, account)
    return account


def _sources(sessions: Sessions, path: str) -> Iterator[tuple[str, Range]]:
    """Yield what compactions of ours replaced below a session, the nearest first, with its place.

    It ends where a record or a file is gone.
    """
    met: set[str] = set()
    place: str | None = path
    while place is not None:
        try:
            began = _beginning(sessions, place)
        except (StorageError, UnreadableSource):
            return  # what the session itself tells is still true
        if began is None or began.compaction_id in met:
            return
        met.add(began.compaction_id)
        place = _place_of(sessions, began.source.session_id)
        if place is not None:
            yield place, began.source


def _beginning(sessions: Sessions, path: str) -> Installed | None:
    """Return the compaction of ours that a session begins with, or that what it builds on does.

    Raises `UnreadableSource`, `StorageError`.
    """
    catalogue = sessions.catalogue
    reader = catalogue.reader
    own = head_of(reader.first_line(path))
    if own is None or own.inherited_below is not None:
        return None
    below, _ = bases_below(reader, path, catalogue.chains.locator(path))
    root = head_of(reader.first_line(below[-1][0])) if below else own
    if root is None or root.originator != OURS or not root.session_id:
        return None
    for record in sessions.compactions.of(root.session_id):
        match record:
            case Installed(into="new", session_id=made) if made == root.session_id:
                return record
            case _:
                pass
    return None


def _place_of(sessions: Sessions, session_id: str) -> str | None:
    """Return where a session lies by its name, which is as true of one that was just archived."""
    catalogue = sessions.catalogue
    identify = catalogue.reader.identify
    places = catalogue.store.places().values()
    own = [path for path in places if identify(path).thread_id == session_id]
    row = catalogue.current().get(session_id)
    return row.path if row is not None and row.path in own else max(own, default=None)


def _as_it_was(
    sessions: Sessions, path: str, source: Range, before: Account | None
) -> Account | None:
    """Read a session as far as a compaction did; None where it is no longer what it was."""
    catalogue, account = sessions.catalogue, Account(source=before)
    reader = _UpTo(catalogue.reader, path, source.bytes_before)
    try:
        locate = catalogue.chains.locator(path)
        opened = read_with(account.replay, reader, path, locate, catalogue.seeds)
    except UnreadableSource:
        return None
    if reader.read_bytes.digest != source.prefix:
        return None
    account.replay.close(opened.tail)
    return account


class _UpTo(PacedReader):
    """A reader of rollouts for which one of them ends at a byte; it keeps the digest up to there.

    The reader that it asks keeps the pace.
    """

    def __init__(self, reader: RolloutReader, path: str, end: int) -> None:
        """End the rollout at this path there."""
        super().__init__(reader)
        self._path = path
        self._end = end
        self.read_bytes = Fingerprint()

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed everything up to the end that was named; another rollout is none of it."""
        if path != self._path:
            return super().follow(path, old, feed)

        def fed(data: bytes) -> int:
            consumed = feed(data)
            self.read_bytes.hear(data[:consumed])
            return consumed

        reached, rest = self.read(path, 0, fed, self._end)
        self.read_bytes.hear(rest)
        return Reading(Mark(reached, 0, "", ""), rest)

    def piece(self, path: str, start: int, longest: int) -> bytes | None:
        """Return what lies from `start` to the end that was named."""
        if path != self._path:
            return super().piece(path, start, longest)
        parts: list[bytes] = []

        def kept(data: bytes) -> int:
            parts.append(data)
            return len(data)

        if self._end - start > longest:
            return None
        self.read(path, start, kept, self._end)
        return b"".join(parts)


def _told(sessions: Sessions, row: Row, account: Account) -> tuple[Loss, ...]:
    """Return the losses; of a compaction of ours our own record knows more than the file."""
    made = ours(sessions, row)
    return tuple(
        each
        if (opened := made.get(each.window_id)) is None
        else evolve(each, strategy=opened.strategy, trigger=opened.trigger)
        for each in account.losses()
    )
