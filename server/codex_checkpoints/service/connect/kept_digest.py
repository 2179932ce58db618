"""The digest that a hook gave last of a session, kept in the index for the next call.

To make it takes several times as long as all the rest of a call, and a session is mostly resumed as
it was left.  The kept text counts only where all that it is made of is the same: the file up to its
last byte, the pins and notes, the files in the workspace, the settings, the messages beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection

import orjson

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import MARKERS, UPDATES
from codex_checkpoints.values import asdict, frozen

RULES = 1
"""The version of how a digest is made; another one is made anew."""

LONGEST = 1 << 18
"""Bytes; a longer text is not kept."""


@frozen
class Wanted:
    """The digest that a hook wants: the terms of `Digests.injected`."""

    budget: int
    beside: Collection[str]
    whole: bool


def digest_for(
    sessions: Sessions, row: Row, checkpoint: Checkpoint, wanted: Wanted, make: Callable[[], str]
) -> str:
    """Return the kept digest of a session, else what `make` makes, which is kept.

    `checkpoint` is that of now.
    """
    store = sessions.catalogue.store
    made_of = _made_of(sessions, row, checkpoint, wanted)
    if made_of is None:
        return make()
    found = store.kept_digest(row.path, made_of)
    if found is None:
        found = make()
        if len(found.encode()) <= LONGEST:
            store.keep_digest(row.path, made_of, found)
    return found


def drop_digests(sessions: Sessions) -> None:
    """Keep nothing where the settings ask for no digests at all."""
    if not (sessions.settings.digest_tokens or sessions.settings.hook_digest_tokens):
        sessions.catalogue.store.drop_digests()


def _made_of(sessions: Sessions, row: Row, checkpoint: Checkpoint, wanted: Wanted) -> str | None:
    """Return a digest of all that a text is made of; None where other files are read for it."""
    opened = sessions.catalogue.open(row)
    if row.base_rollout is not None or opened.replay.state.seed is not None:
        return None
    parts = (
        RULES,
        wanted.budget,
        wanted.whole,
        [hashlib.sha256(text.encode(errors="replace")).hexdigest() for text in wanted.beside],
        row.context_window,
        sessions.settings.at(row.cwd).digest_ignore,
        row.rollout.look,
        asdict(opened.mark),
        hashlib.sha256(opened.tail).hexdigest(),
        [sessions.records.look(row.session_id, name) for name in (MARKERS, UPDATES)],
        [uri for uri, each in checkpoint.artifacts.items() if each.is_changed],
    )
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
