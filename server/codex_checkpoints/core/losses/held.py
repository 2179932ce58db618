"""Whether a text, a file or a command is still in a replacement.

A replacement is compared by its text alone.  Rules:

1. Texts are compared as the values that a checkpoint keeps of them: at most 160 code points,
   secrets taken out, any white space as one space, upper and lower case as one.
2. A text or a command is there where it stands as whole words.
3. A file is there where its path stands, relative to the session's folder or with that folder in
   front; `a.py` is not there for `lib/a.py` or `data.py`.
4. Of what is encrypted, and of a text beyond `SEARCHED`, nobody can tell; so what is not found in
   such a replacement is unknown, not lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from codex_checkpoints.core.checkpoint.redaction import redact
from codex_checkpoints.core.checkpoint.text import one_line
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.rollout.fields import is_list, is_object
from codex_checkpoints.values import frozen

SEARCHED = 1 << 22
"""Code points of a replacement that are searched."""

_SEALED = frozenset({"compaction", "context_compaction"})
_NO_TEXT = frozenset({"type", "role", "id", "call_id", "encrypted_content", "image_url", "status"})
_BACKSLASHES = re.compile(r"\\+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_PATH_BEFORE = re.compile(r"[A-Za-z0-9_./~-]")
_PATH_BEHIND = re.compile(r"[A-Za-z0-9_/-]|\.[A-Za-z0-9_]")
_DRIVE = re.compile(r"[A-Za-z]:")


@frozen
class Held:
    """The text of a replacement in the two forms in which it is searched.

    `sealed` says that part of it is encrypted, `whole` that none of it was too long to look at.
    """

    _words: str
    _names: str
    sealed: bool
    whole: bool = True

    def lost_text(self, text: str) -> bool | None:
        """Return whether a value is gone (rules 1 and 2); one that says nothing never is."""
        cut = text.endswith("…")
        needle = _folded(text.removesuffix("…"))
        return self._lost(not needle or _has_words(self._words, needle, cut=cut))

    def lost_file(self, uri: str, base: str | None) -> bool | None:
        """Return whether the file with this uri is no longer named (rule 3)."""
        home = "" if base is None else _slashed(base).rstrip("/") + "/"
        names, name = self._names, uri
        if _DRIVE.match(home) or _DRIVE.match(uri):  # where case tells no two files apart
            names, name, home = names.casefold(), uri.casefold(), home.casefold()
        return self._lost(_has_path(names, name, home))

    def _lost(self, found: bool) -> bool | None:  # noqa: FBT001 - the answer of a search
        if found:
            return False
        return None if self.sealed or not self.whole else True


def held_by(items: Iterable[Item]) -> Held:
    """Make the text of a replacement ready to be searched."""
    parts: list[str] = []
    sealed, room = False, SEARCHED
    for item in items:
        sealed = sealed or item["type"] in _SEALED
        for text in _texts(item):
            parts.append(text[: max(0, room)])
            room -= len(text)
    words = " ".join(_folded(redact(part)) for part in parts)
    return Held(words, "\n".join(map(_slashed, parts)), sealed, room >= 0)


def _texts(item: Item) -> Iterator[str]:
    """Yield every text in an item, in its order, but for names of kinds and ids."""
    # A loop and no recursion: how deep a value is nested was decided by whoever wrote the file.
    waiting: list[object] = [item]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif is_object(value):
            inside = [each for key, each in value.items() if key not in _NO_TEXT]
            waiting.extend(reversed(inside))
        elif is_list(value):
            waiting.extend(reversed(value))


def _folded(text: str) -> str:
    return " ".join(one_line(text).split()).casefold()


def _slashed(text: str) -> str:
    """Return a text with the separators of paths all alike."""
    return _BACKSLASHES.sub("/", text)


def _has_words(text: str, needle: str, *, cut: bool) -> bool:
    """Return whether whole words stand in a text; a value that was `cut` may end within one."""
    opens, closes = _WORD.match(needle[0]), None if cut else _WORD.match(needle[-1])
    for start, end in _places(text, needle):
        before, behind = text[start - 1 : start], text[end : end + 1]
        inside = (opens and _WORD.match(before)) or (closes and _WORD.match(behind))
        if not inside:
            return True
    return False


def _has_path(text: str, name: str, home: str) -> bool:
    for start, end in _places(text, name):
        if _PATH_BEHIND.match(text, end, end + 2):
            continue
        for front in ("", "./", home):
            at = start - len(front)
            if at >= 0 and text.startswith(front, at) and not _PATH_BEFORE.match(text[at - 1 : at]):
                return True
    return False


def _places(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + 1)
