"""State saved between two readings: valid records round-trip, and all else is refused.

That a whole state comes back is a law of `test_laws.py`.
"""

from collections.abc import Mapping
from typing import Literal

import orjson
import pytest
from attrs import Factory, define, field, frozen
from cattrs import StructureHandlerNotFoundError

from codex_checkpoints.core.converters import MISFITS, states


@frozen
class Inner:
    name: str
    kind: Literal["file", "command"] = "file"


@define
class Whole:
    number: int
    flag: bool
    maybe: Inner | None
    pair: tuple[str, int]
    inners: tuple[Inner, ...]
    turns: list[str]
    seen: dict[str, None]
    by_name: Mapping[str, Inner]
    anything: object
    _hidden: int = field(default=0, alias="hidden")
    _derived: list[int] = field(init=False, default=Factory(list[int]))


WHOLE = Whole(
    1,
    True,
    None,
    ("a", 2),
    (Inner("b"), Inner("c", "command")),
    ["t"],
    {"k": None},
    {"d": Inner("d")},
    {"x": [1.5]},
    hidden=3,
)


def written() -> dict[str, object]:
    value: dict[str, object] = orjson.loads(orjson.dumps(states.unstructure(WHOLE)))
    return value


def test_record_round_trips() -> None:
    assert states.structure(written(), Whole) == WHOLE
    assert "_derived" not in written()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", True),
        ("number", "1"),
        ("flag", 1),
        ("maybe", {}),
        ("maybe", {"name": "x", "kind": "folder"}),
        ("maybe", {"name": None, "kind": "file"}),
        ("pair", ["a"]),
        ("pair", ["a", 2, 3]),
        ("inners", {}),
        ("turns", [None]),
        ("seen", {"k": 1}),
        ("by_name", []),
    ],
)
def test_value_of_another_type_is_an_error(name: str, value: object) -> None:
    with pytest.raises(MISFITS):
        states.structure({**written(), name: value}, Whole)


@pytest.mark.parametrize("value", [None, [], "x", 7, {}])
def test_value_that_is_not_a_record_is_an_error(value: object) -> None:
    with pytest.raises(MISFITS):
        states.structure(value, Whole)


def test_unregistered_type_is_an_error() -> None:
    with pytest.raises(StructureHandlerNotFoundError):
        states.structure(1, complex)
