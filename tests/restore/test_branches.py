"""Markers and branches in lists and answers, through the real doors."""

from pathlib import Path
from typing import Any

import pytest

from homes import Home, chat, thread
from peer import Peer
from rollouts import assistant, rollout, session, turn, user

Json = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Hold a session of two turns, and another."""
    home = Home(tmp_path)
    (home.user / "shop").mkdir()
    home.put(
        rollout(
            session(thread=thread(1), cwd=str(home.user / "shop")),
            turn(user("Fix the login"), assistant("Read.")),
            turn(user("And the logout"), assistant("Done.")),
        )
    )
    home.put(chat("Something else", 2), 2)
    return home


def listed(home: Home) -> dict[str, Json]:
    return {each["sessionId"]: each for each in home.json("sessions")}


def marked(home: Home, label: str) -> Json:
    return home.json("mark", thread(1), "--label", label)


def restored(home: Home, mode: str) -> Json:
    marker = marked(home, f"before {mode}")
    return home.json("restore", thread(1), marker["checkpointId"], "--mode", mode)


def ask(home: Home, method: str, session_id: str) -> Json:
    with Peer(home.root) as peer:
        peer.start()
        return peer.call(f"checkpoints/{method}", {"sessionId": session_id})


def around(home: Home, session_id: str) -> Json:
    return ask(home, "branches", session_id)


def test_list_counts_the_active_markers(home: Home):
    first, _ = marked(home, "one"), marked(home, "two")
    assert [listed(home)[thread(n)]["markers"] for n in (1, 2)] == [2, 0]

    home.json("unmark", thread(1), first["checkpointId"])

    assert listed(home)[thread(1)]["markers"] == 1


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_restored_branch_and_its_source_name_each_other(home: Home, mode: str):
    done = restored(home, mode)

    rows = listed(home)
    assert [rows[thread(1)][key] for key in ("branches", "madeBy")] == [1, None]
    branch = rows[done["sessionId"]]
    assert [branch[key] for key in ("branches", "madeBy", "forkedFrom")] == [
        *(0, "restore", thread(1)),
    ]
    down = around(home, thread(1))
    step = {
        "kind": "restore",
        "mode": mode,
        "at": done["restoredAt"],
        "turnId": done["sourceTurn"]["turnId"],
        "checkpointId": done["checkpointId"],
        "operationId": done["operationId"],
        "available": True,
        "archived": False,
        "undone": False,
    }
    assert down == {
        "sessionId": thread(1),
        "source": None,
        "items": [{"sessionId": done["sessionId"], "title": branch["title"], **step}],
        "nextCursor": None,
    }
    up = around(home, done["sessionId"])
    source = {"sessionId": thread(1), "title": "Fix the login", **step}
    assert (up["source"], up["items"]) == (source, [])


def test_compaction_and_fork_are_branches_and_a_subagent_is_not(home: Home):
    made = home.json("compact", thread(1), "--force")
    head = {"forked_from_id": thread(1)}
    home.put(chat("A fork", 3, **head), 3)
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": thread(1), "depth": 1}}}
    home.put(chat("A helper", 4, source=spawned, **head), 4)

    rows = listed(home)

    assert rows[thread(1)]["branches"] == 2
    assert [rows[each]["madeBy"] for each in (made["sessionId"], thread(3))] == ["compaction", None]
    found = around(home, thread(1))["items"]
    assert {(each["kind"], each["sessionId"], each["operationId"]) for each in found} == {
        ("compaction", made["sessionId"], made["compactionId"]),
        ("fork", thread(3), None),
    }


def test_session_of_an_undone_compaction_says_so_everywhere(home: Home):
    made = home.json("compact", thread(1), "--force")["sessionId"]
    assert not listed(home)[made]["undone"]

    home.json("uncompact", made[:13])

    assert listed(home)[made]["undone"]
    assert not listed(home)[thread(1)]["undone"]
    assert [each["undone"] for each in around(home, thread(1))["items"]] == [True]
    tree = home.json("lineage", made)["nodes"]
    assert {each["id"]: each["undone"] for each in tree} == {thread(1): False, made: True}
    for command in (["sessions"], ["lineage", made]):
        lines = home.run(*command).stdout.decode().splitlines()
        assert [made[:13] in line for line in lines if "compaction undone" in line] == [True]


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_window_says_that_its_compaction_was_undone(home: Home, into: str):
    done = home.json("compact", thread(1), "--force", "--into", into)
    name, made = done["compactionId"], done["sessionId"]

    def undone() -> list[bool]:
        windows = home.json("windows", made)
        return [each["undone"] for each in windows if each["compactionId"] == name]

    assert undone() == [False]
    home.json("uncompact", name)

    assert undone() == [True]
    assert f"     compaction {name}, undone since\n" in home.run("windows", made).stdout.decode()


def test_copy_is_marked_in_the_list(home: Home, tmp_path: Path):
    branch = restored(home, "hard")["sessionId"]
    compacted = home.json("compact", thread(1), "--force")["sessionId"]
    home.put(chat("A fork", 3, forked_from_id=thread(1)), 3)
    home.json("export", thread(1), str(tmp_path / "pack.json"))
    imported = home.json("import", str(tmp_path / "pack.json"))["sessionId"]

    lines = home.run("sessions").stdout.decode().splitlines()

    said = {line.split()[3][:13]: line.rpartition(" (")[2] for line in lines if line[-1] == ")"}
    named = {branch: "branch)", compacted: "compacted)", thread(3): "fork)", imported: "imported)"}
    assert said == {each[:13]: words for each, words in named.items()}


def test_refusal_repeats_the_named_folders_in_its_remedy(home: Home):
    done = home.run("delete", thread(1), "--codex-home", str(home.root))

    assert f"`codex-checkpoints archive {thread(1)} --codex-home {home.root}`" in (
        done.stderr.decode()
    )


def test_followed_session_has_the_name_of_the_list(home: Home):
    home.put(rollout(session(thread=thread(5)), turn(user("First")), turn(user("Then"))), 5)

    lines = home.run("watch", "--once").stdout.decode().splitlines()

    assert f"{thread(5)[:13]}  rollout    First" in lines


def test_imported_session_says_so(home: Home, tmp_path: Path):
    file = tmp_path / "pack.json"
    home.json("export", thread(1), str(file))
    other = Home(tmp_path / "elsewhere")

    made = other.json("import", str(file), "--cwd", str(other.user))

    assert listed(other)[made["sessionId"]]["madeBy"] == "import"


def test_missing_or_archived_source_is_still_named(home: Home):
    done = restored(home, "hard")
    home.run("archive", thread(1))
    assert around(home, done["sessionId"])["source"]["archived"] is True

    for path in home.root.rglob(f"rollout-*{thread(1)}.jsonl"):
        path.unlink()

    source = around(home, done["sessionId"])["source"]
    assert [source[key] for key in ("sessionId", "title", "available", "kind")] == [
        *(thread(1), None, False, "restore"),
    ]


def test_turn_shows_its_start_if_the_time_is_valid(home: Home):
    data = chat("Fix it", 3)
    home.put(data.replace(b'{"timestamp":"2026-11-20T10:00:0', b'{"timestamp":"yesterday '), 3)

    told, (untold,) = (ask(home, "session", thread(each))["turns"] for each in (1, 3))

    assert [each["startedAt"] for each in told] == sorted(each["startedAt"] for each in told)
    assert all(each["startedAt"].startswith("2026-11-20T10:00:") for each in told)
    assert untold["startedAt"] is None
