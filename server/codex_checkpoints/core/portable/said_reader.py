"""Collects the texts of a session that a search of the remote finds, from its redacted lines.

So no text is found that was not pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.effects import Effects
from codex_checkpoints.core.events import CallEnded, Fold, Record
from codex_checkpoints.core.portable.said import LONGEST_TEXT, SAID_KINDS, Said
from codex_checkpoints.core.recall.entries import Entry, Recall, says_more, shown
from codex_checkpoints.core.recall.search import kind_of

_CHUNK = 1 << 16


class SaidReader:
    """Collects the texts of a session from its lines, which are fed in order.

    `take` gets each text without the number of its turn, and whether it is the history's copy of a
    prompt, which counts only in a session without typed prompts.
    """

    def __init__(self, ignored: Ignoring, take: Callable[[Said, bool], None]) -> None:
        self._replay, self._ignored, self._take = Replay(), ignored, take
        self._kept = bytearray()
        Recall(self._replay, _is_said, self._entry, scripts=True)
        _Paths(self._replay, self._path)

    def feed(self, line: bytes) -> None:
        """Take a line with its LF."""
        self._kept += line
        if len(self._kept) >= _CHUNK:
            del self._kept[: self._replay.feed(bytes(self._kept))]

    def close(self) -> None:
        """Read the rest of the lines."""
        del self._kept[: self._replay.feed(bytes(self._kept))]

    @property
    def typed(self) -> bool:
        """Return whether the session has its prompts outside the history, too."""
        return self._replay.state.typed

    def numbers(self) -> dict[str, int]:
        """Return the numbers of the turns that were not rolled back, by id."""
        counted = enumerate(self._replay.state.turns.counting(), 1)
        return {turn.turn_id: number for number, turn in counted}

    def _entry(self, entry: Entry) -> None:
        may = shown(entry, self._ignored)
        for text in () if may is None else _parts(may.text):
            said = Said(entry.seq, None, entry.turn_id, kind_of(entry), entry.stamp, text)
            self._take(said, entry.in_history)

    def _path(self, record: Record, turn_id: str | None, path: str) -> None:
        if not self._ignored.path(path):
            said = Said(record.seq, None, turn_id, "file", record.at, _clean(path))
            self._take(said, False)  # noqa: FBT003 - never a copy


def _is_said(entry: Entry) -> bool:
    return entry.kind != "summary" and says_more(entry) and kind_of(entry) in SAID_KINDS


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that are not too long, between lines if possible."""
    text, start = _clean(text), 0
    while start < len(text):
        end = start + LONGEST_TEXT
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end].rstrip("\n")
        start = end


def _clean(text: str) -> str:
    """Return a text that every store can hold: without NUL and half a surrogate pair."""
    return text.replace("\0", "").encode(errors="replace").decode()


class _Paths(Fold):
    """Gives the paths of the files that a turn read or changed, each once in a turn."""

    def __init__(self, replay: Replay, take: Callable[[Record, str | None, str], None]) -> None:
        self._state, self._take = replay.state, take
        self._turn_id: str | None = None
        self._known = set[str]()
        replay.follow(self)

    def take(self, record: Record) -> None:
        ended = [each for each in record.events if isinstance(each, CallEnded)]
        if not ended:
            return
        turn = self._state.turns.at(record.turn_id)
        turn_id = None if turn is None else turn.turn_id
        if turn_id != self._turn_id:
            self._turn_id = turn_id
            self._known.clear()
        for one in ended:
            for each in Effects(one).files:
                if each.uri not in self._known:
                    self._known.add(each.uri)
                    self._take(record, turn_id, each.uri)
