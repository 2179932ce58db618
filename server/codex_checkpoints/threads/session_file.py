"""A session, followed through its chain of files (ROL-5).

A session is read as one sequence: the records of its `history_base` below the cut, recursively,
then its own.  `SessionFile` stands at a place in that sequence, reads on when asked, and begins
anew when the file is no longer the one it was.  A base that is missing, too short or leads in a
circle is reported; what can be read is still read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from attrs import asdict, define, frozen

from codex_checkpoints.core.checkpoint.replay import LONGEST_TAIL, Replay
from codex_checkpoints.core.rollout import items
from codex_checkpoints.core.rollout.items import HistoryBase, SessionMeta
from codex_checkpoints.threads import rollout_file, tree
from codex_checkpoints.threads.rollout_file import Mark, UnreadableSource

Locate = Callable[[str], str | None]
"""From a rollout id to the path of its file."""

_LONGEST_CHAIN = 64


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
        look = _look(self.path)
        if not rollout_file.still_holds(self.path, self.mark, look.st_size, look.st_ino):
            return open_session(self.path, locate)
        if look.st_size > self.mark.offset:
            self._read(self.mark.offset, look.st_ino)
        else:
            self.tail = b""
        return self

    def save(self) -> dict[str, Any]:
        """Return the place and the state as JSON values."""
        return {
            "mark": asdict(self.mark),
            "problems": [asdict(problem) for problem in self.problems],
            "replay": self.replay.save(),
        }

    @classmethod
    def load(cls, path: str, value: Any) -> SessionFile | None:
        """Take up what `save` gave; None where it is damaged or of another version."""
        try:
            mark = Mark(**value["mark"])
            problems = tuple(Problem(**problem) for problem in value["problems"])
            replay = Replay.load(value["replay"])
        except (TypeError, KeyError):
            return None
        return None if replay is None else cls(path, replay, mark, problems)

    def _read(self, offset: int, inode: int) -> None:
        """Read from `offset` to the end, and remember where whole lines end."""
        reached, tail = rollout_file.read(self.path, offset, self.replay.feed)
        self.replay.rest()
        begun = reached - self.replay.pending
        if self.replay.pending:
            # A long line may have been skipped over; what there is of it is looked at whole, and
            # read again from its beginning when more has come.
            tail = rollout_file.piece(self.path, begun, LONGEST_TAIL) or b""
            self.replay.drop_unfinished()
        self.tail = b"" if self.replay.stopped else tail
        self.mark = rollout_file.mark(self.path, begun, inode)


def open_session(
    path: str, locate: Locate, *, hot: bool = True, until: int | None = None
) -> SessionFile:
    """Read a session from its beginning, to its end or up to the line at position `until`.

    Raises `UnreadableSource` when the file itself cannot be read.
    """
    replay = Replay(hot=hot)
    if until is not None:
        replay.stop_after(until)
    inode = _look(path).st_ino
    problems: list[Problem] = []
    line = rollout_file.first_line(path)
    if b'"history_base"' in line:
        head = items.parse(line).item
        if isinstance(head, SessionMeta) and head.base is not None:
            replay.begin(head)
            _read_bases(replay, head.base, _rollout_id(path), locate, problems)
    session = SessionFile(path, replay, Mark(0, inode, "", ""), ())
    session._read(0, inode)  # noqa: SLF001
    session.problems = tuple(problems)
    return session


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
            head = items.parse(rollout_file.first_line(path)).item
        except UnreadableSource:
            break
        wanted = head.base if isinstance(head, SessionMeta) else None
    for path, cut in reversed(chain):
        replay.next_file(cut.end_ordinal)
        # Ordinals say where a base is cut; a base without ordinals is cut by its bytes.
        limit = None if replay.scale.ordinals else cut.end_offset
        try:
            reached, _ = rollout_file.read(path, 0, replay.feed, limit)
        except UnreadableSource:
            problems.append(Problem("base_missing", cut.rollout_id))
            continue
        if cut.end_offset is not None and reached < cut.end_offset and not replay.stopped:
            problems.append(Problem("base_short", cut.rollout_id))
        replay.rest()
    replay.next_file()


def _rollout_id(path: str) -> str:
    name = tree.parse_name(os.path.basename(path))
    return "" if name is None else name.rollout_id


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise UnreadableSource(error.strerror or "cannot be opened") from error
