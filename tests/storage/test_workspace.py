"""Hashes of real files, and faults between the check and the read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.records import FOLDER
from codex_checkpoints.storage.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="as POSIX systems do it")
LATER = 3600 * 1_000_000_000
ROUNDS = 3000 if os.environ.get("CI") else 1000
"""How many times something is swapped under a reader."""


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


@given(content=st.binary(max_size=3000))
def test_any_content_has_its_own_hash(content: bytes):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(content)
        assert Workspace().hashes(folder, ["file", "none"]) == {"file": sha(content)}


def test_file_of_any_name_longer_than_a_chunk_is_read_whole(tmp_path: Path):
    content = os.urandom(1024) * 3000
    for name in ("größe.txt", "gro\u0308ße.txt", "日本語", "😀", "a b'c", "-rf"):
        (tmp_path / name).write_bytes(content)

        assert hash_of(Workspace(), tmp_path, name) == sha(content)


def test_file_is_missing_if_its_existing_folder_has_none(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"one")
    workspace = Workspace()
    uris = ["file", "folder", "gone", "gone/too", "file/inside", "/not/here", "../gone"]

    assert workspace.missing(str(tmp_path), uris) == ("gone", "gone/too", "file/inside")
    assert workspace.missing(str(tmp_path / "nowhere"), uris) == ()
    places = (str(tmp_path), str(tmp_path / "nowhere"), str(tmp_path / "file"), None)
    assert [workspace.is_here(place) for place in places] == [True, False, False, False]


@posix_only
@pytest.mark.parametrize("ahead", [0, LATER])
def test_change_of_equal_size_and_restored_time_is_noticed(tmp_path: Path, ahead: int):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(ahead))
    before = file.stat()
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")

    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert hash_of(workspace, tmp_path, "file") == sha(b"two")


def test_changes_in_quick_succession_are_all_noticed(tmp_path: Path):
    workspace = Workspace()
    for number in range(300):
        content = b"%03d" % number
        (tmp_path / "file").write_bytes(content)
        assert hash_of(workspace, tmp_path, "file") == sha(content)


@pytest.mark.parametrize(("ahead", "readings"), [(LATER, 1), (0, 3)])
def test_old_file_is_read_once_and_a_recently_changed_one_again(
    tmp_path: Path, ahead: int, readings: int
):
    (tmp_path / "file").write_bytes(b"one")
    clock = Clock(ahead)
    workspace = Workspace(clock=clock)

    for _ in range(3):
        assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    assert clock.readings == readings


def test_folder_is_reported_on_request(tmp_path: Path):
    (tmp_path / "d").mkdir()
    (tmp_path / "a").write_bytes(b"a")
    link(tmp_path / "e", "d")

    uris = ["a", "d", "e", "gone"]
    assert Workspace().hashes(str(tmp_path), uris) == {"a": sha(b"a")}
    looks = {"a": sha(b"a"), "d": FOLDER, "e": FOLDER, "gone": None}
    assert Workspace().looks(str(tmp_path), uris) == looks


def test_replaced_file_has_the_new_hash(tmp_path: Path):
    file, new = tmp_path / "file", tmp_path / "new"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(LATER))
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    before = file.stat()
    new.write_bytes(b"two")
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(file)

    assert hash_of(workspace, tmp_path, "file") == sha(b"two")


def test_renamed_or_deleted_file_has_no_hash(tmp_path: Path):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    workspace = Workspace(clock=Clock(LATER))
    assert hash_of(workspace, tmp_path, "file") == sha(b"one")
    file.rename(tmp_path / "moved")

    assert workspace.hashes(str(tmp_path), ["file", "moved"]) == {"moved": sha(b"one")}
    (tmp_path / "moved").unlink()
    assert workspace.hashes(str(tmp_path), ["file", "moved"]) == {}


def test_file_over_the_limit_is_not_read(tmp_path: Path):
    file, clock = tmp_path / "file", Clock()
    workspace = Workspace(hash_limit=5, clock=clock)
    file.write_bytes(b"12345")
    assert hash_of(workspace, tmp_path, "file") == sha(b"12345")
    os.truncate(file, 1 << 36)

    weak = f"stat:68719476736-{file.stat().st_mtime_ns}"
    assert hash_of(workspace, tmp_path, "file") == weak
    assert clock.readings == 1


def test_file_that_changes_during_the_read_is_read_again(tmp_path: Path):
    file = tmp_path / "file"
    file.write_bytes(b"one")

    def change_once(readings: int) -> None:
        if readings == 1:
            file.write_bytes(b"three")

    clock = Clock(meanwhile=change_once)
    assert hash_of(Workspace(clock=clock), tmp_path, "file") == sha(b"three")
    assert clock.readings == 2


@pytest.mark.parametrize("content", ["longer each time" * 9, ""])
def test_file_that_keeps_changing_has_no_hash(tmp_path: Path, content: str):
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
def test_file_made_unreadable_has_no_hash(limit: int):
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
def test_file_in_a_closed_folder_has_no_hash():
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


@pytest.mark.timeout(20)
def test_path_that_is_not_a_file_has_no_hash(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")  # nobody waits for it

    uris = ["folder", "", ".", "file/inside", "pipe"]
    assert Workspace().hashes(str(tmp_path), uris) == {}
    assert hash_of(Workspace(), tmp_path / "file", "file") is None


@contextlib.contextmanager
def again_and_again(change: Callable[[], None]) -> Generator[None]:
    """Change something all the time while a block runs."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            change()

    changing = threading.Thread(target=work)
    changing.start()
    try:
        yield
    finally:
        done.set()
        changing.join()


