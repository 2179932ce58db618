"""What Codex would send when a session is resumed, and the windows it went through.

The core reads a session twice (`core.history`); here the bytes are brought to it, those of the
bases first.  A session may grow in between: the second pass reads no further than the first did.
Nothing is kept and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import evolve, frozen

from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.core.compaction.source import Inspection, Retracing
from codex_checkpoints.core.history.choice import Choice, choose
from codex_checkpoints.core.history.envelope import Place
from codex_checkpoints.core.history.lines import Lines
from codex_checkpoints.core.history.marks import Outline
from codex_checkpoints.core.history.rebuild import Rebuild
from codex_checkpoints.core.history.reconstruct import History, Window, history_of, windows_of
from codex_checkpoints.core.history.survey import Survey
from codex_checkpoints.core.history.windows import Fragment
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.core.rollout.items import HistoryBase
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.session_file import bases_below
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Feed, Row, UnreadableSource

_TRIES = 3

Hear = Callable[[bytes], object]
"""Take bytes on their way to somebody else."""


def deaf(_data: bytes) -> None:
    """Take no notice."""


@frozen
class _Part:
    """One rollout of a chain, and where it is cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


@frozen
class _Surveyed:
    outline: Outline
    choice: Choice
    parts: tuple[_Part, ...]
    """The chain, the oldest first, cut where the first pass ended."""


@frozen
class Traced:
    """A history with the place of each item, and what else its compaction asks of the session.

    Its lines are those from `from_seq` to `to_seq`; `instructions` are the tokens of the base
    instructions, `head` the payload of the session's own head, `last_report` that of the newest
    `token_count`.
    """

    history: History
    past: tuple[Past, ...]
    from_seq: int
    to_seq: int
    instructions: int
    head: Json
    last_report: Json | None


