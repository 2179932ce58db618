r"""The places of one machine: taken out of texts, and files that have no name without them.

The session's own folder becomes `.`, a folder of a person `~`: the ones that are known, and what
looks like one on any system, since a session may come from elsewhere.  A file outside the
session's folder has no name that another machine could use; where something rests on it, it is
called `outside:1` and so on, and nothing more is told of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.redaction import find_secret, redact
from codex_checkpoints.core.rollout.paths import absolute_of
from codex_checkpoints.values import frozen

_ANY_PERSON = re.compile(
    r"(?P<place>"
    r"(?:/(?:home|Users)/(?:\.?/)*|(?i:%2f(?:home|users)%2f)"
    r"|(?:[A-Za-z]:[\\/]{1,4}|\\{2,4}[\w.$-]+\\{1,4}|(?<!\w)\\{1,4})(?i:users)[\\/]{1,4})"
    r"[^\s/\\\"'`<>|:;*?,()\[\]{}]+"
    r"|(?<![\w.~-])/(?:var/)?root(?![\w.-]))"
)
"""A folder of a person, whoever that is; `/users/7` in small letters is a path of the web."""

HIDDEN = r"\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Tags and variation selectors, as the inside of a character class: a model reads whole sentences
in them where a person, who is to look at a pack before it comes in, sees nothing."""

_DRIVE = re.compile(r"[A-Za-z]:")
_PERSON = "~"
_SCHEME = re.compile(r"file:", re.IGNORECASE)
_HIDDEN = re.compile(f"[{HIDDEN}]+")
_ENDS = r"(?![\w-]|\.\w)"
_LONGEST_URI = 1024


@frozen
class Places:
    """What stands for places of a machine in texts."""

    patterns: tuple[tuple[re.Pattern[str], str], ...]

    def without(self, text: str) -> str:
        """Return a text without any of these places, and without secrets (DSC-81).

        What nobody would see goes as well.
        """
        text = _HIDDEN.sub("", text)
        for pattern, sign in self.patterns:
            text = pattern.sub(sign, text)
        return redact(_ANY_PERSON.sub(_PERSON, text))

    def shows_in(self, text: str) -> bool:
        """Return whether something of a text would be taken out."""
        return self.without(text) != text


def places_of(base: str | None, homes: Iterable[str]) -> Places:
    """Return the places of a session in `base`, on a machine with these folders of persons."""
    known = [(base, ".")] if base else []
    known += [(home, _PERSON) for home in sorted(set(homes), key=lambda home: (-len(home), home))]
    patterns = ((_pattern(place), sign) for place, sign in known)
    return Places(tuple((pattern, sign) for pattern, sign in patterns if pattern is not None))


def _pattern(place: str) -> re.Pattern[str] | None:
    """Return what finds a folder, however its names are parted; None for the root of a disk."""
    names = [name for name in re.split(r"[\\/]+", place) if name]
    if not names or (len(names) == 1 and _DRIVE.fullmatch(names[0])):
        return None
    front = r"[\\/]{1,4}" if place[:1] in "\\/" else ""
    if len(names) == 1:
        front = r"(?<![\w.-])" + front  # `/app` is not the end of `src/app`
    text = front + r"[\\/]{1,4}".join(map(re.escape, names)) + _ENDS
    windows = _DRIVE.match(place) or place.startswith("\\\\")
    return re.compile(text, re.IGNORECASE if windows else re.NOFLAG)


def is_portable(uri: str) -> bool:
    """Return whether a name is that of a file below a folder, whatever the folder is.

    Neither absolute nor with a step upwards, and read alike by every system.
    """
    names = uri.split("/")
    return (
        0 < len(uri) <= _LONGEST_URI
        and "\\" not in uri
        and all(name not in {"", ".", ".."} for name in names)
        and _DRIVE.match(uri) is None
        and _SCHEME.match(uri) is None
    )


def stays(uri: str, base: str | None, places: Places) -> bool:
    """Return whether the name of a file cannot leave the machine.

    A file outside the session's folder, or one whose name tells of a person or holds a secret: a
    session in `/` names everybody's folders.  Below a folder of its own, `home` is a word.
    """
    if not is_portable(uri) or find_secret(uri) is not None or _HIDDEN.search(uri):
        return True
    whole, own = absolute_of(uri, base), absolute_of(".", base)
    if whole is None or own is None:
        return places.shows_in(uri)
    end = len(own.rstrip("/"))
    homes = [pattern for pattern, sign in places.patterns if sign == _PERSON]
    found = [_ANY_PERSON.match(whole), *(each for home in homes for each in home.finditer(whole))]
    return any(each is not None and each.end() > end for each in found)
