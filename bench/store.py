"""What writing through the thread store costs, beside a bare write of the same bytes.

    store.py [--files 5000] [--size 100] [--runs 15]

Ours and theirs write the same bytes and flush them.  What the store does beyond that: it looks for
the thread among all session files, takes and gives back the locks of Codex, reads how the file
ends, and looks at what it wrote.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson
from make_tree import make_tree
from measure import Cost, Wrong, compare

from codex_checkpoints.storage import records
from codex_checkpoints.storage.contract import HistoryItem, NewThread
from codex_checkpoints.storage.local import LocalThreadStore

_MB = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND
LINE = HistoryItem("event_msg", {"type": "agent_message", "message": "x" * 10_000})


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--size", type=int, default=100, help="MB of a large thread")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codex-checkpoints-bench-") as folder:
        for files in (1, options.files):
            home = os.path.join(folder, str(files))
            form, workspace = "paginated", "/home/dev"
            make_tree(
                home,
                files=files,
                total=files * 20_000,
                seed=1,
                image_rate=0.0,
                form=form,
                workspace=workspace,
            )
            store = LocalThreadStore(home, os.path.join(home, "codex-checkpoints"), records.now)
            _measure(store, folder, f"{files} files", options.size, options.runs)
            store.close()


def _measure(store: LocalThreadStore, folder: str, where: str, size: int, runs: int) -> None:
    small, large = [LINE] * 10, [LINE] * (size * _MB // 10_000)
    _publish(store, large[:100], folder, f"a new thread of 1 MB, {where}", runs)
    _publish(store, large, folder, f"a new thread of {size} MB, {where}", 3)
    for what, begin in (("10 kB", small[:1]), (f"{size} MB", large)):
        thread_id = str(uuid.uuid4())
        store.create_thread(_new(thread_id, begin), _now())
        _append(store, thread_id, folder, f"a line behind {what}, {where}", runs)


def _publish(
    store: LocalThreadStore, items: Sequence[HistoryItem], folder: str, what: str, runs: int
) -> None:
    peaks: list[int] = []
    data = b"".join(orjson.dumps({"payload": item.payload}) + b"\n" for item in items)

    def ours() -> None:
        made = store.create_thread(_new(str(uuid.uuid4()), items), _now())
        if made.size < len(data):
            raise Wrong("a thread is shorter than what it holds")
        os.unlink(made.path)

    def theirs() -> None:
        path = os.path.join(folder, "bare")
        _write(path, data)
        os.unlink(path)

    tracemalloc.start()
    ours()
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    _print(what, runs, ours, theirs, f"{max(peaks) / _MB:.0f} MB at most")


def _append(store: LocalThreadStore, thread_id: str, folder: str, what: str, runs: int) -> None:
    bare = os.path.join(folder, f"bare {thread_id}")

    def ours() -> None:
        done = store.append_items(thread_id, [LINE], _now())
        if done.end - done.start < 10_000:  # noqa: PLR2004 - what LINE holds
            raise Wrong("a line is shorter than its text")

    def theirs() -> None:
        _write(bare, orjson.dumps({"payload": LINE.payload}) + b"\n")

    _print(what, runs, ours, theirs)


def _new(thread_id: str, items: Sequence[HistoryItem]) -> NewThread:
    meta = {
        "id": thread_id,
        "session_id": thread_id,
        "timestamp": records.now(),
        "cwd": "/home/dev",
        "originator": "codex-checkpoints",
        "cli_version": "0.169.0",
        "source": "cli",
        "history_mode": "paginated",
    }
    return NewThread(meta, tuple(items))


def _now() -> datetime:
    return datetime.now(UTC)


def _write(path: str, data: bytes) -> None:
    file = os.open(path, _FLAGS, 0o600)
    try:
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _print(
    what: str, runs: int, ours: Callable[[], None], theirs: Callable[[], None], more: str = ""
) -> None:
    took: list[float] = []

    def timed(work: Callable[[], None]) -> Callable[[], Cost]:
        def cost() -> Cost:
            began = time.perf_counter()
            work()
            took.append(time.perf_counter() - began)
            return Cost(took[-1], 0, b"")

        return cost

    found = compare(runs, timed(ours), timed(theirs))
    spread = f"{found.least:.1f}..{found.most:.1f}"
    print(f"  {what:<40}{found.median:>8.1f}  {spread:<16}{more}", flush=True)


if __name__ == "__main__":
    main()
