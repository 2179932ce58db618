"""A session made by our operation continues the checkpoint of its source (JUN-46)."""

from typing import Any

import pytest

from codex_checkpoints.core.checkpoint.records import (
    Artifact,
    Checkpoint,
    Decision,
    Dependency,
    Evidence,
    Fact,
    Plan,
    Step,
    Task,
)
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import call_ids, user_refs
from rollouts import Form, compacted, plan, rollout, session, shell, turn, user

SEED = Checkpoint(
    seq=100,
    task=Task("Fix the login", Evidence("user", "u9")),
    plan=Plan((Step("s1", "Fix it"),), {"s1": False}, Evidence("tool_output", "c9")),
    decisions=(
        Decision("d1", None, "Use a cookie", "Asked for", None, Evidence("user", "u7"), 40),
    ),
    artifacts={
        "auth.py": Artifact("auth.py", "file", "sha256:1", 90),
        "make": Artifact("make", "command", None, 95),
        "web/c8": Artifact("web/c8", "tool_output", "sha256:2", 96),
        "odd%0Aname": Artifact("odd%0Aname", "file", None, 97),
        "plain%20name": Artifact("plain%20name", "file", "sha256:3", 98),
    },
    facts={
        "port": Fact("8080", Evidence("file", "auth.py"), (Dependency("auth.py", "sha256:1"),), 91)
    },
    recent_artifacts=("plain%20name", "odd%0Aname", "web/c8", "make", "auth.py"),
)
NAMING = turn(user("Fix the login"), name="naming")


def grown(form: Form, *steps: Any, seed: Checkpoint | None = SEED) -> Replay:  # noqa: ANN401 - steps
    replay = Replay()
    if seed is not None:
        replay.begin_from(seed)
    replay.feed(rollout(session(form=form), compacted("", []), NAMING, *steps))
    return replay


def hashes(replay: Replay) -> dict[str, str]:
    known = {"auth.py": "sha256:1", "plain%20name": "sha256:3"}
    return {uri: known[uri] for uri in replay.files() if uri in known}


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_before_the_first_prompt_it_equals_the_source_except_for_seq(form: Form) -> None:
    replay = grown(form)
    own = grown(form, seed=None)

    made = replay.checkpoint((), hashes(replay))

    first = own.seq if form == "paginated" else own.seq - 1  # counted from 0 and from 1
    assert made == Checkpoint(
        101 + first,
        SEED.task,
        SEED.plan,
        SEED.decisions,
        SEED.artifacts,
        SEED.facts,
        SEED.recent_artifacts,
    )


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_own_records_change_it_and_are_newer_than_the_initial_state(form: Form) -> None:
    steps = turn(user("Now the docs"), plan(("Write", True)), shell("make"), name="own")
    replay = grown(form, steps)

    made = replay.checkpoint((), hashes(replay))

    assert made.task is not None
    assert made.task.text == "Now the docs"
    assert [step.text for step in made.plan.steps] == ["Write"]
    assert made.artifacts["make"].last_observed_seq > SEED.seq
    assert made.recent_artifacts[0] == "make"
    assert made.facts == SEED.facts


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_saved_state_continues_from_the_initial_state(form: Form) -> None:
    replay = grown(form, turn(user("Now the docs"), name="own"))

    again = Replay.load(replay.save())

    assert again is not None
    assert again.seq == replay.seq > SEED.seq
    assert again.checkpoint((), hashes(again)) == replay.checkpoint((), hashes(replay))
    task = again.task()
    assert task is not None
    # Without an id a message is cited by the seq that goes on.
    assert form == "paginated" or int(task.evidence.ref.removeprefix("seq:")) > SEED.seq


def test_names_of_the_initial_state_can_be_cited_and_searched() -> None:
    assert user_refs(SEED) == {"u9", "u7"}
    assert call_ids(SEED) == {"c9", "c8"}
    assert set(grown("paginated").files()) == {"auth.py", "plain%20name"}
