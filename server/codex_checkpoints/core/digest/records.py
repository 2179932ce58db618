"""Defines the records that a digest is built from, for a session and its predecessors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from attrs import Factory, evolve, frozen

from codex_checkpoints.core.changes.file_history import FileHistory
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.events import Outcome
from codex_checkpoints.core.record_place import RecordPlace
from codex_checkpoints.core.turns import Ended


@frozen
class Utterance:
    """A text of the user, an answer of the agent, or the summary of a compaction.

    `chosen`: the agent's questions in a dialog of Codex, each with the user's choice.
    """

    where: RecordPlace
    text: str
    chosen: bool = False


@frozen
class Quote:
    """A text that may be quoted line by line, with its file or call.

    `written` is an argument of a tool other than a shell: mostly the new text of a file.  `label`
    is the script or the tool of a call, or the files of a patch.  `about` is the script or the
    arguments of the call: they show whose content a text is.  `ran` is equal for the outputs of all
    calls that do the same.  `failed` is the result of a failed call: `exit 2`.
    """

    where: RecordPlace
    kind: Literal["call", "patch", "written", "output", "answer"]
    label: str
    text: str
    about: str = ""
    ran: str = ""
    failed: str = ""


CommandKey = tuple[str, str]
"""A folder, and the command or program that ran there."""


@frozen
class Check:
    """The last outcome of a check; `changes` counts the edits before it.

    A later success of one of `programs` covers this check too: `pytest` and `pytest
    tests/test_one.py`.  `seconds` is its duration, None if the file does not record it.  `folder`
    is the uri of the folder in which it ran, with a final `/`; the base is empty.
    """

    where: RecordPlace
    command: str
    programs: tuple[str, ...]
    outcome: Outcome
    changes: int
    seconds: float | None = None
    folder: str = ""

    @property
    def key(self) -> CommandKey:
        """Return the key that equal runs of the command share."""
        return self.folder, self.command


@frozen
class Answer:
    """The last answer of a turn, and how the turn ended; `asks`: it ends with a question.

    With `by_subagent` it is the answer of a subagent that the turn called.
    """

    said: Utterance
    ended: Ended
    asks: bool
    by_subagent: bool = False

    @property
    def is_question(self) -> bool:
        """Return whether it answers its turn with a question."""
        return self.ended == "answered" and self.asks


@frozen
class Carried:
    """A line of the digest in a replacement: its section, the `seq` of its anchor, its text."""

    section: str
    seq: int
    text: str


@frozen
class DigestSource:
    """The records kept of a session and of its predecessors, each in order.

    `unnamed` are the commands that may have changed files without naming them, each with its place.
    `turns` counts the turns, `edits` all changes of files, `passed` has the `seq` of the last pass
    of a program.  `plan_age` is the number of requests since the last change of the plan, None
    without a plan.
    """

    turns: int = 0
    requests: tuple[Utterance, ...] = ()
    answers: tuple[Answer, ...] = ()
    ended: Ended | None = None
    plan_age: int | None = None
    changes: Mapping[str, FileHistory] = Factory(dict[str, FileHistory])
    checks: tuple[Check, ...] = ()
    edits: int = 0
    passed: Mapping[CommandKey, int] = Factory(dict[CommandKey, int])
    summary: Utterance | None = None
    quotes: tuple[Quote, ...] = ()
    replaced_below: int = 0
    """The `seq` of the newest compaction: the history holds records from this one on."""
    carried: tuple[Carried, ...] = ()
    """The digest in the newest replacement; it is used if its source is gone."""
    reason: str | None = None
    """The reason why the last turn failed."""
    goal: str | None = None
    """The state of the session's goal, as Codex names it."""
    pinned: tuple[str, ...] = ()
    """The texts of the user's pins in their order, empty if there is no such record."""
    unnamed: tuple[tuple[RecordPlace, str], ...] = ()
    drifted: frozenset[str] = frozenset()
    """The uris of files that changed since the session saw them."""

    def is_late(self, check: Check) -> bool:
        """Return whether a file was changed after a check."""
        return check.changes < self.edits

    def passed_since(self, check: Check) -> bool:
        """Return whether a program of a check passed after it."""
        ran = ((check.folder, each) for each in check.programs if each)
        return any(self.passed.get(each, -1) > check.where.seq for each in ran)

    def is_stale(self, check: Check) -> bool:
        """Return whether a file was changed after a check, or its program passed."""
        return self.is_late(check) or self.passed_since(check)

    @property
    def last_answer(self) -> Answer | None:
        """Return the newest answer of the agent itself."""
        own = (each for each in reversed(self.answers) if not each.by_subagent)
        return next(own, None)

    @property
    def targets(self) -> frozenset[str]:
        """Return the uris that must be checked for an existing folder."""
        return frozenset(each.onto for each in self.changes.values() if each.onto is not None)

    def without(self, folders: Collection[str]) -> DigestSource:
        """Return a copy without the files copied or moved into one of these folders."""
        changes = {uri: each for uri, each in self.changes.items() if each.onto not in folders}
        return evolve(self, changes=changes)

    def since(self, commands: Collection[str], *, edited: bool) -> DigestSource:
        """Return a copy updated to now: these commands ran again; `edited`: a file changed."""
        again = (value(each.command, MAX_VALUE_CHARS) in commands for each in self.checks)
        checks = tuple(each for each, ran in zip(self.checks, again, strict=True) if not ran)
        return evolve(self, checks=checks, edits=self.edits + edited)

    def after(self, before: DigestSource) -> DigestSource:
        """Return both merged: `before` is from the sessions that this one continues."""
        old = before.below(self.turns)
        later = (evolve(each, changes=each.changes + old.edits) for each in self.checks)
        checks = {each.key: each for each in (*old.checks, *later)}
        return DigestSource(
            old.turns + self.turns,
            (*old.requests, *self.requests),
            (*old.answers, *self.answers),
            self.ended or old.ended,
            old.plan_age if self.plan_age is None else self.plan_age,
            {**old.changes, **_continued(old.changes, self.changes)},
            tuple(sorted(checks.values(), key=lambda each: each.where.seq)),
            old.edits + self.edits,
            {**old.passed, **self.passed},
            self.summary or old.summary,
            (*old.quotes, *self.quotes),
            self.replaced_below or old.replaced_below,
            old.carried,
            self.reason if self.ended else old.reason,
            self.goal or old.goal,
            unnamed=(*old.unnamed, *self.unnamed),
        )

    def below(self, turns: int) -> DigestSource:
        """Return a copy as seen from a session of `turns` turns that continues this one."""
        return evolve(
            self,
            requests=tuple(evolve(each, where=each.where.below(turns)) for each in self.requests),
            answers=tuple(
                evolve(each, said=evolve(each.said, where=each.said.where.below(turns)))
                for each in self.answers
            ),
            plan_age=None if self.plan_age is None else self.plan_age + turns,
            changes={
                uri: evolve(trail, where=trail.where.below(turns), turns=())
                for uri, trail in self.changes.items()
            },
            checks=tuple(evolve(each, where=each.where.below(turns)) for each in self.checks),
            summary=self.summary and evolve(self.summary, where=self.summary.where.below(turns)),
            quotes=tuple(evolve(each, where=each.where.below(turns)) for each in self.quotes),
            unnamed=tuple((where.below(turns), script) for where, script in self.unnamed),
        )


def _continued(
    before: Mapping[str, FileHistory], now: Mapping[str, FileHistory]
) -> dict[str, FileHistory]:
    """Return the current trails, with the earlier counts added."""
    return {
        uri: trail
        if (old := before.get(uri)) is None or trail.put_back is not None
        else evolve(
            trail,
            added=old.added + trail.added,
            removed=old.removed + trail.removed,
            names=old.names | trail.names,
            created=old.created and not trail.deleted
            if old.was_there or old.created
            else trail.created,
            moved_from=trail.moved_from or old.moved_from,
            whole=max(old.whole, trail.whole),
        )
        for uri, trail in now.items()
    }
