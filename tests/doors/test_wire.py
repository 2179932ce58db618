"""Wire records: camelCase, strict, every field sent; all problems are reported at once."""

from typing import Any

import pytest

from codex_checkpoints import wire
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.doors import protocol
from codex_checkpoints.doors.typescript import RECORDS
from codex_checkpoints.operations.checkpoint import ShowParams, ViewParams
from codex_checkpoints.operations.services import InitializationOptions
from codex_checkpoints.operations.sessions import SessionsParams
from codex_checkpoints.service.doctor import Diagnosis, Finding
from codex_checkpoints.wire import BadParams


def problems(value: object, cls: type) -> list[str]:
    with pytest.raises(BadParams) as refused:
        wire.structure(value, cls)
    return refused.value.problems


# --- in ------------------------------------------------------------------------------------------


def test_params_are_read_by_their_camel_case_names():
    value = {"cwd": "/x", "archived": True, "limit": 3, "workDoneToken": "t"}

    params = wire.structure(value, SessionsParams)

    assert params == SessionsParams(cwd="/x", archived=True, limit=3, work_done_token="t")
    assert wire.structure(None, SessionsParams) == SessionsParams()
    assert wire.structure({}, SessionsParams) == SessionsParams()
    assert wire.structure({"workDoneToken": 0}, SessionsParams).work_done_token == 0


def test_all_problems_are_reported_at_once_by_wire_names():
    found = problems({"session_id": "x", "turnId": [], "more": 1}, ShowParams)

    assert sorted(found) == [
        "extra fields found (more, session_id) @ params",
        "invalid value for type, expected str | None @ params.turnId",
        "required field missing @ params.sessionId",
    ]


OTHERS: list[tuple[str, list[object], str]] = [
    ("limit", ["3", 3.0, True], "int | None"),
    ("archived", [1, "no", None], "bool"),
    ("cwd", [5, ["x"], {}], "str | None"),
    ("workDoneToken", [True, 1.5, [], {}], "int | str | None"),
]


@pytest.mark.parametrize(("name", "values", "expected"), OTHERS)
def test_value_of_another_type_is_not_converted(name: str, values: list[object], expected: str):
    for value in values:
        assert problems({name: value}, SessionsParams) == [
            f"invalid value for type, expected {expected} @ params.{name}"
        ]


def test_value_that_is_not_an_object_does_not_fit():
    nothing: list[object] = []
    for value in (nothing, "x", 5, True, [["a", 1]]):
        assert problems(value, SessionsParams) == ["expected an object @ params"]
    for value in (nothing, 5, "x", [["a", 1]], None):
        (found,) = problems({"settings": value}, InitializationOptions)
        assert found.endswith("@ params.settings")


def test_caps_are_passed_on_unchanged():
    caps: dict[str, Any] = {"maxDecisions": 1.5, "x": None, "y": [1, {"z": "w"}]}

    params = wire.structure({"sessionId": "s", "caps": caps}, ViewParams)

    assert params.caps == caps


# --- out -----------------------------------------------------------------------------------------


def test_every_field_is_sent_even_with_its_default():
    assert wire.unstructure(SessionsParams()) == {
        "cwd": None,
        "outside": [],
        "archived": False,
        "search": None,
        "limit": None,
        "cursor": None,
        "read": False,
        "early": False,
        "workDoneToken": None,
    }


def test_records_inside_records_are_sent_as_objects():
    report = Diagnosis("/h", "/s", 2, (Finding("c", "info", "m", None, 1, "w"),), {"torn_tail": 1})

    told = {"code": "c", "severity": "info", "message": "m", "path": None, "count": 1}
    assert wire.unstructure(report) == {
        "codexHome": "/h",
        "stateDir": "/s",
        "sessions": 2,
        "findings": [told | {"wayOut": "w"}],
        "skipped": {"torn_tail": 1},
    }


def test_caps_on_the_wire_are_those_of_the_view():
    assert wire.unstructure(Caps(max_decisions=3)) == Caps(max_decisions=3).as_json()


# --- the table -----------------------------------------------------------------------------------


def test_methods_and_events_have_distinct_names():
    names = [each.name for each in (*protocol.METHODS, *protocol.EVENTS)]

    assert len(set(names)) == len(names)
    assert [name for name in names if not name.startswith("checkpoints/")] == []


def test_table_uses_only_wire_records():
    spoken = {each.params for each in (*protocol.METHODS, *protocol.EVENTS)}
    spoken |= {each.result for each in protocol.METHODS}

    assert spoken <= set(RECORDS.values())
