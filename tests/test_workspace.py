"""Hashes of real files, with what can go wrong between looking and reading."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.storage.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="as POSIX systems do it")
LATER = 3600 * 1_000_000_000


def sha(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def hash_of(workspace: Workspace, base: Path, uri: str) -> str | None:
    return workspace.hashes(str(base), [uri]).get(uri)


def link(at: Path, to: Path | str) -> None:
    try:
        at.symlink_to(to)
    except OSError:
        pytest.skip("no right to make links")


class Clock:
    """Tells how often content was read: the time is asked once before each reading."""

    def __init__(self, ahead: int = 0, meanwhile: Callable[[int], object] = abs) -> None:
        self.readings = 0
        self._ahead = ahead
        self._meanwhile = meanwhile

    def __call__(self) -> int:
        self.readings += 1
        self._meanwhile(self.readings)
        return time.time_ns() + self._ahead


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "login.py").write_bytes(b"print()\n")
    (tmp_path / "empty").touch()

    uris = ["src/login.py", "empty", "src/none.py"]
    assert Workspace().hashes(str(tmp_path), uris) == {
        "src/login.py": sha(b"print()\n"),
        "empty": sha(b""),
    }


@given(content=st.binary(max_size=3000))
def test_any_content_has_its_own_hash(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(content)
        assert Workspace().hashes(folder, ["file"]) == {"file": sha(content)}


def test_a_file_longer_than_one_chunk_is_read_whole(tmp_path: Path) -> None:
    content = os.urandom(1024) * 3000
    (tmp_path / "long").write_bytes(content)

    assert hash_of(Workspace(), tmp_path, "long") == sha(content)


def test_a_file_is_missing_where_there_is_nothing_in_a_folder_that_is_here(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"one")
    workspace = Workspace()
    uris = ["file", "folder", "gone", "gone/too", "file/inside", "/not/here", "../gone"]

    assert workspace.missing(str(tmp_path), uris) == ("gone", "gone/too", "file/inside")
    assert workspace.missing(str(tmp_path / "nowhere"), uris) == ()
    assert workspace.is_here(str(tmp_path))
    assert not any(
        map(workspace.is_here, (str(tmp_path / "nowhere"), str(tmp_path / "file"), None))
    )


@posix_only
@pytest.mark.parametrize("ahead", [0, LATER])
def test_a_change_of_equal_size_with_the_old_time_restored_is_noticed(
    tmp_path: Path, ahead: int
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(ahead))
    before = file.stat()
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")

    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert hash_of(workspace, tmp_path, "file") == sha(b"two")


def test_changes_that_follow_each_other_at_once_are_all_noticed(tmp_path: Path) -> None:
    workspace = Workspace()
    for number in range(300):
        content = b"%03d" % number
        (tmp_path / "file").write_bytes(content)
        assert hash_of(workspace, tmp_path, "file") == sha(content)


def test_restoring_the_old_bytes_restores_the_old_hash(tmp_path: Path) -> None:
    file = tmp_path / "file"
    workspace = Workspace()
    file.write_bytes(b"old")
    before = hash_of(workspace, tmp_path, "file")
    file.write_bytes(b"new and longer")
    assert hash_of(workspace, tmp_path, "file") != before
    file.write_bytes(b"old")

    assert hash_of(workspace, tmp_path, "file") == before


def test_an_old_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    clock = Clock(LATER)
    workspace = Workspace(clock=clock)

    for _ in range(3):
        assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    assert clock.readings == 1


def test_a_file_that_changed_just_before_it_was_hashed_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    clock = Clock()
    workspace = Workspace(clock=clock)

    for _ in range(3):
        assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    assert clock.readings == 3


def test_a_replaced_file_has_the_hash_of_the_new_one(tmp_path: Path) -> None:
    file, new = tmp_path / "file", tmp_path / "new"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(LATER))
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    before = file.stat()
    new.write_bytes(b"two")
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(file)

    assert hash_of(workspace, tmp_path, "file") == sha(b"two")


def test_a_renamed_or_deleted_file_has_no_hash(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(LATER))
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    file.rename(tmp_path / "moved")

    assert workspace.hashes(str(tmp_path), ["file", "moved"]) == {"moved": sha(b"one")}
    (tmp_path / "moved").unlink()
    assert workspace.hashes(str(tmp_path), ["file", "moved"]) == {}


def test_growing_over_the_limit_changes_the_kind_of_hash(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    workspace = Workspace(hash_limit=5)
    assert hash_of(workspace, tmp_path, "file") == sha(b"12345")
    file.write_bytes(b"123456")

    assert hash_of(workspace, tmp_path, "file") == f"stat:6-{file.stat().st_mtime_ns}"


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 36)
    clock = Clock()

    assert (hash_of(Workspace(clock=clock), tmp_path, "huge") or "").startswith("stat:68719476736-")
    assert clock.readings == 0


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")

    def change_once(readings: int) -> None:
        if readings == 1:
            file.write_bytes(b"three")

    clock = Clock(meanwhile=change_once)
    assert hash_of(Workspace(clock=clock), tmp_path, "file") == sha(b"three")
    assert clock.readings == 2


@pytest.mark.parametrize("content", ["longer each time" * 9, ""])
def test_a_file_that_never_rests_has_no_hash(tmp_path: Path, content: str) -> None:
    file = tmp_path / "file"
    file.write_text("start")
    clock = Clock(meanwhile=lambda readings: file.write_text(content + "x" * readings))

    assert hash_of(Workspace(clock=clock), tmp_path, "file") is None
    assert clock.readings == 3


@contextlib.contextmanager
def as_somebody(folder: Path) -> Generator[None]:
    """Give up root's right to read everything, for a while."""
    if sys.platform == "win32":
        pytest.skip("no mode bits")
    if os.geteuid() != 0:
        yield
        return
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix_only
@pytest.mark.parametrize("limit", [1, 100])
def test_a_file_made_unreadable_has_no_hash(limit: int) -> None:
    with tempfile.TemporaryDirectory() as name, as_somebody(Path(name)):
        file = Path(name, "file")
        file.write_bytes(b"one")
        workspace = Workspace(limit, clock=Clock(LATER))
        before = hash_of(workspace, Path(name), "file")
        assert before is not None
        file.chmod(0)
        assert hash_of(workspace, Path(name), "file") is None
        file.chmod(stat.S_IRUSR)
        assert hash_of(workspace, Path(name), "file") == before


