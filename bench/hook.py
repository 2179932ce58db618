"""What a hook of Codex's costs: whole processes on sessions of several sizes, cold and warm.

    hook.py [--sizes 1 100 1000] [--runs 7]

Codex waits for the answer at the start of each window.  So a call, with the interpreter's start
and all imports, is compared with an interpreter that does nothing.  *Cold* means that we never saw
the session before; *warm* that we did, and that it has grown by a line since.  Every answer is
looked at: it must hold the view of the session.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from statistics import median

from attrs import frozen
from make_tree import make_tree
from measure import PASS, Wrong, clean_environment, product, run

_MB = 1 << 20
_LINE = b'{"timestamp":"2026-11-20T12:00:00.000Z","type":"world_state","payload":{"full":false}}\n'


@frozen
class Session:
    """A session, the home around it, and our folder beside that home."""

    home: str
    state: str
    path: str
    thread: str

    def call(self, event: str, source: str) -> float:
        """Call the hook as Codex does; return the seconds."""
        told = {
            "session_id": self.thread,
            "transcript_path": self.path,
            "hook_event_name": event,
            "source": source,
        }
        began = time.perf_counter()
        done = subprocess.run(
            product("hook", self.home, self.state),
            input=json.dumps(told).encode(),
            capture_output=True,
            check=True,
            env=clean_environment(),
        )
        seconds = time.perf_counter() - began
        given = event == "SessionStart"
        if given != (b"[SESSION_CHECKPOINT v1]" in done.stdout):
            raise Wrong(f"{event} of {self.thread}: {done.stdout[:80]!r}")
        return seconds

    def cold(self, event: str, source: str) -> float:
        """Call it as if for the first time."""
        shutil.rmtree(self.state, ignore_errors=True)
        return self.call(event, source)

    def warm(self, event: str, source: str) -> float:
        """Call it after the session has grown."""
        with open(self.path, "ab") as file:
            file.write(_LINE)
        return self.call(event, source)


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000], metavar="MB")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    print(f"a call of the hook, against python -c pass; {options.runs} runs")
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            measure(session_of(folder, size), size, options.runs)


def measure(session: Session, size: int, runs: int) -> None:
    """Print what the calls around a session of one size cost."""
    first = min(runs, 3)  # of a large session this is slow, and differs less
    _print(f"{size} MB, resume, cold", first, lambda: session.cold("SessionStart", "resume"))
    for event, source in (
        ("SessionStart", "resume"),
        ("SessionStart", "compact"),
        ("PreCompact", "auto"),
        ("PostCompact", "auto"),
    ):
        session.warm(event, source)
        words = f"{size} MB, {event} {source}, warm"
        _print(words, runs, lambda event=event, source=source: session.warm(event, source))


def session_of(folder: str, size: int) -> Session:
    """Make a session of so many MB, in a home below a folder."""
    home = os.path.join(folder, "home")
    (truth,) = make_tree(
        home,
        files=1,
        total=size * _MB,
        seed=1,
        image_rate=0.02,
        form="paginated",
        workspace="/home/dev",
    )
    return Session(home, os.path.join(folder, "state"), truth.path, truth.session)


def _print(what: str, runs: int, call: Callable[[], float]) -> None:
    pairs = [(call(), run(PASS).seconds) for _ in range(runs)]
    ratios = sorted(first / second for first, second in pairs)
    spread = f"{ratios[0]:.1f}..{ratios[-1]:.1f}"
    milliseconds = median(first for first, _ in pairs) * 1000
    print(f"  {what:<62}{median(ratios):>6.1f}  {spread:<12}{milliseconds:>7.0f} ms", flush=True)


if __name__ == "__main__":
    main()
