"""`restore` and what tells of it: `restores`, `restore-details`, `lineage`, `audit`, `verify`."""

from __future__ import annotations

import argparse

from codex_checkpoints import stamps
from codex_checkpoints.assembly import House
from codex_checkpoints.cli import output
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_marker, add_session, count, whole
from codex_checkpoints.cli.commands import Commands, named, refresh, told

BUDGET = "how large the state pack of a hard restore may be"
WINDOW = "take your last N messages along in a hard restore, 0 to 5"


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    about = "open a branch at a marker; the session itself stays as it is"
    restore = commands.add("restore", about, _restore)
    add_session(restore, OF_OURS)
    add_marker(restore)
    add_json(restore)
    _add_wishes(restore)

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


def _add_wishes(restore: argparse.ArgumentParser) -> None:
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


def _restore(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.restore.plan import wish_of
    from codex_checkpoints.service.restore.restoring import Restoring

    wish = wish_of(options.mode, options.budget, options.window, options.reason)
    refresh(house)
    restoring = Restoring(house.sessions, stamps.now, stamps.new_id)
    ask = restoring.preview if options.dry_run else restoring.restore
    record = answers.restored(ask(options.session, options.checkpoint, wish))
    return told(options, record, texts.restored_lines(record, named(options)))


def _restores(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.restore.history import RestoreHistory

    refresh(house)
    record = answers.restore_list(RestoreHistory(house.sessions).restores(options.session))
    return told(options, record, texts.restore_lines(record, width=output.width()))


def _restore_details(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.restore.history import RestoreHistory

    refresh(house)
    found = RestoreHistory(house.sessions).details(options.operation)
    record = answers.restore_details(found)
    lines = texts.detail_lines(record, named(options), width=output.width())
    return told(options, record, lines)


def _lineage(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.lineages import lineage

    refresh(house)
    row = house.sessions.find(options.session)
    record = answers.lineage(lineage(house.sessions, options.session), row.session_id)
    return told(options, record, texts.lineage_lines(record, width=output.width()))


def _audit(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.restore.history import RestoreHistory

    refresh(house)
    found = RestoreHistory(house.sessions).audit(options.session, options.operation)
    record = answers.event_list(found)
    return told(options, record, texts.event_lines(record, width=output.width()))


def _verify(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import restores as answers
    from codex_checkpoints.presentation import restores as texts
    from codex_checkpoints.service.restore.verifying import verify

    refresh(house)
    record = answers.verify_report(verify(house.sessions))
    return told(options, record, texts.verify_lines(record))
