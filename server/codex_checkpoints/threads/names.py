"""The names that Codex keeps for threads, in `session_index.jsonl`.

The file only grows and is Codex's own; it is read here and never written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import orjson


class ThreadNames:
    """The names of one home; the newest line of a thread counts."""

    def __init__(self, path: str) -> None:
        """Name the file; it is read when asked, and again when it changed."""
        self._path = path
        self._look: tuple[int, int] | None = None
        self._given: dict[str, str] = {}

    def all(self) -> Mapping[str, str]:
        """Return thread id to name; an empty name is one that was taken back."""
        try:
            look = os.stat(self._path)
            if self._look != (look.st_size, look.st_mtime_ns):
                with open(self._path, "rb") as file:
                    self._given = dict(_given_names(file))
                self._look = (look.st_size, look.st_mtime_ns)
        except OSError:
            self._given, self._look = {}, None
        return self._given


def _given_names(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    for line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        match value:
            case {"id": str(thread_id), **rest}:
                name = rest.get("thread_name")
                yield thread_id, name if isinstance(name, str) else ""
            case _:
                pass
