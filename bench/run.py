"""`make bench`: what the product costs, as ratios against something that runs beside it.

Trees of sessions are made in a temporary folder, which is removed in the end.  Each figure is the
median over several runs of both sides in turn, of whole processes or of a server from outside.
Every answer is compared with the truth that was noted while the trees were made: a wrong one ends
the run, however fast it came.  The files are in the system's cache, the index is not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

import orjson
from attrs import frozen
from make_tree import Truth, make_tree, make_workspace
from measure import PASS, Cost, Ratio, Server, Wrong, compare, product, run
from table import Table

from compaction import Compactions

_PARSE_ALL = """
import os, sys, orjson
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb", buffering=1 << 20) as file:
            for line in file:
                orjson.loads(line)
"""
_CONTROLS = re.compile(r"[\x00-\x1f]+")
_LONGEST = 160
_ARTIFACTS = 256
_MB = 1 << 20


@frozen
class Scale:
    """How much is made and how often it is measured."""

    files: int
    many_files: int
    tree: int
    many_tree: int
    huge: int
    large: int
    small: int
    runs: int
    appends: int


FULL = Scale(400, 5_000, 1024 * _MB, 1024 * _MB, 1024 * _MB, 100 * _MB, 10 * _MB, 5, 30)
QUICK = Scale(20, 200, 30 * _MB, 20 * _MB, 40 * _MB, 10 * _MB, 2 * _MB, 2, 5)


@frozen
class Home:
    """A Codex home with the truth about it."""

    path: str
    truths: dict[str, Truth]

    @property
    def one(self) -> Truth:
        """Return the truth of the only session."""
        (truth,) = self.truths.values()
        return truth


class Bench:
    """All figures, one part after the other."""

    def __init__(self, folder: str, scale: Scale, table: Table) -> None:
        """Work in this folder."""
        self._folder = folder
        self._scale = scale
        self._table = table
        self._states = 0

    def cold_index(self) -> None:
        """Measure the first index of a home of large files, half of them images."""
        scale = self._scale
        label = f"{scale.files} files, {scale.tree // _MB} MB"
        home = self._tree(label, files=scale.files, total=scale.tree)
        self._cold(home, label, 0.10)
        self._remove(home)

    def many_sessions(self) -> None:
        """Measure a home with thousands of sessions: first index, lists."""
        scale, table = self._scale, self._table
        workspace = os.path.join(self._folder, "workspace")
        make_workspace(workspace)
        label = f"{scale.many_files} files, {scale.many_tree // _MB} MB"
        home = self._tree(label, files=scale.many_files, total=scale.many_tree, workspace=workspace)
        state = self._cold(home, label, 0.25)
        table.ratio(
            "warm list, `sessions --json`",
            compare(
                scale.runs, lambda: run(product("sessions", home.path, state, "--json")), _pass
            ),
            "python -c pass",
        )
        self._server(home, state)
        with Server(home.path, self._state()) as server:
            _check_rows(home, server.ask("checkpoints/sessions", {})["items"], whole=False)
            _settle(server)
            table.memory("`serve`, peak memory with the index", server.peak_mb(), 100)
        self._remove(home)

    def one_line(self) -> None:
        """Measure what one appended line costs, at the end of a small and of a huge file."""
        scale, table = self._scale, self._table
        homes = [
            self._tree(f"one session, {size // _MB} MB", files=1, total=size, form="paginated")
            for size in (scale.small, scale.huge)
        ]
        self._first_list(homes[1], f"one session, {scale.huge // _MB} MB", 0.05)
        table.head(f"One appended line: {scale.huge // _MB} MB against {scale.small // _MB} MB")
        with (
            Server(homes[0].path, self._state()) as small,
            Server(homes[1].path, self._state()) as huge,
        ):
            servers = (small, huge)
            spent: list[list[float]] = [[], []]
            worked: list[list[float]] = [[], []]
            for server, home in zip(servers, homes, strict=True):
                _check_rows(home, server.ask("checkpoints/sessions", {})["items"], whole=False)
                _settle(server)
            for number in range(scale.appends):
                for place, (server, home) in enumerate(zip(servers, homes, strict=True)):
                    text = f"Append number {number}"
                    before = server.cpu_seconds()
                    spent[place].append(_append(server, home.one, text))
                    worked[place].append(server.cpu_seconds() - before)
            for server, home in zip(servers, homes, strict=True):
                _check_rows(home, server.ask("checkpoints/sessions", {})["items"], whole=False)
        table.ratio("from the line to the notification", _pairs(spent), "the small file", 1.5)
        table.ratio("processor time a line", _pairs(worked), "the small file", 1.5)
        for home in homes:
            self._remove(home)

    def show(self) -> None:
        """Measure `show` of one large session, without an index and with one."""
        scale, table = self._scale, self._table
        label = f"one session, {scale.large // _MB} MB"
        home = self._tree(label, files=1, total=scale.large)
        table.head(f"`show` of {label}")
        warm = self._state()

        def cold() -> Cost:
            return run(product("show", home.path, self._state(), home.one.session))

        def again() -> Cost:
            return run(product("show", home.path, warm, home.one.session))

        for said in (cold().said, again().said, again().said):
            _check_checkpoint(home.one, said)
        found = compare(scale.runs, cold, lambda: _parse_all(home))
        table.ratio("cold", found, "orjson.loads of every line")
        table.memory("cold, peak memory", found.peak_mb, 64)
        table.ratio("warm", compare(scale.runs, again, _pass), "python -c pass")
        self._remove(home)

    def compaction(self) -> None:
        """Measure what a compaction of a huge session costs, beside Codex's own resume of it."""
        scale = self._scale
        size = scale.huge // 4
        label = f"one session, {size // _MB} MB"
        home = self._tree(label, files=1, total=size, form="paginated")
        self._table.head(f"compaction of {label}")
        compactions = Compactions(self._folder, home.path, home.one)
        compactions.measure(self._table, runs=1)  # it reads line by line
        self._remove(home)

    def doors(self) -> None:
        """Run what measures a door, or the store, on its own."""
        scale = self._scale
        runs = ("--runs", str(scale.runs))
        many = ("--files", str(scale.many_files), *runs)
        large = str(scale.large // _MB)
        self._script("door", *many)
        self._script("store", *many, "--size", large)
        self._script("hook", *runs, "--sizes", "1", large)
        self._script("opening", *runs, "--size", large, "--many", str(scale.many_files))
        self._script("searching", "--files", str(scale.files), "--bytes", str(scale.tree))
        self._script("continuity")

    # --- inside ----------------------------------------------------------------------------------

    def _tree(
        self,
        label: str,
        *,
        files: int,
        total: int,
        form: str = "mixed",
        workspace: str = "/home/dev",
    ) -> Home:
        path = tempfile.mkdtemp(prefix="home-", dir=self._folder)
        if sys.stderr.isatty():
            print(f"making {label}", end="\r", file=sys.stderr, flush=True)
        truths = make_tree(
            path,
            files=files,
            total=total,
            seed=files,
            image_rate=0.02,
            form=form,
            workspace=workspace,
        )
        return Home(path, {truth.session: truth for truth in truths})

    def _script(self, name: str, *options: str) -> None:
        print(f"\n{name}.py {' '.join(options)}", flush=True)
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
        if subprocess.run((sys.executable, path, *options), check=False).returncode != 0:
            raise Wrong(f"{name}.py did not come to its end")

    def _remove(self, home: Home) -> None:
        shutil.rmtree(home.path)

    def _state(self) -> str:
        """Name a state folder that is not there yet."""
        self._states += 1
        return os.path.join(self._folder, f"state-{self._states}")

    def _first_list(self, home: Home, label: str, aim: float) -> str:
        """Measure the first list, made by the ends of the files; return its state folder."""
        self._table.head(label)
        state = ""

        def listed() -> Cost:
            nonlocal state
            state = self._state()
            return run(product("sessions", home.path, state, "--json"))

        _check_rows(home, orjson.loads(listed().said), whole=False)
        found = compare(self._scale.runs, listed, lambda: _parse_all(home), worked=True)
        against = "the same of `loads` of all lines"
        self._table.ratio("first list, processor time", found, against, aim)
        self._table.memory("first list, peak memory", found.peak_mb, 64)
        return state

    def _cold(self, home: Home, label: str, aim: float) -> str:
        """Measure the first list, then reading all; return a state folder that holds it."""
        self._first_list(home, label, aim)
        state = self._state()

        def read() -> Cost:
            return run(product("sessions", home.path, state, "--json", "--read"))

        found = compare(1, read, lambda: _parse_all(home), worked=True)
        self._table.ratio("all read, processor time", found, "the same of `loads` of all lines")
        self._table.memory("all read, peak memory", found.peak_mb, 64)
        _check_rows(home, orjson.loads(read().said))
        with Server(home.path, state) as server:
            for truth in list(home.truths.values())[:: max(1, len(home.truths) // 50)]:
                shown = server.ask("checkpoints/show", {"sessionId": truth.session})
                _check_checkpoint(truth, shown["text"])
        return state

    def _server(self, home: Home, state: str) -> None:
        """Measure a server on a warm index: lists."""
        scale, table = self._scale, self._table
        with Server(home.path, state) as server:
            _check_rows(home, server.ask("checkpoints/sessions", {})["items"], whole=False)
            _settle(server)
            for what, params in (("first 100", {"limit": 100}), ("all", {})):

                def ask(params: dict[str, int] = params) -> Cost:
                    return _asked(server, params)

                table.ratio(
                    f"`serve`: list, {what}", compare(scale.runs, ask, _pass), "python -c pass"
                )
            table.ratio(
                "`serve`: list, all",
                compare(scale.runs, lambda: _asked(server, {}), lambda: _walked(home)),
                "scandir and stat of all files",
                20,
            )


def _pass() -> Cost:
    return run(PASS)


def _parse_all(home: Home) -> Cost:
    return run((sys.executable, "-c", _PARSE_ALL, os.path.join(home.path, "sessions")))


def _walked(home: Home) -> Cost:
    """Look at every session file and do nothing else: the least that a fresh list takes."""
    began = time.perf_counter()
    _look_below(os.path.join(home.path, "sessions"))
    return Cost(time.perf_counter() - began, 0, b"")


def _look_below(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _look_below(entry.path)
            else:
                entry.stat(follow_symlinks=False)


def _asked(server: Server, params: dict[str, int]) -> Cost:
    began = time.perf_counter()
    server.ask("checkpoints/sessions", params)
    return Cost(time.perf_counter() - began, 0, b"")


def _settle(server: Server) -> None:
    """Wait until a server that has begun to follow has nothing left to do."""
    for _ in range(60):
        before = server.cpu_seconds()
        time.sleep(0.5)
        if server.cpu_seconds() - before < 0.005:  # noqa: PLR2004 - one percent of a core
            return


def _append(server: Server, truth: Truth, text: str) -> float:
    """Append what a person typed; return the seconds until the server has told of it."""
    truth.seq += 1
    truth.turns += 1
    truth.last_prompt = text
    item = {"type": "UserMessage", "id": text, "content": [{"type": "text", "text": text}]}
    payload = {"type": "item_completed", "thread_id": truth.session, "turn_id": text, "item": item}
    head = {"timestamp": "2026-11-21T00:00:00.000Z", "ordinal": truth.seq, "type": "event_msg"}
    line = json.dumps(head | {"payload": payload}, separators=(",", ":")).encode() + b"\n"
    server.forget_events()
    began = time.perf_counter()
    with open(truth.path, "ab", buffering=0) as file:
        file.write(line)
    server.told_of(truth.session)
    return time.perf_counter() - began


def _pairs(figures: Sequence[Sequence[float]]) -> Ratio:
    """Compare what was measured in turn."""
    ratios = sorted(huge / small for small, huge in zip(*figures, strict=True))
    return Ratio(median(ratios), ratios[0], ratios[-1], 0)


# --- the truth -----------------------------------------------------------------------------------


def _check_rows(home: Home, rows: Iterable[dict[str, Any]], *, whole: bool = True) -> None:
    """Raise for a row that is not the truth; of a list that is not `whole` values may be null."""
    found = {row["sessionId"]: _row(row) for row in rows}
    wanted = {truth.session: _true_row(truth) for truth in home.truths.values()}
    for session, row in wanted.items():
        told = found.get(session, ())
        pairs = zip(told, row, strict=bool(told))
        if not told or any(one != other and (whole or one is not None) for one, other in pairs):
            raise Wrong(f"session {session}: {told} instead of {row}")
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} sessions instead of {len(wanted)}")


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    names = ("task", "turns", "contextTokens", "compactions", "seq", "cwd")
    return tuple(row[name] for name in names)


def _true_row(truth: Truth) -> tuple[object, ...]:
    task = _CONTROLS.sub(" ", truth.last_prompt).strip()
    task = task if len(task) <= _LONGEST else f"{task[: _LONGEST - 1]}…"
    return (task, truth.turns, truth.tokens, truth.compactions, truth.seq, truth.cwd)


def _check_checkpoint(truth: Truth, said: bytes | str) -> None:
    checkpoint = orjson.loads(said)
    plan = checkpoint["plan"]
    steps = [(step["text"], plan["done"][step["id"]]) for step in plan["steps"]]
    kinds = [artifact["kind"] for artifact in checkpoint["artifacts"].values()]
    found = (checkpoint["seq"], steps, checkpoint["recentArtifacts"])
    wanted = (truth.seq, truth.plan, truth.recent)
    if found != wanted:
        raise Wrong(f"checkpoint of {truth.session}: {found} instead of {wanted}")
    if len(kinds) < _ARTIFACTS:
        missing = set(truth.patched) - set(checkpoint["artifacts"])
        if missing or kinds.count("command") > truth.commands:
            raise Wrong(f"checkpoint of {truth.session}: without {missing}")


def main() -> int:
    """Measure everything; return 1 for a wrong answer, 0 otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small trees: does it all still work?")
    options = parser.parse_args()
    if not hasattr(os, "posix_spawn"):
        print("This measures with posix_spawn and wait4, which this system lacks.", file=sys.stderr)
        return 1
    scale = QUICK if options.quick else FULL
    # Of a small tree, starting the interpreter is the larger part.
    table = Table(aims=not options.quick)
    # A name that a SIGKILL leaves behind says whose it was.
    with tempfile.TemporaryDirectory(prefix="codex-checkpoints-bench-") as folder:
        if shutil.disk_usage(folder).free < 3 * scale.huge:
            print(f"Too little room in {tempfile.gettempdir()}; set TMPDIR.", file=sys.stderr)
            return 1
        bench = Bench(folder, scale, table)
        try:
            bench.cold_index()
            bench.many_sessions()
            bench.one_line()
            bench.show()
            bench.compaction()
            bench.doors()
        except Wrong as wrong:
            print(f"\nWrong: {wrong}", file=sys.stderr)
            return 1
    print(f"\nAll answers right; {table.missed} aims missed." if table.aims else "\nAll right.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
