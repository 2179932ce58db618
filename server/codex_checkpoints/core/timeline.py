"""The timeline of a session: a row for each turn, for a picture and for a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import NAMED, Observation, name_of
from codex_checkpoints.core.history.choice import choose
from codex_checkpoints.core.history.rebuild import Window, windows_of
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.items import EDITS, CommandRun, Tokens, ToolCall
from codex_checkpoints.core.rollout.looking import only_looks
from codex_checkpoints.core.rollout.outcome import outcome_in, outcome_of
from codex_checkpoints.core.rollout.parsing import turn_id_of
from codex_checkpoints.core.rollout.reader import Fold, Line
from codex_checkpoints.core.rollout.turns import TASK_ENDS, Ended, Turn
from codex_checkpoints.values import Factory, define, evolve, frozen

MOST_ROWS = 400
"""With more turns a row stands for several."""

_CALLS: Final = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "image_generation_call",
        "tool_search_call",
    }
)


@frozen
class TimelineTurn:
    """One turn, or several that follow each other.

    Number, id, `seq` and start are those of the first one; end, outcome, tokens and window are as
    of the last one.  `seq` is that of its first record.  `endedAt` is null while the turn is open.
    `contextTokens` is the last report of the context in use that can be true.  `filesChanged`
    counts different files of a turn; `checksFailed` the commands that failed, without those that
    only look at something.
    """

    turn: int
    turn_id: str
    seq: int
    started_at: str | None
    ended_at: str | None
    outcome: Ended
    context_tokens: int | None
    window: int
    calls: int
    files_changed: int
    checks_failed: int


@define
class _Tally:
    tokens: int | None = None
    newest: str | None = None
    error: bool = False
    calls: int = 0
    files: set[str] = Factory(set[str])
    failed: int = 0


class Timeline(Fold):
    """Counts what each turn did, beside a replay."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._survey = Survey(replay)
        self._tallies: dict[str, _Tally] = {}
        self._observed: list[Observation] = []
        replay.state.observers.append(self._note)
        replay.folds.append(self)

    def take(self, line: Line) -> None:
        """Count what a line tells of its turn."""
        state = self.replay.state
        observed = self._observed[:]
        self._observed.clear()
        if line.seq < state.own_from or state.naming not in NAMED:
            return
        turn = state.turns.at(turn_id_of(line.payload))
        if turn is not None:
            tally = self._of(turn)
            if turn.ended in {None, line.position}:
                tally.newest = line.stamp or tally.newest
            tally.calls += line.tag in _CALLS
            if line.tag in TASK_ENDS:
                tally.error = tally.error or line.payload.get("error") is not None
            used = self.replay.reducer.item
            if isinstance(used, Tokens) and not used.is_impossible:
                tally.tokens = used.total
        for each in observed:
            self._observe(each)

    def turns(self) -> tuple[TimelineTurn, ...]:
        """Return a row for each turn that was not rolled back."""
        state, windows = self.replay.state, self.windows()
        opened = [window.opened_seq for window in windows]
        counted = list(state.turns.counting())
        rows: list[TimelineTurn] = []
        for number, turn in enumerate(counted, 1):
            tally = self._tallies.get(turn.turn_id) or _Tally()
            outcome = state.ended(turn, is_last=number == len(counted), failed=tally.error)
            behind = counted[number].opened_seq if number < len(counted) else self.replay.seq + 1
            window = windows[max(0, bisect_right(opened, behind - 1) - 1)].number
            rows.append(
                TimelineTurn(
                    number,
                    turn.turn_id,
                    turn.opened_seq,
                    turn.stamp,
                    None if outcome == "open" else tally.newest,
                    outcome,
                    tally.tokens,
                    window,
                    tally.calls,
                    len(tally.files),
                    tally.failed,
                )
            )
        return tuple(rows)

    def windows(self) -> tuple[Window, ...]:
        """Return the context windows that count, the first one first."""
        outline = self._survey.outline()
        return windows_of(outline, choose(outline))

    def _note(self, observed: Observation) -> None:
        self._observed.append(observed)  # a method: a copy of the replay keeps a list of its own

    def _of(self, turn: Turn) -> _Tally:
        return self._tallies.setdefault(turn.turn_id, _Tally())

    def _observe(self, observed: Observation) -> None:
        item, seen = observed.item, observed.seen()
        turn_id = item.turn_id if isinstance(item, ToolCall) else None
        turn = self.replay.state.turns.at(turn_id)
        if turn is None:
            return
        tally = self._of(turn)
        edited = (each for each in seen if each.kind == "file" and each.action in EDITS)
        tally.files.update(uri for each in edited if (uri := name_of(each, observed.place)[0]))
        script = next((each.name for each in seen if each.is_command), None)
        if script is None:
            return
        failed: bool | None = False
        if isinstance(item, CommandRun):
            failed = outcome_of(item).failed
        elif isinstance(item, ToolCall) and not tools.is_script(item):
            failed = outcome_in(observed.texts).failed
        tally.failed += bool(failed) and not only_looks(script)


def merged(rows: Sequence[TimelineTurn], most: int = MOST_ROWS) -> tuple[int, list[TimelineTurn]]:
    """Return how many turns a row stands for, 1 where each has its own, and at most `most` rows."""
    size = max(1, -(-len(rows) // most))
    return size, [_joined(rows[start : start + size]) for start in range(0, len(rows), size)]


def _joined(rows: Sequence[TimelineTurn]) -> TimelineTurn:
    last = rows[-1]
    used = (row.context_tokens for row in reversed(rows) if row.context_tokens is not None)
    return evolve(
        rows[0],
        ended_at=last.ended_at,
        outcome=last.outcome,
        context_tokens=next(used, None),
        window=last.window,
        calls=sum(row.calls for row in rows),
        files_changed=sum(row.files_changed for row in rows),
        checks_failed=sum(row.checks_failed for row in rows),
    )
