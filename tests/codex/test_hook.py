"""The real Codex calls our hook: the text in its next request, and failures that break nothing.

The hooks are those that `connect` writes, trusted the way a person would in Codex.
"""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from codex.codex_cli import HERE, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import PATIENCE, environment, product, run
from codex.scripted_model import (
    Answer,
    Json,
    Request,
    Usage,
    call,
    say,
    shell,
    text_of,
    update_plan,
)
from codex.session_file import SessionFile
from codex_checkpoints.core.compaction.handoff import HOW_TO

pytestmark = pytest.mark.codex

TASK = "Fix the division in calc."
LIMIT = 20_000
FULL = Usage(input=LIMIT + 1_000)
SUMMED = "All is well so far."
LOOK = shell("cat calc/core.py", "call_look")
PLAN = update_plan([("Read core.py", "completed"), ("Divide truly", "in_progress")], "call_plan")


def connect(home: CodexHome, *, trusted: bool = True) -> CodexHome:
    """Connect a home, which compacts when its window holds 20,000 tokens."""
    config = home.codex_home / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(f"model_auto_compact_token_limit = {LIMIT}\n{text}", encoding="utf-8")
    assert json.loads(run(home, "connect", "--json"))["written"] is True
    if trusted:
        trust(home)
    return home


def trust(home: CodexHome) -> None:
    with AppServer(home) as server:
        listed = server.call("hooks/list", {"cwds": [str(home.project)]})
        (entry,) = cast("list[dict[str, Any]]", listed["data"])
        state: Json = {
            hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in entry["hooks"]
        }
        edit: Json = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})


def bundles(request: Request) -> list[str]:
    """The bundles of ours in a request, whoever is made to say them."""
    found = [item for item in request.input if item.get("type") == "message"]
    texts = [(str(item["role"]), text_of(item)) for item in found]
    ours = [(role, text) for role, text in texts if text.startswith(HOW_TO)]
    assert {role for role, _ in ours} <= {"developer"}
    return [text for _, text in ours]


