"""Commands from window to window: which fail, and which are run again and again to no effect.

Rules:

1. A command is *failing* in a window when it ran there and its last outcome was a failure, or when
   the replacement that opened the window named it as such.  What was named is not lost yet.
2. A run is a repetition where the same command, in the same folder, ends as it did the last time
   (exit code and output) and the session recorded no change of a file in between.  `LOOP_RUNS`
   such runs make a loop; those that read a file, and nothing else, are judged by `files`.
"""

from __future__ import annotations

from attrs import Factory, evolve

from codex_checkpoints.core.checkpoint.caps import MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.losses.files import digest_of
from codex_checkpoints.core.losses.outcomes import Outcome
from codex_checkpoints.values import define, frozen

LOOP_RUNS = 4
"""How many runs of a command with the same outcome, and no change between them, make a loop."""

MAX_COMMANDS = 1024
"""How many commands are remembered, the newest."""


@frozen
class Run:
    """One run of a command, of which it is known how it ended; `reading` does nothing else."""

    script: str
    folder: str | None
    outcome: Outcome
    ref: str | None
    seq: int
    reading: bool = False

    @property
    def failed(self) -> bool:
        """Return whether it failed."""
        return self.outcome.failed is True


@define
class Command:
    """A command: its text as a value, its last run, and the window in which that counts.

    `runs` are those with the same end in a row, `changes` how many changes there were before.
    """

    text: str
    last: Run
    window: int
    changes: int
    end: bytes | None
    runs: int = 1


@define
class Commands:
    """The commands of a session, those that ran last at the end."""

    window: int = 0
    circling: dict[str, None] = Factory(dict[str, None])
    _known: dict[bytes, Command] = Factory(dict[bytes, Command])

    def run(self, run: Run, changes: int) -> None:
        """Take a run; `changes` counts what the session has changed so far."""
        key = digest_of(f"{run.folder or ''}\0{run.script}")
        before = self._known.pop(key, None)
        text = value(run.script, MAX_VALUE_CHARS) if before is None else before.text
        outcome, end = run.outcome, None
        if outcome.printed is not None:
            end = digest_of(f"{outcome.exit_code}\0{outcome.printed}")
        # What it held is let go of: an output may be long.
        last = evolve(run, script="", outcome=evolve(outcome, printed=None))
        command = Command(text, last, self.window, changes, end)
        if (
            before is not None
            and end is not None
            and (before.end, before.changes) == (end, changes)
        ):
            command.runs = before.runs + 1
        self._known[key] = command
        if len(self._known) > MAX_COMMANDS:
            del self._known[next(iter(self._known))]
        if command.runs >= LOOP_RUNS and text and (run.failed or not run.reading):
            self.circling[text] = None

    def failing(self) -> list[Command]:
        """Return the commands that fail in this window, the newest first (rule 1)."""
        return [
            each
            for each in reversed(self._known.values())
            if each.last.failed and each.window == self.window and each.text
        ]

    def open_window(self) -> None:
        """Begin the next window."""
        self.window += 1
        self.circling = {}
