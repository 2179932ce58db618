"""Files are restored one by one, checked again before the write, and can be undone."""

import contextlib
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

import rollouts as r
from codex_checkpoints import assembly
from codex_checkpoints.places import Places
from codex_checkpoints.service.files import restores
from codex_checkpoints.service.files.restores import FilesParams, UndoFilesParams
from codex_checkpoints.service.files.writes import FilesWork
from codex_checkpoints.storage import atomic_files, project_files, safety_copies
from codex_checkpoints.storage.safety_copies import SafetyCopies
from core.files.test_plan import BEFORE, difference
from homes import Home, go_on, refusal, thread, without_rights
from peer import Peer

P = ParamSpec("P")
T = TypeVar("T")

AFTER = BEFORE.replace("two", "TWO")
CRLF = "a\r\nb\r\nc"
EMOJI = "größe 🙂.txt"


@pytest.fixture
def project(home: Home) -> Path:
    """Put a session whose second turn changed three files, and the files as it left them."""
    folder = home.user / "shop"
    folder.mkdir(parents=True)
    changes = {
        "a.py": difference(BEFORE, AFTER),
        EMOJI: difference(CRLF, CRLF.replace("b", "B")),
        "src/gone.py": {"type": "delete", "content": "gone\n"},
    }
    named = {f"{folder}/{name}": each for name, each in changes.items()}

    def patched(writer: r.Writer) -> None:
        writer.item("FileChange", None, id="p1", changes=named, status="completed")

    head = r.session(thread=thread(1), cwd=str(folder))
    home.put(r.rollout(head, r.turn(r.user("Begin")), r.turn(r.user("Change it"), patched)))
    (folder / "a.py").write_bytes(AFTER.encode())
    (folder / "a.py").chmod(0o750)
    (folder / EMOJI).write_bytes(CRLF.replace("b", "B").encode())
    return folder


