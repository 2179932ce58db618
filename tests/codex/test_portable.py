"""An imported session continues in the real Codex of another home, with one model call."""

import json
from pathlib import Path
from typing import Any

import pytest

from codex import product
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.scripted_model import Answer, apply_patch, say, shell

pytestmark = pytest.mark.codex

both_modes = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

SAID = "assistant-words"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+body-of-the-file\n*** End Patch"


def ask(home: CodexHome, *arguments: str) -> Any:  # noqa: ANN401 - any JSON document
    return json.loads(product.run(home, *arguments, "--json"))


@both_modes
def test_codex_lists_and_resumes_a_session_imported_from_a_pack(
    scripted: MakeHome, tmp_path: Path, legacy: bool
) -> None:
    there, model = scripted(
        Answer(shell("sed -n 1,2p calc/core.py", "call_1")),
        Answer(apply_patch(PATCH, "call_2")),
        Answer(say(SAID)),
    )
    with AppServer(there) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, "Fix the division, größer 日本 🙂")
    file = tmp_path / "pack.json"
    ask(there, "export", thread, str(file))
    text = file.read_text(encoding="utf-8")
    for planted in (SAID, "body-of-the-file", "return a // b", str(there.root), str(there.user)):
        assert planted not in text

    pack = json.loads(text)
    (played,) = pack["turns"]
    assert (played["sessionId"], played["number"], played["end"]) == (thread, 1, "completed")
    assert played["startedAt"] <= played["endedAt"]
    assert [each["turnId"] for each in pack["modes"]] == [played["turnId"]]

    here = CodexHome(tmp_path / "other", model)
    workspace = here.root / "a folder"
    (workspace / "calc").mkdir(parents=True)
    made = ask(here, "import", str(file), "--cwd", str(workspace))

    session = made["sessionId"]
    with AppServer(here) as server:
        assert server.listed() == [session]
        assert server.read(session)["preview"] == "Fix the division, größer 日本 🙂"
    before = len(model.turns)
    model.add(Answer(say("So.")))
    here.exec("And what is next here?", resume=session)

    assert len(model.turns) == before + 1
    assert model.compactions == []
    sent = json.dumps(model.turns[-1].input, ensure_ascii=False)
    assert sent.count(json.dumps(made["handoff"], ensure_ascii=False)) == 1
    assert sent.count('"And what is next here?"') == 1
    assert SAID not in sent
    state = json.loads(product.run(here, "show", session))
    assert state["task"]["text"] == "And what is next here?"
    assert {"calc/core.py", "new.txt"} <= state["artifacts"].keys()
    assert "hash" not in state["artifacts"]["new.txt"]
