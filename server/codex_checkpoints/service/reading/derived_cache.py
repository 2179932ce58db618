"""Caches results that are derived from session files, in the index.

A cached result is used while the version of its rules and its other inputs are unchanged, and the
file still begins with the bytes that it was derived from.  Results that quote a session are
redacted, bounded, and removed with the session file.  Everything here can be lost at any time.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

import orjson
from attrs import asdict, frozen

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage.contract import Mark
from codex_checkpoints.storage.store import ThreadStore

T = TypeVar("T")

QUOTING = ("digest", "whole digest", "losses")
"""The names of the kinds that quote a session."""

DIGEST_RULES = 29
"""The version of the rules for making digests."""

_LARGEST = 1 << 23
"""Maximum size of an entry in bytes of JSON."""

_LARGE = 1 << 20
"""A smaller file is read again just as quickly."""


class FoldStates(Protocol):
    """Caches the states of folds over rollouts on this machine; any may be lost at any time.

    The states of a rollout go with its row.
    """

    def state(self, path: str, fold: str) -> object:
        """Return the saved state of a fold over a rollout as JSON values, or None."""
        ...

    def put_state(self, path: str, fold: str, state: object) -> None:
        """Save the state of a fold over a rollout."""
        ...

    def drop_states(self, path: str = "", fold: str = "") -> None:
        """Drop the states of a rollout, of a fold, or of that fold over that rollout."""
        ...


@frozen
class CachedKind(Generic[T]):
    """A kind of cached result: its name in the index, the version of its rules, its record class.

    A result of more than `most` bytes, as it is stored, is not cached.
    """

    name: str
    version: int
    record: type[T]
    most: int = 1 << 20


@frozen
class _Entry:
    """A result, the version of its rules, its place in the file, and a hash of its other inputs.

    `value` is its JSON, compressed: a digest has each line twice, with its reason.
    """

    version: int
    mark: Mark
    inputs: str
    value: str


class DerivedCache:
    """The cached results of one store, and one result that is only in memory."""

    def __init__(self, store: ThreadStore, states: FoldStates) -> None:
        self._store, self._states = store, states
        self.latest: object = None
        """The last result that is too large to store: the session as read for a preview."""

    def get(
        self, opened: SessionFile, kind: CachedKind[T], inputs: Callable[[T], object]
    ) -> T | None:
        """Return a cached result, None if there is none for this version, file and inputs.

        `inputs` returns the other inputs of a result as JSON values, which may depend on the
        result.
        """
        found = self._states.state(opened.path, kind.name)
        entry = read_or_none(stored, found, _Entry)
        if entry is None or entry.version != kind.version or not opened.has_kept(entry.mark):
            return None
        value = read_or_none(stored, _unpacked(entry.value), kind.record)
        return None if value is None or entry.inputs != _hash(inputs(value)) else value

    def put(
        self,
        opened: SessionFile,
        kind: CachedKind[T],
        value: T,
        inputs: object = None,
        mark: Mark | None = None,
    ) -> None:
        """Cache a result of the records up to a mark, by default of all records.

        Nothing is cached if the session file is gone.
        """
        entry = _Entry(
            kind.version, mark or opened.mark, _hash(inputs), _packed(stored.unstructure(value))
        )
        data = stored.unstructure(entry)
        if opened.path in self._store.rows() and len(orjson.dumps(data)) <= kind.most:
            self._states.put_state(opened.path, kind.name, data)

    def get_or_make(
        self,
        opened: SessionFile,
        kind: CachedKind[T],
        inputs: Callable[[T | None], object],
        make: Callable[[], T],
    ) -> T:
        """Return a result of all records of a session, cached if the session is large.

        `inputs` returns its other inputs; without a result, those that are known without one.
        """
        head, state = opened.head, opened.now().state
        reads_others = (head is not None and head.base is not None) or state.seed is not None
        is_small = opened.mark.offset < _LARGE
        if is_small or reads_others or opened.path not in self._store.rows():
            return make()

        def all_inputs(value: T | None) -> object:
            return (
                asdict(opened.mark, recurse=False),
                sha256(opened.tail).hexdigest(),
                inputs(value),
            )

        found = self.get(opened, kind, all_inputs)
        if found is not None:
            return found
        before = _hash(all_inputs(None))
        made = make()
        if _hash(all_inputs(None)) == before:  # nothing changed meanwhile
            self.put(opened, kind, made, all_inputs(made))
        return made

    def may_quote(self, settings: Settings) -> bool:
        """Return whether quotes of sessions may be cached; else remove the cached ones."""
        wanted = bool(settings.digest_tokens or settings.hook_digest_tokens)
        if not wanted:
            for name in QUOTING:
                self._states.drop_states(fold=name)
        return wanted

    def state(self, path: str, fold: str) -> object:
        """Return the saved state of a fold over a session file, None without one."""
        return self._states.state(path, fold)

    def put_state(self, path: str, fold: str, state: object) -> None:
        """Save the state of a fold over a session file; the fold writes its own version."""
        self._states.put_state(path, fold, state)

    def forget(self, path: str) -> None:
        """Drop everything cached for a session file."""
        self._states.drop_states(path)

    def latest_of(self, record: type[T]) -> T | None:
        """Return the result in memory if it is of this class."""
        return self.latest if isinstance(self.latest, record) else None


def _packed(value: object) -> str:
    return base64.b64encode(zlib.compress(orjson.dumps(value))).decode()


def _unpacked(text: str) -> object:
    """Return the value of an entry; None if it is damaged or too large."""
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text), _LARGEST)
        return orjson.loads(data) if unpacking.eof else None
    except (ValueError, zlib.error):
        return None


def _hash(parts: object) -> str:
    return sha256(orjson.dumps(parts)).hexdigest()
