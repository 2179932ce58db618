"""The watcher on real folders; every wait is for a condition, with a limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from codex_checkpoints.storage.watch import MAX_FOLDERS, Watcher, sends_no_events
from codex_checkpoints.storage.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = [
    pytest.mark.timeout(60),
    # Watchdog warns when a folder is made while it adds the one above. As an error it would
    # end watchdog's thread.
    pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning"),
]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="about inotify")

LIMIT = 10.0
QUIET = 0.15
"""How long it is quiet when all is told: three looks of one that polls."""
NOTHING = 0.25
"""How long is listened where nothing may come: five of them."""


class Ear:
    """Hears which paths to look at again."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, path: str) -> None:
        with self._changed:
            self._heard.append(path)
            self._changed.notify_all()

    def hears(self, path: Path, within: float = LIMIT) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: str(path) in self._heard, within)

    def hears_anything(self, within: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._heard), within)

    def forget(self) -> None:
        """Forget what was heard, once it has been quiet for a while."""
        with self._changed:
            count = -1
            while count != len(self._heard):
                count = len(self._heard)
                self._changed.wait_for(lambda: len(self._heard) > count, QUIET)  # noqa: B023
            self._heard.clear()


@contextlib.contextmanager
def watching(ear: Callable[[str], None], *, polling: bool | None = None) -> Generator[Watcher]:
    watcher = Watcher(ear, polling=polling, poll_interval=0.05)
    try:
        yield watcher
    finally:
        watcher.stop()


@pytest.fixture(params=[None, True], ids=["events", "polling"])
def polling(request: pytest.FixtureRequest) -> bool | None:
    return request.param


@pytest.fixture
def ear() -> Ear:
    return Ear()


def append(path: Path, text: str = "line\n") -> None:
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("tree", [True, False])
def test_every_change_of_a_file_is_reported(
    tmp_path: Path, ear: Ear, polling: bool | None, tree: bool
):
    day = tmp_path / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    file, new = day / "rollout-1.jsonl", day / "new"
    file.touch()
    with watching(ear, polling=polling) as watcher:
        if tree:
            watcher.follow_tree(str(tmp_path / "sessions"))
        else:
            watcher.follow_folders({str(day)})
        for change, *told in (
            (lambda: append(file), file),
            (lambda: append(file), file),
            (lambda: append(new), new),
            (lambda: new.replace(file), new, file),
            (lambda: file.chmod(0), file),
            (file.unlink, file),
        ):
            change()
            assert all(map(ear.hears, told))
            ear.forget()


def test_new_day_folders_are_reported_and_watched(tmp_path: Path, ear: Ear, polling: bool | None):
    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(tmp_path))
        day = tmp_path / "2026" / "11" / "21"
        day.mkdir(parents=True)
        rollout = day / "rollout-2.jsonl"
        rollout.write_text("first\n")

        assert ear.hears(tmp_path / "2026")
        assert ear.hears(day)
        assert ear.hears(rollout)
        ear.forget()
        append(rollout)
        assert ear.hears(rollout)


def test_tree_that_vanishes_and_returns_is_watched_again(
    tmp_path: Path, ear: Ear, polling: bool | None
):
    tree = tmp_path / "home" / "sessions"
    rollout = tree / "2026" / "rollout.jsonl"
    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(tree))
        for _ in range(4):
            rollout.parent.mkdir(parents=True)
            rollout.touch()
            assert ear.hears(tree)
            ear.forget()
            append(rollout)
            assert ear.hears(rollout)
            ear.forget()
            shutil.rmtree(tmp_path / "home")
            assert ear.hears(tree)
            ear.forget()


def test_moved_tree_is_no_longer_watched_and_its_successor_is(
    tmp_path: Path, ear: Ear, polling: bool | None
):
    tree, aside = tmp_path / "sessions", tmp_path / "aside"
    tree.mkdir()
    (tree / "file").touch()
    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(tree))
        tree.rename(aside)
        assert ear.hears(tree)
        ear.forget()
        tree.mkdir()
        assert ear.hears(tree)
        ear.forget()
        append(aside / "file")
        assert not ear.hears_anything(NOTHING)
        append(tree / "new")
        assert ear.hears(tree / "new")


def test_missing_tree_is_reported_once_it_appears_and_nothing_beside_it(
    tmp_path: Path, ear: Ear, polling: bool | None
):
    tree = tmp_path / "a" / "b" / "c" / "sessions"
    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(tree))
        append(tmp_path / "unrelated")
        assert not ear.hears_anything(NOTHING)
        tree.mkdir(parents=True)

        assert ear.hears(tree)
        ear.forget()
        append(tree.parent / "state.sqlite")
        (tree.parent / "folder").mkdir()
        assert not ear.hears_anything(NOTHING)
        append(tree / "file")
        assert ear.hears(tree / "file")


