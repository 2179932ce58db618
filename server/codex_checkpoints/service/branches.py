"""Where a session came from and what came of it, one step each way (AGN-17, AGN-72).

The head of a session file names its source; the records of restores and of compactions, which lie
with both ends, say how it was made of it.  The whole tree, with windows and all cuts, is told by
`lineages`, and costs more.
"""

from __future__ import annotations

from attrs import evolve

from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.service.compaction_records import CompactionRecords, storing
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.service.tallies import source_of
from codex_checkpoints.values import frozen


@frozen
class Branch:
    """The session at one end of a step of the tree, and how the step was made.

    `kind` is `restore`, `compaction` or `fork`, `mode` that of a restore, `soft` or `hard`; `at`,
    `turnId`, `checkpointId` and `operationId` are null where no record tells.  One that is not
    `available` is known by its id alone.
    """

    session_id: str
    kind: str = "fork"
    mode: str | None = None
    at: str | None = None
    turn_id: str | None = None
    checkpoint_id: str | None = None
    operation_id: str | None = None
    title: str | None = None
    available: bool = False
    archived: bool = False


@frozen
class Around:
    """A session between its source and its branches, the oldest branch first."""

    session_id: str
    source: Branch | None
    items: tuple[Branch, ...]


def around(sessions: Sessions, session: str) -> Around:
    """Return the source and the branches of a session; refuses `unknown_session`."""
    row = sessions.find(session)
    session_id, current = row.session_id, sessions.catalogue.current()
    made = _made(sessions, session_id)

    def end(other: str, child: str) -> Branch:
        found = evolve(made.get(child, Branch(child)), session_id=other)
        there = current.get(other)
        if there is None:
            return found
        title = sessions.title(there)
        return evolve(found, title=title, available=True, archived=there.archived)

    branches = [
        end(each.session_id, each.session_id)
        for each in current.values()
        if source_of(each) == session_id
    ]
    # Ids are times: those that no record dates stand where they began.
    branches.sort(key=lambda branch: branch.session_id)
    source = source_of(row)
    return Around(session_id, None if source is None else end(source, session_id), tuple(branches))


def _made(sessions: Sessions, session_id: str) -> dict[str, Branch]:
    """Return what the records with a session say of how sessions were made, by what was made."""
    made: dict[str, Branch] = {}
    with storing(session_id):
        compactions = CompactionRecords(sessions.records).of(session_id)
    for record in compactions:
        if isinstance(record, Installed) and record.into == "new":
            made[record.session_id] = Branch(
                record.session_id, "compaction", at=record.at, operation_id=record.compaction_id
            )
    for restore in RestoreRecords(sessions.records).of(session_id):
        made[restore.session_id] = Branch(
            restore.session_id,
            "restore",
            restore.mode,
            restore.restored_at,
            restore.source_turn.turn_id,
            restore.checkpoint_id,
            restore.operation_id,
        )
    return made
