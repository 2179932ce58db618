"""Hashes of files that a watcher saw: recorded at once, kept, and compared."""

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.checkpoint.records import Artifact
from codex_checkpoints.service.sessions.session_watcher import RECONCILE_SECONDS, SessionWatcher
from doors.test_hook import ask, call
from doors.test_mcp import result
from homes import Home, eventually, following, go_on, snapshot, thread
from peer import Peer
from rollouts import Form, Step, based_on, patch, rollout, session, shell, turn, user

LOOK = shell("sed -n 1,5p a.py", "a = 1\n", reads=["a.py"])
READ_AT = 5
"""The number of the record in which the file was read."""
THEN = datetime(2025, 11, 20, 10, 0, READ_AT, tzinfo=UTC).timestamp()
"""When that was."""
V1, V2 = "a = 1\n", "a = 2\n"
A, ON_A = {"source": "file", "ref": "a.py"}, {"uri": "a.py"}


def past(data: bytes) -> bytes:
    """Let a session be a year older: no clock stands before it."""
    return data.replace(b"2026-11-20T", b"2025-11-20T")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Hold a session that has read a part of a file, which is older than that."""
    home = Home(tmp_path)
    (home.user / "shop").mkdir()
    write(home, V1, THEN - 60)
    home.put(past(rollout(head(home), turn(user("look"), LOOK))))
    return home


def head(home: Home, number: int = 1, **more: Any) -> Step:  # noqa: ANN401 - fields of a head
    return session(thread=thread(number), cwd=str(home.user / "shop"), **more)


def write(home: Home, text: str, at: float, name: str = "a.py") -> None:
    path = home.user / "shop" / name
    path.write_text(text)
    os.utime(path, (at, at))


def follow(home: Home) -> SessionWatcher:
    """Look once at everything, as who follows does."""
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        return follower


def lines(home: Home, number: int = 1) -> list[Any]:
    path = home.checkpoint(number).with_name("observed.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def artifact(home: Home, number: int = 1, uri: str = "a.py") -> Artifact:
    with home.house() as house:
        return house.sessions.show(thread(number)).checkpoint.artifacts[uri]


def sha(home: Home) -> str:
    return artifact(home).hash or ""


# --- what is recorded ----------------------------------------------------------------------------


def test_watcher_records_the_hash_of_an_observed_file(home: Home):
    was = sha(home)
    follow(home)

    (line,) = lines(home)
    assert list(line) == ["uri", "seq", "hash", "at"]
    assert (line["uri"], line["seq"], line["hash"]) == ("a.py", READ_AT, was)
    assert datetime.fromisoformat(line["at"]).tzinfo is not None
    assert home.stored()["artifacts"]["a.py"]["seenHash"] == was
    follow(home)
    assert len(lines(home)) == 1


def test_file_changed_by_others_is_marked_until_it_is_changed_back(home: Home):
    follow(home)
    assert not artifact(home).is_changed

    write(home, V2, time.time())
    assert artifact(home).is_changed
    write(home, V1, time.time())
    assert not artifact(home).is_changed
    (home.user / "shop/a.py").unlink()
    assert artifact(home).is_changed
    assert artifact(home).hash is None


def test_file_changed_over_two_seconds_after_the_record_is_not_recorded(home: Home):
    write(home, V2, THEN + 2.001)
    follow(home)
    assert lines(home) == []

    write(home, V1, THEN + 2)
    follow(home)
    assert len(lines(home)) == 1


def test_only_the_newest_observation_of_a_file_is_recorded(home: Home):
    go_on(home.path(), thread(1), turn(LOOK, patch(update="a.py")))
    home.path().write_bytes(past(home.path().read_bytes()))
    newest = artifact(home).last_observed_seq
    follow(home)

    assert [line["seq"] for line in lines(home)] == [newest]


def test_file_changed_within_the_last_second_is_checked_again(home: Home):
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
    data = home.path().read_bytes()
    home.path().write_bytes(data.replace(b"2025-11-20T10:00:05", now))
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        write(home, V1, time.time())
        follower.begin()
        assert lines(home) == []
        assert follower.patience < RECONCILE_SECONDS

        write(home, V1, time.time() - 1.1)
        (changed,) = follower.unmarked()

        assert changed.session_ids == (thread(1),)
        assert len(lines(home)) == 1
        assert follower.patience == RECONCILE_SECONDS


def test_file_outside_the_session_folder_is_not_recorded(home: Home):
    outside = home.user / "private.py"
    outside.write_text(V1)
    os.utime(outside, (THEN - 60, THEN - 60))
    home.config("hashOutsideFolder = true\n")
    read = shell(f"sed -n 1p {outside}", V1, reads=[str(outside)])
    home.put(past(rollout(head(home), turn(user("look"), read))))
    follow(home)

    assert artifact(home, uri=str(outside)).hash is not None
    assert lines(home) == []


def test_record_without_a_time_is_skipped(home: Home):
    home.path().write_bytes(home.path().read_bytes().replace(b"2025-11-20T10:00:05", b"yesterday"))
    follow(home)

    assert lines(home) == []


def test_first_of_several_lines_about_one_observation_counts(home: Home):
    follow(home)
    path = home.checkpoint().with_name("observed.jsonl")
    (line,) = lines(home)
    with path.open("a") as file:
        others: list[object] = [line | {"hash": "sha256:" + "0" * 64}, {"uri": 3}, []]
        for more in (*others, line | {"seq": "5"}):
            file.write(json.dumps(more) + "\n")
        file.write('{"uri":"a.py"')

    assert artifact(home).seen_hash == line["hash"]


def test_copied_record_has_the_time_of_the_copy_and_proves_nothing(home: Home):
    """A fork of an older file holds the lines of its base, written anew."""
    write(home, V2, THEN - READ_AT - 1)
    copy = rollout(head(home, 2, form="legacy", forked_from_id=thread(1)), turn(user("look"), LOOK))
    home.put(re.sub(rb"T10:00:\d\d", b"T10:00:00", past(copy)), 2)
    follow(home)

    assert artifact(home, 2).last_observed_seq > 0
    assert lines(home, 2) == []


# --- who reads it --------------------------------------------------------------------------------


def test_fork_reads_the_hashes_of_its_base_below_the_cut(home: Home):
    follow(home)
    own, again = turn(user("go on"), name="own"), turn(user("go on"), LOOK, name="again")
    for number, cut, step in ((2, READ_AT + 1, own), (3, READ_AT, again)):
        based = head(home, number, history_base=based_on(thread(1), cut, 0))
        home.put(past(rollout(based, step)), number)
    later = artifact(home, 3).last_observed_seq
    path = home.checkpoint().with_name("observed.jsonl")
    (line,) = lines(home)
    path.write_text("".join(json.dumps(line | {"seq": seq}) + "\n" for seq in (READ_AT, later)))

    assert artifact(home, 2).seen_hash == line["hash"]
    assert artifact(home, 3).seen_hash is None


def test_older_fork_reads_them_by_the_place_of_the_copied_line(home: Home):
    source = past(rollout(head(home, form="legacy"), turn(user("look"), LOOK)))
    home.put(source)
    follow(home)
    (line,) = lines(home)
    fork = past(rollout(head(home, 2, form="legacy", forked_from_id=thread(1))))
    home.put(fork + re.sub(rb'(?m)^\{"timestamp":"[^"]*"', b'{"timestamp":"2025-12-01"', source), 2)

    found = artifact(home, 2)

    assert found.last_observed_seq == line["seq"] + 1
    assert found.seen_hash == line["hash"]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_soft_branch_has_the_hashes_of_its_copied_lines(home: Home, form: Form):
    source = past(rollout(head(home, form=form), turn(user("look"), LOOK), turn(user("on"))))
    home.put(source)
    follow(home)
    go_on(home.path(), thread(1), turn(user("again"), LOOK), form=form)
    name = home.json("mark", thread(1), "--turn", "1", "--label", "here")["checkpointId"]

    made = home.json("restore", thread(1), name, "--mode", "soft")["sessionId"]
    home.path().unlink()

    with home.house() as house:
        found = house.sessions.show(made).checkpoint.artifacts["a.py"]
    assert found.seen_hash == lines(home)[0]["hash"]
    write(home, V2, time.time())
    assert "changed" in home.here("view", made).stdout.decode()


def test_without_records_only_the_rollout_proves_hashes(home: Home):
    follow(home)
    home.checkpoint().with_name("observed.jsonl").unlink()

    assert artifact(home).seen_hash is None


def test_full_rebuild_gives_the_followed_bytes(home: Home):
    follow(home)
    write(home, V2, time.time())
    follow(home)
    followed = home.checkpoint().read_bytes()
    assert b"seenHash" in followed
    home.checkpoint().unlink()
    for cache in home.state.glob("index.sqlite*"):
        cache.unlink()

    assert home.here("show", thread(1)).stdout == followed


def test_another_watcher_continues_the_recorded_hashes(home: Home):
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        before = home.checkpoint().read_bytes()
        path = home.checkpoint().with_name("observed.jsonl")
        (line,) = lines(home)
        path.write_text(json.dumps(line | {"hash": "sha256:" + "0" * 64}) + "\n")
        follower.mark(str(path))
        (changed,) = follower.drain()

    assert changed.session_ids == (thread(1),)
    assert home.checkpoint().read_bytes() != before


# --- what is not as it was seen ------------------------------------------------------------------


def test_stale_read_is_not_evidence_and_the_view_marks_the_file_as_changed(home: Home):
    follow(home)
    noted = {"kind": "fact", "key": "k", "value": "a is 1", "evidence": A, "dependsOn": [ON_A]}
    (home.user / "fact").write_text(json.dumps(noted))
    command = "apply", thread(1), str(home.user / "fact")
    write(home, V2, time.time())

    refused = home.refused(*command)

    assert (refused["code"], refused["facts"]["paths"]) == ("stale_read", ["a.py"])
    assert " changed)" in home.here("view", thread(1)).stdout.decode()
    write(home, V1, time.time())
    assert " changed)" not in home.here("view", thread(1)).stdout.decode()
    assert home.json(*command)["accepted"]


def test_digest_marks_files_changed_since(home: Home):
    write(home, "x\n", THEN, "new.py")
    write(home, "x\n", THEN, "kept.py")
    home.put(
        past(rollout(head(home), turn(user("add"), patch(add="new.py"), patch(add="kept.py"))))
    )
    write(home, V2, time.time(), "new.py")

    lines = home.here("digest", thread(1)).stdout.decode().splitlines()

    assert next(line for line in lines if "new.py" in line).endswith(" created changed since")
    assert next(line for line in lines if "kept.py" in line).endswith(" created")


def test_client_is_told_which_files_changed(home: Home):
    follow(home)
    (home.user / "shop/a.py").unlink()

    with Peer(home.root) as peer:
        peer.start()
        assert peer.call("checkpoints/show", {"sessionId": thread(1)})["changed"] == ["a.py"]


def test_read_proved_by_its_record_needs_no_watcher(home: Home):
    read = shell("cat a.py", V1, reads=["a.py"])
    home.put(past(rollout(head(home), turn(user("look"), read))))
    noted = {"kind": "decision", "decisionId": "d", "decision": "x", "rationale": "y"}
    (home.user / "decision").write_text(json.dumps(noted | {"evidence": A}))
    write(home, V2, THEN - 60)

    refused = home.refused("apply", thread(1), str(home.user / "decision"))

    assert (refused["code"], refused["facts"]["paths"]) == ("stale_read", ["a.py"])


@pytest.mark.parametrize("marked", [True, False], ids=["watched for another", "by and by"])
def test_stored_checkpoint_of_an_unwatched_session_stays_current(home: Home, marked: bool):
    home.config("followedSessions = 1\n")
    (home.user / "fact").write_text(
        json.dumps({"kind": "fact", "key": "k", "value": "v", "evidence": A, "dependsOn": [ON_A]})
    )
    assert home.json("apply", thread(1), str(home.user / "fact"))["accepted"]
    newer = rollout(head(home, 2), turn(user("newer"), LOOK))
    home.put(newer, 2)
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        assert home.stored()["facts"]["k"]["status"] == "VALID"
        write(home, V2, time.time())

        if marked:
            follower.mark(str(home.user / "shop/a.py"))
        (changed,) = follower.drain() if marked else follower.reconcile()

        assert thread(1) in changed.session_ids
        assert home.stored()["facts"]["k"]["status"] == "SUSPECT"
        assert follower.reconcile() == []


# --- which doors record --------------------------------------------------------------------------


def test_read_only_command_records_nothing(home: Home):
    before = snapshot(home.state / "sessions")
    for command in ("show", "view", "notes", "history"):
        assert home.here(command, thread(1)).returncode == 0
    assert lines(home) == []
    assert before.keys() <= snapshot(home.state / "sessions").keys()


def test_watch_records_hashes(home: Home):
    with following(home):
        eventually(lambda: lines(home))


def test_hook_records_hashes(home: Home):
    ask(home, call(source="resume"))

    assert [line["uri"] for line in lines(home)] == ["a.py"]


def test_mcp_tools_record_hashes(home: Home):
    result(home, "memory.read", {})

    assert [line["uri"] for line in lines(home)] == ["a.py"]
