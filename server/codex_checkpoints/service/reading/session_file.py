"""Reads a session through its chain of files (ROL-5).

The records of its `history_base` below the cut come first, then its own.  A base that is missing,
too short or in a circle is reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator

from attrs import Factory, asdict, define, frozen

from codex_checkpoints.core.agents.codex.parsing import BOM, head_of
from codex_checkpoints.core.agents.codex.reader import is_whole
from codex_checkpoints.core.checkpoint.replay import LONGEST_TAIL, Replay
from codex_checkpoints.core.checkpoint.state import Seeds, no_seed
from codex_checkpoints.core.converters import read_or_none, states
from codex_checkpoints.core.events import HistoryBase, SessionMeta
from codex_checkpoints.core.fields import is_object, load
from codex_checkpoints.core.turns import Turn
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage.contract import (
    LONGEST_FIRST_LINE,
    Mark,
    Reading,
    RolloutReader,
    UnreadableSource,
)

Locate = Callable[[str], str | None]
"""From a rollout id to its path."""

ByteSink = Callable[[bytes], object]
"""A callback that gets the bytes of a session's own file as they are read, once and in order."""


@frozen
class FoldSpec:
    """A fold over a session file, and the functions to save and load its state between lines.

    `fold` names it in the store.  `save` returns JSON values, None while they must not be stored;
    `load` returns None for a value that is damaged or of another version.
    """

    fold: str
    new: Callable[[], Replay]
    save: Callable[[Replay], object | None]
    load: Callable[[object], Replay | None]


CHECKPOINT = FoldSpec("checkpoint", Replay, Replay.save, Replay.load)
"""The fold that makes checkpoints."""

_LONGEST_CHAIN = 1024
_OURS = "codex-checkpoints"


@frozen
class FileProblem:
    """A problem of a session's files: a code and the rollout id."""

    code: str
    rollout_id: str


@frozen
class CopiedLines:
    """The number of lines of a base that its fork copied, and whether the fork has no others.

    `base_size` is the size of a base that ended there: its later lines may be in the fork.
    """

    lines: int
    is_all: bool = False
    base_size: int | None = None


@define
class SessionFile:
    """A session as read so far."""

    reader: RolloutReader
    path: str
    replay: Replay
    mark: Mark
    problems: tuple[FileProblem, ...]
    tail: bytes = b""
    seeds: Seeds = no_seed
    by: FoldSpec = CHECKPOINT
    begun: bool = False
    """Whether the first line, which names the base, is complete; nothing is kept before that."""
    copied: dict[str, CopiedLines] = Factory(dict[str, CopiedLines])
    """The lines that an older fork copied from the file at a path."""
    places: dict[int, int] = Factory(dict[int, int])
    """Offsets of line ends in the file, by position, as far as they were needed."""

    @property
    def head(self) -> SessionMeta | None:
        """Return the head of the session, None for a file without one."""
        return self.replay.state.head

    @property
    def session_id(self) -> str:
        """Return the id in the head, else the one in the file name."""
        head = self.head
        if head is not None and head.session_id:
            return head.session_id
        return self.reader.identify(self.path).thread_id

    def now(self) -> Replay:
        """Return the replay with an unfinished last line that only lacks its LF."""
        return self.replay.with_tail(self.tail) if self.tail else self.replay

    def has_kept(self, mark: Mark) -> bool:
        """Return whether the file is still unchanged up to a mark."""
        if mark.offset > self.mark.offset or mark.source != self.mark.source:
            return False
        return self.reader.mark_at(self.path, mark.offset, mark.source) == mark

    def last(self, size: int) -> bytes | None:
        """Return about `size` bytes of the last lines; None if the file has no more or changed."""
        start = self.mark.offset - size
        if start <= 0:
            return None
        data = bytes_between(self.reader, self.path, start, self.mark.offset)
        return data[data.find(b"\n") + 1 :] if len(data) == size else None

    def read_on(self, locate: Locate) -> SessionFile:
        """Return the current session: this one after reading on, or a new one if replaced."""
        if self.moves_on():
            return self
        return open_session(self.reader, self.path, locate, seeds=self.seeds)

    def moves_on(self) -> bool:
        """Read the new bytes; return whether the file is still the same and its first line is read.

        Otherwise a new session reads it from its beginning.
        """
        if not self.begun:
            return False
        reading = self.reader.follow(self.path, self.mark, self.replay.feed)
        if reading is not None:
            self.stand(reading)
        return reading is not None

    def save(self) -> dict[str, object] | None:
        """Return the position and the state as JSON values, None while they must not be stored."""
        replay = self.by.save(self.replay) if self.begun else None
        if replay is None:
            return None
        return {
            "mark": asdict(self.mark, recurse=False),
            "problems": [asdict(problem, recurse=False) for problem in self.problems],
            "replay": replay,
        }

    @classmethod
    def load(
        cls,
        reader: RolloutReader,
        path: str,
        value: object,
        seeds: Seeds = no_seed,
        by: FoldSpec = CHECKPOINT,
    ) -> SessionFile | None:
        """Load a result of `save`; None if it is damaged or of another version."""
        saved = read_or_none(states, value, _Saved)
        replay = None if saved is None else by.load(saved.replay)
        if saved is None or replay is None:
            return None
        return cls(reader, path, replay, saved.mark, saved.problems, seeds=seeds, by=by, begun=True)

    def stand(self, reading: Reading) -> None:
        """Move to a new position at the end of a line."""
        replay = self.replay
        mark, tail = reading.mark, reading.rest
        if replay.pending:
            # A long line may have been skipped: its current part is examined as a whole, and read
            # again from its beginning when it has grown.
            begun = mark.offset - replay.pending
            tail = bytes_between(self.reader, self.path, begun, None, LONGEST_TAIL + 1)
            tail = b"" if len(tail) > LONGEST_TAIL else tail
            mark = self.reader.mark_at(self.path, begun, mark.source)
            replay.drop_unfinished()
        self.tail = b"" if replay.stopped else tail
        self.mark = mark


