"""What a digest may cost, and how much of it each section may take.

The cost of a text is ceil(UTF-8 bytes / 4).  All rooms here are bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from attrs import define, frozen

from codex_checkpoints.core.checkpoint.records import IGNORED
from codex_checkpoints.core.digest.records import Where

SECTIONS: Final = (
    "STATUS",
    "REQUESTS",
    "OUTCOMES",
    "CHANGES",
    "CHECKS",
    "PINNED",
    "EARLIER_SUMMARY",
    "KEY_LINES",
)
LEAST_TOKENS: Final = 50
"""With a smaller budget there is no text."""

_PERCENT: Final = {
    "REQUESTS": 25,
    "OUTCOMES": 5,
    "CHANGES": 30,
    "CHECKS": 6,
    "EARLIER_SUMMARY": 15,
}
"""The most of the budget that a section takes, outcomes beside those that are told at length."""

LAST: Final = 10
CHANGED: Final = 3
PLAN: Final = 50
"""The percents of the budget that are sure for the last answer, for that of the newest turn that
changed files, and for the newest one that proposes a plan which is not worked through; each is cut
to the first length that fits."""


@frozen
class DigestTerms:
    """What a caller wants of a digest.

    `beside`: the user's messages that stand whole beside it.  `ignore`: patterns of file names that
    are never quoted.  `before`: only records below this `seq` are quoted, since the history holds
    the rest.  `status_room`: so many bytes at least are left to the section `[STATUS]`.
    """

    budget: int
    beside: Collection[str] = ()
    ignore: tuple[str, ...] = IGNORED
    before: int | None = None
    status_room: int = 0

    def quotes(self, where: Where) -> bool:
        """Return whether a record may be quoted."""
        return self.before is None or where.seq < self.before


@define(eq=False)
class Row:
    """A line that may stand: its text without the `- `, and shorter forms, the longest first."""

    where: Where | None
    text: str
    why: str
    shorter: tuple[str, ...] = ()

    @property
    def forms(self) -> list[str]:
        """The whole lines, the longest first."""
        return [f"- {form}" for form in (self.text, *self.shorter)]


def tokens_of(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode()) // 4)


def size_of(line: str) -> int:
    """Return the bytes of a line with its LF."""
    return len(line.encode(errors="replace")) + 1


def heading_size(section: str) -> int:
    """Return the bytes of a heading with the empty line before it."""
    return len(section) + 4


def share_of(section: str, budget: int, room: int) -> int:
    """Return how much of a budget a section may take where so much room is left."""
    return min(room, budget * _PERCENT[section] // 100)


def pinned_share(room: int) -> int:
    """Return how much of a room the pins may take."""
    return room // 2
