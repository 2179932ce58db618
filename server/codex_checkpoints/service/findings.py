"""What keeps Codex from calling us, as the doctor tells it: a code, how bad it is, a way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from codex_checkpoints.codex.program import has_hooks
from codex_checkpoints.service.connect.doors import HOW_TO_TRUST, Door
from codex_checkpoints.service.connect.status import Connection
from codex_checkpoints.threads.contract import Row
from codex_checkpoints.values import frozen

_RECENT = 20
"""How many of the newest sessions are asked for the version of Codex that wrote them."""


@frozen
class Finding:
    """One thing worth knowing, with a way out; `severity` is `error`, `warning` or `info`."""

    code: str
    severity: str
    message: str
    path: str | None
    count: int
    way_out: str


_DOORS = {"hook": "Hooks", "mcp": "Memory tools"}
_PROBLEMS: Mapping[str, tuple[str, str]] = {
    "incomplete": (
        "warning",
        "Codex is told of some of our hooks only, or not of all that they are for.",
    ),
    "program_missing": (
        "error",
        "What Codex is told to call is gone: the program or its Python was moved or removed.",
    ),
    "other_program": ("info", "Codex calls another installation of this program."),
    "other_folders": ("warning", "Codex calls this program for another home or state folder."),
    "no_hooks": ("warning", "The version of Codex that is installed has no hooks that fit."),
    "disabled": ("warning", "They are switched off in Codex, or some of them."),
    "untrusted": ("warning", "Nobody has told Codex to trust them, so it does not call them."),
    "failed": ("warning", "The last call failed."),
}


def of_connection(connection: Connection, rows: Iterable[Row]) -> Iterator[Finding]:
    """Tell what is wrong between Codex and us, as far as files tell; `rows` are the sessions.

    Where nothing is connected that is nobody's trouble: only what is left over, or lies elsewhere,
    is told then.
    """
    none = {"not_configured", "unreadable"}
    is_connected = any(door.problem not in none for door in connection.doors)
    for door in connection.doors:
        yield from _of_door(connection, door)
    yield from _of_files(connection, is_connected=is_connected)
    if is_connected:
        yield from _of_codex(connection, rows)


def _of_door(connection: Connection, door: Door) -> Iterator[Finding]:
    home, name = connection.codex_home, _DOORS[door.door]
    told = _PROBLEMS.get(door.problem or "")
    if told is not None:
        severity, message = told
        if door.problem == "failed" and door.failure is not None:
            message = f"The last call, at {door.failure.at}, failed: {door.failure.code}."
        code = f"{door.door}_{door.problem}"
        yield Finding(code, severity, f"{name}: {message}", home, 1, door.way_out or "")
    elif door.problem is None and door.last_ran_at is None:
        message = f"{name}: they are connected, and Codex has not called them yet."
        if door.door == "hook":
            yield Finding("hook_never_ran", "info", message, home, 1, HOW_TO_TRUST)
        elif _has_called(connection):
            way_out = "Nothing to do: the model uses them where it has something to note."
            yield Finding("mcp_never_ran", "info", message, home, 1, way_out)


def _of_files(connection: Connection, *, is_connected: bool) -> Iterator[Finding]:
    for sentence in connection.in_files:
        yield Finding(
            "codex_configuration",
            "warning",
            f"{sentence}.",
            connection.codex_home,
            1,
            "Correct that file; this program changes nothing in one that it cannot read.",
        )
    # Of a file that cannot be read the copy may be the best there is.
    for path in () if is_connected or connection.in_files else connection.backups:
        yield Finding(
            "backup_left",
            "info",
            "A copy of Codex's configuration from before `connect` is left; it may hold keys.",
            path,
            1,
            "Remove it when you need it no longer.",
        )
    for other in connection.other_homes:
        if other.has_sessions and not other.connected:
            yield Finding(
                "other_home_not_connected",
                "info",
                "Another Codex home has sessions, and nothing of ours in its configuration.",
                other.codex_home,
                1,
                f"`codex-checkpoints connect --codex-home {other.codex_home}` connects it.",
            )


def _has_called(connection: Connection) -> bool:
    return any(door.last_ran_at is not None for door in connection.doors)


def _of_codex(connection: Connection, rows: Iterable[Row]) -> Iterator[Finding]:
    """Tell of a Codex that is not there, and of sessions whose version had no hooks."""
    if connection.codex_problem == "codex_not_found" and not _has_called(connection):
        yield Finding(
            "codex_not_found",
            "info",
            "There is no Codex CLI on the PATH, and no Codex has called us yet.",
            None,
            1,
            "Install Codex, or start it where this program is connected.",
        )
    newest = sorted(rows, key=lambda row: row.updated_at or "", reverse=True)[:_RECENT]
    old = [row for row in newest if has_hooks(row.cli_version) is False]
    if old:
        versions = ", ".join(sorted({row.cli_version or "" for row in old}))
        yield Finding(
            "sessions_without_hooks",
            "info",
            f"{len(old)} of the newest {len(newest)} sessions come from a Codex without hooks that"
            f" fit: {versions}.",
            max(old, key=attrgetter("path")).path,
            len(old),
            "Update Codex there, too; until then such a session is followed, and given nothing.",
        )
