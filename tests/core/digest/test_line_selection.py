"""The laws of choosing key lines."""

import random

from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.digest.line_selection import (
    OMITTED,
    Candidate,
    Chosen,
    Heading,
    choose,
)
from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.core.digest.scoring import TABLES, known_of
from codex_checkpoints.core.record_place import RecordPlace

WORDS = st.sampled_from(["cave_one", "cave.two", "hill/three", "stone", "two"])


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    places = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), unique=True))
    return [
        Candidate(
            place,
            "stone " * draw(st.integers(1, 9)),
            draw(st.integers(0, 900)),
            tuple(draw(st.lists(WORDS, unique=True, max_size=3))),
            ((place[0], place[1] - 1), (place[0], place[1] + 1)),
        )
        for place in places
    ]


def heading(record: int) -> Heading:
    return Heading(("cave_one",) if record else (), 9 + record)


WORTHS = {"cave_one": 900, "cave.two": 700, "hill/three": 300, "two": 50}


def chosen(given_: list[Candidate], room: int) -> Chosen:
    return choose(given_, WORTHS, ["two"], room, heading=heading, allowed=is_allowed)


def is_allowed(candidate: Candidate) -> bool:
    return candidate.place[1] % 3 > 0


def places(found: Chosen) -> set[tuple[int, int]]:
    return {each.place for lines in found.lines.values() for each in lines}


@given(candidates(), st.integers(0, 900))
def test_selected_lines_cost_at_most_their_budget(given_: list[Candidate], room: int) -> None:
    found = chosen(given_, room)
    cost = sum(heading(record).size for record in found.lines)
    cost += sum(len(row.encode()) + 3 for record in found.lines for _, row in found.rows(record))
    assert cost <= room


def test_mark_of_a_gap_costs_as_much_as_a_row_of_its_length() -> None:
    lines = [Candidate((0, row), "a stone of the hill", 500, ()) for row in (0, 5)]
    enough = 4 + 2 * (19 + 3) + (len(OMITTED.encode()) + 3)
    for room, expected in ((enough, 2), (enough - 1, 1)):
        assert (
            len(places(choose(lines, {}, [], room, heading=lambda _: Heading((), 4)))) == expected
        )


def test_gap_between_selected_lines_is_marked() -> None:
    text = "if lamp.is_lit_in(cave):\n}\n\ndig.in_the_cave(7)\nstone = 1\nleave.the_hill(8)"
    known = known_of([Quote(RecordPlace("s", 1), "output", "make", text)], "", TABLES[True])
    found = choose(known.lines, known.worths, [], 400, heading=heading)
    assert [row for _, row in found.rows(0)] == [
        "if lamp.is_lit_in(cave):",
        "dig.in_the_cave(7)",
        OMITTED,
        "leave.the_hill(8)",
    ]


@given(candidates(), st.integers(0, 900), st.integers(0, 300))
def test_larger_budget_never_keeps_less(given_: list[Candidate], room: int, more: int) -> None:
    assert places(chosen(given_, room)) <= places(chosen(given_, room + more))


@given(candidates(), st.randoms(use_true_random=False), st.integers(0, 900))
def test_order_of_the_candidates_does_not_matter(
    given_: list[Candidate], dice: random.Random, room: int
) -> None:
    other = [*given_]
    dice.shuffle(other)
    assert chosen(other, room).lines == chosen(given_, room).lines


@given(candidates(), st.integers(0, 900))
def test_line_that_must_not_be_quoted_is_never_selected_and_gives_no_name(
    given_: list[Candidate], room: int
) -> None:
    free = [each for each in given_ if is_allowed(each)]
    assert chosen(free, room).lines == chosen(given_, room).lines


def test_two_hunks_of_a_patch_are_not_adjacent() -> None:
    hunks = ("@@\n dig.the_cave(7)\n-x\n+leave.the_cave(8)", "@@\n dig.the_hill(9)")
    text = "\n".join(["*** Update File: cave.py", *hunks])
    patch = Quote(RecordPlace("s", 1), "patch", "cave.py", text)
    known = known_of([patch], "", TABLES[True])
    found = choose(known.lines, known.worths, [], 400, heading=heading)
    assert [row for _, row in found.rows(0)] == [
        "dig.the_cave(7)",
        "leave.the_cave(8)",
        OMITTED,
        "dig.the_hill(9)",
    ]


def test_neighbour_of_a_selected_line_precedes_a_line_with_a_higher_score() -> None:
    rows = [
        Candidate((0, 0), "the first stone of the hill", 500, (), ((0, 1),)),
        Candidate((0, 1), "another stone of the hill.", 300, (), ((0, 0),)),
        Candidate((1, 0), "the only stone of the cave", 310, ()),
    ]
    assert places(choose(rows, {}, [], 80, heading=lambda _: Heading((), 4))) == {(0, 0), (0, 1)}


