"""`timeline` as users meet it: its JSON, the lines at a terminal, and going on."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.service.history.lineages import lineage
from codex_checkpoints.service.history.timelines import SessionTimeline, timeline
from codex_checkpoints.service.history.windows import windows_in
from derived_state import reads
from homes import Home, more, thread
from peer import Peer

SUMMARY = r.compacted("m", [user_message(["Fix the login"])])
WORK = (
    r.turn(r.user("Fix <the> login"), r.patch(update="a.py"), r.tokens(100_000)),
    r.turn(r.user("Again"), r.shell("pytest", "1 failed", exit_code=1, status="failed"), SUMMARY),
    r.turn(r.user("And now"), r.tokens(30_000)),
)
DATA = r.rollout(r.session(), *WORK)


def test_timeline_has_each_key_of_the_protocol(home: Home):
    home.put(DATA)

    found = home.json("timeline", thread(1))

    assert list(found) == ["turns", "events", "merged"]
    assert list(found["turns"][0]) == [
        *("turn", "turnId", "seq", "startedAt", "endedAt", "outcome", "contextTokens"),
        *("mostTokens", "window", "calls", "filesChanged", "checksFailed", "reason"),
    ]
    assert [list(event) for event in found["events"]] == [["kind", "turn", "seq", "at", "id"]]
    assert [row["contextTokens"] for row in found["turns"]] == [100_000, None, 30_000]
    assert [(each["kind"], each["turn"]) for each in found["events"]] == [("compaction", 2)]
    assert found["merged"] == 1


def test_peak_counts_the_tokens_before_a_compaction_in_the_same_turn(home: Home):
    steps = r.turn(r.user("Go on"), r.shell("ls"), r.tokens(200_000), SUMMARY, r.tokens(9_000))
    home.put(r.rollout(r.session(), *WORK[:1], steps))

    rows = home.json("timeline", thread(1))["turns"]
    lines = home.here("timeline", thread(1)).stdout.decode().split("\n")

    assert [(row["contextTokens"], row["mostTokens"]) for row in rows] == [
        (100_000, 100_000),
        (9_000, 200_000),
    ]
    assert lines[:2] == [
        "▃▆",
        "bars: the most context in use in a turn, up to 200,000 of 258,400 tokens",
    ]


def test_lines_name_requests_labels_and_titles_instead_of_ids(home: Home):
    home.put(r.rollout(r.session(), *WORK, r.turn(r.user("Stop it"), r.aborted())))
    marker = home.json("mark", thread(1), "--turn", "1", "--label", "before it")["checkpointId"]
    branch = home.json("restore", thread(1), marker, "--mode", "soft")["sessionId"]

    text = home.here("timeline", thread(1)).stdout.decode()

    cut = "failed (no answer, and Codex recorded no reason): "
    ends = [f"{cut}Fix <the> login", "marker  before it", "branch  before it: Fix <the> login"]
    ends += [f"{cut}Again", "compaction", f"{cut}And now", "aborted: Stop it"]
    shown = zip(text.splitlines()[4:], ends, strict=True)
    assert [line for line, end in shown if not line.endswith(f"  {end}")] == []
    assert marker not in text
    assert branch not in text


def test_markers_and_branches_appear_at_their_turn(home: Home):
    home.put(DATA)
    marker = home.json("mark", thread(1), "--turn", "1", "--label", "before")
    branch = home.json("restore", thread(1), marker["checkpointId"], "--mode", "soft")

    events = home.json("timeline", thread(1))["events"]

    assert [(each["kind"], each["turn"], each["id"]) for each in events if each["turn"] == 1] == [
        ("marker", 1, marker["checkpointId"]),
        ("branch", 1, branch["sessionId"]),
    ]


def test_beyond_400_turns_rows_are_merged_and_this_is_reported(home: Home):
    home.put(r.rollout(r.session(), *(r.turn(r.user(f"{n}")) for n in range(900))))

    found = home.json("timeline", thread(1))

    assert found["merged"] == 3
    assert [row["turn"] for row in found["turns"]] == list(range(1, 901, 3))
    lines = home.here("timeline", thread(1)).stdout.decode().split("\n")
    assert "Each row is 3 turns." in lines
    assert any(line.strip().startswith("898-900") for line in lines)


def test_lines_have_a_bar_for_each_turn_and_the_events_between(home: Home):
    home.put(DATA)

    lines = home.here("timeline", thread(1)).stdout.decode().split("\n")

    assert lines[0] == "▃·▁"
    assert lines[1] == "bars: the most context in use in a turn, up to 100,000 of 258,400 tokens"
    where = [
        next(at for at, line in enumerate(lines) if word in line) for word in ("  2  ", "comp")
    ]
    assert where[1] == where[0] + 1


def test_full_bar_is_the_window(home: Home):
    home.put(r.rollout(r.session(), r.turn(r.user("Fix it"), r.tokens(25_840))))

    assert home.here("timeline", thread(1)).stdout.decode().startswith("▁")


def grow(path: Path) -> int:
    """Append a turn; return how many bytes it takes."""
    steps = r.turn(r.user("More"), r.shell("make", "Error 1", exit_code=2), name="t9")
    data = more(steps, thread=thread(1), ordinal=path.read_bytes().count(b"\n"))
    with path.open("ab") as file:
        file.write(data)
    return len(data)


def told(home: Home) -> SessionTimeline:
    with home.house() as house:
        return timeline(house.sessions, thread(1))


def anew(home: Home) -> SessionTimeline:
    """Return the timeline where nothing was kept."""
    (home.state / "index.sqlite").unlink()
    return told(home)


def test_growing_session_is_read_incrementally(home: Home, monkeypatch: pytest.MonkeyPatch):
    path = home.put(DATA)
    with home.house() as house:
        before = timeline(house.sessions, thread(1))
        house.sessions.refresh()
        counted = reads(monkeypatch)
        added = grow(path)

        after = timeline(house.sessions, thread(1))

        assert sum(counted) <= added + 10_000
    assert after.turns[: len(before.turns)] == before.turns
    assert [row.turn_id for row in after.turns[len(before.turns) :]] == ["t9"]
    assert told(home) == after


@pytest.fixture
def large(home: Home) -> Path:
    """A session of more than a megabyte, of which the timeline was asked for once."""
    steps = [r.shell(f"make step-{number}", "o" * 3000) for number in range(450)]
    path = home.put(r.rollout(r.session(), *WORK, r.turn(r.user("Build it"), *steps)))
    told(home)
    return path


def test_another_process_reads_only_new_bytes_of_a_large_session(
    home: Home, large: Path, monkeypatch: pytest.MonkeyPatch
):
    added = grow(large)
    with home.house() as house:
        house.sessions.refresh()
        counted = reads(monkeypatch)

        found = timeline(house.sessions, thread(1))

        assert sum(counted) <= added + 10_000
    assert found == anew(home)


def test_windows_and_lineage_come_from_the_cached_timeline(
    home: Home, large: Path, monkeypatch: pytest.MonkeyPatch
):
    ids = [thread(1), home.json("compact", thread(1), "--force")["sessionId"], thread(3)]
    base = r.based_on(thread(1), large.read_bytes().count(b"\n"), 0)
    own = r.turn(r.user("Go on"), r.compacted("n", [user_message(["Go on"])]), name="own")
    home.put(r.rollout(r.session(thread=thread(3), history_base=base), own), 3)
    with home.house() as house:
        before = [windows_in(house.sessions, each) for each in ids]
        tree = lineage(house.sessions, thread(1))
        for each in ids:
            timeline(house.sessions, each)
        counted = reads(monkeypatch)

        assert [windows_in(house.sessions, each) for each in ids] == before
        assert lineage(house.sessions, thread(1)) == tree
        assert sum(counted) <= 20_000
    assert [len(each) for each in before] == [2, 2, 3]


def reverted(_home: Home, path: Path) -> None:
    """Cut the last turn off, as Codex does when a turn is taken back."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))


