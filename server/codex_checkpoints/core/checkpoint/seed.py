"""What a session goes on from, where an operation of ours made it with a checkpoint (JUN-46).

A compaction into a new session and a hard restore put a replacement in the place of all older
records, so nothing in the new file tells what was known.  The operation's record does: it holds the
checkpoint that the session began with, its *seed*.  The session's own records and updates change
it, and its `seq` goes on behind the seed's, so that ages stay comparable.

Which session has which seed is known to those who keep the records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from codex_checkpoints.core.checkpoint.observations import Met
from codex_checkpoints.core.checkpoint.records import Artifact, Checkpoint, Evidence
from codex_checkpoints.core.checkpoint.state import State

Seeds = Callable[[str], Checkpoint | None]
"""From the id of a session that we made to what it began with."""

_ENCODED_CONTROL = "%(?:[01][0-9A-F]|7F|C2%[89][0-9A-F]|E2%80%A[89A-E]|E2%81%A[6-9])"
"""Compiled with the first seed: few sessions have one."""


def unsown(_session_id: str) -> Checkpoint | None:
    """Return that a session began with nothing."""
    return None


def sow(state: State, seed: Checkpoint) -> None:
    """Let a state that has read nothing yet begin with a checkpoint."""
    state.seed = seed
    state.observations.artifacts = {uri: _met(artifact) for uri, artifact in seed.artifacts.items()}


def shift_of(state: State, *, ordinals: bool) -> int:
    """Return how far the `seq` of a session lies behind that of its own lines.

    Its first line follows the seed: lines are counted from 1, ordinals from 0.
    """
    return 0 if state.seed is None else state.seed.seq + ordinals


def user_refs(seed: Checkpoint) -> frozenset[str]:
    """Return the messages that a seed names: they stay citable."""
    return frozenset(each.ref for each in _named(seed) if each.source == "user")


def call_ids(seed: Checkpoint) -> frozenset[str]:
    """Return the calls that a seed names: they stay citable."""
    outputs = (uri for uri, each in seed.artifacts.items() if each.kind == "tool_output")
    cited = (each.ref for each in _named(seed) if each.source == "tool_output")
    return frozenset({*cited, *(uri.partition("/")[2] for uri in outputs)})


def _named(seed: Checkpoint) -> Iterator[Evidence]:
    if seed.task is not None:
        yield seed.task.evidence
    if seed.plan.evidence is not None:
        yield seed.plan.evidence
    yield from (each.evidence for each in seed.decisions)
    yield from (each.evidence for each in seed.facts.values())


def _met(artifact: Artifact) -> Met:
    """Return an artifact as it is observed; the hash of a file is that of now, not of then."""
    if artifact.kind != "file":
        return Met(artifact.kind, artifact.last_observed_seq, artifact.hash)
    # A name that was changed on the way never had a hash, and no file has it.
    opaque = artifact.hash is None and re.search(_ENCODED_CONTROL, artifact.uri) is not None
    return Met("file", artifact.last_observed_seq, None, opaque)
