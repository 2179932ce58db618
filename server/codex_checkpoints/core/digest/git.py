"""Commands that ended, and what git put back by them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from codex_checkpoints.core.checkpoint.state import Observation, name_of
from codex_checkpoints.core.rollout.fields import object_of, text_of
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    Outcome,
    ToolCall,
    outcome_in,
    outcome_of,
)
from codex_checkpoints.core.rollout.tools import files_put_back


@frozen
class Run:
    """A command that ended, in the folder that its call names; `seconds` where they are told."""

    script: str
    outcome: Outcome
    folder: str | None
    seconds: float | None = None


def run_in(observed: Observation) -> Run | None:
    """Return the command that was observed, None where it is no command or did not end."""
    script = next((each.name for each in observed.seen() if each.is_command), "")
    match observed.item:
        case CommandRun() as item:
            return ended(script, item.folder, observed)
        case ToolCall() as item if not item.is_script:
            return ended(script, text_of(object_of(item.arguments).get("workdir")), observed)
        case _:
            return None


def ended(script: str, folder: str | None, observed: Observation) -> Run | None:
    """Return a command whose end was observed, None where it is none or goes on."""
    item = observed.item
    outcome = outcome_of(item) if isinstance(item, CommandRun) else outcome_in(observed.texts)
    return Run(script, outcome, folder) if script and outcome.failed is not None else None


def folders_put_back(run: Run, observed: Observation) -> Iterator[str]:
    """Yield what a command had git put back: the uri of a folder or a file, with a final `/`."""
    if "git" in run.script and not run.outcome.failed:
        for each in files_put_back(run.script, run.folder):
            uri = name_of(each, observed.place)[0]
            if uri is not None:
                yield uri[:-1]


def commits(run: Run) -> bool:
    """Return whether a command may have committed what was changed before."""
    return "git" in run.script and "commit" in run.script and not run.outcome.failed


def is_in(uri: str, folder: str) -> bool:
    """Return whether a uri is that of a folder with its `/`, or below; the base is empty."""
    if not folder:
        return uri[:1] != "/" and uri[1:2] != ":"
    return f"{uri}/" == folder or uri.startswith(folder)
