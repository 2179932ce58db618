"""Laws of every session: each law is a sentence, its cases are generated."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.agents.codex import reader
from codex_checkpoints.core.checkpoint.records import (
    MAX_URI_CHARS,
    BadCheckpoint,
    Caps,
    Checkpoint,
    Limits,
    from_bytes,
    status_of,
    to_bytes,
)
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.view import view_v1
from derived_state import accepted, read, read_on
from generated_checkpoints import CAPS, CHECKPOINTS, LIMITS, places_in
from generated_rollouts import (
    SPELLINGS,
    TEXTS,
    Spelling,
    damaged,
    done,
    hostile_lines,
    said,
    sessions,
)
from updates import V1, V2, decision, fact, revoked, steps

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"

HASHES = {"a.py": V1, "b.py": V2, "d/c.py": V1}
SEEN = {(uri, seq): V1 for uri in ("a.py", "b.py", "d/c.py", "new.py") for seq in range(0, 40, 2)}
UPDATES = accepted(
    [
        fact("early"),
        fact("of.a", on={"a.py": V1}, seq=4, turn="t1", source="file", ref="a.py"),
        fact("of.b", on={"a.py": V1, "b.py": V1}, seq=6, turn="t2", source="file", ref="b.py"),
        decision("d1", seq=3, turn="t1"),
        decision("d2", supersedes="d1", seq=7, turn="t2"),
        steps("p1", "p2", done={"p1": True}, seq=8, turn="t2"),
        revoked("fact", "of.a", seq=9, turn="t3"),
    ]
)


def seen_in(checkpoint: Checkpoint) -> dict[str, str]:
    """Return what the session saw of each file, as far as it is known."""
    found = checkpoint.artifacts.values()
    return {each.uri: each.seen_hash for each in found if each.seen_hash is not None}


def examples(share: float) -> settings:
    """Try so many times what the profile says: a long run is longer for every law."""
    return settings(max_examples=round(settings().max_examples * share))


ANY = st.one_of(sessions(), damaged())


def outcome(replay: Replay) -> object:
    """Everything that may be asked of a replay."""
    checkpoint = replay.checkpoint(UPDATES, HASHES, seen=SEEN)
    state = replay.state
    return (
        to_bytes(checkpoint),
        view_v1(checkpoint, Caps()),
        replay.seq,
        [
            (turn.turn_id, turn.opened, turn.ended, turn.ended_seq, turn.aborted, turn.rolled_back)
            for turn in state.turns.turns
        ],
        [tuple(turn.messages) for turn in state.turns.turns],
        state.ends_with_answer,
        (state.base, state.name, state.first_text, state.compactions),
        (state.model, state.window, state.tokens, state.tokens_stale),
        sorted(replay.files()),
    )


# --- reading -------------------------------------------------------------------------------------


@examples(1.5)
@given(data=ANY, places=st.lists(st.floats(0, 1), max_size=5))
def test_state_does_not_depend_on_how_the_bytes_arrive(data: bytes, places: list[float]):
    pieces = [int(place * len(data)) for place in places]

    assert outcome(read(data, pieces=pieces)) == outcome(read(data))


@examples(1.5)
@given(data=ANY, places=st.lists(st.floats(0, 1), max_size=3))
def test_prefix_and_rest_equal_the_whole_even_with_restarts(data: bytes, places: list[float]):
    replay, begun = Replay(), 0
    for place in sorted(places):
        end = max(begun, int(place * len(data)))
        at = begun
        while at < end and (consumed := replay.feed(data[at : min(end, at + 65_536)])):
            at += consumed
        begun = at - replay.pending
        if replay.pending:
            replay.drop_unfinished()
        assert outcome(replay.with_tail(data[begun:end])) == outcome(read(data[:end]))

        loaded = Replay.load(orjson.loads(orjson.dumps(replay.save())))
        assert loaded is not None
        replay = loaded

    assert outcome(read_on(replay, data[begun:])) == outcome(read(data))


@examples(2)
@given(data=sessions(), places=st.lists(st.floats(0, 1), max_size=3))
def test_skipped_lines_change_nothing(data: bytes, places: list[float]):
    """Of long reasoning, or of an output beside an item, nobody wants more than its place.

    A line that breaks off behind the place of its payload is not seen to be broken then.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "PASSED_OVER_FROM", 64)
        passed_over = read(data, pieces=[int(place * len(data)) for place in places])

    assert outcome(passed_over) == outcome(read(data))
    if all(line.endswith(b"}}") for line in data.splitlines()):
        assert passed_over.scale.skipped == read(data).scale.skipped


@examples(0.4)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@given(data=sessions())
def test_another_spelling_of_the_same_lines_gives_the_same_state(spelling: Spelling, data: bytes):
    spelt = spelling(data)

    assert outcome(read(spelt)) == outcome(read(data))


