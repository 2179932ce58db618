"""Open an editor with the extension in it: what `make run` does.

    python tools/run.py VSIX [--folder DIR] [--in code|browser] [--port N]

With VS Code's `code` on the PATH the extension is installed there, and the folder opened. Otherwise
a workbench starts on 127.0.0.1 (code-server, in folders of its own that go when it ends), and its
address and password are printed; Ctrl+C ends it and all that it started. Sessions are those of
$CODEX_HOME, else ~/.codex; where there are none, a demo home is made in build/demo.

Exit codes: 0 the editor was opened, or ended by itself; 1 that failed, with a sentence; 2 wrong
usage; 130 Ctrl+C.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import demo

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tests" / "workbench"
NODE = TOOLS / "node_modules" / ".node24" / "node"
CODE_SERVER = TOOLS / "node_modules" / "code-server" / "out" / "node" / "entry.js"
DEMO = ROOT / "build" / "demo"
NAME = "codex-checkpoints.codex-checkpoints"

START = 60.0
"""Seconds that the workbench may take until it listens; one is usual."""

GRACE = 5.0
"""Seconds that it gets to end by itself."""


class Failure(Exception):
    """Something without which there is nothing to see; a whole sentence."""


def say(what: str, text: str) -> None:
    """Print one line of what is going on."""
    print(f"{what:<11}{text}", flush=True)


# What to show --------------------------------------------------------------------------------


def session_files(codex_home: Path) -> Iterator[Path]:
    """Yield the session files of a home, the newest first."""
    for folder in ("sessions", "archived_sessions"):
        found = (codex_home / folder).glob("**/rollout-*.jsonl*")
        yield from sorted(found, key=lambda path: path.name, reverse=True)


def folder_of(path: Path) -> Path | None:
    """Return the folder that a session worked in, if it can be told and is still there."""
    if path.suffix != ".jsonl":
        return None
    with contextlib.suppress(OSError, LookupError, TypeError, ValueError), path.open("rb") as f:
        folder = Path(json.loads(f.readline())["payload"]["cwd"])
        if folder.is_absolute() and folder.is_dir():
            return folder
    return None


@dataclass(frozen=True)
class Shown:
    """The CODEX_HOME to show, the folder to open, and the session whose page opens."""

    codex_home: Path
    folder: Path
    session_id: str

    def environment(self) -> dict[str, str]:
        """Return the variables that tell it to the extension."""
        return {"CODEX_HOME": str(self.codex_home), "CODEX_CHECKPOINTS_OPEN": self.session_id}


def choose(folder: Path | None) -> Shown:
    """Return what to show: the newest session and its folder, if none is named.

    Where there are no sessions, a demo is made.
    """
    named = os.environ.get("CODEX_HOME")
    home = Path(named).expanduser().resolve() if named else Path.home() / ".codex"
    files = list(session_files(home))
    if files:
        say("Sessions", f"{home} ({len(files)})")
        found = ((path, place) for path in files[:50] if (place := folder_of(path)) is not None)
        newest, place = next(found, (files[0], ROOT))
        return Shown(home, folder or place, newest.name.partition(".")[0][-36:])
    say("Sessions", f"none in {home}; a demo instead, in {DEMO} (made anew at each start)")
    shutil.rmtree(DEMO, ignore_errors=True)
    project = DEMO / "pricelist"
    longest = demo.write_demo(DEMO / "codex_home", project, datetime.now(UTC))
    return Shown(DEMO / "codex_home", folder or project, longest)


# In VS Code ----------------------------------------------------------------------------------


def open_in_code(code: str, vsix: Path, shown: Shown) -> bool:
    """Install the extension into VS Code and open the folder; false when VS Code will not."""
    command = [code]
    if DEMO in shown.codex_home.parents:
        # An instance of its own: one that runs already would not hear of the demo's CODEX_HOME.
        own = ROOT / "build" / "vscode"
        command += ["--user-data-dir", str(own / "data"), "--extensions-dir", str(own / "ext")]
        say("Installs", f"the extension, for the demo alone, in {own}")
    else:
        say("Installs", f"the extension into your VS Code; `{code} --uninstall-extension {NAME}`")
        say("", "removes it.")
    environment = os.environ | shown.environment()
    for step in (["--force", "--install-extension", str(vsix)], [str(shown.folder)]):
        if subprocess.run([*command, *step], env=environment, check=False).returncode != 0:
            say("VS Code", f"`{code}` fails; the browser instead")
            return False
    say("VS Code", f"has the extension now, and opens {shown.folder}")
    return True


# In the browser ------------------------------------------------------------------------------


def install_workbench() -> None:
    """Install code-server beside the tests that use it too, when it is not there yet."""
    if not shutil.which("npm"):
        raise Failure(
            "The workbench in the browser needs Node with npm; VS Code's `code` does not."
        )
    if not (TOOLS / "node_modules" / ".ok").exists():
        say("Installs", f"a VS Code for the browser, some 600 MB, in {TOOLS}/node_modules")
    if subprocess.run([TOOLS / "install.sh"], check=False).returncode != 0:
        raise Failure("The workbench could not be installed; the lines above say why.")


def environment_of(shown: Shown, root: Path) -> dict[str, str]:
    """Return the environment of the workbench: the user's, without what another editor left."""
    other = re.compile(r"VSCODE_|ELECTRON_|NODE_OPTIONS$")
    own = {name: value for name, value in os.environ.items() if not other.match(name)}
    return own | {
        **shown.environment(),
        # Else it leaves sockets, logs and an id in the user's.
        "TMPDIR": str(root / "tmp"),
        "XDG_CACHE_HOME": str(root / "cache"),
        "XDG_DATA_HOME": str(root / "share"),
        "EXTENSIONS_GALLERY": "{}",  # no calls to a marketplace
        "VSCODE_CLI": "1",  # keeps the PATH of this terminal
    }


