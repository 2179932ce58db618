"""A session, followed through its chain of files (ROL-5).

A session is read as one sequence: the records of its `history_base` below the cut, recursively,
then its own.  `SessionFile` stands at a place in that sequence, reads on when asked, and begins
anew when the file is no longer the one it was.  A base that is missing, too short or leads in a
circle is reported; what can be read is still read.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from attrs import asdict, define, frozen
from cattrs import Converter

from codex_checkpoints.core.checkpoint.replay import LONGEST_TAIL, Replay
from codex_checkpoints.core.rollout.items import HistoryBase, SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.threads import rollout_file, tree
from codex_checkpoints.threads.rollout_file import Mark, Reading, UnreadableSource

Locate = Callable[[str], str | None]
"""From a rollout id to the path of its file."""

_LONGEST_CHAIN = 1024


@frozen
class Problem:
    """What is wrong with a session's files: a code and the rollout it is about."""

    code: str
    rollout_id: str


@define
class SessionFile:
    """One session as far as it was read."""

    path: str
    replay: Replay
    mark: Mark
    problems: tuple[Problem, ...]
    tail: bytes = b""

    @property
    def head(self) -> SessionMeta | None:
        """Return the head of the session, None for a file that has none."""
        return self.replay.state.head

    @property
    def session_id(self) -> str:
        """Return who this session is: by its head, else by the name of its file."""
        head = self.head
        if head is not None and head.session_id:
            return head.session_id
        name = tree.parse_name(os.path.basename(self.path))
        return name.thread_id if name is not None else os.path.basename(self.path)

    def now(self) -> Replay:
        """Return the replay with an unfinished last line that is whole but for its LF."""
        return self.replay.with_tail(self.tail) if self.tail else self.replay

    def read_on(self, locate: Locate) -> SessionFile:
        """Return the session as it is now: this one moved on, or a new one when it was replaced."""
        reading = rollout_file.follow(self.path, self.mark, self.replay.feed)
        if reading is None:
            return open_session(self.path, locate)
        self.stand(reading)
        return self

    def save(self) -> dict[str, object] | None:
        """Return the place and the state as JSON values, None while they must not be kept."""
        replay = self.replay.save()
        if replay is None:
            return None
        return {
            "mark": asdict(self.mark),
            "problems": [asdict(problem) for problem in self.problems],
            "replay": replay,
        }

    @classmethod
    def load(cls, path: str, value: object) -> SessionFile | None:
        """Take up what `save` gave; None where it is damaged or of another version."""
        try:
            saved = _converter.structure(value, _Saved)
        except Exception:  # noqa: BLE001 - a cache that cannot be read is no cache
            return None
        replay = Replay.load(saved.replay)
        return None if replay is None else cls(path, replay, saved.mark, saved.problems)

    def stand(self, reading: Reading) -> None:
        """Take up the place that was reached, where whole lines end."""
        replay = self.replay
        replay.rest()
        mark, tail = reading.mark, reading.rest
        if replay.pending:
            # A long line may have been skipped over; what there is of it is looked at whole, and
            # read again from its beginning when more has come.
            begun = mark.offset - replay.pending
            tail = rollout_file.piece(self.path, begun, LONGEST_TAIL) or b""
            mark = rollout_file.place(self.path, begun, mark.inode)
            replay.drop_unfinished()
        self.tail = b"" if replay.stopped else tail
        self.mark = mark


@frozen
class _Saved:
    mark: Mark
    problems: tuple[Problem, ...]
    replay: object


_converter = Converter(detailed_validation=False)
_converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)


def open_session(
    path: str, locate: Locate, *, hot: bool = True, until: int | None = None
) -> SessionFile:
    """Read a session from its beginning, to its end or up to the line at position `until`.

    Raises `UnreadableSource` when the file itself cannot be read.
    """
    replay = Replay(hot=hot)
    if until is not None:
        replay.stop_after(until)
    session = SessionFile(path, replay, _NOWHERE, ())
    begun = False

    def feed(data: bytes) -> int:
        nonlocal begun
        if not begun:
            begun = True
            session.problems = _begin(replay, path, data, locate)
        return replay.feed(data)

    reading = rollout_file.follow(path, None, feed)
    if reading is not None:
        session.stand(reading)
    return session


_NOWHERE = Mark(0, 0, "", "")


def _begin(replay: Replay, path: str, data: bytes, locate: Locate) -> tuple[Problem, ...]:
    """Read what comes before the file itself; `data` is its first chunk."""
    line = rollout_file.first_line_of(data)
    if line is None:
        line = rollout_file.first_line(path)
    head = head_of(line) if b'"history_base"' in line else None
    if head is None or head.base is None:
        return ()
    problems: list[Problem] = []
    replay.begin(head)
    _read_bases(replay, head.base, _rollout_id(path), locate, problems)
    return tuple(problems)


def _read_bases(
    replay: Replay, base: HistoryBase, own_id: str, locate: Locate, problems: list[Problem]
) -> None:
    """Feed the files below this one, the oldest first."""
    chain: list[tuple[str, HistoryBase]] = []
    seen = {own_id}
    wanted: HistoryBase | None = base
    while wanted is not None:
        if wanted.rollout_id in seen or len(chain) >= _LONGEST_CHAIN:
            problems.append(Problem("base_cycle", wanted.rollout_id))
            break
        seen.add(wanted.rollout_id)
        path = locate(wanted.rollout_id)
        if path is None:
            problems.append(Problem("base_missing", wanted.rollout_id))
            break
        chain.append((path, wanted))
        try:
            head = head_of(rollout_file.first_line(path))
        except UnreadableSource:
            break
        wanted = None if head is None else head.base
    for path, cut in reversed(chain):
        replay.next_file(cut.end_ordinal)
        # Ordinals say where a base is cut; a base without ordinals is cut by its bytes.
        limit = None if replay.scale.ordinals else cut.end_offset
        try:
            reached, rest = rollout_file.read(path, 0, replay.feed, limit)
        except UnreadableSource:
            problems.append(Problem("base_missing", cut.rollout_id))
            continue
        replay.close(rest)
        if not replay.stopped and _is_short(replay, cut, reached + len(rest)):
            problems.append(Problem("base_short", cut.rollout_id))
    replay.next_file()


def _is_short(replay: Replay, cut: HistoryBase, size: int) -> bool:
    """Return whether a base ends before the place at which it is cut."""
    if replay.scale.ordinals and cut.end_ordinal is not None:
        return replay.seq + 1 < cut.end_ordinal
    return cut.end_offset is not None and size < cut.end_offset


def _rollout_id(path: str) -> str:
    name = tree.parse_name(os.path.basename(path))
    return "" if name is None else name.rollout_id
