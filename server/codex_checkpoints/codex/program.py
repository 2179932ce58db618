"""Codex's own program: where it is, which version, and what it makes of our hooks.

Codex is asked through its app server over pipes, with a limit of time.  It is told of nobody's
session, and nothing is asked that would start a turn, an MCP server or a hook.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import cast

from codex_checkpoints.codex.app_server import Declined, Patience, app_server
from codex_checkpoints.values import frozen

SECONDS = 10.0
"""What Codex may take for its whole answer; it takes a fraction of one."""

SECONDS_FOR_VERSION = 5.0
HOOKS_SINCE = (0, 129)
"""The first version with hooks around a compaction, as its release notes say; the oldest with which
we have tried them is 0.169."""

_VERSION = re.compile(r"/(\d+\.\d+\.\d+\S*)")
_NAMED_VERSION = re.compile(r"(\d+)\.(\d+)\.\d+\S*")


@frozen
class SeenHook:
    """A hook as Codex sees it; `trust` is `trusted`, `untrusted`, `modified` or `managed`."""

    event: str
    command: str
    trust: str
    enabled: bool
    path: str


@frozen
class Answer:
    """What Codex says of itself; `hooks` is None where it knows no hooks."""

    version: str | None
    hooks: tuple[SeenHook, ...] | None
    warnings: tuple[str, ...]


def find(search_path: str) -> str | None:
    """Return the Codex CLI on a search path, never one in the current folder."""
    for folder in search_path.split(os.pathsep):
        if os.path.isabs(folder) and (found := shutil.which(os.path.join(folder, "codex"))):
            return found
    return None


def version(codex: str, environment: Mapping[str, str]) -> str | None:
    """Ask Codex for its version; None where it does not say."""
    try:
        done = subprocess.run(  # noqa: S603 - the program that the person calls as well
            [codex, "--version"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS_FOR_VERSION,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _NAMED_VERSION.search(done.stdout.decode(errors="replace")[:200])
    return None if found is None or done.returncode != 0 else found[0]


def has_hooks(named: str | None) -> bool | None:
    """Return whether a version has hooks around a compaction; None for one that says nothing."""
    found = None if named is None else _NAMED_VERSION.match(named)
    return None if found is None else (int(found[1]), int(found[2])) >= HOOKS_SINCE


def this_program(interpreter: str, package_folder: str) -> tuple[str, ...]:
    """Return the words that start this very program from any folder.

    From the editor's bundle by its launcher; else as a module, with `-P`: Codex starts us in the
    folder of a session, and a module there must not pass for ours.
    """
    launcher = os.path.join(os.path.dirname(os.path.dirname(package_folder)), "launch.py")
    if os.path.isfile(launcher):
        return (interpreter, "-I", "-S", "-X", "utf8", "-u", launcher)
    return (interpreter, "-P", "-X", "utf8", "-m", "codex_checkpoints")


def ask(codex: str, codex_home: str, cwd: str, environment: Mapping[str, str]) -> Answer:
    """Ask Codex for its version and for the hooks that hold in a folder.

    Raises `AskingFailed`.
    """
    patience = Patience(SECONDS)
    with app_server(codex, codex_home, environment, patience) as (server, agent):
        version = _VERSION.search(agent)
        try:
            listed = server.call("hooks/list", {"cwds": [cwd]})
        except Declined:  # it does not know this question
            listed = None
    entries = [] if listed is None else cast("list[Mapping[str, object]]", listed.get("data") or [])
    return Answer(
        None if version is None else version[1],
        None if listed is None else tuple(hook for entry in entries for hook in _hooks(entry)),
        tuple(str(text) for e in entries for text in cast("list[object]", e.get("warnings") or [])),
    )


def _hooks(entry: Mapping[str, object]) -> Iterator[SeenHook]:
    for hook in cast("list[Mapping[str, object]]", entry.get("hooks") or []):
        name = str(hook.get("eventName"))
        yield SeenHook(
            name[:1].upper() + name[1:],
            str(hook.get("command", "")),
            str(hook.get("trustStatus")),
            hook.get("enabled") is not False,
            str(hook.get("sourcePath")),
        )
