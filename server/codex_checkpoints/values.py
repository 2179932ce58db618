"""Records, declared as those of attrs are, and read by attrs as its own.

attrs takes long to load, and writes and compiles the methods of each class.  A command uses few of
the classes that it loads, and makes few records of most of these.  So here only `__init__` is
compiled, where more records of a class are made; the other methods are the same for all.  To a type
checker these are the functions of attrs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

__all__ = [
    "NOTHING", "Factory", "Record", "asdict", "define", "evolve", "field", "fields",
    "filled", "frozen", "has"
]  # fmt: skip

_T = TypeVar("_T")
_OF_CLASS = frozenset({"__dict__", "__slots__", "__weakref__"})
"""What each class has of its own."""

_FEW = 16
"""To make as many records takes no longer than to compile what makes them."""


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


_NOTHING = _Nothing()


class _Factory(NamedTuple):
    """A default that is made anew for each record."""

    factory: Callable[[], object]


class _Field(NamedTuple):
    """A field of a record, with the names that attrs has for its parts."""

    default: object = _NOTHING
    init: bool = True
    kw_only: bool = False
    eq: bool = True
    metadata: Mapping[Any, Any] = {}
    alias: str = ""
    name: str = ""
    type: object = None


def _field(factory: Callable[[], object] | None = None, **more: Any) -> _Field:  # noqa: ANN401 - as attrs
    return _Field(**more) if factory is None else _Field(_Factory(factory), **more)


def _fields(kind: Any) -> tuple[_Field, ...]:  # noqa: ANN401 - a class that `_made` made
    return kind.__record__


def _has(kind: object) -> bool:
    return hasattr(kind, "__record__")


def _evolve(record: _T, /, **changes: object) -> _T:
    for each in _fields(type(record)):
        if each.init and each.alias not in changes:
            changes[each.alias] = getattr(record, each.name)
    return type(record)(**changes)


def _asdict(record: object) -> dict[str, object]:
    return {each.name: getattr(record, each.name) for each in _fields(type(record))}


# --- making a class ------------------------------------------------------------------------------


def _maker(methods: Mapping[str, object]) -> Callable[..., object]:
    def decorate(kind: type | None = None, /, **options: bool) -> object:
        make = partial(_made, methods, **options)
        return make if kind is None else make(kind)

    return decorate


def _made(  # the options of attrs that are in use
    methods: Mapping[str, object],
    kind: type,
    *,
    eq: bool = True,
    kw_only: bool = False,
) -> type:
    body = {name: each for name, each in vars(kind).items() if name not in _OF_CLASS}
    own = tuple(_declared(body, kw_only=kw_only))
    names = [each.name for each in own]
    inherited = (each for base in kind.__bases__ if _has(base) for each in _fields(base))
    known = (*(each for each in inherited if each.name not in names), *own)
    given = [each.name for each in known if each.init and not each.kw_only]
    weak = [] if any(base.__weakrefoffset__ for base in kind.__bases__) else ["__weakref__"]
    others = {"__eq__": _eq, "__hash__": methods["__hash__"]} if eq else {}
    others["__repr__"] = _repr
    made = type(kind)(
        kind.__name__,
        kind.__bases__,
        {
            **{name: each for name, each in methods.items() if name != "__hash__"},
            **{name: each for name, each in others.items() if vars(kind).get(name) is None},
            **{name: each for name, each in body.items() if name not in names},
            "__slots__": (*names, *weak),
            "__match_args__": tuple(given),
            "__qualname__": kind.__qualname__,
            "__record__": known,
        },
    )
    for each in body.values():  # `super()` looks for the class in which it is written
        for cell in (each.__closure__ or ()) if isinstance(each, FunctionType) else ():
            if cell.cell_contents is kind:
                cell.cell_contents = made
    return made


def _declared(body: Mapping[str, Any], *, kw_only: bool) -> Iterator[_Field]:
    for name, note in body.get("__annotations__", {}).items():
        given = body.get(name, _NOTHING)
        each = given if type(given) is _Field else _Field(given)
        by_name = kw_only or each.kw_only
        yield each._replace(kw_only=by_name, alias=name.lstrip("_"), name=name, type=note)


class _Later:
    """A part of a class that is written when it is first used."""

    def __init__(self, write: Callable[[type], object]) -> None:
        self._write = write

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, kind: type) -> object:
        whose = next((each for each in kind.__mro__ if vars(each).get(self._name) is self), None)
        if whose is not None:  # else another thread has written it meanwhile
            setattr(whose, self._name, self._write(whose))
        return getattr(kind if record is None else record, self._name)


class _Init(_Later):
    """`__init__`, which is compiled after the first few records of a class."""

    def __init__(self) -> None:
        super().__init__(_init)
        self._counts: dict[type, int] = {}

    def __get__(self, record: object, kind: type) -> object:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if record is None or count > _FEW or vars(kind).get(self._name) is not self:
            return super().__get__(record, kind)
        return partial(self._fill, record)

    def _fill(self, record: Any, /, *given: object, **named: object) -> None:  # noqa: ANN401 - a record
        kind = cast("type[object]", type(record))
        known = _fields(kind)
        names = [each.alias for each in known if each.init and not each.kw_only]
        values = dict(zip(names, given, strict=False)) | named
        fits = len(values) == len(given) + len(named)
        for each in known:
            value = values.pop(each.alias, _NOTHING) if each.init else _NOTHING
            if value is _NOTHING:
                default = each.default
                value = default.factory() if isinstance(default, _Factory) else default
                fits = fits and not (each.init and value is _NOTHING)
            if value is not _NOTHING:
                object.__setattr__(record, each.name, value)
        if values or not fits:
            compiled: Any = super().__get__(record, kind)
            compiled(*given, **named)  # which raises the error
        elif hasattr(record, "__attrs_post_init__"):
            record.__attrs_post_init__()


def _init(kind: type) -> object:
    known = [each for each in _fields(kind) if each.init or each.default is not _NOTHING]
    positional = [each for each in known if each.init and not each.kw_only]
    named = [each for each in known if each.init and each.kw_only]
    scope: dict[str, object] = {"NOTHING": _NOTHING}
    lines: list[str] = []
    for number, each in enumerate(known):
        value = each.alias if each.init else f"default{number}"
        scope[f"default{number}"] = each.default
        if isinstance(each.default, _Factory):
            scope[f"make{number}"] = each.default.factory
            scope[f"default{number}"] = _NOTHING
            value = f"make{number}()" + (
                f" if {value} is NOTHING else {value}" if each.init else ""
            )
        if kind.__setattr__ is object.__setattr__:
            lines.append(f"self.{each.name} = {value}")
        else:
            scope[f"set{number}"] = getattr(kind, each.name).__set__
            lines.append(f"set{number}(self, {value})")
    if hasattr(kind, "__attrs_post_init__"):
        lines.append("self.__attrs_post_init__()")

    def parameter(each: _Field) -> str:
        has_default = each.default is not _NOTHING
        return each.alias + (f"=default{known.index(each)}" if has_default else "")

    star = ["*"] if named else []
    parameters = ["self", *map(parameter, positional), *star, *map(parameter, named)]
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}\n", scope)  # noqa: S102 - of names alone
    init: Any = scope["__init__"]
    init.__annotations__ = {each.alias: each.type for each in (*positional, *named)}
    init.__annotations__ |= {"return": None}
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    return init


def _attributes(kind: type) -> object:
    """Return what attrs finds in its own classes."""
    import attrs  # noqa: PLC0415 - few ask

    def attribute(each: _Field) -> Any:  # noqa: ANN401 - what attrs takes
        default: Any = attrs.NOTHING if each.default is _NOTHING else each.default
        if isinstance(default, _Factory):
            default = attrs.Factory(default.factory)
        more = {name: value for name, value in each._asdict().items() if name != "name"}
        return attrs.field(**{**more, "default": default})

    known = {each.name: attribute(each) for each in _fields(kind)}
    return attrs.fields(attrs.make_class(kind.__name__, known))


# --- what all records do -------------------------------------------------------------------------


def _getter(kind: type) -> staticmethod[[object], tuple[object, ...]]:
    """Return what returns the values of a record that count when it is compared."""
    return staticmethod(taking([each.name for each in _fields(kind) if each.eq]))


def taking(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return what returns the values of these fields of a record."""
    return operator.attrgetter(*names) if len(names) > 1 else partial(_few, names)