def content_hash(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def kept(home: CodexHome, session: str, name: str) -> list[Any]:
    path = home.codex_home / "codex-checkpoints" / "sessions" / session / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def status(home: CodexHome) -> dict[str, Any]:
    """Ask how things stand, with Codex on the PATH to be asked for its trust."""
    names = (str(HERE / "node_modules" / ".bin"), os.environ["PATH"])
    done = subprocess.run(
        product("connect", "--status", "--json"),
        cwd=home.project,
        env=environment(home) | {"PATH": os.pathsep.join(names)},
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return json.loads(done.stdout)


def assert_shows(view: str, home: CodexHome) -> None:
    digest = content_hash(home.project / "calc" / "core.py")
    assert TASK in view
    assert "- [x] Read core.py" in view
    assert "- [ ] Divide truly" in view
    assert any("calc/core.py" in line and digest[:15] in line for line in view.splitlines())


def test_next_request_after_a_compaction_within_a_turn_holds_the_view(
    scripted: MakeHome,
) -> None:
    home, model = scripted(
        Answer(say("Hello.")),
        Answer(LOOK),
        Answer(PLAN, usage=FULL),
        Answer(say("Fixed.")),
        summaries=("All is well so far.",),
    )
    connect(home)

    with AppServer(home) as server:
        session = server.start()
        first = server.turn(session, "Hello?")
        server.turn(session, TASK)

    assert len(model.compactions) == 1
    assert [len(bundles(request)) for request in model.turns] == [0, 0, 0, 1]
    assert_shows(bundles(model.turns[-1])[0], home)
    given = kept(home, session, "receipts.jsonl")
    assert [(each["event"], each["source"]) for each in given] == [
        ("PreCompact", "auto"),
        ("PostCompact", "auto"),
        ("SessionStart", "compact"),
    ]
    windows = json.loads(run(home, "windows", session, "--json"))
    assert given[-1]["windowId"] == given[-2]["windowId"] == windows[-1]["windowId"]
    text = bundles(model.turns[-1])[0]
    assert given[-1]["digest"] == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert windows[0]["received"] is None
    received = windows[-1]["received"]
    assert (received["digest"], received["size"]) == (given[-1]["digest"], len(text.encode()))
    assert (received["event"], received["source"]) == ("SessionStart", "compact")
    assert received["isCurrent"] is True
    (event,) = json.loads(run(home, "audit", "--session", session, "--json"))
    assert (event["type"], event["windowId"]) == ("CodexCompacted", received["windowId"])
    (marker,) = kept(home, session, "markers.jsonl")
    assert (marker["turnId"], marker["label"]) == (first, "before compaction")
    assert model.unscripted == []


def test_bundle_after_a_compaction_quotes_only_the_removed_history(
    scripted: MakeHome,
) -> None:
    home, model = scripted(
        Answer(LOOK),
        Answer(PLAN, usage=FULL),
        Answer(say("Fixed.")),
        Answer(say("It is done.")),
        summaries=(SUMMED,),
    )
    connect(home)

    session = home.exec(TASK)

    ((view, digest),) = map(halves, bundles(model.turns[-1]))
    assert_shows(view, home)
    assert digest.startswith("\n[STATUS]\n- last turn: open\n")
    assert "[OUTCOMES]" not in digest, "the summary of the compaction is no answer"
    assert "[REQUESTS]" not in digest
    assert TASK in model.turns[-1].texts("user"), "the history has it"
    lines = {key: anchored(digest, key) for key in ("cat calc/core.py", SUMMED)}
    for key, anchor in lines.items():
        record = json.loads(run(home, "recall", session, "--ref", anchor, "--json"))
        assert key in record["text"]
    (cut,) = (seq for seq, record in told(home, session) if record["type"] == "compacted")
    assert lines.pop(SUMMED) == f"#{cut}"

    # The view is another one, since a file changed; what the history still has is not quoted.
    (home.project / "calc" / "core.py").write_text("# changed\n", encoding="utf-8")
    home.exec(TASK, resume=session)

    assert len(bundles(model.turns[-1])) == 2
    _, digest = halves(bundles(model.turns[-1])[-1])
    assert digest.startswith("\n[STATUS]\n- last turn: answered\n")
    assert "answered: Fixed." not in digest
    assert {key: anchored(digest, key) for key in lines} == lines
    quoted = re.findall(r"(?m)^- (?:t\d+ )?#(\d+) ", digest)
    assert all(int(seq) < cut for seq in quoted)
    assert model.unscripted == []


def halves(bundle: str) -> tuple[str, str]:
    """The view and the digest of a bundle."""
    view, line, digest = bundle.partition("[SESSION_DIGEST v1]\n")
    assert line
    return view, digest


def anchored(digest: str, key: str) -> str:
    """The anchor of the first line that quotes this."""
    line = next(line for line in digest.splitlines() if key in line)
    found = re.match(r"- (?:t\d+ )?(#\d+) ", line)
    assert found is not None, line
    return found[1]


def told(home: CodexHome, session: str) -> list[tuple[int, Any]]:
    """The records of a session with their numbers."""
    (path,) = (path for path in home.rollouts() if session in path.name)
    return SessionFile(path).records


def test_resume_injects_the_view_once_while_it_is_unchanged(scripted: MakeHome) -> None:
    home, model = scripted(Answer(LOOK), Answer(PLAN), Answer(say("Fixed.")))
    connect(home)
    with AppServer(home) as server:
        session = server.start()
        server.turn(session, TASK)
    assert not bundles(model.turns[-1])

    counts: list[int] = []
    for _ in range(3):
        model.add(Answer(say("Yes.")))
        # The same words, so that the task is the same as well.
        home.exec(TASK, resume=session)
        counts.append(len(bundles(model.turns[-1])))

    assert counts == [1, 1, 1]
    assert_shows(bundles(model.turns[-1])[0], home)
    (home.project / "calc" / "core.py").write_text("# changed\n", encoding="utf-8")
    model.add(Answer(say("Yes.")))
    home.exec(TASK, resume=session)
    old, new = bundles(model.turns[-1])
    assert old != new
    assert_shows(new, home)
    (window,) = json.loads(run(home, "windows", session, "--json"))
    assert window["received"]["isCurrent"] is True
    (home.project / "calc" / "core.py").write_text("# changed again\n", encoding="utf-8")
    (window,) = json.loads(run(home, "windows", session, "--json"))
    assert window["received"]["isCurrent"] is False
    assert status(home)["doors"][0]["lastSession"] == session


def test_two_compactions_leave_one_copy_of_the_bundle(scripted: MakeHome) -> None:
    home, model = scripted(
        Answer(LOOK),
        Answer(PLAN, usage=FULL),
        Answer(LOOK, usage=FULL),
        Answer(say("Fixed.")),
        summaries=("All is well so far.", "Still well."),
    )
    connect(home)

    home.exec(TASK)

    assert len(model.compactions) == 2
    assert [len(bundles(request)) for request in model.turns] == [0, 0, 1, 1]
    assert model.unscripted == []


def test_untrusted_hook_is_not_called_and_the_status_reports_it(scripted: MakeHome) -> None:
    home, model = scripted(Answer(LOOK), Answer(PLAN), Answer(say("Fixed.")), Answer(say("Yes.")))
    connect(home, trusted=False)

    session = home.exec(TASK)
    home.exec("Go on.", resume=session)

    assert not any(bundles(request) for request in model.turns)
    told = status(home)
    assert (told["doors"][0]["trusted"], told["doors"][0]["lastRanAt"]) == (False, None)
    assert told["wayOut"]


def test_note_of_the_model_appears_in_the_view_of_its_next_window(scripted: MakeHome) -> None:
    note: dict[str, Json] = {
        "kind": "decision",
        "decisionId": "division",
        "decision": "Divide truly",
        "rationale": "callers expect fractions",
        "evidence": {"source": "user", "ref": "task"},
    }
    noting = call("memory_apply", note, "call_note", namespace="mcp__codex_checkpoints")
    home, model = scripted(
        Answer(noting),
        Answer(PLAN, usage=FULL),
        Answer(say("Fixed.")),
        summaries=("All is well so far.",),
    )
    connect(home)

    home.exec(TASK)

    (view,) = bundles(model.turns[-1])
    _, _, decisions = view.partition("[DECISIONS")
    assert "Divide truly" in decisions.split("\n[")[0]


def test_failing_hook_breaks_no_turn(scripted: MakeHome) -> None:
    home, model = scripted(
        Answer(LOOK),
        Answer(PLAN, usage=FULL),
        Answer(say("Fixed.")),
        Answer(say("Yes.")),
        summaries=("All is well so far.",),
    )
    connect(home)
    (home.codex_home / "codex-checkpoints").mkdir(exist_ok=True)
    # The place of every file of ours is taken, so that each call of PreCompact fails.
    (home.codex_home / "codex-checkpoints" / "sessions").write_bytes(b"in the way")

    session = home.exec(TASK)
    home.exec("Go on.", resume=session)

    assert len(model.compactions) == 1
    assert model.unscripted == []
    told = status(home)
    assert told["doors"][0]["problem"] == "failed"
    assert "storage_error" in told["problems"][0]
