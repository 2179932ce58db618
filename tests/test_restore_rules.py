"""What holds for every restore: what never goes over, what never happens, what always stands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints import protocol
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.records import SEMANTICS
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.restore.planning import RestoreOptions
from codex_checkpoints.service.restore.restoring import Restored, Restoring
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage import records
from homes import Home, snapshot, thread
from rollouts import (
    Step,
    Writer,
    assistant,
    patch,
    reasoning,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)

MODES: tuple[RestoreMode, ...] = ("soft", "hard")
NEVER = {
    "assistant text": "assistant-words",
    "reasoning": "reasoning-words",
    "an earlier message": "first-words",
    "a casual link": "https://casual.example/page",
    "the output of a tool": "output-words",
    "the content of a file": "body-words",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    (home.user / "a.py").write_text(f"{NEVER['the content of a file']}\n")
    home.put(
        rollout(
            session(cwd=str(home.user)),
            turn(
                user(f"{NEVER['an earlier message']} see {NEVER['a casual link']}"),
                reasoning(NEVER["reasoning"]),
                shell("cat a.py", NEVER["the output of a tool"], reads=["a.py"]),
                assistant(NEVER["assistant text"]),
                tokens(90_000),
            ),
            turn(user("Repair it"), patch(add="b.py")),
        )
    )
    return home


def restored(sessions: Sessions, mode: RestoreMode, session_id: str = thread(1)) -> Restored:
    parts = sessions, records.now, records.new_id
    marker = Markers(*parts).mark(session_id, "here").marker
    return Restoring(*parts).restore(session_id, marker.checkpoint_id, RestoreOptions(mode))


def remember(sessions: Sessions, key: str, session_id: str = thread(1)) -> None:
    evidence = {"source": "user", "ref": "task"}
    fact = {"kind": "fact", "key": key, "value": "UTF-8 only", "evidence": evidence}
    Notes(sessions, records.now, records.new_id).apply(session_id, json.dumps(fact).encode())


def go_on(sessions: Sessions, session_id: str, *steps: Step) -> None:
    """Let the user of a session work on."""
    path = Path(sessions.find(session_id).path)
    writer = Writer()
    writer.form, writer.thread = "paginated", session_id
    writer.next_ordinal = json.loads(path.read_bytes().splitlines()[-1])["ordinal"] + 1
    for step in steps:
        step(writer)
    with path.open("ab") as file:
        file.write(writer.data)
    sessions.refresh()


def written(home: Home) -> Iterator[tuple[str, str]]:
    """Yield the text of everything of ours that lasts."""
    for path in home.state.rglob("*"):
        if path.is_file() and path.suffix in {".jsonl", ".json"}:
            yield path.name, path.read_text()


# --- what never goes over ------------------------------------------------------------------------


@pytest.mark.parametrize("what", list(NEVER))
@pytest.mark.parametrize("mode", MODES)
def test_what_was_said_and_read_is_in_no_record_and_in_no_hard_branch(
    home: Home, mode: RestoreMode, what: str
):
    with home.house() as house:
        done = restored(house.sessions, mode)
        branch = Path(house.sessions.find(done.record.session_id).path).read_text()

    for name, text in written(home):
        assert NEVER[what] not in text, name
    if mode == "hard":
        assert NEVER[what] not in branch
        assert NEVER[what] not in (done.pack or "")


@pytest.mark.parametrize("mode", MODES)
def test_no_chain_of_a_model_goes_over(home: Home, mode: RestoreMode):
    with home.house() as house:
        done = restored(house.sessions, mode)
        branch = Path(house.sessions.find(done.record.session_id).path).read_text()

    for text in (branch, *(text for _, text in written(home))):
        assert "response_id" not in text
        assert "responseId" not in text


# --- what never happens --------------------------------------------------------------------------


def test_nothing_is_restored_that_nobody_asked_for(home: Home):
    with home.house() as house:
        Markers(house.sessions, records.now, records.new_id).mark(thread(1), "here")
    before = snapshot(home.root / "sessions")

    for command in (("watch", "--once"), ("sessions",), ("doctor",), ("lineage", thread(1))):
        assert home.run(*command).returncode == 0

    assert snapshot(home.root / "sessions") == before
    assert not list(home.state.rglob("restores.jsonl"))
    assert not (home.state / "audit.jsonl").exists()


@pytest.mark.parametrize("word", ["merge", "rewind", "replay", "rollback"])
def test_nothing_merges_branches_or_goes_back_within_a_session(word: str):
    assert not [each.name for each in protocol.METHODS if word in each.name.lower()]


def test_a_marker_and_a_note_go_each_without_the_other(home: Home):
    with home.house() as house:
        parts = house.sessions, records.now, records.new_id
        markers, notes = Markers(*parts), Notes(*parts)
        first = markers.mark(thread(1), "first").marker.checkpoint_id
        markers.mark(thread(1), "second")
        remember(house.sessions, "encoding")

        markers.unmark(thread(1), first)
        assert [note.id for note in notes.notes(thread(1))] == ["encoding"]
        notes.revoke(thread(1), "encoding")
        assert [each.marker.label for each in markers.marks(thread(1))] == ["second"]


def test_a_source_and_its_branch_go_on_without_each_other(home: Home):
    with home.house() as house:
        sessions = house.sessions
        names = [restored(sessions, mode).record.session_id for mode in MODES]
        source = home.path().read_bytes()
        for name in names:
            go_on(sessions, name, turn(user("On the branch"), patch(add=f"{name}.py"), name="x1"))
        assert home.path().read_bytes() == source
        kept = [Path(sessions.find(name).path).read_bytes() for name in names]
        go_on(sessions, thread(1), turn(user("At the source"), name="x2"))

        assert [Path(sessions.find(name).path).read_bytes() for name in names] == kept
        tasks = [sessions.show(name).checkpoint.task for name in (thread(1), *names)]
        told = [task and task.text for task in tasks]
        assert told == ["At the source", "On the branch", "On the branch"]


# --- what always stands --------------------------------------------------------------------------


def test_a_small_invariant_is_there_after_many_turns_and_three_hard_restores(home: Home):
    with home.house() as house:
        sessions, at = house.sessions, thread(1)
        remember(sessions, "encoding")
        for number in range(3):
            work = [turn(user(f"Go on {number}"), name=f"g{number}-{n}") for n in range(167)]
            go_on(sessions, at, *work)
            done = restored(sessions, "hard", at)
            at = done.record.session_id

            assert "encoding: UTF-8 only" in (done.pack or "")
            assert "encoding" in sessions.show(at).checkpoint.facts


def test_without_a_cache_a_restore_is_the_same(home: Home):
    with home.house() as house:
        markers = Markers(house.sessions, records.now, records.new_id)
        name = markers.mark(thread(1), "here").marker.checkpoint_id
        wish = (thread(1), name, RestoreOptions("hard"))
        first = Restoring(house.sessions, records.now, records.new_id).preview(*wish)
    for cache in (*home.state.glob("index.sqlite*"), home.checkpoint()):
        cache.unlink(missing_ok=True)
    with home.house() as house:
        again = Restoring(house.sessions, records.now, records.new_id).preview(*wish)

    assert again == first


@pytest.mark.parametrize("mode", MODES)
def test_what_is_stored_names_its_semantics_and_times_in_utc(home: Home, mode: RestoreMode):
    with home.house() as house:
        done = restored(house.sessions, mode)

    assert done.record.semantics == SEMANTICS == 1
    times: list[str] = []
    for _, text in written(home):
        times += re.findall(r'"(?:at|restoredAt|markedAt|createdAt)":"([^"]*)"', text)
    assert len(times) > 8
    for time in times:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_restore_leaves_its_source_and_everything_else_as_it_was(
    home: Home, mode: RestoreMode
):
    before = snapshot(home.root / "sessions")

    done: Any = home.run("restore", thread(1), "m9", "--mode", mode, "--json")

    assert json.loads(done.stdout)["error"]["code"] == "unknown_checkpoint"
    assert snapshot(home.root / "sessions") == before
    assert [path.name for path in home.state.rglob("*.jsonl")] == ["audit.jsonl"]
