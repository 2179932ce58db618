"""Tracks the progress of long work, and its cancellation.

The work takes a step after each piece or file that it has read, and can be cancelled between steps.
It commits before it changes anything, so cancelled work has written nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from attrs import frozen

from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.storage.contract import Feed, Mark, Reading, RolloutReader
from codex_checkpoints.storage.workspace import Workspace

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]
"""An operation in steps: each value that it yields is called on another thread."""


@frozen
class Interruptible(Generic[T]):
    """A function for another thread; `interrupt` makes it fail soon, and is called on any thread.

    A caller that is cancelled may leave it before it ends.
    """

    function: Callable[[], T]
    interrupt: Callable[[], None]

    def __call__(self) -> T:
        """Run the function."""
        return self.function()


def on_another_thread(function: Callable[[], T]) -> Steps[T]:
    """Run a function on another thread; it waits for programs or a remote and uses no session."""
    return (yield function)


def run_steps(steps: Steps[T]) -> T:
    """Run all steps of an operation on this thread; return its result."""
    try:
        piece = next(steps)
        while True:
            try:
                found = piece()
            except Exception as error:  # noqa: BLE001 - the operation handles it
                piece = steps.throw(error)
            else:
                piece = steps.send(found)
    except StopIteration as end:
        return end.value


_ALMOST = 99
"""The highest percentage of unfinished work, since its size is known roughly."""


class Progress:
    """The progress of one piece of long work; any thread may cancel it, one thread runs it."""

    def __init__(self) -> None:
        self._report: Callable[[int], None] | None = None
        self._reported = 0
        self._size = self._done = 0
        self._cancelled = threading.Event()
        self._when_cancelled: Callable[[], object] | None = None
        self._committed = False
        self.between_steps: Callable[[], None] | None = None
        """Called between two steps, to run other requests."""

    @property
    def cancelled(self) -> bool:
        """Return whether it is cancelled and can still be stopped."""
        return self._cancelled.is_set() and not self._committed

    def report_to(self, report: Callable[[int], None]) -> None:
        """Report the percentage whenever it grows, on the thread that works."""
        self._report = report

    def cancel(self) -> None:
        """Cancel the work."""
        self._cancelled.set()
        if self._when_cancelled is not None:
            self._when_cancelled()

    def when_cancelled(self, call: Callable[[], object]) -> None:
        """Call a function on each cancellation, on its thread; at once if already cancelled."""
        self._when_cancelled = call
        if self._cancelled.is_set():
            call()

    def expect(self, size: int) -> None:
        """Add an approximate number of bytes to the total to be read."""
        self._size += size

    def step(self, size: int = 0) -> None:
        """Count this many more bytes as read; raises `Cancelled`."""
        if self.cancelled:
            raise Cancelled
        if self.between_steps is not None:
            self.between_steps()
        self._done += size
        percent = min(_ALMOST, self._done * 100 // self._size) if self._size > 0 else 0
        if percent > self._reported:
            self._reported = percent
            if self._report is not None:
                self._report(percent)

    def commit(self) -> None:
        """Allow no cancellation from now on, before something changes; raises `Cancelled`."""
        self.step()
        self._committed = True


def paced_hashes(
    progress: Progress, workspace: Workspace, base: str | None, uris: Iterable[str]
) -> dict[str, str]:
    """Hash the current files at uris, like `Workspace.hashes`, in steps; raises `Cancelled`."""
    wanted = tuple(uris)
    sizes = workspace.sizes(base, wanted)
    progress.expect(sum(sizes.values()))

    def stepping() -> Iterator[str]:
        for uri in wanted:
            progress.step()
            yield uri
            progress.step(sizes.get(uri, 0))

    return workspace.hashes(base, stepping())


class ProgressReader:
    """A reader of rollouts that takes a step for each piece it has read."""

    def __init__(self, reader: RolloutReader) -> None:
        self._reader = reader
        self.progress = Progress()
        self.identify, self.first_line = reader.identify, reader.first_line
        self.mark_at, self.ends = reader.mark_at, reader.ends

    def follow(self, path: str, old: Mark | None, feed: Feed) -> Reading | None:
        """Feed the bytes after `old`, or all; None if the rollout was replaced."""
        return self._reader.follow(path, old, self._stepping(feed))

    def read(
        self, path: str, offset: int, feed: Feed, limit: int | None = None
    ) -> tuple[int, bytes]:
        """Feed from `offset` to `limit` or the end; return the final offset and the rest."""
        return self._reader.read(path, offset, self._stepping(feed), limit)

    def _stepping(self, feed: Feed) -> Feed:
        progress = self.progress

        def fed(data: bytes) -> int:
            consumed = feed(data)
            progress.step(consumed)
            return consumed

        return fed
