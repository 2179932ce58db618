"""Defines the place of a record in a session, or in a predecessor of it."""

from __future__ import annotations

from attrs import evolve, frozen


@frozen
class RecordPlace:
    """The place of a record: the session, its `seq`, and its turn.

    `turn` is the number of the turn, None in a session that this one continues; `age` is the number
    of later turns.
    """

    session_id: str | None
    seq: int
    turn_id: str | None = None
    turn: int | None = None
    age: int = 0

    def below(self, turns: int) -> RecordPlace:
        """Return the place as seen from a session of `turns` turns that continues this one."""
        return evolve(self, turn=None, age=self.age + turns)
