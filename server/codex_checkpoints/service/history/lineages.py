"""Finds the tree of sessions around a session, with the exact cut on every edge (AGN-86).

Its links come from the heads of session files (forks, subagents, segments after a revert) and from
the records of restores, compactions and imports.  `core.restore.lineage` builds the tree.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from codex_checkpoints.core.agents.codex.parsing import head_of
from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.core.events import SessionMeta
from codex_checkpoints.core.portable.pack_import import links_of
from codex_checkpoints.core.restore.lineage import (
    Cut,
    LineageWindow,
    Link,
    Node,
    Tree,
    branches_above,
    chain_of,
    link_of,
    parents_of,
    tree_of,
)
from codex_checkpoints.core.restore.pack_items import Ancestor
from codex_checkpoints.service.history.copied_turns import copied_from
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.records.import_records import ImportRecords
from codex_checkpoints.service.records.operation_records import RestoreRecords
from codex_checkpoints.service.records.pull_records import PullRecords
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.service.sessions.summaries import source_of
from codex_checkpoints.storage.contract import Row, UnreadableSource

_WITH_WINDOWS = 64
"""Number of other nodes with windows: each requires reading a whole file."""


def lineage(sessions: Sessions, session: str) -> Tree:
    """Return the whole tree around a session; refuses `unknown_session`."""
    row = sessions.find(session)
    current = sessions.catalogue.current()
    known = {
        each.session_id: Node(each.session_id, sessions.title(each), each.archived, each.updated_at)
        for each in current.values()
    }
    for pulled in PullRecords(sessions.records).all():
        source = Node(pulled.source_session_id, pulled.title, available=False)
        known.setdefault(source.id, source)
    links = (*_links_in_records(sessions), *_links_in_heads(sessions, known))
    tree = tree_of(row.session_id, links, known)
    return evolve(tree, nodes=tuple(_with_windows(sessions, tree, row.session_id, current)))


def way_up(sessions: Sessions, session_id: str) -> tuple[Link, ...]:
    """Return the links from a session up to the first one, nearest first (AGN-86).

    Only the sessions on this path are read.
    """
    restores, imports = RestoreRecords(sessions.records), ImportRecords(sessions.records)
    pulls = PullRecords(sessions.records)
    current, owners = sessions.catalogue.current(), _owners(sessions)
    packed: dict[str, Link] = {}  # of sessions that are not in this home

    def above(child: str) -> Link | None:
        made, arrived, row = restores.made(child), imports.made(child), current.get(child)
        links = [*map(link_of, () if made is None else (made,))]
        links += _compactions_with(sessions, child)
        if arrived is not None:
            own, *further = links_of(arrived, current)
            links.append(own)
            packed.update((each.child, each) for each in further)
        pulled = pulls.made(child)
        if pulled is not None:
            own, *further = pulled.links(current)
            links.append(own)
            packed.update((each.child, each) for each in further)
        if row is not None and row.error is None:
            links += _links_in_head(sessions, row, owners)
        return parents_of(links).get(child) or packed.get(child)

    return chain_of(session_id, above)


def ancestors(sessions: Sessions, session_id: str) -> tuple[Ancestor, ...]:
    """Return the ancestors, the newest step first, by the records on the path (AGN-86)."""
    way, restores = way_up(sessions, session_id), RestoreRecords(sessions.records)
    last = [each.child for each in way if each.kind == "restore"][-1:]
    records = (restores.made(each) for each in last)
    return branches_above(way, [step for made in records if made for step in made.chain])


def leaving(sessions: Sessions, session_id: str) -> tuple[Link, ...]:
    """Return the links to the sessions that were made from one, without subagents."""
    owners = _owners(sessions)
    links = _links_with(sessions, session_id)
    for row in sessions.catalogue.current().values():
        if source_of(row) == session_id and row.error is None:
            links += _links_in_head(sessions, row, owners)
    return tuple(link for link in parents_of(links).values() if link.parent == session_id)


def _links_with(sessions: Sessions, session_id: str) -> list[Link]:
    """Return the links that the compactions, restores and pulls with a session made."""
    restores = RestoreRecords(sessions.records).of(session_id)
    pulls = (each.link for each in PullRecords(sessions.records).of(session_id))
    return [*_compactions_with(sessions, session_id), *map(link_of, restores), *pulls]


def _links_in_records(sessions: Sessions) -> Iterator[Link]:
    yield from map(link_of, RestoreRecords(sessions.records).all())
    for session_id in sessions.compactions.holders():
        with contextlib.suppress(Refusal):
            yield from _compactions_with(sessions, session_id)
    for made in ImportRecords(sessions.records).all():
        yield from links_of(made, sessions.catalogue.current())
    for pulled in PullRecords(sessions.records).all():
        yield from pulled.links(sessions.catalogue.current())


def _compactions_with(sessions: Sessions, session_id: str) -> Iterator[Link]:
    """Yield the links that the compactions with a session made; refuses `storage_error`."""
    for record in sessions.compactions.of(session_id):
        if isinstance(record, Installed) and record.into == "new":
            source = record.source
            cut = Cut(
                ordinal_exclusive=_own_ordinal(sessions, source.session_id, source.to_seq + 1),
                byte_offset=source.bytes_before,
                operation_id=record.compaction_id,
            )
            yield Link(record.session_id, source.session_id, "compaction", cut, record.at)


def _own_ordinal(sessions: Sessions, session_id: str, seq: int) -> int | None:
    """Return a `seq`, which continues a seed's, as an ordinal of the session's own lines."""
    row = sessions.catalogue.current().get(session_id)
    below = () if row is None else tuple(sessions.catalogue.chains.below(row))
    root = below[-1].session_id if below else session_id
    try:
        seed = sessions.catalogue.seeds(root)
    except UnreadableSource:
        return None
    if seed is None:
        return seq
    ordinals = row is None or row.history_mode == "paginated"
    return seq - seed.seq - ordinals


def _links_in_heads(sessions: Sessions, known: dict[str, Node]) -> Iterator[Link]:
    """Yield the links in session files; a segment becomes a node of its own in `known`."""
    catalogue, owners = sessions.catalogue, _owners(sessions)
    for row in catalogue.rows().values():
        if row.error is not None or row.scratch:
            continue
        if not catalogue.is_current(row):
            name = row.rollout_id
            if name != row.session_id:
                known.setdefault(name, Node(name, archived=row.archived))
                head = _head(sessions, row)
                cut = _cut(head, sessions, row)
                yield Link(name, row.session_id, "revert", cut, head and head.timestamp)
            continue
        yield from _links_in_head(sessions, row, owners)


def _owners(sessions: Sessions) -> dict[str, str]:
    return {row.rollout_id: row.session_id for row in sessions.catalogue.rows().values()}


def _links_in_head(sessions: Sessions, row: Row, owners: Mapping[str, str]) -> Iterator[Link]:
    if row.base_rollout is None and row.forked_from is None and row.parent_session is None:
        return
    head = _head(sessions, row)
    at = head and head.timestamp
    if row.parent_session is not None:
        cut = _cut(head, sessions, row)
        yield Link(row.session_id, row.parent_session, "subagent", cut, at)
    base = None if head is None else head.base
    if base is not None and owners.get(base.rollout_id) == row.session_id:
        return  # a later segment of the same thread
    parent = row.forked_from or (owners.get(base.rollout_id) if base is not None else None)
    if parent is not None:
        yield Link(row.session_id, parent, "fork", _cut(head, sessions, row), at)


def _cut(head: SessionMeta | None, sessions: Sessions, row: Row) -> Cut:
    """Return the point where a session leaves its parent; lines without ordinals count from 1."""
    if head is None:
        return Cut()
    if head.base is None:
        copied = copied_from(sessions, row)
        return Cut() if copied is None else Cut(ordinal_exclusive=copied[1] + 1)
    return Cut(ordinal_exclusive=head.base.end_ordinal, byte_offset=head.base.end_offset)


def _head(sessions: Sessions, row: Row) -> SessionMeta | None:
    try:
        return head_of(sessions.catalogue.reader.first_line(row.path))
    except UnreadableSource:
        return None


def _with_windows(
    sessions: Sessions, tree: Tree, root: str, current: Mapping[str, Row]
) -> Iterator[Node]:
    for place, node in enumerate(tree.nodes):
        row = current.get(node.id)
        if row is None or (place >= _WITH_WINDOWS and node.id != root):
            yield node
            continue
        try:
            windows = windows_in(sessions, row.path)
            link = _with_turn(sessions, node.link, current)
        except Refusal:
            yield node
            continue
        shown = (
            LineageWindow(
                each.number, each.window_id, each.previous_id, each.opened_seq, each.opened_at
            )
            for each in windows
        )
        yield evolve(node, link=link, windows=tuple(shown))


def _with_turn(sessions: Sessions, link: Link | None, current: Mapping[str, Row]) -> Link | None:
    """Return a link with the number of the turn after which it leaves its parent."""
    row = None if link is None else current.get(link.parent)
    if link is None or row is None or link.cut == Cut():
        return link
    cut, replay = link.cut, sessions.open(row.path)[1].now()
    turns = [*replay.state.turns.counting()]
    number = None
    if cut.ordinal_exclusive is not None:
        end = cut.ordinal_exclusive + replay.scale.shift
        number = sum(turn.opened_seq < end for turn in turns)
    elif cut.turn_id is not None:
        ids = [turn.turn_id for turn in turns]
        number = ids.index(cut.turn_id) + 1 if cut.turn_id in ids else None
    return evolve(link, cut=evolve(cut, after_turn=number))


@frozen
class Branch:
    """The session at one end of a step of the tree, and the kind of the step.

    `kind` is `restore`, `compaction` or `fork`, `mode` is a restore's, `soft` or `hard`; `at`,
    `turnId`, `checkpointId` and `operationId` are null if not recorded.  If it is not `available`,
    only its id is known; `undone`: the compaction that made it was undone.
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
    undone: bool = False


