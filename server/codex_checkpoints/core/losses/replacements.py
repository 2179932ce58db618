"""The replacements of a session, each as it was installed, whatever version of Codex wrote it.

A record of an older version has a message alone, beside which Codex keeps what people said; so that
is kept here, too, as far back as it can matter (CKP-26).
"""

from __future__ import annotations

from codex_checkpoints.core.history.compacted import Compaction
from codex_checkpoints.core.history.forms import Item
from codex_checkpoints.core.history.items import counts, read_item, texts, user_message
from codex_checkpoints.core.history.rebuild import (
    KEPT_TOKENS,
    kept_prompts,
    without_last_turns,
)
from codex_checkpoints.core.history.replacement import replacement_of
from codex_checkpoints.core.history.speakers import is_prompt
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.history.truncation import approximate_tokens
from codex_checkpoints.core.losses.held import Held, held_by
from codex_checkpoints.core.rollout.fields import text_of, whole_of
from codex_checkpoints.core.rollout.reader import NOTED, Line
from codex_checkpoints.values import frozen

_REMEMBERED = 4 * KEPT_TOKENS
"""Tokens of prompts that are remembered: more than outlive a compaction, for rollbacks."""


@frozen
class Replacement:
    """What stands in the place of the history from the record `at.seq` on."""

    at: Compaction
    held: Held


class Replacements:
    """The fold that hands out the replacements of a session as they come; it follows a survey."""

    def __init__(self, survey: Survey) -> None:
        """Begin before the first byte, beside the survey."""
        self.new: list[Replacement] = []
        """Those that nobody has taken yet, the oldest first."""
        self._survey = survey
        self._prompts: list[Item] = []
        self._prompt_tokens = 0
        survey.reader.folds.append(self)

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the survey does."""
        return NOTED

    def take(self, line: Line) -> None:
        """Take the next line."""
        if line.passed_over or not counts(line):
            return
        match line.kind:
            case "compacted":
                self._replaced(line)
            case "response_item" if line.tag == "message" and line.inner == "user":
                self._prompted(line)
            case "event_msg" if line.tag == "thread_rolled_back":
                turns = whole_of(line.payload.get("num_turns")) or 0
                self._prompts = without_last_turns(self._prompts, turns)
            case _:
                pass

    def _prompted(self, line: Line) -> None:
        item = read_item(line.payload)
        if item is None or not is_prompt(item):
            return
        self._prompts.append(item)
        self._prompt_tokens += _tokens(item)
        if self._prompt_tokens > 2 * _REMEMBERED:
            self._prompts = kept_prompts(self._prompts, _REMEMBERED)
            self._prompt_tokens = sum(map(_tokens, self._prompts))

    def _replaced(self, line: Line) -> None:
        mark = self._survey.newest
        if not isinstance(mark, Compaction) or mark.place != line.place:
            return  # Codex passes over it
        items = replacement_of(line.payload)
        if items is None:
            message = text_of(line.payload.get("message")) or ""
            items = (*kept_prompts(self._prompts), user_message([message]))
        self.new.append(Replacement(mark, held_by(items)))
        self._prompts = [item for item in items if is_prompt(item)]
        self._prompt_tokens = sum(map(_tokens, self._prompts))


def _tokens(item: Item) -> int:
    return approximate_tokens("".join(texts(item)))
