"""The readers of recently read sessions, each at its position, for the session index."""

from __future__ import annotations

from collections import OrderedDict

from codex_checkpoints.core.checkpoint.state import Seeds
from codex_checkpoints.service.reading.derived_cache import DerivedCache
from codex_checkpoints.service.reading.session_file import (
    CHECKPOINT,
    FoldSpec,
    SessionFile,
)
from codex_checkpoints.storage.contract import (
    RolloutReader,
)

_MOST_READERS = 32
FEW_READERS = 4
"""Number of sessions to keep for each other fold."""
_SAVED_FROM = 1 << 20
"""The state of a file in use is saved from this size on, and again after this many new bytes."""
_SAVED_AT_ONCE = 1 << 24
"""From this size on the first indexing already saves it, since reading it again is slow."""


class ReaderPool:
    """The recently read sessions of one store, each at the position of its reader."""

    def __init__(
        self,
        cache: DerivedCache,
        reader: RolloutReader,
        seeds: Seeds,
        by: FoldSpec = CHECKPOINT,
        most: int = _MOST_READERS,
    ) -> None:
        """Keep at most this many sessions, read `by` the same fold."""
        self._cache = cache
        self._reader = reader
        self._seeds = seeds
        self._by = by
        self._most = most
        self._kept: OrderedDict[str, SessionFile] = OrderedDict()
        self._saved_at: dict[str, int] = {}

    def take(self, path: str, *, saved: bool = True) -> SessionFile | None:
        """Take out the reader of a rollout, or a saved one of this version.

        The caller returns it by `keep` after reading.
        """
        kept = self._kept.pop(path, None)
        state = self._cache.state(path, self._by.fold) if kept is None and saved else None
        if state is None:
            return kept
        session = SessionFile.load(self._reader, path, state, self._seeds, self._by)
        if session is not None:
            self._saved_at[path] = session.mark.offset
        return session

    def keep(self, session: SessionFile) -> None:
        """Keep a reader in use, and drop the least recently used one."""
        self._kept[session.path] = session
        self._kept.move_to_end(session.path)
        self._save(session)
        while len(self._kept) > self._most:
            _, old = self._kept.popitem(last=False)
            self._save(old)

    def save_if_large(self, session: SessionFile) -> None:
        """Save a session that is not kept, if it is large."""
        if session.mark.offset >= _SAVED_AT_ONCE:
            self._save(session)

    def forget(self, path: str) -> None:
        """Forget the reader of a rollout that is gone or must be read from its beginning."""
        self._kept.pop(path, None)
        self._saved_at.pop(path, None)

    def save_all(self) -> None:
        """Save large sessions."""
        for session in self._kept.values():
            self._save(session)

    def _save(self, session: SessionFile) -> None:
        offset = session.mark.offset
        if abs(offset - self._saved_at.get(session.path, 0)) < _SAVED_FROM:
            return  # reading it again is quicker than saving
        state = session.save()
        if state is not None:
            self._saved_at[session.path] = offset
            self._cache.put_state(session.path, self._by.fold, state)
