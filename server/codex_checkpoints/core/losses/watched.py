"""What each call met, in the order in which it is told, sorted into files and commands.

`Watched` takes the place of the observations of a state, so that which call did what is decided by
the reducer alone.  It reads each of them at once, since it needs what a command printed.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import Factory, evolve

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.checkpoint.observations import Observations
from codex_checkpoints.core.checkpoint.place import Place
from codex_checkpoints.core.checkpoint.sightings import name_of
from codex_checkpoints.core.losses.commands import Commands, Run
from codex_checkpoints.core.losses.files import Changed, Files
from codex_checkpoints.core.losses.outcomes import UNKNOWN, Outcome, outcome_in, outcome_of
from codex_checkpoints.core.losses.records import Readings
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.fields import object_of, text_of
from codex_checkpoints.core.rollout.items import (
    CommandRun,
    FilesChanged,
    FileViewed,
    Item,
    ItemCompleted,
    ToolCall,
    ToolOutput,
    ToolRan,
)
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.tools import Seen
from codex_checkpoints.values import define, frozen

_MAX_LOOP = 8
"""How many names a warning has."""


@define
class Watched(Observations):
    """Observations that are not kept as artifacts; `at_hand` is the item that is being reduced."""

    files: Files = Factory(Files)
    commands: Commands = Factory(Commands)
    printed: int = 0
    """Bytes that calls of this window printed which read a file again unchanged."""
    at_hand: Item | None = None

    def tell(
        self, place: Place, line: bytes, answer: bytes | None = None, *, plain: bool = False
    ) -> None:
        """Take an observation by the line that tells it."""
        item = _inner(item_of(line))
        if isinstance(item, ToolCall):
            self._called(place, item, None if answer is None else item_of(answer), plain=plain)
        elif isinstance(item, CommandRun | FilesChanged | ToolRan | FileViewed):
            self._take(place, tools.seen_by(item), _end_of(item))

    def add(self, place: Place, seen: tuple[Seen, ...]) -> None:
        """Take what was seen by the item at hand."""
        self._take(place, seen, _end_of(_inner(self.at_hand)))

    def passed_on(self) -> Watched:
        """Return these files and commands for a session that goes on in the same window."""
        return Watched(files=self.files, commands=self.commands, printed=self.printed)

    def open_window(self) -> None:
        """Begin the next window."""
        self.files.open_window()
        self.commands.open_window()
        self.printed = 0

    def readings(self) -> Readings:
        """Return what was read in this window."""
        files = self.files
        loop = (*files.loop, *self.commands.circling)
        return Readings(
            files.reads,
            sum(each.times for each in files.rereads.values()),
            self.printed,
            files.most_read(),
            loop[:_MAX_LOOP],
        )

    def _called(self, place: Place, call: ToolCall, answer: Item | None, *, plain: bool) -> None:
        """Take a call with its answer; of a `plain` one only matters that it was answered."""
        end = _End(call.call_id, text_of(object_of(call.arguments).get("workdir")))
        if isinstance(answer, ToolOutput):
            # What a script answers is not what one of its commands printed.
            outcome = UNKNOWN if tools.is_script(call) else outcome_in(answer.texts)
            self._take(place, tools.called(call, answer.texts), evolve(end, outcome=outcome))
        elif plain:
            self._take(place, tools.called(call, ()), end)

    def _take(self, place: Place, seen: Iterable[Seen], end: _End) -> None:
        """Take what one call met: changes and the command at once, and reads unless it failed."""
        script: str | None = None
        reading = True
        read: dict[str, str] = {}
        for each in seen:
            script = script or (each.name if each.kind == "command" else each.script)
            reading = reading and each.kind != "command"
            uri = name_of(each, place)[0] if each.kind == "file" else None
            if uri is None:
                continue
            if each.action == "read":
                read[uri] = each.script or ""
            else:
                change = Changed(each.action, each.call_id or end.ref, place[0])
                self.files.change(uri, change)
        if script is not None and end.outcome.failed is not None:
            run = Run(script, end.folder, end.outcome, end.ref, place[0], reading)
            self.commands.run(run, self.files.changes)
        if end.outcome.failed is not True:
            self._read(read, end, place[0])

    def _read(self, read: dict[str, str], end: _End, seq: int) -> None:
        again = False
        printed = end.outcome.printed
        for uri, script in read.items():
            if uri in self.artifacts:  # the session began with it
                self.files.know(uri)
            again |= self.files.read(uri, script, printed, end.ref, seq)
        if again and printed is not None:
            self.printed += len(printed.encode(errors="replace"))


@frozen
class _End:
    """How a call ended: by which id, in which folder it ran, and with what outcome."""

    call_id: str
    folder: str | None = None
    outcome: Outcome = UNKNOWN

    @property
    def ref(self) -> str | None:
        """Return the id as a reference; one that is too long is none."""
        return self.call_id if 0 < len(self.call_id) <= MAX_URI_CHARS else None


def _inner(item: Item | None) -> object:
    return item.item if isinstance(item, ItemCompleted) else item


def _end_of(item: object) -> _End:
    """Return how a call ended by the item that tells of it; an answer at hand is too long."""
    if isinstance(item, CommandRun):
        return _End(item.call_id, item.folder, outcome_of(item))
    told = isinstance(item, FilesChanged | ToolRan | FileViewed | ToolOutput)
    return _End(item.call_id if told else "")