@posix_only
def test_a_file_in_a_closed_folder_has_no_hash() -> None:
    with tempfile.TemporaryDirectory() as name, as_somebody(Path(name)):
        folder = Path(name, "folder")
        folder.mkdir()
        (folder / "file").write_bytes(b"one")
        workspace = Workspace(clock=Clock(LATER))
        assert hash_of(workspace, Path(name), "folder/file") == sha(b"one")
        folder.chmod(0)
        assert hash_of(workspace, Path(name), "folder/file") is None
        folder.chmod(stat.S_IXUSR)
        if sys.platform == "linux":
            assert hash_of(workspace, Path(name), "folder/file") == sha(b"one")
        folder.chmod(stat.S_IRWXU)


def test_a_folder_in_place_of_the_file_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    assert hash_of(Workspace(), tmp_path, "file") is None
    assert hash_of(Workspace(), tmp_path, "") is None
    assert hash_of(Workspace(), tmp_path, ".") is None


def test_a_file_in_place_of_the_folder_has_no_hash(tmp_path: Path) -> None:
    (tmp_path / "folder").touch()

    assert hash_of(Workspace(), tmp_path, "folder/file") is None
    assert hash_of(Workspace(), tmp_path / "folder", "file") is None


@pytest.mark.timeout(20)
def test_a_pipe_gives_no_hash_and_does_not_block(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no pipes in folders")
    os.mkfifo(tmp_path / "pipe")

    assert hash_of(Workspace(), tmp_path, "pipe") is None


@pytest.mark.timeout(60)
def test_a_pipe_swapped_in_after_the_look_neither_blocks_nor_gives_a_hash(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no pipes in folders")
    file, pipe, good = tmp_path / "file", tmp_path / "pipe", tmp_path / "good"
    os.mkfifo(pipe)
    good.write_bytes(b"good")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for source in (pipe, good):
                with contextlib.suppress(OSError):
                    file.unlink()
                os.link(source, file)

    swapping = threading.Thread(target=swap)
    swapping.start()
    workspace = Workspace()
    try:
        found = {hash_of(workspace, tmp_path, "file") for _ in range(3000)}
    finally:
        done.set()
        swapping.join()
    assert found <= {None, sha(b"good")}


@pytest.mark.timeout(60)
@posix_only
@pytest.mark.parametrize("folder", [False, True])
def test_a_link_to_outside_swapped_in_after_the_look_is_never_followed(
    tmp_path: Path,
    folder: bool,
) -> None:
    base, secret = tmp_path / "base", tmp_path / "secret"
    for place, content in ((base / "folder", b"inside"), (secret, b"secret")):
        place.mkdir(parents=True)
        (place / "file").write_bytes(content)
    swapped = base / "folder" if folder else base / "folder" / "file"
    target = secret if folder else secret / "file"
    aside = base / "aside"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            swapped.rename(aside)
            swapped.symlink_to(target)
            swapped.unlink()
            aside.rename(swapped)

    swapping = threading.Thread(target=swap)
    swapping.start()
    workspace = Workspace()
    try:
        found = {hash_of(workspace, base, "folder/file") for _ in range(3000)}
    finally:
        done.set()
        swapping.join()
    assert found <= {None, sha(b"inside")}


@posix_only
def test_devices_sockets_and_made_up_files_give_no_hash_of_what_they_say(tmp_path: Path) -> None:
    workspace = Workspace(outside=True)
    uris = ["/dev/null", "/dev/zero", "/dev/tty"]
    assert workspace.hashes(str(tmp_path), uris) == {}
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(tmp_path):
            listening.bind("socket")
            assert hash_of(workspace, tmp_path, "socket") is None
    if sys.platform == "linux":
        # Its size is none, so nothing of it is read.
        made_up = "/proc/self/status"
        assert workspace.hashes(str(tmp_path), [made_up]) == {made_up: sha(b"")}


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"one")
    link(tmp_path / "file", "real/file")
    link(tmp_path / "folder", "real")

    assert hash_of(Workspace(), tmp_path, "file") == sha(b"one")
    assert hash_of(Workspace(), tmp_path, "folder/file") == sha(b"one")


def test_a_link_to_outside_gives_no_hash_unless_the_setting_allows(tmp_path: Path) -> None:
    base, secret = tmp_path / "base", tmp_path / "secret"
    base.mkdir()
    secret.mkdir()
    (secret / "file").write_bytes(b"one")
    link(base / "file", secret / "file")
    link(base / "folder", secret)
    link(base / "twice", "folder/file")
    uris = ["file", "folder/file", "twice"]

    assert Workspace().hashes(str(base), uris) == {}
    assert Workspace(outside=True).hashes(str(base), uris) == dict.fromkeys(uris, sha(b"one"))


def test_links_to_nowhere_and_in_circles_give_no_hash(tmp_path: Path) -> None:
    link(tmp_path / "dangling", "nothing")
    link(tmp_path / "circle", "circle")

    assert Workspace().hashes(str(tmp_path), ["dangling", "circle", "circle/file"]) == {}


def test_a_base_that_is_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"one")
    link(tmp_path / "base", "real")

    assert hash_of(Workspace(), tmp_path / "base", "file") == sha(b"one")


