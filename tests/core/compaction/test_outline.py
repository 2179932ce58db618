"""The outline that people see stays small however long a session is (JUN-27)."""

from codex_checkpoints.core.compaction.outline import (
    CHUNK_TURNS,
    MAX_CHUNKS,
    RECENT_TURNS,
    Chunk,
    Outline,
    OutlineTurn,
    outline_of,
)


def turns(count: int) -> list[OutlineTurn]:
    return [OutlineTurn(n, f"t{n}", n * 40 // count, f"do {n}") for n in range(1, count + 1)]


def test_a_short_session_is_told_turn_by_turn() -> None:
    assert outline_of(turns(5)) == Outline((), tuple(turns(5)))


def test_older_turns_are_told_in_chunks() -> None:
    found = outline_of(turns(RECENT_TURNS + CHUNK_TURNS + 1))

    assert found.chunks == (Chunk(1, CHUNK_TURNS, 0, 19, "do 1"),)
    assert len(found.recent) == RECENT_TURNS + 1


def test_ten_thousand_messages_in_forty_windows_make_sixteen_chunks() -> None:
    found = outline_of(turns(10_000))

    assert len(found.chunks) == MAX_CHUNKS == 16
    assert len(found.recent) <= RECENT_TURNS + CHUNK_TURNS
    assert (found.chunks[0].first, found.recent[-1].number) == (1, 10_000)
    ends = [chunk.last + 1 for chunk in found.chunks]
    assert ends == [*(chunk.first for chunk in found.chunks[1:]), found.recent[0].number]
    assert [chunk.first_window for chunk in found.chunks] == sorted(
        chunk.first_window for chunk in found.chunks
    )


def test_a_line_of_the_outline_is_short() -> None:
    found = outline_of([OutlineTurn(1, "t1", 0, "a\nb" + "c" * 999)])

    assert found.recent[0].text == "a b" + "c" * 156 + "…"
