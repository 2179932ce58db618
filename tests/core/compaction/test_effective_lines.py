"""Which lines make a replacement count, wherever the session was rolled back (JUN-2, WIN-14)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.agents.codex.history.scan import FirstPass, HistoryScan
from codex_checkpoints.core.agents.codex.history.windows import Chain, begun
from codex_checkpoints.core.compaction.replacement_lines import (
    RecordLine,
    ReplacementForm,
    TurnTime,
    effective,
    in_place,
    in_task,
)
from codex_checkpoints.core.fields import Json
from generated_rollouts import sessions
from histories import history
from history_items import user

ITEMS = [user("fix the login"), user("handoff")]
CHAIN = begun("01a1f865-0000-7000-8000-00000000000a").opened("01a1f865-0000-7000-8000-00000000000b")
AT = TurnTime("2026-11-20T12:00:00.000Z", 1_795_176_000_000)

FORM = st.sampled_from(["paginated", "legacy", "without task events"])


def written(form: str, *steps: r.Step) -> bytes:
    """Write a session in one of the forms."""
    head = {
        "paginated": r.session("paginated"),
        "legacy": r.session("legacy"),
        "without task events": r.session("legacy", events=False),
    }[form]
    return r.rollout(head, *steps)


def rolled_back(turns: int) -> r.Step:
    """Take turns back, also where no other events are told."""
    return r.record("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


def outline(data: bytes) -> FirstPass:
    survey = HistoryScan()
    survey.reader.close(data[survey.reader.feed(data) :])
    return survey.outline()


def forms(items: Sequence[Json], chain: Chain = CHAIN) -> tuple[ReplacementForm, ReplacementForm]:
    lines = in_place(items, chain, 7, None)
    return lines, in_task(lines, "TURN", r.WINDOW, AT)


def behind(data: bytes, lines: Sequence[RecordLine]) -> bytes:
    """Append lines as a store does."""
    ordinal = outline(data).seq
    paginated = b'"history_mode":"paginated"' in data.split(b"\n")[0]
    for number, line in enumerate(lines, 1):
        ordinals = {"ordinal": ordinal + number} if paginated else {}
        envelope = {"timestamp": AT.text, **ordinals, "type": line.type, "payload": line.payload}
        data += (b"" if data.endswith(b"\n") else b"\n") + r.to_line(envelope)
    return data


def chat(number: int) -> r.Step:
    return r.turn(r.turn_context(), r.user(f"do {number}"), r.assistant("ok"))


# --- by example ----------------------------------------------------------------------------------

AFTER: dict[str, tuple[list[r.Step], bool]] = {
    "nothing": ([], False),
    "the end": ([rolled_back(1)], True),
    "another turn": ([rolled_back(1), chat(9)], False),
    "a turn that was cut off": ([rolled_back(1), r.started(), r.user("do 9")], False),
    "a turn and a rollback": ([chat(9), rolled_back(1)], True),
}


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_task_is_written_only_if_a_rollback_would_remove_the_lines_with_it(
    form: str, after: str
) -> None:
    steps, needed = AFTER[after]
    data = written(form, chat(1), chat(2), *steps)
    plain, task = forms(ITEMS)

    found = effective(outline(data), (plain, task), ITEMS)

    assert found == (task if needed else plain)
    assert list(history(behind(data, found or ())).items) == ITEMS
    assert (list(history(behind(data, plain)).items) == ITEMS) is not needed


def test_without_task_events_any_rollback_needs_a_task() -> None:
    form = "without task events"
    plain, task = forms(ITEMS)
    never = outline(written(form, chat(1), chat(2)))
    long_ago = outline(written(form, chat(1), rolled_back(1), chat(2), chat(3)))

    assert effective(never, (plain, task), ITEMS) == plain
    assert effective(long_ago, (plain, task), ITEMS) == task


@pytest.mark.parametrize(
    ("chain", "items"),
    [
        (Chain(number=-1), ITEMS),
        (Chain(number=1 << 64), ITEMS),
        (Chain(current="b", number=1 << 64), ITEMS),
        (CHAIN, [{**user("fix it"), "id": "i1"}]),  # would be read as another item
    ],
)
def test_lines_that_codex_would_skip_are_not_used(chain: Chain, items: list[Json]) -> None:
    data = written("legacy", chat(1))

    assert effective(outline(data), forms(items, chain), items) is None


def test_task_contains_the_lines_and_names_no_mode() -> None:
    plain, task = forms(ITEMS)

    assert task[1:3] == plain
    assert [task[0].payload["type"], task[-1].payload["type"]] == ["task_started", "task_complete"]
    assert "collaboration_mode_kind" not in task[0].payload


# --- whatever the session ------------------------------------------------------------------------


@st.composite
def rolled(draw: st.DrawFn) -> bytes:
    """Make up a session that is rolled back here and there."""
    steps = st.one_of(
        st.integers(0, 9).map(chat),
        st.integers(0, 3).map(rolled_back),
        st.just(r.started()),
        st.just(r.complete()),
        st.just(r.aborted()),
        st.just(r.user("and this")),
        st.just(r.compacted("", [user("long ago")])),
        st.just(r.compacted("in the old way")),
    )
    return written(draw(FORM), *draw(st.lists(steps, max_size=8)))


ANY = st.one_of(rolled(), rolled(), sessions())


@given(data=ANY)
def test_replacement_becomes_the_history_and_undo_restores_the_earlier_one(data: bytes) -> None:
    before = list(history(data).items)

    there = effective(outline(data), forms(ITEMS), ITEMS)
    assert there is not None
    compacted = behind(data, there)
    assert list(history(compacted).items) == ITEMS

    back = effective(outline(compacted), forms(before), before)
    assert back is not None
    assert list(history(behind(compacted, back)).items) == before
