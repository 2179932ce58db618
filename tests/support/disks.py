"""Mount a small disk, where there is the right to do so."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path) -> Generator[Path]:
    """Mount a disk of 256 kB; skips the test where that is not allowed."""
    folder.mkdir()
    mount = shutil.which("mount")
    if sys.platform != "linux" or mount is None or os.geteuid() != 0:
        pytest.skip("no right to mount")
    command = [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, room: int = 0) -> Path:
    """Fill the disk of a folder, but for some room; return the file that does."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 1024)
        except OSError:
            file.truncate(max(0, file.tell() - room))
    return filler


def make_read_only(folder: Path, *, permit: bool = False) -> None:
    """Let nothing be written to a mounted disk any more, or permit it again."""
    mode = "rw" if permit else "ro"
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)
