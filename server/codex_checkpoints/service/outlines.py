"""The outline of a session: what people see of it, bounded however long it is (JUN-27).

It is the secondary surface: made of the turns that count and of the windows they fell into, kept
by nobody, and never sent to a model (JUN-33).  How turns merge is known to the core.
"""

from __future__ import annotations

from bisect import bisect_right

from codex_checkpoints.core.compaction.outline import Outline, OutlineTurn, outline_of
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.sessions import Sessions


def outline(sessions: Sessions, session: str) -> Outline:
    """Return the outline of a session; refuses as `Sessions.find`, `unreadable_source`."""
    windows = Histories(sessions).windows(session)
    _, opened = sessions.open(session)
    starts = [each.opened_seq for each in windows]
    return outline_of(
        OutlineTurn(
            number,
            turn.turn_id,
            windows[max(0, bisect_right(starts, turn.opened_seq) - 1)].number,
            "" if turn.said is None else turn.said.text,
        )
        for number, turn in enumerate(opened.now().state.turns.counting(), 1)
    )
