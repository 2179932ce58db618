"""Long work: progress for its client, and cancelling that leaves all old or all new."""

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.doors.lsp.long_work import LongWork, Worker
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.markers import Markers
from codex_checkpoints.service.packs import export, import_pack, plan_import
from codex_checkpoints.service.progress import Progress
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.restore.listing import restores
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import Restoring
from codex_checkpoints.service.sessions.sessions import Sessions
from compaction.test_compact import OUTSIDE, compacting
from homes import WAIT, Home, eventually, moved, snapshot, thread
from peer import Peer
from rollouts import assistant, patch, plan, rollout, session, shell, tokens, turn, user

WORK = "I looked at every file of it. " * 200
CANCELLED = -32_800
LARGE = 24 << 20
"""A file of so many bytes takes a while to read, on any machine."""


def work(turns: int = 8) -> bytes:
    steps = (
        turn(
            user(f"Fix the login, part {number}"),
            plan(("Read auth.py", True), ("Fix it", False)),
            shell("cat auth.py", reads=["auth.py"]),
            patch(update="auth.py"),
            assistant(WORK),
            tokens(9_000 + number),
        )
        for number in range(turns)
    )
    return rollout(session(thread=thread(1)), *steps)


@pytest.fixture(scope="module")
def large() -> bytes:
    """Return a session that takes long to read: what was said, again and again."""
    head, *lines = work(20).splitlines(keepends=True)
    repeated = itertools.islice(itertools.cycle(lines), LARGE * len(lines) // sum(map(len, lines)))
    numbered = (
        re.sub(rb'"ordinal":\d+', b'"ordinal":%d' % number, line, count=1)
        for number, line in enumerate(repeated, 1)
    )
    return head + b"".join(numbered)


def written(home: Home) -> dict[str, str]:
    """Return what lies in a home, but for what a look at a session or a failure may write."""
    others = ("index.sqlite", "checkpoint_v1.json", "audit.jsonl")
    seen = snapshot(home.root).items()
    return {path: digest for path, digest in seen if not any(name in path for name in others)}


# --- at every step -------------------------------------------------------------------------------


class Impatient(Progress):
    """A progress that is cancelled at one of its steps, and counts them."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.last = last
        self.steps = 0
        self.has_committed = False

    def step(self, size: int = 0) -> None:
        self.steps += 1
        if self.steps > self.last:
            self.cancel()
        super().step(size)

    def commit(self) -> None:
        super().commit()
        self.has_committed = True


@pytest.fixture
def sessions(home: Home, monkeypatch: pytest.MonkeyPatch) -> Generator[Sessions]:
    # Pieces so small that a small session is read in many steps; a line still fits into one.
    monkeypatch.setattr("codex_checkpoints.storage.rollout_file.CHUNK", 24_576)
    home.put(work())
    with home.house() as house:
        yield house.sessions


Begun = Callable[[Sessions], Callable[[], object]]
"""How an operation is begun: what prepares it, and then what does it."""


def restore(mode: str, what: str = "restore") -> Begun:
    def begun(sessions: Sessions) -> Callable[[], object]:
        markers = Markers(sessions)
        name = markers.mark(thread(1), "here").marker.checkpoint_id
        work = getattr(Restoring(sessions), what)
        return lambda: work(RestoreParams(thread(1), name, mode, window=0))

    return begun


def taking_back(sessions: Sessions) -> Callable[[], object]:
    done = compacting(sessions).compact(CompactionRequest(thread(1), into="in-place"))
    return lambda: Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))


def exporting(sessions: Sessions) -> Callable[[], object]:
    return lambda: export(sessions, [], thread(1), f"{sessions.catalogue.store.place}/pack.json")


def importing(work: Callable[[Sessions, str, str], object]) -> Begun:
    def begun(sessions: Sessions) -> Callable[[], object]:
        exporting(sessions)()
        folder = Path(sessions.catalogue.store.place).parent / "elsewhere"
        folder.mkdir()
        (folder / "auth.py").write_text("x = 1\n")
        return lambda: work(sessions, f"{sessions.catalogue.store.place}/pack.json", str(folder))

    return begun


def compaction(what: str, into: Into = "new") -> Begun:
    return lambda sessions: (
        lambda: getattr(compacting(sessions), what)(CompactionRequest(thread(1), into=into))
    )


def reading_history(sessions: Sessions) -> Callable[[], object]:
    return lambda: Histories(sessions).history(thread(1))


CHANGING: dict[str, Begun] = {
    "compact": compaction("compact"),
    "compact in place": compaction("compact", "in-place"),
    "take back in place": taking_back,
    "soft restore": restore("soft"),
    "hard restore": restore("hard"),
    "export": exporting,
    "import": importing(import_pack),
    "archive": lambda sessions: lambda: moved(sessions.threads, thread(1), archive=True),
}
OPERATIONS: dict[str, Begun] = CHANGING | {
    "preview": compaction("preview"),
    "restore preview": restore("hard", "preview"),
    "import preview": importing(plan_import),
    "history": reading_history,
}


FEW = {"import", "import preview", "archive"}
"""What reads a file or two, and no session."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_cancelling_at_any_step_changes_nothing_or_comes_too_late(
    home: Home, sessions: Sessions, name: str
) -> None:
    operation = OPERATIONS[name](sessions)
    before = written(home)
    steps, progress = 0, Impatient(0)
    while True:
        with sessions.at(progress):
            try:
                operation()
                break
            except Cancelled:
                assert not progress.has_committed
                assert written(home) == before
        steps, progress = steps + 1, Impatient(steps + 1)

    assert steps > (0 if name in FEW else 5)
    assert (written(home) != before) is progress.has_committed
    assert progress.has_committed is (name in CHANGING)


