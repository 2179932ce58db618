"""Put the parts together for a door: the folders of one Codex home, its settings, its service.

The doors read the environment and the command line, and hand the outcome in here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from codex_checkpoints.records import Records
from codex_checkpoints.service.catalogue import Catalogue
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.settings import Settings, overridden, read_settings
from codex_checkpoints.threads.index import Index


@frozen
class Places:
    """The folders that everything is about, absolute."""

    codex_home: str
    state_dir: str


@frozen
class House:
    """The service of one home, and what is wrong with its settings."""

    sessions: Sessions
    problems: tuple[str, ...]


def places(
    environment: Mapping[str, str],
    home: str,
    codex_home: str | None = None,
    state_dir: str | None = None,
) -> Places:
    """Return the folders: as named, else by the environment, else by the user's home (DSC-3)."""
    chosen = codex_home or environment.get("CODEX_HOME") or os.path.join(home, ".codex")
    own = state_dir or environment.get("CODEX_CHECKPOINTS_STATE")
    root = os.path.abspath(chosen)
    return Places(root, os.path.abspath(own) if own else os.path.join(root, "codex-checkpoints"))


def assemble(where: Places, overrides: Mapping[str, Any] | None = None) -> House:
    """Read the settings and open the index; `overrides` are an editor's own settings."""
    settings, problems = _settings(where.state_dir)
    if overrides:
        settings, more = overridden(settings, overrides)
        problems += more
    records = Records(where.state_dir, beside=settings.checkpoint_location == "beside")
    records.clear_leftovers()
    index = Index(records.index_path)
    return House(Sessions(Catalogue(where.codex_home, index), records, settings), problems)


def _settings(state_dir: str) -> tuple[Settings, tuple[str, ...]]:
    path = os.path.join(state_dir, "config.toml")
    try:
        with open(path, encoding="utf-8") as file:
            return read_settings(file.read())
    except FileNotFoundError:
        return Settings(), ()
    except (OSError, UnicodeDecodeError) as error:
        return Settings(), (f"config.toml cannot be read: {error}",)
