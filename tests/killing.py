"""Something done again and again, and killed, or interrupted, at one step further each time.

A step is a call that changes a file system; one that writes ends with half of its bytes out.
Each try has a copy of the same home of its own, so that all of them can be looked at afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import python
from homes import Home

How = Literal["kill", "interrupt"]

_TRIES = """
import os, shutil, signal, sys

from codex_checkpoints import assembly
from codex_checkpoints.storage import records as stamps

how, template, folder, *arguments = sys.argv[1:]
STEPS = ("write", "fsync", "link", "rename", "replace", "unlink", "ftruncate", "mkdir", "rmdir")

def dying(at):
    left = at
    def armed(name, plain):
        def call(*arguments, **named):
            nonlocal left
            left -= 1
            if left == 0:
                if name == "write":
                    plain(arguments[0], arguments[1][: len(arguments[1]) // 2])
                if how == "interrupt":
                    raise KeyboardInterrupt
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*arguments, **named)
        return call
    for name in STEPS:
        setattr(os, name, armed(name, getattr(os, name)))

at = 0
while True:
    at += 1
    root = os.path.join(folder, str(at))
    shutil.copytree(template, root)
    child = os.fork()
    if child == 0:
        home = os.path.join(root, "codex")
        house = assembly.assemble(assembly.Places(home, os.path.join(home, "codex-checkpoints")))
        house.sessions.refresh()
        dying(at)
        try:
            work(house.sessions, root, *arguments)
        except KeyboardInterrupt:
            os._exit(130)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
print(at)
"""


def killed_at_each_step(
    work: str, home: Home, folder: Path, *arguments: str, how: How = "kill"
) -> int:
    """Try until nothing ends it any more; return how many tries that took, the last one whole.

    `work` is Python that defines `work(sessions, root, *arguments)`; the tries lie in `folder`, by
    their number, as copies of what surrounds `home`.  To interrupt is to do what Ctrl-C does.
    """
    folder.mkdir()
    done = python.run(
        [sys.executable, "-c", work + _TRIES, how, str(home.root.parent), str(folder), *arguments],
        env=home.environment(),
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr.decode()
    return int(done.stdout)


def again(root: Path) -> Home:
    """Return the home of a process that was killed."""
    home = Home.__new__(Home)
    home.user, home.root = root / "user", root / "codex"
    home.state = home.root / "codex-checkpoints"
    return home
