"""Records are made sooner than those of attrs, and are like them; attrs reads them as its own."""

import copy
import inspect
import re
from types import FunctionType
from typing import Any

import attrs
import pytest

from codex_checkpoints.patterns import pattern
from codex_checkpoints.values import asdict, define, evolve, field, fields, frozen


@frozen
class Point:
    """A record as most are."""

    across: int
    down: int = 0


def test_a_record_is_shown_as_attrs_shows_it():
    theirs = attrs.make_class("Point", ["across", "down"], frozen=True)

    @frozen
    class Inner:
        value: int

    assert repr(Point(1, 2)) == repr(theirs(1, 2)) == "Point(across=1, down=2)"
    assert repr(Inner(1)) == "Inner(value=1)"


def test_options_and_slots_are_those_of_attrs():
    @frozen(kw_only=True)
    class Named:
        name: str

    assert Named(name="one").name == "one"
    with pytest.raises(TypeError):
        Named("one")  # pyright: ignore[reportCallIssue]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Point(1).down = 2  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(Point(1), "__dict__")


def test_a_class_is_finished_when_it_is_first_used():
    @frozen
    class Used:
        value: int

    @frozen
    class Unused:
        value: int

    assert [Used(1) for _ in range(99)] == [Used(1)] * 99
    assert isinstance(vars(Used)["__init__"], FunctionType)
    assert not isinstance(vars(Unused)["__init__"], FunctionType)


def plain(field: Any) -> Any:  # noqa: ANN401 - a class that is to be decorated
    class Plain:
        """What records of ours and of attrs are made of."""

        first: int
        _second: list[int] = field(factory=list[int])
        beside: str = field(default="", eq=False, kw_only=True)
        later: int = field(init=False, default=7, metadata={"doc": "a word"})

        def __attrs_post_init__(self) -> None:
            self._second.append(0)

        def all(self) -> object:
            return self.first, self._second, self.beside, self.later

    return Plain


@pytest.mark.parametrize("options", [{}, {"eq": False}, {"kw_only": True}])
@pytest.mark.parametrize(("ours", "theirs"), [(frozen, attrs.frozen), (define, attrs.define)])
def test_a_record_is_what_attrs_would_make_of_it(ours: Any, theirs: Any, options: Any):  # noqa: ANN401
    one, other = ours(plain(field), **options), theirs(plain(attrs.field), **options)
    given = {"first": 1, "second": [2], "beside": "x"}
    record, its = one(**given), other(**given)

    assert str(one) == str(other)
    assert (record.all(), repr(record)) == (its.all(), repr(its))
    assert one(first=1).all() == other(first=1).all()
    assert one.__match_args__ == other.__match_args__
    assert (one.__hash__ is None) == (other.__hash__ is None)
    for made, changed in ((record, evolve(record, first=3)), (its, attrs.evolve(its, first=3))):
        again = copy.deepcopy(made)
        assert (again == made, again.all()) == (options.get("eq") is not False, made.all())
        assert (changed == made, changed.first, evolve is attrs.evolve) == (False, 3, False)
    assert str(inspect.signature(one)) == str(inspect.signature(other))
    assert [(each.name, each.alias, each.init, each.metadata) for each in fields(one)] == [
        (each.name, each.alias, each.init, each.metadata) for each in attrs.fields(other)
    ]
    assert asdict(record) == attrs.asdict(its)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"across": 1}), ((1,), {"up": 1}), ((), {"down": 1})],
)
def test_a_record_is_not_made_of_what_does_not_fit(
    compiled: bool, given: tuple[Any, ...], named: dict[str, int]
):
    @frozen
    class Fresh:
        across: int
        down: int = 0

    if compiled:
        inspect.signature(Fresh)

    with pytest.raises(TypeError, match="__init__"):
        Fresh(*given, **named)
    assert Fresh(1, down=2) == Fresh(across=1, down=2)


def test_attrs_reads_a_record_as_its_own():
    @frozen
    class Pair:
        first: int
        second: tuple[int, ...] = ()

    pair = Pair(1)

    assert attrs.has(Pair)
    assert attrs.asdict(pair) == {"first": 1, "second": ()}
    assert attrs.evolve(pair, first=2) == evolve(pair, first=2) != pair
    assert attrs.fields(Pair).first.default is attrs.NOTHING


def test_a_class_may_have_a_base_and_name_itself():
    @frozen
    class Base:
        first: int

        def show(self) -> str:
            return f"{self.first}"

    @frozen
    class Above(Base):
        second: int = 2

        def show(self) -> str:
            return f"{super().show()} {self.second}"

    class Plain(Base):
        pass

    assert Above(1).show() == "1 2"
    assert Above(1) == Above(1, 2) != Above(2)
    assert Plain(1) == Plain(1) != Base(1)


def test_a_regular_expression_is_compiled_when_it_is_first_used() -> None:
    broken = pattern("(")
    with pytest.raises(re.error):
        broken.match("")

    word = pattern("[a-z]+", re.IGNORECASE)
    assert [each[0] for each in word.finditer("Open, sesame")] == ["Open", "sesame"]
