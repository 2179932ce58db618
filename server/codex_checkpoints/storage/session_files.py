"""Finds the session files under a Codex home, and the effect of changes there (ROL-1, ROL-2).

A file is found by its name: `rollout-<local time>-<thread>.jsonl`, `…-<thread>_<segment>.jsonl` for
a later segment, either with `.zst` when it is compressed.  The session's id is in the file itself.
Links are not followed, so that none leads us elsewhere.  No file is opened here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from codex_checkpoints.storage.contract import Identity, Rollout, StoreFault, Touched

_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_NAME = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_UUID})(?:_({_UUID}))?\.jsonl(\.zst)?",
    re.ASCII,
)
_LIKE = re.compile(r".*\.jsonl(\.zst)?", re.DOTALL)
_LARGEST = (1 << 63) - 1
_MOMENT = 2_000_000_000
"""The resolution of a file clock is at least this fine, in ns."""


@functools.lru_cache(1 << 14)  # every request goes through the names of all sessions
def parse_name(name: str) -> Identity | None:
    """Return the parts of a file name, None if it is not a session file's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    thread_id = sys.intern(match[1].lower())  # the rows repeat it thousands of times
    rollout_id = sys.intern((match[2] or thread_id).lower())
    return Identity(thread_id, rollout_id, match[3] is not None)


def identity(path: str) -> Identity:
    """Return the ids in the name of any file, taken as a session file's."""
    own = os.path.basename(path)
    return parse_name(own) or Identity(own, "", is_compressed(path))


def is_compressed(path: str) -> bool:
    """Return whether a file holds a zstd frame, by its name."""
    return path.endswith(".zst")


def forms(path: str) -> tuple[str, str]:
    """Return a path and the path of the same session file in its other form."""
    return path, path.removesuffix(".zst") if is_compressed(path) else f"{path}.zst"


def roots(codex_home: str) -> tuple[str, str]:
    """Return the folder of the active and the one of the archived sessions."""
    return os.path.join(codex_home, "sessions"), os.path.join(codex_home, "archived_sessions")


def lock_folder(codex_home: str) -> str:
    """Return the folder of the locks: it changes when Codex loads or releases a thread."""
    return os.path.join(codex_home, "thread-writer-locks")


def scan(codex_home: str, thread_id: str | None = None) -> dict[str, Rollout]:
    """Return session files by path, all or one thread's; of twins only the plain one."""
    found: dict[str, Rollout] = {}
    for root, depth in _trees(codex_home):
        for path, name in _names(root, depth):
            if thread_id is None or name.thread_id == thread_id:
                file = _found(path, name, archived=depth == 0)
                if file is not None:
                    found[path] = file
    return {
        path: file
        for path, file in found.items()
        if not (file.compressed and path.removesuffix(".zst") in found)
    }


def stamps(codex_home: str, now_ns: int) -> dict[str, int]:
    """Return the time of the last change of each folder that may contain session files, in ns.

    A change of just now says nothing: a file may come after it at the same moment of the clock.
    """
    found = dict(zip(roots(codex_home), map(_stamp, roots(codex_home)), strict=True))
    for root, depth in _trees(codex_home):
        folders = (entry.path for entry, _, is_passed in within(root, depth) if is_passed)
        found |= {folder: _stamp(folder) for folder in folders}
    return {at: stamp if stamp < now_ns - _MOMENT else -1 for at, stamp in found.items()}


def have_moved(known: Mapping[str, int]) -> bool:
    """Return whether the stamp of a folder has changed."""
    return not known or any(_stamp(folder) != stamp for folder, stamp in known.items())


