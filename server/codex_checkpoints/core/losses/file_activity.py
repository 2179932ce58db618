"""Tracks the files and commands of each window: files read again, and commands that fail.

Each call is examined at once, because the output of a command is needed.

Files.  A read is one call that reads one file and does not fail.

1. It is a *re-read of an unchanged file* if an earlier window already knew the printed content.
2. If the same command has read the file before, its output decides: the same output is the same
   content, whatever the session did meanwhile.  Another output is other content, new in this
   window, unless the session recorded a change in between.
3. Otherwise the session's own record decides: the content is as after its last patch, else as in
   the first read.  A file that a command or a person changed counts as unchanged until rule 2 shows
   otherwise.

Commands.

4. A command is *failing* in a window when it ran there and its last outcome was a failure, or when
   the replacement that opened the window named it as failing.  A named command is not lost yet.  A
   look that failed is not a failing command.

Items and events have fields for the outcome of a command; the answer to a call is text: JSON in the
oldest files, later a few headings and the output.  Facts that no version records stay unknown.
Beyond the bounds, the least recently used files and commands are forgotten.
"""

from __future__ import annotations

import hashlib

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.effects import Effects
from codex_checkpoints.core.events import (
    UNKNOWN,
    Action,
    CallEnded,
    Fold,
    Outcome,
    Record,
    ToolCall,
)
from codex_checkpoints.core.fields import renew
from codex_checkpoints.core.shell.commands import is_check

MAX_LISTED = 64
"""Number of changed files, and of failing commands, that a loss lists."""

MAX_REREADS = 16
"""Number of re-read files that a loss lists, the most read first."""


@frozen
class LostText:
    """The task, or an open step of the plan, and whether the replacement still contains its text.

    `ref` is the message or the call it comes from, `seq` the record, null if this session has
    none.  `lost` is null if part of the replacement is encrypted and nobody can tell.
    """

    text: str
    ref: str | None
    seq: int | None
    lost: bool | None


@frozen
class LostFile:
    """A file that was changed in the window before, and whether the replacement names it.

    `change` is `add`, `update`, `delete` or `move`; `ref` is the call that did it last.
    """

    uri: str
    change: Action
    ref: str | None
    seq: int
    lost: bool | None


@frozen
class LostCommand:
    """A command that had failed when it was run last, and whether the replacement names it."""

    command: str
    exit_code: int | None
    ref: str | None
    seq: int
    lost: bool | None


@frozen
class Reread:
    """A file that was read again unchanged, how often, and the last record that did it."""

    uri: str
    times: int
    ref: str | None
    seq: int


@frozen
class Totals:
    """How many things were lost, kept, or are unknown; those that are not listed count too."""

    lost: int
    kept: int
    unknown: int


@frozen
class CompactionLoss:
    """Everything known at a compaction, the lost first; `not_listed` counts the rest."""

    sealed: bool
    totals: Totals
    task: LostText | None
    open_plan_steps: tuple[LostText, ...]
    edited_files: tuple[LostFile, ...]
    failing_commands: tuple[LostCommand, ...]
    not_listed: int


@frozen
class Readings:
    """The reads of a window.

    `bytes` is the output of the calls that read a file again.
    """

    reads: int = 0
    rereads_unchanged: int = 0
    bytes: int = 0
    rereads: tuple[Reread, ...] = ()


@frozen
class Loss:
    """One compaction: the facts its replacement lacks, and the files read again since.

    `number` is null if a rollback took its window away (`counts` is false).  `sealed`: a part is
    encrypted, and facts missing from the rest are unknown.  `taskPresent` is null if that is
    unknown or the session has no task.  `reads` are the reads of files up to the next compaction,
    `rereadsUnchanged` the reads of files that did not change, `bytes` their output.
    """

    number: int | None
    window_id: str | None
    opened_at_seq: int
    opened_at: str | None
    trigger: str | None
    strategy: str | None
    counts: bool
    sealed: bool
    totals: Totals
    task_present: bool | None
    task: LostText | None
    open_plan_steps: tuple[LostText, ...]
    edited_files: tuple[LostFile, ...]
    failing_commands: tuple[LostCommand, ...]
    not_listed: int
    reads: int
    rereads_unchanged: int
    bytes: int
    rereads: tuple[Reread, ...]


MAX_FILES = 1 << 14
"""Number of files that are remembered."""

MAX_CHANGED = 256
"""Number of changed files of a window, the newest, that are searched for in a replacement."""


_OUTPUTS = 4
"""Number of commands, the newest, whose output about a file is remembered."""


@frozen
class LastChange:
    """The newest change of a file in a window."""

    change: Action
    ref: str | None
    seq: int


@frozen
class _Output:
    """The output of a command about a file: its digest, its content, and since which window."""

    digest: bytes
    content: int
    since: int


@define
class _File:
    """A file: the window since which its content is known, -1 for the one before the first.

    `content` counts its contents.
    """

    since: int
    content: int = 0
    outputs: dict[bytes, _Output] = Factory(dict[bytes, _Output])

    def renew(self, window: int) -> None:
        """Note new content in a window."""
        self.since, self.content = window, self.content + 1


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


