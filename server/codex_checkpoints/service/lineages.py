"""The tree of sessions that a session stands in, with the exact cut on every edge (AGN-86).

Several things tell where a session came from: its own head (forks, subagents, segments of a thread
that was taken back), and the records of restores, of compactions and of imports.  How the tree is
made of them is known to `core.restore.lineage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.core.restore.chains import Cut, Link, chain_of, link_of
from codex_checkpoints.core.restore.lineage import Known, Node, Tree, Window, tree_of
from codex_checkpoints.core.rollout.items import SessionMeta
from codex_checkpoints.core.rollout.parsing import head_of
from codex_checkpoints.journal import StorageError
from codex_checkpoints.service.compaction_records import CompactionRecords
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.import_records import ImportRecords
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.restore_records import RestoreRecords
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Row, UnreadableSource

_WITH_WINDOWS = 64
"""Of how many nodes the windows are read at most, beside those of the session that is asked for:
each costs a look through a whole file."""


def lineage(sessions: Sessions, session: str) -> Tree:
    """Return the whole tree that a session stands in; refuses `unknown_session`."""
    row = sessions.find(session)
    current = sessions.catalogue.current()
    known = {
        each.session_id: Known(each.session_id, sessions.title(each), each.archived)
        for each in current.values()
    }
    links = (*_told_by_records(sessions), *_told_by_heads(sessions, known))
    tree = tree_of(row.session_id, links, known)
    return evolve(tree, nodes=tuple(_with_windows(sessions, tree, row.session_id, current)))


def way_up(sessions: Sessions, session_id: str) -> tuple[Link, ...]:
    """Return the links from a session up to where it began, the nearest first (AGN-86)."""
    links = (*_told_by_records(sessions), *_told_by_heads(sessions, {}))
    return chain_of(session_id, links, ()).links


def _told_by_records(sessions: Sessions) -> Iterator[Link]:
    for restore in RestoreRecords(sessions.records).all():
        yield link_of(restore)
    compactions = CompactionRecords(sessions.records)
    for session_id in sorted(compactions.holders()):
        try:
            records = compactions.of(session_id)
        except StorageError:
            continue
        for record in records:
            if isinstance(record, Installed) and record.into == "new":
                source, operation = record.source.session_id, record.compaction_id
                cut = Cut(ordinal_exclusive=record.source.to_seq + 1, operation_id=operation)
                yield Link(record.session_id, source, "compaction", cut, record.at)
    yield from ImportRecords(sessions.records).links(sessions.catalogue.current())


def _told_by_heads(sessions: Sessions, known: dict[str, Known]) -> Iterator[Link]:
    """Yield what session files say of themselves; segments become nodes of their own in `known`."""
    catalogue = sessions.catalogue
    owners = {row.rollout_id: row.session_id for row in catalogue.rows().values()}
    for row in catalogue.rows().values():
        if row.error is not None or row.scratch:
            continue
        if not catalogue.is_current(row):
            name = row.rollout_id
            if name != row.session_id:
                known.setdefault(name, Known(name, None, row.archived))
                head = _head(sessions, row)
                at = None if head is None else head.timestamp
                yield Link(name, row.session_id, "revert", _cut(head), at)
            continue
        if row.parent_session is not None:
            yield Link(row.session_id, row.parent_session, "subagent", Cut(), None)
        if row.base_rollout is None and row.forked_from is None:
            continue
        head = _head(sessions, row)
        base = None if head is None else head.base
        if base is not None and owners.get(base.rollout_id) == row.session_id:
            continue  # a later segment of the same thread
        parent = row.forked_from or (owners.get(base.rollout_id) if base is not None else None)
        if parent is not None:
            at = None if head is None else head.timestamp
            yield Link(row.session_id, parent, "fork", _cut(head), at)


def _cut(head: SessionMeta | None) -> Cut:
    """Return where a file leaves the one that its history begins with."""
    if head is None or head.base is None:
        return Cut()
    return Cut(ordinal_exclusive=head.base.end_ordinal, byte_offset=head.base.end_offset)


def _head(sessions: Sessions, row: Row) -> SessionMeta | None:
    try:
        return head_of(sessions.catalogue.reader.first_line(row.path))
    except UnreadableSource:
        return None


def _with_windows(
    sessions: Sessions, tree: Tree, asked: str, current: Mapping[str, Row]
) -> Iterator[Node]:
    histories = Histories(sessions)
    for place, node in enumerate(tree.nodes):
        row = current.get(node.id)
        if row is None or (place >= _WITH_WINDOWS and node.id != asked):
            yield node
            continue
        try:
            windows = histories.windows(row.path)
        except Refusal:
            yield node
            continue
        yield evolve(
            node,
            windows=tuple(
                Window(
                    each.number,
                    each.window_id,
                    each.previous_id,
                    each.opened_seq,
                    each.opened_at,
                )
                for each in windows
            ),
        )
