"""The real Codex reads the entries of `connect`: which hooks it sees, and when it calls them.

In the place of our program stands one that only writes down how it was called.
"""

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import cast

import pytest
from attrs import evolve

from codex.child import Child
from codex.codex_cli import HERE, PATIENCE, AppServer, CodexHome, Message, codex_command
from codex.conftest import MakeHome
from codex.product import run
from codex.scripted_model import Answer, Json, call, say
from codex_checkpoints.codex.entries import HOOKS, Entries
from codex_checkpoints.service.connect import codex_config
from codex_checkpoints.service.connect.codex_config import Connector
from codex_checkpoints.service.connect.status import HOW_TO_TRUST, Connection

pytestmark = pytest.mark.codex

VERSION = json.loads((HERE / "package.json").read_text())["devDependencies"]["@openai/codex"]

STAND_IN = """\
import json, os, sys

log = os.path.join(os.path.dirname(__file__), "calls.jsonl")
if sys.argv[1] == "hook":
    with open(log, "a") as file:
        file.write(json.dumps({"options": sys.argv[2:], **json.load(sys.stdin)}) + "\\n")
else:
    for line in sys.stdin:
        asked = json.loads(line)
        method = asked["method"]
        if method == "initialize":
            info = {"name": "stand-in", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = info
        elif method == "tools/list":
            schema = {"type": "object", "properties": {}}
            result = {"tools": [{"name": "memory.apply", "description": "", "inputSchema": schema}]}
        elif method == "tools/call":
            said = asked["params"]["name"] + " was called with " + " ".join(sys.argv[2:])
            result = {"content": [{"type": "text", "text": said}]}
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


class Connected:
    """A home that is connected with the program that writes down its calls."""

    def __init__(self, home: CodexHome) -> None:
        self.home = home
        self.folder = home.root / "it's here" / "bundled"
        self.folder.mkdir(parents=True)
        launcher = self.folder / "launch.py"
        launcher.write_text(STAND_IN, encoding="utf-8")
        self.options = ("--codex-home", str(home.codex_home))
        self.wanted = Entries((sys.executable, "-I", "-S", str(launcher)), self.options)

    def connect(self) -> None:
        codex_config.put_in(codex_config.plan(str(self.home.codex_home), self.wanted))

    def disconnect(self) -> None:
        codex_config.take_out(codex_config.removal(str(self.home.codex_home)))

    @property
    def connector(self) -> Connector:
        bins = os.pathsep.join((str(HERE / "node_modules" / ".bin"), os.environ["PATH"]))
        home = str(self.home.codex_home)
        environment = {**self.home.environment(), "PATH": bins}
        return Connector(home, str(Path(home) / "state"), self.wanted, environment)

    def look(self) -> Connection:
        return self.connector.status()

    def trust(self) -> None:
        """Trust all hooks, as Codex does when a person says so."""
        with AppServer(self.home) as server:
            state: Json = {
                str(hook["key"]): {"trusted_hash": hook["currentHash"]}
                for hook in hooks(server, self.home)
            }
            edit: Json = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})

    def calls(self) -> list[Message]:
        path = self.folder / "calls.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]


def hooks(server: AppServer, home: CodexHome) -> list[Message]:
    listed = server.call("hooks/list", {"cwds": [str(home.project)]})
    (entry,) = cast("list[Message]", listed["data"])
    assert entry["warnings"] == entry["errors"] == []
    return cast("list[Message]", entry["hooks"])


def files(home: CodexHome) -> dict[str, bytes]:
    names = ("config.toml", "hooks.json")
    paths = [home.codex_home / name for name in names]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def await_our_server(home: CodexHome) -> None:
    """Make Codex wait for our MCP server before its first request.

    Without it Codex goes on after a second, without the tools of a server that starts slowly.
    """
    config = home.codex_home / "config.toml"
    header = "[mcp_servers.codex-checkpoints]\n"
    text = config.read_text(encoding="utf-8")
    assert header in text
    config.write_text(text.replace(header, header + "required = true\n"), encoding="utf-8")


def test_untrusted_hooks_are_listed_and_not_called(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("Hello.")), Answer(say("Again.")))
    connected = Connected(home)
    before = files(home)

    connected.connect()

    with AppServer(home) as server:
        seen = hooks(server, home)
    assert sorted((str(h["eventName"]), h["trustStatus"], h["matcher"]) for h in seen) == [
        ("postCompact", "untrusted", None),
        ("preCompact", "untrusted", None),
        ("sessionStart", "untrusted", "resume|compact|fork"),
    ]
    assert [h["command"] for h in seen] == [connected.wanted.hook_command] * 3
    session = home.exec("First.")
    home.exec("Second.", resume=session)
    assert connected.calls() == []
    state = connected.look()
    assert (state.codex_version, state.codex_problem, state.problems) == (VERSION, None, ())
    hook, mcp = state.doors
    assert (hook.configured, hook.trusted, hook.problem) == (True, False, "untrusted")
    assert hook.next == "trust"
    assert [h.trust for h in state.hooks] == ["untrusted"] * 3
    assert (mcp.configured, mcp.trusted, mcp.problem) == (True, True, None)
    assert state.way_out == HOW_TO_TRUST
    connected.disconnect()
    assert files(home) == before


def test_disabled_hooks_are_reported(scripted: MakeHome) -> None:
    home, _ = scripted()
    connected = Connected(home)
    config = home.codex_home / "config.toml"
    config.write_text(config.read_text().replace("[features]\n", "[features]\nhooks = false\n"))
    connected.connect()
    connected.trust()

    hook, _mcp = connected.look().doors

    assert (hook.problem, hook.trusted) == ("disabled", None)


def test_trusted_hooks_are_called_when_a_window_begins(scripted: MakeHome) -> None:
    home, model = scripted(
        *(Answer(say(f"Answer {number}.")) for number in range(1, 5)),
        summaries=("All is well so far.",),
    )
    connected = Connected(home)
    connected.connect()
    connected.trust()

    assert connected.look().doors[0].trusted is True
    assert connected.look().way_out is None
    session = home.exec("First.")
    assert connected.calls() == []
    home.exec("Second.", resume=session)
    with AppServer(home) as server:
        server.call("thread/resume", {"threadId": session})
        server.turn(session, "Third.")
        server.compact(session)
        server.turn(session, "Fourth.")

    heard = [
        (told["hook_event_name"], told.get("source") or told.get("trigger"))
        for told in connected.calls()
    ]
    assert heard == [
        ("SessionStart", "resume"),
        ("SessionStart", "resume"),
        ("PreCompact", "manual"),
        ("PostCompact", "manual"),
        ("SessionStart", "compact"),
    ]
    for told in connected.calls():
        assert (told["session_id"], told["options"]) == (session, list(connected.options))
    assert model.unscripted == []


def test_the_memory_tool_has_its_own_namespace(scripted: MakeHome) -> None:
    tool = call("memory_apply", {}, "call_memory", namespace="mcp__codex_checkpoints")
    home, model = scripted(Answer(tool), Answer(say("Noted.")))
    connected = Connected(home)
    connected.connect()
    await_our_server(home)

    home.exec("Remember.")

    (output,) = [i for i in model.turns[-1].input if i["type"] == "function_call_output"]
    assert f"memory.apply was called with {' '.join(connected.options)}" in str(output["output"])


def test_note_of_the_model_appears_in_its_next_view(scripted: MakeHome) -> None:
    note: dict[str, Json] = {
        "kind": "decision",
        "decisionId": "storage",
        "decision": "Use one file",
        "rationale": "nothing else is needed",
        "evidence": {"source": "user", "ref": "task"},
    }
    space = "mcp__codex_checkpoints"
    home, model = scripted(
        Answer(call("memory_apply", note, "call_apply", namespace=space)),
        Answer(call("memory_read", {}, "call_read", namespace=space)),
        Answer(say("Noted.")),
    )
    assert json.loads(run(home, "connect", "--json"))["written"] is True
    await_our_server(home)

    session = home.exec("Store it.")

    outputs = [str(i["output"]) for i in model.turns[-1].input if "output" in i]
    assert "- Use one file" in outputs[-1]
    doors = json.loads(run(home, "connect", "--status", "--json"))["doors"]
    assert [(door["door"], door["lastSession"]) for door in doors] == [
        ("hook", None),
        ("mcp", session),
    ]


def test_trust_of_other_hooks_survives_connect_and_remove(scripted: MakeHome) -> None:
    home, _ = scripted()
    connected = Connected(home)
    theirs = {"hooks": [{"type": "command", "command": "true"}]}
    events = {"SessionStart": [theirs, theirs], "Stop": [theirs]}
    (home.codex_home / "hooks.json").write_text(json.dumps({"hooks": events}, indent=2))
    connected.trust()
    before = files(home)

    connected.connect()
    with AppServer(home) as server:
        seen = [(hook["command"], hook["trustStatus"]) for hook in hooks(server, home)]
    connected.disconnect()
    with AppServer(home) as server:
        left = [(hook["command"], hook["trustStatus"]) for hook in hooks(server, home)]

    ours = (connected.wanted.hook_command, "untrusted")
    assert sorted(seen) == sorted([("true", "trusted")] * 3 + [ours] * len(HOOKS))
    assert left == [("true", "trusted")] * 3
    assert files(home) == before


def test_lines_that_codex_adds_between_ours_survive_remove(scripted: MakeHome) -> None:
    home, _ = scripted()
    connected = Connected(home)
    config = home.codex_home / "config.toml"
    mine = '\n# Mine.\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "true"\n'
    config.write_text(config.read_text() + mine)
    connected.connect()
    connected.trust()

    connected.disconnect()

    with AppServer(home) as server:
        left = [(hook["command"], hook["trustStatus"]) for hook in hooks(server, home)]
    assert left == [("true", "trusted")]
    text = config.read_text()
    assert mine in text
    assert "launch.py" not in text


Edits = list[tuple[str, Json]]

SERVER = "mcp_servers.codex-checkpoints"
WRITES: dict[str, tuple[list[str], Edits]] = {
    "a server is added": (["mcp", "add", "other", "--", "node", "x.js"], []),
    "our server is switched off": ([], [(f"{SERVER}.enabled", False)]),
    "a tool of ours is approved": (
        [],
        [(f'{SERVER}.tools."memory.read".approval_mode', "approve")],
    ),
    "a project is trusted": ([], [("projects", {"/p": {"trust_level": "trusted"}})]),
    "a model is chosen": ([], [("model", "gpt-x"), ("model_reasoning_effort", "high")]),
    "hooks are switched off": (["features", "disable", "hooks"], []),
    "all of that": (
        ["mcp", "add", "other", "--", "node", "x.js"],
        [
            (f"{SERVER}.enabled", False),
            (f'{SERVER}.tools."memory.read".approval_mode', "approve"),
            (f"{SERVER}.enabled_tools", ["memory.read"]),
            ("projects", {"/p": {"trust_level": "trusted"}}),
            ("model", "gpt-x"),
        ],
    ),
}


@pytest.mark.parametrize(("command", "edits"), WRITES.values(), ids=WRITES)
def test_values_that_codex_adds_to_ours_survive_another_connect(
    scripted: MakeHome, command: list[str], edits: Edits
) -> None:
    home, _ = scripted()
    connected = Connected(home)
    config = home.codex_home / "config.toml"
    first = connected.wanted
    config.write_text(config.read_text() + "\n# Mine.\n[mine]\nx = 1 # one\n")
    connected.connect()
    connected.trust()
    if command:
        log = home.root / "codex.err"
        with Child(
            codex_command(*command), home.project, home.environment(), log, piped=False
        ) as child:
            assert child.wait(PATIENCE) == 0
    with AppServer(home) as server:
        for key, value in edits:
            edit: Json = {"keyPath": key, "value": value, "mergeStrategy": "upsert"}
            server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
    written = config.read_text()

    connected.wanted = evolve(first, options=("--codex-home", "/elsewhere"))
    connected.connect()

    assert meaning(config.read_text()) == meaning(written)
    assert "\n# Mine.\n[mine]\nx = 1 # one\n" in config.read_text()
    with AppServer(home) as server:
        assert all(hook["trustStatus"] == "modified" for hook in hooks(server, home))
    connected.wanted = first
    connected.connect()
    assert tomllib.loads(config.read_text()) == tomllib.loads(written)
    with AppServer(home) as server:
        assert all(hook["trustStatus"] == "trusted" for hook in hooks(server, home))
    connected.disconnect()
    left = tomllib.loads(config.read_text())
    theirs = tomllib.loads(written)
    del theirs["mcp_servers"]["codex-checkpoints"]
    assert left == without_ours(theirs)


def meaning(text: str) -> object:
    """Return what a configuration says, but for whom our entries call."""
    data = tomllib.loads(text)
    server = data["mcp_servers"]["codex-checkpoints"]
    del server["args"]
    for hook in HOOKS:
        for group in data["hooks"][hook.event]:
            for handler in group["hooks"]:
                del handler["command"]
    return data


def without_ours(data: dict[str, object]) -> dict[str, object]:
    """Return a configuration without our hooks, and without an empty table of servers."""
    hooks = cast("dict[str, object]", data["hooks"])
    return {
        **{name: value for name, value in data.items() if value != {}},
        "hooks": {"state": hooks["state"]},
    }
