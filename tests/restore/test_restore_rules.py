"""Rules of every restore: what is never transferred, and what is always recorded."""

import json
import re
from pathlib import Path

import pytest

from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.records import SEMANTICS
from codex_checkpoints.doors import protocol
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import Restoring
from codex_checkpoints.service.sessions.sessions import Sessions
from homes import Home, go_on, snapshot, thread
from restores import MODES, marked, restore, restored
from rollouts import (
    Step,
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

SAID, THOUGHT, EARLIER, OUTPUT, BODY = (
    f"{what}-words" for what in ("assistant", "reasoning", "first", "output", "body")
)
LINK = "https://casual.example/page"
NEVER = {SAID, THOUGHT, EARLIER, OUTPUT, BODY, LINK}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    (home.user / "a.py").write_text(f"{BODY}\n")
    home.put(
        rollout(
            session(cwd=str(home.user)),
            turn(
                user(f"{EARLIER} see {LINK}"),
                reasoning(THOUGHT),
                shell("cat a.py", OUTPUT, reads=["a.py"]),
                assistant(SAID),
                tokens(90_000),
            ),
            turn(user("Repair it all at once"), patch(add="b.py")),
        )
    )
    return home


def remember(sessions: Sessions, key: str, session_id: str = thread(1)) -> None:
    evidence = {"source": "user", "ref": "task"}
    fact = {"kind": "fact", "key": key, "value": "UTF-8 only", "evidence": evidence}
    Notes(sessions).apply(session_id, json.dumps(fact).encode())


def works_on(sessions: Sessions, session_id: str, *steps: Step) -> None:
    """Let the user of a session work on."""
    go_on(Path(sessions.find(session_id).path), session_id, *steps)
    sessions.refresh()


def written(home: Home) -> str:
    """Return the text of everything of ours that lasts."""
    kept = (path for path in home.state.rglob("*.json*") if path.is_file())
    return "".join(path.read_text() for path in kept)


# --- what never goes over ------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_messages_and_reads_are_in_no_record_and_in_no_hard_branch(home: Home, mode: RestoreMode):
    with home.house() as house:
        done = restore(house.sessions, marked(house.sessions, turn=None), mode, window=0)
        branch = Path(house.sessions.find(done.record.session_id).path).read_text()

    chain = {"response_id", "responseId"}  # of a model, which goes nowhere
    ours = written(home)
    assert not [words for words in NEVER | chain if words in ours]
    kept = chain if mode == "soft" else NEVER | chain
    assert not [words for words in kept if words in branch + (done.pack or "")]


# --- what never happens --------------------------------------------------------------------------


def test_nothing_is_restored_without_a_request(home: Home):
    with home.house() as house:
        Markers(house.sessions).mark(thread(1), "here")
    before = snapshot(home.root / "sessions")

    for command in (("watch", "--once"), ("sessions",), ("doctor",), ("lineage", thread(1))):
        assert home.run(*command).returncode == 0

    assert snapshot(home.root / "sessions") == before
    assert not list(home.state.rglob("restores.jsonl"))
    assert not (home.state / "audit.jsonl").exists()


@pytest.mark.parametrize("word", ["merge", "rewind", "replay", "rollback"])
def test_nothing_merges_branches_or_reverts_a_session(word: str):
    assert not [each.name for each in protocol.METHODS if word in each.name.lower()]


def test_marker_and_note_are_independent(home: Home):
    with home.house() as house:
        markers, notes = Markers(house.sessions), Notes(house.sessions)
        first = markers.mark(thread(1), "first").marker.checkpoint_id
        markers.mark(thread(1), "second")
        remember(house.sessions, "encoding")

        markers.unmark(thread(1), first)
        assert [note.id for note in notes.notes(thread(1))] == ["encoding"]
        notes.revoke(thread(1), "encoding")
        assert [each.marker.label for each in markers.marks(thread(1))] == ["second"]


def test_source_and_branch_continue_independently(home: Home):
    with home.house() as house:
        sessions = house.sessions
        names = [restored(sessions, mode, turn=None).record.session_id for mode in MODES]
        source = home.path().read_bytes()
        for name in names:
            works_on(
                sessions,
                name,
                turn(user("On the branch from here on"), patch(add=f"{name}.py"), name="x1"),
            )
        assert home.path().read_bytes() == source
        kept = [Path(sessions.find(name).path).read_bytes() for name in names]
        works_on(sessions, thread(1), turn(user("At the source from here on"), name="x2"))

        assert [Path(sessions.find(name).path).read_bytes() for name in names] == kept
        tasks = [sessions.show(name).checkpoint.task for name in (thread(1), *names)]
        told = [task and task.text for task in tasks]
        assert told == [
            "At the source from here on",
            "On the branch from here on",
            "On the branch from here on",
        ]


# --- what always stands --------------------------------------------------------------------------


def test_small_invariant_survives_many_turns_and_three_hard_restores(home: Home):
    with home.house() as house:
        sessions, at = house.sessions, thread(1)
        remember(sessions, "encoding")
        for number in range(3):
            work = [turn(user(f"Go on {number}"), name=f"g{number}-{n}") for n in range(167)]
            works_on(sessions, at, *work)
            done = restored(sessions, "hard", at, None)
            at = done.record.session_id

            assert "encoding: UTF-8 only" in (done.pack or "")
            assert "encoding" in sessions.show(at).checkpoint.facts


def test_restore_without_a_cache_is_the_same(home: Home):
    with home.house() as house:
        markers = Markers(house.sessions)
        name = markers.mark(thread(1), "here").marker.checkpoint_id
        wish = RestoreParams(thread(1), name, "hard")
        first = Restoring(house.sessions).preview(wish)
    for cache in (*home.state.glob("index.sqlite*"), home.checkpoint()):
        cache.unlink(missing_ok=True)
    with home.house() as house:
        again = Restoring(house.sessions).preview(wish)

    assert again == first


@pytest.mark.parametrize("mode", MODES)
def test_stored_records_name_their_semantics_and_times_in_utc(home: Home, mode: RestoreMode):
    with home.house() as house:
        done = restored(house.sessions, mode, turn=None)

    assert done.record.semantics == SEMANTICS == 1
    times = re.findall(r'"(?:at|restoredAt|markedAt|createdAt)":"([^"]*)"', written(home))
    assert len(times) > 8
    for time in times:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)
