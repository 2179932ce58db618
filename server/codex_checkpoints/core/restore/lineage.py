"""Where sessions come from, as one tree with the exact cut on every edge (AGN-17, AGN-86).

Sessions, forks, revert segments, compactions, restores and subagents are nodes that hang on one
another; the windows of a session stand in its node.  What somebody claims in a file may be broken
or go in a circle: a missing parent is shown as unavailable, and a link that closes a circle is left
out and reported.  Nothing here calls itself, so a chain may be as long as it likes; a tree is
bounded.  Which files say what is known to the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codex_checkpoints.core.restore.chains import Link, parents_of
from codex_checkpoints.values import frozen

MAX_NODES = 2048
"""How many nodes a tree shows at most, but for the way down to the session that was asked for."""


@frozen
class Window:
    """One context window of a session."""

    number: int
    window_id: str | None
    previous_window_id: str | None
    opened_at_seq: int | None
    opened_at: str | None


@frozen
class Known:
    """A session or segment whose file is there."""

    id: str
    title: str | None
    archived: bool = False
    windows: tuple[Window, ...] = ()


@frozen
class Node:
    """One place in a tree; `link` leads to its parent, which stands somewhere before it.

    An unavailable node is only known because a child names it.
    """

    id: str
    depth: int
    link: Link | None
    available: bool
    title: str | None
    archived: bool
    windows: tuple[Window, ...]


@frozen
class Tree:
    """A tree, depth first, children by time and id; what of it is left out stands in `omitted`.

    `circles` are the links of its nodes that would close a circle; they are in no tree.
    """

    root: str
    nodes: tuple[Node, ...]
    circles: tuple[Link, ...]
    omitted: int


def tree_of(session_id: str, links: Iterable[Link], known: Mapping[str, Known]) -> Tree:
    """Return the whole tree that a session stands in, from the first session down.

    Where it is too large the session is still in it, with all that stand above it.
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
    met: set[str] = set()
    room = max(MAX_NODES - len(way), 0)
    waiting: list[tuple[str, int, Link | None]] = [(root, 0, None)]
    while waiting:
        at, depth, link = waiting.pop()
        met.add(at)
        if at in way or room > 0:
            nodes.append(_node(at, depth, link, known.get(at)))
            room -= at not in way
        below = sorted(children.get(at, ()), key=lambda each: (each.at or "", each.child))
        waiting += [(each.child, depth + 1, each) for each in reversed(below)]
    of_it = tuple(link for link in circles if link.child in met)
    return Tree(root, tuple(nodes), of_it, len(met) - len(nodes))


def _node(name: str, depth: int, link: Link | None, known: Known | None) -> Node:
    if known is None:
        return Node(name, depth, link, available=False, title=None, archived=False, windows=())
    title, archived, windows = known.title, known.archived, known.windows
    return Node(name, depth, link, available=True, title=title, archived=archived, windows=windows)


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
            closing = min(_from(list(way), at))
            circles.append(kept.pop(closing))
        settled.update(way)
    return kept, tuple(circles)


def _from(way: Sequence[str], first: str) -> Sequence[str]:
    return way[way.index(first) :]
