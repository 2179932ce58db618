"""The readers of sessions in use: kept, so that only what is new is read, and saved where it pays.

What they read becomes a row in `catalogue`; where their state lies is the store's business, and it
may be lost at any time.
"""

from __future__ import annotations

from collections import OrderedDict

from codex_checkpoints.core.checkpoint.state import Seeds
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.threads.contract import RolloutReader, ThreadStore

_KEPT = 32
_SAVED_FROM = 1 << 20
"""From this size on the state of a file in use is saved, and again after as many new bytes."""
_SAVED_AT_ONCE = 1 << 24
"""From this size on it is saved by the first index already: reading it again would be felt."""


class Readers:
    """The sessions of one store that were read lately, each where its reader stands."""

    def __init__(self, store: ThreadStore, reader: RolloutReader, seeds: Seeds) -> None:
        """Begin with none; `reader` reads for them all, the store keeps their states."""
        self._store = store
        self._reader = reader
        self._seeds = seeds
        self._kept: OrderedDict[str, SessionFile] = OrderedDict()
        self._saved_at: dict[str, int] = {}

    def take(self, path: str) -> SessionFile | None:
        """Take out the reader of a rollout.

        Whoever read on gives it back by `keep`; one that broke off in the middle is of no use.
        """
        return self._kept.pop(path, None)

    def resume(self, path: str) -> SessionFile | None:
        """Return a reader where one was saved, None where none was, or of another version."""
        saved = self._store.recall(path)
        if saved is None:
            return None
        session = SessionFile.load(self._reader, path, saved, self._seeds)
        if session is not None:
            self._saved_at[path] = session.mark.offset
        return session

    def keep(self, session: SessionFile) -> None:
        """Hold on to a reader that is in use, and let go of the one used longest ago."""
        self._kept[session.path] = session
        self._kept.move_to_end(session.path)
        offset = session.mark.offset
        if offset - self._saved_at.get(session.path, 0) >= _SAVED_FROM:
            self._save(session)
        while len(self._kept) > _KEPT:
            _, old = self._kept.popitem(last=False)
            self._save(old)

    def pass_by(self, session: SessionFile) -> None:
        """Save what nobody uses yet, if it is large; it is not kept."""
        if session.mark.offset >= _SAVED_AT_ONCE:
            self._save(session)

    def let_go(self, path: str) -> None:
        """Forget the reader of a rollout that is gone, or that is to be read from its beginning."""
        self._kept.pop(path, None)
        self._saved_at.pop(path, None)

    def save_all(self) -> None:
        """Save what would be slow to read again."""
        for session in self._kept.values():
            self._save(session)

    def _save(self, session: SessionFile) -> None:
        offset = session.mark.offset
        if abs(offset - self._saved_at.get(session.path, 0)) < _SAVED_FROM:
            return  # reading that again is quicker than saving
        state = session.save()
        if state is not None:
            self._saved_at[session.path] = offset
            self._store.remember(session.path, (offset, 0, session.mark.inode), state)
