"""Markers and pins through the real doors: what they name, what they survive, what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.service.marking import Markers
from homes import Home, chat, more, refusal, snapshot, thread
from peer import Peer
from rollouts import (
    Form,
    assistant,
    compacted,
    patch,
    rollback,
    rollout,
    session,
    shell,
    started,
    turn,
    user,
)

Json = dict[str, Any]

AT = "2026-11-21T09:00:00.000Z"
SECRET = "ghp" + "_" + "a1B2" * 9
FORMS: tuple[Form, ...] = ("paginated", "legacy", "bare")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path)


def a_home(root: Path, form: Form = "paginated") -> Home:
    """Hold a session of two turns that have ended."""
    home = Home(root)
    (home.user / "shop").mkdir()
    (home.user / "shop/a.py").write_text("one\ntwo\nthree\n")
    head = session(form, thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *two_turns()))
    return home


def two_turns() -> tuple[Any, ...]:
    return (
        turn(user("Fix the login"), shell("cat a.py", "one", reads=["a.py"]), assistant("Read.")),
        turn(user("And the logout"), patch(add="b.py"), assistant("Done.")),
    )


def marked(home: Home, label: str = "here", turn: str | None = None) -> Json:
    where = [] if turn is None else ["--turn", turn]
    return home.json("mark", thread(1), "--label", label, *where)


def marks(home: Home) -> list[Json]:
    return home.json("marks", thread(1))


def lines(home: Home) -> list[Json]:
    path = home.checkpoint().with_name("markers.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_a_marker_stands_on_the_last_turn_that_has_ended(tmp_path: Path, form: Form):
    home = a_home(tmp_path, form)

    made = marked(home)

    assert list(made) == [
        "checkpointId",
        "sessionId",
        "turnId",
        "label",
        "createdAt",
        "origin",
        "turnNumber",
        "detached",
    ]
    assert (made["sessionId"], made["turnNumber"], made["label"]) == (thread(1), 2, "here")
    assert (made["origin"], made["detached"]) == ("user", False)
    assert made["createdAt"].endswith("Z")
    assert marks(home) == [made]


def test_an_open_turn_is_passed_over_and_refused_by_its_name(home: Home):
    home.put(rollout(session(), *two_turns(), started(), user("go on")))

    assert marked(home)["turnNumber"] == 2
    done = home.run("mark", thread(1), "--label", "x", "--turn", "3", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "turn_not_complete"


def test_a_session_without_a_turn_that_has_ended_has_nothing_to_mark(home: Home):
    home.put(rollout(session(thread=thread(2)), started(), user("begin")), 2)

    with home.house() as house:
        markers = Markers(house.sessions, lambda: AT, lambda: "m1")
        met = refusal(lambda: markers.mark(thread(2), "x"))

    assert met.code == "turn_not_complete"
    assert not (home.state / "sessions" / thread(2)).exists()


@pytest.mark.parametrize("name", ["3", "0", "t9", ""])
def test_a_turn_that_is_not_there_is_refused(home: Home, name: str):
    with home.house() as house:
        met = refusal(
            lambda: Markers(house.sessions, lambda: AT, lambda: "m1").mark(thread(1), "x", name)
        )

    assert met.code == "unknown_turn"


def test_a_label_of_nothing_but_spaces_is_refused(home: Home):
    done = home.run("mark", thread(1), "--label", " \t ", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "invalid_payload"


def test_markers_are_renamed_and_taken_away_by_the_beginning_of_their_id(home: Home):
    first, second = marked(home, "one", "1"), marked(home, "two", "2")
    name = first["checkpointId"]

    home.json("relabel", thread(1), name, "uno")
    assert [each["label"] for each in marks(home)] == ["uno", "two"]
    gone = home.json("unmark", thread(1), name)

    assert gone == {"sessionId": thread(1), "checkpointId": name, "removed": True}
    assert [each["checkpointId"] for each in marks(home)] == [second["checkpointId"]]
    short = second["checkpointId"][:30]
    assert home.json("relabel", thread(1), short, "due")["label"] == "due"


@pytest.mark.parametrize("command", [("unmark",), ("relabel", "x")])
def test_a_marker_that_is_not_there_is_refused(home: Home, command: tuple[str, ...]):
    marked(home)
    verb, *rest = command

    done = home.run(verb, thread(1), "01a20000", *rest, "--json")

    error = json.loads(done.stdout)["error"]
    assert error["code"] == "unknown_checkpoint"
    assert error["facts"]["candidates"] == [marks(home)[0]["checkpointId"]]


def test_a_marker_holds_hashes_and_nothing_that_was_said(home: Home):
    home.put(
        rollout(
            session(cwd=str(home.user / "shop")),
            turn(
                user("the user's words"),
                shell("cat a.py", "output words", reads=["a.py"]),
                assistant("assistant words"),
            ),
        )
    )

    marked(home, f"before {SECRET}")

    (line,) = lines(home)
    assert list(line["hashes"]) == ["a.py"]
    text = json.dumps(line)
    assert "words" not in text
    assert SECRET not in text
    assert line["label"].startswith("before ")


def test_markers_survive_a_compaction_more_turns_and_archiving(home: Home):
    made = marked(home, turn="1")
    path = home.path()
    path.write_bytes(
        path.read_bytes()
        + more(compacted("m", []), turn(user("later")), thread=thread(1), ordinal=40)
    )
    assert marks(home) == [made]

    home.json("archive", thread(1))

    assert marks(home) == [made]


@pytest.mark.parametrize("form", ["legacy"])
def test_a_marker_on_a_turn_that_was_rolled_back_stays_and_is_detached(tmp_path: Path, form: Form):
    home = a_home(tmp_path, form)
    first, second = marked(home, turn="1"), marked(home, turn="2")
    head = session(form, thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *two_turns(), rollback(1), turn(user("otherwise"))))

    kept, detached = marks(home)

    assert kept == first
    assert detached == second | {"turnNumber": None, "detached": True}
    done = home.run("mark", thread(1), "--label", "x", "--turn", second["turnId"], "--json")
    assert json.loads(done.stdout)["error"]["code"] == "unknown_turn"


def test_two_sessions_with_the_same_turn_ids_have_each_their_own_markers(home: Home):
    home.put(chat("another", 2), 2)

    made = marked(home, turn="1")

    assert made["turnId"] == "t1"
    assert home.json("marks", thread(2)) == []
    done = home.run("unmark", thread(2), made["checkpointId"], "--json")
    assert json.loads(done.stdout)["error"]["code"] == "unknown_checkpoint"


def test_files_and_lines_of_them_are_pinned_and_let_go(home: Home):
    assert home.json("pin", thread(1), "a.py") == [{"uri": "a.py", "start": None, "end": None}]
    absolute = str(home.user / "shop/a.py") + "#L2-L3"
    both = home.json("pin", thread(1), absolute)
    assert both[1] == {"uri": "a.py", "start": 2, "end": 3}
    assert home.json("pin", thread(1)) == both

    assert home.json("unpin", thread(1), "a.py") == both[1:]
    done = home.run("unpin", thread(1), "a.py", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "invalid_payload"


@pytest.mark.parametrize("path", ["a.py#L0", "a.py#L3-L2", ".", ""])
def test_what_names_no_file_is_not_pinned(home: Home, path: str):
    before = snapshot(home.state / "sessions") if (home.state / "sessions").exists() else {}

    done = home.run("pin", thread(1), path, "--json")

    assert json.loads(done.stdout)["error"]["code"] == "invalid_payload"
    assert (snapshot(home.state / "sessions") if (home.state / "sessions").exists() else {}) == (
        before
    )


@pytest.mark.parametrize("path", ["nope.py", "sub", "../notes", "/etc/hostname", "a.py/b"])
def test_what_is_no_file_in_the_folder_is_not_pinned(home: Home, path: str):
    (home.user / "notes").write_text("outside")
    (home.user / "shop/sub").mkdir()

    done = home.run("pin", thread(1), path, "--json")

    error = json.loads(done.stdout)["error"]
    assert error["code"] == "invalid_payload"
    assert error["message"] == "path: must be a file in the folder of the session"
    assert home.json("pin", thread(1)) == []


def test_a_file_that_the_session_met_is_pinned_though_it_is_gone(home: Home):
    assert [pin["uri"] for pin in home.json("pin", thread(1), "b.py")] == ["b.py"]


def test_where_the_folder_is_not_here_a_name_below_it_is_pinned(home: Home):
    shutil.rmtree(home.user / "shop")

    assert [pin["uri"] for pin in home.json("pin", thread(1), "gone/a.py")] == ["gone/a.py"]
    assert home.run("pin", thread(1), "/etc/hostname").returncode == 1


def test_a_pin_of_a_file_that_is_gone_is_let_go(home: Home):
    home.json("pin", thread(1), "a.py")
    (home.user / "shop/a.py").unlink()

    assert home.json("unpin", thread(1), "a.py") == []


def test_a_file_outside_the_home_gets_no_marker(home: Home, tmp_path: Path):
    elsewhere = tmp_path / "rollout-2026-11-20T10-00-00-01a1f865-0000-7000-8000-000000000009.jsonl"
    elsewhere.write_bytes(chat("elsewhere", 9))

    done = home.run("mark", str(elsewhere), "--label", "x", "--json")

    assert json.loads(done.stdout)["error"]["code"] == "conflict"


def test_markers_over_the_wire_are_those_of_the_command_line(home: Home):
    with Peer(home.root) as peer:
        peer.start()
        params = {"sessionId": thread(1), "label": "here", "turnId": "1"}
        made = peer.call("checkpoints/mark", params)
        name = made["checkpointId"]
        listed = peer.call("checkpoints/marks", {"sessionId": thread(1)})
        again = {"sessionId": thread(1), "checkpointId": name, "label": "there"}
        renamed = peer.call("checkpoints/relabel", again)
        pins = peer.call("checkpoints/pin", {"sessionId": thread(1), "path": "a.py"})
        told = peer.call("checkpoints/pins", {"sessionId": thread(1)})
        left = peer.call("checkpoints/unpin", {"sessionId": thread(1), "path": "a.py"})
        shown = marks(home)
        params = {"sessionId": thread(1), "checkpointId": name}
        gone = peer.call("checkpoints/unmark", params)

    assert listed == {"items": [made], "nextCursor": None}
    assert renamed == made | {"label": "there"}
    assert shown == [renamed]
    assert pins == told
    assert left == {"items": [], "nextCursor": None}
    assert gone["removed"] is True


def test_what_changed_between_two_turns(home: Home):
    found = home.json("diff", thread(1), "--from", "1", "--to", "2")

    assert list(found) == [
        "sessionId",
        "fromTurnId",
        "toSessionId",
        "toTurnId",
        "task",
        "plan",
        "planReordered",
        "decisions",
        "facts",
        "artifacts",
    ]
    assert found["task"]["change"] == "changed"
    assert found["task"]["before"]["text"] == "Fix the login"
    assert found["task"]["after"]["text"] == "And the logout"
    (artifact,) = found["artifacts"]
    assert (artifact["change"], artifact["after"]["uri"]) == ("added", "b.py")
    same = home.json("diff", thread(1), "--from", "t2", "--to", "2")
    assert (same["task"], same["artifacts"]) == (None, [])
    with Peer(home.root) as peer:
        peer.start()
        params = {"sessionId": thread(1), "fromTurnId": "1", "toTurnId": "2"}
        assert peer.call("checkpoints/diff", params) == found
    assert home.run("diff", thread(1), "--from", "1", "--to", "9").returncode == 1
    text = home.run("diff", thread(1), "--from", "1", "--to", "2").stdout.decode()
    assert text.splitlines() == ["~ task: Fix the login → And the logout", "+ artifact: b.py"]


def test_a_file_that_both_ends_know_is_not_named_however_often_it_was_edited(home: Home):
    edited = turn(user("Once more"), patch(update="b.py"), patch(add="c.py"), assistant("Done."))
    head = session(thread=thread(1), cwd=str(home.user / "shop"))
    home.put(rollout(head, *two_turns(), edited))
    (home.user / "shop/b.py").write_text("as it is now\n")

    found = home.json("diff", thread(1), "--from", "2", "--to", "3")

    assert [each["after"]["uri"] for each in found["artifacts"]] == ["c.py"]


def test_what_two_sessions_differ_in(home: Home):
    name = marked(home, turn="1")["checkpointId"]
    branch = home.json("restore", thread(1), name, "--mode", "hard")["sessionId"]

    found = home.json("diff", branch, "--with", thread(1), "--to", "2")

    assert (found["sessionId"], found["fromTurnId"]) == (branch, None)
    assert (found["toSessionId"], found["toTurnId"]) == (thread(1), "t2")
    assert [each["after"]["uri"] for each in found["artifacts"]] == ["b.py"]
    same = home.json("diff", branch, "--with", thread(1), "--to", "1")
    assert (same["task"], same["artifacts"]) == (None, [])
    with Peer(home.root) as peer:
        peer.start()
        params = {"sessionId": branch, "fromTurnId": None, "toSessionId": thread(1)}
        assert peer.call("checkpoints/diff", params | {"toTurnId": "2"}) == found
    assert home.run("diff", thread(1), "--to", "2").returncode == 2


def test_hints_about_artifacts_are_kept_and_change_no_restore(home: Home):
    name = marked(home)["checkpointId"]
    wish = ("restore", thread(1), name, "--mode", "hard", "--dry-run")
    before = home.json(*wish)
    items = [
        {"uri": "a.py", "verdict": "noise", "suppressOnHardRestore": True},
        {"uri": "b.py", "verdict": "helpful"},
    ]

    home.json("hints", thread(1), json.dumps(items))
    home.json("hints", thread(1), json.dumps([{"uri": "a.py", "verdict": "authoritative"}]))

    plain = {"suppressOnHardRestore": False, "pinForRestore": False}
    assert home.json("hints", thread(1)) == [
        plain | {"uri": "b.py", "verdict": "helpful"},
        plain | {"uri": "a.py", "verdict": "authoritative"},
    ]
    assert home.json(*wish) == before
    with Peer(home.root) as peer:
        peer.start()
        told = peer.call("checkpoints/hints", {"sessionId": thread(1), "items": items})
        assert [each["verdict"] for each in told["items"]] == ["noise", "helpful"]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"uri": "a", "verdict": "great"}],
        [{"uri": "", "verdict": "noise"}],
        [{"uri": "a\nb", "verdict": "noise"}],
        [{"uri": "a", "verdict": "noise"}] * 2,
        [{"uri": f"a{n}", "verdict": "noise"} for n in range(65)],
        [{"uri": "a", "verdict": "noise", "suppressOnHardRestore": True, "pinForRestore": True}],
        [{"uri": "a", "verdict": "noise", "more": 1}],
        {},
    ],
)
def test_hints_that_say_nothing_are_refused(home: Home, items: Any):  # noqa: ANN401 - JSON
    done = home.run("hints", thread(1), json.dumps(items), "--json")

    assert json.loads(done.stdout)["error"]["code"] == "invalid_payload"
    assert not home.checkpoint().with_name("hints.jsonl").exists()
