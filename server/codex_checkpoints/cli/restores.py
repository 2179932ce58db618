"""`restore` and what tells of it: `restores`, `restore-details`, `lineage`, `audit`, `verify`."""

from __future__ import annotations

import argparse

from codex_checkpoints import stamps
from codex_checkpoints.assembly import House
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_marker, add_session, count
from codex_checkpoints.cli.commands import Commands, refresh, told


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
    details.add_argument("operation", metavar="OPERATION", help="its id")
    add_json(details)

    about = "show the tree of sessions that a session stands in"
    lineage = commands.add("lineage", about, _lineage)
    add_session(lineage, OF_OURS)
    add_json(lineage)

    audit = commands.add("audit", "list what operations wrote down of themselves", _audit)
    audit.add_argument("--session", metavar="SESSION", help="as source or branch")
    audit.add_argument("--operation", metavar="OPERATION", help="one operation")
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
    restore.add_argument("--budget", metavar="TOKENS", type=count, help="of the state pack")
    restore.add_argument(
        "--window", metavar="N", type=int, default=0, help="take the last N user messages along"
    )
    restore.add_argument("--reason", metavar="TEXT", help="said in the state pack")
    restore.add_argument(
        "--dry-run", action="store_true", help="say what would come, write nothing"
    )


def _restore(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.restore_plan import wish_of
    from codex_checkpoints.service.restoring import Restoring

    wish = wish_of(options.mode, options.budget, options.window, options.reason)
    refresh(house)
    restoring = Restoring(house.sessions, stamps.now, stamps.new_id)
    ask = restoring.preview if options.dry_run else restoring.restore
    record = restore_answers.restored(ask(options.session, options.checkpoint, wish))
    return told(options, record, restore_texts.restored_lines(record))


def _restores(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.restore_history import RestoreHistory

    refresh(house)
    record = restore_answers.restore_list(RestoreHistory(house.sessions).restores(options.session))
    return told(options, record, restore_texts.restore_lines(record))


def _restore_details(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.restore_history import RestoreHistory

    refresh(house)
    found = RestoreHistory(house.sessions).details(options.operation)
    record = restore_answers.restore_details(found)
    return told(options, record, restore_texts.detail_lines(record))


def _lineage(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.lineages import lineage

    refresh(house)
    row = house.sessions.find(options.session)
    record = restore_answers.lineage(lineage(house.sessions, options.session), row.session_id)
    return told(options, record, restore_texts.lineage_lines(record))


def _audit(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.restore_history import RestoreHistory

    refresh(house)
    found = RestoreHistory(house.sessions).audit(options.session, options.operation)
    record = restore_answers.event_list(found)
    return told(options, record, restore_texts.event_lines(record))


def _verify(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints import restore_answers, restore_texts
    from codex_checkpoints.service.verifying import verify

    refresh(house)
    record = restore_answers.verify_report(verify(house.sessions))
    return told(options, record, restore_texts.verify_lines(record))
