"""Which files a patch names: the headers of Codex's patch grammar, nothing of its hunks.

Whether the patch was applied, and where its relative paths begin, is for the caller to know;
finding a patch inside a shell script is the work of `shell`.
"""

from collections.abc import Iterator
from typing import Literal

import attrs

from codex_checkpoints.values import frozen

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_MOVE = "*** Move to:"
_KINDS: tuple[tuple[str, Literal["add", "update", "delete"]], ...] = (
    ("*** Add File:", "add"),
    ("*** Update File:", "update"),
    ("*** Delete File:", "delete"),
)


@frozen
class FileChange:
    """One header of a patch: a path as it stands there, and where an update moves it to."""

    path: str
    kind: Literal["add", "update", "delete"]
    move_to: str | None = None


def files_of(patch: str) -> tuple[FileChange, ...]:
    """List the files that a patch names, in its order, a file named twice twice."""
    changes: list[FileChange] = []
    # What stands before the begin marker may be the first line of a wrapping heredoc.
    for line in _after_begin(patch):
        # In an update a leading space marks context, whatever the line goes on to say. Elsewhere
        # it is only white space around a marker.
        if line.startswith(" ") and changes and changes[-1].kind == "update":
            continue
        marker = line.strip()
        if marker == _END:
            break
        if marker.startswith(_MOVE):
            _move_last(changes, marker.removeprefix(_MOVE).strip())
        else:
            changes.extend(_header(marker))
    return tuple(changes)


def _after_begin(patch: str) -> Iterator[str]:
    """Yield the lines that follow the begin marker."""
    # Only LF ends a line in a patch: `splitlines` would also cut an added line at a form feed
    # and take its rest for a header.
    lines = iter(patch.split("\n"))
    for line in lines:
        if line.strip() == BEGIN:
            yield from lines


def _header(marker: str) -> Iterator[FileChange]:
    """Yield the change that a header line announces, or nothing for any other line."""
    for prefix, kind in _KINDS:
        path = marker.removeprefix(prefix).strip()
        if marker.startswith(prefix) and path:
            yield FileChange(path, kind)


def _move_last(changes: list[FileChange], target: str) -> None:
    """Give the update that is being read its new path, the first time one is named."""
    if target and changes and changes[-1].kind == "update" and changes[-1].move_to is None:
        changes[-1] = attrs.evolve(changes[-1], move_to=target)
