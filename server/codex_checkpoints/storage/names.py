"""What threads are called, and which of those who may name them counts (STO-5).

A name given through a patch lies in `sessions/<thread>/metadata.jsonl` of the state folder: one
line a patch, the newest counts (STO-10, STO-11).  A later line of Codex's own `session_index.jsonl`
goes before it; a name that the history holds comes last.

Codex's list only grows.  A rename of a legacy thread adds one line, as Codex itself would.  Codex
0.169 goes by the list unless it has named the thread itself: then by its database, which we never
write, until that is made anew.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime

import orjson

from codex_checkpoints.storage import durable
from codex_checkpoints.storage.contract import KeptHereAlone, Row, StorageFailed
from codex_checkpoints.storage.durable import append_line
from codex_checkpoints.values import frozen

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Given:
    """What a thread was called, and when; an empty or missing text is a name taken back."""

    text: str | None
    at: datetime


class ThreadNames:
    """The names of one home; the newest line of a thread counts."""

    def __init__(self, path: str) -> None:
        """Name the file; it is read when asked, and again when it changed."""
        self.path = path
        self._look: tuple[int, int, int] | None = None
        self._given: dict[str, Given] = {}

    def all(self) -> Mapping[str, Given]:
        """Return what each thread was called last, by its id."""
        try:
            look = _look_at(self.path)
            if self._look != look:
                with open(self.path, "rb") as file:
                    self._given = dict(_given_names(file))
                self._look = look
        except OSError:
            self._given, self._look = {}, None
        return self._given

    def check(self) -> None:
        """Raise `OSError` where Codex could not be told of a rename, as things are."""
        _check(self.path)

    def add(self, thread_id: str, given: Given) -> None:
        """Tell Codex of a rename by one more line; raises `OSError`."""
        line = {
            "id": thread_id,
            "thread_name": given.text or "",
            "updated_at": stamp(given.at),
        }
        append_line(self.path, orjson.dumps(line))


def stamp(when: datetime) -> str:
    """Return a moment as UTC with milliseconds and `Z`."""
    text = when.astimezone(UTC).isoformat(timespec="milliseconds")
    return f"{text.removesuffix('+00:00')}Z"


def moment(text: object) -> datetime:
    """Return the moment of a time stamp, in milliseconds; one without meaning is of long ago."""
    if isinstance(text, str):
        try:
            when = datetime.fromisoformat(text)
            when = when.replace(microsecond=when.microsecond // 1000 * 1000)
            return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    return _LONG_AGO


def _given_names(told: Iterable[bytes]) -> Iterator[tuple[str, Given]]:
    for line in told:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        match value:
            case {"id": str(thread_id), **rest}:
                name = rest.get("thread_name")
                text = name if isinstance(name, str) else None
                yield thread_id, Given(text, moment(rest.get("updated_at")))
            case _:
                pass


_FILE = "metadata.jsonl"
_THREAD_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")


class Metadata:
    """The patches of all threads below one state folder."""

    def __init__(self, state_dir: str) -> None:
        """Name the folder; nothing is read or made yet."""
        self._folder = os.path.join(state_dir, "sessions")
        self._seen: dict[str, tuple[tuple[int, int, int], Given | None]] = {}

    def name(self, thread_id: str) -> Given | None:
        """Return the name given last, None where none was ever given."""
        path = self._path(thread_id)
        if path is None:
            return None
        try:
            look = _look_at(path)
            seen = self._seen.get(thread_id)
            if seen is None or seen[0] != look:
                with open(path, "rb") as file:
                    seen = self._seen[thread_id] = (look, _last_name(file))
        except OSError:
            self._seen.pop(thread_id, None)
            return None
        return seen[1]

    def names(self) -> dict[str, Given]:
        """Return the names given last, by thread id."""
        found = ((thread_id, self.name(thread_id)) for thread_id in self._threads())
        return {thread_id: given for thread_id, given in found if given is not None}

    def give(self, thread_id: str, given: Given) -> None:
        """Give a name or take it back; durable when this returns.  Raises `OSError`."""
        path = self._path(thread_id)
        if path is None:
            raise OSError(None, "this session id cannot name a folder")
        line = orjson.dumps({"at": stamp(given.at), "name": given.text})
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            append_line(path, line)
        except FileNotFoundError:
            # Another process has just removed the folder, since it was empty.
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            append_line(path, line)

    def _path(self, thread_id: str) -> str | None:
        if _THREAD_ID.fullmatch(thread_id) is None:
            return None
        return os.path.join(self._folder, thread_id, _FILE)

    def _threads(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError:
            return []


def _last_name(lines: Iterable[bytes]) -> Given | None:
    last: Given | None = None
    for given in _names(lines):
        last = given
    return last


def _names(lines: Iterable[bytes]) -> Iterator[Given]:
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        match value:
            case {"name": str() | None as name, **rest}:
                yield Given(name, moment(rest.get("at")))
            case _:
                pass


_UNSEEN = "the name is kept, but Codex does not see it: session_index.jsonl"


class GivenNames:
    """The names of the threads of one Codex home."""

    def __init__(self, codex_home: str, state_dir: str, clock: Callable[[], str]) -> None:
        """Name the places; `clock` says when a name is given: UTC, ISO 8601."""
        self._ours = Metadata(state_dir)
        self._codex = ThreadNames(os.path.join(codex_home, "session_index.jsonl"))
        self._clock = clock

    def of(self, row: Row) -> str | None:
        """Return what the thread of a row is called."""
        thread_id = row.session_id
        return _called(row, self._ours.name(thread_id), self._codex.all().get(thread_id))

    def all(self) -> Callable[[Row], str | None]:
        """Return the same for many: each file is looked at once, now."""
        ours, codex = self._ours.names(), self._codex.all()
        return lambda row: _called(row, ours.get(row.session_id), codex.get(row.session_id))

    def give(self, thread_id: str, text: str | None, *, legacy: bool) -> None:
        """Name a thread or take its name back, durable on return.

        Of a legacy thread Codex keeps the name in its list, so it is told there; names of others it
        keeps in its database, which is never written.  Raises `StorageFailed`, also where that list
        cannot be written as things are: then nothing is; and `KeptHereAlone` where only it failed.
        """
        if legacy:
            with _refusing(StorageFailed, "the name is not kept: session_index.jsonl"):
                self._codex.check()
        now, told = moment(self._clock()), self._codex.all().get(thread_id)
        # Where clocks differ, or went back: what a person says now counts all the same.
        given = Given(text, now if told is None else max(now, told.at))
        with _refusing(StorageFailed, "the name is not kept: metadata.jsonl"):
            self._ours.give(thread_id, given)
        if legacy:
            with _refusing(KeptHereAlone, _UNSEEN):
                self._codex.add(thread_id, given)


@contextlib.contextmanager
def _refusing(failure: type[StorageFailed], what: str) -> Generator[None]:
    """Turn what the system refuses about a file into a failure that says what became of a name."""
    try:
        yield
    except OSError as error:
        message = f"{what} cannot be written: {error.strerror or error}"
        raise failure(message) from error


def _called(row: Row, ours: Given | None, codex: Given | None) -> str | None:
    if codex is not None and (ours is None or codex.at > ours.at):
        return codex.text or None  # an empty name in Codex's own list clears it
    return row.recorded_name if ours is None else ours.text


def _look_at(path: str) -> tuple[int, int, int]:
    """Return what must be equal for a file to be unchanged.

    Raises `OSError`, also for what is no file: opening it might never return.
    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return found.st_size, found.st_mtime_ns, found.st_ino


def _check(path: str) -> None:
    """Raise `OSError` where no line could be appended as things are; nothing is written or made."""
    try:
        os.close(durable.open_to_append(path))
    except FileNotFoundError:
        if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
