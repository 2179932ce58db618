"""Classes of values are those of attrs in all but how soon they are made: one text for all."""

import copy
import inspect
from types import FunctionType
from typing import Any, ClassVar

import attrs
import pytest
from attrs import field

from codex_checkpoints.values import define, frozen


@frozen
class Point:
    """A record as most are."""

    across: int
    down: int = 0


@frozen
class Secret:
    """What shows itself in words of its own."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"


@define
class Odd:
    """What has fields that are shown in another way, or never."""

    hidden: str = field(repr=False)
    short: str = field(repr=lambda _: "…")
    later: int = field(init=False)
    itself: object = None


def test_a_record_is_shown_as_attrs_shows_it():
    theirs = attrs.make_class("Point", ["across", "down"], frozen=True)
    odd = Odd("a key", "a long text")
    odd.itself = odd

    @frozen
    class Inner:
        value: int

    assert repr(Point(1, 2)) == repr(theirs(1, 2)) == "Point(across=1, down=2)"
    assert repr(odd) == "Odd(short=…, later=NOTHING, itself=...)"
    assert repr(Inner(1)) == "Inner(value=1)"


def test_a_record_that_shows_itself_or_nothing_does_so():
    @frozen(repr=False)
    class Silent:
        key: str

    assert repr(Secret("key")) == "Secret(…)"
    assert "secret" not in repr(Silent("secret"))


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


def test_attrs_writes_the_methods_of_a_class_at_its_first_use():
    @frozen
    class Used:
        value: int

    @frozen
    class Unused:
        value: int

    assert Used(1) == Used(1)
    assert isinstance(vars(Used)["__init__"], FunctionType)
    assert not isinstance(vars(Unused)["__init__"], FunctionType)
    assert [each.name for each in attrs.fields(Unused)] == ["value"]
    assert isinstance(vars(Unused)["__init__"], FunctionType)


def plain() -> Any:  # noqa: ANN401 - a class that is to be decorated
    class Plain:
        """What records of ours and of attrs are made of."""

        kind: ClassVar[str] = "kind"
        first: int
        _second: list[int] = field(factory=list[int], alias="second")

        def both(self) -> tuple[int, list[int]]:
            return self.first, self._second

    return Plain


@pytest.mark.parametrize(("ours", "attrs_own"), [(frozen, attrs.frozen), (define, attrs.define)])
def test_a_class_that_is_made_later_is_that_of_attrs(ours: Any, attrs_own: Any):  # noqa: ANN401
    one, other = ours(plain()), attrs_own(plain())
    record, its = one(1, second=[2]), other(1, second=[2])

    assert inspect.signature(one) == inspect.signature(other)
    assert vars(one).keys() == vars(other).keys()
    assert (record.both(), record.kind, record) == (its.both(), its.kind, copy.deepcopy(record))
    assert one(1) != one(2)
    assert attrs.evolve(record, first=3) == one(3, [2])
    assert (one.__hash__ is None) == (other.__hash__ is None)


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
