"""Long texts cut as Codex cuts them, so that what is counted and shown is what would be sent.

A limit is in tokens of four bytes.  Of a text that is too long both ends stay and a mark between
them says how much is gone; of the parts of an output the texts share one limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.rollout.fields import is_list, object_of, text_of

BYTES_A_TOKEN = 4
OUTPUT_TOKENS = 12_000
"""How much of an output Codex takes into a history when nothing else is said beside it."""


def approximate_tokens(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4), by which Codex counts what nobody reported (JUN-30)."""
    return -(-len(text.encode(errors="replace")) // BYTES_A_TOKEN)


def ends_of(text: str, tokens: int) -> tuple[str, str, str] | None:
    """Return what stays of a text at its ends and the mark between; None where it fits."""
    raw = text.encode(errors="replace")
    budget = tokens * BYTES_A_TOKEN
    if len(raw) <= budget:
        return None
    gone = -(-(len(raw) - budget) // BYTES_A_TOKEN)
    left = budget // 2
    right = budget - left
    before = raw[:left].decode(errors="ignore")
    after = raw[len(raw) - right :].decode(errors="ignore") if right else ""
    return before, f"…{gone} tokens truncated…", after


def cut_text(text: str, tokens: int) -> str:
    """Return a text cut in its middle to a number of tokens, the mark not counted."""
    ends = ends_of(text, tokens)
    return text if ends is None else "".join(ends)


def cut_output(item: Item, tokens: int) -> Item:
    """Return an output of a call, cut to a number of tokens."""
    output = item.get("output")
    if isinstance(output, str):
        return {**item, "output": cut_text(output, tokens)}
    return {**item, "output": _cut_parts(output, tokens)} if is_list(output) else item


def _cut_parts(parts: Sequence[object], tokens: int) -> list[object]:
    """Let texts use up the limit in order; the one that does not fit is cut, later ones go."""
    kept: list[object] = []
    left, omitted = tokens, 0
    for part in parts:
        text = text_of(object_of(part).get("text"))
        if text is None:
            kept.append(part)
        elif not text:
            continue
        elif left == 0:
            omitted += 1
        else:
            cost = approximate_tokens(text)
            kept.append(part if cost <= left else _text_part(cut_text(text, left)))
            left = max(0, left - cost)
    if omitted:
        kept.append(_text_part(f"[omitted {omitted} text items ...]"))
    return kept


def _text_part(text: str) -> Item:
    return {"type": "input_text", "text": text}
