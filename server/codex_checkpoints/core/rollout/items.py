"""The typed items that `parsing` makes of lines, and what `tools` finds that a call touched."""

from __future__ import annotations

from typing import Literal

from codex_checkpoints.values import field, frozen


@frozen
class Unreadable:
    """A line that is no JSON object, and the reason that is counted for it."""

    reason: str


Signal = Literal["unknown", "quiet", "worked", "answered", "compacted"]
"""All that is needed of some lines.

`unknown`: its kind is not known to this version.  `quiet`: a checkpoint keeps nothing of it.
`worked`: the model did something that is no answer.  `compacted`: Codex replaced the context.
"""


@frozen
class HistoryBase:
    """The rollout whose records precede those of this file (ROL-5)."""

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
    paginated: bool = False
    bare: bool = False
    forked_from: str | None = None
    parent_session: str | None = None
    base: HistoryBase | None = None
    inherited_below: int | None = None
    timestamp: str | None = None
    git: tuple[str | None, str | None, str | None] | None = None


@frozen
class TurnContext:
    """The settings of a turn."""

    turn_id: str | None
    cwd: str | None
    model: str | None


@frozen
class TaskStarted:
    """Codex began a task; `window` is the model's context window in tokens."""

    turn_id: str | None
    window: int | None


@frozen
class TaskEnded:
    """A task ended, with or without success; `failed`: with an error."""

    turn_id: str | None
    aborted: bool
    failed: bool = False


@frozen
class RolledBack:
    """The newest `turns` user turns no longer count (ROL-10)."""

    turns: int


@frozen
class UserMessage:
    """A message with the role `user`.

    `in_history`: it comes from the model's history, so Codex may have injected it.
    """

    texts: tuple[str, ...]
    in_history: bool = False
    ref: str | None = None
    turn_id: str | None = None


@frozen
class Tokens:
    """The tokens of the last model call, those of its input, and the window (ROL-9)."""

    total: int
    input: int | None
    window: int | None

    @property
    def is_estimate(self) -> bool:
        """Return whether Codex estimated this itself, as it does after a compaction (JUN-28)."""
        return self.input == 0 and self.total > 0

    @property
    def is_impossible(self) -> bool:
        """Return whether the report exceeds the window."""
        return self.window is not None and self.total > self.window


@frozen
class Named:
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


@frozen
class ToolOutput:
    """The answer to a call, as text parts."""

    call_id: str
    texts: tuple[str, ...]


@frozen
class CommandRun:
    """A command with its outcome; `parsed` lists what Codex found in it, as (type, path)."""

    call_id: str
    argv: tuple[str, ...]
    folder: str | None
    parsed: tuple[tuple[str, str | None], ...] | None
    status: str | None
    exit_code: int | None
    printed: str | None = None


@frozen
class FileChange:
    """One file of a patch, by its path as written; `kind` is mostly `add`, `update` or `delete`.

    `added` is the hash of the content of an added file.
    """

    path: str
    kind: str
    move_to: str | None = None
    added: str | None = field(default=None, eq=False, kw_only=True)


@frozen
class FilesChanged:
    """A patch, and whether it was applied."""

    call_id: str
    changes: tuple[FileChange, ...]
    done: bool


@frozen
class ToolRan:
    """Another tool with its outcome; `server` is None for a tool of Codex.

    `paths` are those that its arguments name, files or not.
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
    | Named
    | ToolCall
    | ToolOutput
    | ToolResult
)

Action = Literal["read", "add", "update", "delete", "move", "run", "call"]

EDITS = frozenset[Action]({"add", "update", "delete", "move"})
"""What changes a file."""

Condition = Literal["file", "folder", "no folder"]
"""What must lie at a path now, so that something counts as observed."""


@frozen
class Seen:
    """One thing that a call touched.

    `name` is a path, the text of a command, or `<tool>/<call id>`.  `folder` is the one that the
    call gives for a relative path.  `hash` is that of a tool's output, or of the content of a file
    that the record holds whole.  `call_id` names the patch that changed a file.  `script` is the
    command that read one.  `looks`: the command only looks.  `only_if` is what must lie where now,
    by the path as the call has it.
    """

    kind: Literal["file", "command", "tool_output"]
    name: str
    action: Action
    folder: str | None = None
    hash: str | None = None
    call_id: str | None = field(default=None, eq=False, kw_only=True)
    script: str | None = field(default=None, eq=False, kw_only=True)
    looks: bool = field(default=False, kw_only=True)
    only_if: tuple[Condition, str] | None = field(default=None, kw_only=True)

    @property
    def condition(self) -> Seen:
        """The file that lies where something must lie now, or itself."""
        return self if self.only_if is None else Seen("file", self.only_if[1], "read", self.folder)

    @property
    def is_command(self) -> bool:
        """Whether it is a command, and not one that stands only where its files do not."""
        return self.kind == "command" and self.only_if is None
