"""Markers and pins: the result of their lines, and that nothing moves them."""

import pytest

import rollouts as r
from codex_checkpoints.core.restore.markers import (
    MAX_PINS,
    Marker,
    MarkerSet,
    Pin,
    PinnedWords,
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
from derived_state import read
from restore_values import BRANCH, MADE, SOURCE


def marker(
    name: str = "m1", turn: str = "t1", label: str = "here", session: str = SOURCE
) -> Marker:
    return Marker(name, session, turn, label, MADE)


def test_marker_is_written_with_these_keys():
    whole = Marker("m1", SOURCE, "t1", "here", MADE, "user", {"a.py": "sha256:1"})
    line = {
        "type": "created",
        "checkpointId": "m1",
        "sessionId": SOURCE,
        "turnId": "t1",
        "label": "here",
        "createdAt": MADE,
        "origin": "user",
        "hashes": {"a.py": "sha256:1"},
    }

    assert list(created(whole).items()) == list(line.items())
    assert marker_set_of([line | {"colour": "red"}]).markers == (whole,)


def test_markers_keep_their_order_and_a_removed_one_never_returns():
    made = [created(marker(name)) for name in ("b", "a", "c")]
    later = [renamed("b", "first\n", MADE), created(marker("b", turn="t2")), removed("c", MADE)]

    assert marker_set_of([*made, *later, created(marker("c"))]).markers == (
        *(marker("b", label="first"), marker("a")),
    )
    assert marker_set_of([created(marker()) | {"label": "a\nb"}]).markers == (marker(label="a b"),)


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
        {"type": "pinned", "kind": "message", "value": "12"},
        {"type": "pinned", "kind": "file", "value": "a.py"},
        {"type": "pinned", "kind": "text", "value": ""},
        {"type": "pinned", "kind": "text", "value": "x" * 2001},
        {"type": "unpinned", "uri": 1},
        {"type": "unpinned", "uri": "never pinned"},
    ],
)
def test_invalid_line_changes_nothing(line: object):
    assert marker_set_of([created(marker()), line]) == MarkerSet((marker(),), ())


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
def test_label_is_a_redacted_value(told: str, kept: str):
    assert label_of(told) == kept
    assert created(marker(label=told))["label"] == kept
    assert renamed("m1", told, MADE)["label"] == kept


def test_pins_are_files_or_lines_newest_last_and_the_oldest_is_evicted():
    whole, part = Pin("a.py"), Pin("a.py", 3, 9)
    lines = [pinned(whole, MADE), pinned(part, MADE), pinned(whole, MADE)]
    words = [PinnedWords("message", "#12"), PinnedWords("note", "a"), PinnedWords("text", "b")]
    many = [Pin(f"{n}.py") for n in range(MAX_PINS + 1)]

    assert marker_set_of(lines).pins == (part, whole)
    assert marker_set_of([*lines, unpinned(part, MADE)]).pins == (whole,)
    assert marker_set_of([pinned(pin, MADE) for pin in many]).pins == tuple(many[1:])
    both = marker_set_of([*lines, *(pinned(pin, MADE) for pin in words)])
    assert (both.pins, both.files) == ((part, whole, *words), (part, whole))


def test_marker_is_detached_if_its_turn_was_rolled_back_or_is_missing():
    turns = (r.turn(r.user(text)) for text in ("a", "b", "c"))
    state = read(r.rollout(r.session("legacy"), *turns, r.rollback(1))).state

    detached = [is_detached(marker(turn=name), state.turns) for name in ("t1", "t2", "t3", "no")]

    assert detached == [False, False, True, True]


def test_soft_branch_takes_its_turns_markers_and_a_hard_one_refers_to_all():
    others = (marker("b", "t2"), marker("c", "t1", session="elsewhere"))
    shelf = MarkerSet((marker("a", "t1"), *others), (Pin("a.py"), Pin("a.py", 1, 2)))

    def branch(turns: list[str] | None) -> MarkerSet:
        return marker_set_of(lines_of(copied(shelf, SOURCE, BRANCH, turns, 20, 1), MADE))

    assert branch(["t1"]) == MarkerSet((marker("a", session=BRANCH),), shelf.pins)
    assert branch(None) == shelf


def test_branch_takes_messages_pinned_before_its_marker_with_new_numbers():
    pins = [PinnedWords("message", anchor) for anchor in ("#20", "#21")]
    note, shelf = PinnedWords("note", "#21"), MarkerSet(pins=(*pins, PinnedWords("note", "#21")))

    assert copied(shelf, SOURCE, BRANCH, [], 20).pins == (pins[0], note)
    assert copied(shelf, SOURCE, BRANCH, None, 20).pins == (pins[0], note)
    assert copied(shelf, SOURCE, BRANCH, [], 21, 1).pins == (
        PinnedWords("message", "#21"),
        PinnedWords("message", "#22"),
        note,
    )