@pytest.mark.timeout(60)
@posix_only
def test_pipe_swapped_in_after_the_check_neither_blocks_nor_gives_a_hash(tmp_path: Path):
    file, pipe, good = tmp_path / "file", tmp_path / "pipe", tmp_path / "good"
    os.mkfifo(pipe)
    good.write_bytes(b"good")

    def swap() -> None:
        for source in (pipe, good):
            with contextlib.suppress(OSError):
                file.unlink()
            os.link(source, file)

    workspace = Workspace()
    with again_and_again(swap):
        found = {hash_of(workspace, tmp_path, "file") for _ in range(ROUNDS)}
    assert found <= {None, sha(b"good")}


@pytest.mark.timeout(60)
@posix_only
@pytest.mark.parametrize("folder", [False, True])
def test_outside_link_swapped_in_after_the_check_is_never_followed(tmp_path: Path, folder: bool):
    base, secret = tmp_path / "base", tmp_path / "secret"
    for place, content in ((base / "folder", b"inside"), (secret, b"secret")):
        place.mkdir(parents=True)
        (place / "file").write_bytes(content)
    swapped = base / "folder" if folder else base / "folder" / "file"

    def swap() -> None:
        swapped.rename(base / "aside")
        swapped.symlink_to(secret if folder else secret / "file")
        swapped.unlink()
        (base / "aside").rename(swapped)

    workspace = Workspace()
    with again_and_again(swap):
        found = {hash_of(workspace, base, "folder/file") for _ in range(ROUNDS)}
    assert found <= {None, sha(b"inside")}


@posix_only
def test_devices_sockets_and_virtual_files_give_no_hash(tmp_path: Path):
    workspace = Workspace(outside=True)
    uris = ["/dev/null", "/dev/zero", "/dev/tty"]
    assert workspace.hashes(str(tmp_path), uris) == {}
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(tmp_path):
        listening.bind("socket")
        assert hash_of(workspace, tmp_path, "socket") is None
    if sys.platform == "linux":
        # Its size is none, so nothing of it is read.
        made_up = "/proc/self/status"
        assert workspace.hashes(str(tmp_path), [made_up]) == {made_up: sha(b"")}


