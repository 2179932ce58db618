"""A Codex home on the disk with session files in it, and the product over it.

The product comes in three ways: its parts in this process (`Home.house`), a command in it where its
answer is all that matters (`Home.here`, `json`, `refused`), and a command as a process of its own
(`Home.run`, `Home.start`).  Commands have an environment where nothing is left to chance.
"""

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import forked_python
from codex_checkpoints import assembly
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.doors.cli import main
from codex_checkpoints.places import Places
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.threads import ThreadManager
from codex_checkpoints.storage import file_lock
from codex_checkpoints.storage.contract import Row, moment
from rollouts import Step, Writer, rollout, session, turn, user

SUPPORT = Path(__file__).parent
SERVER = SUPPORT.parents[1] / "server"
WAIT = 20.0
"""Seconds until something that must come counts as missing."""

T = TypeVar("T")


def thread(number: int) -> str:
    """Return a thread id; a higher number is a newer one."""
    return f"01a1f865-0000-7000-8000-{number:012d}"


def chat(text: str, number: int = 1, **head: Any) -> bytes:  # noqa: ANN401 - fields of a head
    """Write a session in which a person says one thing."""
    return rollout(session(thread=thread(number), **head), turn(user(text)))


def more(*steps: Step, thread: str, ordinal: int, form: Any = "paginated") -> bytes:  # noqa: ANN401
    """Write lines that go on with a file that has reached this ordinal."""
    writer = Writer()
    writer.form, writer.thread, writer.next_ordinal = form, thread, ordinal
    for step in steps:
        step(writer)
    return writer.data


def go_on(path: Path, session_id: str, *steps: Step, form: Any = "paginated") -> Path:  # noqa: ANN401
    """Write on behind what stands in a session file, as Codex does."""
    ordinal = path.read_bytes().count(b"\n")
    with path.open("ab") as file:
        file.write(more(*steps, thread=session_id, ordinal=ordinal, form=form))
    return path


