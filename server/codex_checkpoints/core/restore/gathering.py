"""Observations, and how they came about: read or changed, by which patch, which lines.

What counts as observed is decided by the reducer alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.checkpoint.state import Observation, Place, name_of
from codex_checkpoints.core.rollout import shell
from codex_checkpoints.core.rollout.items import Seen
from codex_checkpoints.core.rollout.paths import uri_of
from codex_checkpoints.values import frozen

MAX_SPANS = 64
"""How many partial reads are kept, the newest."""

_FILES = 1 << 16
_PATCHES = 256

_Key = TypeVar("_Key")


@frozen
class Span:
    """The lines `start` to `end`, from 1, of a file."""

    uri: str
    start: int
    end: int


class Gathered:
    """The traces of what a session observed: the newest of each kind stand last."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.touched: dict[str, None] = {}
        self.sent: dict[str, None] = {}
        self.spans: dict[Span, None] = {}
        self.patches: dict[str, None] = {}
        self.deleted: dict[str, None] = {}

    def observe(self, observed: Observation) -> None:
        """Take an observation; each is read at once."""
        place, moves = observed.place, False
        for each in observed.seen():
            moves = each.action == "move" and not moves  # the file that is moved, then where to
            if each.kind == "file":
                uri, _ = name_of(each, place)
                if uri is not None:
                    self._file(uri, each, place)
                    self.deleted.pop(uri, None)
                    if moves or each.action == "delete":
                        _renew(self.deleted, uri, _FILES)

    def _file(self, uri: str, seen: Seen, place: Place) -> None:
        _renew(self.sent if seen.action == "read" else self.touched, uri, _FILES)
        if seen.call_id:
            _renew(self.patches, seen.call_id[:MAX_URI_CHARS], _PATCHES)
        for span in _spans(uri, seen, place):
            _renew(self.spans, span, MAX_SPANS)


def _renew(known: dict[_Key, None], key: _Key, total: int) -> None:
    """Make `key` the newest; of too many the oldest is forgotten."""
    known.pop(key, None)
    known[key] = None
    if len(known) > total:
        del known[next(iter(known))]


def _spans(uri: str, seen: Seen, place: Place) -> Iterator[Span]:
    """Yield the lines that a command read of a file, where its text names the first and the last.

    The command is asked even where Codex itself says which files it read: that names no lines.
    """
    if seen.script is None:
        return
    _, turn_folder, base = place
    reading = shell.read_script(seen.script)
    for read in reading.reads:
        if read.start is None or read.end is None:
            continue
        # Codex puts the folder that a script changes to in front of the name, or it stands in
        # the folder of the call already.
        names = {read.path, f"{reading.folder}/{read.path}" if reading.folder else read.path}
        named = (
            uri_of(name, folder=seen.folder, turn_folder=turn_folder, base=base) for name in names
        )
        if any(found is not None and found.uri == uri for found in named):
            yield Span(uri, read.start, read.end)
