"""Plan how the files of a session come back to their bytes at the end of a turn.

The bytes of then follow from the bytes of now: the later patches of a file are undone, newest
first, and strictly.  Bytes that no record explains belong to somebody else, and stay (FIL-2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from codex_checkpoints.core.digest.edits import Touch
from codex_checkpoints.core.digest.outcomes import PatchCounts
from codex_checkpoints.core.rollout.fields import content_hash
from codex_checkpoints.core.rollout.patches import Fit, Misfit, undone

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
Proof = Literal["diff", "hash", "context"]

OFFERED: frozenset[FileState] = frozenset(["restore", "create", "move", "delete"])
"""The states that are written when the caller chooses the file."""


@frozen
class OnDisk:
    """A file as it is now: its text, None where there is none; `problem` where it is not read."""

    text: str | None = None
    problem: FileState | None = None


@frozen
class PlannedFile:
    """A file that the session changed after the turn: how it is now, and how it was then.

    `now` and `then` are its texts, None for no file; without `is_known` nobody knows the latter.
    `moved_to` is the place from which a moved file comes back.  `added` and `removed` count the
    lines that restoring adds and removes.
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
        """Return whether it is restored unless the caller says otherwise."""
        return self.state in OFFERED and self.proof != "context"


_PROBLEMS: Mapping[FileState, str] = {
    "outside": "it is not in the folder of the session, or belongs to another repository",
    "link": "it is a link, or has several names",
    "binary": "it is not text",
    "too_large": "it is too large",
    "unreadable": "it cannot be read",
}
"""Why a file is not looked at."""

_BY_CONTEXT = "only the text of the patch is recorded: blanks at line ends may differ"

_MOST_MOVES = 16
"""A file that was moved more often is left alone."""

Look = Callable[[str], OnDisk]
Hashes = Callable[[str, Sequence[Touch]], Sequence[str | None]]
"""The hashes of a file that were seen right after its touches."""


def planned(
    files: Mapping[str, Sequence[Touch]], end: int, look: Look, hashes: Hashes
) -> tuple[PlannedFile, ...]:
    """Return the files that were changed after the line `end`, by name, with what is to be done.

    `files` are the touches of each file in order, by uri.
    """
    steps = _Steps(files, look)
    later = [uri for uri, touches in sorted(files.items()) if any(_later(touches, end))]
    found = {uri: steps.row(uri, end, hashes(uri, files[uri])) for uri in later}
    arrived = {each.moved_to for each in found.values() if each.state == "move"}
    return tuple(row for uri, row in found.items() if uri not in arrived)


def _later(touches: Sequence[Touch], end: int) -> Iterator[Touch]:
    """Yield the changes of a file after a line, the newest first."""
    return (each for each in reversed(touches) if each.position > end and each.edits)


@frozen
class _Past:
    """A text of a file at an earlier time, None for no file, and how it was found."""

    text: str | None
    fits: frozenset[Fit] = frozenset()
    moved_to: str | None = None
    may_have_replaced: bool = False
    """Whether a file may have been at the place to which it was moved."""
    added: int = 0
    removed: int = 0


class _Stop(Exception):
    """The reason why the earlier bytes of a file are not known or not to be written."""

    def __init__(self, state: FileState, why: str | None = None) -> None:
        self.state: FileState = state
        self.why = why


