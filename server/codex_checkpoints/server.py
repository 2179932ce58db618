"""The door for editors: speaks LSP over stdio, decides nothing.

Each request of `protocol.METHODS` has one handler here; a method without a handler, or the
reverse, fails when the server is built.  All work happens on one worker thread, so the service
needs no locks, and the loop stays free to answer and to hear that a request was cancelled.  Only
the loop's own thread ever sends: the observer's threads may do one thing, mark a path.

Why params stay raw until a handler structures them is told in the architecture page: pygls leaves
a request with params of a wrong shape without any answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcRequestCancelled,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage

from codex_checkpoints import (
    __version__,
    answers,
    assembly,
    presentation,
    protocol,
    restore_answers,
    stamps,
    wire,
    wiring,
)
from codex_checkpoints.assembly import House, Places
from codex_checkpoints.outside import outside
from codex_checkpoints.service import following
from codex_checkpoints.service.catalogue import Progress
from codex_checkpoints.service.compacting import Compacting
from codex_checkpoints.service.compaction_request import Request
from codex_checkpoints.service.compaction_settling import Settling
from codex_checkpoints.service.connector import Connector
from codex_checkpoints.service.diagnosis import Diagnosis, diagnose
from codex_checkpoints.service.differences import compare
from codex_checkpoints.service.following import Follower
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.lineages import lineage
from codex_checkpoints.service.listing import Summary
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.notes import Applied, Notes, Revoked
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.restore_history import RestoreHistory
from codex_checkpoints.service.restore_plan import wish_of
from codex_checkpoints.service.restoring import Restoring
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.undoing import Undoing
from codex_checkpoints.service.verifying import verify
from codex_checkpoints.watch import Watcher

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")
N = TypeVar("N", Applied, Revoked)
Handler = Callable[[Any], Awaitable[Any]]


class Desk:
    """One client's server: the service on its worker thread, the follower, the notifications."""

    def __init__(self, server: LanguageServer, where: Places) -> None:
        """Wait for `initialize`; nothing is opened before."""
        self._server = server
        self._where = where
        self._overrides: dict[str, Any] = {}
        self._problems: tuple[str, ...] = ()
        self._worker = ThreadPoolExecutor(1, "sessions")
        self._opening: asyncio.Future[House] | None = None
        self._house: House | None = None
        self._follower: Follower | None = None
        self._wake = asyncio.Event()
        self._watcher: Watcher | None = None
        self._indexing = asyncio.Lock()
        self._indexed = False
        self._waiting: set[int | str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent = 0
        self._ended = False

    # --- life ------------------------------------------------------------------------------------

    def configure(self, options: object) -> None:
        """Take the client's options; what is wrong with them is reported by `doctor`."""
        try:
            chosen = wire.structure(options, protocol.InitializationOptions)
        except wire.BadParams as error:
            self._problems = tuple(error.problems)
            logger.warning("initialization options left aside: %d problems", len(error.problems))
            return
        self._overrides = chosen.settings
        try:
            self._where = assembly.places(
                dict(os.environ),
                os.path.expanduser("~"),
                chosen.codex_home or self._where.codex_home,
                chosen.state_dir or (None if chosen.codex_home else self._where.state_dir),
            )
        except ValueError as error:
            self._problems = (str(error),)
            logger.warning("initialization options left aside: a folder")

    async def begin(self) -> None:
        """Start to follow the session folders."""
        house = await self._open()
        self._follower = Follower(house.sessions)
        self._keep(self._follow(self._follower), "follow")

    async def end(self) -> None:
        """Stop following and save."""
        self._ended = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Let go of everything; may be called twice, and after the loop has ended."""
        self._ended = True
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        house, self._house = self._house, None
        if house is not None:
            with contextlib.suppress(RuntimeError):
                self._worker.submit(house.sessions.close).result()
        self._worker.shutdown(cancel_futures=True)

    # --- requests --------------------------------------------------------------------------------

    async def sessions(self, params: protocol.SessionsParams) -> protocol.SessionList:
        """Answer from the index, once it is current."""
        sessions = await self._ready(params.work_done_token)
        if params.cursor is None:
            # A file may be so new that nobody has told yet.
            await self._work(sessions.refresh)
        page = await self._work(
            lambda: sessions.page(
                cwd=params.cwd,
                outside=params.outside,
                archived=params.archived,
                search=params.search,
                limit=params.limit,
                cursor=params.cursor,
            )
        )
        return answers.session_list(page)

    async def session(self, params: protocol.SessionParams) -> protocol.SessionDetail:
        """Answer with one session and its turns."""
        sessions = await self._ready()
        return answers.session_detail(await self._work(sessions.detail, params.session_id))

    async def show(self, params: protocol.ShowParams) -> protocol.Text:
        """Answer with the bytes of a checkpoint."""
        sessions = await self._ready()
        shown = await self._work(sessions.show, params.session_id, params.turn_id)
        if shown.changed:
            self._tell((shown.session_id,), "rollout")
        await self._attend(shown.session_id)
        return protocol.Text(shown.data.decode())

    async def view(self, params: protocol.ViewParams) -> protocol.ViewText:
        """Answer with a view and the caps in force."""
        sessions = await self._ready()
        view = await self._work(sessions.view, params.session_id, params.turn_id, params.caps)
        if view.of.changed:
            self._tell((view.of.session_id,), "rollout")
        await self._attend(view.of.session_id)
        return protocol.ViewText(view.text, answers.caps(view.caps))

    async def apply_update(self, params: protocol.ApplyParams) -> protocol.Applied:
        """Accept or judge a payload; say that the session's memory changed."""
        notes = await self._notes()
        payload = wire.as_bytes(params.payload)
        if params.dry_run:
            applied = await self._work(notes.try_out, params.session_id, payload)
        else:
            applied = await self._remember(lambda: notes.apply(params.session_id, payload))
        return wire.filled(protocol.Applied, applied)

    async def notes(self, params: protocol.SessionParams) -> protocol.NoteList:
        """Answer with the facts and decisions of a session."""
        notes = await self._notes()
        return answers.note_list(await self._work(notes.notes, params.session_id))

    async def revoke_note(self, params: protocol.RevokeParams) -> protocol.Revoked:
        """Take a note back; say that the session's memory changed."""
        notes = await self._notes()
        revoked = await self._remember(
            lambda: notes.revoke(params.session_id, params.id, params.kind)
        )
        return wire.filled(protocol.Revoked, revoked)

    async def anchors(self, params: protocol.AnchorsParams) -> protocol.AnchorList:
        """Answer with what may be cited as evidence."""
        notes = await self._notes()
        found = await self._work(notes.anchors, params.session_id, params.limit)
        return answers.anchor_list(found)

    async def record(self, params: protocol.RecordParams) -> protocol.Text:
        """Answer with what an anchor stands for."""
        notes = await self._notes()
        return protocol.Text(await self._work(notes.record, params.session_id, params.ref))

    async def history(self, params: protocol.SessionParams) -> protocol.History:
        """Answer with what Codex would send on resume."""
        histories = Histories(await self._ready())
        return answers.history(await self._work(histories.history, params.session_id))

    async def windows(self, params: protocol.SessionParams) -> protocol.WindowList:
        """Answer with the windows of a session."""
        histories = Histories(await self._ready())
        return answers.window_list(await self._work(histories.windows, params.session_id))

    async def compact_preview(self, params: protocol.CompactParams) -> protocol.Compacted:
        """Answer with what a compaction would do."""
        compacting = Compacting(await self._ready(), outside(os.environ))
        return answers.compacted(await self._work(compacting.preview, _wish(params)))

    async def compact(self, params: protocol.CompactParams) -> protocol.Compacted:
        """Install a replacement; say which sessions changed."""
        compacting = Compacting(await self._ready(), outside(os.environ))
        done = await self._work(compacting.compact, _wish(params))
        ids = {done.source_session_id, done.session_id or done.source_session_id}
        self._tell(tuple(sorted(ids)), "rollout")
        return answers.compacted(done)

    async def uncompact(self, params: protocol.UncompactParams) -> protocol.Uncompacted:
        """Take a compaction back; say which session changed."""
        undoing = Undoing(await self._ready(), outside(os.environ))
        done = await self._work(undoing.uncompact, params.compaction_id)
        self._tell((done.source_session_id,), "rollout")
        return answers.uncompacted(done)

    async def diff(self, params: protocol.DiffParams) -> protocol.Difference:
        """Answer with what changed between two turns."""
        sessions = await self._ready()
        turns = params.from_turn_id, params.to_turn_id
        return restore_answers.diff(await self._work(compare, sessions, params.session_id, *turns))

    async def mark(self, params: protocol.MarkParams) -> protocol.Marker:
        """Put a marker on a turn."""
        markers = await self._markers()
        placed = await self._marked(
            params.session_id, markers.mark, params.session_id, params.label, params.turn_id
        )
        return restore_answers.marker(placed)

    async def marks(self, params: protocol.SessionParams) -> protocol.MarkerList:
        """Answer with the markers of a session."""
        markers = await self._markers()
        return restore_answers.marker_list(await self._work(markers.marks, params.session_id))

    async def unmark(self, params: protocol.UnmarkParams) -> protocol.Unmarked:
        """Take a marker away."""
        markers = await self._markers()
        gone = await self._marked(
            params.session_id, markers.unmark, params.session_id, params.checkpoint_id
        )
        return protocol.Unmarked(gone.session_id, gone.checkpoint_id, removed=True)

    async def relabel(self, params: protocol.RelabelParams) -> protocol.Marker:
        """Call a marker something else."""
        markers = await self._markers()
        marker = params.checkpoint_id
        placed = await self._marked(
            params.session_id, markers.relabel, params.session_id, marker, params.label
        )
        return restore_answers.marker(placed)

    async def pin(self, params: protocol.PinParams) -> protocol.PinList:
        """Pin a file."""
        markers = await self._markers()
        pins = await self._marked(params.session_id, markers.pin, params.session_id, params.path)
        return restore_answers.pin_list(pins)

    async def unpin(self, params: protocol.PinParams) -> protocol.PinList:
        """Take a pin away."""
        markers = await self._markers()
        pins = await self._marked(params.session_id, markers.unpin, params.session_id, params.path)
        return restore_answers.pin_list(pins)

    async def pins(self, params: protocol.SessionParams) -> protocol.PinList:
        """Answer with the pins of a session."""
        markers = await self._markers()
        return restore_answers.pin_list(await self._work(markers.pins, params.session_id))

    async def restore_preview(self, params: protocol.RestoreParams) -> protocol.Restored:
        """Answer with what would come of a restore."""
        restoring = Restoring(await self._ready(), stamps.now, stamps.new_id)
        wish = wish_of(params.mode, params.budget, params.window, params.reason)
        return restore_answers.restored(
            await self._work(restoring.preview, params.session_id, params.checkpoint_id, wish)
        )

    async def restore(self, params: protocol.RestoreParams) -> protocol.Restored:
        """Open a branch at a marker; say that it is there."""
        restoring = Restoring(await self._ready(), stamps.now, stamps.new_id)
        wish = wish_of(params.mode, params.budget, params.window, params.reason)
        done = await self._work(restoring.restore, params.session_id, params.checkpoint_id, wish)
        self._tell((done.record.session_id, done.record.source_session_id), "rollout")
        return restore_answers.restored(done)

    async def restores(self, params: protocol.RestoresParams) -> protocol.RestoreList:
        """Answer with the restores of a session, or all."""
        past = RestoreHistory(await self._ready())
        return restore_answers.restore_list(await self._work(past.restores, params.session_id))

    async def restore_details(
        self, params: protocol.RestoreDetailsParams
    ) -> protocol.RestoreDetails:
        """Answer with everything about a restore."""
        past = RestoreHistory(await self._ready())
        return restore_answers.restore_details(await self._work(past.details, params.operation_id))

    async def lineage(self, params: protocol.SessionParams) -> protocol.Lineage:
        """Answer with the tree that a session stands in."""
        sessions = await self._ready()
        row = await self._work(sessions.find, params.session_id)
        tree = await self._work(lineage, sessions, params.session_id)
        return restore_answers.lineage(tree, row.session_id)

    async def audit(self, params: protocol.AuditParams) -> protocol.EventList:
        """Answer with events of the audit."""
        past = RestoreHistory(await self._ready())
        found = await self._work(past.audit, params.session_id, params.operation_id)
        return restore_answers.event_list(found)

    async def verify(self, _params: protocol.VerifyParams) -> protocol.VerifyReport:
        """Answer with whether all is as it was written."""
        return restore_answers.verify_report(await self._work(verify, await self._ready()))

    async def rename(self, params: protocol.RenameParams) -> protocol.SessionSummary:
        """Call a session something else."""
        sessions = await self._ready()
        return await self._moved(lambda: sessions.rename(params.session_id, params.name))

    async def archive(self, params: protocol.SessionParams) -> protocol.SessionSummary:
        """Put a session among the archived ones."""
        sessions = await self._ready()
        return await self._moved(lambda: sessions.archive(params.session_id))

    async def unarchive(self, params: protocol.SessionParams) -> protocol.SessionSummary:
        """Put an archived session back."""
        sessions = await self._ready()
        return await self._moved(lambda: sessions.unarchive(params.session_id))

    async def delete(self, params: protocol.SessionParams) -> protocol.Deleted:
        """Remove a session that we made."""
        sessions = await self._ready()
        gone = await self._moved(lambda: sessions.delete(params.session_id))
        return protocol.Deleted(gone.session_id, deleted=True)

    async def connect(self, params: protocol.ConnectParams) -> protocol.ConnectReport:
        """Say how Codex and we are connected, or change it."""
        # Not on the worker: Codex may take its time, and sessions have no part in it.
        report = await asyncio.to_thread(wiring.asked, self._connector(params.cwd), params)
        return answers.connect_report(report)

    async def doctor(self, _params: protocol.DoctorParams) -> protocol.DoctorReport:
        """Answer with what was found, skipped and why."""
        sessions = await self._ready()
        problems = self._problems + (() if self._house is None else self._house.problems)

        def work() -> Diagnosis:
            return diagnose(sessions, problems, self._connector(None).inspect())

        return answers.doctor_report(await self._work(work))

    # --- inside ----------------------------------------------------------------------------------

    async def _work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run on the worker thread; raise `Cancelled` when the end has begun."""
        if self._ended:
            raise Cancelled
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, function, *arguments)

    def _connector(self, cwd: str | None) -> Connector:
        home = os.path.expanduser("~")
        where = self._where
        settings, _ = assembly.settings_of(where.state_dir)
        return wiring.connector(
            where.codex_home, where.state_dir, dict(os.environ), home, cwd or home, settings
        )

    async def _notes(self) -> Notes:
        return Notes(await self._ready(), stamps.now, stamps.new_id)

    async def _markers(self) -> Markers:
        return Markers(await self._ready(), stamps.now, stamps.new_id)

    async def _marked(self, session: str, change: Callable[..., T], *arguments: Any) -> T:
        """Change the markers or pins of a session, and tell it."""
        changed = await self._work(change, *arguments)
        row = await self._work((await self._ready()).find, session)
        self._tell((row.session_id,), "markers")
        return changed

    async def _remember(self, change: Callable[[], N]) -> N:
        """Change a session's memory, and tell it once: the follower need not find it out."""

        def work() -> N:
            changed = change()
            if self._follower is not None:
                self._follower.take_as_told(changed.session_id)
            return changed

        changed = await self._work(work)
        self._tell((changed.session_id,), "memory")
        return changed

    async def _moved(self, change: Callable[[], Summary]) -> protocol.SessionSummary:
        """Change what a session is called or where it lies, and tell it."""
        summary = await self._work(change)
        self._tell((summary.session_id,), "rollout")
        return answers.session_summary(summary)

    async def _attend(self, session_id: str) -> None:
        """Follow the files of a session that the client shows."""
        if self._follower is not None:
            await self._work(self._follower.attend, session_id)
            self._wake.set()  # there may be folders to watch

    async def _ready(self, token: int | str | None = None) -> Sessions:
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
                self._worker, assembly.assemble, self._where, self._overrides, os.environ
            )
        # A request that is cancelled must not take the opening with it.
        house = await asyncio.shield(self._opening)
        self._house = house
        return house

    async def _index(self, sessions: Sessions) -> None:
        """Index slice by slice: a cancelled request stops here, and what was read stays."""
        slices = sessions.catalogue.refresh()
        while True:
            done: Progress | None = await self._work(next, slices, None)
            if done is None:
                break
            for token in tuple(self._waiting):
                self._server.work_done_progress.report(token, _report(done))
        await self._work(Settling(sessions).recover)
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
        await self._ready()
        self._tell((await self._work(follower.begin)).session_ids, "rollout")
        folders: frozenset[str] = frozenset()
        while True:
            if follower.folders() != folders:
                folders = follower.folders()
                await asyncio.to_thread(watcher.follow_folders, set(folders))
                # A file may have changed before its folder was watched.
                await self._tell_all(await self._work(follower.reconcile))
            try:
                await asyncio.wait_for(wake.wait(), following.RECONCILE_SECONDS)
                await asyncio.sleep(following.DEBOUNCE_SECONDS)
                wake.clear()
                changes = await self._work(follower.drain)
            except TimeoutError:
                changes = await self._work(follower.reconcile)
            await self._tell_all(changes)

    async def _tell_all(self, changes: list[following.Changed]) -> None:
        for change in changes:
            self._tell(change.session_ids, change.reason)
        if self._follower is not None:
            for each in await self._work(self._follower.take_strayed):
                strayed = wire.filled(protocol.Strayed, each)
                self._server.protocol.notify("checkpoints/strayed", strayed)

    def _tell(self, session_ids: tuple[str, ...], reason: str) -> None:
        if session_ids:
            self._sent += 1
            changed = protocol.Changed(session_ids, self._sent, reason)
            self._server.protocol.notify("checkpoints/changed", changed)

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


