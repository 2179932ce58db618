"""Keeps the readable results of compactions, including when one is undone."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.digest.records import Carried, Utterance

_SUMMARIES: Final = 16
_CARRIED: Final = re.compile(r"- (?:t[0-9]+ )?#([0-9]{1,15}) (.+)")


@frozen
class Replaced:
    """The results of compactions: the `seq` of the newest, and the readable texts.

    `carried` are the digest lines of our newest one, `summaries` the summaries by Codex, the newest
    first.
    """

    below: int = 0
    carried: tuple[Carried, ...] = ()
    summaries: tuple[Utterance, ...] = ()


@define
class Replacements:
    """The results of each of the newest compactions; an undo goes back by one."""

    now: Replaced = Replaced()
    _before: deque[Replaced] = Factory(lambda: deque[Replaced](maxlen=_SUMMARIES))

    def undo(self) -> None:
        """Go back to the state before the newest compaction."""
        self.now = self._before.pop() if self._before else Replaced()

    def begin(self, seq: int) -> None:
        """Record a compaction without a readable text."""
        self._before.append(self.now)
        self.now = evolve(self.now, below=seq)

    def ours(self, handoff: str) -> None:
        """Record the digest in the handoff of the newest compaction."""
        self.now = evolve(self.now, carried=tuple(_carried_in(handoff)))

    def summary(self, said: Utterance) -> None:
        """Record the summary of the newest compaction."""
        summaries = (said, *self.now.summaries[: _SUMMARIES - 1])
        self.now = evolve(self.now, summaries=summaries)


def _carried_in(handoff: str) -> Iterator[Carried]:
    """Yield the anchored lines of the digest that a handoff holds."""
    section = ""
    for line in handoff.partition(DIGEST_LINE)[2].split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        elif found := _CARRIED.fullmatch(line):
            yield Carried(section, int(found[1]), found[2])
