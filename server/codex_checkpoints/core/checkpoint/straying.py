"""Edits that are not related to the open plan or to recent work (DSC-68).

An edited file is related to the state before the edit if one of these holds:

1. it is among the recent artifacts;
2. it is in the folder of a recent file, other than the top folder;
3. the task, an open plan step or a recent command names it: by its whole name, or by a word of
   four letters or more of its name without the ending (`refresh` of `test_refresh.py`, not `test`).

Without an open step and a recent artifact every edit is related.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.records import Checkpoint

_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset({"test", "tests"})


def straying(before: Checkpoint, edited: Iterable[str]) -> tuple[str, ...]:
    """Return the uris of the edited files that are not related to the checkpoint before."""
    plan = before.plan
    steps = [step.text for step in plan.steps if not plan.done.get(step.id)]
    recent = set(before.recent_artifacts)
    if not steps and not recent:
        return ()
    artifacts = [before.artifacts[uri] for uri in recent if uri in before.artifacts]
    folders = {posixpath.dirname(each.uri) for each in artifacts if each.kind == "file"} - {"", "/"}
    commands = [each.uri for each in artifacts if each.kind == "command"]
    task = [] if before.task is None else [before.task.text]
    text = "\n".join((*task, *steps, *commands)).casefold()
    words = set(_WORD.findall(text)) - _COMMON

    def is_related(uri: str) -> bool:
        name = posixpath.basename(uri).casefold()
        return (
            uri in recent
            or posixpath.dirname(uri) in folders
            or re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None
            or not words.isdisjoint(_WORD.findall(posixpath.splitext(name)[0]))
        )

    return tuple(uri for uri in dict.fromkeys(edited) if not is_related(uri))
