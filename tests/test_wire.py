"""Wire records: camelCase, strict, every field sent; what is wrong is told all at once."""

from typing import Any

import pytest

from codex_checkpoints import protocol, wire
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.restore.pack import TurnSource
from codex_checkpoints.operations.sessions import SessionsParams, ShowParams, ViewParams
from codex_checkpoints.service.doctor import Diagnosis, Finding
from codex_checkpoints.wire import BadParams


def problems(value: object, cls: type) -> list[str]:
    with pytest.raises(BadParams) as refused:
        wire.structure(value, cls)
    return refused.value.problems


def records() -> list[type]:
    return [*protocol.RECORDS.values()]


# --- in ------------------------------------------------------------------------------------------


def test_params_are_read_by_their_camel_case_names() -> None:
    value = {"cwd": "/x", "archived": True, "limit": 3, "workDoneToken": "t"}

    params = wire.structure(value, SessionsParams)

    assert params == SessionsParams(cwd="/x", archived=True, limit=3, work_done_token="t")


@pytest.mark.parametrize("value", [None, {}])
def test_no_params_are_those_that_nothing_requires(value: object) -> None:
    assert wire.structure(value, SessionsParams) == SessionsParams()


@pytest.mark.parametrize("token", [None, 0, 7, "", "t"])
def test_a_token_is_a_number_or_a_text(token: object) -> None:
    params = wire.structure({"workDoneToken": token}, SessionsParams)

    assert params.work_done_token == token


@pytest.mark.parametrize("token", [True, 1.5, [], {}])
def test_anything_else_is_no_token(token: object) -> None:
    assert problems({"workDoneToken": token}, SessionsParams) == [
        "invalid value for type, expected int | str | None @ params.workDoneToken"
    ]


@pytest.mark.parametrize("value", [[], "x", 5, True, [{}]])
def test_params_that_are_no_object_do_not_fit(value: object) -> None:
    assert problems(value, SessionsParams) == ["expected an object @ params"]


def test_everything_wrong_is_told_at_once() -> None:
    found = problems({"sessionId": 5, "turnId": [], "more": 1, "some_more": 1}, ShowParams)

    assert sorted(found) == [
        "extra fields found (more, some_more) @ params",
        "invalid value for type, expected str @ params.sessionId",
        "invalid value for type, expected str | None @ params.turnId",
    ]


def test_a_name_in_the_style_of_python_is_shown_as_the_client_wrote_it() -> None:
    assert sorted(problems({"session_id": "x"}, ShowParams)) == [
        "extra fields found (session_id) @ params",
        "required field missing @ params.sessionId",
    ]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("limit", "3", "int | None"),
        ("limit", 3.0, "int | None"),
        ("limit", True, "int | None"),
        ("archived", 1, "bool"),
        ("archived", "no", "bool"),
        ("archived", None, "bool"),
        ("cwd", 5, "str | None"),
        ("search", ["x"], "str | None"),
        ("cursor", {}, "str | None"),
    ],
)
def test_a_value_of_another_type_is_not_made_to_fit(
    name: str, value: object, expected: str
) -> None:
    assert problems({name: value}, SessionsParams) == [
        f"invalid value for type, expected {expected} @ params.{name}"
    ]


@pytest.mark.parametrize("value", [5, "x", [], [["a", 1]], None])
def test_settings_that_are_no_object_do_not_fit(value: object) -> None:
    found = problems({"settings": value}, protocol.InitializationOptions)

    assert len(found) == 1
    assert found[0].endswith("@ params.settings")


def test_caps_are_passed_on_as_they_are() -> None:
    caps: dict[str, Any] = {"maxDecisions": 1.5, "x": None, "y": [1, {"z": "w"}]}

    params = wire.structure({"sessionId": "s", "caps": caps}, ViewParams)

    assert params.caps == caps


# --- out -----------------------------------------------------------------------------------------


def test_every_field_is_sent_even_where_it_has_its_default() -> None:
    assert wire.unstructure(SessionsParams()) == {
        "cwd": None,
        "outside": [],
        "archived": False,
        "search": None,
        "limit": None,
        "cursor": None,
        "workDoneToken": None,
    }


def test_records_inside_records_are_sent_as_objects() -> None:
    finding = Finding("c", "info", "m", None, 1, "w")
    report = Diagnosis("/h", "/s", 2, (finding,), {"torn_tail": 1})

    assert wire.unstructure(report) == {
        "codexHome": "/h",
        "stateDir": "/s",
        "sessions": 2,
        "findings": [
            {
                "code": "c",
                "severity": "info",
                "message": "m",
                "path": None,
                "count": 1,
                "wayOut": "w",
            }
        ],
        "skipped": {"torn_tail": 1},
    }


def test_what_is_sent_can_be_read_back() -> None:
    changed = protocol.Changed(("a", "b"), 3, "rollout")

    assert wire.structure(wire.unstructure(changed), protocol.Changed) == changed


def test_a_record_is_filled_with_what_is_given_and_for_the_rest_from_another() -> None:
    source = TurnSource("s", "t")

    assert wire.filled(TurnSource, source) == source
    assert wire.filled(TurnSource, source, turn_id="u") == TurnSource("s", "u")
    with pytest.raises(TypeError):
        wire.filled(TurnSource, source, turn="u")


def test_the_caps_on_the_wire_are_those_of_the_view() -> None:
    assert wire.unstructure(Caps(max_decisions=3)) == Caps(max_decisions=3).as_json()


# --- the table -----------------------------------------------------------------------------------


def test_methods_and_events_have_names_of_their_own() -> None:
    names = [each.name for each in (*protocol.METHODS, *protocol.EVENTS)]

    assert len(set(names)) == len(names)
    assert [name for name in names if not name.startswith("checkpoints/")] == []


def test_the_table_speaks_of_wire_records_only() -> None:
    spoken = {each.params for each in (*protocol.METHODS, *protocol.EVENTS)}
    spoken |= {each.result for each in protocol.METHODS}

    assert spoken <= set(records())
