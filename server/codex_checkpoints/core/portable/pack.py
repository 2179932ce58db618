"""The records of a portable pack, and its canonical bytes: one JSON object on one line.

Of the conversation it holds only the task (AGN-39); it holds no place of a machine and nothing that
looks like a secret.  Hashes are claims: they describe the files where the pack was made (AGN-14).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import orjson
from attrs import frozen
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from codex_checkpoints.core.checkpoint.records import Checkpoint, register_checkpoint
from codex_checkpoints.core.checkpoint.redaction import find_secret, redact
from codex_checkpoints.core.converters import json_converter, renamed
from codex_checkpoints.core.fields import is_object
from codex_checkpoints.core.paths import absolute_of
from codex_checkpoints.core.restore.markers import MAX_PINS, Pin
from codex_checkpoints.core.restore.markers import Origin as MarkedBy
from codex_checkpoints.core.restore.pack_items import LinkKind
from codex_checkpoints.core.restore.references import ModeChange

FORMAT = "codex-checkpoints-pack"
VERSION = 1
"""The version that is written, and the only one that is read (AGN-82)."""

MAX_BYTES = 1 << 22
"""A larger file is not a pack, and is not read."""

LISTS = {
    "turns": 1024,
    "notes": 1024,
    "modes": 64,
    "markers": 256,
    "pins": MAX_PINS,
    "lineage": 64,
}
"""The lists of a pack, each with its longest length: the newest are packed, the nearest links."""

_A_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}", re.ASCII)
_AN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)


@frozen
class PackOrigin:
    """The session that a pack was made of; `name` is the user's name for it, if any."""

    session_id: str
    name: str | None
    history_mode: Literal["paginated", "legacy"]
    cli_version: str | None
    model: str | None


@frozen
class PackedTurn:
    """A turn by its session, its id and its number among those that count, from 1.

    The times come from its records; a turn that is `open` has no end.  A pack holds no message
    of a turn (AGN-39).
    """

    session_id: str
    turn_id: str
    number: int
    started_at: str | None
    ended_at: str | None
    end: Literal["completed", "aborted", "open"]


@frozen
class RevokedNote:
    """A note that was revoked."""

    kind: Literal["fact", "decision"]
    id: str


@frozen
class NoteEvent:
    """One step in the history of the notes: an accepted payload, or the revoked note.

    The payload is one of `memory.apply`, without hashes.
    """

    seq: int
    turn_id: str | None
    at: str | None
    payload: Mapping[str, object] | None
    revoked: RevokedNote | None


@frozen
class PackedMarker:
    """A marker, with the session of its turn and without the hashes of files."""

    checkpoint_id: str
    session_id: str
    turn_id: str
    label: str
    created_at: str
    origin: MarkedBy


@frozen
class PackedLink:
    """One link upwards; the first begins with the packed session."""

    child: str
    parent: str
    kind: LinkKind
    at: str | None
    turn_id: str | None
    checkpoint_id: str | None


@frozen
class Pack:
    """The knowledge of one session, and its origin."""

    origin: PackOrigin
    checkpoint: Checkpoint
    turns: tuple[PackedTurn, ...] = ()
    notes: tuple[NoteEvent, ...] = ()
    modes: tuple[ModeChange, ...] = ()
    markers: tuple[PackedMarker, ...] = ()
    pins: tuple[Pin, ...] = ()
    lineage: tuple[PackedLink, ...] = ()


def json_of(pack: Pack) -> dict[str, Any]:
    """Return a pack as JSON values, keys in their order in the file."""
    return {"format": FORMAT, "version": VERSION, **packs.unstructure(pack)}


def to_bytes(pack: Pack) -> bytes:
    """Return a pack as one line of JSON with its LF."""
    return orjson.dumps(json_of(pack)) + b"\n"


def is_time(text: str) -> bool:
    """Return whether a text is a time in UTC, ISO 8601, as in all records."""
    if _TIME.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False  # no such day or hour
    return True


def is_id(text: str) -> bool:
    """Return whether a text is a plain name, like ids of sessions, turns and markers."""
    return _AN_ID.fullmatch(text) is not None


def is_version(text: str) -> bool:
    """Return whether a text may be a version of Codex."""
    return _A_VERSION.fullmatch(text) is not None