def cached_value(state: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a cached result, as it is stored in the index."""
    return json.loads(zlib.decompress(base64.b64decode(json.loads(state)["value"])))


class Home:
    """One Codex home, the user's own folder, and the state folder below the former."""

    def __init__(self, root: Path) -> None:
        self.user = root / "user"
        self.root = root / "codex"
        self.state = self.root / "codex-checkpoints"
        self.user.mkdir(parents=True)
        self.root.mkdir()

    def path(
        self,
        number: int = 1,
        *,
        segment: int | None = None,
        archived: bool = False,
        day: str = "2026/11/20",
        form: str = ".jsonl",
    ) -> Path:
        """Return where a session file belongs."""
        folder = self.root / ("archived_sessions" if archived else f"sessions/{day}")
        later = "" if segment is None else f"_{thread(segment)}"
        return folder / f"rollout-2026-11-20T10-00-00-{thread(number)}{later}{form}"

    def put(self, data: bytes, number: int = 1, **where: Any) -> Path:  # noqa: ANN401 - as `path`
        """Put a session file in its place."""
        path = self.path(number, **where)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def checkpoint(self, number: int = 1) -> Path:
        """Return where the checkpoint of a session is stored."""
        return self.state / "sessions" / thread(number) / "checkpoint_v1.json"

    def stored(self, number: int = 1) -> Any:  # noqa: ANN401 - any JSON value
        """Return the stored checkpoint, None when there is none."""
        try:
            return json.loads(self.checkpoint(number).read_bytes())
        except FileNotFoundError:
            return None

    def remember(self, lines: Iterable[object], number: int = 1) -> Path:
        """Accept updates, as they stand in their file."""
        path = self.checkpoint(number).with_name("updates.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def config(self, text: str) -> None:
        """Write the settings."""
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "config.toml").write_text(text, encoding="utf-8")

    def audited(self) -> list[Any]:
        """Return the events of the audit log."""
        path = self.state / "audit.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    @contextmanager
    def loaded(self) -> Generator[None]:
        """Hold the lock of the first session, as another process does that has loaded it."""
        lock = self.root / "thread-writer-locks" / f"{thread(1)}.lock"
        lock.parent.mkdir(exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
        try:
            assert file_lock.take(descriptor)
            yield
        finally:
            os.close(descriptor)
            lock.unlink()

    # --- the product -----------------------------------------------------------------------------

    @contextmanager
    def house(self, *, fresh: bool = True) -> Generator[Assembly]:
        """Put the parts together, and let go of them in the end."""
        house = assembly.assemble(Places(str(self.root), str(self.state)))
        try:
            if fresh:
                house.sessions.refresh()
            yield house
        finally:
            house.sessions.close()

    def environment(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Return the whole environment of a process; None takes a variable away."""
        clean = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        wanted = clean | {
            "HOME": str(self.user),
            "CODEX_HOME": str(self.root),
            "PYTHONPATH": str(SERVER),
            "PYTHONUTF8": "1",
        }
        return {
            name: value for name, value in {**wanted, **(env or {})}.items() if value is not None
        }

    def run(
        self,
        *arguments: str | bytes,
        env: Mapping[str, str | None] | None = None,
        before: Sequence[str] = (),
        first: str = "",
        said: bytes | None = None,
        cwd: str | Path | None = None,
        output: int = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, as a process of its own.

        `before` is what runs it, as `nice` would; `first` is Python that is executed before it, and
        `said` what it reads.
        """
        return forked_python.run(
            [*before, *forked_python.product(*arguments, first=first)],
            input=said,
            env=self.environment(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=WAIT,
            check=False,
        )

    def alone(
        self, *command: str, said: bytes = b"", env: Mapping[str, str | None] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program that has loaded nothing yet, an interpreter or a shell."""
        return subprocess.run(
            command,
            env=self.environment(env),
            input=said,
            capture_output=True,
            timeout=WAIT,
            check=False,
        )

    def here(
        self, *arguments: str | bytes, env: Mapping[str, str | None] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end inside this process, which takes a quarter of the time."""
        given = [os.fsdecode(each) for each in arguments]
        printed, said = io.BytesIO(), io.BytesIO()
        with (
            open(os.devnull, encoding="utf-8") as nothing,
            mock.patch.dict(os.environ, self.environment(env), clear=True),
            mock.patch.object(sys, "stdin", nothing),
            contextlib.redirect_stdout(io.TextIOWrapper(printed, "utf-8", write_through=True)),
            contextlib.redirect_stderr(io.TextIOWrapper(said, "utf-8", write_through=True)),
        ):
            try:
                code = main(given)
            except SystemExit as end:
                code = int(end.code or 0)
            return subprocess.CompletedProcess(given, code, printed.getvalue(), said.getvalue())

    def json(self, *arguments: str, **more: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Run a command with `--json` to its good end; return what it printed."""
        done = self._run(*arguments, "--json", **more)
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
        return json.loads(done.stdout)

    def refused(self, *arguments: str, **more: Any) -> Any:  # noqa: ANN401 - a JSON object
        """Run a command with `--json` that is refused; return why."""
        done = self._run(*arguments, "--json", **more)
        assert done.returncode == 1, done.stdout
        return json.loads(done.stdout)["error"]

    def _run(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401
        return (self.here if more.keys() <= {"env"} else self.run)(*arguments, **more)

    def start(
        self,
        *arguments: str,
        env: Mapping[str, str | None] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own, as a terminal does."""
        return forked_python.Popen(
            forked_python.product(*arguments),
            env=self.environment(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )


@contextmanager
def following(home: Home, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """Run `watch` until the block ends; it has said that it follows when the block begins."""
    process = home.start("watch", *arguments)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert b"following" in said, said
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise


def just_written(data: bytes) -> bytes:
    """Return a session whose records were all written now, so that an open turn may be running."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return re.sub(rb'"timestamp":"[^"]{24}"', f'"timestamp":"{now}"'.encode(), data)


def eventually(look: Callable[[], T], wanted: Callable[[T], object] = bool) -> T:
    """Look until it is so; return what was seen then.  Where nobody tells, one has to ask."""
    end = time.monotonic() + WAIT
    while True:
        seen = look()
        if wanted(seen):
            return seen
        assert time.monotonic() < end, f"still {seen!r}"
        time.sleep(0.005)


def refusal(call: Callable[[], object]) -> Refusal:
    """Return the refusal that a call meets."""
    try:
        got = call()
    except Refusal as refused:
        return refused
    raise AssertionError(f"not refused: {got!r}")


def moved(threads: ThreadManager, session: str, *, archive: bool) -> Row:
    """Archive or unarchive a thread."""
    move = threads.to_move(session, archive=archive)
    return threads.moved(move.ask(lambda: False, lambda: None))


def summary(home: Home, **known: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return the first session as clients see it in a list."""
    path, cwd = known.get("path", str(home.path())), known.get("cwd", "/home/ana/shop")
    return {
        "sessionId": thread(1),
        "path": path,
        "cwd": cwd,
        "title": "why?",
        "task": "go on with all of it",
        "updatedAt": "2026-11-20T10:00:14.000Z",
        "cliVersion": "0.169.0",
        "model": "gpt-5.5",
        "contextTokens": 1000,
        "contextTokensSource": "reported",
        "contextWindow": 258_400,
        "windows": 1,
        "compactions": 0,
        "suspectFacts": 0,
        "live": False,
        "archived": False,
        "forkedFrom": None,
        "parentSession": None,
        "source": "cli",
        "background": False,
        "continuedBy": None,
        "turns": 2,
        "seq": 14,
        "named": False,
        "markers": 0,
        "branches": 0,
        "madeBy": None,
        "undone": False,
        "nearlyFull": False,
        "overWindow": False,
        "refused": None,
        "git": None,
        "offer": None,
        "startFolder": cwd,
        "fileTime": moment(os.stat(path).st_mtime_ns),
    } | known


def snapshot(*folders: Path) -> dict[str, str]:
    """Return what lies below some folders: each path with a digest of its content."""
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[str(path)] = "folder"
    return found


def without_rights() -> tuple[str, ...]:
    """Return what runs a command such that it has to ask the file system for permission.

    Nothing for an ordinary user.  For root it takes away what lets root pass everywhere; raises
    `LookupError` where that cannot be done.
    """
    if sys.platform == "win32":
        raise LookupError("Windows asks otherwise")
    if os.geteuid() != 0:
        return ()
    found = shutil.which("setpriv")
    if found is None:
        raise LookupError("no setpriv")
    return (found, "--bounding-set", "-dac_override,-dac_read_search", "--")


def on_a_terminal(
    home: Home, *arguments: str, env: Mapping[str, str | None] | None = None, typed: bytes = b""
) -> tuple[subprocess.CompletedProcess[bytes], str]:
    """Run a command whose input and output are a terminal; return what it shows as well."""
    import pty

    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed)
        done = forked_python.run(
            forked_python.product(*arguments),
            env=home.environment(env or {}),
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=WAIT,
            check=False,
        )
        os.write(theirs, b"\0")
        shown = b""
        while not shown.endswith(b"\0"):
            shown += os.read(ours, 65_536)
        return done, shown[:-1].decode()
    finally:
        os.close(theirs)
        os.close(ours)
