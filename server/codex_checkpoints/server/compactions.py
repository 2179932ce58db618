"""Requests that install a checkpoint in the place of a history, and take that back."""

from __future__ import annotations

import os

from codex_checkpoints import protocol
from codex_checkpoints.answers import compactions as answers
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.outside import outside
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.server.long_work import LongWork
from codex_checkpoints.service.compaction import resuming
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.request import Compacted, Request
from codex_checkpoints.service.compaction.resuming import Ready
from codex_checkpoints.service.compaction.undoing import Undoing
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.wire import BadParams

_READING, _COMPACTING = "Reading the session", "Compacting the session"


async def compact_preview(desk: Desk, params: protocol.CompactParams) -> protocol.Compacted:
    """Answer with what a compaction would do."""
    compacting = Compacting(await desk.ready(), outside(os.environ))
    wish = _wish(params)
    found = await desk.long(lambda: compacting.preview(wish), _READING, params.work_done_token)
    return answers.compacted(found)


async def compact(desk: Desk, params: protocol.CompactParams) -> protocol.Compacted:
    """Install a replacement; say which sessions changed."""
    compacting = Compacting(await desk.ready(), outside(os.environ))
    wish = _wish(params)
    async with desk.calling(_COMPACTING, params.work_done_token) as work:
        done = await compacted(work, compacting, wish)
    tell(desk, done)
    return answers.compacted(done)


async def compacted(work: LongWork, compacting: Compacting, wish: Request) -> Compacted:
    """Do the steps of a compaction; what waits for programs keeps nobody else waiting."""
    asked = await work.do(lambda: compacting.ask(wish))
    consulted = await work.wait(lambda: asked.consult(work.is_cancelled))
    done = await work.do(lambda: compacting.install(consulted))
    heard = await work.wait(done.tell)
    return await work.do(lambda: compacting.finish(done, heard))


def tell(desk: Desk, done: Compacted) -> None:
    """Say which sessions a compaction changed."""
    ids = {done.source_session_id, done.session_id or done.source_session_id}
    desk.tell(tuple(sorted(ids)), "rollout")


async def uncompact(desk: Desk, params: protocol.UncompactParams) -> protocol.Uncompacted:
    """Take a compaction back; say which session changed."""
    undoing = Undoing(await desk.ready(), outside(os.environ))
    done = await desk.long(lambda: undoing.uncompact(params.compaction_id))
    desk.tell((done.source_session_id,), "rollout")
    return answers.uncompacted(done)


async def resume(desk: Desk, params: protocol.ResumeParams) -> protocol.Resumed:
    """Answer with how to go on; where the settings ask for it, compact before."""
    sessions = await desk.ready()
    compacting = Compacting(sessions, outside(os.environ))
    async with desk.calling(_COMPACTING, params.work_done_token) as work:
        ready = await work.do(lambda: resuming.check(sessions, params.session_id))
        if ready.wanted is not None:
            ready = await _prepared(desk, work, compacting, ready, ready.wanted)
    return answers.resumed(ready)


async def _prepared(
    desk: Desk, work: LongWork, compacting: Compacting, ready: Ready, wanted: Request
) -> Ready:
    try:
        done = await compacted(work, compacting, wanted)
    except Refusal as refusal:
        return ready.without(refusal)
    tell(desk, done)
    return ready.after(done)


def _wish(params: protocol.CompactParams) -> Request:
    """Read what is asked of a compaction; raises `BadParams`."""
    problems: list[str] = []
    into: Into = "in-place" if params.into == "in-place" else "new"
    if params.into != into:
        problems.append("must be one of new, in-place @ params.into")
    if params.strategy not in {"checkpoint", "codex"}:
        problems.append("must be one of checkpoint, codex @ params.strategy")
    if problems:
        raise BadParams(problems)
    return Request(params.session_id, into, params.strategy, params.placement, params.force)


HANDLERS: Handlers = {
    "checkpoints/compactPreview": compact_preview,
    "checkpoints/compact": compact,
    "checkpoints/uncompact": uncompact,
    "checkpoints/resume": resume,
}
