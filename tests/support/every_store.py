"""A driver a store, for the laws that every store of histories keeps (TEA-8).

The laws need few verbs: begin a history, append to it at a version, read it, describe it, list and
delete.  A driver translates them, and decides nothing.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

import orjson
from attrs import evolve, frozen
from pg8000.native import identifier

from codex_checkpoints.service.reading.session_file import bytes_between
from codex_checkpoints.storage.contract import (
    Conflict,
    Copied,
    Patch,
    Rollout,
    StorageFailed,
    ThreadNotFound,
    ThreadQuery,
    UnreadableSource,
)
from codex_checkpoints.storage.remote.contract import (
    NO_PREFIX,
    AppendResult,
    Elsewhere,
    Head,
    HistoryStore,
    RemoteDamaged,
    RemoteError,
    RemoteRefused,
    RemoteUnreachable,
    RowQuery,
    Segment,
    SessionRow,
)
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore
from disks import make_read_only
from homes import thread
from postgres_server import ADMIN, Team, cutting
from stores import AT, Shop, meta, new, told
from two_machines import segments


class Stale(Exception):
    """An append was refused: the history is not at the version that its writer knew."""


@frozen
class Version:
    """The version of a history, and its size in bytes then."""

    text: str
    size: int


@frozen
class Facts:
    """The description of a session in a list."""

    updated_at: str = "2026-11-21"
    cwd: str | None = None
    task: str | None = None


Page = tuple[list[int], str | None]
"""The sessions of a page, and the cursor of the next one."""


class EveryStore(ABC):
    """A store as the laws see it: a session is a number, a line has no LF."""

    gone: tuple[type[Exception], ...]
    """The documented errors of a store or session that is not there."""
    refused: type[Exception]
    """The documented error of a store that permits no writing."""
    unreadable: type[Exception]
    """The documented error of reading a history that was deleted."""

    @abstractmethod
    def another(self) -> "EveryStore":
        """Return the same store as another process has it."""

    @abstractmethod
    def begin(self, number: int) -> bytes:
        """Begin a history; return its bytes."""

    @abstractmethod
    def version(self, number: int) -> Version | None:
        """Return the version of a history, None without one."""

    @abstractmethod
    def append(self, number: int, lines: Sequence[bytes], version: Version) -> None:
        """Append lines to a history at a version; raises `Stale`."""

    @abstractmethod
    def read(self, number: int, version: Version, start: int = 0) -> bytes:
        """Read a history as of a version, from any offset on."""

    @abstractmethod
    def cut(self, number: int, lines: Sequence[bytes], share: float) -> None:
        """Append as a writer does that dies after a share of the bytes."""

    @abstractmethod
    def describe(self, number: int, facts: Facts) -> None:
        """Describe a session; its title stays."""

    @abstractmethod
    def rename(self, number: int, title: str | None) -> None:
        """Give a session a title, or take it away."""

    @abstractmethod
    def title(self, number: int) -> str | None:
        """Return the title of a session."""

    @abstractmethod
    def page(
        self, limit: int | None, cursor: str | None, cwd: str | None = None, text: str | None = None
    ) -> Page:
        """Return a page of the sessions that fit a query."""

    @abstractmethod
    def delete(self, number: int) -> bool:
        """Delete a session; return whether it existed."""

    @abstractmethod
    def lose(self) -> AbstractContextManager[None]:
        """Take the store away while a block runs."""

    @abstractmethod
    def protect(self) -> AbstractContextManager[None]:
        """Let nothing be written while a block runs."""

    def now(self, number: int) -> Version:
        """Return the version of a history that exists."""
        found = self.version(number)
        assert found is not None
        return found

    def grow(self, number: int, *lines: bytes) -> Version:
        """Append lines to a history as it is; return its version then."""
        self.append(number, lines, self.now(number))
        return self.now(number)

    def whole(self, number: int) -> bytes:
        """Read a history from its beginning to its end."""
        return self.read(number, self.now(number))

    def listed(self, cwd: str | None = None, text: str | None = None) -> list[int]:
        """Return all sessions that fit a query."""
        found, cursor = self.page(None, None, cwd, text)
        assert cursor is None
        return found


class Threads(EveryStore):
    """A store of Codex's threads; `folder` is that of files."""

    gone = (UnreadableSource, ThreadNotFound)
    refused = StorageFailed
    unreadable = UnreadableSource

    def __init__(self, shop: Shop, folder: Path | None = None) -> None:
        self._shop, self._store, self._folder = shop, shop.store, folder
        self._paths: dict[int, str] = {}

    def another(self) -> EveryStore:
        made = type(self)(self._shop, self._folder)
        made._store, made._paths = self._shop.another(), self._paths  # noqa: SLF001 - its class
        return made

    def begin(self, number: int) -> bytes:
        self._paths[number] = self._store.create_thread(new(number, "legacy"), AT).path
        return self.whole(number)

    def version(self, number: int) -> Version | None:
        found = self._rollout(number)
        return None if found is None else Version(found.version, found.size)

    def append(self, number: int, lines: Sequence[bytes], version: Version) -> None:
        try:
            self._store.append_items(thread(number), [*map(Copied, lines)], AT, version.text)
        except Conflict as error:
            raise Stale from error

    def read(self, number: int, version: Version, start: int = 0) -> bytes:
        path = self._store.places().get(thread(number)) or self._paths[number]
        return bytes_between(self._store.reader, path, start, version.size)

    def cut(self, number: int, lines: Sequence[bytes], share: float) -> None:
        data = joined(lines)
        self._shop.put(thread(number), self.whole(number) + data[: int(share * len(data))])

    def describe(self, number: int, facts: Facts) -> None:
        rollout = self._rollout(number)
        assert rollout is not None
        row = told(rollout, updated_at=facts.updated_at, cwd=facts.cwd, task=facts.task)
        self._store.update_thread_metadata([(thread(number), Patch(row=row))])

    def rename(self, number: int, title: str | None) -> None:
        self._store.update_thread_metadata([(thread(number), Patch(name=title))])

    def title(self, number: int) -> str | None:
        return self._store.read_thread(thread(number)).name

    def page(
        self, limit: int | None, cursor: str | None, cwd: str | None = None, text: str | None = None
    ) -> Page:
        query = ThreadQuery(cwd=cwd, search=text, limit=limit, cursor=cursor)
        found = self._store.list_threads(query)
        return [_number(each.row.session_id) for each in found.items], found.next_cursor

    def delete(self, number: int) -> bool:
        try:
            self._store.delete_thread(thread(number))
        except ThreadNotFound:
            return False
        return True

    @contextlib.contextmanager
    def lose(self) -> Generator[None]:
        with _moved_away(self._home / "sessions"):
            yield

    @contextlib.contextmanager
    def protect(self) -> Generator[None]:
        with _read_only(self._home.parent):
            yield

    @property
    def _home(self) -> Path:
        assert self._folder is not None, "memory neither vanishes nor refuses"
        return self._folder / "codex"

    def _rollout(self, number: int) -> Rollout | None:
        path = self._store.places().get(thread(number))
        return None if path is None else self._store.stat([path])[path]


