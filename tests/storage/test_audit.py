"""`audit.jsonl` on the disk: appended events, and lines of earlier builds."""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from codex_checkpoints.storage.records import Audit


def add(folder: Path, *numbers: int) -> None:
    for number in numbers:
        Audit(str(folder)).add({"n": number})


def numbers(folder: Path) -> list[object]:
    return [event["n"] for event in Audit(str(folder)).events() if isinstance(event, dict)]


def test_event_is_written_as_one_plain_line(tmp_path: Path):
    add(tmp_path, 1, 2)

    assert (tmp_path / "audit.jsonl").read_bytes() == b'{"n":1}\n{"n":2}\n'
    assert os.listdir(tmp_path) == ["audit.jsonl"]


def test_lines_and_head_of_earlier_builds_stay_and_are_read(tmp_path: Path):
    old = b'{"n":1,"previous":"sha256:00","digest":"sha256:11"}\n'
    head = b'{"count":1,"last":"sha256:22","size":52}\n'
    (tmp_path / "audit.jsonl").write_bytes(old)
    (tmp_path / "audit.head").write_bytes(head)

    add(tmp_path, 2)

    assert numbers(tmp_path) == [1, 2]
    assert (tmp_path / "audit.jsonl").read_bytes() == old + b'{"n":2}\n'
    assert (tmp_path / "audit.head").read_bytes() == head


def test_torn_line_is_ended_before_the_next_event_and_skipped(tmp_path: Path):
    (tmp_path / "audit.jsonl").write_bytes(b'{"n":1}\n{"torn')

    add(tmp_path, 2)

    assert numbers(tmp_path) == [1, 2]


def test_concurrent_appends_lose_no_event(tmp_path: Path):
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(add, [tmp_path] * 3, *[range(at, at + 3) for at in (0, 3, 6, 9)]))

    lines = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    assert sorted(json.loads(line)["n"] for line in lines) == list(range(12))


def test_folder_without_an_audit_has_no_events(tmp_path: Path):
    assert numbers(tmp_path) == []
    assert os.listdir(tmp_path) == []
