"""The section `[STATUS]` of a digest, which also stands before one that was kept.

What is kept of a session is made of the records before its newest compaction; how its last turn
ended is of now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.text import one_line
from codex_checkpoints.core.rollout.ours import DIGEST_LINE
from codex_checkpoints.core.rollout.turns import Ended

ROOM: Final = 168
"""Bytes; the section never takes more."""

_REASON: Final = 80
"""Bytes of the reason of a turn that failed."""

_HEAD: Final = f"{DIGEST_LINE}\n\n[STATUS]\n"


def ended_line(ended: Ended, *, asks: bool, reason: str | None = None) -> str:
    """Return how the last turn ended, and why it failed."""
    if ended == "failed" and reason is not None:
        why = reason.encode(errors="replace")[:_REASON].decode(errors="ignore").rstrip()
        return f"last turn: failed: {why}"
    return f"last turn: {ended}{' asks' if asks and ended == 'answered' else ''}"


def goal_line(status: str) -> str:
    """Return the state of the goal, as Codex names it."""
    return f"goal: {one_line(status)[:_LONGEST_STATE]}"


_LONGEST_STATE: Final = 13


def plan_line(age: int) -> str:
    """Return how many requests ago the plan was changed."""
    return f"plan: last changed {age} request{'' if age == 1 else 's'} ago"


def status_of(state: State) -> Iterator[str]:
    """Yield what a digest says of a session as it is now."""
    counted = list(state.turns.counting())
    if counted:
        last = counted[-1]
        yield ended_line(state.ended(last, is_last=True), asks=last.asks, reason=last.reason)
    if state.turns.goal is not None and state.turns.goal.status is not None:
        yield goal_line(state.turns.goal.status)
    plans = [age for age, turn in enumerate(reversed(counted)) if turn.planned is not None]
    if plans:
        yield plan_line(plans[0])


def with_status(digest: str, lines: Iterable[str]) -> str:
    """Return a digest that says these lines first."""
    rows = "".join(f"- {line}\n" for line in lines)
    rest = (
        digest.removeprefix(_HEAD) if digest.startswith(_HEAD) else digest[len(DIGEST_LINE) + 1 :]
    )
    return f"{_HEAD}{rows}{rest}" if rows and digest else digest
