"""The lines of the audit: each has a digest of its own, and that of the line before it.

A line that was changed no longer has its digest.  Where one was removed, or replaced by another
that is whole, the next line holds another digest than that of the line before it (rules, "Audit").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from codex_checkpoints.hashes import sha256

DIGEST = "digest"
PREVIOUS = "previous"


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes, with its name in front."""
    return "sha256:" + sha256(data)


def sealed(record: Mapping[str, object]) -> dict[str, Any]:
    """Return a JSON object with the digest of its other keys as the last key."""
    content = {key: value for key, value in record.items() if key != DIGEST}
    # The order of keys has no meaning in JSON.
    data = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return content | {DIGEST: digest_of(data)}


def is_intact(record: Mapping[str, object]) -> bool:
    """Return whether a JSON object still has the content of its digest."""
    return record.get(DIGEST) == sealed(record)[DIGEST]


class Head(NamedTuple):
    """How many lines an audit has, the digest of the last one's bytes, and the size in bytes."""

    lines: int
    last: str
    size: int


NOTHING = Head(0, digest_of(b""), 0)
"""The head of an audit without a line."""


def breaks(lines: Iterable[tuple[Mapping[str, object], str]], head: Head | None) -> Iterator[int]:
    """Yield the numbers, from 1, of lines behind which the chain breaks, 0 where it is the first.

    Each line is an event, empty for what is none, and the digest of its bytes.  Lines that lack
    `previous` are legal in front of the first that has it.  A head may be older than the lines.
    """
    number, before, is_chained = 0, NOTHING.last, False
    for event, digest in lines:
        previous = event.get(PREVIOUS)
        if previous != before and (PREVIOUS in event or (is_chained and event)):
            yield number
        is_chained = is_chained or PREVIOUS in event
        number, before = number + 1, digest
        if head is not None and number == head.lines and digest != head.last:
            yield number
    if head is not None and number < head.lines:
        yield number
