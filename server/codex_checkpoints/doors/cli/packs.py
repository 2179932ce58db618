"""Runs the commands `export` and `import`."""

from __future__ import annotations

import os

from codex_checkpoints.doors.cli.commands import ANY_SESSION, JSON, Commands, asks, flag, value
from codex_checkpoints.doors.pages import restore as texts
from codex_checkpoints.operations import packs


def add(commands: Commands) -> None:
    """Add the commands."""
    file = value("file", "FILE", "the file to write", type=os.path.abspath)
    force = flag("--force", "replace a file that is there")
    dry_run = flag("--dry-run", "only list the contents")
    commands.add("export", _export, ANY_SESSION, file, force, dry_run, JSON)
    file = value("file", "FILE", "the file to read", type=os.path.abspath)
    cwd = value("--cwd", "DIR", "the folder of the session", default=".")
    dry_run = flag("--dry-run", "only preview the result")
    commands.add("import", _import, file, cwd, dry_run, JSON)


_export = asks(packs.export, texts.exported_lines)


_import = asks(packs.make, texts.imported_lines)
