"""What a preview of a compaction warns of that stands in Codex's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from codex_checkpoints.codex import config, file_edit, hooks
from codex_checkpoints.codex.entries import CannotEdit
from codex_checkpoints.core.compaction.records import CompactionWarning, Into
from codex_checkpoints.core.rollout.fields import load, object_of, text_of
from codex_checkpoints.service.compaction.source import CompactionSource
from codex_checkpoints.service.reading.session_file import bytes_between
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import Row, UnreadableSource

_EVENT, _IN_RECORDS = "PreCompact", "pre_compact"
"""The event in Codex's hooks, and in its records of who trusts and switches them."""

SAME_HASH_SINCE = (0, 147)
"""The first version of Codex whose `comp_hash` for a model is still that of 0.169."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.")

_TAIL = 1 << 18
"""How many bytes at the end of a newer session are searched for its settings."""


def cautions(
    sessions: Sessions, source: CompactionSource, into: Into
) -> Iterator[CompactionWarning]:
    """Yield what is to be said of this compaction."""
    if count := _own_hooks(sessions.catalogue.store.place):
        which = "hook does" if count == 1 else "hooks do"
        why = "Codex runs such hooks only before its own compactions."
        yield CompactionWarning("own_hooks", count, f"Your {_EVENT} {which} not run: {why}")
    if into == "in-place" and _is_compacted_again(sessions, source):
        message = "Codex may compact this session again, with a model call, when it is resumed:"
        end = "its rules have changed since. In a new session it does not."
        yield CompactionWarning("compacted_again", 1, f"{message} {end}")


def _own_hooks(codex_home: str) -> int:
    """Return how many hooks of a person's own Codex calls before a compaction, by its files.

    Neither ours count nor those that are switched off; a file that cannot be read has none.
    """
    count, off = 0, frozenset[str]()
    for name in ("config.toml", "hooks.json"):
        path = os.path.join(codex_home, name)
        try:
            text = (file_edit.read(path).data or b"").decode()
            is_config = name == "config.toml"
            found = (
                config.found_in(text) if is_config else config.Found(hooks.found_in(text or "{}"))
            )
        except (CannotEdit, OSError, UnicodeDecodeError):
            continue
        if found.hooks_off:
            return 0
        off |= found.switched_off
        own = (hook for hook in found.hooks.all if hook.event == _EVENT and not hook.calls_us)
        count += sum(f"{path}:{_IN_RECORDS}:{hook.place}" not in off for hook in own)
    return count


def _is_compacted_again(sessions: Sessions, source: CompactionSource) -> bool:
    """Return whether Codex compares the session's `comp_hash` with another one on resume.

    The newer one stands in the newest later session of the same model; without such a session the
    version of Codex that began this one decides.
    """
    settings = object_of(source.traced.last_settings)
    ours = text_of(settings.get("comp_hash"))
    if ours is None:
        return False
    model, since = text_of(settings.get("model")), source.row.updated_at or ""
    rows = sessions.catalogue.store.rows().values()
    later = [row for row in rows if row.model == model and (row.updated_at or "") > since]
    newest = max(later, key=lambda row: row.updated_at or "", default=None)
    theirs = None if newest is None else _hash_in(sessions, newest)
    if theirs is not None:
        return theirs != ours
    began = _VERSION.match(source.row.cli_version or "")
    return began is not None and (int(began[1]), int(began[2])) < SAME_HASH_SINCE


def _hash_in(sessions: Sessions, row: Row) -> str | None:
    """Return the `comp_hash` in the last settings of a session, if its end tells."""
    if row.rollout.compressed:
        return None
    try:
        begin = max(0, row.rollout.size - _TAIL)
        data = bytes_between(sessions.catalogue.reader, row.path, begin, row.rollout.size)
    except UnreadableSource:
        return None
    for line in reversed(data.split(b"\n")):
        value = object_of(load(line) if b'"turn_context"' in line else None)
        if value.get("type") == "turn_context":
            return text_of(object_of(value.get("payload")).get("comp_hash"))
    return None
