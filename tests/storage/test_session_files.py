"""Which files are session files, by their names and places alone."""

import errno
import os
import sys
from pathlib import Path
from typing import Self

import pytest

from codex_checkpoints.storage.contract import Identity
from codex_checkpoints.storage.session_files import (
    find,
    has_only_grown,
    is_unchanged,
    parse_name,
    roots,
    scan,
)

THREAD = "01a1f865-0000-7000-8000-000000000001"
SEGMENT = "01a1f866-1111-7222-8333-444444444444"
STAMP = "rollout-2026-11-20T09-59-05"
PLAIN = f"{STAMP}-{THREAD}.jsonl"
LATER = f"{STAMP}-{THREAD}_{SEGMENT}.jsonl"


def put(home: Path, place: str, data: bytes = b"x\n") -> str:
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def test_unreadable_folder_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there = put(tmp_path, f"sessions/2026/11/20/{PLAIN}")
    put(tmp_path, f"sessions/2026/11/19/{LATER}")
    scandir = os.scandir

    class Broken:
        def __init__(self, path: str) -> None:
            self.entries, self.breaks = scandir(path), path.endswith("19")

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.entries.close()

        def __iter__(self) -> "Broken":
            return self

        def __next__(self) -> os.DirEntry[str]:
            if self.breaks:
                raise OSError(errno.EIO, "gone")
            return next(self.entries)

    monkeypatch.setattr(os, "scandir", Broken)
    assert list(scan(str(tmp_path))) == [there]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PLAIN, Identity(THREAD, THREAD, compressed=False)),
        (PLAIN + ".zst", Identity(THREAD, THREAD, compressed=True)),
        (LATER, Identity(THREAD, SEGMENT, compressed=False)),
        (LATER + ".zst", Identity(THREAD, SEGMENT, compressed=True)),
        (PLAIN.replace(THREAD, THREAD.upper()), Identity(THREAD, THREAD, compressed=False)),
        (
            f"{STAMP}-123e4567-e89b-42d3-a456-426614174000.jsonl",
            Identity(*["123e4567-e89b-42d3-a456-426614174000"] * 2, compressed=False),
        ),
    ],
)
def test_name_of_a_session_file_gives_thread_and_segment(name: str, expected: Identity):
    assert parse_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "rollout.jsonl",
        f"{STAMP}.jsonl",
        f"{STAMP}-{THREAD}",
        f"{STAMP}-{THREAD}.json",
        f"{STAMP}-{THREAD}.jsonl.tmp",
        f"{STAMP}-{THREAD}.jsonl.zst.tmp",
        f"{STAMP}-{THREAD}.jsonl.gz",
        f"{STAMP}-{THREAD}.jsonl.ZST",
        f".{PLAIN}.tmp",
        f"{STAMP}-{THREAD}_.jsonl",
        f"{STAMP}-{THREAD}_{SEGMENT}_{SEGMENT}.jsonl",
        f"{STAMP}-{THREAD[:-1]}.jsonl",
        f"{STAMP}-{THREAD}0.jsonl",
        f"{STAMP}-{THREAD.replace('-', '')}.jsonl",
        f"rollout-2026-11-20-{THREAD}.jsonl",
        f"rollout-2026-11-20T09:59:05-{THREAD}.jsonl",
        f"rollout-٢٠٢٦-11-20T09-59-05-{THREAD}.jsonl",
        f"x{PLAIN}",
        f"{PLAIN}\n",
        f"{STAMP}-{THREAD}.checkpoint_v1.json",
    ],
)
def test_other_names_are_not_session_files(name: str):
    assert parse_name(name) is None


def test_home_has_active_and_archived_sessions(tmp_path: Path):
    active = put(tmp_path, f"sessions/2026/11/20/{PLAIN}", b"12345\n")
    archived = put(tmp_path, f"archived_sessions/{LATER}")

    found = scan(str(tmp_path))

    assert {path: each.archived for path, each in found.items()} == {active: False, archived: True}
    told, status = found[active], os.stat(active)
    assert (told.size, told.modified_ns) == (6, status.st_mtime_ns)
    assert (told.thread_id, told.rollout_id, told.compressed) == (THREAD, THREAD, False)
    assert roots(str(tmp_path)) == (
        str(tmp_path / "sessions"),
        str(tmp_path / "archived_sessions"),
    )


