"""Hints about artifacts that an agent was handed: kept with the session, and acted on by nobody.

What they are is known to `core.restore.feedback` (AGN-78).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_checkpoints.core.restore.feedback import Hint, hints_in, line_of, problems_in
from codex_checkpoints.records import HINTS
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import storing
from codex_checkpoints.service.sessions import Sessions


class Hints:
    """The hints of sessions; the time comes from outside."""

    def __init__(self, sessions: Sessions, now: Callable[[], str]) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._now = now

    def given(self, session: str) -> tuple[Hint, ...]:
        """Return the newest hint of each artifact of a session."""
        return self._of(self._sessions.find(session).session_id)

    def give(self, session: str, hints: Sequence[Hint]) -> tuple[Hint, ...]:
        """Keep hints, durable on return; return all that there are.

        Refuses `invalid_payload`, `storage_error`.
        """
        session_id = self._sessions.own(session).session_id
        problems = problems_in(hints)
        if problems:
            message = "; ".join(problems)
            raise Refusal("invalid_payload", message, {"problems": list(problems)})
        at = self._now()
        records = self._sessions.records
        with storing(session_id), records.journal(session_id, HINTS) as journal:
            for hint in hints:
                journal.append(line_of(hint, at))
        return self._of(session_id)

    def _of(self, session_id: str) -> tuple[Hint, ...]:
        with storing(session_id):
            return hints_in(self._sessions.records.lines(session_id, HINTS))
