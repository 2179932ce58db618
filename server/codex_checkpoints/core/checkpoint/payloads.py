"""What a `memory.apply` payload looks like: a record for each of the three kinds (DSC-33).

The records are the one source (rules, "`memory.apply` payloads"): `read` takes JSON values by
them and lists everything that does not fit, `schema` publishes them.  None of them has a place
for a task, an artifact, a status or an instruction (DSC-12, DSC-37, DSC-61, DSC-62).  Whether a
payload may be accepted is left to `claims.py`.

Unknown keys, missing keys, `null` and texts that say nothing do not fit.  A missing `evidence`
does: it has a refusal of its own (DSC-34).
"""

import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import attrs
from attrs import field

from codex_checkpoints.core.checkpoint.records import NOTHING, EvidenceSource
from codex_checkpoints.core.checkpoint.text import one_line, value
from codex_checkpoints.core.codec import Codec, Form, Misfit, Problem, camel
from codex_checkpoints.core.rollout.fields import CONTROLS, is_object
from codex_checkpoints.values import frozen

MAX_DEPENDENCIES = 16
"""More are refused with `limit_exceeded`, so not here."""

MAX_NAME = 128
"""Characters of a fact key, a decision id and a step id."""

_LISTED = 32
"""How many problems are listed one by one."""

_SHOWN = 40
"""How much of an unknown key is said back."""

Name = Annotated[str, "name"]
"""1 to `MAX_NAME` letters, digits or `. _ - / :`, in NFC."""

Text = Annotated[str, "text"]
"""A text that says something."""


def _is(doc: str) -> dict[str, str]:
    """Describe a field in words, for the schema."""
    return {"doc": doc}


@frozen(kw_only=True)
class EvidenceClaim:
    """The message, file or tool call that a payload rests on, as its writer names it (DSC-16)."""

    source: EvidenceSource = field(metadata=_is("where it comes from"))
    ref: str = field(
        metadata=_is(
            "user: the id of a user message, or `task` for the one that set the task; file: the uri"
            " of an observed file; tool_output: the id of a tool call (memory.read lists them)"
        )
    )
    hash: str | None = field(
        default=None, metadata=_is("only compared with the hash that the host sees; leave it out")
    )


NO_EVIDENCE = EvidenceClaim(source="user", ref="")
"""What stands where a payload names none; told by identity."""


@frozen(kw_only=True)
class DependencyClaim:
    """One artifact that a fact stands and falls with."""

    uri: str = field(metadata=_is("the uri of an observed file, tool output or command"))
    hash: str | None = field(
        default=None, metadata=_is("only compared with the hash that the host sees; leave it out")
    )


_EVIDENCE = _is("what the payload rests on; it must exist in this session")


@frozen(kw_only=True)
class FactClaim:
    """A fact about the project."""

    kind: Literal["fact"]
    key: Name = field(metadata=_is("the name of the fact; a known one is replaced"))
    value: Text = field(metadata=_is("the fact, said of the project, in one line"))
    evidence: EvidenceClaim = field(default=NO_EVIDENCE, metadata=_EVIDENCE)
    depends_on: tuple[DependencyClaim, ...] = field(
        default=(),
        metadata=_is(
            "the artifacts that the fact stands and falls with: when one of them changes, the fact"
            " turns SUSPECT; 1 to 16 for evidence file or tool_output, may be left out for user"
        ),
    )


@frozen(kw_only=True)
class DecisionClaim:
    """A decision with its reason."""

    kind: Literal["decision"]
    decision_id: Name = field(metadata=_is("the name of the decision, used once"))
    topic: Text | None = field(default=None, metadata=_is("what it is about"))
    decision: Text = field(metadata=_is("what was decided"))
    rationale: Text = field(metadata=_is("why"))
    supersedes: str | None = field(
        default=None, metadata=_is("the decisionId of the decision that this one replaces")
    )
    evidence: EvidenceClaim = field(default=NO_EVIDENCE, metadata=_EVIDENCE)


@frozen(kw_only=True)
class StepClaim:
    """One step of a plan."""

    id: Name = field(metadata=_is("the name of the step within the plan"))
    text: Text = field(metadata=_is("what is to be done"))


@frozen(kw_only=True)
class PlanClaim:
    """A whole plan; it replaces the one before."""

    kind: Literal["plan"]
    steps: tuple[StepClaim, ...] = field(metadata=_is("the steps in order"))
    done: Mapping[str, bool] = field(
        default=NOTHING, metadata=_is("step id to whether it is done; others are open")
    )
    evidence: EvidenceClaim = field(default=NO_EVIDENCE, metadata=_EVIDENCE)


Claim = FactClaim | DecisionClaim | PlanClaim

KINDS: Mapping[str, type[FactClaim | DecisionClaim | PlanClaim]] = MappingProxyType(
    {"fact": FactClaim, "decision": DecisionClaim, "plan": PlanClaim}
)


