"""An interpreter that has loaded the product and forks a child for each program it is asked to run.

`forked_python.py` starts it and asks.  It has one thread, so that its children may go on as
interpreters that have just started, and it ends when its end of the socket closes.  A request is
four descriptors (the three standard streams, and one for reports), then a pickled `Program`.  The
reports are a line with the pid once the child has a session of its own, and at the end a line with
its status as `waitpid` has it.
"""

import atexit
import gc
import importlib
import io
import os
import pickle
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Program:
    """What to run: the arguments of Python from `-m` or `-c` on, and where."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str | None
    new_session: bool


def load_everything() -> None:
    """Load every module that a program of the tests may want."""
    import codex_checkpoints

    for found in pkgutil.walk_packages(codex_checkpoints.__path__, "codex_checkpoints."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def requests(control: socket.socket) -> Program | None:
    """Fork a child for each request; return its program in the child, None in the end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, awake)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, reading], [], [])
        if reading in ready:
            os.read(reading, 4096)
            reap(running)
        if control not in ready:
            continue
        length, descriptors, _, _ = socket.recv_fds(control, 8, 4)
        if not length:
            return None
        body = control.recv(int.from_bytes(length), socket.MSG_WAITALL)
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            program: Program = pickle.loads(body)
            if program.new_session:
                os.setsid()
            os.write(descriptors[3], b"%d\n" % os.getpid())
            for number, descriptor in enumerate(descriptors[:3]):
                os.dup2(descriptor, number)
            control.detach()
            os.closerange(3, 256)
            return program
        running[child] = descriptors[3]
        for descriptor in descriptors[:3]:
            os.close(descriptor)


def awake(_number: int, _frame: object) -> None:
    """Do nothing: to be told is enough to wake from `select`."""


def reap(running: dict[int, int]) -> None:
    """Report the children that have ended."""
    for child in list(running):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            descriptor = running.pop(child)
            os.write(descriptor, b"%d\n" % status)
            os.close(descriptor)


def execute(program: Program) -> None:
    """Be the interpreter that was asked for; what follows is what follows there."""
    if program.folder is not None:
        os.chdir(program.folder)
    os.environ.clear()
    os.environ.update(program.environment)
    time.tzset()
    cast("io.TextIOWrapper", sys.stdout).reconfigure(line_buffering=sys.stdout.isatty())
    way, what, *arguments = program.arguments
    sys.argv[:] = [way, *arguments]
    if way == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(
            compile(what, "<string>", "exec"),
            {"__name__": "__main__", "__builtins__": __builtins__},
        )


def finish(code: str | int | None) -> None:
    """End as an interpreter does, without taking apart what has been loaded."""
    if isinstance(code, str):
        raise SystemExit(code)
    cast("Any", threading)._shutdown()  # what the interpreter does: it waits for threads,
    cast("Any", atexit)._run_exitfuncs()  # and then calls who wants to be called
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        raise SystemExit(code) from None  # it has a way of its own to say so
    os._exit(code or 0)


if __name__ == "__main__":
    load_everything()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        wanted = requests(control)
    if wanted is not None:
        try:
            execute(wanted)
        except SystemExit as end:
            finish(end.code)
        finish(0)