@given(data=sessions())
def test_seen_hash_is_of_the_last_observation_and_shown_if_the_host_can_look(data: bytes):
    replay = read(data)
    found = replay.checkpoint((), HASHES, seen=SEEN)

    proved = seen_in(replay.checkpoint((), HASHES))
    told = {
        each.uri: SEEN[each.uri, each.last_observed_seq]
        for each in found.artifacts.values()
        if each.kind == "file" and (each.uri, each.last_observed_seq) in SEEN
    }
    assert seen_in(found) == {uri: told[uri] for uri in told if uri in HASHES} | proved
    assert seen_in(replay.checkpoint((), {}, seen=SEEN)) == {}
    assert seen_in(replay.checkpoint((), dict.fromkeys(HASHES), seen=SEEN)) == seen_in(found)


@given(data=hostile_lines())
def test_no_line_makes_the_reducer_fail(data: bytes):
    found = read(data)

    assert from_bytes(to_bytes(found.checkpoint((), {}))) == found.checkpoint((), {})
    loaded = Replay.load(orjson.loads(orjson.dumps(found.save())))
    assert loaded is not None
    assert outcome(loaded) == outcome(found)


@given(data=st.binary(max_size=300))
@example(b"")
@example(b"\n")
@example(b"\xef\xbb\xbf")
@example(b"\xef\xbb\xbf\n")
@example(b"\r\n\r\n")
@example(b"{}")
@example(b"[" * 100_000 + b"\n")
@example(b'{"a":' * 100_000 + b"\n")
def test_no_bytes_make_a_reader_fail(data: bytes):
    assert outcome(read(data)) == outcome(read(data, pieces=range(len(data) % 4096)))


# --- the same bytes everywhere -------------------------------------------------------------------

PROGRAM = """
import hashlib, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2] + "/support"]
from codex_checkpoints.core.checkpoint.records import to_bytes
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.agents.codex import reader
from derived_state import story_checkpoint, story_digests
whole = hashlib.sha256()
for story in sorted(path for path in Path(sys.argv[2], "golden").iterdir() if path.is_dir()):
    checkpoint = story_checkpoint(story)
    whole.update(to_bytes(checkpoint) + view_v1(checkpoint, Caps()).encode())
whole.update(story_digests(Path(sys.argv[2], "golden")))
print(whole.hexdigest())
"""


@pytest.mark.parametrize(
    "surrounding",
    [
        {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC", "PYTHONUTF8": "0"},
        {"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
        {"PYTHONHASHSEED": "random", "LC_ALL": "de_DE.ISO-8859-1", "TZ": "America/St_Johns"},
    ],
)
def test_same_rollout_gives_the_same_bytes_in_another_process(
    tmp_path: Path, surrounding: dict[str, str]
):
    expected = hashlib.sha256()
    for story in sorted(path for path in GOLDEN.iterdir() if path.is_dir()):
        expected.update((story / "checkpoint.json").read_bytes())
        expected.update((story / "view.txt").read_bytes())
    expected.update((GOLDEN / "digests.txt").read_bytes())

    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / "server"), str(ROOT / "tests")],
        cwd=tmp_path,
        env={**os.environ, **surrounding},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.stdout.strip() == expected.hexdigest(), run.stderr


# --- bounds --------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "B", "é", "z", "k.1", "k.2"])
MANY = st.lists(
    st.one_of(
        st.builds(fact, KEYS, TEXTS, seq=st.integers(0, 30)),
        st.builds(decision, KEYS, TEXTS, TEXTS, topic=TEXTS, seq=st.integers(0, 30)),
        st.lists(KEYS, unique=True).map(lambda names: steps(*names, seq=20)),
    ),
    max_size=12,
)


@given(data=sessions(), updates=MANY, limits=LIMITS)
def test_checkpoint_never_exceeds_its_caps(
    data: bytes, updates: list[Mapping[str, object]], limits: Limits
):
    checkpoint = read(data).checkpoint(accepted(updates), HASHES, limits)

    assert len(checkpoint.facts) <= limits.max_facts_total
    assert len(checkpoint.decisions) <= limits.max_decisions_total
    assert len(checkpoint.plan.steps) <= limits.max_plan_steps_total
    assert len(checkpoint.recent_artifacts) <= limits.max_recent_artifacts
    assert len(checkpoint.artifacts) <= limits.max_artifacts_total
    assert set(checkpoint.recent_artifacts) <= set(checkpoint.artifacts)
    assert set(checkpoint.plan.done) == {step.id for step in checkpoint.plan.steps}
    values = [
        *(text for each in checkpoint.facts.values() for text in (each.value,)),
        *(text for each in checkpoint.decisions for text in (each.decision, each.rationale)),
        *(each.topic or "" for each in checkpoint.decisions),
    ]
    assert all(len(text) <= limits.max_value_chars for text in values)
    assert all(len(uri) <= MAX_URI_CHARS for uri in checkpoint.artifacts)


