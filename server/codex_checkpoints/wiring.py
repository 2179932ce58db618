"""Build what talks to Codex: the `Connector` of `connect`, and the `HookRunner` of a compaction.

`assembly` opens the sessions; connecting needs none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from codex_checkpoints.assembly import Places, settings_of
from codex_checkpoints.codex import program
from codex_checkpoints.codex.app_server import Patience, run
from codex_checkpoints.codex.entries import HOOKS, ON_PROMPT, Entries
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.service.compaction.request import HookRunner
from codex_checkpoints.service.connect.connecting import Connector
from codex_checkpoints.service.connect.status import Surroundings
from codex_checkpoints.storage import records


def connector(where: Places, environment: Mapping[str, str], home: str, cwd: str) -> Connector:
    """Return the connector of a Codex home with this program.

    `home` is the user's home folder; the project at `cwd` may have a configuration as well.
    """
    usual = os.path.abspath(os.path.join(home, ".codex"))
    named = environment.get("CODEX_HOME")
    others = dict.fromkeys((os.path.abspath(named), usual) if named else (usual,))
    own_home = os.path.realpath(where.codex_home)
    others = [each for each in others if os.path.isdir(each) and os.path.realpath(each) != own_home]
    settings, _ = settings_of(where.state_dir)
    folder = os.path.dirname(os.path.abspath(__file__))
    own = program.this_program(sys.executable, folder, environment.get(program.LAUNCHER))
    options = folders(where.codex_home, where.state_dir, usual)
    hooks = (*HOOKS, ON_PROMPT) if settings.inject_on_prompt else HOOKS
    around = Surroundings(cwd, environment, tuple(others))
    entries = Entries(own, options, hooks)
    return Connector(where.codex_home, where.state_dir, entries, around, settings)


def folders(codex_home: str, state_dir: str, usual: str) -> tuple[str, ...]:
    """Return the options that name folders other than the usual ones.

    Codex does not pass `CODEX_HOME` or our own variable to an MCP server, so options must do it.
    """
    options: tuple[str, ...] = ()
    if codex_home != usual:
        options += ("--codex-home", codex_home)
    if state_dir != os.path.join(codex_home, "codex-checkpoints"):
        options += ("--state-dir", state_dir)
    return options


def outside(environment: Mapping[str, str]) -> HookRunner:
    """Return what a compaction needs; Codex is found on the PATH of this environment."""

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

    return HookRunner(records.moment, records.new_ids, run, find_codex, summarise)
