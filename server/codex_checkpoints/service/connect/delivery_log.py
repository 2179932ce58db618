"""Reads the receipts of a session: the views given to Codex, their windows, and the current one.

A call that passed no text has a receipt without a digest, which is left out here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.compaction.handoff import bundle
from codex_checkpoints.core.fields import digest_of, object_of, text_of, whole_of
from codex_checkpoints.core.windows import HistoryWindow
from codex_checkpoints.service.reading.checkpoints import View
from codex_checkpoints.service.refusal import reading
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import Receipt
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import RECEIPTS, Records

logger = logging.getLogger(__name__)


def received(sessions: Sessions, session: str) -> tuple[Receipt, ...]:
    """Return the views of a session that Codex was given, oldest first.

    Nothing is stored; the current view is only made if there is a receipt.  Refuses as
    `Sessions.find`.
    """
    row, opened = sessions.open(session)
    given = tuple(_given(sessions.records, row.session_id))
    if not given:
        return ()
    replay = opened.now()
    checkpoint = sessions.projections.current(opened)
    view = view_v1(checkpoint, sessions.settings.caps_for(replay.state.model))
    # A hook passes the bundle, a tool only the view; newer receipts have the view separately.
    current = {digest_of(each.encode()) for each in (bundle(view), view)}
    return tuple(_receipt(each, digest, current) for each, digest in given)


def by_window(
    receipts: Iterable[Receipt], windows: Iterable[HistoryWindow]
) -> Mapping[int, Receipt]:
    """Return the last receipt of each window, by the number of the window.

    A receipt names its window by its id or by session and number; otherwise its `seq` decides.
    """
    known = tuple(windows)
    found: dict[int, Receipt] = {}
    for receipt in receipts:
        number = _number(receipt, known)
        if number is not None:
            found[number] = receipt
    return found


def _given(records: Records, session_id: str) -> Iterator[tuple[Mapping[str, object], str]]:
    """Yield the receipts that have a digest."""
    with reading("receipts", session_id):
        for line in map(object_of, records.lines(session_id, RECEIPTS)):
            digest = text_of(line.get("digest"))
            if digest is not None:
                yield line, digest


def _receipt(line: Mapping[str, object], digest: str, current: set[str]) -> Receipt:
    at, door = (text_of(line.get(key)) or "" for key in ("at", "door"))
    event, source, window_id = (text_of(line.get(key)) for key in ("event", "source", "windowId"))
    seq, size = whole_of(line.get("seq")), whole_of(line.get("size")) or 0
    is_current = digest in current or text_of(line.get("view")) in current
    return Receipt(at, door, event, source, window_id, seq, digest, size, is_current)


def _number(receipt: Receipt, windows: tuple[HistoryWindow, ...]) -> int | None:
    if receipt.window_id is None:
        begun = (each for each in windows if each.opened_seq <= (receipt.seq or 0))
        return max((each.number for each in begun), default=None)
    for each in windows:
        if receipt.window_id == each.window_id or receipt.window_id.endswith(f":{each.number}"):
            return each.number
    return None


def hand_over(sessions: Sessions, session: str, door: str, window: str | None, at: str) -> View:
    """Return the current view of a session for a window, and write a receipt; `at` is UTC.

    A hook has its own way of doing this.
    """
    view = sessions.view(session)
    data = view.text.encode()
    receipt = {
        "at": at,
        "door": door,
        "sessionId": session,
        "windowId": window,
        "seq": view.of.checkpoint.seq,
        "digest": digest_of(data),
        "size": len(data),
    }
    _add(sessions.records, session, receipt)
    return view


def note_call(records: Records, session: str, door: str, at: str) -> None:
    """Write a receipt of a call without a view, which `connect --status` counts."""
    _add(records, session, {"at": at, "door": door, "sessionId": session})


def _add(records: Records, session: str, receipt: Mapping[str, object]) -> None:
    try:
        records.add_receipt(session, receipt)
    except StorageError as error:
        # It is bookkeeping that may be deleted; the answer matters more.
        logger.warning("storage_error: no receipt for %s: %s", session, error)
