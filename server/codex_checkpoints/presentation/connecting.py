"""The connection with Codex at a terminal, and what the doctor found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints.presentation.next_commands import NOTHING_NAMED, Named
from codex_checkpoints.presentation.terminal import AMBER, DIM, GREEN, PLAIN, RED, plain

if TYPE_CHECKING:
    from codex_checkpoints import protocol

_CODEX_PROBLEMS = {
    "codex_not_found": "not found on the PATH",
    "timed_out": "gave no answer in time",
    "codex_failed": "gave no answer",
    "hooks_unknown": "knows no hooks; update it",
}
_DOOR_PROBLEMS = {
    "incomplete": "some hooks are missing or were changed",
    "program_missing": "what it would call is gone",
    "failed": "failed when it was called last",
    "other_program": "calls another installation of this program",
    "other_folders": "calls this program for another home",
    "no_hooks": "this version of Codex has no hooks that fit; update it",
    "disabled": "switched off in Codex",
    "untrusted": "not trusted by Codex yet",
}


def change_lines(report: protocol.ConnectReport, *, colour: bool) -> list[str]:
    """Return what is put into files of Codex's, or taken out."""
    lines: list[str] = []
    for change in report.changes:
        lines.append(plain(f"{change.action} {change.path}"))
        for line in change.diff.splitlines()[2:]:
            tint = {"+": GREEN, "-": RED}.get(line[:1], DIM) if colour else ""
            lines.append(f"{tint}{plain(line)}{PLAIN if tint else ''}")
    return [*(lines or ["Nothing to change."]), ""]


def next_step(report: protocol.ConnectReport) -> str | None:
    """Return what helps whoever asks how things stand."""
    # Where the last call failed, the report itself says all there is to say.
    steps = (door.way_out for door in report.doors if door.problem != "failed")
    return next((step for step in steps if step is not None), None)


def connect_lines(report: protocol.ConnectReport, way_out: str | None) -> list[str]:
    """Return whether something was written, how things stand, and what to do next."""
    kept = [plain(change.backup) for change in report.changes if change.backup is not None]
    lines = [f"What was there is kept as {backup}." for backup in kept]
    lines += ["Written.", ""] if report.written else []
    version = report.codex_version or _CODEX_PROBLEMS.get(report.codex_problem or "")
    lines.append(f"Codex home  {plain(report.codex_home)}")
    lines.append(f"Codex       {plain(version or report.codex_path or '-')}")
    for door in report.doors:
        ran = f"last ran {door.last_ran_at} for {door.last_session}" if door.last_ran_at else None
        words = [
            _connected(door),
            _DOOR_PROBLEMS.get(door.problem or ""),
            "connect again" if door.next == "repair" else None,
            ran or ("never ran" if door.configured else None),
        ]
        lines.append(plain(f"{door.door:<12}{', '.join(word for word in words if word)}"))
        if door.door == "hook" and door.problem != "unreadable":
            lines += map(_hook_line, report.hooks)
    for home in report.other_homes:
        state = "connected" if home.connected else "not connected"
        lines.append(f"Another Codex home is {state}: {plain(home.codex_home)}")
    lines += [f"! {plain(problem)}" for problem in report.problems]
    lines += [] if way_out is None else [f"→ {plain(way_out)}"]
    return lines


def _connected(door: protocol.ConnectDoor) -> str:
    if door.by_hand:
        return "connected by hand"
    if door.problem == "unreadable":
        return "whether it is connected is not known"
    return "connected" if door.configured else "not connected"


def _hook_line(hook: protocol.ConnectHook) -> str:
    ran = (
        f"last ran {hook.last_ran_at} for {hook.last_session}" if hook.last_ran_at else "never ran"
    )
    words = [
        None if hook.configured else "not connected",
        hook.trust,
        "switched off" if hook.enabled is False else None,
        ran if hook.configured else None,
        None if hook.failure is None else f"failed {hook.failure.at}: {hook.failure.code}",
    ]
    return plain(f"  {hook.event:<18}{', '.join(word for word in words if word)}")


def doctor_lines(
    report: protocol.DoctorReport, named: Named = NOTHING_NAMED, *, colour: bool
) -> list[str]:
    """Return a diagnosis: where we look, how much is there, each finding with its way out."""
    tints = {"error": RED, "warning": AMBER, "info": DIM} if colour else {}
    lines = [
        f"Codex home    {plain(report.codex_home)}",
        f"state folder  {plain(report.state_dir)}",
        f"sessions      {report.sessions}",
    ]
    for finding in report.findings:
        tint, end = tints.get(finding.severity, ""), PLAIN if colour else ""
        place = "" if finding.path is None else f"\n    {plain(finding.path)}"
        lines.append(
            f"\n{tint}{plain(f'{finding.severity:<8}{finding.code}')}{end}"
            f"\n    {plain(finding.message)}"
            f"{place}\n    → {plain(named.within(finding.way_out))}"
        )
    if not report.findings:
        lines.append("\nNothing to report: everything that is there can be read.")
    return lines