def replaced(_home: Home, path: Path) -> None:
    data = path.read_bytes().replace(b"make step-", b"make part-")
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").replace(path)


def written_over(_home: Home, path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Again", b"Other").replace(b"pytest", b"cat a "))


def damaged(home: Home, _path: Path) -> None:
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        query = "UPDATE states SET state = replace(CAST(state AS TEXT), ?, ?) WHERE fold = ?"
        assert index.execute(query, ("tallies", "allies", "timeline")).rowcount == 1
        index.commit()


def of_another_build(home: Home, _path: Path) -> None:
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        index.execute("PRAGMA user_version = 7")
        index.commit()


@pytest.mark.parametrize("change", [reverted, replaced, written_over, damaged, of_another_build])
def test_cached_timeline_counts_only_for_its_file(
    home: Home, large: Path, change: Callable[[Home, Path], None]
):
    change(home, large)

    found = told(home)

    assert found == anew(home)
    assert found.turns


def test_timeline_of_a_fork_is_rebuilt_after_its_base_changed(home: Home):
    failed: dict[str, Any] = {"exit_code": 1, "status": "failed"}
    base = r.rollout(r.session(), r.turn(r.user("Build it"), r.shell("make all", "No.", **failed)))
    below = home.put(base)
    head = r.session(thread=thread(2), history_base=r.based_on(thread(1), base.count(b"\n"), 0))
    own = [r.shell(f"make part-{number}", "o" * 3000) for number in range(450)]
    home.put(r.rollout(head, r.turn(r.user("Go on"), *own, name="own")), 2)
    with home.house() as house:
        before = timeline(house.sessions, thread(2))
    below.with_suffix(".new").write_bytes(base.replace(b"make all", b"cat a.py"))
    below.with_suffix(".new").replace(below)

    with home.house() as house:
        after = timeline(house.sessions, thread(2))

    (home.state / "index.sqlite").unlink()
    with home.house() as house:
        assert timeline(house.sessions, thread(2)) == after
    assert [row.checks_failed for row in before.turns] == [1, 0]
    assert [row.checks_failed for row in after.turns] == [0, 0]


PARENT_TURNS = [
    r.turn(r.user(f"Step {n}"), r.assistant(f"Done {n}"), name=f"p{n}") for n in range(4)
]


def copying_fork(home: Home, turns: int) -> None:
    """Put a session, and a fork by an older Codex with its first turns, under the fork's times."""
    data = r.rollout(r.session("legacy", thread=thread(1)), *PARENT_TURNS)
    home.put(data, 1)
    lines = data.splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines, 1) if f'"p{turns - 1}","last'.encode() in line)
    copied = [line.replace(b"T10:00:", b"T15:30:", 1) for line in lines[:end]]
    own = r.rollout(
        r.session("legacy", thread=thread(2), forked_from_id=thread(1)),
        r.turn(r.user("The other way"), name="f1"),
    ).splitlines(keepends=True)
    home.put(b"".join([own[0], *copied, *own[1:]]), 2)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_fork_with_copied_lines_appears_at_the_turn_of_its_cut(home: Home, turns: int):
    copying_fork(home, turns)

    (node,) = (each for each in home.json("lineage", thread(1))["nodes"] if each["link"])
    assert (node["link"]["kind"], node["link"]["afterTurn"]) == ("fork", turns)
    (branch,) = home.json("timeline", thread(1))["events"]
    assert (branch["kind"], branch["turn"], branch["id"]) == ("branch", turns, thread(2))


