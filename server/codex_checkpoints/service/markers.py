"""Sets, renames and removes markers and pins (AGN-7, AGN-83).

A marker refers to a turn that has ended; if that turn is rolled back later, the marker is detached.
`core.restore.markers` defines the lines of `markers.jsonl`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator
from typing import Literal

from attrs import define, evolve, frozen

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import secret_in, value
from codex_checkpoints.core.paths import uri_of
from codex_checkpoints.core.portable.pack import is_portable
from codex_checkpoints.core.restore import markers
from codex_checkpoints.core.restore.markers import (
    MAX_PINNED_CHARS,
    AnyPin,
    Marker,
    MarkerSet,
    Origin,
    Pin,
    PinnedWords,
)
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.reading.session_file import SessionFile, end_of, find_turn
from codex_checkpoints.service.refusal import Refusal, keeping, misfit, one_named
from codex_checkpoints.service.sessions.sessions import CUT_OFF, Sessions, was_cut_off
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.atomic_files import Append
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import MARKERS

PinKind = Literal["path", "message", "note", "text"]
_LINES = re.compile(r"(?P<path>.+)#L(?P<start>[0-9]{1,9})(?:-L?(?P<end>[0-9]{1,9}))?", re.DOTALL)


@frozen
class PlacedMarker:
    """A marker with the current number of its turn, None if the turn was rolled back.

    `remark` is `cut_off` for a new marker on a turn that was cut off.
    """

    marker: Marker
    turn: int | None
    remark: str | None = None

    @property
    def detached(self) -> bool:
        """Return whether the turn was rolled back, or belongs to another session."""
        return self.turn is None


@define
class Markers:
    """The markers and pins of sessions."""

    _sessions: Sessions
    _now: Callable[[], str] = stamps.now
    _new_id: Callable[[], str] = stamps.new_id

    def mark(
        self, session: str, label: str, turn: str | int | None = None, origin: Origin = "user"
    ) -> PlacedMarker:
        """Put a marker on a turn, by default the last that has ended; durable on return.

        Refuses `unknown_turn`, `turn_not_complete`, `invalid_payload` for an empty label,
        `conflict` for a file that is not the current one of a session here, `storage_error`.
        """
        row, opened = self._sessions.open_own(session)
        marker = self._made(row, opened, _label(label), turn, origin)
        with self._writing(row.session_id) as append:
            append(markers.created(marker))
        state = opened.now().state
        is_over = state.has_ended(find_turn(opened.now(), marker.turn_id, row.session_id))
        return evolve(_placed(marker, opened), remark=None if is_over else CUT_OFF)

    def mark_once(self, session: str, label: str, turn: str, origin: Origin) -> None:
        """Mark a turn unless it has a marker of this origin; checked under the lock."""
        row, opened = self._sessions.open_own(session)

        def is_marked(turn_id: str) -> bool:
            return any(
                (each.session_id, each.turn_id, each.origin) == (row.session_id, turn_id, origin)
                for each in self.marker_set(row.session_id).markers
            )

        if is_marked(turn):
            return
        marker = self._made(row, opened, _label(label), turn, origin)
        with self._writing(row.session_id) as append:
            if not is_marked(marker.turn_id):
                append(markers.created(marker))

    def marks(self, session: str) -> tuple[PlacedMarker, ...]:
        """Return the markers of a session, the oldest first."""
        row, opened = self._sessions.open(session)
        return tuple(_placed(marker, opened) for marker in self.marker_set(row.session_id).markers)

    def unmark(self, session: str, checkpoint: str) -> Marker:
        """Remove a marker; notes and branches stay.  Refuses `unknown_checkpoint` (AGN-3)."""
        row, _ = self._sessions.open_own(session)
        with self._writing(row.session_id) as append:
            marker = self.find(row.session_id, checkpoint)
            append(markers.removed(marker.checkpoint_id, self._now()))
        return marker

    def relabel(self, session: str, checkpoint: str, label: str) -> PlacedMarker:
        """Change a marker's label; refuses `unknown_checkpoint`, `invalid_payload`."""
        row, opened = self._sessions.open_own(session)
        shown = _label(label)
        with self._writing(row.session_id) as append:
            marker = self.find(row.session_id, checkpoint)
            append(markers.renamed(marker.checkpoint_id, shown, self._now()))
        return _placed(self.find(row.session_id, marker.checkpoint_id), opened)

    def pins(self, session: str) -> tuple[AnyPin, ...]:
        """Return the pins of a session, the newest last."""
        return self.marker_set(self._sessions.find(session).session_id).pins

    def pin(self, session: str, kind: PinKind, name: str) -> tuple[AnyPin, ...]:
        """Pin something; return all pins (AGN-38).

        `name` is a file, or lines of it (`PATH#L3-L9`), a reference as for `recall`, the key of a
        fact or the id of a decision, or a text of the user.  A relative path is one in the
        session's folder.  Refuses `invalid_payload`, also for a path that neither is nor was a
        file; if the folder is not on this machine the name is enough.  Refuses `unknown_ref`,
        `unknown_note`, `secret_text`.
        """
        row, opened = self._sessions.open_own(session)
        pin = self._meant(row, opened, kind, name)
        if isinstance(pin, Pin):
            self._refuse_no_file(pin, opened)
        elif pin.kind == "note":
            checkpoint = self._sessions.projections.current(opened)
            known = {*checkpoint.facts, *(each.decision_id for each in checkpoint.decisions)}
            if pin.value not in known:
                shown = value(pin.value, MAX_VALUE_CHARS)
                message = f"session {opened.session_id} has no note {shown!r}"
                facts = {"sessionId": opened.session_id, "id": shown}
                raise Refusal("unknown_note", message, facts)
        with self._writing(row.session_id) as append:
            append(markers.pinned(pin, self._now()))
        return self.marker_set(row.session_id).pins

    def unpin(self, session: str, kind: PinKind, name: str) -> tuple[AnyPin, ...]:
        """Remove a pin; return the remaining ones.  Refuses `invalid_payload`, `unknown_ref`."""
        row, opened = self._sessions.open_own(session)
        pin = self._meant(row, opened, kind, name)
        with self._writing(row.session_id) as append:
            if pin not in self.marker_set(row.session_id).pins:
                raise misfit(f"{kind}: {value(name, MAX_VALUE_CHARS)!r} is not pinned")
            append(markers.unpinned(pin, self._now()))
        return self.marker_set(row.session_id).pins

    def marker_set(self, session_id: str) -> MarkerSet:
        """Return the markers and pins of a session; raises `storage_error`."""
        with keeping("markers", session_id):
            return markers.marker_set_of(self._sessions.records.lines(session_id, MARKERS))

    def find(self, session_id: str, checkpoint: str) -> Marker:
        """Return a marker by its id, a unique prefix of it, or a label that no other marker has.

        Case does not count in a label.  Refuses `unknown_checkpoint`.
        """
        known = {each.checkpoint_id: each for each in self.marker_set(session_id).markers}
        name = one_named(known, checkpoint)
        if name is not None:
            return known[name]
        label = checkpoint.casefold()
        labelled = [each for each in known.values() if each.label.casefold() == label]
        if len(labelled) == 1:
            return labelled[0]
        shown = value(checkpoint, MAX_VALUE_CHARS)
        facts: dict[str, object] = {"sessionId": session_id, "checkpointId": shown}
        if labelled:
            message = f"{len(labelled)} markers of session {session_id} have the label {shown!r}"
            same = [each.checkpoint_id for each in labelled]
            facts |= {"reason": "same_label", "candidates": same[-20:]}
        else:
            message = f"session {session_id} has no marker {shown!r}"
            facts |= {"candidates": [*known][-20:]}
        raise Refusal("unknown_checkpoint", message, facts)

    def _made(
        self, row: Row, opened: SessionFile, label: str, turn: str | int | None, origin: Origin
    ) -> Marker:
        live = self._sessions.catalogue.store.live_threads()
        cut_off = was_cut_off(row, live, stamps.moment())
        found = _complete(opened, turn, row.session_id, cut_off=cut_off)
        # Files that were active at its end have their current hashes.
        until = end_of(found, opened.now().state.turns.turns)
        then = opened.now() if until is None else self._sessions.catalogue.read(row, until).now()
        hashes = self._sessions.workspace.hashes(then.state.base, then.files())
        at, marker_id = self._now(), self._new_id()
        return Marker(marker_id, row.session_id, found.turn_id, label, at, origin, hashes)

    def _meant(self, row: Row, opened: SessionFile, kind: PinKind, name: str) -> AnyPin:
        match kind:
            case "path":
                return _pin(name, opened)
            case "message":
                return PinnedWords(kind, Digests(self._sessions).message(row.session_id, name))
            case "note":
                return PinnedWords(kind, name)
            case "text":
                return PinnedWords(kind, _text(name))

    def _refuse_no_file(self, pin: Pin, opened: SessionFile) -> None:
        """Refuse a pin whose file neither exists now nor was seen in the session."""
        workspace, now = self._sessions.workspace, opened.now()
        base = now.state.base
        is_there = pin.uri in workspace.sizes(base, [pin.uri])
        is_known = not workspace.is_here(base) or pin.uri in now.files()
        if not is_there and not (is_known and is_portable(pin.uri)):
            shown = value(pin.uri, MAX_VALUE_CHARS)
            raise misfit(f"path: {shown!r} is not a file in the folder of the session")

    @contextlib.contextmanager
    def _writing(self, session_id: str) -> Generator[Append]:
        with (
            keeping("markers", session_id),
            self._sessions.records.journal(session_id, MARKERS) as journal,
        ):
            yield journal.append