def test_inside_link_is_followed_unless_dangling_or_cyclic(
    tmp_path: Path,
):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"one")
    for at, to in (("file", "real/file"), ("base", "real"), ("gone", "x"), ("circle", "circle")):
        link(tmp_path / at, to)

    uris = ["file", "base/file", "gone", "circle", "circle/file"]
    assert Workspace().hashes(str(tmp_path), uris) == dict.fromkeys(uris[:2], sha(b"one"))
    assert hash_of(Workspace(), tmp_path / "base", "file") == sha(b"one")


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from codex_checkpoints.storage.workspace import Workspace
base, uri = (bytes.fromhex(each).decode() for each in sys.argv[2:])
print(Workspace().hashes(base, [uri]).get(uri), Workspace().folders(base, [uri]) != set())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="names are Unicode there")
@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1", "ja_JP.eucJP"])
def test_name_is_utf8_in_every_locale(tmp_path: Path, locale: str):
    base = tmp_path / "straße"
    (base / "日本").mkdir(parents=True)
    (base / "日本/größe.py").write_bytes(b"one")
    named = (text.encode().hex() for text in (str(base), "日本/größe.py"))

    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parents[2] / "server"), *named],
        env={"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.strip() == f"{sha(b'one')} True"


def test_outside_file_has_a_hash_only_if_the_setting_allows(tmp_path: Path):
    base, outside = tmp_path / "base", tmp_path / "base and more"
    for folder in (base, outside):
        folder.mkdir()
    (outside / "file").write_bytes(b"one")
    link(base / "file", outside / "file")
    link(base / "folder", outside)
    link(base / "twice", "folder/file")
    named = ["../base and more/file", (outside / "file").as_posix()]
    uris = ["file", "folder/file", "twice", *named]

    assert Workspace().hashes(str(base), uris) == {}
    assert Workspace(outside=True).hashes(str(base), uris) == dict.fromkeys(uris, sha(b"one"))


def test_missing_file_is_distinguished_from_an_invisible_one(tmp_path: Path):
    base, outside = tmp_path / "base", tmp_path / "outside"
    for folder in (base / "folder", outside):
        folder.mkdir(parents=True)
    (base / "file").write_bytes(b"one")
    link(base / "link", outside)
    link(base / "gone too", "none")

    uris = ["file", "none", "no/none", "file/none", "folder", "link/none", "gone too"]
    uris += ["../outside/none", (outside / "none").as_posix()]
    found = Workspace().looks(str(base), uris)
    gone = ("none", "no/none", "file/none", "gone too")
    assert found == {"file": sha(b"one"), "folder": FOLDER, **dict.fromkeys(gone)}
    assert Workspace().looks(str(tmp_path / "nowhere"), uris) == {}
    assert Workspace(outside=True).looks(str(base), ["../outside/none"]) == {
        "../outside/none": None
    }


def test_without_a_base_on_this_machine_nothing_has_a_hash(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    workspace = Workspace(outside=True)

    for base in (None, "", "relative", "/no/such/folder", "nul\0", "\ud83d"):
        assert workspace.hashes(base, ["file", file.as_posix()]) == {}
        assert workspace.folders(base, ["file", file.as_posix()]) == set()


@posix_only
def test_windows_name_has_no_hash_on_posix_but_a_backslash_is_plain(
    tmp_path: Path,
):
    with contextlib.chdir(tmp_path):
        for base in ("C:\\work", "c:/work", "\\\\host\\share", "//host/share"):
            Path(base.lstrip("/")).mkdir(parents=True)
            assert Workspace(outside=True).hashes(base, ["file"]) == {}
    (tmp_path / "C:").mkdir()
    for name in ("C:/file", "host/file", "back\\slash"):
        (tmp_path / name).touch()
    uris = ["C:/file", "C:\\file", "\\\\host\\file", "//host/file", "back\\slash"]

    assert Workspace(outside=True).hashes(str(tmp_path), uris) == {"back\\slash": sha(b"")}


@pytest.mark.skipif(sys.platform != "win32", reason="as Windows does it")
def test_devices_pipes_and_streams_have_no_hash_on_windows(tmp_path: Path):
    (tmp_path / "file").touch()
    uris = ["NUL", "con.txt", "COM1", "file:stream", "file::$DATA", "//./pipe/x", "//?/C:/x", "/x"]

    assert Workspace(outside=True).hashes(str(tmp_path), uris) == {}


def test_uris_that_no_system_accepts_have_no_hash(tmp_path: Path):
    for uri in ("nul\0", "\ud83d", "x" * 5000, "a/" * 3000 + "b", "../" * 99):
        assert Workspace(outside=True).hashes(str(tmp_path), [uri]) == {}
        assert Workspace().folders(str(tmp_path), [uri]) <= {str(tmp_path)}


def test_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("codex_checkpoints.storage.workspace._REMEMBERED", 1_000)
    uris = [str(number) for number in range(1_100)]
    for uri in uris:
        (tmp_path / uri).touch()
    clock = Clock(LATER)
    workspace = Workspace(clock=clock)
    workspace.hashes(str(tmp_path), uris)
    workspace.hashes(str(tmp_path), uris[-100:])
    assert clock.readings == 1_100
    workspace.hashes(str(tmp_path), uris[:100])
    assert clock.readings == 1_200


def test_no_descriptor_stays_open(tmp_path: Path):
    if sys.platform != "linux":
        pytest.skip("counted in /proc")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "file").touch()
    workspace = Workspace()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        workspace.hashes(str(tmp_path), ["deep/er/file", "deep/er/none", "deep/none/x"])

    assert len(os.listdir("/proc/self/fd")) == before


def test_folders_to_a_file_and_link_targets_are_watched_but_none_outside(
    tmp_path: Path,
):
    base, secret = tmp_path / "base", tmp_path / "secret"
    for folder in (base / "real", base / "a" / "b", base / "unrelated", secret):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    link(base / "file", "real/file")
    link(base / "folder", secret)
    uris = ["file", "folder/file", (secret / "file").as_posix(), "a/b/file", "a/none/deeper/file"]

    inside = {str(base / name) for name in ("", "real", "a", "a/b")}
    assert Workspace().folders(str(base), uris) == inside
    outside = {str(base / "folder"), str(secret)}
    assert Workspace(outside=True).folders(str(base), uris) == inside | outside


def test_checkout_that_swaps_whole_folders_is_noticed(tmp_path: Path):
    base = tmp_path / "base"
    workspace = Workspace(clock=Clock(LATER))
    for branch in (b"main", b"next"):
        (tmp_path / "new" / "src").mkdir(parents=True)
        (tmp_path / "new" / "src" / "file").write_bytes(branch)
        if base.exists():
            shutil.rmtree(base)
        (tmp_path / "new").rename(base)
        assert hash_of(workspace, base, "src/file") == sha(branch)