@given(checkpoint=CHECKPOINTS, caps=CAPS)
def test_view_never_exceeds_its_caps(checkpoint: Checkpoint, caps: Caps):
    view = view_v1(checkpoint, caps)

    lines = view.splitlines()
    assert view.endswith("\n")
    assert [line for line in lines if line.startswith("[")] == [
        *("[SESSION_CHECKPOINT v1]", "[TASK]", "[PLAN]", "[RECENT_ARTIFACTS]", "[DECISIONS]"),
        *("[FACTS_VALID]", "[FACTS_SUSPECT]"),
    ]
    most = sum(caps.as_json().values()) - caps.max_value_chars + 1
    records = [line for line in lines if line.startswith("- ")]
    assert len(records) <= most
    assert len(lines) == 1 + 6 * 2 + len(records)
    # A line holds two values at most, and names that the host made or checked.
    assert all(line.count("ß") <= 2 * min(caps.max_value_chars, 160) for line in records)


# --- bytes ---------------------------------------------------------------------------------------


@given(checkpoint=CHECKPOINTS)
def test_canonical_bytes_read_back_to_the_same_record(checkpoint: Checkpoint):
    data = to_bytes(checkpoint)

    assert from_bytes(data) == checkpoint
    assert view_v1(from_bytes(data), Caps()) == view_v1(checkpoint, Caps())
    again = json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":"))
    assert data == again.encode() + b"\n"


@examples(1.5)
@given(data=st.data())
def test_invalid_checkpoint_is_refused_without_other_effects(data: st.DataObject):
    known = json.loads(to_bytes(data.draw(CHECKPOINTS)))
    parent, key = data.draw(st.sampled_from(places_in(known)))
    parent[key] = data.draw(
        st.sampled_from([None, True, 1.5, -7, "", "ab", [], ["ab"], {}, {"a": 1}, [[1, 2]]])
    )
    spoilt = json.dumps(known).encode()

    try:
        again = from_bytes(spoilt)
    except BadCheckpoint:
        return
    assert to_bytes(from_bytes(to_bytes(again))) == to_bytes(again)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{}", b"[]", b"null", b"7", b"\xff"),
        *(b'{"schemaVersion":1}', b'{"schemaVersion":2,"seq":1}'),
    ],
)
def test_other_bytes_are_not_a_checkpoint(data: bytes):
    with pytest.raises(BadCheckpoint):
        from_bytes(data)


# --- facts and turns -----------------------------------------------------------------------------


@given(data=sessions(), place=st.integers(0, 100), now=st.sampled_from([V2, None, "stat:2-1"]))
def test_changed_or_unknown_hash_makes_facts_suspect_and_the_old_one_valid_again(
    data: bytes, place: int, now: str | None
):
    replay = read(data)
    files = sorted(replay.files())
    if not files:
        return
    uri = files[place % len(files)]
    then = dict.fromkeys(files, V1)
    updates = accepted(
        [
            fact("on", on={uri: V1}, source="file", ref=uri),
            fact("all", on=dict.fromkeys(files[:16], V1) | {uri: V1}, source="file", ref=uri),
            fact("off"),
        ]
    )
    changed = {each: value for each, value in (then | {uri: now}).items() if value is not None}

    before, after, again = (replay.checkpoint(updates, hashes) for hashes in (then, changed, then))

    assert standing(before) == {"on": "VALID", "all": "VALID", "off": "VALID"}
    assert standing(after) == {"on": "SUSPECT", "all": "SUSPECT", "off": "VALID"}
    assert to_bytes(again) == to_bytes(before)


def standing(checkpoint: Checkpoint) -> dict[str, str]:
    """Tell for each fact whether it stands."""
    return {key: status_of(each, checkpoint.artifacts) for key, each in checkpoint.facts.items()}


SPOKEN = st.text("abc é\n", min_size=1, max_size=9).filter(str.strip)
ACTS = st.lists(st.one_of(done(st.none()), said(st.none())), max_size=4)
TURNS = st.lists(st.tuples(SPOKEN, ACTS), max_size=4)


@given(kept=TURNS, undone=TURNS, form=st.sampled_from(["paginated", "legacy"]))
def test_rollback_removes_everything_of_its_turns_except_observations(
    kept: list[tuple[str, list[r.Step]]], undone: list[tuple[str, list[r.Step]]], form: r.Form
):
    def written(turns: list[tuple[str, list[r.Step]]], first: int) -> list[r.Step]:
        return [
            r.turn(r.user(text, ref=f"m{number}"), *acts, name=f"t{number}")
            for number, (text, acts) in enumerate(turns, first)
        ]

    before = [r.session(form), *written(kept, 1)]
    after = [*before, *written(undone, len(kept) + 1), r.rollback(len(undone))]
    updates = accepted(
        fact(f"f{number}", on={"a.py": V1}, seq=number, turn=f"t{number}")
        for number in range(1, len(kept) + len(undone) + 1)
    )

    expected = read(r.rollout(*before)).checkpoint(updates, {})
    found = read(r.rollout(*after)).checkpoint(updates, {})

    assert found.task == expected.task
    assert found.plan == expected.plan
    assert found.facts == expected.facts
    assert set(expected.artifacts) <= set(found.artifacts)
    assert set(found.facts) == {f"f{number}" for number in range(1, len(kept) + 1)}