def test_empty_or_missing_home_has_no_sessions(tmp_path: Path):
    assert scan(str(tmp_path)) == {}
    assert scan(str(tmp_path / "nowhere")) == {}
    (tmp_path / "sessions" / "2026").mkdir(parents=True)
    (tmp_path / "archived_sessions").write_bytes(b"not a folder")
    assert scan(str(tmp_path)) == {}


def test_plain_file_counts_beside_its_compressed_twin(tmp_path: Path):
    plain = put(tmp_path, f"sessions/2026/11/20/{PLAIN}")
    put(tmp_path, f"sessions/2026/11/20/{PLAIN}.zst")
    alone = put(tmp_path, f"sessions/2026/11/21/{LATER}.zst")
    elsewhere = put(tmp_path, f"archived_sessions/{PLAIN}.zst")

    assert set(scan(str(tmp_path))) == {plain, alone, elsewhere}


def test_only_files_in_codexs_places_are_found(tmp_path: Path):
    day = put(tmp_path, f"sessions/2026/11/20/{PLAIN}")
    for place in ("sessions/2026/11/20/deeper", "archived_sessions/2026", ".", "sessions_old"):
        put(tmp_path, f"{place}/{PLAIN}")
    put(tmp_path, f"sessions/2026/11/20/{PLAIN}.tmp")
    put(tmp_path, f"sessions/2026/11/20/.{PLAIN}.tmp")
    put(tmp_path, "sessions/2026/11/20/notes.txt")
    (tmp_path / "sessions/2026/11/20" / LATER).mkdir()

    assert set(scan(str(tmp_path))) == {day}


def test_link_is_not_followed(tmp_path: Path):
    outside = put(tmp_path, f"outside/{PLAIN}")
    home = tmp_path / "home"
    real = put(home, f"sessions/2026/11/20/{PLAIN}")
    try:
        (home / "sessions/2026/11/20" / LATER).symlink_to(outside)
        (home / "sessions/2026/12").symlink_to(tmp_path / "outside", target_is_directory=True)
    except OSError:
        assert sys.platform == "win32", "only there it takes a right"

    assert set(scan(str(home))) == {real}
    assert find(str(home / "sessions/2026/11/20" / LATER), archived=False) is None


def test_single_file_has_its_current_attributes(tmp_path: Path):
    path = put(tmp_path, f"sessions/2026/11/20/{PLAIN}")

    first = find(path, archived=False)
    Path(path).write_bytes(b"longer\n")
    second = find(path, archived=False)
    Path(path).unlink()

    assert first is not None
    assert second is not None
    assert (first.size, second.size) == (2, 7)
    assert first.version != second.version
    assert find(path, archived=False) is None
    assert find(str(tmp_path / "sessions"), archived=False) is None
    assert find(put(tmp_path, "sessions/2026/11/20/other.jsonl"), archived=False) is None


def test_replaced_file_has_not_only_grown(tmp_path: Path):
    path = put(tmp_path, f"sessions/2026/11/20/{PLAIN}")
    first = find(path, archived=False)
    new = Path(put(tmp_path, "new", b"as long as before, and longer\n"))
    os.replace(new, path)
    second = find(path, archived=False)

    assert first is not None
    assert second is not None
    assert not has_only_grown(first, second)
    assert has_only_grown(first, first)
    assert not is_unchanged(first)
    assert is_unchanged(second)


def test_thousand_files_over_many_days_are_found(tmp_path: Path):
    for number in range(1000):
        day = tmp_path / f"sessions/2026/{number % 12 + 1:02}/{number % 28 + 1:02}"
        day.mkdir(parents=True, exist_ok=True)
        (day / f"{STAMP}-01a1f865-0000-7000-8000-{number:012}.jsonl").touch()

    assert len({each.thread_id for each in scan(str(tmp_path)).values()}) == 1000
