"""Stores pushed sessions in the memory of this process: the contract without a disk."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import Factory, define

from codex_checkpoints.storage.remote.contract import (
    ALL_ROWS,
    NO_PREFIX,
    Answer,
    AppendResult,
    CheckedHistory,
    Elsewhere,
    Head,
    RowPage,
    RowQuery,
    Segment,
    SessionRow,
    StoredRow,
    damaged,
    page_of,
)
from codex_checkpoints.storage.remote.packing import unpacked


@define
class _Session:
    generations: dict[int, list[Segment]] = Factory(dict[int, list[Segment]])
    row: SessionRow | None = None
    records: bytes = b""
    changes: int = 0

    def end(self, generation: int) -> tuple[int, str]:
        """Return the size and the prefix of a generation."""
        last = self.generations.get(generation, [])[-1:]
        return (last[0].end, last[0].after) if last else (0, NO_PREFIX)


class MemoryHistoryStore:
    """Implements `contract.HistoryStore` in memory."""

    def __init__(self, place: str = "memory") -> None:
        self.place = place
        self._made = False
        self._sessions: dict[str, _Session] = {}

    def close(self) -> None:
        pass

    def interrupt(self) -> None:
        pass

    def is_made(self) -> bool:
        return self._made

    def make(self) -> None:
        self._made = True

    def head(self, session_id: str) -> Head | None:
        session = self._sessions.get(session_id)
        if session is None or not session.generations:
            return None
        newest = max(session.generations)
        return Head(newest, *session.end(newest))

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        session = self._sessions.get(session_id, _Session())
        if generation not in session.generations and segment.start:
            return AppendResult.UNKNOWN
        size, prefix = session.end(generation)
        if (segment.start, segment.before) != (size, prefix):
            return Elsewhere(size, prefix)
        session.generations.setdefault(generation, []).append(segment)
        session.changes += 1
        self._sessions[session_id] = session
        return AppendResult.TAKEN

    def read(self, session_id: str, head: Head) -> Iterator[bytes]:
        session = self._sessions.get(session_id)
        history = CheckedHistory()
        for segment in [] if session is None else session.generations.get(head.generation, []):
            if history.size >= head.size:
                break
            yield history.add(segment, unpacked(segment))
        history.end(head)

    def put(self, row: SessionRow, records: bytes) -> None:
        session = self._sessions.setdefault(row.session_id, _Session())
        if session.row is None or session.row.order < row.order:
            session.row, session.records = row, records
            session.changes += 1

    def row(self, session_id: str) -> StoredRow | None:
        session = self._sessions.get(session_id)
        if session is None or session.row is None:
            return None
        return StoredRow(session.row, str(session.changes))

    def records(self, session_id: str, version: str) -> bytes:
        session = self._sessions.get(session_id)
        if session is None or version != str(session.changes):
            raise damaged("its row has changed since it was read")
        return session.records

    def rows(
        self, limit: int | None = None, cursor: str | None = None, query: RowQuery = ALL_ROWS
    ) -> RowPage:
        found = (self.row(session_id) for session_id in self._sessions)
        return page_of((each for each in found if each is not None), limit, cursor, query)

    def delete(self, session_id: str) -> bool:
        return self._sessions.pop(session_id, None) is not None
