"""Searches the messages and actions of all sessions, without an index (RCL-2).

The bytes of a session's files are searched first; if they contain the text, its lines are read.
This only reads files, so it may run on any thread; data of the sessions is looked up before and
after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from attrs import frozen

from codex_checkpoints.core.agents.codex.reader import is_whole
from codex_checkpoints.core.agents.codex.skipping import passing_over
from codex_checkpoints.core.checkpoint.redaction import one_line
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.recall import search
from codex_checkpoints.core.recall.entries import MOST_HITS, Entry, Recall, says_more
from codex_checkpoints.core.recall.search import Needle, kind_of
from codex_checkpoints.service.progress import ProgressReader
from codex_checkpoints.service.reading.rollout_bases import copied_lines
from codex_checkpoints.service.reading.session_file import open_session
from codex_checkpoints.service.reading.session_row import utc
from codex_checkpoints.service.refusal import misfit
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import SessionSummary
from codex_checkpoints.storage.byte_search import ByteSearch
from codex_checkpoints.storage.contract import OURS, Row, ThreadQuery, UnreadableSource

FILE = "file"
"""The kind that searches for uses of a file; it excludes all other kinds."""

KINDS = ("user", "assistant", "command", "output", "patch", "error", FILE)

Rows = Sequence[Row]

_BATCH = 1 << 25
"""Approximate number of bytes to search at a time."""


@frozen
class SearchHit:
    """A line that contains the text, and its place.

    `turn` is null for a turn that was rolled back, and before the first one.  `at` is the time of
    the record.
    """

    turn: int | None
    turn_id: str | None
    seq: int
    kind: str
    line: str
    at: str | None


@frozen
class SessionHits:
    """The hits in one session, newest first; `count` includes those above the limit."""

    session: SessionSummary
    count: int
    hits: tuple[SearchHit, ...]


@frozen
class FoundEntries:
    """The entries of a session with the text, oldest first, and the numbers of its turns."""

    entries: Sequence[Entry]
    numbers: dict[str, int]

    @property
    def count(self) -> int:
        """Return the number of lines that contain the text."""
        return sum(each.lines for each in self.entries)


class Search:
    """One search over the sessions of a home.

    `kinds` are some of `KINDS`, or none for all but `FILE`.  Refuses `invalid_payload`.
    """

    def __init__(self, sessions: Sessions, text: str, kinds: Sequence[str] = ()) -> None:
        problem = _problem(text, kinds)
        if problem is not None:
            raise misfit(problem)
        self._sessions = sessions
        self._kinds = frozenset(kinds or KINDS) - {FILE}
        path = text.strip().replace("\\", "/").removeprefix("./").rstrip("/")
        if not self._kinds and not path:
            raise misfit("text: must name a file")
        self._needle = Needle.of(text if self._kinds else path)
        name = self._needle if self._kinds else Needle.of(path.rsplit("/", 1)[-1])
        self._bytes = ByteSearch(name.pieces, folded=name.folded)
        self._reader = ProgressReader(sessions.catalogue.store.reader)
        self._reader.progress = sessions.progress
        self._searched: frozenset[str] = frozenset()
        self._describe: Callable[[Row], SessionSummary] | None = None

    def close(self) -> None:
        """Release all resources."""
        self._bytes.close()

    def batches(self, query: ThreadQuery, session: str | None, *, carried: bool) -> Iterator[Rows]:
        """Yield sessions in batches to search, newest first.

        They are the sessions of a query, or the named one.  The named one is searched with all its
        bases, or, unless `carried`, only the part that a search of the query finds in it.  Refuses
        as `Sessions.find`.
        """
        named = None if session is None else self._sessions.find(session)
        rows = [named] if named and carried else self._listed(query)
        self._searched = frozenset(row.session_id for row in rows)
        rows = rows if named is None else [named]
        self._reader.progress.expect(sum(row.rollout.size for row in rows))
        batch, size = list[Row](), 0
        for row in rows:
            batch.append(row)
            size += row.rollout.size
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _listed(self, query: ThreadQuery) -> list[Row]:
        return [each.row for each in self._sessions.catalogue.store.list_threads(query).items]

    def scanning(self, rows: Rows) -> Callable[[], list[Row]]:
        """Return a function for any thread that finds the sessions whose bytes contain the text."""
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

    def reading(self, row: Row) -> Callable[[], FoundEntries]:
        """Return a function for any thread that reads the entries of a session with the text."""
        # Most searches read few sessions or none, and its imports would make all of them slow.
        catalogue = self._sessions.catalogue
        below = tuple(catalogue.chains.below(row))
        places = {each.rollout_id: each.path for each in below}
        # The oldest base comes first.
        others = {
            place for place, each in enumerate(reversed(below)) if not self._is_own(each, row)
        }
        ours = {each.session_id for each in (row, *below) if each.originator == OURS}
        seeds = {each: catalogue.seeds(each) for each in ours}
        source = catalogue.current().get(row.forked_from or "")
        copied = not below and source is not None and source.session_id in self._searched
        ignored = Ignoring(self._sessions.settings.digest_ignore)

        def read() -> FoundEntries:
            replay, until = Replay(), 0
            if copied and source is not None:
                is_ours = row.originator == OURS
                count = copied_lines(self._reader, row.path, source.path, ours=is_ours).lines
                until = 1 + count
            entries = self._entries(
                replay, ignored, lambda file, position: file not in others and position > until
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
            kept = [each for each in entries() if not (typed and each.in_history)]
            return FoundEntries(kept, numbers)

        return read

    def _entries(
        self, replay: Replay, ignored: Ignoring, is_own: Callable[[int, int], bool]
    ) -> Callable[[], Sequence[Entry]]:
        """Collect the entries of a session; return a function that returns them afterwards."""
        needle = self._needle
        if not self._kinds:
            uses = search.FileUses(
                replay, needle, lambda record: is_own(record.file, record.position)
            )
            return lambda: tuple(uses.entries.values())
        replay.passes_over = passing_over(needle.may_hit)
        kinds = self._kinds
        found = Recall(
            replay,
            lambda entry: says_more(entry) and kind_of(entry) in kinds,
            partial(search.with_lines, needle=needle, ignored=ignored),
            MOST_HITS,
            lambda source: is_own(source.file, source.position) and needle.may_hit(source.raw),
            scripts=True,
        )
        return lambda: found.entries

    def hits(self, row: Row, found: FoundEntries, most: int | None) -> SessionHits:
        """Return the hits of a session, at most this many."""
        if self._describe is None:
            self._describe = self._sessions.summaries.describing()
        return SessionHits(self._describe(row), found.count, tuple(islice(_hits(found), most)))


def _hits(found: FoundEntries) -> Iterator[SearchHit]:
    """Yield the hits of a session, newest first."""
    for entry in reversed(found.entries):
        for line in entry.text.split("\n"):
            yield SearchHit(
                found.numbers.get(entry.turn_id or ""),
                entry.turn_id,
                entry.seq,
                kind_of(entry),
                one_line(line),
                utc(entry.stamp),
            )


def _problem(text: str, kinds: Sequence[str]) -> str | None:
    """Return the problem of a search's params, None if there is none."""
    if not set(kinds) <= set(KINDS):
        return f"kinds: must be some of {', '.join(KINDS)}"
    if FILE in kinds and len(kinds) > 1:
        return f"kinds: {FILE} goes with no other"
    if not one_line(text):
        return "text: must not be empty"
    if "\n" in text or "\r" in text:
        return "text: must be one line"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "text: must be Unicode"
    return None
