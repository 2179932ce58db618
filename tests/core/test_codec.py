"""Records as JSON values and back: what fits, what does not, and where it says so."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from attrs import field, frozen

from codex_checkpoints.core.codec import Codec, Form, Misfit

Even = Annotated[int, "even"]


@frozen
class Inner:
    long_name: str
    count: int | None = None


@frozen
class Outer:
    items: tuple[Inner, ...]
    kind: Literal["a", "b"] = "a"
    pair: tuple[int, str] | None = None
    flags: Mapping[str, bool] = field(factory=dict[str, bool])
    anything: Any = None
    derived: int = field(init=False, default=0)


@frozen
class Checked:
    size: Even = 0

    def __attrs_post_init__(self) -> None:
        if self.size > 9:
            raise ValueError("too large")


WHOLE = Outer((Inner("x", 1), Inner("y")), "b", (1, "z"), {"f": True}, [1, {"k": None}])
WRITTEN: dict[str, object] = {
    "items": [{"longName": "x", "count": 1}, {"longName": "y", "count": None}],
    "kind": "b",
    "pair": [1, "z"],
    "flags": {"f": True},
    "anything": [1, {"k": None}],
}


def problems(codec: Codec, value: object, kind: type = Outer) -> list[str]:
    with pytest.raises(Misfit) as found:
        codec.read(value, kind)
    return [problem.text("it") for problem in found.value.problems]


def test_what_is_written_reads_back() -> None:
    assert Codec().write(WHOLE) == WRITTEN
    assert Codec().read(WRITTEN, Outer) == WHOLE


def test_every_problem_is_listed_with_its_place() -> None:
    value = {
        "items": [{"longName": 1}, 5, {"count": True, "more": 1}],
        "kind": "c",
        "pair": [1],
        "flags": {"f": 1},
        "extra": 1,
    }

    assert problems(Codec(closed=True), value) == [
        "invalid value for type, expected str @ it.items[0].longName",
        "invalid value for type, expected Inner @ it.items[1]",
        "required field missing @ it.items[2].longName",
        "invalid value for type, expected int | None @ it.items[2].count",
        "extra fields found (more) @ it.items[2]",
        "invalid value, expected one of a, b @ it.kind",
        "invalid value for type, expected tuple[int, str] | None @ it.pair",
        "invalid value for type, expected bool @ it.flags['f']",
        "extra fields found (extra) @ it",
    ]


def test_problems_with_keys_may_come_first() -> None:
    value = {"count": "x", "more": 1}

    assert problems(Codec(closed=True, keys_first=True), value, Inner) == [
        "extra fields found (more) @ it",
        "required field missing @ it.longName",
        "invalid value for type, expected int | None @ it.count",
    ]


@pytest.mark.parametrize("value", ["ab", {"a": 1}, (), None, 5])
def test_only_a_list_is_a_list_and_only_an_object_is_one(value: object) -> None:
    assert problems(Codec(), {"items": value}) == [
        "invalid value for type, expected tuple @ it.items"
    ]
    if not isinstance(value, dict):
        assert problems(Codec(), {"items": [], "flags": value}) == ["expected a mapping @ it.flags"]
        assert problems(Codec(), value) == ["invalid value for type, expected Outer @ it"]


def test_a_missing_key_is_filled_in_as_the_terms_say() -> None:
    assert Codec().read({"longName": "x"}, Inner) == Inner("x")
    assert Codec(fill="none").read({"longName": "x"}, Inner) == Inner("x")
    assert problems(Codec(fill="nothing"), {"longName": "x"}, Inner) == [
        "required field missing @ it.count"
    ]
    assert "required field missing @ it.kind" in problems(Codec(fill="none"), {"items": []})


def test_none_may_be_left_out_and_may_be_refused() -> None:
    assert Codec(sparse=True).write(Inner("x")) == {"longName": "x"}
    assert problems(Codec(null=False), {"longName": "x", "count": None}, Inner) == [
        "invalid value for type, expected int | None @ it.count"
    ]


def test_a_type_may_have_a_form_of_its_own() -> None:
    def even(value: object) -> int:
        if not isinstance(value, int) or value % 2:
            raise ValueError("must be even")
        return value

    codec = Codec(own={Even: Form(str, even)})

    assert codec.read({"size": 4}, Checked) == Checked(4)
    with pytest.raises(Misfit) as found:
        codec.read({"size": 3}, Checked)
    assert [each.why for each in found.value.problems] == ["must be even"]


def test_what_a_record_refuses_itself_does_not_fit() -> None:
    assert problems(Codec(), {"size": 10}, Checked) == [
        "invalid value for type, expected Checked @ it"
    ]
    assert Codec().read_or_none({"size": 10}, Checked) is None


def test_a_type_without_a_form_is_an_error_of_ours() -> None:
    with pytest.raises(TypeError, match="no form"):
        Codec().write(object())
    with pytest.raises(TypeError, match="no form"):
        Codec().read(1, complex)
