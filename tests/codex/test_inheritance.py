"""A thread that the real Codex forks has the notes from before the cut."""

import json

import pytest

from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, say, shell

pytestmark = pytest.mark.codex


def note(home: CodexHome, session: str, key: str) -> None:
    """Accept a fact about the file that was read."""
    payload = home.root / f"{key}.json"
    evidence = {"source": "file", "ref": "README.md"}
    fact = {"kind": "fact", "key": key, "value": "so it is", "evidence": evidence}
    payload.write_text(json.dumps(fact | {"dependsOn": [{"uri": "README.md"}]}), encoding="utf-8")
    run(home, "apply", session, str(payload))


def facts(home: CodexHome, session: str) -> list[str]:
    return [*json.loads(run(home, "show", session))["facts"]]


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_fork_inherits_notes_made_before_the_cut(scripted: MakeHome, legacy: bool) -> None:
    home, _ = scripted(
        Answer(shell("cat README.md", "call_read")),
        Answer(say("Read.")),
        Answer(say("Again.")),
        Answer(say("Elsewhere.")),
    )

    with AppServer(home) as server:
        source = server.start(legacy=legacy)
        first = server.turn(source, "Read the page.")
        note(home, source, "before")
        server.turn(source, "And again.")
        note(home, source, "after")
        fork = server.fork(source, first)
        server.turn(fork, "Go on elsewhere.")

    assert facts(home, source) == ["after", "before"]
    # An older thread is copied whole: its fork names no base, and begins without notes.
    assert facts(home, fork) == ([] if legacy else ["before"])
