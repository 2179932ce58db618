"""Whether a session that begins a window is given its bundle (DSC-54, DSC-59; interfaces, `hook`).

Reading the session, and handing the text to Codex, belong to the hook.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.how_to import bundle
from codex_checkpoints.core.history.items import Item, texts
from codex_checkpoints.core.rollout.ours import is_ours

_ALWAYS = "compact"
_UNLESS_THERE = frozenset({"resume", "fork"})


def injection(source: str, checkpoint: Checkpoint, view: str, window: Iterable[Item]) -> str | None:
    """Return what Codex gets at a `SessionStart`, or None.

    `source` is Codex's word for why the session starts, `view` that of the checkpoint, `window`
    what a model would be sent, from the last compaction on.  After a compaction the bundle is
    always given.  On a resume or in a fork it is not, when the last one in the window says the
    same: older ones do not count, for the model is told to go by the last.  A source that we do not
    know, a new session and an empty checkpoint get nothing (AGN-1).
    """
    if source not in {_ALWAYS, *_UNLESS_THERE} or is_empty(checkpoint):
        return None
    text = bundle(view)
    if source in _UNLESS_THERE and last_bundle(window) == text:
        return None
    return text


def is_empty(checkpoint: Checkpoint) -> bool:
    """Say whether a checkpoint holds nothing that a model could be told."""
    return checkpoint.task is None and not (
        checkpoint.plan.steps or checkpoint.decisions or checkpoint.artifacts or checkpoint.facts
    )


def last_bundle(window: Iterable[Item]) -> str | None:
    """Return the last text of ours among the items, whoever put it there: a hook or a compaction.

    Only messages that are not the assistant's: a model may quote one.
    """
    found: str | None = None
    for item in window:
        if item.get("type") == "message" and item.get("role") != "assistant":
            found = next((part for part in texts(item) if is_ours(part)), found)
    return found
