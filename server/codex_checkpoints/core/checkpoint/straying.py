"""Edits that neither the open plan nor recent work speaks of (DSC-68).

An edited file is related to a session's state before the edit when one of these holds:

1. it is among the recent artifacts;
2. it lies in the folder of a recent file; the top folder counts for nothing here;
3. the task, an open plan step or a recent command names it: by its whole name, or by a word of
   four letters or more of its name without the ending (`refresh` of `test_refresh.py`; `test`
   itself tells nothing).

Where a session has neither an open step nor a recent artifact there is nothing to stray from.
That somebody wants to be asked, and how, is left to the doors.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.records import Checkpoint

_WORD = re.compile(r"[^\W\d_]{4,}")
_TELLS_NOTHING = frozenset({"test", "tests"})


def straying(before: Checkpoint, edited: Iterable[str]) -> tuple[str, ...]:
    """Return the edited files, as uris, that nothing in the checkpoint before speaks of."""
    plan = before.plan
    steps = [step.text for step in plan.steps if not plan.done.get(step.id)]
    recent = set(before.recent_artifacts)
    if not steps and not recent:
        return ()
    artifacts = [before.artifacts[uri] for uri in recent if uri in before.artifacts]
    folders = {posixpath.dirname(each.uri) for each in artifacts if each.kind == "file"} - {"", "/"}
    commands = [each.uri for each in artifacts if each.kind == "command"]
    task = [] if before.task is None else [before.task.text]
    spoken = "\n".join((*task, *steps, *commands)).casefold()
    words = set(_WORD.findall(spoken)) - _TELLS_NOTHING

    def is_related(uri: str) -> bool:
        name = posixpath.basename(uri).casefold()
        return (
            uri in recent
            or posixpath.dirname(uri) in folders
            or re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", spoken) is not None
            or not words.isdisjoint(_WORD.findall(posixpath.splitext(name)[0]))
        )

    return tuple(uri for uri in dict.fromkeys(edited) if not is_related(uri))
