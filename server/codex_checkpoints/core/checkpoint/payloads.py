"""What a `memory.apply` payload looks like: a record for each of the three kinds (DSC-33).

The records are the one source (interfaces, "`memory.apply` payloads"): `read` takes JSON values by
them and lists everything that does not fit, `schema.py` publishes them.  None of them has a place
for a task, an artifact, a status or an instruction (DSC-12, DSC-37, DSC-61, DSC-62).  Whether a
payload may be accepted is left to `claims.py`.

Unknown keys, missing keys, `null` and texts that say nothing do not fit.  A missing `evidence`
does: it has a refusal of its own (DSC-34).
"""

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Literal, TypeGuard, TypeVar, get_args, get_origin

import attrs
from attrs import field

from codex_checkpoints.core.checkpoint.caps import camel
from codex_checkpoints.core.checkpoint.records import NOTHING, EvidenceSource
from codex_checkpoints.core.checkpoint.text import one_line, value
from codex_checkpoints.values import frozen

MAX_DEPENDENCIES = 16
"""More are refused with `limit_exceeded`, so not here."""

MAX_NAME = 128
"""Characters of a fact key, a decision id and a step id."""

_LISTED = 32
"""How many problems are listed one by one."""

_SHOWN = 40
"""How much of an unknown key is said back."""

_Record = TypeVar("_Record", bound=attrs.AttrsInstance)
_Form = Literal["name", "text"] | None


def _is(doc: str, form: _Form = None) -> dict[str, str | None]:
    """Describe a field: in words for the schema, and what form its text has."""
    return {"doc": doc, "form": form}


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
    key: str = field(metadata=_is("the name of the fact; a known one is replaced", "name"))
    value: str = field(metadata=_is("the fact, said of the project, in one line", "text"))
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
    decision_id: str = field(metadata=_is("the name of the decision, used once", "name"))
    topic: str | None = field(default=None, metadata=_is("what it is about", "text"))
    decision: str = field(metadata=_is("what was decided", "text"))
    rationale: str = field(metadata=_is("why", "text"))
    supersedes: str | None = field(
        default=None, metadata=_is("the decisionId of the decision that this one replaces")
    )
    evidence: EvidenceClaim = field(default=NO_EVIDENCE, metadata=_EVIDENCE)


@frozen(kw_only=True)
class StepClaim:
    """One step of a plan."""

    id: str = field(metadata=_is("the name of the step within the plan", "name"))
    text: str = field(metadata=_is("what is to be done", "text"))


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


def is_object(asked: object) -> TypeGuard[Mapping[str, object]]:
    """Tell whether a JSON value is an object."""
    return isinstance(asked, dict)


def _is_list(asked: object) -> TypeGuard[list[object]]:
    return isinstance(asked, list)


def read(asked: Mapping[str, object]) -> Claim | list[str]:
    """Take a JSON object as a payload, or return everything about it that does not fit."""
    kind = asked.get("kind")
    record = KINDS.get(kind) if isinstance(kind, str) else None
    if record is None:
        return [f"kind: must be one of {', '.join(KINDS)}"]
    problems: list[str] = []
    claim = _record(record, asked, "", problems)
    if claim is not None and not problems:
        return claim
    more = len(problems) - _LISTED
    return problems[:_LISTED] + [f"and {more} more"] * (more > 0)


def _record(record: type[_Record], asked: object, at: str, problems: list[str]) -> _Record | None:
    if not is_object(asked):
        problems.append(f"{at}: must be an object")
        return None
    prefix = f"{at}." if at else ""
    fields = {camel(each.name): each for each in attrs.fields(record)}
    problems += [f"{prefix}{value(key, _SHOWN)}: unknown key" for key in asked if key not in fields]
    missing = [
        key for key, each in fields.items() if key not in asked and each.default is attrs.NOTHING
    ]
    problems += [f"{prefix}{key}: missing" for key in missing]
    parts = {
        each.name: _part(
            each.type, each.metadata.get("form"), asked[key], f"{prefix}{key}", problems
        )
        for key, each in fields.items()
        if key in asked
    }
    return None if missing else record(**parts)


def _part(kind: object, form: _Form, asked: object, at: str, problems: list[str]) -> object:
    """Take a value as what its field is annotated with; what does not fit stays as it came."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _part(inner[0], form, asked, at, problems)
    if isinstance(kind, type) and attrs.has(kind):
        return _record(kind, asked, at, problems)
    if origin is tuple and _is_list(asked):
        return tuple(
            _part(inner[0], form, part, f"{at}[{place}]", problems)
            for place, part in enumerate(asked)
        )
    problem = _problem(kind, form, asked)
    if problem is not None:
        problems.append(f"{at}: {problem}")
    return asked


def _problem(kind: object, form: _Form, asked: object) -> str | None:
    if get_origin(kind) is tuple:
        return "must be a list"
    if get_origin(kind) is Literal:
        options = get_args(kind)
        known = isinstance(asked, str) and asked in options
        return None if known else f"must be one of {', '.join(options)}"
    if kind is not str:
        flags = is_object(asked) and all(type(flag) is bool for flag in asked.values())
        return None if flags else "must be an object of true and false"
    if not isinstance(asked, str):
        return "must be a text"
    if form == "text":
        return None if one_line(asked) else "says nothing"
    return None if form is None or _is_name(asked) else _NAME_RULE


_NAME_RULE = f"must be 1 to {MAX_NAME} letters, digits or . _ - / : in NFC"


def _is_name(text: str) -> bool:
    return (
        1 <= len(text) <= MAX_NAME
        and unicodedata.is_normalized("NFC", text)
        and all(
            character in "._-/:" or unicodedata.category(character)[0] in "LN" for character in text
        )
    )
