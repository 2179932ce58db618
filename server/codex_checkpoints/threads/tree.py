"""Which session files there are under a Codex home (ROL-1, ROL-2).

A file is known by its name: `rollout-<local time>-<thread>.jsonl`, `…-<thread>_<segment>.jsonl`
for a later segment, either with `.zst` when it is compressed.  The names only locate; who a
session is stands in the file.  Links are not followed, so a link cannot make us read elsewhere.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from attrs import frozen

_HEX = "[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_NAME = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_UUID})(?:_({_UUID}))?\.jsonl(\.zst)?",
    re.ASCII,
)
_DEPTH = 3  # sessions/YYYY/MM/DD


@frozen
class RolloutName:
    """What the name of a session file says."""

    thread_id: str
    rollout_id: str
    compressed: bool


@frozen
class Found:
    """A session file as the folder shows it; `size` and times as the system tells them."""

    path: str
    name: RolloutName
    archived: bool
    size: int
    mtime_ns: int
    inode: int

    @property
    def look(self) -> tuple[int, int, int]:
        """What must be equal for the file to count as unchanged."""
        return (self.size, self.mtime_ns, self.inode)


def parse_name(name: str) -> RolloutName | None:
    """Return what a file name says, or None when it is no session file's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    thread_id = match[1].lower()
    return RolloutName(thread_id, (match[2] or thread_id).lower(), match[3] is not None)


def roots(codex_home: str) -> tuple[str, str]:
    """Return the folder of the active and that of the archived sessions."""
    return os.path.join(codex_home, "sessions"), os.path.join(codex_home, "archived_sessions")


def scan(codex_home: str) -> dict[str, Found]:
    """Return every session file by path; of a plain and a compressed twin only the plain one."""
    active, archived = roots(codex_home)
    found: dict[str, Found] = {}
    for file in _files(active, archived=False, depth=_DEPTH):
        found[file.path] = file
    for file in _files(archived, archived=True, depth=0):
        found[file.path] = file
    for path, file in list(found.items()):
        if file.name.compressed and path.removesuffix(".zst") in found:
            del found[path]
    return found


def find(path: str, *, archived: bool) -> Found | None:
    """Return one session file as it is now, or None when it is none."""
    name = parse_name(os.path.basename(path))
    if name is None:
        return None
    try:
        look = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return _found(path, name, look, archived=archived)


def _found(path: str, name: RolloutName, look: os.stat_result, *, archived: bool) -> Found | None:
    if not stat.S_ISREG(look.st_mode):
        return None
    return Found(path, name, archived, look.st_size, look.st_mtime_ns, look.st_ino)


def _files(folder: str, *, archived: bool, depth: int) -> Iterator[Found]:
    try:
        entries = os.scandir(folder)
    except OSError:  # the folder is not there, vanished, or is not ours to read: `doctor` tells
        return
    with entries:
        for entry in entries:
            try:
                if depth > 0 and entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, archived=archived, depth=depth - 1)
                    continue
                name = parse_name(entry.name)
                if name is None:
                    continue
                # Windows' own scan knows no inode; a second look does.
                look = (
                    os.stat(entry.path, follow_symlinks=False)
                    if os.name == "nt"
                    else entry.stat(follow_symlinks=False)
                )
            except OSError:
                continue
            found = _found(entry.path, name, look, archived=archived)
            if found is not None:
                yield found
