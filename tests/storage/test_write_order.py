"""Each way to write a file ends with its bytes flushed, then its name, then the folder's flush."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codex_checkpoints.codex import file_edit
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.records import Records

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are not flushed there")

Calls = list[tuple[str, str]]
"""What was asked of the system: the call, and the name of the file or folder it was about."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Record the calls that write, flush or name, with the files that descriptors stand for."""
    found: Calls = []
    files: dict[int, str] = {}
    opened, write, fsync = os.open, os.write, os.fsync

    def open_(path: str, *more: int, **named: int) -> int:
        file = opened(path, *more, **named)
        files[file] = os.path.basename(path)
        return file

    def write_(file: int, data: bytes) -> int:
        found.append(("write", files[file]))
        return write(file, data)

    def fsync_(file: int) -> None:
        found.append(("fsync", files[file]))
        fsync(file)

    def naming(name: str) -> Callable[[str, str], None]:
        plain = getattr(os, name)

        def call(source: str, target: str) -> None:
            found.append((name, os.path.basename(target)))
            plain(source, target)

        return call

    with monkeypatch.context() as recorded:
        recorded.setattr(os, "open", open_)
        recorded.setattr(os, "write", write_)
        recorded.setattr(os, "fsync", fsync_)
        for name in ("link", "rename", "replace"):
            recorded.setattr(os, name, naming(name))
        yield found


def plain(calls: Calls) -> Calls:
    """Leave out what makes temporary names differ."""
    return [(call, "temporary" if name.endswith(".tmp") else name) for call, name in calls]


def appended(path: str, line: object) -> None:
    with atomic_files.open_journal(path) as journal:
        journal.append(line)


WAYS: list[tuple[Callable[[str], object], str]] = [
    (lambda path: atomic_files.replace(path, b"new"), "replace"),
    (lambda path: atomic_files.publish(path, [b"new"]), "link"),
]
APPENDING: list[Callable[[str], object]] = [
    lambda path: appended(path, {"a": 1}),
    lambda path: atomic_files.append_line(path, b"{}"),
]


@pytest.mark.parametrize(("write_it", "naming"), WAYS, ids=["replaced", "published"])
def test_file_is_flushed_then_renamed_then_its_folder_is_flushed(
    folder: Path, calls: Calls, write_it: Callable[[str], object], naming: str
) -> None:
    write_it(str(folder / "a"))

    assert plain(calls) == [
        ("write", "temporary"),
        ("fsync", "temporary"),
        (naming, "a"),
        ("fsync", "folder"),
    ]


@pytest.mark.parametrize("append", APPENDING, ids=["under a lock", "without a lock"])
def test_folder_is_flushed_only_after_the_first_line_of_a_file(
    folder: Path, calls: Calls, append: Callable[[str], object]
) -> None:
    for _ in range(2):
        append(str(folder / "a"))

    line = [("write", "a"), ("fsync", "a")]
    assert calls == [*line, ("fsync", "folder"), *line]


def test_new_folder_is_flushed_into_its_parent(folder: Path, calls: Calls) -> None:
    atomic_files.make_folder(str(folder / "new" / "newer"))

    assert calls == [("fsync", "folder"), ("fsync", "new")]


def test_files_of_a_session_are_written_in_these_ways(folder: Path, calls: Calls) -> None:
    records = Records(str(folder))

    records.write_checkpoint("s", "rollout.jsonl", b"{}")
    records.add_receipt("s", {})

    assert plain(calls) == [
        ("fsync", "folder"),
        ("fsync", "sessions"),
        ("write", "temporary"),
        ("fsync", "temporary"),
        ("replace", "checkpoint_v1.json"),
        ("fsync", "s"),
        ("write", "receipts.jsonl"),
        ("fsync", "receipts.jsonl"),
        ("fsync", "s"),
    ]


def test_codexs_configuration_file_is_written_in_these_ways(folder: Path, calls: Calls) -> None:
    (folder / "config.toml").write_bytes(b"old")
    before = file_edit.read(str(folder / "config.toml"))

    file_edit.keep(before)
    file_edit.replace(before, b"new")

    assert [name for call, name in plain(calls) if call != "write"] == [
        "temporary",
        "config.toml.codex-checkpoints.bak",
        "folder",
        "temporary",
        "config.toml",
        "folder",
    ]


@pytest.mark.parametrize("room", [0, 3])
def test_full_disk_is_one_error_after_any_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    left, write = room, os.write

    def full(file: int, data: bytes) -> int:
        nonlocal left
        if left == 0:
            raise OSError(28, "No space left on device")
        taken, left = left, 0
        return write(file, data[:taken])

    files = {"old": b"old", "lines": b"1\n"}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    monkeypatch.setattr(os, "write", full)

    for write_it in (
        lambda: atomic_files.replace(str(folder / "old"), b"newer"),
        lambda: atomic_files.publish(str(folder / "new"), [b"newer"]),
        lambda: appended(str(folder / "lines"), "newer"),
    ):
        left = room
        with (
            pytest.raises(atomic_files.StorageError, match="No space left on device"),
            atomic_files.storage_errors(),
        ):
            write_it()

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