def _placed(marker: Marker, opened: SessionFile) -> PlacedMarker:
    if marker.session_id != opened.session_id:
        return PlacedMarker(marker, None)
    turns = opened.now().state.turns.counting()
    numbers = (number for number, turn in enumerate(turns, 1) if turn.turn_id == marker.turn_id)
    return PlacedMarker(marker, next(numbers, None))


def _complete(
    opened: SessionFile, wanted: str | int | None, session_id: str, *, cut_off: bool
) -> Turn:
    """Return the turn to mark; `cut_off`: an open last turn counts as ended."""
    state = opened.now().state
    last = next(reversed([*state.turns.counting()]), None)

    def is_over(turn: Turn) -> bool:
        return state.has_ended(turn) or (cut_off and turn is last)

    if wanted is None:
        ended = [turn for turn in state.turns.counting() if is_over(turn)]
        if ended:
            return ended[-1]
        message = f"session {session_id} has no turn that has ended"
        raise Refusal("turn_not_complete", message, {"sessionId": session_id})
    turn = find_turn(opened.now(), wanted, session_id)
    facts = {"sessionId": session_id, "turnId": turn.turn_id}
    if turn.rolled_back:
        message = f"turn {turn.turn_id[:80]!r} of session {session_id} was rolled back"
        raise Refusal("unknown_turn", message, facts)
    if not is_over(turn):
        message = f"turn {turn.turn_id[:80]!r} of session {session_id} has not ended"
        raise Refusal("turn_not_complete", message, facts)
    return turn


def _label(text: str) -> str:
    label = markers.label_of(text)
    if not label:
        raise misfit("label: must not be empty")
    return label


def _pin(path: str, opened: SessionFile) -> Pin:
    lines = _LINES.fullmatch(path)
    start = end = None
    if lines is not None:
        path, start = lines["path"], int(lines["start"])
        end = start if lines["end"] is None else int(lines["end"])
        if not 1 <= start <= end:
            raise misfit("path: lines are counted from 1, and the last is not before the first")
    found = uri_of(path, folder=None, turn_folder=None, base=opened.now().state.base)
    if found is None:
        raise misfit("path: must name a file")
    return Pin(found.uri, start, end)


def _text(text: str) -> str:
    found = secret_in(text)
    if found is not None:
        message = f"text holds what looks like a secret ({found})"
        raise Refusal("secret_text", message, {"at": "text", "pattern": found})
    shown = value(text, MAX_PINNED_CHARS)
    if not shown:
        raise misfit("text: must not be empty")
    return shown
