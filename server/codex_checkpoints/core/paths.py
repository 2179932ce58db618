"""Makes the uri of a file in a checkpoint (DSC-8; rules, "Paths").

Nothing here reads a disk, so a uri is the same on every machine.  A session from Windows may be
read on Linux and the other way round: the session's base decides the kind of its paths.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.fields import CONTROLS

MAX_URI = 1024
"""Code points of a stored file URI; a longer one is not recorded (rules, "Text of values")."""

MAX_PATH = 65_536  # code points; no system opens a longer one

_Kind = Literal["posix", "windows"]

_UNSAFE = re.compile(rf"[{CONTROLS}\ud800-\udfff]")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\/]")
_DRIVE = re.compile(r"[A-Za-z]:")
_URI_DRIVE = re.compile(r"/?(?=[A-Za-z]:(?:[\\/]|\Z))")
_VERBATIM = re.compile(r"//\?/(?:(?P<unc>UNC/)|(?=[A-Z]:))", re.ASCII | re.IGNORECASE)
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SCHEME = re.compile(r"file://(?:localhost(?=/|\Z))?", re.ASCII | re.IGNORECASE)


@frozen
class FileUri:
    """The uri of a file; `encoded`: its name was changed, so the file gets no hash."""

    uri: str
    encoded: bool


@lru_cache(512)  # a session names the same files again and again
def uri_of(
    path: str, *, folder: str | None, turn_folder: str | None, base: str | None
) -> FileUri | None:
    """Return the uri of the file at `path`, or None if it has none (DSC-8).

    `folder` is the folder of the call, `turn_folder` the one of the latest turn context, `base` the
    session's.
    """
    steps = (turn_folder or "", folder or "", path)
    if not path or any(len(step) > MAX_PATH for step in (base or "", *steps)):
        return None
    windows = _speaks_windows((base or "", *steps))
    home = _home(base, windows=windows)
    place = home or _NOWHERE
    for step in steps:
        plain = _plain(step, windows=windows)
        if plain is None:
            return None
        place = place.joined(plain, windows=windows)
    name = place.text if home is None else _relative(place, home, windows=windows)
    if not name:
        return None
    safe = encoded(name)
    return None if len(safe) > MAX_URI else FileUri(safe, safe != name)


def absolute_of(uri: str, base: str | None) -> str | None:
    """Return the absolute path of a `uri` that is not encoded; None if that needs a base.

    The path has `/` throughout and is of the base's kind: the caller checks whether that is the
    kind of this machine (`C:/x` is a relative path elsewhere).
    """
    windows = _speaks_windows((base or "", uri))
    place = (_home(base, windows=windows) or _NOWHERE).joined(uri, windows=windows)
    return place.text if place.root else None


def encoded(name: str) -> str:
    """Percent-encode the control characters of a name: UTF-8, upper case."""
    return _UNSAFE.sub(_percent, name)


@frozen
class _Place:
    """A normalised path: `/`, `C:/`, `//host/share/` or nothing, and the names below it."""

    root: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        whole = self.root + "/".join(self.parts)
        return whole.rstrip("/") if whole.startswith("//") else whole

    def joined(self, text: str, *, windows: bool) -> "_Place":
        """Return the place that the path `text` names, seen from here."""
        root, names, is_rooted = (_windows_root if windows else _posix_root)(self, text)
        parts = [] if is_rooted else list(self.parts)
        for name in names.split("/"):
            if name == "..":
                if parts and parts[-1] != "..":
                    parts.pop()
                elif not root:
                    parts.append(name)
            elif name not in {"", "."}:
                parts.append(name)
        return _Place(root, tuple(parts))


_NOWHERE = _Place("", ())


def _posix_root(start: _Place, text: str) -> tuple[str, str, bool]:
    """Return root, names, and whether these start at the root; two leading slashes count as one."""
    return ("/", text, True) if text.startswith("/") else (start.root, text, False)


def _windows_root(start: _Place, text: str) -> tuple[str, str, bool]:
    """Return the same for each of Windows' five ways to begin a path."""
    text = text.replace("\\", "/")
    while verbatim := _VERBATIM.match(text):
        text = ("//" if verbatim["unc"] else "") + text[verbatim.end() :]
    if _DRIVE.match(text):
        root = f"{text[0].upper()}:/"
        # `C:x` begins at the drive's current folder, known only if the start is on that drive.
        return root, text[2:], text[2:3] == "/" or root != start.root
    if text.startswith("//") and (names := [name for name in text.split("/") if name]):
        return f"//{'/'.join(names[:2])}/", "/".join(names[2:]), True
    if text.startswith("/"):
        return start.root or "/", text, True
    return start.root, text, False


def _home(base: str | None, *, windows: bool) -> _Place | None:
    """Return the base as a place; None if it is not absolute."""
    plain = _plain(base, windows=windows) if base and _kind(base) else None
    return _NOWHERE.joined(plain, windows=windows) if plain else None


def _relative(place: _Place, home: _Place, *, windows: bool) -> str:
    """Return the path of `place` relative to `home`, empty for `home` itself."""
    names, above = (each.text.rstrip("/").split("/") for each in (place, home))
    head = names[: len(above)]
    inside = _folded(head) == _folded(above) if windows else head == above
    below = "/".join(names[len(above) :])
    # A name such as `C:x` below the base looks like a drive, so it is written in full.
    return place.text if not inside or (windows and _DRIVE.match(below)) else below


def _folded(names: list[str]) -> list[str]:
    return [name.casefold() for name in names]


def _speaks_windows(texts: Iterable[str]) -> bool:
    """Return whether the first absolute one of `texts` is a Windows path."""
    return next((kind for text in texts if (kind := _kind(text))), "posix") == "windows"


def _kind(text: str) -> _Kind | None:
    """Return the kind of an absolute path; None for a relative one."""
    rest = _after_scheme(text)
    if rest is not None:
        # Only Windows makes a path of a file on another host.
        return "windows" if rest[:1] not in {"", "/"} or _URI_DRIVE.match(rest) else "posix"
    if _WINDOWS.match(text):
        return "windows"
    return "posix" if text.startswith("/") else None


def _plain(text: str, *, windows: bool) -> str | None:
    """Return the path of a `file://` URI; None if no path of this kind can name its host."""
    rest = _after_scheme(text)
    if rest is None:
        return text
    if windows and (slash := _URI_DRIVE.match(rest)):
        return rest[slash.end() :]
    if rest.startswith("/"):
        return rest
    return f"//{rest}" if windows and rest else None


def _after_scheme(text: str) -> str | None:
    """Return the text after `file://` or `file://localhost`, decoded."""
    if (scheme := _SCHEME.match(text)) is None:
        return None
    return _ESCAPES.sub(_unescaped, text[scheme.end() :])


def _unescaped(match: re.Match[str]) -> str:
    """Decode escapes; bytes that are not UTF-8 become U+FFFD."""
    return bytes.fromhex(match[0].replace("%", "")).decode(errors="replace")


def _percent(match: re.Match[str]) -> str:
    """Encode one character; half a surrogate pair becomes U+FFFD."""
    code = match[0]
    if "\ud800" <= code <= "\udfff":
        return "\ufffd"
    return "".join(f"%{byte:02X}" for byte in code.encode())
