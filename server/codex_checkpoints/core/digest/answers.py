"""Keeps the answers of a turn, whichever records contain them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core.digest.records import Answer, Utterance
from codex_checkpoints.core.digest.truncate import ends_of
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.turns import Ended, asks

_SUBAGENTS: Final = 64
"""The most answers of subagents that are kept per turn."""


@define
class TurnAnswers:
    """The answers of one turn; `before` is the answer before the last one.

    `item` is the last answer found only in an item, `subagents` has the subagents' answers by id.
    """

    answer: Utterance | None = None
    before: Utterance | None = None
    commentary: Utterance | None = None
    item: Utterance | None = None
    reported: Utterance | None = None
    subagents: dict[str, Utterance] = Factory(dict[str, Utterance])

    def said(self, where: RecordPlace, text: str) -> Utterance:
        """Return a text with its place; Codex records most answers three times, all share one."""
        cut = ends_of(text)
        known = (each.text for each in (self.answer, self.item) if each is not None)
        return Utterance(where, next((each for each in known if each == cut), cut))

    def by_subagent(self, name: str, said: Utterance) -> bool:
        """Keep the answer of a subagent; return whether it is a new one."""
        known = self.subagents.get(name)
        if known is not None and known.text == said.text:
            return False
        renew(self.subagents, name, said, _SUBAGENTS)
        return True

    def without(self, summary: str) -> Utterance | None:
        """Drop the newest answer if it is a summary, which Codex records as an answer too.

        Return the dropped answer.
        """
        if self.item is not None and self.item.text == summary:
            self.item = None
        if self.answer is None or self.answer.text != summary:
            return None
        found, self.answer, self.before = self.answer, self.before, None
        return found

    @property
    def last(self) -> Utterance | None:
        """Return the final answer of the turn."""
        item, commentary = self.item, self.commentary
        if item is not None and commentary is not None and item.text == commentary.text:
            item = None
        return self.answer or item or commentary or self.reported

    def answers(self, ended: Ended, placed: Callable[[RecordPlace], RecordPlace]) -> list[Answer]:
        """Return the subagents' answers, then the turn's."""
        given = (evolve(said, where=placed(said.where)) for said in self.subagents.values())
        found = [Answer(said, ended, asks=False, by_subagent=True) for said in given]
        if (last := self.last) is not None:
            said = evolve(last, where=placed(last.where))
            found.append(Answer(said, ended, asks(last.text)))
        return found
