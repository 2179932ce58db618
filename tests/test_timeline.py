"""`timeline` as users meet it: its JSON, the lines at a terminal, the picture, and going on."""

import xml.etree.ElementTree as ET
from pathlib import Path

import rollouts as r
from codex_checkpoints.core.history.items import user_message
from codex_checkpoints.service.timelines import timeline
from homes import Home, more, thread

SUMMARY = r.compacted("m", [user_message(["Fix the login"])])
WORK = (
    r.turn(r.user("Fix <the> login"), r.patch(update="a.py"), r.tokens(100_000)),
    r.turn(r.user("Again"), r.shell("pytest", "1 failed", exit_code=1, status="failed"), SUMMARY),
    r.turn(r.user("And now"), r.tokens(30_000)),
)
DATA = r.rollout(r.session(), *WORK)


def test_a_timeline_has_each_key_of_the_protocol(home: Home):
    home.put(DATA)

    found = home.json("timeline", thread(1))

    assert list(found) == ["turns", "events", "merged"]
    assert list(found["turns"][0]) == [
        *("turn", "turnId", "seq", "startedAt", "endedAt", "outcome", "contextTokens"),
        *("window", "calls", "filesChanged", "checksFailed"),
    ]
    assert [list(event) for event in found["events"]] == [["kind", "turn", "seq", "at", "id"]]
    assert [row["contextTokens"] for row in found["turns"]] == [100_000, None, 30_000]
    assert [(each["kind"], each["turn"]) for each in found["events"]] == [("compaction", 2)]
    assert found["merged"] == 1


def test_markers_and_branches_stand_at_their_turn(home: Home):
    home.put(DATA)
    marker = home.json("mark", thread(1), "--turn", "1", "--label", "before")
    branch = home.json("restore", thread(1), marker["checkpointId"], "--mode", "soft")

    events = home.json("timeline", thread(1))["events"]

    assert [(each["kind"], each["turn"], each["id"]) for each in events if each["turn"] == 1] == [
        ("marker", 1, marker["checkpointId"]),
        ("branch", 1, branch["sessionId"]),
    ]


def test_beyond_400_turns_rows_stand_for_several_and_it_is_said(home: Home):
    home.put(r.rollout(r.session(), *(r.turn(r.user(f"{n}")) for n in range(900))))

    found = home.json("timeline", thread(1))

    assert found["merged"] == 3
    assert [row["turn"] for row in found["turns"]] == list(range(1, 901, 3))
    lines = home.run("timeline", thread(1)).stdout.decode().split("\n")
    assert "One row stands for 3 turns." in lines
    assert any(line.strip().startswith("898-900") for line in lines)


def test_the_lines_have_a_bar_for_each_turn_and_name_what_happened_between(home: Home):
    home.put(DATA)

    lines = home.run("timeline", thread(1)).stdout.decode().split("\n")

    assert lines[0] == "▃·▁"
    assert lines[1] == "context, at most 100,000 of 258,400 tokens"
    where = [
        next(at for at, line in enumerate(lines) if word in line) for word in ("  2  ", "comp")
    ]
    assert where[1] == where[0] + 1


def test_the_picture_is_svg_in_which_no_text_becomes_markup(home: Home, tmp_path: Path):
    home.put(DATA)
    file = tmp_path / "picture.svg"

    home.run("timeline", thread(1), "--svg", str(file))
    home.run("timeline", thread(1), "--svg", str(file))  # a picture is replaced

    picture = ET.fromstring(file.read_text(encoding="utf-8"))
    titles = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["Fix <the> login"]
    assert [each.get("class") for each in picture.iter() if each.get("class") == "compaction"]
    assert not [each for each in picture.iter() if each.tag.endswith("script")]


def test_a_file_that_is_no_picture_is_never_replaced(home: Home, tmp_path: Path):
    home.put(DATA)
    file = tmp_path / "notes.txt"
    file.write_text("mine")

    found = home.refused("timeline", thread(1), "--svg", str(file), "--json")

    assert found["code"] == "conflict"
    assert file.read_text() == "mine"


def test_a_session_that_grows_is_only_read_on(home: Home):
    path = home.put(DATA)
    with home.house() as house:
        before = timeline(house.sessions, thread(1))
        kept = list(house.sessions.timelines.values())
        with path.open("ab") as file:
            steps = r.turn(r.user("More"), name="t9")
            file.write(more(steps, thread=thread(1), ordinal=DATA.count(b"\n")))
        house.sessions.refresh()

        after = timeline(house.sessions, thread(1))

        assert list(house.sessions.timelines.values()) == kept
    assert after.turns[: len(before.turns)] == before.turns
    assert [row.turn_id for row in after.turns[len(before.turns) :]] == ["t9"]
    with home.house() as house:
        assert timeline(house.sessions, thread(1)) == after
