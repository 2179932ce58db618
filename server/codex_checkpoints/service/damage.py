"""What is damaged in our own records, of those that nothing could be derived from again.

Whoever reads such a file passes over a line that says nothing, so that the rest still counts; here
it is told.  Whether the lines of the audit are those that were written is asked by `verifying`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from codex_checkpoints.durable import StorageError, unreadable_in
from codex_checkpoints.records import (
    AUDIT,
    COMPACTIONS,
    IMPORTS,
    MARKERS,
    RESTORES,
    UPDATES,
    Records,
)
from codex_checkpoints.service.findings import Finding

_METADATA = "metadata.jsonl"
"""Written by the store of the threads, beside the others."""
_OF_A_SESSION = (UPDATES, _METADATA, MARKERS, COMPACTIONS, RESTORES, IMPORTS)
_SHOWN = 8
"""So many lines are named; the others are counted."""


def damage(records: Records) -> Iterator[Finding]:
    """Yield a finding for each record of ours that cannot be read as a whole."""
    for path in _paths(records):
        try:
            numbers = tuple(unreadable_in(path))
        except StorageError as error:
            yield Finding(
                "unreadable_record",
                "error",
                f"This record of ours cannot be read: {error}.",
                path,
                1,
                "Give your account the right to read it, or bring it back from a backup.",
            )
            continue
        if numbers:
            yield Finding(
                "damaged_record",
                "warning",
                f"{_lines(numbers)} of this record of ours cannot be read; the others count.",
                path,
                len(numbers),
                "Bring the file back from a backup, else what stood there is lost;"
                " only what a killed program had not finished is no loss.",
            )


def _paths(records: Records) -> Iterator[str]:
    yield os.path.join(records.state_dir, AUDIT)
    for name in _OF_A_SESSION:
        for session_id in sorted(records.holding(name)):
            folder = records.session_dir(session_id)
            if folder is not None:
                yield os.path.join(folder, name)


def _lines(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]}"
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    others = len(numbers) - _SHOWN
    return f"Lines {shown} and {others} more" if others > 0 else f"Lines {shown}"
