"""When a session that begins a window is given its bundle, and when it has it already."""

import pytest

from codex_checkpoints.core.checkpoint.records import Checkpoint, Evidence, Plan, Step, Task
from codex_checkpoints.core.compaction.handoff import bundle, handoff, injection, is_empty
from codex_checkpoints.core.history.items import Item, user_message

NOTHING = Checkpoint(7, None, Plan((), {}, None), (), {}, {}, ())
CHECKPOINT = Checkpoint(
    7, Task("Mend it.", Evidence("user", "item-1")), Plan((), {}, None), (), {}, {}, ()
)
VIEW = "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- Mend it.\n"
OTHER = VIEW.replace("Mend", "Paint")


def developer(*parts: str) -> Item:
    content = [{"type": "input_text", "text": part} for part in parts]
    return {"type": "message", "role": "developer", "content": content}


def assistant(text: str) -> Item:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


@pytest.mark.parametrize("source", ["resume", "fork", "compact"])
def test_a_window_that_begins_anew_gets_the_bundle(source: str) -> None:
    assert injection(source, CHECKPOINT, VIEW, [user_message(["Mend it."])]) == bundle(VIEW)


@pytest.mark.parametrize("source", ["startup", "clear", "", "from the future"])
def test_any_other_start_gets_nothing(source: str) -> None:
    assert injection(source, CHECKPOINT, VIEW, []) is None


def test_an_empty_checkpoint_is_not_told_but_a_plan_alone_is() -> None:
    plan = Plan((Step("s1", "Look."),), {"s1": True}, None)

    assert is_empty(NOTHING)
    assert not is_empty(Checkpoint(7, None, plan, (), {}, {}, ()))
    for source in ("resume", "fork", "compact"):
        assert injection(source, NOTHING, VIEW, []) is None


@pytest.mark.parametrize(
    "given", [developer(bundle(VIEW)), developer("Theirs.", bundle(VIEW)), handoff(VIEW)]
)
def test_what_the_window_has_already_is_given_again_only_after_a_compaction(given: Item) -> None:
    window = [given, user_message(["Go on."]), assistant("Done.")]

    assert injection("resume", CHECKPOINT, VIEW, window) is None
    assert injection("fork", CHECKPOINT, VIEW, window) is None
    assert injection("compact", CHECKPOINT, VIEW, window) == bundle(VIEW)


@pytest.mark.parametrize("earlier", [developer(bundle(VIEW)), assistant(bundle(VIEW))])
def test_a_bundle_that_another_one_followed_and_one_in_the_assistants_mouth_do_not_count(
    earlier: Item,
) -> None:
    window = [earlier, developer(bundle(OTHER)), assistant(bundle(VIEW))]

    assert injection("resume", CHECKPOINT, VIEW, window) == bundle(VIEW)
    assert injection("resume", CHECKPOINT, OTHER, window) is None
