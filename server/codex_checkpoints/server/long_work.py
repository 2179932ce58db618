"""Requests that take long: progress, and cancellation until one begins to write (`Pace`)."""

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
from codex_checkpoints.values import frozen

T = TypeVar("T")


@frozen
class LongWork:
    """One request that takes long, in one or more pieces on the thread of the sessions."""

    _worker: Executor
    _sessions: Sessions
    _pace: Pace

    async def do(self, function: Callable[[], T]) -> T:
        """Run a piece on the thread of the sessions; raise `Cancelled` if it is cancelled."""

        def run() -> T:
            self._pace.step()
            with self._sessions.at(self._pace):
                return function()

        if self._pace.cancelled:
            raise Cancelled
        job = self._worker.submit(run)
        return await self._outcome(asyncio.wrap_future(job), job.cancel)

    async def wait(self, function: Callable[[], T]) -> T:
        """Run on another thread what waits for programs; it is waited for even if cancelled."""
        loop = asyncio.get_running_loop()
        return await self._outcome(loop.run_in_executor(None, function), lambda: False)

    async def _outcome(self, waiting: asyncio.Future[T], withdraw: Callable[[], bool]) -> T:
        """Wait for a piece; a cancelled one is still waited for, unless it can be withdrawn."""
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._pace.cancel()
            if self._pace.cancelled and withdraw():
                raise Cancelled from None
            return await waiting


@contextlib.contextmanager
def reporting(
    progress: Progress, token: int | str | None, title: str, pace: Pace
) -> Generator[None]:
    """Report progress to a token of the client during a block, and let the token cancel it."""
    if token is None:
        yield
        return
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=True, percentage=0))
    waiting = cast("dict[int | str, Future[object]]", progress.tokens)
    waiting[token].add_done_callback(lambda _called_off: pace.cancel())
    loop = asyncio.get_running_loop()

    def report(percent: int) -> None:
        if token in waiting:  # else the end was reported already
            progress.report(token, types.WorkDoneProgressReport(percentage=percent))

    def forward(percent: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(report, percent)

    pace.report_to(forward)
    try:
        yield
    finally:
        waiting.pop(token, None)
        progress.end(token, types.WorkDoneProgressEnd())
