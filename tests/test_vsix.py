"""The packaged extension's server, under every interpreter that is here.

Started as the extension starts it, in an environment full of traps, and where the system can do
that without a network.  `npm run package` builds the package.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO, Any

import pytest

import codex_checkpoints

ROOT = Path(__file__).resolve().parent.parent
VSIX = ROOT / "dist" / f"codex-checkpoints-{codex_checkpoints.__version__}.vsix"
ISOLATED = ["-I", "-S", "-X", "utf8", "-u"]
SESSION = "01a1f865-38d8-70b2-8c7e-c01cbfd01af1"
TRAP = "raise SystemExit('a trap was loaded')\n"

pytestmark = pytest.mark.skipif(not VSIX.exists(), reason="npm run package was not run")


def interpreters() -> dict[str, str]:
    """Return the supported Pythons that run: those of pyenv, those on the PATH, this one."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, str] = {}
    for minor in ("3.11", "3.12", "3.13", "3.14"):
        names = [*map(str, versions.glob(f"{minor}.*/bin/python")), shutil.which(f"python{minor}")]
        for name in filter(None, names):
            told = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
            if told.returncode == 0 and told.stdout.startswith(f"Python {minor}."):
                found.setdefault(minor, name)
    found.setdefault("{}.{}".format(*sys.version_info), sys.executable)
    return found


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vsix")
    with zipfile.ZipFile(VSIX) as archive:
        archive.extractall(folder)
    return folder / "extension"


@pytest.fixture(params=interpreters().items(), ids=lambda item: item[0])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Make a virtual environment whose packages are broken, and return its interpreter."""
    environment = tmp_path / "venv"
    make = [request.param[1], "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(make, check=True, capture_output=True)
    python = str(environment / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    for packages in environment.glob("[Ll]ib/**/site-packages"):
        (packages / "trap.pth").write_text(f"import sys; {TRAP}", encoding="utf-8")
        for name in ("orjson", "attrs", "pygls", "codex_checkpoints"):
            (packages / f"{name}.py").write_text(TRAP, encoding="utf-8")
    trapped = subprocess.run([python, "-c", ""], capture_output=True, check=False)
    assert trapped.returncode != 0, "this environment is not broken enough"
    return python


@pytest.fixture
def traps(tmp_path: Path) -> dict[str, str]:
    """Return an environment without a home, in which every Python setting is a trap."""
    folder = tmp_path / "traps"
    folder.mkdir()
    for name in ("sitecustomize", "usercustomize", "json", "orjson", "codex_checkpoints"):
        (folder / f"{name}.py").write_text(TRAP, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(folder),
        "PYTHONHOME": str(folder),
        "PYTHONSTARTUP": str(folder / "json.py"),
        "PYTHONUSERBASE": str(folder),
        "PYTHONIOENCODING": "utf-16",
        "PYTHONWARNINGS": "error",
        "PYTHONINSPECT": "1",
        "LC_ALL": "C",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }


@pytest.fixture
def codex_home(tmp_path: Path) -> Path:
    home = tmp_path / "codex"
    folder = home / "sessions" / "2026" / "11" / "20"
    folder.mkdir(parents=True)
    stamp = "2026-11-20T09:00:00.000Z"
    head = {"id": SESSION, "timestamp": stamp, "cwd": str(tmp_path), "cli_version": "0.169.0"}
    said = {"type": "user_message", "message": "Größe → size", "kind": "plain"}
    lines = [
        {"timestamp": stamp, "type": "session_meta", "payload": head},
        {"timestamp": stamp, "type": "event_msg", "payload": said},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    rollout = folder / f"rollout-2026-11-20T09-00-00-{SESSION}.jsonl"
    rollout.write_text(text, encoding="utf-8")
    return home


def without_network() -> list[str]:
    """Return what to put before a command so that it has no network, where that is possible."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    alone = [unshare, "--map-root-user", "--net"]
    tried = subprocess.run([*alone, "true"], capture_output=True, check=False)
    return alone if tried.returncode == 0 else []


class Speaker:
    """The least that speaks LSP."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to: IO[bytes] = process.stdin
        self._from: IO[bytes] = process.stdout
        self._last = 0

    def tell(self, method: str, params: object = None) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object = None) -> Any:  # noqa: ANN401 - JSON
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._to.flush()

    def _receive(self) -> dict[str, Any]:
        length = 0
        while line := self._from.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server ended"
        return json.loads(self._from.read(length))


@pytest.mark.timeout(60)
def test_the_packaged_server_starts_and_answers(
    python: str, traps: dict[str, str], codex_home: Path, unpacked: Path, tmp_path: Path
) -> None:
    launcher = str(unpacked / "bundled" / "launch.py")

    probe = subprocess.run(
        [python, *ISOLATED, launcher, "probe"],
        cwd=traps["PYTHONPATH"],
        env=traps,
        capture_output=True,
        check=True,
    )
    assert json.loads(probe.stdout)["reason"] is None

    process = subprocess.Popen(
        [*without_network(), python, *ISOLATED, launcher, "serve"],
        cwd=traps["PYTHONPATH"],
        env=traps,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        server = Speaker(process)
        options: dict[str, Any] = {"codexHome": str(codex_home), "stateDir": None, "settings": {}}
        hello: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
        answer = server.ask("initialize", {**hello, "initializationOptions": options})
        assert answer["serverInfo"]["name"] == "codex-checkpoints"
        server.tell("initialized", {})
        sessions = server.ask("checkpoints/sessions", {"cwd": str(tmp_path)})
        assert [item["sessionId"] for item in sessions["items"]] == [SESSION]
        assert sessions["items"][0]["task"] == "Größe → size"
        shown = server.ask("checkpoints/show", {"sessionId": SESSION})
        assert json.loads(shown["text"])["task"]["text"] == "Größe → size"
        server.ask("shutdown")
        server.tell("exit")
        assert process.wait(10) == 0


def test_the_package_holds_nothing_that_was_left_lying_about() -> None:
    with zipfile.ZipFile(VSIX) as archive:
        names = archive.namelist()

    left = ("__pycache__", ".pyc", "node_modules", "tests/", ".env", "ruff.toml", "/src/")
    assert [name for name in names if any(part in name for part in left)] == []
    assert any(name.endswith("/LICENSE.txt") for name in names)


def test_the_launcher_is_the_one_of_this_checkout() -> None:
    with zipfile.ZipFile(VSIX) as archive:
        packed = archive.read("extension/bundled/launch.py")

    assert packed == (ROOT / "extension" / "launch.py").read_bytes(), "npm run package anew"
