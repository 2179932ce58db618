"""Serves one client: its sessions, its follower, its notifications.

All work happens on one worker thread, so the service needs no locks; long reads yield to short
requests between their steps.  Only the loop's thread sends; the observer's threads only mark paths.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from attrs import evolve
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from codex_checkpoints import assembly, wire
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.doors import protocol
from codex_checkpoints.doors.lsp.long_work import LongWork, Worker, reporting
from codex_checkpoints.operations.services import InitializationOptions, Services
from codex_checkpoints.places import Places, places_of
from codex_checkpoints.service.progress import Progress, Steps
from codex_checkpoints.service.reading.session_index import IndexProgress
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.sessions import session_watcher
from codex_checkpoints.service.sessions.session_watcher import SessionWatcher
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.watch import Watcher

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ServerRequest(Services):
    """One request: its changed and shown sessions are kept to notify the client."""

    def __init__(
        self,
        where: Places,
        assembled: Assembly,
        follower: SessionWatcher | None,
        progress: Progress,
    ) -> None:
        super().__init__(where, assembled)
        self._follower = follower
        self._progress = progress
        self.changes: list[tuple[tuple[str, ...], str]] = []
        self.has_shown = False
        self.report: Callable[[Sequence[Any]], None] | None = None
        """The callback that sends a part of the result to a client that asked for parts."""

    def found(self, hits: Sequence[object]) -> bool:
        """Send hits to a client that takes them incrementally."""
        if self.report is None:
            return False
        if hits:
            self.report(hits)
        return True

    def changed(self, session_ids: tuple[str, ...], reason: str) -> None:
        """Keep a change; the follower does not report changes that it notices by itself."""
        self.changes.append((session_ids, reason))
        if reason in {"memory", "markers"} and self._follower is not None:
            self._follower.update_reported(session_ids[0])

    def shown(self, session_id: str) -> None:
        """Follow the files of a session that the client shows."""
        if self._follower is not None:
            self._follower.attend(session_id)
            self.has_shown = True

    def find_new_files(self) -> None:
        """Look for new files that the watcher has not reported yet."""
        self.sessions.refresh()

    def is_cancelled(self) -> bool:
        """Return whether the request is cancelled and can still be stopped."""
        return self._progress.cancelled

    def commit(self) -> None:
        """Make the request uncancellable, on any thread; raises `Cancelled` (`Progress`)."""
        self._progress.commit()


class App:
    """The server of one client, from `initialize` to its end."""

    def __init__(self, server: LanguageServer, where: Places) -> None:
        self._server = server
        self.where = where
        self._overrides: dict[str, Any] = {}
        self._wrong_options: tuple[str, ...] = ()
        self._worker = Worker()
        self._opening: asyncio.Future[Assembly] | None = None
        self._sessions: Sessions | None = None
        self._follower: SessionWatcher | None = None
        self._wake = asyncio.Event()
        self._watcher: Watcher | None = None
        self._indexing = asyncio.Lock()
        self._alone = asyncio.Lock()
        """Locked by a request that runs alone."""
        self._indexed = False
        self._begun = asyncio.Event()
        """Set when the newest sessions are indexed."""
        self._early = set[asyncio.Future[None]]()
        """Requests that are answered before indexing continues."""
        self._waiting: set[int | str] = set()
        self._following: asyncio.Task[None] | None = None
        self._calls: dict[asyncio.Future[None], Progress] = {}
        self._sent = 0
        self._ended = False

    def configure(self, options: object) -> None:
        """Take the client's options; `doctor` reports their problems."""
        try:
            chosen = wire.structure(options, InitializationOptions)
        except wire.BadParams as error:
            self._wrong_options = tuple(error.problems)
            logger.warning("initialization options ignored: %d problems", len(error.problems))
            return
        self._overrides = chosen.settings
        try:
            self.where = places_of(
                dict(os.environ),
                os.path.expanduser("~"),
                chosen.codex_home or self.where.codex_home,
                chosen.state_dir or (None if chosen.codex_home else self.where.state_dir),
            )
        except ValueError as error:
            self._wrong_options = (str(error),)
            logger.warning("initialization options ignored: a folder")

    async def begin(self) -> None:
        """Start to follow the session folders."""
        self._follower = SessionWatcher((await self._open()).sessions)
        self._following = asyncio.create_task(self._follow(self._follower))
        self._following.add_done_callback(_log_failure)

    async def end(self) -> None:
        """Stop following and save, after the running requests."""
        self._stop()
        if self._calls:
            await asyncio.wait(self._calls)
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close everything; may be called twice, and after the loop has ended."""
        self._stop()
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            with contextlib.suppress(RuntimeError):
                self._worker.submit(sessions.close).result()
        self._worker.shutdown(cancel_futures=True)

    def _stop(self) -> None:
        """Refuse new work; cancel the running requests."""
        self._ended = True
        for progress in tuple(self._calls.values()):
            progress.cancel()

    async def answer(self, method: protocol.Method, params: Any) -> Any:
        """Return the result of a request; notify of its changes, also if it is refused."""
        if method.apart:
            return await asyncio.to_thread(method.run, self.where, params)
        token = getattr(params, "work_done_token", None)
        ready = self._ready(token if method.title is None else None)
        if not getattr(params, "early", False):
            await ready
            return await self._answer(method, params, token)
        answered = asyncio.get_running_loop().create_future()
        self._early.add(answered)
        try:
            await self._newest(ready)
            return await self._answer(method, params, token)
        finally:
            self._early.discard(answered)
            answered.set_result(None)

    async def _answer(self, method: protocol.Method, params: Any, token: int | str | None) -> Any:
        assembled, progress = await self._open(), Progress()
        assembled = evolve(assembled, problems=self._wrong_options + assembled.problems)
        request = ServerRequest(self.where, assembled, self._follower, progress)
        request.report = self._partial(getattr(params, "partial_result_token", None))
        run = partial(method.run, request, params)
        try:
            if method.title is None:
                return await _in_steps(run, self._work, asyncio.to_thread)
            title = method.title
            if method.preview is not None and params.dry_run:
                title = method.preview
            turn = self._alone if method.alone else contextlib.nullcontext()
            async with self._calling(progress, title, token), turn:
                work = LongWork(self._worker, assembled.sessions, progress, method.yields)
                return await _in_steps(run, work.do, work.wait)
        finally:
            completed = assembled.sessions.catalogue.take_completed()
            for session_ids, reason in (*request.changes, (tuple(sorted(completed)), "rollout")):
                self._notify(session_ids, reason)
            if request.has_shown:
                self._wake.set()  # there may be folders to watch

    def _partial(self, token: int | str | None) -> Callable[[Sequence[Any]], None] | None:
        """Return the callback that sends parts of a result from any thread to a client's token."""
        if token is None:
            return None
        loop, notify = asyncio.get_running_loop(), self._server.protocol.notify

        def report(items: Sequence[Any]) -> None:
            value = {"items": [wire.unstructure(each) for each in items]}
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(
                    notify, types.PROGRESS, types.ProgressParams(token, value)
                )

        return report

    async def _ready(self, token: int | str | None = None) -> Sessions:
        """Return the sessions when their index is current; report progress to `token`."""
        sessions = (await self._open()).sessions
        if not self._indexed:
            with self._reporting(token):
                async with self._indexing:
                    if not self._indexed:
                        await self._index(sessions)
        return sessions

    async def _newest(self, ready: Coroutine[Any, Any, object]) -> None:
        """Wait for the newest sessions of an index, which continues; raises its earlier errors."""
        indexing, begun = asyncio.create_task(ready), asyncio.create_task(self._begun.wait())
        # Later errors are for those who wait for the whole index.
        indexing.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait((indexing, begun), return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if indexing.done():
            await indexing

    async def _work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run on the worker thread; raise `Cancelled` when the end has begun."""
        if self._ended:
            raise Cancelled
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, function, *arguments)

    @contextlib.asynccontextmanager
    async def _calling(
        self, progress: Progress, title: str, token: int | str | None
    ) -> AsyncGenerator[None]:
        """Run a block that takes long and can be cancelled; report progress to `token`."""
        ended = asyncio.get_running_loop().create_future()
        self._calls[ended] = progress
        try:
            with reporting(self._server.work_done_progress, token, title, progress):
                yield
        finally:
            del self._calls[ended]
            ended.set_result(None)

    def _notify(self, session_ids: tuple[str, ...], reason: str) -> None:
        """Notify the client that sessions changed, and why."""
        if session_ids:
            self._sent += 1
            changed = protocol.Changed(session_ids, self._sent, reason)
            self._server.protocol.notify("checkpoints/changed", changed)

    @contextlib.contextmanager
    def _reporting(self, token: int | str | None) -> Generator[None]:
        """Report the indexing to a token of the client during a block."""
        if token is None or token in self._waiting:
            yield
            return
        progress = self._server.work_done_progress
        progress.begin(
            token, types.WorkDoneProgressBegin(title="Reading sessions", cancellable=True)
        )
        self._waiting.add(token)
        try:
            yield
        finally:
            self._waiting.discard(token)
            progress.end(token, types.WorkDoneProgressEnd())

    async def _open(self) -> Assembly:
        """Return the services, opened once: a request may come before `initialized`."""
        if self._opening is None:
            loop = asyncio.get_running_loop()
            self._opening = loop.run_in_executor(
                self._worker, assembly.assemble, self.where, self._overrides, os.environ
            )
        # A request that is cancelled must not take the opening with it.
        assembled = await asyncio.shield(self._opening)
        self._sessions = assembled.sessions
        return assembled

    async def _index(self, sessions: Sessions) -> None:
        """Index slice by slice; a cancelled request keeps the finished slices."""
        slices = sessions.catalogue.refresh()
        while True:
            done: IndexProgress | None = await self._work(next, slices, None)
            if done is None:
                break
            self._begun.set()
            if self._early:
                await asyncio.wait(tuple(self._early))
            percent = 100 if done.of_bytes == 0 else done.bytes * 100 // done.of_bytes
            message = f"{done.files} of {done.of_files} session files"
            report = types.WorkDoneProgressReport(message=message, percentage=percent)
            for token in tuple(self._waiting):
                self._server.work_done_progress.report(token, report)
        await self._work(assembly.archive_forks, sessions)
        self._indexed = True

    async def _follow(self, follower: SessionWatcher) -> None:
        """Watch the files and notify of changes; poll everything now and then."""
        loop = asyncio.get_running_loop()
        wake = self._wake

        def mark(path: str) -> None:
            follower.mark(path)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(wake.set)

        watcher = self._watcher = Watcher(mark)
        for root in follower.trees():
            await asyncio.to_thread(watcher.follow_tree, root)
        folders: frozenset[str] = frozenset()
        begun = missed = False
        while True:
            try:
                if not begun:
                    await self._ready()
                    changes = [await self._begin(follower)]
                    begun = True
                elif missed or follower.folders() != folders:
                    folders = follower.folders()
                    await asyncio.to_thread(watcher.follow_folders, set(folders))
                    # A file may have changed before its folder was watched.
                    changes = await self._work(follower.reconcile)
                    missed = False
                else:
                    changes = await self._work(await next_look(wake, follower))
                await self._notify_all(changes)
            except Cancelled:
                return
            except Exception as error:  # noqa: BLE001 - a defect of one look, not the end of all
                logger.error("follow: %s", type(error).__name__)  # noqa: TRY400 - one line a round
                missed = True
                await next_look(wake, follower)

    async def _begin(self, follower: SessionWatcher) -> session_watcher.Changed:
        """Begin to follow; requests are answered between its steps."""
        steps = follower.beginning()
        while (changed := await self._work(steps.__next__)) is None:
            pass
        return changed

    async def _notify_all(self, changes: list[session_watcher.Changed]) -> None:
        for change in changes:
            self._notify(change.session_ids, change.reason)
        if self._follower is not None:
            for each in await self._work(self._follower.take_strayed):
                self._server.protocol.notify("checkpoints/strayed", each)


async def next_look(
    wake: asyncio.Event, follower: SessionWatcher
) -> Callable[[], list[session_watcher.Changed]]:
    """Wait for a mark or the timeout; return the function that checks for changes."""
    try:
        # Not `wait_for`: in Python 3.11 it loses a cancellation that comes with a mark, and the
        # process would outlive its client.
        async with asyncio.timeout(follower.patience):
            await wake.wait()
    except TimeoutError:
        return follower.unmarked
    await asyncio.sleep(session_watcher.DEBOUNCE_SECONDS)
    wake.clear()
    return follower.drain


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("following has ended", exc_info=task.exception())


async def _in_steps(
    run: Callable[[], Any],
    do: Callable[[Callable[[], Any]], Awaitable[Any]],
    wait: Callable[[Callable[[], Any]], Awaitable[Any]],
) -> Any:
    """Return the result of an operation: `do` runs its steps, `wait` the yielded functions."""

    def begin() -> tuple[bool, Any]:
        outcome = run()
        if not isinstance(outcome, Generator):
            return True, outcome
        steps.append(cast("Steps[Any]", outcome))
        return advance(partial(next, outcome))

    def advance(step: Callable[[], Any]) -> tuple[bool, Any]:
        try:
            return False, step()
        except StopIteration as end:
            return True, end.value

    steps: list[Steps[Any]] = []
    has_ended, outcome = await do(begin)
    while not has_ended:
        try:
            step = partial(steps[0].send, await wait(outcome))
        except Exception as error:  # noqa: BLE001 - the operation handles it
            step = partial(steps[0].throw, error)
        has_ended, outcome = await do(partial(advance, step))
    return outcome
