"""What a session remembers: payloads, notes, and what evidence may name."""

from __future__ import annotations

from typing import Any

from codex_checkpoints.values import frozen


@frozen
class ApplyParams:
    """A session and one payload of `memory.apply`; with `dryRun` it is only judged."""

    session_id: str
    payload: Any
    dry_run: bool = False


@frozen
class Applied:
    """An update that was accepted, or would be.

    `updateId` is null where it was only judged, `id` for a plan; `shortened` names the texts and
    steps that are kept in part.
    """

    accepted: bool
    dry_run: bool
    session_id: str
    update_id: str | None
    seq: int
    turn_id: str | None
    kind: str
    id: str | None
    shortened: tuple[str, ...]


@frozen
class NoteEvidence:
    """What a note rests on; `source` is `user`, `file` or `tool_output`."""

    source: str
    ref: str
    hash: str | None


@frozen
class NoteDependency:
    """An artifact that a fact stands and falls with: its hash then, its hash now."""

    uri: str
    hash: str | None
    current: str | None
    holds: bool


@frozen
class Note:
    """A fact or a decision that counts; what the other kind alone has is null or empty.

    `kind` is `fact` or `decision`, `status` is `VALID` or `SUSPECT`; `why` is the first dependency
    that does not hold.
    """

    kind: str
    id: str
    value: str | None
    topic: str | None
    decision: str | None
    rationale: str | None
    supersedes: str | None
    superseded_by: str | None
    status: str | None
    why: str | None
    evidence: NoteEvidence
    depends_on: tuple[NoteDependency, ...]
    seq: int
    turn_id: str | None
    accepted_at: str | None


@frozen
class NoteList:
    """Facts by key, then decisions in the order of their acceptance."""

    items: tuple[Note, ...]
    next_cursor: str | None


@frozen
class RevokeParams:
    """A session and a note of it; `kind` where a fact and a decision have the same id."""

    session_id: str
    id: str
    kind: str | None = None


@frozen
class Revoked:
    """A note that counts no longer."""

    session_id: str
    kind: str
    id: str
    seq: int


@frozen
class AnchorsParams:
    """A session, and how many anchors of each source are wanted."""

    session_id: str
    limit: int | None = None


@frozen
class Anchor:
    """Something that evidence may name; `text` are its first words."""

    source: str
    ref: str
    text: str
    seq: int


@frozen
class AnchorList:
    """Messages, tool calls and files, the newest of each first."""

    items: tuple[Anchor, ...]
    next_cursor: str | None


@frozen
class RecordParams:
    """A session, and the `ref` of an anchor of it: a message or a tool call."""

    session_id: str
    ref: str
