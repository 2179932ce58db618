"""`rename`, `archive`, `unarchive`, `delete`: what a session is called, and where it lies."""

from __future__ import annotations

import argparse

from codex_checkpoints import protocol
from codex_checkpoints.answers import sessions as answers
from codex_checkpoints.assembly import House
from codex_checkpoints.cli.arguments import OF_OURS, add_json, add_session
from codex_checkpoints.cli.commands import Commands, refresh, told
from codex_checkpoints.presentation import sessions as texts
from codex_checkpoints.service.listing import Summary


def add(commands: Commands) -> None:
    """Add the commands of this module."""
    rename = commands.add("rename", "give a session a name", _rename)
    add_session(rename, OF_OURS)
    rename.add_argument("name", metavar="NAME", help="what to call it; an empty one clears it")
    add_json(rename)
    about = "remove a session that we made and that nothing refers to"
    for added in (
        commands.add("archive", "put a session among the archived ones", _archive),
        commands.add("unarchive", "put an archived session back", _unarchive),
        commands.add("delete", about, _delete),
    ):
        add_session(added, OF_OURS)
        add_json(added)


def _rename(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    record = answers.session_summary(house.sessions.rename(options.session, options.name))
    return told(options, record, [texts.renamed_line(record)])


def _archive(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    return _moved(options, house.sessions.archive(options.session))


def _unarchive(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    return _moved(options, house.sessions.unarchive(options.session))


def _moved(options: argparse.Namespace, summary: Summary) -> int:
    record = answers.session_summary(summary)
    return told(options, record, [texts.moved_line(options.command, record)])


def _delete(options: argparse.Namespace, house: House) -> int:
    refresh(house)
    gone = house.sessions.delete(options.session)
    record = protocol.Deleted(gone.session_id, deleted=True)
    line = texts.moved_line(options.command, answers.session_summary(gone))
    return told(options, record, [line])
