"""Rebuilds the history that Codex would send when a session is resumed.

`core.agents.codex.history` reads a session twice; this module supplies the bytes.  The session may
grow in between, so the second pass stops where the first did.  Nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from codex_checkpoints.core.agents.codex.history.rebuild import (
    Choice,
    Rebuild,
    RebuiltHistory,
    choose,
    history_of,
)
from codex_checkpoints.core.agents.codex.history.scan import FirstPass, HistoryScan
from codex_checkpoints.core.agents.codex.history.windows import Fragment
from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.agents.codex.reader import LinePlace, Reader, ReadPosition
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.fields import Json
from codex_checkpoints.service.reading.session_file import (
    bases_below,
    find_turn,
)
from codex_checkpoints.service.refusal import Refusal, reading_file, unreadable
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import (
    RolloutReader,
    Row,
    UnreadableSource,
)

_TRIES = 3


@frozen
class ScannedHistory:
    """The result of a first pass: the start of the history, and the chain to read again."""

    outline: FirstPass
    choice: Choice
    parts: tuple[ChainPart, ...]
    """The chain, oldest first, cut at the end of the first pass."""

    @classmethod
    def of(cls, outline: FirstPass, parts: tuple[ChainPart, ...]) -> ScannedHistory:
        """Return the result of a first pass over a chain."""
        return cls(outline, choose(outline), parts)


@frozen
class Traced:
    """A history, and the other inputs of its compaction.

    `head` is the payload of the session's own head, `last_report` of the newest `token_count`,
    `last_settings` of the newest `turn_context`, `thread_settings` of the newest
    `thread_settings_applied`.  `surveyed` is the first pass, `in_front` the one over the part
    before its cut.
    """

    history: RebuiltHistory
    surveyed: ScannedHistory
    head: Json
    last_report: Json | None
    last_settings: Json | None
    thread_settings: Json | None
    in_front: ScannedHistory | None

    @property
    def outline(self) -> FirstPass:
        """Return the outline of the first pass."""
        return self.surveyed.outline

    @property
    def from_seq(self) -> int:
        """Return the first line of the history; the last is the outline's."""
        base = self.surveyed.choice.base
        return self.outline.opened_seq if base is None else base.seq


