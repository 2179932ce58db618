"""Notes through the real doors: accepted, refused, listed and revoked."""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.checkpoint.anchors import Note
from codex_checkpoints.core.checkpoint.note_rules import MAX_PAYLOAD_BYTES
from codex_checkpoints.service.notes import Applied, Evicted, Notes
from codex_checkpoints.service.sessions.session_watcher import Changed, SessionWatcher
from homes import WAIT, Home, go_on, refusal, snapshot, thread
from peer import Peer
from rollouts import (
    Form,
    Step,
    based_on,
    call,
    mcp,
    patch,
    plan,
    rollback,
    rollout,
    session,
    shell,
    started,
    turn,
    user,
)

Json = dict[str, Any]

AT = "2026-11-21T09:00:00.000Z"
TASK = {"source": "user", "ref": "task"}
KEY = "ghp" + "_" + "a1B2" * 9
FORMS: tuple[Form, ...] = ("paginated", "legacy")
LAST = 16
"""The number of the last record of the session that most tests begin with."""

IN_A = {"source": "file", "ref": "a.py"}


def on(*uris: str) -> list[Json]:
    return [{"uri": uri} for uri in uris]


def fact(key: str = "port", value: str = "8080", **more: object) -> Json:
    return {"kind": "fact", "key": key, "value": value, "evidence": TASK} | more


def by_call(ref: str) -> Json:
    return fact(evidence={"source": "tool_output", "ref": ref}, dependsOn=on("a.py"))


def decision(name: str = "d1", **more: object) -> Json:
    said = {"kind": "decision", "decisionId": name, "decision": "Use SQLite"}
    return said | {"rationale": "it is there", "evidence": TASK} | more


