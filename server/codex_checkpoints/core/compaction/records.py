"""What outlives a compaction: who replaced what by what, and which was taken back (CKP-2).

One form for every strategy (CKP-23), so that a reader needs one case.  Of a session's records the
newest that was not taken back tells where its work goes on (JUN-24).  No text of the session is in
them but the seed, which is a checkpoint.  A line of `compactions.jsonl` is one record; its `type`
says which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.building import (
    Figure,
    Piece,
    Placement,
    Replacement,
    Report,
    counted,
)
from codex_checkpoints.core.compaction.kinds import AUTHORS, Author, Kind, Past, kind_of
from codex_checkpoints.core.history.tokens import of_item
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import Json, is_object
from codex_checkpoints.values import frozen

Strategy = Literal["checkpoint", "codex"]
Determinism = Literal["deterministic", "model", "provider"]
RequestedBy = Literal["user", "offer", "automatic", "internal"]
Into = Literal["new", "in-place"]


@frozen
class Range:
    """What was replaced: lines of a session from one `seq` to another, and digests (CKP-33).

    `history` is the digest of the items that Codex would have sent, `bytes_before` how much of the
    file there was, `prefix` the digest of those bytes.
    """

    session_id: str
    from_seq: int
    to_seq: int
    history: str
    bytes_before: int
    prefix: str


@frozen
class Remaining:
    """One item of the replacement: whose it is, when it was written, where it comes from (JUN-43).

    What was made by the compaction, as a handoff is, has neither a time nor a line of its own.
    """

    author: Author
    kind: Kind
    at: str | None
    ref: str | None
    tokens: int
    cut_tokens: int = 0


@frozen
class Counts:
    """How many items were kept, truncated and dropped, and the lines that dropped ones span."""

    kept: int
    truncated: int
    dropped: int
    dropped_kinds: Mapping[Kind, int]
    first_dropped: str | None
    last_dropped: str | None
    payloads: int


@frozen
class Sizes:
    """Tokens on both sides, each with its source; `bound` was stated before (DSC-56)."""

    before: Figure
    after: Figure
    bound: int


@frozen
class Windows:
    """The chain of the source, and that of the session where the work goes on."""

    before: Chain
    after: Chain


@frozen
class Installed:
    """A replacement that was installed: by whom, when and why, and in which of the three timings.

    `at` is UTC with milliseconds and `Z`.  `session_id` is where the work goes on: the source
    itself after an install in place.  `replacement` is the digest of the items.  `seed` is the
    checkpoint that a new session begins with (JUN-46).  `baseline`, the reference context, is
    always cleared (CKP-4).
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
    windows: Windows
    baseline: None = None
    seed: Checkpoint | None = None


@frozen
class Undone:
    """A compaction that was taken back (JUN-25); `window` is what doing so in place opened."""

    compaction_id: str
    at: str
    requested_by: RequestedBy
    why: str
    window: Chain | None = None


@frozen
class Prepared:
    """What is about to be done: whoever finds it without its record behind it asks what became.

    It is written before a history changes; where nothing came of it, it is taken out again.
    """

    record: Installed | Undone


Record = Installed | Undone | Prepared

_TYPES: dict[str, type[Installed | Undone]] = {"installed": Installed, "undone": Undone}


def to_value(record: Record) -> dict[str, Any]:
    """Return a record as JSON values, its type first."""
    if isinstance(record, Prepared):
        return {"type": "prepared", "record": to_value(record.record)}
    return {"type": type(record).__name__.lower(), **kept.write(record)}


def record_of(value: object) -> Record | None:
    """Read a record from the JSON value of a line; None for what is none."""
    if not is_object(value):
        return None
    if value.get("type") == "prepared":
        inner = record_of(value.get("record"))
        return None if inner is None or isinstance(inner, Prepared) else Prepared(inner)
    kind = _TYPES.get(str(value.get("type")))
    return None if kind is None else kept.read_or_none(value, kind)


def standing(records: Sequence[Record], session_id: str) -> Installed | None:
    """Return the newest compaction of this session that was not taken back: the pointer (JUN-24).

    The records of a session that a compaction made begin with the one of its source; that one is
    passed over.
    """
    taken_back: set[str] = set()
    for record in reversed(records):
        match record:
            case Undone():
                taken_back.add(record.compaction_id)
            case Prepared():
                pass
            case Installed():
                if (
                    record.source.session_id == session_id
                    and record.compaction_id not in taken_back
                ):
                    return record
    return None


def unsettled(records: Sequence[Record]) -> Installed | Undone | None:
    """Return what was begun and of which nobody knows how it ended."""
    match records[-1:]:
        case [Prepared(record=record)]:
            return record
        case _:
            return None


def seed_of(records: Sequence[Record], session_id: str) -> Checkpoint | None:
    """Return the checkpoint that this session began with, if a compaction made it (JUN-46)."""
    for record in records:
        if isinstance(record, Installed) and (record.into, record.session_id) == (
            "new",
            session_id,
        ):
            return record.seed
    return None


def remembered(history: Sequence[Past], record: Installed) -> tuple[Past, ...]:
    """Give the items of an earlier replacement back the time and the place they had (JUN-43).

    In the file they all stand in one line, which is where the compaction wrote what is its own.
    `record` is the one of that replacement; where the history does not begin with it, nothing is
    given.
    """
    count = len(record.items)
    if digest_of([past.item for past in history[:count]]) != record.replacement:
        return tuple(history)
    known = zip(history, record.items, strict=False)
    first = [_first(past, each.at, each.ref) for past, each in known]
    return (*first, *history[count:])


def recalled(history: Sequence[Past], known: Sequence[Past]) -> tuple[Past, ...]:
    """Give the items of a history that was brought back the time and the place they had (JUN-43).

    `known` is that history as it stood before; where this one does not begin with it, nothing is
    given.
    """
    count = len(known)
    if [past.item for past in history[:count]] != [past.item for past in known]:
        return tuple(history)
    both = zip(history, known, strict=False)
    return (*(_first(past, each.at, each.ref) for past, each in both), *history[count:])


def _first(past: Past, at: str | None, ref: str | None) -> Past:
    return past if ref is None else Past(past.item, at, ref)


def digest_of(items: Sequence[Json]) -> str:
    """Return the digest of a prompt base: of its items as JSON with sorted keys (CKP-27)."""
    data = orjson.dumps(list(items), option=orjson.OPT_SORT_KEYS)
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def remaining(built: Replacement) -> tuple[Remaining, ...]:
    """Return what the record keeps of each item of a replacement, in order."""
    pieces = built.report.pieces
    return tuple(
        _remaining(item, None if origin is None else pieces[origin])
        for item, origin in zip(built.items, built.origins, strict=True)
    )


def _remaining(item: Json, old: Piece | None) -> Remaining:
    kind, tokens = kind_of(item), of_item(item)
    if old is None:
        return Remaining(AUTHORS[kind], kind, None, None, tokens)
    return Remaining(AUTHORS[kind], kind, old.at, old.ref, tokens, old.cut_tokens)


def counts_of(report: Report) -> Counts:
    """Return the numbers of a report (CKP-16)."""
    dropped = report.dropped
    refs = [piece.ref for piece in dropped if piece.ref is not None]
    return Counts(
        kept=len(report.kept),
        truncated=len(report.truncated),
        dropped=len(dropped),
        dropped_kinds=counted([piece.kind for piece in dropped]),
        first_dropped=refs[0] if refs else None,
        last_dropped=refs[-1] if refs else None,
        payloads=sum(len(piece.left_out) for piece in report.pieces),
    )
