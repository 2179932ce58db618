"""A soft branch that names its source's lines instead of holding them (`softRestore`).

Codex reads a history as the first part of another file, by `history_base`.  Such a branch is small
and at once there, and cannot be opened any more when that file is gone.  Where it would not hold,
or would give the branch a window of its source, the lines are copied after all, and why is told
(AGN-66).
"""

from __future__ import annotations

from codex_checkpoints.core.restore.drift import FallbackKind
from codex_checkpoints.core.restore.trace import Trace
from codex_checkpoints.core.rollout.fields import Json, load, object_of, whole_of
from codex_checkpoints.core.rollout.items import Unreadable
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.threads.contract import RolloutReader, Row
from codex_checkpoints.values import frozen

_NO_UTF8 = Unreadable("not_utf8")


@frozen
class Reference:
    """Where in which rollout the history of a branch ends; both ends are exclusive."""

    rollout_id: str
    end_ordinal: int
    end_offset: int

    def as_head(self) -> Json:
        """Return the fields of a head that say so."""
        base = {
            "thread_id": self.rollout_id,
            "end_ordinal_exclusive": self.end_ordinal,
            "end_byte_offset": self.end_offset,
        }
        return {"history_base": base, "forked_from_ordinal_exclusive": self.end_ordinal}


def reference_to(reader: RolloutReader, row: Row, trace: Trace) -> Reference | FallbackKind:
    """Return how a branch names the lines up to where `trace` stands, or why it has to copy them.

    Raises `UnreadableSource`.
    """
    head = head_of(reader.first_line(row.path))
    if head is None or not head.paginated:
        return "copied_legacy"
    if row.rollout.compressed:
        return "copied_compressed"
    if trace.replay.state.compactions:
        return "copied_windows"  # its window would be one of the source (WIN-13)
    # What a session of ours began with moves the `seq`, and no ordinal.
    end = trace.replay.scale.own_seq + 1
    first = whole_of(object_of(load(reader.first_line(row.path))).get("ordinal"))
    if first is None or end <= first + 1:
        return "copied_in_base"
    offset = (
        None if _NO_UTF8.reason in trace.replay.scale.skipped else _offset(reader, row.path, end)
    )
    return "copied_damaged" if offset is None else Reference(row.rollout_id, end, offset)


def _offset(reader: RolloutReader, path: str, end: int) -> int | None:
    """Return where the first line with an ordinal from `end` on begins, or the file ends.

    None where a line in front of that is no UTF-8: Codex reads no such file.
    """
    offset, damaged = 0, False

    def feed(data: bytes) -> int:
        nonlocal offset, damaged
        start = 0
        while (stop := data.find(b"\n", start)) >= 0:
            value = load(data[start:stop])
            if _is_behind(value, end):
                break
            damaged = damaged or value == _NO_UTF8
            start = stop + 1
        offset += start
        return start

    _, rest = reader.read(path, 0, feed)
    # What follows may begin with a later line; a last one without its LF belongs to it if it fits.
    whole = rest and b"\n" not in rest and not _is_behind(load(rest), end)
    if damaged or (whole and load(rest) == _NO_UTF8):
        return None
    return offset + len(rest) if whole else offset


def _is_behind(line: object, end: int) -> bool:
    """Return whether a line, as JSON, has an ordinal from `end` on."""
    ordinal = whole_of(object_of(line).get("ordinal"))
    return ordinal is not None and ordinal >= end
