"""Laws of packs: they round-trip, hold no place of a machine, and do no harm.

What leaves is made up; hostile packs are sound ones with anything in the place of anything.
"""

import copy
import json
from typing import Any

import orjson
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.records import (
    UNKNOWN_HASH,
    Artifact,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.records import to_bytes as checkpoint_bytes
from codex_checkpoints.core.portable.pack import (
    NoteEvent,
    Pack,
    PackedTurn,
    PackOrigin,
    is_portable,
    places_of,
    to_bytes,
)
from codex_checkpoints.core.portable.pack_export import SessionContents, packed
from codex_checkpoints.core.portable.pack_import import (
    BadPack,
    Import,
    files_of,
    import_in,
    line_of,
    pack_in,
    seed_of,
)
from codex_checkpoints.core.restore.lineage import Cut, Link
from codex_checkpoints.core.restore.markers import Marker, MarkerSet, Pin
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.references import ModeChange
from generated_checkpoints import CHECKPOINTS, places_in

HOME = "/home/ana"
BASE = f"{HOME}/shop"
SOURCE = "01a1f865-0000-7000-8000-000000000001"
ABOVE = "01a1f865-0000-7000-8000-000000000002"
AT = "2026-11-20T10:00:00.000Z"
HASH = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64

TEXTS = st.sampled_from(
    [
        *("use 8080", f"read {BASE}/src/a.py first", f"{HOME}/notes", "file:///home/eve/z"),
        *("/Users/ben/x and C:\\Users\\Ben\\y", "look into /root", "日本 🙂", "x" * 160),
    ]
)
NAMES = st.sampled_from(["port", "db/url", "größe", "a.b", "d1"])
FILES = st.sampled_from(
    ["a.py", "src/b.py", "ü ñ.py", "/etc/hosts", f"{HOME}/.bashrc", "../x", "C:/x", "a\\b"]
)
HASHES = st.sampled_from([None, HASH, "stat:1-1"])
EVIDENCE = st.one_of(
    st.builds(Evidence, st.just("user"), st.sampled_from(["u1", "seq:3"])),
    st.builds(Evidence, st.just("tool_output"), st.just("call_1"), HASHES),
    st.builds(Evidence, st.just("file"), FILES, HASHES),
)
ARTIFACTS = st.lists(
    st.one_of(
        st.builds(Artifact, FILES, st.just("file"), HASHES, st.integers(0, 9)),
        st.builds(Artifact, TEXTS, st.just("command"), st.none(), st.integers(0, 9)),
        st.builds(Artifact, st.just("docs.find/c1"), st.just("tool_output"), HASHES, st.just(3)),
    ),
    max_size=6,
).map(lambda found: {each.uri: each for each in found})
DEPENDENCIES = st.lists(
    st.builds(Dependency, FILES, HASHES), max_size=3, unique_by=lambda each: each.uri
)
FACTS = st.builds(Fact, TEXTS, EVIDENCE, DEPENDENCIES.map(tuple), st.integers(0, 9))
DECISIONS = st.lists(
    st.builds(
        Decision, NAMES, st.none() | TEXTS, TEXTS, TEXTS, st.none() | NAMES, EVIDENCE, st.just(4)
    ),
    max_size=3,
)
STEPS = st.lists(st.builds(Step, NAMES, TEXTS), max_size=3, unique_by=lambda step: step.id)


def _plan(steps: list[Step], evidence: Evidence) -> Plan:
    return Plan(tuple(steps), {step.id: False for step in steps}, evidence)


PLANS = st.builds(_plan, STEPS, EVIDENCE)


SOUND = st.builds(
    Checkpoint,
    st.integers(0, 99),
    st.none() | st.builds(Task, TEXTS, EVIDENCE),
    PLANS,
    DECISIONS.map(tuple),
    ARTIFACTS,
    st.dictionaries(NAMES, FACTS, max_size=3),
    st.just(()),
)


TIMES = st.sampled_from([None, AT, "some day"])
IDS = st.sampled_from(["t1", "t2", "turn-7", "../../y", "turn one", f"{HOME}/t", ""])


def _turns(ids: list[str], began: str | None, ended: str | None, where: str) -> list[PackedTurn]:
    """Return turns as a session has them: numbered in order, the last one open."""
    done = [
        PackedTurn(where, name, number, began, ended, "aborted" if number == 2 else "completed")
        for number, name in enumerate(ids, 1)
    ]
    return [*done, PackedTurn(where, "last", len(done) + 1, began, None, "open")]


TURNS = st.lists(
    st.builds(_turns, st.lists(IDS, max_size=4, unique=True), TIMES, TIMES, st.just(SOURCE)),
    max_size=1,
).map(lambda found: tuple(turn for turns in found for turn in turns))
MODES = st.lists(
    st.builds(ModeChange, st.integers(-1, 120), TEXTS | st.just("plan"), st.none() | IDS),
    max_size=5,
).map(tuple)


def _event(name: str, text: str, uri: str) -> NoteEvent:
    resting = [{"uri": uri, "hash": HASH}]
    evidence = {"source": "file", "ref": uri, "hash": HASH}
    payload = {"kind": "fact", "key": name, "value": text}
    return NoteEvent(3, "t1", AT, payload | {"evidence": evidence, "dependsOn": resting}, None)


def _contents(
    checkpoint: Checkpoint,
    history: list[NoteEvent],
    pins: list[str],
    label: str,
    past: tuple[tuple[PackedTurn, ...], tuple[ModeChange, ...]],
) -> SessionContents:
    marker = Marker("m1", SOURCE, "t1", label, AT, "user", {"a.py": HASH})
    shelf = MarkerSet((marker,), tuple(map(Pin, pins)))
    origin = PackOrigin(SOURCE, label, "paginated", "0.169.0", "gpt-5.5")
    return SessionContents(origin, BASE, checkpoint, tuple(history), shelf, (_LINK,), *past)


_LINK = Link(SOURCE, ABOVE, "fork", Cut(turn_id="t1"), AT)
CONTENTS = st.builds(
    _contents,
    SOUND,
    st.lists(st.builds(_event, NAMES, TEXTS, FILES), max_size=3),
    st.lists(FILES, max_size=3, unique=True),
    TEXTS,
    st.tuples(TURNS, MODES),
)


def read(data: bytes) -> Pack | BadPack:
    try:
        return pack_in(data)
    except BadPack as error:
        return error


def leaves(contents: SessionContents) -> Pack:
    return packed(contents, [HOME])[0]


@given(CONTENTS)
def test_exported_pack_round_trips_without_a_place_of_the_machine(
    contents: SessionContents,
):
    data = to_bytes(leaves(contents))

    assert to_bytes(pack_in(data)) == data
    for place in (HOME, "/home/", "/Users/", "Users\\\\", "/etc/", "/root"):
        assert place not in data.decode()


@given(CONTENTS)
def test_export_is_idempotent(contents: SessionContents):
    once = leaves(contents)
    markers = tuple(Marker(**asdict(each, recurse=False)) for each in once.markers)
    shelf = MarkerSet(markers, once.pins)
    kept = (once.checkpoint, once.notes, shelf, contents.lineage, once.turns, once.modes)

    assert to_bytes(leaves(SessionContents(once.origin, BASE, *kept))) == to_bytes(once)


@given(CONTENTS)
def test_modes_arrive_in_order_and_turns_once_each(contents: SessionContents):
    pack = pack_in(to_bytes(leaves(contents)))

    steps = [each.seq for each in pack.modes]
    assert steps == sorted(steps)
    assert all(0 <= seq <= pack.checkpoint.seq for seq in steps)
    numbers = [turn.number for turn in pack.turns]
    assert numbers == sorted(set(numbers))


@given(CONTENTS, st.dictionaries(FILES, st.sampled_from([HASH, OTHER])))
def test_every_imported_hash_was_seen_here(contents: SessionContents, seen: dict[str, str]):
    pack = leaves(contents)
    seed = seed_of(pack, {uri: seen[uri] for uri in files_of(pack) if uri in seen})

    allowed = {None, UNKNOWN_HASH, *seen.values()}
    assert {each.hash for each in seed.artifacts.values()} <= allowed
    assert all(each.hash == seen.get(uri) for uri, each in seed.artifacts.items())
    for fact in seed.facts.values():
        for each in fact.depends_on:
            assert each.hash in {UNKNOWN_HASH, seen.get(each.uri)}
        assert fact.evidence.hash in {None, seen.get(fact.evidence.ref)}


@given(CONTENTS)
def test_record_of_an_import_round_trips(contents: SessionContents):
    pack = leaves(contents)
    windows = Windows(None, "w1", "w2")
    made = Import("o1", ABOVE, SOURCE, AT, HASH, windows, seed_of(pack, {}), pack)

    assert import_in(orjson.loads(orjson.dumps(line_of(made)))) == made


NUMBERS = st.booleans() | st.integers() | st.floats(allow_nan=False)
STRANGE = st.sampled_from(["../x", "/etc/passwd", "\u202e", "x" * 2000, "sha256:x", "file"])
ANYTHING = st.recursive(
    st.none() | NUMBERS | st.text(max_size=8) | STRANGE,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(CONTENTS, st.data())
def test_any_pack_is_read_or_refused(contents: SessionContents, data: st.DataObject):
    told: Any = copy.deepcopy(orjson.loads(to_bytes(leaves(contents))))
    for _ in range(data.draw(st.integers(1, 3))):
        parent, key = data.draw(st.sampled_from(places_in(told)))
        parent[key] = data.draw(ANYTHING)
    pack = read(json.dumps(told).encode())
    if isinstance(pack, BadPack):
        assert pack.code in {"invalid_payload", "limit_exceeded", "policy_text"}
        return

    assert all(map(is_portable, (*files_of(pack), *(pin.uri for pin in pack.pins))))
    seed = seed_of(pack, dict.fromkeys(files_of(pack), OTHER))
    assert HASH not in checkpoint_bytes(seed).decode()


@given(st.binary(max_size=200))
def test_bytes_that_are_not_a_pack_are_refused(data: bytes):
    found = read(data)

    assert isinstance(found, BadPack)
    assert found.problems


@given(CHECKPOINTS)
def test_any_checkpoint_makes_a_pack(checkpoint: Checkpoint):
    origin = PackOrigin(SOURCE, None, "legacy", None, None)

    assert to_bytes(leaves(SessionContents(origin, None, checkpoint, (), MarkerSet(), ())))


@given(st.text(max_size=40), st.text(max_size=20))
def test_removing_places_is_idempotent(front: str, rest: str):
    places = places_of(BASE, [HOME])
    text = f"{front}{BASE}/{rest} {HOME}"

    once = places.without(text)

    assert places.without(once) == once
    assert BASE not in once
