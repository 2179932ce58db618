"""What people said about threads, in `sessions/<thread>/metadata.jsonl` of the state folder.

One line a patch, and each file only grows; the newest value of a field counts.  Torn lines, and
lines of a version that we do not know, are passed over.  This is the durable copy: the index holds
none (STO-10, STO-11).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import orjson

from codex_checkpoints.threads.lines import append_line, look_at
from codex_checkpoints.threads.names import Given, moment, stamp

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
            look = look_at(path)
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
