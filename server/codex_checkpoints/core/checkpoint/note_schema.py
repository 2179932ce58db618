"""The shape of `memory.apply` payloads (DSC-33; rules, "`memory.apply` payloads").

`read` and `schema` both follow the records of the three kinds.  No record has a field for a task,
an artifact, a status or an instruction (DSC-12, DSC-37, DSC-61, DSC-62).  A missing `evidence` fits
the shape: `note_rules` refuses it with a code of its own (DSC-34).
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from attrs import NOTHING as NO_DEFAULT
from attrs import AttrsInstance as Record
from attrs import field, fields, frozen, has
from cattrs import Converter, ForbiddenExtraKeysError

from codex_checkpoints.core.checkpoint.records import NOTHING, EvidenceSource
from codex_checkpoints.core.checkpoint.redaction import one_line, value
from codex_checkpoints.core.converters import MISFITS, Problem, camel, json_converter, problems_of
from codex_checkpoints.core.fields import CONTROLS, is_object

MAX_DEPENDENCIES = 16
"""`note_rules` refuses more, with `limit_exceeded`."""

MAX_NAME = 128
"""Characters of a fact key, a decision id and a step id."""

_LISTED = 32  # problems
_SHOWN = 40  # code points of an unknown key

Name = Annotated[str, "name"]
"""1 to `MAX_NAME` letters, digits or `. _ - / :`, in NFC."""

Text = Annotated[str, "text"]
"""A text that is not blank."""


def _is(doc: str) -> dict[str, str]:
    """Return the metadata with which the schema describes a field."""
    return {"doc": doc}


@frozen(kw_only=True)
class EvidenceClaim:
    """The message, file or tool call that a payload rests on (DSC-16)."""

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
"""The evidence of a payload without any, compared by identity."""


@frozen(kw_only=True)
class DependencyClaim:
    """One artifact that a fact depends on."""

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
            "the artifacts on which the fact depends: when one of them changes, the fact"
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
    """A whole plan; it replaces the previous one."""

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


def read(payload: Mapping[str, object]) -> Claim | list[str]:
    """Return the record of a payload, or all problems."""
    kind = payload.get("kind")
    record = KINDS.get(kind) if isinstance(kind, str) else None
    if record is None:
        return [f"kind: must be one of {', '.join(KINDS)}"]
    try:
        return _converter.structure(payload, record)
    except MISFITS as misfit:
        found = [text for problem in problems_of(misfit) for text in _texts(problem)]
    more = len(found) - _LISTED
    return found[:_LISTED] + [f"and {more} more"] * (more > 0)


def _texts(problem: Problem) -> Iterator[str]:
    """Yield a problem in words, each unknown key by itself."""
    at = problem.at.removeprefix(".")
    match problem.error:
        case KeyError():
            yield f"{at}: missing"
        case ForbiddenExtraKeysError() as unknown:
            prefix = f"{at}." if at else ""
            for key in sorted(unknown.extra_fields):
                yield f"{prefix}{value(key, _SHOWN)}: unknown key"
        case error:
            yield f"{at}: {_must(problem.kind, error)}"


def _must(kind: object, error: BaseException) -> str:
    if get_origin(kind) in {Union, UnionType}:
        kind = get_args(kind)[0]
    if kind in _OWN:
        return str(error)
    if get_origin(kind) is tuple:
        return "must be a list"
    if get_origin(kind) is Literal:
        return f"must be one of {', '.join(get_args(kind))}"
    if isinstance(kind, type) and has(kind):
        return "must be an object"
    return "must be a text"


def _name(name: object, _kind: object) -> str:
    if not isinstance(name, str):
        raise TypeError("must be a text")
    if not (
        1 <= len(name) <= MAX_NAME
        and unicodedata.is_normalized("NFC", name)
        and all(each in "._-/:" or unicodedata.category(each)[0] in "LN" for each in name)
    ):
        raise ValueError(f"must be 1 to {MAX_NAME} letters, digits or . _ - / : in NFC")
    return name


def _text(text: object, _kind: object) -> str:
    if not isinstance(text, str):
        raise TypeError("must be a text")
    if not one_line(text):
        raise ValueError("says nothing")
    return text


def _flags(flags: object, _kind: object) -> Mapping[str, bool]:
    if not is_object(flags) or any(type(flag) is not bool for flag in flags.values()):
        raise TypeError("must be an object of true and false")
    return cast("Mapping[str, bool]", flags)


_OWN: Mapping[Any, Callable[[object, object], object]] = MappingProxyType(
    {Name: _name, Text: _text, Mapping[str, bool]: _flags}
)
"""The types with a hook of their own, which describes a mismatch in words."""


def _is_optional(kind: object) -> bool:
    return get_origin(kind) in {Union, UnionType} and NoneType in get_args(kind)


def _without_null(kind: Any, converter: Converter) -> Callable[[object, object], object]:  # noqa: ANN401 - a union
    """Return the hook for a present key: `null` is refused."""
    (inner,) = (each for each in get_args(kind) if each is not NoneType)
    read = converter.get_structure_hook(inner)
    return lambda found, _kind: read(found, inner)


_converter = json_converter(closed=True, detailed=True)
_converter.register_structure_hook_factory(_is_optional, _without_null)
_converter.register_structure_hook_factory(_OWN.__contains__, _OWN.__getitem__)


_FORMS: Mapping[object, Mapping[str, object]] = {
    str: {},
    Name: {"minLength": 1, "maxLength": MAX_NAME, "pattern": r"^[\p{L}\p{N}._/:-]+$"},
    Text: {"pattern": rf"[^\s{CONTROLS}]"},
}


def schema() -> dict[str, object]:
    """Return one schema for the three kinds.

    Model services refuse `oneOf` at the top of a tool's input, and Codex drops keywords that it
    does not know.  So the properties of all kinds are in one list, and `if` restricts each kind.
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


def _properties(record: type[Record]) -> dict[str, object]:
    return {
        camel(each.name): _part(each.type)
        | ({"description": each.metadata["doc"]} if each.metadata else {})
        for each in fields(record)
    }


def _required(record: type[Record]) -> list[str]:
    """Return the keys without a default, and `evidence`."""
    return [
        camel(each.name)
        for each in fields(record)
        if each.default is NO_DEFAULT or each.name == "evidence"
    ]


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
    if isinstance(kind, type) and has(kind):
        return {
            "type": "object",
            "properties": _properties(kind),
            "required": _required(kind),
            "additionalProperties": False,
        }
    return {"type": "object", "additionalProperties": {"type": "boolean"}}
