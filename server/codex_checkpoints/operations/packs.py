"""Writes and reads portable packs: the knowledge of one session as a file for another machine."""

from __future__ import annotations

import os

from attrs import asdict, frozen

from codex_checkpoints.codex import resume
from codex_checkpoints.core.agents.codex.history.tokens import approximate_tokens
from codex_checkpoints.core.portable.pack import Pack
from codex_checkpoints.core.portable.pack_export import Omitted
from codex_checkpoints.core.portable.pack_import import ImportedSession, arrived, files_of
from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.operations.services import Services
from codex_checkpoints.sections.packs import ArrivingPack
from codex_checkpoints.service import packs


@frozen
class ExportParams:
    """A session, and the file to write, by its whole path; an existing one needs `force`."""

    session_id: str
    file: str
    force: bool = False
    dry_run: bool = False
    work_done_token: int | str | None = None


@frozen
class PackCounts:
    """How many of each kind a pack holds; `notes` are facts and decisions."""

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
    """The things missing in a pack, or different here.

    `reason` is `outside_folder`, `older_turns`, `older_notes`, `older_markers`, `pinned_words`,
    `standing_orders`, `missing_files`, `changed_files`, `suspect_facts` or `distant_markers`.
    """

    reason: str
    count: int
    message: str


@frozen
class Exported:
    """A pack that was written, or would be (`dryRun`); `digest` is the hash of its bytes.

    `headline` is for a notification.
    """

    session_id: str
    file: str
    bytes: int
    digest: str
    counts: PackCounts
    headline: str
    left_behind: tuple[LeftBehind, ...]
    dry_run: bool


@frozen
class ImportParams:
    """A pack by its whole path, and the folder of the new session; null is the server's own."""

    file: str
    cwd: str | None = None
    dry_run: bool = False
    work_done_token: int | str | None = None


@frozen
class Imported:
    """A session made from a pack; a preview (`dryRun`) has no ids, no time and no `resume`.

    `sourceSessionId` is the session that was exported, `handoff` the text that a model gets;
    `headline` is for a notification.
    """

    operation_id: str | None
    session_id: str | None
    source_session_id: str
    name: str
    cwd: str
    imported_at: str | None
    digest: str
    counts: PackCounts
    headline: str
    left_behind: tuple[LeftBehind, ...]
    handoff: str
    handoff_tokens: int
    resume: str | None
    dry_run: bool


def export(services: Services, params: ExportParams) -> Exported:
    """Write a pack, or preview it."""
    homes = (os.path.expanduser("~"), services.where.codex_home)
    given = services.sessions, homes, params.session_id, params.file
    if params.dry_run:
        return exported(packs.pack_of(*given), dry_run=True)
    return exported(packs.export(*given, "replace" if params.force else "new"))


def exported(packed: packs.Packed, *, dry_run: bool = False) -> Exported:
    """Return the contents of a pack, and its omissions."""
    counts = _counts(packed.pack)
    return Exported(
        session_id=packed.session_id,
        file=packed.file,
        digest=packed.digest,
        bytes=len(packed.data),
        counts=counts,
        headline=f"Exported: {contents(counts)}. It holds nothing of the conversation.",
        left_behind=_left_behind(packed.left),
        dry_run=dry_run,
    )


def make(services: Services, params: ImportParams) -> Imported:
    """Make a session from a pack, or preview it."""
    sessions, made = services.sessions, None
    cwd = os.getcwd() if params.cwd is None else params.cwd
    if params.dry_run:
        plan = packs.plan_import(sessions, params.file, cwd)
    else:
        plan, made = packs.import_pack(sessions, params.file, cwd)
        services.changed((made.session_id,), "rollout")
    counts = _counts(plan.pack)
    return Imported(
        name=plan.name,
        cwd=plan.cwd,
        digest=plan.digest,
        handoff=plan.handoff,
        operation_id=None if made is None else made.operation_id,
        session_id=None if made is None else made.session_id,
        source_session_id=plan.pack.origin.session_id,
        imported_at=None if made is None else made.imported_at,
        counts=counts,
        headline=f"Imported: {contents(counts)}.",
        left_behind=_left_behind(arrived(plan.pack, plan.seed, sessions.catalogue.current())),
        handoff_tokens=approximate_tokens(plan.handoff),
        resume=None if made is None else resume(made.session_id),
        dry_run=params.dry_run,
    )


def arriving(record: Imported) -> ArrivingPack:
    """Return the preview of an import for a page."""
    return ArrivingPack(
        record.name,
        record.source_session_id,
        record.cwd,
        contents(record.counts),
        tuple(each.message for each in record.left_behind),
        record.handoff,
        record.handoff_tokens,
    )


def contents(counts: PackCounts) -> str:
    """Return the contents of a pack in words."""
    held = (
        (counts.turns, "turn"),
        (counts.notes, "note"),
        (counts.plan_steps, "plan step"),
        (counts.checkpoints, "checkpoint"),
        (counts.file_references, "file reference"),
        (counts.modes, "mode change"),
        (counts.artifacts, "artifact"),
        (counts.markers, "marker"),
        (counts.pins, "pin"),
    )
    return ", ".join(("session metadata", *(counted(many, what) for many, what in held if many)))


_SENTENCES = {
    "outside_folder": (
        "1 file outside the session's folder is not named",
        "{n} files outside the session's folder are not named",
    ),
    "older_turns": ("1 older turn is left out", "{n} older turns are left out"),
    "older_notes": (
        "1 older step in the history of notes is left out",
        "{n} older steps in the history of notes are left out",
    ),
    "older_markers": ("1 older marker is left out", "{n} older markers are left out"),
    "pinned_words": (
        "1 pin that is not a file is left out",
        "{n} pins that are not files are left out",
    ),
    "standing_orders": (
        "1 text that tells an agent how to behave is left out",
        "{n} texts that tell an agent how to behave are left out",
    ),
    "distant_markers": (
        "1 marker cannot be restored here, since its session is on another machine",
        "{n} markers cannot be restored here, since their sessions are on another machine",
    ),
    "missing_files": ("1 file is not in this folder", "{n} files are not in this folder"),
    "changed_files": (
        "1 file is another one in this folder",
        "{n} files are others in this folder",
    ),
    "suspect_facts": (
        "1 fact is SUSPECT here until it is verified",
        "{n} facts are SUSPECT here until they are verified",
    ),
}


def _counts(pack: Pack) -> PackCounts:
    checkpoint = pack.checkpoint
    return PackCounts(
        1,
        len(pack.turns),
        len(checkpoint.facts) + len(checkpoint.decisions),
        len(pack.notes),
        len(checkpoint.plan.steps),
        1,
        len(files_of(pack)),
        len(pack.modes),
        len(checkpoint.artifacts),
        len(pack.markers),
        len(pack.pins),
        len(pack.lineage),
    )


def _left_behind(left: Omitted | ImportedSession) -> tuple[LeftBehind, ...]:
    counts = asdict(left, recurse=False)
    found = ((reason, count, _SENTENCES[reason]) for reason, count in counts.items() if count)
    return tuple(
        LeftBehind(reason, count, one if count == 1 else several.format(n=count))
        for reason, count, (one, several) in found
    )