def read(asked: Mapping[str, object]) -> Claim | list[str]:
    """Take a JSON object as a payload, or return everything about it that does not fit."""
    kind = asked.get("kind")
    record = KINDS.get(kind) if isinstance(kind, str) else None
    if record is None:
        return [f"kind: must be one of {', '.join(KINDS)}"]
    try:
        return _codec.read(asked, record)
    except Misfit as misfit:
        found = [text for problem in misfit.problems for text in _texts(problem)]
    more = len(found) - _LISTED
    return found[:_LISTED] + [f"and {more} more"] * (more > 0)


def _texts(problem: Problem) -> Iterator[str]:
    """Yield a problem in words; unknown keys one by one."""
    at = problem.at.removeprefix(".")
    if problem.what == "missing":
        yield f"{at}: missing"
    elif problem.what == "unknown":
        prefix = f"{at}." if at else ""
        yield from (f"{prefix}{value(key, _SHOWN)}: unknown key" for key in problem.keys)
    else:
        yield f"{at}: {_must(problem.kind, problem.why)}"


def _must(kind: object, why: str) -> str:
    if get_origin(kind) in {Union, UnionType}:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        return "must be a list"
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(get_args(kind))}"
    if isinstance(kind, type) and attrs.has(kind):
        return "must be an object"
    return why or "must be a text"


def _name(asked: object) -> str:
    if not isinstance(asked, str):
        raise TypeError("must be a text")
    if not (
        1 <= len(asked) <= MAX_NAME
        and unicodedata.is_normalized("NFC", asked)
        and all(each in "._-/:" or unicodedata.category(each)[0] in "LN" for each in asked)
    ):
        raise ValueError(f"must be 1 to {MAX_NAME} letters, digits or . _ - / : in NFC")
    return asked


def _text(asked: object) -> str:
    if not isinstance(asked, str):
        raise TypeError("must be a text")
    if not one_line(asked):
        raise ValueError("says nothing")
    return asked


def _flags(asked: object) -> Mapping[str, bool]:
    if not is_object(asked) or any(type(flag) is not bool for flag in asked.values()):
        raise TypeError("must be an object of true and false")
    return cast("Mapping[str, bool]", asked)


def _same(known: object) -> object:
    return known


_codec = Codec(
    closed=True,
    null=False,
    keys_first=True,
    own={
        Name: Form(_same, _name),
        Text: Form(_same, _text),
        Mapping[str, bool]: Form(_same, _flags),
    },
)


_FORMS: Mapping[object, Mapping[str, object]] = {
    str: {},
    Name: {"minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[\p{L}\p{N}._/:-]+$"},
    Text: {"pattern": rf"[^\s{CONTROLS}]"},
}


def schema() -> dict[str, object]:
    """Return the schema of all three kinds as one object, as clients of MCP want it.

    Model services refuse `oneOf` at the top of a tool's input, and Codex passes on only what it
    knows.  So the properties of all kinds stand together, and what one kind must and may have is
    said by `if`, which may be dropped.
    """
    properties: dict[str, object] = {}
    rest: dict[str, object] = {}
    for kind in reversed(list(KINDS)):
        own = _properties(KINDS[kind])
        properties = own | properties
        branch: dict[str, object] = {
            "required": _required(KINDS[kind]),
            "propertyNames": {"enum": list(own)},
        }
        this: dict[str, object] = {"properties": {"kind": {"const": kind}}}
        rest = {"if": this, "then": branch, "else": rest} if rest else branch
    properties["kind"] = {"type": "string", "enum": list(KINDS)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memory.apply",
        "type": "object",
        "properties": properties,
        "required": ["kind", "evidence"],
        "additionalProperties": False,
        **rest,
    }


def _properties(record: type[attrs.AttrsInstance]) -> dict[str, object]:
    return {camel(each.name): _described(each.type, each.metadata) for each in attrs.fields(record)}


def _required(record: type[attrs.AttrsInstance]) -> list[str]:
    """Name the keys without a default, and `evidence`, which only `read` does not ask for."""
    return [
        camel(each.name)
        for each in attrs.fields(record)
        if each.default is attrs.NOTHING or each.name == "evidence"
    ]


def _described(kind: object, about: Mapping[str, str]) -> dict[str, object]:
    doc = about.get("doc")
    return _part(kind) | ({"description": doc} if doc else {})


def _part(kind: object) -> dict[str, object]:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _FORMS:
        return {"type": "string", **_FORMS[kind]}
    if origin in {Union, UnionType}:
        return _part(inner[0])
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple:
        most = {"maxItems": MAX_DEPENDENCIES} if inner[0] is DependencyClaim else {}
        return {"type": "array", "items": _part(inner[0]), **most}
    if isinstance(kind, type) and attrs.has(kind):
        return {
            "type": "object",
            "properties": _properties(kind),
            "required": _required(kind),
            "additionalProperties": False,
        }
    return {"type": "object", "additionalProperties": {"type": "boolean"}}
