"""The one entry point for changes to threads: made, continued, named, put away, removed (STO-8).

A thread that is loaded in this process is changed through its `LiveThread`, a cold one straight
through the store; the outcome is the same.  What the store will not do becomes a refusal here.
Which thread a person means is known to `session_names`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import cut, one_line
from codex_checkpoints.service.live_thread import LiveThread, Observer
from codex_checkpoints.service.moving import Asked, Move
from codex_checkpoints.service.reading.catalogue import Catalogue
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.threads.contract import (
    OURS,
    Appended,
    BadQuery,
    Conflict,
    Copied,
    Item,
    KeptHereAlone,
    Look,
    NewThread,
    Patch,
    Rollout,
    Row,
    StorageFailed,
    StoreError,
    ThreadIsLive,
    ThreadNotFound,
    UnreadableSource,
    Unsupported,
)

if TYPE_CHECKING:
    from codex_checkpoints.codex.app_server import AskingFailed
    from codex_checkpoints.codex.program import CodexArchive

logger = logging.getLogger(__name__)

IsReferredTo = Callable[[str], bool]
"""Whether records of ours refer to a thread, by its id: then it is not removed."""

_CODES: dict[type, str] = {
    ThreadNotFound: "unknown_session",
    ThreadIsLive: "session_live",
    Conflict: "conflict",
    Unsupported: "conflict",
    StorageFailed: "storage_error",
    UnreadableSource: "unreadable_source",
    BadQuery: "invalid_payload",
}


def _code_of(error: StoreError) -> str:
    """Return the code of a refusal; stores may have errors of their own, below ours."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), "storage_error")


def nobody(_thread_id: str) -> bool:
    """Return that no record refers to a thread."""
    return False


def _not_ours(row: Row) -> Refusal:
    """Return the refusal to remove a thread that somebody else made, with what can be done."""
    message = f"session {row.session_id} was not made by codex-checkpoints"
    hint = "Only what it made itself, as a branch, is deleted."
    if not row.archived:
        hint += f" `codex-checkpoints archive {row.session_id}` puts this one away."
    facts = {"sessionId": row.session_id, "reason": "not_ours", "hint": hint}
    return Refusal("conflict", message, facts)


@contextlib.contextmanager
def refusing(thread_id: str) -> Generator[None]:
    """Turn what a store will not do with a thread into a refusal."""
    try:
        yield
    except StoreError as error:
        facts: dict[str, object] = {"sessionId": thread_id, "reason": str(error)}
        if isinstance(error, KeptHereAlone):
            facts["kept"] = True
        raise Refusal(_code_of(error), f"session {thread_id}: {error}", facts) from error


