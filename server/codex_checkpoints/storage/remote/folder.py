"""Stores pushed sessions in a folder on a synced or mounted disk.

```text
codex-checkpoints-remote.json                    format and version of the store
sessions/<session>/<generation>/<segment>.zst    a segment; its name has both ends and prefixes
sessions/<session>/rows/<order>-<hash>.json      a row on the first line, the records after it
```

It uses no lock, since a lock does not work between two machines that sync.  Each file is written
once, under a temporary name, and then renamed; nothing is changed in place.  So two machines never
write the same file with different bytes, and a file that has not arrived yet is only missing.

Segments form a graph: from a size and a prefix, one or more segments may lead further.  The head of
a generation is the farthest point reachable from its beginning.  Two pushers may cut differently;
both ways lead to the same point.  Of several rows the one that sorts last counts, regardless of
clocks.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final

import orjson
from attrs import frozen

from codex_checkpoints.core.converters import read_or_none, stored
from codex_checkpoints.core.fields import object_of
from codex_checkpoints.storage import atomic_files
from codex_checkpoints.storage.remote.contract import (
    ALL_ROWS,
    FORMAT_VERSION,
    NO_PREFIX,
    SEGMENT,
    Answer,
    AppendResult,
    CheckedHistory,
    Elsewhere,
    Head,
    RemoteError,
    RemoteFull,
    RemoteNewer,
    RemoteRefused,
    RemoteUnreachable,
    RowPage,
    RowQuery,
    Segment,
    SessionRow,
    StoredRow,
    damaged,
    is_session_id,
    page_of,
)
from codex_checkpoints.storage.remote.packing import unpacked

FORMAT: Final = "codex-checkpoints-remote"
FORMAT_FILE: Final = f"{FORMAT}.json"
_SESSIONS = "sessions"
_ROWS = "rows"

_LARGEST_FORMAT = 1 << 16
_LARGEST_BODY = 2 * SEGMENT
_LONGEST_ROW = 1 << 18
_LARGEST_ROW_FILE = 1 << 23

_GENERATION = re.compile(r"[0-9]{6}")
_SEGMENT = re.compile(r"([0-9a-f]{1,14})-([0-9a-f]{16})-([0-9a-f]{1,14})-([0-9a-f]{64})\.zst")
_ROW = re.compile(r"([0-9]{6})-([0-9]{15})-([0-9]{6})-([0-9a-f]{64})\.json")

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}

Point = tuple[int, str]
"""A size and the prefix there."""


@frozen
class _Name:
    """The fields in the name of a segment's file; `before` is the beginning of a prefix."""

    start: int
    before: str
    end: int
    after: str
    file: str

    def follows(self, point: Point) -> bool:
        """Return whether the segment begins at a point."""
        return self.start == point[0] and self.before == point[1][: len(self.before)]


