"""The commands about markers, pins, hints, restores and portable files."""

from __future__ import annotations

import argparse
import os

from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    A_TURN,
    OF_OURS,
    Commands,
    Terminal,
    add_json,
    add_marker,
    add_session,
    count,
    named,
    report,
    whole,
    wrong,
)
from codex_checkpoints.operations.services import SessionParams
from codex_checkpoints.presentation import restores as texts
from codex_checkpoints.presentation.terminal import plain


def add_marking(commands: Commands) -> None:
    """Add the commands about markers, pins and hints."""
    mark = commands.add("mark", "put a marker on a turn, to come back to", _mark)
    marks = commands.add("marks", "list the markers of a session", _marks)
    unmark = commands.add("unmark", "take a marker away", _unmark)
    relabel = commands.add("relabel", "give a marker another label", _relabel)
    pin = commands.add("pin", "pin a file for state packs, or list what is pinned", _pin)
    unpin = commands.add("unpin", "take a pin away", _pin)
    for added in (mark, marks, unmark, relabel, pin, unpin):
        add_session(added, OF_OURS)
        add_json(added)
    for added in (unmark, relabel):
        add_marker(added)
    mark.add_argument("--label", metavar="LABEL", required=True, help="what to call it")
    mark.add_argument("--turn", metavar="TURN", help=f"{A_TURN}; else the last one that ended")
    relabel.add_argument("label", metavar="LABEL", help="what to call it from now on")
    path = "a file in the session's folder, or lines of it: src/a.py#L3-L9"
    pin.add_argument("path", metavar="PATH", nargs="?", help=path)
    unpin.add_argument("path", metavar="PATH", help=path)

    about = "store or list an agent's verdicts on the artifacts it was given"
    hints = commands.add("hints", about, _hints)
    add_session(hints, OF_OURS)
    hints.add_argument("items", metavar="JSON", nargs="?", help='[{"uri": …, "verdict": …}, …]')
    add_json(hints)


def add(commands: Commands) -> None:
    """Add the commands about restores."""
    about = "open a branch at a marker; the session itself does not change"
    restore = commands.add("restore", about, _restore)
    add_session(restore, OF_OURS)
    add_marker(restore)
    add_json(restore)
    _add_options(restore)

    restores = commands.add("restores", "list the restores of a session, or all", _restores)
    restores.add_argument("session", metavar="SESSION", nargs="?", help=OF_OURS)
    add_json(restores)

    details = commands.add("restore-details", "print everything about a restore", _restore_details)
    details.add_argument("operation", metavar="OPERATION", help="its id; `restores` lists them")
    add_json(details)

    about = "show the tree of sessions to which a session belongs"
    lineage = commands.add("lineage", about, _lineage)
    add_session(lineage, OF_OURS)
    add_json(lineage)

    audit = commands.add("audit", "list the events of the audit log", _audit)
    audit.add_argument("--session", metavar="SESSION", help="of this session, as source or branch")
    audit.add_argument(
        "--operation", metavar="OPERATION", help="of this operation, by its whole id"
    )
    add_json(audit)

    about = "check that the records of restores are unchanged"
    add_json(commands.add("verify", about, _verify))


def add_portable(commands: Commands) -> None:
    """Add `export` and `import`."""
    export = commands.add("export", "write what a session knows to a portable file", _export)
    add_session(export)
    export.add_argument("file", metavar="FILE", help="the file to write")
    export.add_argument("--force", action="store_true", help="replace a file that is there")
    export.add_argument("--dry-run", action="store_true", help="only show what it would hold")
    add_json(export)

    about = "make a session from a portable file, for a folder of this machine"
    imports = commands.add("import", about, _import)
    imports.add_argument("file", metavar="FILE", help="the file to read")
    imports.add_argument("--cwd", metavar="DIR", default=".", help="the folder of the session")
    imports.add_argument("--dry-run", action="store_true", help="only show what it would do")
    add_json(imports)


