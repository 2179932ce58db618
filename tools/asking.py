"""The means of `same_answers.py`: a build to ask, a home to ask about, and what it answered.

Run as a script this is the process that runs the commands of a build, see `answer_calls`.
"""

import gc
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, cast

Json: TypeAlias = Any

ROOT = Path(__file__).parents[1]
WAIT = 120
"""Seconds until a call counts as hanging."""

# --- one build -----------------------------------------------------------------------------------


def answer_calls() -> None:
    """Run commands of the build whose interpreter this is, each in a forked child.

    A line of standard input is a JSON object: arguments, environment, folder, and the files for
    the three standard streams. The answer is a line with the exit code.
    """
    (script,) = metadata.entry_points(group="console_scripts", name="codex-checkpoints")
    main = script.load()
    _load_everything()
    gc.collect()
    gc.freeze()  # a child then leaves most pages shared
    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if not child:
            os._exit(_answer(main, call))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _load_everything() -> None:
    import pkgutil  # noqa: PLC0415 - only the child needs it

    import codex_checkpoints  # noqa: PLC0415 - of the other build

    for module in pkgutil.walk_packages(codex_checkpoints.__path__, "codex_checkpoints."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                __import__(module.name)


def _answer(main: Callable[[], int | None], call: Json) -> int:
    for number, (name, flags) in enumerate(
        (
            (call["stdin"], os.O_RDONLY),
            (call["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (call["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
    ):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as we
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    sys.argv = [str(Path(sys.executable).with_name("codex-checkpoints")), *call["arguments"]]
    code: Json = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - what a fresh interpreter would print
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


@dataclass(frozen=True)
class Build:
    """A build, by its interpreter."""

    python: Path

    @property
    def repository(self) -> Path:
        """The checkout that the interpreter's environment lies in."""
        return self.python.parents[2]


class Calls:
    """One process that runs the commands of a build."""

    def __init__(self, build: Build, scratch: Path) -> None:
        self._scratch = scratch
        self._process = subprocess.Popen(
            [build.python, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "TZ": "UTC"},
        )

    def run(
        self, arguments: Sequence[str], *, env: dict[str, str], cwd: Path, stdin: bytes = b""
    ) -> tuple[int, str, str]:
        """Run one command; return the exit code, standard output and standard error."""
        names = {name: str(self._scratch / name) for name in ("stdin", "stdout", "stderr")}
        Path(names["stdin"]).write_bytes(stdin)
        assert self._process.stdin is not None  # noqa: S101 - both are pipes, see above
        assert self._process.stdout is not None  # noqa: S101
        call = {"arguments": arguments, "env": env, "cwd": str(cwd), **names}
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        out, err = (
            Path(names[name]).read_text("utf-8", "backslashreplace")
            for name in ("stdout", "stderr")
        )
        return code, out, err

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=WAIT)


class Peer:
    """A client of `serve`: one request at a time, notifications passed over."""

    def __init__(self, build: Build, env: dict[str, str], cwd: Path) -> None:
        self._process = subprocess.Popen(
            [build.python, "-m", "codex_checkpoints", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
        )
        self._number = 0
        self._timer = threading.Timer(10 * WAIT, self._process.kill)
        self._timer.start()

    def send(self, message: Json) -> None:
        """Send one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None  # noqa: S101 - a pipe, see above
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def ask(self, method: str, params: Json) -> Json:
        """Return the result or the error of a request."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message is None:
                return {"closed": True}
            if message.get("id") == self._number and "method" not in message:
                return {key: message[key] for key in ("result", "error") if key in message}
            if "id" in message:
                self.send({"id": message["id"], "result": None})

    def close(self) -> int:
        """Leave as an editor does; return the exit code."""
        self.ask("shutdown", None)
        with suppress(OSError):
            self.send({"method": "exit"})
        self._process.communicate(timeout=WAIT)
        self._timer.cancel()
        return self._process.returncode

    def _receive(self) -> Json:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - a pipe, see above
        length = 0
        while (line := stream.readline()) not in {b"\r\n", b""}:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(stream.read(length)) if line else None


# --- homes ---------------------------------------------------------------------------------------


def golden_homes(folder: Path) -> Path:
    """Make a home of each story in tests/golden; return the folder that holds them."""
    for story in sorted((ROOT / "tests/golden").iterdir()):
        if not (story / "rollout.jsonl").is_file():
            continue
        day = folder / story.name / "sessions/2026/11/20"
        day.mkdir(parents=True)
        for file in story.glob("*.jsonl"):
            if file.name == "updates.jsonl":
                continue
            data = file.read_bytes()
            name = f"rollout-2026-11-20T10-00-00-{_thread(data)}.jsonl"
            (day / name).write_bytes(data)
        if (story / "updates.jsonl").is_file():
            thread = _thread((story / "rollout.jsonl").read_bytes())
            own = folder / story.name / "codex-checkpoints/sessions" / thread
            own.mkdir(parents=True)
            shutil.copy(story / "updates.jsonl", own)
    return folder


def _thread(data: bytes) -> str:
    found = re.search(rb'"(?:session_)?id":"([0-9a-f-]{36})"', data)
    return found[1].decode() if found else "unknown"


def homes_in(folder: Path) -> list[Path]:
    """Return the homes in a folder, by name."""
    inside = ("sessions", "archived_sessions")
    return sorted(
        home for home in folder.iterdir() if any((home / name).is_dir() for name in inside)
    )


def copy_home(home: Path, place: Path, config: str = "") -> None:
    """Copy a home with our config.toml, and let its sessions work in a folder that is there.

    Files that point into each other by bytes stay as they are, and so do compressed ones.
    """
    if place.exists():
        shutil.rmtree(place)
    for name in ("work", "user", "out"):
        (place / name).mkdir(parents=True)
    shutil.copytree(home, place / "codex")
    if config:
        own = place / "codex/codex-checkpoints"
        own.mkdir(exist_ok=True)
        (own / "config.toml").write_text(config)
    files = list((place / "codex").rglob("*.jsonl"))
    data = {file: file.read_bytes() for file in files}
    pointing = any(b'"end_byte_offset"' in each for each in data.values())
    for file, told in data.items():
        folders = set(re.findall(rb'"cwd":"(/[^"]+)"', told))
        if not pointing and len(folders) == 1:
            file.write_bytes(told.replace(folders.pop(), str(place / "work").encode()))
    for file in sorted((place / "codex").rglob("*")):
        os.utime(file, ns=(1_795_000_000_000_000_000, 1_795_000_000_000_000_000))


# --- what is drawn anew --------------------------------------------------------------------------

DRAWN = re.compile(
    r"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<digest>(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f]))"
    r"|(?P<cut>(?<=sha256:)[0-9a-f]{12}(?![0-9a-f]))"
    r"|(?P<short>\b[0-9a-f]{8}-[0-9a-f]{4}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(?:\.\d+)?Z?)"
    r"|(?P<day>(?<=sessions/)\d{4}/\d\d/\d\d)"
    r"|(?P<epoch>\b1[789]\d{8}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b)"
)
CURSOR = re.compile(r'(?<="nextCursor": ")[A-Za-z0-9+/=_-]+(?=")')
AGE = re.compile(r"(?m)^ *(?:\d+[smhdwy]|now)(?= )")


class Drawn:
    """Replaces what is drawn anew, by its kind and number."""

    def __init__(self, build: Build) -> None:
        self._known: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._folders = sorted(
            {str(build.python.parent), str(build.repository), str(build.python)},
            key=len,
            reverse=True,
        )

    def plain(self, text: str) -> str:
        """Replace the folders of the build alone."""
        for folder in self._folders:
            text = text.replace(folder, "<build>")
        return text

    def know(self, text: str) -> None:
        """Take what stands in this text for not drawn anew."""
        for found in DRAWN.finditer(text):
            self._known.add(found[0])
            if found.lastgroup == "id":
                self._known.add(found[0][:13])
            if found.lastgroup == "digest":
                self._known.add(found[0][:12])

    def numbered(self, text: str) -> str:
        """Replace those folders, and all that is drawn anew."""
        self._numbers.clear()  # one more id in an answer changes no other answer
        return DRAWN.sub(self._mark, self.plain(text))

    def _mark(self, found: re.Match[str]) -> str:
        if found[0] in self._known:
            return found[0]
        kind = found.lastgroup or ""
        if kind not in {"id", "digest"}:
            return f"<{kind}>"
        return f"<{kind} {self._numbers.setdefault(found[0], len(self._numbers) + 1)}>"


# --- what was answered ----------------------------------------------------------------------------

Answers: TypeAlias = dict[str, dict[str, str]]
"""By kind and by name: what was answered."""


@dataclass
class Asked:
    """One home under one build, and what it has answered so far."""

    build: Build
    calls: Calls
    place: Path
    answers: Answers = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._drawn = Drawn(self.build)
        self.env = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "100",
            "HOME": str(self.place / "user"),
            "CODEX_HOME": str(self.place / "codex"),
        }

    def command(self, kind: str, *arguments: str, stdin: bytes = b"") -> Json:
        """Ask a command; return what it printed as JSON, if it did."""
        code, out, err = self.calls.run(
            arguments, env=self.env, cwd=self.place / "work", stdin=stdin
        )
        shown = AGE.sub("<age>", out) if arguments[:1] == ("sessions",) else out
        parts = [f"exit {code}\n", shown, "\n--- stderr\n" if err else "", err]
        self.note(kind, " ".join(arguments), "".join(parts))
        with suppress(ValueError):
            return json.loads(out)
        return None

    def both(self, kind: str, *arguments: str, stdin: bytes = b"") -> Json:
        """Ask a command as text, and as JSON."""
        self.command(kind, *arguments, stdin=stdin)
        return self.command(kind, *arguments, "--json", stdin=stdin)

    def note(self, kind: str, name: str, text: str) -> None:
        """Keep an answer; those of `read` as they are."""
        if kind == "read":
            text = self._drawn.plain(text)
            self._drawn.know(text)
            name = self._drawn.plain(name)
        else:
            name, text = self._drawn.numbered(name), self._drawn.numbered(text)
        kept = self.answers.setdefault(kind, {})
        number, whole = 1, name
        while whole in kept:
            number += 1
            whole = f"{name} ({number})"
        kept[whole] = text


def at(value: Json, *keys: str | int) -> Json:
    """Return a part of an answer, or None where there is none."""
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def items(value: Json) -> list[Json]:
    """Return the entries of a list, which may stand below `items`."""
    found: Json = at(value, "items") if isinstance(value, dict) else value
    return cast("list[Json]", found) if isinstance(found, list) else []


def text_of(path: Path) -> str:
    """Return the text of a file; what is no UTF-8 in it can still be told apart."""
    return path.read_bytes().decode("utf-8", "backslashreplace") if path.is_file() else "none"


def rows_of(path: Path) -> str:
    """Return the rows of a database, without the times, inodes and checksums of a copy."""
    lines: list[str] = []
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        for (table,) in tables.fetchall():
            for row in database.execute(f'SELECT * FROM "{table}" ORDER BY 1'):  # noqa: S608
                values = {key: row[key] for key in sorted(row.keys())}
                if table in {"states", "digests"}:
                    values = {"path": values["path"]}
                if table == "rollouts":
                    (*where, (size, *_)), own = json.loads(values["row"])
                    values = {"path": values["path"], "row": [*where, size, own]}
                lines.append(f"{table} {json.dumps(values, ensure_ascii=False, default=repr)}")
    return "\n".join(lines)


if __name__ == "__main__":
    answer_calls()