def a_plan(*names: str, **more: object) -> Json:
    steps = [{"id": name, "text": f"do {name}"} for name in names]
    return {"kind": "plan", "steps": steps, "evidence": TASK} | more


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Hold one session that has read one file, written another and run the tests."""
    return a_home(tmp_path)


def a_home(root: Path) -> Home:
    home = Home(root)
    (home.user / "shop").mkdir()
    (home.user / "shop/a.py").write_text("a = 1\n")
    (home.user / "shop/b.py").write_text("b = 1\n")
    write(home, turn(user("Fix the login"), *work()))
    return home


def work() -> tuple[Step, ...]:
    return (
        shell("cat a.py", "a = 1\n", reads=["a.py"], call="read"),
        patch(add="b.py", content="b = 1\n", call="edit"),
        shell("make test", "1 failed", exit_code=1, status="failed", call="test"),
        mcp("web", "search", "found", call="search"),
    )


def write(home: Home, *steps: Step, form: Form = "paginated", number: int = 1) -> None:
    head = session(form, thread=thread(number), cwd=str(home.user / "shop"))
    home.put(rollout(head, *steps), number)


@contextmanager
def remembering(home: Home) -> Generator[Notes]:
    """Open the service with a clock that stands still and ids that count."""
    ids = iter(range(1000))
    with home.house() as house:
        yield Notes(house.sessions, lambda: AT, lambda: f"id-{next(ids)}")


def data_of(payload: object) -> bytes:
    return json.dumps(payload).encode()


def apply(home: Home, payload: object, number: int = 1) -> Applied:
    with remembering(home) as notes:
        return notes.apply(thread(number), data_of(payload))


def revoke(home: Home, name: str) -> str:
    with remembering(home) as notes:
        return notes.revoke(thread(1), name).kind


def grow(home: Home, *steps: Step) -> None:
    go_on(home.path(), thread(1), *steps)


def refused(home: Home, payload: object, number: int = 1) -> str:
    """Return the code of the refusal; nothing on the disk may have changed by it."""
    with remembering(home) as notes:
        before = kept(home)
        met = refusal(lambda: notes.apply(thread(number), data_of(payload)))
        assert kept(home) == before
    assert {"rule", "hint"} <= met.facts.keys()
    return met.code


def listed(home: Home) -> list[Note]:
    with remembering(home) as notes:
        return list(notes.notes(thread(1)))


def kept(home: Home) -> dict[str, str]:
    """Return what must not change by a refusal; the index is a cache."""
    return snapshot(home.root / "sessions", home.state / "sessions", home.user)


def lines(home: Home) -> list[Json]:
    path = home.checkpoint().with_name("updates.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


# --- what is accepted ----------------------------------------------------------------------------


def test_accepted_fact_is_a_recorded_line_and_in_the_stored_checkpoint(home: Home):
    applied = apply(home, fact(evidence=IN_A, dependsOn=[{"uri": "a.py"}, {"uri": "b.py"}]))

    assert applied == Applied(
        accepted=True,
        dry_run=False,
        session_id=thread(1),
        update_id="id-0",
        seq=LAST,
        turn_id="t1",
        kind="fact",
        id="port",
        shortened=(),
    )
    seen = {uri: each["hash"] for uri, each in home.stored()["artifacts"].items() if "hash" in each}
    assert lines(home) == [
        {
            "updateId": "id-0",
            "seq": LAST,
            "turnId": "t1",
            "at": AT,
            "payload": fact(evidence=IN_A, dependsOn=on("a.py", "b.py")),
            "hashes": {"a.py": seen["a.py"], "b.py": seen["b.py"]},
        }
    ]
    assert home.stored()["facts"]["port"] == {
        "value": "8080",
        "evidence": {**IN_A, "hash": seen["a.py"]},
        "dependsOn": [{"uri": uri, "hash": seen[uri]} for uri in ("a.py", "b.py")],
        "status": "VALID",
        "lastTouchedSeq": LAST,
    }


def test_each_kind_of_note_has_its_place(home: Home):
    assert apply(home, decision(topic="store")).id == "d1"
    assert apply(home, a_plan("look", "fix", done={"look": True})).id is None

    stored = home.stored()
    assert [each["decisionId"] for each in stored["decisions"]] == ["d1"]
    assert stored["decisions"][0]["evidence"] == {"source": "user", "ref": "u1"}
    assert stored["plan"]["done"] == {"look": True, "fix": False}


def test_values_that_will_be_cut_are_named_and_recorded_whole(home: Home):
    applied = apply(home, fact(value="x" * 161))

    assert applied.shortened == ("value",)
    assert lines(home)[0]["payload"]["value"] == "x" * 161
    assert home.stored()["facts"]["port"]["value"] == "x" * 159 + "…"


def test_missing_file_makes_a_fact_suspect_once_it_exists(home: Home):
    shop = str(home.user / "shop")
    grow(home, turn(user("look"), shell("head c.py", reads=["c.py"], workdir=shop)))
    apply(home, fact(dependsOn=on("c.py")))
    assert lines(home)[0]["hashes"] == {"c.py": "unknown:"}

    (home.user / "shop/c.py").write_text("c = 1\n")

    (note,) = listed(home)
    (rests,) = note.depends_on
    assert (note.status, note.why, rests.hash) == ("SUSPECT", "c.py", "unknown:")
    assert rests.current is not None


# --- evidence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_any_call_with_an_outcome_can_be_cited(home: Home, form: Form):
    """Also one that left the artifacts long ago, and one whose output is long."""
    later = [shell(f"echo {number}") for number in range(400)]
    long = [
        shell("cat log", "word " * (size // 5), call=f"long{size}")
        for size in (1 << 16, 300_000, 5 << 20)
    ]
    begun = turn(user("begin"), shell("make", call="old"), *later, *work(), *long, shell("echo"))
    write(home, begun, form=form)

    with remembering(home) as notes:
        names = ("read", "edit", "test", "search", "old", "long65536", "long300000", "long5242880")
        for name in names:
            assert notes.apply(thread(1), data_of(by_call(name))).accepted


def test_last_line_may_give_the_outcome_without_its_newline(home: Home):
    write(home, turn(user("begin"), *work()), started(), user("go on"), shell("make", call="last"))
    data = home.path().read_bytes()
    home.path().write_bytes(data.removesuffix(b"\n"))

    assert apply(home, by_call("last"))


def test_call_in_the_base_can_be_cited_up_to_the_cut(home: Home):
    lines = home.path().read_bytes().splitlines()
    ordinal = next(n for n, line in enumerate(lines) if b'"id":"test"' in line)
    base = based_on(thread(1), ordinal, 0)
    head = session(thread=thread(2), cwd=str(home.user / "shop"), history_base=base)
    home.put(rollout(head, turn(user("go on"))), 2)

    assert apply(home, by_call("edit"), 2).accepted
    assert refused(home, by_call("test"), 2) == "evidence_unknown"


def test_first_line_may_be_longer_than_any_other(home: Home):
    more: Json = {"base_instructions": {"text": "x" * 200_000}, "subagent_history_start_ordinal": 7}
    head = session(thread=thread(1), cwd=str(home.user / "shop"), **more)
    home.put(rollout(head, *work(), turn(user("mine"), *work()[2:])))

    own = by_call("search") | {"dependsOn": on("web.search/search")}
    assert apply(home, own).accepted
    assert refused(home, by_call("read")) == "evidence_unknown"


@pytest.mark.parametrize("form", FORMS)
def test_call_without_outcome_and_quoted_call_are_unknown(home: Home, form: Form):
    quoted = shell("cat old.jsonl", '{"type":"function_call_output","call_id":"ghost"}')
    waiting = call("exec_command", {"cmd": "sleep 9"}, "waiting")
    write(home, turn(user('what is "ghost"?'), *work(), quoted), waiting, form=form)

    for name in ("ghost", "waiting", "", "read\\", '"read"', "rea", "\ud83d\ude00"):
        assert refused(home, by_call(name)) == "evidence_unknown", name


def test_only_messages_of_active_turns_can_be_cited(home: Home):
    write(home, turn(user("first")), turn(user("second")), rollback(1))

    assert apply(home, fact(evidence={"source": "user", "ref": "u1"})).accepted
    assert refused(home, fact(evidence={"source": "user", "ref": "u2"})) == "evidence_unknown"


@pytest.mark.parametrize("form", FORMS)
def test_each_listed_anchor_can_be_cited(home: Home, form: Form):
    write(home, turn(user("first"), *work(), plan(("look", True))), turn(user("again")), form=form)
    with remembering(home) as notes:
        anchors = notes.anchors(thread(1))
        assert {each.source for each in anchors} == {"user", "tool_output", "file"}
        for number, each in enumerate(anchors):
            evidence = {"source": each.source, "ref": each.ref}
            claim = fact(f"k{number}", evidence=evidence, dependsOn=on("a.py"))
            assert notes.apply(thread(1), data_of(claim)).accepted


@pytest.mark.parametrize("form", FORMS)
def test_anchors_are_the_newest_with_their_first_words(home: Home, form: Form):
    write(home, turn(user("first"), *work()), turn(user(f"use\n\x1b[31m {KEY}")), form=form)
    with remembering(home) as notes:
        listed = notes.anchors(thread(1), 2)

    told = [(each.source, each.text) for each in listed]
    assert told[:2] == [("user", "use [31m [redacted]"), ("user", "first")]
    assert told[2:4] == [("tool_output", "web.search"), ("tool_output", "make test")]
    assert [each.ref for each in listed[4:]] == (["b.py", "a.py"])
    assert [each.seq for each in listed[:2]] == sorted(each.seq for each in listed[:2])[::-1]


def test_call_names_its_files_once_each_as_the_checkpoint_does(home: Home):
    base = "/home/ana/shop"
    patches = patch(update=f"{base}/a.py"), shell(f"cat {base}/b.py /srv/c.log {base}/b.py")
    data = rollout(session(thread=thread(1), cwd=base), turn(user("go"), *patches))
    home.put(data)
    with remembering(home) as notes:
        told = [each.text for each in notes.anchors(thread(1)) if each.source != "user"]

    assert told == ["b.py, /srv/c.log", "a.py", "/srv/c.log", "b.py", "a.py"]


def test_anchors_are_cut_and_bounded(home: Home):
    write(home, *(turn(user("x" * 500), shell(f"echo {number}")) for number in range(300)))
    with remembering(home) as notes:
        assert len(notes.anchors(thread(1), 256)) == 512
        assert {len(each.text) for each in notes.anchors(thread(1), 1)} == {80, 8}


# --- decisions -----------------------------------------------------------------------------------


def test_decision_id_is_used_once_even_after_revocation_or_eviction(home: Home):
    with remembering(home) as notes:
        for number in range(33):
            notes.apply(thread(1), data_of(decision(f"d{number}")))
        notes.revoke(thread(1), "d1")

    for taken in ("d0", "d1", "d2"):
        assert refused(home, decision(taken)) == "conflict"
    for gone in ("d0", "d1"):
        assert refused(home, decision("new", supersedes=gone)) == "supersedes_unknown"
    assert apply(home, decision("new", supersedes="d2")).accepted


def test_rolled_back_decision_id_is_free(home: Home):
    apply(home, decision("d1"))
    grow(home, rollback(1), turn(user("again"), name="t2"))

    assert listed(home) == []
    assert apply(home, decision("d1", decision="Use PostgreSQL")).turn_id == "t2"
    assert [each.decision for each in listed(home)] == ["Use PostgreSQL"]


def test_superseded_decision_is_listed_with_its_successor(home: Home):
    apply(home, decision("d1", topic="store"))
    apply(home, decision("d2", supersedes="d1"))

    first, second = listed(home)
    assert (first.id, first.topic, first.superseded_by) == ("d1", "store", "d2")
    assert (second.id, second.supersedes, second.superseded_by) == ("d2", "d1", None)
    assert home.here("view", thread(1)).stdout.count(b"(id=d") == 1


# --- lists and revocations -----------------------------------------------------------------------


def test_notes_are_facts_by_key_then_decisions_with_every_key(home: Home):
    apply(home, decision())
    apply(home, fact("zeta", evidence=IN_A, dependsOn=on("a.py", "make test")))
    apply(home, fact("beta"))

    told = home.json("notes", thread(1))

    assert [each["id"] for each in told] == ["beta", "zeta", "d1"]
    assert all(list(each) == list(told[0]) for each in told)
    digest = home.stored()["artifacts"]["a.py"]["hash"]
    at = told[1].pop("acceptedAt")
    assert at.endswith("Z")
    assert told[1] == {
        "kind": "fact",
        "id": "zeta",
        "value": "8080",
        "topic": None,
        "decision": None,
        "rationale": None,
        "supersedes": None,
        "supersededBy": None,
        "status": "SUSPECT",
        "why": "make test",
        "evidence": {**IN_A, "hash": digest},
        "dependsOn": [
            {"uri": "a.py", "hash": digest, "current": digest, "holds": True},
            {"uri": "make test", "hash": "unknown:", "current": None, "holds": False},
        ],
        "seq": LAST,
        "turnId": "t1",
        "evicted": False,
    }


def test_evicted_note_is_named_and_still_listed(home: Home):
    with remembering(home) as notes:
        for number in range(63):
            assert notes.apply(thread(1), data_of(fact(f"k{number:02}"))).evicted == ()
        assert notes.apply(thread(1), data_of(fact("z"))).evicted == ()
        tried = notes.try_out(thread(1), data_of(fact("z2")))
        applied = notes.apply(thread(1), data_of(fact("z2")))
        again = notes.apply(thread(1), data_of(fact("a")))
    told = home.json("notes", thread(1))

    assert tried.evicted == applied.evicted == (Evicted("fact", "k00"),)
    assert again.evicted == (Evicted("fact", "a"),)
    kept = [each["id"] for each in told if not each["evicted"]]
    assert len(kept) == 64
    assert not {"k00", "a"} & {*kept}
    gone = [each for each in told if each["evicted"]]
    assert [(each["kind"], each["id"], each["status"]) for each in gone] == [
        ("fact", "a", None),
        ("fact", "k00", None),
    ]
    shown = home.here("notes", thread(1)).stdout.decode()
    assert "no longer kept" in shown
    assert refusal(lambda: revoke(home, "k00")).code == "unknown_note"


def test_evicted_decision_is_named(home: Home):
    with remembering(home) as notes:
        for number in range(32):
            notes.apply(thread(1), data_of(decision(f"d{number}")))
        applied = notes.apply(thread(1), data_of(decision("last")))

    assert applied.evicted == (Evicted("decision", "d0"),)
    evicted = [each.id for each in listed(home) if each.evicted]
    assert evicted == ["d0"]


# --- what a fact rests on ------------------------------------------------------------------------


def test_fact_is_suspect_when_its_evidence_file_changes_or_vanishes(home: Home):
    apply(home, fact(evidence={"source": "file", "ref": "b.py"}, dependsOn=on("a.py")))
    (note,) = listed(home)
    assert [each.uri for each in note.depends_on] == ["b.py", "a.py"]
    assert (note.status, note.why) == ("VALID", None)

    (home.user / "shop/b.py").unlink()

    (note,) = listed(home)
    assert (note.status, note.why) == ("SUSPECT", "b.py")


@pytest.mark.parametrize("form", FORMS)
def test_fact_from_a_call_that_read_a_file_depends_on_it(home: Home, form: Form):
    write(home, turn(user("Fix the login"), *work()), form=form)
    apply(home, fact(evidence={"source": "tool_output", "ref": "read"}, dependsOn=on("b.py")))
    assert lines(home)[0]["payload"]["dependsOn"] == on("a.py", "b.py")

    (home.user / "shop/a.py").write_text("a = 2\n")

    (note,) = listed(home)
    assert (note.status, note.why) == ("SUSPECT", "a.py")


@pytest.mark.parametrize("form", FORMS)
def test_fact_from_a_tool_that_names_a_file_depends_on_it(home: Home, form: Form):
    asked = {"path": "a.py", "files": ["b.py", "no.py"]}
    read = mcp("fs", "read_file", "a = 1\n", asked, call="m1")
    write(home, turn(user("Fix the login"), read), form=form)
    cited = {"source": "tool_output", "ref": "m1"}
    apply(home, fact("by.evidence", evidence=cited, dependsOn=on("fs.read_file/m1")))
    apply(home, fact("by.dependency", dependsOn=on("fs.read_file/m1")))

    resting = [[each.uri for each in note.depends_on] for note in listed(home)]
    assert resting == [["a.py", "b.py", "fs.read_file/m1"]] * 2
    assert [note.status for note in listed(home)] == ["VALID", "VALID"]

    (home.user / "shop/a.py").write_text("a = 2\n")

    assert [(note.status, note.why) for note in listed(home)] == [("SUSPECT", "a.py")] * 2


def test_dependencies_added_by_the_host_do_not_count_against_sixteen(home: Home):
    names = [f"f{number}.py" for number in range(16)]
    for name in names:
        (home.user / "shop" / name).write_text("x\n")
    added = (patch(add=name, call=name) for name in names)
    write(home, turn(user("Fix the login"), *work(), *added))

    apply(home, fact(evidence=IN_A, dependsOn=on(*names)))

    (note,) = listed(home)
    assert [each.uri for each in note.depends_on] == ["a.py", *names]
    assert note.status == "VALID"


def test_revoked_fact_is_gone_and_its_key_is_free(home: Home):
    apply(home, fact())
    assert revoke(home, "port") == "fact"
    named = {"revoke": {"kind": "fact", "id": "port"}}
    assert lines(home)[-1] == named | {"seq": LAST, "turnId": "t1", "at": AT}
    assert home.stored()["facts"] == {}

    apply(home, fact(value="9090"))

    assert [each.value for each in listed(home)] == ["9090"]


def test_name_of_both_kinds_is_revoked_only_by_kind(home: Home):
    with remembering(home) as notes:
        assert refusal(lambda: notes.revoke(thread(1), "same")).code == "unknown_note"
    assert not (home.state / "sessions").exists()
    apply(home, fact("same"))
    apply(home, decision("same"))
    with remembering(home) as notes:
        before = kept(home)
        for asked, code in (
            (("same",), "invalid_payload"),
            (("same", "plan"), "invalid_payload"),
            (("none",), "unknown_note"),
            (("none", "fact"), "unknown_note"),
        ):
            met = refusal(lambda asked=asked: notes.revoke(thread(1), *asked))
            assert (met.code, kept(home)) == (code, before)

        notes.revoke(thread(1), "same", "decision")

    assert [each.kind for each in listed(home)] == ["fact"]


# --- turns and numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "turn_id"),
    [
        ((turn(user("one")), started("t9"), user("two")), "t9"),
        ((), None),
        ((turn(user("one")), started("t9"), user("two"), rollback(1)), "t1"),
        ((started("t9"), user("two"), rollback(1)), None),
    ],
    ids=["under way", "before the first", "taken back", "all taken back"],
)
def test_update_belongs_to_the_running_turn(
    home: Home, before: tuple[Step, ...], turn_id: str | None
):
    write(home, *work(), *before)

    assert apply(home, fact(evidence=IN_A, dependsOn=on("a.py"))).turn_id == turn_id
    assert [each.id for each in listed(home)] == ["port"]


def test_note_accepted_outside_a_turn_survives_a_rollback(home: Home):
    write(home, *work())
    apply(home, fact(evidence=IN_A, dependsOn=on("a.py")))

    write(home, *work(), turn(user("one")), rollback(1))

    assert [each.id for each in listed(home)] == ["port"]


def test_later_note_stays_later_in_a_shortened_file(home: Home):
    write(home, turn(user("one"), *(shell(f"echo {number}") for number in range(9))))
    apply(home, fact(value="old"))
    write(home, turn(user("one")))

    apply(home, fact(value="new"))

    assert [each.value for each in listed(home)] == ["new"]
    revoke(home, "port")
    assert listed(home) == []


# --- the doors -----------------------------------------------------------------------------------

# Each rule by itself is in `core/test_claims.py`.
REFUSED: list[tuple[str, str, object]] = [
    ("limit_exceeded", "size", fact(value="x" * MAX_PAYLOAD_BYTES)),
    ("invalid_payload", "shape", None),
    ("secret_text", "secrets", fact(value=f"the key is {KEY}")),
    ("evidence_unknown", "evidence", fact(evidence={"source": "file", "ref": "/tmp/notes.txt"})),
    ("forged_hash", "hashes", fact(evidence=IN_A | {"hash": "x"}, dependsOn=on("a.py"))),
    ("conflict", "decisions", decision("taken")),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Serve all that is refused: one decision is accepted, and nothing after it."""
    home = a_home(tmp_path_factory.mktemp("notes"))
    apply(home, decision("taken"))
    return home