def _stamp(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def places(codex_home: str) -> dict[str, str]:
    """Return the place of each rollout by its id, from names only; of two the plain, active one."""
    found: dict[str, str] = {}
    for root, depth in reversed(_trees(codex_home)):
        for path, name in _names(root, depth):
            known = found.get(name.rollout_id)
            if known is None or is_compressed(known) or not name.compressed:
                found[name.rollout_id] = path
    return found


def passed_over(codex_home: str) -> Iterator[tuple[str, str]]:
    """Yield files of lines of JSON, and links to folders, that `scan` leaves out."""
    for root, depth in _trees(codex_home):
        for entry, left, is_passed in within(root, depth):
            with contextlib.suppress(OSError):
                is_like = _LIKE.fullmatch(entry.name) or (left > 0 and entry.is_symlink())
                reason = _why_not(entry) if is_like and not is_passed else None
                if reason is not None:
                    yield entry.path, reason


def _why_not(entry: os.DirEntry[str]) -> str | None:
    if entry.is_symlink():
        return "a link, and links are not followed"
    if entry.is_dir(follow_symlinks=False):
        return "a folder"
    if not entry.is_file(follow_symlinks=False):
        return "no regular file"
    return None if parse_name(entry.name) else "without the name that Codex gives"


def find(path: str, *, archived: bool) -> Rollout | None:
    """Check one session file; None if there is none."""
    name = parse_name(os.path.basename(path))
    return None if name is None else _found(path, name, archived=archived)


def _found(path: str, name: Identity, *, archived: bool) -> Rollout | None:
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return rollout_of(sys.intern(path), name, status, archived=archived)


def rollout_of(path: str, name: Identity, status: os.stat_result, *, archived: bool) -> Rollout:
    """Return a session file with this status, with numbers that SQLite can hold."""
    modified_ns = max(-_LARGEST, min(status.st_mtime_ns, _LARGEST))  # it may be of any century
    state = (status.st_size, modified_ns, version_of(status))
    return Rollout(path, name.thread_id, name.rollout_id, archived, name.compressed, *state)


def version_of(status: os.stat_result) -> str:
    """Return a text that is equal while a file is unchanged; it begins with `source_of`."""
    return f"{status.st_ino:x}.{status.st_size:x}.{status.st_mtime_ns:x}"


def source_of(status: os.stat_result) -> str:
    """Return a text that is equal while a file is not replaced by another one."""
    return f"{status.st_ino:x}"


def is_unchanged(rollout: Rollout) -> bool:
    """Return whether the system reports a session file as unchanged since a check."""
    try:
        status = os.stat(rollout.path, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and version_of(status) == rollout.version


def has_only_grown(old: Rollout, new: Rollout) -> bool:
    """Return whether the system reports the same file, of at least the same size."""
    own, now = (each.version.partition(".")[0] for each in (old, new))
    return own == now and old.size <= new.size


def place_of(codex_home: str, thread_id: str, at: datetime) -> str:
    """Return where Codex would put a thread that begins at a moment: by the local time."""
    local = at.astimezone()
    name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
    return place_for(codex_home, name, archived=False)


def place_for(codex_home: str, path: str, *, archived: bool) -> str:
    """Return where a session file belongs: by the day in its name, or among the archived ones."""
    active, flat = roots(codex_home)
    name = os.path.basename(path)
    day = name.removeprefix("rollout-")[:10].split("-")
    return os.path.join(flat, name) if archived else os.path.join(active, *day, name)


def is_out_of_sight(codex_home: str, path: str) -> bool:
    """Return whether the path to a session file contains a link, so that `scan` misses it."""
    active, _ = roots(codex_home)
    folder = os.path.dirname(path)
    while folder.startswith(active + os.sep):
        if os.path.islink(folder):
            return True
        folder = os.path.dirname(folder)
    return False


def beside(path: str) -> dict[str, str]:
    """Return by rollout id the session files in the folder of a file."""
    folder = os.path.dirname(path)
    try:
        entries = os.listdir(folder)
    except OSError:
        return {}
    names = ((parse_name(entry), entry) for entry in entries)
    return {name.rollout_id: os.path.join(folder, entry) for name, entry in names if name}


def named(path: str) -> Rollout:
    """Return the file that a person named, at any place; raises `OSError`, `ValueError`."""
    return rollout_of(path, identity(path), os.stat(path), archived=False)


def _names(folder: str, depth: int) -> Iterator[tuple[str, Identity]]:
    for entry, _, is_passed in within(folder, depth):
        name = None if is_passed else parse_name(entry.name)
        try:
            if name is None or not entry.is_file(follow_symlinks=False):
                continue
        except OSError:
            continue
        yield entry.path, name


def _trees(codex_home: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return the folders of the active and of the archived sessions, and the depth of files."""
    active, archived = roots(codex_home)
    return (active, 3), (archived, 0)  # sessions/YYYY/MM/DD


def within(folder: str, depth: int) -> Iterator[tuple[os.DirEntry[str], int, bool]]:
    """Yield the entries of a folder and of those below it, each with the depth left from there.

    The last value is true for a folder that this descends into.
    """
    try:
        entries = os.scandir(folder)
    except OSError:  # missing or unreadable, which `doctor` reports
        return
    with entries, contextlib.suppress(OSError):  # it can be read only in part
        for entry in entries:
            try:
                is_passed = depth > 0 and entry.is_dir(follow_symlinks=False)
            except OSError:
                continue
            yield entry, depth, is_passed
            if is_passed:
                yield from within(entry.path, depth - 1)


def watched(codex_home: str) -> tuple[str, ...]:
    """Return the folders of the session files, and the folder of the locks."""
    return (*roots(codex_home), lock_folder(codex_home))


def touched(codex_home: str, paths: Iterable[str]) -> Touched:
    """Return the possible effect of changes at some paths."""
    *roots, keys = watched(codex_home)
    paths = frozenset(paths)
    inside = {path for path in paths if any(_is_below(path, root) for root in roots)}
    about_locks = {path for path in paths if _is_below(path, keys)}
    files = {path for path in inside if parse_name(os.path.basename(path)) is not None}
    # Anything else may be a folder that came or went with session files in it.
    folders = any(os.path.isdir(path) or not os.path.exists(path) for path in inside - files)
    return Touched(frozenset(files), folders, bool(about_locks), paths - inside - about_locks)


def faults(codex_home: str) -> Iterator[StoreFault]:
    """Yield the defects of the folders of a home."""
    if not os.path.isdir(codex_home):
        yield StoreFault("home_missing", codex_home)
        return
    active, archived = roots(codex_home)
    for root in (active, archived):
        if os.path.isdir(root):
            if not os.access(root, os.R_OK | os.X_OK):
                yield StoreFault("rollouts_unreadable", root)
        elif root == active:
            yield StoreFault("rollouts_missing", root)
    by_reason: dict[str, list[str]] = {}
    for path, reason in passed_over(codex_home):
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in sorted(by_reason.items()):
        yield StoreFault("passed_over", min(paths), reason, len(paths))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
