"""Runs long requests: progress, and cancellation until one begins to write (`Progress`).

A long read yields to requests that wait for the thread, between two of its steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar, cast

from attrs import frozen
from lsprotocol import types
from pygls.progress import Progress as ClientProgress

from codex_checkpoints.service.progress import Interruptible, Progress
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.sessions.sessions import Sessions

T = TypeVar("T")
P = ParamSpec("P")

PATIENCE_SECONDS = 2.0
"""The longest wait for an interrupted call of a remote, which may hang in the system."""


class Worker(Executor):
    """The one thread of the sessions: submitted functions run in order."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "sessions")
        self._waiting = deque[tuple[Future[object], Callable[[], object]]]()

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        """Run a function, also between the steps of a long reading."""
        job = Future[T]()
        run = partial(function, *arguments, **named)
        self._waiting.append((cast("Future[object]", job), run))
        self._thread.submit(self.run_waiting)
        return job

    def submit_long(self, function: Callable[[], T]) -> Future[T]:
        """Run a function that yields to waiting requests."""
        return self._thread.submit(function)

    def run_waiting(self) -> None:
        """Run the waiting functions, on the thread."""
        while self._waiting:
            job, run = self._waiting.popleft()
            if job.set_running_or_notify_cancel():
                try:
                    job.set_result(run())
                except BaseException as error:  # noqa: BLE001 - its caller handles it
                    job.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its base has it
        """Begin no further work."""
        self._thread.shutdown(wait, cancel_futures=cancel_futures)
        for job, _ in self._waiting:
            job.cancel()


@frozen
class LongWork:
    """One request that takes long, in one or more pieces on the thread of the sessions.

    With `yields` it runs the requests that wait for that thread between two steps of its reading.
    """

    _worker: Worker
    _sessions: Sessions
    _progress: Progress
    yields: bool = False

    async def do(self, function: Callable[[], T]) -> T:
        """Run a piece on the thread of the sessions; raise `Cancelled` if it is cancelled."""

        def run() -> T:
            self._progress.step()
            with self._sessions.at(self._progress):
                return function()

        if self._progress.cancelled:
            raise Cancelled
        if self.yields:
            self._progress.between_steps = self._run_waiting
            job = self._worker.submit_long(run)
        else:
            job = self._worker.submit(run)
        return await self._outcome(asyncio.wrap_future(job), job.cancel)

    async def wait(self, function: Callable[[], T]) -> T:
        """Run a function that waits for programs or a remote on another thread.

        It runs to its end, unless it is interruptible.
        """
        if isinstance(function, Interruptible):
            return await self._interruptible(cast("Interruptible[T]", function))
        loop = asyncio.get_running_loop()
        return await self._outcome(loop.run_in_executor(None, function), lambda: False)

    async def _interruptible(self, function: Interruptible[T]) -> T:
        """Run a function to its end or until it is cancelled; then raise `Cancelled`.

        Its thread never delays the end of the process.
        """
        loop, cancelled = asyncio.get_running_loop(), asyncio.Event()
        self._progress.when_cancelled(partial(loop.call_soon_threadsafe, cancelled.set))
        running = asyncio.wrap_future(_on_daemon_thread(function))
        waiting = asyncio.create_task(cancelled.wait())
        try:
            await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._progress.cancel()
        finally:
            waiting.cancel()
        if running.done() or not self._progress.cancelled:
            return await running
        function.interrupt()
        await asyncio.wait((running,), timeout=PATIENCE_SECONDS)
        if running.done() and running.exception() is None:
            return running.result()
        running.cancel()
        raise Cancelled

    def _run_waiting(self) -> None:
        with self._sessions.at(Progress()):
            self._worker.run_waiting()

    async def _outcome(self, waiting: asyncio.Future[T], withdraw: Callable[[], bool]) -> T:
        """Wait for a piece; a cancelled one is still waited for, unless it can be withdrawn."""
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self._progress.cancel()
            if self._progress.cancelled and withdraw():
                raise Cancelled from None
            return await waiting


def _on_daemon_thread(function: Callable[[], T]) -> Future[T]:
    """Run a function on a thread that ends with the process."""
    job = Future[T]()
    job.set_running_or_notify_cancel()

    def run() -> None:
        try:
            job.set_result(function())
        except BaseException as error:  # noqa: BLE001 - its caller handles it
            job.set_exception(error)

    threading.Thread(target=run, name="remote", daemon=True).start()
    return job


@contextlib.contextmanager
def reporting(
    client: ClientProgress, token: int | str | None, title: str, progress: Progress
) -> Generator[None]:
    """Report progress to a token of the client during a block, and let the token cancel it."""
    if token is None:
        yield
        return
    client.begin(token, types.WorkDoneProgressBegin(title, cancellable=True, percentage=0))
    waiting = cast("dict[int | str, Future[object]]", client.tokens)
    waiting[token].add_done_callback(lambda _called_off: progress.cancel())
    loop = asyncio.get_running_loop()

    def report(percent: int) -> None:
        if token in waiting:  # else the end was reported already
            client.report(token, types.WorkDoneProgressReport(percentage=percent))

    def forward(percent: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(report, percent)

    progress.report_to(forward)
    try:
        yield
    finally:
        waiting.pop(token, None)
        client.end(token, types.WorkDoneProgressEnd())
