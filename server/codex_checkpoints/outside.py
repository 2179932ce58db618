"""What operations need beside the service: a clock, chance, and programs, for the doors to hand in.

Apart from `assembly`, since a door that only answers questions need not load it.
"""

from __future__ import annotations

from collections.abc import Mapping

from codex_checkpoints import hook_process, stamps
from codex_checkpoints.codex import program
from codex_checkpoints.core.history.tokens import WINDOW_SETTING
from codex_checkpoints.service.compaction_request import Outside


def outside(environment: Mapping[str, str]) -> Outside:
    """Return what a compaction needs; Codex is looked for on the PATH of this environment."""

    def find_codex() -> str | None:
        return program.find(environment.get("PATH", ""))

    window = environment.get(WINDOW_SETTING)
    return Outside(stamps.moment, stamps.new_ids, hook_process.run, find_codex, window)
