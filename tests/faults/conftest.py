"""Fixtures of several tests of faults."""

from collections.abc import Generator
from pathlib import Path

import pytest

from disks import mounted


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A small disk of its own, empty."""
    with mounted(tmp_path / "small") as folder:
        yield folder