def rows(answer: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    return {each["path"]: (each["state"], each["written"]) for each in answer["rows"]}


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and mode of each file below a folder."""
    found = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {
        str(each.relative_to(folder)): (each.read_bytes(), stat.S_IMODE(each.stat().st_mode))
        for each in found
    }


def test_plan_writes_nothing(home: Home, project: Path):
    before = snapshot(project)
    plan = home.json("restore-files", thread(1), "--to", "1", "--dry-run")

    assert rows(plan) == {
        "a.py": ("restore", False),
        EMOJI: ("restore", False),
        "src/gone.py": ("create", False),
    }
    assert plan["operationId"] is None
    assert snapshot(project) == before
    assert b"-TWO" in home.here("restore-files", thread(1), "--to", "1", "--dry-run").stdout


def test_files_are_restored_with_bytes_and_modes_and_undo_reverts_that(home: Home, project: Path):
    before = snapshot(project)
    done = home.json("restore-files", thread(1), "--to", "1")
    after = snapshot(project)
    again = home.json("restore-files", thread(1), "--to", "1")
    undone = home.json("undo-restore-files", done["operationId"])

    assert after["a.py"] == (BEFORE.encode(), 0o750)
    assert after[EMOJI][0] == CRLF.encode()
    assert after["src/gone.py"] == (b"gone\n", 0o644)
    assert {state for state, _ in rows(again).values()} == {"same"}
    assert all(written for _, written in rows(undone).values())
    assert snapshot(project) == before


def test_plan_says_in_words_which_files_can_be_restored_and_what_is_unknown(
    home: Home, project: Path
):
    (project / "a.py").write_text(AFTER.replace("TWO", "mine"))
    go_on(home.path(), thread(1), r.turn(r.user("Install it"), r.shell("tar xf z.tar")))
    plan = home.json("restore-files", thread(1), "--to", "1", "--dry-run")

    assert plan["headline"] == "2 files can be restored. 1 stays as it is: a.py."
    assert {each["path"]: (each["label"], each["offered"]) for each in plan["rows"]} == {
        "a.py": ("conflict", False),
        EMOJI: ("restore", True),
        "src/gone.py": ("create", True),
    }
    assert (plan["unnamed"], plan["commands"]) == (1, ["tar xf z.tar"])
    shown = home.here("restore-files", thread(1), "--to", "1", "--dry-run").stdout
    assert b"1 command after that turn may have changed more files.\n    tar xf z.tar\n" in shown


def test_answer_names_written_files_and_the_reasons_for_the_others(home: Home, project: Path):
    (project / "a.py").write_text(AFTER.replace("TWO", "mine"))
    asked = [each for name in ("a.py", EMOJI) for each in ("--file", name)]
    done = home.here("restore-files", thread(1), "--to", "1", "--json", *asked)
    answer = json.loads(done.stdout)
    undone = home.json("undo-restore-files", answer["operationId"])

    assert answer["headline"].startswith("1 file restored. Not written: a.py (the patch in #")
    assert undone["headline"] == "1 file put back."


@pytest.mark.usefixtures("project")
def test_preview_has_only_the_texts_of_named_files(home: Home):
    with home.house() as house:
        asked = FilesParams(thread(1), "1", files=("a.py",), texts=True)
        plan = restores.preview(house.sessions, asked)

    found = {row.path: (row.before, row.after) for row in plan.rows}
    assert found == {"a.py": (AFTER, BEFORE), EMOJI: (None, None), "src/gone.py": (None, None)}


@pytest.mark.usefixtures("project")
def test_audit_has_hashes_and_no_text(home: Home):
    done = home.json("restore-files", thread(1), "--to", "1")
    home.json("undo-restore-files", done["operationId"])
    events = home.json("audit", "--session", thread(1))

    assert [each["type"] for each in events] == ["FilesRestored"] * 2
    assert "TWO" not in (home.state / "audit.jsonl").read_text()


@pytest.mark.parametrize("option", ["--file", "--merge"])
def test_only_named_files_are_written(home: Home, project: Path, option: str):
    home.json("restore-files", thread(1), "--to", "1", "--file", "a.py")

    assert (project / "a.py").read_bytes() == BEFORE.encode()
    assert not (project / "src").exists()
    missing = home.refused("restore-files", thread(1), "--to", "1", option, "b.py")
    assert missing["code"] == "invalid_payload"


@pytest.mark.parametrize(
    ("text", "state"), [("zero\n" + AFTER, "merge"), (AFTER.replace("TWO", "mine"), "conflict")]
)
def test_changes_by_others_stay(home: Home, project: Path, text: str, state: str):
    (project / "a.py").write_text(text)
    done = home.here("restore-files", thread(1), "--to", "1", "--file", "a.py", "--json")

    assert done.returncode == 1
    assert f'"state": "{state}"'.encode() in done.stdout
    assert (project / "a.py").read_text() == text


def test_changes_of_other_lines_are_merged_on_request(home: Home, project: Path):
    (project / "a.py").write_text("zero\n" + AFTER)
    home.json("restore-files", thread(1), "--to", "1", "--merge", "a.py")

    assert (project / "a.py").read_text() == "zero\n" + BEFORE


def meanwhile(change: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Change something between the look at the files and the first write."""
    keep = SafetyCopies.keep

    def kept(self: SafetyCopies, operation_id: str, name: str, data: bytes) -> None:
        keep(self, operation_id, name, data)
        monkeypatch.setattr(SafetyCopies, "keep", keep)
        change()

    monkeypatch.setattr(SafetyCopies, "keep", kept)


def test_file_that_changes_meanwhile_stays_and_the_others_are_written(
    home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
):
    meanwhile(lambda: (project / "a.py").write_text("mine\n"), monkeypatch)
    with home.house() as house:
        done = restores.restore(house.sessions, FilesParams(thread(1), "1"))

    found = {row.path: row for row in done.rows}
    assert (found["a.py"].written, found[EMOJI].written) == (False, True)
    assert found["a.py"].why == "left as it is: it was changed meanwhile"
    assert (project / "a.py").read_text() == "mine\n"


def test_swapped_in_link_is_not_followed(
    home: Home, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    other = tmp_path / "other"
    other.mkdir()
    meanwhile(lambda: (project / "src").symlink_to(other), monkeypatch)
    with home.house() as house:
        done = restores.restore(house.sessions, FilesParams(thread(1), "1"))

    assert not {row.path: row for row in done.rows}["src/gone.py"].written
    assert [*other.iterdir()] == []


@pytest.mark.parametrize("kind", ["link", "hard link", "repository", "git", "parent"])
def test_places_outside_the_project_are_left_alone(
    home: Home, project: Path, tmp_path: Path, kind: str
):
    other = tmp_path / "other"
    other.write_bytes(AFTER.encode())
    names = {"repository": "sub/a.py", "git": ".git/config", "parent": "../a.py"}
    name = names.get(kind, "b.py")
    place = project / name
    place.parent.mkdir(exist_ok=True)
    if kind == "link":
        place.symlink_to(other)
    elif kind == "hard link":
        os.link(other, place)
    else:
        place.write_bytes(AFTER.encode())
        (project / "sub/.git").mkdir(parents=True)
    changes = {f"{project}/{name}": difference(BEFORE, AFTER)}

    def patched(writer: r.Writer) -> None:
        writer.item("FileChange", None, id="p1", changes=changes, status="completed")

    head = r.session(thread=thread(2), cwd=str(project))
    home.put(r.rollout(head, r.turn(r.user("a")), r.turn(r.user("b"), patched)), 2)
    plan = home.json("restore-files", thread(2), "--to", "1")

    assert [each["state"] for each in plan["rows"]] == ["link" if "link" in kind else "outside"]
    assert place.read_bytes() == AFTER.encode()


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("step", range(7))
def test_killed_restore_leaves_each_file_old_or_new_and_is_recorded_later(
    home: Home, project: Path, monkeypatch: pytest.MonkeyPatch, step: int
):
    before, new = snapshot(project), {"a.py": BEFORE.encode(), EMOJI: CRLF.encode()}
    steps = iter(range(100))

    def killed(run: Callable[P, T]) -> Callable[P, T]:
        def ran(*given: P.args, **named: P.kwargs) -> T:
            if next(steps) == step:
                raise Killed
            return run(*given, **named)

        return ran

    with monkeypatch.context() as patch, home.house() as house:
        patch.setattr(SafetyCopies, "keep", killed(SafetyCopies.keep))
        patch.setattr(project_files, "put", killed(project_files.put))
        patch.setattr(FilesWork, "record", killed(FilesWork.record))
        try:
            restores.restore(house.sessions, FilesParams(thread(1), "1"))
            ended = True
        except Killed:
            ended = False
    for name, (data, _) in snapshot(project).items():
        assert data in {before.get(name, (b"gone\n", 0))[0], new.get(name)}

    home.json("sessions")
    events = home.json("audit", "--session", thread(1))
    is_done = snapshot(project) != before
    assert [each["type"] for each in events] == ["FilesRestored"] * is_done
    assert [*(home.state / "restoring").glob("*")] == []
    if is_done:
        home.json("undo-restore-files", events[0]["operationId"])
    assert snapshot(project) == before
    assert ended == (step == 6)


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_file_without_room_on_the_disk_stays_and_leaves_no_part(
    home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
):
    before = snapshot(project)
    with monkeypatch.context() as patch, home.house() as house:
        patch.setattr(os, "fchmod", full)
        done = restores.restore(house.sessions, FilesParams(thread(1), "1"))

    assert done.operation_id is None
    assert {row.why for row in done.rows} == {"left as it is: No space left on device"}
    assert snapshot(project) == before
    assert not (project / "src").exists(), "no folder stays that was made for a file"
    assert home.audited() == []
    assert [*(home.state / "file-restores").glob("*/*")] == []


@pytest.mark.skipif(sys.platform == "win32", reason="no mode bits")
def test_read_only_folder_and_file_are_skipped_and_the_rest_is_done(home: Home, project: Path):
    try:
        before = without_rights()
    except LookupError as reason:
        pytest.skip(str(reason))
    (project / "src").mkdir(mode=0o555)
    (project / "a.py").chmod(0o444)
    done = home.run("restore-files", thread(1), "--to", "1", "--json", before=before)
    (project / "src").chmod(0o755)

    why = {each["path"]: each["why"] for each in json.loads(done.stdout)["rows"]}
    assert (done.returncode, done.stderr) == (1, b"")
    assert why == {
        "a.py": "left as it is: it is read-only",
        EMOJI: None,
        "src/gone.py": "left as it is: Permission denied",
    }
    assert snapshot(project) == {
        "a.py": (AFTER.encode(), 0o444),
        EMOJI: (CRLF.encode(), 0o644),
    }


def test_without_a_safety_copy_nothing_is_written(
    home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
):
    before = snapshot(project)
    with monkeypatch.context() as patch, home.house() as house:
        patch.setattr(atomic_files, "publish", full)
        params = FilesParams(thread(1), "1")
        refused = refusal(lambda: restores.restore(house.sessions, params))

    assert refused.code == "storage_error"
    assert snapshot(project) == before


def test_undo_removes_new_folders_if_they_are_empty(home: Home, project: Path):
    done = home.json("restore-files", thread(1), "--to", "1")
    assert (project / "src/gone.py").exists()
    again = home.json("undo-restore-files", done["operationId"])
    assert not (project / "src").exists()

    home.json("undo-restore-files", again["operationId"])
    assert (project / "src/gone.py").read_bytes() == b"gone\n"
    (project / "src/mine.py").write_text("mine\n")
    last = home.audited()[-1]["operationId"]
    home.json("undo-restore-files", last)
    assert [path.name for path in (project / "src").iterdir()] == ["mine.py"]


def test_undo_keeps_a_folder_that_existed_before(home: Home, project: Path):
    (project / "src").mkdir()
    done = home.json("restore-files", thread(1), "--to", "1")
    home.json("undo-restore-files", done["operationId"])

    assert [*(project / "src").iterdir()] == []


def test_undo_skips_files_changed_since(home: Home, project: Path):
    done = home.json("restore-files", thread(1), "--to", "1")
    (project / "a.py").write_text("mine\n")
    undone = home.here("undo-restore-files", done["operationId"], "--json")

    assert undone.returncode == 1
    assert (project / "a.py").read_text() == "mine\n"
    assert (project / EMOJI).read_bytes() == CRLF.replace("b", "B").encode()
    assert home.refused("undo-restore-files", "nobody")["code"] == "unknown_operation"


@pytest.mark.parametrize("which", ["turn", "folder"])
def test_missing_turn_or_folder_is_refused(home: Home, project: Path, which: str):
    if which == "folder":
        project.rename(home.user / "elsewhere")
    refused = home.refused("restore-files", thread(1), "--to", "1" if which == "folder" else "9")

    assert refused["code"] == {"turn": "unknown_turn", "folder": "missing_context"}[which]
    if which == "folder":
        words = "is not on this machine, so files of this session cannot be restored."
        assert refused["message"] == f"{project} {words}"


@pytest.mark.usefixtures("project")
def test_oldest_copies_are_removed_first(home: Home, monkeypatch: pytest.MonkeyPatch):
    first = home.json("restore-files", thread(1), "--to", "1", "--file", "a.py")
    home.json("undo-restore-files", first["operationId"])
    monkeypatch.setattr(safety_copies, "MOST_BYTES", 0)
    with home.house() as house:
        restores.restore(house.sessions, FilesParams(thread(1), "1", files=("a.py",)))
        undo = UndoFilesParams(first["operationId"])
        gone = restores.undo(house.sessions, undo).rows[0]

    assert (gone.state, gone.why) == ("unknown", "its safety copy is gone")


def test_git_folder_is_not_touched(home: Home, project: Path):
    (project / ".git").mkdir()
    (project / ".git/index").write_bytes(b"index")
    before = snapshot(project / ".git")
    home.json("restore-files", thread(1), "--to", "1")

    assert snapshot(project / ".git") == before


def test_server_restores_and_undoes(home: Home, project: Path):
    before = snapshot(project)
    with Peer(home.root) as peer:
        peer.start()
        named = {"sessionId": thread(1), "turnId": "1"}
        plan = peer.call("checkpoints/restoreFilesPreview", {**named, "texts": True})
        done = peer.call("checkpoints/restoreFiles", named)
        undone = peer.call("checkpoints/undoRestoreFiles", {"operationId": done["operationId"]})

    assert (plan["rows"][0]["before"], plan["rows"][0]["after"]) == (AFTER, BEFORE)
    assert all(written for _, written in (rows(done) | rows(undone)).values())
    assert snapshot(project) == before


# --- many files, large files ---------------------------------------------------------------------

SECONDS = 20.0
"""Of the processor, several times what it takes: what grows with the square takes minutes."""


def put_changes(home: Home, changes: dict[str, Any], now: dict[str, str]) -> Path:
    """Put a session whose second turn made these changes, and the files as it left them."""
    folder = home.user / "shop"
    for name, text in now.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    named = {f"{folder}/{name}": each for name, each in changes.items()}

    def patched(writer: r.Writer) -> None:
        writer.item("FileChange", None, id="p1", changes=named, status="completed")

    head = r.session(thread=thread(1), cwd=str(folder))
    home.put(r.rollout(head, r.turn(r.user("Begin")), r.turn(r.user("Change"), patched)))
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)  # a busy disk takes some milliseconds to flush each of them
def test_two_thousand_files_are_restored_and_undone(home: Home):
    names = [f"folder{number % 50}/{number}.py" for number in range(2000)]
    change = difference(BEFORE, AFTER)
    folder = put_changes(home, dict.fromkeys(names, change), dict.fromkeys(names, AFTER))
    left = snapshot(folder)
    begun = time.process_time()

    done = home.json("restore-files", thread(1), "--to", "1")
    assert done["headline"] == "2000 files restored."
    assert {data for data, _ in snapshot(folder).values()} == {BEFORE.encode()}

    home.json("undo-restore-files", done["operationId"])
    assert snapshot(folder) == left
    assert time.process_time() - begun < SECONDS


@pytest.mark.slow
def test_file_of_fifty_megabytes_is_restored_and_a_larger_one_stays(home: Home):
    line = "x" * 49 + "\n"
    lines = [line] * 1_000_000
    before = "".join(lines)
    lines[500_000] = "changed\n"
    rows = f"@@ -500000,3 +500000,3 @@\n {line}-{line}+changed\n {line}"
    change = {"type": "update", "unified_diff": rows, "move_path": None}
    folder = put_changes(home, {"large.txt": change}, {"large.txt": "".join(lines)})
    begun = time.process_time()

    done = home.json("restore-files", thread(1), "--to", "1")
    assert (folder / "large.txt").read_text() == before

    home.json("undo-restore-files", done["operationId"])
    assert (folder / "large.txt").read_text() == "".join(lines)
    assert time.process_time() - begun < SECONDS

    with (folder / "large.txt").open("ab") as file:
        file.truncate(project_files.LARGEST + 1)
    (row,) = home.json("restore-files", thread(1), "--to", "1", "--dry-run")["rows"]
    assert (row["state"], row["why"], row["offered"]) == ("too_large", "it is too large", False)


# --- the text that git has -----------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    alone = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": os.environ["PATH"],
    }
    who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=alone, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode().strip()