class Pushed(EveryStore):
    """A store of pushed sessions, here in memory."""

    gone = (RemoteUnreachable,)
    refused = RemoteRefused
    unreadable = RemoteDamaged

    def __init__(self, store: HistoryStore) -> None:
        self._store = store
        self._written: dict[Version, bytes] = {}
        """Histories as this process wrote them, since a pusher has all bytes before its next."""

    def another(self) -> EveryStore:
        return type(self)(self._store)

    def begin(self, number: int) -> bytes:
        data = orjson.dumps({"type": "session_meta", "payload": meta(number)}) + b"\n"
        (segment,) = segments(data)
        assert self._store.append(thread(number), 1, segment) is AppendResult.TAKEN
        self._written[self.now(number)] = data
        return data

    def version(self, number: int) -> Version | None:
        head = self._store.head(thread(number))
        return None if head is None else _version_at(head)

    def append(self, number: int, lines: Sequence[bytes], version: Version) -> None:
        segment, generation = self._segment(number, lines, version), _head_at(version).generation
        answer = self._store.append(thread(number), generation, segment)
        if isinstance(answer, Elsewhere):
            head = self._store.head(thread(number))
            assert head is not None
            assert (answer.size, answer.prefix) == (head.size, head.prefix)
        if answer is not AppendResult.TAKEN:
            raise Stale
        now = _version_at(Head(generation, segment.end, segment.after))
        self._written[now] = self._written[version] + joined(lines)

    def read(self, number: int, version: Version, start: int = 0) -> bytes:
        return b"".join(self._store.read(thread(number), _head_at(version)))[start:]

    def cut(self, number: int, lines: Sequence[bytes], share: float) -> None:
        """Do nothing: the segment is stored at once."""

    def describe(self, number: int, facts: Facts) -> None:
        row = self._row(number)
        its = {"updated_at": facts.updated_at, "cwd": facts.cwd, "task": facts.task}
        self._store.put(evolve(row, revision=row.revision + 1, **its), b"")

    def rename(self, number: int, title: str | None) -> None:
        row = self._row(number)
        self._store.put(evolve(row, revision=row.revision + 1, title=title), b"")

    def title(self, number: int) -> str | None:
        return self._row(number).title

    def page(
        self, limit: int | None, cursor: str | None, cwd: str | None = None, text: str | None = None
    ) -> Page:
        found = self._store.rows(limit, cursor, RowQuery(cwd=cwd, text=text))
        return [_number(each.row.session_id) for each in found.rows], found.next_cursor

    def delete(self, number: int) -> bool:
        return self._store.delete(thread(number))

    def lose(self) -> AbstractContextManager[None]:
        raise AssertionError("memory does not vanish")

    def protect(self) -> AbstractContextManager[None]:
        raise AssertionError("memory refuses nothing")

    def _row(self, number: int) -> SessionRow:
        """Return the row of a session, or a new one."""
        there = self._store.row(thread(number))
        if there is not None:
            return there.row
        head = self._store.head(thread(number)) or Head(1, 0, NO_PREFIX)
        ends = (head.generation, head.size, head.prefix, 1)
        return SessionRow(thread(number), *ends, ADMIN, "laptop", "1")

    def _segment(self, number: int, lines: Sequence[bytes], version: Version) -> Segment:
        if version not in self._written:
            self._written[version] = self.read(number, version)
        (segment,) = segments(self._written[version] + joined(lines), version.size)
        return segment


