"""A folder as remote: two machines that sync it, damage, rights, a full disk, kills (TEA-2)."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from bookkeeping import faults
from codex_checkpoints.service.remote.push import Pusher
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import (
    AppendResult,
    Head,
    RemoteDamaged,
    RemoteFull,
    RemoteNewer,
    RemoteRefused,
    RemoteUnreachable,
    SessionRow,
)
from codex_checkpoints.storage.remote.folder import FORMAT_FILE, FolderHistoryStore
from disks import fill, mounted
from fault_steps import home_at, killed_at_each_step
from homes import snapshot, thread
from two_machines import Machines, read, segments

SESSION = thread(1)
DATA = b"".join(b'{"line":%d}\n' % number for number in range(300))


@pytest.fixture
def store(tmp_path: Path) -> FolderHistoryStore:
    made = FolderHistoryStore(str(tmp_path / "remote"))
    made.make()
    return made


def put(store: FolderHistoryStore, data: bytes, most: int) -> SessionRow:
    """Push bytes as a pusher does; return the row."""
    head = store.head(SESSION)
    for segment in segments(data, 0 if head is None else head.size, most):
        assert store.append(SESSION, 1, segment) is AppendResult.TAKEN
    found = store.head(SESSION)
    assert found is not None
    row = SessionRow(SESSION, 1, found.size, found.prefix, data.count(b"\n"), "ana", "m", "m")
    store.put(row, b"records")
    return row


def test_only_the_owner_can_read_pushed_files(store: FolderHistoryStore) -> None:
    put(store, DATA, 700)

    for path in Path(store.place).rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_no_file_is_written_twice(store: FolderHistoryStore) -> None:
    put(store, DATA[:1500], 400)
    folder = Path(store.place)
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in folder.rglob("*.*")}
    put(store, DATA, 1000)

    for path, (content, inode) in before.items():
        if path.parent.name == "rows":
            assert not path.exists(), "a newer row replaces it under a name of its own"
        else:
            assert (path.read_bytes(), path.stat().st_ino) == (content, inode)


def synced(one: Path, other: Path) -> None:
    """Bring two folders to the same files, as a syncing program does; deletions are left out."""
    for source, target in ((one, other), (other, one)):
        shutil.copytree(source, target, dirs_exist_ok=True)


def test_machines_that_pushed_separately_get_the_same_bytes(tmp_path: Path) -> None:
    one, other = (FolderHistoryStore(str(tmp_path / name)) for name in ("one", "other"))
    for each, most in ((one, 400), (other, 700)):
        each.make()
        put(each, DATA if each is other else DATA[:2_000], most)
    synced(tmp_path / "one", tmp_path / "other")

    for each in (one, other):
        found = each.row(SESSION)
        assert found is not None
        assert found.row.size == len(DATA), "the row of the longer history counts"
        assert b"".join(each.read(SESSION, found.row.head)) == DATA
    assert put(one, DATA + b'{"more":1}\n', 900) == put(other, DATA + b'{"more":1}\n', 900)


def test_diverged_machines_each_keep_a_readable_history(tmp_path: Path) -> None:
    one, other = (FolderHistoryStore(str(tmp_path / name)) for name in ("one", "other"))
    ends = DATA + b'{"end":"one"}\n', DATA + b'{"end":"the other one"}\n'
    for each, data in zip((one, other), ends, strict=True):
        each.make()
        put(each, DATA, 500)
        put(each, data, 500)
    synced(tmp_path / "one", tmp_path / "other")

    rows = [each.row(SESSION) for each in (one, other)]
    assert rows[0] is not None
    assert rows[0] == rows[1], "both name the same newest row"
    assert b"".join(one.read(SESSION, rows[0].row.head)) == ends[1]
    head = one.head(SESSION)
    assert head == Head(1, len(ends[1]), rows[0].row.prefix)


def test_partially_synced_row_is_skipped(store: FolderHistoryStore) -> None:
    put(store, DATA[:900], 900)
    (old,) = Path(store.place).rglob("rows/*.json")
    kept = old.read_bytes()
    put(store, DATA, 900)
    (new,) = Path(store.place).rglob("rows/*.json")
    old.write_bytes(kept)
    new.write_bytes(new.read_bytes()[:40])

    found = store.row(SESSION)
    assert found is not None
    assert found.row.size == 900
    old.unlink()
    assert store.row(SESSION) is None
    assert store.rows().unreadable == 1


def test_files_of_a_sync_program_are_ignored(store: FolderHistoryStore) -> None:
    put(store, DATA, 700)
    folder = Path(store.place) / "sessions" / SESSION
    (folder / "000001" / "0-e3b0 (conflicted copy).zst").write_bytes(b"x")
    (folder / "rows" / ".sync.tmp").write_bytes(b"x")
    (folder.parent / ".DS_Store").write_bytes(b"x")
    (folder.parent / "a folder with blanks").mkdir()

    (found,) = store.rows().rows
    assert b"".join(store.read(SESSION, found.row.head)) == DATA


@pytest.mark.parametrize("name", ["../../escape", "a/b", "", ".", "..", "x" * 200, "ä"])
def test_id_never_names_another_path(store: FolderHistoryStore, name: str) -> None:
    (segment,) = segments(DATA)
    with pytest.raises(RemoteRefused):
        store.append(name, 1, segment)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"format":"codex-checkpoints-remote","version":2}', RemoteNewer),
        (b'{"format":"another","version":1}', RemoteUnreachable),
        (b"", RemoteUnreachable),
    ],
)
def test_folder_of_another_program_or_version_is_left_alone(
    store: FolderHistoryStore, content: bytes, error: type[Exception]
) -> None:
    Path(store.place, FORMAT_FILE).write_bytes(content)
    before = snapshot(Path(store.place))

    for attempt in (store.is_made, lambda: store.head(SESSION), lambda: put(store, DATA, 700)):
        with pytest.raises(error):
            attempt()
    assert snapshot(Path(store.place)) == before


def test_missing_segment_is_damage_and_the_next_push_repairs_it(
    store: FolderHistoryStore,
) -> None:
    row = put(store, DATA, 700)
    gone = min(Path(store.place).rglob("*.zst"))
    gone.unlink()

    with pytest.raises(RemoteDamaged):
        list(store.read(SESSION, row.head))
    head = store.head(SESSION)
    assert head is not None
    for segment in segments(DATA, head.size, 700):
        if store.append(SESSION, 1, segment) is not AppendResult.TAKEN:
            break
    assert b"".join(store.read(SESSION, row.head)) == DATA


def test_full_disk_stores_nothing_partial_and_is_reported(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        store = FolderHistoryStore(str(disk / "remote"))
        store.make()
        put(store, DATA[:900], 300)
        filler = fill(disk)
        noise = os.urandom(60_000).hex().encode() + b"\n"
        with pytest.raises(RemoteFull):
            put(store, DATA[:900] + noise, 1 << 20)
        assert not [*disk.rglob("*.tmp")]
        filler.unlink()
        put(store, DATA[:900] + noise, 1 << 20)


def test_interrupted_folder_takes_nothing_more(store: FolderHistoryStore) -> None:
    put(store, DATA[:1500], 400)
    before = {*Path(store.place).rglob("*")}
    store.interrupt()

    (segment, *_) = segments(DATA, 1500, 400)
    with pytest.raises(RemoteUnreachable, match="interrupted"):
        store.append(SESSION, 1, segment)
    with pytest.raises(RemoteUnreachable, match="interrupted"):
        store.put(SessionRow(SESSION, 1, 9, "", 1, "ana", "m", "m"), b"")
    assert {*Path(store.place).rglob("*")} == before


def test_interrupted_folder_is_read_no_further(store: FolderHistoryStore) -> None:
    put(store, DATA, 400)
    head = store.head(SESSION)
    assert head is not None
    parts = store.read(SESSION, head)
    next(parts)
    store.interrupt()

    with pytest.raises(RemoteUnreachable, match="interrupted"):
        next(parts)
    with pytest.raises(RemoteUnreachable, match="interrupted"):
        store.make()


# --- the commands --------------------------------------------------------------------------------


def test_remote_set_asks_before_it_creates_anything(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    other = tmp_path / "other"

    refused = machines.there.refused("remote", "set", str(other))
    assert refused["code"] == "cancelled"
    assert not other.exists()

    assert machines.there.json("remote", "set", str(machines.folder))["place"] == str(
        machines.folder
    ), "a remote that exists is only chosen"


@pytest.mark.parametrize("place", ["{home}/sessions/x", "https://db.example.com/codex"])
def test_invalid_place_of_a_remote_is_refused(tmp_path: Path, place: str) -> None:
    machines = Machines(tmp_path)

    where = place.format(home=machines.there.root)
    assert machines.there.refused("remote", "set", where, "--yes")["code"] == "invalid_payload"


def test_damaged_choice_is_reported_and_replaced(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    choice = machines.there.state / "remote.json"
    before = json.loads(choice.read_text())
    machines.there.json("remote", "set", str(machines.folder))
    assert json.loads(choice.read_text())["machineId"] == before["machineId"], "it stays"

    choice.write_text("{")
    assert machines.there.refused("remote", "status")["code"] == "storage_error"
    assert machines.there.json("remote", "set", str(machines.folder))["made"] is True


def test_status_and_delete_work(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.chat("one")
    size = machines.push()["bytes"]

    status = machines.here.json("remote", "status")
    assert (status["sessions"], status["bytes"], status["machine"]) == (1, size, "here")
    assert machines.here.refused("remote", "delete", thread(1))["code"] == "cancelled"
    nowhere = machines.here.refused("remote", "delete", thread(1), "--codex-home", str(tmp_path))
    assert nowhere["code"] == "remote_unreachable", "before anybody is asked"
    assert machines.here.refused("remote", "delete", thread(9))["code"] == "unknown_session"
    assert machines.here.refused("remote", "retain", "--days", "3")["code"] == "remote_refused"
    assert machines.here.json("remote", "delete", thread(1)[:20], "--yes") == {
        "sessionId": thread(1)
    }
    assert machines.here.json("remote", "status")["sessions"] == 0
    assert [*machines.folder.glob("sessions/*")] == []
    assert machines.push()["sent"] == size, "it can be pushed again"


# --- killed --------------------------------------------------------------------------------------

PUSH = """
def work(sessions, root, session):
    from codex_checkpoints import assembly
    from codex_checkpoints.service.remote.outgoing import outgoing
    from codex_checkpoints.service.remote.push import Pusher
    from codex_checkpoints.storage.remote.chosen import ChosenRemote
    from codex_checkpoints.storage.remote.spool import Spool
    store = assembly.remote_store(os.path.join(root, "remote"))
    spool = Spool(sessions.records.state_dir)
    going = outgoing(sessions, session, [], spool)
    Pusher(sessions, store, ChosenRemote("", "ana", "there", "there"), segment=900).push(going)
    spool.close()
