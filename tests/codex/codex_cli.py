"""The real Codex CLI in a throw-away home, pointed at a scripted model.

`CodexHome` is the home, a small project and an environment with nothing of the user's in it.
`CodexHome.run` is one `codex exec`; `AppServer` is a client of `codex app-server`.
"""

import json
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self, cast

from codex.child import Child, clean_environment
from codex.scripted_model import Json, ScriptedModel

HERE = Path(__file__).parent
LAUNCHER = HERE / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
OLDER_LAUNCHER = HERE / "older" / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
"""An older Codex, which records a killed turn without its error."""

INSTALL = "make tests/codex/node_modules/.ok"

MODEL = "gpt-5.5"
CODE_MODE_MODEL = "gpt-5.6-sol"

PATIENCE = 30.0
"""Seconds that any one answer of Codex may take; a whole turn takes less than one."""

Message = dict[str, Json]

PROJECT = {
    "calc/__init__.py": "from calc.core import add, div\n",
    "calc/core.py": "def add(a, b):\n    return a + b\n\n\ndef div(a, b):\n    return a // b\n",
    "README.md": "# calc\n\nAdds and divides.\n",
}

_CONFIG = """\
model = "{model}"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{base_url}"
wire_api = "responses"
env_key = "SCRIPTED_MODEL_KEY"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[features]
apps = false
enable_request_compression = false
plugins = false
remote_plugin = false

[analytics]
enabled = false
"""


def installed() -> bool:
    """Is the Codex CLI there in both versions, and something to run it with?"""
    launchers = (LAUNCHER, OLDER_LAUNCHER)
    return all(each.is_file() for each in launchers) and shutil.which("node") is not None


def codex_command(*arguments: str, launcher: Path = LAUNCHER) -> list[str]:
    """The command line of an installed Codex, the newest one unless another is named."""
    node = shutil.which("node")
    assert node is not None, "Node is not on the PATH"
    return [node, str(launcher), *arguments]


