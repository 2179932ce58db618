"""Fixtures of the tests of remotes: two machines and stores."""

from pathlib import Path

import pytest

from codex_checkpoints.storage.remote.contract import HistoryStore
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from two_machines import Machines


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, machines: Machines) -> HistoryStore:
    """Return a store that has nothing yet."""
    if request.param == "folder":
        return FolderHistoryStore(str(machines.folder))
    made = MemoryHistoryStore()
    made.make()
    return made
