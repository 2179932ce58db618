"""Classes of values are those of attrs in all but how soon they are made: one text for all."""

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
