"""What operations need beside the service: a clock, chance, and programs, for the doors to hand in.

Apart from `assembly`, since a door that only answers questions need not load it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codex_checkpoints import hook_process, stamps
from codex_checkpoints.codex import program
from codex_checkpoints.codex.app_server import Patience
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.service.compaction.request import Outside


def outside(environment: Mapping[str, str]) -> Outside:
    """Return what a compaction needs; Codex is looked for on the PATH of this environment."""

    def find_codex() -> str | None:
        return program.find(environment.get("PATH", ""))

    def summarise(
        codex: str,
        codex_home: str,
        what: str | Excerpt,
        seconds: float,
        cancelled: Callable[[], bool],
    ) -> str:
        patience = Patience(seconds, cancelled)
        return program.compacted(codex, codex_home, what, environment, patience)

    return Outside(stamps.moment, stamps.new_ids, hook_process.run, find_codex, summarise)
