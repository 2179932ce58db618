"""Warns before a compaction: a goal that is not carried over, hooks that do not run, web pages."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from codex_checkpoints.codex import config, entries, file_edit, hooks
from codex_checkpoints.codex.entries import CannotEdit
from codex_checkpoints.core.compaction.contents import CompactionWarning
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.core.fields import object_of
from codex_checkpoints.service.compaction.source import CompactionSource
from codex_checkpoints.service.sessions.sessions import Sessions

GOAL_STAYS = "The goal stays with the old session: set it in the new one with /goal."


def leaves_goal(source: CompactionSource, into: Into) -> bool:
    """Return whether the session has a goal that the new one will not have."""
    goal = source.replay.state.turns.goal
    return into == "new" and goal is not None and goal.is_in_force


SAME_HASH_SINCE = (0, 147)
"""The first version of Codex whose `comp_hash` for a model is still the one of 0.169."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.")


def cautions(
    sessions: Sessions, source: CompactionSource, into: Into
) -> Iterator[CompactionWarning]:
    """Yield the warnings about this compaction."""
    if count := _own_hooks(sessions.catalogue.store.place):
        which = "hook does" if count == 1 else "hooks do"
        why = "Codex runs such hooks only before its own compactions."
        yield CompactionWarning("own_hooks", count, f"Your PreCompact {which} not run: {why}")
    if leaves_goal(source, into):
        yield CompactionWarning("goal_stays", 1, GOAL_STAYS)
    if source.traced.history.context.calibration.has_pages:
        message = "The last call searched the web: the tokens in use count its pages,"
        yield CompactionWarning("web_pages", 1, f"{message} which no later call sends.")
    if into == "in-place" and _is_compacted_again(source):
        message = "Codex may compact this session again, with a model call, when it is resumed:"
        end = "its rules have changed since. In a new session it does not."
        yield CompactionWarning("compacted_again", 1, f"{message} {end}")


def _own_hooks(codex_home: str) -> int:
    """Return the number of a person's own hooks before a compaction in Codex's files.

    A file that cannot be read has none.
    """
    count = 0
    for name in ("config.toml", "hooks.json"):
        with contextlib.suppress(CannotEdit, OSError, UnicodeDecodeError):
            text = (file_edit.read(os.path.join(codex_home, name)).data or b"").decode()
            if not text:
                continue
            is_json = name == "hooks.json"
            groups = hooks.groups_in(text) if is_json else config.found_in(text).groups
            its = groups.get("PreCompact", ())
            handlers = (each for group in its for each in entries.handlers_of(group))
            count += sum(not entries.is_our_handler(each) for each in handlers)
    return count


def _is_compacted_again(source: CompactionSource) -> bool:
    """Return whether Codex has another `comp_hash` for the model now, by the version it had."""
    if object_of(source.traced.last_settings).get("comp_hash") is None:
        return False
    began = _VERSION.match(source.row.cli_version or "")
    return began is not None and (int(began[1]), int(began[2])) < SAME_HASH_SINCE
