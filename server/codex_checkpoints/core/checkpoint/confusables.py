"""Reads a text as a person does: hidden characters gone, look-alike letters as Latin ones."""

import re
import unicodedata

from codex_checkpoints.core.fields import CONTROLS

_CONTROLS = re.compile(rf"[{CONTROLS}]+")
_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

_GONE = frozenset({"Cf", "Me", "Mn"})
"""Formats (zero-width, soft hyphen, tags) and marks."""

_WIDTHLESS = frozenset("\u115f\u1160\u3164\uffa0")
"""Fillers, which count as letters."""

_IOTA = "\u0345"
"""The only mark that becomes a letter when its case changes."""

_ACUTE = "\u00b4"
"""Some people type it as an apostrophe; NFKD would turn it into a space and a mark."""

_ASCII_AND_LATIN = "\u0300"
"""Below it there are no marks, and the soft hyphen is the only format."""

# For each letter the Cyrillic shapes, then Greek, Armenian, and Latin ones: phonetic letters, small
# capitals, letters with a stroke.
_SHAPES = {
    "a": "\u0430\u03b1\u0251\u1d00",
    "b": "\u0432\u044c\u03b2\u0299",
    "c": "\u0441\u03f2\u1d04",
    "d": "\u0501\u0111\u1d05",
    "e": "\u0435\u0454\u04bd\u03b5\u1d07",
    "f": "\u0493\u0192\ua730",
    "g": "\u0581\u0261\u0262",
    "h": "\u043d\u04bb\u0570\u0127\u029c",
    "i": "\u0456\u04cf\u03b9\u0131\u0269\u026a",
    "j": "\u0458\u03f3\u0575\u1d0a",
    "k": "\u043a\u03ba\u1d0b",
    "l": "\u0142\u01c0\u029f",
    "m": "\u043c\u1d0d",
    "n": "\u043f\u03b7\u0578\u0274",
    "o": "\u043e\u03bf\u03c3\u0585\u00f8\u1d0f",
    "p": "\u0440\u03c1\u1d18",
    "q": "\u051b\u0566",
    "r": "\u0433\u0280",
    "s": "\u0455\ua731",
    "t": "\u0442\u03c4\u0167\u1d1b",
    "u": "\u0438\u03bc\u03c5\u057d\u028b\u1d1c",
    "v": "\u0475\u03bd\u1d20",
    "w": "\u0448\u051d\u03c9\u1d21",
    "x": "\u0445\u03c7",
    "y": "\u0443\u04af\u03b3\u028f",
    "z": "\u03b6\u1d22",
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc`",
    '"': "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033",
    "-": "\u2010\u2012\u2212",
    "\u2014": "\u2013\u2015",
    " ": "\u2800",
}

_SMALL = {ord(shape): letter for letter, shapes in _SHAPES.items() for shape in shapes} | {
    first + place: chr(ord("a") + place)
    for first in (0x1F150, 0x1F170, 0x1F1E6)
    for place in range(26)
}
"""The letter for each shape: the table, and the three alphabets of emoji letters."""

_CAPITAL = _SMALL | {0x3B7: "h", 0x3BC: "m", 0x3BD: "n", 0x3C5: "y", 0x4CF: "l"}
"""The same, with Greek eta, mu, nu, upsilon and palochka read as their capitals: H, M, N, Y, l."""


def readings(text: str) -> tuple[str, ...]:
    """Return `text` as a person reads it, in lower case, with its lines.

    There are two readings if a letter looks like one Latin letter as a capital and like another as
    a small letter: Greek eta is `H` and `n`.
    """
    seen = _folded("".join(filter(_shows, _CONTROLS.sub(_space, text))))
    small, capital = seen.translate(_SMALL), seen.translate(_CAPITAL)
    return (small,) if small == capital else (small, capital)


def _space(match: re.Match[str]) -> str:
    return "\n" if _BREAK.search(match[0]) else " "


def _shows(character: str) -> bool:
    if character < _ASCII_AND_LATIN:
        return character != "\u00ad"
    if character == _IOTA:
        return True
    return (
        unicodedata.category(character) not in _GONE
        and character not in _WIDTHLESS
        and not "\U000e0000" <= character <= "\U000e0fff"
    )


def _folded(text: str) -> str:
    # The two decompositions add marks again, which are removed as well.
    once = unicodedata.normalize("NFKD", text.replace(_ACUTE, "'")).casefold()
    return "".join(
        character
        for character in unicodedata.normalize("NFKD", once)
        if character < _ASCII_AND_LATIN or _shows(character)
    )
