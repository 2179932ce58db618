"""Compactions, undoing one, and how to go on with a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from codex_checkpoints.codex import program
from codex_checkpoints.codex import resume as resume_command
from codex_checkpoints.codex.app_server import Patience, run
from codex_checkpoints.codex.program import Excerpt
from codex_checkpoints.core.compaction.building import Piece as CompactionPiece
from codex_checkpoints.core.compaction.offering import Offer
from codex_checkpoints.core.compaction.records import Contents as CompactionContents
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.core.compaction.records import Windows as CompactionWindows
from codex_checkpoints.operations.services import Services, Steps, elsewhere
from codex_checkpoints.service.compaction import request, resuming
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.installing import Undoing
from codex_checkpoints.service.compaction.request import HookResult as HookOutcome
from codex_checkpoints.service.compaction.request import HookRunner, Request
from codex_checkpoints.service.compaction.resuming import Ready
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.storage import records
from codex_checkpoints.values import filled, frozen
from codex_checkpoints.wire import BadParams


@frozen
class CompactParams:
    """A session, and how to compact it.

    `into` is `new` or `in-place`, `strategy` `checkpoint` or `codex`, `placement` `manual` or
    `pre_turn`; `digestTokens` is the budget of the digest, null for that of the settings; `force`
    overrides `not_smaller`, and `turn_not_complete` of a session not in use.
    """

    session_id: str
    into: str = "new"
    strategy: str = "checkpoint"
    placement: str = "manual"
    force: bool = False
    digest_tokens: int | None = None
    work_done_token: int | str | None = None


@frozen
class Compacted:
    """A compaction that was done, or a preview (`compactionId` is null), which has `contents`.

    `sessionId` is the one to resume, `replacement` what Codex sends in place of the history.
    `tokensBefore`, `tokensAfter` and `bound`, its limit, count all that is in use; `tokensBeside`
    of each is beside the history: instructions, tools and standing context.  `tokensAdded`
    is the size of what is new, the handoff or summary, and `digestTokens` that of the digest in
    it.  So `tokensAfter` is what is beside, kept and added.  `remark` is a sentence where not even
    a tenth is saved.
    """

    compaction_id: str | None
    session_id: str | None
    source_session_id: str
    into: str
    strategy: str
    determinism: str
    placement: str
    standing_context: str
    replacement: tuple[dict[str, Any], ...]
    tokens_before: int
    tokens_before_source: str
    tokens_after: int
    tokens_after_source: str
    tokens_beside: int
    tokens_added: int
    remark: str | None
    bound: int
    digest_tokens: int
    context_window: int | None
    kinds_before: Mapping[str, int]
    kinds_after: Mapping[str, int]
    kept: tuple[CompactionPiece, ...]
    dropped: tuple[CompactionPiece, ...]
    truncated: tuple[CompactionPiece, ...]
    windows: CompactionWindows
    hooks: tuple[HookOutcome, ...]
    contents: CompactionContents | None
    resume: str | None


@frozen
class UncompactParams:
    """A compaction by its id, by that of the session that it made, or by the beginning of one."""

    compaction_id: str


@frozen
class Uncompacted:
    """A compaction that was taken back; `sessionId` is the one to resume."""

    compaction_id: str
    session_id: str
    source_session_id: str
    into: str
    resume: str


@frozen
class ResumeParams:
    """A session to go on with."""

    session_id: str
    work_done_token: int | str | None = None


@frozen
class NotCompacted:
    """Why a compaction that the settings ask for was refused."""

    code: str
    message: str


@frozen
class Resumed:
    """How to go on with a session: the command `resume`, to be run in `cwd`.

    `compacted` is a compaction that the setting `automatic` asked for, `notCompacted` why it was
    refused, `offer` one to propose.  `live`: Codex has the session loaded.  `continuedBy`: the
    session in which its work went on.  `notice` is a sentence for a notification.
    """

    session_id: str
    source_session_id: str
    cwd: str | None
    live: bool
    continued_by: str | None
    offer: Offer | None
    compacted: Compacted | None
    not_compacted: NotCompacted | None
    notice: str | None
    resume: str


def compact_preview(
    services: Services, params: CompactParams, seconds: float | None = None
) -> Compacted:
    """Return what a compaction would do."""
    return _compacted(_compacting(services).preview(_request(params, seconds)))


def compact(
    services: Services, params: CompactParams, seconds: float | None = None
) -> Steps[Compacted]:
    """Install a replacement; `seconds` is the time limit for a summary by Codex."""
    compacting, wanted = _compacting(services), _request(params, seconds)
    return _compacted((yield from _done(services, compacting, wanted)))


def _done(services: Services, compacting: Compacting, wanted: Request) -> Steps[request.Compacted]:
    job = compacting.ask(wanted)
    if wanted.strategy == "codex":
        services.asks_codex()
    consulted = yield from elsewhere(lambda: job.consult(services.is_cancelled))
    done = compacting.install(consulted)
    results = yield from elsewhere(done.notify)
    found = compacting.finish(done, results)
    ids = {found.source_session_id, found.session_id or found.source_session_id}
    services.changed(tuple(sorted(ids)), "rollout")
    return found


def uncompact(services: Services, params: UncompactParams) -> Uncompacted:
    """Take a compaction back."""
    done = Undoing(services.sessions, outside(os.environ)).uncompact(params.compaction_id)
    source = done.source.session_id
    services.changed(tuple(sorted({source, done.session_id})), "rollout")
    return Uncompacted(done.compaction_id, source, source, done.into, resume_command(source))


def resume(services: Services, params: ResumeParams) -> Steps[Resumed]:
    """Return how to go on; compact first where the settings ask for it."""
    ready = resuming.check(services.sessions, params.session_id)
    if ready.wanted is not None:
        compacting = Compacting(services.sessions, outside(os.environ))
        try:
            ready = ready.after((yield from _done(services, compacting, ready.wanted)))
        except Refusal as refusal:
            ready = ready.without(refusal)
    return _resumed(ready)


def resume_preview(services: Services, params: ResumeParams) -> Resumed:
    """Return how to go on, and what would be done before; nothing is written."""
    compacting = Compacting(services.sessions, outside(os.environ))
    return _resumed(resuming.preview(services.sessions, compacting, params.session_id))


def _compacting(services: Services) -> Compacting:
    return Compacting(services.sessions, outside(os.environ), services.look_around)


def _request(params: CompactParams, seconds: float | None) -> Request:
    """Read the params of a compaction; raises `BadParams`."""
    problems: list[str] = []
    into: Into = "in-place" if params.into == "in-place" else "new"
    if params.into != into:
        problems.append("must be one of new, in-place @ params.into")
    if params.strategy not in {"checkpoint", "codex"}:
        problems.append("must be one of checkpoint, codex @ params.strategy")
    if problems:
        raise BadParams(problems)
    return Request(
        params.session_id,
        into,
        params.strategy,
        params.placement,
        params.force,
        seconds,
        digest_tokens=params.digest_tokens,
    )


def _compacted(done: request.Compacted) -> Compacted:
    report = done.built.report
    return filled(
        Compacted,
        done,
        report,
        replacement=tuple(dict(item) for item in done.built.items),
        tokens_before=report.before.tokens,
        tokens_before_source=report.before.source,
        tokens_after=report.after,
        tokens_after_source="estimated",
        tokens_beside=report.beside,
        tokens_added=done.built.added,
        digest_tokens=done.built.digest.tokens,
        context_window=done.window,
        resume=None if done.session_id is None else resume_command(done.session_id),
    )


def _resumed(ready: Ready) -> Resumed:
    declined = ready.declined
    return filled(
        Resumed,
        ready,
        ready.source,
        source_session_id=ready.source.session_id,
        compacted=None if ready.compacted is None else _compacted(ready.compacted),
        not_compacted=None if declined is None else NotCompacted(declined.code, declined.message),
        resume=resume_command(ready.session_id),
    )


def outside(environment: Mapping[str, str]) -> HookRunner:
    """Return what a compaction needs; Codex is found on the PATH of this environment."""

    def find_codex() -> str | None:
        return program.find(environment.get("PATH", ""))

    def summarise(
        codex: str,
        codex_home: str,
        what: str | Excerpt,
        seconds: float,
        cancelled: Callable[[], bool],
    ) -> str:
        patience = Patience(seconds, cancelled)
        return program.compacted(codex, codex_home, what, environment, patience)

    return HookRunner(records.moment, records.new_ids, run, find_codex, summarise)
