"""A hook copies the files that Codex is about to write, and a restore uses the copies (FIL).

What the real Codex makes of it is in `codex/test_files_come_back.py`.
"""

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.storage import safety_copies
from codex_checkpoints.storage.safety_copies import LARGEST_COPY, FileCopies
from core.files.test_plan import difference
from homes import Home, thread

SESSION = thread(1)
PROJECT = "shop"


class Codex:
    """Works in a project as Codex does: calls the hooks around a tool, and records the call."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.folder = home.user / PROJECT
        self.folder.mkdir(parents=True)
        self._turns = [r.turn(r.user("Begin"))]
        self.mode("replaced")
        self._record()

    def mode(self, mode: str) -> None:
        self.home.config(f'fileCopies = "{mode}"\n')

    def _record(self) -> None:
        head = r.session(thread=SESSION, cwd=str(self.folder))
        self.home.put(r.rollout(head, *self._turns))

    def took(self, *steps: r.Step) -> None:
        """Record a turn."""
        self._turns.append(r.turn(r.user("Go on"), *steps))
        self._record()

    def hook(self, event: str, call: str, tool: str, command: str, **more: object) -> str:
        """Call the hook, which says nothing; return what it logs."""
        told = {
            "session_id": SESSION,
            "transcript_path": str(self.home.path()),
            "cwd": str(self.folder),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": {"command": command},
            "tool_use_id": call,
            **more,
        }
        done = self.home.run("hook", said=json.dumps(told).encode())
        assert (done.returncode, done.stdout) == (0, b"")
        return done.stderr.decode()

    def write(self, name: str, text: str, call: str = "p1") -> None:
        """Write a file as new by a patch."""
        body = "".join(f"+{line}\n" for line in text.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {name}\n{body}*** End Patch"
        self.hook("PreToolUse", call, "apply_patch", patch)
        self.put(name, text)
        self.took(self.changed(call, {name: {"type": "add", "content": text}}))

    def move(self, name: str, target: str, old: str, new: str, call: str = "p1") -> None:
        """Change a file and move it by a patch."""
        body = f"*** Update File: {name}\n*** Move to: {target}\n@@\n-{old}\n+{new}\n"
        self.hook("PreToolUse", call, "apply_patch", f"*** Begin Patch\n{body}*** End Patch")
        before = (self.folder / name).read_text()
        after = before.replace(old, new)
        (self.folder / name).unlink()
        self.put(target, after)
        moved = difference(before, after, move_path=f"{self.folder}/{target}")
        self.took(self.changed(call, {name: moved}))

    def run(self, command: str, call: str = "c1") -> None:
        """Run a command."""
        self.hook("PreToolUse", call, "Bash", command)
        subprocess.run(["bash", "-c", command], cwd=self.folder, check=True)
        self.hook("PostToolUse", call, "Bash", command, tool_response="")
        self.took(r.shell(command, call=call))

    def changed(self, call: str, changes: Mapping[str, Any]) -> r.Step:
        named = {f"{self.folder}/{name}": each for name, each in changes.items()}
        return lambda writer: writer.item(
            "FileChange", None, id=call, changes=named, status="completed"
        )

    def put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def files(self) -> dict[str, str]:
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_text() for path in found}

    def plan(self, *options: str) -> dict[str, tuple[str, str | None, bool]]:
        """Return state, proof and whether it is on of each file, to the end of the first turn."""
        rows = self.home.json("restore-files", SESSION, "--to", "1", "--dry-run", *options)["rows"]
        return {row["path"]: (row["state"], row["proof"], row["on"]) for row in rows}

    def why(self, name: str) -> str:
        rows = self.home.json("restore-files", SESSION, "--to", "1", "--dry-run")["rows"]
        return next(row["why"] for row in rows if row["path"] == name)

    def restore(self) -> str:
        return self.home.json("restore-files", SESSION, "--to", "1")["operationId"]

    def copies(self) -> list[Path]:
        return sorted((self.home.state / "file-copies").glob("*"))


@pytest.fixture
def codex(home: Home) -> Codex:
    return Codex(home)


ADDED = "*** Begin Patch\n*** Add File: a.py\n+mine\n*** End Patch"
OLD, NEW = "one\ntwo\nthree\n", "mine\n"


def test_text_replaced_by_an_added_file_is_restored_and_undo_reverts_that(codex: Codex):
    codex.put("a.py", OLD)
    codex.write("a.py", NEW)
    assert codex.plan() == {"a.py": ("restore", "copy", True)}

    operation = codex.restore()
    assert codex.files() == {"a.py": OLD}

    codex.home.json("undo-restore-files", operation)
    assert codex.files() == {"a.py": NEW}


def test_added_file_is_deleted_if_the_hook_saw_none(codex: Codex):
    codex.write("sub/a.py", NEW)
    assert codex.plan() == {"sub/a.py": ("delete", "copy", True)}
    assert codex.why("sub/a.py") == "this session made it; no file was there before"

    codex.restore()
    assert codex.files() == {}


def test_added_file_that_others_changed_stays(codex: Codex):
    codex.write("a.py", NEW)
    codex.put("a.py", "theirs\n")

    assert codex.plan() == {"a.py": ("conflict", None, False)}


def test_both_files_of_a_move_onto_another_one_are_restored(codex: Codex):
    codex.put("a.py", OLD)
    codex.put("b.py", "victim\n")
    codex.move("a.py", "b.py", "two", "TWO")
    assert codex.plan() == {"a.py": ("create", "diff", True), "b.py": ("restore", "copy", True)}
    assert codex.why("a.py") == "it was moved to b.py, in the place of another file"

    operation = codex.restore()
    assert codex.files() == {"a.py": OLD, "b.py": "victim\n"}

    codex.home.json("undo-restore-files", operation)
    assert codex.files() == {"b.py": OLD.replace("two", "TWO")}


def test_overwritten_file_is_restored_alone_only_over_the_moved_bytes(codex: Codex):
    codex.put("a.py", OLD)
    codex.put("b.py", "victim\n")
    codex.move("a.py", "b.py", "two", "TWO")
    codex.put("b.py", "one\nTWO\nthree\nand theirs\n")

    assert codex.plan() == {"a.py": ("create", "diff", True), "b.py": ("merge", "copy", False)}


def test_move_to_a_free_path_is_undone_with_certainty(codex: Codex):
    codex.put("a.py", OLD)
    codex.move("a.py", "b.py", "two", "TWO")
    assert codex.plan() == {"a.py": ("move", "diff", True)}
    assert codex.why("a.py") == "it comes back from b.py"

    codex.restore()
    assert codex.files() == {"a.py": OLD}


def test_file_that_the_session_created_and_moved_is_deleted(codex: Codex):
    codex.write("a.py", OLD, "p1")
    codex.move("a.py", "b.py", "two", "TWO", "p2")
    assert codex.plan() == {
        "a.py": ("same", None, False),
        "b.py": ("delete", "diff", True),
    }

    codex.restore()
    assert codex.files() == {}


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("sed -i s/two/TWO/ a.py", {"a.py": "restore"}),
        ("echo new > a.py", {"a.py": "restore"}),
        ("echo new > b.py", {"b.py": "delete"}),
        ("rm a.py", {"a.py": "create"}),
        ("mv a.py b.py", {"a.py": "create", "b.py": "delete"}),
        ("mv a.py old.py", {"a.py": "create", "old.py": "restore"}),
        ("echo x > a.py; sed -i s/x/y/ a.py", {"a.py": "restore"}),
    ],
)
def test_file_named_by_a_command_is_restored(codex: Codex, command: str, left: dict[str, str]):
    before = {"a.py": OLD, "old.py": "old\n"}
    for name, text in before.items():
        codex.put(name, text)
    codex.mode("named")
    codex.run(command)
    after = codex.files()
    assert codex.plan() == {name: (state, "copy", True) for name, state in left.items()}

    operation = codex.restore()
    assert codex.files() == before

    codex.home.json("undo-restore-files", operation)
    assert codex.files() == after


def test_file_changed_after_a_command_stays(codex: Codex):
    codex.put("a.py", OLD)
    codex.mode("named")
    codex.run("sed -i s/two/TWO/ a.py")
    codex.put("a.py", OLD)

    assert codex.plan() == {"a.py": ("conflict", None, False)}


@pytest.mark.parametrize("mode", ["off", "replaced"])
def test_file_of_a_command_is_copied_only_on_request(codex: Codex, mode: str):
    codex.put("a.py", OLD)
    codex.mode(mode)
    codex.run("sed -i s/two/TWO/ a.py")

    assert codex.copies() == []
    assert codex.plan() == {"a.py": ("unknown", None, False)}


@pytest.mark.parametrize("mode", ["off", "replaced", "named"])
def test_target_of_an_update_is_not_copied(codex: Codex, mode: str):
    codex.put("a.py", OLD)
    codex.mode(mode)
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-two\n+TWO\n*** End Patch"
    codex.hook("PreToolUse", "p1", "apply_patch", patch)

    assert codex.copies() == []


def test_patch_within_a_command_is_read(codex: Codex):
    codex.put("sub/a.py", OLD)
    codex.hook("PreToolUse", "p1", "Bash", f"cd sub && apply_patch <<'EOF'\n{ADDED}\nEOF")

    assert len(codex.copies()) == 1


# --- the copies ----------------------------------------------------------------------------------


def test_copies_are_private_and_stored_once_for_each_content(codex: Codex):
    codex.put("a.py", OLD * 1000)
    codex.put("b.py", OLD * 1000)
    codex.write("a.py", NEW, "p1")
    codex.write("b.py", NEW, "p2")
    (copy,) = codex.copies()

    assert copy.stat().st_size < 200
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    notes = codex.home.state / "sessions" / SESSION / "file_copies.jsonl"
    assert stat.S_IMODE(notes.stat().st_mode) == 0o600
    assert "two" not in notes.read_text()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("large", "the file that was there is too large to copy"),
        ("binary", "the file that was there is not text, and is not copied"),
        ("link", "a link was there, which is not copied"),
        ("gone", "a file was there, and its copy is gone"),
        ("damaged", "a file was there, and its copy is gone"),
    ],
)
def test_file_without_a_copy_stays_with_a_reason(codex: Codex, kind: str, why: str):
    path = codex.folder / "a.py"
    match kind:
        case "large":
            path.write_bytes(b"x" * (LARGEST_COPY + 1))
        case "binary":
            path.write_bytes(b"\xff\xfe")
        case "link":
            codex.put("b.py", OLD)
            path.symlink_to("b.py")
        case _:
            codex.put("a.py", OLD)
    codex.hook("PreToolUse", "p1", "apply_patch", ADDED)
    path.unlink()
    codex.put("a.py", NEW)
    codex.took(codex.changed("p1", {"a.py": {"type": "add", "content": NEW}}))
    for copy in codex.copies():
        copy.unlink() if kind == "gone" else copy.write_bytes(b"damaged")

    assert codex.plan() == {"a.py": ("new_or_replaced", None, False)}
    assert codex.why("a.py").endswith(f"; {why}")


@pytest.mark.parametrize("place", ["../outside.py", "/etc/hostname", ".git/config", "link/a.py"])
def test_file_outside_the_project_is_not_copied(codex: Codex, place: str, tmp_path: Path):
    (codex.folder / "link").symlink_to(tmp_path)
    for path in (codex.folder.parent / "outside.py", tmp_path / "a.py"):
        path.write_text(OLD)
    codex.put(".git/config", OLD)
    codex.hook("PreToolUse", "p1", "apply_patch", f"*** Begin Patch\n*** Add File: {place}\n+x\n")

    assert codex.copies() == []


def test_old_copies_are_removed_and_reused_ones_stay(codex: Codex, monkeypatch: pytest.MonkeyPatch):
    copies = FileCopies(str(codex.home.state))
    first, second = copies.keep(b"first"), copies.keep(b"second")
    month_ago = time.time() - safety_copies.MOST_SECONDS - 60
    for path in codex.copies():
        os.utime(path, (month_ago, month_ago))
    copies.keep(b"first")
    third = copies.keep(b"third")
    assert [copies.kept(each) for each in (first, second, third)] == [b"first", None, b"third"]

    monkeypatch.setattr(safety_copies, "MOST_BYTES", 20)
    fourth = copies.keep(b"fourth")
    assert [copies.kept(each) for each in (first, third, fourth)] == [None, None, b"fourth"]


# --- what goes wrong -----------------------------------------------------------------------------


def failures(home: Home) -> list[tuple[str, str]]:
    return [(each["event"], each["code"]) for each in home.audited()]


def test_file_of_another_session_is_refused(codex: Codex):
    codex.put("a.py", OLD)
    log = codex.hook("PreToolUse", "p1", "apply_patch", ADDED, session_id=thread(2))

    assert "mine" not in log
    assert codex.copies() == []
    assert failures(codex.home) == [("PreToolUse", "unknown_session")]


@pytest.mark.parametrize(
    "more",
    [
        {"tool_input": {"path": "a.py"}},
        {"tool_input": None},
        {"tool_name": "view_image"},
        {"tool_use_id": 7},
        {"transcript_path": None},
    ],
)
def test_call_without_a_patch_or_a_script_is_allowed(codex: Codex, more: dict[str, object]):
    codex.put("a.py", OLD)
    codex.hook(
        "PreToolUse", "p1", "apply_patch", "*** Begin Patch\n*** Add File: a.py\n+x\n", **more
    )

    assert codex.copies() == []
    assert failures(codex.home) == []


def test_call_is_allowed_if_no_copy_can_be_written(codex: Codex):
    codex.put("a.py", OLD)
    (codex.home.state / "file-copies").write_bytes(b"in the way")
    codex.hook("PreToolUse", "p1", "apply_patch", ADDED)

    assert failures(codex.home) == [("PreToolUse", "storage_error")]


SLOW = """
import threading
from codex_checkpoints.doors import hook
from codex_checkpoints.service.files import copies
copies.note = lambda *_: threading.Event().wait(30)
hook.SECONDS_TO_COPY = 0.2; hook.serve(None, None)
"""


def test_late_hook_ends_and_blocks_nothing(codex: Codex):
    call = {
        "session_id": SESSION,
        "transcript_path": str(codex.home.path()),
        "cwd": str(codex.folder),
        "hook_event_name": "PreToolUse",
        "tool_name": "apply_patch",
        "tool_input": {"command": "*** Begin Patch\n"},
        "tool_use_id": "p1",
    }
    done = codex.home.alone(sys.executable, "-c", SLOW, said=json.dumps(call).encode())

    assert (done.returncode, done.stdout) == (0, b"")
    assert failures(codex.home) == [("PreToolUse", "timed_out")]


# --- the connection ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "events"),
    [
        ("off", []),
        ("replaced", ["PreToolUse"]),
        ("named", ["PreToolUse", "PostToolUse"]),
    ],
)
def test_codex_is_configured_with_the_hooks_that_the_setting_requires(
    codex: Codex, mode: str, events: list[str]
):
    codex.mode(mode)
    codex.home.json("connect")
    hooks = codex.home.json("connect", "--status")["hooks"]
    assert [hook["event"] for hook in hooks][3:] == events

    codex.mode("named" if mode == "off" else "off")
    (door, _) = codex.home.json("connect", "--status")["doors"]
    assert door["problem"] == "outdated"
    codex.home.json("connect")
    assert codex.home.json("connect", "--status")["doors"][0]["problem"] is None


def test_last_copy_counts_as_a_call(codex: Codex):
    codex.home.json("connect")
    codex.write("a.py", NEW)
    hooks = codex.home.json("connect", "--status")["hooks"]

    assert [hook["event"] for hook in hooks if hook["lastSession"] == SESSION] == ["PreToolUse"]