@pytest.fixture(scope="module")
def client(shared: Home) -> Generator[Peer]:
    with Peer(shared.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        yield peer


@pytest.mark.parametrize(("code", "rule", "payload"), REFUSED, ids=lambda each: str(each)[:20])
def test_both_doors_refuse_alike_with_a_remedy_and_change_nothing(  # noqa: PLR0917 - a row
    shared: Home, client: Peer, tmp_path: Path, code: str, rule: str, payload: object
):
    file = tmp_path / "payload.json"
    file.write_text(json.dumps(payload))
    before = kept(shared)

    done = shared.here("apply", thread(1), str(file), "--json")
    error = client.error("checkpoints/applyUpdate", {"sessionId": thread(1), "payload": payload})
    for_people = shared.here("apply", thread(1), str(file))

    told = json.loads(done.stdout)["error"]
    assert (done.returncode, done.stderr) == (1, b"")
    assert (told["code"], told["facts"]["rule"]) == (code, rule)
    assert (error["code"], error["data"]["code"]) == (1, code)
    assert {**error["data"]["facts"], "bytes": 0} == {**told["facts"], "bytes": 0}
    (line,) = for_people.stderr.decode().splitlines()
    assert line.endswith(f" [{code}]")
    assert told["facts"]["hint"] in line
    assert kept(shared) == before


def test_dry_run_is_answered_and_not_written(home: Home, tmp_path: Path):
    file = tmp_path / "payload.json"
    file.write_text(json.dumps(fact()))
    before = kept(home)

    told = home.json("apply", thread(1), str(file), "--dry-run")
    with Peer(home.root) as peer:
        peer.start({"settings": {"followedSessions": 0}})
        params = {"sessionId": thread(1), "payload": fact(), "dryRun": True}
        answer = peer.call("checkpoints/applyUpdate", params)
        assert peer.notifications.empty()
        assert peer.stop() == 0

    assert told == answer
    assert (told["accepted"], told["dryRun"], told["updateId"]) == (True, True, None)
    assert kept(home) == before


def test_payload_may_come_from_standard_input(home: Home):
    for more_words in ((), ("-",), ("--json",)):
        done = home.run("apply", thread(1), *more_words, said=data_of(fact()))
        assert done.returncode == 0, done.stderr

    assert [each["seq"] for each in lines(home)] == [LAST, LAST, LAST]


def test_invalid_json_is_refused_by_both_inputs(home: Home, tmp_path: Path):
    file = tmp_path / "payload.json"
    for data in (None, b"", b"\xff\xfe", b"{", b'{"kind":"fact"', b"[" * 5000, b'{"kind":NaN}'):
        if data is not None:
            file.write_bytes(data)
        done = home.here("apply", thread(1), str(file), "--json")
        assert json.loads(done.stdout)["error"]["code"] == "invalid_payload", data
    assert not (home.state / "sessions").exists()


def test_client_is_notified_once_and_the_checkpoint_is_current(home: Home):
    with Peer(home.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})

        peer.call("checkpoints/applyUpdate", {"sessionId": thread(1), "payload": fact()})
        assert list(home.stored()["facts"]) == ["port"]
        revoked = peer.call("checkpoints/revokeNote", {"sessionId": thread(1), "id": "port"})
        assert revoked == {"sessionId": thread(1), "kind": "fact", "id": "port", "seq": LAST}
        assert home.stored()["facts"] == {}
        answer = peer.call("checkpoints/notes", {"sessionId": thread(1)})
        assert answer == {"items": [], "nextCursor": None}

        # What comes later on the disk is looked at later.
        home.put(rollout(session(thread=thread(2)), turn(user("fence"))), 2)
        told = [peer.heard("checkpoints/changed")]
        while thread(2) not in told[-1]["sessionIds"]:
            told.append(peer.heard("checkpoints/changed"))
        assert [each["reason"] for each in told].count("memory") == 2
        assert "workspace" not in [each["reason"] for each in told]
        assert [each["seq"] for each in told] == [*range(1, len(told) + 1)]
        assert peer.stop() == 0


