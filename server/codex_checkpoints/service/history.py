"""What Codex would send when a session is resumed, and the windows of a session.

The core reads a session twice (`core.history`); this brings the bytes.  The session may grow in
between, so the second pass stops where the first did.  Nothing is written.
"""

from __future__ import annotations

from codex_checkpoints import logs
from codex_checkpoints.core.compaction.installed import Retracing
from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.history.rebuild import (
    Choice,
    History,
    Rebuild,
    Window,
    choose,
    history_of,
    windows_of,
)
from codex_checkpoints.core.history.survey import Outline, Survey
from codex_checkpoints.core.history.windows import Fragment
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.core.rollout.reader import Place
from codex_checkpoints.service.kept import Opened
from codex_checkpoints.service.reading.first_pass import (
    ChainPart,
    FirstPass,
    Follower,
    Taker,
    parts_below,
    read_parts,
)
from codex_checkpoints.service.reading.session_file import Fingerprint
from codex_checkpoints.service.refusal import Refusal, unreadable
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import OURS, Row, UnreadableSource
from codex_checkpoints.storage.durable import StorageError
from codex_checkpoints.values import evolve, frozen

_TRIES = 3


@frozen
class Surveyed:
    """The result of a first pass: where the history begins, and the chain to read again."""

    outline: Outline
    choice: Choice
    parts: tuple[ChainPart, ...]
    """The chain, the oldest first, cut where the first pass ended."""


@frozen
class Traced:
    """A history with the place of each item, and what else its compaction needs.

    The lines are those from `from_seq` to `to_seq`, of which `shift` is the lead of the seed;
    `instructions` are the tokens of the base instructions, `head` is the payload of the session's
    own head, `last_report` that of the newest `token_count`, `last_settings` that of the newest
    `turn_context`.  `surveyed` is the first pass, `in_front` that of what lies in front of its cut.
    """

    history: History
    past: tuple[Past, ...]
    shift: int
    from_seq: int
    to_seq: int
    surveyed: Surveyed
    instructions: int
    head: Json
    last_report: Json | None
    last_settings: Json | None
    in_front: Surveyed | None

    @property
    def outline(self) -> Outline:
        """Return the outline of the first pass."""
        return self.surveyed.outline