def test_branch_without_a_recorded_cut_appears_at_the_turn_of_its_time(home: Home):
    data = r.rollout(r.session("legacy", thread=thread(1)), *PARENT_TURNS)
    home.put(data, 1)
    _, second, third, *_ = home.json("timeline", thread(1))["turns"]
    cases = [(second["startedAt"], 2), (third["startedAt"], 3), ("2026-11-20T09:00:00Z", None)]
    for at, turn in cases:
        head = r.session("legacy", thread=thread(2), forked_from_id=thread(1), timestamp=at)
        home.put(r.rollout(head, r.turn(r.user("No"))), 2)
        (branch,) = home.json("timeline", thread(1))["events"]
        assert (branch["turn"], branch["seq"], branch["id"]) == (turn, None, thread(2))


def test_copied_turns_have_the_times_of_their_own_session(home: Home):
    copying_fork(home, 2)

    def times(session: str) -> list[tuple[str, str]]:
        turns = home.json("timeline", session)["turns"]
        return [(turn["startedAt"], turn["endedAt"]) for turn in turns]

    theirs, own = times(thread(1)), times(thread(2))
    assert own[:2] == theirs[:2]
    assert len(own) == 3
    with Peer(home.root) as peer:
        peer.start()
        turns = peer.call("checkpoints/session", {"sessionId": thread(2)})["turns"]
    assert [turn["startedAt"] for turn in turns[:2]] == [each[0] for each in theirs[:2]]


def test_fork_of_a_fork_has_the_times_of_the_first_session(home: Home):
    copying_fork(home, 2)
    middle = home.path(2).read_bytes()
    head = r.rollout(r.session("legacy", thread=thread(3), forked_from_id=thread(2)))
    cut = middle.rindex(b"\n", 0, middle.index(b'"f1"')) + 1
    lines = middle[:cut].splitlines(keepends=True)
    copied = [line.replace(b"T15:30:", b"T18:45:", 1) for line in lines]
    own = r.rollout(r.session("legacy", thread=thread(3)), r.turn(r.user("A third"), name="g1"))
    home.put(b"".join([head, *copied, *own.splitlines(keepends=True)[1:]]), 3)

    theirs = home.json("timeline", thread(1))["turns"]
    turns = home.json("timeline", thread(3))["turns"]
    assert [each["startedAt"] for each in turns[:2]] == [each["startedAt"] for each in theirs[:2]]
