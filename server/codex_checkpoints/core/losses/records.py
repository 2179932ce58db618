"""The nouns: one loss a compaction, with what was there, what is gone, and what was read again.

`lost` is True for what the replacement no longer holds, False for what it does, and None where
nobody can tell, since part of the replacement is encrypted.
"""

from __future__ import annotations

from codex_checkpoints.core.history.survey import Trigger
from codex_checkpoints.core.rollout.items import Action
from codex_checkpoints.values import frozen

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