class FolderHistoryStore:
    """Implements `contract.HistoryStore` in a folder."""

    def __init__(self, folder: str) -> None:
        """Take an absolute path; nothing is read or created."""
        self.place = folder
        self._is_interrupted = False

    def close(self) -> None:
        pass

    def interrupt(self) -> None:
        """Make all later calls fail; the running one ends soon, unless the disk hangs."""
        self._is_interrupted = True

    def is_made(self) -> bool:
        with self._working():
            try:
                data = atomic_files.read(os.path.join(self.place, FORMAT_FILE), _LARGEST_FORMAT)
            except FileNotFoundError:
                return False
            except atomic_files.TooLarge:
                data = b""
        found = object_of(_json(data))
        version = found.get("version")
        if found.get("format") != FORMAT or type(version) is not int:
            raise RemoteUnreachable(f"{FORMAT_FILE} in {self.place} was not made by this program")
        if version > FORMAT_VERSION:
            raise RemoteNewer(f"a newer codex-checkpoints made the remote in {self.place}")
        return True

    def make(self) -> None:
        with self._working():
            _make_folder(self.place)
            data = orjson.dumps({"format": FORMAT, "version": FORMAT_VERSION}) + b"\n"
            with suppress(FileExistsError):
                atomic_files.publish(os.path.join(self.place, FORMAT_FILE), (data,))

    def head(self, session_id: str) -> Head | None:
        with self._opened():
            generations = _generations(self._session(session_id))
            if not generations:
                return None
            number = max(generations)
            return Head(number, *max(_points(_names(generations[number]))))

    def append(self, session_id: str, generation: int, segment: Segment) -> Answer:
        with self._opened():
            folder = os.path.join(self._session(session_id), f"{generation:06}")
            names = _names(folder)
            if segment.start and not names:
                return AppendResult.UNKNOWN
            point = max(_points(names))
            if point != (segment.start, segment.before):
                return Elsewhere(*point)
            _make_folder(folder)
            with suppress(FileExistsError):  # another pusher wrote the same bytes just now
                atomic_files.publish(os.path.join(folder, _file_of(segment)), (segment.body,))
            return AppendResult.TAKEN

    def read(self, session_id: str, head: Head) -> Iterator[bytes]:
        history = CheckedHistory()
        with self._opened():
            folder = os.path.join(self._session(session_id), f"{head.generation:06}")
            names = _way(_names(folder), (head.size, head.prefix))
        for name in names:
            yield history.add(*self._segment(folder, name, history.prefix))
        history.end(head)

    def _segment(self, folder: str, name: _Name, prefix: str) -> tuple[Segment, bytes]:
        with self._working():
            try:
                body = atomic_files.read(os.path.join(folder, name.file), _LARGEST_BODY)
            except FileNotFoundError:
                raise damaged("a segment is missing") from None
            except atomic_files.TooLarge:
                raise damaged("a segment is larger than any segment") from None
        segment = Segment(name.start, name.end, prefix, name.after, body)
        return segment, unpacked(segment)

    def put(self, row: SessionRow, records: bytes) -> None:
        with self._opened():
            folder = os.path.join(self._session(row.session_id), _ROWS)
            newest = max(_row_files(folder), default="")
            if newest and _order_in(newest) >= row.order:
                return
            data = orjson.dumps(stored.unstructure(row)) + b"\n" + records
            name = f"{row.generation:06}-{row.size:015}-{row.revision:06}"
            file = f"{name}-{sha256(data).hexdigest()}.json"
            _make_folder(folder)
            with suppress(FileExistsError):
                atomic_files.publish(os.path.join(folder, file), (data,))
            for older in _row_files(folder):
                if older < file:
                    atomic_files.discard(os.path.join(folder, older))
            _clear_temporary(self._session(row.session_id))

    def row(self, session_id: str) -> StoredRow | None:
        with self._opened():
            return self._row(session_id)

    def _row(self, session_id: str) -> StoredRow | None:
        """Return the newest complete row; one that is still being synced is skipped."""
        folder = os.path.join(self._session(session_id), _ROWS)
        for file in sorted(_row_files(folder), reverse=True):
            with suppress(FileNotFoundError):
                row = _row_in(os.path.join(folder, file))
                if row is not None and row.session_id == session_id:
                    return StoredRow(row, file.removesuffix(".json"))
        return None

    def records(self, session_id: str, version: str) -> bytes:
        file = f"{version}.json"
        if _ROW.fullmatch(file) is None:
            raise damaged("its row has an impossible name")
        with self._opened():
            try:
                path = os.path.join(self._session(session_id), _ROWS, file)
                data = atomic_files.read(path, _LARGEST_ROW_FILE)
            except FileNotFoundError:
                raise damaged("its row has changed since it was read") from None
            except atomic_files.TooLarge:
                raise damaged("its row is larger than any row") from None
        if sha256(data).hexdigest() != version.rpartition("-")[2]:
            raise damaged("its row holds other bytes than its name says")
        return data.partition(b"\n")[2]

    def rows(
        self, limit: int | None = None, cursor: str | None = None, query: RowQuery = ALL_ROWS
    ) -> RowPage:
        with self._opened():
            ids = filter(is_session_id, _listed(os.path.join(self.place, _SESSIONS)))
            found = {each: self._row(each) for each in ids}
            unreadable = [
                each
                for each, row in found.items()
                if row is None and _row_files(os.path.join(self._session(each), _ROWS))
            ]
        rows = (row for row in found.values() if row is not None)
        return page_of(rows, limit, cursor, query, len(unreadable))

    def delete(self, session_id: str) -> bool:
        with self._opened():
            folder = self._session(session_id)
            if not os.path.isdir(folder):
                return False
            # Rows go first: an interrupted deletion leaves a session that is not listed.
            for part in (os.path.join(folder, _ROWS), folder):
                with suppress(FileNotFoundError):
                    shutil.rmtree(part)
            atomic_files.settle_folder(os.path.dirname(folder))
            return True

    def _session(self, session_id: str) -> str:
        if not is_session_id(session_id):
            raise RemoteRefused("the id of the session cannot name a folder")
        return os.path.join(self.place, _SESSIONS, session_id)

    @contextmanager
    def _opened(self) -> Generator[None]:
        """Run a block on a store that exists; raises `RemoteError`."""
        if not self.is_made():
            raise RemoteUnreachable(f"there is no remote in {self.place}")
        with self._working():
            yield

    @contextmanager
    def _working(self) -> Generator[None]:
        """Turn an `OSError` into a `RemoteError`, and refuse if it was interrupted."""
        if self._is_interrupted:
            raise RemoteUnreachable(f"the work with the remote in {self.place} was interrupted")
        try:
            yield
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> RemoteError:
        reason = atomic_files.reason_of(error)
        if error.errno in _FULL:
            return RemoteFull(f"the remote in {self.place} is full: {reason}")
        if error.errno in _NOT_PERMITTED:
            return RemoteRefused(f"the remote in {self.place} does not permit it: {reason}")
        return RemoteUnreachable(f"the remote in {self.place} cannot be used: {reason}")


