"""Requests that install a checkpoint in the place of a history, and take that back."""

from __future__ import annotations

import os

from codex_checkpoints import answers, protocol
from codex_checkpoints.outside import outside
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service.compacting import Compacting
from codex_checkpoints.service.compaction_request import Request
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.undoing import Undoing


async def compact_preview(desk: Desk, params: protocol.CompactParams) -> protocol.Compacted:
    """Answer with what a compaction would do."""
    compacting = Compacting(await desk.ready(), outside(os.environ))
    return answers.compacted(await desk.work(compacting.preview, _wish(params)))


async def compact(desk: Desk, params: protocol.CompactParams) -> protocol.Compacted:
    """Install a replacement; say which sessions changed."""
    compacting = Compacting(await desk.ready(), outside(os.environ))
    done = await desk.work(compacting.compact, _wish(params))
    ids = {done.source_session_id, done.session_id or done.source_session_id}
    desk.tell(tuple(sorted(ids)), "rollout")
    return answers.compacted(done)


async def uncompact(desk: Desk, params: protocol.UncompactParams) -> protocol.Uncompacted:
    """Take a compaction back; say which session changed."""
    undoing = Undoing(await desk.ready(), outside(os.environ))
    done = await desk.work(undoing.uncompact, params.compaction_id)
    desk.tell((done.source_session_id,), "rollout")
    return answers.uncompacted(done)


def _wish(params: protocol.CompactParams) -> Request:
    """Read what is asked of a compaction; refuses `invalid_payload` for an unknown target."""
    match params.into:
        case "new" | "in-place" as into:
            return Request(params.session_id, into, params.strategy, params.placement, params.force)
        case _:
            problem = "into: must be one of new, in-place"
            raise Refusal("invalid_payload", problem, {"problems": [problem]})


HANDLERS: Handlers = {
    "checkpoints/compactPreview": compact_preview,
    "checkpoints/compact": compact,
    "checkpoints/uncompact": uncompact,
}
