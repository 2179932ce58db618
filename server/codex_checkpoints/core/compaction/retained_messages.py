"""Selects the user's messages that a replacement keeps, and cuts those that do not fit (JUN-14)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import (
    Past,
    PlainMessage,
    plain_message,
)
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.agents.codex.history.tokens import (
    approximate_tokens,
    cut_text,
)
from codex_checkpoints.core.agents.codex.injected_text import LeftOut
from codex_checkpoints.core.compaction.request_messages import names_goal
from codex_checkpoints.core.fields import Json

# A lookahead, because markers may overlap.
_MARKER = re.compile("(?=(…[0-9]{1,19} tokens truncated…))")


LONGEST_KEPT = 2_000
"""Tokens to which messages are cut if not all fit."""

LONGEST_NEWEST = 8_000
"""The same for the newest one."""


@frozen
class Retained:
    """A user message that is kept: its place in the history, and its new text."""

    place: int
    item: Json
    tokens: int
    cut_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


@frozen
class Selection:
    """The chosen messages in the old order, and the places of messages that were only payload.

    Messages before `reached` did not fit.  `merged` are the places of messages to which a later one
    is equal.
    """

    retained: tuple[Retained, ...]
    only_payload: tuple[int, ...]
    reached: int
    merged: frozenset[int] = frozenset()


def select(history: Sequence[Past], budget: int, *, has_goal: bool = False) -> Selection:
    """Return the user's messages that a replacement keeps (rules, "Retained user messages").

    If the session `has_goal`, an earlier replacement's message about it goes.  If all fit into the
    budget, none is cut.  Otherwise long ones are cut to `LONGEST_KEPT`, the oldest first, until all
    fit; then the messages are taken from the newest on, as far as they fit (JUN-14).
    """
    found, merged = _messages(history)
    if has_goal:
        found = {place: each for place, each in found.items() if not names_goal(each.text)}
    tokens = {place: _cost(message.text) for place, message in found.items()}
    limits = dict(tokens)
    newest = max(found, default=0)
    for place in sorted(found):
        if sum(limits.values()) <= budget:
            break
        limits[place] = min(tokens[place], LONGEST_NEWEST if place == newest else LONGEST_KEPT)
    retained: list[Retained] = []
    only_payload: list[int] = []
    left, reached = budget, len(history)
    while left > 0 and reached > 0:
        reached -= 1
        message = found.get(reached)
        if message is not None:
            retained.append(_within(reached, message, tokens[reached], min(left, limits[reached])))
            left -= retained[-1].tokens
        elif history[reached].kind == "user":
            message = plain_message(history[reached].item)
            only_payload += [reached] if message.left_out and not message.says_something else []
    return Selection(tuple(reversed(retained)), tuple(reversed(only_payload)), reached, merged)


def _messages(history: Sequence[Past]) -> tuple[dict[int, PlainMessage], frozenset[int]]:
    """Return the user's messages with words, by place; of identical ones the newest.

    The places of the others come second.
    """
    found: dict[int, PlainMessage] = {}
    merged: set[int] = set()
    seen: set[tuple[str, ...]] = set()
    for place in range(len(history) - 1, -1, -1):
        if history[place].kind == "user":
            message = plain_message(history[place].item)
            if message.says_something and message.parts in seen:
                merged.add(place)
            elif message.says_something:
                seen.add(message.parts)
                found[place] = message
    return found, frozenset(merged)


def _within(place: int, message: PlainMessage, tokens: int, limit: int) -> Retained:
    if tokens <= limit:
        return Retained(place, user_message(message.parts), tokens, 0, message.left_out)
    text = cut_text(message.text, limit)
    return Retained(place, user_message([text]), limit, tokens - limit, message.left_out)


def _cost(text: str) -> int:
    """Return the cost of a message, without the marker of an earlier cut.

    So a message that was cut to the rest of a budget fits there at the next compaction: it neither
    shrinks further nor gets a second marker (JUN-1).
    """
    marker = _middle_marker(text)
    return approximate_tokens(text if marker is None else text[: marker[0]] + text[marker[1] :])


def _middle_marker(text: str) -> tuple[int, int] | None:
    """Return the position of the marker nearest to the middle: a cut leaves it there.

    A typed one is elsewhere.
    """
    whole = len(text.encode(errors="replace"))
    best: tuple[int, int] | None = None
    nearest, at, before = whole, 0, 0
    for found in _MARKER.finditer(text):
        start, end = found.span(1)
        before += len(text[at:start].encode(errors="replace"))
        at = start
        size = len(text[start:end].encode(errors="replace"))
        distance = abs(2 * before + size - whole)
        if distance < nearest:
            nearest, best = distance, (start, end)
    return best
