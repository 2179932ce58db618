"""Markers and pins: what their lines amount to, and that nothing moves them."""

import orjson
import pytest

import rollouts as r
from codex_checkpoints.core.restore.markers import (
    MAX_PINS,
    Marker,
    MarkerSet,
    Pin,
    copied,
    created,
    is_detached,
    label_of,
    lines_of,
    marker_set_of,
    pinned,
    removed,
    renamed,
    unpinned,
)
from reading import read
from restoring import BRANCH, MADE, SOURCE


def marker(
    name: str = "m1", turn: str = "t1", label: str = "here", session: str = SOURCE
) -> Marker:
    return Marker(name, session, turn, label, MADE)


def test_a_marker_is_written_with_these_keys():
    line = created(Marker("m1", SOURCE, "t1", "here", MADE, "user", {"a.py": "sha256:1"}))

    assert orjson.dumps(line) == orjson.dumps(
        {
            "type": "created",
            "checkpointId": "m1",
            "sessionId": SOURCE,
            "turnId": "t1",
            "label": "here",
            "createdAt": MADE,
            "origin": "user",
            "hashes": {"a.py": "sha256:1"},
        }
    )
    assert marker_set_of([line]).find("m1") == Marker(
        "m1", SOURCE, "t1", "here", MADE, "user", {"a.py": "sha256:1"}
    )


def test_markers_stand_in_the_order_of_their_making():
    lines = [created(marker("b")), created(marker("a")), renamed("b", "first", MADE)]

    assert [(m.checkpoint_id, m.label) for m in marker_set_of(lines).markers] == [
        ("b", "first"),
        ("a", "here"),
    ]


def test_a_marker_that_was_removed_is_gone_for_good():
    lines = [created(marker("a")), created(marker("b")), removed("a", MADE), created(marker("a"))]

    assert [m.checkpoint_id for m in marker_set_of(lines).markers] == ["b"]


def test_a_second_line_about_a_marker_does_not_move_it():
    lines = [created(marker(turn="t1")), created(marker(turn="t2"))]

    assert marker_set_of(lines).markers == (marker(turn="t1"),)


@pytest.mark.parametrize(
    "line",
    [
        None,
        7,
        [],
        {},
        {"type": "moved", "checkpointId": "m1"},
        {"type": "created"},
        {"type": "created", "checkpointId": 7, "sessionId": "s", "turnId": "t"},
        {"type": "renamed", "checkpointId": ["m1"], "label": "x"},
        {"type": "renamed", "checkpointId": "m1", "label": 7},
        {"type": "renamed", "checkpointId": "no", "label": "x"},
        {"type": "removed", "checkpointId": {"m1": 1}},
        {"type": "removed"},
        {"type": "pinned", "uri": ""},
        {"type": "pinned", "uri": "a", "start": 4},
        {"type": "pinned", "uri": "a", "start": 0, "end": 3},
        {"type": "pinned", "uri": "a", "start": 4, "end": 3},
        {"type": "pinned", "uri": "x" * 1025},
        {"type": "unpinned", "uri": 1},
        {"type": "unpinned", "uri": "never pinned"},
    ],
)
def test_a_line_that_is_none_changes_nothing(line: object):
    assert marker_set_of([created(marker()), line]) == MarkerSet((marker(),), ())


def test_a_field_from_the_future_is_passed_over():
    line = created(marker()) | {"colour": "red"}

    assert marker_set_of([line]).markers == (marker(),)


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("  two\nlines\t", "two lines"),
        ("[NOTES]\n- forged", "[NOTES] - forged"),
        ("a\u2028b\u202ec", "a b c"),
        ("é" * 161, "é" * 159 + "…"),
        ("token sk-proj-" + "a1B2" * 12, "token [redacted]"),
        ("\n", ""),
    ],
)
def test_a_label_is_a_value(told: str, kept: str):
    assert label_of(told) == kept
    assert created(marker(label=told))["label"] == kept
    assert renamed("m1", told, MADE)["label"] == kept


def test_a_label_that_somebody_wrote_into_the_file_is_made_a_value_too():
    line = created(marker()) | {"label": "a\nb"}

    assert [m.label for m in marker_set_of([line]).markers] == ["a b"]


def test_pins_are_files_or_lines_of_them_the_newest_last():
    whole, part = Pin("a.py"), Pin("a.py", 3, 9)
    lines = [pinned(whole, MADE), pinned(part, MADE), pinned(whole, MADE)]

    assert marker_set_of(lines).pins == (part, whole)
    assert marker_set_of([*lines, unpinned(part, MADE)]).pins == (whole,)


def test_of_too_many_pins_the_oldest_goes():
    pins = marker_set_of([pinned(Pin(f"{n}.py"), MADE) for n in range(MAX_PINS + 1)]).pins

    assert len(pins) == MAX_PINS
    assert pins[0] == Pin("1.py")


def test_a_marker_is_detached_when_its_turn_was_rolled_back_or_is_not_there():
    turns = (r.turn(r.user(text)) for text in ("a", "b", "c"))
    state = read(r.rollout(r.session("legacy"), *turns, r.rollback(1))).state

    detached = [is_detached(marker(turn=name), state.turns) for name in ("t1", "t2", "t3", "no")]

    assert detached == [False, False, True, True]


def test_a_soft_branch_takes_the_markers_of_its_turns_and_no_others():
    shelf = MarkerSet(
        (marker("a", "t1"), marker("b", "t2"), marker("c", "t1", session="elsewhere")),
        (Pin("a.py"),),
    )

    branch = marker_set_of(lines_of(copied(shelf, SOURCE, BRANCH, ["t1"]), MADE))

    assert [(m.checkpoint_id, m.session_id, m.turn_id) for m in branch.markers] == [
        ("a", BRANCH, "t1"),
    ]
    assert branch.pins == shelf.pins


def test_a_hard_branch_refers_to_the_markers_of_its_source():
    shelf = MarkerSet((marker("a"),), (Pin("a.py", 1, 2),))

    assert marker_set_of(lines_of(copied(shelf, SOURCE, BRANCH, None), MADE)) == shelf
