"""What Codex would send when a session is resumed, and the windows of a session.

The core reads a session twice (`core.history`); this brings the bytes.  The session may grow in
between, so the second pass stops where the first did.  Nothing is written.

The first pass also takes the digest of the bytes, and the history before a cut.  Where an index or
a checkpoint reads the session anyway, it takes those bytes, and later reads on behind them; it is
dropped when the file has changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol

from codex_checkpoints import logs
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction import offering
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
from codex_checkpoints.core.rollout.reader import Place, Reader
from codex_checkpoints.core.timeline import Timeline
from codex_checkpoints.service.kept import Opened
from codex_checkpoints.service.reading.session_file import (
    ByteSink,
    Fingerprint,
    Followed,
    Locate,
    bases_below,
    find_turn,
)
from codex_checkpoints.service.refusal import Refusal, reading_file, unreadable
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage.contract import (
    OURS,
    Look,
    Rollout,
    RolloutReader,
    Row,
    UnreadableSource,
)
from codex_checkpoints.values import Factory, define, evolve, frozen

_TRIES = 3


@frozen
class Surveyed:
    """The result of a first pass: where the history begins, and the chain to read again."""

    outline: Outline
    choice: Choice
    parts: tuple[ChainPart, ...]
    """The chain, the oldest first, cut where the first pass ended."""

    @classmethod
    def of(cls, outline: Outline, parts: tuple[ChainPart, ...]) -> Surveyed:
        """Return what a first pass over a chain found."""
        return cls(outline, choose(outline), parts)


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
            if self._is_found(row, rebuild, surveyed):
                return history_of(surveyed.outline, rebuild)
        raise _replaced(row)

    def windows(self, session: str) -> tuple[Window, ...]:
        """Return the windows that still count, the first one first, ours as recorded (WIN-12)."""
        row = self._sessions.find(session)
        catalogue, made = self._sessions.catalogue, ours(self._sessions, row)
        known = catalogue.known(row, TIMELINE) if row.path in catalogue.rows() else None
        if known is None:
            surveyed = self._survey(row)
            shift = self._shift(row, surveyed.parts[0])
            found = windows_of(surveyed.outline, surveyed.choice)
            windows = tuple(evolve(each, opened_seq=each.opened_seq + shift) for each in found)
        else:
            windows = timeline_in(known.now()).windows()
        return tuple(_with_record(made.get(each.window_id), each) for each in windows)

    def undone(self, session: str) -> dict[str | None, str | None]:
        """Return by the window that an undo opened the one that it took back (JUN-25)."""
        made = ours(self._sessions, self._sessions.find(session))
        return {
            each: opened.undone and opened.undone.windows.after.current
            for each, opened in made.items()
            if opened.by is None
        }

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
        with reading_file(row):
            survey, parts = first.read_on(end)
        surveyed = Surveyed.of(survey.outline(), parts)
        outline, choice = surveyed.outline, surveyed.choice
        retracing = self._retraced(row, surveyed, shift)
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
            in_front=None if above is None else Surveyed.of(survey.in_front, above),
        )

    def items(self, row: Row, surveyed: Surveyed) -> tuple[Json, ...]:
        """Return the items of a surveyed history; raises `unreadable_source`."""
        rebuild = Rebuild(surveyed.choice, surveyed.outline.start)
        self._rebuild(row, rebuild, surveyed)
        return rebuild.result()

    def past(self, row: Row, surveyed: Surveyed, shift: int) -> tuple[Past, ...]:
        """Return the items with their places, numbered as in `traced`; raises as `items`."""
        return self._retraced(row, surveyed, shift).past()

    def first_pass(
        self,
        path: str,
        cut: int | None = None,
        digest: Fingerprint | None = None,
        follower: Beside | None = None,
    ) -> FirstPass:
        """Return a new pass over the rollout at a path, for `traced`."""
        locate = self._sessions.catalogue.chains.locator(path)
        return FirstPass(self._reader, path, locate, cut, digest, follower)

    def _shift(self, row: Row, root: ChainPart) -> int:
        """Return the lead of a session's `seq` over its lines, which a seed causes."""
        with reading_file(row):
            head = head_of(self._reader.first_line(root.path))
        if head is None or head.originator != OURS:
            return 0  # only sessions of ours have a seed
        return self._sessions.open(row.path)[1].replay.scale.shift

    def _survey(self, row: Row) -> Surveyed:
        with reading_file(row):
            survey, parts = self.first_pass(row.path).read_on(None)
        return Surveyed.of(survey.outline(), parts)

    def _retraced(self, row: Row, surveyed: Surveyed, shift: int) -> Retracing:
        retracing = Retracing(surveyed.choice, surveyed.outline, shift)
        self._rebuild(row, retracing.rebuild, surveyed)
        return retracing

    def _rebuild(self, row: Row, rebuild: Rebuild, surveyed: Surveyed) -> None:
        if not self._is_found(row, rebuild, surveyed):
            raise _replaced(row)

    def _is_found(self, row: Row, rebuild: Rebuild, surveyed: Surveyed) -> bool:
        """Read the second pass; return whether what the first one chose still stands there."""
        with reading_file(row):
            read_parts(self._reader, rebuild.reader, surveyed.parts, rebuild.start, row.path)
        return rebuild.found


