"""The texts of files between the patches of a session: none is given that no hash proves."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.edits import Edits, Touch, applied, texts_of
from codex_checkpoints.core.rollout.fields import content_hash
from codex_checkpoints.core.rollout.items import Action
from reading import read_with

V1, V2, V3 = "a = 1\nb = 1\n", "a = 2\nb = 1\n", "a = 2\nb = 3\n"
ONE_TO_TWO = ("@@", "-a = 1", "+a = 2", " b = 1")
TWO_TO_THREE = ("@@ -2 +2 @@", "-b = 1", "+b = 3")


def touch(*hunks: str, text: str | None = None, action: Action = "update") -> Touch:
    return Touch(1, 1, "t1", action, hunks or None, text, content_hash(text))


READ = touch(action="read")
UNKNOWN = touch()


def edits(*steps: r.Step, form: r.Form) -> dict[str, list[Touch]]:
    return read_with(Edits(Replay()), r.rollout(r.session(form), *steps)).files


# --- what is collected ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_the_touches_of_a_file_are_in_order_with_their_turns_and_hunks(form: r.Form):
    files = edits(
        r.turn(r.user("Go"), r.patch(add="a.py", content=V1), r.patch(update="b.py")),
        r.turn(r.user("On"), r.patch(update="a.py"), r.shell("touch a.py", "")),
        form=form,
    )

    added, patched, other = files["a.py"]
    assert [each.turn_id for each in files["a.py"]] == ["t1", "t2", "t2"]
    assert (added.action, added.text) == ("add", V1)
    assert patched.hunks == ("@@", "-x", "+y")
    assert (other.edits, other.hunks) == (True, None)
    assert len(files["b.py"]) == 1


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_the_new_name_of_a_file_says_what_it_was_called_before(form: r.Form):
    files = edits(r.turn(r.user("Go"), r.patch(move=("a.py", "b.py"))), form=form)

    assert [each.moved_from for each in (*files["a.py"], *files["b.py"])] == [None, "a.py"]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_a_whole_file_that_was_printed_is_known(form: r.Form):
    whole = r.shell("cat a.py", V1, reads=["a.py"])
    part = r.shell("sed -n 1,5p a.py", V1, reads=["a.py"])

    (one,) = edits(r.turn(r.user("Go"), whole), form=form)["a.py"]
    (other,) = edits(r.turn(r.user("Go"), part), form=form)["a.py"]

    assert (one.action, one.text, one.hash) == ("read", V1, content_hash(V1))
    assert (other.text, other.hash) == (None, None)


def test_what_was_refused_is_no_touch():
    assert not edits(r.turn(r.user("Go"), r.patch(update="a.py", done=False)), form="paginated")


# --- what is proved ------------------------------------------------------------------------------


def test_a_text_of_the_session_file_and_patches_up_to_a_known_hash_prove_all_between():
    touches = [touch(text=V1, action="add"), touch(*ONE_TO_TWO), READ, touch(*TWO_TO_THREE)]

    found = texts_of(touches, [None, None, None, content_hash(V3)])

    assert found == {0: V1, 1: V2, 2: V2, 3: V3}


def test_patches_that_lead_to_another_hash_prove_nothing():
    touches = [touch(text=V1, action="add"), touch(*ONE_TO_TWO)]

    assert texts_of(touches, [None, content_hash(V3)]) == {0: V1}
    assert texts_of(touches, [None, None]) == {0: V1}


def test_the_text_of_now_counts_only_as_far_as_it_is_what_was_seen():
    touches = [READ, touch(*ONE_TO_TWO)]
    seen = [content_hash(V1), content_hash(V2)]

    assert texts_of(touches, seen, now=V2) == {0: V1, 1: V2}
    assert texts_of(touches, seen, now=V3) == {}
    assert texts_of(touches, seen, now=V1) == {0: V1, 1: V2}
    assert texts_of(touches, [None, None], now=V2) == {}


def test_a_text_of_before_that_the_patches_lead_to_what_is_there_now_is_what_was_there():
    touches = [touch(*ONE_TO_TWO), touch(*TWO_TO_THREE)]

    assert texts_of(touches, [None, None], now=V3, before=V1) == {-1: V1, 0: V2, 1: V3}
    assert texts_of(touches, [None, None], now=V2, before=V1) == {}
    assert texts_of(touches, [None, content_hash(V3)], now=V1, before=V1) == {-1: V1, 0: V2, 1: V3}


def test_no_way_leads_through_a_change_without_a_patch():
    touches = [touch(text=V1, action="add"), UNKNOWN, touch(*TWO_TO_THREE)]

    assert texts_of(touches, [None, None, content_hash(V3)], now=V3) == {0: V1, 2: V3}
    assert texts_of(touches, [None, None, content_hash(V3)]) == {0: V1}


# --- how hunks are applied -----------------------------------------------------------------------


def test_a_hunk_stands_where_its_numbers_say_or_behind_its_heading():
    text = "def a():\n    x\ndef b():\n    x\n"

    assert (
        applied(text, ["@@ -4 +4 @@", "-    x", "+    y"]) == "def a():\n    x\ndef b():\n    y\n"
    )
    assert (
        applied(text, ["@@ def b():", "-    x", "+    y"]) == "def a():\n    x\ndef b():\n    y\n"
    )
    assert applied(text, ["@@", "-    x", "+    y"]) == "def a():\n    y\ndef b():\n    x\n"
    assert applied(text, ["@@ -3 +3 @@", "-    x", "+    y"]) is None


def test_a_last_line_without_end_stays_without():
    rows = [
        "@@ -1 +1 @@",
        "-a",
        "\\ No newline at end of file",
        "+b",
        "\\ No newline at end of file",
    ]

    assert applied("a", rows) == "b"
    assert applied("b", rows, back=True) == "a"
    assert applied("a\n", rows) is None


LINES = st.lists(st.sampled_from("abc"), max_size=8)


@given(LINES, LINES)
def test_what_a_diff_did_is_undone_by_it(old: list[str], new: list[str]):
    one, other = ("".join(f"{line}\n" for line in each) for each in (old, new))
    rows = [row.removesuffix("\n") for row in difflib.unified_diff(old, new, lineterm="", n=1)][2:]

    assert applied(one, rows) == other
    assert applied(other, rows, back=True) == one
