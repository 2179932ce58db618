"""The connection with Codex, and the diagnosis."""

from __future__ import annotations

import os

from codex_checkpoints import wiring
from codex_checkpoints.assembly import Places
from codex_checkpoints.operations.services import Services, Steps, elsewhere
from codex_checkpoints.service.connect.connecting import Connector
from codex_checkpoints.service.connect.doors import Door as ConnectDoor
from codex_checkpoints.service.connect.doors import HookState as ConnectHook
from codex_checkpoints.service.connect.status import Connection as ConnectReport
from codex_checkpoints.service.doctor import Diagnosis as DoctorReport
from codex_checkpoints.service.doctor import diagnose
from codex_checkpoints.values import frozen
from codex_checkpoints.wire import BadParams

# what presentation uses from here
__all__ = ["ConnectDoor", "ConnectHook", "ConnectReport", "DoctorReport"]


@frozen
class DoctorParams:
    """No params."""


@frozen
class ConnectParams:
    """Connect, or `remove` the connection; `dryRun` and `status` only report.

    `cwd` is the folder whose project may have a configuration of its own.
    """

    dry_run: bool = False
    remove: bool = False
    status: bool = False
    cwd: str | None = None


def connect(where: Places, params: ConnectParams) -> ConnectReport:
    """Report or change how Codex is connected with us."""
    if params.status and (params.remove or params.dry_run):
        raise BadParams(["status: only looks, so `remove` and `dryRun` must be left out"])
    connector = _connector(where, params.cwd)
    if params.status:
        return connector.status()
    what = "remove" if params.remove else "connect"
    return connector.preview(what) if params.dry_run else connector.carry_out(what)


def doctor(
    services: Services, _params: DoctorParams, cwd: str | None = None
) -> Steps[DoctorReport]:
    """Return what was found, skipped and why; `cwd` as in `ConnectParams`."""
    connection = yield from elsewhere(_connector(services.where, cwd).examine)  # asks Codex
    return diagnose(services.sessions, services.problems, connection)


def _connector(where: Places, cwd: str | None) -> Connector:
    home = os.path.expanduser("~")
    return wiring.connector(where, dict(os.environ), home, cwd or home)
