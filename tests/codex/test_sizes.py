"""The predicted size of a compaction is the size of the real Codex's next request (NUM-1).

The model reports a usage that follows from each request: a quarter of its bytes.
"""

from typing import Any

import pytest

from codex.codex_cli import CodexHome
from codex.conftest import MakeHome
from codex.product import service_over, worked
from codex.scripted_model import Answer, say, shell
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest

pytestmark = pytest.mark.codex

NEAR = 0.1
"""A figure may be off by this share."""

WORK = "I read it all, and this is what I saw. " * 400


def compacted(home: CodexHome, thread: str, into: Any) -> Compacted:  # noqa: ANN401
    with service_over(home) as sessions:
        return Compacting(sessions, outside({})).compact(CompactionRequest(thread, into=into))


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_next_call_has_the_size_that_the_compaction_predicted(
    scripted: MakeHome, into: str, legacy: bool
) -> None:
    home, model = scripted(
        Answer(shell("cat README.md", "call_1"), counted=True),
        Answer(say(WORK), counted=True),
        *(Answer(say(WORK), counted=True) for _ in range(3)),
    )
    thread, _ = worked(home, legacy=legacy)
    last = model.turns[-1].tokens

    done = compacted(home, thread, into)
    home.exec("Go on.", resume=str(done.session_id))
    sent = model.turns[-1].tokens

    assert done.tokens_beside is not None
    assert done.tokens_beside > 1_000, "instructions and tools are part of it"
    assert done.tokens_before == pytest.approx(last + len(WORK) // 4, rel=NEAR)
    assert done.tokens_after == pytest.approx(sent, rel=NEAR)
    assert sent <= done.bound