@pytest.fixture
def repository(home: Home) -> Path:
    """Put a session in a folder below a repository, which wrote files as new over others."""
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    top = home.user / "work"
    folder = top / "shop"
    folder.mkdir(parents=True)
    git(top, "init", "-q")
    secret = "password = 'hunter2hunter2'\n"
    for name, text in {"a.py": BEFORE, EMOJI: CRLF, "key.py": secret}.items():
        (folder / name).write_bytes(text.encode())
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "one")
    added = {"type": "add", "content": "mine\n"}
    names = ("a.py", EMOJI, "key.py", "new.py")

    def patched(writer: r.Writer) -> None:
        changes = {f"{folder}/{name}": added for name in names}
        writer.item("FileChange", None, id="p1", changes=changes, status="completed")

    commit = {"commit_hash": git(top, "rev-parse", "HEAD"), "branch": "main"}
    head = r.session(thread=thread(1), cwd=str(folder), git=commit)
    home.put(r.rollout(head, r.turn(r.user("Begin")), r.turn(r.user("Write"), patched)))
    for name in names:
        (folder / name).write_text("mine\n")
    return top


def texts_in(home: Home) -> dict[str, tuple[str | None, str | None]]:
    where = Places(str(home.root), str(home.state))
    house = assembly.assemble(where, environment=home.environment())
    with contextlib.closing(house.sessions) as sessions:
        sessions.refresh()
        plan = restores.preview(sessions, FilesParams(thread(1), "1", texts=True))
    assert {(row.state, row.offered, row.hash_then) for row in plan.rows} == {
        ("new_or_replaced", False, None)
    }
    return {row.path: (row.before, row.after) for row in plan.rows}


