"""Converts between JSON values and records, by the fields of a class and their types.

Values are never converted: `True` is no number, a text is no list.  All problems are raised as one
`Misfit`.  Nothing is generated or compiled, since Codex waits for some of the callers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import repeat
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from attrs import NOTHING, define, field, has
from attrs import AttrsInstance as Record
from attrs import fields as fields_of

from codex_checkpoints.values import taking

_T = TypeVar("_T")

_PLAIN = frozenset({str, int, bool, NoneType})

_WRITTEN = {
    "str": str,
    "int": int,
    "bool": bool,
    "str | None": str | None,
    "int | None": int | None,
}
"""The types of most fields, as they are written: to evaluate them takes long."""


def camel(name: str) -> str:
    """Return the JSON name of a field: `maxValueChars` for `max_value_chars`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


class Problem(NamedTuple):
    """What does not fit, and where: `at` is `.items[0].uri`, or empty for the whole.

    `kind` is the expected type, `why` the message of a `Form`, `keys` are the unknown keys.
    """

    at: str
    what: Literal["type", "value", "mapping", "missing", "unknown"]
    kind: Any = None
    keys: tuple[str, ...] = ()
    why: str = ""

    def under(self, at: str, kind: object) -> Problem:
        """Return the problem with the place of its value put before its own."""
        return self._replace(at=at + self.at, kind=self.kind if self.at else kind)

    def text(self, root: str) -> str:
        """Return the problem in words; `root` names the whole."""
        match self.what:
            case "missing":
                text = "required field missing"
            case "unknown":
                text = f"extra fields found ({', '.join(sorted(self.keys))})"
            case "mapping":
                text = "expected a mapping"
            case _ if self.kind is None:
                text = "invalid value"
            case _ if get_origin(self.kind) is Literal:
                text = f"invalid value, expected one of {', '.join(get_args(self.kind))}"
            case _:
                name = getattr(self.kind, "__name__", None) or repr(self.kind)
                text = f"invalid value for type, expected {name}"
        return f"{text} @ {root}{self.at}"


