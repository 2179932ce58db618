"""Defines the typed items that `parsing` makes of lines, and the effects and ends of calls."""

from __future__ import annotations

import re
from typing import Literal

from attrs import field, frozen

from codex_checkpoints.core.fields import content_hash, is_object, load, object_of, text_of
from codex_checkpoints.core.patches import PatchedFile

Signal = Literal["unknown", "quiet", "told", "thought", "called", "answered", "compacted"]
"""All that is needed of some lines.

`unknown`: this version does not know its kind.  `quiet`: a checkpoint keeps nothing of it.  `told`:
the model was given context or a result.  `thought`, `called`, `answered`: it reasoned, used a tool,
wrote a message.  `compacted`: Codex replaced the context.
"""


@frozen
class HistoryBase:
    """The rollout whose records precede the records of this file (ROL-5)."""

    rollout_id: str
    end_ordinal: int | None
    end_offset: int | None


@frozen
class SessionMeta:
    """The head of a session file (ROL-4); `git` is the commit, branch and URL of its repository."""

    session_id: str | None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    thread_source: str | None = None
    source: str | None = None
    background: bool = False
    """Its origin in a word, and whether nobody types in it."""
    agent: str | None = None
    """The nickname and the path of a helper among several agents."""
    paginated: bool = False
    bare: bool = False
    forked_from: str | None = None
    parent_session: str | None = None
    base: HistoryBase | None = None
    inherited_below: int | None = None
    timestamp: str | None = None
    git: tuple[str | None, str | None, str | None] | None = None

    @property
    def forked_at(self) -> int:
        """Return the ordinal of the first own line of a fork that refers to its source, else 0."""
        base = self.base
        is_fork = base is not None and base.rollout_id != self.session_id
        return 0 if not is_fork or base is None else base.end_ordinal or 0


@frozen
class TurnContext:
    """The settings of a turn, or of the session from here on.

    `cwd` is the folder of the turn, for relative paths; `folder` is the folder of the session.
    """

    turn_id: str | None
    cwd: str | None
    model: str | None
    folder: str | None = None


@frozen
class TaskStarted:
    """Codex began a task; `window` is the model's context window in tokens.

    `parent` is the turn that the task is a part of; `for_goal`: it goes on with the thread's goal,
    None if the record does not say.
    """

    turn_id: str | None
    window: int | None
    parent: str | None = None
    for_goal: bool | None = None


@frozen
class TaskEnded:
    """A task ended; `answered`: the record holds the last answer, `error`: the failure."""

    turn_id: str | None
    aborted: bool
    answered: bool = False
    error: Trouble | None = None


@frozen
class Trouble:
    """An error of Codex: its message; `is_limit`: the usage limit is reached."""

    text: str
    is_limit: bool = False


@frozen
class Limits:
    """A report of limits without a token report; `resets_at` as in `Tokens`."""

    resets_at: int | None


@frozen
class GoalSet:
    """The goal of a thread as it is now; without an objective it was cleared."""

    objective: str | None
    status: str
    thread_id: str | None = None


@frozen
class PlanTold:
    """A plan that the agent proposes, or that a person `approved`, handed over outside any task."""

    text: str
    approved: bool = False


@frozen
class AgentWrote:
    """A message between agents; `text` is None if it is encrypted.

    `form` is its type as Codex names it: a new task, a message, a final answer.
    """

    author: str
    recipient: str
    form: str
    text: str | None
    ref: str | None = None
    turn_id: str | None = None

    @property
    def is_answer(self) -> bool:
        """Return whether an agent gives the result of its task."""
        return self.form == "FINAL_ANSWER"


@frozen
class ReviewTold:
    """A person's request for a review, in Codex's words, or the findings, a line each."""

    text: str
    ended: bool
    turn_id: str | None = None


@frozen
class RolledBack:
    """The newest `turns` user turns do not count any more (ROL-10)."""

    turns: int


@frozen
class UserMessage:
    """A message with the role `user`.

    `in_history`: it comes from the model's history, so Codex may have injected it.  `pictured`: it
    has a picture.
    """

    texts: tuple[str, ...]
    in_history: bool = False
    ref: str | None = None
    turn_id: str | None = None
    pictured: bool = False


@frozen
class Tokens:
    """The tokens of the last model call, of its input, and the window (ROL-9).

    `resets_at` is the time when a used-up limit begins anew, in seconds since 1970.
    """

    total: int
    input: int | None
    window: int | None
    resets_at: int | None = field(default=None, eq=False, kw_only=True)

    @property
    def is_estimate(self) -> bool:
        """Return whether Codex estimated this itself, as it does after a compaction (JUN-28)."""
        return self.input == 0 and self.total > 0

    @property
    def is_impossible(self) -> bool:
        """Return whether the report exceeds the window."""
        return self.window is not None and self.total > self.window


@frozen
class ThreadNamed:
    """The session got a name (older files)."""

    name: str | None


