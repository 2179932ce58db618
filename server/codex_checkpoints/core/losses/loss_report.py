"""Reads a session once and compares, at each compaction, the known facts with the replacement.

Windows follow each other as in the file; those that a rollback removed are listed too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Task
from codex_checkpoints.core.checkpoint.redaction import one_line, redact
from codex_checkpoints.core.checkpoint.windowed_replay import WindowedReplay
from codex_checkpoints.core.losses.file_activity import (
    MAX_LISTED,
    CompactionLoss,
    FileActivity,
    Loss,
    LostCommand,
    LostFile,
    LostText,
    Readings,
    Totals,
)
from codex_checkpoints.core.windows import Replacement

SEARCHED = 1 << 22
"""Number of code points of a replacement that are searched."""

_BACKSLASHES = re.compile(r"\\+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_PATH_BEFORE = re.compile(r"[A-Za-z0-9_./~-]")
_PATH_BEHIND = re.compile(r"[A-Za-z0-9_/-]|\.[A-Za-z0-9_]")
_DRIVE = re.compile(r"[A-Za-z]:")


@frozen
class ReplacementText:
    """The text of a replacement in the two forms that are searched.

    `sealed`: part of it is encrypted.  `whole`: none of it was too long to search.
    """

    _words: str
    _names: str
    sealed: bool
    whole: bool = True

    def lost_text(self, text: str) -> bool | None:
        """Return whether a value is gone (rules 1 and 2); an empty one never is."""
        cut = text.endswith("…")
        needle = _folded(text.removesuffix("…"))
        return self._lost(not needle or _has_words(self._words, needle, cut=cut))

    def lost_file(self, uri: str, base: str | None) -> bool | None:
        """Return whether the file with this uri is not named any more (rule 3)."""
        home = "" if base is None else _slashed(base).rstrip("/") + "/"
        names, name = self._names, uri
        if _DRIVE.match(home) or _DRIVE.match(uri):  # case does not matter on Windows
            names, name, home = names.casefold(), uri.casefold(), home.casefold()
        return self._lost(_has_path(names, name, home))

    def _lost(self, found: bool) -> bool | None:  # noqa: FBT001 - the result of a search
        if found:
            return False
        return None if self.sealed or not self.whole else True


def held_by(texts: Iterable[str], *, sealed: bool) -> ReplacementText:
    """Prepare the texts of a replacement for searches."""
    parts: list[str] = []
    room = SEARCHED
    for text in texts:
        parts.append(text[: max(0, room)])
        room -= len(text)
    words = " ".join(_folded(redact(part)) for part in parts)
    return ReplacementText(words, "\n".join(map(_slashed, parts)), sealed, room >= 0)


def _folded(text: str) -> str:
    return " ".join(one_line(text).split()).casefold()


def _slashed(text: str) -> str:
    return _BACKSLASHES.sub("/", text)


def _has_words(text: str, needle: str, *, cut: bool) -> bool:
    """Return whether a text contains whole words; a value that was `cut` may end within one."""
    opens, closes = _WORD.match(needle[0]), None if cut else _WORD.match(needle[-1])
    for start, end in _places(text, needle):
        before, behind = text[start - 1 : start], text[end : end + 1]
        inside = (opens and _WORD.match(before)) or (closes and _WORD.match(behind))
        if not inside:
            return True
    return False


def _has_path(text: str, name: str, home: str) -> bool:
    for start, end in _places(text, name):
        if _PATH_BEHIND.match(text, end, end + 2):
            continue
        for front in ("", "./", home):
            at = start - len(front)
            if at >= 0 and text.startswith(front, at) and not _PATH_BEFORE.match(text[at - 1 : at]):
                return True
    return False


def _places(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + 1)


class LossReport:
    """Compares at each compaction, during a replay of the session."""

    def __init__(
        self,
        updates: Iterable[Update] = (),
        *,
        source: LossReport | None = None,
    ) -> None:
        """Start before the first byte of a session; `updates` are all that it remembers.

        For a session that a compaction made, `source` is the report of the session it replaced,
        which must not be used again: the first window continues its last one (DSC-73).
        """
        self.replay = WindowedReplay()
        # The state before the record is compared.
        self.replay.give_replacements(self._replaced)
        self._updates = tuple(updates)
        self._watched = FileActivity() if source is None else source._watched  # noqa: SLF001 - of the same class
        self._watched.follow(self.replay.state)
        self.replay.follow(self._watched)
        self._missed: list[tuple[Replacement, CompactionLoss]] = []
        self._readings: list[Readings] = []

    def _replaced(self, by: Replacement) -> None:
        held = held_by(by.texts, sealed=by.sealed)
        self._missed.append((evolve(by, texts=()), self._missing(held, by.seq)))
        self._readings.append(self._watched.readings())
        self._watched.open_window()

    def losses(self) -> tuple[Loss, ...]:
        """Return a loss for each compaction so far, the oldest first."""
        openings = self.replay.openings()
        since = (*self._readings[1:], self._watched.readings())
        losses: list[Loss] = []
        for (at, missed), readings in zip(self._missed, since, strict=False):
            if at.opener != "compaction":
                continue
            opening = openings[at.index]
            lost = None if missed.task is None else missed.task.lost
            losses.append(
                Loss(
                    sealed=missed.sealed,
                    totals=missed.totals,
                    task=missed.task,
                    open_plan_steps=missed.open_plan_steps,
                    edited_files=missed.edited_files,
                    failing_commands=missed.failing_commands,
                    not_listed=missed.not_listed,
                    reads=readings.reads,
                    rereads_unchanged=readings.rereads_unchanged,
                    bytes=readings.bytes,
                    rereads=readings.rereads,
                    window_id=at.window_id,
                    strategy=at.strategy,
                    number=opening.number,
                    opened_at_seq=at.seq,
                    opened_at=at.at,
                    trigger=opening.trigger,
                    counts=opening.number is not None,
                    task_present=None if lost is None else not lost,
                )
            )
        return tuple(losses)

    def _missing(self, held: ReplacementText, seq: int) -> CompactionLoss:
        """Compare everything known before the line `seq`; updates at or after it do not count."""
        checkpoint = self.replay.checkpoint((each for each in self._updates if each.seq < seq), {})
        task, plan = checkpoint.task, checkpoint.plan
        files, commands = self._changed(held), self._failing(held)
        hidden = len(files[MAX_LISTED:]) + len(commands[MAX_LISTED:])
        ref = None if plan.evidence is None else plan.evidence.ref
        open_steps = (step.text for step in plan.steps if not plan.done.get(step.id, False))
        steps = [self._text(held, text, ref) for text in open_steps]
        asked = None if task is None else self._task(held, task)
        everything = [*(() if asked is None else (asked,)), *steps, *files, *commands]
        fates = Counter(each.lost for each in everything)
        return CompactionLoss(
            held.sealed,
            Totals(fates[True], fates[False], fates[None] + self._watched.forgotten),
            asked,
            tuple(steps),
            tuple(files[:MAX_LISTED]),
            tuple(commands[:MAX_LISTED]),
            hidden + self._watched.forgotten,
        )

    def _task(self, held: ReplacementText, task: Task) -> LostText:
        """Return the task; it is lost if one of its messages is."""
        asked = self.replay.state.turns.task_of()
        parts = [task.text] if asked is None else asked.request.texts
        lost = [held.lost_text(part) for part in parts]
        is_lost = True if True in lost else None if None in lost else False
        return evolve(self._text(held, task.text, task.evidence.ref), lost=is_lost)

    def _text(self, held: ReplacementText, text: str, ref: str | None) -> LostText:
        seq = None if ref is None else next(self._places_of(ref), None)
        return LostText(text, ref, seq, held.lost_text(text))

    def _changed(self, held: ReplacementText) -> list[LostFile]:
        base = self.replay.state.base
        found = [
            LostFile(uri, each.change, each.ref, each.seq, held.lost_file(uri, base))
            for uri, each in reversed(self._watched.changed.items())
        ]
        found.sort(key=_by_loss)
        return found

    def _failing(self, held: ReplacementText) -> list[LostCommand]:
        found: list[LostCommand] = []
        for each in self._watched.failing():
            lost, run = held.lost_text(each.text), each.last
            found.append(LostCommand(each.text, run.outcome.exit_code, run.ref, run.seq, lost))
            if lost is False:
                each.window += 1  # the next window has it, and may lose it
        found.sort(key=_by_loss)
        return found

    def _places_of(self, ref: str) -> Iterator[int]:
        """Yield the `seq` of each message or plan of this session with a reference."""
        state = self.replay.state
        for turn in reversed(state.turns.turns):
            if turn.request is not None and turn.request.ref == ref:
                yield turn.request.seq
            if turn.planned is not None and turn.planned.call_id == ref:
                yield turn.planned.seq
        if state.planned is not None and state.planned.call_id == ref:
            yield state.planned.seq


def _by_loss(entry: LostFile | LostCommand) -> int:
    """Sort the lost first, then the unknown; within each the newest stay in front."""
    return {True: 0, None: 1, False: 2}[entry.lost]
