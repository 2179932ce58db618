"""Run Python programs as processes of their own without the start of Python.

`run` and `Popen` are those of `subprocess`.  A command `[sys.executable, "-m" or "-c", …]` runs in
a child that an interpreter with the product loaded forks (`interpreter.py`): with descriptors,
environment, folder and exit code of its own.  Every other command is started as ever, and so is
one whose environment says something to Python itself, and each on a system where a fork is not safe
behind loaded frameworks (macOS) or is not there (Windows).
"""

import atexit
import os
import pickle
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from interpreter import Program

SERVER = str(Path(__file__).parents[2] / "server")
FORKS = sys.platform == "linux"
USUAL = {"PYTHONPATH": SERVER, "PYTHONUTF8": "1"}
"""What an environment may say to Python; it is how the interpreter was started."""

_asking = threading.Lock()


def product(*arguments: str | bytes, first: str = "") -> list[Any]:
    """Return the words of a command of the product; `first` is Python that is executed before."""
    behind = (
        "import runpy\nrunpy.run_module('codex_checkpoints', run_name='__main__', alter_sys=True)"
    )
    way = ["-c", f"{first}\n{behind}"] if first else ["-m", "codex_checkpoints"]
    return [sys.executable, *way, *arguments]


class _Interpreter:
    """The one interpreter of this process, started when it is first wanted."""

    control: socket.socket | None = None

    @classmethod
    def ask(cls, body: bytes, descriptors: list[int]) -> None:
        with _asking:
            if cls.control is None:
                cls.control = cls.start()
            socket.send_fds(cls.control, [len(body).to_bytes(8)], descriptors)
            cls.control.sendall(body)

    @staticmethod
    def start() -> socket.socket:
        ours, theirs = socket.socketpair()
        program = Path(__file__).with_name("interpreter.py")
        process = subprocess.Popen(
            [sys.executable, program, str(theirs.fileno())],
            env={"PATH": os.environ["PATH"], **USUAL},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()

        def end() -> None:
            ours.close()
            process.wait()

        atexit.register(end)
        return ours


def forked(arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Return whether a command is one that a fork runs as a new interpreter would."""
    known = {"env", "cwd", "stdin", "stdout", "stderr", "start_new_session", "text", "encoding"}
    told = named.get("env") or os.environ
    return (
        FORKS
        and named.keys() <= known
        and isinstance(arguments, list)
        and arguments[0] == sys.executable
        and arguments[1] in {"-m", "-c"}
        and {item for item in told.items() if item[0].startswith("PYTHON")} <= USUAL.items()
    )


class Popen(subprocess.Popen[Any]):
    """As `subprocess.Popen`; only how the process comes to be, and where its end is read, differs.

    The methods with an underscore are the places at which `subprocess` itself tells systems apart,
    the same in Python 3.11 to 3.14.
    """

    def __init__(self, args: Sequence[Any], **named: Any) -> None:  # noqa: ANN401 - as there
        self._forked = forked(args, named)
        self._lock = threading.Lock()
        cast("Any", super()).__init__(args, **named)

    def _execute_child(self, *given: Any) -> None:  # noqa: ANN401 - as there
        if not self._forked:
            cast("Any", super())._execute_child(*given)
            return
        arguments: list[str | bytes] = given[0]
        folder: str | os.PathLike[str] | None = given[5]
        environment: Mapping[str, str] | None = given[6]
        ends: Sequence[int] = given[10:16]
        program = Program(
            [os.fsdecode(each) for each in arguments[1:]],
            dict(os.environ if environment is None else environment),
            None if folder is None else os.fspath(folder),
            given[-2],
        )
        streams = [own if end == -1 else end for own, end in enumerate((ends[0], ends[3], ends[5]))]
        self._report, write = os.pipe()
        try:
            _Interpreter.ask(pickle.dumps(program), [*streams, write])
        finally:
            os.close(write)
            cast("Any", self)._close_pipe_fds(*ends)
        self.pid = int(self._reported())
        self._child_created = True

    def _reported(self) -> bytes:
        """Return the next line of the report."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._report, 1)
            assert byte, "the interpreter that forks has ended"
            line += byte
        return line

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:  # noqa: ANN401 - as there
        if not self._forked:
            return cast("Any", super())._internal_poll(*given, **named)
        return self._ended(0)

    def _wait(self, timeout: float | None) -> int:
        if not self._forked:
            return cast("Any", super())._wait(timeout)
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        """Return the exit code, None if it has not come within that time."""
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            with self._lock:
                if self.returncode is None:
                    self.returncode = os.waitstatus_to_exitcode(int(self._reported()))
                    os.close(self._report)
        return self.returncode


def run(
    arguments: Sequence[Any],
    *,
    input: Any = None,  # noqa: A002, ANN401 - as `subprocess.run`
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **named: Any,  # noqa: ANN401 - as there
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run`."""
    if capture_output:
        named |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        named["stdin"] = subprocess.PIPE
    with Popen(arguments, **named) as process:
        try:
            output, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(arguments, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done
