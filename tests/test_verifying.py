"""`verify`: every line of the audit, and what the files of all operations began with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.audit import sealed
from codex_checkpoints.core.restore.events import Fault
from codex_checkpoints.service.restore.verifying import Verified, verify
from codex_checkpoints.storage.durable import (
    UnreadableRecord,
    held,
    lines_in,
    raw_lines_in,
    value_of,
)
from homes import Home, go_on, thread
from rollouts import assistant, rollout, session, shell, turn, user

Json = dict[str, Any]

KINDS = {"RestoreCompleted", "CompactionInstalled", "PackExported", "PackImported", "HookFailed"}


@pytest.fixture(scope="module")
def worked_with(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home in which something of every kind was done; nobody changes it for good."""
    home = Home(tmp_path_factory.mktemp("verifying"))
    (home.user / "a.py").write_text("one\n")
    read = shell("cat a.py", "one\n" * 2000, reads=["a.py"])
    home.put(
        rollout(
            session(thread=thread(1), cwd=str(home.user)),
            turn(user("Fix the login"), read, assistant("Read.")),
            turn(user("And the logout"), assistant("Done.")),
        )
    )
    name = home.json("mark", thread(1), "--label", "here", "--turn", "1")["checkpointId"]
    home.json("restore", thread(1), name, "--mode", "soft")
    home.json("compact", thread(1), "--into", "new", "--force")
    home.json("compact", thread(1), "--into", "in-place", "--force")
    pack = str(home.user / "a.pack")
    home.json("export", thread(1), pack)
    home.json("import", pack, "--cwd", str(home.user))
    assert home.run("hook").returncode == 0
    assert home.json("verify")["findings"] == []
    return home


@pytest.fixture
def home(worked_with: Home) -> Any:  # noqa: ANN401 - a generator, as pytest has them
    """Put back what a test changed."""
    files = (*worked_with.root.rglob("*.jsonl"), worked_with.state / "audit.head")
    before = {path: path.read_bytes() for path in files}
    yield worked_with
    for path, data in before.items():
        path.write_bytes(data)


def audit(home: Home) -> Path:
    return home.state / "audit.jsonl"


def events(home: Home) -> list[Json]:
    return [json.loads(line) for line in audit(home).read_bytes().splitlines()]


def checked(home: Home) -> Verified:
    with home.house() as house:
        return verify(house.sessions)


def findings(home: Home) -> list[tuple[str, int | None]]:
    return [(each.code, each.line) for each in checked(home).findings]


def file_of(home: Home, kind: str, key: str = "sessionId", **told: str) -> Path:
    """Return the session file of the first event of a kind."""
    all_of_them = (each for each in events(home) if each["type"] == kind)
    event = next(each for each in all_of_them if told.items() <= each.items())
    (path,) = home.root.glob(f"sessions/**/rollout-*{event[key]}.jsonl")
    return path


def line_of(home: Home, kind: str) -> int:
    """Return the number of the first line with an event of a kind."""
    return [each["type"] for each in events(home)].index(kind) + 1


def change_line(home: Home, number: int, change: Callable[[bytes], bytes]) -> None:
    lines = audit(home).read_bytes().splitlines(keepends=True)
    lines[number - 1] = change(lines[number - 1])
    audit(home).write_bytes(b"".join(lines))


# --- the audit -----------------------------------------------------------------------------------


def test_every_line_with_a_digest_is_held_against_it(home: Home):
    told = events(home)
    assert {each["type"] for each in told} >= KINDS
    for number, event in enumerate(told, 1):
        before = audit(home).read_bytes()
        change_line(home, number, lambda line: line.replace(b'"at":"20', b'"at":"21'))

        assert "digest" in event
        assert findings(home) == [("changed_line", number)]
        audit(home).write_bytes(before)


def test_a_line_that_lost_its_digest_is_a_changed_one(home: Home):
    number = line_of(home, "CompactionInstalled")

    def strip(line: bytes) -> bytes:
        kept = {key: value for key, value in json.loads(line).items() if key != "digest"}
        return json.dumps(kept).encode() + b"\n"

    change_line(home, number, strip)

    assert findings(home) == [("changed_line", number)]


def test_a_line_of_before_all_had_a_digest_is_none(home: Home):
    old = b'{"type":"CodexConnected","at":"2026-11-22T10:00:00.000Z"}\n'
    audit(home).write_bytes(old)
    (home.state / "audit.head").unlink()

    assert ("changed_line", 1) not in findings(home)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_line_that_nobody_can_read_is_a_changed_one(home: Home, kind: str):
    number, before = line_of(home, kind), audit(home).read_bytes()
    for garbled in (b"X", b"7\n", b"\xff", b"{} "):
        whole = garbled.endswith(b"\n")
        change_line(home, number, lambda line: garbled if whole else garbled + line[1:])  # noqa: B023

        assert ("changed_line", number) in findings(home)
        audit(home).write_bytes(before)


