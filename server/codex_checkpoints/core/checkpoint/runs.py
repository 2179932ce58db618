"""Lists the commands of a call that ended, each with its outcome, in any form of the file."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.core.agents.codex.items import CommandRun, Outcome, ToolCall, outcome_of
from codex_checkpoints.core.agents.codex.tools import commands_of
from codex_checkpoints.core.checkpoint.state import Observation
from codex_checkpoints.core.shell import posix


@frozen
class Run:
    """A command that ended, in the folder that its call names; `seconds` if they are recorded.

    Nothing is known about the outcome of one command among several of a code-mode script.
    """

    script: str
    outcome: Outcome
    folder: str | None
    seconds: float | None = None


def runs_in(observed: Observation) -> tuple[Run, ...]:
    """Return the commands that ended with an observation, without running ones.

    A person's own commands are left out as well: they verify nothing for the agent.
    """
    item = observed.item
    if isinstance(item, CommandRun):
        found = Run(posix.script_of(item.argv), outcome_of(item), item.folder)
        counts = found.outcome.failed is not None and not item.by_user
        return (found,) if counts else ()
    if not isinstance(item, ToolCall):
        return ()
    runs = tuple(
        Run(posix.script_of(each.argv), observed.outcome, each.folder) for each in commands_of(item)
    )
    return runs if item.is_script or observed.outcome.failed is not None else ()
