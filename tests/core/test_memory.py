"""Accepted updates, replayed: what they amount to, what is evicted, revoked, rolled back."""

import json
import random
from collections.abc import Mapping
from typing import cast

import pytest

from codex_checkpoints.core.checkpoint.memory import update_of
from codex_checkpoints.core.checkpoint.records import Checkpoint, Limits, status_of
from reading import checkpoint, plan, read
from rollouts import call, patch, rollback, rollout, session, turn, user
from rollouts import plan as planned
from updates import UNKNOWN, V1, V2, Line, decision, fact, revoked, steps

SESSION = rollout(
    session("legacy"),
    turn(user("one"), patch(add="a.py"), name="t1"),
    turn(user("two"), patch(add="b.py"), name="t2"),
)
BACK = rollout(
    session("legacy"),
    turn(user("one"), patch(add="a.py"), name="t1"),
    turn(user("two"), patch(add="b.py"), name="t2"),
    rollback(1),
)


def after(
    *lines: Mapping[str, object], data: bytes = SESSION, hashes: Mapping[str, str] | None = None
) -> Checkpoint:
    return checkpoint(data, lines, hashes)


def decisions(found: Checkpoint) -> list[str]:
    return [each.decision_id for each in found.decisions]


def payload(line: Line) -> Line:
    told = line["payload"]
    assert isinstance(told, dict)
    return cast("Line", told)


# --- facts ---------------------------------------------------------------------------------------


def test_a_fact_is_kept_as_it_was_accepted():
    (found,) = after(
        fact(
            "k", "v", seq=5, turn="t1", on={"a.py": V1, "b.py": UNKNOWN}, source="file", ref="a.py"
        )
    ).facts.values()

    assert found.value == "v"
    assert (found.evidence.source, found.evidence.ref, found.evidence.hash) == ("file", "a.py", V1)
    assert [(each.uri, each.hash) for each in found.depends_on] == [("a.py", V1), ("b.py", UNKNOWN)]
    assert found.last_touched_seq == 5


def test_a_known_key_is_replaced_and_touched():
    found = after(fact("k", "old", seq=3), fact("l", "x", seq=4), fact("k", "new", seq=5)).facts

    assert (found["k"].value, found["k"].last_touched_seq) == ("new", 5)
    assert (found["l"].value, found["l"].last_touched_seq) == ("x", 4)


def test_evidence_that_the_host_could_not_see_has_no_hash():
    unseen = fact("k", on={"a.py": UNKNOWN}, source="file", ref="a.py")
    said = fact("l", source="user", ref="u1", hashes={"a.py": V1})

    assert {each.evidence.hash for each in after(unseen, said).facts.values()} == {None}


def test_only_what_the_evidence_names_gives_it_a_hash():
    said = fact("k", on={"u1": V1}, source="user", ref="u1")
    called = fact("l", on={"c1": V1}, source="tool_output", ref="c1")
    alone = fact("m", on={"a.py": V1}, source="tool_output", ref="c1", hashes={"c1": V2})

    found = after(said, called, alone).facts

    assert [found[key].evidence.hash for key in "klm"] == [None, None, V2]
    assert [found[key].depends_on[0].hash for key in "klm"] == [V1, V1, V1]


def test_the_65th_fact_evicts_the_one_touched_longest_ago():
    found = after(*[fact(f"k{number:02}", seq=number) for number in range(65)]).facts

    assert len(found) == 64
    assert "k00" not in found
    assert "k64" in found


def test_a_touch_saves_a_fact():
    told = [fact(f"k{number:02}", seq=number) for number in range(64)]

    found = after(*told, fact("k00", "again", seq=64), fact("new", seq=65)).facts

    assert "k00" in found
    assert "k01" not in found
    assert len(found) == 64


def test_of_facts_touched_together_the_first_by_code_point_goes():
    told = [fact(key, seq=7) for key in ("z", "é", "a", "B", "b")]
    limits = Limits(max_facts_total=2)

    assert set(checkpoint(SESSION, told, limits=limits).facts) == {"z", "é"}
    later = [*told, fact("A", seq=8), fact("0", seq=8)]
    assert set(checkpoint(SESSION, later, limits=limits).facts) == {"A", "0"}
    assert set(checkpoint(SESSION, [*told, fact("A", seq=7)], limits=limits).facts) == {"z", "é"}


