"""Portable packs: what one session knows as a file, written here and opened elsewhere."""

from __future__ import annotations

from codex_checkpoints.values import frozen


@frozen
class ExportParams:
    """A session, and the file to write, by its whole path; one that is there needs `force`."""

    session_id: str
    file: str
    force: bool = False
    dry_run: bool = False
    work_done_token: int | str | None = None


@frozen
class PackCounts:
    """How many of each kind a pack holds; `notes` are facts and decisions that count.

    `sessions` are those whose metadata it holds, and `checkpoints` those that it holds whole: one
    each.  `fileReferences` are the artifacts that are files.
    """

    sessions: int
    turns: int
    notes: int
    note_events: int
    plan_steps: int
    checkpoints: int
    file_references: int
    modes: int
    artifacts: int
    markers: int
    pins: int
    lineage: int


@frozen
class LeftBehind:
    """What is not in a pack, or did not arrive as it left: a code, how many, and a sentence.

    `reason` is `outside_folder`, `older_turns`, `older_notes`, `older_markers`, `missing_files`,
    `changed_files` or `suspect_facts`.
    """

    reason: str
    count: int
    message: str


@frozen
class Exported:
    """A pack that was written, or would be (`dryRun`); `digest` is that of its bytes."""

    session_id: str
    file: str
    bytes: int
    digest: str
    counts: PackCounts
    left_behind: tuple[LeftBehind, ...]
    dry_run: bool


@frozen
class ImportParams:
    """A pack by its whole path, and the folder of the session to be; null is the server's own."""

    file: str
    cwd: str | None = None
    dry_run: bool = False
    work_done_token: int | str | None = None


@frozen
class Imported:
    """What came of a pack, or would: a new session, for a folder of this machine.

    `sourceSessionId` is the session that the pack was made of, elsewhere or here.  `handoff` is
    what a model is sent; a preview (`dryRun`) has no ids, no time and no `resume`.
    """

    operation_id: str | None
    session_id: str | None
    source_session_id: str
    name: str
    cwd: str
    imported_at: str | None
    digest: str
    counts: PackCounts
    left_behind: tuple[LeftBehind, ...]
    handoff: str
    handoff_tokens: int
    resume: str | None
    dry_run: bool
