"""Defines the records of a checkpoint (DSC-14 to DSC-20), its canonical bytes and bounds.

Equal checkpoints have equal bytes on every system: key order, escaping and the final LF are fixed.
`from_bytes` refuses everything it does not know: a file of another version is derived again
(DSC-58).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, NoneType
from typing import Any, Literal, get_args

import orjson
from attrs import asdict, evolve, field, fields, frozen, has, resolve_types
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from codex_checkpoints.core.converters import (
    MISFITS,
    Record,
    camel,
    json_converter,
    json_names,
    renamed,
    states,
    stored,
)
from codex_checkpoints.core.fields import is_object

ArtifactKind = Literal["file", "tool_output", "command"]
EvidenceSource = Literal["user", "file", "tool_output"]
FactStatus = Literal["VALID", "SUSPECT"]

UNKNOWN_HASH = "unknown:"
"""The hash of a file that the host cannot read; it equals no hash, not even another `unknown:`."""

IMPORTED = "imported"
"""The first dependency of a fact from a pack, as shown in the view: it was not observed here."""

FOLDER = "folder:"
"""Marks a folder in the host's results for uris; no artifact has it as its hash."""

NOTHING: Mapping[str, bool] = MappingProxyType({})


@frozen
class Evidence:
    """The basis of a note; `source` is `user`, `file` or `tool_output`."""

    source: EvidenceSource
    ref: str
    hash: str | None = None


@frozen
class Task:
    """The last request of the user (DSC-29)."""

    text: str
    evidence: Evidence


@frozen
class Step:
    """One step of the plan."""

    id: str
    text: str


@frozen
class Plan:
    """The plan in its own order; `done` has an entry for each step (DSC-19, DSC-76)."""

    steps: tuple[Step, ...] = ()
    done: Mapping[str, bool] = NOTHING
    evidence: Evidence | None = None


@frozen
class Decision:
    """A decision with its reason, accepted after the record `seq` (DSC-18)."""

    decision_id: str
    topic: str | None
    decision: str
    rationale: str
    supersedes: str | None
    evidence: Evidence
    seq: int


@frozen
class Artifact:
    """A file, command or tool output of the session; `hash` is the current one (DSC-15).

    `seen_hash` is the hash of the content at the last observation, where it is known and the host
    can look now (rules, "Seen hashes").
    """

    uri: str
    kind: ArtifactKind
    hash: str | None
    seen_hash: str | None = field(default=None, kw_only=True)
    last_observed_seq: int

    @property
    def is_changed(self) -> bool:
        """Return whether the file differs from the version that the session saw, or is gone."""
        return self.seen_hash is not None and self.seen_hash != self.hash


@frozen
class Dependency:
    """An artifact that a fact rests on, with its hash when the fact was accepted."""

    uri: str
    hash: str | None = None


@frozen
class Fact:
    """A fact with its basis; its status is derived, never stored (DSC-37)."""

    value: str
    evidence: Evidence
    depends_on: tuple[Dependency, ...]
    last_touched_seq: int


@frozen
class Checkpoint:
    """The state of a session after the record `seq` (DSC-20)."""

    seq: int
    task: Task | None
    plan: Plan
    decisions: tuple[Decision, ...]
    artifacts: Mapping[str, Artifact]
    facts: Mapping[str, Fact]
    recent_artifacts: tuple[str, ...]


def evidence_in(checkpoint: Checkpoint) -> Iterator[Evidence]:
    """Yield the evidence of task, plan, decisions and facts."""
    if checkpoint.task is not None:
        yield checkpoint.task.evidence
    if checkpoint.plan.evidence is not None:
        yield checkpoint.plan.evidence
    yield from (each.evidence for each in checkpoint.decisions)
    yield from (each.evidence for each in checkpoint.facts.values())


def resting_on_evidence(fact: Fact) -> Fact:
    """Return a fact with its evidence file among its dependencies, in front (TRU-1)."""
    evidence = fact.evidence
    if evidence.source != "file" or any(each.uri == evidence.ref for each in fact.depends_on):
        return fact
    own = Dependency(evidence.ref, evidence.hash or UNKNOWN_HASH)
    return evolve(fact, depends_on=(own, *fact.depends_on))