def make_server(where: Places) -> tuple[LanguageServer, Desk]:
    """Build the server and register exactly the methods of `protocol`."""
    server = _Server(
        "codex-checkpoints",
        __version__,
        text_document_sync_kind=types.TextDocumentSyncKind.None_,
        converter_factory=wire_converter,
    )
    desk = Desk(server, where)

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        desk.configure(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        await desk.begin()

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: Any) -> None:
        await desk.end()

    handlers: dict[str, Handler] = {
        "checkpoints/sessions": desk.sessions,
        "checkpoints/session": desk.session,
        "checkpoints/show": desk.show,
        "checkpoints/view": desk.view,
        "checkpoints/applyUpdate": desk.apply_update,
        "checkpoints/notes": desk.notes,
        "checkpoints/revokeNote": desk.revoke_note,
        "checkpoints/anchors": desk.anchors,
        "checkpoints/record": desk.record,
        "checkpoints/history": desk.history,
        "checkpoints/windows": desk.windows,
        "checkpoints/compactPreview": desk.compact_preview,
        "checkpoints/compact": desk.compact,
        "checkpoints/uncompact": desk.uncompact,
        "checkpoints/diff": desk.diff,
        "checkpoints/mark": desk.mark,
        "checkpoints/marks": desk.marks,
        "checkpoints/unmark": desk.unmark,
        "checkpoints/relabel": desk.relabel,
        "checkpoints/pin": desk.pin,
        "checkpoints/unpin": desk.unpin,
        "checkpoints/pins": desk.pins,
        "checkpoints/restorePreview": desk.restore_preview,
        "checkpoints/restore": desk.restore,
        "checkpoints/restores": desk.restores,
        "checkpoints/restoreDetails": desk.restore_details,
        "checkpoints/lineage": desk.lineage,
        "checkpoints/audit": desk.audit,
        "checkpoints/verify": desk.verify,
        "checkpoints/rename": desk.rename,
        "checkpoints/archive": desk.archive,
        "checkpoints/unarchive": desk.unarchive,
        "checkpoints/delete": desk.delete,
        "checkpoints/connect": desk.connect,
        "checkpoints/doctor": desk.doctor,
    }
    for method in protocol.METHODS:
        server.feature(method.name)(_answering(method, handlers.pop(method.name)))
    if handlers:
        message = f"handlers without a method: {', '.join(handlers)}"
        raise LookupError(message)
    return server, desk


