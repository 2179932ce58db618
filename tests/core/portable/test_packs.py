"""Packs by example: the parts dropped for size, and the places that are removed."""

from typing import Any

import orjson
import pytest
from attrs import evolve

from codex_checkpoints.core.checkpoint.memory import Update
from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    ArtifactKind,
    Checkpoint,
    Dependency,
    Evidence,
    Fact,
    Plan,
)
from codex_checkpoints.core.portable.pack import (
    LISTS,
    MAX_BYTES,
    NoteEvent,
    Pack,
    PackedTurn,
    PackOrigin,
    RevokedNote,
    places_of,
    stays,
    to_bytes,
)
from codex_checkpoints.core.portable.pack_export import (
    Omitted,
    SessionContents,
    note_events,
    packed,
)
from codex_checkpoints.core.portable.pack_import import BadPack, import_in, pack_in
from codex_checkpoints.core.restore.lineage import Cut, Link
from codex_checkpoints.core.restore.markers import Marker, MarkerSet
from codex_checkpoints.core.restore.references import ModeChange

SOURCE = "01a1f865-0000-7000-8000-000000000001"
AT = "2026-11-20T10:00:00.000Z"
EMPTY = Checkpoint(3, None, Plan(), (), {}, {}, ())
ORIGIN = PackOrigin(SOURCE, None, "paginated", None, None)


def contents(
    history: tuple[NoteEvent, ...] = (), shelf: MarkerSet | None = None
) -> SessionContents:
    return SessionContents(ORIGIN, "/srv/shop", EMPTY, history, shelf or MarkerSet(), ())


def fact(key: str, value: str = "8080") -> dict[str, object]:
    evidence = {"source": "user", "ref": "task"}
    return {"kind": "fact", "key": key, "value": value, "evidence": evidence}


def problem(pack: Pack) -> BadPack:
    with pytest.raises(BadPack) as met:
        pack_in(to_bytes(pack))
    return met.value


def test_history_of_notes_has_accepted_and_revoked_ones():
    told = [
        Update(1, "t1", fact("port"), {}, at=AT),
        Update(2, None, None, {}, ("fact", "port"), "yesterday"),
        Update(2, None, None, {}, ("wish", "port"), AT),
    ]

    pack, left = packed(contents(note_events(told)), [])

    assert pack.notes == (
        NoteEvent(1, "t1", AT, fact("port"), None),
        NoteEvent(2, None, None, None, RevokedNote("fact", "port")),
    )
    assert left == Omitted()
    assert pack_in(to_bytes(pack)) == pack


def test_newest_of_too_many_notes_and_markers_are_kept():
    history = tuple(NoteEvent(n, None, AT, fact(f"k{n}"), None) for n in range(LISTS["notes"] + 5))
    markers = tuple(Marker(f"m{n}", SOURCE, "t1", "x", AT) for n in range(260))
    strange = Marker("m9", SOURCE, "t1", "x", "some day")

    pack, left = packed(contents(history, MarkerSet((*markers, strange))), [])

    assert [pack.notes[0].seq, pack.notes[-1].seq] == [5, LISTS["notes"] + 4]
    assert pack.markers[-1].checkpoint_id == "m259"
    assert left == Omitted(older_notes=5, older_markers=5)


def played(number: int, name: str | None = None) -> PackedTurn:
    return PackedTurn(SOURCE, name or f"t{number}", number, AT, AT, "completed")


def test_newest_of_too_many_turns_and_modes_are_kept():
    turns = tuple(map(played, range(1, LISTS["turns"] + 6)))
    modes = tuple(ModeChange(n, f"m{n}", None) for n in range(LISTS["modes"] + 5))
    checkpoint = evolve(EMPTY, seq=LISTS["modes"] + 1)

    pack, left = packed(evolve(contents(), checkpoint=checkpoint, turns=turns, modes=modes), [])

    assert [pack.turns[0].number, pack.turns[-1].number] == [6, LISTS["turns"] + 5]
    # What came behind the checkpoint is none of it.
    assert [pack.modes[0].seq, pack.modes[-1].seq] == [2, LISTS["modes"] + 1]
    assert left == Omitted(older_turns=5)
    assert pack_in(to_bytes(pack)) == pack


def test_turns_of_several_sessions_are_numbered_in_each():
    above = evolve(played(1), session_id="above")
    turns = (above, evolve(above, turn_id="t2", number=2), played(1))

    pack, left = packed(evolve(contents(), turns=turns), [])

    assert (pack.turns, left) == (turns, Omitted())
    assert pack_in(to_bytes(pack)) == pack


