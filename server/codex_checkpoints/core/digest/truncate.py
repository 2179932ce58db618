"""Cuts texts without splitting a secret."""

from __future__ import annotations

from collections.abc import Collection

from codex_checkpoints.core.checkpoint.redaction import redact, secrets

GAP = " … "

_LABEL = 400
_AROUND = 8192
"""The code points around a cut that are searched for a secret that the cut would split."""


def ends_of(text: str, limit: int = 8192) -> str:
    """Return a text, with its middle cut out if it exceeds `limit`; no secret is split."""
    if len(text) <= limit:
        return text
    half = limit // 2
    begin, end = half, len(text) - half
    for start, behind in _secrets_near(text, begin):
        begin = start if start < begin < behind else begin
    for start, behind in _secrets_near(text, end):
        end = behind if start < end < behind else end
    return f"{text[:begin]}{GAP}{text[end:]}"


def _secrets_near(text: str, place: int) -> list[tuple[int, int]]:
    first = max(0, place - _AROUND)
    found = secrets(text[first : place + _AROUND])
    return [(first + start, first + behind) for start, behind in found]


def label_of(text: str) -> str:
    """Return the label of a call: its beginning, redacted before it is cut."""
    return text if len(text) <= _LABEL else redact(text[:_AROUND])[:_LABEL]


PROPOSED = "<proposed_plan>"
_END = "</proposed_plan>"


def without_plan(text: str, beside: Collection[str]) -> str:
    """Return an answer without its proposed plan, if `beside` holds the whole plan."""
    before, begin, rest = text.partition(PROPOSED)
    plan, end, after = rest.partition(_END)
    folded = " ".join(plan.split())
    if not end or all(" ".join(each.split()) != folded for each in beside):
        return text
    return f"{before}{begin}…{end}{after}"
