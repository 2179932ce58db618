"""The outline that people see stays small however long a session is (JUN-27)."""

from itertools import pairwise

import attrs
import pytest

from codex_checkpoints.core.compaction.token_budget import (
    CHUNK_TURNS,
    MAX_CHUNKS,
    RECENT_TURNS,
    Chunk,
    Outline,
    OutlineTurn,
    WindowOverrides,
    outline_budget,
    outline_of,
)

AMPLE = outline_budget(WindowOverrides())


def turns(count: int) -> list[OutlineTurn]:
    return [OutlineTurn(n, f"t{n}", n * 40 // count, f"do {n}") for n in range(1, count + 1)]


def test_short_session_is_listed_turn_by_turn() -> None:
    assert outline_of(turns(5), AMPLE) == Outline((), tuple(turns(5)))


def test_older_turns_are_merged_into_chunks() -> None:
    found = outline_of(turns(RECENT_TURNS + CHUNK_TURNS + 1), AMPLE)

    assert found.chunks == (Chunk(1, CHUNK_TURNS, 0, 19, "do 1"),)
    assert len(found.recent) == RECENT_TURNS + 1


def test_ten_thousand_messages_in_forty_windows_make_sixteen_chunks() -> None:
    found = outline_of(turns(10_000), AMPLE)

    assert len(found.chunks) == MAX_CHUNKS == 16
    assert len(found.recent) <= RECENT_TURNS + CHUNK_TURNS
    assert (found.chunks[0].first, found.recent[-1].number) == (1, 10_000)
    ends = [chunk.last + 1 for chunk in found.chunks]
    assert ends == [*(chunk.first for chunk in found.chunks[1:]), found.recent[0].number]
    assert [chunk.first_window for chunk in found.chunks] == sorted(
        chunk.first_window for chunk in found.chunks
    )


def test_outline_line_is_short() -> None:
    found = outline_of([OutlineTurn(1, "t1", 0, "a\nb" + "c" * 999)], AMPLE)

    assert found.recent[0].text == "a b" + "c" * 156 + "…"


@pytest.mark.parametrize("count", [3, 60, 200, 5_000])
def test_outline_above_the_trigger_of_the_small_model_is_merged_to_its_target(
    count: int,
) -> None:
    small = outline_budget(WindowOverrides(fast_environment="400"))
    long = [attrs.evolve(each, text="word " * 30) for each in turns(count)]

    found = outline_of(long, small)

    assert found.tokens <= small.target
    assert found.recent[-1].number == count
    numbers = [(each.first, each.last) for each in found.chunks]
    numbers += [(each.number, each.number) for each in found.recent]
    assert numbers[0][0] == 1
    assert all(end + 1 == start for (_, end), (start, _) in pairwise(numbers))
