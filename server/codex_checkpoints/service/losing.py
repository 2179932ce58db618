"""What the compactions of a session lost: each one in its file, Codex's own included.

Reading is the core's (`core.losses`); here it is given the bytes, what the session remembers, and
what our own records tell of the compactions that we made.
"""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.core.compaction.recent import COMPACTION
from codex_checkpoints.core.losses.account import Account
from codex_checkpoints.core.losses.records import Loss, Readings
from codex_checkpoints.service.history import ours
from codex_checkpoints.service.reading.session_file import SessionFile, bases_below
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.standing import last_line_with
from codex_checkpoints.threads.contract import Row, UnreadableSource
from codex_checkpoints.values import frozen

LONGEST_WINDOW = 1 << 22
"""Bytes that are read while somebody waits; a window holds as much text in very few sessions."""


def losses_of(sessions: Sessions, session: str) -> tuple[Loss, ...]:
    """Return a loss for each compaction in a session's file, the oldest first (DSC-57, DSC-73).

    Raises the refusals of `Sessions.find`, `unreadable_source` and `storage_error`.
    """
    row, opened = sessions.open(session)
    account = Account(sessions.projections.updates_of(opened))
    return _told(sessions, row, sessions.catalogue.read_with(account, row))


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
    another file.  Nothing that is being written is compressed.
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
        if not least and head.base is None:
            return _Span(0, whole=False)
    return _Span(0, whole=True) if _is_short(sessions, row) else None


def _is_short(sessions: Sessions, row: Row) -> bool:
    """Return whether a session is short enough to be read whole, with what it builds on."""
    catalogue = sessions.catalogue
    try:
        locate = catalogue.chains.locator(row.path)
        below, problems = bases_below(catalogue.reader, row.path, locate)
    except UnreadableSource:
        return False
    ends = [base.end_offset for _, base in below]
    known = [end for end in ends if end is not None]
    if problems or len(known) < len(ends):
        return False
    return row.rollout.size + sum(known) <= LONGEST_WINDOW


def _read_from(
    sessions: Sessions, row: Row, account: Account, opened: SessionFile, start: int
) -> Account:
    """Read the end of a session, numbered as the whole of it is."""
    if opened.head is not None:
        account.begin(opened.head)
    seed = opened.replay.state.seed
    if seed is not None:
        account.sow(seed)
    try:
        _, rest = sessions.catalogue.reader.read(row.path, start, account.feed)
    except UnreadableSource as error:
        message = f"{row.path} cannot be read: {error}"
        raise Refusal("unreadable_source", message, {"reason": str(error)}) from error
    account.close(rest)
    return account


def _told(sessions: Sessions, row: Row, account: Account) -> tuple[Loss, ...]:
    """Return the losses; of a compaction of ours our own record knows more than the file."""
    made = ours(sessions, row)
    return tuple(
        each
        if (opened := made.get(each.window_id)) is None
        else evolve(each, strategy=opened.strategy, trigger=opened.trigger)
        for each in account.losses()
    )
