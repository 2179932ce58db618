"""What each call met, window by window: files changed and read again, commands that fail or repeat.

Which call did what is decided by the reducer alone.  Each observation is read at once, for what a
command printed is needed.

Files.  A read is one call that reads one file and does not fail.

1. It is a *re-read of an unchanged file* where what it showed was met in an earlier window.
2. Where the same command has read the file before, what it printed decides: the same output is the
   same content, whatever the session did meanwhile.  Another output is another content, met now,
   unless the session recorded a change in between.
3. Otherwise the session's own record decides: the content is that of its last patch, else that of
   the first read.  A file that a command changed, or a person, is taken for unchanged until rule 2
   shows better.
4. A file goes round in circles when it was read again unchanged in `LOOP_WINDOWS` windows in a row;
   it takes `LOOP_FILES` of them for a warning.

Commands.

5. A command is *failing* in a window when it ran there and its last outcome was a failure, or when
   the replacement that opened the window named it as such.  What was named is not lost yet.
6. A run is a repetition where the same command, in the same folder, ends as it did the last time
   and the session recorded no change of a file in between.  `LOOP_RUNS` such runs make a loop;
   those that read a file, and nothing else, are judged by the rules for files.

How a command ended is said in fields by items and events; the answer to a call is a text: JSON in
the oldest files, later a few headings and the output.  What no version says stays unknown.  Of too
many files and commands those that nobody has met for longest are forgotten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from attrs import Factory, evolve

from codex_checkpoints.core.checkpoint.records import MAX_URI_CHARS, MAX_VALUE_CHARS
from codex_checkpoints.core.checkpoint.state import Observation, Place, State, name_of
from codex_checkpoints.core.checkpoint.text import value
from codex_checkpoints.core.history.survey import Trigger
from codex_checkpoints.core.rollout import tools
from codex_checkpoints.core.rollout.fields import is_object, load, object_of, text_of
from codex_checkpoints.core.rollout.items import Action, CommandRun, Seen, ToolCall
from codex_checkpoints.values import define, frozen

MAX_LISTED = 64
"""How many changed files, and how many failing commands, a loss lists."""

MAX_REREADS = 16
"""How many of the files that were read again it lists, those read most often."""


@frozen
class LostText:
    """The task, or an open step of the plan, and whether the replacement still holds its text.

    `ref` is the message or the call it comes from, `seq` the record, null where none of this
    session's own tells it.  `lost` is null where nobody can tell, since part of the replacement is
    encrypted.
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
class Missed:
    """What there was at a compaction, the lost first; `not_listed` counts what is left out."""

    sealed: bool
    task: LostText | None
    open_plan_steps: tuple[LostText, ...]
    edited_files: tuple[LostFile, ...]
    failing_commands: tuple[LostCommand, ...]
    not_listed: int


@frozen
class Readings:
    """What was read in a window.

    `bytes` is what the calls printed that read a file again; `loop_over` names the files and
    commands that go round in circles, and is empty where none do.
    """

    reads: int = 0
    rereads_unchanged: int = 0
    bytes: int = 0
    rereads: tuple[Reread, ...] = ()
    loop_over: tuple[str, ...] = ()


@frozen
class Loss:
    """One compaction: the window it opened, what went missing, and the readings since.

    `counts` is False where a rollback took the window away; it then has no number.
    """

    number: int | None
    window_id: str | None
    opened_seq: int
    opened_at: str | None
    trigger: Trigger | None
    strategy: str | None
    counts: bool
    missed: Missed
    since: Readings


LOOP_WINDOWS = 2
"""How many windows in a row must read a file again unchanged."""

LOOP_FILES = 2
"""How many such files make a loop."""

MAX_FILES = 1 << 14
"""How many files are remembered."""

MAX_CHANGED = 256
"""How many changed files of a window are looked up in a replacement, the newest."""

_BEFORE = -1
"""The window before the first."""

_OUTPUTS = 4
"""Of how many commands it is remembered what they printed of a file, the newest."""


@frozen
class Changed:
    """The newest change of a file in a window."""

    change: Action
    ref: str | None
    seq: int


@frozen
class _Output:
    """What a command printed of a file: its digest, of which content, known since which window."""

    digest: bytes
    content: int
    since: int


@define
class _File:
    """A file: since which window it holds what it holds, and in which it was read again last.

    `content` counts what it has held; `row` the windows in a row that read it again.
    """

    since: int
    content: int = 0
    again_in: int = _BEFORE
    row: int = 0
    outputs: dict[bytes, _Output] = Factory(dict[bytes, _Output])

    def renew(self, window: int) -> None:
        """Note that it holds something else since a window."""
        self.since, self.content, self.row = window, self.content + 1, 0


