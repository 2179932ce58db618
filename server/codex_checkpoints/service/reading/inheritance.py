"""What a fork remembers of the sessions that it builds on (interfaces, "Sessions that we make").

A fork by Codex names, as its `history_base`, the file that its history begins with and where that
is cut.  The updates that were accepted there below the cut belong to this history, and so do the
revocations; the base may itself be a fork, so that this goes down the chain.  An update still
counts only while its turn does (DSC-78).

Nothing comes from elsewhere: older segments of the same thread share its one file, a branch of
ours has copies of its own, a subagent inherits no turns, and a fork that copied the lines of its
source names no base.
"""

from __future__ import annotations

from collections.abc import Callable

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.service.reading.session_file import Locate, SessionFile, bases_below
from codex_checkpoints.threads.contract import UnreadableSource

_OURS = "codex-checkpoints"


def inherited(
    opened: SessionFile, locate: Locate, updates: Callable[[str], tuple[Update, ...]]
) -> tuple[Update, ...]:
    """Return what a session inherits, the oldest session's first; `updates` reads one's own.

    A base that cannot be read, and a cut that names no ordinal, end the inheritance: what may have
    come later is never taken for older.
    """
    head, replay = opened.head, opened.now()
    if not _inherits(head) or not replay.scale.ordinals:
        return ()
    # What a session of ours began with moves the `seq` of all who build on it alike.
    shift = replay.scale.shift
    found: tuple[Update, ...] = ()
    met = {opened.session_id}
    below: int | None = None
    try:
        for path, cut in bases_below(opened.reader, opened.path, locate)[0]:
            if not _inherits(head) or cut.end_ordinal is None:
                break
            below = cut.end_ordinal if below is None else min(below, cut.end_ordinal)
            head = head_of(opened.reader.first_line(path))
            thread = (head and head.session_id) or opened.reader.identify(path).thread_id
            if thread not in met:
                met.add(thread)
                older = (each for each in updates(thread) if each.seq - shift < below)
                found = (*older, *found)
    except UnreadableSource:
        pass
    return found


def _inherits(head: SessionMeta | None) -> bool:
    return (
        head is not None
        and head.base is not None
        and head.inherited_below is None
        and head.originator != _OURS
    )