def test_cancelled_work_can_be_repeated_at_once(home: Home, sessions: Sessions) -> None:
    with sessions.at(Impatient(3)), pytest.raises(Cancelled):
        compacting(sessions).compact(CompactionRequest(thread(1)))

    assert compacting(sessions).compact(CompactionRequest(thread(1))).session_id is not None
    home.path(1).write_bytes(work(20))
    with sessions.at(Impatient(2)), pytest.raises(Cancelled):
        sessions.refresh()
    sessions.refresh()
    assert sessions.find(thread(1)).error is None


def test_cancelled_restore_is_closed_in_the_audit(home: Home, sessions: Sessions) -> None:
    operation = restore("soft")(sessions)
    with sessions.at(Impatient(4)), pytest.raises(Cancelled):
        operation()

    last = home.audited()[-1]
    assert (last["type"], last["code"]) == ("RestoreFailed", "cancelled")


class Interrupted(Impatient):
    """A progress that a person interrupts at one of its steps."""

    def step(self, size: int = 0) -> None:
        if self.steps >= self.last:
            raise KeyboardInterrupt
        super().step(size)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_next_start_rolls_back_or_finishes_an_interrupted_restore(
    home: Home, sessions: Sessions, mode: str
) -> None:
    operation = restore(mode)(sessions)
    before = written(home)
    steps, branches = 0, list[str]()
    while not branches:
        with sessions.at(Interrupted(steps)), pytest.raises(KeyboardInterrupt):
            operation()
        with home.house() as house:
            listed = [each.session_id for each in house.sessions.summaries.page().items]
            branches = [each for each in listed if each != thread(1)]
            assert branches or written(home) == before
            recorded = [each.record.session_id for each in restores(house.sessions)]
            assert recorded == branches
        steps += 1

    assert steps > 5


def test_percentage_grows_and_stays_below_the_end() -> None:
    told: list[int] = []
    progress = Progress()
    progress.report_to(told.append)
    progress.expect(1_000)
    for _ in range(300):
        progress.step(5)

    assert told == sorted(set(told))
    assert (told[0], told[-1]) == (1, 99)


# --- pieces of one request -----------------------------------------------------------------------


def called_off_while_others_are_served(sessions: Sessions, progress: Progress) -> str:
    """Call off a piece that waits for its turn; return what its client is answered."""

    async def begun(worker: Worker) -> str:
        work, others = LongWork(worker, sessions, progress), threading.Event()
        worker.submit(others.wait)
        piece = asyncio.ensure_future(work.do(lambda: "done"))
        await asyncio.sleep(0)
        piece.cancel()
        await asyncio.sleep(0)
        others.set()
        return await piece

    with Worker() as worker:
        return asyncio.run(begun(worker))


def test_waiting_step_can_be_cancelled_but_not_after_the_commit(
    sessions: Sessions,
) -> None:
    progress = Progress()
    with pytest.raises(Cancelled):
        called_off_while_others_are_served(sessions, progress)

    progress = Progress()
    progress.commit()
    assert called_off_while_others_are_served(sessions, progress) == "done"


