"""`restores.jsonl`: one record a restore, with everything its details need (AGN-68, AGN-87).

Branch and source both keep it, so either can be deleted.  It holds no text of the conversation, of
a file or of the pack (AGN-25), and the version of its semantics (AGN-82).  The texts about it do
not promise that a model thinks as before, or keeps facts that were not recorded (AGN-22, AGN-26).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint, status_of
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.pack_items import Ancestor, Deferred, Item, TurnSource
from codex_checkpoints.core.restore.references import (
    Drift,
    Fallback,
    Missing,
    ModeChange,
    References,
)

SEMANTICS = 1
"""The version of the semantics; a record keeps the one it was made with."""

WarningCode = Literal[
    "pack_truncated",
    "pack_empty",
    "pin_shortened",
    "pin_unread",
    "suspect_facts",
    "drift",
    "not_compared",
    "missing_files",
    "weak_hashes",
    "detached_marker",
    "problems_in_source",
    "rests_on_source",
    "copied_instead",
    "earlier_unknown",
]

Placement = Literal["copy", "reference", "seed"]
"""How a branch gets its state: lines of its source, or a checkpoint; earlier builds: references."""


@frozen
class Caution:
    """One warning of a restore: its code, and the number of things it is about."""

    code: WarningCode
    count: int


@frozen
class PinnedReference:
    """A pin in the branch, with its hash at that moment."""

    uri: str
    start: int | None
    end: int | None
    hash: str | None


@frozen
class PackFigures:
    """The figures of a pack, without its text."""

    digest: str
    tokens: int
    budget: int


@frozen
class TokenFigures:
    """The tokens in use at the turn, and in the branch (AGN-15)."""

    before: int | None
    after: int | None
    window: int | None = None


@frozen
class Windows:
    """The window of the source, and the first and the current one of the branch (WIN-13)."""

    source: str | None
    first: str | None
    current: str | None


@frozen
class Restore:
    """One restore, as it is recorded."""

    semantics: int
    operation_id: str
    session_id: str
    source_session_id: str
    checkpoint_id: str
    source_turn: TurnSource
    label: str
    marked_at: str
    mode: RestoreMode
    restored_at: str
    context_reset: bool
    chain: tuple[Ancestor, ...]
    reason: str
    modes: tuple[ModeChange, ...]
    references: References
    pinned: tuple[PinnedReference, ...]
    included: tuple[Item, ...]
    deferred: tuple[Deferred, ...]
    warnings: tuple[Caution, ...]
    tokens: TokenFigures
    caps: Mapping[str, int]
    windows: Windows
    branch_digest: str
    source_digest: str
    pack: PackFigures | None = None
    seed: Checkpoint | None = None
    drift: tuple[Drift, ...] = ()
    missing: tuple[Missing, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Files whose state at the end of the turn no record shows."""
    placement: Placement | None = None
    branch_bytes: int | None = None
    """The bytes of the branch in its digest; None in records of earlier versions."""
    source_bytes: int | None = None


def line_of(restore: Restore) -> dict[str, Any]:
    """Return the line of a record."""
    return stored.unstructure(restore)


def restore_in(line: object) -> Restore | None:
    """Read a line of `restores.jsonl`, of any semantics; None if it is not a record."""
    return read_or_none(stored, line, Restore)


def restores_in(lines: Iterable[object]) -> tuple[Restore, ...]:
    """Return the records in a file; a duplicate counts once."""
    found: dict[str, Restore] = {}
    for line in lines:
        restore = restore_in(line)
        if restore is not None:
            found.setdefault(restore.operation_id, restore)
    return tuple(found.values())


_CAUTIONS: Mapping[WarningCode, tuple[str, ...]] = {
    "problems_in_source": (
        "1 file of the source could not be read",
        "{n} files of the source could not be read",
    ),
    "rests_on_source": ("The branch needs the session file of its source",),
    "copied_instead": ("The history was copied, not referred to",),
    "earlier_unknown": ("What was read and changed before the source began is not known",),
    "detached_marker": ("The marker's turn has been rolled back since",),
    "pack_empty": ("No line of the pack fits the budget",),
    "pack_truncated": (
        "1 item was left out to stay within the size limit",
        "{n} items were left out to stay within the size limit",
    ),
    "pin_shortened": ("1 pinned item was shortened", "{n} pinned items were shortened"),
    "pin_unread": ("1 pinned item could not be read", "{n} pinned items could not be read"),
    "missing_files": ("1 file is no longer there{which}", "{n} files are no longer there{which}"),
    "drift": (
        "1 file changed since the marker's turn{which}",
        "{n} files changed since the marker's turn{which}",
    ),
    "not_compared": (
        "It is not known whether 1 file changed since the marker's turn{which}",
        "It is not known whether {n} files changed since the marker's turn{which}",
    ),
    "suspect_facts": ("1 fact may be out of date", "{n} facts may be out of date"),
    "weak_hashes": (
        "1 file is compared only by size and time",
        "{n} files are compared only by size and time",
    ),
}
"""The text for one and, if it differs, for several."""

