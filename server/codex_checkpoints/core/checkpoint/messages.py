"""State + messages -> state: who said what, and which turn that belongs to.

Which of the messages that a file tells count is the business of `reducer`, rule 2.
"""

from __future__ import annotations

import re

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.state import NAMED, State
from codex_checkpoints.core.checkpoint.text import looked_at, value
from codex_checkpoints.core.rollout import contextual
from codex_checkpoints.core.rollout.items import UserMessage
from codex_checkpoints.core.rollout.lines import Line
from codex_checkpoints.core.rollout.turns import Planned, Said

_CWD = re.compile(r"<cwd>([^<]{1,4096})</cwd>")


def take_message(state: State, item: UserMessage, line: Line) -> None:
    """Take a message of role user that stands outside an item."""
    if state.paginated:
        return
    state.worked_at = line.position
    if item.in_history:
        if state.typed:
            return
        _environment(state, item)
    elif not state.typed:
        # From here on events tell who typed what; what the history seemed to say is void.
        state.typed = True
        state.first_said = None
        state.planned = _last_plan(state)
        state.turns.forget()
    said(state, item, item.turn_id, line)


def _environment(state: State, item: UserMessage) -> None:
    """Find the folder of a session that has no other place for it (ROL-16)."""
    if state.base is None:
        for text in item.texts:
            found = _CWD.search(text, 0, 65_536) if "<environment_context>" in text[:256] else None
            if found is not None:
                state.base = found[1]
                return


def _last_plan(state: State) -> Planned | None:
    plans = [turn.planned for turn in state.turns.counting() if turn.planned is not None]
    return plans[-1] if plans else state.planned


def said(state: State, item: UserMessage, turn_id: str | None, line: Line) -> None:
    """Take a message that may be a person's."""
    by_person = contextual.is_human if item.in_history else contextual.is_typed
    if not by_person(item.texts):
        return
    ref = item.ref
    if ref is None or len(ref) > MAX_URI_CHARS:
        ref = f"seq:{line.seq}"
    parts = [part for part in item.texts if not contextual.is_image_wrapper(part)]
    text = looked_at(contextual.request_of("\n".join(parts)))
    late = Said(text, ref, line.seq, state.order, value_of) if text else None
    if late is not None:
        state.hold(late, len(text))
    if state.first_said is None:
        state.first_said = late
    if state.naming not in NAMED:
        return
    turn = state.turns.user_message(turn_id, line.position, line.seq, line.stamp)
    turn.messages.append(ref)
    if late is not None:
        state.order += 1
        late.order = state.order
        turn.said = late


def value_of(text: str) -> str:
    """Make what was said, or a step of a plan, a value."""
    return value(text, MAX_VALUE_CHARS)
