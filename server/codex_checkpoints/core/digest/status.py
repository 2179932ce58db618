"""Makes the section `[STATUS]` of a digest, which also precedes a cached digest.

A cached digest covers the records before the newest compaction; the status describes the last turn
as of now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.checkpoint.redaction import one_line
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.turns import Ended

ROOM: Final = 168
"""The most bytes of the section."""

_REASON: Final = 80
"""The most bytes of the reason for a failed turn."""

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
    """Return the number of requests since the last change of the plan."""
    return f"plan: last changed {age} request{'' if age == 1 else 's'} ago"


def status_of(state: State) -> Iterator[str]:
    """Yield the status lines of a session as it is now."""
    counted = list(state.turns.counting())
    if counted:
        last = counted[-1]
        yield ended_line(state.ended(last), asks=last.asks, reason=last.reason)
    if state.turns.goal is not None and state.turns.goal.status is not None:
        yield goal_line(state.turns.goal.status)
    plans = [age for age, turn in enumerate(reversed(counted)) if turn.planned is not None]
    if plans:
        yield plan_line(plans[0])


def with_status(digest: str, lines: Iterable[str]) -> str:
    """Return a digest that begins with these lines."""
    rows = "".join(f"- {line}\n" for line in lines)
    rest = (
        digest.removeprefix(_HEAD) if digest.startswith(_HEAD) else digest[len(DIGEST_LINE) + 1 :]
    )
    return f"{_HEAD}{rows}{rest}" if rows and digest else digest
