"""Makes the rows of the sections `[STATUS]` to `[EARLIER_SUMMARY]`, except the requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from attrs import Factory, define, evolve

from codex_checkpoints.core.changes.file_history import FileHistory
from codex_checkpoints.core.checkpoint.policy import standing_policy
from codex_checkpoints.core.digest.allocation import (
    CHANGED,
    LAST,
    PLAN,
    DigestTerms,
    SectionRow,
    heading_size,
    size_of,
)
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.one_line import BREAK, anchor, cut, inline, quoted
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.records import Answer, Check, DigestSource
from codex_checkpoints.core.digest.status import ended_line, goal_line, plan_line
from codex_checkpoints.core.digest.truncate import PROPOSED, without_plan
from codex_checkpoints.core.record_place import RecordPlace

_PIN_LIMITS: Final = (1200, 600, 300, 150, 80)

_SUMMARY_LINE: Final = 400

_ANSWER_LIMITS: Final = (1 << 14, 4800, 2400, 1600, 1000, 600, 400, 250, 130)
"""The code points of an answer, the longest first."""

_LEAST_SECONDS: Final = 0.1
"""Shorter durations of a command are not shown."""
_WORKED_THROUGH: Final = 3
"""A plan is abbreviated after this many turns that changed files."""

_TURNS: Final = 6
"""The most turns that are named for a changed file: the newest."""

_PASSING: Final = re.compile(r"^(?:file://)?/(?:var/)?tmp/.*\.log$|(?:^|/)\.gitkeep$")
"""Temporary files of a session that are irrelevant to its work."""

_FILES: Final = 160
"""The code points of the folder in which a check ran."""


_WHY_CHECKED: Final = {
    True: "a failing command",
    False: "a command that passed",
    None: "a command of which nobody knows how it ended",
}


def is_policy(line: str) -> bool:
    """Return whether a line is a standing order to the agent."""
    return standing_policy(line) is not None


@define(eq=False)
class Sections:
    """The rows of one digest; `budget` is in bytes, `refused` counts the text not allowed."""

    _gathered: DigestSource
    _terms: DigestTerms
    _ignored: Ignoring
    _budget: int
    refused: Counter[str] = Factory(Counter[str])

    def status(self) -> Iterator[SectionRow]:
        """Yield the end of the last turn, the state of goal and plan, and the number of changes."""
        gathered = self._gathered
        if gathered.ended is not None:
            last = gathered.last_answer
            asks = last is not None and last.said.where.age == 0 and last.is_question
            ended = ended_line(gathered.ended, asks=asks, reason=gathered.reason)
            yield SectionRow(None, ended, "how the last turn ended")
        if gathered.goal is not None:
            yield SectionRow(None, goal_line(gathered.goal), "the state of the goal")
        if gathered.plan_age is not None:
            yield SectionRow(None, plan_line(gathered.plan_age), "the age of the plan")
        if gathered.changes:
            yield SectionRow(None, f"changed files: {len(gathered.changes)}", "counted")

    def pins(self, share: int) -> list[SectionRow]:
        """Return the pins in their order, short enough to fit all of them if possible."""
        texts = [text for text in self._gathered.pinned if text]
        self.refused["PINNED"] += len(self._gathered.pinned) - len(texts)
        room = share - heading_size("PINNED")
        rows = list[SectionRow]()
        for limit in _PIN_LIMITS:
            rows = [SectionRow(None, inline(text, limit), "pinned by the user") for text in texts]
            if sum(size_of(f"- {row.text}") for row in rows) <= room:
                break
        return rows

    def outcomes(self) -> Iterator[tuple[SectionRow, bool]]:
        """Yield the answers, the newest first, each with whether it is quoted at length."""
        answers = [each for each in self._gathered.answers if self._terms.quotes(each.said.where)]
        sure = dict(self._told_at_length(answers))
        for answer in reversed(answers):
            row = self._outcome(answer, sure.get(answer.said.where.seq, 0))
            if row is not None:
                yield row, answer.said.where.seq in sure
        yield from ((row, False) for row in self.carried("OUTCOMES"))

    def _told_at_length(self, answers: Iterable[Answer]) -> Iterator[tuple[int, int]]:
        """Yield the answers quoted at length by `seq`, each with its percents of the budget.

        These are the last one, the one of the newest turn that changed files, the newest plan.
        """
        own = [each for each in reversed(list(answers)) if not each.by_subagent]
        trails = self._gathered.changes.values()
        newest = max((each.where for each in trails), key=_seq, default=None)
        changed = (each for each in own if newest and each.said.where.turn_id == newest.turn_id)
        plans = (each for each in own if PROPOSED in each.said.text)
        plans = (each for each in plans if not self._is_worked_through(each.said.where))
        for found, part in ((changed, CHANGED), (iter(own), LAST), (plans, PLAN)):
            yield from ((each.said.where.seq, part) for each in islice(found, 1))

    def _is_worked_through(self, plan: RecordPlace) -> bool:
        """Return whether enough later turns changed files that newer answers matter more."""
        trails = self._gathered.changes.values()
        since = {turn for trail in trails for turn in trail.turns if turn > (plan.turn or 0)}
        return len(since) >= _WORKED_THROUGH

    def _outcome(self, answer: Answer, sure: int) -> SectionRow | None:
        mark = f"{answer.ended}{' asks' if answer.is_question else ''}: "
        text = answer.said.text
        if answer.by_subagent:
            mark, text = "subagent: ", self._allowed(text, "OUTCOMES")
            if not text:
                return None
        text = without_plan(text, self._terms.beside)
        head, clean = f"{anchor(answer.said.where)} {mark}", quoted(text)
        lengths = [limit for limit in _ANSWER_LIMITS[1:] if limit < len(clean)]
        forms = [head + cut(clean, limit) for limit in (_ANSWER_LIMITS[0], *lengths)]
        most = self._budget * sure // 100
        last = next((at for at, form in enumerate(forms) if size_of(form) <= most), len(forms) - 1)
        why = "the answer of a subagent" if answer.by_subagent else "the last answer of its turn"
        return SectionRow(answer.said.where, forms[0], why, tuple(forms[1 : last + 1]))

    def allowed_request(self, text: str) -> str:
        """Return the text of a request without the lines that give orders to the agent."""
        return self._allowed(text, "REQUESTS")

    def _allowed(self, text: str, section: str) -> str:
        """Return a text without the lines that give orders to the agent; count them."""
        lines = text.split("\n")
        allowed = [line for line in lines if not is_policy(line)]
        self.refused[section] += len(lines) - len(allowed)
        return "\n".join(allowed)

    def changes(self) -> Iterator[SectionRow]:
        """Yield the changed files, the newest first; a moved one is listed by its new name only."""
        trails = self._gathered.changes
        for uri in sorted(trails, key=lambda uri: (-trails[uri].where.seq, uri)):
            trail = trails[uri]
            target = trails.get(trail.moved_to or "")
            if self._ignored.path(uri) or (target is not None and target.moved_from == uri):
                continue
            if _PASSING.search(uri):
                self.refused["CHANGES"] += 1
            else:
                yield self._change(uri, trail)
        if unnamed := self._gathered.unnamed:
            where, script = unnamed[-1]
            commands = "1 command" if len(unnamed) == 1 else f"{len(unnamed)} commands"
            text = f"{anchor(where)} {commands} may have changed more"
            is_shown = script.strip() and not self._ignored.script(script)
            said = f", the last: {inline(script, 80)}" if is_shown else ""
            yield SectionRow(where, f"{text}{said}", "counted", (text,))

    def _change(self, uri: str, trail: FileHistory) -> SectionRow:
        words = [f"{anchor(trail.where)} {inline(uri, 1024)}"]
        if trail.added or trail.removed:
            words.append(f"+{trail.added} -{trail.removed}")
        if trail.turns:
            turns = ",".join(map(str, trail.turns[-_TURNS:]))
            turns += " and earlier" if len(trail.turns) > _TURNS else ""
            words.append(f"turn{'s' if len(trail.turns) > 1 else ''} {turns}")
        if trail.created:
            words.append("created")
        if trail.deleted:
            words.append("deleted")
        if trail.moved_from is not None:
            words.append(f"moved from {inline(trail.moved_from, 1024)}")
        if trail.moved_to is not None:
            words.append(f"moved to {inline(trail.moved_to, 1024)}")
        if trail.put_back is not None:
            again = ", then changed again" if trail.where.seq > trail.put_back else ""
            words.append(f"put back by git #{trail.put_back}{again}")
        if uri in self._gathered.drifted:
            words.append("changed since")
        names = f": {inline(', '.join(trail.names), 400)}" if trail.names else ""
        return SectionRow(trail.where, " ".join(words) + names, "a changed file", (words[0],))

    def checks(self) -> Iterator[SectionRow]:
        """Yield failing commands, passing ones, then failing ones from before later edits.

        A failure of a program that passed later is one line.
        """
        groups: tuple[list[SectionRow], list[SectionRow], list[SectionRow]] = [], [], []
        for check in reversed(self._gathered.checks):
            if not self._terms.quotes(check.where) or self._ignored.script(check.command):
                continue
            failed = bool(check.outcome.failed)
            stale = failed and self._gathered.is_stale(check)
            group = 0 if failed and not stale else 2 if stale else 1
            late = stale or self._gathered.is_late(check)
            row = self._check(check, late=late)
            is_past = failed and self._gathered.passed_since(check)
            groups[group].append(evolve(row, text=row.shorter[0]) if is_past else row)
        for group in groups:
            yield from group

    def _check(self, check: Check, *, late: bool) -> SectionRow:
        ended = check.outcome.ended
        if check.seconds is not None and check.seconds >= _LEAST_SECONDS:
            ended += f" ({check.seconds:.1f} s)"
        ended += f" in {inline(check.folder, _FILES)}" if check.folder else ""
        before = " before later edits" if late else ""
        head = f"{anchor(check.where)} {ended}{before}: {inline(check.command, 160)}"
        told = [line for line in (check.outcome.printed or "").split("\n") if line]
        lines = [line for line in told if not (is_policy(line) or self._ignored.line(line))]
        self.refused["CHECKS"] += len(told) - len(lines)
        full = BREAK.join([head, *(inline(line, 240) for line in lines)])
        why = _WHY_CHECKED[check.outcome.failed]
        return SectionRow(check.where, full, why, (head,))

    def summary(self) -> Iterator[SectionRow]:
        """Yield the lines of the newest readable summary of an earlier compaction by Codex."""
        summary = self._gathered.summary
        if summary is None or not self._terms.quotes(summary.where):
            return
        for line in plain(summary.text).split("\n"):
            if line.strip():
                if is_policy(line):
                    self.refused["EARLIER_SUMMARY"] += 1
                    continue
                text = f"{anchor(summary.where)} {inline(line, _SUMMARY_LINE)}"
                yield SectionRow(summary.where, text, "Codex's own summary")

    def carried(self, name: str) -> Iterator[SectionRow]:
        """Yield the carried lines of a section whose source is gone."""
        for each in self._gathered.carried:
            if each.section == name:
                text = inline(each.text, _ANSWER_LIMITS[0])
                if name != "REQUESTS" and is_policy(text):
                    self.refused[name] += 1
                else:
                    where = RecordPlace(None, each.seq)
                    at, why = anchor(where), "of a session that is gone"
                    shorter = (f"{at} {cut(text, n)}" for n in _ANSWER_LIMITS[1:] if n < len(text))
                    yield SectionRow(where, f"{at} {text}", why, tuple(shorter))


def _seq(where: RecordPlace) -> int:
    return where.seq
