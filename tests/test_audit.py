"""`audit.jsonl` and `audit.head` on the disk: what is appended, and what that costs."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.audit import NOTHING, breaks, digest_of, is_intact
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.storage import durable
from codex_checkpoints.storage.records import Audit


def add(folder: Path, *numbers: int) -> None:
    for number in numbers:
        Audit(str(folder)).add({"n": number})


def lines(folder: Path) -> list[bytes]:
    return (folder / "audit.jsonl").read_bytes().splitlines()


def head(folder: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((folder / "audit.head").read_bytes())


def found(folder: Path) -> list[int]:
    audit = Audit(str(folder))
    head = audit.head()
    return list(breaks(((object_of(line), digest) for line, digest in audit.lines()), head))


def test_each_line_holds_the_digest_of_the_one_before_and_the_head_that_of_the_last(tmp_path: Path):
    add(tmp_path, 1, 2, 3)

    told = lines(tmp_path)
    events = [json.loads(line) for line in told]
    assert all(map(is_intact, events))
    before = [digest_of(b""), *map(digest_of, told)]
    assert [each["previous"] for each in events] == before[:-1]
    assert head(tmp_path) == {"count": 3, "last": before[-1], "size": sum(map(len, told)) + 3}


def test_lines_of_earlier_builds_and_torn_ones_are_chained_as_they_stand(tmp_path: Path):
    old = b'{"type":"HookFailed"}'
    (tmp_path / "audit.jsonl").write_bytes(old + b'\n{"torn')
    add(tmp_path, 1)
    with (tmp_path / "audit.jsonl").open("ab") as file:
        file.write(b'{"n":2,"prev')
    add(tmp_path, 3)

    told = lines(tmp_path)
    links = [json.loads(told[at])["previous"] for at in (2, 4)]
    assert links == [digest_of(told[1]), digest_of(told[3])]
    assert (head(tmp_path)["count"], found(tmp_path)) == (5, [])


@pytest.mark.parametrize("left", ["absent", "older", "no head"])
def test_a_head_that_a_crash_left_behind_is_no_finding_and_is_made_up_for(
    tmp_path: Path, left: str
):
    add(tmp_path, 1)
    before = (tmp_path / "audit.head").read_bytes()
    add(tmp_path, 2, 3)
    (tmp_path / "audit.head").unlink()
    if left != "absent":
        (tmp_path / "audit.head").write_bytes(before if left == "older" else b'{"count":')
    assert found(tmp_path) == []

    add(tmp_path, 4)

    assert (found(tmp_path), head(tmp_path)["count"]) == ([], 4)


def test_an_event_stands_where_the_head_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    add(tmp_path, 1)
    with monkeypatch.context() as broken:
        broken.setattr(durable, "replace", full)
        add(tmp_path, 2)

    assert (len(lines(tmp_path)), head(tmp_path)["count"], found(tmp_path)) == (2, 1, [])


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "cut": lambda told: told[:-1],
    "first": lambda told: told[1:],
    "all": lambda _: [],
    "other": lambda told: [*told[:-1], told[0]],
    "longer": lambda told: [*told[:-1], told[-1] + b" " * 9],
    "twice": lambda told: [*told, told[-1]],
    "foreign": lambda told: [*told, b'{"n":3}'],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_stays_to_be_found_when_the_audit_goes_on(
    tmp_path: Path,
    change: Callable[[list[bytes]], list[bytes]],
):
    add(tmp_path, 1, 2, 3)
    changed = change(lines(tmp_path))
    (tmp_path / "audit.jsonl").write_bytes(b"".join(line + b"\n" for line in changed))
    assert found(tmp_path) != []

    add(tmp_path, 4, 5)

    assert found(tmp_path) != []


def test_an_append_reads_only_what_came_behind_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add(tmp_path, *range(50))
    read: list[bytes] = []
    value_of = durable.value_of

    def counting(line: bytes | None) -> object:
        read.append(line or b"")
        return value_of(line)

    monkeypatch.setattr(durable, "value_of", counting)
    before = (tmp_path / "audit.head").read_bytes()
    add(tmp_path, 50)
    assert read == []
    (tmp_path / "audit.head").write_bytes(before)
    add(tmp_path, 51)

    assert [line.removesuffix(b"\n") for line in read] == lines(tmp_path)[50:51]


def test_processes_that_append_at_once_make_one_chain(tmp_path: Path):
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(add, [tmp_path] * 3, *[range(at, at + 3) for at in (0, 3, 6, 9)]))

    assert (len(lines(tmp_path)), head(tmp_path)["count"], found(tmp_path)) == (12, 12, [])


def test_nothing_has_a_head(tmp_path: Path):
    assert (Audit(str(tmp_path)).head(), found(tmp_path)) == (None, [])
    assert NOTHING.last == digest_of(b"")
    assert os.listdir(tmp_path) == []
