"""Recovers task and plan from our own text in a session file if our record is lost."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS, Evidence, Plan, Step, Task
from codex_checkpoints.core.checkpoint.redaction import value

_STEP: Final = re.compile(r"\[([ x])\] (.*) \(id=(\S{1,128})\)")


@frozen
class Recovered:
    """The content of our text about the previous session; a state pack has only open steps."""

    task: Task | None
    plan: Plan


def in_our_text(text: str, ref: str) -> Recovered:
    """Return the task and plan in a state pack or a handoff; `ref` is the anchor of its record."""
    evidence = Evidence("user", ref)
    task = next((value(line, MAX_VALUE_CHARS) for line in _lines(text, "[TASK]")), "")
    found = [match for line in _lines(text, "[PLAN]") if (match := _STEP.fullmatch(line))]
    steps = tuple(Step(match[3], value(match[2], MAX_VALUE_CHARS)) for match in found)
    # A reader with an unfinished last line copies its state, and the default mapping has no copy.
    plan = Plan(steps, {match[3]: match[1] == "x" for match in found}, evidence)
    return Recovered(Task(task, evidence) if task else None, plan if steps else Plan(done={}))


def _lines(text: str, heading: str) -> list[str]:
    """Return the lines below a heading without their dashes."""
    _, _, rest = text.partition(f"\n{heading}\n")
    part = rest.partition("\n\n")[0]
    return [line.removeprefix("- ") for line in part.split("\n") if line.startswith("- ")]
