"""Records as JSON values and back: valid values, and problems with their places."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from attrs import field, frozen

from codex_checkpoints.core.converters import (
    MISFITS,
    json_converter,
    problems_of,
    read_or_none,
    states,
    stored,
)


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
    size: int = 0

    def __attrs_post_init__(self) -> None:
        if self.size > 9:
            raise ValueError("too large")


@frozen
class Plain:
    longName: str  # noqa: N815 - the same name in every converter
    count: int
    flag: bool
    ratio: float


PLAIN = {"longName": "x", "count": 1, "flag": True, "ratio": 1.5}
WHOLE = Outer((Inner("x", 1), Inner("y")), "b", (1, "z"), {"f": True}, [1, {"k": None}])
WRITTEN: dict[str, object] = {
    "items": [{"longName": "x", "count": 1}, {"longName": "y", "count": None}],
    "kind": "b",
    "pair": [1, "z"],
    "flags": {"f": True},
    "anything": [1, {"k": None}],
}


strict = json_converter(closed=True, detailed=True)


def problems(value: object, kind: type = Outer) -> list[str]:
    with pytest.raises(MISFITS) as found:
        strict.structure(value, kind)
    return [problem.text("it") for problem in problems_of(found.value)]


def test_written_value_reads_back() -> None:
    assert stored.unstructure(WHOLE) == WRITTEN
    assert stored.structure(WRITTEN, Outer) == WHOLE


def test_every_problem_is_listed_with_its_place() -> None:
    value = {
        "items": [{"longName": 1}, 5, {"count": True, "more": 1}],
        "kind": "c",
        "pair": [1],
        "flags": {"f": 1},
        "extra": 1,
    }

    assert problems(value) == [
        "extra fields found (extra) @ it",
        "invalid value for type, expected str @ it.items[0].longName",
        "invalid value for type, expected Inner @ it.items[1]",
        "extra fields found (more) @ it.items[2]",
        "required field missing @ it.items[2].longName",
        "invalid value for type, expected int | None @ it.items[2].count",
        "invalid value, expected one of a, b @ it.kind",
        "invalid value for type, expected tuple[int, str] | None @ it.pair",
        "invalid value for type, expected bool @ it.flags['f']",
    ]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("longName", [1, True, None, ["x"]]),
        ("count", ["1", True, 1.0, [1]]),
        ("flag", [1, "true", None]),
        ("ratio", ["1.5", True]),
    ],
)
def test_no_value_is_converted_to_another_type(name: str, values: list[object]) -> None:
    for value in values:
        for converter in (strict, stored, states):
            assert read_or_none(converter, {**PLAIN, name: value}, Plain) is None


@pytest.mark.parametrize("value", ["ab", {"a": 1}, (), None, 5])
def test_only_a_list_is_a_list(value: object) -> None:
    assert problems({"items": value}) == ["invalid value for type, expected tuple @ it.items"]


@pytest.mark.parametrize("value", ["ab", [["a", True]], (), None, 5])
def test_only_an_object_is_an_object(value: object) -> None:
    items: list[object] = []

    assert problems({"items": items, "flags": value}) == ["expected a mapping @ it.flags"]
    assert read_or_none(stored, value, Outer) is None


def test_missing_key_takes_its_default_except_in_a_complete_state() -> None:
    assert stored.structure({"longName": "x"}, Inner) == Inner("x")
    assert read_or_none(stored, {"count": 1}, Inner) is None
    assert read_or_none(states, {"long_name": "x"}, Inner) is None
    assert states.structure({"long_name": "x", "count": None}, Inner) == Inner("x")


def test_unknown_key_is_ignored_in_our_own_files() -> None:
    assert stored.structure({"longName": "x", "more": 1}, Inner) == Inner("x")


def test_value_refused_by_its_record_does_not_fit() -> None:
    assert problems({"size": 10}, Checked) == ["invalid value @ it"]
    assert read_or_none(stored, {"size": 10}, Checked) is None
