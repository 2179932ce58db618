"""Push: what leaves was shown and is redacted; a push that was cut off goes on (TEA-1, TEA-2)."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.service.remote.pushing import Pushed, Pusher
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
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from homes import WAIT, Home, eventually, go_on, on_a_terminal, refusal, thread
from machines import Machines, read, segments
from planted import TOKEN, everything
from rollouts import Form, assistant, based_on, rollout, session, shell, turn, user

Json = dict[str, Any]


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, machines: Machines) -> HistoryStore:
    """Return a store that has nothing yet."""
    if request.param == "folder":
        return FolderHistoryStore(str(machines.folder))
    made = MemoryHistoryStore()
    made.make()
    return made


def pushed(
    home: Home, store: HistoryStore, *, segment: int = 700, machine: str = "there"
) -> Pushed:
    """Push the first session of a home in this process."""
    with home.house() as house, read(house.sessions) as going:
        chosen = ChosenRemote(store.place, "ana", machine, machine)
        return Pusher(house.sessions, store, chosen, segment=segment).push(going)


def history(store: HistoryStore) -> bytes:
    """Return the history that the row of the first session names."""
    found = store.row(thread(1))
    assert found is not None
    return b"".join(store.read(thread(1), found.row.head))


# --- what leaves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_no_secret_reaches_the_remote_from_any_record(machines: Machines, form: Form) -> None:
    machines.there.put(everything(TOKEN, form, thread=thread(1), cwd=f"{machines.shop}/{TOKEN}"))
    update: Json = {"seq": 3, "turnId": "t1", "hashes": {}, "at": None, "updateId": "u"}
    evidence = {"source": "user", "ref": "u1"}
    fact = {"kind": "fact", "key": "k", "value": f"v {TOKEN}", "evidence": evidence}
    machines.there.remember([update | {"payload": fact}])
    machines.there.json("mark", thread(1), "--label", f"before {TOKEN}")
    machines.there.json("rename", thread(1), f"named {TOKEN}")

    shown = machines.push(1, "--allow-redacted")

    stored = machines.stored()
    assert TOKEN.encode() not in stored
    assert b"gAAAA" not in stored
    assert b"base64" not in stored
    assert b"ana:" not in stored
    assert shown["redacted"]["github"] > 20
    assert shown["leftOut"] == {"encrypted": 2, "images": 2}


def test_a_push_shows_first_and_then_sends_just_that(machines: Machines) -> None:
    machines.write(turn(user(f"use {TOKEN}"), shell("cat a.py", "line of a.py\n" * 30)))

    preview = machines.there.json("push", thread(1), "--dry-run")
    assert machines.listed() == []
    sent = machines.there.json("push", thread(1), "--yes")

    (shown,), (done,) = preview["sessions"], sent["sessions"]
    assert (shown["state"], shown["sent"]) == ("new", 0)
    assert done == shown | {"state": "pushed", "sent": shown["bytes"]}
    assert shown["redacted"] == {"github": 2}
    assert preview["kinds"] > 30
    assert preview["longest"][0]["beginning"].count("line of a.py") > 5
    (row,) = machines.listed()
    assert (row["lines"], row["bytes"]) == (shown["lines"], shown["bytes"])


def test_the_preview_in_words_says_what_leaves_and_asks(machines: Machines) -> None:
    machines.write(turn(user(f"use {TOKEN}"), assistant("so " + "long " * 40)))

    done, said = on_a_terminal(machines.there, "push", thread(1), typed=b"n\n")

    assert done.returncode == 1
    assert "redacted: 2 github" in said
    assert "The longest texts that leave:" in said
    assert "kinds of secrets and no more" in said
    assert "Push 1 session" in said
    assert machines.listed() == []

    done, said = on_a_terminal(machines.there, "push", thread(1), typed=b"y\n")
    assert done.returncode == 0, said
    assert [row["sessionId"] for row in machines.listed()] == [thread(1)]


def test_nothing_leaves_where_nobody_can_be_asked(machines: Machines) -> None:
    machines.chat("one")

    assert machines.there.refused("push", thread(1))["code"] == "cancelled"
    assert machines.there.here("push").returncode == 2, "no session was named"
    assert machines.listed() == []


def test_only_the_sessions_that_were_asked_for_leave(machines: Machines) -> None:
    machines.chat("one")
    machines.chat("two", number=2)
    other = rollout(session(thread=thread(3), cwd="/elsewhere"), turn(user("three")))
    machines.there.put(other, 3)

    machines.push(2)
    assert [row["sessionId"] for row in machines.listed()] == [thread(2)]
    machines.there.json("push", "--cwd", machines.shop, "--yes")
    assert {row["sessionId"] for row in machines.listed()} == {thread(1), thread(2)}
    assert machines.there.json("push", "--since", "2027-01-01", "--yes")["sessions"] == []


def test_a_private_key_is_refused_however_much_is_allowed(machines: Machines) -> None:
    key = (
        f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA' * 4}\n-----END RSA PRIVATE KEY-----"
    )
    machines.write(turn(user("look"), shell("cat key", key)))

    refused = machines.there.refused("push", thread(1), "--yes", "--allow-redacted")

    assert refused["code"] == "secret_text"
    assert refused["facts"]["kinds"]["private_key"] > 0
    assert "MIIE" not in json.dumps(refused)
    assert not (machines.folder / "sessions").exists()


def test_many_secrets_need_consent_and_kinds_and_places_are_said(machines: Machines) -> None:
    machines.write(*(turn(user(f"use {TOKEN}"), name=f"m{n}") for n in range(11)))

    refused = machines.there.refused("push", thread(1), "--yes")
    assert refused["code"] == "secret_text"
    assert refused["facts"]["kinds"] == {"github": 22}
    assert refused["facts"]["places"][0] == "#3 github"

    assert machines.push(1, "--allow-redacted")["redacted"] == {"github": 22}


@pytest.mark.parametrize("glob", ["~/shop", "*/shop", "~"])
def test_a_folder_in_never_push_stays(machines: Machines, glob: str) -> None:
    machines.there.config(f"neverPush = [{glob!r}]")
    deeper = rollout(session(thread=thread(1), cwd=f"{machines.shop}/deep/er"), turn(user("x")))
    machines.there.put(deeper)

    refused = machines.there.refused("push", thread(1), "--yes")

    assert refused["code"] == "never_pushed"
    assert glob in refused["facts"]["hint"]


def test_one_refused_session_does_not_keep_the_others(machines: Machines) -> None:
    machines.chat("one")
    machines.write(*(turn(user(f"use {TOKEN}"), name=f"m{n}") for n in range(11)), number=2)

    found = machines.there.json("push", "--cwd", machines.shop, "--yes")

    assert [each["sessionId"] for each in found["sessions"]] == [thread(1)]
    assert [(each["sessionId"], each["code"]) for each in found["refused"]] == [
        (thread(2), "secret_text")
    ]


def test_the_audit_has_counts_and_no_text(machines: Machines) -> None:
    machines.chat("one")
    size = machines.push()["bytes"]

    (event,) = (each for each in machines.there.audited() if each["type"] == "SessionPushed")
    assert (event["sessionId"], event["bytes"], event["generation"]) == (thread(1), size, 1)
    machines.push()
    assert len(machines.there.audited()) == 1, "nothing was sent"


# --- resolved lines ------------------------------------------------------------------------------


def test_a_chain_of_files_leaves_as_one_history(machines: Machines, store: HistoryStore) -> None:
    base = rollout(session(thread=thread(1), cwd=machines.shop), turn(user("a"), assistant("b")))
    lines = base.splitlines(keepends=True)
    cut = b"".join(lines[:4])
    machines.there.put(base)
    fork = rollout(
        session(
            thread=thread(2),
            cwd=machines.shop,
            forked_from_id=thread(1),
            history_base=based_on(thread(1), 4, len(cut)),
        ),
        turn(user("c")),
    )
    machines.there.put(fork, 2)
    with machines.there.house() as house, read(house.sessions, 2) as going:
        Pusher(house.sessions, store, ChosenRemote("", "ana", "there", "there")).push(going)

    found = store.row(thread(2))
    assert found is not None
    data = b"".join(store.read(thread(2), found.row.head))
    records = [json.loads(line) for line in data.splitlines()]
    head, own = records[0]["payload"], json.loads(fork.splitlines()[0])["payload"]
    assert head == {key: each for key, each in own.items() if key != "history_base"}
    assert [each["ordinal"] for each in records] == list(range(len(records)))
    assert data.splitlines()[1:4] == [line.rstrip() for line in lines[1:4]]
    assert records[4]["payload"]["type"] == "token_count", "the second head is a quiet record"
    assert data.splitlines()[5:] == fork.splitlines()[1:]


def test_a_missing_base_is_refused(machines: Machines) -> None:
    machines.write(turn(user("c")), history_base=based_on(thread(9), 4, 100))

    assert machines.there.refused("push", thread(1), "--yes")["code"] == "unreadable_source"


def test_a_line_that_has_not_ended_waits_for_the_next_push(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one")
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"timestamp":"2026-11-20T10:01:00.000Z","ordin')
    pushed(machines.there, store)

    assert history(store) == whole


# --- cut off, twice, reverted --------------------------------------------------------------------


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
def test_a_push_that_was_cut_anywhere_goes_on_and_gives_the_same_bytes(
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


def test_a_session_that_goes_on_sends_only_what_is_new(
    machines: Machines, store: HistoryStore
) -> None:
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
def test_pushers_at_once_with_other_segments_give_the_same_bytes(
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


def test_others_that_always_push_other_lines_end_in_a_conflict(machines: Machines) -> None:
    machines.chat("one")

    class Different:
        place = ""

        def head(self, _session_id: str) -> Head | None:
            return None

        def append(self, *_: object) -> Answer:
            return Elsewhere(100_000, "0" * 64)

    with machines.there.house() as house, read(house.sessions) as going:
        store: Any = Different()
        pusher = Pusher(house.sessions, store, ChosenRemote("", "a", "m", "m"), segment=100)
        assert refusal(lambda: pusher.push(going)).code == "conflict"


def test_a_reverted_file_opens_a_generation(machines: Machines, store: HistoryStore) -> None:
    path = machines.chat("one", "two", "three")
    pushed(machines.there, store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:8]))

    again = pushed(machines.there, store)

    assert (again.state, again.generation) == ("pushed", 2)
    assert history(store) == path.read_bytes()


def test_a_changed_file_opens_a_generation(machines: Machines, store: HistoryStore) -> None:
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


def test_an_older_copy_on_another_machine_takes_nothing_back(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one", "two")
    pushed(machines.there, store)
    whole = path.read_bytes()
    machines.here.put(b"".join(whole.splitlines(keepends=True)[:8]))

    found = pushed(machines.here, store, machine="here")

    assert (found.state, found.sent) == ("ahead", 0)
    assert history(store) == whole


def test_a_renamed_session_is_listed_by_its_new_name(machines: Machines) -> None:
    machines.chat("one")
    machines.push()
    machines.there.json("rename", thread(1), "the login")

    assert machines.push()["sent"] == 0

    (row,) = machines.listed()
    assert row["title"] == "the login"


def test_just_what_was_shown_is_sent_whatever_the_file_does_meanwhile(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one")
    whole = path.read_bytes()
    with machines.there.house() as house, read(house.sessions) as going:
        path.write_bytes(whole.replace(b"so one", b"so ONE") + b'{"more":1}\n')
        Pusher(house.sessions, store, ChosenRemote("", "ana", "there", "there")).push(going)

    assert history(store) == whole


def test_a_session_without_anything_new_is_not_read_again(machines: Machines) -> None:
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
def test_what_changed_beside_the_file_is_pushed_too(machines: Machines, what: str) -> None:
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


def test_follow_pushes_what_grows_until_it_is_interrupted(machines: Machines) -> None:
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


def test_follow_goes_on_when_the_remote_comes_back(machines: Machines) -> None:
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


# --- local work and the remote -------------------------------------------------------------------


def test_local_commands_never_touch_the_remote(machines: Machines) -> None:
    machines.chat("one")
    machines.push()
    opened = machines.there.user / "opened"
    watching = f"""
import sys
def seen(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.rename", "os.mkdir") and arguments:
        if {str(machines.folder)!r} in str(arguments[0]):
            with open({str(opened)!r}, "a") as file:
                file.write(event)
sys.addaudithook(seen)
"""
    for command in (
        ("sessions",),
        ("view", thread(1)),
        ("digest", thread(1)),
        ("lineage", thread(1)),
        ("search", "one"),
        ("doctor",),
        ("watch", "--once"),
    ):
        done = machines.there.run(*command, first=watching)
        assert done.returncode == 0, done.stderr
    assert not opened.exists()
    machines.there.run("remote", "status", first=watching)
    assert opened.exists(), "the hook works"


def test_an_unmounted_folder_is_never_made_by_a_push(machines: Machines) -> None:
    machines.chat("one")
    machines.folder.rename(machines.folder.with_name("unplugged"))

    assert machines.there.refused("push", thread(1), "--yes")["code"] == "remote_unreachable"
    assert machines.here.refused("sessions", "--remote")["code"] == "remote_unreachable"
    assert machines.here.refused("pull", thread(1))["code"] == "remote_unreachable"
    assert not machines.folder.exists()
