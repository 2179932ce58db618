"""`export` and `import`: what one session knows, as a file that opens in another home."""

from __future__ import annotations

import argparse
import os

from codex_checkpoints import stamps
from codex_checkpoints.assembly import House
from codex_checkpoints.cli.arguments import add_json, add_session
from codex_checkpoints.cli.commands import Commands, named, refresh, told


def add(commands: Commands) -> None:
    """Add the commands of this module."""
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


def _export(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import portable as answers
    from codex_checkpoints.presentation import portable as texts
    from codex_checkpoints.service.portable.packing import Packing

    refresh(house)
    homes = (os.path.expanduser("~"), house.sessions.catalogue.place)
    packing = Packing(house.sessions, homes, stamps.now, stamps.new_id)
    file = os.path.abspath(options.file)
    if options.dry_run:
        packed = packing.preview(options.session, file)
    else:
        packed = packing.write(options.session, file, "replace" if options.force else "new")
    record = answers.exported(packed)
    return told(options, record, texts.exported_lines(record))


def _import(options: argparse.Namespace, house: House) -> int:
    from codex_checkpoints.answers import portable as answers
    from codex_checkpoints.presentation import portable as texts
    from codex_checkpoints.service.portable.importing import Importing

    refresh(house)
    importing = Importing(house.sessions, stamps.now, stamps.new_id)
    ask = importing.preview if options.dry_run else importing.make
    record = answers.imported(ask(os.path.abspath(options.file), options.cwd))
    return told(options, record, texts.imported_lines(record, named(options)))
