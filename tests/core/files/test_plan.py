"""Files are restored by undoing the recorded patches strictly, never over unknown bytes (FIL)."""

import difflib
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.changes.edits import Edits
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.files.copies import Copies
from codex_checkpoints.core.files.plan import OnDisk, PlannedFile, planned

Disk = dict[str, str]
"""The text of each file, as it is now."""

BEFORE = "one\ntwo\nthree\nfour\nfive\nsix\n"


def plan(
    data: bytes,
    disk: Mapping[str, str],
    turn: int = 1,
    copies: Copies = lambda _call_id, _uri: None,
) -> dict[str, PlannedFile]:
    """Plan the files of a session back to the end of a turn."""
    replay = Replay()
    edits = Edits(replay)
    replay.feed(data)
    end = [*replay.state.turns.counting()][turn - 1].ended
    assert end is not None
    found = planned(edits.files, end, lambda uri: OnDisk(disk.get(uri)), copies=copies)
    return {each.path: each for each in found}


def patched(
    changes: Mapping[str, Any], form: r.Form = "paginated", call_id: str | None = None
) -> r.Step:
    """Record a patch as Codex does: the change of each file."""
    named = {f"{r.FOLDER}/{name}": each for name, each in changes.items()}

    def write(writer: r.Writer) -> None:
        call = writer.name("p", call_id)
        if form == "paginated":
            writer.item("FileChange", None, id=call, changes=named, status="completed")
        else:
            writer.event("patch_apply_end", call_id=call, changes=named, success=True)

    return write


def difference(before: str, after: str, **more: str) -> dict[str, Any]:
    """Return the record of an update: a unified diff with line numbers."""
    old, new = ([*re.findall(r"[^\n]*\n|[^\n]+\Z", text)] for text in (before, after))
    rows = [*difflib.unified_diff(old, new, n=1)][2:]
    ends = "\n\\ No newline at end of file\n"
    diff = "".join(row if row.endswith("\n") else row + ends for row in rows)
    return {"type": "update", "unified_diff": diff, "move_path": None, **more}


def session(*later: r.Step, form: r.Form = "paginated") -> bytes:
    """Return a session whose first turn ends before the later steps."""
    steps = [r.turn(r.user("Begin")), *(r.turn(r.user("Go on"), each) for each in later)]
    return r.rollout(r.session(form), *steps)


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize(
    "before",
    [BEFORE, BEFORE.replace("\n", "\r\n"), BEFORE.removesuffix("\n"), "größer 🙂\n\x0cx\u2028y\n"],
    ids=["plain", "CRLF", "no last LF", "odd characters"],
)
def test_update_is_undone_byte_for_byte(before: str, form: r.Form):
    after = before.replace("two", "TWO").replace("größer", "GRÖSSER")
    row = plan(
        session(patched({"a.py": difference(before, after)}, form), form=form), {"a.py": after}
    )

    assert (row["a.py"].state, row["a.py"].then, row["a.py"].proof) == ("restore", before, "diff")
    assert row["a.py"].is_on


def test_later_change_of_other_lines_makes_it_a_merge_that_is_off():
    after = BEFORE.replace("two", "TWO")
    data = session(patched({"a.py": difference(BEFORE, after)}))
    row = plan(data, {"a.py": "zero\n" + after})["a.py"]

    assert (row.state, row.then, row.is_on) == ("merge", "zero\n" + BEFORE, False)


@pytest.mark.parametrize("now", [BEFORE.replace("two", "Two"), BEFORE.replace("two\n", "")])
def test_later_change_of_the_same_lines_is_a_conflict(now: str):
    data = session(patched({"a.py": difference(BEFORE, BEFORE.replace("two", "TWO"))}))
    row = plan(data, {"a.py": now})["a.py"]

    assert (row.state, row.then) == ("conflict", None)
    assert "fits nowhere" in (row.why or "")


def test_deleted_file_is_restored_and_an_added_one_stays():
    changes = {
        "gone.py": {"type": "delete", "content": "a\r\nb"},
        "new.py": {"type": "add", "content": "x"},
    }
    rows = plan(session(patched(changes)), {"new.py": "x"})

    assert (rows["gone.py"].state, rows["gone.py"].then) == ("create", "a\r\nb")
    assert (rows["new.py"].state, rows["new.py"].is_on) == ("new_or_replaced", False)


