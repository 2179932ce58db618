"""Accepted updates, replayed: the resulting notes, evictions, revocations and rollbacks."""

import json
import random
from collections.abc import Mapping
from typing import cast

import pytest
from attrs import evolve

from codex_checkpoints.core.checkpoint.memory import replay, update_of
from codex_checkpoints.core.checkpoint.records import (
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Limits,
    status_of,
    to_bytes,
)
from derived_state import checkpoint, plan, read
from rollouts import call, patch, rollback, rollout, session, turn, user
from rollouts import plan as planned
from updates import UNKNOWN, V1, V2, Line, decision, fact, revoked, steps

SESSION = rollout(
    session("legacy"),
    turn(user("one"), patch(add="a.py"), name="t1"),
    turn(user("two"), patch(add="b.py"), name="t2"),
)
BACK = SESSION + rollout(session("legacy"), rollback(1)).split(b"\n", 1)[1]


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


def test_fact_is_kept_as_it_was_accepted():
    told = fact("k", "v", seq=5, on={"a.py": V1, "b.py": UNKNOWN}, source="file", ref="a.py")

    on = (Dependency("a.py", V1), Dependency("b.py", UNKNOWN))
    assert after(told).facts == {"k": Fact("v", Evidence("file", "a.py", V1), on, 5)}


def test_known_key_is_replaced_and_touched():
    found = after(fact("k", "old", seq=3), fact("l", "x", seq=4), fact("k", "new", seq=5)).facts

    assert (found["k"].value, found["k"].last_touched_seq) == ("new", 5)
    assert (found["l"].value, found["l"].last_touched_seq) == ("x", 4)


def test_hash_of_evidence_comes_only_from_its_own_reference():
    told = [
        fact("unseen", on={"a.py": UNKNOWN}, source="file", ref="a.py"),
        fact("said", on={"u1": V1}, source="user", ref="u1"),
        fact("called", on={"c1": V1}, source="tool_output", ref="c1"),
        fact("alone", on={"a.py": V1}, source="tool_output", ref="c1", hashes={"c1": V2}),
    ]

    found = after(*told).facts

    hashes = {key: (each.evidence.hash, each.depends_on[0].hash) for key, each in found.items()}
    assert hashes == {
        "unseen": (None, UNKNOWN),
        "said": (None, V1),
        "called": (None, V1),
        "alone": (V2, V1),
    }


def test_older_fact_depends_on_the_hash_of_its_evidence_file_at_that_time():
    told = [
        fact("seen", on={"a.py": V1}, source="file", ref="b.py", hashes={"b.py": V2}),
        fact("unseen", on={"a.py": V1}, source="file", ref="b.py"),
    ]
    added = Dependency("a.py", V1)

    facts = after(*told, hashes={"a.py": V1, "b.py": V2}).facts

    assert facts["seen"].depends_on == (Dependency("b.py", V2), added)
    assert facts["unseen"].depends_on == (Dependency("b.py", UNKNOWN), added)
    for now, status in ((V2, "VALID"), (V1, "SUSPECT")):
        found = after(*told, hashes={"a.py": V1, "b.py": now})
        assert status_of(found.facts["seen"], found.artifacts) == status
        assert status_of(found.facts["unseen"], found.artifacts) == "SUSPECT"


def test_fact_of_an_initial_state_depends_on_its_evidence_file():
    told = Fact("v", Evidence("file", "b.py", V2), (Dependency("a.py", V1),), 3)
    begun = evolve(after(), facts={"k": told})

    found = replay([], lambda _turn: True, Limits(), begun).facts["k"]

    assert found.depends_on == (Dependency("b.py", V2), Dependency("a.py", V1))


def test_artifact_names_share_one_limit_and_the_newest_stay():
    names = [f"{number:03}{'名' * 1000}" for number in range(256)]
    steps = (patch(add=name) for name in names)
    data = rollout(session("legacy"), turn(user("one"), *steps))

    found = after(data=data)

    count = 131_072 // len(names[0].encode())
    assert sorted(found.artifacts) == names[-count:]
    assert len(to_bytes(found)) < 400_000
    assert len(checkpoint(SESSION, (), limits=Limits(max_uri_bytes_total=4)).artifacts) == 1