@define
class Files:
    """What a session knows of files, and what happened to them in the window at hand."""

    window: int = 0
    changes: int = 0
    """How many changes the session has recorded."""
    changed: dict[str, Changed] = Factory(dict[str, Changed])
    forgotten: int = 0
    """How many changed files of this window are no longer known."""
    reads: int = 0
    rereads: dict[str, Reread] = Factory(dict[str, Reread])
    circling: dict[str, None] = Factory(dict[str, None])
    _files: dict[str, _File] = Factory(dict[str, _File])

    def know(self, uri: str) -> None:
        """Take a file that the session began with: it was met before the first window."""
        self._files.setdefault(uri, _File(_BEFORE))

    def change(self, uri: str, change: Changed) -> None:
        """Take a change that the session itself recorded."""
        self.changes += 1
        self.changed.pop(uri, None)
        self.changed[uri] = change
        if len(self.changed) > MAX_CHANGED:
            del self.changed[next(iter(self.changed))]
            self.forgotten += 1
        self._met(uri).renew(self.window)

    def read(self, uri: str, command: str, printed: str | None, ref: str | None, seq: int) -> bool:
        """Take a read; return whether it showed again what an earlier window had met (rule 1)."""
        self.reads += 1
        file = self._met(uri)
        since = file.since if printed is None else self._since(file, command, printed)
        if since == self.window:
            return False
        if file.again_in != self.window:
            file.row = file.row + 1 if file.again_in == self.window - 1 else 1
            file.again_in = self.window
        if file.row >= LOOP_WINDOWS:
            self.circling[uri] = None
        before = self.rereads.get(uri)
        self.rereads[uri] = Reread(uri, 1 if before is None else before.times + 1, ref, seq)
        return True

    def open_window(self) -> None:
        """Begin the next window."""
        self.window += 1
        self.changed, self.forgotten = {}, 0
        self.reads, self.rereads, self.circling = 0, {}, {}

    def most_read(self) -> tuple[Reread, ...]:
        """Return the files that this window read again, the most often first, then the newest."""
        order = sorted(self.rereads.values(), key=lambda each: (-each.times, -each.seq, each.uri))
        return tuple(order[:MAX_REREADS])

    @property
    def loop(self) -> tuple[str, ...]:
        """Return the files that go round in circles, if there are enough for a warning."""
        return tuple(self.circling) if len(self.circling) >= LOOP_FILES else ()

    def _met(self, uri: str) -> _File:
        """Return a file as the one that was met last; of too many the oldest is forgotten."""
        file = self._files.pop(uri, None) or _File(self.window)
        self._files[uri] = file
        if len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        return file

    def _since(self, file: _File, command: str, printed: str) -> int:
        """Return since which window the content that was printed is known (rules 2 and 3)."""
        key, digest = digest_of(command), digest_of(printed)
        known = file.outputs.pop(key, None)
        same = known is not None and known.digest == digest
        if known is not None and not same and known.content == file.content:
            file.renew(self.window)
        since = known.since if known is not None and same else file.since
        file.outputs[key] = _Output(digest, file.content, since)
        if len(file.outputs) > _OUTPUTS:
            del file.outputs[next(iter(file.outputs))]
        return since


def digest_of(text: str) -> bytes:
    """Return by what a text is known again."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


_HEAD = 1024
"""How much of an answer its headings may fill."""

_HEADING = re.compile(r"(?:Exit code|Chunk ID|Wall time|Process exited|Process running|Command)\b")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_OUTPUT = "\nOutput:\n"


@frozen
class Outcome:
    """The end of a command: `failed` None and `printed` None where nobody tells."""

    failed: bool | None = None
    exit_code: int | None = None
    printed: str | None = None


UNKNOWN = Outcome()


def outcome_of(run: CommandRun) -> Outcome:
    """Return how a command ended by the item or event that tells of it."""
    if run.status in {"in_progress", "inProgress", "declined"}:
        return UNKNOWN
    failed = run.status == "failed" or run.exit_code not in {None, 0}
    return Outcome(failed, run.exit_code, run.printed)


def outcome_in(texts: tuple[str, ...]) -> Outcome:
    """Return how a command ended by the answer to its call."""
    text = "\n".join(texts)
    if text.startswith("{"):
        return _outcome_in_json(text)
    if not _HEADING.match(text):
        return Outcome(printed=text)
    cut = text.find(_OUTPUT, 0, _HEAD)
    head, printed = (text[:_HEAD], None) if cut < 0 else (text[:cut], text[cut + len(_OUTPUT) :])
    found = _CODE.search(head)
    if found is None:
        return Outcome(printed=printed)
    code = int(found[1])
    return Outcome(code != 0, code, printed)


def _outcome_in_json(text: str) -> Outcome:
    value = load(text.encode(errors="replace"))
    if not is_object(value) or "output" not in value:
        return Outcome(printed=text)
    printed, code = text_of(value["output"]), object_of(value.get("metadata")).get("exit_code")
    if type(code) is not int:
        return Outcome(printed=printed)
    return Outcome(code != 0, code, printed)


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
        """Return the commands that fail in this window, the newest first (rule 5)."""
        return [
            each
            for each in reversed(self._known.values())
            if each.last.failed and each.window == self.window and each.text
        ]

    def open_window(self) -> None:
        """Begin the next window."""
        self.window += 1
        self.circling = {}


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