@frozen
class Branches:
    """The session that one was made from, and those made from it, oldest first."""

    session_id: str
    source: Branch | None
    items: tuple[Branch, ...]
    next_cursor: str | None = None


def around(sessions: Sessions, session: str) -> Branches:
    """Return the source and the branches of a session; refuses `unknown_session`."""
    row = sessions.find(session)
    session_id, current = row.session_id, sessions.catalogue.current()
    restores = RestoreRecords(sessions.records).of(session_id)
    modes = {each.session_id: each.mode for each in restores}
    pulled = PullRecords(sessions.records).made(session_id)
    made = {link.child: link for link in _links_with(sessions, session_id)}

    def end(other: str, child: str) -> Branch:
        link, there = made.get(child), current.get(other)
        found = Branch(other)
        if link is not None:
            found = Branch(
                kind=link.kind,
                at=link.at,
                turn_id=link.cut.turn_id,
                checkpoint_id=link.cut.checkpoint_id,
                operation_id=link.cut.operation_id,
                session_id=other,
                mode=modes.get(child),
            )
        if there is None:
            if pulled is not None and pulled.source_session_id == other:
                return evolve(found, title=pulled.title)
            return found
        title = sessions.title(there)
        is_made_so = found.kind == "compaction" and other == child
        undone = is_made_so and sessions.compactions.began_undone(child)
        return evolve(found, title=title, available=True, archived=there.archived, undone=undone)

    branches = [
        end(each.session_id, each.session_id)
        for each in current.values()
        if source_of(each) == session_id
    ]
    # Ids contain times: sessions without a recorded time are sorted by their id's beginning.
    branches.sort(key=lambda branch: branch.session_id)
    source = source_of(row)
    above = None if source is None else end(source, session_id)
    return Branches(session_id, above, tuple(branches))
