"""The beginning of a session that was imported: the part of its record that is always read."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.restore.records import Windows


@frozen
class ImportHead:
    """The part of the record of an import that is read without its pack."""

    operation_id: str
    session_id: str
    source_session_id: str
    imported_at: str
    pack_digest: str
    windows: Windows
    seed: Checkpoint


def seed_in(lines: Iterable[object], session_id: str) -> Checkpoint | None:
    """Return the initial state of a session, None if it was not made from a pack.

    The pack in the record is not read.
    """
    heads = (read_or_none(stored, line, ImportHead) for line in lines)
    return next((each.seed for each in heads if each and each.session_id == session_id), None)
