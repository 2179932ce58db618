"""A text to search for, and the pieces of it that stand in the bytes of session files (RCL-2).

A text has a piece that JSON writes as it is, or in few forms.  So a line is parsed only if its
bytes hold that piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from codex_checkpoints.values import frozen

_AS_IT_IS: Final = re.compile(r"[ !#-\[\]-~]+")
"""What JSON does not escape, however often it is put into a JSON text."""

_OTHER: Final = re.compile(r"[^\x00-\x7f]+")
_LONGEST_PIECE = 64
_LONGEST_LINE = 400
_FOLD: Final = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


@frozen
class Needle:
    """A text to search for; ASCII letters match without case, unless it has a capital.

    One of `pieces` stands in the bytes of each line whose text contains it, `folded`: without case.
    """

    text: str
    is_exact: bool
    pieces: tuple[bytes, ...]
    folded: bool

    @classmethod
    def of(cls, text: str) -> Needle:
        """Return the needle for a text in Unicode of one line, which is not blank."""
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
        """Return whether a line, by its bytes, may hold the text."""
        data = line.lower() if self.folded else line
        return any(piece in data for piece in self.pieces)

    def find(self, text: str) -> int:
        """Return where a text holds this one, else -1."""
        if self.is_exact:
            return text.find(self.text)
        return (text.lower() if text.isascii() else text.translate(_FOLD)).find(self.text)

    def lines(self, text: str) -> Iterator[str]:
        """Yield the lines of a text that hold this one, long ones only around it."""
        if self.find(text) < 0:
            return
        for line in text.split("\n"):
            at = self.find(line)
            if at >= 0:
                begin = max(0, min(at - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
                yield line[begin : begin + _LONGEST_LINE].strip()


def _escaped(text: str) -> tuple[bytes, bytes]:
    r"""Return a text as JSON in ASCII has it, `\u00e9`, with small and with large digits."""
    units = text.encode("utf-16-be").hex()
    escapes = [units[place : place + 4] for place in range(0, len(units), 4)]
    low, high = (
        "".join(rf"\u{each}" for each in form) for form in (escapes, map(str.upper, escapes))
    )
    return low.encode(), high.encode()