class ThreadManager:
    """The threads of one catalogue, as they are changed; owned by one thread of execution."""

    def __init__(
        self,
        catalogue: Catalogue,
        is_referred_to: IsReferredTo = nobody,
        codex: CodexArchive | None = None,
    ) -> None:
        """Begin with no thread loaded; `codex` is asked where it keeps a database of threads."""
        self._catalogue = catalogue
        self._store = catalogue.store
        self._is_referred_to = is_referred_to
        self._codex = codex
        self._live: dict[str, LiveThread] = {}
        self._changed: set[str] = set()

    def create(self, new: NewThread, at: datetime) -> Row:
        """Publish a thread whole, and look at it; refuses `conflict`, `storage_error`."""
        with refusing(str(new.meta.get("id"))):
            rollout = self._store.create_thread(new, at)
        self._changed.add(rollout.thread_id)
        return self._seen(rollout)

    def load(self, thread_id: str) -> LiveThread:
        """Return the door of a thread that is written to for some time; it stays open.

        Refuses `unknown_session`, `unreadable_source`.
        """
        live = self._live.get(thread_id)
        if live is None:
            live = self._live[thread_id] = self._opened(thread_id)
        return live

    def unload(self, thread_id: str) -> None:
        """Let a thread be cold again; one that is cold stays so."""
        self._live.pop(thread_id, None)

    def append(
        self,
        thread_id: str,
        items: Iterable[Item | Copied],
        at: datetime,
        expected: Look | None = None,
    ) -> Appended | None:
        """Append to a thread, durable on return; None where nothing of it belongs into a rollout.

        Refuses `session_live`, `conflict` (not as `expected`), `storage_error`.
        """
        live = self._live.get(thread_id) or self._opened(thread_id)
        with refusing(thread_id):
            appended = live.append(items, at, expected)
        if appended is not None:
            self._changed.add(thread_id)
        return appended

    def check_append(self, thread_id: str) -> None:
        """Make sure that a thread could be appended to as it stands; nothing is made or changed.

        Refuses as `append`.
        """
        with refusing(thread_id):
            self._store.check_append(thread_id)

    def take_changed(self) -> set[str]:
        """Return, once, the threads that were made or continued here.

        A look at their rollouts finds nothing new any more, since the store was told at once.
        """
        changed, self._changed = self._changed, set()
        return changed

    def rename(self, thread_id: str, name: str | None) -> None:
        """Give a thread a name, durable on return; None, or one without a character, takes it back.

        A name is one line of at most 160 code points.  Refuses `unknown_session`, `storage_error`.
        """
        text = cut(one_line(name), MAX_VALUE_CHARS) if name is not None else ""
        self.update_metadata(thread_id, Patch(name=text or None))

    def update_metadata(self, thread_id: str, patch: Patch) -> None:
        """Change metadata of a thread, by its door where it is loaded."""
        live = self._live.get(thread_id)
        with refusing(thread_id):
            if live is not None:
                live.update_metadata(patch)
            else:
                self._store.update_thread_metadata([(thread_id, patch)])

    def archive(self, thread_id: str) -> Row:
        """Put a thread among the archived ones; refuses `session_live`, `conflict`."""
        return self._moved(self.to_move(thread_id, archive=True))

    def unarchive(self, thread_id: str) -> Row:
        """Put an archived thread back; refuses `session_live`, `conflict`."""
        return self._moved(self.to_move(thread_id, archive=False))

    def to_move(self, thread_id: str, *, archive: bool) -> Move:
        """Find out who is to put a thread away, or back: the first step; nothing is changed."""
        codex, row = self._codex, self._catalogue.current().get(thread_id)
        is_free = thread_id not in self._store.live_threads()
        if row is None or row.archived == archive or not is_free:
            codex = None  # nothing to ask, and the store says why not
        return Move(thread_id, archive, codex if codex is not None and codex.is_kept() else None)

    def moved(self, asked: Asked) -> Row:
        """Look what Codex did, and move the files where it did not: the last step.

        Without Codex a thread is moved all the same, and the log says what that means.  Refuses
        `session_live`, `conflict`; raises `Cancelled` where nothing has changed.
        """
        move = asked.move
        row = None if move.codex is None else self._catalogue.look_for(move.thread_id)
        if row is None or row.archived != move.archive:
            row = self._moved_by_us(move, asked.failure)
        self.unload(move.thread_id)  # it lies elsewhere now
        return row

    def delete(self, thread_id: str) -> None:
        """Remove the rollout of a thread that we made and that nothing refers to.

        Our own records of it stay.  Refuses `session_live`, `conflict`, `storage_error`; of a
        thread that we did not make nothing else is said, since nothing else would help.
        """
        row = self._catalogue.current().get(thread_id)
        if row is not None and row.originator != OURS:
            raise _not_ours(row)
        if self._is_referred_to(thread_id):
            message = f"session {thread_id}: records of an operation refer to it"
            raise Refusal("conflict", message, {"sessionId": thread_id, "reason": "referred_to"})
        with refusing(thread_id):
            self._store.delete_thread(thread_id)
        self.unload(thread_id)
        self._look_at(thread_id)

    # --- inside ----------------------------------------------------------------------------------

    def _opened(self, thread_id: str) -> LiveThread:
        with refusing(thread_id):
            if thread_id not in self._catalogue.current():
                self._catalogue.look_for(thread_id)  # it may be new, and so may its bases
            session = self._catalogue.lend(self._store.read_thread(thread_id).row)
        return LiveThread(self._store, thread_id, Observer(session, self._catalogue.chains.locate))

    def _moved(self, move: Move) -> Row:
        pace = self._catalogue.reader.pace
        return self.moved(move.ask(lambda: pace.cancelled, pace.commit))

    def _moved_by_us(self, move: Move, failure: AskingFailed | None) -> Row:
        thread_id, store = move.thread_id, self._store
        self._catalogue.reader.pace.commit()
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
        return self._catalogue.look_for(thread_id) or self._seen(rollout)

    def _look_at(self, thread_id: str) -> None:
        """Look again at what was known of a thread."""
        rows = self._catalogue.rows().values()
        self._catalogue.look([row.path for row in rows if row.session_id == thread_id])

    def _seen(self, rollout: Rollout) -> Row:
        """Read what a change has put there, and return what was found."""
        self._catalogue.look([rollout.path])
        return self._catalogue.rows()[rollout.path]
