"""The digest that a hook gave last with a session, kept in the index for the next call.

To make it takes many times as long as all the rest of a call, and a session is mostly resumed as it
was left.  What is kept counts only where all that it is made of is the same: the file up to where
it ended then, with nothing behind it that a digest tells of, the view, the pins and notes, the
files in the workspace, and the settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import orjson

from codex_checkpoints.core.codec import Codec
from codex_checkpoints.core.rollout.fields import load, object_of
from codex_checkpoints.service.reading.projections import View
from codex_checkpoints.service.reading.session_file import SessionFile, bytes_between
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Mark, Row
from codex_checkpoints.storage.records import MARKERS, UPDATES
from codex_checkpoints.values import frozen

RULES = 1
"""The version of how a digest is made; one of another version is made anew."""

FOLD = "digest"
"""The name under which it is kept."""

LONGEST = 1 << 18
"""Bytes; a longer answer is not kept."""


_MOST_NEW = 1 << 20
"""Bytes behind the end of then that are looked through."""

_SILENT = frozenset({"world_state", "token_usage_record"})
"""Kinds of lines that no digest tells of, and no history holds."""


@frozen
class Answer:
    """The digest for Codex, None where it is given nothing, and the window of the session.

    `until`: with more bytes than that in the file another part of it is read; None for any number.
    """

    digest: str | None
    window_id: str | None
    until: int | None = None


@frozen
class _Kept:
    """An answer, a hash of all else that it is made of, and where the file ended then."""

    made_of: str
    answer: Answer
    mark: Mark


_codec = Codec()


def kept_answer(
    sessions: Sessions, row: Row, shown: View, source: str, make: Callable[[], Answer]
) -> Answer:
    """Return the answer to give with a view, as it was kept, else from `make`, which is kept.

    `source` is why the session starts.
    """
    store, opened = sessions.catalogue.store, sessions.catalogue.open(row)
    if not (sessions.settings.digest_tokens or sessions.settings.hook_digest_tokens):
        store.forget(fold=FOLD)
        return make()
    reads_others = row.base_rollout is not None or opened.replay.state.seed is not None
    if reads_others or opened.tail or row.rollout.compressed:
        return make()
    made_of = _made_of(sessions, row, shown, source)
    kept = _codec.read_or_none(store.recall(row.path, FOLD), _Kept)
    if kept is not None and kept.made_of == made_of and _still_counts(kept, opened):
        return kept.answer
    made = make()
    data = _codec.write(_Kept(made_of, made, opened.mark))
    if len(orjson.dumps(data)) <= LONGEST:
        store.remember(row.path, FOLD, data)
    return made


def _still_counts(kept: _Kept, opened: SessionFile) -> bool:
    """Return whether a file is still what it was, with nothing new that a digest tells of."""
    reader, path, begin, end = opened.reader, opened.path, kept.mark.offset, opened.mark.offset
    if not begin <= end <= min(kept.answer.until or end, begin + _MOST_NEW):
        return False
    if reader.mark_at(path, begin, opened.mark.inode) != kept.mark:
        return False
    lines = bytes_between(reader, path, begin, end).split(b"\n") if begin < end else []
    return all(map(_is_silent, filter(None, lines)))


def _is_silent(line: bytes) -> bool:
    value = object_of(load(line))
    is_count = object_of(value.get("payload")).get("type") == "token_count"
    return value.get("type") in _SILENT or (value.get("type") == "event_msg" and is_count)


def _made_of(sessions: Sessions, row: Row, shown: View, source: str) -> str:
    """Return a hash of all that an answer is made of, but for the file."""
    parts = (
        RULES,
        source,
        _hash(shown.text.encode()),
        [uri for uri, each in shown.of.checkpoint.artifacts.items() if each.is_changed],
        row.context_window,
        sessions.settings.hook_digest_tokens,
        sessions.settings.at(row.cwd).digest_ignore,
        [sessions.records.look(row.session_id, name) for name in (MARKERS, UPDATES)],
    )
    return _hash(orjson.dumps(parts))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
