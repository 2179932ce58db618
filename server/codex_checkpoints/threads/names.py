"""The names that Codex keeps for threads, in `session_index.jsonl`.

The file only grows and is Codex's own: it is read, and a rename of a legacy thread adds one line,
as Codex itself would (interfaces, "Files").  Codex 0.169 goes by the list unless it has named the
thread itself: then by its database, which we never write, until that is made anew.  Which source
counts for us is said in `given_names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

import orjson

from codex_checkpoints.threads import lines
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
            look = lines.look_at(self.path)
            if self._look != look:
                with open(self.path, "rb") as file:
                    self._given = dict(_given_names(file))
                self._look = look
        except OSError:
            self._given, self._look = {}, None
        return self._given

    def check(self) -> None:
        """Raise `OSError` where Codex could not be told of a rename, as things are."""
        lines.check(self.path)

    def add(self, thread_id: str, given: Given) -> None:
        """Tell Codex of a rename by one more line; raises `OSError`."""
        line = {
            "id": thread_id,
            "thread_name": given.text or "",
            "updated_at": stamp(given.at),
        }
        lines.append_line(self.path, orjson.dumps(line))


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