def test_long_reading_serves_other_requests_between_its_steps(sessions: Sessions) -> None:
    done: list[str] = []

    def submit(name: str, run: Callable[[], object]) -> None:
        worker.submit(run).add_done_callback(lambda job: done.append(name) or job.result())

    def reading(*others: str) -> None:
        for each in others:
            submit(
                each, progress.cancel if each == "call it off" else lambda: sessions.show(thread(1))
            )
        Digests(sessions).digest(thread(1))
        done.append("digest")

    async def served(*others: str) -> None:
        work = LongWork(worker, sessions, progress, yields=True)
        await work.do(lambda: reading(*others))

    with Worker() as worker:
        progress = Progress()
        asyncio.run(served("show"))
        assert done == ["show", "digest"]
        # What it let in is done, also where it is called off itself.
        with pytest.raises(Cancelled):
            asyncio.run(served("call it off", "show"))
    assert done[2:] == ["call it off", "show"]


def test_other_requests_are_answered_before_digest_and_losses(home: Home, large: bytes) -> None:
    home.put(large)
    named = {"sessionId": thread(1)}
    with served(home) as peer:
        peer.call("checkpoints/timeline", named)  # which reads as long as a digest, once
        long = [peer.ask(f"checkpoints/{method}", named) for method in ("digest", "losses")]
        peer.call("checkpoints/timeline", named)
        assert peer.call("checkpoints/notes", named)["items"] == []
        # Where this test itself is not given any time, the digest may be ready by now.
        assert not all(peer.has_answer(number) for number in long)
        for number in long:
            call_off(peer, number)


# --- an editor -----------------------------------------------------------------------------------


@contextlib.contextmanager
def served(home: Home) -> Generator[Peer]:
    """Start a server that knows the first session, where there is one."""
    with Peer(home.root) as peer:
        peer.start()
        if home.path().exists():
            peer.call("checkpoints/show", {"sessionId": thread(1)})
        yield peer


def call_off(peer: Peer, number: int) -> None:
    peer.notify("$/cancelRequest", {"id": number})


def is_called_off(peer: Peer, number: int) -> bool:
    return peer.answer(number)["error"]["code"] == CANCELLED


def progress_of(peer: Peer, kind: str) -> dict[str, Any]:
    while True:
        told = peer.heard("$/progress")
        if told["token"] == "t" and told["value"]["kind"] == kind:
            return told["value"]


MANY = 24
"""Files of a session that are large enough for a hash of each to take a while."""


def a_pack(folder: Path) -> dict[str, str]:
    """Make a pack that names many files, and a folder where they lie; say how to import it."""
    there, lie = Home(folder / "there"), folder / "folder"
    names = [f"part{number}.bin" for number in range(MANY)]
    read = shell("cat them", reads=names)
    there.put(rollout(session(thread=thread(1)), turn(user("Look"), read)))
    there.json("export", thread(1), str(folder / "pack.json"))
    lie.mkdir()
    for name in names:
        with (lie / name).open("wb") as file:
            file.truncate(60 << 20)
    return {"file": str(folder / "pack.json"), "cwd": str(lie)}


LONG = {
    "compact": "Compacting the session",
    "compactPreview": "Reading the session",
    "export": "Exporting",
    "import": "Importing",
    "import, dry": "Reading the pack",
}


@pytest.mark.parametrize("name", LONG)
def test_long_work_reports_progress_and_stops_when_cancelled(
    home: Home, large: bytes, tmp_path: Path, name: str
) -> None:
    method, _, dry = name.partition(", ")
    if method == "import":
        wish: dict[str, object] = {**a_pack(tmp_path), "dryRun": bool(dry)}
    elif method == "export":
        (tmp_path / "elsewhere.jsonl").write_bytes(large)
        file = str(home.root / "pack.json")
        wish = {"sessionId": str(tmp_path / "elsewhere.jsonl"), "file": file}
    else:
        home.put(large)
        wish = {"sessionId": thread(1)}
    with served(home) as peer:
        listed = peer.call("checkpoints/sessions")["items"]
        before = written(home)
        number = peer.ask(f"checkpoints/{method}", {**wish, "workDoneToken": "t"})
        begun, first = (progress_of(peer, kind) for kind in ("begin", "report"))
        call_off(peer, number)

        assert is_called_off(peer, number)
        progress_of(peer, "end")
        assert written(home) == before
        assert (begun["title"], begun["cancellable"], begun["percentage"]) == (LONG[name], True, 0)
        assert 0 < first["percentage"] < 100
        assert peer.call("checkpoints/sessions")["items"] == listed


