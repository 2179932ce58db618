"""Changes threads: create, append, name, archive, delete (STO-8).

A thread that is loaded in this process is changed through its `LiveThread`, any other through the
store.  An error of the store becomes a refusal.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable
from datetime import datetime

from attrs import define, evolve, frozen

from codex_checkpoints.codex.app_server import AskingFailed
from codex_checkpoints.codex.program import CodexArchive
from codex_checkpoints.core.checkpoint.records import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import cut, one_line
from codex_checkpoints.service.reading.session_file import Locate, SessionFile, open_session
from codex_checkpoints.service.reading.session_index import SessionIndex
from codex_checkpoints.service.reading.session_row import row_of
from codex_checkpoints.service.records import operation_records
from codex_checkpoints.service.records.operation_records import DeleteBlock
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.storage.contract import (
    OURS,
    Appended,
    Conflict,
    Copied,
    HistoryItem,
    NewThread,
    Patch,
    Rollout,
    Row,
    StoreError,
    ThreadIsLive,
    ThreadNotFound,
    UnreadableSource,
    Unsupported,
)
from codex_checkpoints.storage.records import Records
from codex_checkpoints.storage.store import ThreadStore

logger = logging.getLogger(__name__)

KEPT = frozenset(
    {
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "token_usage_record",
        "retained_context",
        "dynamic_tools_updated",
        "security_risk_score",
        "realtime_item",
    }
)
"""Kinds allowed after the first line; at a second `session_meta` Codex forgets all before it."""

TRANSIENT = {
    "event_msg": frozenset(
        {
            "agent_message_content_delta",
            "agent_message_delta",
            "agent_reasoning_delta",
            "agent_reasoning_raw_content_delta",
            "apply_patch_approval_request",
            "background_event",
            "error",
            "exec_approval_request",
            "exec_command_begin",
            "exec_command_end",
            "exec_command_output_delta",
            "item_started",
            "mcp_tool_call_begin",
            "patch_apply_begin",
            "plan_delta",
            "plan_update",
            "reasoning_content_delta",
            "reasoning_raw_content_delta",
            "session_configured",
            "stream_error",
            "turn_diff",
            "undo_completed",
            "undo_started",
            "warning",
        }
    ),
    "response_item": frozenset({"additional_tools", "compaction_trigger", "ghost_snapshot"}),
}
"""Kinds, by envelope, that Codex sends to watchers and never writes."""


def is_kept(item: HistoryItem | Copied) -> bool:
    """Return whether an item belongs in a rollout; a copied line always does."""
    if isinstance(item, Copied):
        return True
    return item.type in KEPT and item.payload.get("type") not in TRANSIENT.get(item.type, ())


@define
class LiveThread:
    """One thread that is loaded in this process (STO-6)."""

    thread_id: str
    _store: ThreadStore
    _session: SessionFile
    _locate: Locate

    def append(
        self,
        items: Iterable[HistoryItem | Copied],
        at: datetime,
        expected: str | None = None,
    ) -> Appended | None:
        """Append the items that belong in a rollout, durably; return None if there are none."""
        kept = tuple(filter(is_kept, items))
        if not kept:
            return None
        appended = self._store.append_items(self.thread_id, kept, at, expected)
        try:
            self.update_metadata(*self._patches(appended))
        except StoreError as error:
            logger.warning("%s: the append is not reported yet: %s", self.thread_id, error)
        return appended

    def update_metadata(self, *patches: Patch) -> None:
        """Change metadata of the thread; raises as the store."""
        self._store.update_thread_metadata([(self.thread_id, patch) for patch in patches])

    def _patches(self, appended: Appended) -> tuple[Patch, ...]:
        """Return the patches for appended lines; only these lines are read (STO-7).

        A file that was unpacked, or a later rollout of the thread, is read whole.
        """
        before, now = self._session, appended.rollout
        if before.path == now.path:
            self._session = before.read_on(self._locate)
            return (Patch(row=row_of(now, self._session)),)
        self._session = open_session(before.reader, now.path, self._locate, seeds=before.seeds)
        patch = Patch(row=row_of(now, self._session))
        if before.reader.identify(before.path).rollout_id != now.rollout_id:
            return (patch,)
        return (Patch(row=None, of=before.path), patch)


@frozen
class Move:
    """A move; `codex` makes it if Codex keeps a database, `failure` is why it did not."""

    thread_id: str
    archive: bool
    codex: CodexArchive | None
    failure: AskingFailed | None = None

    def ask(self, cancelled: Callable[[], bool], begin: Callable[[], None]) -> Move:
        """Let Codex move the thread; raises `Cancelled` only before it calls `begin`."""
        if self.codex is None:
            return self
        try:
            self.codex.move(self.thread_id, cancelled, begin, archive=self.archive)
        except AskingFailed as failure:
            if failure.code == "cancelled":
                raise Cancelled from failure
            return evolve(self, failure=failure)
        return self


_DELETE_BLOCKS: dict[DeleteBlock, tuple[str, str]] = {
    "standing": (
        "the compaction that made it is in force",
        "`codex-checkpoints uncompact {0}` takes that back; then it can be deleted.",
    ),
    "referred_to": (
        "other sessions were made from it",
        "Delete those first: `codex-checkpoints lineage {0}` shows them.",
    ),
}
"""The obstacle in words, and the step to take first; {0} is the id of the thread."""

_CODES: dict[type, str] = {
    ThreadNotFound: "unknown_session",
    ThreadIsLive: "session_live",
    Conflict: "conflict",
    Unsupported: "conflict",
    UnreadableSource: "unreadable_source",
}
"""The code of each error of a store; the default is `storage_error`."""


def _not_ours(row: Row) -> Refusal:
    message = f"session {row.session_id} was not made by codex-checkpoints"
    facts = {"sessionId": row.session_id, "reason": "not_ours"}
    if not row.archived:
        facts["hint"] = f"`codex-checkpoints archive {row.session_id}` puts this one away."
    return Refusal("conflict", message, facts)


@contextlib.contextmanager
def refusing(thread_id: str) -> Generator[None]:
    """Turn an error of the store into a refusal."""
    try:
        yield
    except StoreError as error:
        facts: dict[str, object] = {"sessionId": thread_id, "reason": str(error)}
        codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
        code = next(codes, "storage_error")
        raise Refusal(code, f"session {thread_id}: {error}", facts) from error


class ThreadManager:
    """Changes the threads of one catalogue; one thread of execution owns it."""

    def __init__(
        self,
        catalogue: SessionIndex,
        records: Records | None = None,
        codex: CodexArchive | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._store = catalogue.store
        self._records = records
        self._codex = codex
        self._live: dict[str, LiveThread] = {}
        self._changed: set[str] = set()

    def create(self, new: NewThread, at: datetime) -> Row:
        """Publish a whole thread and read it; refuses `conflict`, `storage_error`."""
        with refusing(str(new.meta.get("id"))):
            rollout = self._store.create_thread(new, at)
        self._changed.add(rollout.thread_id)
        return self._seen(rollout)

    def load(self, thread_id: str) -> LiveThread:
        """Return a thread that stays loaded; refuses `unknown_session`, `unreadable_source`."""
        live = self._live.get(thread_id)
        if live is None:
            live = self._live[thread_id] = self._opened(thread_id)
        return live

    def unload(self, thread_id: str) -> None:
        """Forget a loaded thread."""
        self._live.pop(thread_id, None)

    def append(
        self,
        thread_id: str,
        items: Iterable[HistoryItem | Copied],
        at: datetime,
        expected: str | None = None,
    ) -> Appended | None:
        """Append to a thread, durably; return None if no item belongs in a rollout."""
        live = self._live.get(thread_id) or self._opened(thread_id)
        with refusing(thread_id):
            appended = live.append(items, at, expected)
        if appended is not None:
            self._changed.add(thread_id)
        return appended

    def check_append(self, thread_id: str) -> None:
        """Refuse as `append` would now; nothing changes."""
        with refusing(thread_id):
            self._store.check_append(thread_id)

    def take_changed(self) -> set[str]:
        """Return, once, the threads changed here; reading their files finds nothing new."""
        changed, self._changed = self._changed, set()
        return changed

    def rename(self, thread_id: str, name: str | None, *, listed: bool = False) -> None:
        """Name a thread in one line of at most 160 code points; None removes the name.

        With `listed` the name is only in Codex's list of names.
        """
        text = cut(one_line(name), MAX_VALUE_CHARS) if name is not None else ""
        self.update_metadata(thread_id, Patch(name=text or None, listed=listed))

    def update_metadata(self, thread_id: str, patch: Patch) -> None:
        """Change metadata of a thread."""
        live = self._live.get(thread_id)
        with refusing(thread_id):
            if live is not None:
                live.update_metadata(patch)
            else:
                self._store.update_thread_metadata([(thread_id, patch)])

    def to_move(self, thread_id: str, *, archive: bool) -> Move:
        """Decide who is to move a thread, as the first step; nothing changes."""
        codex, row = self._codex, self._catalogue.current().get(thread_id)
        is_free = thread_id not in self._store.live_threads()
        if row is None or row.archived == archive or not is_free:
            codex = None  # nothing to ask, and the store says why not
        return Move(thread_id, archive, codex if codex is not None and codex.is_kept() else None)

    def moved(self, move: Move) -> Row:
        """Do the last step: check Codex's result, else move the files; refuses as the store."""
        row = None if move.codex is None else self._catalogue.refresh_thread(move.thread_id)
        if row is None or row.archived != move.archive:
            row = self._moved_by_us(move)
        self.unload(move.thread_id)  # its file has moved
        return row

    def archive_own(self, thread_id: str) -> Row:
        """Archive a thread of ours without asking Codex; refuses as the store."""
        return self.moved(Move(thread_id, archive=True, codex=None))

    def check_delete(self, thread_id: str) -> None:
        """Refuse `conflict` for a thread that we did not make or that a record refers to."""
        row = self._catalogue.current().get(thread_id)
        if row is not None and row.originator != OURS:
            raise _not_ours(row)
        reason = self._records and operation_records.delete_block(
            self._records, self._store, thread_id
        )
        if reason is not None:
            words, hint = _DELETE_BLOCKS[reason]
            facts = {"sessionId": thread_id, "reason": reason, "hint": hint.format(thread_id)}
            raise Refusal("conflict", f"session {thread_id} is not deleted: {words}", facts)

    def delete(self, thread_id: str) -> None:
        """Delete the rollout of a thread that we made and that nothing refers to."""
        self.check_delete(thread_id)
        with refusing(thread_id):
            self._store.delete_thread(thread_id)
        self.unload(thread_id)
        rows = self._catalogue.rows().values()
        self._catalogue.refresh_paths([each.path for each in rows if each.session_id == thread_id])

    def _opened(self, thread_id: str) -> LiveThread:
        with refusing(thread_id):
            if thread_id not in self._catalogue.current():
                self._catalogue.refresh_thread(thread_id)  # it may be new, and so may its bases
            session = self._catalogue.open_uncached(self._store.read_thread(thread_id).row)
        return LiveThread(thread_id, self._store, session, self._catalogue.chains.locate)

    def _moved_by_us(self, move: Move) -> Row:
        thread_id, store, failure = move.thread_id, self._store, move.failure
        self._catalogue.reader.progress.commit()
        with refusing(thread_id):
            put = store.archive_thread if move.archive else store.unarchive_thread
            rollout = put(thread_id)
        if failure is not None:
            logger.warning(
                "%s: %s; the session file is moved, but Codex's own database still has it where it"
                " was: until `codex %s %s` is possible, Codex may not open it",
                failure.code,
                failure,
                "archive" if move.archive else "unarchive",
                thread_id,
            )
        # All its rollouts have moved, and later ones build on earlier ones.
        return self._catalogue.refresh_thread(thread_id) or self._seen(rollout)

    def _seen(self, rollout: Rollout) -> Row:
        self._catalogue.refresh_paths([rollout.path])
        return self._catalogue.rows()[rollout.path]
