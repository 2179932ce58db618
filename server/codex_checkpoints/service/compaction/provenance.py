"""Where each item of a history stood first, and when, whatever was compacted since (JUN-43).

All items of a replacement stand in one line, and so do those of a history that came back when a
compaction was taken back.  Of the former the record of the compaction tells; of the latter the
bytes in front of the line do, which are still there and are read once more.
"""

from __future__ import annotations

from collections.abc import Mapping

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.compaction.records import Installed, recalled, remembered
from codex_checkpoints.core.history.survey import Compaction
from codex_checkpoints.service.compaction_records import Opened, storing
from codex_checkpoints.service.history import Histories, Surveyed, Traced
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen


class Provenance:
    """Knows the first lines of what histories hold."""

    def __init__(self, sessions: Sessions, histories: Histories) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._histories = histories

    def of(self, row: Row, traced: Traced) -> tuple[Past, ...]:
        """Return a history with the time and the place that each item had first.

        Refuses `storage_error`, `unreadable_source`.
        """
        opened: dict[str | None, Opened] = {}
        for each in (*self._sessions.catalogue.chains.below(row), row):
            with storing(each.session_id):
                opened.update(self._sessions.compactions.by_window(each.session_id))
        history = _Brought(traced.surveyed, traced.past, traced.shift)
        return self._first(history, opened)

    def _first(self, history: _Brought, opened: Mapping[str | None, Opened]) -> tuple[Past, ...]:
        """Look how the window was opened that a history begins with."""
        base = history.surveyed.choice.base
        if base is None:
            return history.past
        match opened.get(base.window_id):
            case Opened(by=Installed() as record):
                return remembered(history.past, record)
            case Opened(undone=Installed() as record):
                # No window is opened twice: so this ends, whatever records say.
                others = {key: each for key, each in opened.items() if key != base.window_id}
                return recalled(history.past, self._before(history, base, record, others))
            case _:
                return history.past

    def _before(
        self,
        history: _Brought,
        base: Compaction,
        record: Installed,
        opened: Mapping[str | None, Opened],
    ) -> tuple[Past, ...]:
        """Return what the line `base` brought back, as it stood before `record` replaced it.

        What was said after that was brought over with it, and had lines of its own.
        """
        row = self._sessions.catalogue.store.rows().get(history.path_of(base))
        if row is None:
            return ()
        self._sessions.pace.expect(self._sessions.catalogue.chains.weight(row))
        first = self._histories.first_pass(row.path, cut=record.source.bytes_before)
        then = self._histories.traced(row, base.place.offset, history.shift, first)
        if then.in_front is None:
            return ()
        past = self._histories.past(row, then.in_front, history.shift)
        before = _Brought(then.in_front, past, history.shift)
        return (*self._first(before, opened), *then.past[len(record.items) :])


@frozen
class _Brought:
    """A history as it stands in the file: the lines of its items, which may not be their first."""

    surveyed: Surveyed
    past: tuple[Past, ...]
    shift: int

    def path_of(self, base: Compaction) -> str:
        """Return the rollout of the chain in which a record stands."""
        return self.surveyed.parts[base.place.file].path
