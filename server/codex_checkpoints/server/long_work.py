"""A request that takes long: what its client is told meanwhile, and how it is called off.

The client may call it off until it begins to write (`service.pace`); after that the answer is that
of the work.  So a request that is answered as cancelled has changed nothing, and one that has
changed something is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from typing import TypeVar, cast

from lsprotocol import types
from pygls.progress import Progress

from codex_checkpoints.service.reading.pace import Pace
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.sessions import Sessions

T = TypeVar("T")


class LongWork:
    """One request that takes long, in one or more pieces at one pace."""

    def __init__(self, worker: Executor, sessions: Sessions, pace: Pace) -> None:
        """Work for this service on its thread; nothing is begun yet."""
        self._worker = worker
        self._sessions = sessions
        self._pace = pace

    def is_cancelled(self) -> bool:
        """Return whether it is called off and can still be stopped; for who waits elsewhere."""
        return self._pace.cancelled

    def commit(self) -> None:
        """Go on to the end whatever comes, on any thread; raises `Cancelled` (`service.pace`)."""
        self._pace.commit()

    async def do(self, function: Callable[[], T]) -> T:
        """Run a piece on the thread of the service; raise `Cancelled` where it is called off."""

        def run() -> T:
            self._pace.step()
            with self._sessions.at(self._pace):
                return function()

        if self._pace.cancelled:
            raise Cancelled
        job = self._worker.submit(run)
        return await self._outcome(asyncio.wrap_future(job), job.cancel)

    async def wait(self, function: Callable[[], T]) -> T:
        """Run a piece on a thread of its own: it waits for programs, and asks no service.

        It is waited for in any case; the next piece is not begun where it was called off.
        """
        loop = asyncio.get_running_loop()
        return await self._outcome(loop.run_in_executor(None, function), _is_begun)

    async def _outcome(self, waiting: asyncio.Future[T], withdraw: Callable[[], bool]) -> T:
        """Wait for a piece; one that is called off is still waited for, unless it is withdrawn."""
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._pace.cancel()
            if self._pace.cancelled and withdraw():
                raise Cancelled from None
            return await waiting


def _is_begun() -> bool:
    """Return that it is too late to withdraw."""
    return False


@contextlib.contextmanager
def reporting(
    progress: Progress, token: int | str | None, title: str, pace: Pace
) -> Generator[None]:
    """Report a pace to a token of the client while a block runs, always on the loop's thread.

    A client may call the work off by that token, too.
    """
    if token is None:
        yield
        return
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=True, percentage=0))
    waiting = cast("dict[int | str, Future[object]]", progress.tokens)
    waiting[token].add_done_callback(lambda _called_off: pace.cancel())
    loop = asyncio.get_running_loop()

    def report(percent: int) -> None:
        if token in waiting:  # else the end was told already
            progress.report(token, types.WorkDoneProgressReport(percentage=percent))

    def tell(percent: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(report, percent)

    pace.report_to(tell)
    try:
        yield
    finally:
        waiting.pop(token, None)
        progress.end(token, types.WorkDoneProgressEnd())
