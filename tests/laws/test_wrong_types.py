"""Each field of each kind of line, with a value of each type: all of them can be read.

The laws try this at random; here nothing is left to chance.  The lines are those of the golden
stories, and every field that some line has is put into every other.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pytest

from codex_checkpoints.core.fields import is_list, is_object, object_of
from codex_checkpoints.core.restore.references import Trace
from compaction_losses import losses
from derived_state import read, read_with
from generated_rollouts import FIELDS
from histories import history, windows
from laws.test_laws import outcome
from laws.test_restore_laws import found_by

Json = Mapping[str, object]

STORIES = sorted((Path(__file__).parents[1] / "golden").glob("*/rollout.jsonl"))
VALUES: list[object] = [
    *(None, True, -1, 1.5, 2**60, "", "x", [], {}),
    *([[]], [{}], ["a", 1], {"type": []}, {"text": {}}),
]


def kind_of(line: Json) -> str:
    """Name the kind of a line."""
    payload = object_of(line.get("payload", line))
    item = object_of(payload.get("item"))
    words = [line.get("type"), *map(payload.get, ("type", "role", "name")), item.get("type")]
    return "/".join(word for word in words if isinstance(word, str))


def lines_of_each_kind() -> dict[str, tuple[bytes, Json]]:
    """Return a line of each kind, with the head of its file."""
    found: dict[str, tuple[bytes, Json]] = {}
    for story in STORIES:
        head, *rest = story.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
        for raw in (head, *rest):
            try:
                line = orjson.loads(raw)
            except orjson.JSONDecodeError:
                continue
            if is_object(line):
                found.setdefault(kind_of(line), (head, line))
    return found


KINDS = lines_of_each_kind()


def spoiled(value: object) -> Iterator[object]:
    """Yield a value with each of its fields, and each that any line has, as each type."""
    if is_object(value):
        for name in {**value, **dict.fromkeys(FIELDS)}:
            for other in VALUES:
                yield value | {name: other}
        for name, held in value.items():
            for other in spoiled(held):
                yield value | {name: other}
    elif is_list(value):
        for held in value[:1]:
            for other in spoiled(held):
                yield [other, *value[1:]]


def test_stories_have_lines_of_many_kinds():
    assert len(KINDS) > 40


@pytest.mark.parametrize("kind", KINDS)
def test_field_of_any_type_is_read_however_the_bytes_arrive(kind: str):
    head, line = KINDS[kind]
    data = head + b"".join(orjson.dumps(each) + b"\n" for each in spoiled(line))
    pieces = range(0, len(data), len(data) // 7)

    assert outcome(read(data)) == outcome(read(data, pieces=pieces))
    assert found_by(read_with(Trace(), data)) == found_by(read_with(Trace(), data, pieces))
    assert losses(data) == losses(data, pieces=pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_field_of_any_type_has_a_history(kind: str):
    head, line = KINDS[kind]

    for each in spoiled(line):
        data = head + orjson.dumps(each) + b"\n"
        assert history(data).items is not None
        assert windows(data)
