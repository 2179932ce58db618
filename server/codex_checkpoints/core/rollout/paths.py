r"""Give a file that a session speaks of the one name it has in the checkpoint.

Works on text alone (DSC-8; interfaces.md, Exact rules, "Paths"): nothing here looks at a disk, so
the name is the same on every machine. Which tool call speaks of which path is left to `tools.py`;
whether a file may be opened and what its hash is, to the workspace. A session from Windows may be
read on Linux and the other way round: the kind of the paths follows from the session's base, never
from the machine.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from codex_checkpoints.core.rollout.fields import CONTROLS
from codex_checkpoints.values import frozen

MAX_URI = 1024
"""Code points of a stored file URI; a longer one is not recorded ("Text of values")."""

MAX_PATH = 65_536
"""Code points of a path or folder that is looked at; no system opens a longer one."""

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
    """The name of a file; `encoded` tells that it had to be changed, so the file gets no hash."""

    uri: str
    encoded: bool


def uri_of(
    path: str, *, folder: str | None, turn_folder: str | None, base: str | None
) -> FileUri | None:
    """Name the file at `path`, or return None where it names no file (DSC-8, "Paths").

    `folder` is the call's own, `turn_folder` that of the latest turn context, `base` the session's.
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
    """Return the absolute path that a stored `uri` names, None where only a base could tell.

    For URIs that were not encoded. It has `/` throughout and is of the base's kind: the host still
    has to see whether that is its own kind (`C:/x` is a relative path elsewhere).
    """
    windows = _speaks_windows((base or "", uri))
    place = (_home(base, windows=windows) or _NOWHERE).joined(uri, windows=windows)
    return place.text if place.root else None


def encoded(name: str) -> str:
    """Percent-encode the control characters of a name: UTF-8, upper case ("Text of values")."""
    return _UNSAFE.sub(_percent, name)


class _Place(NamedTuple):
    """A path made plain: `/`, `C:/`, `//host/share/` or nothing, and the names below it."""

    root: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        whole = self.root + "/".join(self.parts)
        return whole.rstrip("/") if whole.startswith("//") else whole

    def joined(self, text: str, *, windows: bool) -> "_Place":
        """Go on from here as `text` says; an absolute one begins anew."""
        root, names, anew = (_windows_root if windows else _posix_root)(self, text)
        parts = [] if anew else list(self.parts)
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
    """Split `text` into root and names. Two slashes at the front are one, as on Linux and macOS."""
    return ("/", text, True) if text.startswith("/") else (start.root, text, False)


def _windows_root(start: _Place, text: str) -> tuple[str, str, bool]:
    r"""Split `text` into root and names, for each of Windows' five ways to begin a path."""
    text = text.replace("\\", "/")
    while verbatim := _VERBATIM.match(text):
        text = ("//" if verbatim["unc"] else "") + text[verbatim.end() :]
    if _DRIVE.match(text):
        root = f"{text[0].upper()}:/"
        # `C:x` begins at the drive's current folder, which only a start on that drive can tell.
        return root, text[2:], text[2:3] == "/" or root != start.root
    if text.startswith("//") and (names := [name for name in text.split("/") if name]):
        return f"//{'/'.join(names[:2])}/", "/".join(names[2:]), True
    if text.startswith("/"):
        return start.root or "/", text, True
    return start.root, text, False


def _home(base: str | None, *, windows: bool) -> _Place | None:
    """Return the base as a place. One that is not absolute could be any folder: it is none."""
    plain = _plain(base, windows=windows) if base and _kind(base) else None
    return _NOWHERE.joined(plain, windows=windows) if plain else None


def _relative(place: _Place, home: _Place, *, windows: bool) -> str:
    """Return the name of `place` as seen from `home`: empty for `home` itself."""
    names, above = (each.text.rstrip("/").split("/") for each in (place, home))
    head = names[: len(above)]
    inside = _folded(head) == _folded(above) if windows else head == above
    below = "/".join(names[len(above) :])
    # A name such as `C:x` below the base would read like a drive: it is written in full.
    return place.text if not inside or (windows and _DRIVE.match(below)) else below


def _folded(names: list[str]) -> list[str]:
    return [name.casefold() for name in names]


def _speaks_windows(texts: Iterable[str]) -> bool:
    """Tell whether the first absolute one of `texts` is a Windows path."""
    return next((kind for text in texts if (kind := _kind(text))), "posix") == "windows"


def _kind(text: str) -> _Kind | None:
    """Tell what kind of absolute path `text` is; None for a relative one."""
    rest = _after_scheme(text)
    if rest is not None:
        # Only Windows makes a path of a file on another host.
        return "windows" if rest[:1] not in {"", "/"} or _URI_DRIVE.match(rest) else "posix"
    if _WINDOWS.match(text):
        return "windows"
    return "posix" if text.startswith("/") else None


def _plain(text: str, *, windows: bool) -> str | None:
    """Turn a `file://` URI into a path; None where it is on a host that no such path can name."""
    rest = _after_scheme(text)
    if rest is None:
        return text
    if windows and (slash := _URI_DRIVE.match(rest)):
        return rest[slash.end() :]
    if rest.startswith("/"):
        return rest
    return f"//{rest}" if windows and rest else None


def _after_scheme(text: str) -> str | None:
    """Return what follows `file://`, decoded, without the name of this very host."""
    if (scheme := _SCHEME.match(text)) is None:
        return None
    return _ESCAPES.sub(_unescaped, text[scheme.end() :])


def _unescaped(match: re.Match[str]) -> str:
    """Decode escapes; bytes that are no UTF-8 become U+FFFD, as in texts."""
    return bytes.fromhex(match[0].replace("%", "")).decode(errors="replace")


def _percent(match: re.Match[str]) -> str:
    """Encode one character. Half a surrogate pair has no UTF-8: it becomes U+FFFD, as in texts."""
    code = match[0]
    if "\ud800" <= code <= "\udfff":
        return "\ufffd"
    return "".join(f"%{byte:02X}" for byte in code.encode())