def holds(dependency: Dependency, artifacts: Mapping[str, Artifact]) -> bool:
    """Return whether a dependency is unchanged (DSC-38).

    Its artifact must have a known hash, equal to the accepted one if there is one.  Hashes of
    different strategies have different prefixes, so they are never equal (DSC-71).
    """
    artifact = artifacts.get(dependency.uri)
    if artifact is None or artifact.hash in {None, UNKNOWN_HASH}:
        return False
    return dependency.hash is None or dependency.hash == artifact.hash


def failing_dependency(fact: Fact, artifacts: Mapping[str, Artifact]) -> Dependency | None:
    """Return the first dependency of the fact that does not hold (DSC-50)."""
    return next((each for each in fact.depends_on if not holds(each, artifacts)), None)


def status_of(fact: Fact, artifacts: Mapping[str, Artifact]) -> FactStatus:
    """Return the status of a fact with these artifacts (DSC-38, DSC-39)."""
    return "VALID" if failing_dependency(fact, artifacts) is None else "SUSPECT"


MAX_VALUE_CHARS = 160
"""Maximum code points of a stored or shown value (DSC-23)."""

MAX_URI_CHARS = 1024
"""Maximum code points of a uri; a longer one is not recorded, but counted."""

RETAINED_TOKENS = 20_000
"""The default budget for the user's messages in a compaction, as in Codex (JUN-13)."""

IGNORED = (".env*", "*.pem", "*.key", "id_*")
"""The default of `digestIgnore`: names of files that are never quoted."""

DEFAULT_BUDGET = 8000
"""The default of `restoreBudgetTokens`: tokens of a state pack."""


class BadCaps(ValueError):
    """A cap that is unknown, too small or not a whole number; the text names it."""


@frozen
class Limits:
    """The bounds of a checkpoint (DSC-23, DSC-28)."""

    max_facts_total: int = 64
    max_decisions_total: int = 32
    max_plan_steps_total: int = 32
    max_recent_artifacts: int = 16
    max_artifacts_total: int = 256
    max_uri_bytes_total: int = 131_072
    max_value_chars: int = MAX_VALUE_CHARS


@frozen
class Caps:
    """The caps a view was made with."""

    max_open_plan_steps: int = 12
    max_done_plan_steps: int = 5
    max_decisions: int = 12
    max_facts_valid: int = 32
    max_facts_suspect: int = 12
    max_recent_artifacts: int = 16
    max_value_chars: int = MAX_VALUE_CHARS

    def __attrs_post_init__(self) -> None:
        for name, value in asdict(self, recurse=False).items():
            least = 1 if name == "max_value_chars" else 0
            if type(value) is not int or value < least:
                message = f"{camel(name)} must be a whole number of at least {least}"
                raise BadCaps(message)

    def replaced(self, chosen: Mapping[str, object]) -> Caps:
        """Return these caps with those in `chosen`, named as in JSON; raises `BadCaps`."""
        names = {camel(field.name): field.name for field in fields(Caps)}
        unknown = sorted(set(chosen) - set(names))
        if unknown:
            message = f"unknown cap {unknown[0]!r}; known are {', '.join(names)}"
            raise BadCaps(message)
        return evolve(self, **{names[name]: value for name, value in chosen.items()})

    def as_json(self) -> dict[str, int]:
        """Return the caps under their JSON names."""
        return {camel(field.name): getattr(self, field.name) for field in fields(Caps)}


SCHEMA_VERSION = 1

_UNKNOWN = f"not a checkpoint of version {SCHEMA_VERSION}"


def _structure_hook(kind: Record, converter: Converter) -> Callable[[object, object], Any]:
    """Return the hook of a record, which refuses unknown keys; a key may be absent for None."""
    read = make_dict_structure_fn(kind, converter, **renamed(kind))
    resolve_types(kind)
    optional = (field.name for field in fields(kind) if NoneType in get_args(field.type))
    absent = dict.fromkeys(map(camel, optional))
    known = set(json_names(kind))

    def structure(value: object, _kind: object) -> Any:  # noqa: ANN401 - a record
        if not is_object(value) or (whole := {**absent, **value}).keys() != known:
            raise ValueError("a key is missing or unknown")
        return read(whole, kind)

    return structure