@pytest.mark.usefixtures("repository")
def test_text_in_git_is_shown_beside_a_file_that_may_have_replaced_it(home: Home):
    assert texts_in(home) == {
        "a.py": ("mine\n", BEFORE),
        EMOJI: ("mine\n", CRLF),
        "key.py": ("mine\n", None),
        "new.py": (None, None),
    }
    shown = home.here("restore-files", thread(1), "--to", "1", "--dry-run").stdout.decode()
    assert "work/shop: No file can be restored. 4 stay as they are: " in shown.splitlines()[0]
    assert "not recorded; git has a text of it in " in shown
    assert "    -mine\n    +one\n" in shown


def test_showing_it_runs_no_program_named_by_a_repository(home: Home, repository: Path):
    mark = home.user / "run"
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"):
        git(repository, "config", name, f"touch {mark}")
    git(repository, "config", "alias.cat-file", f"!touch {mark}")
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    for name in ("filter.x.smudge", "filter.x.clean", "diff.x.textconv"):
        git(repository, "config", name, f"touch {mark}; cat")
    assert texts_in(home)["a.py"] == ("mine\n", BEFORE)
    assert not mark.exists()

    git(repository, "config", "core.repositoryFormatVersion", "1")
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.url", f"ext::sh -c touch% {mark}")
    git(repository, "config", "protocol.ext.allow", "always")
    for path in (repository / ".git/objects").glob("??/*"):
        path.unlink()
    assert texts_in(home)["a.py"] == (None, None)
    assert not mark.exists()


def test_nothing_is_shown_without_a_repository_or_a_commit(home: Home, repository: Path):
    shutil.rmtree(repository / ".git")

    assert set(texts_in(home).values()) == {(None, None)}


def test_showing_it_does_not_change_git(home: Home, repository: Path):
    before = snapshot(repository / ".git")
    texts_in(home)

    assert snapshot(repository / ".git") == before
