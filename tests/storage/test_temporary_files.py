"""Files written under a temporary name: their owners, leftovers, and systems without locks."""

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType

import pytest

from codex_checkpoints.storage import atomic_files, file_lock
from codex_checkpoints.storage.records import Records
from rollouts import THREAD

HOUR_AGO = time.time() - 3600


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / ".a.tmp"
    assert list(tmp_path.iterdir()) == []


def write(path: Path) -> None:
    with atomic_files.temporary_file(str(path), (b"all",), 0o600):
        path.rename(path.with_name("a"))


def test_file_being_written_is_kept_and_a_leftover_is_removed(path: Path) -> None:
    with atomic_files.temporary_file(str(path), (), 0o600):
        assert not atomic_files.clear(str(path))

    assert atomic_files.clear(str(path))
    assert not atomic_files.clear(str(path))


def test_failed_block_removes_its_file(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_files.temporary_file(str(path), (b"all",), 0o600):
        raise ZeroDivisionError


WAYS: list[Callable[[str], object]] = [
    lambda path: atomic_files.replace(path, b"new"),
    lambda path: atomic_files.publish(path, [b"new"]),
]


@pytest.mark.parametrize("write_it", WAYS, ids=["replacing", "publishing"])
def test_interrupt_at_any_call_leaves_no_temporary_file(
    tmp_path: Path, write_it: Callable[[str], object]
) -> None:
    def is_interrupted(moment: int) -> bool:
        """Raise where Ctrl+C could: after the call with this number."""
        calls = itertools.count()

        def interrupt(_frame: FrameType, event: str, _value: object) -> None:
            if event in {"call", "c_return"} and next(calls) == moment:
                sys.setprofile(None)
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            write_it(str(tmp_path / "a"))
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False

    moment = 0
    while is_interrupted(moment):
        assert [path.name for path in tmp_path.iterdir() if path.name != "a"] == [], moment
        (tmp_path / "a").unlink(missing_ok=True)
        moment += 1
    assert moment > 40


def test_existing_file_of_this_name_is_untouched_and_a_link_not_followed(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(b"another's")
    path.symlink_to(target)

    assert not atomic_files.clear(str(path))
    with pytest.raises(FileExistsError), atomic_files.temporary_file(str(path), (), 0o600):
        pass

    assert path.read_bytes() == target.read_bytes() == b"another's"
    path.unlink()
    target.unlink()


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks there")
def test_writer_beside_a_cleanup_starts_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take, others = file_lock.take, list[int]()

    def first_another(file: int) -> bool:
        if not others:
            others.append(os.open(path, os.O_RDWR))
            assert take(others[0])
            threading.Timer(0.05, path.unlink).start()
        return take(file)

    monkeypatch.setattr(file_lock, "take", first_another)
    write(path)
    os.close(others[0])

    assert path.with_name("a").read_bytes() == b"all"
    path.with_name("a").unlink()


def test_without_locks_files_are_written_and_age_decides_leftovers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(_: int) -> bool:
        return False

    monkeypatch.setattr(file_lock, "take", no)
    monkeypatch.setattr(file_lock, "is_supported", no)

    write(path)
    path.with_name("a").unlink()
    path.write_bytes(b"part")
    assert not atomic_files.clear(str(path))
    os.utime(path, (HOUR_AGO, HOUR_AGO))
    assert atomic_files.clear(str(path))


@pytest.mark.parametrize(("where", "name"), [(atomic_files, "make_folder"), (os, "mkdir")])
def test_folder_removed_by_another_process_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: ModuleType, name: str
) -> None:
    make, left = getattr(where, name), ["restoring", THREAD]

    def removed(folder: str, mode: int = 0o777) -> None:
        make(folder, mode)
        if os.path.basename(folder) in left:
            left.remove(os.path.basename(folder))
            os.rmdir(folder)

    monkeypatch.setattr(where, name, removed)
    with atomic_files.open_journal(str(tmp_path / "restoring" / "one.jsonl")) as journal:
        journal.append({})

    records = Records(str(tmp_path / "state"))
    assert records.write_checkpoint(THREAD, "rollout.jsonl", b"{}\n")
    assert left == []


def test_repeated_failure_to_create_is_refused(tmp_path: Path) -> None:
    def never() -> None:
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        atomic_files.in_folder(str(tmp_path / "a" / "b"), never)
