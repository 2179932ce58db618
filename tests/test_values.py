"""Classes of values are those of attrs in all but how soon they are made."""

import attrs
import pytest
from attrs import field

from codex_checkpoints.values import define, frozen


@frozen
class Point:
    """What cannot be changed."""

    across: int
    down: int = 0


@frozen(kw_only=True)
class Named:
    """What takes names alone."""

    name: str


@define
class Count:
    """What can be changed."""

    so_far: int
    _limit: int = 9


@frozen
class Secret:
    """What shows itself in words of its own."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"


def test_a_record_is_shown_as_attrs_shows_it() -> None:
    theirs = attrs.make_class("Point", ["across", "down"], frozen=True)
    assert repr(Point(1, 2)) == repr(theirs(1, 2)) == "Point(across=1, down=2)"
    assert repr(Count(1)) == "Count(so_far=1, _limit=9)"


@define
class Odd:
    """What has fields that are shown in another way, or never."""

    hidden: str = field(repr=False)
    short: str = field(repr=lambda _: "…")
    later: int = field(init=False)
    itself: object = None


def test_fields_are_shown_as_they_say() -> None:
    odd = Odd("a key", "a long text")
    odd.itself = odd
    assert repr(odd) == "Odd(short=…, later=NOTHING, itself=...)"


def test_a_class_inside_a_function_is_called_by_its_name() -> None:
    @frozen
    class Inner:
        value: int

    assert repr(Inner(1)) == "Inner(value=1)"


def test_who_wants_no_text_of_a_record_gets_none() -> None:
    @frozen(repr=False)
    class Silent:
        key: str

    assert "secret" not in repr(Silent("secret"))


def test_a_record_that_shows_itself_does_so() -> None:
    assert repr(Secret("key")) == "Secret(…)"


def test_records_of_the_same_values_are_equal_and_of_one_hash() -> None:
    assert Point(1) == Point(1, 0) != Point(0, 1)
    assert len({Point(1), Point(1, 0)}) == 1


def test_a_frozen_record_takes_no_other_value() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Point(1).down = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_options_are_those_of_attrs() -> None:
    assert Named(name="one").name == "one"
    with pytest.raises(TypeError):
        Named("one")  # pyright: ignore[reportCallIssue]


def test_a_record_has_slots_alone() -> None:
    count = Count(1)
    count.so_far += 1
    assert count.so_far == 2
    assert not hasattr(count, "__dict__")
