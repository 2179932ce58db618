"""Sessions of every generation, compacted and undone: the exact next request of the real Codex.

A request is to be the base instructions, our replacement, context that Codex adds anew, and the
prompt.  All these sessions have used more than their window holds, unless they are taken back.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.generations import FIRST, FULL, GENERATIONS, WORK, written_by
from codex.product import service_over
from codex.requests import is_context, sent
from codex.scripted_model import Answer, Request, say, text_of
from codex.test_compacting import compacted
from codex_checkpoints.core.checkpoint.records import Checkpoint, from_bytes
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.core.fields import texts_of
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.refusal import Refusal
from long_session import LAST, long_session
from rollouts import THREAD

pytestmark = pytest.mark.codex

every_generation = pytest.mark.parametrize("generation", GENERATIONS)
both_targets = pytest.mark.parametrize("into", ["new", "in-place"])

SAYS = "Going on."


def put(home: CodexHome, data: bytes) -> Path:
    path = home.codex_home / f"sessions/2026/11/20/rollout-2026-11-20T10-00-00-{THREAD}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def shown(home: CodexHome, session_id: str) -> Checkpoint:
    with service_over(home) as sessions:
        return attrs.evolve(from_bytes(sessions.show(session_id).data), seq=0)


def history(home: CodexHome, session_id: str) -> list[Any]:
    with service_over(home) as sessions:
        return list(Histories(sessions).history(session_id).items)


def split(request: Request, begin: Sequence[object]) -> list[Any]:
    """Return what follows a history that a request must begin with."""
    items = sent(request)
    assert items[: len(begin)] == list(begin)
    return items[len(begin) :]


def hold_the_rest(rest: Sequence[Any], prompt: str) -> None:
    """There is nothing but context of the next turn, and the prompt."""
    assert (rest[-1]["role"], text_of(rest[-1])) == ("user", prompt)
    assert all(is_context(item) for item in rest[:-1]), rest[:-1]


@both_targets
@every_generation
def test_next_request_holds_the_replacement_and_none_of_the_replaced_items(
    scripted: MakeHome, generation: str, into: Into
) -> None:
    home, model = scripted(Answer(say(SAYS)), Answer(say(SAYS)))
    path = put(home, written_by(generation, FULL))
    before, knew = path.read_bytes(), shown(home, THREAD)

    done = compacted(home, THREAD, into)

    made, items = str(done.session_id), done.replacement
    assert shown(home, made) == knew
    with AppServer(home) as server:
        assert set(server.listed()) == {made, THREAD}
        assert server.read(made)["preview"] == FIRST
    home.exec("Go on.", resume=made)
    hold_the_rest(split(model.turns[0], items), "Go on.")
    home.exec("And on with the tests.", resume=made)
    since = split(model.turns[1], items)
    answered = next(at for at, item in enumerate(since) if item.get("role") == "assistant")
    hold_the_rest(since[:answered], "Go on.")
    assert text_of(since[answered]) == SAYS
    hold_the_rest(since[answered + 1 :], "And on with the tests.")
    assert (len(model.turns), model.compactions, model.unscripted) == (2, [], [])
    assert not any(WORK[:30] in text for each in model.turns for text in each.texts("assistant"))
    after = path.read_bytes()
    assert after == before if into == "new" else after.startswith(before)
    told = shown(home, made)
    assert told.task is not None
    assert told.task.text == "And on with the tests."
    assert told.plan == knew.plan
    assert told.artifacts == knew.artifacts


def test_session_without_envelopes_continues_in_a_new_one(
    scripted: MakeHome,
) -> None:
    home, model = scripted(Answer(say(SAYS)))
    path = put(home, written_by("bare"))
    before = path.read_bytes()

    with pytest.raises(Refusal) as refused:
        compacted(home, THREAD, "in-place")
    done = compacted(home, THREAD)
    home.exec("Go on.", resume=str(done.session_id))

    hold_the_rest(split(model.turns[0], done.replacement), "Go on.")
    assert refused.value.code == "conflict"
    assert path.read_bytes() == before


def test_thousands_of_records_become_one_short_request(scripted: MakeHome) -> None:
    home, model = scripted(Answer(say(SAYS)))
    put(home, long_session(model_provider="scripted"))

    done = compacted(home, THREAD)
    home.exec("Go on.", resume=str(done.session_id))

    hold_the_rest(split(model.turns[0], done.replacement), "Go on.")
    assert "".join(texts_of(done.replacement[-2]["content"])) == (
        f"Round {LAST}: go on with part {LAST}."
    )
    assert (len(model.turns), model.compactions) == (1, [])


@both_targets
@every_generation
def test_undo_makes_codex_send_the_original_history(
    scripted: MakeHome, generation: str, into: Into
) -> None:
    home, model = scripted(Answer(say(SAYS)))
    path = put(home, written_by(generation))
    before, old, knew = path.read_bytes(), history(home, THREAD), shown(home, THREAD)
    done = compacted(home, THREAD, into)

    with service_over(home) as sessions:
        Undoing(sessions, outside({})).uncompact(str(done.compaction_id))
        assert [
            s.continued_by for s in sessions.summaries.page().items if s.session_id == THREAD
        ] == [None]

    assert shown(home, THREAD) == knew
    assert path.read_bytes().startswith(before)
    home.exec("Go on.", resume=THREAD)
    hold_the_rest(split(model.turns[0], old), "Go on.")
    assert [text for text in model.turns[0].texts("assistant") if text == WORK] == [WORK, WORK]
    assert (len(model.turns), model.compactions) == (1, [])


def test_without_compaction_codex_would_have_made_a_summary_call(scripted: MakeHome) -> None:
    home, model = scripted(Answer(say(SAYS)), summaries=("It is about a login.",))
    put(home, written_by("0.140", FULL))

    home.exec("Go on.", resume=THREAD)

    assert len(model.compactions) == 1, "the tests above would show nothing"