def test_the_eviction_does_not_depend_on_how_the_touches_came_about():
    draw = random.Random(1)
    keys = [f"k{number}" for number in range(12)]
    for _ in range(50):
        touches = [(draw.choice(keys), seq) for seq in range(40)]
        told = [fact(key, seq=seq) for key, seq in touches]
        newest = dict(touches)

        found = checkpoint(SESSION, told, limits=Limits(max_facts_total=4)).facts

        # Whoever is touched comes back, so only the four touched last can be there.
        expected = sorted(newest, key=lambda key: newest[key])[-4:]
        assert {key: each.last_touched_seq for key, each in found.items()} == {
            key: newest[key] for key in expected
        }


# --- decisions -----------------------------------------------------------------------------------


def test_a_decision_is_kept_as_it_was_accepted():
    (found,) = after(
        decision("d1", "do it", "it helps", topic="x", seq=4, source="tool_output", ref="c1")
    ).decisions

    assert (found.decision, found.rationale, found.topic) == ("do it", "it helps", "x")
    assert (found.evidence.source, found.evidence.ref) == ("tool_output", "c1")
    assert found.seq == 4


def test_the_33rd_decision_evicts_the_oldest():
    told = [decision(f"d{number:02}", seq=number) for number in range(33)]

    assert decisions(after(*told)) == [f"d{number:02}" for number in range(1, 33)]


def test_decisions_stand_in_the_order_of_acceptance():
    found = after(
        decision("late", seq=9),
        decision("z", seq=5),
        decision("a", seq=5),
        decision("m", seq=5),
        decision("early", seq=2),
    )

    assert decisions(found) == ["early", "z", "a", "m", "late"]


def test_a_superseded_decision_stays_stored():
    found = after(decision("a", seq=1), decision("b", supersedes="a", seq=2))

    assert decisions(found) == ["a", "b"]
    assert found.decisions[1].supersedes == "a"


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_names_every_step_that_is_kept():
    found = after(steps("a", "b", "c", done={"b": True}))

    assert plan(found) == [("a", "do a", False), ("b", "do b", True), ("c", "do c", False)]
    assert found.plan.evidence is not None


def test_the_33rd_step_is_left_off_and_so_is_what_is_said_of_it():
    names = [f"p{number:02}" for number in range(33)]

    found = after(steps(*names, done=dict.fromkeys(names, True)))

    assert [name for name, _, _ in plan(found)] == names[:32]
    assert set(found.plan.done) == set(names[:32])


def test_the_33rd_step_of_the_agents_own_plan_is_left_off_too():
    data = rollout(session(), user("x"), planned(*[(f"step {n}", True) for n in range(33)]))

    found = checkpoint(data)

    assert [name for name, _, _ in plan(found)] == [f"s{number}" for number in range(1, 33)]
    assert set(found.plan.done) == {f"s{number}" for number in range(1, 33)}


def test_an_empty_plan_empties_the_plan():
    data = rollout(session(), user("x"), planned(("a", False)), planned())

    assert plan(checkpoint(data)) == []
    assert checkpoint(data).plan.evidence is not None
    assert plan(after(steps("a", seq=1), steps(seq=2))) == []


PLANS = rollout(
    session(),
    user("x"),  # 1, 2
    planned(("first", False)),  # 3, 4
    planned(("second", False)),  # 5, 6
)


@pytest.mark.parametrize(
    ("seq", "text"),
    [(0, "second"), (3, "second"), (4, "second"), (5, "do p"), (6, "do p"), (99, "do p")],
)
def test_the_plan_that_came_later_counts_and_an_update_follows_its_record(seq: int, text: str):
    assert [text for _, text, _ in plan(checkpoint(PLANS, [steps("p", seq=seq)]))] == [text]


@pytest.mark.parametrize(
    "arguments",
    ["", "{", "null", "[]", "{}", '{"plan":7}', '{"plan":{"step":"x"}}', '{"plan":null}'],
)
def test_a_plan_that_cannot_be_read_leaves_the_plan_as_it_was(arguments: str):
    for head in (session(), session("legacy")):
        data = rollout(
            head, user("x"), planned(("kept", True)), call("update_plan", arguments, "c9")
        )
        assert plan(checkpoint(data)) == [("s1", "kept", True)]


def test_of_a_plan_only_steps_with_a_text_count_and_only_completed_ones_are_done():
    told = [
        {"step": "a", "status": "completed"},
        {"step": "b", "status": "in_progress"},
        {"step": "c", "status": "Completed"},
        {"step": "d"},
        {"step": 7, "status": "completed"},
        "e",
        {"step": "f\ng", "status": "completed"},
    ]
    data = rollout(session(), user("x"), call("update_plan", {"plan": told}, "c9"))

    assert plan(checkpoint(data)) == [
        ("s1", "a", True),
        ("s2", "b", False),
        ("s3", "c", False),
        ("s4", "d", False),
        ("s5", "f g", True),
    ]


