"""The files that a patch names: the headers of Codex's patch grammar, without its hunks."""

from collections.abc import Iterator

from codex_checkpoints.core.rollout.fields import content_hash
from codex_checkpoints.core.rollout.items import FileChange
from codex_checkpoints.values import evolve

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_MOVE = "*** Move to:"
_KINDS = (
    ("*** Add File:", "add"),
    ("*** Update File:", "update"),
    ("*** Delete File:", "delete"),
)


def files_of(patch: str) -> tuple[FileChange, ...]:
    """List the headers of a patch in their order, repetitions included."""
    changes: list[FileChange] = []
    # Only LF ends a line in a patch: `splitlines` would also cut an added line at a form feed
    # and take its rest for a header.
    lines = iter(patch.split("\n"))
    # The begin marker may follow the first line of a heredoc.
    any(line.strip() == BEGIN for line in lines)
    added: list[str] = []
    for line in lines:
        if "***" not in line and (not changes or changes[-1].kind != "add"):
            continue
        # In an update a leading space marks context; elsewhere it is white space at a marker.
        if line.startswith(" ") and changes and changes[-1].kind == "update":
            continue
        marker = line.strip()
        if line.startswith("+") and changes and changes[-1].kind == "add":
            added.append(line[1:].removesuffix("\r") + "\n")
            continue
        _close(changes, added)
        if marker == _END:
            break
        target = marker.removeprefix(_MOVE).strip()
        if not marker.startswith(_MOVE):
            changes.extend(_header(marker))
        elif target and changes and changes[-1].kind == "update" and not changes[-1].move_to:
            changes[-1] = evolve(changes[-1], move_to=target)
    _close(changes, added)
    return tuple(changes)


def _close(changes: list[FileChange], added: list[str]) -> None:
    """Give an added file, whose lines have ended, the hash of its content."""
    if changes and changes[-1].kind == "add" and changes[-1].added is None:
        changes[-1] = evolve(changes[-1], added=content_hash("".join(added)))
    added.clear()


def _header(marker: str) -> Iterator[FileChange]:
    for prefix, kind in _KINDS:
        path = marker.removeprefix(prefix).strip()
        if marker.startswith(prefix) and path:
            yield FileChange(path, kind)
