"""Markers and pins through the real doors: their targets, their lifetime, refusals."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.sessions.session_watcher import Changed, SessionWatcher
from homes import Home, chat, go_on, just_written, refusal, thread
from peer import Peer

Json = dict[str, Any]

AT = "2026-11-21T09:00:00.000Z"
SECRET = "ghp" + "_" + "a1B2" * 9
FORMS: tuple[r.Form, ...] = ("paginated", "legacy", "bare")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path)


def a_home(root: Path, form: r.Form = "paginated") -> Home:
    """Hold a session of two turns that have ended."""
    home = Home(root)
    (home.user / "shop").mkdir()
    (home.user / "shop/a.py").write_text("one\ntwo\nthree\n")
    head = r.session(form, thread=thread(1), cwd=str(home.user / "shop"))
    home.put(r.rollout(head, *two_turns()))
    return home


def two_turns() -> tuple[Any, ...]:
    return (
        r.turn(
            r.user("Fix the login"),
            r.shell("cat a.py", "one", reads=["a.py"]),
            r.assistant("Read."),
        ),
        r.turn(r.user("And the logout"), r.patch(add="b.py"), r.assistant("Done.")),
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
def test_marker_is_set_on_the_last_ended_turn(tmp_path: Path, form: r.Form):
    home = a_home(tmp_path, form)

    made = marked(home)

    assert marks(home) == [made]
    drawn = {key: made[key] for key in ("checkpointId", "turnId", "createdAt")}
    assert drawn["createdAt"].endswith("Z")
    assert list(made.items()) == [
        ("checkpointId", drawn["checkpointId"]),
        ("sessionId", thread(1)),
        ("turnId", drawn["turnId"]),
        ("label", "here"),
        ("createdAt", drawn["createdAt"]),
        ("origin", "user"),
        ("turnNumber", 2),
        ("detached", False),
        ("remark", None),
    ]


def test_interrupted_turn_is_marked_with_a_remark(home: Home):
    home.put(r.rollout(r.session(), *two_turns(), r.started(), r.user("go on")))

    made = marked(home)

    assert (made["turnNumber"], made["remark"]) == (3, "cut_off")
    text = home.here("mark", thread(1), "--label", "again").stdout.decode()
    assert text.endswith("! This turn was cut off: no process has the session open.\n")
    assert marks(home)[0]["remark"] is None
    with home.loaded():
        assert marked(home)["turnNumber"] == 2
        refused = home.refused("mark", thread(1), "--label", "x", "--turn", "3")
    assert refused["code"] == "turn_not_complete"


def test_open_turn_is_skipped_and_refused_by_its_name(home: Home):
    home.put(just_written(r.rollout(r.session(), *two_turns(), r.started(), r.user("go on"))))
    begun = r.rollout(r.session(thread=thread(2)), r.started(), r.user("begin"))
    home.put(just_written(begun), 2)

    assert marked(home)["turnNumber"] == 2
    with home.house() as house:
        markers = Markers(house.sessions, lambda: AT, lambda: "m1")
        codes = {
            named: refusal(lambda named=named: markers.mark(*named)).code
            for named in (
                *((thread(1), "x", name) for name in ("3", "4", "0", "t9", "")),
                *((thread(1), " \t ", None), (thread(2), "x", None)),
            )
        }

    assert [*codes.values()] == [
        *("turn_not_complete", *["unknown_turn"] * 4),
        *("invalid_payload", "turn_not_complete"),
    ]
    assert not (home.state / "sessions" / thread(2)).exists()


def test_markers_are_renamed_and_removed_by_an_id_prefix(home: Home):
    home.put(chat("another", 2), 2)
    first, second = marked(home, "one", "1"), marked(home, "two", "2")
    name, other = first["checkpointId"], second["checkpointId"]
    for unknown in (("unmark", thread(2), name), ("relabel", thread(2), name, "x")):
        assert home.refused(*unknown)["code"] == "unknown_checkpoint"
    assert home.json("marks", thread(2)) == []

    home.json("relabel", thread(1), name, "uno")
    assert [each["label"] for each in marks(home)] == ["uno", "two"]
    gone = home.json("unmark", thread(1), name)

    assert gone == {"sessionId": thread(1), "checkpointId": name, "removed": True}
    assert [each["checkpointId"] for each in marks(home)] == [other]
    assert home.refused("unmark", thread(1), name)["facts"]["candidates"] == [other]
    assert home.json("relabel", thread(1), other[:30], "due")["label"] == "due"


def test_marker_is_named_by_a_label_that_no_other_marker_has(home: Home):
    first, second = marked(home, "Before the rewrite", "1"), marked(home, "two", "2")

    branch = home.json("restore", thread(1), "before the REWRITE", "--mode", "soft")
    assert branch["checkpointId"] == first["checkpointId"]
    assert home.json("relabel", thread(1), "before the rewrite", "two")["label"] == "two"
    refused = home.refused("unmark", thread(1), "two")
    assert refused["code"] == "unknown_checkpoint"
    both = [first["checkpointId"], second["checkpointId"]]
    assert refused["facts"]["candidates"] == both
    assert refused["message"] == f"2 markers of session {thread(1)} have the label 'two'."
    words = home.run("unmark", thread(1), "two").stderr.decode()
    assert f"Give the id of one: {', '.join(both)} [unknown_checkpoint]" in words
    assert home.json("unmark", thread(1), second["checkpointId"])["removed"]
    assert home.json("unmark", thread(1), "two")["checkpointId"] == first["checkpointId"]


def test_marker_holds_hashes_and_no_text(home: Home):
    read = r.shell("cat a.py", "output words", reads=["a.py"])
    said = r.turn(r.user("the user's words"), read, r.assistant("assistant words"))
    home.put(r.rollout(r.session(cwd=str(home.user / "shop")), said))

    marked(home, f"before {SECRET}")

    (line,) = lines(home)
    assert list(line["hashes"]) == ["a.py"]
    assert not any(word in json.dumps(line) for word in ("words", SECRET))
    assert line["label"].startswith("before ")


def test_markers_survive_a_compaction_more_turns_and_archiving(home: Home):
    made = marked(home, turn="1")
    go_on(home.path(), thread(1), r.compacted("m", []), r.turn(r.user("later")))
    assert marks(home) == [made]

    home.json("archive", thread(1))

    assert marks(home) == [made]


def test_marker_on_a_rolled_back_turn_stays_and_is_detached(tmp_path: Path):
    home = a_home(tmp_path, "legacy")
    first, second = marked(home, turn="1"), marked(home, turn="2")
    go_on(home.path(), thread(1), r.rollback(1), r.turn(r.user("otherwise")), form="legacy")

    assert marks(home) == [first, second | {"turnNumber": None, "detached": True}]
    again = home.refused("mark", thread(1), "--label", "x", "--turn", second["turnId"])
    assert again["code"] == "unknown_turn"


def test_files_and_lines_are_pinned_and_unpinned(home: Home):
    others = dict.fromkeys(("message", "note", "text"))
    whole: Json = {"uri": "a.py", "start": None, "end": None} | others
    lines = whole | {"start": 2, "end": 3}
    assert home.json("pin", thread(1), "a.py") == [whole]
    absolute = str(home.user / "shop/a.py") + "#L2-L3"
    assert home.json("pin", thread(1), absolute) == [whole, lines] == home.json("pin", thread(1))

    (home.user / "shop/a.py").unlink()
    assert home.json("unpin", thread(1), "a.py") == [lines]
    assert home.refused("unpin", thread(1), "a.py")["code"] == "invalid_payload"
    met = [pin["uri"] for pin in home.json("pin", thread(1), "b.py")]  # there is no such file
    assert met == ["a.py", "b.py"]


NO_FILES = ["nope.py", "sub", "../notes", "/etc/hostname", "a.py/b"]


@pytest.mark.parametrize("path", ["a.py#L0", "a.py#L3-L2", ".", "", *NO_FILES])
def test_path_that_is_not_a_file_in_the_folder_is_not_pinned(home: Home, path: str):
    (home.user / "notes").write_text("outside")
    (home.user / "shop/sub").mkdir()

    error = home.refused("pin", thread(1), path)

    assert error["code"] == "invalid_payload"
    if path in NO_FILES:
        assert path.rpartition("/")[2] in error["message"]
        assert error["message"].endswith(" is not a file in the folder of the session.")
    assert home.json("pin", thread(1)) == []


def test_name_below_a_missing_folder_can_be_pinned(home: Home):
    shutil.rmtree(home.user / "shop")

    assert [pin["uri"] for pin in home.json("pin", thread(1), "gone/a.py")] == ["gone/a.py"]
    home.refused("pin", thread(1), "/etc/hostname")


def test_markers_over_the_wire_equal_those_of_the_command_line(home: Home):
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


def test_watcher_reports_markers_of_another_process_once(home: Home):
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        marked(home)
        path = str(home.checkpoint().with_name("markers.jsonl"))

        for expected in ([Changed((thread(1),), "markers")], []):
            follower.mark(path)
            assert follower.drain() == expected
        home.json("relabel", thread(1), marks(home)[0]["checkpointId"], "there")
        follower.update_reported(thread(1))
        follower.mark(path)
        assert follower.drain() == []


def test_changes_between_two_turns_are_listed(home: Home):
    found = home.json("diff", thread(1), "--from", "1", "--to", "2")

    assert list(found) == [
        *("sessionId", "fromTurnId", "toTurnId", "task", "plan"),
        *("planReordered", "decisions", "facts", "artifacts"),
    ]
    task, (artifact,) = found["task"], found["artifacts"]
    assert (task["change"], task["before"]["text"], task["after"]["text"]) == (
        *("changed", "Fix the login", "And the logout"),
    )
    assert (artifact["change"], artifact["after"]["uri"]) == ("added", "b.py")
    same = home.json("diff", thread(1), "--from", "t2", "--to", "2")
    assert (same["task"], same["artifacts"]) == (None, [])
    with Peer(home.root) as peer:
        peer.start()
        params = {"sessionId": thread(1), "fromTurnId": "1", "toTurnId": "2"}
        assert peer.call("checkpoints/diff", params) == found
    home.refused("diff", thread(1), "--from", "1", "--to", "9")
    text = home.run("diff", thread(1), "--from", "1", "--to", "2").stdout.decode()
    assert text.splitlines() == ["~ task: Fix the login → And the logout", "+ file: b.py"]
    edited = r.turn(
        r.user("Once more"), r.patch(update="b.py"), r.patch(add="c.py"), r.assistant("Done.")
    )
    head = r.session(thread=thread(1), cwd=str(home.user / "shop"))
    home.put(r.rollout(head, *two_turns(), edited))
    later = home.json("diff", thread(1), "--from", "2", "--to", "3")
    assert [each["after"]["uri"] for each in later["artifacts"]] == ["c.py"]  # b.py is at both ends
