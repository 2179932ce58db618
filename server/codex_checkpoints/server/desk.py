"""What every request is answered with: one client's service, its follower, its notifications.

All work happens on one worker thread, so the service needs no locks, and the loop stays free to
answer and to hear that a request was cancelled.  Only the loop's own thread ever sends: the
observer's threads may do one thing, mark a path.  What a request means is told by the modules
beside this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from codex_checkpoints import assembly, protocol, wire
from codex_checkpoints.assembly import House, Places
from codex_checkpoints.server.long_work import LongWork, reporting
from codex_checkpoints.service import following
from codex_checkpoints.service.following import Follower
from codex_checkpoints.service.reading.catalogue import Progress
from codex_checkpoints.service.reading.pace import Pace
from codex_checkpoints.service.recovery import recover_prepared
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.watch.watcher import Watcher

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Desk:
    """One client's server: the service on its worker thread, the follower, the notifications."""

    def __init__(self, server: LanguageServer, where: Places) -> None:
        """Wait for `initialize`; nothing is opened before."""
        self._server = server
        self.where = where
        self._overrides: dict[str, Any] = {}
        self._wrong_options: tuple[str, ...] = ()
        self._worker = ThreadPoolExecutor(1, "sessions")
        self._opening: asyncio.Future[House] | None = None
        self._house: House | None = None
        self.follower: Follower | None = None
        self._wake = asyncio.Event()
        self._watcher: Watcher | None = None
        self._indexing = asyncio.Lock()
        self.moving = asyncio.Lock()
        """Held while a session is put away, or back."""
        self._indexed = False
        self._waiting: set[int | str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: dict[asyncio.Future[None], Pace] = {}
        self._sent = 0
        self._ended = False

    # --- life ------------------------------------------------------------------------------------

    def configure(self, options: object) -> None:
        """Take the client's options; what is wrong with them is reported by `doctor`."""
        try:
            chosen = wire.structure(options, protocol.InitializationOptions)
        except wire.BadParams as error:
            self._wrong_options = tuple(error.problems)
            logger.warning("initialization options left aside: %d problems", len(error.problems))
            return
        self._overrides = chosen.settings
        try:
            self.where = assembly.places(
                dict(os.environ),
                os.path.expanduser("~"),
                chosen.codex_home or self.where.codex_home,
                chosen.state_dir or (None if chosen.codex_home else self.where.state_dir),
            )
        except ValueError as error:
            self._wrong_options = (str(error),)
            logger.warning("initialization options left aside: a folder")

    async def begin(self) -> None:
        """Start to follow the session folders."""
        house = await self._open()
        self.follower = Follower(house.sessions)
        self._keep(self._follow(self.follower), "follow")

    async def end(self) -> None:
        """Stop following and save, once what had begun to write is whole."""
        self._stop()
        if self._calls:
            await asyncio.wait(self._calls)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Let go of everything; may be called twice, and after the loop has ended."""
        self._stop()
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        house, self._house = self._house, None
        if house is not None:
            with contextlib.suppress(RuntimeError):
                self._worker.submit(house.sessions.close).result()
        self._worker.shutdown(cancel_futures=True)

    def _stop(self) -> None:
        """Begin nothing more, and call off what can be."""
        self._ended = True
        for pace in tuple(self._calls.values()):
            pace.cancel()

    # --- what requests use ------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each setting and option that was left aside."""
        return self._wrong_options + (() if self._house is None else self._house.problems)

    async def ready(self, token: int | str | None = None) -> Sessions:
        """Return the service when its index is current; report progress to `token`.

        Whoever comes second waits for the first, and hears of its progress as well.
        """
        sessions = (await self._open()).sessions
        if not self._indexed:
            with self._reporting(token):
                async with self._indexing:
                    if not self._indexed:
                        await self._index(sessions)
        return sessions

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run on the worker thread; raise `Cancelled` when the end has begun."""
        if self._ended:
            raise Cancelled
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, function, *arguments)

    @contextlib.asynccontextmanager
    async def calling(self, title: str, token: int | str | None = None) -> AsyncGenerator[LongWork]:
        """Have a block do what takes long, in pieces that its client may call off.

        Reports progress under a title to `token`.
        """
        sessions = (await self._open()).sessions
        pace, ended = Pace(), asyncio.get_running_loop().create_future()
        self._calls[ended] = pace
        try:
            with reporting(self._server.work_done_progress, token, title, pace):
                yield LongWork(self._worker, sessions, pace)
        finally:
            del self._calls[ended]
            ended.set_result(None)

    async def long(
        self, function: Callable[[], T], title: str = "", token: int | str | None = None
    ) -> T:
        """Run in one piece what takes long; as `calling`."""
        async with self.calling(title, token) as work:
            return await work.do(function)

    async def attend(self, session_id: str) -> None:
        """Follow the files of a session that the client shows."""
        if self.follower is not None:
            await self.work(self.follower.attend, session_id)
            self._wake.set()  # there may be folders to watch

    def tell(self, session_ids: tuple[str, ...], reason: str) -> None:
        """Notify the client that sessions changed, and why; nothing where none did."""
        if session_ids:
            self._sent += 1
            changed = protocol.Changed(session_ids, self._sent, reason)
            self._server.protocol.notify("checkpoints/changed", changed)

    # --- inside -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reporting(self, token: int | str | None) -> Generator[None]:
        """Report to a token of the client for as long as it waits."""
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

    async def _open(self) -> House:
        """Return the parts, put together once: a request may come before `initialized`."""
        if self._opening is None:
            loop = asyncio.get_running_loop()
            self._opening = loop.run_in_executor(
                self._worker, assembly.assemble, self.where, self._overrides, os.environ
            )
        # A request that is cancelled must not take the opening with it.
        house = await asyncio.shield(self._opening)
        self._house = house
        return house

    async def _index(self, sessions: Sessions) -> None:
        """Index slice by slice: a cancelled request stops here, and what was read stays."""
        slices = sessions.catalogue.refresh()
        while True:
            done: Progress | None = await self.work(next, slices, None)
            if done is None:
                break
            for token in tuple(self._waiting):
                self._server.work_done_progress.report(token, _report(done))
        await self.work(recover_prepared, sessions)
        self._indexed = True

    async def _follow(self, follower: Follower) -> None:
        """Watch, gather, look again, tell; and look at everything now and then."""
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
                    await self.ready()
                    changes = [await self.work(follower.begin)]
                    begun = True
                elif missed or follower.folders() != folders:
                    folders = follower.folders()
                    await asyncio.to_thread(watcher.follow_folders, set(folders))
                    # A file may have changed before its folder was watched.
                    changes = await self.work(follower.reconcile)
                    missed = False
                else:
                    changes = await self.work(await self._next_look(follower))
                await self._tell_all(changes)
            except Cancelled:
                raise
            except Exception as error:  # noqa: BLE001 - a defect of one look, not the end of all
                logger.error("follow: %s", type(error).__name__)  # noqa: TRY400 - no traceback a round
                missed = True
                await self._next_look(follower)

    async def _next_look(self, follower: Follower) -> Callable[[], list[following.Changed]]:
        """Wait for a mark, or until it is time without one; return how to look then."""
        try:
            await asyncio.wait_for(self._wake.wait(), following.RECONCILE_SECONDS)
        except TimeoutError:
            return follower.reconcile
        await asyncio.sleep(following.DEBOUNCE_SECONDS)
        self._wake.clear()
        return follower.drain

    async def _tell_all(self, changes: list[following.Changed]) -> None:
        for change in changes:
            self.tell(change.session_ids, change.reason)
        if self.follower is not None:
            for each in await self.work(self.follower.take_strayed):
                strayed = wire.filled(protocol.Strayed, each)
                self._server.protocol.notify("checkpoints/strayed", strayed)

    def _keep(self, work: Awaitable[None], name: str) -> None:
        """Run something beside the requests; a failure is logged rather than lost."""

        async def run() -> None:
            try:
                await work
            except Cancelled:
                pass
            except Exception:
                logger.exception("%s ended", name)

        task = asyncio.get_running_loop().create_task(run(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _report(done: Progress) -> types.WorkDoneProgressReport:
    share = 100 if done.of_bytes == 0 else done.bytes * 100 // done.of_bytes
    message = f"{done.files} of {done.of_files} session files"
    return types.WorkDoneProgressReport(message=message, percentage=share)


Handlers = Mapping[str, Callable[[Desk, Any], Awaitable[Any]]]
"""The handlers of a subject, by method."""