class Histories:
    """The histories of sessions, as of now."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._reader = sessions.catalogue.reader

    def history(self, session: str) -> RebuiltHistory:
        """Return the history that Codex would send on resume, without the next turn's (JUN-2)."""
        row = self._sessions.find(session)
        for _ in range(_TRIES):
            surveyed = self.first_pass(row)
            rebuild = self._rebuilt(row, surveyed)
            if rebuild.found:
                return history_of(surveyed.outline, rebuild)
        raise _replaced(row)

    def fragment(self, session: str) -> Fragment:
        """Return the ids of the current window (WIN-4); refuses `missing_context` without any."""
        row = self._sessions.find(session)
        chain = self.first_pass(row).choice.chain
        if chain.first is None or chain.current is None:
            message = f"the session file of {row.session_id} does not name its windows"
            raise Refusal("missing_context", message, {"sessionId": row.session_id})
        return Fragment(row.session_id, chain.first, chain.current, chain.previous)

    def traced(
        self, row: Row, end: int | None = None, cut: int | None = None, seed: int | None = None
    ) -> Traced:
        """Return a history for its compaction, up to byte `end` of its own file.

        The part before the byte `cut` is also found; `seed` is the `seq` of the checkpoint that the
        session begins with.  Raises `unreadable_source`.
        """
        survey, parts = self._survey(row, end, cut, seed)
        return self.trace(row, survey, parts, cut)

    def trace(
        self, row: Row, survey: HistoryScan, parts: tuple[ChainPart, ...], cut: int | None
    ) -> Traced:
        """Return the same from a scan of these parts of a chain."""
        surveyed = ScannedHistory.of(survey.outline(), parts)
        above = None if cut is None else (*parts[:-1], ChainPart(row.path, None, cut))
        return Traced(
            self.surveyed(row, surveyed),
            surveyed,
            survey.head,
            survey.last_report,
            survey.last_settings,
            survey.thread_settings,
            None if above is None else ScannedHistory.of(survey.in_front, above),
        )

    def surveyed(self, row: Row, surveyed: ScannedHistory) -> RebuiltHistory:
        """Return the history after a first pass; raises `unreadable_source`."""
        rebuild = self._rebuilt(row, surveyed)
        if not rebuild.found:
            raise _replaced(row)
        return history_of(surveyed.outline, rebuild)

    def first_pass(self, row: Row) -> ScannedHistory:
        """Read a session once; return the start of its history; raises `unreadable_source`."""
        survey, parts = self._survey(row)
        return ScannedHistory.of(survey.outline(), parts)

    def _survey(
        self, row: Row, end: int | None = None, cut: int | None = None, seed: int | None = None
    ) -> tuple[HistoryScan, tuple[ChainPart, ...]]:
        """Read the first pass; return the chain cut where it ended."""
        path = row.path
        with reading_file(row):
            below = self.parts_below(path)
            survey = survey_of(Reader(scale=ReadPosition(seed=seed)), below, cut)
            parts = (*below, ChainPart(path, None, end))
            return survey, read_parts(self._reader, survey.reader, parts, LinePlace(0, 0), path)

    def parts_below(self, path: str) -> tuple[ChainPart, ...]:
        """Return the base rollouts, oldest first; raises `UnreadableSource`."""
        below, _ = bases_below(self._reader, path, self._sessions.catalogue.chains.locator(path))
        parts: list[ChainPart] = []
        for base, cut in reversed(below):
            head = head_of(self._reader.first_line(base))
            # A base without ordinals is cut at a byte.
            numbered = head is not None and head.paginated and cut.end_ordinal is not None
            end = None if numbered else cut.end_offset
            parts.append(ChainPart(base, cut.end_ordinal if numbered else None, end))
        return tuple(parts)

    def _rebuilt(self, row: Row, surveyed: ScannedHistory) -> Rebuild:
        """Read the second pass."""
        rebuild = Rebuild(surveyed.choice, surveyed.outline)
        with reading_file(row):
            read_parts(self._reader, rebuild.reader, surveyed.parts, rebuild.start, row.path)
        return rebuild


def _replaced(row: Row) -> Refusal:
    return unreadable(row.path, "it was replaced while it was read")


def state_at(
    sessions: Sessions, session: str, turn: str | int | None
) -> tuple[str, str | None, Checkpoint]:
    """Return the state at the end of a turn or now (AGN-11), with the ids of session and turn."""
    row, opened = sessions.open(session)
    if turn is None:
        return row.session_id, None, sessions.projections.current(opened)
    found = find_turn(opened.now(), turn, row.session_id).turn_id
    return row.session_id, found, sessions.show(session, found).checkpoint


@frozen
class ChainPart:
    """One rollout of a chain, and its cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


def survey_of(reader: Reader, below: Sequence[ChainPart], cut: int | None) -> HistoryScan:
    """Return a survey that joins a reader, for a file above some bases; `cut` is a byte of it."""
    return HistoryScan(reader, None if cut is None else LinePlace(len(below), cut))


def read_parts(
    reader: RolloutReader, lines: Reader, parts: tuple[ChainPart, ...], start: LinePlace, own: str
) -> tuple[ChainPart, ...]:
    """Read the `lines` of a chain from a position on; return it cut at its current end.

    Raises `UnreadableSource` for the session's own file; an unreadable base is skipped.
    """
    read = list(parts[: start.file])
    for number, part in enumerate(parts[start.file :], start.file):
        if number > start.file:
            lines.next_file(part.ordinal)
        else:
            lines.begin_file(part.ordinal)
        offset = start.offset if number == start.file else 0
        try:
            reached, rest = reader.read(part.path, offset, lines.feed, part.end)
        except UnreadableSource:
            if part.path == own:
                raise
            read.append(part)
            continue  # the doctor reports it
        if not lines.stopped:
            lines.close(rest)
        read.append(ChainPart(part.path, part.ordinal, reached + len(rest)))
    return tuple(read)
