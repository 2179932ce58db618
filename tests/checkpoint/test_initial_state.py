"""State that a session continued from a checkpoint knows, one step further on."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rollouts as r
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.core.restore.pack_items import Ancestor
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.lineages import lineage
from codex_checkpoints.service.history.windows import outline, windows_in
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import RestoreResult, Restoring
from codex_checkpoints.service.sessions.sessions import Sessions
from homes import Home, more, thread

MODES: tuple[RestoreMode, ...] = ("soft", "hard")
MUCH = "I looked at every file of it. " * 400


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Hold a session of two turns, in two modes, that read a part of one file and wrote another."""
    home = Home(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        (home.user / name).write_text("one\ntwo\nthree\n")
    read = r.shell("sed -n 1,2p a.py", "text", reads=["a.py"], call="read")
    head = r.session(thread=thread(1), cwd=str(home.user))
    first = r.turn(mode("plan"), r.user("Fix the login"), read, r.patch(update="b.py", call="edit"))
    home.put(
        r.rollout(head, first, r.turn(mode("default"), r.user("And the logout"), r.assistant(MUCH)))
    )
    return home


def mode(name: str) -> r.Step:
    return r.record("turn_context", {"collaboration_mode": {"mode": name}, "model": "gpt-5.5"})


@contextmanager
def sessions_of(home: Home) -> Generator[Sessions]:
    with home.house() as house:
        yield house.sessions


def restored(
    sessions: Sessions, session_id: str, mode: RestoreMode = "hard", turn: str | None = None
) -> RestoreResult:
    marker = Markers(sessions).mark(session_id, "here", turn).marker
    return Restoring(sessions).restore(RestoreParams(session_id, marker.checkpoint_id, mode))


def into_new(sessions: Sessions, session_id: str) -> str:
    done = Compacting(sessions, outside({})).compact(CompactionRequest(session_id, into="new"))
    assert done.session_id is not None
    return done.session_id


def go_on(sessions: Sessions, session_id: str, *steps: r.Step) -> None:
    """Have Codex work on in a session."""
    row = sessions.find(session_id)

    def at_home(writer: r.Writer) -> None:
        writer.folder = row.cwd

    path = Path(row.path)
    last = json.loads(path.read_bytes().splitlines()[-1])["ordinal"]
    with path.open("ab") as file:
        file.write(more(at_home, *steps, thread=session_id, ordinal=last + 1))
    sessions.refresh()


def worked(name: str = "n1") -> r.Step:
    return r.turn(r.user(f"Then {name}"), r.assistant(MUCH), name=name)


def happened(done: Restore) -> dict[str, tuple[bool, bool]]:
    return {each.uri: (each.touched, each.sent_to_model) for each in done.references.files}


# --- windows -------------------------------------------------------------------------------------


def test_turn_shows_its_own_window_even_in_a_continued_session(home: Home):
    with sessions_of(home) as sessions:
        name = restored(sessions, thread(1)).record.session_id
        go_on(sessions, name, worked(), r.compacted("short", []), worked("n2"))

        first, second, third = windows_in(sessions, name)
        before = restored(sessions, name, turn="1").record
        after = restored(sessions, name, turn="2").record
        told = [(each.turn_id, each.window) for each in outline(sessions, name).recent]
        (loss,) = [each for each in losses_of(sessions, name) if each.number == third.number]
        node = next(each for each in lineage(sessions, name).nodes if each.id == name)
        turns = sessions.open(name)[1].now().state.turns.turns

    assert (before.windows.source, after.windows.source) == (second.window_id, third.window_id)
    assert told == [("n1", second.number), ("n2", third.number)]
    assert first.opened_seq < second.opened_seq < turns[0].opened_seq < third.opened_seq
    assert third.opened_seq < turns[1].opened_seq
    assert loss.opened_at_seq == third.opened_seq
    assert [each.opened_at_seq for each in node.windows] == [
        first.opened_seq,
        second.opened_seq,
        third.opened_seq,
    ]


# --- modes and references ------------------------------------------------------------------------


@pytest.mark.parametrize("way", MODES)
def test_hard_branch_and_its_branches_keep_earlier_modes(home: Home, way: RestoreMode):
    with sessions_of(home) as sessions:
        first = restored(sessions, thread(1)).record
        go_on(sessions, first.session_id, r.turn(mode("default"), r.user("Then"), mode("plan")))
        second = restored(sessions, first.session_id, way).record
        go_on(sessions, second.session_id, worked("n2"))
        third = restored(sessions, second.session_id).record

    assert [each.mode for each in first.modes] == ["plan", "default"]
    assert [each.mode for each in second.modes] == ["plan", "default", "plan"]
    assert second.modes[:2] == first.modes
    assert third.modes == second.modes


@pytest.mark.parametrize("way", MODES)
def test_branch_of_a_compacted_session_keeps_earlier_reads_and_changes(
    home: Home, way: RestoreMode
):
    with sessions_of(home) as sessions:
        once = into_new(sessions, thread(1))
        # What its source does later is no business of it.
        go_on(sessions, thread(1), r.turn(mode("plan"), r.user("Later"), r.patch(update="c.py")))
        go_on(sessions, once, worked())
        twice = into_new(sessions, once)
        go_on(
            sessions,
            twice,
            r.turn(r.user("See c"), r.shell("cat c.py", "x", reads=["c.py"]), name="n2"),
        )
        done = restored(sessions, twice, way).record

    assert happened(done) == {
        "a.py": (False, True),
        "b.py": (True, False),
        "c.py": (False, True),
    }
    assert [each.chunk_id for each in done.references.chunks] == ["a.py#L1-L2"]
    assert [each.id for each in done.references.system if each.kind == "patch"] == ["edit"]
    assert [each.mode for each in done.modes] == ["plan", "default"]
    assert done.fallbacks == ()


def test_unknown_state_before_a_compaction_is_reported_as_unknown(home: Home):
    with sessions_of(home) as sessions:
        name = into_new(sessions, thread(1))
        go_on(sessions, name, worked())
        home.path().unlink()
        sessions.refresh()
        done = restored(sessions, name)
        go_on(sessions, done.record.session_id, worked("n2"))
        later = restored(sessions, done.record.session_id)

    for each in (done, later):
        assert [fallback.fallback for fallback in each.record.fallbacks] == ["earlier_unknown"]
        assert ("earlier_unknown", 1) in [
            (caution.code, caution.count) for caution in each.record.warnings
        ]


# --- the way up ----------------------------------------------------------------------------------


def shape(chain: tuple[Ancestor, ...]) -> list[tuple[str, str, str]]:
    return [(each.session_id, each.kind, each.source_turn.session_id) for each in chain]


def test_ancestry_includes_compactions_and_forks(home: Home):
    with sessions_of(home) as sessions:
        branch = restored(sessions, thread(1)).record
        go_on(sessions, branch.session_id, worked())
        new = into_new(sessions, branch.session_id)
        go_on(sessions, new, worked("n2"))
        done = restored(sessions, new)
        fork = r.session(thread=thread(7), cwd=str(home.user), forked_from_id=new)
        home.put(r.rollout(fork, worked("n3")), 7)
        sessions.refresh()
        forked = restored(sessions, thread(7)).record
        home.path().unlink()
        Path(sessions.find(branch.session_id).path).unlink()
        sessions.refresh()
        without = restored(sessions, new).record

    expected = [
        (new, "compaction", branch.session_id),
        (branch.session_id, "restore", thread(1)),
    ]
    assert shape(done.record.chain) == expected
    assert shape(without.chain) == expected
    assert shape(forked.chain) == [(thread(7), "fork", new), *expected]
    assert f"- before: session {new} came of session {branch.session_id} by a compaction\n" in (
        done.pack or ""
    )
    assert f"- before: session {branch.session_id} branched at turn t2 of session" in (
        done.pack or ""
    )


def test_compaction_edge_names_the_last_line_of_its_source(home: Home):
    with sessions_of(home) as sessions:
        branch = restored(sessions, thread(1)).record.session_id
        go_on(sessions, branch, worked())
        path = Path(sessions.find(branch).path)
        lines, size = path.read_bytes().splitlines(), path.stat().st_size
        new = into_new(sessions, branch)
        tree = lineage(sessions, new)

    link = next(each.link for each in tree.nodes if each.id == new)
    assert link is not None
    assert link.cut.ordinal_exclusive == json.loads(lines[-1])["ordinal"] + 1
    assert link.cut.byte_offset == size
    assert link.cut.after_turn == 1
