"""Whether a log of events is still what was written: the `verify` of restores.

A changed line shows by its digest, a missing one by the numbers of its operation, a wrong order by
the order that a restore has.  Other operations in the log are for others to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from codex_checkpoints.core.restore.events import BESIDE, COMPLETED, FAILED, ORDER
from codex_checkpoints.core.restore.sealing import is_intact
from codex_checkpoints.core.rollout.fields import object_of, text_of
from codex_checkpoints.values import frozen


@frozen
class Finding:
    """Something wrong in a log: a line that was changed, lines that are gone, a wrong order."""

    code: Literal["changed_line", "missing_lines", "wrong_order"]
    operation_id: str | None
    line: int
    """The line of the log that shows it, from 1."""


class _Step(NamedTuple):
    line: int
    kind: str
    mode: str
    step: int


def verify(log: Iterable[object]) -> tuple[Finding, ...]:
    """Check the events of restores in a log; lines of other operations are for others (AGN-62).

    An operation that was cut off by a crash is none that is wrong: it lacks only its end
    (`unended`).
    """
    findings: list[Finding] = []
    running: dict[str, list[_Step]] = {}
    for number, line in enumerate(log, 1):
        event = object_of(line)
        mode, kind = text_of(event.get("restoreMode")), text_of(event.get("type")) or ""
        operation = text_of(event.get("operationId"))
        if mode is None or operation is None:
            continue
        if not is_intact(event):
            findings.append(Finding("changed_line", operation, number))
        steps = running.setdefault(operation, [])
        step = event.get("step")
        if step != (steps[-1].step + 1 if steps else 0):
            findings.append(Finding("missing_lines", operation, number))
        steps.append(_Step(number, kind, mode, step if type(step) is int else len(steps)))
    for operation, steps in running.items():
        misplaced = _misplaced([step.kind for step in steps], steps[0].mode)
        if misplaced is not None:
            findings.append(Finding("wrong_order", operation, steps[misplaced].line))
    return tuple(sorted(findings, key=lambda finding: finding.line))


def unended(log: Iterable[object]) -> tuple[str, ...]:
    """Return the restores in a log whose end it does not tell, in the order of their beginning.

    One of them may be under way, or ended by the next start; that is known elsewhere.
    """
    has_ended: dict[str, bool] = {}
    for line in log:
        event = object_of(line)
        operation = text_of(event.get("operationId"))
        if operation is not None and text_of(event.get("restoreMode")) is not None:
            ends = event.get("type") in (COMPLETED, FAILED)
            has_ended[operation] = has_ended.get(operation, False) or ends
    return tuple(operation for operation, ended in has_ended.items() if not ended)


def _misplaced(kinds: Sequence[str], mode: str) -> int | None:
    """Return the place of the first event that may not follow those before it."""
    expected = list(ORDER["hard" if mode == "hard" else "soft"])
    for place, kind in enumerate(kinds):
        if kind == FAILED and place > 0 and expected:
            return None if place == len(kinds) - 1 else place + 1
        if kind in BESIDE and place > 0 and expected:
            continue
        if not expected or kind != expected.pop(0):
            return place
    return None
