"""What an agent found of the artifacts it was handed: a place kept open (AGN-78).

Which of them it went by, which helped, which were noise, and whether the next restore might leave
one out or pin it.  These are hints: they are kept, and nothing here or elsewhere acts on them, so
that a restore means the same with and without (AGN-79, AGN-82).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.core.rollout.paths import encoded
from codex_checkpoints.values import frozen

Verdict = Literal["authoritative", "helpful", "noise"]

MAX_ITEMS = 64
"""How many artifacts are judged at once."""


@frozen
class Hint:
    """What was found of one artifact, by its uri."""

    uri: str
    verdict: Verdict
    suppress_on_hard_restore: bool = False
    pin_for_restore: bool = False


def problems_in(hints: Iterable[Hint]) -> tuple[str, ...]:
    """Return what keeps hints from being stored, each with its place."""
    found: list[str] = []
    seen: set[str] = set()
    for place, hint in enumerate(hints):
        at = f"items[{place}]"
        if place >= MAX_ITEMS:
            return (*found, f"items: more than {MAX_ITEMS}")
        if not 0 < len(hint.uri) <= MAX_URI_CHARS or encoded(hint.uri) != hint.uri:
            found.append(f"{at}.uri: must be 1 to {MAX_URI_CHARS} plain characters")
        if hint.verdict not in get_args(Verdict):
            found.append(f"{at}.verdict: must be one of {', '.join(get_args(Verdict))}")
        if hint.uri in seen:
            found.append(f"{at}.uri: stands twice")
        if hint.suppress_on_hard_restore and hint.pin_for_restore:
            found.append(f"{at}: cannot be suppressed and pinned")
        seen.add(hint.uri)
    return tuple(found) if seen else ("items: must not be empty",)


def line_of(hint: Hint, at: str) -> dict[str, Any]:
    """Return the line that keeps a hint."""
    return {"type": "hint"} | kept.write(hint) | {"at": at}


def hints_in(lines: Iterable[object]) -> tuple[Hint, ...]:
    """Return the newest hint of each artifact, in the order in which they came."""
    found: dict[str, Hint] = {}
    for line in lines:
        told: Mapping[str, object] = object_of(line)
        hint = kept.read_or_none(told, Hint) if told.get("type") == "hint" else None
        if hint is not None:
            found.pop(hint.uri, None)
            found[hint.uri] = hint
    return tuple(found.values())
