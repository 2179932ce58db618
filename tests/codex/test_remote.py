"""A pushed session continues in the real Codex of another home and account (TEA-3)."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from codex import product
from codex.codex_cli import AppServer, CodexHome, Message
from codex.conftest import MakeHome
from codex.scripted_model import Answer, apply_patch, say, shell

pytestmark = pytest.mark.codex

both_modes = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

TOKEN = "ghp" + "_" + "a1B2" * 9
ENCRYPTED = "gAAAAAencrypted-for-one-account"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+first line\n*** End Patch"
THOUGHT: Any = {"type": "reasoning", "summary": [], "encrypted_content": ENCRYPTED}


def ask(home: CodexHome, *arguments: str) -> Any:  # noqa: ANN401 - any JSON document
    return json.loads(product.run(home, *arguments, "--json"))


def share(folder: Path, *homes: CodexHome) -> None:
    for home in homes:
        ask(home, "remote", "set", str(folder), "--yes")


def sent_again(model: Any, home: CodexHome, session: str) -> str:  # noqa: ANN401 - the model
    """Go on in a session; return what the model was sent, as JSON."""
    before = len(model.turns)
    model.add(Answer(say("So.")))
    home.exec("And what is next here?", resume=session)
    assert len(model.turns) == before + 1
    assert model.compactions == []
    return json.dumps(model.turns[-1].input, ensure_ascii=False)


@both_modes
def test_codex_resumes_a_pulled_session_without_account_bound_data(
    scripted: MakeHome, tmp_path: Path, legacy: bool
) -> None:
    there, model = scripted(
        Answer(THOUGHT, shell("sed -n 1,2p calc/core.py", "call_1")),
        Answer(apply_patch(PATCH, "call_2")),
        Answer(say("Fixed, größer 日本 🙂")),
    )
    with AppServer(there) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, f"Fix the division with {TOKEN}")
    here = CodexHome(tmp_path / "other", model)
    share(tmp_path / "remote", there, here)

    (pushed,) = ask(there, "push", thread, "--yes")["sessions"]
    pulled = ask(here, "pull", thread[:13], "--into", str(here.project))

    assert pushed["leftOut"]["encrypted"] >= 1
    session = pulled["sessionId"]
    with AppServer(here) as server:
        assert server.listed() == [session]
        assert server.read(session)["preview"] == "Fix the division with [redacted]"
    sent = sent_again(model, here, session)
    for text in ("Fix the division with [redacted]", "Fixed, größer 日本 🙂", "def add(a, b)"):
        assert sent.count(text) == 1, text
    for text in (TOKEN, ENCRYPTED):
        assert text not in sent
        assert text.encode() not in b"".join(_stored(tmp_path / "remote"))
    assert '"call_2"' in sent
    assert '"And what is next here?"' in sent


@both_modes
def test_codex_never_adopts_permissions_of_another_machine(
    scripted: MakeHome, tmp_path: Path, legacy: bool
) -> None:
    there, model = scripted(Answer(say("Done.")))  # its Codex never asks, and has no sandbox
    with AppServer(there) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, "Go")
    here = CodexHome(tmp_path / "other", model)
    config = here.codex_home / "config.toml"
    text = config.read_text().replace('"never"', '"on-request"')
    config.write_text(text.replace('"danger-full-access"', '"read-only"'))
    share(tmp_path / "remote", there, here)
    ask(there, "push", thread, "--yes")

    pulled = ask(here, "pull", thread, "--into", str(here.project))

    with AppServer(here) as server:
        found = server.call("thread/resume", {"threadId": pulled["sessionId"]})
    assert found["approvalPolicy"] == "on-request"
    assert cast("Message", found["sandbox"])["type"] == "readOnly"
    assert (found["cwd"], found["model"]) == (str(here.project), "gpt-5.5")


def test_fork_of_a_redacted_base_loses_no_line(scripted: MakeHome, tmp_path: Path) -> None:
    there, model = scripted(
        Answer(shell("cat README.md", "call_1")),
        Answer(say(f"The first is {TOKEN}.")),
        Answer(say("The second.")),
        Answer(say("Elsewhere.")),
    )
    with AppServer(there) as server:
        source = server.start()
        first = server.turn(source, f"Read the page with {TOKEN}")
        server.turn(source, "This is after the cut.")
        fork = server.fork(source, first)
        server.turn(fork, "Go on elsewhere.")
    own = next(path for path in there.rollouts() if fork in path.name).read_bytes()
    assert b"history_base" in own.splitlines()[0]
    here = CodexHome(tmp_path / "other", model)
    share(tmp_path / "remote", there, here)

    ask(there, "push", fork, "--yes")
    pulled = ask(here, "pull", fork, "--into", str(here.project))

    sent = sent_again(model, here, pulled["sessionId"])
    wanted = (
        "Read the page with [redacted]",
        "The first is [redacted].",
        "Go on elsewhere.",
        "Elsewhere.",
    )
    for text in wanted:
        assert f'"{text}"' in sent, text
    assert "after the cut" not in sent
    tree = ask(here, "lineage", pulled["sessionId"])
    assert [each["id"] for each in tree["nodes"]] == [source, fork, pulled["sessionId"]]


def _stored(folder: Path) -> list[bytes]:
    from codex_checkpoints.storage.remote.packing import zstd

    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".zst" for path in paths)
    return [
        zstd.decompress(path.read_bytes()) if path.suffix == ".zst" else path.read_bytes()
        for path in paths
    ]
