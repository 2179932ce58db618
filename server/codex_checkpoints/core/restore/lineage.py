"""Builds the tree of a session's origins, with the exact cut on every edge (AGN-17, AGN-86).

Claims in files may be broken or circular: a missing parent is shown as unavailable, and a link that
closes a circle is left out and reported.  Nothing here is recursive; the size is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, frozen

from codex_checkpoints.core.restore.pack_items import Ancestor, LinkKind, Parent
from codex_checkpoints.core.restore.records import Restore

MAX_CHAIN = 1024
"""The most links that a chain follows."""

_RANK: tuple[LinkKind, ...] = (
    "restore",
    "compaction",
    "revert",
    "subagent",
    "pull",
    "fork",
    "import",
)
"""Of several claims about one child the first of these kinds counts."""


@frozen
class Cut:
    """Where a child leaves its parent, in the terms of the parent; None if not known.

    `after_turn` is the number of its last turn that began before, 0 for none.
    """

    after_turn: int | None = None
    turn_id: str | None = None
    ordinal_exclusive: int | None = None
    byte_offset: int | None = None
    checkpoint_id: str | None = None
    operation_id: str | None = None


@frozen
class Link:
    """An edge: `child` came from `parent`; both are session ids, or rollout ids of segments."""

    child: str
    parent: str
    kind: LinkKind
    cut: Cut
    at: str | None = None


def link_of(restore: Restore) -> Link:
    """Return the edge that a restore made."""
    cut = Cut(
        turn_id=restore.source_turn.turn_id,
        checkpoint_id=restore.checkpoint_id,
        operation_id=restore.operation_id,
    )
    source = restore.source_session_id
    return Link(restore.session_id, source, "restore", cut, restore.restored_at)


def chain_of(session_id: str, above: Callable[[str], Link | None]) -> tuple[Link, ...]:
    """Return the links from a session upwards, the nearest first, up to a circle or the limit.

    `above` returns the link of a child, None for a first session.
    """
    way: dict[str, Link] = {}
    while len(way) < MAX_CHAIN and (link := above(session_id)) is not None:
        way[session_id] = link
        session_id = link.parent
        if session_id in way:
            way.popitem()  # it closes the circle
            break
    return tuple(way.values())


def branches_above(chain: Sequence[Link], recorded: Iterable[Ancestor]) -> tuple[Ancestor, ...]:
    """Return the steps that led to a session, the newest first, back to the first session.

    The record of a restore also holds the chain of its time, so the steps are known even if records
    further up are gone (AGN-87): `recorded` is the chain in the last record on the way.
    """
    steps = [
        Ancestor(
            each.child, Parent(each.parent, each.cut.turn_id), each.cut.checkpoint_id, each.kind
        )
        for each in chain
    ]
    known = {each.session_id for each in steps}
    for ancestor in recorded:
        if ancestor.session_id in known:
            continue
        if ancestor.session_id != steps[-1].source_turn.session_id or len(steps) >= MAX_CHAIN:
            break
        steps.append(ancestor)
    return tuple(steps)


def parents_of(links: Iterable[Link]) -> dict[str, Link]:
    """Return the one link that counts for each child; the first wins among equals."""
    parents: dict[str, Link] = {}
    for link in links:
        before = parents.get(link.child)
        if before is None or _RANK.index(link.kind) < _RANK.index(before.kind):
            parents[link.child] = link
    return parents


MAX_NODES = 2048
"""The most nodes of a tree, except those on the path down to the requested session."""


@frozen
class LineageWindow:
    """One context window of a session."""

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int | None
    opened_at: str | None


@frozen
class Node:
    """One place in a tree; `link` leads to its parent, which is somewhere before it.

    An unavailable node is known only because a child names it.
    """

    id: str
    title: str | None = None
    archived: bool = False
    updated_at: str | None = None
    available: bool = True
    windows: tuple[LineageWindow, ...] = ()
    depth: int = 0
    link: Link | None = None


@frozen
class Tree:
    """A tree, depth first, children by time and id; `omitted` counts the nodes left out.

    `circles` are the links of its nodes that would close a circle; no tree has them.
    """

    root: str
    nodes: tuple[Node, ...]
    circles: tuple[Link, ...]
    omitted: int


def tree_of(session_id: str, links: Iterable[Link], known: Mapping[str, Node]) -> Tree:
    """Return the whole tree of a session, from the first session down.

    `known` are the sessions and segments whose files are there; their depths and links are not
    read.  A tree that is too large still has the session and all its ancestors.
    """
    parents, circles = _without_circles(parents_of(links))
    root, way = session_id, {session_id}
    while root in parents:
        root = parents[root].parent
        way.add(root)
    children: dict[str, list[Link]] = {}
    for link in parents.values():
        children.setdefault(link.parent, []).append(link)
    nodes: list[Node] = []
    reached: set[str] = set()
    room = max(MAX_NODES - len(way), 0)
    waiting: list[tuple[str, int, Link | None]] = [(root, 0, None)]
    while waiting:
        at, depth, link = waiting.pop()
        reached.add(at)
        if at in way or room > 0:
            node = known.get(at) or Node(at, available=False)
            nodes.append(evolve(node, depth=depth, link=link))
            room -= at not in way
        below = sorted(children.get(at, ()), key=lambda each: (each.at or "", each.child))
        waiting += [(each.child, depth + 1, each) for each in reversed(below)]
    of_it = tuple(link for link in circles if link.child in reached)
    return Tree(root, tuple(nodes), of_it, len(reached) - len(nodes))


def _without_circles(parents: Mapping[str, Link]) -> tuple[dict[str, Link], tuple[Link, ...]]:
    """Leave out, of each circle, the link of its first child by id."""
    kept = dict(parents)
    circles: list[Link] = []
    settled: set[str] = set()
    for start in sorted(parents):
        way: dict[str, None] = {}
        at = start
        while at in kept and at not in settled and at not in way:
            way[at] = None
            at = kept[at].parent
        if at in way and at not in settled:
            closing = min(list(way)[list(way).index(at) :])
            circles.append(kept.pop(closing))
        settled.update(way)
    return kept, tuple(circles)
