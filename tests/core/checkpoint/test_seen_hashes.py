"""Content of a file that a session saw: proved by its record, else observed by a watcher."""

import hashlib
import json
from collections.abc import Mapping

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.items import answered_whole
from codex_checkpoints.core.checkpoint.records import Artifact, Checkpoint, from_bytes, to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.shell.script import files_of
from derived_state import read, read_on

WAS = "a = 1\n"
OTHER = "sha256:" + "0" * 64
FORMS: tuple[r.Form, ...] = ("paginated", "legacy")


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def seen(
    *steps: r.Step,
    hashes: Mapping[str, str | None] | None = None,
    lines: Mapping[tuple[str, int], str] | None = None,
    form: r.Form = "paginated",
) -> Artifact:
    """Return `a.py` as a checkpoint has it; the host can look at it, and finds another content."""
    replay = read(r.rollout(r.session(form), r.turn(r.user("look"), *steps)))
    return replay.checkpoint(
        (), {"a.py": OTHER} if hashes is None else hashes, seen=lines or {}
    ).artifacts["a.py"]


def cat(text: str = WAS, script: str = "cat a.py", **more: object) -> r.Step:
    return r.shell(script, text, reads=["a.py"], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", [WAS, "größe = 1", "\ufeffa\tb\r\n".replace("\r", ""), "a\rb"])
def test_plain_cat_call_proves_the_content_of_its_file(form: r.Form, text: str):
    found = seen(cat(text), form=form)

    assert found.seen_hash == sha(text)
    assert found.is_changed


@pytest.mark.parametrize(
    "script",
    [
        "cat -n a.py",
        "cat a.py | head",
        "cat a.py; true",
        "cat a.py a.py",
        "cat < a.py",
        "cd . && cat a.py",
    ],
)
def test_other_reads_prove_nothing(script: str):
    assert seen(cat(script=script)).seen_hash is None


@pytest.mark.parametrize(
    "text",
    [
        "",  # perhaps it is not recorded
        "not all is te\ufffdt",  # bytes that are no text
        "a\r\n",  # what a terminal makes of a line end
        "x" * 65_530,  # Codex may have left out the middle
        "ä" * 32_765,  # the same in bytes
        "a…12 tokens truncated…b",
        "a…12 chars truncated…b",
        "a\n[... omitted 12 of 400 lines ...]\nb",
        "... 240319 bytes omitted ...\n",
        "Warning: truncated output (original token count: 49130)\n\na",
        "bash: warning: setlocale: LC_ALL: cannot change locale\na = 1\n",
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_output_that_may_differ_from_the_file_proves_nothing(form: r.Form, text: str):
    assert seen(cat(text), form=form).seen_hash is None


def test_longest_output_that_proves_content_has_65529_bytes():
    assert seen(cat("x" * 65_529)).seen_hash == sha("x" * 65_529)


@pytest.mark.parametrize("form", FORMS)
def test_failed_read_proves_nothing(form: r.Form):
    assert seen(cat(exit_code=1, status="failed"), form=form).seen_hash is None


def test_answer_with_a_stated_length_must_be_complete():
    def answer(*head: str) -> str | None:
        return answered_whole(("\n".join([*head, "Output:", WAS]),))

    done = "Process exited with code 0"
    assert answer(done, "Original token count: 2") == sha(WAS)
    assert answer(done, "Original token count: 3") is None
    assert answer("Exit code: 0", "Wall time: 0 seconds") == sha(WAS)
    assert answer("Exit code: 0", "Total output lines: 400") is None
    assert answer("Process running with session ID 7") is None
    assert answered_whole((json.dumps({"output": WAS, "metadata": {"exit_code": 0}}),)) == sha(WAS)
    assert answered_whole((WAS,)) is None


@pytest.mark.parametrize("form", FORMS)
def test_file_added_by_a_patch_was_seen_with_its_content(form: r.Form):
    assert seen(r.patch(add="a.py"), form=form).seen_hash == sha("x\n")


def test_patch_known_only_by_its_call_proves_the_added_file():
    done = "Success. Updated the following files:\nA a.py\n"
    text = r.patch_text(add="a.py")

    found = seen(
        r.custom_call("apply_patch", text, "p"), r.output("p", done, custom=True), form="legacy"
    )

    assert found.seen_hash == sha("x\n")


@pytest.mark.parametrize(
    ("lines", "content"),
    [
        (["+a", "+", "+b"], "a\n\nb\n"),
        (["+a\r", "+b\r"], "a\nb\n"),
        ([], ""),
        (["++", "+ "], "+\n \n"),
    ],
)
def test_content_of_an_added_file_is_its_lines(lines: list[str], content: str):
    text = "\n".join(["*** Begin Patch", "*** Add File: a", *lines, "*** End Patch"])

    assert [each.added for each in files_of(text)] == [sha(content)]


@pytest.mark.parametrize(
    "step",
    [
        r.patch(update="a.py"),
        r.patch(delete="a.py"),
        r.patch(move=("b.py", "a.py")),
        cat(script="head a.py"),
    ],
)
def test_seen_hash_belongs_to_the_last_observation_only(step: r.Step):
    assert seen(cat(), step).seen_hash is None
    assert seen(step, cat()).seen_hash == sha(WAS)


def test_file_added_and_changed_by_one_patch_differs_from_the_added_text():
    changes = {
        "/home/ana/shop/a.py": {"type": "add", "content": "x\n"},
        "a.py": {"type": "update", "unified_diff": ""},
    }
    done = r.event("patch_apply_end", call_id="p", success=True, changes=changes)

    assert seen(done, form="legacy").seen_hash is None


# --- what a host saw right after it --------------------------------------------------------------


def test_following_host_records_hashes_without_proof_in_the_record():
    read_at = 5
    head = cat(script="head a.py")

    assert seen(head).last_observed_seq == read_at
    assert seen(head, lines={("a.py", read_at): sha("b")}).seen_hash == sha("b")
    assert seen(head, lines={("a.py", read_at - 1): sha("b")}).seen_hash is None
    assert seen(cat(), lines={("a.py", read_at): sha("b")}).seen_hash == sha(WAS)


# --- where it is shown ---------------------------------------------------------------------------


def test_file_that_the_host_cannot_read_has_no_change_status():
    assert seen(cat(), hashes={}).seen_hash is None


def test_missing_file_has_only_its_seen_hash():
    gone = seen(cat(), hashes={"a.py": None})

    assert (gone.hash, gone.seen_hash, gone.is_changed) == (None, sha(WAS), True)


def test_hashes_of_two_kinds_are_not_compared():
    assert seen(cat(), hashes={"a.py": "stat:70000000-1"}).seen_hash is None


def test_unchanged_file_is_not_marked_changed():
    same = seen(cat(), hashes={"a.py": sha(WAS)})

    assert (same.hash, same.seen_hash, same.is_changed) == (sha(WAS), sha(WAS), False)


def checkpoint(*steps: r.Step, hashes: Mapping[str, str | None]) -> Checkpoint:
    return read(r.rollout(r.session(), r.turn(r.user("look"), *steps))).checkpoint((), hashes)


def test_seen_hash_follows_the_hash_and_is_absent_if_unknown():
    found = checkpoint(cat(), r.patch(update="b.py"), hashes={"a.py": OTHER, "b.py": OTHER})
    data = to_bytes(found)

    written = json.loads(data)["artifacts"]
    assert list(written["a.py"]) == ["uri", "kind", "hash", "seenHash", "lastObservedSeq"]
    assert list(written["b.py"]) == ["uri", "kind", "hash", "lastObservedSeq"]
    assert from_bytes(data) == found


def test_session_continued_from_a_checkpoint_keeps_seen_hashes():
    before = checkpoint(cat(), hashes={"a.py": OTHER})
    replay = Replay()
    replay.begin_from(before)
    after = read_on(replay, r.rollout(r.session(), r.turn(r.user("go on"))))

    assert after.checkpoint((), {"a.py": OTHER}).artifacts["a.py"].seen_hash == sha(WAS)
    loaded = Replay.load(json.loads(json.dumps(after.save())))
    assert loaded is not None
    assert loaded.checkpoint((), {"a.py": OTHER}) == after.checkpoint((), {"a.py": OTHER})


def test_line_that_lost_its_blobs_proves_nothing():
    blob = "A" * 5_000_000
    changes = {"/home/ana/shop/a.py": {"type": "add", "content": blob}}
    done = r.event("patch_apply_end", call_id="p", success=True, changes=changes)

    assert seen(done, form="legacy").seen_hash is None
