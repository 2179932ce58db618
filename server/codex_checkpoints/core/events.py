"""The events of a session, whatever agent wrote its records.

A session file holds records in the format of its agent.  One deriver for each agent (for Codex
`agents/codex/derive`) turns each record into a `Record`: its place, and the events that count.  A
fact that a file records twice is one event; text that nobody typed is not a prompt; a call ends in
one event, whichever record reports its outcome.  The folds take records and know no agent's format.
"""

from __future__ import annotations

from typing import Literal, Protocol

from attrs import define, field, frozen

from codex_checkpoints.core.fields import object_of
from codex_checkpoints.core.patches import PatchedFile


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
    """Its origin in a word, and whether no person uses it."""
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
class ModeSet:
    """The agent works in a mode from here on, as it names it: `plan`, `default`."""

    mode: str
    turn_id: str | None


@frozen
class TaskStarted:
    """Codex began a task; `window` is the model's context window in tokens.

    `parent` is the turn that the task is a part of; `for_goal`: it goes on with the thread's goal,
    None if the record does not say.  `names_session`: it only names the session for people.
    """

    turn_id: str | None
    window: int | None
    parent: str | None = None
    for_goal: bool | None = None
    names_session: bool = False


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
    """The goal of a thread as it is now; without an objective it was cleared.

    `by_call`: the agent read or set it, and not a person.
    """

    objective: str | None
    status: str
    thread_id: str | None = None
    by_call: bool = False


@frozen
class PlanMessage:
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
class ReviewMessage:
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

    `resets_at` is the time when a used-up limit resets, in seconds since 1970.
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
ASKS_PROCESS = "write_stdin"
"""The tool that writes to a running process and reads its output."""
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
    def process(self) -> str | None:
        """Return the running process that it asks about, or None."""
        found = object_of(self.arguments).get("session_id") if self.name == ASKS_PROCESS else None
        return None if found is None else str(found)

    @property
    def is_script(self) -> bool:
        """Return whether it runs a script in code mode."""
        return self.name == "exec" and self.namespace is None and isinstance(self.arguments, str)


@frozen
class CommandRun:
    """A command with its outcome; `parsed` lists Codex's findings in it, as (type, path).

    `by_user`: the person ran it, with `!`, and not the agent.  `seconds` is its duration, if it is
    recorded.
    """

    call_id: str
    argv: tuple[str, ...]
    folder: str | None
    parsed: tuple[tuple[str, str | None], ...] | None
    status: str | None
    exit_code: int | None
    printed: str | None = None
    by_user: bool = False
    seconds: float | None = field(default=None, eq=False)


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
    def is_file(self) -> bool:
        """Whether it is a file, perhaps on a condition."""
        return self.kind == "file"

    @property
    def condition(self) -> Seen:
        """The entry in its condition, as a file that was read, or itself."""
        return self if self.only_if is None else Seen("file", self.only_if[1], "read", self.folder)

    @property
    def is_command(self) -> bool:
        """Whether it is a command, and not one that only counts if its files do not."""
        return self.kind == "command" and self.only_if is None


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


Steps = tuple[tuple[str, bool], ...]
"""The steps of a plan in order: text, and whether it is done."""

Opener = Literal["compaction", "undo", "restore"]
"""Why a window was opened: by a compaction, by its undo, or by a restore."""


@frozen
class InputGiven:
    """The model was given context or a result."""


@frozen
class Thought:
    """The model reasoned."""


@frozen
class Called:
    """The model called a tool."""


@frozen
class Answered:
    """The model wrote a message; `text` is None if it was not read.

    `final`: it is not a comment on unfinished work.
    """

    text: str | None
    final: bool
    turn_id: str | None = None


@frozen
class FolderFound:
    """The folder of a session whose head has none became known."""

    folder: str


@frozen
class GoalContinued:
    """The running task works for the goal."""


@frozen
class HistoryRetracted:
    """The messages and turns so far came from the model's history alone and count no more.

    From here on the file marks typed messages itself.
    """


@frozen
class PlanSet:
    """The agent set the steps of its plan with a call."""

    steps: Steps
    call_id: str
    turn_id: str | None


@frozen
class CallEnded:
    """A call ended, or its outcome became known; `texts` are its answer if the call lacks it.

    `folder` is the folder of the turn for relative paths, `base` the folder of the session.
    `turn_id` is the turn that its records name.  `shortened`: the record lost its base64 blobs.
    `rewritten` are the files, by their paths, that the patch deletes and adds again.
    """

    call: ToolCall | ToolResult
    texts: tuple[str, ...]
    folder: str | None
    base: str | None
    turn_id: str | None = None
    shortened: bool = False
    rewritten: frozenset[str] = frozenset()


