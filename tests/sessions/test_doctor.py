"""`doctor` names the files that Codex refuses or lists leave out, each with a way out."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import rollouts as r
from codex_checkpoints.storage.records import Records
from codex_checkpoints.storage.safety_copies import FileCopies, SafetyCopies
from homes import Home, thread

WHOLE = r.rollout(r.session(thread=thread(1)), r.turn(r.user("Fix the till")))


def found(home: Home, code: str) -> list[dict[str, Any]]:
    return [each for each in home.json("doctor")["findings"] if each["code"] == code]


def only(home: Home, code: str) -> dict[str, Any]:
    (finding,) = found(home, code)
    assert finding["wayOut"]
    return finding


@pytest.mark.parametrize("stamp", [1795165200000, None])
def test_times_that_are_not_text_are_named(home: Home, stamp: object):
    lines = [json.loads(line) for line in WHOLE.splitlines()]
    home.put(b"".join(r.to_line({**line, "timestamp": stamp}) for line in lines))

    finding = only(home, "no_time")
    assert (finding["severity"], finding["count"]) == ("warning", len(lines))
    assert "Codex refuses" in finding["wayOut"]
    assert [each["title"] for each in home.json("sessions")] == ["Fix the till"]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_zero_bytes_are_damage_and_not_an_unfinished_line(home: Home, end: bytes):
    home.put(WHOLE + bytes(4096) + end)

    assert only(home, "zero_bytes")["count"] == 1
    assert found(home, "torn_tail") == found(home, "not_json") == []


@pytest.mark.parametrize(
    "name", [f"2026/11/20/converted-{thread(2)}.jsonl", f"{thread(2)}/rollout.jsonl"]
)
def test_session_under_another_name_is_named(home: Home, name: str):
    home.put(WHOLE)
    other = home.root / "sessions" / name
    other.parent.mkdir(parents=True, exist_ok=True)
    other.write_bytes(WHOLE)

    assert only(home, "passed_over")["path"] == str(other)


def test_record_from_the_future_is_named(home: Home):
    path = home.put(WHOLE)
    os.utime(path, (1_700_000_000, 1_700_000_000))

    assert only(home, "future_time")["path"] == str(path)


def test_record_as_old_as_its_file_is_not_from_the_future(home: Home):
    path = home.put(WHOLE)
    at = 1_795_168_800  # 2026-11-20T10:00:00Z
    os.utime(path, (at, at))

    assert found(home, "future_time") == []


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", r.to_line({"timestamp": "2026-05-14T02:43:17.000Z", "type": "x"})]
)
def test_file_with_neither_head_nor_request_is_named_and_not_listed(home: Home, data: bytes):
    home.put(WHOLE)
    blank = home.put(data, 2)

    assert only(home, "blank")["path"] == str(blank)
    assert [each["sessionId"] for each in home.json("sessions")] == [thread(1)]


def test_same_file_in_two_places_is_not_a_revert(home: Home):
    home.put(WHOLE)
    twin: Path = home.put(WHOLE, archived=True)

    assert only(home, "twin")["path"] in {str(twin), str(home.path())}
    assert found(home, "unreached_segment") == []


DAY_NS = 86_400 * 10**9


def test_copies_of_files_are_named_and_can_be_deleted(home: Home):
    home.put(WHOLE)
    restored, replaced = SafetyCopies(str(home.state)), FileCopies(str(home.state))
    for operation in ("one", "two"):
        restored.keep(operation, "0", b"x" * 1_000)
        restored.keep(operation, "1", b"x" * 500)
    digest = replaced.keep(b"text")
    at = 1_795_824_000 * 10**9
    os.utime(home.state / "file-restores" / "one", ns=(at, at - DAY_NS))

    finding = only(home, "safety_copies")
    assert (finding["severity"], finding["count"]) == ("info", 2)
    oldest = "the oldest of 2026-11-27"
    assert finding["message"] == f"The files that 2 restores replaced are kept: 3 kB, {oldest}."
    assert only(home, "file_copies")["count"] == 1
    assert replaced.kept(digest) == b"text"

    home.json("doctor", "--delete-copies")
    assert found(home, "safety_copies") == found(home, "file_copies") == []
    assert replaced.kept(digest) is None
    assert restored.kept("two", "0") is None


def test_copies_of_a_running_restore_are_not_deleted(home: Home):
    home.put(WHOLE)
    records, copies = Records(str(home.state)), SafetyCopies(str(home.state))
    for operation in ("done", "doing"):
        copies.keep(operation, "0", b"x")
    with records.operation_journal("doing") as journal:
        journal.append({})
        home.json("doctor", "--delete-copies")

        assert copies.kept("doing", "0") == b"x"
        assert copies.kept("done", "0") is None


def test_unreadable_records_of_restored_and_copied_files_are_named(home: Home):
    home.put(WHOLE)
    folder = home.checkpoint().parent
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("file_restores.jsonl", "file_copies.jsonl"):
        (folder / name).write_bytes(b"no json\n")

    named = {os.path.basename(each["path"]) for each in found(home, "damaged_record")}
    assert named == {"file_restores.jsonl", "file_copies.jsonl"}
