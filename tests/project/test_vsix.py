"""The packaged extension's server, under every interpreter that is here.

Started as the extension starts it, in an environment full of traps, and where the system can do
that without a network.  `npm run package` builds the package.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import codex_checkpoints
from homes import Home, chat, thread
from peer import Peer

ROOT = Path(__file__).resolve().parents[2]
VSIX = ROOT / "dist" / f"codex-checkpoints-{codex_checkpoints.__version__}.vsix"
ISOLATED = ["-I", "-S", "-X", "utf8", "-u"]
SESSION = thread(1)
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
    home = Home(tmp_path)
    home.put(chat("Größe → size", cwd=str(tmp_path)))
    return home.root


def without_network() -> list[str]:
    """Return what to put before a command so that it has no network, where that is possible."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    alone = [unshare, "--map-root-user", "--net"]
    tried = subprocess.run([*alone, "true"], capture_output=True, check=False)
    return alone if tried.returncode == 0 else []


@pytest.mark.timeout(60)
def test_packaged_server_starts_and_answers(
    python: str, traps: dict[str, str], codex_home: Path, unpacked: Path, tmp_path: Path
):
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
    with Peer(codex_home, process=process) as server:
        answer = server.start({"codexHome": str(codex_home), "stateDir": None, "settings": {}})
        assert answer["serverInfo"]["name"] == "codex-checkpoints"
        (found,) = server.call("checkpoints/sessions", {"cwd": str(tmp_path)})["items"]
        assert (found["sessionId"], found["task"]) == (SESSION, "Größe → size")
        shown = server.call("checkpoints/show", {"sessionId": SESSION})
        assert json.loads(shown["text"])["task"]["text"] == "Größe → size"
        assert server.stop() == 0


@pytest.mark.timeout(60)
def test_packaged_server_includes_the_postgresql_driver(
    python: str, traps: dict[str, str], codex_home: Path, unpacked: Path
):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    launcher = str(unpacked / "bundled" / "launch.py")
    place = f"postgresql://ana@127.0.0.1:{port}/codex"

    done = subprocess.run(
        [python, *ISOLATED, launcher, "remote", "set", place, "--yes", "--json"],
        cwd=traps["PYTHONPATH"],
        env={**traps, "CODEX_HOME": str(codex_home)},
        capture_output=True,
        check=False,
    )

    assert json.loads(done.stdout)["error"]["code"] == "remote_unreachable", done.stderr


def test_package_holds_no_stray_files():
    with zipfile.ZipFile(VSIX) as archive:
        names = archive.namelist()

    left = ("__pycache__", ".pyc", "node_modules", "tests/", ".env", "ruff.toml", "/src/")
    assert [name for name in names if any(part in name for part in left)] == []
    assert any(name.endswith("/LICENSE.txt") for name in names)


def test_launcher_is_the_one_of_this_checkout():
    with zipfile.ZipFile(VSIX) as archive:
        packed = archive.read("extension/bundled/launch.py")

    assert packed == (ROOT / "extension" / "launch.py").read_bytes(), "npm run package anew"
