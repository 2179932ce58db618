"""A forked process equals a new interpreter: its output, its end, its folder."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forked_python
from homes import WAIT, Home, chat, thread

PROGRAMS = {
    "a command": ["-m", "codex_checkpoints", "--version"],
    "a wrong command": ["-m", "codex_checkpoints", "nonsense"],
    "an exit code": ["-c", "raise SystemExit(7)"],
    "an exit text": ["-c", "raise SystemExit('no')"],
    "a signal": ["-c", "import os; os.kill(os.getpid(), 9)"],
    "an interruption": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"],
    "a thread that ends later": [
        "-c",
        "from threading import Timer\nTimer(0.05, print, 'x').start()",
    ],
    "what is called in the end": ["-c", "import atexit\natexit.register(print, 'x')"],
    "its surroundings": [
        *(
            "-c",
            "import os, sys\nprint(sys.argv, os.getcwd(), sorted({*os.environ} - {'LC_CTYPE'}))",
        ),
        *("a", "ü", "\udcff"),
    ],
    "its input": ["-c", "import sys\nprint(sys.stdin.read(), file=sys.stderr)"],
    "its descriptors": ["-c", "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:3])"],
    "output that nobody can take": ["-c", "import os\nos.close(1)\nprint('x')"],
}


@pytest.mark.skipif(not forked_python.FORKS, reason="nothing is forked here")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_forked_program_behaves_like_a_new_interpreter(tmp_path: Path, program: list[str]):
    home = Home(tmp_path)
    both: list[tuple[int, bytes, bytes]] = []
    for run in (forked_python.run, subprocess.run):
        done = run(
            [sys.executable, *program],
            env=home.environment(),
            cwd=tmp_path,
            input="größer".encode(),
            capture_output=True,
            timeout=WAIT,
            check=False,
        )
        last = done.stderr.splitlines()[-1:]  # above it may be a traceback, of other frames
        both.append((done.returncode, done.stdout, b"".join(last)))

    assert both[0] == both[1]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["sessions", "--json"], ["sessions", "--search", "nothing"], ["view", thread(1)]),
        *(["show", "nobody", "--json"], ["show", "nobody"], ["sessions", "--nonsense"], ["--help"]),
        ["doctor"],
    ],
    ids=" ".join,
)
def test_command_inside_a_test_behaves_like_a_process(home: Home, arguments: list[str]):
    home.put(chat("one"))
    home.config("unheardOf = 1")
    home.here("show", thread(1))

    both = [run(*arguments) for run in (home.run, home.here)]

    process, inside = ((each.returncode, each.stdout) for each in both)
    assert inside == process
    refused = [each.stderr.splitlines()[-1:] for each in both if each.returncode]
    assert refused[:1] == refused[1:]


@pytest.mark.skipif(sys.platform == "win32", reason="groups of POSIX")
def test_forked_program_has_its_own_group_from_the_start(tmp_path: Path):
    import os

    process = Home(tmp_path).start("watch")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=WAIT)

    assert process.returncode == -signal.SIGKILL