def test_our_own_reads_are_not_reported(tmp_path: Path, ear: Ear, polling: bool | None):
    tree = tmp_path / "sessions" / "2026"
    tree.mkdir(parents=True)
    rollout, observed = tree / "rollout.jsonl", tmp_path / "observed"
    rollout.write_text("line\n" * 100)
    observed.write_text("content")
    workspace = Workspace()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            rollout.read_text()
            list(tree.iterdir())
            workspace.hashes(str(tmp_path), ["observed"])
            workspace.folders(str(tmp_path), ["observed"])

    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(tmp_path / "sessions"))
        watcher.follow_folders({str(tmp_path)})
        ear.forget()
        reading = threading.Thread(target=read)
        reading.start()
        try:
            assert not ear.hears_anything(2 * NOTHING)
        finally:
            done.set()
            reading.join()
        append(rollout)
        append(observed)
        assert ear.hears(rollout)
        assert ear.hears(observed)


def test_exactly_the_given_folders_are_watched(tmp_path: Path, ear: Ear):
    one, two, deep = tmp_path / "one", tmp_path / "two", tmp_path / "two" / "deep"
    one.mkdir()
    deep.mkdir(parents=True)
    with watching(ear) as watcher:
        watcher.follow_folders({str(one)})
        watcher.follow_folders({str(two)})
        append(one / "file")
        append(deep / "file")
        assert not ear.hears_anything(NOTHING)
        append(two / "file")
        assert ear.hears(two / "file")
        watcher.follow_folders(set())
        ear.forget()
        append(two / "file")
        assert not ear.hears_anything(NOTHING)


@pytest.mark.parametrize("exchanged", [True, False])
def test_replaced_or_recreated_folder_is_watched_in_its_new_form(
    tmp_path: Path, ear: Ear, polling: bool | None, exchanged: bool
):
    folder, new = tmp_path / "folder", tmp_path / "new"
    if exchanged:
        folder.mkdir()
    with watching(ear, polling=polling) as watcher:
        watcher.follow_folders({str(tmp_path), str(folder)})
        for _ in range(4):
            new.mkdir()
            if exchanged:
                folder.rename(tmp_path / "old")
                shutil.rmtree(tmp_path / "old")
            new.rename(folder)
            assert ear.hears(folder)
            ear.forget()
            append(folder / "file")
            assert ear.hears(folder / "file")
            if not exchanged:
                shutil.rmtree(folder)
            ear.forget()


def test_folder_that_contains_a_tree_is_reported_completely(tmp_path: Path, ear: Ear):
    file = tmp_path / "config.toml"
    file.touch()
    with watching(ear) as watcher:
        watcher.follow_tree(str(tmp_path / "sessions"))
        watcher.follow_folders({str(tmp_path)})
        append(file)
        assert ear.hears(file)
        watcher.follow_folders(set())
        (tmp_path / "sessions").mkdir()
        assert ear.hears(tmp_path / "sessions")
        ear.forget()
        append(file)
        assert not ear.hears_anything(NOTHING)


def test_paths_are_reported_under_the_watched_name(tmp_path: Path, ear: Ear, polling: bool | None):
    real, name = tmp_path / "real", tmp_path / "name"
    real.mkdir()
    try:
        name.symlink_to(real)
    except OSError:
        pytest.skip("no right to make links")
    with watching(ear, polling=polling) as watcher:
        watcher.follow_tree(str(name))
        append(real / "file")
        assert ear.hears(name / "file")
        watcher.follow_folders({str(real)})
        append(real / "file")
        assert ear.hears(real / "file")


def test_error_in_the_callback_ends_nothing(tmp_path: Path, ear: Ear):
    def complain(path: str) -> None:
        ear(path)
        message = "Event loop is closed"
        raise RuntimeError(message)

    tree = tmp_path / "sessions"
    with watching(complain) as watcher:
        watcher.follow_tree(str(tree))
        for name in ("one", "two", "three"):
            tree.mkdir(exist_ok=True)
            assert ear.hears(tree)
            append(tree / name)
            assert ear.hears(tree / name)


def test_stopping_ends_every_thread_and_callback(tmp_path: Path, ear: Ear, polling: bool | None):
    before = set(threading.enumerate())
    (tmp_path / "folder").mkdir()
    watcher = Watcher(ear, polling=polling, poll_interval=0.05)
    watcher.follow_tree(str(tmp_path))
    watcher.follow_folders({str(tmp_path / "folder")})
    assert set(threading.enumerate()) > before
    watcher.stop()

    assert set(threading.enumerate()) <= before
    append(tmp_path / "file")
    watcher.follow_tree(str(tmp_path / "folder"))
    watcher.stop()
    assert not ear.hears_anything(NOTHING)


STORM = """
import os, shutil, sys, time
number = 0
while True:
    number += 1
    time.sleep(0.0005)
    folder = os.path.join(sys.argv[1], str(number % 7))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "file"), "ab") as file:
        file.write(b"x")
    if number % 5 == 0:
        shutil.rmtree(folder)
"""


