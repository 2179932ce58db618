"""Stores the remote that a person chose for this machine: `remote.json` in the state folder."""

from __future__ import annotations

import os

import orjson
from attrs import frozen

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.storage import atomic_files

REMOTE = "remote.json"
_LARGEST = 1 << 16


@frozen
class ChosenRemote:
    """The place of the remote, and the names in the rows from this machine.

    `place` is the absolute path of a folder, `owner` a person, `machine` the name of this computer
    and `machine_id` its id, since two computers may have one name.
    """

    place: str
    owner: str
    machine: str
    machine_id: str


def chosen_remote(state_dir: str) -> ChosenRemote | None:
    """Return the chosen remote, None if there is none; raises `StorageError`."""
    with atomic_files.storage_errors():
        try:
            data = atomic_files.read(os.path.join(state_dir, REMOTE), _LARGEST)
        except FileNotFoundError:
            return None
        except atomic_files.TooLarge:
            data = b""
    try:
        found = read_or_none(stored, orjson.loads(data), ChosenRemote)
    except orjson.JSONDecodeError:
        found = None
    if found is None:
        raise atomic_files.StorageError(f"{REMOTE} is damaged; set the remote again")
    return found


def choose_remote(state_dir: str, remote: ChosenRemote) -> None:
    """Store the choice, durably; raises `StorageError`."""
    path = os.path.join(state_dir, REMOTE)
    data = orjson.dumps(stored.unstructure(remote)) + b"\n"
    with atomic_files.storage_errors():
        atomic_files.in_folder(path, lambda: atomic_files.replace(path, data))