class Histories:
    """The histories of sessions, as of now."""

    def __init__(self, sessions: Sessions) -> None:
        """Work on these sessions; nothing is read yet."""
        self._sessions = sessions
        self._reader = sessions.catalogue.reader

    def history(self, session: str) -> History:
        """Return what Codex would send on resume, without what the next turn adds (JUN-2).

        Raises the refusals of `Sessions.find`, and `unreadable_source`.
        """
        row = self._sessions.find(session)
        for _ in range(_TRIES):
            surveyed = self._survey(row)
            rebuild = Rebuild(surveyed.choice, surveyed.outline.start)
            self._read(row, rebuild, surveyed.parts, rebuild.start)
            if rebuild.found:
                return history_of(surveyed.outline, surveyed.choice, rebuild.result())
        raise _unreadable(row, "it was replaced while it was read")

    def windows(self, session: str) -> tuple[Window, ...]:
        """Return the windows of a session that still count, the first one first (WIN-12).

        What a file does not tell of a window that we opened, our own record does.
        """
        row = self._sessions.find(session)
        surveyed = self._survey(row)
        made = ours(self._sessions, row)
        return tuple(
            each
            if (record := made.get(each.window_id)) is None
            else evolve(each, strategy=record.strategy, trigger=record.placement)
            for each in windows_of(surveyed.outline, surveyed.choice)
        )

    def fragment(self, session: str) -> Fragment:
        """Return what a context-budget fragment says of the current window (WIN-4).

        Refuses as `windows`, and `missing_context` where no record tells the ids.
        """
        row = self._sessions.find(session)
        chain = self._survey(row).choice.chain
        if chain.first is None or chain.current is None:
            message = f"the session file of {row.session_id} does not tell the ids of its windows"
            raise Refusal("missing_context", message, {"sessionId": row.session_id})
        return Fragment(row.session_id, chain.first, chain.current, chain.previous)

    def traced(self, row: Row, end: int | None = None, shift: int = 0, hear: Hear = deaf) -> Traced:
        """Return a history for its compaction, up to a byte of its own file where one is named.

        `shift` is what the `seq` of the session is ahead of its lines; `hear` is given the bytes of
        its own file as they are read, each once and in order.  Raises `unreadable_source`.
        """
        survey = Inspection()
        surveyed = self._surveyed(row, survey, end, hear)
        rebuild = Retracing(surveyed.choice, surveyed.outline.start, shift)
        self._read(row, rebuild, surveyed.parts, rebuild.start)
        if not rebuild.found:
            raise _unreadable(row, "it was replaced while it was read")
        outline, choice = surveyed.outline, surveyed.choice
        return Traced(
            history_of(outline, choice, rebuild.result()),
            rebuild.past(),
            from_seq=shift + (outline.opened_seq if choice.base is None else choice.base.seq),
            to_seq=shift + outline.seq,
            instructions=outline.instructions,
            head=survey.head,
            last_report=survey.last_report,
        )

    def _survey(self, row: Row) -> _Surveyed:
        return self._surveyed(row, Survey())

    def _surveyed(
        self, row: Row, survey: Survey, end: int | None = None, hear: Hear = deaf
    ) -> _Surveyed:
        locate = self._sessions.catalogue.locator(row.path)
        try:
            below, _ = bases_below(self._reader, row.path, locate)
            chain = [self._base(path, cut) for path, cut in reversed(below)]
        except UnreadableSource as error:
            raise _unreadable(row, str(error)) from error
        parts = self._read(row, survey, (*chain, _Part(row.path, None, end)), Place(0, 0), hear)
        outline = survey.outline()
        return _Surveyed(outline, choose(outline), parts)

    def _base(self, path: str, cut: HistoryBase) -> _Part:
        """Return a base: ordinals say where it is cut; one without ordinals is cut by its bytes."""
        head = head_of(self._reader.first_line(path))
        numbered = head is not None and head.paginated and cut.end_ordinal is not None
        return _Part(path, cut.end_ordinal) if numbered else _Part(path, None, cut.end_offset)

    def _read(
        self,
        row: Row,
        taker: _Taker,
        parts: tuple[_Part, ...],
        start: Place,
        hear: Hear = deaf,
    ) -> tuple[_Part, ...]:
        """Read a chain from a place on; return it cut where it ends now."""
        lines, read = taker.lines, list(parts[: start.file])
        for number, part in enumerate(parts[start.file :], start.file):
            if number > start.file:
                lines.next_file(part.ordinal)
            else:
                lines.begin_file(part.ordinal)
            offset = start.offset if number == start.file else 0
            own = hear is not deaf and part.path == row.path
            feed = _overheard(lines.feed, hear) if own else lines.feed
            try:
                reached, rest = self._reader.read(part.path, offset, feed, part.end)
            except UnreadableSource as error:
                if part.path == row.path:
                    raise _unreadable(row, str(error)) from error
                read.append(part)
                continue  # what can be read is read; the diagnosis tells of the rest
            if own:
                hear(rest)
            if not lines.stopped:
                lines.close(rest)
            read.append(_Part(part.path, part.ordinal, reached + len(rest)))
        return tuple(read)


def ours(sessions: Sessions, row: Row) -> dict[str | None, Installed]:
    """Return the compactions that we installed in a session or below it, by the window's id."""
    made: dict[str | None, Installed] = {}
    for session_id in (*sessions.catalogue.below(row), row.session_id):
        made.update(sessions.compactions.by_window(session_id))
    made.pop(None, None)
    return made


class _Taker(Protocol):
    lines: Lines


def _overheard(feed: Feed, hear: Hear) -> Feed:
    """Return `feed` with somebody else listening to what it consumes."""

    def both(data: bytes) -> int:
        consumed = feed(data)
        hear(data if consumed == len(data) else data[:consumed])
        return consumed

    return both


def _unreadable(row: Row, reason: str) -> Refusal:
    facts = {"path": row.path, "reason": reason}
    return Refusal("unreadable_source", f"{row.path}: {reason}", facts)
