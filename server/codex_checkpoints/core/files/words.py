"""Words restores of files, the same in every interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from codex_checkpoints.core.files.plan import FileState

LABELS: Final[Mapping[FileState, str]] = {
    "same": "as it was",
    "restore": "restore",
    "create": "create",
    "move": "move back",
    "delete": "delete",
    "new_or_replaced": "new or replaced",
    "merge": "merge",
    "conflict": "conflict",
    "unknown": "not known",
    "outside": "outside",
    "link": "link",
    "binary": "binary",
    "too_large": "too large",
    "gone": "gone",
    "unreadable": "unreadable",
}
"""The label of each state."""

_MOST_NAMED = 3
"""The most files that are named in a sentence."""


def plan_headline(offered: int, left: Sequence[str], same: int) -> str:
    """Return how many files a plan offers, which it leaves alone, and how many are unchanged."""
    if offered + len(left) + same == 0:
        return "The session changed no file after that turn."
    parts = [f"{_counted(offered, 'file') if offered else 'No file'} can be restored."]
    if left:
        stay = "1 stays as it is" if len(left) == 1 else f"{len(left)} stay as they are"
        parts.append(f"{stay}: {_named(left)}.")
    if same:
        parts.append("1 is as it was." if same == 1 else f"{same} are as they were.")
    return " ".join(parts)


def commands_remark(unnamed: int) -> str | None:
    """Return that commands may have changed files without naming them; None if there are none."""
    commands = _counted(unnamed, "command")
    return f"{commands} after that turn may have changed more files." if unnamed else None


def done_headline(written: int, left: Mapping[str, str]) -> str:
    """Return how many files were restored, and the reasons for those that were `left`, by path."""
    return _headline(f"{_counted(written, 'file')} restored.", left)


def undone_headline(written: int, left: Mapping[str, str]) -> str:
    """Return how many files an undo put back, and the reasons for those that were `left`."""
    return _headline(f"{_counted(written, 'file')} put back.", left)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _headline(done: str, left: Mapping[str, str]) -> str:
    reasons = [f"{path} ({why})" for path, why in left.items()]
    return f"{done} Not written: {_named(reasons)}." if left else done


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown}, and {more} more" if more > 0 else shown