def test_watcher_notices_a_note_of_another_process(home: Home):
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        apply(home, fact())
        path = home.checkpoint().with_name("updates.jsonl")
        assert any(path.is_relative_to(tree) for tree in follower.trees())

        follower.mark(str(home.checkpoint()))
        assert follower.drain() == []
        follower.mark(str(path))
        assert follower.drain() == [Changed((thread(1),), "memory")]
        follower.mark(str(path))
        assert follower.drain() == []


def test_nothing_is_stored_for_an_outside_or_older_file(home: Home, tmp_path: Path):
    elsewhere = tmp_path / home.path(9).name
    elsewhere.write_bytes(rollout(session(thread=thread(9)), turn(user("far away"))))
    home.put(home.path().read_bytes(), 1, segment=5)
    with remembering(home) as notes:
        before = kept(home)
        for path, reason in ((elsewhere, "outside"), (home.path(), "older_file")):
            met = refusal(lambda path=path: notes.apply(str(path), data_of(fact())))
            assert (met.code, met.facts["reason"]) == ("conflict", reason)
            met = refusal(lambda path=path: notes.revoke(str(path), "port"))
            assert met.facts["rule"] == "session"
        assert kept(home) == before


# --- two at once ---------------------------------------------------------------------------------


def test_two_concurrent_notes_both_count_and_no_id_is_used_twice(home: Home, tmp_path: Path):
    home.here("show", thread(1))
    running: list[subprocess.Popen[bytes]] = []
    for number in range(6):
        file = tmp_path / f"{number}.json"
        of_all = decision("d1", decision=f"by {number}")
        file.write_text(json.dumps(of_all if number % 2 else fact(f"k{number}")))
        running.append(home.start("apply", thread(1), str(file), "--json"))
    told = [json.loads(each.communicate(timeout=WAIT)[0]) for each in running]

    assert [each.get("id") for each in told[::2]] == ["k0", "k2", "k4"]
    codes = [each["error"]["code"] if "error" in each else "accepted" for each in told[1::2]]
    assert sorted(codes) == ["accepted", "conflict", "conflict"]
    assert sorted(each.id for each in listed(home)) == ["d1", "k0", "k2", "k4"]
    assert len(lines(home)) == 4