class _Steps:
    """Goes back in the history of files."""

    def __init__(self, files: Mapping[str, Sequence[Touch]], look: Look) -> None:
        self._files = files
        self._look = look

    def row(self, uri: str, end: int, hashes: Sequence[str | None]) -> PlannedFile:
        """Plan one file."""
        disk = self._look(uri)
        row = PlannedFile(uri, "same", now=disk.text)
        try:
            past = self._past(uri, end)
        except _Stop as stop:
            return evolve(row, state=stop.state, why=stop.why)
        row = evolve(row, then=past.text, added=past.added, removed=past.removed)
        last = [at for at, each in enumerate(self._files[uri]) if each.position <= end]
        seen = (hashes[last[-1]] or self._files[uri][last[-1]].hash) if last else None
        is_seen = past.text is not None and seen == content_hash(past.text)
        proof: Proof = "hash" if is_seen else "context" if "context" in past.fits else "diff"
        row = evolve(row, proof=proof, moved_to=past.moved_to)
        if past.text == disk.text and past.moved_to is None:
            return evolve(row, state="same", proof=None)
        if past.text is None:
            return evolve(row, state="delete", why="this session made it after deleting it")
        if past.moved_to is not None:
            lost = ", and whether a file was there before is not recorded"
            why = f"it comes back from {past.moved_to}{lost if past.may_have_replaced else ''}"
            return evolve(row, state="move", why=why)
        if disk.text is None:
            return evolve(row, state="create", why="this session deleted it")
        if "shifted" in past.fits and not is_seen:
            return evolve(row, state="merge", why="somebody changed other lines of it")
        return evolve(row, state="restore", why=_BY_CONTEXT if proof == "context" else None)

    def _past(self, uri: str, end: int, moves: int = 0) -> _Past:
        """Return a file right after a line, after so many moves; raises `_Stop`."""
        if moves > _MOST_MOVES:
            raise _Stop("unknown", f"it was moved more than {_MOST_MOVES} times")
        disk = self._look(uri)
        if disk.problem is not None:
            raise _Stop(disk.problem, _PROBLEMS.get(disk.problem))
        past = _Past(disk.text)
        for touch in _later(self._files[uri], end):
            past = self._before(uri, touch, past, moves)
        return past

    def _before(self, uri: str, touch: Touch, past: _Past, moves: int) -> _Past:
        """Return a file right before one of its changes; raises `_Stop`."""
        record = f"#{touch.seq}"
        if touch.undone_from is not None:
            raise _Stop("unknown", f"git put it back in {record}")
        if touch.moved_to is not None:
            return self._moved_back(uri, touch, touch.moved_to, past, moves)
        if touch.action == "delete":
            return _undeleted(touch, past)
        if touch.action == "add" and not touch.anew:
            raise _Stop("unknown", f"a command made it in {record}")
        if touch.anew:
            return self._before_writing(uri, touch, past)
        if touch.hunks is None:
            raise _Stop("unknown", f"a command changed it in {record}")
        if touch.moved_from is not None:
            if not self._was_absent(uri, touch):
                raise _Stop("new_or_replaced", f"it was moved here in {record}")
            return evolve(past, text=None)
        return _unpatched(touch, touch.hunks, past)

    def _moved_back(self, uri: str, touch: Touch, target: str, past: _Past, moves: int) -> _Past:
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
        replaced = moved.may_have_replaced or not self._was_absent(target, arrival)
        return evolve(found, moved_to=moved.moved_to or target, may_have_replaced=replaced)

    def _before_writing(self, uri: str, touch: Touch, past: _Past) -> _Past:
        """Return a file before it was written as new; only a deletion before proves its absence."""
        record, content = f"#{touch.seq}", content_of(touch)
        if past.text is None:
            raise _Stop("gone", f"Codex wrote it in {record}")
        if content is None:
            raise _Stop("unknown", f"its text in {record} is not recorded whole")
        if past.text != content:
            raise _Stop("conflict", f"it is not as Codex wrote it in {record}")
        if touch.action == "update" or not self._was_absent(uri, touch):
            reason = f"Codex wrote it as new in {record}; whether one was there is not recorded"
            raise _Stop("new_or_replaced", reason)
        lines = content.count("\n")
        return evolve(past, text=None, removed=past.removed + lines)

    def _was_absent(self, uri: str, touch: Touch) -> bool:
        """Return whether the session itself had removed a file before it made it again."""
        touches = self._files[uri]
        before = [each for each in touches[: touches.index(touch)] if each.edits]
        return bool(before) and (before[-1].action == "delete" or before[-1].moved_to is not None)


def content_of(touch: Touch) -> str | None:
    """Return the whole text that a patch wrote; the text of a patch ends each line with an LF."""
    if touch.content is not None:
        return touch.content
    rows = touch.hunks or ()
    is_whole = all(row[:1] == "+" for row in rows)
    return "".join(f"{row[1:]}\n" for row in rows) if is_whole and rows else None


def _undeleted(touch: Touch, past: _Past) -> _Past:
    if past.text is not None:
        raise _Stop("conflict", f"it was deleted in #{touch.seq}, and another file is there")
    if touch.content is None:
        raise _Stop("unknown", f"its text is not recorded where it was deleted, in #{touch.seq}")
    return evolve(past, text=touch.content, added=past.added + touch.content.count("\n"))


def _unpatched(touch: Touch, rows: Sequence[str], past: _Past) -> _Past:
    if past.text is None:
        raise _Stop("gone", f"Codex changed it in #{touch.seq}")
    found = undone(past.text, rows)
    if isinstance(found, Misfit):
        raise _Stop("conflict", f"the patch in #{touch.seq} cannot be undone: {found.reason}")
    counts = PatchCounts.of(rows)
    return evolve(
        past,
        text=found.text,
        fits=past.fits | {found.fit},
        added=past.added + counts.removed,
        removed=past.removed + counts.added,
    )
