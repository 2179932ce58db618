"""Sets the budget of a digest and the share of each section.

The cost of a text is ceil(UTF-8 bytes / 4).  All sizes here are in bytes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from attrs import define, frozen

from codex_checkpoints.core.checkpoint.records import IGNORED
from codex_checkpoints.core.record_place import RecordPlace

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
"""Below this budget the digest is empty."""

_PERCENT: Final = {
    "REQUESTS": 25,
    "OUTCOMES": 5,
    "CHANGES": 30,
    "CHECKS": 6,
    "EARLIER_SUMMARY": 15,
}
"""The largest share of the budget for a section; `OUTCOMES` excludes answers quoted at length."""

LAST: Final = 10
CHANGED: Final = 3
PLAN: Final = 50
"""The percents of the budget reserved for the last answer, for the answer of the newest turn that
changed files, and for the newest proposed plan that is not done; each is cut to the first length
that fits."""


@frozen
class DigestTerms:
    """Options of a digest.

    `beside`: user messages kept whole next to the digest.  `ignore`: patterns of names of files
    that are never quoted.  `before`: only records below this `seq` are quoted, since the history
    holds the rest.  `status_room`: the least bytes reserved for the section `[STATUS]`.
    """

    budget: int
    beside: Collection[str] = ()
    ignore: tuple[str, ...] = IGNORED
    before: int | None = None
    status_room: int = 0

    def quotes(self, where: RecordPlace) -> bool:
        """Return whether a record may be quoted."""
        return self.before is None or where.seq < self.before


@define(eq=False)
class SectionRow:
    """A candidate line: its text without the `- `, and its shorter forms, the longest first."""

    where: RecordPlace | None
    text: str
    why: str
    shorter: tuple[str, ...] = ()

    @property
    def forms(self) -> list[str]:
        """Return the complete lines, the longest first."""
        return [f"- {form}" for form in (self.text, *self.shorter)]


def tokens_of(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode()) // 4)


def size_of(line: str) -> int:
    """Return the bytes of a line with its LF."""
    return len(line.encode(errors="replace")) + 1


def heading_size(section: str) -> int:
    """Return the bytes of a heading with the empty line above it."""
    return len(section) + 4


def share_of(section: str, budget: int, room: int) -> int:
    """Return the bytes of a budget that a section may use when `room` bytes are left."""
    return min(room, budget * _PERCENT[section] // 100)


def pinned_share(room: int) -> int:
    """Return the bytes of a room that the pins may use."""
    return room // 2
