"""Repeat work and kill, interrupt or refuse it, one step later each time.

A step is a call that changes a file system; one that writes ends with half of its bytes out.
Each try has a copy of the same home of its own, so that all of them can be looked at afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import forked_python
from homes import Home

How = Literal["kill", "interrupt", "refuse", "full"]
Begin = Literal["start", "work"]

_TRIES = """
import errno, os, pathlib, shutil, signal, sys, traceback

from codex_checkpoints import assembly
from codex_checkpoints.places import Places
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage import records as stamps
from codex_checkpoints.storage.contract import StoreError

how, begin, first, every, template, folder, *arguments = sys.argv[1:]
ROOM = ("open", "write", "fsync", "link", "rename", "replace", "mkdir")
NO_ROOM = ("refuse", "full")
STEPS = (*ROOM, "unlink", "ftruncate", "rmdir")

def step(*_):
    global left
    left -= 1
    if left == 0 or (left < 0 and how == "full"):
        if how == "interrupt":
            raise KeyboardInterrupt
        if how in NO_ROOM:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.kill(os.getpid(), signal.SIGKILL)

def armed(plain):
    def call(*arguments, **named):
        if plain.__name__ == "open" and not arguments[1] & os.O_CREAT:
            return plain(*arguments, **named)
        if plain.__name__ == "write" and left == 1 and how not in NO_ROOM:
            plain(arguments[0], arguments[1][: len(arguments[1]) // 2])
        step()
        return plain(*arguments, **named)
    return call

at = int(first) - int(every)
while True:
    at += int(every)
    root = os.path.join(folder, str(at))
    shutil.copytree(template, root)
    child = os.fork()
    if child == 0:
        try:
            home = os.path.join(root, "codex")
            places = Places(home, os.path.join(home, "codex-checkpoints"))
            left = at
            steps = ROOM if how in NO_ROOM else STEPS
            arming = {name: armed(getattr(os, name)) for name in steps}
            if begin == "start":
                vars(os).update(arming)
            sessions = assembly.assemble(places).sessions
            sessions.refresh()
            vars(os).update(arming)
            answer = "done"
            try:
                work(sessions, root, *arguments)
            except (Refusal, StoreError) as error:
                answer = f"refused: {error}"
            if left <= 0:
                pathlib.Path(root, "answer").write_text(answer)
        except KeyboardInterrupt:
            pass
        except BaseException:
            traceback.print_exc()
            os._exit(2)
        os._exit(0 if left > 0 else 1)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == 2:
        sys.exit("it failed in a way of its own")
    if ended == 0:
        break
print(at)
"""


def killed_at_each_step(
    work: str,
    home: Home,
    folder: Path,
    *arguments: str,
    how: How = "kill",
    begin: Begin = "work",
    steps: tuple[int, int] = (1, 1),
) -> int:
    """Try until nothing ends it any more; return the number of the last try, which is whole.

    `work` is Python that defines `work(sessions, root, *arguments)`; the tries lie in `folder`, by
    their number, as copies of what surrounds `home`.  To interrupt is to do what Ctrl-C does; to
    refuse is to have no room for one of the steps that need some, full to have none from there on;
    the file `answer` then says what the caller was told.  Steps are counted from the `start` of the
    process or from its `work` on; `steps` are the first to be cut off at, and how far it is to the
    next.  `work` may call `step()` in between.
    """
    folder.mkdir()
    done = forked_python.run(
        [
            sys.executable,
            "-c",
            work + _TRIES,
            how,
            begin,
            *map(str, steps),
            str(home.root.parent),
            str(folder),
            *arguments,
        ],
        env=home.environment(),
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stdout)


def home_at(root: Path) -> Home:
    """Return the home of a process that was killed."""
    home = Home.__new__(Home)
    home.user, home.root = root / "user", root / "codex"
    home.state = home.root / "codex-checkpoints"
    return home