def test_among_facts_touched_together_the_first_key_is_evicted():
    told = [fact(key, seq=7) for key in ("z", "é", "a", "B", "b")]
    later = [*told, fact("A", seq=8), fact("0", seq=8)]

    for lines, left in ((told, "zé"), (later, "A0"), ([*told, fact("A", seq=7)], "zé")):
        assert set(checkpoint(SESSION, lines, limits=Limits(max_facts_total=2)).facts) == set(left)


def test_fact_65_evicts_the_one_touched_longest_ago():
    told = [fact(f"k{number:02}", seq=number) for number in range(65)]

    assert set(after(*told).facts) == {f"k{number:02}" for number in range(1, 65)}
    assert "k00" in after(*told[:64], fact("k00", "again", seq=64), told[64]).facts


def test_updates_of_one_record_keep_the_order_of_the_file():
    told = [fact("k", str(number), seq=5) for number in range(5)]

    assert after(fact("k", "late", seq=6), *told).facts["k"].value == "late"
    assert (after(*told).facts["k"].value, after(*told[::-1]).facts["k"].value) == ("4", "0")


def test_eviction_depends_only_on_the_last_touches():
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
    told = decision("d1", "do", "it helps", topic="x", seq=4, source="tool_output", ref="c1")

    evidence = Evidence("tool_output", "c1")
    assert after(told).decisions == (Decision("d1", "x", "do", "it helps", None, evidence, 4),)


def test_last_32_decisions_keep_the_order_of_acceptance_even_if_superseded():
    places = [("late", 9), ("z", 5), ("a", 5), ("m", 5), ("early", 2)]
    many = [decision(f"d{number:02}", seq=number) for number in range(33)]
    found = after(*(decision(name, supersedes="z", seq=seq) for name, seq in places))

    assert decisions(found) == ["early", "z", "a", "m", "late"]
    assert found.decisions[0].supersedes == "z"
    assert decisions(after(*many)) == [f"d{number:02}" for number in range(1, 33)]


# --- plans ---------------------------------------------------------------------------------------


def test_plan_keeps_its_first_32_steps_and_done_names_no_other():
    names = [f"p{number:02}" for number in range(33)]
    of_agent = rollout(session(), user("x"), planned(*[(f"step {n}", True) for n in range(33)]))

    few = after(steps("a", "b", "c", done={"b": True}))
    assert plan(few) == [("a", "do a", False), ("b", "do b", True), ("c", "do c", False)]
    assert few.plan.evidence is not None
    many = after(steps(*names, done=dict.fromkeys(names, True))).plan
    assert [step.id for step in many.steps] == list(many.done) == names[:32]
    assert set(checkpoint(of_agent).plan.done) == {f"s{number}" for number in range(1, 33)}


def test_empty_plan_clears_the_plan():
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
def test_later_plan_counts_and_an_update_follows_its_record(seq: int, text: str):
    assert [text for _, text, _ in plan(checkpoint(PLANS, [steps("p", seq=seq)]))] == [text]


@pytest.mark.parametrize(
    "arguments",
    ["", "{", "null", "[]", "{}", '{"plan":7}', '{"plan":{"step":"x"}}', '{"plan":null}'],
)
def test_unreadable_plan_leaves_the_plan_unchanged(arguments: str):
    for head in (session(), session("legacy")):
        data = rollout(
            head, user("x"), planned(("kept", True)), call("update_plan", arguments, "c9")
        )
        assert plan(checkpoint(data)) == [("s1", "kept", True)]


