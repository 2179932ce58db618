"""Laws of markers, packs, records and lineages, for any content."""

import copy
from collections.abc import Sequence
from typing import Any

import orjson
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.agents.codex.history.tokens import approximate_tokens
from codex_checkpoints.core.checkpoint.records import Checkpoint, Plan, to_bytes
from codex_checkpoints.core.restore.lineage import (
    Cut,
    Link,
    Node,
    tree_of,
)
from codex_checkpoints.core.restore.markers import (
    Marker,
    Pin,
    created,
    marker_set_of,
    pinned,
    removed,
    renamed,
    unpinned,
)
from codex_checkpoints.core.restore.pack import (
    HEADINGS,
    PackContents,
    items_of,
    pack_lines,
    state_pack,
)
from codex_checkpoints.core.restore.pack_items import Item, LinkKind
from codex_checkpoints.core.restore.recording import transferred
from codex_checkpoints.core.restore.records import difference, line_of, restore_in
from codex_checkpoints.core.restore.references import Trace, references_of
from derived_state import read, read_with
from generated_checkpoints import CHECKPOINTS
from generated_rollouts import damaged, hostile_lines, sessions
from restore_values import CARRIED, MADE, SOURCE, carried, recorded, sections_in

PLENTY = 1_000_000


def examples(share: float) -> settings:
    """Try so many times what the profile says: a long run is longer for every law."""
    return settings(max_examples=round(settings().max_examples * share))


BUDGETS = st.integers(-1, 2_000)
ANY = st.one_of(sessions(), damaged(), hostile_lines())


# --- the pack --------------------------------------------------------------------------------


@given(CARRIED, BUDGETS)
def test_pack_never_costs_more_than_its_budget(goods: PackContents, budget: int):
    pack = state_pack(goods, budget)

    assert pack.tokens == approximate_tokens(pack.text) <= max(budget, 0)


@examples(0.4)
@given(CARRIED, BUDGETS)
def test_same_state_gives_the_same_pack_and_stays_unchanged(goods: PackContents, budget: int):
    before = copy.deepcopy(goods)

    assert state_pack(goods, budget) == state_pack(before, budget)
    assert goods == before


@examples(0.4)
@given(CARRIED, BUDGETS)
def test_included_and_deferred_parts_are_complete(goods: PackContents, budget: int):
    whole, pack = state_pack(goods, PLENTY), state_pack(goods, budget)

    assert whole.text.startswith(pack.text)
    told, all_told = (
        [*each.included, *(Item(one.part, one.id) for one in each.deferred)]
        for each in (pack, whole)
    )
    assert len(told) == len(set(told))
    assert set(items_of(goods)) <= set(told) == set(all_told)
    assert sum(item.part == "notes" for item in items_of(goods)) == transferred(goods, 0)["notes"]


@examples(0.4)
@given(CARRIED, BUDGETS)
def test_pack_of_a_budget_is_the_lines_that_fit(goods: PackContents, budget: int):
    lines = pack_lines(goods)
    held = [line for line in lines if line.tokens <= budget]

    assert state_pack(goods, budget).text == "".join(f"{line.text}\n" for line in held)
    assert held == list(lines[: len(held)])


@examples(0.4)
@given(CARRIED)
def test_every_line_belongs_to_a_known_section_in_order(goods: PackContents):
    sections = sections_in(state_pack(goods, PLENTY).text)
    parts = dict(HEADINGS)

    assert [parts[heading] for heading, lines in sections for _ in lines] == [
        line.item.part for line in pack_lines(evolve(goods, digest="")) if line.item is not None
    ]


# --- what is never carried -------------------------------------------------------------------

PLANTED = st.text("abcdefghij", min_size=12, max_size=16).map(lambda text: f"Planted{text}")


@given(
    st.lists(PLANTED, min_size=6, max_size=6, unique=True), st.sampled_from(["paginated", "legacy"])
)
def test_no_message_or_output_enters_pack_or_record(planted: Sequence[str], form: r.Form):
    said, thought, printed, changed, link, earlier = planted
    data = r.rollout(
        r.session(form),
        r.turn(
            r.user(earlier),
            r.assistant(said),
            r.reasoning(thought),
            r.shell("sed -n '1,9p' a.py", output=printed, reads=["a.py"]),
            r.patch(update="a.py"),
            r.mcp("docs", "find", changed),
            r.injected(f"see https://example.org/{link}"),
        ),
        r.turn(r.user("the task of this turn"), r.assistant(said)),
    )
    trace = read_with(Trace(), data)
    checkpoint = trace.replay.checkpoint((), {"a.py": "sha256:1"})
    traces = trace.traces()
    goods = carried(
        checkpoint,
        modes=traces.modes,
        references=references_of(checkpoint, traces, {}, {}),
    )
    pack = state_pack(goods, PLENTY)
    kept = pack.text.encode()
    kept += orjson.dumps(line_of(recorded(goods, pack)))
    kept += orjson.dumps(line_of(recorded(goods, None)))

    assert b"the task" in kept
    assert b"a.py#L1-L9" in kept
    assert not [text for text in planted if text.encode() in kept]


