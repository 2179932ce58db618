"""Laws of a memory: it is a function of the records and the accepted updates."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.anchors import Newest
from codex_checkpoints.core.checkpoint.memory import replay as remembered
from codex_checkpoints.core.checkpoint.note_rules import Accepted, SessionFacts, check
from codex_checkpoints.core.checkpoint.records import Limits, status_of, to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from derived_state import accepted, read, read_on, read_with
from generated_rollouts import NEW_CALLS, sessions
from updates import V1, V2, Line

HASHES: list[dict[str, str]] = [
    {},
    {"a.py": V1},
    {"a.py": V2, "b.py": V1},
    {"a.py": V1, "b.py": V2, "d/c.py": V1},
]
FACT_KEYS, DECISIONS = ["port", "é", "z"], ["d1", "d2", "d3"]
FILES = ["a.py", "b.py", "d/c.py"]
SOURCES = {"user": ["task", "u1", "u2"], "file": ["a.py", "b.py"], "tool_output": ["c1", "c2"]}
REFS = st.sampled_from(
    [{"source": source, "ref": ref} for source, refs in SOURCES.items() for ref in refs]
)
DEPENDENCIES = st.lists(st.sampled_from(FILES), max_size=3).map(
    lambda uris: [{"uri": uri} for uri in uris]
)
PAYLOADS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("fact"),
            "key": st.sampled_from(FACT_KEYS),
            "value": st.text("ab é\n", min_size=1),
        }
        | {"evidence": REFS, "dependsOn": DEPENDENCIES}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("decision"), "decisionId": st.sampled_from(DECISIONS)}
        | {
            "decision": st.just("Use SQLite"),
            "rationale": st.just("it is there"),
            "evidence": REFS,
        },
        optional={"supersedes": st.sampled_from(DECISIONS)},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("plan"), "evidence": REFS}
        | {
            "steps": st.just([{"id": "s1", "text": "look"}]),
            "done": st.sampled_from([{}, {"s1": True}]),
        }
    ),
)
REVOKED = st.sampled_from(
    [
        {"kind": kind, "id": name}
        for kind, name in (("fact", "port"), ("fact", "z"), ("decision", "d1"))
    ]
)
MOMENTS = st.lists(
    st.tuples(st.floats(0, 1), PAYLOADS | REVOKED, st.sampled_from(HASHES), st.booleans()),
    max_size=8,
)


def known(replay: Replay, lines: list[Line], hashes: dict[str, str]) -> SessionFacts:
    """Say what the host knows; every call that a payload may name had an outcome."""
    state, task, updates = replay.state, replay.task(), accepted(lines)
    memory = remembered(updates, state.turns.counts, Limits())
    return SessionFacts(
        task_ref=None if task is None else task.evidence.ref,
        user_refs=frozenset(ref for turn in state.turns.counting() for ref in turn.messages),
        call_ids=frozenset({"c1", "c2"}),
        artifacts=replay.checkpoint(updates, hashes).artifacts,
        decisions=frozenset(each.decision_id for each in memory.decisions),
        used_decision_ids=frozenset(name for kind, name in memory.origins if kind == "decision"),
    )


def at(replay: Replay) -> Line:
    turn = replay.state.turns.at(None)
    return {"seq": replay.seq, "turnId": None if turn is None else turn.turn_id, "at": ""}


def taken(
    replay: Replay, payload: dict[str, Any], lines: list[Line], hashes: dict[str, str]
) -> list[Line]:
    """Return the line that comes of a payload or a revocation, none where it is refused."""
    if payload.keys() == {"kind", "id"}:
        return [{"revoke": payload} | at(replay)]
    verdict = check(orjson.dumps(payload), known(replay, lines, hashes))
    if not isinstance(verdict, Accepted):
        return []
    line = {"updateId": "x", "payload": verdict.payload, "hashes": verdict.hashes} | at(replay)
    return [orjson.loads(orjson.dumps(line))]


def restarted(replay: Replay) -> Replay:
    """Save and take up again, as another process would; None is saved while it must not be."""
    saved = replay.save()
    loaded = None if saved is None else Replay.load(orjson.loads(orjson.dumps(saved)))
    return replay if saved is None else loaded or Replay()


@given(data=sessions(), moments=MOMENTS, hashes=st.sampled_from(HASHES))
def test_rebuild_equals_following_with_updates_and_restarts(
    data: bytes,
    moments: list[tuple[float, dict[str, Any], dict[str, str], bool]],
    hashes: dict[str, str],
):
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == 0x0A)]
    lines: list[Line] = []
    replay, begun = Replay(), 0
    for place, payload, seen, restarts in sorted(moments, key=lambda each: each[0]):
        end = ends[int(place * (len(ends) - 1))]
        replay = read_on(replay, data[begun:end])
        begun = end
        lines += taken(replay, payload, lines, seen)
        rebuilt = read(data[:end]).checkpoint(accepted(lines), seen)
        assert to_bytes(replay.checkpoint(accepted(lines), seen)) == to_bytes(rebuilt)
        if restarts:
            replay = restarted(replay)
    replay = read_on(replay, data[begun:])

    followed = replay.checkpoint(accepted(lines), hashes)
    assert to_bytes(followed) == to_bytes(read(data).checkpoint(accepted(lines), hashes))
    for fact in followed.facts.values():
        sure = all(hashes.get(each.uri) == each.hash is not None for each in fact.depends_on)
        assert (status_of(fact, followed.artifacts) == "VALID") <= sure


@given(data=sessions(NEW_CALLS), place=st.floats(0, 1), limit=st.integers(1, 4))
def test_anchors_at_the_end_of_a_session_are_found_without_the_rest(
    data: bytes, place: float, limit: int
):
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == 0x0A)]
    begin, end = ends[int(place * (len(ends) - 1))], ends[-1]
    whole = read(data[:end])
    everything = Newest(limit)
    read_with(everything, data[:end])

    near = Newest.near_the_end(whole, data[begin:end], whole.state.turns, limit)

    assert not near.is_enough or near.anchors() == everything.anchors()