class CodexHome:
    """A throw-away CODEX_HOME, a home for the user, a project without git."""

    def __init__(self, root: Path, model: ScriptedModel, model_name: str = MODEL) -> None:
        self.root = root
        self.codex_home = root / "codex_home"
        self.project = root / "project"
        self.user = root / "user"
        self.temp = root / "temp"  # beside CODEX_HOME: below the temp folder Codex complains
        for folder in (self.codex_home, self.project, self.user, self.temp):
            folder.mkdir(parents=True)
        for name, text in PROJECT.items():
            path = self.project / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        self.connect(model, model_name)

    def connect(self, model: ScriptedModel, model_name: str = MODEL) -> None:
        """Point the home at a scripted model."""
        config = _CONFIG.format(model=model_name, base_url=model.base_url)
        (self.codex_home / "config.toml").write_text(config, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """What Codex and its commands see."""
        environment = clean_environment(self.user, self.codex_home, self.temp)
        return environment | {"SCRIPTED_MODEL_KEY": "no-key"}

    def rollouts(self) -> list[Path]:
        """The session files, oldest first."""
        found = self.codex_home.glob("*sessions/**/rollout-*.jsonl")
        return sorted(found, key=lambda path: path.name)

    def run(self, prompt: str, resume: str = "") -> "CodexRun":
        """Start `codex exec`, or `codex exec resume`."""
        return CodexRun(self, prompt, resume)

    def exec(self, prompt: str, resume: str = "", within: float = PATIENCE) -> str:
        """Run `codex exec` to its end; the session's id."""
        with self.run(prompt, resume) as run:
            run.finish(within)
            return run.session_id()


class JsonLines:
    """The JSON objects that a child prints, one a line, read as they come."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._seen: list[Message] = []
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with self._child.stdout as output:
            for line in output:
                if line.startswith(b"{"):
                    message = cast("Message", json.loads(line))
                    with self._changed:
                        self._seen.append(message)
                        self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def count(self) -> int:
        """How many there are by now."""
        with self._changed:
            return len(self._seen)

    def wait_for(
        self, fits: Callable[[Message], bool], since: int = 0, within: float = PATIENCE
    ) -> Message:
        """Wait for the first one that fits."""

        def found() -> Message | None:
            return next((message for message in self._seen[since:] if fits(message)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None or self._ended, within)
            message = found()
        if message is None:
            tail = "\n".join(json.dumps(seen)[:300] for seen in self._seen[since:][-10:])
            complaint = f"what was waited for did not come; last:\n{tail}\n{self._child.errors()}"
            raise TimeoutError(complaint)
        return message


class CodexRun:
    """One `codex exec`, from its start to its end."""

    def __init__(self, home: CodexHome, prompt: str, resume: str = "") -> None:
        verb = ["exec", "resume", resume] if resume else ["exec"]
        flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
        log = home.root / "codex-exec.err"
        command = codex_command(*verb, *flags, prompt)
        self._child = Child(command, home.project, home.environment(), log)
        self._child.close_stdin()
        self.events = JsonLines(self._child)

    def session_id(self) -> str:
        """The id that Codex gave to the session."""
        started = self.events.wait_for(lambda event: event.get("type") == "thread.started")
        return str(started["thread_id"])

    def finish(self, within: float = PATIENCE) -> None:
        """Wait for a good end."""
        code = self._child.wait(within)
        assert code == 0, f"codex exec ended with {code}:\n{self._child.errors()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()


class AppServer:
    """A client of `codex app-server`: one JSON-RPC message a line."""

    def __init__(self, home: CodexHome, launcher: Path = LAUNCHER) -> None:
        self.home = home
        log = home.root / "codex-app-server.err"
        command = codex_command("app-server", launcher=launcher)
        self._child = Child(command, home.project, home.environment(), log)
        self._messages = JsonLines(self._child)
        self._ids = iter(range(1, sys.maxsize))
        try:
            self._begin()
        except BaseException:
            self._child.kill()
            raise

    def _begin(self) -> None:
        client: Json = {"name": "tests", "title": "tests", "version": "1"}
        capabilities: Json = {"experimentalApi": True}
        self.call("initialize", {"clientInfo": client, "capabilities": capabilities})
        self._send({"method": "initialized"})

    def _send(self, message: Message) -> None:
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def call(self, method: str, params: Mapping[str, Json]) -> Message:
        """Send a request and wait for its result."""
        answer = self._answer(method, params)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return cast("Message", answer["result"])

    def _answer(self, method: str, params: Mapping[str, Json]) -> Message:
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": dict(params)})
        return self._messages.wait_for(
            lambda message: message.get("id") == number and "method" not in message
        )

    def start(self, *, legacy: bool = False) -> str:
        """Start a thread; its id."""
        params: Message = {"cwd": str(self.home.project)}
        if legacy:
            params["historyMode"] = "legacy"
        return self._thread(self.call("thread/start", params))

    def fork(self, thread: str, last_turn: str = "") -> str:
        """Fork a thread, after a turn of it or at its end; the id of the fork."""
        cut: Message = {"lastTurnId": last_turn} if last_turn else {}
        return self._thread(self.call("thread/fork", {"threadId": thread, **cut}))

    @staticmethod
    def _thread(result: Message) -> str:
        return str(cast("Message", result["thread"])["id"])

    def begin(self, thread: str, prompt: str, **settings: Json) -> str:
        """Begin a turn, with settings of its own; its id."""
        said: list[Json] = [{"type": "text", "text": prompt, "text_elements": []}]
        result = self.call("turn/start", {"threadId": thread, "input": said, **settings})
        return str(cast("Message", result["turn"])["id"])

    def turn(self, thread: str, prompt: str, **settings: Json) -> str:
        """Take a turn to its end; its id."""
        since = self._messages.count()
        turn = self.begin(thread, prompt, **settings)
        self.wait_for_turn_end(thread, since)
        return turn

    def count(self) -> int:
        """How many messages there are by now."""
        return self._messages.count()

    def steer(self, thread: str, turn: str, prompt: str) -> None:
        """Add to what a running turn was asked."""
        said: list[Json] = [{"type": "text", "text": prompt, "text_elements": []}]
        self.call("turn/steer", {"threadId": thread, "expectedTurnId": turn, "input": said})

    def set_goal(self, thread: str, objective: str) -> None:
        """Set a goal; Codex begins to work for it by itself."""
        goal: Message = {"threadId": thread, "objective": objective, "status": "active"}
        self.call("thread/goal/set", goal)

    def pause_goal(self, thread: str) -> None:
        """Pause the goal of a thread."""
        self.call("thread/goal/set", {"threadId": thread, "status": "paused"})

    def review(self, thread: str, instructions: str) -> None:
        """Take a review to its end."""
        since = self.count()
        target: Json = {"type": "custom", "instructions": instructions}
        self.call("review/start", {"threadId": thread, "target": target})
        self.wait_for_turn_end(thread, since)

    def wait_for_turn_end(self, thread: str, since: int = 0) -> None:
        """Wait until a turn of the thread has ended, well or not."""
        self.wait_for("turn/completed", lambda params: params.get("threadId") == thread, since)

    def wait_for(self, method: str, fits: Callable[[Message], bool], since: int = 0) -> Message:
        """Wait for a notification; its params."""

        def found(message: Message) -> bool:
            params = message.get("params")
            return message.get("method") == method and isinstance(params, dict) and fits(params)

        return cast("Message", self._messages.wait_for(found, since)["params"])

    def interrupt(self, thread: str, turn: str) -> None:
        """Interrupt a turn and wait until it has ended."""
        self.call("turn/interrupt", {"threadId": thread, "turnId": turn})
        self.wait_for_turn_end(thread)

    def compact(self, thread: str) -> None:
        """Let Codex compact a thread and wait until that is done."""
        since = self._messages.count()
        self.call("thread/compact/start", {"threadId": thread})
        self.wait_for_turn_end(thread, since)

    def refusal(self, method: str, params: Mapping[str, Json]) -> str:
        """Send a request that is to be refused; what was said about it."""
        return str(cast("Message", self._answer(method, params)["error"])["message"])

    def read(self, thread: str) -> Message:
        """Read a thread without loading it."""
        return cast("Message", self.call("thread/read", {"threadId": thread})["thread"])

    def turns(self, thread: str) -> list[Message]:
        """Read the turns of a thread without loading it, the oldest first."""
        asked: Message = {"threadId": thread, "includeTurns": True}
        read = cast("Message", self.call("thread/read", asked)["thread"])
        return cast("list[Message]", read["turns"])

    def resume(self, thread: str, folder: Path | None = None) -> str:
        """Load a thread, in another folder if one is given; its id."""
        where: Message = {} if folder is None else {"cwd": str(folder)}
        return self._thread(self.call("thread/resume", {"threadId": thread, **where}))

    def listed(self, *, archived: bool = False) -> list[str]:
        """The ids of the threads that a list shows, the newest first."""
        threads = cast("list[Message]", self.call("thread/list", {"archived": archived})["data"])
        return [str(thread["id"]) for thread in threads]

    def revert(self, thread: str, before_turn: str) -> None:
        """Take back a turn and all that follow it."""
        self.call("thread/revert", {"threadId": thread, "beforeTurnId": before_turn})

    def archive(self, thread: str) -> None:
        """Archive a thread."""
        self.call("thread/archive", {"threadId": thread})

    def unarchive(self, thread: str) -> None:
        """Take a thread back from the archived ones."""
        self.call("thread/unarchive", {"threadId": thread})

    def kill(self) -> None:
        """End it as a crash would."""
        self._child.kill()

    def close(self) -> None:
        """End it well: it flushes its files when its input ends."""
        self._child.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
