"""Deletion of our sessions leaves an event; a user's own turns need force (AGN-18)."""

import os
from pathlib import Path
from typing import Any

import pytest

from bookkeeping import faults
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.deletion import delete
from homes import Home, go_on, on_a_terminal, refusal, thread
from peer import Peer
from restores import put
from rollouts import Form, Step, assistant, compacted, rollback, rollout, session, turn, user

GONE_ON = turn(user("Go on"), assistant("Yes."), name="own1")


def branch(home: Home, how: str, form: Form = "paginated") -> str:
    """Make a session of ours in one of four ways; return its id."""
    put(home, form)
    match how:
        case "compaction":
            made = home.json("compact", thread(1), "--into", "new", "--force")
            home.json("uncompact", made["compactionId"])
        case "import":
            pack = str(home.user / "a.pack")
            home.json("export", thread(1), pack)
            made = home.json("import", pack, "--cwd", str(home.user))
        case _:
            marker = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
            made = home.json("restore", thread(1), marker, "--mode", how)
    return made["sessionId"]


def file_of(home: Home, session_id: str) -> Path:
    (path,) = home.root.glob(f"sessions/**/rollout-*{session_id}.jsonl")
    return path


def told(home: Home) -> list[tuple[str, bool, int]]:
    events = (each for each in home.audited() if each["type"] == "SessionDeleted")
    return [(each["sessionId"], each["forced"], each["ownTurns"]) for each in events]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")
def test_terminal_deletes_a_session_only_after_yes(home: Home):
    made = branch(home, "soft")
    file = file_of(home, made)

    done, shown = on_a_terminal(home, "delete", made, typed=b"n\n")
    assert (done.returncode, file.exists()) == (1, True)
    assert f"Delete “x: Fix the login” ({made})? This cannot be undone. [y/N]" in shown
    _, shown = on_a_terminal(home, "delete", thread(1), typed=b"y\n")
    assert "[y/N]" not in shown  # what is refused is not asked about

    done, _ = on_a_terminal(home, "delete", made, typed=b"y\n")
    assert (done.returncode, file.exists()) == (0, False)


WAYS = ("soft", "hard", "compaction", "import")


@pytest.mark.parametrize("form", ["paginated", "legacy"])
@pytest.mark.parametrize("how", WAYS)
def test_deletion_leaves_an_event_and_user_turns_need_force(home: Home, how: str, form: Form):
    made = branch(home, how, form)
    path, before = file_of(home, made), file_of(home, made).read_bytes()
    assert home.json("delete", made) == {"sessionId": made, "deleted": True}
    assert told(home) == [(made, False, 0)]

    path.write_bytes(before)
    own = "legacy" if b'"ordinal"' not in before else "paginated"
    go_on(path, made, GONE_ON, form=own)
    refused = home.refused("delete", made)
    assert (refused["code"], refused["facts"]["ownTurns"]) == ("has_own_turns", 1)
    assert path.exists()
    assert len(told(home)) == 1

    home.json("delete", made, "--force")

    assert not path.exists()
    assert told(home) == [(made, False, 0), (made, True, 1)]
    with home.house() as house:
        assert faults(house.sessions) == []


@pytest.mark.parametrize("how", ["soft", "compaction"])
@pytest.mark.parametrize(
    ("steps", "turns"),
    [
        ((GONE_ON, rollback(1)), 1),
        ((compacted("shorter"), GONE_ON, turn(user("More"), name="own2")), 2),
        ((rollback(1),), 0),
        ((turn(user("cut off"), name="own1"),), 1),
    ],
    ids=["rolled back", "behind a compaction", "a rollback of what was copied", "open"],
)
def test_user_turns_are_those_begun_after_our_lines(
    home: Home, how: str, steps: tuple[Step, ...], turns: int
):
    made = branch(home, how)
    go_on(file_of(home, made), made, *steps)

    done = home.here("delete", made, "--json")

    assert (done.returncode == 1) == bool(turns)
    home.here("delete", made, "--force")
    assert told(home) == [(made, bool(turns), turns)]


def test_subagent_of_its_turns_counts_as_one_more(home: Home):
    made = branch(home, "soft")
    source: Any = {"subagent": {"thread_spawn": {"parent_thread_id": made, "depth": 1}}}
    home.put(rollout(session(thread=thread(7), source=source), turn(user("Help"))), 7)

    assert home.refused("delete", made)["facts"]["ownTurns"] == 1
    assert home.refused("delete", made, "--force")["code"] == "conflict"
    assert told(home) == []


@pytest.mark.parametrize("has_told", [True, False])
def test_only_one_of_two_concurrent_deletions_is_logged(
    home: Home, monkeypatch: pytest.MonkeyPatch, has_told: bool
):
    made = branch(home, "soft")
    with home.house() as house, home.house() as other:
        late = house.sessions.threads.delete

        def second(session_id: str) -> None:
            if has_told:
                delete(other.sessions, session_id)
            else:
                file_of(home, made).unlink()
            late(session_id)

        monkeypatch.setattr(house.sessions.threads, "delete", second)
        refused = refusal(lambda: delete(house.sessions, made))

    assert refused.code == "unknown_session"
    assert told(home) == [(made, False, 0)] * has_told


def test_deletion_refused_beside_another_leaves_the_event_to_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    made = branch(home, "soft")
    with home.house() as house:

        def refused_while_another_deletes(session_id: str) -> None:
            # The other process has removed the file and has not written its event yet.
            file_of(home, session_id).unlink()
            raise Refusal("session_live", "another process writes to it")

        monkeypatch.setattr(house.sessions.threads, "delete", refused_while_another_deletes)
        refused = refusal(lambda: delete(house.sessions, made))

    assert refused.code == "session_live"
    assert told(home) == []


def test_editor_asks_again_before_force(home: Home):
    made = branch(home, "hard")
    go_on(file_of(home, made), made, GONE_ON)
    with Peer(home.root) as peer:
        peer.start()
        refused = peer.error("checkpoints/delete", {"sessionId": made})
        done = peer.call("checkpoints/delete", {"sessionId": made, "force": True})

    assert refused["data"]["code"] == "has_own_turns"
    assert done == {"sessionId": made, "deleted": True}
    assert told(home) == [(made, True, 1)]


def test_refusal_says_how_to_keep_or_lose_the_turns(home: Home):
    made = branch(home, "soft")
    go_on(file_of(home, made), made, GONE_ON)

    said = home.here("delete", made).stderr.decode()

    assert "You continued this session: 1 turn of your own would be deleted with it." in said
    assert f"archive {made}" in said
    assert "--force" in said
