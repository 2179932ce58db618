"""Push: sent lines were shown and are redacted; nothing else is sent (TEA-1, TEA-6)."""

import json
from typing import Any

import pytest

from codex_checkpoints.service.remote.push import Pusher
from codex_checkpoints.storage.remote.chosen import ChosenRemote
from codex_checkpoints.storage.remote.contract import (
    HistoryStore,
)
from homes import on_a_terminal, thread
from planted_secrets import TOKEN, every_form, everything, planted
from rollouts import Form, assistant, based_on, rollout, session, shell, turn, user
from two_machines import Machines, history, pushed, read

Json = dict[str, Any]


# --- what leaves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_no_secret_of_any_record_reaches_the_remote(machines: Machines, form: Form) -> None:
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


def test_no_secret_of_a_documented_form_reaches_the_remote(machines: Machines) -> None:
    machines.there.put(every_form(thread=thread(1), cwd=machines.shop))

    machines.push(1, "--allow-redacted")

    stored = machines.stored().decode()
    assert [each for each in planted() if each in stored] == []


def test_push_shows_a_preview_and_sends_exactly_that(machines: Machines) -> None:
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


def test_preview_in_words_says_what_is_sent_and_asks(machines: Machines) -> None:
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


def test_nothing_is_sent_if_nobody_can_confirm(machines: Machines) -> None:
    machines.chat("one")

    assert machines.there.refused("push", thread(1))["code"] == "cancelled"
    assert machines.there.here("push").returncode == 2, "no session was named"
    assert machines.listed() == []


def test_only_requested_sessions_are_sent(machines: Machines) -> None:
    machines.chat("one")
    machines.chat("two", number=2)
    other = rollout(session(thread=thread(3), cwd="/elsewhere"), turn(user("three")))
    machines.there.put(other, 3)

    machines.push(2)
    assert [row["sessionId"] for row in machines.listed()] == [thread(2)]
    machines.there.json("push", "--cwd", machines.shop, "--yes")
    assert {row["sessionId"] for row in machines.listed()} == {thread(1), thread(2)}
    assert machines.there.json("push", "--since", "2027-01-01", "--yes")["sessions"] == []


def test_private_key_is_refused_whatever_is_allowed(machines: Machines) -> None:
    key = (
        f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA' * 4}\n-----END RSA PRIVATE KEY-----"
    )
    machines.write(turn(user("look"), shell("cat key", key)))

    refused = machines.there.refused("push", thread(1), "--yes", "--allow-redacted")

    assert refused["code"] == "secret_text"
    assert refused["facts"]["kinds"]["private_key"] > 0
    assert "MIIE" not in json.dumps(refused)
    assert not (machines.folder / "sessions").exists()


def test_many_secrets_need_consent_and_their_kinds_and_places_are_listed(
    machines: Machines,
) -> None:
    machines.write(*(turn(user(f"use {TOKEN}"), name=f"m{n}") for n in range(11)))

    refused = machines.there.refused("push", thread(1), "--yes")
    assert refused["code"] == "secret_text"
    assert refused["facts"]["kinds"] == {"github": 22}
    assert refused["facts"]["places"][0] == "#3 github"
    assert refused["message"] == f"Session {thread(1)} holds 22 secrets (22 github)."

    assert machines.push(1, "--allow-redacted")["redacted"] == {"github": 22}


@pytest.mark.parametrize("glob", ["~/shop", "*/shop", "~"])
def test_folder_in_never_push_is_not_sent(machines: Machines, glob: str) -> None:
    machines.there.config(f"neverPush = [{glob!r}]")
    deeper = rollout(session(thread=thread(1), cwd=f"{machines.shop}/deep/er"), turn(user("x")))
    machines.there.put(deeper)

    refused = machines.there.refused("push", thread(1), "--yes")

    assert refused["code"] == "never_pushed"
    assert glob in refused["facts"]["hint"]


def test_one_refused_session_does_not_stop_the_others(machines: Machines) -> None:
    machines.chat("one")
    machines.write(*(turn(user(f"use {TOKEN}"), name=f"m{n}") for n in range(11)), number=2)

    found = machines.there.json("push", "--cwd", machines.shop, "--yes")

    assert [each["sessionId"] for each in found["sessions"]] == [thread(1)]
    assert [(each["sessionId"], each["code"]) for each in found["refused"]] == [
        (thread(2), "secret_text")
    ]


def test_audit_has_counts_and_no_text(machines: Machines) -> None:
    machines.chat("one")
    size = machines.push()["bytes"]

    (event,) = (each for each in machines.there.audited() if each["type"] == "SessionPushed")
    assert (event["sessionId"], event["bytes"], event["generation"]) == (thread(1), size, 1)
    machines.push()
    assert len(machines.there.audited()) == 1, "nothing was sent"


# --- resolved lines ------------------------------------------------------------------------------


def test_chain_of_files_is_sent_as_one_history(machines: Machines, store: HistoryStore) -> None:
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


def test_missing_base_is_refused(machines: Machines) -> None:
    machines.write(turn(user("c")), history_base=based_on(thread(9), 4, 100))

    assert machines.there.refused("push", thread(1), "--yes")["code"] == "unreadable_source"


def test_unfinished_line_waits_for_the_next_push(machines: Machines, store: HistoryStore) -> None:
    path = machines.chat("one")
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"timestamp":"2026-11-20T10:01:00.000Z","ordin')
    pushed(machines.there, store)

    assert history(store) == whole


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


@pytest.mark.parametrize("place", ["postgresql://ana@127.0.0.1:9/codex", "the folder"])
def test_local_commands_open_no_connection(machines: Machines, place: str) -> None:
    """So a server that is stopped, slow, or has a wrong certificate makes none of them slower."""
    machines.chat("one")
    if place != "the folder":
        choice = machines.there.state / "remote.json"
        choice.write_text(json.dumps(json.loads(choice.read_text()) | {"place": place}))
    connected = machines.there.user / "connected"
    watching = f"""
import sys
def seen(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        with open({str(connected)!r}, "a") as file:
            file.write(event)
sys.addaudithook(seen)
"""
    called = {"hook_event_name": "SessionStart", "session_id": thread(1), "cwd": machines.shop}
    for said, *command in (
        (None, "sessions"),
        (None, "show", thread(1)),
        (None, "view", thread(1)),
        (None, "search", "one"),
        (None, "doctor"),
        (json.dumps(called).encode(), "hook"),
        (json.dumps(called | {"hook_event_name": "PreCompact"}).encode(), "hook"),
    ):
        done = machines.there.run(*command, first=watching, said=said)
        assert done.returncode == 0, done.stderr
    assert not connected.exists()
    if place != "the folder":
        machines.there.run("remote", "status", first=watching)
        assert connected.exists(), "the hook works"


def test_push_never_creates_an_unmounted_folder(machines: Machines) -> None:
    machines.chat("one")
    machines.folder.rename(machines.folder.with_name("unplugged"))

    assert machines.there.refused("push", thread(1), "--yes")["code"] == "remote_unreachable"
    assert machines.here.refused("sessions", "--remote")["code"] == "remote_unreachable"
    assert machines.here.refused("pull", thread(1))["code"] == "remote_unreachable"
    assert not machines.folder.exists()
