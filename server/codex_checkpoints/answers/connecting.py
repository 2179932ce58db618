"""The connection with Codex as a wire record, and what the doctor found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_checkpoints import protocol
from codex_checkpoints.service.diagnosis import Diagnosis
from codex_checkpoints.wire import filled

if TYPE_CHECKING:
    # Connecting is rare, and what it loads would slow down every command.
    from codex_checkpoints.service.connector import Report
    from codex_checkpoints.service.doors import Door, HookState
    from codex_checkpoints.service.last_runs import Failure


def connect_report(report: Report) -> protocol.ConnectReport:
    """Return how Codex and we are connected, and what was changed."""
    seen = report.connection
    return protocol.ConnectReport(
        seen.codex_home,
        seen.codex_path,
        seen.codex_version,
        seen.codex_problem,
        tuple(map(_door, seen.doors)),
        tuple(map(_hook, seen.hooks)),
        tuple(filled(protocol.ConnectHome, each) for each in seen.other_homes),
        seen.problems,
        seen.way_out,
        report.written,
        tuple(filled(protocol.ConnectChange, each) for each in report.changes),
    )


def _door(door: Door) -> protocol.ConnectDoor:
    return protocol.ConnectDoor(
        door.door,
        door.configured,
        door.trusted,
        door.trust_unknown,
        door.last_ran_at,
        door.last_session,
        _failure(door.failure),
        door.problem,
        door.next,
        door.way_out,
    )


def _hook(hook: HookState) -> protocol.ConnectHook:
    return protocol.ConnectHook(
        hook.event,
        hook.configured,
        hook.trust,
        hook.enabled,
        hook.last_ran_at,
        hook.last_session,
        _failure(hook.failure),
    )


def _failure(failure: Failure | None) -> protocol.ConnectFailure | None:
    return None if failure is None else filled(protocol.ConnectFailure, failure)


def doctor_report(diagnosis: Diagnosis) -> protocol.DoctorReport:
    """Return a diagnosis."""
    return protocol.DoctorReport(
        diagnosis.codex_home,
        diagnosis.state_dir,
        diagnosis.sessions,
        tuple(filled(protocol.DoctorFinding, finding) for finding in diagnosis.findings),
        diagnosis.skipped,
    )
