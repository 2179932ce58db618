"""Decides which lines a reader can skip if it needs only some of them, and their turns."""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.agents.codex.parsing import CALLS

_TURNS = frozenset(
    {
        "task_started",
        "turn_started",
        "task_complete",
        "turn_complete",
        "turn_aborted",
        "thread_rolled_back",
        "user_message",
        "thread_goal_updated",
        "thread_goal_cleared",
        "entered_review_mode",
        "error",
    }
)
"""The events that mark the beginning and end of turns, and the reason."""

_OF_REVIEWS = frozenset({"UserMessage", "EnteredReviewMode"})
"""The completed items that mark turns."""


def passing_over(
    may_hit: Callable[[bytes], bool],
) -> Callable[[bytes, str, str | None, str | None], bool]:
    """Return which lines a reader can skip if it needs only hits, their turns and their calls."""

    def passes_over(raw: bytes, kind: str, tag: str | None, inner: str | None) -> bool:
        if kind == "response_item":
            is_needed = tag in CALLS or tag == "agent_message"
            is_needed = is_needed or (tag == "message" and inner != "assistant")
        elif kind == "event_msg":
            is_needed = tag in _TURNS or inner in _OF_REVIEWS
        else:
            is_needed = kind != "compacted"
        return not is_needed and not may_hit(raw)

    return passes_over
