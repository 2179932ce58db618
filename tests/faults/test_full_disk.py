"""A disk that is full, or must not be written: a real one, so this needs the right to mount."""

import json
from pathlib import Path

import pytest

from disks import fill, make_read_only
from homes import Home, chat, eventually, more, thread
from peer import Peer
from rollouts import turn, user


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for number in range(1, 30):
        home.put(chat(f"task {number}", number), number)
    return home


@pytest.fixture
def small(disk: Path) -> Path:
    """A state folder on a disk without room for anything."""
    (disk / "state").mkdir()
    fill(disk)
    return disk / "state"


def test_full_disk_never_prevents_an_answer_and_is_reported(home: Home, small: Path) -> None:
    whole = home.run("show", thread(1), "--state-dir", str(home.state)).stdout
    state = ("--state-dir", str(small))

    assert len(home.json("sessions", *state)) == 29
    done = home.run("show", thread(1), *state)
    assert (done.returncode, done.stdout) == (0, whole)
    assert b"storage_error" in done.stderr
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    done = home.run("watch", "--once", *state)
    assert done.returncode == 0
    assert done.stderr.count(b"storage_error") == 1
    assert {each["code"] for each in home.json("doctor", *state)["findings"]} == {
        "index_unavailable"
    }
    assert not list(small.rglob("*.tmp"))


def test_server_on_a_full_disk_answers_and_stores_once_there_is_room(
    home: Home, small: Path
) -> None:
    with Peer(home.root, "--state-dir", str(small)) as peer:
        peer.start()
        assert len(peer.call("checkpoints/sessions")["items"]) == 29
        shown = peer.call("checkpoints/show", {"sessionId": thread(1)})["text"]
        assert json.loads(shown)["task"]["text"] == "task 1"
        codes = {each["code"] for each in peer.call("checkpoints/doctor")["findings"]}
        assert codes == {"storage_error", "index_unavailable"}

        (small.parent / "filler").unlink()
        with home.path().open("ab") as file:
            file.write(more(turn(user("room"), name="r"), thread=thread(1), ordinal=6))
        stored = small / "sessions" / thread(1) / "checkpoint_v1.json"
        data = eventually(lambda: stored.read_text() if stored.exists() else "", bool)
        assert json.loads(data)["task"]["text"] in {"task 1", "room"}
        eventually(stored.read_text, lambda text: json.loads(text)["task"]["text"] == "room")
        assert peer.stop() == 0


def test_read_only_disk_never_prevents_an_answer(home: Home, small: Path) -> None:
    make_read_only(small.parent)
    state = ("--state-dir", str(small))

    assert len(home.json("sessions", *state)) == 29
    done = home.run("view", thread(1), *state)
    assert done.returncode == 0
    assert b"- task 1\n" in done.stdout
    assert b"storage_error" in done.stderr
    assert b"Read-only file system" in done.stderr
    codes = {each["code"] for each in home.json("doctor", *state)["findings"]}
    assert codes == {"state_dir_unwritable", "index_unavailable"}
