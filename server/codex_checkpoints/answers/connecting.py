"""The connection with Codex as a wire record, and what the doctor found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.service.diagnosis import Diagnosis
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Connecting is rare, and what it loads would slow down every command.
    from codex_checkpoints.service.connect.connecting import Report
    from codex_checkpoints.service.connect.doors import Door, Failure, HookState


def connect_report(report: Report) -> protocol.ConnectReport:
    """Return how Codex and we are connected, and what was changed."""
    seen = report.connection
    return filled(
        protocol.ConnectReport,
        seen,
        doors=tuple(map(_door, seen.doors)),
        hooks=tuple(map(_hook, seen.hooks)),
        other_homes=tuple(filled(protocol.ConnectHome, each) for each in seen.other_homes),
        written=report.written,
        changes=tuple(filled(protocol.ConnectChange, each) for each in report.changes),
    )


def _door(door: Door) -> protocol.ConnectDoor:
    return filled(protocol.ConnectDoor, door, failure=_failure(door.failure))


def _hook(hook: HookState) -> protocol.ConnectHook:
    return filled(protocol.ConnectHook, hook, failure=_failure(hook.failure))


def _failure(failure: Failure | None) -> protocol.ConnectFailure | None:
    return None if failure is None else filled(protocol.ConnectFailure, failure)


def doctor_report(diagnosis: Diagnosis) -> protocol.DoctorReport:
    """Return a diagnosis."""
    findings = tuple(filled(protocol.DoctorFinding, finding) for finding in diagnosis.findings)
    return filled(protocol.DoctorReport, diagnosis, findings=findings)
