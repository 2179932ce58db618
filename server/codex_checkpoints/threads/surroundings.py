"""What lies around the session files of a home: which changes matter, and what is wrong.

Nothing is written here, and no session file is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from codex_checkpoints.threads import locks, tree
from codex_checkpoints.threads.contract import Fault, Touched


def watched(codex_home: str) -> tuple[str, ...]:
    """Return the folders of the session files, and that of the locks."""
    return (*tree.roots(codex_home), locks.folder(codex_home))


def touched(codex_home: str, paths: Iterable[str]) -> Touched:
    """Say what changes at some paths may mean."""
    *roots, keys = watched(codex_home)
    paths = frozenset(paths)
    inside = {path for path in paths if any(_is_below(path, root) for root in roots)}
    about_locks = {path for path in paths if _is_below(path, keys)}
    files = {path for path in inside if tree.parse_name(os.path.basename(path)) is not None}
    # What is no other file may be a folder that came or went, with who knows what in it.
    folders = any(os.path.isdir(path) or not os.path.exists(path) for path in inside - files)
    return Touched(frozenset(files), folders, bool(about_locks), paths - inside - about_locks)


def faults(codex_home: str) -> Iterator[Fault]:
    """Yield what is wrong with the folders of a home."""
    if not os.path.isdir(codex_home):
        yield Fault("home_missing", codex_home)
        return
    active, archived = tree.roots(codex_home)
    for root in (active, archived):
        if os.path.isdir(root):
            if not os.access(root, os.R_OK | os.X_OK):
                yield Fault("rollouts_unreadable", root)
        elif root == active:
            yield Fault("rollouts_missing", root)
    yield from _passed_over(codex_home)


def _passed_over(codex_home: str) -> Iterator[Fault]:
    """Yield a fault for each reason to leave entries out, with the first of them."""
    by_reason: dict[str, list[str]] = {}
    for path, reason in tree.passed_over(codex_home):
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in sorted(by_reason.items()):
        yield Fault("passed_over", min(paths), reason, len(paths))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
