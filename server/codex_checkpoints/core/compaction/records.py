"""Defines the records of compactions: author, replaced lines, and undone ones (CKP-2).

All strategies share one form (CKP-23).  A record holds no text of the session except the seed.  A
line of `compactions.jsonl` is one record; its `type` says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import orjson
from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.history.item_kinds import Author, ItemKind, Past
from codex_checkpoints.core.agents.codex.history.tokens import Figure
from codex_checkpoints.core.agents.codex.history.windows import Chain
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.fields import Json, is_object

Strategy = Literal["checkpoint", "codex"]
Determinism = Literal["deterministic", "model", "provider"]
RequestedBy = Literal["user", "offer", "automatic", "internal"]
Into = Literal["new", "in-place"]
Placement = Literal["manual", "pre_turn", "mid_turn"]


@frozen
class Range:
    """The replaced part: lines of a session from one `seq` to another, and digests (CKP-33).

    `history` is the digest of the items that Codex would have sent, `bytes_before` the size of the
    file, `prefix` the digest of those bytes.
    """

    session_id: str
    from_seq: int
    to_seq: int
    history: str
    bytes_before: int
    prefix: str


@frozen
class Remaining:
    """One item of the replacement: its author, time and origin (JUN-43).

    An item that the compaction made, such as a handoff, has neither a time nor a line.
    """

    author: Author
    kind: ItemKind
    at: str | None
    ref: str | None
    tokens: int
    cut_tokens: int = 0


@frozen
class Counts:
    """How many items were kept, truncated and dropped, and the first and last dropped lines."""

    kept: int
    truncated: int
    dropped: int
    dropped_kinds: Mapping[ItemKind, int]
    first_dropped: str | None
    last_dropped: str | None
    payloads: int


@frozen
class Sizes:
    """Tokens in use on both sides, with their sources; `bound` was stated before (DSC-56)."""

    before: Figure
    after: Figure
    bound: int


@frozen
class CompactionWindows:
    """The chain of the source, and the chain of the session where the work continues."""

    before: Chain
    after: Chain


@frozen
class Installed:
    """An installed replacement: by whom, when and why, and in which of the three timings.

    `at` is UTC with milliseconds and `Z`.  `session_id` is where the work continues: the source
    after an install in place.  `replacement` is the digest of the items, `seed` the checkpoint that
    a new session begins with (JUN-46).  `baseline`, the reference context, is always cleared
    (CKP-4).
    """

    compaction_id: str
    at: str
    requested_by: RequestedBy
    why: str
    placement: Placement
    strategy: Strategy
    determinism: Determinism
    into: Into
    session_id: str
    source: Range
    replacement: str
    items: tuple[Remaining, ...]
    counts: Counts
    sizes: Sizes
    windows: CompactionWindows
    baseline: None = None
    seed: Checkpoint | None = None


@frozen
class Undone:
    """A compaction that was undone (JUN-25); `window` is the one that the undo opened in place."""

    compaction_id: str
    at: str
    requested_by: RequestedBy
    why: str
    window: Chain | None = None


@frozen
class Prepared:
    """A change that is about to happen, written before the history changes.

    A later run that finds it as the last record checks whether the change happened, and removes it
    if not.
    """

    record: Installed | Undone


Record = Installed | Undone | Prepared

_TYPES: dict[str, type[Installed | Undone]] = {"installed": Installed, "undone": Undone}


def to_value(record: Record) -> dict[str, Any]:
    """Return a record as JSON values, its type first."""
    if isinstance(record, Prepared):
        return {"type": "prepared", "record": to_value(record.record)}
    return {"type": type(record).__name__.lower(), **stored.unstructure(record)}


def record_of(value: object) -> Record | None:
    """Read a record from the JSON value of a line; None if it is not one."""
    if not is_object(value):
        return None
    if value.get("type") == "prepared":
        inner = record_of(value.get("record"))
        return None if inner is None or isinstance(inner, Prepared) else Prepared(inner)
    kind = _TYPES.get(str(value.get("type")))
    return None if kind is None else read_or_none(stored, value, kind)


def current_compaction(records: Sequence[Record], session_id: str) -> Installed | None:
    """Return the newest compaction of this session that was not undone: the pointer (JUN-24).

    If a compaction made the session, its records begin with its source's, which is skipped.
    """
    undone_ids: set[str] = set()
    for record in reversed(records):
        match record:
            case Undone():
                undone_ids.add(record.compaction_id)
            case Prepared():
                pass
            case Installed():
                if (
                    record.source.session_id == session_id
                    and record.compaction_id not in undone_ids
                ):
                    return record
    return None


def began_session(records: Iterable[Record], session_id: str) -> Installed | None:
    """Return the compaction that a session began with, None if none did."""
    for each in records:
        if isinstance(each, Installed) and (each.into, each.session_id) == ("new", session_id):
            return each
    return None


def remembered(history: Sequence[Past], record: Installed) -> tuple[Past, ...]:
    """Give the items of an earlier replacement their old time and line again (JUN-43).

    In the file they are all in the line of the compaction.  If the history does not begin with the
    replacement of `record`, it is returned unchanged.
    """
    count = len(record.items)
    if digest_of([past.item for past in history[:count]]) != record.replacement:
        return tuple(history)
    return _dated(history, record.items)


def recalled(history: Sequence[Past], known: Sequence[Past]) -> tuple[Past, ...]:
    """Give the items of a restored history their old time and line (JUN-43).

    If it does not begin with `known`, the history before the compaction, it is returned unchanged.
    """
    count = len(known)
    if [past.item for past in history[:count]] != [past.item for past in known]:
        return tuple(history)
    return _dated(history, known)


def _dated(history: Sequence[Past], known: Sequence[Past | Remaining]) -> tuple[Past, ...]:
    dated = (
        past if each.ref is None else evolve(past, at=each.at, ref=each.ref)
        for past, each in zip(history, known, strict=False)
    )
    return (*dated, *history[len(known) :])


def digest_of(items: Sequence[Json]) -> str:
    """Return the digest of items, from their JSON with sorted keys (CKP-27)."""
    data = orjson.dumps(list(items), option=orjson.OPT_SORT_KEYS)
    return f"sha256:{sha256(data).hexdigest()}"
