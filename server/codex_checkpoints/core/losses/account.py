"""A session read once for its losses: at each compaction what was there, and what is gone.

One reading serves the replay, the survey of the history, `replacements` and `Account`.  What a
replacement no longer holds is decided by `held`, what is read again by `files`.

Windows follow each other as they stand in the file; those that a rollback took away are listed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.history.choice import choose
from codex_checkpoints.core.history.compacted import Compaction
from codex_checkpoints.core.history.marks import Outline
from codex_checkpoints.core.history.openings import Opening
from codex_checkpoints.core.history.reconstruct import Window, windows_of
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.losses.held import Held
from codex_checkpoints.core.losses.records import (
    MAX_LISTED,
    Loss,
    LostCommand,
    LostFile,
    LostText,
    Missed,
    Readings,
)
from codex_checkpoints.core.losses.replacements import Replacement, Replacements
from codex_checkpoints.core.losses.watched import Watched
from codex_checkpoints.core.rollout.reader import NOTED, Line, Reader


class Account:
    """The fold that stops at each compaction and compares, beside a replay of the session."""

    def __init__(
        self,
        updates: Iterable[Update] = (),
        known: Replay | None = None,
        *,
        source: Account | None = None,
    ) -> None:
        """Begin before the first byte of a session; `updates` are all that it remembers.

        Whoever feeds the end of a session alone gives what is `known` of the whole: what was asked
        and planned is asked of that, and windows have the numbers that their records tell.  Where a
        compaction made the session, `source` is the account of what it replaced, to be let go of:
        the first window of the session is the one in which that ended (DSC-73).
        """
        reader = Reader()
        self._survey = Survey(reader)
        self._replacements = Replacements(self._survey)
        reader.folds.append(self)
        # The replay comes last: what is compared is what was known before the line.
        self.replay = Replay(reader=reader)
        self._updates = tuple(updates)
        self._known = known
        self._watched = Watched(self.replay.state, None if source is None else source._watched)  # noqa: SLF001 - one of its kind
        self._missed: list[tuple[Replacement, Missed]] = []
        self._readings: list[Readings] = []

    def wants(self, kind: str | None, tag: str | None, inner: str | None) -> int:  # noqa: ARG002
        """Want no more than the folds beside this one do."""
        return NOTED

    def take(self, line: Line) -> None:
        """Compare where the line replaced a history."""
        del line
        new, self._replacements.new = self._replacements.new, []
        for replacement in new:
            self._missed.append((replacement, self._missing(replacement.held, replacement.at.seq)))
            self._readings.append(self._watched.readings())
            self._watched.open_window()

    def losses(self) -> tuple[Loss, ...]:
        """Return a loss for each compaction up to here, the oldest first."""
        outline = self._survey.outline()
        windows = _windows(outline)
        since = (*self._readings[1:], self._watched.readings())
        losses: list[Loss] = []
        for (each, missed), read in zip(self._missed, since, strict=False):
            window = windows.get(each.at.index)
            number = None if window is None else window.number
            if self._known is not None:
                number = each.at.number
            told = each.at, number, outline.openings[each.at.index]
            losses.append(_loss(*told, missed, read, counts=window is not None))
        return tuple(losses)

    # --- at a compaction -------------------------------------------------------------------------

    @property
    def _whole(self) -> Replay:
        return self.replay if self._known is None else self._known

    def _missing(self, held: Held, seq: int) -> Missed:
        """Compare what is known before the line `seq`; an update follows the line it is of."""
        known = self._whole
        checkpoint = known.checkpoint((each for each in self._updates if each.seq < seq), {})
        task, plan = checkpoint.task, checkpoint.plan
        files, hidden_files = self._changed(held)
        commands, hidden_commands = self._failing(held)
        ref = None if plan.evidence is None else plan.evidence.ref
        steps = (step.text for step in plan.steps if not plan.done.get(step.id, False))
        return Missed(
            held.sealed,
            None if task is None else self._text(held, task.text, task.evidence.ref),
            tuple(self._text(held, text, ref) for text in steps),
            files,
            commands,
            hidden_files + hidden_commands,
        )

    def _text(self, held: Held, text: str, ref: str | None) -> LostText:
        return LostText(text, ref, self._told_at(ref), held.lost_text(text))

    def _changed(self, held: Held) -> tuple[tuple[LostFile, ...], int]:
        files, base = self._watched.files, self.replay.state.base
        newest = reversed(files.changed.items())
        found = [
            LostFile(uri, each.change, each.ref, each.seq, held.lost_file(uri, base))
            for uri, each in newest
        ]
        found.sort(key=_by_loss)
        return tuple(found[:MAX_LISTED]), len(found[MAX_LISTED:]) + files.forgotten

    def _failing(self, held: Held) -> tuple[tuple[LostCommand, ...], int]:
        found: list[LostCommand] = []
        for each in self._watched.commands.failing():
            lost, run = held.lost_text(each.text), each.last
            found.append(LostCommand(each.text, run.outcome.exit_code, run.ref, run.seq, lost))
            if lost is False:
                each.window += 1  # it is in the next window, which may lose it
        found.sort(key=_by_loss)
        return tuple(found[:MAX_LISTED]), len(found[MAX_LISTED:])

    def _told_at(self, ref: str | None) -> int | None:
        """Return the `seq` of the message or the plan with this reference, if it was told here."""
        return None if ref is None else next(self._places_of(ref), None)

    def _places_of(self, ref: str) -> Iterator[int]:
        state = self._whole.state
        for turn in reversed(state.turns.turns):
            if turn.said is not None and turn.said.ref == ref:
                yield turn.said.seq
            if turn.planned is not None and turn.planned.call_id == ref:
                yield turn.planned.seq
        if state.planned is not None and state.planned.call_id == ref:
            yield state.planned.seq


def _windows(outline: Outline) -> dict[int, Window]:
    """Return the windows that count, by the number of their compaction in the file."""
    choice = choose(outline)
    windows = windows_of(outline, choice)[1:]
    return {each.index: window for each, window in zip(choice.windows, windows, strict=True)}


def _by_loss(entry: LostFile | LostCommand) -> int:
    """Put what is lost first, then what nobody can tell; the newest stay in front."""
    return {True: 0, None: 1, False: 2}[entry.lost]


def _loss(  # noqa: PLR0913 - what a loss is made of
    at: Compaction,
    number: int | None,
    opening: Opening,
    missed: Missed,
    since: Readings,
    *,
    counts: bool,
) -> Loss:
    return Loss(
        number=number,
        window_id=at.window_id,
        opened_seq=at.seq,
        opened_at=at.stamp,
        trigger=opening.trigger,
        strategy=at.strategy,
        counts=counts,
        missed=missed,
        since=since,
    )
