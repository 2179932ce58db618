"""The probe for live threads and the lock that we hold, against real locks of other processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from codex_checkpoints.storage import locks
from codex_checkpoints.storage.contract import StorageFailed, ThreadIsLive, Unsupported
from codex_checkpoints.storage.locks import hold, is_live, live_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="the holder speaks flock")

THREAD = "019a9f0e-6a4b-7c10-8d2e-3f4a5b6c7d8e"
OTHER = "019a9f0e-6a4b-7c10-8d2e-000000000001"

HOLD = """
import fcntl, sys
held = open(sys.argv[1], "a")
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""

# As Codex opens a thread: coordination first, without waiting for the thread's own lock.
OPEN_AND_CLOSE_THREADS = """
import fcntl, os, sys
folder, thread, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(rounds):
    with open(folder + "/.coordination.lock", "a") as coordination:
        fcntl.flock(coordination, fcntl.LOCK_EX)
        held = open(folder + "/" + thread + ".lock", "a")
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(folder + "/.coordination.lock", "a") as coordination:
        fcntl.flock(coordination, fcntl.LOCK_EX)
        os.unlink(folder + "/" + thread + ".lock")
        held.close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "thread-writer-locks").mkdir()
    return tmp_path


def lock_file(home: Path, thread: str = THREAD) -> Path:
    return home / "thread-writer-locks" / f"{thread}.lock"


def coordination_file(home: Path) -> Path:
    return home / "thread-writer-locks" / ".coordination.lock"


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.kill()


def names_below(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


@pytest.mark.parametrize("folder", [".", "thread-writer-locks", "not there"])
def test_home_without_locks_has_no_live_threads_and_is_unchanged(
    tmp_path: Path, folder: str
) -> None:
    if folder == "thread-writer-locks":
        (tmp_path / folder).mkdir()
    home = str(tmp_path / "not there" if folder == "not there" else tmp_path)
    before = names_below(tmp_path)

    assert live_threads(home) == frozenset()
    assert not is_live(home, THREAD)
    assert names_below(tmp_path) == before


@posix_only
@pytest.mark.parametrize("coordinated", [False, True])
def test_thread_locked_by_another_process_is_live(
    home: Path,
    coordinated: bool,
) -> None:
    if coordinated:
        coordination_file(home).touch()
    lock_file(home, OTHER).touch()
    with held_elsewhere(lock_file(home)):
        before = names_below(home)

        assert is_live(str(home), THREAD)
        assert not is_live(str(home), OTHER)
        assert live_threads(str(home)) == {THREAD}
        assert names_below(home) == before


@posix_only
def test_killed_holder_leaves_its_file_but_not_a_live_thread(home: Path) -> None:
    with held_elsewhere(lock_file(home)) as holder:
        assert is_live(str(home), THREAD)
        os.kill(holder.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        holder.wait(10)

        assert lock_file(home).exists()
        assert not is_live(str(home), THREAD)
        assert live_threads(str(home)) == frozenset()
        assert lock_file(home).exists()


@posix_only
def test_probe_releases_both_locks_at_once(home: Path) -> None:
    coordination_file(home).touch()
    lock_file(home).touch()

    assert not is_live(str(home), THREAD)
    with held_elsewhere(coordination_file(home)), held_elsewhere(lock_file(home)):
        pass


@posix_only
def test_busy_coordination_lock_makes_the_answer_live_after_a_short_wait(
    home: Path,
) -> None:
    coordination_file(home).touch()
    lock_file(home).touch()
    lock_file(home, OTHER).touch()
    with held_elsewhere(coordination_file(home)):
        begun = time.monotonic()

        assert is_live(str(home), THREAD)
        assert live_threads(str(home)) == {THREAD, OTHER}
        assert not is_live(str(home), OTHER[:-1] + "2"), "it has no lock file"
        assert time.monotonic() - begun < 5


@posix_only
def test_two_probes_do_not_mistake_each_other_for_codex(home: Path) -> None:
    lock_file(home).touch()
    probe = "from codex_checkpoints.storage.locks import is_live\nimport sys\n"
    probe += f"print(any(is_live(sys.argv[1], {THREAD!r}) for _ in range(5000)))"
    command = [sys.executable, "-c", probe, str(home)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as other:
        while other.poll() is None:
            assert not is_live(str(home), THREAD)
        assert other.stdout is not None
        assert other.stdout.read() == "False\n"


@posix_only
def test_probe_never_makes_codex_refuse(home: Path) -> None:
    coordination_file(home).touch()
    folder = str(home / "thread-writer-locks")
    command = [sys.executable, "-c", OPEN_AND_CLOSE_THREADS, folder, THREAD, "2000"]
    with subprocess.Popen(command) as codex:
        while codex.poll() is None:
            is_live(str(home), THREAD)
    assert codex.returncode == 0


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".coordination",
        "../" + THREAD,
        THREAD + "/../" + OTHER,
        THREAD + "\n",
        THREAD + "\0",
        THREAD[:-1] + "g",
        THREAD.replace("-", ""),
    ],
)
def test_invalid_thread_id_is_not_live(home: Path, name: str) -> None:
    coordination_file(home).touch()
    (home / f"{THREAD}.lock").touch()

    assert not is_live(str(home), name)


def put_odd(kind: str, path: Path) -> None:
    """Put something that is no file where a lock belongs."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(path.parent.parent / "elsewhere")
    else:
        path.mkdir()


ODD = pytest.mark.parametrize("kind", ["pipe", "link", "folder"])


@posix_only
@ODD
@pytest.mark.timeout(20)
def test_path_that_is_not_a_lock_file_is_not_live_and_does_not_block(home: Path, kind: str) -> None:
    (home / "elsewhere").touch()
    put_odd(kind, lock_file(home))

    assert not is_live(str(home), THREAD)
    assert live_threads(str(home)) == frozenset()


