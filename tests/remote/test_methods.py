"""The remote over JSON-RPC: lists, a session to read, a push as it was shown, a pull (TEA-6)."""

import json
import os
import socket
from collections.abc import Generator
from contextlib import closing
from typing import Any

import pytest

from homes import go_on, thread
from peer import Peer
from planted_secrets import TOKEN
from rollouts import shell, turn, user
from two_machines import Machines

Json = dict[str, Any]


@pytest.fixture
def peer(machines: Machines) -> Generator[Peer]:
    """Start the language server of the second machine."""
    with Peer(machines.here.root, env=machines.here.environment()) as started:
        started.start()
        yield started


@pytest.fixture
def pusher(machines: Machines) -> Generator[Peer]:
    """Start the language server of the first machine."""
    with Peer(machines.there.root, env=machines.there.environment()) as started:
        started.start()
        yield started


def ask(peer: Peer, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
    return peer.call(f"checkpoints/{method}", params)


def test_chosen_remote_is_known_without_a_connection(machines: Machines, peer: Peer) -> None:
    chosen = ask(peer, "remote")
    assert chosen == {
        "place": str(machines.folder), "owner": chosen["owner"], "machine": "here",
        "isServer": False,
    }  # fmt: skip

    (machines.here.state / "remote.json").unlink()
    assert set(ask(peer, "remote").values()) == {None, False}
    error = peer.error("checkpoints/remoteSessions")
    assert error["data"]["code"] == "remote_unreachable"


def test_place_without_a_remote_is_chosen_only_if_one_is_made_there(
    machines: Machines, peer: Peer
) -> None:
    before, place = ask(peer, "remote"), str(machines.here.user / "other")

    assert ask(peer, "remoteSet", place=place, make=False)["made"] is False
    assert ask(peer, "remote") == before
    assert not os.path.exists(place)

    assert ask(peer, "remoteSet", place=place, make=True)["made"] is True
    assert ask(peer, "remote")["place"] == place
    assert ask(peer, "remoteSet", place=before["place"], make=False)["made"] is True
    assert ask(peer, "remote")["place"] == before["place"]


def test_remote_list_has_pages(machines: Machines, peer: Peer) -> None:
    for number in (1, 2, 3):
        machines.chat(f"task {number}", number=number)
        machines.push(number)

    first = ask(peer, "remoteSessions", limit=2)
    rest = ask(peer, "remoteSessions", limit=2, cursor=first["nextCursor"])

    assert [len(first["items"]), len(rest["items"]), rest["nextCursor"]] == [2, 1, None]
    known = {each["sessionId"] for each in (*first["items"], *rest["items"])}
    assert known == {thread(1), thread(2), thread(3)}
    assert [each["title"] for each in ask(peer, "remoteSessions", search="task 2")["items"]] == [
        "task 2"
    ]
    assert ask(peer, "remoteSessions", user="nobody")["items"] == []


def test_branch_in_the_list_names_its_source(machines: Machines, peer: Peer) -> None:
    machines.write(turn(user("a branch")), number=2, forked_from_id=thread(1))
    machines.push(2)

    (listed,) = ask(peer, "remoteSessions")["items"]
    assert (listed["forkedFrom"], listed["parentSession"]) == (thread(1), None)


def test_remote_session_can_be_read_and_leaves_nothing_in_the_home(
    machines: Machines, peer: Peer
) -> None:
    machines.write(turn(user("fix the login"), shell("cat a.py", "x = 1")))
    machines.push()

    opened = ask(peer, "remoteSession", sessionId=thread(1)[:13])

    path = opened["path"]
    assert opened["session"]["sessionId"] == thread(1)
    assert ask(peer, "session", sessionId=path)["summary"]["task"] == "fix the login"
    assert ask(peer, "timeline", sessionId=path)["turns"][0]["turn"] == 1
    items = ask(peer, "transcript", sessionId=path, turnId="1")["items"]
    assert [each["kind"] for each in items] == ["user", "call", "output"]
    for method in ("show", "digest", "changes", "losses", "outline", "windows", "notes", "marks"):
        assert ask(peer, method, sessionId=path), method
    assert not [*machines.here.state.glob("sessions/*")]
    assert ask(peer, "sessions")["items"] == []
    refused = peer.error("checkpoints/mark", {"sessionId": path, "label": "x"})
    assert refused["data"]["code"] in {"conflict", "unknown_session"}


def test_opened_session_is_fetched_again_only_if_it_changed(machines: Machines, peer: Peer) -> None:
    path = machines.chat("one")
    machines.push()
    before = ask(peer, "remoteSession", sessionId=thread(1))["path"]
    for segment in machines.folder.glob("sessions/*/*/*.zst"):
        segment.rename(segment.with_suffix(".away"))
    assert ask(peer, "remoteSession", sessionId=thread(1))["path"] == before
    for segment in machines.folder.glob("sessions/*/*/*.away"):
        segment.rename(segment.with_suffix(".zst"))

    go_on(path, thread(1), turn(user("two"), name="x"))
    machines.push()

    after = ask(peer, "remoteSession", sessionId=thread(1))["path"]
    assert after != before
    assert ask(peer, "session", sessionId=after)["summary"]["task"] == "two"


def test_damaged_session_is_never_opened(machines: Machines, peer: Peer) -> None:
    machines.chat("one")
    machines.push()
    for segment in machines.folder.glob("sessions/*/*/*.zst"):
        segment.unlink()

    error = peer.error("checkpoints/remoteSession", {"sessionId": thread(1)})

    assert error["data"]["code"] == "remote_damaged"
    assert not [*machines.here.state.glob("remote/*/*")]


def test_exactly_the_shown_lines_are_sent_although_the_session_grows(
    machines: Machines, pusher: Peer
) -> None:
    path = machines.write(turn(user(f"use {TOKEN}")))
    whole = path.read_bytes()
    asked: Json = {"sessionIds": [thread(1)], "dryRun": True}
    shown = ask(pusher, "push", **asked)
    (session,) = shown["sessions"]
    assert (session["state"], session["redacted"]) == ("new", {"github": 2})
    assert machines.listed() == []

    go_on(path, thread(1), turn(user("a later thought"), name="x"))
    seen = [{key: session[key] for key in ("sessionId", "lines", "digest")}]
    (sent,) = ask(pusher, "push", **asked | {"dryRun": False, "shown": seen})["sessions"]

    assert (sent["state"], sent["sent"], sent["digest"]) == (
        "pushed", session["bytes"], session["digest"],
    )  # fmt: skip
    assert sent["lines"] == whole.count(b"\n")
    assert b"later thought" not in machines.stored()
    (sent,) = ask(pusher, "push", sessionIds=[thread(1)])["sessions"]
    assert (sent["state"], sent["bytes"] > session["bytes"]) == ("pushed", True)
    assert [each["generation"] for each in machines.listed()] == [1]
    (machines.there.state / "sessions" / thread(1) / "pushed.json").unlink()
    (late,) = ask(pusher, "push", **asked | {"dryRun": False, "shown": seen})["sessions"]
    assert late["state"] == "ahead", "what was shown before is there already, with more"


def test_push_does_not_read_a_session_again_after_its_preview(
    machines: Machines, pusher: Peer
) -> None:
    path = machines.chat("one", "two")
    (session,) = ask(pusher, "push", sessionIds=[thread(1)], dryRun=True)["sessions"]
    look, before = path.stat(), path.read_bytes()
    path.write_bytes(before.replace(b"two", b"six"))
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns))  # nobody notices without reading

    seen = [{key: session[key] for key in ("sessionId", "lines", "digest")}]
    (sent,) = ask(pusher, "push", sessionIds=[thread(1)], shown=seen)["sessions"]

    assert (sent["state"], sent["digest"]) == ("pushed", session["digest"])
    assert b"two" in machines.stored()
    assert b"six" not in machines.stored()


