"""Texts of files between the patches of a session: only those that a hash proves."""

import difflib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.changes.edits import MOST_COMMAND, Edits, FileTouch, texts_of, trail_of
from codex_checkpoints.core.changes.file_history import FileHistory
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.events import Action
from codex_checkpoints.core.fields import content_hash
from codex_checkpoints.core.patches import applied
from derived_state import following
from generated_rollouts import sessions

V1, V2, V3 = "a = 1\nb = 1\n", "a = 2\nb = 1\n", "a = 2\nb = 3\n"
ONE_TO_TWO = ("@@", "-a = 1", "+a = 2", " b = 1")
TWO_TO_THREE = ("@@ -2 +2 @@", "-b = 1", "+b = 3")


def touch(*hunks: str, text: str | None = None, action: Action = "update") -> FileTouch:
    return FileTouch(1, 1, "t1", action, hunks or None, text, content_hash(text))


READ = touch(action="read")
UNKNOWN = touch()


def edits(*steps: r.Step, form: r.Form) -> dict[str, list[FileTouch]]:
    return following(Edits, r.rollout(r.session(form), *steps)).files


# --- what is collected ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_changes_of_a_file_keep_their_order_with_turns_and_hunks(form: r.Form):
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
def test_new_name_of_a_file_shows_the_old_one(form: r.Form):
    files = edits(r.turn(r.user("Go"), r.patch(move=("a.py", "b.py"))), form=form)

    both = (*files["a.py"], *files["b.py"])
    assert [each.moved_from for each in both] == [None, "a.py"]
    assert [each.moved_to for each in both] == ["b.py", None]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_whole_printed_file_gives_a_known_text(form: r.Form):
    whole = r.shell("cat a.py", V1, reads=["a.py"])
    part = r.shell("sed -n 1,5p a.py", V1, reads=["a.py"])

    (one,) = edits(r.turn(r.user("Go"), whole), form=form)["a.py"]
    (other,) = edits(r.turn(r.user("Go"), part), form=form)["a.py"]

    assert (one.action, one.text, one.hash) == ("read", V1, content_hash(V1))
    assert (other.text, other.hash) == (None, None)


def test_refused_patch_is_not_a_change():
    assert not edits(r.turn(r.user("Go"), r.patch(update="a.py", done=False)), form="paginated")


def test_a_file_that_a_patch_adds_and_then_deletes_is_deleted():
    files = edits(r.turn(r.user("Go"), r.patch(add="a.py", delete="a.py")), form="paginated")

    assert [each.action for each in files["a.py"]] == ["delete"]


def test_a_file_that_the_patch_before_rewrote_can_be_deleted():
    again = "*** Begin Patch\n*** Delete File: a.py\n*** Add File: a.py\n+x\n*** End Patch"
    files = edits(
        r.turn(
            r.user("Go"),
            r.custom_call("apply_patch", again, "c9"),
            r.item("FileChange", id="c9", changes={"a.py": {"type": "add", "content": "x\n"}}),
            r.shell("rm a.py"),
        ),
        form="paginated",
    )

    assert [(each.action, each.rewrites) for each in files["a.py"]] == [
        ("update", True),
        ("delete", True),
    ]


# --- one account ---------------------------------------------------------------------------------

Account = dict[str, tuple[str, int, int, str | None, str | None]]


def by_edits(data: bytes) -> Account:
    """Return what `changes` says of each file that was changed."""
    files = following(Edits, data).files
    return {uri: told(trail_of(each)) for uri, each in files.items() if any(t.edits for t in each)}


def by_digest(data: bytes) -> Account:
    """Return what the digest says of each."""
    replay = Replay()
    gathering = DigestExtract(replay, r.THREAD)
    replay.close(data[replay.feed(data) :])
    return {uri: told(trail) for uri, trail in gathering.gathered().changes.items()}


def told(trail: FileHistory) -> tuple[str, int, int, str | None, str | None]:
    return trail.kind, trail.added, trail.removed, trail.moved_from, trail.moved_to


BIG = "*** Begin Patch\n*** Delete File: big.py\n*** Add File: big.py\n+short\n*** End Patch"
ANEW = r.several(
    r.custom_call("apply_patch", BIG, "c9"),
    lambda writer: writer.item(
        "FileChange",
        None,
        id="c9",
        status="completed",
        changes={f"{r.FOLDER}/big.py": {"type": "add", "content": "short\n"}},
    ),
)


