"""Losses of the real Codex's own compactions, and its rereads afterwards."""

import json

import pytest

from codex.codex_cli import AppServer
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, Usage, apply_patch, say, shell, update_plan

pytestmark = pytest.mark.codex

TASK = "Make div return a float."
READ = "cat calc/core.py"
FAIL = "python3 -c 'raise SystemExit(3)'"
FULL = Usage(input=262_000)
"""More tokens than the window holds: Codex compacts before it goes on."""

ADD = """*** Begin Patch
*** Add File: NOTES.md
+Divide truly.
*** End Patch"""


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_reread_of_a_file_after_codexs_own_compaction_is_counted(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(
        Answer(update_plan([("Look", "completed"), ("Divide truly", "pending")], "call_plan")),
        Answer(shell(READ, "call_read")),
        Answer(apply_patch(ADD, "call_add")),
        Answer(shell(FAIL, "call_fail"), usage=FULL),
        Answer(shell(READ, "call_again")),
        Answer(say("Fixed.")),
        summaries=("There is a NOTES.md now.",),
    )

    with AppServer(home) as server:
        session = server.start(legacy=legacy)
        server.turn(session, TASK)

    (loss,) = json.loads(run(home, "losses", session, "--json"))
    (_, window) = json.loads(run(home, "windows", session, "--json"))
    assert model.unscripted == []
    assert len(model.compactions) == 1
    assert (loss["number"], loss["windowId"]) == (window["number"], window["windowId"])
    assert (loss["trigger"], loss["strategy"]) == ("mid_turn", "local")
    assert loss["taskPresent"] is True
    assert [(each["text"], each["lost"]) for each in loss["openPlanSteps"]] == [
        ("Divide truly", True)
    ]
    assert [(each["uri"], each["lost"]) for each in loss["editedFiles"]] == [("NOTES.md", False)]
    (failed,) = loss["failingCommands"]
    assert (failed["exitCode"], failed["ref"], failed["lost"]) == (3, "call_fail", True)
    size = (home.project / "calc" / "core.py").stat().st_size
    assert (loss["reads"], loss["rereadsUnchanged"], loss["bytes"]) == (1, 1, size)
    assert [(each["uri"], each["ref"]) for each in loss["rereads"]] == [
        ("calc/core.py", "call_again")
    ]
