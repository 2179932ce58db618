"""`imports.jsonl`: the record of how a session was made of a pack, beside that session.

It holds the pack as it was accepted, since its notes and its lineage belong to the session from
then on, and the checkpoint that the session began with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from codex_checkpoints.core.checkpoint.canonical import kept
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.codec import Codec, Form
from codex_checkpoints.core.portable.pack import Pack, json_of
from codex_checkpoints.core.portable.reading import pack_in
from codex_checkpoints.core.restore.records import Windows
from codex_checkpoints.core.restore.sealing import sealed
from codex_checkpoints.values import frozen


@frozen
class _Head:
    operation_id: str
    session_id: str
    source_session_id: str
    imported_at: str
    pack_digest: str
    windows: Windows
    seed: Checkpoint


@frozen
class Import(_Head):
    """One session that was made of a pack; `pack_digest` is that of the file it came as."""

    pack: Pack


def _pack(told: object) -> Pack:
    return pack_in(orjson.dumps(told))


_form = Codec(own={**kept.own, Pack: Form(json_of, _pack)})


def line_of(made: Import) -> dict[str, Any]:
    """Return the line of a record, sealed."""
    return sealed(_form.write(made))


def import_in(line: object) -> Import | None:
    """Read a line of `imports.jsonl`; None for what is no record."""
    return _form.read_or_none(line, Import)


def imports_in(lines: Iterable[object]) -> tuple[Import, ...]:
    """Return the records in a file."""
    return tuple(filter(None, map(import_in, lines)))


def seed_in(lines: Iterable[object], session_id: str) -> Checkpoint | None:
    """Return what a session began with, None where it was not made of a pack.

    The pack in its record is not asked.
    """
    heads = (kept.read_or_none(line, _Head) for line in lines)
    return next((each.seed for each in heads if each and each.session_id == session_id), None)