@posix_only
def test_only_locks_named_after_threads_are_probed(home: Path) -> None:
    with held_elsewhere(home / "thread-writer-locks" / "notes.lock"):
        assert live_threads(str(home)) == frozenset()


@pytest.mark.timeout(20)
def test_pipe_in_place_of_the_coordination_lock_makes_the_answer_live(home: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no pipes in folders")
    put_odd("pipe", coordination_file(home))
    lock_file(home).touch()

    assert is_live(str(home), THREAD)


@posix_only
def test_many_stale_locks_hide_no_live_one(home: Path) -> None:
    coordination_file(home).touch()
    for number in range(300):
        lock_file(home, f"019a9f0e-6a4b-7c10-8d2e-{number:012x}").touch()
    with held_elsewhere(lock_file(home)):
        assert live_threads(str(home)) == {THREAD}


# --- holding a lock in order to write -------------------------------------------------------------


@posix_only
def test_held_lock_looks_like_codexs_own_to_others(tmp_path: Path) -> None:
    with hold(str(tmp_path), THREAD):
        assert is_live(str(tmp_path), THREAD)
        assert not is_live(str(tmp_path), OTHER)
        assert names_below(tmp_path) == [
            "thread-writer-locks",
            "thread-writer-locks/.coordination.lock",
            f"thread-writer-locks/{THREAD}.lock",
        ]
        assert not can_take(lock_file(tmp_path))
        assert can_take(coordination_file(tmp_path))

    assert not is_live(str(tmp_path), THREAD)
    assert not lock_file(tmp_path).exists()
    assert coordination_file(tmp_path).exists()


TAKE = """
import fcntl, sys
try:
    fcntl.flock(open(sys.argv[1], "a"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(1)
"""


def can_take(path: Path) -> bool:
    """Tell whether another process could lock a file, as Codex does."""
    return subprocess.run([sys.executable, "-c", TAKE, str(path)], check=False).returncode == 0


@posix_only
def test_thread_held_by_codex_cannot_be_held(home: Path) -> None:
    before = names_below(home)
    with held_elsewhere(lock_file(home)):
        with pytest.raises(ThreadIsLive), hold(str(home), THREAD):
            pass
        with hold(str(home), OTHER):
            pass
        assert lock_file(home).exists()

    assert set(before) < set(names_below(home))
    with hold(str(home), THREAD):  # its owner is gone, the file it left is no hindrance
        pass
    assert not lock_file(home).exists()


def test_thread_is_held_by_one_at_a_time_and_again_later(tmp_path: Path) -> None:
    for _ in range(3):
        with hold(str(tmp_path), THREAD), pytest.raises(ThreadIsLive), hold(str(tmp_path), THREAD):
            pass


@posix_only
def test_holding_waits_for_the_coordination_lock_with_a_limit(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_elsewhere(coordination_file(home)) as holder:
        threading.Timer(0.5, holder.kill).start()
        with hold(str(home), THREAD):
            assert is_live(str(home), THREAD)

    monkeypatch.setattr(locks, "_COORDINATION_WAIT_TO_WRITE", 0.2)
    with (
        held_elsewhere(coordination_file(home)),
        pytest.raises(ThreadIsLive),
        hold(str(home), THREAD),
    ):
        pass
    assert not lock_file(home).exists()


@posix_only
def test_lock_that_fails_to_release_in_order_is_released(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_COORDINATION_WAIT_TO_WRITE", 0.1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(hold(str(home), THREAD))
        holder = contextlib.ExitStack()
        holder.enter_context(held_elsewhere(coordination_file(home)))
        stack.close()
        assert lock_file(home).exists()
        assert can_take(lock_file(home))
        holder.close()


@posix_only
def test_lock_file_that_replaced_ours_stays(home: Path) -> None:
    with hold(str(home), THREAD):
        lock_file(home).unlink()
        lock_file(home).write_text("another's")

    assert lock_file(home).read_text() == "another's"


@posix_only
@ODD
@pytest.mark.parametrize("place", [lock_file, coordination_file])
@pytest.mark.timeout(20)
def test_path_that_is_not_a_lock_file_is_never_locked(
    home: Path, kind: str, place: Callable[[Path], Path]
) -> None:
    put_odd(kind, place(home))

    with pytest.raises(StorageFailed), hold(str(home), THREAD):
        pass

    assert not (home / "elsewhere").exists()


def test_only_a_thread_id_can_be_held(home: Path) -> None:
    for name in ("", "../" + THREAD, THREAD.upper(), THREAD + "\0"):
        with pytest.raises(Unsupported), hold(str(home), name):
            pass
    assert names_below(home) == ["thread-writer-locks"]


def test_no_home_is_made_for_a_lock(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for name in ("file", "not there"):
        with pytest.raises(StorageFailed), hold(str(tmp_path / name), THREAD):
            pass

    assert names_below(tmp_path) == ["file"]


@posix_only
def test_codex_opens_threads_while_we_hold_and_release_another(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Unlike Codex, this process holds the coordination lock nearly all the time.  On a busy machine
    # it can be paused for seconds with the lock held.
    monkeypatch.setattr(locks, "_COORDINATION_WAIT_TO_WRITE", 60.0)
    folder = str(home / "thread-writer-locks")
    command = [sys.executable, "-c", OPEN_AND_CLOSE_THREADS, folder, THREAD, "1000"]
    with subprocess.Popen(command) as codex:
        while codex.poll() is None:
            with hold(str(home), OTHER):
                pass
    assert codex.returncode == 0