# --- revocations and turns -----------------------------------------------------------------------


def test_a_revocation_takes_earlier_updates_and_leaves_later_ones():
    told = [fact("k", "old", seq=1), fact("k", "older", seq=2), fact("l", seq=2)]
    revoke = revoked("fact", "k", seq=3)

    assert set(after(*told, revoke).facts) == {"l"}
    assert after(*told, revoke, fact("k", "new", seq=4)).facts["k"].value == "new"
    assert after(*told, revoke, fact("k", "same", seq=3)).facts["k"].value == "same"
    assert set(after(revoke, *told).facts) == {"l"}
    assert set(after(revoked("fact", "k", seq=2), *told).facts) == {"k", "l"}


def test_a_revocation_names_one_kind():
    told = [fact("x", seq=1), decision("x", seq=1), decision("y", seq=1)]

    assert decisions(after(*told, revoked("decision", "x", seq=2))) == ["y"]
    assert set(after(*told, revoked("decision", "x", seq=2)).facts) == {"x"}
    assert set(after(*told, revoked("plan", "x", seq=2)).facts) == {"x"}
    assert decisions(after(*told, revoked("fact", "x", seq=2))) == ["x", "y"]


def test_what_belongs_to_a_turn_that_was_rolled_back_does_not_count():
    told = [
        fact("before", seq=1),
        fact("one", seq=4, turn="t1"),
        decision("d1", seq=4, turn="t1"),
        steps("p1", seq=4, turn="t1"),
        fact("two", seq=9, turn="t2"),
        fact("one", "changed", seq=9, turn="t2"),
        decision("d2", seq=9, turn="t2"),
        steps("p2", seq=9, turn="t2"),
        revoked("fact", "before", seq=10, turn="t2"),
        revoked("decision", "d1", seq=10, turn="t2"),
        fact("nowhere", seq=9, turn="t9"),
    ]

    whole, back = after(*told), after(*told, data=BACK)

    assert set(whole.facts) == {"one", "two"}
    assert (decisions(whole), whole.facts["one"].value) == (["d2"], "changed")
    assert set(back.facts) == {"before", "one"}
    assert (decisions(back), back.facts["one"].value) == (["d1"], "so it is")
    assert [name for name, _, _ in plan(whole)] == ["p2"]
    assert [name for name, _, _ in plan(back)] == ["p1"]


def test_what_was_rolled_back_evicts_nothing():
    kept = [fact(f"k{number:02}", seq=4, turn="t1") for number in range(64)]
    gone = [fact(f"g{number:02}", seq=9, turn="t2") for number in range(64)]

    assert set(after(*kept, *gone, data=BACK).facts) == {f"k{number:02}" for number in range(64)}


def test_updates_of_one_record_follow_the_order_of_the_file():
    told = [fact("k", str(number), seq=5) for number in range(5)]

    assert after(*told).facts["k"].value == "4"
    assert after(*reversed(told)).facts["k"].value == "0"
    assert after(fact("k", "late", seq=6), *told).facts["k"].value == "late"


def test_an_update_beyond_the_end_of_a_shorter_file_counts_at_the_end():
    found = after(fact("k", seq=10_000), steps("p", seq=10_000))

    assert found.facts["k"].last_touched_seq == 10_000
    assert [name for name, _, _ in plan(found)] == ["p"]


# --- standing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "now", "stands"),
    [
        (V1, V1, True),
        (V1, V2, False),
        (V1, None, False),
        (UNKNOWN, V1, False),
        (UNKNOWN, None, False),
        ("stat:1-1", "stat:1-1", True),
        ("stat:1-1", V1, False),
    ],
)
def test_a_fact_stands_while_what_it_rests_on_is_as_it_was(
    then: str, now: str | None, stands: bool
):
    seen = {} if now is None else {"a.py": now}

    found = after(fact("k", on={"a.py": then}, source="file", ref="a.py"), hashes=seen)

    assert status_of(found.facts["k"], found.artifacts) == ("VALID" if stands else "SUSPECT")


def test_a_fact_about_a_file_that_nobody_observed_is_suspect():
    found = after(fact("k", on={"zz.py": V1}, source="file", ref="zz.py"), hashes={"zz.py": V1})

    assert status_of(found.facts["k"], found.artifacts) == "SUSPECT"