SHELLS = frozenset({"shell", "container.exec", "local_shell", "shell_command", "exec_command"})
MCP = "mcp__"
"""The prefix of the namespace or the name of an MCP tool."""


@frozen
class ToolCall:
    """A call of a tool; `arguments` is a JSON value, or a text for tools that take one."""

    call_id: str
    name: str
    namespace: str | None
    arguments: object
    turn_id: str | None = None

    @property
    def is_command(self) -> bool:
        """Return whether it calls one of Codex's own shells, and not an MCP tool."""
        own = self.namespace is None or not self.namespace.startswith(MCP)
        return self.name in SHELLS and own

    @property
    def is_script(self) -> bool:
        """Return whether it runs a script in code mode."""
        return self.name == "exec" and self.namespace is None and isinstance(self.arguments, str)


@frozen
class ToolOutput:
    """The answer to a call, as text parts."""

    call_id: str
    texts: tuple[str, ...]


@frozen
class CommandRun:
    """A command with its outcome; `parsed` lists Codex's findings in it, as (type, path).

    `by_user`: the person ran it, with `!`, and not the agent.
    """

    call_id: str
    argv: tuple[str, ...]
    folder: str | None
    parsed: tuple[tuple[str, str | None], ...] | None
    status: str | None
    exit_code: int | None
    printed: str | None = None
    by_user: bool = False


@frozen
class FilesChanged:
    """A patch, and whether it was applied."""

    call_id: str
    changes: tuple[PatchedFile, ...]
    done: bool


@frozen
class ToolRan:
    """Another tool with its outcome; `server` is None for a tool of Codex.

    `paths` are the paths that its arguments name, files or not.
    """

    call_id: str
    server: str | None
    tool: str
    texts: tuple[str, ...]
    ran: bool
    paths: tuple[str, ...] = ()


@frozen
class FileViewed:
    """The model looked at a file."""

    call_id: str
    path: str


ToolResult = CommandRun | FilesChanged | ToolRan | FileViewed

Item = (
    Signal
    | SessionMeta
    | TurnContext
    | TaskStarted
    | TaskEnded
    | RolledBack
    | UserMessage
    | Tokens
    | Limits
    | Trouble
    | GoalSet
    | PlanTold
    | AgentWrote
    | ReviewTold
    | ThreadNamed
    | ToolCall
    | ToolOutput
    | ToolResult
)

Action = Literal["read", "add", "update", "delete", "move", "run", "call"]

EDITS = frozenset[Action]({"add", "update", "delete", "move"})
"""The actions that change a file."""

Condition = Literal["file", "folder", "no folder"]
"""The kind of entry that must be at a path now, so that something counts as observed."""


@frozen
class Seen:
    """One thing that a call touched.

    `name` is a path, the text of a command, or `<tool>/<call id>`.  `folder` is the one that the
    call gives for a relative path.  `hash` is the hash of a tool's output, or of the content of a
    file that the record holds whole.  `call_id` names the patch that changed a file.  `script` is
    the command that read one.  `minor`: a look or a chore.  `more`: it may have changed files that
    it does not name.  `only_if` is a condition on a path, as the call has it: the kind of entry
    that must be there now.
    """

    kind: Literal["file", "command", "tool_output"]
    name: str
    action: Action
    folder: str | None = None
    hash: str | None = None
    call_id: str | None = field(default=None, eq=False, kw_only=True)
    script: str | None = field(default=None, eq=False, kw_only=True)
    minor: bool = field(default=False, kw_only=True)
    more: bool = field(default=False, kw_only=True)
    only_if: tuple[Condition, str] | None = field(default=None, kw_only=True)

    @property
    def condition(self) -> Seen:
        """The entry in its condition, as a file that was read, or itself."""
        return self if self.only_if is None else Seen("file", self.only_if[1], "read", self.folder)

    @property
    def is_command(self) -> bool:
        """Whether it is a command, and not one that only counts if its files do not."""
        return self.kind == "command" and self.only_if is None


_HEAD = 1024
"""Characters of an answer that its headings may take."""

_HEADING = re.compile(r"(?:Exit code|Chunk ID|Wall time|Process exited|Process running|Command)\b")
_CODE = re.compile(r"^(?:Exit code: |Process exited with code )(-?[0-9]{1,10})$", re.MULTILINE)
_OUTPUT = "\nOutput:\n"
_NOT_DONE = re.compile(
    # In a sandbox, until 0.7x: with an exit code and both outputs, or with a reason alone.
    r"(?:failed in sandbox \w+ with )?execution error: "
    r"(?:[^\n]{0,200}?, exit code: (?P<code>-?[0-9]{1,10}), stdout: (?P<printed>.*), stderr: )?"
    r"|exec_command failed: |aborted by user after [0-9]",
    re.DOTALL,
)


