"""What goes with a prompt and is written before it: it is no part of the turn before.

In files without task events a turn lasts up to the next one (interfaces, "Turns").  That one begins
with the event of its message; but Codex writes the prompt as an item before the event, and before
the prompt what it states anew: permissions, instructions, the environment.  A newer Codex that goes
on with such a file begins its task still earlier.  Where turns begin is left to `rollout.turns`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from codex_checkpoints.core.history.items import texts
from codex_checkpoints.core.history.speakers import states_context
from codex_checkpoints.core.rollout.contextual import is_contextual, is_human
from codex_checkpoints.core.rollout.fields import is_object, load, object_of

_Part = Literal["item", "settings", "task", "nothing"]

_NOTHING = frozenset({"record_type"})
"""The keys of a line that the oldest versions wrote between items, and that says nothing."""


def leading(lines: Sequence[bytes]) -> int:
    """Count from the end the lines that lead into a turn which begins behind them (AGN-12, AGN-25).

    The settings of a turn belong to the one before, unless a task begins before them.
    """
    found, settings_met = 0, False
    for count, line in enumerate(reversed(lines), 1):
        part = _part(line)
        if part == "task":
            return count
        if part is None:
            break
        settings_met = settings_met or part == "settings"
        if part == "item" and not settings_met:
            found = count
    return found


def _part(line: bytes) -> _Part | None:
    """Return what a line is of a turn's beginning, None where it is something else."""
    value = load(line)
    if not is_object(value):
        return None
    payload = object_of(value.get("payload"))
    match value.get("type"):
        case "response_item":
            return "item" if _leads(payload) else None
        case "message":
            return "item" if _leads(value) else None
        case "turn_context":
            return "settings"
        case "event_msg":
            return "task" if payload.get("type") in {"task_started", "turn_started"} else None
        case _:
            return "nothing" if value.keys() == _NOTHING else None


def _leads(item: Mapping[str, object]) -> bool:
    """Return whether an item is a prompt, or context that is stated with one."""
    if item.get("type") != "message":
        return False
    match item.get("role"):
        case "user":
            parts = texts(item)
            return is_human(parts) or any(map(is_contextual, parts))
        case "developer":
            return states_context(item)
        case _:
            return False
