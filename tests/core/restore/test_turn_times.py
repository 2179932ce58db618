"""End times of turns, from the records of a session."""

import pytest

import rollouts as r
from codex_checkpoints.core.restore.references import Trace
from derived_state import read_with

STEPS: tuple[r.Step, ...] = (
    r.turn(r.turn_context(), r.user("One"), r.assistant("So.")),
    r.several(r.started(), r.user("Two"), r.aborted()),
    r.turn(r.user("Three"), r.assistant("日本 " * 9000)),
    r.several(r.started(), r.user("Four")),
)


def chronicle(data: bytes, last: int | None = None) -> Trace:
    return read_with(Trace(last=last), data)


def ends(found: Trace) -> list[str | None]:
    return [found.ended_at(each) for each in found.replay.state.turns.turns]


def stamps_of(data: bytes, kinds: set[bytes]) -> list[str]:
    """Return the times of the lines of these kinds, by a plain look at them."""
    lines = [line for line in data.splitlines() if any(kind in line for kind in kinds)]
    return [line.split(b'"')[3].decode() for line in lines]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_turn_ended_at_the_time_of_its_end_record(form: r.Form):
    data = r.rollout(r.session(form), *STEPS)

    found = ends(chronicle(data))

    assert found == [*stamps_of(data, {b'"task_complete"', b'"turn_aborted"'}), None]


def test_file_without_end_records_has_no_times():
    assert ends(chronicle(r.rollout(r.session("bare"), *STEPS))) == [None] * 4


def test_end_in_a_last_line_without_its_newline_counts():
    data = r.rollout(r.session(), *STEPS[:1])

    assert ends(chronicle(data[:-1])) == ends(chronicle(data)) != [None]


def test_end_after_the_last_counted_record_is_ignored():
    data = r.rollout(r.session(), *STEPS)
    whole = chronicle(data)
    first = whole.replay.state.turns.turns[0]
    assert first.ended_seq is not None

    assert ends(chronicle(data, last=first.ended_seq)) == ends(whole)[:1]
    assert ends(chronicle(data, last=first.ended_seq - 1)) == [None]