@frozen
class Outcome:
    """How a command ended; None if not known."""

    failed: bool | None = None
    exit_code: int | None = None
    printed: str | None = None

    @property
    def ended(self) -> str:
        """Return `exit 2`; in words if no code is known."""
        if self.exit_code is not None:
            return f"exit {self.exit_code}"
        return {None: "outcome not known", True: "failed", False: "completed"}[self.failed]


UNKNOWN = Outcome()

_WHOLE_BELOW = 65_530
"""Of a longer output (in bytes) Codex records the first and last 32 KiB, unmarked; each end may
lose a part of a character.
"""

_UNSURE = re.compile(
    # Line ends that a terminal may have made; a remark of the shell.
    r"\r\n|\A(?:/\S*/)?(?:ba|z)?sh: |\AWarning: truncated output"
    # Codex's words where it has cut, in each of its versions.
    r"|\u2026[0-9]+ (?:chars|tokens) truncated\u2026|\.\.\. [0-9]+ bytes omitted"
    r"|\[\.\.\. (?:omitted|output truncated)"
)
_HINTS = ("\r\n", "sh: ", "truncated", "omitted")
"""Each such text contains one of these."""

_COUNTED = re.compile(r"^Original token count: ([0-9]{1,15})$", re.MULTILINE)


def outcome_of(run: CommandRun) -> Outcome:
    """Return how a command ended by its item or event."""
    if run.status in {"in_progress", "inProgress", "declined"}:
        return UNKNOWN
    failed = run.status == "failed" or run.exit_code not in {None, 0}
    return Outcome(failed, run.exit_code, run.printed)


def printed_whole(outcome: Outcome) -> str | None:
    """Return the hash of a command's output; None if it failed or may have printed more.

    An empty text proves nothing: it may not be recorded.
    """
    text = outcome.printed
    if outcome.exit_code != 0 or not text or _size(text) >= _WHOLE_BELOW:
        return None
    is_unsure = any(map(text.__contains__, _HINTS)) and _UNSURE.search(text)
    return None if is_unsure else content_hash(text)


def answered_whole(texts: tuple[str, ...]) -> str | None:
    """Return the same for the answer to a call, which may say how long the output was."""
    found = outcome_in(texts)
    head = "\n".join(texts)[:_HEAD].partition(_OUTPUT)[0]
    counted = _COUNTED.search(head)
    tokens = -(-_size(found.printed or "") // 4)
    if "\nTotal output lines: " in head or (counted and int(counted[1]) != tokens):
        return None
    return printed_whole(found)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def outcome_in(texts: tuple[str, ...]) -> Outcome:
    """Return how a command ended by the answer to its call."""
    text = "\n".join(texts)
    if text.startswith("{"):
        return _outcome_in_json(text)
    if not _HEADING.match(text):
        return _outcome_in_words(text)
    cut = text.find(_OUTPUT, 0, _HEAD)
    head, printed = (text[:_HEAD], None) if cut < 0 else (text[:cut], text[cut + len(_OUTPUT) :])
    found = _CODE.search(head)
    if found is None:
        return Outcome(printed=printed)
    code = int(found[1])
    return Outcome(code != 0, code, printed)


_OF_SCRIPT = re.compile(
    r"Script (?:completed|(failed))\n(?:[^\n]*\n){0,2}?Output:\n+|Script completed\Z"
)
"""The beginning of the answer to a code-mode script."""


def outcome_of_script(texts: tuple[str, ...]) -> Outcome:
    """Return how the only command of a code-mode script ended, by the answer to the script.

    If the script prints the whole result of the command, that is JSON with its exit code.
    """
    text = "\n".join(texts)
    found = _OF_SCRIPT.match(text)
    if found is None:
        return Outcome(printed=text)
    printed = text[found.end() :]
    if found[1]:
        return Outcome(failed=True, printed=printed)
    value = load(printed.encode(errors="replace")) if printed.startswith("{") else None
    if not is_object(value) or "output" not in value:
        return Outcome(printed=printed)
    code, told = value.get("exit_code"), text_of(value["output"])
    if type(code) is not int:
        return Outcome(printed=told)
    return Outcome(code != 0, code, told)


def _outcome_in_words(text: str) -> Outcome:
    """Return the outcome that an answer without headings begins with."""
    found = _NOT_DONE.match(text)
    if found is None:
        return Outcome(printed=text)
    if found["code"] is None:
        return Outcome(failed=True, printed=text)
    code, rest = int(found["code"]), text[found.end() :]
    return Outcome(code != 0, code, "\n".join((found["printed"], rest)))


def _outcome_in_json(text: str) -> Outcome:
    value = load(text.encode(errors="replace"))
    if not is_object(value) or "output" not in value:
        return Outcome(printed=text)
    printed, code = text_of(value["output"]), object_of(value.get("metadata")).get("exit_code")
    if type(code) is not int:
        return Outcome(printed=printed)
    return Outcome(code != 0, code, printed)