def moved(old: str, new: str) -> r.Step:
    """Move a file by a patch that changes a line of it."""
    change = {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n", "move_path": new}
    return lambda writer: writer.item(
        "FileChange", None, id="c8", status="completed", changes={old: change}
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([moved("a.py", "a.py")], {"a.py": ("changed", 1, 1, None, None)}),
        (
            [moved("a.py", "b.py")],
            {"a.py": ("moved", 0, 0, None, "b.py"), "b.py": ("moved", 1, 1, "a.py", None)},
        ),
        ([ANEW], {"big.py": ("changed", 1, 0, None, None)}),
        (
            [r.shell("git mv a.py b.py")],
            {"a.py": ("moved", 0, 0, None, "b.py"), "b.py": ("moved", 0, 0, "a.py", None)},
        ),
        ([r.shell("git rm -q a.py")], {"a.py": ("deleted", 0, 0, None, None)}),
        ([r.shell("git rm --cached a.py")], {}),
        ([r.shell("git rm -r src")], {}),
        ([r.shell("git checkout -- a.py")], {"a.py": ("put_back", 0, 0, None, None)}),
        ([r.shell("git checkout main -- a.py")], {"a.py": ("put_back", 0, 0, None, None)}),
        ([r.shell("git checkout a.py")], {}),
        ([r.shell("git restore src/a.py")], {"src/a.py": ("put_back", 0, 0, None, None)}),
        ([r.shell("git restore --staged a.py")], {}),
        ([r.shell("tee a.txt <<< x")], {"a.txt": ("changed", 0, 0, None, None)}),
        ([r.shell("curl -sSL -o a.bin http://x.y/z")], {"a.bin": ("changed", 0, 0, None, None)}),
        ([r.shell("curl -o a.bin http://x.y/z", exit_code=6, status="failed")], {}),
        ([r.shell("wget -qO a.bin http://x.y/z")], {"a.bin": ("changed", 0, 0, None, None)}),
        ([r.shell("npx prettier --write src/q.ts")], {"src/q.ts": ("changed", 0, 0, None, None)}),
        ([r.shell("npx prettier --check src/q.ts")], {}),
        ([r.shell("ruff format src/r.py")], {"src/r.py": ("changed", 0, 0, None, None)}),
        ([r.shell("black -l 100 s.py src")], {"s.py": ("changed", 0, 0, None, None)}),
        ([r.shell("gofmt -l a.go")], {}),
        (
            [
                r.patch(update="a.py"),
                r.shell("git commit -am x"),
                r.patch(update="a.py"),
                r.shell("git restore ."),
            ],
            {"a.py": ("put_back", 1, 1, None, None)},
        ),
        (
            [r.patch(update="a.py"), r.patch(delete="a.py"), r.patch(add="a.py", content="1\n")],
            {"a.py": ("changed", 2, 2, None, None)},
        ),
    ],
)
def test_changes_and_digest_agree_about_a_file(steps: list[r.Step], expected: Account):
    data = r.rollout(r.session(), r.turn(r.user("Go"), *steps))

    assert by_edits(data) == by_digest(data) == expected


def test_patch_in_a_code_mode_script_counts_like_any_other():
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n+c\n*** End Patch"
    code = f"const p = {json.dumps(patch)}; text(await tools.apply_patch(p))"
    answer = "Script completed\nOutput:\nSuccess. Updated the following files:\nM a.py"
    call = r.custom_call("exec", code, "c1"), r.output("c1", answer, custom=True)
    data = r.rollout(r.session("legacy"), r.turn(r.user("Go"), *call))

    assert by_edits(data) == by_digest(data) == {"a.py": ("changed", 2, 1, None, None)}


