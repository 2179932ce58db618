"""Finds the files that an ended command had git restore, and whether it may have committed."""

from __future__ import annotations

from collections.abc import Iterator

from codex_checkpoints.core.agents.codex.tools import files_put_back
from codex_checkpoints.core.effects import Effects, Run


def folders_put_back(run: Run, effects: Effects) -> Iterator[str]:
    """Yield the uris that a command had git restore: a folder or a file, with a final `/`."""
    if "git" in run.script and not run.outcome.failed:
        for each in files_put_back(run.script, run.folder):
            uri = effects.uri_of(each.name, each.folder)
            if uri is not None:
                yield uri[:-1]


def commits(run: Run) -> bool:
    """Return whether a command may have committed the changes before it."""
    return "git" in run.script and "commit" in run.script and not run.outcome.failed


def is_in(uri: str, folder: str) -> bool:
    """Return whether a uri is a folder, given with its `/`, or is below it; the base is empty."""
    if not folder:
        return uri[:1] != "/" and uri[1:2] != ":"
    return f"{uri}/" == folder or uri.startswith(folder)
