"""The way from a session up to where it began, link by link (AGN-30, AGN-86).

Every link has its exact cut.  Files may claim what they like: a circle ends a chain and is said,
and a restore that would close one is refused.  The tree of all chains is drawn by `lineage`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Literal

from codex_checkpoints.core.restore.carried import Ancestor, LinkKind, Parent
from codex_checkpoints.core.restore.records import Restore
from codex_checkpoints.values import frozen

MAX_CHAIN = 1024
"""How many links a chain follows at most."""

_RANK: tuple[LinkKind, ...] = ("restore", "compaction", "revert", "subagent", "fork", "import")
"""Of several claims about one child the first of these counts."""


@frozen
class Cut:
    """Where a child leaves its parent: what is known of it, each in the parent's own terms."""

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


Ends = Literal["root", "unavailable", "circle", "limit"]


@frozen
class Chain:
    """The way from a session up, nearest first, and why it ends."""

    links: tuple[Link, ...]
    ends: Ends


def link_of(restore: Restore) -> Link:
    """Return the edge that a restore made."""
    cut = Cut(
        turn_id=restore.source_turn.turn_id,
        checkpoint_id=restore.checkpoint_id,
        operation_id=restore.operation_id,
    )
    source = restore.source_session_id
    return Link(restore.session_id, source, "restore", cut, restore.restored_at)


def branches_above(
    links: Iterable[Link], told: Mapping[str, tuple[Ancestor, ...]], session_id: str
) -> tuple[Ancestor, ...]:
    """Return what led to a session, the newest step first, back to the first session.

    The record of a restore also holds the chain as it was when it was made, so that the way is
    known where the records of sessions further up are gone (AGN-87): `told` are these chains, by
    the session that the restore made.
    """
    parents = parents_of(links)
    above: dict[str, Ancestor] = {}
    at, rest = session_id, told.get(session_id, ())
    while (link := parents.get(at)) is not None and at not in above and len(above) < MAX_CHAIN:
        parent = Parent(link.parent, link.cut.turn_id)
        above[at] = Ancestor(at, parent, link.cut.checkpoint_id, link.kind)
        at = link.parent
        rest = told.get(at, rest)
    for ancestor in rest:
        if ancestor.session_id in above:
            continue
        if ancestor.session_id != at or len(above) >= MAX_CHAIN:
            break
        above[at] = ancestor
        at = ancestor.source_turn.session_id
    return tuple(above.values())


def chain_of(session_id: str, links: Iterable[Link], known: Container[str]) -> Chain:
    """Return the way from a session up to where it began; `known` are the ids whose files exist."""
    parents = parents_of(links)
    way: list[Link] = []
    seen = {session_id}
    at = session_id
    while (link := parents.get(at)) is not None:
        if link.parent in seen:
            return Chain(tuple(way), "circle")
        if len(way) >= MAX_CHAIN:
            return Chain(tuple(way), "limit")
        way.append(link)
        at = link.parent
        seen.add(at)
    return Chain(tuple(way), "root" if at in known else "unavailable")


def closes_a_circle(child: str, parent: str, links: Iterable[Link]) -> bool:
    """Return whether `child` stands above `parent`, or is it: such a link is refused (AGN-86)."""
    parents = parents_of(links)
    seen: set[str] = set()
    at: str | None = parent
    while at is not None and at not in seen:
        if at == child:
            return True
        seen.add(at)
        link = parents.get(at)
        at = None if link is None else link.parent
    return False


def parents_of(links: Iterable[Link]) -> dict[str, Link]:
    """Return the one link that counts for each child; what is told first wins among equals."""
    parents: dict[str, Link] = {}
    for link in links:
        before = parents.get(link.child)
        if before is None or _RANK.index(link.kind) < _RANK.index(before.kind):
            parents[link.child] = link
    return parents