def timeline_in(replay: Replay) -> Timeline:
    """Return the timeline that follows a replay."""
    return next(fold for fold in replay.folds if isinstance(fold, Timeline))


def _save_timeline(replay: Replay) -> object | None:
    return timeline_in(replay).save()


def _load_timeline(value: object) -> Replay | None:
    found = Timeline.load(value)
    return None if found is None else found.replay


TIMELINE = Followed("timeline", lambda: Timeline(Replay()).replay, _save_timeline, _load_timeline)
"""What a timeline is made of."""


def ours(sessions: Sessions, row: Row) -> dict[str | None, Opened]:
    """Return the records of windows that we opened in a session or below it, by window id."""
    made: dict[str | None, Opened] = {}
    for each in (*sessions.catalogue.chains.below(row), row):
        try:
            made.update(sessions.compactions.by_window(each.session_id))
        except Refusal as refusal:  # the session file still counts
            logs.warn(__name__, "%s: %s", refusal.code, refusal.message)
    return made


def _with_record(opened: Opened | None, window: Window) -> Window:
    if opened is None:
        return window
    known = window.tokens_before if opened.tokens_before is None else opened.tokens_before
    return evolve(window, strategy=opened.strategy, trigger=opened.trigger, tokens_before=known)


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


def outline(sessions: Sessions, session: str) -> offering.Outline:
    """Return the outline of a session; refuses as `Sessions.find`, `unreadable_source`."""
    windows = Histories(sessions).windows(session)
    _, opened = sessions.open(session)
    starts = [each.opened_seq for each in windows]
    turns = (
        offering.OutlineTurn(
            number,
            turn.turn_id,
            windows[max(0, bisect_right(starts, turn.opened_seq) - 1)].number,
            "" if turn.said is None else turn.said.text,
        )
        for number, turn in enumerate(opened.now().state.turns.counting(), 1)
    )
    return offering.outline_of(turns, offering.outline_budget(sessions.named))


@frozen
class ChainPart:
    """One rollout of a chain, and where it is cut: at an ordinal, or at a byte."""

    path: str
    ordinal: int | None = None
    end: int | None = None


class Beside(Protocol):
    """Takes the same bytes as a pass; `close` is given what stands behind the last LF."""

    def feed(self, data: bytes, /) -> int:
        """Take the next bytes; return how many were consumed."""
        ...

    def close(self, tail: bytes, /) -> None:
        """Take the last line, if it is whole."""
        ...


