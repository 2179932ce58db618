"""Context windows: their chain, how each was opened, and the fragment that names them."""

from collections.abc import Mapping
from typing import Any

import pytest

from codex_checkpoints.core.agents.codex.history.windows import Chain, Fragment, begun, render
from codex_checkpoints.core.agents.codex.injected_text import is_human
from codex_checkpoints.core.fields import window_id_of
from histories import history, windows
from rollouts import (
    Form,
    Step,
    assistant,
    compacted,
    complete,
    record,
    rollback,
    rollout,
    session,
    shell,
    started,
    tokens,
    turn,
    user,
)


def window_id(number: int) -> str:
    return f"01a1f865-0000-7000-9000-{number:012d}"


A, B, C, D = (window_id(number) for number in range(4))
KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}
OURS = {**KEPT, "content": [{"type": "input_text", "text": "[SESSION_CHECKPOINT v1]\nid: 1"}]}


def opened(current: str | None = None, previous: str | None = None, **more: object) -> Step:
    """Open a window, with as much as the record tells of it."""
    ids = {} if current is None else {"window_id": current, "previous_window_id": previous}
    return record("compacted", {"message": "m", "replacement_history": [KEPT], **ids, **more})


def bare(more: dict[str, object]) -> Step:
    """Open a window with just these fields beside its history."""
    return record("compacted", {"message": "m", "replacement_history": [KEPT], **more})


def by_codex(number: int, current: str, previous: str) -> Step:
    return opened(current, previous, first_window_id=A, window_number=number)


FIRST = {"window_id": A}


# --- the chain -----------------------------------------------------------------------------------


def test_each_compaction_advances_the_chain_and_keeps_the_first_id():
    steps = (by_codex(1, B, A), by_codex(2, C, B), by_codex(3, D, C))
    chains = [begun(A), Chain(A, A, B, 1), Chain(A, B, C, 2), Chain(A, C, D, 3)]

    for form in ("legacy", "paginated"):
        head = session(form, context_window=FIRST)
        assert [history(rollout(head, *steps[:n])).chain for n in range(4)] == chains
    assert begun(A) == Chain(first=A, previous=None, current=A, number=0)
    assert begun(A).opened(B).opened(C).opened(D) == chains[-1]
    # The id of the first window is told by a later record as well.
    ids = [(each.window_id, each.previous_id) for each in windows(rollout(session(), *steps))]
    assert ids == [(A, None), (B, A), (C, B), (D, C)]


def test_rollback_past_a_compaction_makes_the_earlier_window_current():
    turns = (turn(user("b"), by_codex(1, B, A)), turn(user("c"), by_codex(2, C, B)))
    data = rollout(session("legacy", context_window=FIRST), *turns, rollback(1))

    assert history(data).chain == Chain(A, A, B, 1)
    assert [each.number for each in windows(data)] == [0, 1]


@pytest.mark.parametrize(
    ("more", "chain"),
    [
        ({}, Chain(A, A, None, 1)),
        ({"window_number": 1}, Chain(A, A, None, 1)),
        ({"window_number": 4}, Chain(A, None, None, 4)),
        ({"window_id": 2}, Chain(A, None, None, 2)),
        ({"window_id": "not a uuid", "window_number": 1}, Chain(A, A, None, 1)),
        ({"window_id": "01a1f865-0000-4000-9000-000000000001"}, Chain(A, A, None, 1)),
    ],
)
def test_missing_window_fields_stay_absent(more: dict[str, object], chain: Chain):
    data = rollout(session("legacy", context_window=FIRST), turn(user("a")), bare(more))

    assert history(data).chain == chain
    assert windows(data)[-1].previous_id == chain.previous


def test_file_without_window_ids_still_has_windows():
    data = rollout(session("legacy"), turn(user("a")), opened(), opened(B, None))

    assert history(data).chain == Chain(None, None, B, 2)
    assert [(each.number, each.window_id) for each in windows(data)] == [
        *((0, None), (1, None), (2, B)),
    ]


def test_a_window_id_is_a_uuid_of_version_7():
    odd = (A.replace("-7000-", "-4000-"), A.replace("-9000-", "-c000-"), A + "0", "")

    assert [window_id_of(text) for text in (A, A.upper(), *odd)] == [A, A.upper()] + [None] * 4


# --- how a window was opened ---------------------------------------------------------------------


def test_each_window_has_the_place_and_time_of_its_start():
    first, second = windows(
        rollout(session(context_window=FIRST), turn(user("a")), by_codex(1, B, A))
    )

    assert (first.number, first.opened_seq, first.opened_at) == (0, 0, "2026-11-20T10:00:00.000Z")
    assert (second.number, second.opened_seq) == (1, 5)
    assert second.opened_at == "2026-11-20T10:00:05.000Z"