def test_preview_for_one_remote_is_not_used_for_another(machines: Machines, pusher: Peer) -> None:
    path = machines.chat("one", "two")
    (session,) = ask(pusher, "push", sessionIds=[thread(1)], dryRun=True)["sessions"]
    look = path.stat()
    path.write_bytes(path.read_bytes().replace(b"two", b"six"))
    os.utime(path, ns=(look.st_atime_ns, look.st_mtime_ns))  # only reading notices it

    # A server has an index of texts, which a folder lacks, so the texts must be read again.
    ask(pusher, "remoteSet", place=str(machines.there.user / "other"), make=True)
    (sent,) = ask(pusher, "push", sessionIds=[thread(1)])["sessions"]

    assert sent["state"] == "pushed"
    assert sent["digest"] != session["digest"]


def test_consent_to_redacted_secrets_in_a_preview_is_not_one_for_the_push(
    machines: Machines, pusher: Peer
) -> None:
    machines.write(turn(*(user(f"{TOKEN[:-2]}{number}") for number in range(10, 40))))
    ask(pusher, "push", sessionIds=[thread(1)], dryRun=True, allowRedacted=True)

    error = pusher.error("checkpoints/push", {"sessionIds": [thread(1)]})

    assert error["data"]["code"] == "secret_text"


def test_session_changed_since_the_preview_is_refused(machines: Machines, pusher: Peer) -> None:
    machines.chat("one", "two")
    (session,) = ask(pusher, "push", sessionIds=[thread(1)], dryRun=True)["sessions"]
    machines.chat("another", "two")

    seen = [{key: session[key] for key in ("sessionId", "lines", "digest")}]
    error = pusher.error("checkpoints/push", {"sessionIds": [thread(1)], "shown": seen})

    assert error["data"]["code"] == "conflict"
    assert machines.listed() == []
    error = pusher.error("checkpoints/push", {})
    assert error["data"]["code"] == "invalid_payload", "never all sessions, unless they are chosen"


def test_pull_makes_a_branch_and_notifies_the_editor(machines: Machines, peer: Peer) -> None:
    machines.chat("one")
    machines.push()
    ask(peer, "sessions")

    pulled = ask(peer, "pull", sessionId=thread(1), into=str(machines.here.user / "shop"))

    changed = peer.heard("checkpoints/changed")
    assert pulled["sessionId"] in changed["sessionIds"]
    assert [each["sessionId"] for each in ask(peer, "sessions")["items"]] == [pulled["sessionId"]]
    assert ask(peer, "remoteDelete", sessionId=thread(1)) == {"sessionId": thread(1)}
    assert not [*machines.here.state.glob("remote/*/*.jsonl")], "the copy here goes as well"
    assert ask(peer, "remoteStatus")["sessions"] == 0


def test_local_sessions_do_not_wait_for_a_silent_remote(machines: Machines, peer: Peer) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        place = f"postgresql://ana@127.0.0.1:{silent.getsockname()[1]}/codex"
        choice = machines.here.state / "remote.json"
        choice.write_text(json.dumps(json.loads(choice.read_text()) | {"place": place}))
        waiting = [
            peer.ask("checkpoints/remoteSessions"),
            peer.ask("checkpoints/pull", {"sessionId": thread(1)}),
        ]
        connections = [silent.accept()[0] for _ in waiting]

        assert ask(peer, "sessions")["items"] == []
        assert not any(map(peer.has_answer, waiting))
        for connection in connections:
            connection.close()

    answers = [peer.answer(each) for each in waiting]
    assert {each["error"]["data"]["code"] for each in answers} == {"remote_unreachable"}