@given(sessions())
def test_changes_and_digest_agree_in_any_session(data: bytes):
    assert by_edits(data) == by_digest(data)


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("rm -rf build", 1),
        ("cp -r a b && unzip z.zip", 1),
        ("find src -name '*.c' -exec sed -i s/a/b/ {} +", 1),
        ("rg -l a src | xargs perl -pi -e s/a/b/", 1),
        ("cargo fmt", 1),
        ("git apply fix.diff", 1),
        ("npm install left-pad", 1),
        ("python - <<'E'\nopen('g.py', 'w').write('x')\nE", 1),
        ("cd a; mv b c", 1),
        *(("cargo fmt --check", 0), ("git commit -am x", 0), ("sed -n 1p a", 0), ("ls", 0)),
        *(("mv a b", 0), ("npm test", 0), ("git stash list", 0), ("git restore .", 0)),
    ],
)
def test_commands_that_may_have_changed_more_files_are_kept(script: str, count: int):
    data = r.rollout(r.session(), r.turn(r.user("Go"), r.shell(script)))
    found = following(Edits, data).unnamed

    assert [each.command for each in found] == [" ".join(script.split())] * count


def test_kept_command_is_one_short_line_without_secrets():
    secret = f"ghp_{'a1B2' * 9}"
    script = f"TOKEN={secret} make install\ntar xf z.tar {'x' * 300}"
    data = r.rollout(r.session(), r.turn(r.user("Go"), r.shell(script)))
    (found,) = following(Edits, data).unnamed

    assert secret not in found.command
    assert "make install tar xf z.tar x" in found.command
    assert len(found.command) == MOST_COMMAND


# --- what is proved ------------------------------------------------------------------------------


def test_recorded_text_and_patches_up_to_a_known_hash_prove_all_texts_between():
    touches = [touch(text=V1, action="add"), touch(*ONE_TO_TWO), READ, touch(*TWO_TO_THREE)]

    found = texts_of(touches, [None, None, None, content_hash(V3)])

    assert found == {0: V1, 1: V2, 2: V2, 3: V3}


def test_patches_that_lead_to_another_hash_prove_nothing():
    touches = [touch(text=V1, action="add"), touch(*ONE_TO_TWO)]

    assert texts_of(touches, [None, content_hash(V3)]) == {0: V1}
    assert texts_of(touches, [None, None]) == {0: V1}


def test_current_text_counts_only_up_to_the_seen_hash():
    touches = [READ, touch(*ONE_TO_TWO)]
    seen = [content_hash(V1), content_hash(V2)]

    assert texts_of(touches, seen, now=V2) == {0: V1, 1: V2}
    assert texts_of(touches, seen, now=V3) == {}
    assert texts_of(touches, seen, now=V1) == {0: V1, 1: V2}
    assert texts_of(touches, [None, None], now=V2) == {}


def test_earlier_text_counts_if_the_patches_lead_to_the_current_one():
    touches = [touch(*ONE_TO_TWO), touch(*TWO_TO_THREE)]

    assert texts_of(touches, [None, None], now=V3, before=V1) == {-1: V1, 0: V2, 1: V3}
    assert texts_of(touches, [None, None], now=V2, before=V1) == {}
    assert texts_of(touches, [None, content_hash(V3)], now=V1, before=V1) == {-1: V1, 0: V2, 1: V3}


def test_change_without_a_patch_breaks_the_proof():
    touches = [touch(text=V1, action="add"), UNKNOWN, touch(*TWO_TO_THREE)]

    assert texts_of(touches, [None, None, content_hash(V3)], now=V3) == {0: V1, 2: V3}
    assert texts_of(touches, [None, None, content_hash(V3)]) == {0: V1}


# --- how hunks are applied -----------------------------------------------------------------------


def test_hunk_applies_at_its_line_numbers_or_after_its_heading():
    text = "def a():\n    x\ndef b():\n    x\n"

    assert (
        applied(text, ["@@ -4 +4 @@", "-    x", "+    y"]) == "def a():\n    x\ndef b():\n    y\n"
    )
    assert (
        applied(text, ["@@ def b():", "-    x", "+    y"]) == "def a():\n    x\ndef b():\n    y\n"
    )
    assert applied(text, ["@@", "-    x", "+    y"]) == "def a():\n    y\ndef b():\n    x\n"
    assert applied(text, ["@@ -3 +3 @@", "-    x", "+    y"]) is None


def test_last_line_without_a_newline_stays_without():
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
def test_reversed_diff_undoes_the_change(old: list[str], new: list[str]):
    one, other = ("".join(f"{line}\n" for line in each) for each in (old, new))
    rows = [row.removesuffix("\n") for row in difflib.unified_diff(old, new, lineterm="", n=1)][2:]

    assert applied(one, rows) == other
    assert applied(other, rows, back=True) == one
