"""Which lines before the beginning of a turn go with it: rules by example."""

import pytest

import rollouts as r
from codex_checkpoints.core.restore.source_lines import before_task, leading

DEVELOPER = r.injected(
    "<permissions instructions>\nread\n</permissions instructions>", role="developer"
)
ADVICE = r.injected("Be brief.", role="developer")
HAPPENED = r.injected("<user_shell_command>\nls\n</user_shell_command>")
PROMPT = r.injected("And the logout")


def counted(*steps: r.Step) -> int:
    """Count what leads into the next turn, behind these steps of a file with events."""
    return leading(r.rollout(r.session("legacy"), *steps).splitlines()[1:])


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), 0),
        ((PROMPT,), 1),
        ((r.assistant("Done."), PROMPT), 1),
        ((r.tokens(900), DEVELOPER, r.environment(), PROMPT), 3),
        ((r.user("Fix the login"), PROMPT), 1),
        ((ADVICE, PROMPT), 2),
        ((HAPPENED, r.environment(), PROMPT), 2),
        ((r.output("c1", "told"), r.environment()), 1),
        ((r.record("compacted", {"message": "m"}), PROMPT), 1),
    ],
)
def test_prompt_and_the_context_before_it_begin_the_turn(steps: tuple[r.Step, ...], expected: int):
    assert counted(*steps) == expected


def test_task_begins_a_turn_before_its_other_lines():
    told = r.rollout(
        r.session("legacy"),
        r.assistant("Done."),
        r.started("t1"),
        r.complete("t1"),
        r.started("t2"),
        r.record("world_state", {"task_started": 1}),
        PROMPT,
    ).splitlines()

    assert before_task(told) == 5
    assert before_task(told[:2]) == 2
    assert before_task([b'"task_started" and no JSON']) == 1


def test_settings_belong_to_the_earlier_turn():
    assert counted(r.event("user_message"), r.turn_context(), r.environment(), PROMPT) == 2
    assert counted(r.environment(), r.turn_context(), PROMPT) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"record_type":"state"}', 3),
        (b'{"other":1}', 1),
        (b'{"type":"reasoning","summary":[]}', 1),
        (b'{"type":"message","content":[]}', 1),
        (b"no JSON", 1),
        (b"[]", 1),
    ],
)
def test_mark_between_the_oldest_items_is_skipped(line: bytes, expected: int):
    stated, prompt = r.rollout(r.session("bare"), r.environment(), r.user("Go on")).splitlines()[1:]
    assert leading([stated, line, prompt]) == expected
