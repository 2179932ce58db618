"""What it costs to open each door, in processor time: the machine may be busy meanwhile.

    opening.py [--size 100] [--files 200] [--many 5000] [--runs 5] [--idle 30]

Each command runs in turn with an interpreter that does nothing, and the server with one of pygls
that knows no method; the figure is the least of the one against the least of the other.  The
sessions have been seen before, and the one of the hook has grown by a line since.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence

from hook import session_of
from make_tree import make_tree
from measure import PASS, Server, Wrong, clean_environment, product

_MB = 1 << 20
_BARE = "from pygls.lsp.server import LanguageServer; LanguageServer('bare', '1').start_io()"
_INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize",'
    b'"params":{"processId":null,"rootUri":null,"capabilities":{}}}'
)
_LINE = b'{"timestamp":"2026-11-20T12:00:00.000Z","type":"world_state","payload":{"full":false}}\n'
_PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"
_SETTLING = 15.0


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=100, metavar="MB")
    parser.add_argument("--files", type=int, default=200, help="sessions of the list")
    parser.add_argument("--many", type=int, default=5000, help="sessions of the server at rest")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=30, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands(folder, options.size, options.files, options.runs)
        server(folder, options.many, options.runs, options.idle)


def commands(folder: str, size: int, files: int, runs: int) -> None:
    """Print what commands and the hook cost against an interpreter that does nothing."""
    one = session_of(os.path.join(folder, "one"), size)
    home, state = _home(folder, "some", files, files * _MB // 2)
    told = {"session_id": one.thread, "transcript_path": one.path, "source": "resume"}
    call = json.dumps({"hook_event_name": "SessionStart", **told}).encode()
    patch = {"tool_name": "apply_patch", "tool_input": {"command": _PATCH}, "tool_use_id": "c1"}
    told |= {"hook_event_name": "PreToolUse", "cwd": one.home, **patch}
    before = json.dumps(told).encode()
    os.makedirs(one.state, exist_ok=True)
    with open(os.path.join(one.state, "config.toml"), "w", encoding="utf-8") as file:
        file.write('fileCopies = "replaced"\n')
    least: dict[str, float] = {}
    for number in range(runs + 1):
        with open(one.path, "ab") as file:
            file.write(_LINE)
        found = {
            "pass": _spent(PASS),
            "--version": _spent((*PASS[:1], "-m", "codex_checkpoints", "--version")),
            "--help": _spent((*PASS[:1], "-m", "codex_checkpoints", "--help")),
            f"view, {size} MB": _spent(product("view", one.home, one.state, one.thread)),
            f"hook, a resume, {size} MB": _spent(product("hook", one.home, one.state), call),
            "hook, before a patch": _spent(product("hook", one.home, one.state), before),
            f"sessions, {files}": _spent(product("sessions", home, state)),
        }
        if number:  # the first one is cold
            least = {what: min(spent, least.get(what, spent)) for what, spent in found.items()}
    aims = {"--version": 5.0, **dict.fromkeys(list(least)[3:], 18.0)}
    _print(least, "python -c pass", aims)


def server(folder: str, many: int, runs: int, idle: float) -> None:
    """Print what the server costs until its first answer, and at rest."""
    home, state = _home(folder, "many", many, many * 20_000)
    ours, bare = product("serve", home, state), (*PASS[:1], "-c", _BARE)
    least: dict[str, float] = {}
    for _ in range(runs):
        found = {"pass": _until_answered(bare), "serve, to `initialize`": _until_answered(ours)}
        least = {what: min(spent, least.get(what, spent)) for what, spent in found.items()}
    _print(least, "a bare pygls server", {"serve, to `initialize`": 1.6})
    with Server(home, state) as running:
        running.ask("checkpoints/sessions", {"limit": 100})
        time.sleep(_SETTLING)
        before = running.cpu_seconds()
        time.sleep(idle)
        share = (running.cpu_seconds() - before) / idle
        print(f"  serve at rest, {many} sessions: {share:.2%} of a core")
        print(f"  serve, peak memory: {running.peak_mb():.0f} MB  (at most 80)")


def _home(folder: str, name: str, files: int, total: int) -> tuple[str, str]:
    home = os.path.join(folder, name)
    make_tree(
        home,
        files=files,
        total=total,
        seed=1,
        image_rate=0.02,
        form="mixed",
        workspace="/home/dev",
    )
    return home, f"{home}-state"


def _spent(command: Sequence[str], said: bytes = b"") -> float:
    """Run a command to its end; return the seconds of processor time."""
    with _started(command) as process:
        process.communicate(said)
        return _usage(process)


def _until_answered(command: Sequence[str]) -> float:
    """Run a language server to its first answer; return the seconds of processor time."""
    with _started(command) as process:
        if process.stdin is None or process.stdout is None:
            raise Wrong("no pipes")
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(_INITIALIZE), _INITIALIZE))
        process.stdin.flush()
        process.stdout.readline()
        process.kill()
        return _usage(process)


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    pipe, environment = subprocess.PIPE, clean_environment()
    return _Waited(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)


class _Waited(subprocess.Popen[bytes]):
    """A process that keeps what it used when it is waited for."""

    used = 0.0

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        pid, status, usage = os.wait4(self.pid, wait_flags)
        self.used = usage.ru_utime + usage.ru_stime
        return pid, status


def _usage(process: subprocess.Popen[bytes]) -> float:
    process.wait()
    return process.used if isinstance(process, _Waited) else 0.0


def _print(least: Mapping[str, float], against: str, aims: Mapping[str, float]) -> None:
    print(f"against {against}, {least['pass'] * 1000:.0f} ms:")
    for what, spent in least.items():
        if what != "pass":
            aim = f"  (at most {aims[what]})" if what in aims else ""
            print(f"  {what:<28}{spent / least['pass']:>6.1f}{aim}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
