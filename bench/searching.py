"""What a search over all sessions costs, beside `grep -rlF` over the same files, in turn with it.

    searching.py [--home HOME] [--files 400] [--bytes 1G] [--runs 3]

The words are in no session, so both read everything; the files are in the system's cache, and the
sessions in the index.  A word costs what its rarest letter costs, so there are several.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import median

from make_tree import in_bytes, make_tree
from measure import clean_environment, product

WORDS = ("zanzibar", "quuxwobble", "paternoster", "settlementary", "Elephantine", "5f1c9a77be02")


def main() -> None:
    """Print the ratios, of the processor's time and of the clock's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--home", help="a home that is there already")
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--bytes", type=in_bytes, default="1G")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or os.path.join(folder, "home")
        if options.home is None:
            make_tree(
                home,
                files=options.files,
                total=options.bytes,
                seed=1,
                image_rate=0.02,
                form="mixed",
                workspace="/home/dev",
            )
        state = os.path.join(folder, "state")
        sessions = os.path.join(home, "sessions")
        env = clean_environment()
        _cost(product("sessions", home, state, "--limit", "1"), env)
        for word in WORDS:
            ours, theirs = product("search", home, state, word), ("grep", "-rlF", word, sessions)
            pairs = [(_cost(ours, env), _cost(theirs, env)) for _ in range(options.runs)]
            cpu, wall = (median(one[by] / other[by] for one, other in pairs) for by in (0, 1))
            took = median(one[0] for one, _ in pairs)
            print(f"{word:15} processor {cpu:.2f} ({took:.2f} s)  clock {wall:.2f}", flush=True)


def _cost(command: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds of processor and clock that a command takes; it finds nothing."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


if __name__ == "__main__":
    main()
