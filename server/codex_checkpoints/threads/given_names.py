"""What threads are called, from all who may name them: which source counts (STO-5).

A name given through a patch is the canonical one; a line of Codex's own list that is later goes
before it; a name that the history tells comes last.  Each source is read by its own neighbour,
`metadata` and `names`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator

from codex_checkpoints.threads.contract import KeptHereAlone, Row, StorageFailed
from codex_checkpoints.threads.metadata import Metadata
from codex_checkpoints.threads.names import Given, ThreadNames, moment

_UNSEEN = "the name is kept, but Codex does not see it: session_index.jsonl"


class GivenNames:
    """The names of the threads of one Codex home."""

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """Name the places; `clock` says when a name is given: UTC, ISO 8601."""
        self._ours = Metadata(state_dir)
        self._codex = ThreadNames(os.path.join(codex_home, "session_index.jsonl"))
        self._clock = clock

    def of(self, row: Row) -> str | None:
        """Return what the thread of a row is called."""
        thread_id = row.session_id
        return _called(row, self._ours.name(thread_id), self._codex.all().get(thread_id))

    def all(self) -> Callable[[Row], str | None]:
        """Return the same for many: each file is looked at once, now."""
        ours, codex = self._ours.names(), self._codex.all()
        return lambda row: _called(row, ours.get(row.session_id), codex.get(row.session_id))

    def give(self, thread_id: str, text: str | None, *, legacy: bool) -> None:
        """Name a thread or take its name back, durable on return.

        Of a legacy thread Codex keeps the name in its list, so it is told there; names of others it
        keeps in its database, which is never written.  Raises `StorageFailed`, also where that list
        cannot be written as things are: then nothing is; and `KeptHereAlone` where only it failed.
        """
        if legacy:
            with _refusing(StorageFailed, "the name is not kept: session_index.jsonl"):
                self._codex.check()
        now, told = moment(self._clock()), self._codex.all().get(thread_id)
        # Where clocks differ, or went back: what a person says now counts all the same.
        given = Given(text, now if told is None else max(now, told.at))
        with _refusing(StorageFailed, "the name is not kept: metadata.jsonl"):
            self._ours.give(thread_id, given)
        if legacy:
            with _refusing(KeptHereAlone, _UNSEEN):
                self._codex.add(thread_id, given)


@contextlib.contextmanager
def _refusing(failure: type[StorageFailed], what: str) -> Generator[None]:
    """Turn what the system refuses about a file into a failure that says what became of a name."""
    try:
        yield
    except OSError as error:
        message = f"{what} cannot be written: {error.strerror or error}"
        raise failure(message) from error


def _called(row: Row, ours: Given | None, codex: Given | None) -> str | None:
    if codex is not None and (ours is None or codex.at > ours.at):
        return codex.text or None  # an empty name in Codex's own list clears it
    return row.recorded_name if ours is None else ours.text