packs = json_converter(closed=True, detailed=True)
"""The converter of packs; it refuses unknown keys."""
register_checkpoint(packs)


@packs.register_unstructure_hook_factory(lambda kind: kind is NoteEvent)
def _unstructure_note(kind: Any, converter: Converter) -> Callable[[NoteEvent], dict[str, Any]]:  # noqa: ANN401 - a class
    """Write either the payload or the revoked note; a payload keeps the order of its keys."""
    write = make_dict_unstructure_fn(kind, converter, **renamed(kind))

    def unstructure(note: NoteEvent) -> dict[str, Any]:
        absent = "payload" if note.revoked is not None else "revoked"
        return {key: part for key, part in write(note).items() if key != absent}

    return unstructure


@packs.register_structure_hook_factory(lambda kind: kind is NoteEvent)
def _structure_note(kind: Any, converter: Converter) -> Callable[[object, object], NoteEvent]:  # noqa: ANN401 - a class
    read = make_dict_structure_fn(kind, converter, **renamed(kind))

    def structure(value: object, _kind: object) -> NoteEvent:
        if not is_object(value) or ("payload" in value) == ("revoked" in value):
            raise TypeError("either payload or revoked")
        return read({"payload": None, "revoked": None, **value}, kind)

    return structure


_ANY_PERSON = re.compile(
    r"(?P<place>"
    r"(?:/(?:home|Users)/(?:\.?/)*|(?i:%2f(?:home|users)%2f)"
    r"|(?:[A-Za-z]:[\\/]{1,4}|\\{2,4}[\w.$-]+\\{1,4}|(?<!\w)\\{1,4})(?i:users)[\\/]{1,4})"
    r"[^\s/\\\"'`<>|:;*?,()\[\]{}]+"
    r"|(?<![\w.~-])/(?:var/)?root(?![\w.-]))"
)
"""The folder of any person; `/users/7` in small letters is a path of the web."""

HIDDEN = r"\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Tags and variation selectors: text that a model reads and a person does not see."""

_DRIVE = re.compile(r"[A-Za-z]:")
_PERSON = "~"
_SCHEME = re.compile(r"file:", re.IGNORECASE)
_HIDDEN = re.compile(f"[{HIDDEN}]+")
_ENDS = r"(?![\w-]|\.\w)"
_LONGEST_URI = 1024


@frozen
class PlacePatterns:
    """The patterns of the places of a machine, each with its sign."""

    patterns: tuple[tuple[re.Pattern[str], str], ...]

    def without(self, text: str) -> str:
        """Return a text without places, secrets (DSC-81) and hidden characters."""
        text = _HIDDEN.sub("", text)
        for pattern, sign in self.patterns:
            text = pattern.sub(sign, text)
        return redact(_ANY_PERSON.sub(_PERSON, text))

    def shows_in(self, text: str) -> bool:
        """Return whether `without` would change a text."""
        return self.without(text) != text


def places_of(base: str | None, homes: Iterable[str]) -> PlacePatterns:
    """Return the places of a session in `base`, on a machine with these home folders."""
    known = [(base, ".")] if base else []
    known += [(home, _PERSON) for home in sorted(set(homes), key=lambda home: (-len(home), home))]
    patterns = ((_pattern(place), sign) for place, sign in known)
    return PlacePatterns(
        tuple((pattern, sign) for pattern, sign in patterns if pattern is not None)
    )


def _pattern(place: str) -> re.Pattern[str] | None:
    """Return a pattern for a folder, with any separators; None for the root of a disk."""
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
    """Return whether a name belongs to a file below a folder, on every system.

    It is not absolute and has no step upwards.
    """
    names = uri.split("/")
    return (
        0 < len(uri) <= _LONGEST_URI
        and "\\" not in uri
        and all(name not in {"", ".", ".."} for name in names)
        and _DRIVE.match(uri) is None
        and _SCHEME.match(uri) is None
    )


def stays(uri: str, base: str | None, places: PlacePatterns) -> bool:
    """Return whether the name of a file must not leave the machine.

    These are files outside the session's folder, and names that show a person or a secret: a
    session in `/` sees everybody's folders.  Below a folder of its own, `home` is an ordinary word.
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
