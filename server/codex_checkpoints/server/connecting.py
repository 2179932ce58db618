"""Requests about Codex's configuration, and the diagnosis of the whole."""

from __future__ import annotations

import asyncio
import os

from codex_checkpoints import assembly, protocol, wiring
from codex_checkpoints.answers import connecting as answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.connect.connecting import Connector
from codex_checkpoints.service.diagnosis import diagnose
from codex_checkpoints.wire import BadParams


async def connect(desk: Desk, params: protocol.ConnectParams) -> protocol.ConnectReport:
    """Say how Codex and we are connected, or change it."""
    if params.status and (params.remove or params.dry_run):
        raise BadParams(["status: only looks, so `remove` and `dryRun` must be left out"])
    # Not on the worker: Codex may take its time, and sessions have no part in it.
    report = await asyncio.to_thread(wiring.asked, _connector(desk, params.cwd), params)
    return answers.connect_report(report)


async def doctor(desk: Desk, _params: protocol.DoctorParams) -> protocol.DoctorReport:
    """Answer with what was found, skipped and why."""
    sessions = await desk.ready()
    # Not on the worker: Codex is asked for its version.
    connection = await asyncio.to_thread(_connector(desk, None).examine)
    found = await desk.work(diagnose, sessions, desk.problems, connection)
    return answers.doctor_report(found)


def _connector(desk: Desk, cwd: str | None) -> Connector:
    home = os.path.expanduser("~")
    where = desk.where
    settings, _ = assembly.settings_of(where.state_dir)
    return wiring.connector(
        where.codex_home, where.state_dir, dict(os.environ), home, cwd or home, settings
    )


HANDLERS: Handlers = {
    "checkpoints/connect": connect,
    "checkpoints/doctor": doctor,
}
