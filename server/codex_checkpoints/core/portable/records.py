"""`imports.jsonl`: the record of how a session was made of a pack, beside that session.

It holds the pack as it was accepted, since its notes and its lineage belong to the session from
then on, and the checkpoint that the session began with.  Later packs of the session are made with
it; nothing in it is a hash of another machine that anybody goes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.portable.pack import Pack, json_of
from codex_checkpoints.core.portable.reading import BadPack, pack_in
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.sealing import sealed
from codex_checkpoints.core.rollout.fields import object_of
from codex_checkpoints.values import frozen


@frozen
class Import:
    """One session that was made of a pack; `pack_digest` is that of the file it came as."""

    operation_id: str
    session_id: str
    source_session_id: str
    imported_at: str
    pack_digest: str
    windows: Windows
    seed: Checkpoint
    pack: Pack


@frozen
class _Head:
    operation_id: str
    session_id: str
    source_session_id: str
    imported_at: str
    pack_digest: str
    windows: Windows
    seed: Checkpoint


def line_of(made: Import) -> dict[str, Any]:
    """Return the line of a record, sealed."""
    head = _Head(
        made.operation_id,
        made.session_id,
        made.source_session_id,
        made.imported_at,
        made.pack_digest,
        made.windows,
        made.seed,
    )
    return sealed(kept.write(head) | {"pack": json_of(made.pack)})


def import_in(line: object) -> Import | None:
    """Read a line of `imports.jsonl`; None for what is no record."""
    told = object_of(line)
    head, pack = kept.read_or_none(told, _Head), _pack(object_of(told.get("pack")))
    if head is None or pack is None:
        return None
    return Import(
        head.operation_id,
        head.session_id,
        head.source_session_id,
        head.imported_at,
        head.pack_digest,
        head.windows,
        head.seed,
        pack,
    )


def imports_in(lines: Iterable[object]) -> tuple[Import, ...]:
    """Return the records in a file."""
    return tuple(filter(None, map(import_in, lines)))


def seed_in(lines: Iterable[object], session_id: str) -> Checkpoint | None:
    """Return what a session began with, None where it was not made of a pack."""
    heads = (kept.read_or_none(line, _Head) for line in lines)
    return next((each.seed for each in heads if each and each.session_id == session_id), None)


def _pack(told: Mapping[str, object]) -> Pack | None:
    try:
        return pack_in(orjson.dumps(dict(told)))
    except BadPack:
        return None
