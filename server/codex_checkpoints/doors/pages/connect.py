"""Renders the connection with Codex and a diagnosis for a terminal."""

from __future__ import annotations

from codex_checkpoints.doors.pages.terminal import AMBER, DIM, GREEN, RED, Screen, moment, plain
from codex_checkpoints.service import doctor
from codex_checkpoints.service.connect import status

_CODEX_PROBLEMS = {
    "codex_not_found": "not found on the PATH",
    "timed_out": "gave no answer in time",
    "codex_failed": "gave no answer",
    "hooks_unknown": "has no hooks yet; update it",
}
_DOOR_PROBLEMS = {
    "program_missing": "what it would call is gone",
    "outdated": "not as it would be written now",
    "failed": "failed the last time it was called",
    "no_hooks": "this version of Codex has no hooks that fit; update it",
    "disabled": "switched off in Codex",
    "untrusted": "not trusted by Codex yet",
}


def change_lines(report: status.Connection, screen: Screen) -> list[str]:
    """Return the additions to files of Codex's, or the removals."""
    lines: list[str] = []
    for change in report.changes:
        lines.append(plain(f"{change.action} {change.path}"))
        for line in change.diff.splitlines()[2:]:
            tint = {"+": GREEN, "-": RED}.get(line[:1], DIM)
            lines.append(screen.tinted(tint, plain(line)))
    return [*(lines or ["Nothing to change."]), ""]


def next_step(report: status.Connection) -> str | None:
    """Return the remedy for a person who asks about the connection."""
    # If the last call failed, the report itself already says enough.
    steps = (door.way_out for door in report.doors if door.problem != "failed")
    return next((step for step in steps if step is not None), None)


def connect_lines(report: status.Connection, way_out: str | None, screen: Screen) -> list[str]:
    """Return whether something was written, the state of the connection, and the next step."""
    kept = [plain(change.backup) for change in report.changes if change.backup is not None]
    lines = [f"The file as it was is kept as {backup}." for backup in kept]
    if report.written:
        lines += ["Written.", ""]
    elif report.changes:
        lines += ["Nothing was written: this is what a run without --dry-run would write.", ""]
    version = report.codex_version or _CODEX_PROBLEMS.get(report.codex_problem or "")
    lines.append(f"Codex home  {plain(report.codex_home)}")
    lines.append(f"Codex       {plain(version or report.codex_path or '-')}")
    for door in report.doors:
        words = [
            _connected(door),
            _DOOR_PROBLEMS.get(door.problem or ""),
            "connect again" if door.next == "repair" else None,
            _ran(door, screen) if door.configured or door.last_ran_at else None,
        ]
        lines.append(plain(f"{door.door:<12}{', '.join(word for word in words if word)}"))
        if door.door == "hook" and door.problem != "unreadable":
            lines += [_hook_line(hook, screen) for hook in report.hooks]
    lines += [f"! {plain(problem)}" for problem in report.problems]
    lines += [] if way_out is None else [f"→ {plain(way_out)}"]
    return lines


def _connected(door: status.Door) -> str:
    if door.problem == "unreadable":
        return "not known whether it is connected"
    return "connected" if door.configured else "not connected"


def _ran(what: status.Door | status.HookState, screen: Screen) -> str:
    return (
        f"last ran {moment(what.last_ran_at, screen)} for {what.last_session}"
        if what.last_ran_at
        else "never ran"
    )


def _failed(failure: status.Failure | None, screen: Screen) -> str | None:
    return None if failure is None else f"failed {moment(failure.at, screen)}: {failure.code}"


def _hook_line(hook: status.HookState, screen: Screen) -> str:
    words = [
        None if hook.configured else "not connected",
        hook.trust,
        "switched off" if hook.enabled is False else None,
        _ran(hook, screen) if hook.configured else None,
        _failed(hook.failure, screen),
    ]
    return plain(f"  {hook.event:<18}{', '.join(word for word in words if word)}")


def doctor_lines(report: doctor.Diagnosis, screen: Screen) -> list[str]:
    """Return a diagnosis: the folders, the totals, each finding with its remedy."""
    tints = {"error": RED, "warning": AMBER}
    lines = [
        f"Codex home    {plain(report.codex_home)}",
        f"state folder  {plain(report.state_dir)}",
        f"sessions      {report.sessions}",
    ]
    for each in report.findings:
        head = plain(f"{each.severity:<8}{each.code}")
        lines.append(f"\n{screen.tinted(tints.get(each.severity, DIM), head)}")
        lines.append(f"    {plain(each.message)}")
        lines += [] if each.path is None else [f"    {plain(each.path)}"]
        lines.append(f"    → {plain(screen.within(each.way_out))}")
    if not report.findings:
        lines.append("\nNothing to report: everything can be read.")
    return lines
