"""Notes that a fork inherits from its bases, through the real service."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import updates
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.session_watcher import Changed, SessionWatcher
from homes import Home, refusal, thread
from rollouts import Step, based_on, rollout, session, turn, user

CUT = 5
"""Where the fork that most tests begin with leaves its base: behind the first turn."""
AT = "2026-11-21T09:00:00.000Z"
BASE = (turn(user("one", ref="m1"), name="t1"), turn(user("two", ref="m2"), name="t2"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Hold a session of two turns, and one that Codex forked from it behind the first."""
    home = Home(tmp_path)
    home.put(rollout(session(thread=thread(1)), *BASE))
    fork(home, 2, 1, CUT)
    return home


def fork(
    home: Home,
    number: int,
    base: int,
    cut: int,
    *steps: Step,
    segment: int | None = None,
    **more: Any,  # noqa: ANN401 - fields of a head
) -> None:
    """Put a session that begins with the lines of another up to a cut; one turn is its own."""
    head = session(thread=thread(number), history_base=based_on(thread(base), cut, 0), **more)
    own = steps or (turn(user(f"go on, {number}", ref=f"own{number}"), name=f"own{number}"),)
    home.put(rollout(head, *own), number, segment=segment)


def keys(home: Home, number: int = 2) -> list[str]:
    with home.house() as house:
        found = house.sessions.show(thread(number)).checkpoint
    return [*sorted(found.facts), *(each.decision_id for each in found.decisions)]


def remembered(number: int, *, at: Iterable[tuple[int, str | None]]) -> list[updates.Line]:
    """Accept a fact a place, named after its session and `seq`."""
    return [updates.fact(f"s{number}-{seq}", seq=seq, turn=turn) for seq, turn in at]


def test_notes_below_the_cut_are_inherited_and_later_ones_are_not(home: Home):
    home.remember(
        [
            updates.fact("before-any-turn", seq=0),
            updates.fact("below", seq=CUT - 1, turn="t1"),
            updates.fact("at-the-cut", seq=CUT, turn="t1"),
            updates.fact("later", seq=CUT + 1, turn="t2"),
            updates.decision("d1", seq=3, turn="t1"),
            updates.steps("s", seq=3, turn="t1"),
        ]
    )

    assert keys(home) == ["before-any-turn", "below", "d1"]
    with home.house() as house:
        assert house.sessions.show(thread(2)).checkpoint.plan.steps[0].id == "s"
    assert keys(home, 1) == ["at-the-cut", "before-any-turn", "below", "later", "d1"]


def test_revocation_below_the_cut_counts_for_the_fork(home: Home):
    home.remember(
        [
            updates.fact("taken-back", seq=2, turn="t1"),
            updates.fact("kept-here", seq=2, turn="t1"),
            updates.revoked("fact", "taken-back", seq=3, turn="t1"),
            updates.revoked("fact", "kept-here", seq=CUT + 2, turn="t2"),
        ]
    )

    assert (keys(home), keys(home, 1)) == (["kept-here"], [])


@pytest.mark.parametrize(
    ("cut", "inherited"),
    [(CUT + 4, ["s1-2", f"s2-{CUT + 3}"]), (3, ["s1-2"])],
    ids=["behind what the base did itself", "inside what the base inherited"],
)
def test_chain_is_followed_with_each_session_below_its_lowest_cut(
    home: Home, cut: int, inherited: list[str]
):
    fork(home, 3, 2, cut)
    home.remember(remembered(1, at=[(2, "t1"), (4 if cut == 3 else CUT, "t1")]))
    home.remember(remembered(2, at=[(CUT + 3, "own2"), (CUT + 4, "own2")]), 2)
    home.remember(remembered(3, at=[(CUT + 9, "own3")]), 3)

    assert keys(home, 3) == [*inherited, f"s3-{CUT + 9}"]


def test_later_notes_continue_from_the_inherited_ones(home: Home):
    home.remember([updates.decision("d1", seq=3, turn="t1"), updates.fact("port", "1", seq=3)])
    mine = {"source": "user", "ref": "own2"}
    new = {"kind": "decision", "decision": "do that", "rationale": "better", "evidence": mine}

    with home.house() as house:
        notes = Notes(house.sessions, lambda: AT, lambda: "id")
        again = json.dumps(new | {"decisionId": "d1"}).encode()
        assert refusal(lambda: notes.apply(thread(2), again)).code == "conflict"
        other = new | {"decisionId": "d2", "supersedes": "d1"}
        assert notes.apply(thread(2), json.dumps(other).encode()).accepted
        notes.revoke(thread(2), "port")

    assert keys(home) == ["d1", "d2"]
    assert keys(home, 1) == ["port", "d1"]


def test_segment_of_a_thread_keeps_its_file_and_each_update_follows_its_turn(
    home: Home,
):
    fork(home, 1, 1, CUT, turn(user("two again", ref="m9"), name="t9"), segment=50)
    home.remember(remembered(1, at=[(3, "t1"), (CUT + 2, "t2"), (CUT + 2, "t9")]))

    assert keys(home, 1) == ["s1-3", f"s1-{CUT + 2}"]
    home.remember(remembered(1, at=[(3, "t1"), (CUT + 2, "t2")]))
    assert keys(home, 1) == ["s1-3"]


def test_fork_of_a_later_segment_reads_the_file_of_the_thread_once(home: Home):
    fork(home, 1, 1, CUT, turn(user("two again", ref="m9"), name="t9"), segment=50)
    own = turn(user("go on", ref="own3"), name="own3")
    fork(home, 3, 50, CUT + 4, own)
    home.remember(
        [updates.decision("d1", seq=3, turn="t1"), updates.decision("d2", seq=7, turn="t9")]
    )

    assert keys(home, 3) == ["d1", "d2"]


