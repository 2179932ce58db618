"""Choose which of the user's messages stand in a replacement, word for word (JUN-5 to JUN-15).

From the newest backwards until the budget is used up, as Codex itself does it; the message that no
longer fits is cut in the middle and is the last.  Order and boundaries stay as they were (CKP-10).
What joins them in a replacement is the business of `building.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codex_checkpoints.core.compaction.kinds import Past, kind_of
from codex_checkpoints.core.compaction.payload import LeftOut, PlainMessage, plain_message
from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.core.history.tokens import approximate_tokens, cut_text
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.values import frozen

# Looked for ahead, since a text may end in the beginning of one.
_MARKER = re.compile("(?=(…[0-9]{1,19} tokens truncated…))")


@frozen
class Retained:
    """A message of the user that is kept: its place in the history, and what stands for it."""

    place: int
    item: Json
    tokens: int
    cut_tokens: int = 0
    left_out: tuple[LeftOut, ...] = ()


@frozen
class Selection:
    """What was chosen, in the old order, and the places of messages that were only payload.

    For what stands before the place `reached` there was no room.
    """

    retained: tuple[Retained, ...]
    only_payload: tuple[int, ...]
    reached: int


def select(history: Sequence[Past], budget: int) -> Selection:
    """Return the newest messages of the user that the budget has room for (JUN-14)."""
    retained: list[Retained] = []
    only_payload: list[int] = []
    left, reached = budget, len(history)
    while left > 0 and reached > 0:
        reached -= 1
        message = _of_the_user(history[reached].item)
        if message is None:
            continue
        if not message.says_something:
            only_payload += [reached] if message.left_out else []
            continue
        found = _within(reached, message, left)
        retained.append(found)
        left -= found.tokens
    return Selection(tuple(reversed(retained)), tuple(reversed(only_payload)), reached)


def _of_the_user(item: Json) -> PlainMessage | None:
    return plain_message(item) if kind_of(item) == "user" else None


def _within(place: int, message: PlainMessage, left: int) -> Retained:
    tokens = _cost(message.text)
    if tokens <= left:
        return Retained(place, user_message(message.parts), tokens, 0, message.left_out)
    text = cut_text(message.text, left)
    return Retained(place, user_message([text]), left, tokens - left, message.left_out)


def _cost(text: str) -> int:
    """Return what a message costs of the budget, the marker of an earlier cut not counted.

    So a message that was cut to the rest of the budget fits there again when the next compaction
    comes to it, and neither shrinks further nor gets a second marker (JUN-1).
    """
    marker = _middle_marker(text)
    return approximate_tokens(text if marker is None else text[: marker[0]] + text[marker[1] :])


def _middle_marker(text: str) -> tuple[int, int] | None:
    """Return where the marker nearest to the middle stands: a cut leaves it there.

    One that a person typed stands elsewhere, or stands for a cut as well as ours would.
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