def _wish(params: protocol.CompactParams) -> Request:
    """Read what is asked of a compaction; refuses `invalid_payload` for an unknown target."""
    match params.into:
        case "new" | "in-place" as into:
            return Request(params.session_id, into, params.strategy, params.placement, params.force)
        case _:
            problem = "into: must be one of new, in-place"
            raise Refusal("invalid_payload", problem, {"problems": [problem]})


class _Server(LanguageServer):
    """A server that logs what it cannot answer, instead of showing it to the user."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        expected = isinstance(error, JsonRpcException)
        if expected and not isinstance(error, JsonRpcInternalError):
            return  # a refusal is an answer, not a fault
        logger.error("%s: %s", getattr(source, "__name__", source), type(error).__name__)


def _answering(method: protocol.Method, handler: Handler) -> Callable[[Any], Awaitable[Any]]:
    """Structure the params, call the handler, translate refusals: the same for every method."""

    async def receive(raw: Any) -> Any:  # `Any`: pygls would pass the server for an `object`
        try:
            return await handler(wire.structure(raw, method.params))
        except wire.BadParams as error:
            data = {"code": "invalid_payload", "facts": {"problems": error.problems}}
            raise JsonRpcInvalidParams("params do not fit", data=data) from None
        except Cancelled:
            raise JsonRpcRequestCancelled("the server is shutting down") from None
        except Refusal as refusal:
            data = {"code": refusal.code, "facts": dict(refusal.facts)}
            raise JsonRpcException(refusal.message, protocol.REFUSED, data) from None
        except Exception as error:
            # A traceback would carry paths of this machine to the client.
            logger.exception("%s failed", method.name)
            message = f"{method.name} failed: {type(error).__name__}"
            raise JsonRpcException(message, -32603, {"code": "internal", "facts": {}}) from None

    return receive


def wire_converter() -> Converter:
    """Return pygls' converter with our records added and params left raw."""
    converter = wire.add_hooks(converters.get_converter())

    def envelope(message: dict[str, Any], cls: type[Any]) -> Any:
        return cls(**{"params": None, **message})

    def answer(message: dict[str, Any], cls: type[Any]) -> Any:
        return cls(**message)

    converter.register_structure_hook(JsonRPCRequestMessage, envelope)
    converter.register_structure_hook(JsonRPCNotification, envelope)
    converter.register_structure_hook(JsonRPCResponseMessage, answer)
    return converter


def _report(done: Progress) -> types.WorkDoneProgressReport:
    share = 100 if done.of_bytes == 0 else done.bytes * 100 // done.of_bytes
    message = f"{done.files} of {done.of_files} session files"
    return types.WorkDoneProgressReport(message=message, percentage=share)


def serve(where: Places, *, tcp: int | None = None) -> None:
    """Speak until the client leaves; everything but the protocol goes to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(presentation.LogLine("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for chatty in ("pygls", "asyncio"):
        # At INFO pygls logs whole messages, and those may hold prompts.
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    server, desk = make_server(where)
    try:
        if tcp is not None:
            server.start_tcp("127.0.0.1", tcp)
        else:
            stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
            sys.stdout = sys.stderr  # a stray print must not reach the client
            server.start_io(stdin, stdout)
    finally:
        desk.close()