def test_notes_and_turns_over_the_size_limit_are_left_out(monkeypatch: pytest.MonkeyPatch):
    most = MAX_BYTES // 8  # each text is looked at for orders, which takes its time
    monkeypatch.setattr("codex_checkpoints.core.portable.pack_export.MAX_BYTES", most)
    uris = [f"{n}-".ljust(1000, "x") for n in range(240)]
    artifacts = {uri: Artifact(uri, "tool_output", None, 1) for uri in uris}
    turns = tuple(map(played, range(1, LISTS["turns"] + 1)))
    plan = [{"id": f"s{n}" + "x" * 120, "text": "日" * 160} for n in range(32)]
    payload = {"kind": "plan", "steps": plan, "evidence": {"source": "user", "ref": "task"}}
    history = tuple(NoteEvent(n, None, AT, payload, None) for n in range(50))

    large = evolve(contents(), checkpoint=evolve(EMPTY, artifacts=artifacts), turns=turns)
    pack, left = packed(large, [])
    assert len(to_bytes(evolve(pack, turns=()))) < most
    assert len(to_bytes(pack)) <= most
    assert pack.turns == turns[left.older_turns :]
    assert 0 < left.older_turns < LISTS["turns"]

    pack, left = packed(contents(history), [])
    assert len(to_bytes(pack)) <= most
    assert 0 < len(pack.notes) == len(history) - left.older_notes


def test_record_with_an_id_that_no_pack_may_hold_is_left_out():
    known = evolve(
        contents((NoteEvent(3, "turn one", AT, fact("port"), None),)),
        turns=(played(1, "turn one"), played(2)),
        modes=(ModeChange(1, "plan", "turn one"), ModeChange(0, "default", None)),
        marker_set=MarkerSet((Marker("m1", SOURCE, "../../y", "odd", AT),)),
        lineage=(
            Link(SOURCE, "above", "fork", Cut(turn_id="turn one"), AT),
            Link("above", "../../x", "fork", Cut(), AT),
        ),
    )

    pack, left = packed(known, [])

    assert (pack.markers, left.older_markers) == ((), 1)
    assert (pack.turns, left.older_turns) == ((played(2),), 1)
    assert pack.modes == (ModeChange(1, "plan", None),)
    assert [each.turn_id for each in pack.notes] == [None]
    assert [(each.parent, each.turn_id) for each in pack.lineage] == [("above", None)]
    assert pack_in(to_bytes(pack)) == pack


def test_two_commands_that_differ_only_in_places_are_one():
    names = ["make -C /srv/shop", "make -C ."]
    artifacts = {uri: Artifact(uri, "command", None, n) for n, uri in enumerate(names)}
    checkpoint = evolve(EMPTY, artifacts=artifacts, recent_artifacts=(*reversed(names),))

    found = packed(evolve(contents(), checkpoint=checkpoint), [])[0].checkpoint

    assert found.artifacts == {"make -C .": Artifact("make -C .", "command", None, 1)}
    assert found.recent_artifacts == ("make -C .",)


def test_pack_has_the_recent_artifacts_of_the_checkpoint_without_files_outside():
    names = ["make -C /srv/shop", "a.py", "/etc/passwd", "ls"]
    kinds: dict[str, ArtifactKind] = {"a.py": "file", "/etc/passwd": "file"}
    artifacts = {
        uri: Artifact(uri, kinds.get(uri, "command"), None, n) for n, uri in enumerate(names)
    }
    recent = ("/etc/passwd", "a.py", "make -C /srv/shop")  # a look, as `ls`, is not among them
    checkpoint = evolve(EMPTY, artifacts=artifacts, recent_artifacts=recent)

    found = packed(evolve(contents(), checkpoint=checkpoint), [])[0].checkpoint

    assert found.recent_artifacts == ("a.py", "make -C .")
    assert found.artifacts.keys() == {"a.py", "make -C .", "ls"}


@pytest.mark.parametrize(
    ("base", "home", "text", "told"),
    [
        ("/srv/shop", "/home/ana", "cd /srv/shop && ls /srv/shop2", "cd . && ls /srv/shop2"),
        ("/app", "/home/ana", "see src/app and /app/x", "see src/app and ./x"),
        ("/", "/", "see /etc", "see /etc"),
        (None, "/home/ana", "/home/ana/x /home/ben/y", "~/x ~/y"),
        ("C:\\Users\\Ana Maria\\shop", "C:\\Users\\Ana Maria", "c:/users/ana maria/shop/a", "./a"),
        ("C:\\", "C:\\Users\\Ana", "C:\\x D:\\\\Users\\\\Ben\\\\y", "C:\\x ~\\\\y"),
        (None, "/var/ana", "look into /var/ana, not /var/anas", "look into ~, not /var/anas"),
        (None, "/home/ana", "GET /users/7", "GET /users/7"),
        (None, "/home/ana", "/home/./ben/x /home//ben", "~/x ~"),
        (None, "/home/ana", "\\\\pc\\Users\\ben\\x \\Users\\ben", "~\\x ~"),
        (None, "/home/ana", "file%3A%2F%2F%2Fhome%2Fben", "file%3A%2F%2F~"),
        (None, "/home/ana", "8080\U000e0041\U000e0101", "8080"),
    ],
)
def test_places_are_removed_from_texts(base: str | None, home: str, text: str, told: str):
    assert places_of(base, [home]).without(text) == told


