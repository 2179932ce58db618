"""Where the members of a payload stand in the bytes of a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.restore.source_lines import payload_members

TEXTS = st.text(st.sampled_from('a"\\{}[]:, \né') | st.characters(codec="utf-8"), max_size=8)
NAMES = st.sampled_from(["payload", "window_id", ""]) | TEXTS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def found(line: str) -> list[tuple[str | None, str]]:
    return [(each.name, line[each.start : each.end]) for each in payload_members(line)]


@pytest.mark.parametrize(
    ("line", "members"),
    [
        (
            r'{"payload":{"a":"x","b":-1.5e3,"c":null}}',
            [("a", '"x"'), ("b", "-1.5e3"), ("c", "null")],
        ),
        (
            r'{"payload":{"a":{"b":[{"a":1},[]]},"c":[{}]}}',
            [("a", r'{"b":[{"a":1},[]]}'), ("c", "[{}]")],
        ),
        (r'{"payload":{"a":["}]\"{"],"\"}":"\\"}}', [("a", r'["}]\"{"]'), ('"}', r'"\\"')]),
        (' { "payload" : { "a" : 1 , "b" :\t[ 2 ] } , "c" : 3 } ', [("a", "1"), ("b", "[ 2 ]")]),
        (r'{"payload":{"\u0061":1}}', [("a", "1")]),  # an escaped name
        (r'{"payload":{"\ud800":1}}', [("\ufffd", "1")]),  # half a character
        ('{"a":{"payload":{"b":1}},"payload":{"c":2},"d":3}', [("c", "2")]),
        ('{"payload":{"a":1},"payload":{"a":2}}', [("a", "1"), ("a", "2")]),  # two payloads
        ('{"payload":{},"a":1}', []),  # an empty payload
        ('{"payload":[{"a":1}]}', []),  # a list
        ('{"payload":"{\\"a\\":1}"}', []),  # a text
        ('{"payload":null,"a":1}', []),  # null
        ('[{"payload":{"a":1}}]', []),  # no record
        ("", []),  # nothing
    ],
)
def test_what_stands_directly_in_a_payload_is_found(
    line: str, members: list[tuple[str | None, str]]
):
    assert found(line) == members


@given(OBJECTS, OBJECTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_member_of_any_payload_is_found_where_it_stands(
    others: dict[str, object], payload: dict[str, object], indent: int | None, escaped: bool
):
    record = others | {"payload": payload}
    line = json.dumps(record, indent=indent, ensure_ascii=escaped)

    assert [(name, json.loads(value)) for name, value in found(line)] == list(payload.items())
