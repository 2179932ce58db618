"""Keeps the newest settings of a session as Codex records them, for a session that continues it."""

from __future__ import annotations

from codex_checkpoints.core.agents.codex.derive import Deriver
from codex_checkpoints.core.agents.codex.reader import Fold, Line, Reader
from codex_checkpoints.core.events import TurnContext
from codex_checkpoints.core.fields import Json


class NewestSettings(Fold):
    """The payloads of the newest records of settings; the deriver takes each line first."""

    def __init__(self, reader: Reader, deriver: Deriver) -> None:
        """Join a reader that has read nothing yet."""
        self._deriver = deriver
        self.of_turn: Json | None = None
        """The payload of the newest `turn_context`: model, effort, approvals."""
        self.of_thread: Json | None = None
        """The payload of the newest `thread_settings_applied`."""
        reader.folds.append(self)

    def take(self, line: Line) -> None:
        """Keep the payload of settings, but none that a parent wrote."""
        is_own = line.seq >= self._deriver.known.own_from
        if is_own and isinstance(self._deriver.item, TurnContext):
            if line.kind == "turn_context":  # an event has fewer fields
                self.of_turn = line.payload
            else:
                self.of_thread = line.payload
