"""The words for people about restores: a summary and warnings; and differences of checkpoints.

They do not promise that a model thinks as before, or keeps what was not recorded (AGN-22, AGN-26).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint, status_of
from codex_checkpoints.core.restore.records import Caution, Restore, WarningCode
from codex_checkpoints.values import frozen


@frozen
class Summary:
    """One quiet notification: what happened, and one line about what the branch has (AGN-67)."""

    headline: str
    carried: str


_CAUTIONS: Mapping[WarningCode, tuple[str, ...]] = {
    "problems_in_source": (
        "1 file of the source could not be read",
        "{n} files of the source could not be read",
    ),
    "rests_on_source": ("The branch cannot be opened without the file of its source",),
    "copied_instead": ("The history was copied, since it could not be referred to",),
    "earlier_unknown": ("What was read and changed before the source began is not known",),
    "detached_marker": ("The turn of the marker was rolled back since",),
    "pack_empty": ("The budget holds no line of the pack",),
    "pack_truncated": (
        "1 item was left out to stay within the budget",
        "{n} items were left out to stay within the budget",
    ),
    "pin_shortened": ("1 pinned item was shortened", "{n} pinned items were shortened"),
    "pin_unread": ("1 pinned item could not be read", "{n} pinned items could not be read"),
    "missing_files": ("1 file is no longer there{which}", "{n} files are no longer there{which}"),
    "drift": (
        "1 file changed since the marker's turn{which}",
        "{n} files changed since the marker's turn{which}",
    ),
    "suspect_facts": ("1 fact may be out of date", "{n} facts may be out of date"),
    "weak_hashes": (
        "1 file is compared by size and time alone",
        "{n} files are compared by size and time alone",
    ),
}
"""For one, and for several where that differs."""

_MOST_NAMES = 5


def summary_of(restore: Restore) -> Summary:
    """Return the notification about a restore."""
    name = f"“{restore.label}”" if restore.label else restore.checkpoint_id
    reset = "Context reset." if restore.context_reset else "Context not reset."
    return Summary(
        f"Restored {name}: new branch created. {reset}",
        f"Carried over: {_transferred(restore)}. Your files are not changed.",
    )


def counted(number: int, what: str) -> str:
    """Return a number of things in words, as `1 note` and `2 notes`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def caution_text(caution: Caution, restore: Restore) -> str:
    """Return a warning as a sentence without its full stop; files are named (AGN-63)."""
    texts = _CAUTIONS[caution.code]
    which = _named(files_of(caution, restore))
    return texts[0 if caution.count == 1 else -1].format(n=caution.count, which=which)


def files_of(caution: Caution, restore: Restore) -> tuple[str, ...]:
    """Return the files that a warning is about, where it is about changed or missing ones."""
    files = {"drift": restore.drift, "missing_files": restore.missing}.get(caution.code, ())
    return tuple(file.uri for file in files)


def _named(uris: Sequence[str]) -> str:
    """Return the first names of a list, behind a colon."""
    more = f" and {len(uris) - _MOST_NAMES} more" if len(uris) > _MOST_NAMES else ""
    return f": {', '.join(uris[:_MOST_NAMES])}{more}" if uris else ""


def _transferred(restore: Restore) -> str:
    """Return the counts of what the branch has, and of what the pack does not show.

    The branch has all notes, whatever the pack shows (AGN-46).
    """
    left = [item for item in restore.deferred if item.reason in {"budget", "filtered", "evicted"}]
    here = (item for item in restore.deferred if item.reason != "evicted")
    noted = [item.id for item in (*restore.included, *here) if item.part == "notes"]
    steps = sum(each.startswith("step:") for each in noted)
    tasks = noted.count("task")
    counts = (
        (len(noted) - steps - tasks, "note"),
        (steps, "plan step"),
        (len(restore.references.files), "file reference"),
        (len(restore.pinned), "pin"),
    )
    words = ["the task"] if tasks else []
    words += [counted(many, what) for many, what in counts if many]
    text = ", ".join(words) or "nothing"
    return f"{text}; {counted(len(left), 'item')} not in the pack" if left else text


def difference(before: Checkpoint, after: Checkpoint) -> dict[str, Any]:
    """Return what differs in `task`, `plan`, `decisions`, `facts` and `artifacts`, as JSON values.

    A change is `{change, before, after}`.  Those of a kind are in order: removed and changed ones
    as they stood, then new ones.  `plan_reordered`: steps that both plans have changed places.
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
    """Return what is compared, each by its name: no places in the session file, nothing seen."""
    plan, artifacts = checkpoint.plan, checkpoint.artifacts
    return {
        "task": {} if checkpoint.task is None else {"task": kept.write(checkpoint.task)},
        "plan": {
            step.id: kept.write(step) | {"done": plan.done.get(step.id, False)}
            for step in plan.steps
        },
        "decisions": {each.decision_id: _without(each, "seq") for each in checkpoint.decisions},
        "facts": {
            key: {
                "key": key,
                "value": fact.value,
                "status": status_of(fact, artifacts),
                "evidence": kept.write(fact.evidence),
                "dependsOn": kept.write(fact.depends_on),
            }
            for key, fact in sorted(checkpoint.facts.items())
        },
        "artifacts": {
            uri: _without(artifact, "lastObservedSeq", "seenHash")
            for uri, artifact in sorted(artifacts.items())
        },
    }


def _without(record: object, *names: str) -> dict[str, Any]:
    return {key: part for key, part in kept.write(record).items() if key not in names}
