"""Where the members of a payload stand in the bytes of a line."""

import json

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


@given(OBJECTS, OBJECTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_member_of_any_payload_is_found_where_it_stands(
    others: dict[str, object], payload: dict[str, object], indent: int | None, escaped: bool
):
    record = others | {"payload": payload}
    line = json.dumps(record, indent=indent, ensure_ascii=escaped)

    assert [(name, json.loads(value)) for name, value in found(line)] == list(payload.items())