def parts_below(reader: RolloutReader, path: str, locate: Locate) -> tuple[ChainPart, ...]:
    """Return the rollouts that one builds on, the oldest first; raises `UnreadableSource`."""
    below, _ = bases_below(reader, path, locate)
    parts: list[ChainPart] = []
    for base, cut in reversed(below):
        head = head_of(reader.first_line(base))
        # A base without ordinals is cut at a byte.
        numbered = head is not None and head.paginated and cut.end_ordinal is not None
        end = None if numbered else cut.end_offset
        parts.append(ChainPart(base, cut.end_ordinal if numbered else None, end))
    return tuple(parts)


def read_parts(
    reader: RolloutReader, lines: Reader, parts: tuple[ChainPart, ...], start: Place, own: str
) -> tuple[ChainPart, ...]:
    """Read the `lines` of a chain from a place on; return it cut where it ends now.

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
            continue  # the diagnosis reports it
        if not lines.stopped:
            lines.close(rest)
        read.append(ChainPart(part.path, part.ordinal, reached + len(rest)))
    return tuple(read)


@define
class FirstPass:
    """A pass over one session, as far as its bytes have come.

    `cut` is an offset in the session's own file: what was found in front of it is kept. `digest` is
    given the bytes of that file, and so is `follower`; `at` is how many of them have come.
    """

    _reader: RolloutReader
    _path: str
    _locate: Locate
    cut: int | None = None
    _digest: Fingerprint | None = None
    follower: Beside | None = None
    at: int = 0
    _begun: tuple[Survey, tuple[ChainPart, ...]] | None = None

    @property
    def seal(self) -> str | None:
        """Return the digest of the bytes that have come, if any is kept."""
        return None if self._digest is None else self._digest.digest

    def feed(self, data: bytes) -> int:
        """Take the next bytes of the file; return how many a checkpoint's reader consumes, too."""
        survey, _ = self.begin()
        consumed = survey.reader.feed(data)
        if self._digest is not None:
            self._digest.add(data if consumed == len(data) else data[:consumed])
        if self.follower is not None:
            self.follower.feed(data)
        self.at += consumed
        return consumed

    def read_on(self, end: int | None) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Read the rest, up to an offset; return the survey and the chain, cut where it ended."""
        survey, below = self.begin()
        reached, rest = self._reader.read(self._path, self.at, self.feed, end)
        if self._digest is not None:
            self._digest.add(rest)
        if self.follower is not None:
            self.follower.close(rest)
        survey.reader.close(rest)
        return survey, (*below, ChainPart(self._path, None, reached + len(rest)))

    def begin(self) -> tuple[Survey, tuple[ChainPart, ...]]:
        """Return the survey and the bases, read before the file; raises `UnreadableSource`."""
        if self._begun is None:
            below = parts_below(self._reader, self._path, self._locate)
            survey = Survey(cut=None if self.cut is None else Place(len(below), self.cut))
            below = read_parts(self._reader, survey.reader, below, Place(0, 0), self._path)
            if below:
                survey.reader.next_file()
            self._begun = survey, below
        return self._begun


@frozen
class Listening:
    """First passes over `wanted` rollouts, fed by other readers; `begin` makes one."""

    _wanted: Callable[[Rollout], bool]
    _begin: Callable[[str], FirstPass]
    _passes: dict[str, tuple[Look, FirstPass]] = Factory(dict[str, "tuple[Look, FirstPass]"])

    def __call__(self, rollout: Rollout) -> ByteSink | None:
        """Return who takes the bytes of a rollout that is about to be read from its beginning."""
        if not self._wanted(rollout):
            return None
        begun = self._begin(rollout.path)
        try:
            begun.begin()
        except UnreadableSource:
            return None  # its own reader reports that
        self._passes[rollout.path] = rollout.look, begun
        return begun.feed

    def pass_over(self, row: Row, end: int) -> FirstPass:
        """Return the pass over a rollout up to `end` at most, or a new one."""
        look, begun = self._passes.pop(row.path, (None, None))
        if begun is None or look != row.rollout.look or begun.at > end:
            return self._begin(row.path)
        return begun