class PushedToFolder(Pushed):
    """A folder with pushed sessions."""

    def __init__(self, store: FolderHistoryStore) -> None:
        super().__init__(store)
        self._place = Path(store.place)

    def another(self) -> Self:
        return type(self)(FolderHistoryStore(str(self._place)))

    def cut(self, number: int, lines: Sequence[bytes], share: float) -> None:
        body = self._segment(number, lines, self.now(number)).body
        folder = self._place / "sessions" / thread(number) / "000001"
        (folder / ".0123456789abcdef.tmp").write_bytes(body[: int(share * len(body))])

    @contextlib.contextmanager
    def lose(self) -> Generator[None]:
        with _moved_away(self._place):
            yield

    @contextlib.contextmanager
    def protect(self) -> Generator[None]:
        with _read_only(self._place.parent):
            yield


class PushedToServer(Pushed):
    """A database with pushed sessions."""

    def __init__(self, database: Team) -> None:
        super().__init__(database.store(ADMIN))
        self._database = database

    def another(self) -> Self:
        return type(self)(self._database)

    def cut(self, number: int, lines: Sequence[bytes], share: float) -> None:
        segment = self._segment(number, lines, self.now(number))
        server = self._database.server
        # A connection and the statements of an append take some thousand bytes.
        with cutting(server.port, int(share * (len(segment.body) + 6_000))) as port:
            url = evolve(server, port=port).url(ADMIN, self._database.name)
            dying = PostgresHistoryStore(url, {})
            with contextlib.closing(dying), contextlib.suppress(RemoteError):
                dying.append(thread(number), 1, segment)

    @contextlib.contextmanager
    def lose(self) -> Generator[None]:
        self._database.server.stop()
        try:
            yield
        finally:
            self._database.server.start()

    @contextlib.contextmanager
    def protect(self) -> Generator[None]:
        self._permit("on")
        try:
            yield
        finally:
            self._permit("off")

    def _permit(self, read_only: str) -> None:
        with self._database.server.connect(ADMIN, "postgres") as admin:
            name = identifier(self._database.name)
            admin.run(f"alter database {name} set default_transaction_read_only = {read_only}")
        self._store.close()


def joined(lines: Sequence[bytes]) -> bytes:
    """Return lines, each with its LF."""
    return b"".join(line + b"\n" for line in lines)


def _version_at(head: Head) -> Version:
    return Version(f"{head.generation}.{head.size}.{head.prefix}", head.size)


def _head_at(version: Version) -> Head:
    generation, size, prefix = version.text.split(".")
    return Head(int(generation), int(size), prefix)


def _number(session_id: str) -> int:
    return int(session_id.rpartition("-")[2])


@contextlib.contextmanager
def _moved_away(folder: Path) -> Generator[None]:
    away = folder.with_name("away")
    folder.rename(away)
    try:
        yield
    finally:
        away.rename(folder)


@contextlib.contextmanager
def _read_only(disk: Path) -> Generator[None]:
    make_read_only(disk)
    try:
        yield
    finally:
        make_read_only(disk, permit=True)
