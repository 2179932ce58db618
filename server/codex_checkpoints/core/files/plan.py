"""Plans how the files of a session are restored to their bytes at the end of a turn.

The earlier bytes are derived from the current ones: the later patches of a file are undone, newest
first, and strictly.  Bytes that no record explains belong to somebody else, and stay (FIL-2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.changes.edits import FileTouch
from codex_checkpoints.core.changes.file_history import PatchCounts
from codex_checkpoints.core.fields import content_hash, digest_of
from codex_checkpoints.core.files.copies import Copied, Copies
from codex_checkpoints.core.patches import Fit, PatchMismatch, undone

FileState = Literal[
    "same",
    "restore",
    "create",
    "move",
    "delete",
    "new_or_replaced",
    "merge",
    "conflict",
    "unknown",
    "outside",
    "link",
    "binary",
    "too_large",
    "gone",
    "unreadable",
]
Proof = Literal["diff", "hash", "copy", "context"]

OFFERED: frozenset[FileState] = frozenset(["restore", "create", "move", "delete"])
"""The states that are written if the caller chooses the file."""


@frozen
class OnDisk:
    """A file as it is now: its text, None if there is none; `problem` if it was not read."""

    text: str | None = None
    problem: FileState | None = None


@frozen
class PlannedFile:
    """A file that the session changed after the turn: as it is now, and as it was then.

    `now` and `then` are its texts, None for no file; without `is_known` the latter is unknown.
    `moved_to` is the place from which a moved file returns.  `added` and `removed` count the lines
    that restoring adds and removes.
    """

    path: str
    state: FileState
    why: str | None = None
    proof: Proof | None = None
    now: str | None = None
    then: str | None = None
    moved_to: str | None = None
    added: int = 0
    removed: int = 0

    @property
    def is_offered(self) -> bool:
        """Return whether the caller may choose it."""
        return self.state in OFFERED or self.state == "merge"

    @property
    def is_on(self) -> bool:
        """Return whether it is restored by default."""
        return self.state in OFFERED and self.proof != "context"


_PROBLEMS: Mapping[FileState, str] = {
    "outside": "it is not in the folder of the session, or belongs to another repository",
    "link": "it is a link, or has several names",
    "binary": "it is not text",
    "too_large": "it is too large",
    "unreadable": "it cannot be read",
}
"""The reasons why a file is not checked."""

_BY_CONTEXT = "only the text of the patch is recorded: blanks at line ends may differ"

_MOST_MOVES = 16
"""A file with more moves is left alone."""


DiskReader = Callable[[str], OnDisk]
Seen = Callable[[str, FileTouch], str | None]
"""Returns the hash of a file that was seen right after a touch."""


def planned(
    files: Mapping[str, Sequence[FileTouch]],
    end: int,
    look: DiskReader,
    seen: Seen = lambda _uri, _touch: None,
    copies: Copies = lambda _call_id, _uri: None,
) -> tuple[PlannedFile, ...]:
    """Return the files that were changed after the line `end`, by name, with the action for each.

    `files` are the touches of each file in order, by uri.
    """
    steps = _Steps(files, look, seen, copies)
    later = [uri for uri, touches in sorted(files.items()) if any(_later(touches, end))]
    found = {uri: steps.row(uri, end) for uri in later}
    rows = {uri: _beside_victim(row, found) for uri, row in found.items()}
    arrived = {each.moved_to for each in rows.values() if each.state == "move"}
    return tuple(row for uri, row in rows.items() if uri not in arrived)


def _beside_victim(row: PlannedFile, rows: Mapping[str, PlannedFile]) -> PlannedFile:
    """Return the row of a file; if its move replaced a file that is restored, it is created."""
    target = rows.get(row.moved_to or "")
    if row.state != "move" or target is None or target.then is None:
        return row
    why = f"it was moved to {target.path}, in the place of another file"
    lines = 0 if row.then is None else row.then.count("\n")
    return evolve(row, state="create", why=why, moved_to=None, added=lines, removed=0)


def _later(touches: Sequence[FileTouch], end: int) -> Iterator[FileTouch]:
    """Yield the changes of a file after a line, the newest first."""
    return (each for each in reversed(touches) if each.position > end and each.edits)


@frozen
class _Past:
    """A text of a file at an earlier time, None for no file, and its derivation.

    `place` is the uri that holds its text now, None if there is none.  `copied_for` is the call
    before which the hook copied it.  `lost` says that a file may have been at the place to which it
    was moved.  `arrival` is the touch that moved another file to its place, which was empty.
    """

    text: str | None
    fits: frozenset[Fit] = frozenset()
    place: str | None = None
    copied_for: str | None = None
    lost: str | None = None
    arrival: FileTouch | None = None
    added: int = 0
    removed: int = 0


class _Stop(Exception):
    """The reason why the earlier bytes of a file are unknown or must not be written."""

    def __init__(self, state: FileState, why: str | None = None) -> None:
        self.state: FileState = state
        self.why = why


class _Steps:
    """Goes back in the history of files."""

    def __init__(
        self, files: Mapping[str, Sequence[FileTouch]], look: DiskReader, seen: Seen, copies: Copies
    ) -> None:
        self._files = files
        self._look = look
        self._seen = seen
        self._copies = copies

    def row(self, uri: str, end: int) -> PlannedFile:
        """Plan one file."""
        disk = self._look(uri)
        row = PlannedFile(uri, "same", now=disk.text)
        try:
            past = self._past(uri, end)
        except _Stop as stop:
            return evolve(row, state=stop.state, why=stop.why)
        row = evolve(row, then=past.text, added=past.added, removed=past.removed)
        last = [each for each in self._files[uri] if each.position <= end]
        seen = self._seen_after(uri, last[-1]) if last else None
        is_seen = past.text is not None and seen == content_hash(past.text)
        row = evolve(row, proof=_proof(past, is_seen=is_seen))
        if past.place not in {None, uri}:
            lost = "" if past.lost is None else f", and {past.lost}"
            why = f"it comes back from {past.place}{lost}"
            return evolve(row, state="move", why=why, moved_to=past.place)
        if past.text == disk.text:
            return evolve(row, state="same", proof=None)
        if past.text is None and past.arrival is not None:
            return self._arrived(row, past.arrival, end)
        if disk.text is None:
            return evolve(row, state="create", why="this session deleted it")
        if "shifted" in past.fits and not is_seen:
            return evolve(row, state="merge", why="somebody changed other lines of it")
        if past.text is None:
            before = "no file was there" if past.copied_for else "it had deleted it"
            return evolve(row, state="delete", why=f"this session made it; {before} before")
        by_context = _BY_CONTEXT if row.proof == "context" else None
        return evolve(row, state="restore", why=by_context)

    def _arrived(self, row: PlannedFile, arrival: FileTouch, end: int) -> PlannedFile:
        """Plan a file that was moved to an empty place; it is removed if its text is recorded."""
        why = f"it was moved here in #{arrival.seq}"
        try:
            source = self._past(arrival.moved_from or "", end)
        except _Stop:
            source = None
        if source is None or source.place is not None or "shifted" in source.fits:
            return evolve(row, state="new_or_replaced", why=why, proof=None)
        return evolve(row, state="delete", why=f"{why}, and no file was there before")

    def _past(self, uri: str, end: int, moves: int = 0) -> _Past:
        """Return a file right after a line, after `moves` moves; raises `_Stop`."""
        if moves > _MOST_MOVES:
            raise _Stop("unknown", f"it was moved more than {_MOST_MOVES} times")
        disk = self._look(uri)
        if disk.problem is not None:
            raise _Stop(disk.problem, _PROBLEMS.get(disk.problem))
        past = _Past(disk.text, place=uri)
        for touch in _later(self._files[uri], end):
            # A copy is from before the whole call, whatever this touch did to the file.
            if past.copied_for is None or past.copied_for != touch.call_id:
                past = self._before(uri, touch, past, moves)
        return past

    def _before(self, uri: str, touch: FileTouch, past: _Past, moves: int) -> _Past:
        """Return a file right before one of its changes; raises `_Stop`."""
        record = f"#{touch.seq}"
        if touch.undone_from is not None:
            raise _Stop("unknown", f"git put it back in {record}")
        copied = self._copied(uri, touch)
        if touch.rewrites and touch.action != "delete":
            return self._before_writing(uri, touch, past, copied)
        if touch.moved_from is not None and touch.hunks is not None:
            return self._before_arrival(uri, touch, touch.hunks, past, copied)
        if copied is not None:
            return self._before_command(uri, touch, past, copied)
        if touch.moved_to is not None:
            return self._moved_back(uri, touch, touch.moved_to, past, moves)
        if touch.action == "delete":
            return _undeleted(touch, past)
        if touch.hunks is None:
            raise _Stop("unknown", f"a command changed it in {record}")
        return _unpatched(touch, touch.hunks, past)

    def _moved_back(
        self, uri: str, touch: FileTouch, target: str, past: _Past, moves: int
    ) -> _Past:
        if past.text is not None:
            raise _Stop("conflict", f"it was moved away in #{touch.seq}, and another file is there")
        arrival = next(
            (
                each
                for each in self._files.get(target, ())
                if each.position == touch.position and each.moved_from == uri
            ),
            None,
        )
        if arrival is None or arrival.hunks is None:
            raise _Stop("unknown", f"a command moved it in #{touch.seq}")
        moved = self._past(target, touch.position, moves + 1)
        found = _unpatched(arrival, arrival.hunks, moved)
        copied = self._copied(target, arrival)
        lost = None if copied is None else copied.problem
        if copied is None and not self._was_removed(target, arrival):
            lost = "whether a file was there before is not recorded"
        return evolve(found, lost=moved.lost or lost)

    def _before_arrival(
        self, uri: str, touch: FileTouch, rows: Sequence[str], past: _Past, copied: Copied | None
    ) -> _Past:
        """Return a file right before another one was moved to its place."""
        is_copied = copied is not None and copied.problem is None
        if not is_copied and not self._was_removed(uri, touch):
            raise _Stop("new_or_replaced", f"it was moved here in #{touch.seq}")
        moved = _unpatched(touch, rows, past)
        source = None if copied is None else copied.source
        if source != _hash(moved.text) and self._seen_after(uri, touch) != _hash(past.text):
            past = evolve(past, fits=past.fits | {"shifted"})  # more may have changed since
        if copied is not None and copied.text is not None:
            return _as_copied(touch, past, copied)
        # If it was rewritten since, the moved text is elsewhere or gone.
        arrival = touch if past.place is not None else None
        return evolve(past, text=None, place=None, arrival=arrival)

    def _before_writing(
        self, uri: str, touch: FileTouch, past: _Past, copied: Copied | None
    ) -> _Past:
        """Return a file before a patch added it.

        The hook, or an earlier deletion, proves that it was absent.
        """
        record, content = f"#{touch.seq}", content_of(touch)
        if past.text is None:
            raise _Stop("gone", f"Codex wrote it in {record}")
        if content is None:
            raise _Stop("unknown", f"its text in {record} is not recorded whole")
        if past.text != content:
            raise _Stop("conflict", f"it is not as Codex wrote it in {record}")
        past = evolve(past, fits=past.fits - {"context"})  # its whole text is recorded
        if copied is not None and copied.problem is None:
            return _as_copied(touch, past, copied)
        if touch.action == "update" or copied is not None or not self._was_removed(uri, touch):
            reason = "whether one was there is not recorded" if copied is None else copied.problem
            raise _Stop("new_or_replaced", f"Codex wrote it as new in {record}; {reason}")
        return evolve(past, text=None, place=None, removed=past.removed + content.count("\n"))

    def _before_command(self, uri: str, touch: FileTouch, past: _Past, copied: Copied) -> _Past:
        """Return a file before a command, if it is as the command left it."""
        record = f"#{touch.seq}"
        if copied.problem is not None:
            raise _Stop("unknown", f"a command changed it in {record}; {copied.problem}")
        if touch.action == "delete" or touch.moved_to is not None:
            if past.text is not None:
                raise _Stop("conflict", f"a command removed it in {record}, and a file is there")
            return _as_copied(touch, past, copied)
        if past.text is None:
            raise _Stop("gone", f"a command changed it in {record}")
        left = copied.after or self._seen_after(uri, touch)
        if left is None:
            reason = f"a command changed it in {record}, and its text after that is not known"
            raise _Stop("unknown", reason)
        if left != _hash(past.text):
            raise _Stop("conflict", f"it is not as a command left it in {record}")
        return _as_copied(touch, evolve(past, fits=past.fits - {"context"}), copied)

    def _copied(self, uri: str, touch: FileTouch) -> Copied | None:
        return None if touch.call_id is None else self._copies(touch.call_id, uri)

    def _was_removed(self, uri: str, touch: FileTouch) -> bool:
        """Return whether the session itself had removed a file before it created it again."""
        touches = self._files[uri]
        before = [each for each in touches[: touches.index(touch)] if each.edits]
        return bool(before) and (before[-1].action == "delete" or before[-1].moved_to is not None)

    def _seen_after(self, uri: str, touch: FileTouch) -> str | None:
        return self._seen(uri, touch) or touch.hash


def _proof(past: _Past, *, is_seen: bool) -> Proof:
    """Return how an earlier text is known."""
    if is_seen:
        return "hash"
    if "context" in past.fits:
        return "context"
    return "copy" if past.copied_for is not None else "diff"


def _hash(text: str | None) -> str | None:
    return None if text is None else digest_of(text.encode())


def _as_copied(touch: FileTouch, past: _Past, copied: Copied) -> _Past:
    """Return a file as the hook copied it before a call."""
    return evolve(
        past,
        text=copied.text,
        place=None,
        copied_for=touch.call_id,
        arrival=None,
        added=past.added + (copied.text or "").count("\n"),
        removed=past.removed + (past.text or "").count("\n"),
    )


def content_of(touch: FileTouch) -> str | None:
    """Return the whole text that a patch wrote; the text of a patch ends each line with an LF."""
    if touch.content is not None:
        return touch.content
    rows = touch.hunks or ()
    is_whole = all(row[:1] == "+" for row in rows)
    return "".join(f"{row[1:]}\n" for row in rows) if is_whole and rows else None


def _undeleted(touch: FileTouch, past: _Past) -> _Past:
    if past.text is not None:
        raise _Stop("conflict", f"it was deleted in #{touch.seq}, and another file is there")
    if touch.content is None:
        raise _Stop("unknown", f"its text is not recorded where it was deleted, in #{touch.seq}")
    added = past.added + touch.content.count("\n")
    return evolve(past, text=touch.content, place=None, arrival=None, added=added)


def _unpatched(touch: FileTouch, rows: Sequence[str], past: _Past) -> _Past:
    if past.text is None:
        raise _Stop("gone", f"Codex changed it in #{touch.seq}")
    found = undone(past.text, rows)
    if isinstance(found, PatchMismatch):
        raise _Stop("conflict", f"the patch in #{touch.seq} cannot be undone: {found.reason}")
    counts = PatchCounts.of(rows)
    return evolve(
        past,
        text=found.text,
        fits=past.fits | {found.fit},
        added=past.added + counts.removed,
        removed=past.removed + counts.added,
    )