def test_stopping_during_many_changes_ends_soon(tmp_path: Path):
    # Of another program, as in life: a thread here would keep the watcher from its turns.
    writing = subprocess.Popen([sys.executable, "-I", "-S", "-c", STORM, str(tmp_path)])
    try:
        for _ in range(20):
            ear = Ear()
            with watching(ear) as watcher:
                watcher.follow_tree(str(tmp_path))
                watcher.follow_folders({str(tmp_path / "1"), str(tmp_path / "2")})
                assert ear.hears_anything(LIMIT)
    finally:
        writing.kill()
        writing.wait()


def test_number_of_folders_is_bounded(tmp_path: Path, ear: Ear):
    folders = {str(tmp_path / f"{number:04}") for number in range(MAX_FOLDERS + 10)}
    for folder in folders:
        Path(folder).mkdir()
    before = threading.active_count()
    with watching(ear) as watcher:
        watcher.follow_folders(folders)
        assert threading.active_count() - before < MAX_FOLDERS + 10
        append(tmp_path / "0000" / "file")
        assert ear.hears(tmp_path / "0000" / "file")
    assert threading.active_count() == before


@linux_only
def test_names_in_any_script_are_reported(tmp_path: Path, ear: Ear):
    odd = tmp_path / os.fsdecode(b"not utf-8 \xff")
    with watching(ear) as watcher:
        watcher.follow_tree(str(tmp_path))
        for path in (tmp_path / "größe 日本 😀", odd):
            append(path)
            assert ear.hears(path)


# Lets this process alone run out of watches, then writes where no watch could be had.
OUT_OF_WATCHES = """
import sys, threading
from pathlib import Path
from codex_checkpoints.storage.watch import Watcher

tree = Path(sys.argv[1])
heard = threading.Event()
wanted = []
watcher = Watcher(lambda path: heard.set() if path in wanted else None, poll_interval=0.05)
watcher.follow_tree(str(tree))
files = [folder / "file" for folder in tree.iterdir()]
for file in files:
    wanted[:] = [str(file)]
    heard.clear()
    file.write_text("x")
    assert heard.wait(10), file.name
watcher.stop()
assert threading.active_count() == 1
"""


@linux_only
@pytest.mark.parametrize("limit", ["max_inotify_watches 0", "max_inotify_instances 0"])
def test_tree_is_polled_if_the_system_has_no_watches_left(tmp_path: Path, limit: str):
    for number in range(5):
        (tmp_path / "sessions" / str(number)).mkdir(parents=True)
    name, value = limit.split()
    setting = f'echo {value} > /proc/sys/user/{name} || exit 77; exec "$@"'
    script = [sys.executable, "-c", OUT_OF_WATCHES, str(tmp_path / "sessions")]
    try:
        done = subprocess.run(
            ["unshare", "-Ur", "sh", "-c", setting, "sh", *script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no unshare")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no namespaces of our own here")

    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert done.stderr.count("polling instead") <= 1
    assert str(tmp_path) not in done.stderr


MOUNTS = """\
/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
//nas/share /media/my\\040share cifs rw 0 0
me@host:/ /home/local/remote fuse.sshfs rw 0 0
C:\\134 /mnt/c 9p rw 0 0
old /srv smb3 rw 0 0
new /srv ext4 rw 0 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="about mounts")
def test_network_drives_are_known_to_send_no_events():
    silent = ["/home/me/.codex/sessions", "/home", "/home/local/remote/x", "/media/my share/x"]
    silent += ["/mnt/c/Users", "\\\\nas\\share"]
    told = ["/work", "/homework", "/home/local/me", "/srv/x"]

    assert [path for path in silent + told if sends_no_events(path, MOUNTS, "6.1.0")] == silent


@pytest.mark.parametrize(
    ("path", "release", "silent"),
    [
        ("/mnt/d/work", "5.15.153.1-Microsoft-standard-WSL2", True),
        ("/mnt/d", "4.4.0-19041-Microsoft", True),
        ("/mnt/data/work", "5.15.153.1-microsoft-standard-WSL2", False),
        ("/home/me", "5.15.153.1-microsoft-standard-WSL2", False),
        ("/mnt/d/work", "6.1.0", False),
    ],
)
def test_windows_drives_under_wsl_are_known_to_send_no_events(
    path: str, release: str, silent: bool
):
    assert sends_no_events(path, "", release) is silent


def test_repeated_request_leaves_the_watcher_unchanged(tmp_path: Path, ear: Ear):
    with watching(ear) as watcher:
        watcher.follow_tree(str(tmp_path))
        watcher.follow_folders({str(tmp_path)})
        append(tmp_path / "file")
        assert ear.hears(tmp_path / "file")
        ear.forget()
        threads = threading.active_count()
        for _ in range(50):
            watcher.follow_tree(str(tmp_path))
            watcher.follow_folders({str(tmp_path)})
        assert threading.active_count() == threads
        append(tmp_path / "file")
        assert ear.hears(tmp_path / "file")