def _few(names: Sequence[str], record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in names)


def _eq(self: Any, other: Any) -> bool:  # noqa: ANN401 - records
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__values__
    return values(self) == values(other)


def _hash(self: Any) -> int:  # noqa: ANN401 - a record
    return hash(self.__values__(self))


def _getstate(self: object) -> dict[str, object]:
    names = (each.name for each in _fields(type(self)))
    return {name: getattr(self, name) for name in names if hasattr(self, name)}


def _setstate(self: object, state: Mapping[str, object]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


def _refuse(_self: object, *_: object) -> NoReturn:
    from attrs.exceptions import FrozenInstanceError  # noqa: PLC0415 - a defect

    raise FrozenInstanceError


def _repr(record: object) -> str:
    shown = (
        f"{each.name}={getattr(record, each.name, _NOTHING)!r}" for each in _fields(type(record))
    )
    name = type(record).__qualname__.rpartition(">.")[2]
    return f"{name}({', '.join(shown)})"


def filled(kind: type[_T], *sources: object, **others: object) -> _T:
    """Make a record of `others`, and the rest from records with fields of the same names.

    Of several sources that have a name the first one counts.
    """
    for source in sources:
        names, values_of = _shared(kind, type(source), frozenset(others))
        others |= zip(names, values_of(source), strict=True)
    return kind(**others)


@cache
def _shared(
    kind: type, source: type, known: frozenset[str]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Return the fields that a class lacks and a source has, and what reads them from one."""
    lacking = (field.name for field in _fields(kind) if field.name not in known)
    names = tuple(name for name in lacking if hasattr(source, name))
    return names, taking(names)


_METHODS = {
    "__init__": _Init(),
    "__attrs_attrs__": _Later(_attributes),
    "__values__": _Later(_getter),
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}

if TYPE_CHECKING:
    from attrs import NOTHING, Factory, asdict, define, evolve, field, fields, frozen, has
    from attrs import AttrsInstance as Record
else:
    NOTHING, Factory, Record, field = _NOTHING, _Factory, Any, _field
    asdict, evolve, fields, has = _asdict, _evolve, _fields, _has
    define = _maker({**_METHODS, "__hash__": None})
    frozen = _maker({**_METHODS, "__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse})
