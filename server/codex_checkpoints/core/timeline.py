"""Makes the timeline of a session: a row for each turn, for a picture and for a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.checkpoint.windowed_replay import WindowedReplay
from codex_checkpoints.core.converters import read_or_none, states
from codex_checkpoints.core.effects import Effects
from codex_checkpoints.core.events import Called, CallEnded, Fold, Record, Tokens
from codex_checkpoints.core.shell.commands import is_check
from codex_checkpoints.core.turns import Ended, Turn
from codex_checkpoints.core.windows import HistoryWindow

MOST_ROWS = 400
"""With more turns a row represents several."""

SAVED = 14
"""The version of the result of `Timeline.save`; raise it whenever `_Tally` or `take` changes."""


@frozen
class TimelineTurn:
    """One turn, or several that follow each other.

    Number, id, `seq` and start belong to the first one; end, outcome, tokens and window to the last
    one.  `seq` is the number of its first record.  `endedAt` is null while the turn is open.
    `reason` says why a turn failed, in Codex's words.  `contextTokens` is the last credible report
    of the context in use, `mostTokens` the largest, which is higher if it was compacted meanwhile.
    `filesChanged` counts different files of a turn; `checksFailed` the checks and chores that
    failed, without looks.
    """

    turn: int
    turn_id: str
    seq: int
    started_at: str | None
    ended_at: str | None
    outcome: Ended
    context_tokens: int | None
    most_tokens: int | None
    window: int
    calls: int
    files_changed: int
    checks_failed: int
    reason: str | None = None


@define
class _Tally:
    tokens: int | None = None
    most: int | None = None
    newest: str | None = None
    calls: int = 0
    files: dict[str, None] = Factory(dict[str, None])
    failed: int = 0


class TurnCounts(Fold):
    """Counts the actions of each turn."""

    def __init__(self, stream: Stream, tallies: dict[str, _Tally] | None = None) -> None:
        """Follow a stream that has taken no record yet, or continue from saved counts."""
        self._stream = stream
        self._tallies = {} if tallies is None else tallies
        stream.follow(self)

    def take(self, record: Record) -> None:
        """Count the events of a record for its turn."""
        if not record.counts:
            return
        turns = self._stream.state.turns
        turn = turns.at(record.turn_id)
        if turn is not None:
            tally = self._of(turn)
            if turn.ended in {None, record.position}:
                tally.newest = record.at or tally.newest
            for event in record.events:
                if isinstance(event, Called):
                    tally.calls += 1
                elif isinstance(event, Tokens) and not event.is_impossible:
                    tally.tokens, tally.most = event.total, max(tally.most or 0, event.total)
        for event in record.events:
            if isinstance(event, CallEnded) and (turn := turns.at(event.turn_id)) is not None:
                self._ended(Effects(event), self._of(turn))

    def rows(self, windows: Sequence[HistoryWindow]) -> tuple[TimelineTurn, ...]:
        """Return a row for each turn that was not rolled back; `windows` are those that count."""
        state = self._stream.state
        opened = [window.opened_seq for window in windows]
        counted = list(state.turns.counting())
        rows: list[TimelineTurn] = []
        for number, turn in enumerate(counted, 1):
            tally = self._tallies.get(turn.turn_id) or _Tally()
            outcome = state.ended(turn)
            next_seq = counted[number].opened_seq if number < len(counted) else self._stream.seq + 1
            window = windows[max(0, bisect_right(opened, next_seq - 1) - 1)].number
            rows.append(
                TimelineTurn(
                    number,
                    turn.turn_id,
                    turn.opened_seq,
                    turn.stamp,
                    None if outcome == "open" else tally.newest,
                    outcome,
                    tally.tokens,
                    tally.most,
                    window,
                    tally.calls,
                    len(tally.files),
                    tally.failed,
                    turn.reason if outcome == "failed" else None,
                )
            )
        return tuple(rows)

    def _of(self, turn: Turn) -> _Tally:
        return self._tallies.setdefault(turn.turn_id, _Tally())

    @staticmethod
    def _ended(effects: Effects, tally: _Tally) -> None:
        tally.files.update({each.uri: None for each in effects.edits})
        failed = (each.script for each in effects.runs if each.outcome.failed)
        tally.failed += sum(is_check(script, failed=True) for script in failed)


@frozen
class _Saved:
    version: int
    replay: object
    tallies: dict[str, _Tally]


class Timeline(TurnCounts):
    """The counts of a replay that also knows its windows."""

    def __init__(self, replay: WindowedReplay, tallies: dict[str, _Tally] | None = None) -> None:
        """Begin before the first line, or after a saved timeline."""
        super().__init__(replay, tallies)
        self.replay = replay

    def save(self) -> object | None:
        """Return everything as JSON values; as `Replay.save`."""
        replay = self.replay.save()
        if replay is None:
            return None
        return states.unstructure(_Saved(SAVED, replay, self._tallies))

    @classmethod
    def load(cls, value: object) -> Timeline | None:
        """Return the timeline that `save` stored; None if it is damaged or of another version."""
        kept = read_or_none(states, value, _Saved)
        if kept is None or kept.version != SAVED:
            return None
        replay = WindowedReplay.load(kept.replay)
        return None if replay is None else cls(replay, kept.tallies)

    def turns(self) -> tuple[TimelineTurn, ...]:
        """Return a row for each turn that was not rolled back."""
        return self.rows(self.replay.windows())


def merged(rows: Sequence[TimelineTurn], most: int = MOST_ROWS) -> tuple[int, list[TimelineTurn]]:
    """Return the number of turns in each row, usually 1, and at most `most` rows."""
    size = max(1, -(-len(rows) // most))
    return size, [_joined(rows[start : start + size]) for start in range(0, len(rows), size)]


def _joined(rows: Sequence[TimelineTurn]) -> TimelineTurn:
    last = rows[-1]
    used = (row.context_tokens for row in reversed(rows) if row.context_tokens is not None)
    return evolve(
        rows[0],
        ended_at=last.ended_at,
        outcome=last.outcome,
        reason=last.reason,
        context_tokens=next(used, None),
        most_tokens=max((row.most_tokens for row in rows if row.most_tokens), default=None),
        window=last.window,
        calls=sum(row.calls for row in rows),
        files_changed=sum(row.files_changed for row in rows),
        checks_failed=sum(row.checks_failed for row in rows),
    )