def test_file_that_the_session_deleted_before_it_made_it_again_is_deleted():
    data = session(
        patched({"a.py": {"type": "delete", "content": "old\n"}}),
        patched({"a.py": {"type": "add", "content": "new\n"}}),
    )

    assert plan(data, {"a.py": "new\n"}, turn=2)["a.py"].state == "delete"
    assert plan(data, {"a.py": "mine\n"}, turn=2)["a.py"].state == "conflict"
    back = plan(data, {"a.py": "new\n"}, turn=1)["a.py"]
    assert (back.state, back.then) == ("restore", "old\n")


def test_moved_file_returns_to_its_old_path():
    after = BEFORE.replace("two", "TWO")
    moved = difference(BEFORE, after, move_path=f"{r.FOLDER}/b.py")
    data = session(patched({"a.py": moved}))
    rows = plan(data, {"b.py": after})

    assert [*rows] == ["a.py"]
    assert (rows["a.py"].state, rows["a.py"].then, rows["a.py"].moved_to) == (
        "move",
        BEFORE,
        "b.py",
    )
    assert plan(data, {"a.py": "x", "b.py": after})["a.py"].state == "conflict"


@pytest.mark.parametrize(
    ("command", "state"),
    [("sed -i s/a/b/ a.py", "unknown"), ("cat a.py", None), ("rm a.py", "conflict")],
)
def test_file_changed_by_a_command_is_unknown(command: str, state: str | None):
    rows = plan(session(r.shell(command)), {"a.py": "b\n"})

    assert (rows["a.py"].state if "a.py" in rows else None) == state


def test_text_of_a_patch_alone_proves_only_by_context():
    body = "*** Begin Patch\n*** Update File: a.py\n@@\n-two\n+TWO\n*** End Patch"
    data = session(r.shell(f"apply_patch <<'EOF'\n{body}\nEOF"))
    row = plan(data, {"a.py": BEFORE.replace("two", "TWO")})["a.py"]
    twice = plan(data, {"a.py": "TWO\nTWO\n"})["a.py"]

    assert (row.state, row.proof, row.then, row.is_on) == ("restore", "context", BEFORE, False)
    assert twice.state == "conflict"
    assert (twice.why or "").endswith("hunk 1 fits twice")


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "e\r"]), max_size=8)
NAMES = st.sampled_from(["a.py", "b.py", "c/d.py"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    return "\n".join(draw(LINES)) + draw(st.sampled_from(["", "\n"]))


ACTS = st.tuples(st.sampled_from(["write", "delete", "move", "hand"]), NAMES, NAMES, texts())


@settings(max_examples=200)
@given(st.dictionaries(NAMES, texts(), max_size=3), st.lists(ACTS, max_size=8), st.data())
def test_offered_files_have_exactly_the_earlier_bytes(
    disk: Disk, acts: list[tuple[str, str, str, str]], data: st.DataObject
):
    steps, copies, hands = list[r.Step](), [dict(disk)], set[str]()
    for act, name, other, text in acts:
        match act:
            case "write" if name in disk and disk[name] != text:
                steps.append(patched({name: difference(disk[name], text)}))
            case "write" if name not in disk:
                steps.append(patched({name: {"type": "add", "content": text}}))
            case "delete" if name in disk:
                steps.append(patched({name: {"type": "delete", "content": disk.pop(name)}}))
                copies.append(dict(disk))
                continue
            case "move" if name in disk and other not in disk and disk[name] != text:
                moved = difference(disk.pop(name), text, move_path=f"{r.FOLDER}/{other}")
                steps.append(patched({name: moved}))
                disk[other] = text
                copies.append(dict(disk))
                continue
            case "hand" if name in disk:
                hands.add(name)
                disk[name] = text
                copies[-1][name] = text
                continue
            case _:
                continue
        disk[name] = text
        copies.append(dict(disk))
    turn = data.draw(st.integers(1, len(copies)))
    then = copies[turn - 1]

    for path, row in plan(session(*steps), disk, turn).items():
        if row.state in {"restore", "create", "move", "delete"} and not hands:
            assert row.then == then.get(path), row
        if row.state in {"conflict", "unknown", "new_or_replaced", "gone"}:
            assert row.then is None