@pytest.mark.parametrize("how", ["by its token", "by leaving"])
def test_work_is_cancelled_by_its_token_and_by_shutdown(home: Home, large: bytes, how: str) -> None:
    home.put(large)
    with served(home) as peer:
        before = written(home)
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1), "workDoneToken": "t"})
        progress_of(peer, "report")
        if how == "by leaving":
            peer.call("shutdown")
        else:
            peer.notify("window/workDoneProgress/cancel", {"token": "t"})

        assert is_called_off(peer, number)
    assert written(home) == before


class Waiting(NamedTuple):
    """A compaction that waits for a hook."""

    peer: Peer
    number: int
    """The request of it."""
    begun: Path
    """Where the hook has written down its process."""
    go_on: Path
    """What the hook waits for."""
    before: dict[str, str]


def waiting_hook(home: Home, event: str) -> tuple[Path, Path]:
    """Name a hook that waits; return the file that says it does, and the one that lets it go on."""
    begun, go_on = home.user / f"{event}.begun", home.user / f"{event}.go"
    script = home.user / f"{event}.sh"
    script.write_text(
        f"#!/bin/sh\ncat > /dev/null\necho $$ > '{begun}'\n"
        f"while [ ! -e '{go_on}' ]; do sleep 0.02; done\n"
    )
    script.chmod(0o755)
    home.config(f'[[hooks.{event}]]\ncommand = ["{script}"]\ntimeoutSeconds = {3 * WAIT}\n')
    return begun, go_on


@contextlib.contextmanager
def waiting(home: Home, event: str) -> Generator[Waiting]:
    home.put(work(2))
    begun, go_on = waiting_hook(home, event)
    with served(home) as peer:
        before = written(home)
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(lambda: begun.exists() and begun.read_text())
        yield Waiting(peer, number, begun, go_on, before)


def test_other_requests_are_served_while_a_hook_runs_and_new_messages_are_read(
    home: Home,
) -> None:
    with waiting(home, "preCompact") as found:
        listed = found.peer.call("checkpoints/sessions")["items"]
        home.put(work(3))
        found.go_on.touch()
        done = found.peer.answer(found.number)["result"]

    assert [each["sessionId"] for each in listed] == [thread(1)]
    assert done["hooks"] == [{"number": 1, "outcome": "passed", "reason": None}]
    assert "Fix the login, part 2" in json.dumps(done["replacement"])


def is_running(pid: Path) -> bool:
    command = ["ps", "-o", "stat=", "-p", pid.read_text().strip()]
    state = subprocess.run(command, capture_output=True, check=False)
    return state.stdout.strip()[:1] not in {b"", b"Z"}


@pytest.mark.parametrize("is_leaving", [False, True])
def test_cancelling_while_a_hook_decides_ends_the_hook_and_writes_nothing(
    home: Home, is_leaving: bool
) -> None:
    with waiting(home, "preCompact") as found:
        if is_leaving:
            found.peer.call("shutdown")
        else:
            call_off(found.peer, found.number)

        assert is_called_off(found.peer, found.number)
        assert not is_running(found.begun)
        assert written(home) == found.before


def test_cancelling_during_the_install_returns_the_result(home: Home) -> None:
    with waiting(home, "postCompact") as found:
        call_off(found.peer, found.number)
        found.go_on.touch()
        done = found.peer.answer(found.number)["result"]

        history = found.peer.call("checkpoints/history", {"sessionId": done["sessionId"]})
        assert history["items"] == done["replacement"]


def test_shutdown_waits_for_a_started_install(home: Home) -> None:
    with waiting(home, "postCompact") as found:
        leaving = found.peer.ask("shutdown")
        assert found.peer.error("checkpoints/sessions")["code"] == CANCELLED
        found.go_on.touch()

        assert found.peer.answer(found.number)["result"]["hooks"][-1]["outcome"] == "passed"
        assert found.peer.answer(leaving)["result"] is None


# --- the command line ----------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_interrupt_while_a_hook_decides_writes_nothing(home: Home) -> None:
    home.put(work())
    home.json("show", thread(1))
    begun, _ = waiting_hook(home, "preCompact")
    before = written(home)
    process = home.start("compact", thread(1))
    try:
        eventually(begun.exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()

    assert process.returncode == 130
    assert written(home) == before
