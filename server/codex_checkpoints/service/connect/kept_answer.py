"""The digest that a hook gave last with a session, kept in the index for the next call.

To make it takes many times as long as all the rest of a call, and a session is mostly resumed as it
was left.  What is kept counts only where all that it is made of is the same: the file up to its
last byte, the view, the pins and notes, the files in the workspace, and the settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import orjson

from codex_checkpoints.core.rollout.fields import load, object_of, text_of
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import MARKERS, UPDATES
from codex_checkpoints.values import asdict, frozen

RULES = 1
"""The version of how a digest is made; one of another version is made anew."""

LONGEST = 1 << 18
"""Bytes; a longer answer is not kept."""


@frozen
class Answer:
    """The digest for Codex, None where it is given nothing, and the window of the session."""

    digest: str | None
    window_id: str | None


def kept_answer(
    sessions: Sessions, row: Row, shown: View, source: str, make: Callable[[], Answer]
) -> Answer:
    """Return the answer to give with a view, as it was kept, else from `make`, which is kept.

    `source` is why the session starts.
    """
    store = sessions.catalogue.store
    if not (sessions.settings.digest_tokens or sessions.settings.hook_digest_tokens):
        store.drop_digests()
        return make()
    made_of = _made_of(sessions, row, shown, source)
    if made_of is None:
        return make()
    kept = object_of(load((store.kept_digest(row.path, made_of) or "").encode()))
    if "digest" in kept:
        return Answer(text_of(kept.get("digest")), text_of(kept.get("windowId")))
    made = make()
    data = orjson.dumps({"digest": made.digest, "windowId": made.window_id})
    if len(data) <= LONGEST:
        store.keep_digest(row.path, made_of, data.decode())
    return made


def _made_of(sessions: Sessions, row: Row, shown: View, source: str) -> str | None:
    """Return a hash of all that an answer is made of; None where other files are read for it."""
    opened = sessions.catalogue.open(row)
    if row.base_rollout is not None or opened.replay.state.seed is not None:
        return None
    changed = [uri for uri, each in shown.of.checkpoint.artifacts.items() if each.is_changed]
    parts = (
        RULES,
        source,
        _hash(shown.text.encode()),
        changed,
        row.context_window,
        sessions.settings.hook_digest_tokens,
        sessions.settings.at(row.cwd).digest_ignore,
        row.rollout.look,
        asdict(opened.mark),
        _hash(opened.tail),
        [sessions.records.look(row.session_id, name) for name in (MARKERS, UPDATES)],
    )
    return _hash(orjson.dumps(parts))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
