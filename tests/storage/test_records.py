"""Our own files: replaced whole or not at all, named so that nothing escapes."""

import contextlib
import errno
import json
import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.records import MARKERS, UPDATES, Records
from homes import Home, thread
from rollouts import rollout, session, turn, user
from updates import fact

SESSION = "01a1f865-0000-7000-8000-000000000001"
ROLLOUT = f"/home/s/rollout-2026-11-20T10-00-00-{SESSION}.jsonl"
OLD, NEW = b'{"old":1}\n', b'{"new":1}\n'


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(str(tmp_path / "state"))


def checkpoint(records: Records) -> Path:
    return Path(records.state_dir, "sessions", SESSION, "checkpoint_v1.json")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- the checkpoint ------------------------------------------------------------------------------


def test_nothing_is_created_before_the_first_write(records: Records):
    assert records.updates(SESSION) == ()
    assert records.holding(UPDATES) == frozenset()
    assert records.clear_leftovers() == 0
    assert not Path(records.state_dir).exists()


def test_checkpoint_is_written_once_for_the_same_bytes(records: Records):
    assert records.write_checkpoint(SESSION, ROLLOUT, OLD)
    before = checkpoint(records).stat()

    assert not records.write_checkpoint(SESSION, ROLLOUT, OLD)
    assert checkpoint(records).stat().st_ino == before.st_ino
    assert checkpoint(records).stat().st_mtime_ns == before.st_mtime_ns

    assert records.write_checkpoint(SESSION, ROLLOUT, NEW)
    assert checkpoint(records).read_bytes() == NEW
    assert names(checkpoint(records).parent) == ["checkpoint_v1.json"]


def test_only_the_owner_can_read_stored_files(records: Records):
    records.write_checkpoint(SESSION, ROLLOUT, OLD)

    assert stat.S_IMODE(checkpoint(records).stat().st_mode) == 0o600
    assert stat.S_IMODE(checkpoint(records).parent.stat().st_mode) & 0o077 == 0


def test_id_that_is_not_a_plain_name_has_no_folder(records: Records):
    for session_id in (
        *("..", ".", "", "../x", "a/b", "a\\b", "/etc", "a\0b", ".hidden", "-rf x", "a.", "con:"),
        *("x" * 129, "a\nb", "ü", "\u202eabc"),
    ):
        assert records.session_dir(session_id) is None
        assert records.checkpoint_path(session_id, ROLLOUT) is None
        assert not records.write_checkpoint(session_id, ROLLOUT, OLD)
        assert records.updates(session_id) == ()
    assert not Path(records.state_dir).exists()


