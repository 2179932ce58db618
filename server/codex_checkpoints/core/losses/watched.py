"""What each call met, in the order in which it is told, sorted into files and commands.

Which call did what is decided by the reducer alone.  Each observation is read at once, for what a
command printed is needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from codex_checkpoints.core.checkpoint.caps import MAX_URI_CHARS
from codex_checkpoints.core.checkpoint.observations import Observation, Place, name_of
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.losses.commands import Commands, Run
from codex_checkpoints.core.losses.files import Changed, Files
from codex_checkpoints.core.losses.outcomes import UNKNOWN, Outcome, outcome_in, outcome_of
from codex_checkpoints.core.losses.records import Readings
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.fields import object_of, text_of
from codex_checkpoints.core.rollout.items import CommandRun, Seen, ToolCall
from codex_checkpoints.values import frozen

_MAX_LOOP = 8
"""How many names a warning has."""


class Watched:
    """What each call of a session met, sorted into files and commands."""

    def __init__(self, state: State, before: Watched | None = None) -> None:
        """Watch what a state observes; `before` was watched earlier in the same window."""
        self.files = Files() if before is None else before.files
        self.commands = Commands() if before is None else before.commands
        self.printed = 0 if before is None else before.printed
        """Bytes that calls of this window printed which read a file again unchanged."""
        self._state = state
        state.observers.append(self._observe)

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

    def _observe(self, observed: Observation) -> None:
        item, outcome, folder = observed.item, UNKNOWN, None
        if isinstance(item, ToolCall):
            folder = text_of(object_of(item.arguments).get("workdir"))
            # What a script answers is not what one of its commands printed.
            if not observed.shortened and not tools.is_script(item):
                outcome = outcome_in(observed.texts)
        elif isinstance(item, CommandRun):
            folder, outcome = item.folder, outcome_of(item)
        self._take(observed.place, observed.seen(), _End(item.call_id, folder, outcome))

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
        again, seed = False, self._state.seed
        printed = end.outcome.printed
        for uri, script in read.items():
            if seed is not None and uri in seed.artifacts:
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
