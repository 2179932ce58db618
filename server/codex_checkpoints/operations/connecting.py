"""The connection with Codex, and the diagnosis."""

from __future__ import annotations

import os
import sys

from codex_checkpoints.assembly import Places, settings_of
from codex_checkpoints.codex import program
from codex_checkpoints.codex.entries import HOOKS, ON_PROMPT, Entries
from codex_checkpoints.operations.services import Services
from codex_checkpoints.service.connect.connecting import Connector
from codex_checkpoints.service.connect.status import Connection as ConnectReport
from codex_checkpoints.service.connect.status import Surroundings
from codex_checkpoints.service.doctor import Diagnosis as DoctorReport
from codex_checkpoints.service.doctor import diagnose
from codex_checkpoints.service.reading.pace import Steps, elsewhere
from codex_checkpoints.values import frozen
from codex_checkpoints.wire import BadParams


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
    """Return the connector of a Codex home with this program; it needs no sessions."""
    home, environment = os.path.expanduser("~"), dict(os.environ)
    usual = os.path.abspath(os.path.join(home, ".codex"))
    named = environment.get("CODEX_HOME")
    others = dict.fromkeys((os.path.abspath(named), usual) if named else (usual,))
    own_home = os.path.realpath(where.codex_home)
    others = [each for each in others if os.path.isdir(each) and os.path.realpath(each) != own_home]
    settings, _ = settings_of(where.state_dir)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    own = program.this_program(sys.executable, package, environment.get(program.LAUNCHER))
    options = folders(where.codex_home, where.state_dir, usual)
    hooks = (*HOOKS, ON_PROMPT) if settings.inject_on_prompt else HOOKS
    around = Surroundings(cwd or home, environment, tuple(others))
    entries = Entries(own, options, hooks)
    return Connector(where.codex_home, where.state_dir, entries, around, settings)


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
