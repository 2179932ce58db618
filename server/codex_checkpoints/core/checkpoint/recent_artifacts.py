"""Describes the recent artifacts of a checkpoint for a person, and the origin of its plan."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from attrs import frozen

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import Artifact, ArtifactKind, Checkpoint
from codex_checkpoints.core.checkpoint.state import OUTSIDE, Hashes, State


@frozen
class RecentArtifact:
    """A recent artifact; `words` describe its state, empty if it needs no remark.

    `state` is null for a file that is unchanged since the session saw it, and for a command that
    did not fail. `seen` says when the session last saw a file, as `turn 4`.
    """

    uri: str
    kind: ArtifactKind
    state: Literal["changed", "gone", "failed"] | None
    words: str
    seen: str


_ORDER: Final[Mapping[ArtifactKind, int]] = {"file": 0, "command": 1, "tool_output": 2}


def recent_artifacts(
    checkpoint: Checkpoint, state: State, now: Hashes
) -> tuple[RecentArtifact, ...]:
    """Return files, then commands, then tool outputs, each newest first.

    Files outside the session's folder come after those in it. `now` has the current hashes of
    files, None for a missing one.
    """
    known = (checkpoint.artifacts.get(uri) for uri in checkpoint.recent_artifacts)
    recent = [artifact for artifact in known if artifact is not None]
    recent.sort(key=lambda each: (_ORDER[each.kind], _is_outside(each)))
    files = state.observations.files()
    edited = {uri for uri, each in files.items() if 0 <= each.edited <= checkpoint.seq}
    opened = _opened(state)
    return tuple(
        _file(each, bisect_right(opened, each.last_observed_seq), now, is_edited=each.uri in edited)
        if each.kind == "file"
        else _call(each, state)
        for each in recent
    )


def _is_outside(artifact: Artifact) -> bool:
    return artifact.kind == "file" and OUTSIDE.match(artifact.uri) is not None


def _file(artifact: Artifact, turn: int, now: Hashes, *, is_edited: bool) -> RecentArtifact:
    uri = artifact.uri
    seen = f"turn {turn}" if turn else "when Codex saw it"
    if now.get(uri, "") is None:
        return RecentArtifact(uri, "file", "gone", "no longer there", seen)
    if artifact.is_changed:
        since = seen if turn else "Codex saw it"
        return RecentArtifact(uri, "file", "changed", f"changed since {since}", seen)
    # Without the hash of the seen content this is unknown.
    is_same = is_edited and artifact.seen_hash is not None
    return RecentArtifact(uri, "file", None, "as the session left it" if is_same else "", seen)


def _call(artifact: Artifact, state: State) -> RecentArtifact:
    """Return a command or a tool output; a later run does not change an earlier one."""
    observed = state.observations.artifacts.get(artifact.uri)
    is_it = observed is not None and observed.seq == artifact.last_observed_seq
    failed = observed.failed if observed is not None and is_it else None
    how = None if failed is None else "failed"
    return RecentArtifact(artifact.uri, artifact.kind, how, failed or "", "")


def plan_origin(checkpoint: Checkpoint, state: State, updates: Iterable[Update]) -> str:
    """Return the turn of a plan older than the newest turn, as `from turn 9`; else nothing."""
    if not checkpoint.plan.steps:
        return ""
    planned = [seq for seq in _planned(state, updates) if seq <= checkpoint.seq]
    if not planned:
        is_first = state.seed is None and state.recovered is None
        return "" if is_first else "from before this session"
    opened = [seq for seq in _opened(state) if seq <= checkpoint.seq]
    turn = bisect_right(opened, max(planned))
    return f"from turn {turn}" if 0 < turn < len(opened) else ""


def _planned(state: State, updates: Iterable[Update]) -> Iterator[int]:
    """Yield the `seq` of each plan that counts."""
    turns = [turn.planned for turn in state.turns.counting()]
    yield from (planned.seq for planned in (*turns, state.planned) if planned is not None)
    for update in updates:
        is_plan = update.payload is not None and update.payload.get("kind") == "plan"
        if is_plan and state.turns.counts(update.turn_id):
            yield update.seq


def _opened(state: State) -> list[int]:
    """Return the `seq` of the record that opened each turn."""
    return [turn.opened_seq for turn in state.turns.counting()]