"""

PULL = """
def work(sessions, root, session):
    from codex_checkpoints import assembly
    from codex_checkpoints.service.remote.fetch import fetch
    from codex_checkpoints.service.remote.pull import pull
    from codex_checkpoints.storage.remote.cache import RemoteCache
    store = assembly.remote_store(os.path.join(root, "remote"))
    cache = RemoteCache(sessions.records.state_dir, store.place)
    pull(sessions, fetch(store, cache, session, bool), root)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "refuse"])
def test_push_killed_at_any_step_resumes(tmp_path: Path, how: str) -> None:
    machines = Machines(tmp_path / "all")
    path = machines.chat("one", "two")
    home = machines.there
    FolderHistoryStore(str(home.root.parent / "remote")).make()

    tries = killed_at_each_step(PUSH, home, tmp_path / "killed", SESSION, how=how)  # type: ignore[arg-type]

    assert tries > 20
    for number in range(1, tries):
        root = tmp_path / "killed" / str(number)
        store = FolderHistoryStore(str(root / "remote"))
        found = store.row(SESSION)
        if found is not None:
            assert b"".join(store.read(SESSION, found.row.head)) == path.read_bytes()
        with home_at(root).house() as house, read(house.sessions) as going:
            Pusher(house.sessions, store, ChosenRemote("", "ana", "there", "there")).push(going)
        row = store.row(SESSION)
        assert row is not None
        assert b"".join(store.read(SESSION, row.row.head)) == path.read_bytes()
        if found is None:
            assert not [*(root / "remote").rglob("*.tmp")], "leftovers go with the next row"


@pytest.mark.slow
def test_pull_killed_at_any_step_is_complete_or_absent(tmp_path: Path) -> None:
    machines = Machines(tmp_path / "all")
    path = machines.chat("one")
    machines.there.json("mark", SESSION, "--label", "here")
    machines.push()
    home = machines.here
    shutil.copytree(machines.folder, home.root.parent / "remote")

    tries = killed_at_each_step(PULL, home, tmp_path / "killed", SESSION)

    assert tries > 20
    made = 0
    for number in range(1, tries):
        killed = home_at(tmp_path / "killed" / str(number))
        with killed.house() as house:
            assert faults(house.sessions) == [], number
            branches = [*killed.root.glob("sessions/**/*.jsonl")]
            assert len(branches) <= 1
            for branch in branches:
                made += 1
                assert branch.read_bytes().splitlines()[1:] == path.read_bytes().splitlines()[1:]
            assert len([*killed.state.glob("sessions/*")]) == len(branches), number
    assert 0 < made < tries - 1