@frozen
class _Saved:
    mark: Mark
    problems: tuple[FileProblem, ...]
    replay: object


def open_session(  # noqa: PLR0913 - each is an option of its own
    reader: RolloutReader,
    path: str,
    locate: Locate,
    *,
    replay: Replay | None = None,
    seeds: Seeds = no_seed,
    by: FoldSpec = CHECKPOINT,
    also: ByteSink | None = None,
) -> SessionFile:
    """Read a session from its beginning, with a new replay.

    `seeds` returns the seeds of our sessions; `also` is a callback for the bytes of the file as
    they are read.  Raises `UnreadableSource` if the file itself cannot be read.
    """
    replay = replay or by.new()
    session = SessionFile(reader, path, replay, NOWHERE, (), seeds=seeds, by=by)
    can_begin = False

    def feed(data: bytes) -> int:
        nonlocal can_begin
        if not can_begin:
            can_begin = _begin_reading(session, data, locate)
        consumed = replay.feed(data) if can_begin else 0
        if also is not None:
            also(data if consumed == len(data) else data[:consumed])
        return consumed

    reading = reader.follow(path, None, feed)
    if reading is not None:
        session.stand(reading)
    return session


NOWHERE = Mark(0, "", "", "")


def _begin_reading(session: SessionFile, data: bytes, locate: Locate) -> bool:
    """Read the bases of a session, before the first bytes of its own file.

    Return False while the first line is incomplete: the bases are not known yet.
    """
    reader, replay, path = session.reader, session.replay, session.path
    line = _first_line_of(data) or reader.first_line(path)
    session.begun = line.endswith(b"\n") or len(line) >= LONGEST_FIRST_LINE
    if not session.begun and not is_whole(line):
        return False
    head = head_of(line) if b'"history_base"' in line else None
    if head is None or head.base is None:
        _begin_with_seed(replay, line, session.seeds)
        return True
    chain, problems = _chain(reader, head.base, reader.identify(path).rollout_id, locate)
    if chain and head.inherited_below is None:
        with contextlib.suppress(UnreadableSource):
            _begin_with_seed(replay, reader.first_line(chain[-1][0]), session.seeds)
    replay.begin(head)
    session.problems = (*problems, *_read_bases(reader, replay, chain))
    return True


def _begin_with_seed(replay: Replay, first_line: bytes, seeds: Seeds) -> None:
    """Start with the seed of a session of ours; sessions built on it do the same."""
    root = head_of(first_line) if _OURS.encode() in first_line else None
    if root is not None and root.originator == _OURS and root.session_id:
        seed = seeds(root.session_id)
        if seed is not None:
            replay.begin_from(seed)


def _first_line_of(data: bytes) -> bytes | None:
    """Return the first non-blank line in `data`, None if no such line is complete."""
    start = 0
    while end := data.find(b"\n", start) + 1:
        line = data[start:end]
        if not line.isspace():
            return line
        start = end
    return None


def bases_below(
    reader: RolloutReader, path: str, locate: Locate
) -> tuple[list[tuple[str, HistoryBase]], list[FileProblem]]:
    """Return the base rollouts, nearest first, and their problems (ROL-5)."""
    head = head_of(reader.first_line(path))
    if head is None or head.base is None:
        return [], []
    return _chain(reader, head.base, reader.identify(path).rollout_id, locate)


def _chain(
    reader: RolloutReader, base: HistoryBase, own_id: str, locate: Locate
) -> tuple[list[tuple[str, HistoryBase]], list[FileProblem]]:
    chain: list[tuple[str, HistoryBase]] = []
    seen = {own_id}
    wanted: HistoryBase | None = base
    while wanted is not None:
        if wanted.rollout_id in seen or len(chain) >= _LONGEST_CHAIN:
            return chain, [FileProblem("base_cycle", wanted.rollout_id)]
        seen.add(wanted.rollout_id)
        path = locate(wanted.rollout_id)
        if path is None:
            return chain, [FileProblem("base_missing", wanted.rollout_id)]
        chain.append((path, wanted))
        try:
            head = head_of(reader.first_line(path))
        except UnreadableSource:
            break
        wanted = None if head is None else head.base
    return chain, []


