"""The tree of origins: every edge with its cut, and no input that breaks it."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from attrs import evolve

from codex_checkpoints.core.restore.lineage import (
    MAX_CHAIN,
    MAX_NODES,
    Cut,
    LineageWindow,
    Link,
    Node,
    Tree,
    branches_above,
    chain_of,
    link_of,
    tree_of,
)
from codex_checkpoints.core.restore.pack import state_pack
from codex_checkpoints.core.restore.pack_items import Ancestor, LinkKind, Parent, TurnSource
from codex_checkpoints.core.restore.records import Restore
from restore_values import ORIGIN, RESTORED, carried, recorded


def link(child: str, parent: str, kind: LinkKind = "restore", at: str | None = None) -> Link:
    return Link(child, parent, kind, Cut(turn_id=f"turn of {parent}"), at)


def known(*names: str) -> dict[str, Node]:
    return {name: Node(name, f"about {name}") for name in names}


def restore(branch: str, source: str, *above: Ancestor) -> Restore:
    """Restore `branch` out of `source`, at its turn t1."""
    goods = carried(origin=evolve(ORIGIN, source_turn=TurnSource(source, "t1"), chain=above))
    return recorded(goods, state_pack(goods), branch, f"op of {branch}")


def above_of(restores: list[Restore], session_id: str) -> tuple[Ancestor, ...]:
    told = {each.session_id: each for each in restores}
    chain = chain_of(session_id, above(*map(link_of, restores)))
    return branches_above(chain, told[chain[-1].child].chain if chain else ())


def above(*links: Link) -> Callable[[str], Link | None]:
    return {each.child: each for each in links}.get


def shape(tree: Tree) -> list[tuple[int, str]]:
    return [(node.depth, node.id) for node in tree.nodes]


def test_tree_begins_with_the_first_session_for_any_request():
    links = [link("b", "a", at="1"), link("c", "b", "fork"), link("d", "a", at="2")]

    for asked in "abcd":
        tree = tree_of(asked, links, known(*"abcd"))
        assert (tree.root, shape(tree)) == ("a", [(0, "a"), (1, "b"), (2, "c"), (1, "d")])


def test_every_node_has_its_edge_with_the_cut():
    edge = Link("b", "a", "fork", Cut(ordinal_exclusive=42, byte_offset=61_511), RESTORED)
    windows = (
        LineageWindow(0, "w0", None, 0, RESTORED),
        LineageWindow(1, "w1", "w0", 30, RESTORED),
    )

    tree = tree_of(
        "b", [edge], {"a": Node("a", "cart", archived=True, windows=windows), "b": Node("b")}
    )

    first, second = tree.nodes
    assert (first.link, first.windows, first.archived, first.title) == (None, windows, True, "cart")
    assert second.link == edge


@pytest.mark.parametrize(
    ("kinds", "counts"),
    [
        (("fork", "restore"), "restore"),
        (("compaction", "fork"), "compaction"),
        (("subagent", "revert"), "revert"),
        (("fork", "subagent"), "subagent"),
    ],
)
def test_more_exact_claim_of_two_counts(kinds: tuple[LinkKind, ...], counts: str):
    (_, node) = tree_of("b", [link("b", "a", kind) for kind in kinds], known("a", "b")).nodes

    assert node.link is not None
    assert node.link.kind == counts


def test_children_are_sorted_by_time_then_id_even_without_their_parent():
    links = [link("z", "a", at="1"), link("y", "a", at="2"), link("c", "a"), link("b", "a")]

    root, *children = tree_of("b", links, known("b")).nodes

    assert (root.id, root.available, root.title) == ("a", False, None)
    assert [each.id for each in children] == ["b", "c", "z", "y"]
    assert (children[0].available, children[0].title) == (True, "about b")


def test_cycle_is_left_out_and_reported_at_its_place():
    links = [link("a", "c"), link("b", "a"), link("c", "b"), link("d", "c"), link("e", "e")]

    tree = tree_of("d", links, known(*"abcdef"))

    assert shape(tree) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    assert [(circle.child, circle.parent) for circle in tree.circles] == [("a", "c")]
    assert [circle.child for circle in tree_of("e", links, known("e")).circles] == ["e"]
    assert tree_of("f", links, known("f")).circles == ()


def test_tree_is_bounded_and_holds_the_requested_session_with_its_ancestors():
    others = [link(f"{n:05}", "a", at="1") for n in range(MAX_NODES + 9)]
    deep = [link(f"s{n}", f"s{n + 1}") for n in range(MAX_NODES + 9)]

    tree = tree_of("c", [*others, link("b", "a", at="2"), link("c", "b")], known(*"abc"))

    assert [node.id for node in tree.nodes if node.id in set("abc")] == ["a", "b", "c"]
    assert (len(tree.nodes), tree.omitted) == (MAX_NODES, 12)
    assert tree_of("s0", deep, {}).nodes[-1].id == "s0"


def test_very_long_chain_is_followed_without_recursion():
    links = [link(f"s{n}", f"s{n + 1}") for n in range(5 * MAX_CHAIN)]

    assert tree_of("s0", links, {}).root == f"s{5 * MAX_CHAIN}"
    assert len(chain_of("s0", above(*links))) == MAX_CHAIN


def test_chain_ends_at_its_origin_or_before_a_cycle():
    links = [link("c", "b"), link("b", "a")]

    assert [each.parent for each in chain_of("c", above(*links))] == ["b", "a"]
    assert [each.parent for each in chain_of("c", above(*links, link("a", "c")))] == ["b", "a"]
    assert chain_of("a", above(*links)) == ()


def test_five_branches_lead_back_to_the_first_session():
    restores: list[Restore] = []
    for source, branch in pairwise(["s0", "s1", "s2", "s3", "s4", "s5"]):
        restores.append(restore(branch, source, *above_of(restores, source)))

    steps = above_of(restores, "s5")

    ways = [f"{each.session_id}<{each.source_turn.session_id}" for each in steps]
    assert ways == ["s5<s4", "s4<s3", "s3<s2", "s2<s1", "s1<s0"]
    # Also from the newest record alone, when the others are gone.
    assert above_of(restores[-1:], "s5") == steps
    assert above_of(restores, "s0") == ()
    edge = Cut(turn_id="t1", checkpoint_id="m1", operation_id="op of s1")
    assert link_of(restores[0]) == Link("s1", "s0", "restore", edge, RESTORED)
    forged = [restore("a", "b"), restore("b", "a", Ancestor("a", Parent("b", "t"), "m"))]
    assert [each.session_id for each in above_of(forged, "a")] == ["a"]


def test_ancestry_follows_every_kind_of_origin_and_the_records():
    made = restore("s2", "s1", Ancestor("s1", Parent("s0", None), None, "compaction"))
    links = [link_of(made), Link("s3", "s2", "compaction", Cut()), link("s4", "s3", "fork")]

    steps = branches_above(chain_of("s4", above(*links)), made.chain)

    assert [(each.session_id, each.kind, each.source_turn.turn_id) for each in steps] == [
        ("s4", "fork", "turn of s3"),
        ("s3", "compaction", None),
        ("s2", "restore", "t1"),
        ("s1", "compaction", None),
    ]
    assert branches_above(chain_of("s4", above(*links[1:])), steps[1:]) == steps
