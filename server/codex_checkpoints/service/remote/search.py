"""Searches the prompts, answers, commands and paths of the sessions in a remote.

A server finds the texts by an index of their words.  The sessions in a folder are read: their bytes
first, and then the lines of those that contain the text.  Both give the same hits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import groupby

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.redaction import one_line
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.portable.said import (
    SAID_KINDS,
    Said,
    has_words,
    words_of_query,
)
from codex_checkpoints.core.portable.said_reader import SaidReader
from codex_checkpoints.core.recall.search import Needle
from codex_checkpoints.service.reading.session_row import utc
from codex_checkpoints.service.refusal import Cancelled, misfit
from codex_checkpoints.service.search import SearchHit
from codex_checkpoints.storage.byte_search import ByteSearch
from codex_checkpoints.storage.remote.contract import (
    ALL_ROWS,
    FoundSaid,
    HistoryStore,
    RemoteDamaged,
    RowQuery,
    SessionRow,
    TeamStore,
)


@frozen
class RemoteHits:
    """The hits in one session of a remote, newest first."""

    row: SessionRow
    hits: tuple[SearchHit, ...]


@frozen
class RemoteSearch:
    """A search for a text of one line in the sessions that a query selects.

    Case counts if the text has a capital.  Each of its words is found at the beginning of a word.
    `kinds` are some of `SAID_KINDS`, none for all.
    """

    text: str
    query: RowQuery = ALL_ROWS
    kinds: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse `invalid_payload` for a text or a kind that cannot be searched for."""
        if not set(self.kinds) <= set(SAID_KINDS):
            raise misfit(f"kinds: must be some of {', '.join(SAID_KINDS)}")
        if "\n" in self.text or "\r" in self.text:
            raise misfit("text: must be one line")
        if not words_of_query(self.text):
            raise misfit("text: must have a letter or a digit")

    def hits(
        self, store: HistoryStore, ignored: Ignoring, is_cancelled: Callable[[], bool] = bool
    ) -> Iterator[RemoteHits]:
        """Yield the hits by session, the latest session first.

        A session that cannot be read is skipped.  Raises `RemoteError`, `Cancelled`.
        """
        needle, words = Needle.of(self.text), words_of_query(self.text)
        if isinstance(store, TeamStore):
            found = store.said(words)
        else:
            found = self._read(store, needle, ignored)
        selected = (each for each in found if self.query.selects(each.row))
        for _, of_session in groupby(selected, lambda each: (each.row.session_id, each.row.owner)):
            if is_cancelled():
                raise Cancelled
            texts = [*of_session]
            hits = tuple(hit for each in texts for hit in self._of(each.said, needle, words))
            if hits:
                yield RemoteHits(texts[0].row, hits)

    def _of(self, said: Said, needle: Needle, words: tuple[str, ...]) -> Iterator[SearchHit]:
        """Yield the lines of a text that are hits."""
        if self.kinds and said.kind not in self.kinds:
            return
        lines = [*needle.lines(said.text)]
        if lines and has_words(said.text, words):
            for line in lines:
                where = said.turn, said.turn_id, said.seq, said.kind
                yield SearchHit(*where, one_line(line), utc(said.at))

    def _read(self, store: HistoryStore, needle: Needle, ignored: Ignoring) -> Iterator[FoundSaid]:
        """Read the texts of the sessions whose bytes contain the text."""
        with closing(ByteSearch(needle.pieces, folded=needle.folded)) as pieces:
            for row in (each.row for each in store.rows(query=self.query).rows):
                with suppress(RemoteDamaged):
                    pieces.begin()
                    portions = store.read(row.session_id, row.head)
                    if not any(map(pieces.found, portions)):
                        continue
                    for said in _texts(store, row, needle, ignored):
                        yield FoundSaid(row, said)


def _texts(
    store: HistoryStore, row: SessionRow, needle: Needle, ignored: Ignoring
) -> Iterator[Said]:
    """Yield the texts of a session that contain another, newest first; raises `RemoteDamaged`."""
    kept = deque[tuple[Said, bool]]()

    def take(said: Said, is_copy: bool) -> None:  # noqa: FBT001 - as `SaidReader` has it
        if needle.find(said.text) >= 0:
            kept.appendleft((said, is_copy))

    reader = SaidReader(ignored, take)
    for data in store.read(row.session_id, row.head):
        reader.feed(data)
    reader.close()
    numbers, typed = reader.numbers(), reader.typed
    for said, is_copy in kept:
        if not (is_copy and typed):
            yield evolve(said, turn=numbers.get(said.turn_id or ""))