@frozen
class WindowOpened:
    """The context was replaced; `own_text` is the text that we put there, if it is short.

    `begins_file`: it is the second record of its file, the form of the sessions that we make.
    `requests` are the messages of people in the replacement, the newest first, if no others are
    recorded so far.  `text` is the readable text in place of the context, if it was read: ours
    (`by_us`), or the agent's summary.
    """

    by: Opener
    own_text: str = ""
    begins_file: bool = False
    requests: tuple[UserMessage, ...] = ()
    text: str = ""
    by_us: bool = False


@frozen
class CallText:
    """A call as the model wrote it; `text` are its arguments, or the text that the tool takes.

    `script` is the command in it, in code mode its commands; `parts` are the commands and patches
    of a code-mode script, else the text.  `folder` is the folder that it names, `turn_folder` the
    turn's.  `process` is the running process that it asks about.  `aside`: other events have its
    content, or it only looks at something.
    """

    call_id: str
    name: str
    text: str
    script: str | None
    parts: tuple[str, ...]
    folder: str | None
    turn_folder: str | None
    process: str | None
    aside: bool
    turn_id: str | None


@frozen
class OutputText:
    """The answer to a call, or to none: a text that the agent was given as an answer of `tool`.

    `outcome` has the printed text; `process` is the process that goes on.  `aside` as in the call.
    """

    call_id: str
    tool: str
    outcome: Outcome
    process: str | None
    aside: bool
    turn_id: str | None


@frozen
class AnswerRepeated:
    """An answer that mostly another record has as well; `at_end`: the end of a task has it."""

    text: str
    turn_id: str | None
    at_end: bool


@frozen
class AgentCalled:
    """The turn called another agent, or asked it to continue."""

    agent: str
    turn_id: str | None


@frozen
class AgentsAnswered:
    """Answers of other agents, each with its agent."""

    answers: tuple[tuple[str, str], ...]


@frozen
class Chosen:
    """The choices of a person in a dialog: each question with the choices, none that is secret."""

    choices: tuple[tuple[str, tuple[str, ...]], ...]
    turn_id: str | None


TextEvent = CallText | OutputText | AnswerRepeated | AgentCalled | AgentsAnswered | Chosen
"""Events that a deriver gives only to those who quote texts."""


@frozen
class NotUnderstood:
    """A part of a record that this version cannot read; `count` is the number of such parts."""

    reason: Literal["unknown_type", "unread_call"]
    count: int = 1


Event = (
    SessionMeta
    | FolderFound
    | TurnContext
    | ModeSet
    | TaskStarted
    | TaskEnded
    | RolledBack
    | UserMessage
    | HistoryRetracted
    | GoalSet
    | GoalContinued
    | PlanMessage
    | PlanSet
    | AgentWrote
    | ReviewMessage
    | InputGiven
    | Thought
    | Called
    | Answered
    | CallEnded
    | WindowOpened
    | Tokens
    | Limits
    | Trouble
    | ThreadNamed
    | TextEvent
    | NotUnderstood
)


@define
class Record:
    """One record of a session: its place, and its events in order.

    Nobody changes it; a frozen one would take twice as long to make, and each line makes one.

    `seq` is its number, `position` counts the records from 1 through the chain of files; `file`
    numbers the files, `offset` and `length` are bytes, `length` is 0 if the record was skipped.
    `at` is the time that it states, `turn_id` the turn that it names.  `counts`: it is neither
    inherited from a parent nor part of naming the session.  `waits`: after it a call has no outcome
    yet, in a file that reports outcomes with the answers.
    """

    seq: int
    position: int
    file: int
    offset: int
    length: int
    at: str | None
    turn_id: str | None
    counts: bool
    waits: bool
    events: tuple[Event, ...]


TextKind = Literal["user", "assistant", "call", "output", "patch", "summary", "error"]


@frozen
class RecordedText:
    """A text of a record that can be recalled, as recorded; `seq`, `at` and `turn_id` as there.

    `ids` are the ids of its message or call, `about` the script or the arguments of its call.
    `repeats`: another record of the session has the same content, or it is a look at the session.
    `in_history`: it is the history's copy of a user message.  `outcome` is the result of an output,
    without the printed text.
    """

    seq: int
    at: str | None
    turn_id: str | None
    kind: TextKind
    text: str
    ids: tuple[str, ...]
    about: str = ""
    repeats: bool = False
    in_history: bool = False
    outcome: Outcome = UNKNOWN


class Source(Protocol):
    """A record before it is read: its file, its position, and its bytes."""

    @property
    def file(self) -> int: ...  # noqa: D102 - as in `Record`
    @property
    def position(self) -> int: ...  # noqa: D102 - as in `Record`
    @property
    def raw(self) -> bytes: ...  # noqa: D102 - without the end of the line


class Fold(Protocol):
    """A consumer of the records of a session, in order."""

    def take(self, record: Record) -> None:
        """Take the next record."""
        ...
