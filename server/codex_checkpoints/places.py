"""Finds the folders and the settings of one home, before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import frozen

from codex_checkpoints.core.fields import is_storable
from codex_checkpoints.service.settings import UNREAD, UNREADABLE, Settings, read_settings
from codex_checkpoints.storage import atomic_files


@frozen
class Places:
    """The two folders, absolute."""

    codex_home: str
    state_dir: str


def places_of(
    environment: Mapping[str, str],
    home: str,
    codex_home: str | None = None,
    state_dir: str | None = None,
) -> Places:
    """Return the folders: as named, else from the environment, else in the user's home (DSC-3).

    Raises `ValueError` for a name that is not UTF-8 or has a NUL.
    """
    chosen = codex_home or environment.get("CODEX_HOME") or os.path.join(home, ".codex")
    own = state_dir or environment.get("CODEX_CHECKPOINTS_STATE")
    for name in (chosen, own or ""):
        if "\0" in name or not is_storable(name):
            raise ValueError(f"not the name of a folder in UTF-8: {name!a}")
    root = os.path.abspath(chosen)
    return Places(root, os.path.abspath(own) if own else os.path.join(root, "codex-checkpoints"))


_LARGEST_SETTINGS = 1 << 20


def settings_of(state_dir: str) -> tuple[Settings, tuple[str, ...]]:
    """Read the settings that all doors share, and a sentence for each wrong one."""
    path = os.path.join(state_dir, "config.toml")
    try:
        return read_settings(atomic_files.read(path, _LARGEST_SETTINGS).decode())
    except FileNotFoundError:
        return Settings(), ()
    except atomic_files.TooLarge:
        reason = f"it has more than {_LARGEST_SETTINGS} bytes"
    except OSError as error:
        reason = atomic_files.reason_of(error)
    except UnicodeDecodeError as error:
        reason = str(error)
    return UNREADABLE, (f"{UNREAD}: {reason}",)