@pytest.mark.parametrize("form", [".jsonl", ".jsonl.zst"])
def test_checkpoint_beside_its_rollout_has_the_rollouts_name(tmp_path: Path, form: str):
    stem = f"rollout-2026-11-20T10-00-00-{SESSION}"
    records = Records(str(tmp_path / "state"), beside=True)

    assert records.write_checkpoint(SESSION, str(tmp_path / f"{stem}{form}"), OLD)

    assert names(tmp_path) == [f"{stem}.checkpoint_v1.json"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_failed_write_leaves_only_the_old_bytes(
    records: Records, monkeypatch: pytest.MonkeyPatch, call: str, number: int
):
    records.write_checkpoint(SESSION, ROLLOUT, OLD)

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    def half(descriptor: int) -> None:
        """Let less arrive on the disk than was given, and then nothing."""
        os.ftruncate(descriptor, 3)
        fail()

    with monkeypatch.context() as broken:
        if call == "write":
            broken.setattr(os, "fsync", half)
        else:
            broken.setattr(os, call, fail)
        with pytest.raises(StorageError, match=os.strerror(number)):
            records.write_checkpoint(SESSION, ROLLOUT, NEW)

    assert checkpoint(records).read_bytes() == OLD
    assert names(checkpoint(records).parent) == ["checkpoint_v1.json"]
    assert records.write_checkpoint(SESSION, ROLLOUT, NEW)


def test_obstacle_is_reported_and_left(records: Records):
    Path(records.state_dir).write_bytes(b"")
    with pytest.raises(StorageError):
        records.write_checkpoint(SESSION, ROLLOUT, OLD)
    Path(records.state_dir).unlink()

    checkpoint(records).mkdir(parents=True)
    with pytest.raises(StorageError):
        records.write_checkpoint(SESSION, ROLLOUT, OLD)


def test_reader_sees_one_whole_file_during_concurrent_writes(records: Records):
    versions = [b"%d" % number * 50_000 + b"\n" for number in range(4)]
    records.write_checkpoint(SESSION, ROLLOUT, versions[0])
    done = threading.Event()
    torn: list[bytes] = []

    def read() -> None:
        while not done.is_set():
            data = checkpoint(records).read_bytes()
            if data not in versions:
                torn.append(data)

    def write(data: bytes) -> None:
        for _ in range(15):
            records.write_checkpoint(SESSION, ROLLOUT, data)

    readers = [threading.Thread(target=read) for _ in range(2)]
    writers = [threading.Thread(target=write, args=(data,)) for data in versions]
    for each in (*readers, *writers):
        each.start()
    for each in writers:
        each.join()
    done.set()
    for each in readers:
        each.join()

    assert torn == []
    assert names(checkpoint(records).parent) == ["checkpoint_v1.json"]


# --- what a killed process leaves ----------------------------------------------------------------

LEFT = ".checkpoint_v1.json.0123456789abcdef.tmp"


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    return path


def test_unused_temporary_files_are_removed(records: Records):
    state = Path(records.state_dir)
    left = [put(state / LEFT), put(checkpoint(records).with_name(LEFT))]
    name = ".checkpoint_v1.json.00000000000000ff.tmp"
    at_work = checkpoint(records).with_name(name)

    with atomic_files.temporary_file(str(at_work), (), 0o600):
        assert records.clear_leftovers() == len(left)

        assert [path for path in left if path.exists()] == []
        assert at_work.exists()
    assert records.clear_leftovers() == 1


def test_no_other_file_is_removed(records: Records):
    kept = [
        put(checkpoint(records).with_name(name))
        for name in (
            *("checkpoint_v1.json", "updates.jsonl", "notes.tmp", ".checkpoint_v1.json.tmp"),
            *(".x.0123456789abcde.tmp", ".x.0123456789ABCDEF.tmp", "x.0123456789abcdef.tmp"),
            *(".x.0123456789abcdef.tmp.jsonl", ".x.0123456789abcdef.tmp~"),
        )
    ]

    assert records.clear_leftovers() == 0
    assert all(path.exists() for path in kept)


def test_only_our_files_beside_rollouts_are_removed(tmp_path: Path):
    records = Records(str(tmp_path / "state"), beside=True)
    day = tmp_path / "sessions" / "2026"
    stem = f"rollout-2026-11-20T10-00-00-{SESSION}"
    ours = put(day / f".{stem}.checkpoint_v1.json.0123456789abcdef.tmp")
    others = [
        put(day / f".{stem}.jsonl.0123456789abcdef.tmp"),
        put(day / f"{stem}.jsonl"),
        put(day / f"{stem}.checkpoint_v1.json"),
        put(day / f"{stem}.jsonl.zst.tmp"),
    ]

    assert records.clear_leftovers([str(day)]) == 1

    assert not ours.exists()
    assert all(path.exists() for path in others)


# --- accepted updates ----------------------------------------------------------------------------


def good(seq: int) -> bytes:
    return json.dumps(fact(f"key{seq}", seq=seq)).encode() + b"\n"


def updates(records: Records) -> Path:
    return checkpoint(records).with_name("updates.jsonl")


def test_updates_keep_the_order_of_their_file(records: Records):
    put(updates(records)).write_bytes(good(7) + good(3) + good(7))

    assert [update.seq for update in records.updates(SESSION)] == [7, 3, 7]
    assert records.holding(UPDATES) == {SESSION}


def test_damaged_torn_or_endless_line_is_skipped(records: Records):
    for damage in (
        *(b"\n", b"{}\n", b"[]\n", b"null\n", b"not json\n", b"\xff\xfe\n", b'{"seq":"1"}\n'),
        *(b'{"seq":true,"payload":{}}\n', b'{"seq":1}\n', b'{"seq":1,"payload":[]}\n'),
        b"[" * 5000 + b"\n",
        json.dumps(fact("huge", "x" * (1 << 25))).encode() + b"\n",
    ):
        put(updates(records)).write_bytes(good(1) + damage + good(2) + good(3)[:-9])

        assert [update.seq for update in records.updates(SESSION)] == [1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names in folders there")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_unreadable_updates_are_not_an_empty_list(records: Records, make: Callable[[Path], None]):
    """Else a checkpoint without them would be stored, as if nobody had accepted any."""
    updates(records).parent.mkdir(parents=True)
    make(updates(records))

    with pytest.raises(StorageError, match="not a regular file"):
        records.updates(SESSION)


def test_session_folder_that_is_a_file_has_no_updates(records: Records):
    folder = Path(records.session_dir(SESSION) or "")
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"")

    assert records.updates(SESSION) == ()
    with contextlib.suppress(StorageError):
        assert not records.write_checkpoint(SESSION, ROLLOUT, OLD)
    assert folder.is_file()


# --- appending -----------------------------------------------------------------------------------


def keys(records: Records) -> list[object]:
    return [(update.payload or {}).get("key") for update in records.updates(SESSION)]


def test_line_is_appended_whole_and_private(records: Records):
    with records.journal(SESSION, UPDATES) as journal:
        journal.append(fact("a"))
        journal.append(fact("b"))

    assert keys(records) == ["a", "b"]
    assert updates(records).read_bytes().count(b"\n") == 2
    if os.name == "posix":
        assert stat.S_IMODE(updates(records).stat().st_mode) == 0o600
        assert stat.S_IMODE(updates(records).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("torn", [b'{"seq":1', b'{"seq":1,"turnId":null,"payload":{"key":"x"}}'])
def test_torn_line_is_ended_and_the_next_is_whole(records: Records, torn: bytes):
    with records.journal(SESSION, UPDATES) as journal:
        journal.append(fact("a"))
    with updates(records).open("ab") as file:
        file.write(torn)

    with records.journal(SESSION, UPDATES) as journal:
        journal.append(fact("b"))

    assert [key for key in keys(records) if key != "x"] == ["a", "b"]
    assert updates(records).read_bytes().splitlines()[1] == torn


def test_journal_without_a_line_leaves_nothing(records: Records):
    with records.journal(SESSION, UPDATES):
        assert updates(records).exists()

    assert not Path(records.state_dir, "sessions").exists()


def test_obstacle_in_place_of_a_file_is_refused(records: Records):
    updates(records).mkdir(parents=True)
    with pytest.raises(StorageError), records.journal(SESSION, UPDATES):
        pass
    with (
        pytest.raises(StorageError, match="not the name of a folder"),
        records.journal("../x", UPDATES),
    ):
        pass


def test_only_the_place_of_a_record_decides_its_session(records: Records):
    markers = updates(records).with_name(MARKERS)
    assert records.marked_at(str(markers)) == SESSION
    assert records.marked_at(str(updates(records))) is None
    assert records.noted_at(str(markers)) is None
    assert records.noted_at(str(updates(records))) == SESSION
    assert records.noted_at(str(checkpoint(records))) is None
    assert records.noted_at(str(updates(records).parent)) is None
    assert records.noted_at(f"{records.state_dir}/updates.jsonl") is None


# --- symbolic links ------------------------------------------------------------------------------


@pytest.fixture
def linked(tmp_path: Path) -> tuple[Home, Path]:
    """A home in use, and a file of the user's that a link may lead to."""
    home = Home(tmp_path)
    home.put(rollout(session(thread=thread(1)), turn(user("one")), turn(user("two"))))
    home.json("mark", thread(1), "--label", "here")
    home.json("rename", thread(1), "shop")
    precious = home.user / "precious.jsonl"
    precious.write_bytes(b'{"type":"theirs"}\n')
    return home, precious


OWN_FILES: dict[str, tuple[str, ...]] = {
    "audit.jsonl": ("compact", thread(1), "--force"),
    f"sessions/{thread(1)}/markers.jsonl": ("mark", thread(1), "--label", "again"),
    f"sessions/{thread(1)}/metadata.jsonl": ("rename", thread(1), "shop two"),
    f"sessions/{thread(1)}/compactions.jsonl": ("compact", thread(1), "--force"),
    f"sessions/{thread(1)}/updates.jsonl": ("notes", thread(1)),
}


@pytest.mark.parametrize("name", OWN_FILES)
@pytest.mark.parametrize("there", [True, False])
def test_our_file_that_is_a_link_is_neither_read_nor_written(
    linked: tuple[Home, Path], name: str, there: bool
) -> None:
    home, precious = linked
    before = precious.read_bytes()
    ours = home.state / name
    ours.unlink(missing_ok=True)
    ours.symlink_to(precious if there else home.user / "made")

    done = home.here(*OWN_FILES[name], "--json")

    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "storage_error")
    assert b"symbolic link" in done.stdout
    assert b"theirs" not in done.stdout
    assert precious.read_bytes() == before
    assert not (home.user / "made").exists()
    assert ours.is_symlink()
    (found,) = [each for each in home.json("doctor")["findings"] if each["path"] == str(ours)]
    assert "symbolic link" in found["message"]


def test_checkpoint_that_is_a_link_is_replaced(linked: tuple[Home, Path]) -> None:
    home, precious = linked
    stored = home.here("show", thread(1)).stdout
    home.checkpoint().unlink()
    home.checkpoint().symlink_to(precious)

    assert home.here("show", thread(1)).stdout == stored

    assert not home.checkpoint().is_symlink()
    assert home.checkpoint().read_bytes() == stored
    assert precious.read_bytes() == b'{"type":"theirs"}\n'


def test_codexs_list_of_names_may_be_a_link(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.put(rollout(session("legacy", thread=thread(1)), turn(user("one"))))
    real = home.user / "session_index.jsonl"
    real.touch()
    (home.root / real.name).symlink_to(real)

    home.json("rename", thread(1), "shop")

    assert json.loads(real.read_bytes())["thread_name"] == "shop"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("name", ["config.toml", "audit.jsonl", "index.sqlite"])
@pytest.mark.parametrize(
    "command", [("sessions",), ("show", thread(1)), ("doctor",), ("connect", "--status")]
)
def test_pipe_in_place_of_our_file_blocks_nobody(
    tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    home = Home(tmp_path)
    home.put(rollout(session(thread=thread(1)), turn(user("one"))))
    home.state.mkdir()
    os.mkfifo(home.state / name)

    done = home.run(*command, *(() if command[0] == "show" else ("--json",)))

    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_oversized_settings_file_is_not_read_and_reported(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config("# " + "x" * (1 << 20))

    (found,) = [each for each in home.json("doctor")["findings"] if each["code"] == "bad_setting"]

    assert "more than 1048576 bytes" in found["message"]
