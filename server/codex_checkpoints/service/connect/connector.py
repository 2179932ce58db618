"""The use case `connect`: say how things stand, show what would change, change it, take it back.

One object for each Codex home, for whichever door asks.  It keeps nothing between two calls.
"""

from __future__ import annotations

from typing import Literal

from codex_checkpoints.codex.entries import Entries
from codex_checkpoints.service.connect import connecting, connection
from codex_checkpoints.service.connect.connecting import Change, Done
from codex_checkpoints.service.connect.connection import Asked, Connection, Surroundings
from codex_checkpoints.values import frozen

Wish = Literal["connect", "remove"]


@frozen
class Report:
    """How things stand, and what was changed or, when nothing was written, would be."""

    connection: Connection
    changes: tuple[Done, ...] = ()
    written: bool = False


@frozen
class Connector:
    """Codex's configuration in one home, and what of ours belongs there."""

    codex_home: str
    state_dir: str
    wanted: Entries
    around: Surroundings

    def status(self) -> Report:
        """Say for each door whether it is configured, trusted and in use."""
        return Report(self._look(connection.asked(self.codex_home, self.around)))

    def inspect(self) -> Connection:
        """Look at Codex's files and our own, without starting Codex."""
        return self._look(connection.unasked(self.around))

    def examine(self) -> Connection:
        """Look as `inspect` does, and at the version of Codex."""
        return self._look(connection.named(self.around))

    def preview(self, wish: Wish) -> Report:
        """Show what would be written.  Raises `Refusal`."""
        changes = self._changes(wish)
        shown = tuple(Done(each.path, each.action, each.diff, None) for each in changes)
        return Report(self.inspect(), shown)

    def carry_out(self, wish: Wish) -> Report:
        """Write it, and look again.  Raises `Refusal`; a file is written whole or not at all."""
        changes = self._changes(wish)
        write = connecting.put_in if wish == "connect" else connecting.take_out
        done = write(changes)
        return Report(self.inspect(), done, written=bool(done))

    def _look(self, asked: Asked) -> Connection:
        return connection.look(self.codex_home, self.state_dir, self.wanted, self.around, asked)

    def _changes(self, wish: Wish) -> tuple[Change, ...]:
        if wish == "connect":
            return connecting.plan(self.codex_home, self.wanted)
        return connecting.removal(self.codex_home)