class Histories:
    """The histories of sessions, as of now."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._reader = sessions.catalogue.reader

    def history(self, session: str) -> History:
        """Return what Codex would send on resume, without what the next turn adds (JUN-2)."""
        row = self._sessions.find(session)
        for _ in range(_TRIES):
            surveyed = self._survey(row)
            rebuild = Rebuild(surveyed.choice, surveyed.outline.start)
            self._read(row, rebuild, surveyed.parts, rebuild.start)
            if rebuild.found:
                return history_of(surveyed.outline, rebuild)
        raise _replaced(row)

    def windows(self, session: str) -> tuple[Window, ...]:
        """Return the windows that still count, the first one first, ours as recorded (WIN-12)."""
        row = self._sessions.find(session)
        surveyed = self._survey(row)
        made, shift = ours(self._sessions, row), self._shift(row, surveyed.parts[0])
        found = windows_of(surveyed.outline, surveyed.choice)
        windows = (evolve(each, opened_seq=each.opened_seq + shift) for each in found)
        return tuple(
            each if (opened := made.get(each.window_id)) is None else _with_record(opened, each)
            for each in windows
        )

    def undone(self, session: str) -> tuple[str, ...]:
        """Return the ids of the windows opened by undoing a compaction (JUN-25)."""
        made = ours(self._sessions, self._sessions.find(session))
        return tuple(each for each, opened in made.items() if each and opened.by is None)

    def fragment(self, session: str) -> Fragment:
        """Return the ids of the current window (WIN-4); refuses `missing_context` without any."""
        row = self._sessions.find(session)
        chain = self._survey(row).choice.chain
        if chain.first is None or chain.current is None:
            message = f"the session file of {row.session_id} does not tell the ids of its windows"
            raise Refusal("missing_context", message, {"sessionId": row.session_id})
        return Fragment(row.session_id, chain.first, chain.current, chain.previous)

    def traced(
        self, row: Row, end: int | None = None, shift: int = 0, first: FirstPass | None = None
    ) -> Traced:
        """Return a history for its compaction, up to byte `end` of its own file.

        `shift` is the lead of the session's `seq` over its lines; `first` is a pass to continue.
        Raises `unreadable_source`.
        """
        first = self.first_pass(row.path) if first is None else first
        try:
            survey, parts = first.read_on(end)
        except UnreadableSource as error:
            raise unreadable(row.path, str(error)) from error
        surveyed = _surveyed(survey.outline(), parts)
        outline, choice = surveyed.outline, surveyed.choice
        retracing = Retracing(choice, outline, shift)
        self._rebuild(row, retracing.rebuild, parts)
        above = None if first.cut is None else (*parts[:-1], ChainPart(row.path, None, first.cut))
        return Traced(
            history_of(outline, retracing.rebuild),
            retracing.past(),
            shift=shift,
            from_seq=shift + (outline.opened_seq if choice.base is None else choice.base.seq),
            to_seq=shift + outline.seq,
            surveyed=surveyed,
            instructions=outline.instructions,
            head=survey.head,
            last_report=survey.last_report,
            last_settings=survey.last_settings,
            in_front=None if above is None else _surveyed(survey.in_front, above),
        )

    def items(self, row: Row, surveyed: Surveyed) -> tuple[Json, ...]:
        """Return the items of a surveyed history; raises `unreadable_source`."""
        rebuild = Rebuild(surveyed.choice, surveyed.outline.start)
        self._rebuild(row, rebuild, surveyed.parts)
        return rebuild.result()

    def past(self, row: Row, surveyed: Surveyed, shift: int) -> tuple[Past, ...]:
        """Return the items with their places, numbered as in `traced`; raises as `items`."""
        retracing = Retracing(surveyed.choice, surveyed.outline, shift)
        self._rebuild(row, retracing.rebuild, surveyed.parts)
        return retracing.past()

    def first_pass(
        self,
        path: str,
        cut: int | None = None,
        digest: Fingerprint | None = None,
        follower: Follower | None = None,
    ) -> FirstPass:
        """Return a new pass over the rollout at a path, for `traced`."""
        locate = self._sessions.catalogue.chains.locator(path)
        return FirstPass(self._reader, path, locate, cut, digest, follower)

    def _shift(self, row: Row, root: ChainPart) -> int:
        """Return the lead of a session's `seq` over its lines, which a seed causes."""
        try:
            head = head_of(self._reader.first_line(root.path))
        except UnreadableSource as error:
            raise unreadable(row.path, str(error)) from error
        if head is None or head.originator != OURS:
            return 0  # only sessions of ours have a seed
        return self._sessions.open(row.path)[1].replay.scale.shift

    def _survey(self, row: Row) -> Surveyed:
        locate, survey = self._sessions.catalogue.chains.locator(row.path), Survey()
        try:
            chain = parts_below(self._reader, row.path, locate)
        except UnreadableSource as error:
            raise unreadable(row.path, str(error)) from error
        parts = self._read(row, survey, (*chain, ChainPart(row.path)), Place(0, 0))
        return _surveyed(survey.outline(), parts)

    def _rebuild(self, row: Row, rebuild: Rebuild, parts: tuple[ChainPart, ...]) -> None:
        self._read(row, rebuild, parts, rebuild.start)
        if not rebuild.found:
            raise _replaced(row)

    def _read(
        self, row: Row, taker: Taker, parts: tuple[ChainPart, ...], start: Place
    ) -> tuple[ChainPart, ...]:
        try:
            return read_parts(self._reader, taker, parts, start, row.path)
        except UnreadableSource as error:
            raise unreadable(row.path, str(error)) from error


def _surveyed(outline: Outline, parts: tuple[ChainPart, ...]) -> Surveyed:
    return Surveyed(outline, choose(outline), parts)


def ours(sessions: Sessions, row: Row) -> dict[str | None, Opened]:
    """Return the records of windows that we opened in a session or below it, by window id."""
    made: dict[str | None, Opened] = {}
    for each in (*sessions.catalogue.chains.below(row), row):
        try:
            made.update(sessions.compactions.by_window(each.session_id))
        except StorageError as error:
            # The session file still counts.
            logs.warn(__name__, "storage_error: compactions of %s: %s", each.session_id, error)
    return made


def _with_record(opened: Opened, window: Window) -> Window:
    known = window.tokens_before if opened.tokens_before is None else opened.tokens_before
    return evolve(window, strategy=opened.strategy, trigger=opened.trigger, tokens_before=known)


def _replaced(row: Row) -> Refusal:
    return unreadable(row.path, "it was replaced while it was read")