# --- the trace -------------------------------------------------------------------------------


def found_by(trace: Trace) -> object:
    return trace.traces()


@examples(0.4)
@given(ANY)
def test_trace_gives_the_checkpoint_of_a_replay(data: bytes):
    hashes = {"a.py": "sha256:1"}
    plain, traced = read(data), read_with(Trace(), data).replay

    assert to_bytes(traced.checkpoint((), hashes)) == to_bytes(plain.checkpoint((), hashes))
    assert sorted(traced.files()) == sorted(plain.files())


@examples(0.4)
@given(ANY, st.lists(st.integers(0, 4_000), max_size=4))
def test_trace_does_not_depend_on_how_the_bytes_arrive(data: bytes, pieces: list[int]):
    ends = [end for end in pieces if end < len(data)]

    assert found_by(read_with(Trace(), data, ends)) == found_by(read_with(Trace(), data))


# --- records ---------------------------------------------------------------------------------


@examples(0.4)
@given(CARRIED, BUDGETS)
def test_record_round_trips(goods: PackContents, budget: int):
    for record in (
        recorded(goods, state_pack(goods, budget)),
        recorded(goods, None),
    ):
        stored = orjson.loads(orjson.dumps(line_of(record)))

        assert restore_in(stored) == record


# --- markers ---------------------------------------------------------------------------------

NAMES = st.sampled_from("abc")


def _created(name: str, turn: str) -> dict[str, Any]:
    return created(Marker(name, SOURCE, turn, "x", MADE))


PINS = st.builds(Pin, NAMES)
LINES = st.one_of(
    st.builds(_created, NAMES, NAMES),
    st.builds(renamed, NAMES, st.text(max_size=4), st.just(MADE)),
    st.builds(removed, NAMES, st.just(MADE)),
    st.builds(pinned, PINS, st.just(MADE)),
    st.builds(unpinned, PINS, st.just(MADE)),
)


@given(st.lists(LINES, max_size=12), LINES)
def test_another_line_affects_only_what_it_names(
    lines: list[dict[str, Any]], further: dict[str, Any]
):
    before, after = marker_set_of(lines), marker_set_of([*lines, further])
    named = further.get("checkpointId")

    kept = [marker for marker in before.markers if marker.checkpoint_id != named]
    assert [marker for marker in after.markers if marker.checkpoint_id != named] == kept
    later = {marker.checkpoint_id: marker for marker in after.markers}
    for old in before.markers:
        new = later.get(old.checkpoint_id)
        assert new is None or (new.turn_id, new.created_at) == (old.turn_id, old.created_at)
    if named is None:
        assert after.markers == before.markers
    else:
        assert after.pins == before.pins


# --- differences -----------------------------------------------------------------------------

KINDS = ("task", "plan", "decisions", "facts", "artifacts")
NOTHING = Checkpoint(-1, None, Plan(), (), {}, {}, ())


def held(found: dict[str, Any]) -> dict[str, dict[str, object]]:
    """Return everything that a difference from nothing holds, by kind and name."""
    return {
        kind: {named(each["after"]): each["after"] for each in changes(found, kind)}
        for kind in KINDS
    }


def changes(found: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each for each in (found[kind] if kind != "task" else [found[kind]]) if each]


def named(state: dict[str, Any]) -> str:
    """Return the name by which something is told from others of its kind."""
    return next((state[key] for key in ("id", "decisionId", "key", "uri") if key in state), "task")


@examples(0.4)
@given(CHECKPOINTS, CHECKPOINTS)
def test_difference_leads_from_one_checkpoint_to_the_other(before: Checkpoint, after: Checkpoint):
    state = held(difference(NOTHING, before))
    found = difference(before, after)
    for kind in KINDS:
        for change in changes(found, kind):
            if change["before"] is not None:
                assert state[kind].pop(named(change["before"])) == change["before"]
            if (new := change["after"]) is not None:
                assert state[kind].setdefault(named(new), new) == new

    assert state == held(difference(NOTHING, after))
    assert not any(difference(after, after).values())


# --- lineage ---------------------------------------------------------------------------------

IDS = st.sampled_from([f"s{n}" for n in range(8)])
KINDS_OF_LINKS = st.sampled_from(list[LinkKind](["restore", "fork", "compaction"]))
LINKS = st.lists(st.builds(Link, IDS, IDS, KINDS_OF_LINKS, st.just(Cut())), max_size=12)


@given(LINKS, IDS)
def test_tree_has_every_node_once_after_its_parent(links: list[Link], asked: str):
    tree = tree_of(asked, links, {asked: Node(asked)})
    places = {node.id: place for place, node in enumerate(tree.nodes)}

    assert len(places) == len(tree.nodes)
    assert asked in places
    assert tree.nodes[0].link is None
    for node in tree.nodes[1:]:
        assert node.link is not None
        assert places[node.link.parent] < places[node.id]
        assert tree.nodes[places[node.link.parent]].depth == node.depth - 1
