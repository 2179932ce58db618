"""Finds the lines that belong to the prompt of the next turn, and not to the turn before.

In files without task events a turn lasts up to the next one (rules, "Turns"), which begins with the
event of its message.  Codex writes the prompt as an item before that event, and before the prompt
the permissions, instructions and environment.  `rollout.turns` decides where turns begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codex_checkpoints.core.agents.codex.history.items import texts
from codex_checkpoints.core.agents.codex.injected_text import is_contextual, is_human
from codex_checkpoints.core.fields import is_object, load, object_of

_HAPPENED = ("<user_shell_command>", "<turn_aborted>", "<subagent_notification>", "Warning: ")
"""The beginnings of messages that were not typed, but report an event of the previous turn."""
_NOTHING = frozenset({"record_type"})
"""The keys of an empty line that the oldest versions wrote between items."""


def leading(lines: Sequence[bytes]) -> int:
    """Count, at the end, the lines that lead into a next turn without a task (AGN-12, AGN-25)."""
    found = 0
    for count, line in enumerate(reversed(lines), 1):
        value = load(line)
        if not is_object(value):
            break
        item = object_of(value.get("payload")) if value.get("type") == "response_item" else value
        if _leads(item):
            found = count
        elif value.keys() != _NOTHING:
            break
    return found


def before_task(lines: Iterable[bytes]) -> int:
    """Count the lines before the last task that begins in them; all if none does."""
    count, before = 0, None
    for line in lines:
        if b'"task_started"' in line or b'"turn_started"' in line:
            payload = object_of(object_of(load(line)).get("payload"))
            before = count if payload.get("type") in {"task_started", "turn_started"} else before
        count += 1
    return count if before is None else before


def _leads(item: Mapping[str, object]) -> bool:
    """Return whether an item is a prompt or the context written with one."""
    if item.get("type") != "message":
        return False
    match item.get("role"):
        case "user":
            parts = texts(item)
            happened = any(part.lstrip().startswith(_HAPPENED) for part in parts)
            return is_human(parts) or (any(map(is_contextual, parts)) and not happened)
        case "developer":
            return True
        case _:
            return False
