"""`restore` and what tells of it, `export` and `import`: to go on from a state, here or elsewhere.

Of restores tell `restores`, `restore-details`, `lineage`, `audit` and `verify`.
"""

from __future__ import annotations

import argparse
import os

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_marker,
    add_session,
    count,
    named,
    told,
    whole,
)

BUDGET = "how large the state pack of a hard restore may be"
WINDOW = "take your last N messages along in a hard restore, 0 to 5"


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "open a branch at a marker; the session itself stays as it is"
    restore = commands.add("restore", about, _restore)
    add_session(restore, OF_OURS)
    add_marker(restore)
    add_json(restore)
    _add_options(restore)

    restores = commands.add("restores", "list the restores of a session, or all", _restores)
    restores.add_argument("session", metavar="SESSION", nargs="?", help=OF_OURS)
    add_json(restores)

    details = commands.add("restore-details", "say everything about a restore", _restore_details)
    details.add_argument("operation", metavar="OPERATION", help="its id; `restores` lists them")
    add_json(details)

    about = "show the tree of sessions that a session stands in"
    lineage = commands.add("lineage", about, _lineage)
    add_session(lineage, OF_OURS)
    add_json(lineage)

    audit = commands.add("audit", "list what operations wrote down of themselves", _audit)
    audit.add_argument("--session", metavar="SESSION", help="of this session, as source or branch")
    audit.add_argument(
        "--operation", metavar="OPERATION", help="of this operation, by its whole id"
    )
    add_json(audit)

    about = "check that the records of restores are as they were written"
    add_json(commands.add("verify", about, _verify))


def add_portable(commands: Commands) -> None:
    """Add the commands about packs."""
    export = commands.add("export", "write what a session knows as a file to carry", _export)
    add_session(export)
    export.add_argument("file", metavar="FILE", help="the file to write")
    export.add_argument("--force", action="store_true", help="replace a file that is there")
    export.add_argument("--dry-run", action="store_true", help="say what it would hold")
    add_json(export)

    about = "make a session of such a file, with the files of a folder here"
    imports = commands.add("import", about, _import)
    imports.add_argument("file", metavar="FILE", help="the file to read")
    imports.add_argument("--cwd", metavar="DIR", default=".", help="the folder of the session")
    imports.add_argument("--dry-run", action="store_true", help="say what would come of it")
    add_json(imports)


def _add_options(restore: argparse.ArgumentParser) -> None:
    restore.add_argument(
        "--mode",
        choices=("soft", "hard"),
        required=True,
        help="soft continues with context, hard resets the context for performance",
    )
    restore.add_argument("--budget", metavar="TOKENS", type=count, help=BUDGET)
    restore.add_argument("--window", metavar="N", type=whole, default=0, help=WINDOW)
    restore.add_argument("--reason", metavar="TEXT", help="why, for the state pack and the record")
    restore.add_argument(
        "--dry-run", action="store_true", help="show what would come, and write nothing"
    )


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoreParams, restore, restore_preview
    from codex_checkpoints.presentation.restores import restored_lines

    services.look_around()
    params = RestoreParams(
        options.session,
        options.checkpoint,
        options.mode,
        options.budget,
        options.window,
        options.reason,
    )
    record = (restore_preview if options.dry_run else restore)(services, params)
    return told(options, record, restored_lines(record, named(options)))


def _restores(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoresParams, restores
    from codex_checkpoints.presentation.restores import restore_lines

    services.look_around()
    record = restores(services, RestoresParams(options.session))
    return told(options, record, restore_lines(record, width=output.width()))


def _restore_details(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoreDetailsParams, restore_details
    from codex_checkpoints.presentation.restores import detail_lines

    services.look_around()
    record = restore_details(services, RestoreDetailsParams(options.operation))
    return told(options, record, detail_lines(record, named(options), width=output.width()))


def _lineage(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import lineage
    from codex_checkpoints.operations.services import SessionParams
    from codex_checkpoints.presentation.restores import lineage_lines

    services.look_around()
    record = lineage(services, SessionParams(options.session))
    return told(options, record, lineage_lines(record, width=output.width()))


def _audit(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import AuditParams, audit
    from codex_checkpoints.presentation.restores import event_lines

    services.look_around()
    record = audit(services, AuditParams(options.session, options.operation))
    return told(options, record, event_lines(record, width=output.width()))


def _verify(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import VerifyParams, verify
    from codex_checkpoints.presentation.restores import verify_lines

    services.look_around()
    record = verify(services, VerifyParams())
    return told(options, record, verify_lines(record))


def _export(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.portable import ExportParams, export
    from codex_checkpoints.presentation.restores import exported_lines

    services.look_around()
    file = os.path.abspath(options.file)
    params = ExportParams(options.session, file, options.force, options.dry_run)
    record = export(services, params)
    return told(options, record, exported_lines(record))


def _import(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.portable import ImportParams, make
    from codex_checkpoints.presentation.restores import imported_lines

    services.look_around()
    params = ImportParams(os.path.abspath(options.file), options.cwd, options.dry_run)
    record = make(services, params)
    return told(options, record, imported_lines(record, named(options)))
