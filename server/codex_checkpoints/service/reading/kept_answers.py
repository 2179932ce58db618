"""Answers that take long to make, kept in the index while all that they are made of is the same.

They quote a session: so they are redacted and bounded, and go with the session file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import orjson

from codex_checkpoints.core.codec import Codec
from codex_checkpoints.hashes import sha256
from codex_checkpoints.service.reading.catalogue import Catalogue
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.settings import Settings
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.values import asdict, frozen

T = TypeVar("T")

DIGESTS = ("digest", "whole digest")
"""The names of the digest for a resume, and of that of all of a session."""

LOSSES = "losses"
"""The name of what compactions lost."""

WINDOW = "window"
"""The name of where the last window was found, which quotes nothing."""

LONGEST = {DIGESTS[0]: 32 << 10, DIGESTS[1]: 116 << 10, LOSSES: 108 << 10}
"""By name the most bytes that are kept of a session: 256 KiB in all.

Room for a resume of 4,000 tokens, and for a digest of 8,000 with what the session page has of each
line.
"""

DIGEST_RULES = 11
"""The version of how a digest is made; a kept one of another version is made anew."""

_LARGE = 1 << 20
"""A smaller file is read again as quickly."""

_codec = Codec()


@frozen
class _Kept:
    """An answer, a hash of what it is made of, and the names on which that depends."""

    made_of: str
    names: tuple[str, ...]
    answer: object


def keeps_quotes(catalogue: Catalogue, settings: Settings, row: Row) -> bool:
    """Return whether quotes of a session are kept; else those that were are forgotten."""
    wanted = bool(settings.digest_tokens or settings.hook_digest_tokens)
    if not wanted:
        here_alone = settings.digest_tokens or settings.hook_digest_tokens
        for name in LONGEST:
            catalogue.store.forget(path=row.path if here_alone else "", fold=name)
    return wanted


def keep(catalogue: Catalogue, row: Row, name: str, record: object) -> None:
    """Keep a record of a session that is still there, unless it is too long."""
    data = _codec.write(record)
    if row.path in catalogue.rows() and len(orjson.dumps(data)) <= LONGEST.get(name, _LARGE):
        catalogue.store.remember(row.path, name, data)


def kept(catalogue: Catalogue, row: Row, name: str, kind: type[T]) -> T | None:
    """Return a record that was kept, None without one of this build."""
    return _codec.read_or_none(catalogue.store.recall(row.path, name), kind)


def hash_of(parts: object) -> str:
    """Return a hash of JSON values."""
    return sha256(orjson.dumps(parts))


def kept_or_made(  # noqa: PLR0913, PLR0917 - what an answer is made of, and how
    catalogue: Catalogue,
    row: Row,
    opened: SessionFile,
    name: str,
    kind: type[T],
    made_of: Callable[[Collection[str]], object],
    make: Callable[[], tuple[T, Collection[str]]],
) -> T:
    """Return the answer about a large session that was kept, or make and keep it.

    `made_of` returns as JSON values what beside the session file the answer depends on, given the
    names that `make` returns with it.
    """
    reads_others = row.base_rollout is not None or opened.now().state.seed is not None
    if opened.mark.offset < _LARGE or reads_others or row.path not in catalogue.rows():
        return make()[0]
    file = _look(opened)
    found = kept(catalogue, row, name, _Kept)
    if found is not None and found.made_of == hash_of((file, made_of(found.names))):
        answer = _codec.read_or_none(found.answer, kind)
        if answer is not None:
            return answer
    before = made_of(())
    answer, names = make()
    if made_of(()) == before and _look(opened) == file:  # nothing changed under our hands
        names = tuple(sorted(names))
        made = hash_of((file, made_of(names)))
        keep(catalogue, row, name, _Kept(made, names, _codec.write(answer)))
    return answer


def _look(opened: SessionFile) -> object:
    return asdict(opened.mark), sha256(opened.tail)