@pytest.mark.parametrize(
    "head",
    [
        {"originator": "codex-checkpoints"},
        {"subagent_history_start_ordinal": CUT},
    ],
    ids=["a branch of ours, which has copies", "a subagent, which inherits no turns"],
)
def test_own_branch_and_subagent_inherit_no_notes(home: Home, head: dict[str, Any]):
    fork(home, 2, 1, CUT, **head)
    home.remember([updates.fact("before", seq=0), updates.fact("below", seq=3, turn="t1")])

    assert keys(home) == []


# --- when it was accepted ------------------------------------------------------------------------


def test_notes_accepted_after_the_fork_are_not_inherited(home: Home):
    early, late, bare = (updates.fact(key, seq=3, turn="t1") for key in ("early", "late", "bare"))
    late["at"] = "2026-11-20T10:00:00.001Z"
    del bare["at"]
    taken_back = updates.revoked("fact", "early", seq=3, turn="t1") | {"at": late["at"]}
    home.remember([early, late, bare, taken_back])

    assert keys(home) == ["bare", "early"]
    assert keys(home, 1) == ["bare", "late"]


def test_fork_of_a_fork_inherits_the_notes_of_the_first(home: Home):
    fork(home, 3, 2, CUT + 4, timestamp="2026-11-20T12:00:00.000Z")
    late = updates.fact("late", seq=3, turn="t1") | {"at": "2026-11-20T11:00:00.000Z"}
    home.remember([updates.fact("early", seq=3, turn="t1"), late])
    own = updates.fact("own", seq=CUT + 3, turn="own2") | {"at": late["at"]}
    home.remember([own], 2)

    assert keys(home, 3) == ["early", "own"]


# --- a fork that copied the lines of its source --------------------------------------------------

OLD = session("legacy", thread=thread(1))


def copy(home: Home, source: bytes, number: int, lines: int, *own: Step, of: int = 1) -> None:
    """Put an older fork that begins with so many lines of its source, as Codex writes them."""
    head = session("legacy", thread=thread(number), forked_from_id=thread(of))
    now = rb'{"timestamp":"2026-11-20T11:59:59.000Z"'
    written = re.sub(rb'(?m)^\{"timestamp":"[^"]*"', now, source).splitlines(keepends=True)
    said = rollout(session("legacy", thread=thread(number)), *own).split(b"\n", 1)[1]
    home.put(rollout(head) + b"".join(written[:lines]) + said, number)


def test_older_fork_inherits_by_the_place_of_its_copied_lines(home: Home):
    source = rollout(OLD, *BASE)
    home.put(source)
    cut = 1 + source.splitlines().index(next(x for x in source.splitlines() if b"complete" in x))
    copy(home, source, 2, cut, turn(user("go on", ref="own"), name="own"))
    late = updates.fact("late", seq=2, turn="t1") | {"at": "2026-11-20T10:30:00.000Z"}
    home.remember([*remembered(1, at=[(0, None), (cut, "t1"), (cut + 1, "t1"), (9, "t2")]), late])

    assert keys(home) == ["s1-0", f"s1-{cut}"]
    with home.house() as house:
        facts = house.sessions.show(thread(2)).checkpoint.facts
    assert facts[f"s1-{cut}"].last_touched_seq == cut + 1


def test_older_fork_of_a_fork_inherits_through_both(home: Home):
    source = rollout(OLD, *BASE)
    home.put(source)
    copy(home, source, 2, 5, turn(user("go on", ref="own2"), name="own2"))
    copy(home, home.path(2).read_bytes(), 3, 6, turn(user("more", ref="own3"), name="own3"), of=2)
    home.remember(remembered(1, at=[(5, "t1"), (6, "t1")]))
    home.remember(remembered(2, at=[(6, "t1"), (7, "own2")]), 2)

    assert keys(home, 3) == ["s1-5", "s2-6"]


def test_turns_named_by_their_seq_are_renumbered(home: Home):
    def bare(*texts: str) -> bytes:
        return rollout(session("legacy", thread=thread(1)), *(user(each) for each in texts))

    home.put(bare("one", "two"))
    copy(home, bare("one", "two"), 2, 3)
    with home.house() as house:
        named = [each.turn_id for each in detail_of(house.sessions, thread(1)).turns]
    home.remember([updates.fact("k", seq=3, turn=named[0])])

    assert keys(home) == keys(home, 1) == ["k"]


def test_missing_base_leaves_the_nearer_notes(home: Home):
    fork(home, 3, 2, CUT + 4)
    home.remember(remembered(1, at=[(0, None)]))
    home.remember(remembered(2, at=[(CUT + 2, "own2")]), 2)
    home.path().unlink()

    assert keys(home, 3) == [f"s2-{CUT + 2}"]


def test_list_counts_inherited_suspect_facts(home: Home):
    home.remember([updates.fact("rests", seq=3, turn="t1", on={"gone.py": updates.V1})])

    with home.house() as house:
        house.sessions.read_all()
        assert [each.suspect_facts for each in house.sessions.summaries.page().items] == [1, 1]


def test_watcher_reports_the_fork_when_its_base_gets_a_note(home: Home):
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        path = home.remember([updates.fact("below", seq=3, turn="t1")])
        follower.mark(str(path))

        assert follower.drain() == [Changed((thread(1), thread(2)), "memory")]
    assert [*home.stored(2)["facts"]] == ["below"]
