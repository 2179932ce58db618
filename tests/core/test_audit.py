"""The chain of the audit: what was removed or replaced is found, what a crash left is none."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.audit import NOTHING, PREVIOUS, Head, breaks, digest_of, sealed

Line = tuple[dict[str, Any], str]


def chain(*ats: int, first: str = NOTHING.last) -> list[Line]:
    lines: list[Line] = []
    for at in ats:
        event = sealed({"at": at, PREVIOUS: lines[-1][1] if lines else first})
        lines.append((event, digest_of(orjson.dumps(event))))
    return lines


def head_of(lines: list[Line]) -> Head:
    return Head(len(lines), lines[-1][1], 0) if lines else NOTHING


OLD: list[Line] = [({"at": 0}, digest_of(b"old"))]
TORN: Line = ({}, digest_of(b'{"at'))


@given(st.integers(1, 6), st.data())
def test_a_line_that_was_removed_or_replaced_is_found_where_it_stood(
    count: int, data: st.DataObject
):
    whole = chain(*range(count))
    at = data.draw(st.integers(0, count - 1))
    other = chain(99, first=whole[at][0][PREVIOUS])

    assert list(breaks(whole, head_of(whole))) == []
    removed, replaced = ([*whole[:at], *new, *whole[at + 1 :]] for new in ([], other))
    assert set(breaks(removed, head_of(whole))) >= {at}
    assert set(breaks(replaced, head_of(whole))) == {at + 1}


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_file_may_be_longer_than_its_head_and_never_shorter(count: int, of_head: int):
    whole = chain(*range(6))

    found = list(breaks(whole[:count], head_of(whole[:of_head])))

    assert found == ([count] if count < of_head else [])


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ([*OLD, *chain(1, 2, first=OLD[0][1])], []),
        ([*OLD, *chain(1, 2)], [1]),
        ([*chain(1), *OLD, *chain(2, first=OLD[0][1])], [1]),
        ([*chain(1), TORN, *chain(2, first=TORN[1])], []),
        ([*chain(1), TORN, *chain(2)], [2]),
        ([*chain(1), ({PREVIOUS: None}, "")], [1]),
    ],
    ids=["older lines", "not chained", "later", "torn", "torn, not chained", "no digest"],
)
def test_lines_without_a_link_are_legal_in_front_of_the_first_with_one(
    lines: list[Line], where: list[int]
):
    assert list(breaks(lines, None)) == where
