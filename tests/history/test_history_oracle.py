"""Our history of real sessions equals the request that Codex sent on resume.

`CODEX_ROLLOUTS` names a folder of homes, each with `resume-input.json` beside its `sessions`: the
`input` of the request, and the `thread_id` that was resumed with a prompt.  Without such a folder
the test is skipped; `codex/test_history.py` makes sessions of its own and needs none.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints import assembly, wire
from codex_checkpoints.operations.history import history
from codex_checkpoints.operations.services import Services, SessionParams
from codex_checkpoints.places import Places

Item = dict[str, Any]

FOLDER = Path(os.environ.get("CODEX_ROLLOUTS", "")).absolute()
HOMES = sorted(FOLDER.glob("*/resume-input.json")) if "CODEX_ROLLOUTS" in os.environ else []

NOT_COMPARED = ("id", "metadata", "internal_chat_message_metadata_passthrough")

FRESH = {
    # A hook speaks at the resume before the prompt, another one after it.
    "s12-hooks": 3,
    # No baseline in files of older versions: all of the context is sent anew before the prompt,
    "s20-codex-0.98": 3,
    "s21-codex-0.44": 3,
    # and here what changed in it as well.
    "s22-codex-0.140": 4,
}
"""How many items at the end belong to the next turn; elsewhere that is the prompt alone."""


def expected(home: str, sent: list[Item]) -> list[Item]:
    """Leave out the base instructions, which are the first message, and the next turn."""
    items = [{k: v for k, v in item.items() if k not in NOT_COMPARED} for item in sent]
    first = next(n for n, item in enumerate(items) if item["type"] == "message")
    assert items[first]["role"] == "developer"
    return items[:first] + items[first + 1 : len(items) - FRESH.get(home, 1)]


@pytest.mark.skipif(not HOMES, reason="CODEX_ROLLOUTS names no folder of sessions")
@pytest.mark.parametrize("oracle", HOMES, ids=lambda path: path.parent.name)
def test_history_of_a_real_session_equals_codexs_request(oracle: Path, tmp_path: Path):
    told = json.loads(oracle.read_bytes())
    if told.get("input") is None:
        pytest.skip("Codex does not resume this one (archived)")
    where = Places(str(oracle.parent), str(tmp_path / "state"))
    house = assembly.assemble(where)
    try:
        house.sessions.refresh()
        found = history(Services(where, house), SessionParams(told["thread_id"]))
    finally:
        house.sessions.close()

    items = wire.unstructure(found)["items"]
    assert items == expected(oracle.parent.name, told["input"])
