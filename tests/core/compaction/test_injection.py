"""When a session that begins a window is given its bundle, and when it has it already."""

import pytest

from codex_checkpoints.core.checkpoint.records import Checkpoint, Evidence, Plan, Step, Task
from codex_checkpoints.core.compaction.handoff import bundle, handoff, is_due, is_empty, shows
from codex_checkpoints.core.history.items import Item, user_message

NOTHING = Checkpoint(7, None, Plan((), {}, None), (), {}, {}, ())
CHECKPOINT = Checkpoint(
    7, Task("Mend it.", Evidence("user", "item-1")), Plan((), {}, None), (), {}, {}, ()
)
VIEW = "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- Mend it.\n"
OTHER = VIEW.replace("Mend", "Paint")
DIGEST = "[SESSION_DIGEST v1]\n\n[STATUS]\n- last turn: answered\n"


def developer(*parts: str) -> Item:
    content = [{"type": "input_text", "text": part} for part in parts]
    return {"type": "message", "role": "developer", "content": content}


def assistant(text: str) -> Item:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


@pytest.mark.parametrize("source", ["resume", "fork", "compact"])
def test_a_window_that_begins_anew_gets_the_bundle(source: str) -> None:
    assert is_due(source, CHECKPOINT, VIEW, [user_message(["Mend it."])])


@pytest.mark.parametrize("source", ["startup", "clear", "", "from the future"])
def test_any_other_start_gets_nothing(source: str) -> None:
    assert not is_due(source, CHECKPOINT, VIEW, [])


def test_an_empty_checkpoint_is_not_told_but_a_plan_alone_is() -> None:
    plan = Plan((Step("s1", "Look."),), {"s1": True}, None)

    assert is_empty(NOTHING)
    assert not is_empty(Checkpoint(7, None, plan, (), {}, {}, ()))
    for source in ("resume", "fork", "compact"):
        assert not is_due(source, NOTHING, VIEW, [])


@pytest.mark.parametrize(
    "given",
    [
        developer(bundle(VIEW)),
        developer("Theirs.", bundle(VIEW)),
        developer(bundle(VIEW, DIGEST)),
        handoff(VIEW),
        handoff(VIEW, DIGEST),
    ],
)
def test_what_the_window_has_already_is_given_again_only_after_a_compaction(given: Item) -> None:
    window = [given, user_message(["Go on."]), assistant("Done.")]

    assert not is_due("resume", CHECKPOINT, VIEW, window)
    assert not is_due("fork", CHECKPOINT, VIEW, window)
    assert is_due("compact", CHECKPOINT, VIEW, window)


@pytest.mark.parametrize("earlier", [developer(bundle(VIEW)), assistant(bundle(VIEW))])
def test_a_bundle_that_another_one_followed_and_one_in_the_assistants_mouth_do_not_count(
    earlier: Item,
) -> None:
    window = [earlier, developer(bundle(OTHER)), assistant(bundle(VIEW))]

    assert is_due("resume", CHECKPOINT, VIEW, window)
    assert not is_due("resume", CHECKPOINT, OTHER, window)


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        (None, False),
        (VIEW, True),
        (bundle(VIEW), True),
        (bundle(VIEW, DIGEST), True),
        (f"[HOW TO USE SESSION_CHECKPOINT v1]\nAs of old.\n\n{VIEW}", True),
        (bundle(OTHER), False),
        (bundle(OTHER, f"{DIGEST}- {VIEW}"), False),
        (bundle(f"{VIEW}\n[PLAN]\n- [ ] Look. (id=s1)\n"), False),
        (bundle(VIEW[:-1]), False),
        ("[SESSION_RESTORE v1]\n", False),
    ],
)
def test_a_text_shows_a_view_when_that_stands_whole_in_it_whatever_is_around_it(
    text: str | None, is_shown: bool
) -> None:
    assert shows(text, VIEW) is is_shown
