"""The kinds of things a line of a rollout can say, as a closed family of records.

How a line becomes one of them is `parsing`'s business.  What a tool call *did* is `tools`',
whether a message is the user's that of `contextual`.
"""

from __future__ import annotations

from typing import Literal

from attrs import field

from codex_checkpoints.values import frozen


@frozen
class Unreadable:
    """A line that is no JSON object; `reason` is counted, the line is passed over."""

    reason: str


@frozen
class Unknown:
    """A readable line of a kind this version does not know."""

    kind: str


@frozen
class Quiet:
    """A line of a known kind that says nothing a checkpoint keeps."""


@frozen
class HistoryBase:
    """The rollout whose records come before this file's own (ROL-5)."""

    rollout_id: str
    end_ordinal: int | None
    end_offset: int | None


@frozen
class SessionMeta:
    """The head of a file: who this session is and where it worked (ROL-4)."""

    session_id: str | None
    cwd: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    source: str | None = None
    thread_source: str | None = None
    model_provider: str | None = None
    paginated: bool = False
    bare: bool = False
    forked_from: str | None = None
    parent_session: str | None = None
    base: HistoryBase | None = None
    inherited_below: int | None = None
    timestamp: str | None = None


@frozen
class TurnContext:
    """The settings of a turn."""

    turn_id: str | None
    cwd: str | None
    model: str | None


@frozen
class TaskStarted:
    """Codex begins to work on a submission."""

    turn_id: str | None
    window: int | None


@frozen
class TaskEnded:
    """Codex stopped working on it, with or without success."""

    turn_id: str | None
    aborted: bool


@frozen
class RolledBack:
    """The newest `turns` user turns no longer count (ROL-10)."""

    turns: int


@frozen
class UserMessage:
    """A message of role user.

    What a person typed stands in an item or an event of its own; a message of the model's history
    (`in_history`) has role user too, and may be anybody's.
    """

    texts: tuple[str, ...]
    in_history: bool = False
    ref: str | None = None
    turn_id: str | None = None


@frozen
class AssistantMessage:
    """The model said something."""


@frozen
class Worked:
    """The model did something that no checkpoint keeps, but that is no answer."""


@frozen
class Tokens:
    """What the last model call used, and the window it had (ROL-9)."""

    total: int | None
    input: int | None
    window: int | None


@frozen
class Compacted:
    """A context window was replaced."""


@frozen
class Named:
    """The thread was given a name (older files)."""

    name: str | None


SHELLS = frozenset({"shell", "container.exec", "local_shell", "shell_command", "exec_command"})
MCP = "mcp__"
"""How the namespace or the name of a tool of an MCP server begins."""


@frozen
class ToolCall:
    """The model asks for a tool; what came of it stands in a later line.

    Arguments are JSON values, or a text for tools that take one.
    """

    call_id: str
    name: str
    namespace: str | None
    arguments: object
    turn_id: str | None = None

    @property
    def is_command(self) -> bool:
        """Return whether it is a call of a shell, of Codex's own and not of an MCP server."""
        own = self.namespace is None or not self.namespace.startswith(MCP)
        return self.name in SHELLS and own


@frozen
class ToolOutput:
    """The answer to a call, as text parts."""

    call_id: str
    texts: tuple[str, ...]


@frozen
class CommandRun:
    """A command with its outcome; `parsed` is Codex's own reading of it, as (type, path).

    `printed` is what there is of its output.
    """

    call_id: str
    argv: tuple[str, ...]
    folder: str | None
    parsed: tuple[tuple[str, str | None], ...] | None
    status: str | None
    exit_code: int | None
    printed: str | None = None


@frozen
class Change:
    """One file of a patch: `add`, `update` or `delete`, and where it moved to."""

    path: str
    kind: str
    move_to: str | None = None


@frozen
class FilesChanged:
    """A patch with its outcome."""

    call_id: str
    changes: tuple[Change, ...]
    done: bool


@frozen
class ToolRan:
    """Another tool with its outcome: of an MCP server when there is one."""

    call_id: str
    server: str | None
    tool: str
    texts: tuple[str, ...]
    ran: bool


@frozen
class FileViewed:
    """A file was shown to the model."""

    call_id: str
    path: str


@frozen
class ItemCompleted:
    """The form in which paginated files tell what happened; legacy files have events instead."""

    item: UserMessage | CommandRun | FilesChanged | ToolRan | FileViewed | Unknown | Quiet
    turn_id: str | None = None


Item = (
    Unreadable
    | Unknown
    | Quiet
    | SessionMeta
    | TurnContext
    | TaskStarted
    | TaskEnded
    | RolledBack
    | UserMessage
    | AssistantMessage
    | Worked
    | Tokens
    | Compacted
    | Named
    | ToolCall
    | ToolOutput
    | CommandRun
    | FilesChanged
    | ToolRan
    | FileViewed
    | ItemCompleted
)

QUIET = Quiet()
WORKED = Worked()
ASSISTANT = AssistantMessage()
COMPACTED = Compacted()


# --- what a call met: read from items by `tools` --------------------------------------------------

Action = Literal["read", "add", "update", "delete", "move", "run", "call"]


@frozen
class Seen:
    """One thing a call met.

    `name` is a path, the text of a command, or `<tool>/<call id>`; `folder` is where a path is
    relative to, when the call says so; `hash` is that of a tool's recorded text.  `call_id` is that
    of the patch that changed a file, and `script` the text of the command that read one: which
    lines it read is told by that alone.
    """

    kind: Literal["file", "command", "tool_output"]
    name: str
    action: Action
    folder: str | None = None
    hash: str | None = None
    # How it came about is no part of what was met.
    call_id: str | None = field(default=None, eq=False, kw_only=True)
    script: str | None = field(default=None, eq=False, kw_only=True)
