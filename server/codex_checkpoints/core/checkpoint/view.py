"""Renders a checkpoint as `view_v1`, the text that a model reads (DSC-42 to DSC-52, DSC-74).

The functions for the lines of single records are public: a state pack uses them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codex_checkpoints.core.checkpoint.records import (
    MAX_VALUE_CHARS,
    Artifact,
    Caps,
    Checkpoint,
    Decision,
    Evidence,
    Fact,
    Step,
    failing_dependency,
)
from codex_checkpoints.core.checkpoint.redaction import cut, one_line

TITLE = "[SESSION_CHECKPOINT v1]"

_DIGITS = 12
_ARTIFACT_LABELS = {"file": "file: ", "command": "cmd:  ", "tool_output": "tool: "}


def view_v1(checkpoint: Checkpoint, caps: Caps) -> str:
    """Return the view: seven headings in fixed order, one line a record, one LF at the end."""
    suspect, valid = _facts(checkpoint, caps)
    task = checkpoint.task
    sections = (
        ("[TASK]", [] if task is None else [f"- {_value(task.text, caps)}"]),
        ("[PLAN]", _plan(checkpoint, caps)),
        ("[RECENT_ARTIFACTS]", _recent(checkpoint, caps)),
        ("[DECISIONS]", _decisions(checkpoint, caps)),
        ("[FACTS_VALID]", valid[: caps.max_facts_valid]),
        ("[FACTS_SUSPECT]", suspect[: caps.max_facts_suspect]),
    )
    lines = [TITLE]
    for heading, records in sections:
        lines += ["", heading, *records]
    return "\n".join(lines) + "\n"


def _value(text: str, caps: Caps) -> str:
    # A shown value has at most 160 code points, regardless of the caps.
    return cut(one_line(text), min(caps.max_value_chars, MAX_VALUE_CHARS))


def _source(evidence: Evidence) -> str:
    return f"{evidence.source}:{one_line(evidence.ref)}"


def step_line(step: Step, mark: str, caps: Caps) -> str:
    """Return the line of a step of the plan; `mark` is `x` when it is done (DSC-46)."""
    return f"- [{mark}] {_value(step.text, caps)} (id={one_line(step.id)})"


def _plan(checkpoint: Checkpoint, caps: Caps) -> list[str]:
    plan = checkpoint.plan
    still_open = [step for step in plan.steps if not plan.done.get(step.id, False)]
    done = [step for step in plan.steps if plan.done.get(step.id, False)]
    # The first open steps are next, the last done ones are the newest (DSC-46).
    kept_open = still_open[: caps.max_open_plan_steps]
    kept_done = done[len(done) - min(caps.max_done_plan_steps, len(done)) :]
    return [
        *(step_line(step, " ", caps) for step in kept_open),
        *(step_line(step, "x", caps) for step in kept_done),
    ]


def _recent(checkpoint: Checkpoint, caps: Caps) -> list[str]:
    recent = checkpoint.recent_artifacts[: caps.max_recent_artifacts]
    known = (checkpoint.artifacts.get(uri) for uri in recent)
    return [_artifact(artifact, caps) for artifact in known if artifact is not None]


def _artifact(artifact: Artifact, caps: Caps) -> str:
    # A command is cut like a value; the uri of a file or a tool is never cut.
    is_value = artifact.kind == "command"
    uri = _value(artifact.uri, caps) if is_value else one_line(artifact.uri)
    known = [] if artifact.hash is None else [f"hash={short_hash(artifact.hash)}"]
    known += ["changed"] if artifact.is_changed else []
    behind = f" ({' '.join(known)})" if known else ""
    return f"- {_ARTIFACT_LABELS[artifact.kind]}{uri}{behind}"


def short_hash(known: str) -> str:
    """Return the kind of a hash and its first digits; size and time stay whole."""
    kind, separator, digits = one_line(known).partition(":")
    return f"{kind}{separator}{digits if kind == 'stat' else digits[:_DIGITS]}"


def _decisions(checkpoint: Checkpoint, caps: Caps) -> list[str]:
    current = standing_decisions(checkpoint.decisions)
    shown = current[len(current) - min(caps.max_decisions, len(current)) :]
    return [decision_line(decision, caps) for decision in shown]


def standing_decisions(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions without those that a later one supersedes (DSC-48)."""
    superseded: set[str] = set()
    standing: list[Decision] = []
    for decision in reversed(tuple(decisions)):
        if decision.decision_id not in superseded:
            standing.append(decision)
        if decision.supersedes is not None:
            superseded.add(decision.supersedes)
    return standing[::-1]


def decision_line(decision: Decision, caps: Caps) -> str:
    """Return the line of a decision with its reason (DSC-48)."""
    replaced = decision.supersedes
    supersedes = "" if replaced is None else f" supersedes={one_line(replaced)}"
    return (
        f"- {_value(decision.decision, caps)} — {_value(decision.rationale, caps)}"
        f" (id={one_line(decision.decision_id)}{supersedes} evidence={_source(decision.evidence)})"
    )


def _facts(checkpoint: Checkpoint, caps: Caps) -> tuple[list[str], list[str]]:
    """Return the lines of the suspect and of the valid facts, each by key (DSC-49, DSC-50)."""
    suspect: list[str] = []
    valid: list[str] = []
    for key in sorted(checkpoint.facts):
        fact = checkpoint.facts[key]
        stands = failing_dependency(fact, checkpoint.artifacts) is None
        line = fact_line(key, fact, checkpoint.artifacts, caps)
        (valid if stands else suspect).append(line)
    return suspect, valid


def fact_line(key: str, fact: Fact, artifacts: Mapping[str, Artifact], caps: Caps) -> str:
    """Return the line of a fact, with its evidence or the reason for SUSPECT (DSC-49, DSC-50)."""
    line = f"- {one_line(key)}: {_value(fact.value, caps)}"
    failing = failing_dependency(fact, artifacts)
    if failing is not None:
        return f"{line} (why=SUSPECT dep={one_line(failing.uri)})"
    return f"{line} (evidence={_source(fact.evidence)} deps={len(fact.depends_on)})"