def start_command(root: Path, vsix: Path, environment: dict[str, str], password: str) -> list[str]:
    """Set up a workbench with the extension in a private folder; the command that starts it."""
    data, config = root / "ud", root / "config.yaml"
    (data / "User").mkdir(parents=True)
    shutil.copy(TOOLS / "settings.json", data / "User" / "settings.json")
    config.write_text(f"auth: password\npassword: {password}\ncert: false\n")
    config.chmod(0o600)
    places = ["--config", config, "--user-data-dir", data, "--extensions-dir", root / "ex"]
    command = [str(part) for part in (NODE, CODE_SERVER, *places)]
    install = [*command, "--force", "--install-extension", str(vsix)]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"The extension cannot be installed:\n{done.stdout}{done.stderr}")
    quietly = "--disable-telemetry --disable-update-check --disable-getting-started-override"
    return [*command, *quietly.split(), "--disable-proxy", "--reconnection-grace-time", "60"]


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the workbench says where it listens."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        if match := re.search(r"listening on (http://\S+?)/?\s", log.read_text(errors="replace")):
            return match[1]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise Failure(f"The workbench does not start:\n{log.read_text(errors='replace')[-3000:]}")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its whole group: kindly, then at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def open_in_browser(vsix: Path, shown: Shown, port: int) -> None:
    """Start the workbench, say where it is, and stay until it ends."""
    install_workbench()
    say("Workbench", "starts")
    with contextlib.ExitStack() as stack:
        # Short and private: a socket with a limit of 107 bytes lies in it, and the password.
        temporary = tempfile.TemporaryDirectory(prefix="cc-", ignore_cleanup_errors=True)
        root = Path(stack.enter_context(temporary))
        (root / "tmp").mkdir()
        password = secrets.token_urlsafe(12)
        environment = environment_of(shown, root)
        command = start_command(root, vsix, environment, password)
        if DEMO in shown.folder.parents:
            command.append("--disable-workspace-trust")  # it is ours
        with (root / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--bind-addr", f"127.0.0.1:{port}"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl+C is for us to pass on, to the whole group
            )
        stack.callback(end, process)
        address = address_of(process, root / "log")
        say("Address", f"{address}/?folder={quote(str(shown.folder))}")
        say("Password", password)
        say("", "It opens with the page of a session; Ctrl+C here ends it all.")
        code = process.wait()
        raise Failure(f"The workbench ended by itself, with {code}.")


# -----------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    """Read the command line."""
    summary, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vsix", type=Path, help="the packaged extension")
    parser.add_argument("--folder", type=Path, help="the folder to open")
    parser.add_argument("--in", dest="place", choices=("code", "browser"), help="only there")
    parser.add_argument("--port", type=int, default=0, help="the browser's port (any free one)")
    return parser.parse_args()


def run() -> None:
    """Choose what to show and where, and open it."""
    asked = arguments()
    vsix = asked.vsix.resolve()
    if not vsix.is_file():
        raise Failure(f"There is no {vsix}; `make package` makes it.")
    folder = asked.folder.resolve() if asked.folder else None
    if folder is not None and not folder.is_dir():
        raise Failure(f"{folder} is no folder.")
    say("Extension", str(vsix))
    shown = choose(folder)
    code = None if asked.place == "browser" else shutil.which("code")
    if code and open_in_code(code, vsix, shown):
        return
    if asked.place == "code":
        raise Failure("There is no `code` on the PATH that can do it.")
    open_in_browser(vsix, shown, asked.port)


def terminated(number: int, _frame: object) -> None:
    """Leave in good order when told to end."""
    raise SystemExit(128 + number)


def main() -> int:
    """Run, and turn what went wrong into a sentence and an exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    try:
        run()
    except KeyboardInterrupt:
        say("", "Ended.")
        return 130
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