def test_what_a_crash_left_of_a_line_is_no_fault_and_is_counted(home: Home):
    data = audit(home).read_bytes()
    audit(home).write_bytes(data + data[:50])
    assert home.run("hook").returncode == 0
    report = checked(home)
    assert (report.findings, report.events) == ((), len(data.splitlines()) + 1)

    at = len(data.splitlines()) + 2
    change_line(home, at, lambda line: line.replace(b'"at":"20', b'"at":"21'))

    assert findings(home) == [("changed_line", at)]


def removed(_: bytes) -> bytes:
    return b""


def resealed(line: bytes) -> bytes:
    """Return a line as somebody writes it who knows how a line is sealed."""
    return orjson.dumps(sealed(orjson.loads(line) | {"at": "2001-01-01T00:00:00.000Z"})) + b"\n"


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("change", [removed, resealed])
def test_a_line_that_was_removed_or_replaced_is_found_and_stays_so(
    home: Home, kind: str, change: Callable[[bytes], bytes]
):
    for number in (line_of(home, kind), len(events(home))):
        before = {name: (home.state / name).read_bytes() for name in ("audit.jsonl", "audit.head")}
        change_line(home, number, change)

        after = number + (change is resealed)
        where = after if after <= len(events(home)) else None
        assert ("broken_chain", where) in findings(home)
        home.run("hook")
        assert "broken_chain" in {code for code, _ in findings(home)}
        for name, data in before.items():
            (home.state / name).write_bytes(data)


def test_the_command_verify_fails_with_findings_and_they_are_its_answer(home: Home):
    assert home.run("verify").returncode == 0
    change_line(home, line_of(home, "PackExported"), lambda _: b"")

    text, answer = home.run("verify"), home.run("verify", "--json")

    assert (text.returncode, answer.returncode, text.stderr, answer.stderr) == (1, 1, b"", b"")
    assert json.loads(answer.stdout)["findings"][0]["code"] == "broken_chain"
    where = f"in front of line {line_of(home, 'PackImported')} of audit.jsonl"
    assert where in text.stdout.decode()


CHANGES = ("CompactionInstalled", "CompactionUndone")


def compacted(home: Home, into: str) -> str:
    """Compact a session; return the id of the compaction."""
    home.put(rollout(session(), turn(user("Fix it"), assistant("Done. " * 2000))))
    return home.json("compact", thread(1), "--into", into, "--force")["compactionId"]


def without_events(home: Home) -> None:
    """Leave no event, as a build did that was killed too early."""
    audit(home).unlink()
    (home.state / "audit.head").unlink()


def test_a_compaction_and_its_undoing_without_their_events_are_found(tmp_path: Path):
    home = Home(tmp_path)
    made = compacted(home, "new")
    home.json("uncompact", made)
    assert [each["type"] for each in events(home)] == [*CHANGES]

    without_events(home)

    assert checked(home).findings == (Fault("missing_lines", made),) * 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), st.data())
def test_every_beginning_of_a_line_is_a_torn_one_and_nothing_else_is(
    tmp_path_factory: pytest.TempPathFactory, line: Json, data: st.DataObject
):
    path = tmp_path_factory.mktemp("lines") / "lines.jsonl"
    whole = orjson.dumps(line)
    at = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:at])
    if at:
        with held(str(path)) as journal:
            journal.append(line)  # which ends the torn line before it
        assert [*map(value_of, raw_lines_in(str(path)))] == [UnreadableRecord(torn=True), line]
    path.write_bytes(b"x" + whole + b"\n" + whole + b"}\n" + whole + b"\n")
    assert [*map(value_of, raw_lines_in(str(path)))] == [*[UnreadableRecord(torn=False)] * 2, line]
    assert list(lines_in(str(path))) == [line]


# --- session files -------------------------------------------------------------------------------


def edit(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_what_a_session_begins_with_that_a_compaction_made_is_compared(home: Home):
    path = file_of(home, "CompactionInstalled", into="new")
    edit(path, b"Fix the login", b"Fix the plugs")

    (event,) = [each for each in events(home) if each.get("into") == "new"]
    fault = Fault("changed_branch", event["operationId"], event["sessionId"])
    assert checked(home).findings == (fault,)


def test_what_was_compacted_is_compared(home: Home):
    edit(home.path(), b"And the logout", b"And the login!")

    found = checked(home).findings

    (newest,) = [each for each in events(home) if each.get("into") == "in-place"]
    assert Fault("changed_source", newest["operationId"], thread(1)) in found
    assert {each.code for each in found} == {"changed_source"}


def test_sessions_that_go_on_are_as_they_were_written(home: Home):
    for path in (home.path(), file_of(home, "CompactionInstalled", into="new")):
        go_on(path, thread(1), turn(user("Go on")))

    assert findings(home) == []


def test_a_session_that_is_gone_is_counted(home: Home):
    before = checked(home)
    file_of(home, "CompactionInstalled", into="new").unlink()

    report = checked(home)

    assert report.findings == ()
    assert report.files == before.files - 1
    assert report.unavailable == before.unavailable + 1