def test_losing_an_artifact_makes_its_facts_suspect():
    told = [fact("k", on={"a.py": V1}, source="file", ref="a.py")]

    few = checkpoint(SESSION, told, {"a.py": V1}, Limits(max_artifacts_total=1))

    assert set(few.artifacts) == {"b.py"}
    assert status_of(few.facts["k"], few.artifacts) == "SUSPECT"


# --- values, and lines that are no updates -------------------------------------------------------


def test_too_long_values_are_cut_and_lines_made_one():
    long, lines = "y" * 161, "a\n[TASK]\n- b"

    found = after(
        fact("k", long), fact("l", lines), decision("d", long, lines, topic=long), steps("p")
    )

    assert found.facts["k"].value == "y" * 159 + "…"
    assert found.facts["l"].value == "a [TASK] - b"
    (only,) = found.decisions
    assert (only.decision, only.rationale, only.topic) == (
        "y" * 159 + "…",
        "a [TASK] - b",
        "y" * 159 + "…",
    )


def spoilt(line: Line, place: str, value: str) -> object:
    """Put a value, written as JSON, into a place of a line."""
    whole = json.loads(json.dumps(line))
    *way, last = place.split(".")
    inner = whole
    for step in way:
        inner = inner[step]
    inner[last] = json.loads(value)
    return whole


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("seq", ["null", '"1"', "1.0", "true", "[]"]),
        ("turnId", ["7", "[]", "{}", "true"]),
        ("payload", ["null", "7", "[]", "{}", '"fact"', '{"kind":"fact"}']),
        ("payload.kind", ["null", "7", "[]", '"note"', '"Fact"', '"decision"', '"plan"']),
        ("payload.key", ["null", "7", "[]", "{}"]),
        ("payload.value", ["null", "7", "[]", "{}"]),
        ("payload.evidence", ["null", "7", "[]", "{}", '{"source":"user"}', '{"ref":"u1"}']),
        ("payload.evidence.source", ["null", "7", '"robot"', "[]"]),
        ("payload.evidence.ref", ["null", "7", "[]"]),
        ("payload.dependsOn", ["7", "[7]", "[{}]", '[{"uri":7}]', '["a.py"]', "{}"]),
    ],
)
def test_what_is_no_fact_of_a_known_form_is_passed_over(place: str, values: list[str]):
    for value in values:
        passed_over(spoilt(fact("bad"), place, value))


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("payload.decisionId", ["null", "7", "[]"]),
        ("payload.decision", ["null", "7", "[]"]),
        ("payload.rationale", ["null", "7", "[]"]),
        ("payload.topic", ["7", "[]"]),
        ("payload.supersedes", ["7", "[]"]),
    ],
)
def test_what_is_no_decision_of_a_known_form_is_passed_over(place: str, values: list[str]):
    for value in values:
        passed_over(spoilt(decision("bad"), place, value))


@pytest.mark.parametrize(
    "told", ["null", "7", "[7]", "[{}]", '[{"id":"x"}]', '[{"id":7,"text":"x"}]', "{}", '"x"']
)
def test_what_is_no_plan_of_a_known_form_is_passed_over(told: str):
    passed_over(spoilt(steps("bad"), "payload.steps", told))


@pytest.mark.parametrize(
    "line",
    [
        *("null", "7", '"x"', "[]", "{}", '{"seq":1}', '{"revoke":7,"seq":1}'),
        *('{"revoke":{},"seq":1}', '{"revoke":{"kind":"fact","id":[]},"seq":1}'),
        '{"revoke":{"kind":"fact","id":"k"},"seq":"1"}',
    ],
)
def test_what_is_no_update_at_all_is_passed_over(line: str):
    passed_over(json.loads(line))


def passed_over(line: object) -> None:
    """See that a line changes nothing, whatever stands beside it."""
    known = [update for each in (fact("k"), line) if (update := update_of(each)) is not None]

    found = read(SESSION).checkpoint(known, {})

    assert set(found.facts) == {"k"}, line
    assert found.decisions == (), line
    assert found.plan.steps == (), line


def test_strange_hashes_and_marks_are_passed_over():
    strange: list[object] = [None, 7, [], {"a.py": 7}, {"a.py": None}]
    for hashes in strange:
        line = fact("k", on={"a.py": V1}, source="file", ref="a.py") | {"hashes": hashes}

        found = after(line, hashes={"a.py": V1})

        assert status_of(found.facts["k"], found.artifacts) in {"VALID", "SUSPECT"}

    marks: list[object] = [7, [], {"p": 7}, {"p": None}, {"q": True}]
    for done in marks:
        line = steps("p")
        line["payload"] = payload(line) | {"done": done}

        assert plan(after(line)) in ([], [("p", "do p", False)])