_MOST_NAMES = 5


def headline_of(restore: Restore) -> str:
    """Return a line on the result, for a quiet notification (AGN-67)."""
    name = f"“{restore.label}”" if restore.label else restore.checkpoint_id
    reset = "Context reset." if restore.context_reset else "Context not reset."
    return f"Restored {name}: new branch created. {reset}"


def counted(number: int, what: str) -> str:
    """Return a number of things in words, as `1 note` and `2 notes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def caution_text(caution: Caution, restore: Restore) -> str:
    """Return a warning as a sentence without its full stop; files are named (AGN-63)."""
    texts = _CAUTIONS[caution.code]
    uris = files_of(caution, restore)
    more = f" and {len(uris) - _MOST_NAMES} more" if len(uris) > _MOST_NAMES else ""
    which = f": {', '.join(uris[:_MOST_NAMES])}{more}" if uris else ""
    return texts[0 if caution.count == 1 else -1].format(n=caution.count, which=which)


def files_of(caution: Caution, restore: Restore) -> tuple[str, ...]:
    """Return the files of a warning, if it is about their present state."""
    if caution.code == "not_compared":
        return restore.not_compared
    files = {"drift": restore.drift, "missing_files": restore.missing}.get(caution.code, ())
    return tuple(file.uri for file in files)


def carried_in(restore: Restore) -> str:
    """Return one line about the context of a model, and how many items the budget leaves out.

    The count is the same as in the preview and in the warning (NUM-2): items that never belong in a
    pack, such as finished steps, are not counted.  A soft restore gives the model the conversation;
    all notes are in any branch (AGN-46).
    """
    left = [item for item in restore.deferred if item.reason == "budget"]
    shortened = (Item(each.part, each.id) for each in restore.deferred if each.reason == "bound")
    counts = Counter(map(_word_for, (*restore.included, *shortened)))
    words = [] if restore.context_reset else ["the conversation"]
    words += ["the task"] if counts["the task"] else []
    words += [counted(counts[word], word) for word in _TOLD if counts[word]]
    words += ["a digest"] if counts["a digest"] else []
    text = ", ".join(words) or "nothing"
    text += f"; {counted(len(left), 'item')} left out of the pack" if left else ""
    return f"Carried over: {text}. Your files are not changed."


_TOLD = ("note", "plan step", "file reference", "pin", "command", "message")
_WORDS: Mapping[str, str] = {
    "files": "file reference",
    "pinned": "pin",
    "commands": "command",
    "window": "message",
    "digest": "a digest",
}


def _word_for(item: Item) -> str:
    """Return the noun for an item, empty for one that no sentence counts."""
    if item.part != "notes":
        return "" if item.id.startswith("reread:") else _WORDS.get(item.part, "")
    step = "plan step" if item.id.startswith("step:") else "note"
    return "the task" if item.id == "task" else step


def difference(before: Checkpoint, after: Checkpoint) -> dict[str, Any]:
    """Return differences in `task`, `plan`, `decisions`, `facts` and `artifacts`, as JSON values.

    A change is `{change, before, after}`.  The changes of a kind are in order: removed and changed
    entries in their old order, then new ones.  `plan_reordered`: steps of both plans have changed
    places.
    """
    old, new = _parts(before), _parts(after)
    found = {kind: tuple(_changes(old[kind], new[kind])) for kind in old}
    steps, later = old["plan"], new["plan"]
    reordered = [key for key in steps if key in later] != [key for key in later if key in steps]
    return found | {"task": next(iter(found["task"]), None), "plan_reordered": reordered}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old != new:
            kind = "added" if old is None else "removed" if new is None else "changed"
            yield {"change": kind, "before": old, "after": new}


def _parts(checkpoint: Checkpoint) -> dict[str, dict[str, Any]]:
    """Return the compared values by name, without places in the session file and views."""
    plan, artifacts = checkpoint.plan, checkpoint.artifacts
    return {
        "task": {} if checkpoint.task is None else {"task": stored.unstructure(checkpoint.task)},
        "plan": {
            step.id: stored.unstructure(step) | {"done": plan.done.get(step.id, False)}
            for step in plan.steps
        },
        "decisions": {each.decision_id: _without(each, "seq") for each in checkpoint.decisions},
        "facts": {
            key: {
                "key": key,
                "value": fact.value,
                "status": status_of(fact, artifacts),
                "evidence": stored.unstructure(fact.evidence),
                "dependsOn": stored.unstructure(fact.depends_on),
            }
            for key, fact in sorted(checkpoint.facts.items())
        },
        "artifacts": {
            uri: _without(artifact, "lastObservedSeq", "seenHash")
            for uri, artifact in sorted(artifacts.items())
        },
    }


def _without(record: object, *names: str) -> dict[str, Any]:
    return {key: part for key, part in stored.unstructure(record).items() if key not in names}
