"""How each window was opened: what set it off, and how much was in use before and after (WIN-12).

A file does not say it in one place.  Codex compacts in a task of its own when it was asked to
(`manual`), before it sends a prompt (`pre_turn`), or while the model works on one (`mid_turn`);
which it was shows by what else there is in the task, often only behind the record.
"""

from __future__ import annotations

from typing import Literal

from codex_checkpoints.core.history.compacted import Compaction
from codex_checkpoints.core.history.tokens import Usage
from codex_checkpoints.values import define

Trigger = Literal["manual", "pre_turn", "mid_turn"]


@define
class Opening:
    """What is known of one window's opening; what no record tells stays None."""

    trigger: Trigger | None = None
    before: int | None = None
    after: int | None = None


class Openings:
    """Follow a session from task to task, and remember how its windows were opened."""

    def __init__(self) -> None:
        """Begin before the first task."""
        self.all: list[Opening] = []
        self._in_task = False
        self._prompted = False
        self._items = 0
        self._answer = ""
        self._waits = False  # what set off the newest one is not known yet
        self._fresh = False  # nothing but bookkeeping stands behind the newest one
        self._used: int | None = None
        self._used_before_item: int | None = None
        self._reported = False

    def began(self) -> None:
        """Take the beginning of a task."""
        self.ended()
        self._in_task, self._prompted, self._items, self._answer = True, False, 0, ""

    def ended(self) -> None:
        """Take the end of a task: one in which nobody said anything was asked for."""
        self._settle("manual")
        self._in_task = False

    def prompted(self) -> None:
        """Take what a person typed."""
        self._settle("pre_turn")
        self._prompted = True

    def item(self, answer: str | None, *, by_model: bool) -> None:
        """Take an item of the history; `answer` is the end of what the model said, if it did."""
        self._items += by_model
        self._answer = answer or ""
        self._fresh = self._reported = False
        self._used_before_item = self._used

    def reported(self, usage: Usage) -> None:
        """Take a report; the later ones behind an item are those of a compaction itself.

        More than the window holds is no report, though it may be an estimate (ROL-9, DSC-55).
        """
        if not self._reported:
            believed = usage.is_estimate or not usage.is_impossible
            self._used, self._reported = usage.total if believed else None, True
        if self._fresh and usage.is_estimate and self.all[-1].after is None:
            self.all[-1].after = usage.total

    def compacted(self, compaction: Compaction) -> None:
        """Take a record that opens a window."""
        # A summary that the model wrote for this is no work on the task, and no use of the window.
        summed_up = bool(self._answer) and compaction.message_end.endswith(self._answer)
        used = self._used_before_item if summed_up else self._used
        opening = Opening(before=used)
        if compaction.strategy == "checkpoint":
            opening.trigger = "manual"
        elif self._in_task and self._items > summed_up:
            opening.trigger = "mid_turn"
        elif self._in_task and self._prompted:
            opening.trigger = "pre_turn"
        self.all.append(opening)
        # What was in use is so no more (CKP-28); the next report counts, be it an estimate.
        self._used = self._used_before_item = None
        self._reported, self._answer = False, ""
        self._fresh, self._waits = True, self._in_task and opening.trigger is None

    def _settle(self, trigger: Trigger) -> None:
        if self._waits:
            self.all[-1].trigger, self._waits = trigger, False
