"""The tree that a session stands in, the events of operations, and whether all is as written."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.values import frozen


@frozen
class LineageLink:
    """How a session came from its parent, with the exact cut as far as it is known.

    `kind` is `restore`, `compaction`, `revert`, `subagent`, `fork` or `import`.
    """

    parent: str
    kind: str
    at: str | None
    turn_id: str | None
    ordinal_exclusive: int | None
    byte_offset: int | None
    checkpoint_id: str | None
    operation_id: str | None


@frozen
class LineageWindow:
    """One context window of a session."""

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int | None
    opened_at: str | None


@frozen
class LineageNode:
    """A session, or a segment of one; `link` is null for the first.

    One that is not `available` is known only because another names it.
    """

    id: str
    depth: int
    link: LineageLink | None
    title: str | None
    available: bool
    archived: bool
    windows: tuple[LineageWindow, ...]


@frozen
class Lineage:
    """The tree that a session stands in, depth first.

    `circles` are links of this tree that were left out since they would lead in a circle, each with
    the child that claims it; `omitted` counts nodes beyond the bound, of which the session that was
    asked for and those above it are none.
    """

    session_id: str
    root: str
    nodes: tuple[LineageNode, ...]
    circles: tuple[dict[str, Any], ...]
    omitted: int


@frozen
class Branch:
    """The session at one end of a step of the tree, and how the step was made.

    `kind` is `restore`, `compaction` or `fork`, `mode` that of a restore, `soft` or `hard`; `at`,
    `turnId`, `checkpointId` and `operationId` are null where no record tells.  One that is not
    `available` is known by its id alone.
    """

    session_id: str
    kind: str
    mode: str | None
    at: str | None
    turn_id: str | None
    checkpoint_id: str | None
    operation_id: str | None
    title: str | None
    available: bool
    archived: bool


@frozen
class Branches:
    """The session that one came from, null for none, and those that came of it, oldest first."""

    session_id: str
    source: Branch | None
    items: tuple[Branch, ...]
    next_cursor: str | None


@frozen
class AuditParams:
    """Which events are wanted: those of a session, as source or branch, or of an operation."""

    session_id: str | None = None
    operation_id: str | None = None


@frozen
class EventList:
    """Events of the audit, the oldest first, as they were written."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None


@frozen
class VerifyParams:
    """Nothing but where to report progress."""

    work_done_token: int | str | None = None


@frozen
class VerifyFinding:
    """Something that is not as it was written.

    `code` is `changed_line`, `missing_lines` or `wrong_order` for the audit (`line` counts from 1;
    null where a whole end is gone), `changed_record` for the record of a restore or an import,
    `missing_record` for one that a session lacks and another place tells of, `changed_branch` for
    what a session began with that a restore or a compaction made, `changed_source` for the bytes
    that its source had then.
    """

    code: str
    operation_id: str | None
    session_id: str | None
    line: int | None


@frozen
class VerifyReport:
    """How much was checked, and what is wrong with it; `unavailable` files were not checked."""

    events: int
    records: int
    files: int
    unavailable: int
    findings: tuple[VerifyFinding, ...]