MAX_COMMANDS = 1024
"""Number of commands that are remembered, the newest."""


@frozen
class Run:
    """A run of a command whose end is known."""

    script: str
    folder: str | None
    outcome: Outcome
    ref: str | None
    seq: int


@define
class Command:
    """A command: its text as a value, its last run, and the window in which it counts."""

    text: str
    last: Run
    window: int


@define(eq=False)
class FileActivity(Fold):
    """The files and commands that the calls of a session touched, overall and in this window.

    `forgotten` counts the changed files of this window that are not known any more.  `printed` is
    the output, in bytes, of this window's calls that read a file again unchanged.
    """

    window: int = 0
    changed: dict[str, LastChange] = Factory(dict[str, LastChange])
    forgotten: int = 0
    reads: int = 0
    printed: int = 0
    rereads: dict[str, Reread] = Factory(dict[str, Reread])
    _files: dict[str, _File] = Factory(dict[str, _File])
    _commands: dict[bytes, Command] = Factory(dict[bytes, Command])
    _state: State = Factory(State)

    def follow(self, state: State) -> None:
        """Follow a state; one followed before belongs to a session that this one continues."""
        self._state = state

    def take(self, record: Record) -> None:
        """Take the calls that ended with a record."""
        for event in record.events:
            if isinstance(event, CallEnded):
                self._ended(Effects(event), record.seq)

    def open_window(self) -> None:
        """Begin the next window."""
        self.window += 1
        self.changed, self.rereads = {}, {}
        self.forgotten = self.reads = self.printed = 0

    def readings(self) -> Readings:
        """Return the reads of this window."""
        rereads = sorted(self.rereads.values(), key=lambda each: (-each.times, -each.seq, each.uri))
        return Readings(
            self.reads,
            sum(each.times for each in rereads),
            self.printed,
            tuple(rereads[:MAX_REREADS]),
        )

    def failing(self) -> list[Command]:
        """Return the commands that fail in this window, the newest first (rule 4)."""
        return [
            each
            for each in reversed(self._commands.values())
            if each.last.outcome.failed and each.window == self.window and each.text
        ]

    def _ended(self, effects: Effects, seq: int) -> None:
        """Add the effects of one call: changes and the command, and reads unless it failed."""
        call = effects.ended.call
        is_cut = effects.ended.shortened and isinstance(call, ToolCall)
        outcome = UNKNOWN if is_cut else effects.outcome
        ref = call.call_id if 0 < len(call.call_id) <= MAX_URI_CHARS else None
        run = Run("", None, outcome, ref, seq)
        read: dict[str, str] = {}
        for each, uri in effects.named:
            if each.action == "read":
                if each.only_if is None:
                    read[uri] = each.script or ""
            else:
                change = LastChange(each.action, each.call_id or run.ref, run.seq)
                self.forgotten += renew(self.changed, uri, change, MAX_CHANGED)
                self._file(uri).renew(self.window)
        for each in effects.runs:
            if run.outcome.failed is not None and is_check(each.script, failed=True):
                self._run(evolve(run, script=each.script, folder=each.folder))
        if run.outcome.failed is not True:
            again = [self._read(uri, each, run) for uri, each in read.items()]
            if any(again) and run.outcome.printed is not None:
                self.printed += len(run.outcome.printed.encode(errors="replace"))

    def _read(self, uri: str, command: str, run: Run) -> bool:
        """Add a read; return whether an earlier window knew the printed content (rule 1)."""
        seed, printed = self._state.seed, run.outcome.printed
        if seed is not None and uri in seed.artifacts:
            self._files.setdefault(uri, _File(-1))
        self.reads += 1
        file = self._file(uri)
        since = file.since if printed is None else self._since(file, command, printed)
        if since == self.window:
            return False
        before = self.rereads.get(uri)
        times = 1 if before is None else before.times + 1
        self.rereads[uri] = Reread(uri, times, run.ref, run.seq)
        return True

    def _file(self, uri: str) -> _File:
        """Return a file and make it the newest; beyond the bound the oldest is forgotten."""
        file = self._files.get(uri) or _File(self.window)
        renew(self._files, uri, file, MAX_FILES)
        return file

    def _since(self, file: _File, command: str, printed: str) -> int:
        """Return the window since which the printed content is known (rules 2 and 3)."""
        key, digest = _digest(command), _digest(printed)
        known = file.outputs.get(key)
        same = known is not None and known.digest == digest
        if known is not None and not same and known.content == file.content:
            file.renew(self.window)
        since = known.since if known is not None and same else file.since
        renew(file.outputs, key, _Output(digest, file.content, since), _OUTPUTS)
        return since

    def _run(self, run: Run) -> None:
        """Add a run of a command."""
        key = _digest(f"{run.folder or ''}\0{run.script}")
        before = self._commands.get(key)
        text = value(run.script, MAX_VALUE_CHARS) if before is None else before.text
        # The texts are dropped: an output may be long.
        last = evolve(run, script="", outcome=evolve(run.outcome, printed=None))
        renew(self._commands, key, Command(text, last, self.window), MAX_COMMANDS)
