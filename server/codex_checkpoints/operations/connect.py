"""Reports and changes the connection with Codex, and makes the diagnosis."""

from __future__ import annotations

import os
import sys

from attrs import frozen

from codex_checkpoints.codex import program
from codex_checkpoints.codex.entries import Entries, hooks_for
from codex_checkpoints.operations.services import Services
from codex_checkpoints.places import Places, settings_of
from codex_checkpoints.service.connect.codex_config import Connector
from codex_checkpoints.service.connect.status import Connection as ConnectReport
from codex_checkpoints.service.doctor import Diagnosis as DoctorReport
from codex_checkpoints.service.doctor import diagnose
from codex_checkpoints.wire import BadParams


@frozen
class DoctorParams:
    """No params."""


@frozen
class ConnectParams:
    """Connect, or `remove` the connection; `dryRun` and `status` only report."""

    dry_run: bool = False
    remove: bool = False
    status: bool = False


def connect(where: Places, params: ConnectParams) -> ConnectReport:
    """Report or change the connection of Codex with us."""
    if params.status and (params.remove or params.dry_run):
        raise BadParams(["status: only looks, so `remove` and `dryRun` must be left out"])
    connector = _connector(where)
    if params.status:
        return connector.status()
    what = "remove" if params.remove else "connect"
    return connector.preview(what) if params.dry_run else connector.carry_out(what)


def doctor(services: Services, _params: DoctorParams) -> DoctorReport:
    """Return the findings, and the skipped lines with reasons."""
    return diagnose(services.sessions, services.problems, _connector(services.where).inspect())


def _connector(where: Places) -> Connector:
    """Return the connector of a Codex home with this program; it needs no sessions."""
    home, environment = os.path.expanduser("~"), dict(os.environ)
    settings, _ = settings_of(where.state_dir)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    own = program.this_program(sys.executable, package, environment.get(program.LAUNCHER))
    usual = os.path.abspath(os.path.join(home, ".codex"))
    entries = Entries(
        own,
        folders(where.codex_home, where.state_dir, usual),
        hooks_for(settings.file_copies),
    )
    return Connector(where.codex_home, where.state_dir, entries, environment, settings)


def folders(codex_home: str, state_dir: str, usual: str) -> tuple[str, ...]:
    """Return the options that name folders other than the usual ones.

    Codex does not pass `CODEX_HOME` or our own variable to an MCP server, so options must do it.
    """
    options: tuple[str, ...] = ()
    if codex_home != usual:
        options += ("--codex-home", codex_home)
    if state_dir != os.path.join(codex_home, "codex-checkpoints"):
        options += ("--state-dir", state_dir)
    return options