class Misfit(ValueError):
    """A value that does not fit its record, with all problems."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.text("value") for problem in self.problems))


class Form(NamedTuple):
    """How one type is written and read; `read` raises `TypeError` or `ValueError`."""

    write: Callable[[Any], object]
    read: Callable[[Any], Any]


class _Field(NamedTuple):
    alias: str
    key: str
    kind: Any
    read: Callable[[Any], Any]
    plain: Collection[type]
    """The types of values that fit as they are."""
    required: bool
    """Whether a missing key is a problem."""
    or_none: bool


_Part = tuple[Any, Callable[[Any], Any], Collection[type]]
"""A type of values, what reads one, and the types of those that fit as they are."""


@define(eq=False, kw_only=True)
class Codec:
    """Writes and reads records.

    `closed`: an unknown key is a problem.  `fill`: a missing key takes the default of its field, or
    None if the type has None, or is a problem.  `sparse`: None is not written.  `null`: None is
    read if the type has it.  `keys_first`: problems with keys come before those with values.
    `own`: the forms of types, which may be annotated.
    """

    names: Callable[[str], str] = camel
    closed: bool = False
    fill: Literal["default", "none", "nothing"] = "default"
    sparse: bool = False
    null: bool = True
    keys_first: bool = False
    own: Mapping[Any, Form] = field(factory=dict[Any, Form])
    _writers: dict[Any, Callable[[Any], Any]] = field(init=False)
    _readers: dict[Any, Callable[[Any], Any]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._writers = dict.fromkeys((*_PLAIN, float), _same)
        self._writers |= {kind: form.write for kind, form in self.own.items()}
        self._readers = {Any: _same, object: _same, None: partial(_any_of, {NoneType})}
        self._readers |= {kind: partial(_any_of, {kind}) for kind in _PLAIN}
        self._readers |= {kind: partial(_owned, form.read) for kind, form in self.own.items()}

    def write(self, value: object) -> Any:
        """Return a record, or a value in one, as JSON values."""
        kind = type(value)
        writer = self._writers.get(kind)
        if writer is None:
            writer = self._writers[kind] = self._new_writer(kind)
        return writer(value)

    def read(self, value: object, kind: type[_T]) -> _T:
        """Return the record of a JSON value; raises `Misfit`."""
        found: _T = self._reader(kind)(value)
        return found

    def read_or_none(self, value: object, kind: type[_T]) -> _T | None:
        """Return the record of a JSON value, or None if it does not fit."""
        try:
            return self.read(value, kind)
        except Misfit:
            return None

    def _new_writer(self, kind: type) -> Callable[[Any], Any]:
        if has(kind):
            kept = [each.name for each in fields_of(kind) if each.init]
            return partial(self._write_record, [*map(self.names, kept)], taking(kept))
        if issubclass(kind, tuple | list):
            return lambda values: [self.write(each) for each in values]
        if issubclass(kind, Mapping):
            return lambda values: {key: self.write(each) for key, each in values.items()}
        raise TypeError(f"{kind} has no form as JSON")

    def _write_record(
        self, keys: list[str], take: Callable[[object], tuple[object, ...]], record: object
    ) -> dict[str, Any]:
        values = take(record)
        if self.sparse:
            pairs = zip(keys, values, strict=True)
            return {key: self.write(each) for key, each in pairs if each is not None}
        if not _PLAIN.issuperset(map(type, values)):
            values = [each if type(each) in _PLAIN else self.write(each) for each in values]
        return dict(zip(keys, values, strict=True))

    def _reader(self, kind: Any) -> Callable[[Any], Any]:
        reader = self._readers.get(kind)
        if reader is None:
            reader = self._readers[kind] = self._new_reader(kind)
        return reader

    def _new_reader(self, kind: Any) -> Callable[[Any], Any]:
        origin: Any = get_origin(kind)
        if origin is None:
            origin = kind
        inner = get_args(kind)
        if origin in self._readers:
            return self._readers[origin]
        if origin is Literal:
            return partial(_one_of, inner)
        if origin in {Union, UnionType}:
            return self._union(inner)
        if origin is tuple and Ellipsis not in inner:
            return partial(_fixed, [self._part(each) for each in inner])
        if origin is Annotated:
            return self._reader(inner[0])
        if origin in {tuple, list}:
            return partial(_sequence, origin, self._part(inner[0]))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return partial(_mapping, inner[1], self._reader(inner[0]), self._reader(inner[1]))
        if has(kind):
            return partial(self._read_record, kind, self._fields(kind))
        raise TypeError(f"{kind} has no form as JSON")

    def _part(self, kind: Any) -> _Part:
        read = self._reader(kind)
        return kind, read, _fitting(read)

    def _union(self, kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
        kinds = kinds if self.null else tuple(each for each in kinds if each is not NoneType)
        others = [each for each in kinds if each is not NoneType]
        if _PLAIN.issuperset(others):
            return partial(_any_of, frozenset(kinds))
        (other,) = others  # with several records the caller chooses by a key
        return partial(_optional, self._reader(other)) if self.null else self._reader(other)

    def _fields(self, kind: type[Record]) -> list[_Field]:
        known = [each for each in fields_of(kind) if each.init]
        types = _types_of(kind, {each.name for each in known})
        fields: list[_Field] = []
        for each in known:
            its = types[each.name]
            or_none = self.fill == "none" and NoneType in get_args(its)
            defaulted = self.fill == "default" and each.default is not NOTHING
            fields.append(
                _Field(
                    alias=each.alias,
                    key=self.names(each.name),
                    kind=its,
                    read=(read := self._reader(its)),
                    plain=_fitting(read),
                    required=not (or_none or defaulted),
                    or_none=or_none,
                )
            )
        return fields

    def _read_record(self, kind: type[Any], fields: list[_Field], value: object) -> Any:
        members = _object(value, "type", kind)
        parts: dict[str, Any] = {}
        missing: list[Problem] = []
        wrong: list[Problem] = []
        for alias, key, its, read, plain, required, or_none in fields:
            part = members.get(key, NOTHING)
            if type(part) in plain:
                parts[alias] = part
            elif part is not NOTHING:
                try:
                    parts[alias] = read(part)
                except Misfit as misfit:
                    wrong += [each.under(f".{key}", its) for each in misfit.problems]
            elif required:
                first = missing if self.keys_first else wrong
                first.append(Problem(f".{key}", "missing"))
            elif or_none:
                parts[alias] = None
        unknown: list[Problem] = []
        if self.closed and not members.keys() <= {each.key for each in fields}:
            keys = {each.key for each in fields}
            extra = tuple(key for key in members if key not in keys)
            unknown = [Problem("", "unknown", keys=extra)]
        problems = (unknown + missing + wrong) if self.keys_first else (wrong + unknown)
        if problems:
            raise Misfit(problems)
        try:
            return kind(**parts)
        except (TypeError, ValueError) as error:
            raise Misfit([Problem("", "value", kind)]) from error


def _types_of(kind: type, known: Collection[str]) -> dict[str, Any]:
    """Return the types of some fields by their names."""
    types: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        annotations = vars(base).get("__annotations__", {})
        written = {name: each for name, each in annotations.items() if name in known}
        others = {name: each for name, each in written.items() if each not in _WRITTEN}
        types |= {name: _WRITTEN.get(each) for name, each in written.items()}
        if others:
            body = {"__annotations__": others, "__module__": base.__module__}
            types |= get_type_hints(type(base.__name__, (), body), include_extras=True)
    return types


def _same(value: Any) -> Any:
    return value


def _misfit(what: Literal["type", "value"] = "type") -> Misfit:
    return Misfit([Problem("", what)])


def _owned(read: Callable[[Any], Any], value: object) -> Any:
    try:
        return read(value)
    except Misfit:
        raise
    except (TypeError, ValueError) as error:
        raise Misfit([Problem("", "value", why=str(error))]) from error


def _fitting(read: Callable[[Any], Any]) -> Collection[type]:
    """Return the types of values that a reader takes as they are."""
    return read.args[0] if isinstance(read, partial) and read.func is _any_of else ()


def _any_of(kinds: Collection[type], value: object) -> object:
    if type(value) not in kinds:
        raise _misfit()
    return value


def _one_of(known: tuple[object, ...], value: object) -> object:
    if type(value) is not str or value not in known:
        raise _misfit("value")
    return value


def _optional(read: Callable[[Any], Any], value: object) -> Any:
    return None if value is None else read(value)


def _sequence(make: Callable[[list[Any]], Any], part: _Part, value: object) -> Any:
    return make(_parts(repeat(part), _list(value)))


def _fixed(parts: list[_Part], value: object) -> Any:
    values = _list(value)
    if len(values) != len(parts):
        raise _misfit()
    return tuple(_parts(parts, values))


def _list(value: object) -> list[object]:
    if type(value) is not list:
        raise _misfit()
    return cast("list[object]", value)


def _object(
    value: object, what: Literal["type", "mapping"], kind: object = None
) -> dict[str, object]:
    if type(value) is not dict:
        raise Misfit([Problem("", what, kind)])
    return cast("dict[str, object]", value)


def _parts(parts: Iterable[_Part], values: list[object]) -> list[Any]:
    found: list[Any] = []
    problems: list[Problem] = []
    for (kind, read, plain), each in zip(parts, values, strict=False):
        try:
            found.append(each if type(each) in plain else read(each))
        except Misfit as misfit:
            place = f"[{len(found)}]"
            problems += [problem.under(place, kind) for problem in misfit.problems]
            found.append(None)
    if problems:
        raise Misfit(problems)
    return found


def _mapping(
    kind: Any, read_key: Callable[[Any], Any], read: Callable[[Any], Any], value: object
) -> Any:
    members = _object(value, "mapping")
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, each in members.items():
        try:
            found[read_key(key)] = read(each)
        except Misfit as misfit:
            problems += [problem.under(f"[{key!r}]", kind) for problem in misfit.problems]
    if problems:
        raise Misfit(problems)
    return found