def test_newer_line_of_a_turn_scores_higher() -> None:
    old, new = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    log = "\n".join(f"{number} bats" for number in range(2_000))
    texts = (old, log, new)
    quotes = [
        Quote(RecordPlace("s", at), "output", "cat cave.py", text) for at, text in enumerate(texts)
    ]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[new] > worth[old] > 0


def test_file_patched_since_its_read_scores_less_in_an_open_turn() -> None:
    rows = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    quotes = [
        Quote(RecordPlace("s", 1), "output", "cat cave.py", rows[0]),
        Quote(RecordPlace("s", 2), "output", "cat hill.py", rows[1]),
        Quote(RecordPlace("s", 3), "patch", "src/cave.py", "*** Update File: src/cave.py\n+x = 1"),
    ]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[rows[1]] > worth[rows[0]] > 0


def test_line_of_a_file_that_the_last_answers_name_scores_higher() -> None:
    rows = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    quotes = [
        Quote(
            RecordPlace("s", 1), "patch", "src/cave.py", f"*** Update File: src/cave.py\n {rows[0]}"
        ),
        Quote(
            RecordPlace("s", 2), "patch", "src/hill.py", f"*** Update File: src/hill.py\n {rows[1]}"
        ),
        Quote(RecordPlace("s", 3), "answer", "", "I go on with `src/cave.py`."),
    ]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[rows[0]] > worth[rows[1]] > 0


def test_line_of_a_file_that_the_newest_request_names_scores_higher() -> None:
    rows = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    quotes = [
        Quote(RecordPlace("s", at), "patch", file, f"*** Update File: {file}\n {row}")
        for at, (file, row) in enumerate(zip(("cave.py", "hill.py"), rows, strict=True))
    ]
    known = known_of(quotes, "Mend cave.py, please.", TABLES[True])
    worth = {each.text: each.worth for each in known.lines}
    assert worth[rows[0]] > worth[rows[1]] > 0


def test_line_of_a_refused_patch_scores_higher() -> None:
    rows = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    quotes = [
        Quote(
            RecordPlace("s", at),
            "patch",
            "cave.py",
            f"*** Update File: cave.py\n {row}",
            "",
            "",
            failed,
        )
        for at, (row, failed) in enumerate(zip(rows, ("refused", ""), strict=True))
    ]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[rows[0]] > worth[rows[1]] > 0


def test_folder_of_a_call_scores_higher_than_its_command() -> None:
    rows = "/home/ana/caves/of_the_hill", "make all of the lamps"
    quotes = [Quote(RecordPlace("s", 1), "call", rows[1], "\n".join(rows))]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[rows[0]] > worth[rows[1]] > 0


def test_line_that_occurs_more_often_scores_higher() -> None:
    rows = "torch_in_the_cave = lit_by(7)", "lamp_on_the_hill = lit_by(8)"
    texts = [rows[0], *rows]
    quotes = [
        Quote(RecordPlace("s", at), "output", "cat cave.py", text) for at, text in enumerate(texts)
    ]
    worth = {each.text: each.worth for each in known_of(quotes, "", TABLES[True]).lines}
    assert worth[rows[0]] > worth[rows[1]] > 0


def test_command_that_only_looks_counts_by_its_names_alone() -> None:
    quotes = [
        Quote(RecordPlace("s", 1), "call", script, script)
        for script in ("cat caves/of_the_deep_hill.py", "make caves/of_the_old_lamp.o")
    ]
    known = known_of(quotes, "", TABLES[True])
    assert [each.worth > 0 for each in known.lines] == [False, True]
    assert known.worths["caves/of_the_deep_hill.py"] > 0


def test_list_of_a_folder_outside_any_project_scores_less() -> None:
    own, others = (
        known_of([Quote(RecordPlace("s", 1), "output", script, "lamp_77.py")], "", TABLES[False])
        for script in ("ls -la caves/tmp", "ls -la /tmp | head -20")
    )
    assert own.worths["lamp_77.py"] > others.worths["lamp_77.py"]


def test_import_of_installed_code_scores_less_than_a_file_of_the_project() -> None:
    row = "from numbers_of_caves import the_deepest_cave"
    own, others = (
        known_of(
            [Quote(RecordPlace("s", 1), "output", f"cat {path}/dig.py", row)], "", TABLES[False]
        )
        for path in ("src", ".venv/lib/site-packages/dig")
    )
    assert own.worths["the_deepest_cave"] > others.worths["the_deepest_cave"] > 0
    assert own.lines[0].worth > others.lines[0].worth
