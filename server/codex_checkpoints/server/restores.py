"""Requests about branches, the tree they stand in, and what was written down of them."""

from __future__ import annotations

from codex_checkpoints import protocol, stamps
from codex_checkpoints.answers import restores as answers
from codex_checkpoints.server.desk import Desk, Handlers
from codex_checkpoints.service import branches, lineages
from codex_checkpoints.service.restore import verifying
from codex_checkpoints.service.restore.history import RestoreHistory
from codex_checkpoints.service.restore.plan import wish_of
from codex_checkpoints.service.restore.restoring import Restoring


async def restore_preview(desk: Desk, params: protocol.RestoreParams) -> protocol.Restored:
    """Answer with what would come of a restore."""
    restoring = Restoring(await desk.ready(), stamps.now, stamps.new_id)
    wish = wish_of(params.mode, params.budget, params.window, params.reason)
    return answers.restored(
        await desk.long(
            lambda: restoring.preview(params.session_id, params.checkpoint_id, wish),
            "Reading the session",
            params.work_done_token,
        )
    )


async def restore(desk: Desk, params: protocol.RestoreParams) -> protocol.Restored:
    """Open a branch at a marker; say that it is there."""
    restoring = Restoring(await desk.ready(), stamps.now, stamps.new_id)
    wish = wish_of(params.mode, params.budget, params.window, params.reason)
    done = await desk.long(
        lambda: restoring.restore(params.session_id, params.checkpoint_id, wish),
        "Restoring",
        params.work_done_token,
    )
    desk.tell((done.record.session_id, done.record.source_session_id), "rollout")
    return answers.restored(done)


async def restores(desk: Desk, params: protocol.RestoresParams) -> protocol.RestoreList:
    """Answer with the restores of a session, or all."""
    past = RestoreHistory(await desk.ready())
    return answers.restore_list(await desk.work(past.restores, params.session_id))


async def restore_details(
    desk: Desk, params: protocol.RestoreDetailsParams
) -> protocol.RestoreDetails:
    """Answer with everything about a restore."""
    past = RestoreHistory(await desk.ready())
    return answers.restore_details(await desk.work(past.details, params.operation_id))


async def around(desk: Desk, params: protocol.SessionParams) -> protocol.Branches:
    """Answer with what a session came from and what came of it."""
    sessions = await desk.ready()
    return answers.branches(await desk.work(branches.around, sessions, params.session_id))


async def lineage(desk: Desk, params: protocol.SessionParams) -> protocol.Lineage:
    """Answer with the tree that a session stands in."""
    sessions = await desk.ready()
    row = await desk.work(sessions.find, params.session_id)
    tree = await desk.work(lineages.lineage, sessions, params.session_id)
    return answers.lineage(tree, row.session_id)


async def audit(desk: Desk, params: protocol.AuditParams) -> protocol.EventList:
    """Answer with events of the audit."""
    past = RestoreHistory(await desk.ready())
    found = await desk.work(past.audit, params.session_id, params.operation_id)
    return answers.event_list(found)


async def verify(desk: Desk, params: protocol.VerifyParams) -> protocol.VerifyReport:
    """Answer with whether all is as it was written."""
    sessions = await desk.ready()
    return answers.verify_report(
        await desk.long(
            lambda: verifying.verify(sessions), "Computing digests again", params.work_done_token
        )
    )


HANDLERS: Handlers = {
    "checkpoints/restorePreview": restore_preview,
    "checkpoints/restore": restore,
    "checkpoints/restores": restores,
    "checkpoints/restoreDetails": restore_details,
    "checkpoints/branches": around,
    "checkpoints/lineage": lineage,
    "checkpoints/audit": audit,
    "checkpoints/verify": verify,
}
