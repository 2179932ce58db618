"""Copies of pushed sessions on this machine use a bounded part of the disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_checkpoints.storage.atomic_files import StorageError
from codex_checkpoints.storage.remote import cache
from codex_checkpoints.storage.remote.cache import RemoteCache
from codex_checkpoints.storage.remote.contract import SessionRow


def row(session: str, size: int) -> SessionRow:
    return SessionRow(session, 1, size, "0" * 64, 1, "ana", "laptop", "1")


def test_session_that_would_fill_the_disk_is_not_read(tmp_path: Path) -> None:
    def portions() -> Iterator[bytes]:
        pytest.fail("it was read")
        yield b""

    with pytest.raises(StorageError, match="GB are free"):
        RemoteCache(str(tmp_path), "remote").keep(row("one", 1 << 60), portions())

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_sessions_opened_last_are_kept_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 25)
    copies = RemoteCache(str(tmp_path), "remote")
    paths = [Path(copies.keep(row(name, 10), [b"x" * 10])) for name in ("a", "b", "c", "d")]

    assert [path.exists() for path in paths] == [False, True, True, True]


def test_copy_larger_than_the_limit_goes_once_it_was_pulled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = RemoteCache(str(tmp_path), "remote")
    path = Path(copies.keep(row("one", 10), [b"x" * 10]))

    copies.release(str(path))
    assert path.exists()
    monkeypatch.setattr(cache, "MOST_BYTES", 9)
    copies.release(str(path))
    assert not path.exists()
