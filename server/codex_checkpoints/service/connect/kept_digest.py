"""The digest that a hook gives on a resume, kept in the index for the next call.

To make it takes many times as long as all the rest of a call.  It is of the records before the
newest compaction, which stay what they are while a session goes on.  So it is kept with a hash of
all else that it is made of, and only how the last turn ended is said anew each time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from codex_checkpoints.core.digest.status import status_of, with_status
from codex_checkpoints.service.reading.kept_answers import (
    DIGEST_RULES,
    DIGESTS,
    hash_of,
    keep,
    kept,
)
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Mark, Row
from codex_checkpoints.storage.records import MARKERS, UPDATES
from codex_checkpoints.values import frozen

FOLD = DIGESTS[0]


@frozen
class _Kept:
    """A digest, what it is made of, and the file up to where the compaction begins.

    `seq` is that of the compaction; `files` and `commands` are those that the digest names.
    """

    text: str
    made_of: str
    mark: Mark
    seq: int
    files: tuple[str, ...]
    commands: tuple[str, ...]


def lost_digest(
    sessions: Sessions, row: Row, shown: View, setting: int, beside: Sequence[str]
) -> str:
    """Return what the history no longer holds, empty if that is nothing.

    `beside` are the user's messages in the history.
    """
    opened = sessions.catalogue.open(row)
    state = opened.now().state
    found = kept(sessions.catalogue, row, FOLD, _Kept)
    if found is not None and _still_counts(found, opened):
        made_of = _made_of(sessions, row, shown, beside, found.seq, found.files, found.commands)
        if made_of == found.made_of:
            return with_status(found.text, status_of(state))
    from codex_checkpoints.service.digests import Digests  # noqa: PLC0415 - loads much

    lost = Digests(sessions).lost(row, setting, beside)
    reads_others = row.base_rollout is not None or state.seed is not None
    if lost.text and lost.place is not None and not reads_others:
        made_of = _made_of(sessions, row, shown, beside, lost.seq, lost.files, lost.commands)
        mark = opened.reader.mark_at(row.path, lost.place, opened.mark.inode)
        found = _Kept(lost.text, made_of, mark, lost.seq, lost.files, lost.commands)
        keep(sessions.catalogue, row, FOLD, found)
    return with_status(lost.text, status_of(state))


def _still_counts(kept: _Kept, opened: SessionFile) -> bool:
    """Return whether a file is still what it was, up to the compaction."""
    mark, end = kept.mark, opened.mark.offset
    if mark.offset > end or mark.inode != opened.mark.inode:
        return False
    return opened.reader.mark_at(opened.path, mark.offset, mark.inode) == mark


def _made_of(  # noqa: PLR0913, PLR0917 - what a digest is made of
    sessions: Sessions,
    row: Row,
    shown: View,
    beside: Sequence[str],
    seq: int,
    files: Collection[str],
    commands: Collection[str],
) -> str:
    """Return a hash of all that a digest is made of, but for the records before the compaction."""
    state = sessions.catalogue.open(row).now().state
    artifacts = shown.of.checkpoint.artifacts
    edited, ran = state.observations.since(seq)
    ends, counted = dict(state.ends()), state.turns.counting()
    parts = (
        DIGEST_RULES,
        state.compacted_at,
        beside,
        [uri for uri in files if (each := artifacts.get(uri)) is not None and each.is_changed],
        edited,
        [command for command in commands if command in ran],
        [(turn.turn_id, ends[turn.turn_id]) for turn in counted if turn.opened_seq <= seq],
        state.typed,
        row.context_window,
        sessions.settings.hook_digest_tokens,
        sessions.settings.at(row.cwd).digest_ignore,
        [sessions.records.look(row.session_id, name) for name in (MARKERS, UPDATES)],
    )
    return hash_of(parts)
