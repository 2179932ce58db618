"""What a session came with by name: what had been read and changed before its own lines begin.

A session that goes on from a checkpoint has none of the lines that led there.  The record of a
restore tells what it carried; for a compaction into a new session the source is read once more, as
far as it was compacted; a pack tells the modes alone.  Where none is there it is said that the rest
is not known, and nothing is made up.  What the session's own lines tell is found by `plan`.
"""

from __future__ import annotations

from collections.abc import Iterator

from codex_checkpoints.core.compaction.records import Installed, Range
from codex_checkpoints.core.restore.drift import Fallback
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.core.restore.references import NOTHING, References, remembered
from codex_checkpoints.core.restore.trace import ModeChange, Trace, in_order
from codex_checkpoints.service.compaction_records import CompactionRecords, storing
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.reading.fingerprints import fingerprint
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource
from codex_checkpoints.values import frozen

_LONGEST = 64
"""How many compactions one behind the other are followed: each costs reading a whole session."""

UNKNOWN = Fallback("earlier_unknown")


@frozen
class Earlier:
    """What was read and changed, and in which modes, before a session's own lines begin.

    `gaps` say that not all of it is known.
    """

    references: References = NOTHING
    modes: tuple[ModeChange, ...] = ()
    gaps: tuple[Fallback, ...] = ()


def earlier_work(sessions: Sessions, row: Row, trace: Trace) -> Earlier:
    """Return what a session came with, of which `trace` has read the own lines.

    Refuses `storage_error`; raises `UnreadableSource`.
    """
    found: list[Trace] = []
    at: Row = row
    told = trace
    while len(found) < _LONGEST:
        step = _step(sessions, at, told)
        if isinstance(step, Earlier):
            return _behind(step, found)
        at, told = step
        found.append(told)
    return _behind(Earlier(gaps=(UNKNOWN,)), found)


def _behind(before: Earlier, found: list[Trace]) -> Earlier:
    """Add what the sources of compactions tell, the oldest first."""
    references, modes = before.references, before.modes
    for trace in reversed(found):
        traces = trace.traces()
        references, modes = remembered(traces, references), in_order(modes, traces.modes)
    return Earlier(references, modes, before.gaps)


def _step(sessions: Sessions, row: Row, trace: Trace) -> Earlier | tuple[Row, Trace]:
    """Return what the record of a restore tells, or the source of a compaction, read again."""
    seed, restores = trace.replay.state.seed, RestoreRecords(sessions.records)
    made = restores.made(row.session_id)
    if made is not None:
        return _carried(made, None if seed is None else seed.seq)
    if seed is None:
        return Earlier()
    root = [row, *sessions.catalogue.chains.below(row)][-1].session_id
    made = restores.made(root)
    if made is not None:
        return _carried(made, seed.seq)
    with storing(root):
        records = CompactionRecords(sessions.records).of(root)
    for record in records:
        if isinstance(record, Installed) and (record.into, record.session_id) == ("new", root):
            return _compacted(sessions, record.source) or Earlier(gaps=(UNKNOWN,))
    arrived = ImportRecords(sessions.records).made(root)
    modes = () if arrived is None else arrived.pack.modes
    return Earlier(modes=modes, gaps=(UNKNOWN,))


def _carried(made: Restore, seed: int | None) -> Earlier:
    """Return what a restore carried; modes of after the seed stand in the branch's own lines."""
    modes = tuple(each for each in made.modes if seed is not None and each.seq <= seed)
    return Earlier(made.references, modes, tuple(gap for gap in made.fallbacks if gap == UNKNOWN))


def _compacted(sessions: Sessions, source: Range) -> tuple[Row, Trace] | None:
    """Read the source of a compaction up to where it was compacted; None where it is gone."""
    for row in _rollouts(sessions, source.session_id):
        try:
            found = fingerprint(sessions.catalogue.reader, row.path, source.bytes_before)
        except UnreadableSource:
            continue
        if found == (source.prefix, source.bytes_before):
            trace = Trace(last=source.to_seq)
            sessions.catalogue.read_with(trace.replay, row)
            return row, trace
    return None


def _rollouts(sessions: Sessions, session_id: str) -> Iterator[Row]:
    """Yield the files of a session, the newest one first."""
    newest = sessions.catalogue.current().get(session_id)
    if newest is not None:
        yield newest
    for row in sessions.catalogue.rows().values():
        if row.session_id == session_id and row.error is None and row != newest:
            yield row