@pytest.mark.parametrize(
    ("steps", "trigger"),
    [
        ([turn(opened())], "manual"),
        ([turn(assistant("m"), opened())], "manual"),
        ([turn(opened(), user("a"))], "pre_turn"),
        ([turn(user("a"), opened())], "pre_turn"),
        ([turn(assistant("m"), opened(), user("a"))], "pre_turn"),
        ([turn(user("a"), shell("ls"), opened(), assistant("b"))], "mid_turn"),
        ([turn(user("a"), shell("ls"), assistant("m"), opened())], "mid_turn"),
        ([started(), opened()], None),
        ([started(), opened(), started("next"), complete("next")], "manual"),
        ([user("a"), opened()], None),
        ([turn(user("a")), opened()], None),
        ([turn(user("a")), opened(replacement_history=[KEPT, OURS])], "manual"),
    ],
)
@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_trigger_of_a_compaction_follows_from_its_task(
    form: Form, steps: list[Step], trigger: str | None
):
    # The model's own summary, "m" here, is no work on the task.
    assert windows(rollout(session(form), *steps))[1].trigger == trigger


@pytest.mark.parametrize(
    ("message", "replacement", "strategy"),
    [
        ("x", [KEPT, OURS], "checkpoint"),
        ("", [{"type": "compaction", "encrypted_content": "E"}], "remote"),
        ("summary", None, "local"),
        ("", [], "fresh"),
        ("", [KEPT], None),
        ("by a third party", [KEPT], None),
    ],
)
def test_author_of_a_replacement_follows_from_its_content(
    message: str, replacement: list[Mapping[str, object]] | None, strategy: str | None
):
    data = rollout(session("legacy"), turn(user("a")), compacted(message, replacement))

    assert windows(data)[1].strategy == strategy


SMALL = {"window": 10_000}


@pytest.mark.parametrize(
    ("steps", "before"),
    [
        ([tokens(31_400), tokens(31_400), assistant("m"), tokens(960)], 31_400),  # of Codex itself
        ([tokens(31_400), tokens(960)], 31_400),  # of a service
        # more than the window holds says nothing, unless it is an estimate
        ([tokens(9_000, **SMALL), shell("ls"), tokens(30_000, **SMALL)], None),
        ([tokens(30_000, read=0, **SMALL)], 30_000),
    ],
)
def test_tokens_before_come_from_the_last_call_that_worked_on_the_task(
    steps: list[Step], before: int | None
):
    data = rollout(session(), turn(user("a"), shell("ls"), *steps, opened()))

    assert windows(data)[1].tokens_before == before


@pytest.mark.parametrize(
    ("head", "steps", "after"),
    [
        ({}, [opened(), tokens(7016, read=0), shell("ls"), tokens(9)], 7016),
        ({}, [opened(), shell("ls"), tokens(7016, read=0)], 20),  # ours: 80 bytes of JSON
        # a size that was reported compares with no estimate of the history alone
        ({}, [tokens(222_887), shell("ls"), opened(), shell("ls")], None),
        ({}, [compacted("m")], None),  # without a replacement nobody knows
        ({"base_instructions": {"text": "x" * 400}}, [opened()], 20),
    ],
)
def test_tokens_after_come_from_codexs_estimate_if_it_exists(
    head: dict[str, Any], steps: list[Step], after: int | None
):
    assert windows(rollout(session(**head), turn(user("a"), *steps)))[1].tokens_after == after


# --- the fragment --------------------------------------------------------------------------------

FRAGMENT = Fragment("thread", A, C, B)
TEXT = f"""\
<context_window>
Thread id: thread
First context window id: {A}
Current context window id: {C}
Previous context window id: {B}
</context_window>"""


def test_the_fragment_names_thread_and_windows():
    assert render(FRAGMENT) == TEXT
    assert render(FRAGMENT, "token_budget") == TEXT.replace("context_window>", "token_budget>")
    first = Fragment("thread", A, A)
    assert "Previous" not in render(first)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("context_window>", "token_budget>"),
        "\n".join(TEXT.splitlines()[1:-1]),
        TEXT.replace("Thread id", " thread ID") + "\n",
        TEXT.replace("</", "Tokens left: 12\n</"),
    ],
)
def test_no_form_of_the_fragment_is_a_prompt(text: str):
    assert not is_human([text])


def test_prompt_that_quotes_the_fragment_stays_a_prompt():
    assert is_human(["Look:\n" + "\n".join(TEXT.splitlines()[1:-1])])
