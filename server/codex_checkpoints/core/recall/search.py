"""Searches the lines of session files: first the bytes, then the JSON of possible hits (RCL-2).

Each text has a piece that JSON writes unchanged, or in few forms.  A line without this piece is
numbered by its first bytes and not parsed, unless it concerns turns or calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.effects import Effects, Touched
from codex_checkpoints.core.events import Action, CallEnded, Fold, Record
from codex_checkpoints.core.recall.entries import MOST_HITS, Entry, RecordKind, shown


def with_lines(entry: Entry, needle: Needle, ignored: Ignoring) -> Entry | None:
    """Return an entry with its lines that contain a text and may be shown, if any."""
    if not any(True for _ in needle.lines(entry.text)):
        return None
    may = shown(entry, ignored)
    text = "" if may is None else "\n".join(islice(needle.lines(may.text), MOST_HITS))
    return evolve(entry, text=text) if text else None


_SEARCHED: Final[dict[RecordKind, str]] = {
    "call": "command",
    "summary": "assistant",
}


def kind_of(entry: Entry) -> str:
    """Return the label of a hit: a call is a command, a summary is text of the agent."""
    return _SEARCHED.get(entry.kind, entry.kind)


_DONE: Final[dict[Action, str]] = {"read": "read", "add": "created", "delete": "deleted"}


def _told(touched: Touched) -> str:
    """Return a line that describes a change or read of a file."""
    if touched.moved_to is not None:
        return f"moved {touched.uri} to {touched.moved_to}"
    if touched.moved_from is not None:
        return f"moved {touched.moved_from} to {touched.uri}"
    return f"{_DONE.get(touched.action, 'changed')} {touched.uri}"


class FileUses(Fold):
    """Collects the reads and changes of a file, one per turn."""

    def __init__(self, stream: Stream, needle: Needle, wanted: Callable[[Record], bool]) -> None:
        """Follow a stream that has taken no record yet."""
        self._state, self._needle, self._wanted = stream.state, needle, wanted
        self.entries: dict[tuple[str | None, str], Entry] = {}
        stream.follow(self)

    def take(self, record: Record) -> None:
        """Collect the files of the calls that ended with a record."""
        ended = [each for each in record.events if isinstance(each, CallEnded)]
        if not ended or not self._wanted(record):
            return
        turn = self._state.turns.at(record.turn_id)
        turn_id = None if turn is None else turn.turn_id
        for one in ended:
            for each in Effects(one).files:
                if self._is_meant(each.uri):
                    text = _told(each)
                    self.entries.pop((turn_id, text), None)
                    self.entries[turn_id, text] = Entry(
                        record.seq, turn_id, "file", (), text, stamp=record.at
                    )

    def _is_meant(self, uri: str) -> bool:
        """Return whether a file matches the given name, whole or by the end of its path."""
        base, named = self._state.base, self._needle
        whole = uri if base is None or is_outside(uri) else f"{base.rstrip('/')}/{uri}"
        whole = whole.replace("\\", "/")
        if named.text[1:2] == ":":
            return whole.lower() == named.text.lower()
        if named.text.startswith("/"):
            return len(whole) == len(named.text) and named.find(whole) == 0
        end = f"/{whole}"[-len(named.text) - 1 :]
        return end[:1] == "/" and named.find(end) == 1


def is_outside(uri: str) -> bool:
    """Return whether the uri of a file is an absolute path."""
    return uri.startswith("/") or uri[1:3] == ":/"


_AS_IT_IS: Final = re.compile(r"[ !#-\[\]-~]+")
"""Text that JSON does not escape, at any depth of nested JSON."""

_OTHER: Final = re.compile(r"[^\x00-\x7f]+")
_LONGEST_PIECE = 64
_LONGEST_LINE = 400
_FOLD: Final = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


@frozen
class Needle:
    """A text to search for; ASCII letters ignore case unless the text has a capital letter.

    One of `pieces` is in the bytes of each line whose text contains it, `folded`: ignoring case.
    """

    text: str
    is_exact: bool
    pieces: tuple[bytes, ...]
    folded: bool

    @classmethod
    def of(cls, text: str) -> Needle:
        """Return the needle for a Unicode text of one line that is not blank."""
        is_exact = any(character.isupper() for character in text)
        runs = [run for run in _AS_IT_IS.findall(text) if run.strip()]
        plain = max(runs, key=len, default="")[:_LONGEST_PIECE]
        other = max(_OTHER.findall(text), key=len, default="")[:_LONGEST_PIECE]
        if plain and len(plain) >= len(other.encode()):
            folded = not is_exact and any(character.isalpha() for character in plain)
            return cls(text, is_exact, (plain.encode(),), folded)
        if other:
            return cls(text, is_exact, (other.encode(), *_escaped(other)), folded=False)
        escaped = rb"\"" if '"' in text else rb"\\"
        return cls(text, is_exact, (escaped, *_escaped(text.strip()[0])), folded=False)

    def may_hit(self, line: bytes) -> bool:
        """Return whether the bytes of a line may contain the text."""
        data = line.lower() if self.folded else line
        return any(piece in data for piece in self.pieces)

    def find(self, text: str) -> int:
        """Return the offset of this text in another, else -1."""
        if self.is_exact:
            return text.find(self.text)
        return (text.lower() if text.isascii() else text.translate(_FOLD)).find(self.text)

    def lines(self, text: str) -> Iterator[str]:
        """Yield the lines of a text that contain this one, long ones cut to its surroundings."""
        if self.find(text) < 0:
            return
        for line in text.split("\n"):
            at = self.find(line)
            if at >= 0:
                begin = max(0, min(at - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
                yield line[begin : begin + _LONGEST_LINE].strip()


def _escaped(text: str) -> tuple[bytes, bytes]:
    r"""Return a text as ASCII JSON writes it, `\u00e9`, with lowercase and uppercase digits."""
    units = text.encode("utf-16-be").hex()
    escapes = [units[place : place + 4] for place in range(0, len(units), 4)]
    low, high = (
        "".join(rf"\u{each}" for each in form) for form in (escapes, map(str.upper, escapes))
    )
    return low.encode(), high.encode()
