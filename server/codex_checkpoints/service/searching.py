"""Search what was said and done in all sessions: the files are read as they are (RCL-2).

The bytes of a session's files are searched first; where they hold the text, its lines are read.
That reads files and nothing else, so it may run on any thread; what belongs to the sessions is
looked up before and after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attrs import frozen

from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.text import one_line
from codex_checkpoints.core.digest import recall, searching
from codex_checkpoints.core.digest.ignoring import Ignoring
from codex_checkpoints.core.digest.recall import Entry
from codex_checkpoints.core.digest.searching import Needle, kind_of
from codex_checkpoints.core.rollout.reader import Line, is_whole
from codex_checkpoints.service.reading.catalogue import utc
from codex_checkpoints.service.reading.chains import copied_lines
from codex_checkpoints.service.reading.pace import PacedReader
from codex_checkpoints.service.reading.session_file import open_session
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.byte_search import ByteSearch
from codex_checkpoints.storage.contract import OURS, Row, ThreadQuery, UnreadableSource

KINDS = ("user", "assistant", "command", "output", "file")

_BATCH = 1 << 25
"""Bytes that are searched at a time, more or less."""


@frozen
class SearchHit:
    """A line that contains the text, and where it stands.

    `turn` is null for a turn that was taken back, and before the first one.  `at` is the time of
    the record, `updated_at` that of the session's last one.
    """

    session_id: str
    title: str | None
    cwd: str | None
    updated_at: str | None
    turn: int | None
    turn_id: str | None
    seq: int
    kind: str
    line: str
    at: str | None


@frozen
class _Found:
    """The entries of a session that hold the text, oldest first, and the numbers of its turns."""

    entries: Sequence[Entry]
    numbers: dict[str, int]


class Search:
    """One search over the sessions of a home.

    `kind` is one of `KINDS`, or None for all but `file`.  Refuses `invalid_payload`.
    """

    def __init__(self, sessions: Sessions, text: str, kind: str | None = None) -> None:
        problem = _problem(text, kind)
        if problem is not None:
            raise misfit(problem)
        self._sessions = sessions
        self._kind = kind
        path = text.strip().replace("\\", "/").removeprefix("./").rstrip("/")
        if kind == "file" and not path:
            raise misfit("text: must name a file")
        self._needle = Needle.of(path if kind == "file" else text)
        name = Needle.of(path.rsplit("/", 1)[-1]) if kind == "file" else self._needle
        self._bytes = ByteSearch(name.pieces, folded=name.folded)
        self._reader = PacedReader(sessions.catalogue.store.reader)
        self._reader.pace = sessions.pace
        self._searched: frozenset[str] = frozenset()

    def close(self) -> None:
        """Release what is held."""
        self._bytes.close()

    def batches(
        self, session: str | None, cwd: str | None, *, archived: bool
    ) -> Iterator[Sequence[Row]]:
        """Yield sessions in order, newest first, as many as are searched at a time.

        They are those of a folder, or the one that is named, which is searched with all that it
        carries on; refuses as `Sessions.find`.
        """
        if session is not None:
            rows = [self._sessions.find(session)]
        else:
            query = ThreadQuery(cwd, archived=archived)
            rows = [each.row for each in self._sessions.catalogue.store.list_threads(query).items]
        self._searched = frozenset(row.session_id for row in rows)
        self._reader.pace.expect(sum(row.rollout.size for row in rows))
        batch, size = list[Row](), 0
        for row in rows:
            batch.append(row)
            size += row.rollout.size
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def scanning(self, rows: Sequence[Row]) -> Callable[[], list[Row]]:
        """Return what finds, on any thread, the sessions whose bytes hold the text."""
        below = self._sessions.catalogue.chains.below
        files = [
            (row, [row.path, *(each.path for each in below(row) if self._is_own(each, row))])
            for row in rows
        ]
        return lambda: [row for row, paths in files if any(map(self._is_in, paths))]

    def _is_own(self, base: Row, row: Row) -> bool:
        """Return whether the lines of a base are searched with a session that builds on it."""
        return base.session_id == row.session_id or base.session_id not in self._searched

    def _is_in(self, path: str) -> bool:
        found = False

        def feed(data: bytes) -> int:
            nonlocal found
            found = found or self._bytes.found(data)
            return 0 if found else len(data)

        self._bytes.begin()
        with contextlib.suppress(UnreadableSource):  # `doctor` reports it
            self._reader.read(path, 0, feed)
        return found

    def reading(self, row: Row) -> Callable[[], _Found]:
        """Return what reads, on any thread, the entries of a session that hold the text."""
        # Most searches read few sessions or none, and what that loads would make all of them slow.
        catalogue = self._sessions.catalogue
        below = tuple(catalogue.chains.below(row))
        places = {each.rollout_id: each.path for each in below}
        # The base of all comes first.
        others = {
            place for place, each in enumerate(reversed(below)) if not self._is_own(each, row)
        }
        ours = {each.session_id for each in (row, *below) if each.originator == OURS}
        seeds = {each: catalogue.seeds(each) for each in ours}
        source = catalogue.current().get(row.forked_from or "")
        copied = not below and source is not None and source.session_id in self._searched
        ignored = Ignoring(self._sessions.settings.digest_ignore)

        def read() -> _Found:
            replay, until = Replay(), 0
            if copied and source is not None:
                is_ours = row.originator == OURS
                count = copied_lines(self._reader, row.path, source.path, ours=is_ours).lines
                until = 1 + count
            entries = self._entries(
                replay, ignored, lambda line: line.file not in others and line.position > until
            )
            opened = open_session(
                self._reader,
                row.path,
                lambda rollout_id: places.get(rollout_id.lower()),
                replay=replay,
                seeds=seeds.get,
            )
            if opened.tail and is_whole(opened.tail):
                replay.close(opened.tail)
            counted = enumerate(replay.state.turns.counting(), 1)
            numbers = {turn.turn_id: number for number, turn in counted}
            typed = replay.state.typed
            return _Found([each for each in entries() if not (typed and each.in_history)], numbers)

        return read

    def _entries(
        self, replay: Replay, ignored: Ignoring, is_own: Callable[[Line], bool]
    ) -> Callable[[], Sequence[Entry]]:
        """Have the entries of a session collected; return what returns them then."""
        needle = self._needle
        if self._kind == "file":
            uses = searching.FileUses(replay, needle, is_own)
            return lambda: tuple(uses.entries.values())
        replay.passes_over = searching.passing_over(needle.may_hit)
        kind, kind_of = self._kind, searching.kind_of
        found = recall.Recall(
            replay,
            lambda entry: recall.says_more(entry) and kind in {None, kind_of(entry)},
            partial(searching.with_lines, needle=needle, ignored=ignored),
            recall.MOST_HITS,
            lambda line: is_own(line) and needle.may_hit(line.raw),
            scripts=True,
        )
        return lambda: found.entries

    def hits(self, row: Row, found: _Found) -> Iterator[SearchHit]:
        """Yield the hits of a session, newest first."""
        title = self._sessions.title(row)
        for entry in reversed(found.entries):
            for line in entry.text.split("\n"):
                yield SearchHit(
                    row.session_id,
                    title,
                    row.cwd,
                    row.updated_at,
                    found.numbers.get(entry.turn_id or ""),
                    entry.turn_id,
                    entry.seq,
                    kind_of(entry),
                    one_line(line),
                    utc(entry.stamp),
                )


def _problem(text: str, kind: str | None) -> str | None:
    """Return what is wrong with the params of a search, None where nothing is."""
    if kind is not None and kind not in KINDS:
        return f"kind: must be one of {', '.join(KINDS)}"
    if not one_line(text):
        return "text: must not be empty"
    if "\n" in text or "\r" in text:
        return "text: must be one line"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "text: must be Unicode"
    return None
