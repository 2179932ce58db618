"""The records of compactions: who replaced what by what, and which was taken back (CKP-2).

All strategies share one form (CKP-23).  A record holds no text of the session except the seed.  A
line of `compactions.jsonl` is one record; its `type` says which.  `CompactionContents` are the
parts of a replacement, for a person who looks before it is installed (DIG-9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import orjson
from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.compaction.building import Fate, Placement, Replacement, Report, counted
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.digest.composing import LEAST_TOKENS, Digest
from codex_checkpoints.core.history.items import texts
from codex_checkpoints.core.history.kinds import AUTHORS, Author, Kind, Past, kind_of
from codex_checkpoints.core.history.tokens import Figure, of_item
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import Json, is_object

Strategy = Literal["checkpoint", "codex"]
Determinism = Literal["deterministic", "model", "provider"]
RequestedBy = Literal["user", "offer", "automatic", "internal"]
Into = Literal["new", "in-place"]


@frozen
class Range:
    """What was replaced: lines of a session from one `seq` to another, and digests (CKP-33).

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
    kind: Kind
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
    dropped_kinds: Mapping[Kind, int]
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
    """The chain of the source, and that of the session where the work continues."""

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
    """A compaction that was taken back (JUN-25); `window` is the one opened by that in place."""

    compaction_id: str
    at: str
    requested_by: RequestedBy
    why: str
    window: Chain | None = None


@frozen
class Prepared:
    """A change that is about to happen, written before the history changes.

    Who finds it last checks whether the change happened; if not, it is removed.
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
    """Read a record from the JSON value of a line; None for what is none."""
    if not is_object(value):
        return None
    if value.get("type") == "prepared":
        inner = record_of(value.get("record"))
        return None if inner is None or isinstance(inner, Prepared) else Prepared(inner)
    kind = _TYPES.get(str(value.get("type")))
    return None if kind is None else read_or_none(stored, value, kind)


def standing(records: Sequence[Record], session_id: str) -> Installed | None:
    """Return the newest compaction of this session that was not taken back: the pointer (JUN-24).

    The records of a session that a compaction made begin with that of its source, which is skipped.
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


def began_session(records: Iterable[Record], session_id: str) -> Installed | None:
    """Return the compaction that a session began with, None where none did."""
    for each in records:
        if isinstance(each, Installed) and (each.into, each.session_id) == ("new", session_id):
            return each
    return None


def remembered(history: Sequence[Past], record: Installed) -> tuple[Past, ...]:
    """Give the items of an earlier replacement their old time and line again (JUN-43).

    In the file they all stand in the line of the compaction.  Where the history does not begin with
    the replacement of `record`, it is returned as it is.
    """
    count = len(record.items)
    if digest_of([past.item for past in history[:count]]) != record.replacement:
        return tuple(history)
    return _dated(history, record.items)


def recalled(history: Sequence[Past], known: Sequence[Past]) -> tuple[Past, ...]:
    """Give the items of a history that was brought back their old time and line (JUN-43).

    Where it does not begin with `known`, that history as it was before, it is returned as it is.
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
    """Return the digest of items: of their JSON with sorted keys (CKP-27)."""
    data = orjson.dumps(list(items), option=orjson.OPT_SORT_KEYS)
    return f"sha256:{sha256(data).hexdigest()}"


def remaining(built: Replacement) -> tuple[Remaining, ...]:
    """Return what the record keeps of each item of a replacement, in order."""
    found: list[Remaining] = []
    for item, origin in zip(built.items, built.origins, strict=True):
        kind, tokens = kind_of(item), of_item(item)
        made = Remaining(AUTHORS[kind], kind, None, None, tokens)
        if origin is not None:
            old = built.report.pieces[origin]
            made = Remaining(made.author, kind, old.at, old.ref, tokens, old.cut_tokens)
        found.append(made)
    return tuple(found)


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


@frozen
class KeptMessage:
    """A message from the user as a replacement has it; `ref` names its record for `recall`.

    `cutTokens` is how much was cut out of its middle.
    """

    ref: str | None
    at: str | None
    text: str
    tokens: int
    cut_tokens: int


@frozen
class CompactionWarning:
    """A warning about a compaction: a code, how many things it concerns, and a sentence."""

    code: str
    count: int
    message: str


@frozen
class CompactionContents:
    """The parts of a replacement; `stateTokens` is what the how-to text and the view take."""

    messages: tuple[KeptMessage, ...]
    view: str
    state_tokens: int
    digest: Digest
    warnings: tuple[CompactionWarning, ...]


def contents_of(
    built: Replacement, *, live: bool, more: Iterable[CompactionWarning] = ()
) -> CompactionContents:
    """Return the parts of a replacement of ours; `live`: Codex has the session open.

    `more` are warnings of what the replacement does not show.
    """
    messages: list[KeptMessage] = []
    for item, place in zip(built.items[:-1], built.origins, strict=False):
        text, tokens = "\n".join(texts(item)), of_item(item)
        if place is None:  # a request that is no user message
            messages.append(KeptMessage(None, None, text, tokens, 0))
            continue
        piece = built.report.pieces[place]
        ref = piece.ref and piece.ref.replace("seq:", "#")
        messages.append(KeptMessage(ref, piece.at, text, tokens, piece.cut_tokens))
    state = of_item(built.items[-1]) - built.digest.tokens
    warnings = (*_warnings(built, live=live), *more)
    return CompactionContents(tuple(messages), built.view, state, built.digest, warnings)


def _warnings(built: Replacement, *, live: bool) -> Iterator[CompactionWarning]:
    fates = [piece.fate for piece in built.report.pieces]
    digest = built.digest
    if built.digest_refused:
        yield CompactionWarning(
            "digest_left_out",
            1,
            "The digest is left out: with it the summary would be too large.",
        )
    elif not digest.text and 0 < digest.budget < LEAST_TOKENS:
        message = f"With fewer than {LEAST_TOKENS} tokens there is no digest."
        yield CompactionWarning("digest_too_small", 1, message)
    left: tuple[Fate, ...] = ("over_budget", "over_target")
    if gone := sum(fate in left for fate in fates):
        yield CompactionWarning("messages_left_out", gone, _said(gone, "left out for lack of room"))
    if merged := fates.count("merged"):
        told = _said(merged, "merged with a later one that is equal")
        yield CompactionWarning("messages_merged", merged, told)
    if cut := fates.count("truncated"):
        yield CompactionWarning("messages_cut", cut, _said(cut, "cut in the middle"))
    if live:
        yield CompactionWarning(
            "session_live",
            1,
            "Codex has this session open. Until it is closed there, it can only be compacted into"
            " a new session.",
        )


def _said(count: int, what: str) -> str:
    who = "1 of your messages is" if count == 1 else f"{count} of your messages are"
    return f"{who} {what}."
