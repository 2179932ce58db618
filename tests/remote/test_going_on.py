"""An interrupted push, a second pusher, a changed file: all continue (TEA-2)."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from codex_checkpoints.service.remote.push import Pusher
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import (
    Answer,
    Elsewhere,
    Head,
    HistoryStore,
    RemoteUnreachable,
    Segment,
    SessionRow,
)
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from homes import WAIT, eventually, go_on, refusal, thread
from rollouts import turn, user
from two_machines import Machines, history, pushed, read, segments

Json = dict[str, Any]


class Cutting:
    """A store whose connection is cut after so many bytes, before or after they are stored."""

    def __init__(self, store: HistoryStore, room: int, *, stored: bool) -> None:
        self._store, self._room, self._stored = store, room, stored
        self.place = store.place

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        self._room -= segment.end - segment.start
        if self._room >= 0:
            return self._store.append(session_id, generation, segment)
        if self._stored:  # it arrives, and its answer is lost
            self._store.append(session_id, generation, segment)
        raise RemoteUnreachable("cut")

    def put(self, row: SessionRow, records: bytes) -> None:
        if self._room < 0:
            raise RemoteUnreachable("cut")
        self._store.put(row, records)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the store
        return getattr(self._store, name)


@pytest.mark.parametrize("stored", [False, True], ids=["lost", "answer lost"])
def test_push_cut_off_anywhere_resumes_and_gives_the_same_bytes(
    machines: Machines, stored: bool
) -> None:
    path = machines.chat(*(f"question {number}" for number in range(60)))
    whole = path.read_bytes()
    assert len(whole) > 20_000
    with machines.there.house() as house, read(house.sessions) as going:
        chosen = ChosenRemote("", "ana", "there", "there")
        for room in range(0, len(whole) + 400, len(whole) // 100):
            inner = MemoryHistoryStore()
            cut: Any = Cutting(inner, room, stored=stored)
            if room < len(whole):
                pusher = Pusher(house.sessions, cut, chosen, segment=311)
                error = refusal(partial(pusher.push, going))
                assert error.code == "remote_unreachable"
                assert inner.row(thread(1)) is None, "a cut push is in no list"
            Pusher(house.sessions, inner, chosen, segment=517).push(going)
            assert history(inner) == whole, room


def test_grown_session_sends_only_new_bytes(machines: Machines, store: HistoryStore) -> None:
    path = machines.chat("one")
    first = pushed(machines.there, store)
    before = len(history(store))
    go_on(path, thread(1), turn(user("two"), name="x"))
    second = pushed(machines.there, store, segment=100)

    assert (first.state, first.sent) == ("pushed", before)
    assert (second.state, second.generation) == ("pushed", 1)
    assert second.sent == len(history(store)) - before
    assert history(store) == path.read_bytes()
    assert pushed(machines.there, store).state == "unchanged"


class Interleaved:
    """A store in which another pusher is faster each time."""

    def __init__(self, store: HistoryStore, other: Iterator[object]) -> None:
        self._store, self._other = store, other
        self.place = store.place

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        next(self._other, None)
        return self._store.append(session_id, generation, segment)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the store
        return getattr(self._store, name)


@pytest.mark.parametrize("sizes", [(700, 300), (300, 700), (512, 512)])
def test_concurrent_pushers_with_other_segments_give_the_same_bytes(
    machines: Machines, store: HistoryStore, sizes: tuple[int, int]
) -> None:
    path = machines.chat(*(f"question {number}" for number in range(20)))
    with machines.there.house() as house, read(house.sessions) as going:
        chosen = ChosenRemote("", "ana", "there", "there")

        def other() -> Iterator[object]:
            for segment in segments(path.read_bytes(), 0, sizes[1]):
                yield store.append(thread(1), 1, segment)

        both: Any = Interleaved(store, other())
        Pusher(house.sessions, both, chosen, segment=sizes[0]).push(going)

    assert history(store) == path.read_bytes()


def test_repeated_pushes_of_other_lines_end_in_a_conflict(machines: Machines) -> None:
    machines.chat("one")

    class Different:
        place = ""

        def row(self, _session_id: str) -> None:
            return None

        def head(self, _session_id: str) -> Head | None:
            return None

        def append(self, *_: object) -> Answer:
            return Elsewhere(100_000, "0" * 64)

    with machines.there.house() as house, read(house.sessions) as going:
        store: Any = Different()
        pusher = Pusher(house.sessions, store, ChosenRemote("", "a", "m", "m"), segment=100)
        assert refusal(lambda: pusher.push(going)).code == "conflict"


def test_reverted_file_opens_a_generation(machines: Machines, store: HistoryStore) -> None:
    path = machines.chat("one", "two", "three")
    pushed(machines.there, store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:8]))

    again = pushed(machines.there, store)

    assert (again.state, again.generation) == ("pushed", 2)
    assert history(store) == path.read_bytes()


def test_changed_file_opens_a_generation(machines: Machines, store: HistoryStore) -> None:
    path = machines.chat("one", "two")
    pushed(machines.there, store)
    before = history(store)
    path.write_bytes(path.read_bytes().replace(b"so one", b"so ONE"))

    again = pushed(machines.there, store)

    assert again.generation == 2
    assert history(store) == path.read_bytes()
    assert (
        b"".join(store.read(thread(1), Head(1, len(before), sha256(before).hexdigest()))) == before
    )


def test_older_copy_on_another_machine_reverts_nothing(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one", "two")
    pushed(machines.there, store)
    whole = path.read_bytes()
    machines.here.put(b"".join(whole.splitlines(keepends=True)[:8]))

    found = pushed(machines.here, store, machine="here")

    assert (found.state, found.sent) == ("ahead", 0)
    assert history(store) == whole


@pytest.mark.parametrize("hours", [-3, 3])
def test_wrong_clock_of_a_machine_changes_no_order(
    machines: Machines, store: HistoryStore, hours: int
) -> None:
    """The longer history counts, whatever time its machine believes that it is."""
    path = machines.chat("one")
    pushed(machines.there, store)
    wrong = datetime.now(UTC) + timedelta(hours=hours)
    before = path.read_bytes()
    go_on(path, thread(1), turn(user("two"), name="x"))
    os.utime(path, (wrong.timestamp(), wrong.timestamp()))
    with machines.there.house() as house, read(house.sessions) as going:
        chosen = ChosenRemote(store.place, "ana", "elsewhere", "elsewhere")
        pusher = Pusher(house.sessions, store, chosen, now=wrong.isoformat)
        assert pusher.push(going).state == "pushed"
    whole = path.read_bytes()

    path.write_bytes(before)
    pushed(machines.there, store)

    found = store.row(thread(1))
    assert found is not None
    assert (found.row.generation, found.row.pushed_at) == (1, wrong.isoformat())
    assert history(store) == whole


def test_renamed_session_is_listed_by_its_new_name(machines: Machines) -> None:
    machines.chat("one")
    machines.push()
    machines.there.json("rename", thread(1), "the login")

    assert machines.push()["sent"] == 0

    (row,) = machines.listed()
    assert row["title"] == "the login"


def test_exactly_the_shown_lines_are_sent_even_if_the_file_changes(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one")
    whole = path.read_bytes()
    with machines.there.house() as house, read(house.sessions) as going:
        path.write_bytes(whole.replace(b"so one", b"so ONE") + b'{"more":1}\n')
        Pusher(house.sessions, store, ChosenRemote("", "ana", "there", "there")).push(going)

    assert history(store) == whole


def test_unchanged_session_is_not_read_again(machines: Machines) -> None:
    path = machines.chat("one")
    first = machines.push()
    again = machines.push()
    assert again == first | {"state": "unchanged", "sent": 0}
    assert (machines.there.state / "sessions" / thread(1) / "pushed.json").exists()

    stamp = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().replace(b"so one", b"so ONE"))
    os.utime(path, ns=(stamp, stamp))
    assert machines.push()["state"] == "unchanged", "the look alone says so"
    os.utime(path)
    assert machines.push()["sent"] == first["bytes"]


@pytest.mark.parametrize("what", ["a note", "a marker", "a name", "deleted there", "no cache"])
def test_changes_beside_the_file_are_pushed(machines: Machines, what: str) -> None:
    machines.chat("one")
    machines.push()
    before = machines.listed()
    match what:
        case "a note":
            note: Json = {"kind": "decision", "decisionId": "d", "decision": "x", "rationale": "r"}
            evidence = {"evidence": {"source": "user", "ref": "u1"}}
            line: Json = {"updateId": "u", "seq": 4, "turnId": None, "hashes": {}, "at": None}
            machines.there.remember([line | {"payload": note | evidence}])
        case "a marker":
            machines.there.json("mark", thread(1), "--label", "here")
        case "a name":
            machines.there.json("rename", thread(1), "another name")
        case "deleted there":
            machines.here.json("remote", "delete", thread(1), "--yes")
        case _:
            (machines.there.state / "sessions" / thread(1) / "pushed.json").unlink()

    found = machines.push()

    assert found["state"] == ("unchanged" if what == "no cache" else "pushed")
    assert (machines.listed() == before) == (what == "no cache")


def test_follow_pushes_growing_files_until_interrupted(machines: Machines) -> None:
    path = machines.chat("one")
    process = machines.there.start("push", "--cwd", machines.shop, "--follow", "--yes")
    try:
        (first,) = eventually(machines.listed)
        go_on(path, thread(1), turn(user("two"), name="x"))
        machines.chat("another", number=2)

        def sizes() -> dict[str, int]:
            return {each["sessionId"]: each["bytes"] for each in machines.listed()}

        found = eventually(sizes, lambda now: len(now) == 2 and now[thread(1)] > first["bytes"])
        assert found[thread(1)] == path.stat().st_size
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said
    assert b"following 1 session" in said


def test_follow_continues_when_the_remote_returns(machines: Machines) -> None:
    path = machines.chat("one")
    process = machines.there.start("push", thread(1), "--follow", "--yes")
    try:
        assert process.stderr is not None
        assert b"following" in process.stderr.readline()
        unplugged = machines.folder.rename(machines.folder.with_name("unplugged"))
        go_on(path, thread(1), turn(user("two"), name="x"))
        assert b"remote_unreachable" in process.stderr.readline()
        unplugged.rename(machines.folder)

        def size() -> int:
            (row,) = machines.listed()
            return row["bytes"]

        assert eventually(size, lambda now: now == path.stat().st_size)
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT)
    assert b"remote_unreachable" not in said, "it is said once"