def test_only_steps_with_text_count_and_only_completed_ones_are_done():
    told = [
        {"step": "a", "status": "completed"},
        {"step": "b", "status": "in_progress"},
        {"step": "c", "status": "Completed"},
        {"step": "d"},
        {"step": 7, "status": "completed"},
        "e",
        {"step": "f\ng", "status": "completed"},
    ]
    found = checkpoint(rollout(session(), user("x"), call("update_plan", {"plan": told}, "c9")))

    assert [(step.text, found.plan.done[step.id]) for step in found.plan.steps] == [
        *(("a", True), ("b", False), ("c", False), ("d", False)),
        ("f g", True),
    ]


# --- revocations and turns -----------------------------------------------------------------------


def test_revocation_removes_earlier_updates_and_keeps_later_ones():
    told = [fact("k", "old", seq=1), fact("k", "older", seq=2), fact("l", seq=2)]
    revoke = revoked("fact", "k", seq=3)

    assert set(after(*told, revoke).facts) == set(after(revoke, *told).facts) == {"l"}
    for seq in (3, 4):
        assert after(*told, revoke, fact("k", "new", seq=seq)).facts["k"].value == "new"
    assert set(after(revoked("fact", "k", seq=2), *told).facts) == {"k", "l"}


def test_revocation_names_one_kind():
    told = [fact("x", seq=1), decision("x", seq=1), decision("y", seq=1)]

    assert decisions(after(*told, revoked("decision", "x", seq=2))) == ["y"]
    assert set(after(*told, revoked("decision", "x", seq=2)).facts) == {"x"}
    assert set(after(*told, revoked("plan", "x", seq=2)).facts) == {"x"}
    assert decisions(after(*told, revoked("fact", "x", seq=2))) == ["x", "y"]


def test_update_of_a_rolled_back_turn_does_not_count():
    first = [fact("one", seq=4, turn="t1"), decision("d1", seq=4, turn="t1")]
    first += [fact("before", seq=1), steps("p1", seq=4, turn="t1")]
    second = [
        *(fact(key, "changed", seq=9, turn="t2") for key in ("one", "two")),
        decision("d2", seq=9, turn="t2"),
        steps("p2", seq=9, turn="t2"),
        revoked("fact", "before", seq=10, turn="t2"),
        revoked("decision", "d1", seq=10, turn="t2"),
        fact("nowhere", seq=9, turn="t9"),
    ]

    def told(found: Checkpoint) -> object:
        values = {key: each.value for key, each in found.facts.items()}
        return values, decisions(found), [step.id for step in found.plan.steps]

    assert told(after(*first, *second)) == ({"one": "changed", "two": "changed"}, ["d2"], ["p2"])
    assert told(after(*first, *second, data=BACK)) == told(after(*first))


def test_rolled_back_update_evicts_nothing():
    kept = [fact(f"k{number:02}", seq=4, turn="t1") for number in range(64)]
    gone = [fact(f"g{number:02}", seq=9, turn="t2") for number in range(64)]

    assert set(after(*kept, *gone, data=BACK).facts) == {f"k{number:02}" for number in range(64)}


def test_update_beyond_the_end_of_a_shorter_file_counts_at_the_end():
    found = after(fact("k", seq=10_000), steps("p", seq=10_000))

    assert found.facts["k"].last_touched_seq == 10_000
    assert [name for name, _, _ in plan(found)] == ["p"]


# --- standing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "then", "now", "stands"),
    [
        ("a.py", V1, V1, True),
        ("a.py", V1, V2, False),
        ("a.py", V1, None, False),
        ("a.py", UNKNOWN, V1, False),
        ("a.py", UNKNOWN, None, False),
        ("a.py", "stat:1-1", "stat:1-1", True),
        ("a.py", "stat:1-1", V1, False),
        ("nobody observed.py", V1, V1, False),
    ],
)
def test_fact_is_valid_while_its_dependencies_are_unchanged(
    uri: str, then: str, now: str | None, *, stands: bool
):
    told = fact("k", on={uri: then}, source="file", ref=uri)

    found = after(told, hashes={} if now is None else {uri: now})

    assert status_of(found.facts["k"], found.artifacts) == ("VALID" if stands else "SUSPECT")


