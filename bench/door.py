"""What the MCP door costs, from outside: its first answers, and a call in a home of thousands.

    door.py [--files 5000] [--runs 7]

Codex waits for the first answers of a door when a session begins, so these are compared with an
interpreter that does nothing.  A call should cost what its own session costs, however many others
lie beside it, so a home of thousands is compared with one that has that session alone.  There is no
index in either.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from make_tree import Truth, make_tree
from measure import PASS, Wrong, clean_environment, product, run

_MB = 1 << 20
_STATES = itertools.count()

Message = Mapping[str, object]

HELLO: Message = {"method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
LIST: Message = {"method": "tools/list"}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        many, one = os.path.join(folder, "many"), os.path.join(folder, "one")
        total = options.files * _MB // 10
        truths = make_tree(
            many,
            files=options.files,
            total=total,
            seed=1,
            image_rate=0.02,
            form="paginated",
            workspace="/home/dev",
        )
        truth = truths[len(truths) // 2]
        alone = os.path.join(one, os.path.relpath(truth.path, many))
        os.makedirs(os.path.dirname(alone))
        shutil.copy2(truth.path, alone)
        empty = os.path.join(folder, "empty")
        read = _reading(truth)

        def states(home: str, *messages: Message) -> list[float]:
            state = os.path.join(folder, f"state-{next(_STATES)}")
            return talk(home, state, truth, messages)

        print(f"{options.files} sessions, {total // _MB} MB; {options.runs} runs")
        _print(
            "start to the answer to initialize, against python -c pass",
            options.runs,
            lambda: states(empty, HELLO)[0],
            lambda: run(PASS).seconds,
        )
        _print(
            "start to the list of tools, against python -c pass",
            options.runs,
            lambda: sum(states(empty, HELLO, LIST)),
            lambda: run(PASS).seconds,
        )
        _print(
            "the first memory.read, against the home of one session",
            options.runs,
            lambda: states(many, HELLO, LIST, read)[2],
            lambda: states(one, HELLO, LIST, read)[2],
        )
        _print(
            "a later memory.read, against the same",
            options.runs,
            lambda: median(states(many, HELLO, *[read] * 9)[2:]),
            lambda: median(states(one, HELLO, *[read] * 9)[2:]),
        )


def _reading(truth: Truth) -> Message:
    params = {"name": "memory.read", "arguments": {}, "_meta": {"threadId": truth.session}}
    return {"method": "tools/call", "params": params}


def talk(home: str, state: str, truth: Truth, messages: Sequence[Message]) -> list[float]:
    """Start a door and ask; return the seconds from one answer to the next."""
    began = time.perf_counter()
    spent: list[float] = []
    with subprocess.Popen(
        product("mcp", home, state),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise Wrong("no pipe to the door")
        for message in messages:
            asked = {"jsonrpc": "2.0", "id": 1, **message}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            now = time.perf_counter()
            spent.append(now - began)
            began = now
            _check(line, message["method"], truth)
    return spent


def _check(line: bytes, method: object, truth: Truth) -> None:
    result = json.loads(line)["result"]
    if method == "tools/call" and (
        result["isError"] or result["structuredContent"]["seq"] != truth.seq
    ):
        raise Wrong(f"memory.read of {truth.session} is wrong")


def _print(what: str, runs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
    pairs = [(ours(), theirs()) for _ in range(runs)]
    ratios = sorted(first / second for first, second in pairs)
    milliseconds = median(first for first, _ in pairs) * 1000
    spread = f"{ratios[0]:.1f}..{ratios[-1]:.1f}"
    print(f"  {what:<62}{median(ratios):>6.1f}  {spread:<12}{milliseconds:>7.0f} ms", flush=True)


if __name__ == "__main__":
    main()