@pytest.mark.parametrize(
    ("uri", "base", "stay"),
    [
        ("a.py", "/srv/shop", False),
        ("a.py", None, False),
        ("/etc/hosts", "/srv/shop", True),
        ("home/ana/x", "/", True),
        ("ana/x", "/home", True),
        ("shop/x", "/home/ana", False),
        ("ghp_" + "a1B2" * 9, "/srv/shop", True),
        ("src/home/index.tsx", "/srv/shop", False),
        ("app/Users/list.php", "/home/ana/shop", False),
        ("backup/data/ana/x", "/srv/shop", True),
        ("ana/x", "/data", True),
        ("a\U000e0041", "/srv/shop", True),
    ],
)
def test_file_without_a_portable_name_or_with_a_persons_name_is_left_out(
    uri: str, base: str | None, stay: bool
):
    assert stays(uri, base, places_of(base, ["/home/ana", "/data/ana"])) is stay


def _with(**more: Any) -> Pack:  # noqa: ANN401 - fields of a checkpoint
    return Pack(ORIGIN, evolve(EMPTY, **more))


def test_pack_with_an_invalid_name_is_refused():
    long = "x" * 1025
    artifacts = {long: Artifact(long, "tool_output", None, 1)}
    assert problem(_with(artifacts=artifacts)).code == "limit_exceeded"
    blank = {" ": Artifact(" ", "command", None, 1)}
    assert problem(_with(artifacts=blank)).problems == ("an artifact has no name",)
    marker = packed(contents(), [])[0]
    assert problem(evolve(marker, origin=evolve(ORIGIN, cli_version="a b"))).problems == (
        "origin.cliVersion: not a version",
    )


def test_note_is_either_accepted_or_revoked():
    told: dict[str, Any] = orjson.loads(to_bytes(Pack(ORIGIN, EMPTY)))
    told["notes"] = [{"seq": 1, "turnId": None, "at": None, "payload": fact("a"), "revoked": None}]
    with pytest.raises(BadPack):
        pack_in(orjson.dumps(told))


HASH = "sha256:" + "a" * 64


def _resting(value: str = "8080", known: str = HASH) -> Fact:
    return Fact(value, Evidence("file", "a.py", HASH), (Dependency("a.py", known),), 1)


@pytest.mark.parametrize("name", ["payload", "done", "facts", "hash", "ref", "value"])
def test_name_of_a_fact_step_or_file_never_affects_its_treatment(name: str):
    facts = {name: _resting()}
    seen = {name: Artifact(name, "file", HASH, last_observed_seq=1)}
    known = evolve(contents(), checkpoint=evolve(EMPTY, facts=facts, artifacts=seen))
    steps = {"steps": [{"id": name, "text": "look"}], "done": {name: True}}
    noted = NoteEvent(1, "t1", AT, {"kind": "plan", **steps}, None)

    pack, _ = packed(evolve(known, history=(noted,)), [])

    assert (pack.checkpoint.facts, pack.checkpoint.artifacts) == (facts, seen)
    assert pack.notes == (noted,)
    assert problem(_with(facts={name: _resting("x" * 161)})).code == "limit_exceeded"
    assert problem(_with(facts={name: _resting(known="md5:1")})).problems == (
        "checkpoint.facts[0].dependsOn[0].hash: not a hash",
    )
    wrong = {name: Artifact(name, "file", "md5:1", last_observed_seq=1)}
    assert problem(_with(artifacts=wrong)).problems == ("checkpoint.artifacts[0].hash: not a hash",)


def test_unknown_parts_of_a_note_are_exported_without_places_and_secrets():
    secret = "ghp" + "_" + "a1B2" * 9
    more: dict[str, object] = {"by": "/home/ana/x", "of": [secret, {"at /home/eve": secret}]}
    noted = NoteEvent(1, "t1", AT, fact("port") | more, None)

    pack, _ = packed(contents((noted,)), ["/home/ana"])

    told = to_bytes(pack).decode()
    assert not any(each in told for each in (secret, "ana", "eve"))


@pytest.mark.parametrize("line", [None, 7, {}, {"pack": {}}])
def test_invalid_record_of_an_import_is_ignored(line: object):
    assert import_in(line) is None
