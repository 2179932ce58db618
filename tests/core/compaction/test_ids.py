"""Ids made of a time and random bytes (WIN-1, WIN-13)."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.storage.records import uuid7

NOW = 1_795_167_968_372
EIGHT = st.binary(min_size=8, max_size=8)


def test_an_id_is_made_of_a_time_and_random_bytes() -> None:
    assert uuid7(NOW, bytes(range(8))) == "01a1f859-5c74-7000-8001-020304050607"
    assert uuid7(NOW, b"\xff" * 8, 1) == "01a1f859-5c74-7001-bfff-ffffffffffff"


@given(st.integers(0, 2**48 - 1), EIGHT, st.integers(0, 4095))
def test_an_id_is_a_uuid_of_version_7_that_tells_its_time(
    at_ms: int, random: bytes, place: int
) -> None:
    read = uuid.UUID(uuid7(at_ms, random, place))

    assert (read.version, read.variant) == (7, uuid.RFC_4122)
    assert read.int >> 80 == at_ms


@given(st.integers(0, 2**48 - 2), EIGHT, EIGHT)
def test_later_ids_sort_after_earlier_ones(at_ms: int, one: bytes, other: bytes) -> None:
    assert uuid7(at_ms, one) < uuid7(at_ms, other, 1) < uuid7(at_ms + 1, one)


def test_too_few_random_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="8 random bytes"):
        uuid7(NOW, b"abc")
