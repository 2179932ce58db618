"""Finds encoded payloads in texts, data URLs and runs of base64, and puts notes in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codex_checkpoints.values import frozen

_IN_BASE64 = "A-Za-z0-9+/"
DATA_URL = re.compile(
    r"data:(?P<media>[\w.+-]{1,40}/[\w.+-]{1,60})?(?:;[\w=.+-]{1,60}){0,4}?"
    rf"(?:;base64,(?P<base64>[{_IN_BASE64}_%=-]{{16,}}+)|,(?P<escaped>[\w%.!~*'()+/=-]{{256,}}+))",
    re.ASCII | re.IGNORECASE,
)
_RUN = re.compile(
    rf"(?<![{_IN_BASE64}])[{_IN_BASE64}]{{64,}}+(?:\r?\n[{_IN_BASE64}]{{20,}}+)*+"
    rf"(?:\r?\n[{_IN_BASE64}]{{1,76}}={{1,2}}|={{0,2}})"
)
_LONG_RUN = 256
_LETTERS_OF_A_BLOB = 24
_BEGINNINGS = ("iVBORw0KGg", "/9j/", "R0lGOD", "UklGR", "JVBERi0")
"""PNG, JPEG, GIF, WebP and PDF in base64: such a run is a payload of any length."""


@frozen
class LeftOut:
    """A payload that a note replaces: its media type, its size in bytes."""

    media: str
    size: int


def payload_of(found: re.Match[str]) -> LeftOut:
    """Describe the payload of a data URL."""
    encoded = found["base64"]
    size = len(found["escaped"]) if encoded is None else _decoded(encoded)
    return LeftOut((found["media"] or "text/plain").lower(), size)


def _decoded(encoded: str) -> int:
    return len(encoded.rstrip("=")) * 3 // 4


def without_payloads(text: str, left_out: list[LeftOut]) -> tuple[str, str]:
    """Return a text with a note for each payload, and its words alone; extend `left_out`."""
    kept: list[str] = []
    words: list[str] = []
    end = 0
    for start, stop, found in _payloads(text):
        kept += [text[end:start], f"[{found.size} bytes of base64]"]
        words.append(text[end:start])
        left_out.append(found)
        end = stop
    return "".join([*kept, text[end:]]), "".join([*words, text[end:]])


def _payloads(text: str) -> Iterator[tuple[int, int, LeftOut]]:
    """Yield where payloads begin and end, in order: URLs that hold data, and bare base64."""
    end = 0
    for url in DATA_URL.finditer(text):
        yield from _blobs(text, end, url.start())
        yield (*url.span(), payload_of(url))
        end = url.end()
    yield from _blobs(text, end, len(text))


def _blobs(text: str, start: int, end: int) -> Iterator[tuple[int, int, LeftOut]]:
    for run in _RUN.finditer(text, start, end):
        if _is_blob(run[0]):
            yield (*run.span(), LeftOut("base64", _decoded("".join(run[0].split()))))


def _is_blob(run: str) -> bool:
    """Return whether a run is no long word: a blob has nearly all letters, digits, both cases."""
    if run.startswith(_BEGINNINGS):
        return True
    if len(run) <= _LONG_RUN:
        return False
    letters = set(run)
    cases = (str.islower, str.isupper, str.isdigit)
    return len(letters) >= _LETTERS_OF_A_BLOB and all(any(map(is_, letters)) for is_ in cases)
