"""Renders restored files for a terminal."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codex_checkpoints.core.files.words import LABELS
from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.sections.terminal import AMBER, DIM, GREEN, RED, Screen, plain

if TYPE_CHECKING:
    from codex_checkpoints.service.files.restores import RestoredFile, RestoredFiles

_WIDTH = max(map(len, LABELS.values()))


def plan_lines(plan: RestoredFiles, screen: Screen) -> Iterator[str]:
    """Yield the effects of a restore of files, a line each, with its difference."""
    if not plan.rows:
        yield plan.headline
    else:
        yield f"In {plain(plan.folder)}: {plan.headline}"
    for row in plan.rows:
        yield _line("*" if row.on else " ", row, screen)
        yield from _difference(row, screen)
    if plan.remark is not None:
        yield plan.remark
        for command in plan.commands:
            yield screen.tinted(DIM, f"    {plain(command)}")
    if len({row.on for row in plan.rows}) > 1:
        words = "Only files marked * are restored; name others with --file or --merge."
        yield screen.tinted(DIM, words)


def asks_to_restore(count: int) -> str:
    """Return the question before files are written."""
    return f"Restore {counted(count, 'file')}?"


def done_lines(done: RestoredFiles, screen: Screen) -> Iterator[str]:
    """Yield the result for each file."""
    if not done.rows:
        yield "The session changed no file after that turn."
    for row in done.rows:
        yield _line("✓" if row.written else " ", row, screen)
    written = sum(row.written for row in done.rows)
    yield f"{counted(written, 'file')} written."
    if done.operation_id is not None:
        yield f"Undo: codex-checkpoints undo-restore-files {done.operation_id}"


def _line(sign: str, row: RestoredFile, screen: Screen) -> str:
    tint = GREEN if row.on or row.written else AMBER
    counts = f" +{row.added} -{row.removed}" if row.added or row.removed else ""
    why = "" if row.why is None else f" ({plain(row.why)})"
    state = screen.tinted(tint, row.label.ljust(_WIDTH))
    return f"{sign} {state}  {plain(row.path)}{counts}{why}"


def _difference(row: RestoredFile, screen: Screen) -> Iterator[str]:
    if row.before is None and row.after is None:
        return
    now, then = ((text or "").split("\n") for text in (row.before, row.after))
    for line in [*difflib.unified_diff(now, then, n=2, lineterm="")][2:]:
        tint = {"+": GREEN, "-": RED}.get(line[:1], DIM)
        yield screen.tinted(tint, f"    {plain(line)}")
