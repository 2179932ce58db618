"""Opens the sessions of a home for a command."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any

from codex_checkpoints import assembly
from codex_checkpoints.doors.cli import output
from codex_checkpoints.operations.services import Services
from codex_checkpoints.places import Places
from codex_checkpoints.sections.terminal import Bar
from codex_checkpoints.service.reading.session_index import IndexProgress
from codex_checkpoints.service.sessions.sessions import Report


class Terminal(Services):
    """The sessions of one home for a command; progress and notices go to stderr."""

    show: Callable[[Sequence[Any]], None] | None = None
    """The callback that prints hits of a search as they are found."""

    _bar: Bar | None = None

    def found(self, hits: Sequence[object]) -> bool:
        """Print hits."""
        if self.show is None:
            return False
        self.show(hits)
        return True

    def asks_codex(self) -> None:
        """Report why the command takes a while."""
        output.say("Codex is asked for a summary, which takes a while; Ctrl-C stops it")

    def advanced(self, done: int, total: int) -> None:
        """Draw how many sessions are done, on a terminal."""
        if sys.stderr.isatty() and self._bar is None:
            self._bar = Bar(sys.stderr)
        if self._bar is not None:
            self._bar.show(IndexProgress(done, total, done, total, frozenset()))
            if done == total:
                self._bar.clear()
                self._bar = None

    def update_index(self) -> None:
        """Update the index, with a progress bar on a terminal.

        A missing home has no sessions.  That is not an error but usually a typo, so it is reported.
        """
        place = self.where.codex_home
        if not os.path.isdir(place):
            output.say(f"there is no folder {place}")
        with _bar() as report:
            self.sessions.refresh(report)
        assembly.archive_forks(self.sessions)

    def read_all(self) -> None:
        """Read every session whole, with a progress bar on a terminal."""
        with _bar() as report:
            self.sessions.read_all(report)


@contextlib.contextmanager
def _bar() -> Generator[Report | None]:
    """Draw the progress that a block reports, on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Bar(sys.stderr)

    def report(progress: IndexProgress) -> bool:
        bar.show(progress)
        return True

    try:
        yield report
    finally:
        bar.clear()


@contextlib.contextmanager
def opened(where: Places) -> Generator[Terminal]:
    """Open the sessions of a home for a block."""
    services = Terminal(where, assembly.assemble(where, environment=os.environ))
    for problem in services.problems:
        output.say(f"config.toml: {problem}")
    try:
        yield services
    finally:
        services.sessions.close()