def test_a_file_outside_has_a_hash_only_where_the_setting_allows(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    outside = tmp_path / "base and more"
    outside.write_bytes(b"one")
    uris = [outside.as_posix(), "../base and more"]

    assert Workspace().hashes(str(base), uris) == {}
    assert Workspace(outside=True).hashes(str(base), uris) == dict.fromkeys(uris, sha(b"one"))


@pytest.mark.parametrize("base", [None, "", "relative", "/no/such/folder", "nul\0", "\ud83d"])
def test_without_a_base_on_this_machine_nothing_has_a_hash(
    tmp_path: Path, base: str | None
) -> None:
    file = tmp_path / "file"
    file.touch()
    workspace = Workspace(outside=True)

    assert workspace.hashes(base, ["file", file.as_posix()]) == {}
    assert workspace.folders(base, ["file", file.as_posix()]) == set()


@posix_only
@pytest.mark.parametrize("base", ["C:\\work", "c:/work", "\\\\host\\share", "//host/share"])
def test_a_windows_base_has_no_hashes_on_posix(tmp_path: Path, base: str) -> None:
    with contextlib.chdir(tmp_path):
        Path(base.lstrip("/")).mkdir(parents=True)
        assert Workspace(outside=True).hashes(base, ["file"]) == {}


@posix_only
def test_a_windows_uri_has_no_hash_on_posix_but_a_backslash_is_a_plain_character(
    tmp_path: Path,
) -> None:
    for folder in ("C:", "host"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").touch()
    (tmp_path / "back\\slash").touch()
    uris = ["C:/file", "C:\\file", "\\\\host\\file", "//host/file", "back\\slash"]

    assert Workspace(outside=True).hashes(str(tmp_path), uris) == {"back\\slash": sha(b"")}


@pytest.mark.skipif(sys.platform != "win32", reason="as Windows does it")
def test_devices_pipes_and_streams_have_no_hash_on_windows(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    uris = ["NUL", "con.txt", "COM1", "file:stream", "file::$DATA", "//./pipe/x", "//?/C:/x", "/x"]

    assert Workspace(outside=True).hashes(str(tmp_path), uris) == {}


@pytest.mark.parametrize("uri", ["nul\0", "\ud83d", "x" * 5000, "a/" * 3000 + "b", "../" * 99])
def test_uris_that_no_system_takes_have_no_hash(tmp_path: Path, uri: str) -> None:
    assert Workspace(outside=True).hashes(str(tmp_path), [uri]) == {}
    assert Workspace().folders(str(tmp_path), [uri]) <= {str(tmp_path)}


@pytest.mark.parametrize("name", ["größe.txt", "gro\u0308ße.txt", "日本語", "😀", "a b'c", "-rf"])
def test_names_of_any_script_have_hashes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"one")

    assert hash_of(Workspace(), tmp_path, name) == sha(b"one")


@pytest.mark.timeout(120)
def test_ten_thousand_files_are_hashed_and_the_second_look_reads_none(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / str(folder)).mkdir()
        for number in range(100):
            (tmp_path / str(folder) / str(number)).write_text(f"{folder} {number}")
    uris = [f"{folder}/{number}" for folder in range(100) for number in range(100)]
    clock = Clock(LATER)
    workspace = Workspace(clock=clock)
    first = workspace.hashes(str(tmp_path), uris)
    assert len(set(first.values())) == 10_000

    begun = time.monotonic()
    assert workspace.hashes(str(tmp_path), iter(uris)) == first
    assert clock.readings == 10_000
    assert time.monotonic() - begun < 5
    assert len(workspace.folders(str(tmp_path), uris)) == 101


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    uris = [str(number) for number in range(17_000)]
    for uri in uris:
        (tmp_path / uri).touch()
    clock = Clock(LATER)
    workspace = Workspace(clock=clock)
    workspace.hashes(str(tmp_path), uris)
    workspace.hashes(str(tmp_path), uris[-100:])
    assert clock.readings == 17_000
    workspace.hashes(str(tmp_path), uris[:100])
    assert clock.readings == 17_100


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("counted in /proc")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").touch()
    workspace = Workspace()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        workspace.hashes(str(tmp_path), ["deep/er/file", "deep/er/none", "deep/none/x"])

    assert len(os.listdir("/proc/self/fd")) == before


def test_every_folder_from_the_base_to_a_file_is_watched(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "unrelated").mkdir()
    folders = Workspace().folders(str(tmp_path), ["a/b/file", "a/none/deeper/file"])

    assert folders == {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")}


def test_the_folder_a_link_leads_to_is_watched_but_none_outside(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "real").mkdir(parents=True)
    (base / "real" / "file").touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").touch()
    link(base / "file", "real/file")
    link(base / "folder", tmp_path / "secret")
    uris = ["file", "folder/file", (tmp_path / "secret" / "file").as_posix()]

    assert Workspace().folders(str(base), uris) == {str(base), str(base / "real")}
    assert Workspace(outside=True).folders(str(base), uris) == {
        str(base),
        str(base / "real"),
        str(base / "folder"),
        str(tmp_path / "secret"),
    }


def test_a_checkout_that_swaps_whole_folders_is_noticed(tmp_path: Path) -> None:
    base = tmp_path / "base"
    workspace = Workspace(clock=Clock(LATER))
    for branch in (b"main", b"next"):
        (tmp_path / "new" / "src").mkdir(parents=True)
        (tmp_path / "new" / "src" / "file").write_bytes(branch)
        if base.exists():
            shutil.rmtree(base)
        (tmp_path / "new").rename(base)
        assert hash_of(workspace, base, "src/file") == sha(branch)
