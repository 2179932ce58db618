"""Fixtures of the tests of remotes: two machines, stores, and a PostgreSQL server."""

import itertools
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from codex_checkpoints.storage.remote.contract import HistoryStore
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from postgres_server import ADMIN, PostgresServer, Team, programs, running
from two_machines import Machines

_numbers = itertools.count(1)


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


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here: the package is called postgresql")
    with running() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Generator[Team]:
    """Give an empty database."""
    name = f"test{next(_numbers)}"
    with postgres.connect(ADMIN, "postgres") as admin:
        admin.run(f"create database {name}")
    with ExitStack() as opened:
        yield Team(postgres, name, opened)
    with postgres.connect(ADMIN, "postgres") as admin:
        admin.run(f"drop database {name} with (force)")


@pytest.fixture
def team(database: Team) -> Team:
    """Give a database with a store."""
    database.store(ADMIN).make()
    return database
