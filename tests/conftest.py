"""What every test shares: hypothesis profiles, a Codex home, and files that hold expected bytes.

`pytest --update-golden` writes those files anew; the diff is then reviewed like any other change.
"""

from __future__ import annotations

import difflib
import itertools
import os
import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from homes import Home

if TYPE_CHECKING:
    from postgres_server import PostgresServer, Team

# Few examples while one works, others each time; in CI more, and the same in every run, such that
# what fails there fails here. The long one is for by hand:
# pytest --hypothesis-profile=long --timeout=0 tests/laws/test_laws.py
settings.register_profile("dev", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=5_000)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# No process of the tests inherits the variables of the outer Python: with them `forked_python.py`
# could not fork it, and each would compile the product for itself.
for name in [each for each in os.environ if each.startswith("PYTHON")]:
    del os.environ[name]

# Who is started in the background inherits that Ctrl+C is ignored, and so would every process that
# the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = itertools.count(1)

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected files of the golden tests anew instead of comparing with them",
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, bytes], None]:
    """Compare bytes with a file, or write the file when `--update-golden` is given."""

    def differs(path: Path, actual: bytes) -> str | None:
        name = path.resolve().relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path
        if not path.exists():
            return f"{name} is missing; pytest --update-golden writes it"
        expected = path.read_bytes()
        if expected == actual:
            return None
        diff = difflib.unified_diff(
            expected.decode(errors="backslashreplace").splitlines(keepends=True),
            actual.decode(errors="backslashreplace").splitlines(keepends=True),
            fromfile=f"{name} (expected)",
            tofile="what came",
        )
        # repr: a line end or a space too many is often the whole difference.
        lines = "\n".join(
            line.rstrip() if line.startswith(("---", "+++", "@@")) else repr(line)[1:-1]
            for line in diff
        )
        return f"{name} differs; pytest --update-golden blesses the change\n{lines}"

    def compare(path: Path, actual: bytes) -> None:
        if request.config.getoption("--update-golden"):
            if not path.exists() or path.read_bytes() != actual:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(actual)
            return
        complaint = differs(path, actual)
        if complaint is not None:
            pytest.fail(complaint, pytrace=False)

    return compare


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    """Give a server of the tests' own."""
    from postgres_server import programs, running

    if programs() is None:
        pytest.skip("there is no PostgreSQL server here: the package is called postgresql")
    with running() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Generator[Team]:
    """Give an empty database."""
    from postgres_server import ADMIN, Team

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
    from postgres_server import ADMIN

    database.store(ADMIN).make()
    return database