def _add_options(restore: argparse.ArgumentParser) -> None:
    restore.add_argument(
        "--mode",
        choices=("soft", "hard"),
        required=True,
        help="soft continues with context, hard resets the context for performance",
    )
    about = "how large the state pack of a hard restore may be"
    restore.add_argument("--budget", metavar="TOKENS", type=count, help=about)
    about = "include your last N messages in a hard restore, 0 to 5"
    restore.add_argument("--window", metavar="N", type=whole, default=0, help=about)
    restore.add_argument("--reason", metavar="TEXT", help="why, for the state pack and the record")
    restore.add_argument("--dry-run", action="store_true", help="only show what it would do")


def _mark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import MarkParams, mark

    record = mark(services, MarkParams(options.session, options.label, options.turn))
    return report(options, record, texts.marker_lines([record], width=output.width()))


def _marks(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import marks

    record = marks(services, SessionParams(options.session))
    return report(options, record, texts.marker_lines(record.items, width=output.width()))


def _unmark(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import Unmarked, UnmarkParams, taken_away

    gone = taken_away(services, UnmarkParams(options.session, options.checkpoint))
    record = Unmarked(gone.session_id, gone.checkpoint_id, removed=True)
    return report(options, record, [plain(f"removed: {gone.label}")])


def _relabel(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import RelabelParams, relabel

    params = RelabelParams(options.session, options.checkpoint, options.label)
    record = relabel(services, params)
    return report(options, record, texts.marker_lines([record], width=output.width()))


def _pin(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.marking import PinParams, pin, pins, unpin

    if options.path is None:
        record = pins(services, SessionParams(options.session))
    else:
        change = pin if options.command == "pin" else unpin
        record = change(services, PinParams(options.session, options.path))
    return report(options, record, texts.pin_lines(record))


def _hints(options: argparse.Namespace, services: Terminal) -> int:
    import orjson

    from codex_checkpoints import wire
    from codex_checkpoints.operations.marking import HintsParams, hints

    params = HintsParams(options.session)
    if options.items is not None:
        try:
            items = {"sessionId": options.session, "items": orjson.loads(options.items)}
            params = wire.structure(items, HintsParams)
        except ValueError as error:
            problems = (
                error.problems if isinstance(error, wire.BadParams) else ["the hints are not JSON"]
            )
            raise wrong("; ".join(problems)) from None
    record = hints(services, params)
    lines = [plain(f"{each.verdict}  {each.uri}") for each in record.items]
    return report(options, record, lines or ["No hints."])


def _restore(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoreParams, restore, restore_preview

    params = RestoreParams(
        options.session,
        options.checkpoint,
        options.mode,
        options.budget,
        options.window,
        options.reason,
    )
    record = (restore_preview if options.dry_run else restore)(services, params)
    return report(options, record, texts.restored_lines(record, named(options)))


def _restores(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoresParams, restores

    record = restores(services, RestoresParams(options.session))
    return report(options, record, texts.restore_lines(record, width=output.width()))


def _restore_details(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import RestoreDetailsParams, restore_details

    record = restore_details(services, RestoreDetailsParams(options.operation))
    return report(options, record, texts.detail_lines(record, named(options), width=output.width()))


def _lineage(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import lineage

    record = lineage(services, SessionParams(options.session))
    return report(options, record, texts.lineage_lines(record, width=output.width()))


def _audit(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import AuditParams, audit

    record = audit(services, AuditParams(options.session, options.operation))
    return report(options, record, texts.event_lines(record, width=output.width()))


def _verify(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.restores import VerifyParams, verify

    record = verify(services, VerifyParams())
    return report(options, record, texts.verify_lines(record))


def _export(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.portable import ExportParams, export

    file = os.path.abspath(options.file)
    params = ExportParams(options.session, file, options.force, options.dry_run)
    record = export(services, params)
    return report(options, record, texts.exported_lines(record))


def _import(options: argparse.Namespace, services: Terminal) -> int:
    from codex_checkpoints.operations.portable import ImportParams, make

    params = ImportParams(os.path.abspath(options.file), options.cwd, options.dry_run)
    record = make(services, params)
    return report(options, record, texts.imported_lines(record, named(options)))