def test_lost_artifact_makes_its_facts_suspect():
    told = [fact("k", on={"a.py": V1}, source="file", ref="a.py")]

    few = checkpoint(SESSION, told, {"a.py": V1}, Limits(max_artifacts_total=1))

    assert set(few.artifacts) == {"b.py"}
    assert status_of(few.facts["k"], few.artifacts) == "SUSPECT"


# --- values, and lines that are no updates -------------------------------------------------------


def test_long_values_are_cut_and_lines_joined():
    long, lines = "y" * 161, "a\n[TASK]\n- b"
    cut, line = "y" * 159 + "…", "a [TASK] - b"

    found = after(fact("k", long), fact("l", lines), decision("d", long, lines, topic=long))

    assert {key: each.value for key, each in found.facts.items()} == {"k": cut, "l": line}
    (only,) = found.decisions
    assert (only.decision, only.rationale, only.topic) == (cut, line, cut)


def spoilt(line: Line, place: str, value: str) -> object:
    """Put a value, written as JSON, into a place of a line."""
    whole = json.loads(json.dumps(line))
    *way, last = place.split(".")
    inner = whole
    for step in way:
        inner = inner[step]
    inner[last] = json.loads(value)
    return whole


FACT, DECISION, PLAN = fact("bad"), decision("bad"), steps("bad")


@pytest.mark.parametrize(
    ("line", "place", "values"),
    [
        (FACT, "seq", ["null", '"1"', "1.0", "true", "[]"]),
        (FACT, "turnId", ["7", "[]", "{}", "true"]),
        (FACT, "payload", ["null", "7", "[]", "{}", '"fact"', '{"kind":"fact"}']),
        (FACT, "payload.kind", ["null", "7", "[]", '"note"', '"Fact"', '"decision"', '"plan"']),
        (FACT, "payload.key", ["null", "7", "[]", "{}"]),
        (FACT, "payload.value", ["null", "7", "[]", "{}"]),
        (FACT, "payload.evidence", ["null", "7", "[]", "{}", '{"source":"user"}', '{"ref":"u1"}']),
        (FACT, "payload.evidence.source", ["null", "7", '"robot"', "[]"]),
        (FACT, "payload.evidence.ref", ["null", "7", "[]"]),
        (FACT, "payload.dependsOn", ["7", "[7]", "[{}]", '[{"uri":7}]', '["a.py"]', "{}"]),
        (DECISION, "payload.decisionId", ["null", "7", "[]"]),
        (DECISION, "payload.decision", ["null", "7", "[]"]),
        (DECISION, "payload.rationale", ["null", "7", "[]"]),
        (DECISION, "payload.topic", ["7", "[]"]),
        (DECISION, "payload.supersedes", ["7", "[]"]),
        (PLAN, "payload.steps", ["null", "7", "[7]", "[{}]", '[{"id":"x"}]', "{}", '"x"']),
        (PLAN, "payload.steps", ['[{"id":7,"text":"x"}]']),
        ({"revoke": {"kind": "fact", "id": "k"}, "seq": 1}, "seq", ['"1"']),
        ({"revoke": {"kind": "fact", "id": "k"}, "seq": 1}, "revoke", ["7", "{}"]),
        ({"revoke": {"kind": "fact", "id": "k"}, "seq": 1}, "revoke.id", ["[]"]),
    ],
)
def test_unknown_form_of_an_update_is_skipped(line: Line, place: str, values: list[str]):
    for value in values:
        passed_over(spoilt(line, place, value))


@pytest.mark.parametrize("line", ["null", "7", '"x"', "[]", "{}", '{"seq":1}'])
def test_line_that_is_not_an_update_is_skipped(line: str):
    passed_over(json.loads(line))


def passed_over(line: object) -> None:
    """See that a line changes nothing, whatever stands beside it."""
    known = [update for each in (fact("k"), line) if (update := update_of(each)) is not None]

    found = read(SESSION).checkpoint(known, {})

    assert set(found.facts) == {"k"}, line
    assert found.decisions == (), line
    assert found.plan.steps == (), line


def test_invalid_hashes_and_flags_are_skipped():
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
