"""Laws of a compaction in place and of its undo, for any session."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.sessions import Sessions
from compaction.test_compact import (
    OUTSIDE,
    WORK,
    asked,
    compacting,
    history_of,
    shown,
    without_seq,
)
from generated_rollouts import Shown, sessions
from homes import Home, thread

FEWER = settings(max_examples=max(10, settings().max_examples // 3))
"""Each case is a home of its own."""


def rolled_back(turns: int) -> r.Step:
    """Take turns back, also where no other events are told."""
    return r.record("event_msg", {"type": "thread_rolled_back", "num_turns": turns})


@st.composite
def rolled(draw: st.DrawFn) -> bytes:
    """Make up a session that is rolled back here and there, and is worth compacting."""
    said = st.sampled_from(["fix the login", "and the logout", "why?"])
    steps = st.one_of(
        said.map(
            lambda text: r.turn(
                r.turn_context(), r.user(text), r.shell("make", "end"), r.assistant(WORK)
            )
        ),
        st.integers(0, 2).map(rolled_back),
        st.just(r.turn()),
        st.just(r.several(r.started(), r.user("stop"), r.aborted())),
        st.just(r.tokens(9_000)),
    )
    form: r.Form = draw(st.sampled_from(["paginated", "legacy"]))
    head = r.session(form, thread=thread(1), events=draw(st.booleans()))
    last = r.several(r.started(), r.user("go on"), r.assistant(WORK), r.complete())
    tail = st.lists(st.integers(0, 1).map(rolled_back), max_size=2)
    return Shown(r.rollout(head, *draw(st.lists(steps, max_size=6)), last, *draw(tail)))


def known(sessions: Sessions) -> Any:  # noqa: ANN401 - to be compared
    """Return what a session is taken to be: its checkpoint, and its turns."""
    return without_seq(shown(sessions, thread(1))), detail_of(sessions, thread(1)).turns


@FEWER
@given(data=st.one_of(rolled(), rolled(), sessions()))
def test_replacement_counts_and_nothing_else_changes_and_undo_restores_all(
    data: bytes,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.put(data)
        with home.house() as house:
            before, was = history_of(house.sessions, thread(1)), known(house.sessions)
            try:
                done = compacting(house.sessions).compact(asked("in-place", force=True))
            except Refusal as refused:
                event(refused.code)
                assert home.path().read_bytes() == data
                assert not list(home.state.glob("sessions/*/compactions.jsonl"))
                return
            event("compacted")
            assert history_of(house.sessions, thread(1)) == list(done.replacement)
            assert known(house.sessions) == was

            Undoing(house.sessions, OUTSIDE).uncompact(str(done.compaction_id))

            assert history_of(house.sessions, thread(1)) == before
            assert known(house.sessions) == was
            assert home.path().read_bytes().startswith(data)