def _unstructure_hook(kind: Record, converter: Converter) -> Callable[[Any], dict[str, Any]]:
    """Return the hook of a record, which leaves out keys without a value."""
    write = make_dict_unstructure_fn(kind, converter, **renamed(kind))
    return lambda record: {key: part for key, part in write(record).items() if part is not None}


_converter = json_converter()
"""For checkpoint_v1.json: a key without a value is absent; only `task` is always present."""
_converter.register_structure_hook_factory(has, _structure_hook)
_converter.register_unstructure_hook_factory(has, _unstructure_hook)


class BadCheckpoint(ValueError):
    """Bytes that are not a checkpoint of this version."""


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the checkpoint as one line of JSON with its LF."""
    return orjson.dumps(to_json(checkpoint)) + b"\n"


def to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint as JSON values, with keys in their order on disk (DSC-20)."""
    plan, facts, artifacts = checkpoint.plan, checkpoint.facts, checkpoint.artifacts
    return {
        "schemaVersion": SCHEMA_VERSION,
        "seq": checkpoint.seq,
        "task": _converter.unstructure(checkpoint.task),
        "plan": _converter.unstructure(
            evolve(plan, done={step.id: plan.done.get(step.id, False) for step in plan.steps})
        ),
        "decisions": _converter.unstructure(checkpoint.decisions),
        "artifacts": {uri: _converter.unstructure(artifacts[uri]) for uri in sorted(artifacts)},
        "facts": {key: _fact(facts[key], artifacts) for key in sorted(facts)},
        "recentArtifacts": list(checkpoint.recent_artifacts),
    }


def from_bytes(data: bytes) -> Checkpoint:
    """Read a checkpoint; raises `BadCheckpoint`."""
    try:
        return from_json(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise BadCheckpoint(_UNKNOWN) from error


def from_json(value: object) -> Checkpoint:
    """Read a checkpoint from JSON values; raises `BadCheckpoint`.

    The status of a fact must be a known one, and is then dropped: it is derived (DSC-37).
    """
    if not is_object(value) or not _is_known(value.get("schemaVersion")) or "task" not in value:
        raise BadCheckpoint(_UNKNOWN)
    facts = value.get("facts")
    if is_object(facts):
        facts = {key: _without_status(fact) for key, fact in facts.items()}
    rest = {key: each for key, each in value.items() if key != "schemaVersion"}
    try:
        checkpoint = _converter.structure({**rest, "facts": facts}, Checkpoint)
    except MISFITS as misfit:
        raise BadCheckpoint(_UNKNOWN) from misfit
    for uri, artifact in checkpoint.artifacts.items():
        if artifact.uri != uri:
            raise BadCheckpoint("an artifact has another name as its key")
    return checkpoint


def _is_known(version: object) -> bool:
    return type(version) is int and version == SCHEMA_VERSION


def _fact(fact: Fact, artifacts: Mapping[str, Artifact]) -> dict[str, Any]:
    """Return a fact with its status before the last key."""
    written = _converter.unstructure(fact)
    last = written.popitem()
    return dict([*written.items(), ("status", status_of(fact, artifacts)), last])


def _without_status(fact: object) -> object:
    if not is_object(fact) or fact.get("status") not in get_args(FactStatus):
        raise BadCheckpoint(_UNKNOWN)
    return {key: each for key, each in fact.items() if key != "status"}


def register_checkpoint(converter: Converter) -> None:
    """Let a converter read and write checkpoints as `checkpoint_v1.json` has them."""
    converter.register_structure_hook(Checkpoint, lambda value, _kind: from_json(value))
    converter.register_unstructure_hook(Checkpoint, to_json)


register_checkpoint(stored)
register_checkpoint(states)
