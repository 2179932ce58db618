"""Compacts sessions, undoes a compaction, and resumes a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from attrs import evolve, frozen

from codex_checkpoints.codex import program
from codex_checkpoints.codex import resume as resume_command
from codex_checkpoints.codex.app_server import Deadline, run
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.operations.services import Services
from codex_checkpoints.sections.refusals import sentence_of
from codex_checkpoints.service.compaction import resume as resuming
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest, HookRunner
from codex_checkpoints.service.compaction.resume import NotCompacted, Resumed
from codex_checkpoints.service.progress import Steps
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage import records
from codex_checkpoints.wire import BadParams


@frozen
class CompactParams:
    """A session, and how to compact it.

    `into` is `new` or `in-place`, `strategy` `checkpoint` or `codex`, `placement` `manual` or
    `pre_turn`; `digestTokens` is the budget of the digest, null for the setting; `force` overrides
    `not_smaller`, and `turn_not_complete` of a session not in use.
    """

    session_id: str
    into: str = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    digest_tokens: int | None = None
    work_done_token: int | str | None = None


@frozen
class UncompactParams:
    """A compaction by its id, by the id of the session that it made, or by a prefix of one."""

    compaction_id: str


@frozen
class Uncompacted:
    """A compaction that was undone; `sessionId` is the one to resume."""

    compaction_id: str
    session_id: str
    source_session_id: str
    into: str
    resume: str


@frozen
class ResumeParams:
    """A session to continue."""

    session_id: str
    work_done_token: int | str | None = None


def compact_preview(
    services: Services, params: CompactParams, seconds: float | None = None
) -> Compacted:
    """Return the expected result of a compaction."""
    return _compacting(services).preview(_request(params, seconds))


def compact(
    services: Services, params: CompactParams, seconds: float | None = None
) -> Steps[Compacted]:
    """Install a replacement; `seconds` is the timeout for a summary by Codex."""
    return _done(services, _compacting(services), _request(params, seconds))


def _done(
    services: Services, compacting: Compacting, wanted: CompactionRequest
) -> Steps[Compacted]:
    steps = compacting.in_steps(wanted, services.is_cancelled, services.asks_codex)
    found = yield from steps
    ids = {found.source_session_id, found.session_id or found.source_session_id}
    services.changed(tuple(sorted(ids)), "rollout")
    return found


def uncompact(services: Services, params: UncompactParams) -> Uncompacted:
    """Undo a compaction."""
    done = Undoing(services.sessions, outside(os.environ)).uncompact(params.compaction_id)
    source = done.source.session_id
    services.changed(tuple(sorted({source, done.session_id})), "rollout")
    return Uncompacted(done.compaction_id, source, source, done.into, resume_command(source))


def resume(services: Services, params: ResumeParams) -> Steps[Resumed]:
    """Return the command to resume; compact first if the settings ask for it."""
    ready = resuming.check(services.sessions, params.session_id)
    if ready.wanted is None:
        return ready.resumed()
    compacting = Compacting(services.sessions, outside(os.environ))
    try:
        return ready.resumed((yield from _done(services, compacting, ready.wanted)))
    except Refusal as refusal:
        found = ready.resumed(declined=refusal)
        why = NotCompacted(refusal.code, sentence_of(refusal))
        return evolve(found, not_compacted=why)


def resume_preview(services: Services, params: ResumeParams) -> Resumed:
    """Return the command to resume, and the steps before it; write nothing."""
    compacting = Compacting(services.sessions, outside(os.environ))
    return resuming.preview(services.sessions, compacting, params.session_id)


def _compacting(services: Services) -> Compacting:
    return Compacting(services.sessions, outside(os.environ), services.update_index)


def _request(params: CompactParams, seconds: float | None) -> CompactionRequest:
    """Read the params of a compaction; raises `BadParams`."""
    problems: list[str] = []
    into: Into = "in-place" if params.into == "in-place" else "new"
    if params.into != into:
        problems.append("must be one of new, in-place @ params.into")
    if params.strategy not in {"checkpoint", "codex"}:
        problems.append("must be one of checkpoint, codex @ params.strategy")
    if problems:
        raise BadParams(problems)
    return CompactionRequest(
        params.session_id,
        into,
        params.strategy,
        params.placement,
        params.force,
        seconds,
        digest_tokens=params.digest_tokens,
    )


def outside(environment: Mapping[str, str]) -> HookRunner:
    """Return the programs and ids for a compaction; Codex is found on this environment's PATH."""

    def find_codex() -> str | None:
        return program.find(environment.get("PATH", ""))

    def summarise(
        codex: str,
        codex_home: str,
        what: str | Excerpt,
        seconds: float,
        cancelled: Callable[[], bool],
    ) -> str:
        patience = Deadline(seconds, cancelled)
        return program.compacted(codex, codex_home, what, environment, patience)

    return HookRunner(records.moment, records.new_ids, run, find_codex, summarise)
