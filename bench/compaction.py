"""What a compaction of one huge session costs, beside a bare read of it and Codex's own resume.

The bare read is a process that reads the file and does nothing with it, the least that anybody
needs who looks at all of it.  *Cold* means that we never saw the session before.  Codex's first
resume reads all of a session that it does not know and keeps a database of it; a later one goes by
that, and reads the file from its end.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

import orjson
from codex_resume import INSTALL, Resume, installed, resuming
from make_tree import Truth
from measure import Cost, Ratio, Wrong, compare, product, run
from table import Table

_READ = """
import sys
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
"""
_MEMORY_MB = 150


class Compactions:
    """Compactions of the only session of a home."""

    def __init__(self, folder: str, home: str, truth: Truth) -> None:
        """Keep our state in this folder."""
        self._home = home
        self._truth = truth
        self._warm = os.path.join(folder, "state-compaction")
        self._cold = os.path.join(folder, "state-compaction-cold")
        self._history: list[Any] = []
        self._newest = ""

    def measure(self, table: Table, runs: int) -> None:
        """Print the figures; each run is compared with its reference in turn."""
        self._history = self._items()
        self._tell(table, "into a new session, cold", self._into_new_cold, runs)
        self._tell(table, "the same, warm", self._into_new, runs)
        for what in ("history", "windows"):
            self._tell(table, f"`{what}`, warm", lambda what=what: self._ask(what), runs)
        if installed():
            with resuming(self._home, self._truth) as codex:
                self._beside_codex(table, codex, runs)
        else:
            print(f"  Codex's own resume is left out: its CLI is not there ({INSTALL}).")
        self._tell(table, "in place, warm", self._in_place, runs)
        self._check_windows(self._ask("windows").said, more=runs)
        self._undo(table)

    def _tell(self, table: Table, what: str, ours: Callable[[], Cost], runs: int) -> None:
        found = compare(runs, ours, self._read)
        table.ratio(what, found, "a bare read of the file")
        table.memory("peak memory", found.peak_mb, _MEMORY_MB)
        if found.read:  # with the interpreter's own modules, some megabytes
            table.note("how often it reads the file", f"{found.read / self._truth.size:.2f}")

    def _undo(self, table: Table) -> None:
        """Take a compaction back; the history must be that of before."""
        before = self._items()
        self._in_place()
        self._tell(table, "`uncompact`, in place, warm", self._taken_back, 1)
        if self._items() != before:
            raise Wrong("uncompact does not bring the history back")

    def _beside_codex(self, table: Table, codex: Resume, runs: int) -> None:
        codex.first()
        _check_history(self._history, codex.sent())
        first = compare(min(runs, 2), self._into_new_cold, codex.first)
        later = compare(runs, self._into_new, codex.again)
        table.ratio("into a new session, cold", first, "Codex's first resume")
        table.ratio("the same, warm", later, "a later resume of Codex's")
        _tell_memory(table, compare(1, codex.first, self._read))

    # --- what is run -----------------------------------------------------------------------------

    def _read(self) -> Cost:
        return run((sys.executable, "-c", _READ, self._truth.path))

    def _ask(self, command: str) -> Cost:
        return run(product(command, self._home, self._warm, self._truth.session, "--json"))

    def _items(self) -> list[Any]:
        return orjson.loads(self._ask("history").said)["items"]

    def _into_new_cold(self) -> Cost:
        shutil.rmtree(self._cold, ignore_errors=True)
        return self._compacted(self._cold, "new")

    def _into_new(self) -> Cost:
        return self._compacted(self._warm, "new")

    def _in_place(self) -> Cost:
        # Of a session that was compacted there is little to make smaller.
        return self._compacted(self._warm, "in-place", "--force")

    def _taken_back(self) -> Cost:
        return run(product("uncompact", self._home, self._warm, self._newest))

    def _compacted(self, state: str, into: str, *more: str) -> Cost:
        options = ("--into", into, *more, "--json")
        cost = run(product("compact", self._home, state, self._truth.session, *options))
        told = orjson.loads(cost.said)
        *_, words, handoff = (item["content"][0]["text"] for item in told["replacement"])
        if words != self._truth.last_prompt or "[SESSION_CHECKPOINT" not in handoff:
            raise Wrong(f"a compaction {into} does not end with the last prompt and the view")
        self._newest = told["compactionId"]
        if into == "new":
            self._remove(told["sessionId"])
        return cost

    def _remove(self, session: str) -> None:
        for folder, _, names in os.walk(os.path.join(self._home, "sessions")):
            for name in names:
                if session in name:
                    os.unlink(os.path.join(folder, name))

    def _check_windows(self, said: bytes, more: int) -> None:
        found, wanted = len(orjson.loads(said)), self._truth.compactions + 1 + more
        if found != wanted:
            raise Wrong(f"{found} windows instead of {wanted}")


def _check_history(ours: list[Any], sent: list[Any]) -> None:
    """Compare a history with a request; pictures of noise Codex replaces by a remark."""
    for our, their in zip(ours, sent, strict=False):
        if our != their and b'"input_image"' not in orjson.dumps(our):
            raise Wrong("our history is not what Codex sent")
    if len(ours) >= len(sent):
        raise Wrong("our history is longer than what Codex sent")


def _tell_memory(table: Table, codex: Ratio) -> None:
    table.note("Codex's first resume, peak memory", f"{codex.peak_mb:.0f} MB")
