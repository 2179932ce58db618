"""Measures a remote on PostgreSQL: a page, a lineage, bytes pushed and pulled, and the commands.

    remote.py [--sessions 100000] [--size 256] [--command 1024]

The server is the tests' own.  A page, and the row and records of one session, which hold its
lineage, are timed beside `select 1` on the same connection, and a push beside a copy of the same
bytes over a bare connection.  The commands `push`, `search --remote` and
`pull` run for one session of so many MB, with their peak of memory.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "server"), str(ROOT / "tests" / "support"), str(ROOT / "bench")]

from make_tree import make_tree  # noqa: E402
from measure import Cost, product, run  # noqa: E402

from codex_checkpoints.storage.remote.contract import (  # noqa: E402
    AppendResult,
    Head,
    HistoryStore,
    SessionRow,
)
from codex_checkpoints.storage.remote.packing import SegmentStream  # noqa: E402
from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore  # noqa: E402
from postgres_server import ADMIN, PostgresServer, running  # noqa: E402

_MB = 1 << 20
_SESSION = "01a1f865-0000-7000-8000-000000000001"
_SHARED = "s51"
"""A session that everyone here may read."""
_RECORDS = os.urandom(4_000)
"""The size of the records of a session with 17 ancestors."""
_MANY = """
insert into codex_checkpoints.session
    (org, owner, session_id, team, generation, size, revision, updated_at, row, records)
select org, 'p' || n % 200, 's' || n, case when n % 3 = 0 then 'shop' end, 1, 0, 0,
    to_char(timestamp '2026-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS'),
    replace(row, :session, 's' || n), records
from codex_checkpoints.session, generate_series(1, :many) as n
"""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=256, metavar="MB")
    parser.add_argument("--command", type=int, default=1024, metavar="MB")
    options = parser.parse_args()
    with running() as server:
        store = PostgresHistoryStore(server.url(ADMIN, "postgres"), {})
        store.make()
        transfer(store, options.size)
        page(server, store, options.sessions)
        store.close()
    with running() as server:
        commands(server, options.command)


def commands(server: PostgresServer, size: int) -> None:
    """Print the time and the memory of the commands for one session."""
    store = PostgresHistoryStore(server.url(ADMIN, "postgres"), {})
    store.make()
    store.close()
    with tempfile.TemporaryDirectory() as folder:
        there, here = (os.path.join(folder, name) for name in ("there", "here"))
        os.makedirs(here)
        (truth,) = make_tree(
            there,
            files=1,
            total=size * _MB,
            seed=1,
            image_rate=0.02,
            form="paginated",
            workspace=folder,
        )
        place = server.url(ADMIN, "postgres")
        its = truth.session
        for home in (there, here):
            ours(home, "remote", "set", place, "--yes")
        for name, home, words in (
            ("push", there, ("push", its, "--yes", "--allow-redacted")),
            ("push again", there, ("push", its, "--yes", "--allow-redacted")),
            ("search", here, ("search", "refactor", "--remote", "--limit", "20")),
            ("pull", here, ("pull", its, "--into", folder)),
        ):
            cost = ours(home, *words)
            speed = f"{truth.size / _MB / cost.seconds:.0f} MB/s"
            print(
                f"{name} of {truth.size / _MB:.0f} MB: {cost.seconds:.1f} s, {speed}, "
                f"{cost.peak_mb:.0f} MB of memory",
                flush=True,
            )


def ours(home: str, command: str, *words: str) -> Cost:
    """Run one of our commands for a home."""
    return run(product(command, home, os.path.join(home, "state"), *words))


def page(server: PostgresServer, store: PostgresHistoryStore, many: int) -> None:
    """Print the time of a page of 100 among many sessions of 200 people."""
    with server.connect(ADMIN, "postgres") as admin:
        admin.run("update codex_checkpoints.member set teams = '{shop}'")
        admin.run(_MANY, many=many, session=_SESSION)
        admin.run("create role p7 login in role codex_checkpoints_person")
        admin.run("insert into codex_checkpoints.member values ('p7', 'default', '{shop}')")
        admin.run("analyze")
        bare = least(lambda: admin.run("select 1"))
    for who, its in (("the administrator", store), ("a member", member(server))):
        spent = least(lambda: its.rows(100))  # noqa: B023 - it is called at once
        cursor = its.rows(100).next_cursor
        later = least(lambda: its.rows(100, cursor))  # noqa: B023 - as above
        print(
            f"page of 100 of {many:,} for {who}: {spent * 1000:.1f} ms, the next {later * 1000:.1f}"
        )
        print(f"  {spent / bare:.0f} times `select 1`")
        spent = least(lambda: lineage(its))  # noqa: B023 - as above
        print(
            f"lineage of one: {spent * 1000:.1f} ms, {spent / bare:.0f} times `select 1`",
            flush=True,
        )
        its.close()


def lineage(store: HistoryStore) -> bytes:
    """Return the records of a session of one of the other people, with its lineage."""
    found = store.row(_SHARED)
    if found is None:
        raise SystemExit("a session is missing")
    return store.records(_SHARED, found.version)


def member(server: PostgresServer) -> PostgresHistoryStore:
    """Return the store as a member of a team sees it."""
    return PostgresHistoryStore(server.url("p7", "postgres"), {})


def transfer(store: PostgresHistoryStore, size: int) -> None:
    """Print the speed of a push and a pull of one session beside a bare copy."""
    bare = copied(size)
    begun = time.perf_counter()
    stream = SegmentStream(lines(size))
    while (segment := stream.peek()) is not None:
        if store.append(_SESSION, 1, segment) is not AppendResult.TAKEN:
            raise SystemExit("a segment was not taken")
        stream.seek(segment.end)
    head = Head(1, stream.position, stream.prefix)
    store.put(SessionRow(_SESSION, 1, head.size, head.prefix, 0, ADMIN, "bench", "1"), _RECORDS)
    pushed = time.perf_counter() - begun
    begun = time.perf_counter()
    read = sum(map(len, store.read(_SESSION, head)))
    pulled = time.perf_counter() - begun
    if read != head.size:
        raise SystemExit("the bytes differ")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for what, spent in (("push", pushed), ("pull", pulled)):
        print(f"{what} of {size} MB: {size / spent:.0f} MB/s, {spent / bare:.1f} times a bare copy")
    print(f"peak memory: {peak:.0f} MB", flush=True)


def lines(size: int) -> Iterator[bytes]:
    """Yield so many MB of lines that compress about as well as sessions do."""
    dice = random.Random(1)
    words = [os.urandom(dice.randrange(2, 9)).hex().encode() for _ in range(4_000)]
    left = size * _MB
    while left > 0:
        line = b'{"text":"%s"}\n' % b" ".join(dice.choices(words, k=600))
        left -= len(line)
        yield line


def copied(size: int) -> float:
    """Return the seconds that a bare connection takes for the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def take() -> None:
            near, _ = door.accept()
            with near:
                while near.recv(_MB):
                    pass

        taker = threading.Thread(target=take)
        taker.start()
        begun = time.perf_counter()
        with socket.create_connection(door.getsockname()) as far:
            for line in lines(size):
                far.sendall(line)
        taker.join()
        return time.perf_counter() - begun


def least(work: Callable[[], object], times: int = 9) -> float:
    """Return the least of the seconds that some work takes."""
    found: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


if __name__ == "__main__":
    main()
