"""The digest that a hook gives on a resume, kept in the index for the next call.

To make it takes many times as long as all the rest of a call.  It is of the records before the
newest compaction, which stay what they are while a session goes on.  So it is kept with a hash of
all else that it is made of, and only how the last turn ended is said anew each time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

import orjson

from codex_checkpoints.core.codec import Codec
from codex_checkpoints.core.digest.status import status_of, with_status
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Mark, Row
from codex_checkpoints.storage.records import MARKERS, UPDATES
from codex_checkpoints.values import frozen

FOLD = "digest"
"""The name under which it is kept."""

RULES = 2
"""The version of how a digest is made; one of another version is made anew."""

LONGEST = 1 << 18
"""Bytes; a longer one is not kept."""


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


_codec = Codec()


def forget_unwanted(sessions: Sessions) -> None:
    """Keep no digest where none is wanted."""
    if not (sessions.settings.digest_tokens or sessions.settings.hook_digest_tokens):
        sessions.catalogue.store.forget(fold=FOLD)


def lost_digest(
    sessions: Sessions, row: Row, shown: View, setting: int, beside: Sequence[str]
) -> str:
    """Return what the history no longer holds, empty if that is nothing.

    `beside` are the user's messages in the history.
    """
    store, opened = sessions.catalogue.store, sessions.catalogue.open(row)
    state = opened.now().state
    kept = _codec.read_or_none(store.recall(row.path, FOLD), _Kept)
    if kept is not None and _still_counts(kept, opened):
        made_of = _made_of(sessions, row, shown, beside, kept.seq, kept.files, kept.commands)
        if made_of == kept.made_of:
            return with_status(kept.text, status_of(state))
    from codex_checkpoints.service.digests import Digests  # noqa: PLC0415 - loads much

    lost = Digests(sessions).lost(row, setting, beside)
    reads_others = row.base_rollout is not None or state.seed is not None
    if lost.text and lost.place is not None and not reads_others:
        made_of = _made_of(sessions, row, shown, beside, lost.seq, lost.files, lost.commands)
        mark = opened.reader.mark_at(row.path, lost.place, opened.mark.inode)
        found = _Kept(lost.text, made_of, mark, lost.seq, lost.files, lost.commands)
        data = _codec.write(found)
        if len(orjson.dumps(data)) <= LONGEST:
            store.remember(row.path, FOLD, data)
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
        RULES,
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
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