def _read_bases(
    reader: RolloutReader, replay: Replay, chain: list[tuple[str, HistoryBase]]
) -> list[FileProblem]:
    problems: list[FileProblem] = []
    for number, (path, cut) in enumerate(reversed(chain)):
        if number:
            replay.next_file(cut.end_ordinal)
        else:
            replay.begin_file(cut.end_ordinal)
        # A base is cut at an ordinal; a base without ordinals is cut at a byte.
        limit = None if replay.scale.ordinals else cut.end_offset
        try:
            reached, rest = reader.read(path, 0, replay.feed, limit)
        except UnreadableSource:
            problems.append(FileProblem("base_missing", cut.rollout_id))
            continue
        replay.close(rest)
        if not replay.stopped and _is_short(replay, cut, reached + len(rest)):
            problems.append(FileProblem("base_short", cut.rollout_id))
    if chain:
        replay.next_file()
    return problems


def _is_short(replay: Replay, cut: HistoryBase, size: int) -> bool:
    if replay.scale.ordinals and cut.end_ordinal is not None:
        return replay.seq + 1 < cut.end_ordinal
    return cut.end_offset is not None and size < cut.end_offset


_PORTION = 1 << 22
"""About this many bytes are held while lines are cut out of them, or one longer line."""


def _nothing(_portion: bytes) -> None:
    pass


def lines_of(
    reader: RolloutReader, path: str, end: int | None = None, also: ByteSink = _nothing
) -> Iterator[bytes]:
    """Yield the non-blank lines of one file, up to the byte `end`.

    The last one may lack its line feed if it is complete.  `also` gets the bytes as they are read.
    """
    kept, offset, size = bytearray(), 0, 0

    def feed(data: bytes) -> int:
        nonlocal size
        if size >= _PORTION:
            return 0
        also(data)
        kept.extend(data if offset or size else data.removeprefix(BOM))
        size += len(data)
        return len(data)

    reader.read(path, 0, feed, end)
    while size:
        offset, size, start = offset + size, 0, 0
        while behind := kept.find(b"\n", start) + 1:
            line = bytes(kept[start : behind - 1])
            start = behind
            if line.strip():
                yield line.removesuffix(b"\r")
        del kept[:start]
        reader.read(path, offset, feed, end)
    rest = bytes(kept)
    if rest.strip() and is_object(load(rest)):
        yield rest.removesuffix(b"\r")


def bytes_between(
    reader: RolloutReader, path: str, start: int, end: int | None, enough: int | None = None
) -> bytes:
    """Return the bytes of a file from `start` to `end`, or about `enough` of them.

    Raises `UnreadableSource`.
    """
    taken: list[bytes] = []
    size = 0

    def feed(data: bytes) -> int:
        nonlocal size
        if enough is not None and size >= enough:
            return 0
        taken.append(data)
        size += len(data)
        return len(data)

    reader.read(path, start, feed, end)
    return b"".join(taken)


class Fingerprint:
    """The digest of the added bytes, or of the first `limit` of them."""

    def __init__(self, limit: int | None = None) -> None:
        self._found = hashlib.sha256()
        self._limit = limit
        self.size = 0

    @property
    def digest(self) -> str:
        """Return the digest as text."""
        return f"sha256:{self._found.hexdigest()}"

    def add(self, data: bytes) -> int:
        """Take the next bytes; return their number."""
        wanted = data if self._limit is None else data[: max(0, self._limit - self.size)]
        self._found.update(wanted)
        self.size += len(data)
        return len(data)


def fingerprint(reader: RolloutReader, path: str, limit: int | None = None) -> tuple[str, int]:
    """Return the digest and size of a file, or of its first `limit` bytes."""
    found = Fingerprint()
    reader.read(path, 0, found.add, limit)
    return found.digest, found.size


_NUMBER = re.compile(r"[0-9]{1,9}")


def find_turn(replay: Replay, turn: str | int, session_id: str) -> Turn:
    """Find a turn by its id or its number, without rolled back turns; refuses `unknown_turn`."""
    turns = replay.state.turns
    for each in turns.turns:
        if each.turn_id == turn:
            return each
    counting = list(turns.counting())
    number = int(turn) if _NUMBER.fullmatch(str(turn)) else 0
    if 1 <= number <= len(counting):
        return counting[number - 1]
    raise unknown_turn(replay, turn, session_id)


def unknown_turn(replay: Replay, turn: str | int, session_id: str) -> Refusal:
    """Return the refusal for a turn that a session does not have."""
    message = f"session {session_id} has no turn {str(turn)[:80]!r}"
    count = len(list(replay.state.turns.counting()))
    facts = {"sessionId": session_id, "turnId": str(turn)[:200], "turns": count}
    return Refusal("unknown_turn", message, facts)


def end_of(turn: Turn, turns: list[Turn]) -> int | None:
    """Return the position of the line that ends a turn, None if it is still open."""
    if turn.ended is not None:
        return turn.ended
    # Without task events, or when it was cut off, a turn lasts up to the next one.
    following = turns[turns.index(turn) + 1 :]
    return following[0].opened - 1 if following else None