def _json(data: bytes) -> object:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(data)
    return None


def _listed(folder: str) -> list[str]:
    """Return the names in a folder, none if the folder does not exist; raises `OSError`."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.listdir(folder)
    return []


def _make_folder(folder: str) -> None:
    """Create a folder and its parents, for the owner alone; raises `OSError`."""
    if not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder))
        atomic_files.make_folder(folder, 0o700)


def _generations(folder: str) -> dict[int, str]:
    """Return the folders of the generations of a session, by number."""
    return {
        int(name): os.path.join(folder, name)
        for name in _listed(folder)
        if _GENERATION.fullmatch(name)
    }


def _names(folder: str) -> list[_Name]:
    """Return the segments in the folder of a generation."""
    found: list[_Name] = []
    for file in _listed(folder):
        fields = _SEGMENT.fullmatch(file)
        if fields is not None:
            start, before, end, after = fields.groups()
            name = _Name(int(start, 16), before, int(end, 16), after, file)
            if name.start < name.end:
                found.append(name)
    return found


def _file_of(segment: Segment) -> str:
    return f"{segment.start:x}-{segment.before[:16]}-{segment.end:x}-{segment.after}.zst"


def _points(names: Iterable[_Name]) -> dict[Point, tuple[Point, _Name] | None]:
    """Return the points reachable from the beginning, each with its last step."""
    by_start: dict[int, list[_Name]] = {}
    for name in names:
        by_start.setdefault(name.start, []).append(name)
    beginning: Point = 0, NO_PREFIX
    reached: dict[Point, tuple[Point, _Name] | None] = {beginning: None}
    left: list[Point] = [beginning]
    while left:
        point = left.pop()
        for name in by_start.get(point[0], ()):
            following = name.end, name.after
            if name.follows(point) and following not in reached:
                reached[following] = point, name
                left.append(following)
    return reached


def _way(names: Iterable[_Name], end: Point) -> list[_Name]:
    """Return the segments that lead from the beginning to a point; raises `RemoteDamaged`."""
    reached = _points(names)
    if end not in reached:
        raise damaged("a segment is missing")
    way: list[_Name] = []
    while (step := reached[end]) is not None:
        end, name = step
        way.append(name)
    return way[::-1]


def _row_files(folder: str) -> list[str]:
    return [file for file in _listed(folder) if _ROW.fullmatch(file)]


def _order_in(file: str) -> tuple[int, int, int]:
    generation, size, revision, _ = file.split("-")
    return int(generation), int(size), int(revision)


def _row_in(path: str) -> SessionRow | None:
    """Return the row in a file, None if it is incomplete; raises `OSError`."""
    with open(path, "rb", opener=atomic_files.regular) as file:
        line = file.readline(_LONGEST_ROW)
    if not line.endswith(b"\n"):
        return None
    row = read_or_none(stored, _json(line), SessionRow)
    fits = row is not None and row.order == _order_in(os.path.basename(path))
    return row if fits else None


def _clear_temporary(folder: str) -> None:
    """Remove the temporary files of killed pushers."""
    for part in _listed(folder):
        for name in _listed(os.path.join(folder, part)):
            if name.startswith(".") and name.endswith(".tmp"):
                atomic_files.clear(os.path.join(folder, part, name))
