"""Long work: what its client hears of it, and that calling it off leaves all old or all new."""

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
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.server.long_work import LongWork
from codex_checkpoints.service.compaction.installing import Undoing
from codex_checkpoints.service.compaction.request import Request
from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.marking import Markers
from codex_checkpoints.service.portable.importing import Importing
from codex_checkpoints.service.portable.packing import Packing
from codex_checkpoints.service.reading.pace import Pace
from codex_checkpoints.service.refusal import Cancelled
from codex_checkpoints.service.restore.planning import restore_options
from codex_checkpoints.service.restore.restoring import Restoring
from codex_checkpoints.service.restore.verifying import RestoreHistory, verify
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.storage import records
from homes import WAIT, Home, eventually, moved, snapshot, thread
from peer import Peer
from rollouts import assistant, patch, plan, rollout, session, shell, tokens, turn, user
from test_compacting import OUTSIDE, compacting

WORK = "I looked at every file of it. " * 200
CANCELLED = -32_800
LARGE = 48 << 20
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


class Impatient(Pace):
    """A pace that is cancelled at one of its steps, and counts them."""

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
    monkeypatch.setattr("codex_checkpoints.storage.rollout_file.CHUNK", 8_192)
    home.put(work())
    with home.house() as house:
        yield house.sessions


def marked(sessions: Sessions) -> str:
    markers = Markers(sessions, records.now, records.new_id)
    return markers.mark(thread(1), "here").marker.checkpoint_id


def restore(mode: str) -> Callable[[Sessions], Callable[[], object]]:
    def begun(sessions: Sessions) -> Callable[[], object]:
        marker, wish = marked(sessions), restore_options(mode, None, 0, None)
        restoring = Restoring(sessions, records.now, records.new_id)
        return lambda: restoring.restore(thread(1), marker, wish)

    return begun


def restore_preview(sessions: Sessions) -> Callable[[], object]:
    marker, wish = marked(sessions), restore_options("hard", None, 0, None)
    restoring = Restoring(sessions, records.now, records.new_id)
    return lambda: restoring.preview(thread(1), marker, wish)


def verification(sessions: Sessions) -> Callable[[], object]:
    restore("soft")(sessions)()
    return lambda: verify(sessions)


def taking_back(sessions: Sessions) -> Callable[[], object]:
    done = compacting(sessions).compact(Request(thread(1), into="in-place"))
    return lambda: Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))


def exporting(sessions: Sessions) -> Callable[[], object]:
    packing = Packing(sessions, [], records.now, records.new_id)
    return lambda: packing.write(thread(1), f"{sessions.catalogue.place}/pack.json")


def pack_of(sessions: Sessions) -> tuple[str, str]:
    """Export the session; return where the pack lies, and a folder with the file it names."""
    exporting(sessions)()
    folder = Path(sessions.catalogue.place).parent / "elsewhere"
    folder.mkdir()
    (folder / "auth.py").write_text("x = 1\n")
    return f"{sessions.catalogue.place}/pack.json", str(folder)


def importing(sessions: Sessions) -> Callable[[], object]:
    file, folder = pack_of(sessions)
    bringing = Importing(sessions, records.now, records.new_id)
    return lambda: bringing.make(file, folder)


def import_preview(sessions: Sessions) -> Callable[[], object]:
    file, folder = pack_of(sessions)
    bringing = Importing(sessions, records.now, records.new_id)
    return lambda: bringing.preview(file, folder)


def archiving(sessions: Sessions) -> Callable[[], object]:
    return lambda: moved(sessions, thread(1), archive=True)


OPERATIONS: dict[str, Callable[[Sessions], Callable[[], object]]] = {
    "compact": lambda sessions: lambda: compacting(sessions).compact(Request(thread(1))),
    "compact in place": lambda sessions: (
        lambda: compacting(sessions).compact(Request(thread(1), into="in-place"))
    ),
    "take back in place": taking_back,
    "preview": lambda sessions: lambda: compacting(sessions).preview(Request(thread(1))),
    "soft restore": restore("soft"),
    "hard restore": restore("hard"),
    "restore preview": restore_preview,
    "verify": verification,
    "export": exporting,
    "import": importing,
    "import preview": import_preview,
    "archive": archiving,
    "history": lambda sessions: lambda: Histories(sessions).history(thread(1)),
}


CHANGING = {
    "compact",
    "compact in place",
    "take back in place",
    "soft restore",
    "hard restore",
    "export",
    "import",
    "archive",
}
FEW = {"import", "import preview", "archive"}
"""What reads a file or two, and no session."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_cancelled_at_any_step_it_has_changed_nothing_and_else_it_is_done(
    home: Home, sessions: Sessions, name: str
) -> None:
    operation = OPERATIONS[name](sessions)
    before = written(home)
    steps, pace = 0, Impatient(0)
    while True:
        with sessions.at(pace):
            try:
                operation()
                break
            except Cancelled:
                assert not pace.has_committed
                assert written(home) == before
        steps, pace = steps + 1, Impatient(steps + 1)

    assert steps > (0 if name in FEW else 5)
    assert (written(home) != before) is pace.has_committed
    assert pace.has_committed is (name in CHANGING)


def test_what_was_cancelled_can_be_done_at_once(sessions: Sessions) -> None:
    with sessions.at(Impatient(3)), pytest.raises(Cancelled):
        compacting(sessions).compact(Request(thread(1)))

    assert compacting(sessions).compact(Request(thread(1))).session_id is not None


def test_a_session_of_which_the_reading_was_cancelled_is_not_called_unreadable(
    home: Home, sessions: Sessions
) -> None:
    home.path(1).write_bytes(work(20))
    with sessions.at(Impatient(2)), pytest.raises(Cancelled):
        sessions.refresh()

    sessions.refresh()
    assert sessions.find(thread(1)).error is None


def test_a_cancelled_restore_ends_in_the_audit(home: Home, sessions: Sessions) -> None:
    operation = restore("soft")(sessions)
    with sessions.at(Impatient(4)), pytest.raises(Cancelled):
        operation()

    lines = (home.state / "audit.jsonl").read_bytes().splitlines()
    assert json.loads(lines[-1])["type"] == "RestoreFailed"
    assert json.loads(lines[-1])["code"] == "cancelled"


class Interrupted(Impatient):
    """A pace that a person interrupts at one of its steps."""

    def step(self, size: int = 0) -> None:
        if self.steps >= self.last:
            raise KeyboardInterrupt
        super().step(size)


@pytest.mark.parametrize("mode", ["soft", "hard"])
def test_an_interrupted_restore_is_taken_back_or_finished_by_the_next_start(
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
            assert [
                each.record.session_id for each in RestoreHistory(house.sessions).restores()
            ] == (branches)
        steps += 1

    assert steps > 5


def test_the_percentage_grows_and_stays_below_the_end() -> None:
    told: list[int] = []
    pace = Pace()
    pace.report_to(told.append)
    pace.expect(1_000)
    for _ in range(300):
        pace.step(5)

    assert told == sorted(set(told))
    assert (told[0], told[-1]) == (1, 99)


# --- pieces of one request -----------------------------------------------------------------------


def called_off_while_others_are_served(sessions: Sessions, pace: Pace) -> str:
    """Call off a piece that waits for its turn; return what its client is answered."""

    async def begun(worker: Executor) -> str:
        work, others = LongWork(worker, sessions, pace), threading.Event()
        worker.submit(others.wait)
        piece = asyncio.ensure_future(work.do(lambda: "done"))
        await asyncio.sleep(0)
        piece.cancel()
        await asyncio.sleep(0)
        others.set()
        return await piece

    with ThreadPoolExecutor(1) as worker:
        return asyncio.run(begun(worker))


def test_a_piece_that_waits_for_its_turn_can_be_called_off(sessions: Sessions) -> None:
    with pytest.raises(Cancelled):
        called_off_while_others_are_served(sessions, Pace())


def test_the_last_piece_of_what_is_written_already_is_done_all_the_same(sessions: Sessions) -> None:
    pace = Pace()
    pace.commit()

    assert called_off_while_others_are_served(sessions, pace) == "done"


# --- an editor -----------------------------------------------------------------------------------


def call_off(peer: Peer, number: int) -> None:
    peer.notify("$/cancelRequest", {"id": number})


def progress_of(peer: Peer, token: str, kind: str) -> dict[str, Any]:
    while True:
        told = peer.heard("$/progress")
        if told["token"] == token and told["value"]["kind"] == kind:
            return told["value"]


@pytest.mark.parametrize("method", ["compact", "compactPreview"])
def test_a_large_session_reports_progress_and_stops_when_it_is_called_off(
    home: Home, large: bytes, method: str
) -> None:
    home.put(large)
    with Peer(home.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        before = written(home)
        number = peer.ask(f"checkpoints/{method}", {"sessionId": thread(1), "workDoneToken": "t"})
        begun = progress_of(peer, "t", "begin")
        first = progress_of(peer, "t", "report")
        call_off(peer, number)
        answer = peer.answer(number)
        progress_of(peer, "t", "end")

        assert answer["error"]["code"] == CANCELLED
        assert written(home) == before
        assert (begun["cancellable"], begun["percentage"]) == (True, 0)
        assert 0 < first["percentage"] < 100
        assert len(peer.call("checkpoints/sessions")["items"]) == 1


def test_it_can_be_called_off_by_its_token_as_well(home: Home, large: bytes) -> None:
    home.put(large)
    with Peer(home.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1), "workDoneToken": 7})
        peer.heard("$/progress")
        peer.notify("window/workDoneProgress/cancel", {"token": 7})

        assert peer.answer(number)["error"]["code"] == CANCELLED


MANY = 24
"""Files of a session that are large enough for a hash of each to take a while."""


@pytest.fixture
def pack(tmp_path: Path) -> tuple[str, str]:
    """Return a pack that names many files, and a folder where they lie."""
    there, folder = Home(tmp_path / "there"), tmp_path / "folder"
    names = [f"part{number}.bin" for number in range(MANY)]
    read = shell("cat them", reads=names)
    there.put(rollout(session(thread=thread(1)), turn(user("Look"), read)))
    there.json("export", thread(1), str(tmp_path / "pack.json"))
    folder.mkdir()
    for name in names:
        with (folder / name).open("wb") as file:
            file.truncate(60 << 20)
    return str(tmp_path / "pack.json"), str(folder)


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_import_reports_progress_and_stops_when_it_is_called_off(
    home: Home, pack: tuple[str, str], dry_run: bool
) -> None:
    file, cwd = pack
    with Peer(home.root) as peer:
        peer.start()
        assert peer.call("checkpoints/sessions")["items"] == []
        before = written(home)
        wish = {"file": file, "cwd": cwd, "dryRun": dry_run, "workDoneToken": "t"}
        number = peer.ask("checkpoints/import", wish)
        begun = progress_of(peer, "t", "begin")
        first = progress_of(peer, "t", "report")
        call_off(peer, number)
        answer = peer.answer(number)
        progress_of(peer, "t", "end")

        assert answer["error"]["code"] == CANCELLED
        assert written(home) == before
        assert begun["title"] == ("Reading the pack" if dry_run else "Importing")
        assert 0 < first["percentage"] < 100
        assert peer.call("checkpoints/sessions")["items"] == []


def test_an_export_reports_progress_and_stops_when_it_is_called_off(
    home: Home, large: bytes, tmp_path: Path
) -> None:
    elsewhere, target = tmp_path / "elsewhere.jsonl", tmp_path / "pack.json"
    elsewhere.write_bytes(large)
    with Peer(home.root) as peer:
        peer.start()
        wish = {"sessionId": str(elsewhere), "file": str(target), "workDoneToken": "t"}
        number = peer.ask("checkpoints/export", wish)
        begun = progress_of(peer, "t", "begin")
        progress_of(peer, "t", "report")
        call_off(peer, number)

        assert peer.answer(number)["error"]["code"] == CANCELLED
        assert begun["title"] == "Exporting"
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
            "elsewhere.jsonl"
        ]


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


def test_while_a_hook_is_waited_for_others_are_answered(home: Home) -> None:
    home.put(work())
    begun, go_on = waiting_hook(home, "preCompact")
    with Peer(home.root) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(begun.exists)
        listed = peer.call("checkpoints/sessions")["items"]
        go_on.touch()

        assert [each["sessionId"] for each in listed] == [thread(1)]
        assert peer.answer(number)["result"]["hooks"] == [
            {"number": 1, "outcome": "passed", "reason": None}
        ]


def is_running(pid: Path) -> bool:
    command = ["ps", "-o", "stat=", "-p", pid.read_text().strip()]
    state = subprocess.run(command, capture_output=True, check=False)
    return state.stdout.strip()[:1] not in {b"", b"Z"}


def test_called_off_while_a_hook_decides_the_hook_ends_and_nothing_is_written(home: Home) -> None:
    home.put(work())
    begun, _ = waiting_hook(home, "preCompact")
    with Peer(home.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        before = written(home)
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(lambda: begun.exists() and begun.read_text())
        call_off(peer, number)
        answer = peer.answer(number)

        assert answer["error"]["code"] == CANCELLED
        assert not is_running(begun)
        assert written(home) == before


def test_called_off_when_it_is_installed_the_answer_is_that_of_the_work(home: Home) -> None:
    home.put(work())
    begun, go_on = waiting_hook(home, "postCompact")
    with Peer(home.root) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(begun.exists)
        call_off(peer, number)
        go_on.touch()
        done = peer.answer(number)["result"]

        history = peer.call("checkpoints/history", {"sessionId": done["sessionId"]})
        assert history["items"] == done["replacement"]


def test_a_session_that_grew_while_a_hook_decided_is_read_again(home: Home) -> None:
    home.put(work(2))
    begun, go_on = waiting_hook(home, "preCompact")
    with Peer(home.root) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(begun.exists)
        home.put(work(3))
        go_on.touch()
        done = peer.answer(number)["result"]

    said = json.dumps(done["replacement"])
    assert "Fix the login, part 2" in said


def test_leaving_ends_a_hook_that_still_decides(home: Home) -> None:
    home.put(work())
    begun, _ = waiting_hook(home, "preCompact")
    with Peer(home.root) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(lambda: begun.exists() and begun.read_text())
        peer.call("shutdown")

        assert peer.answer(number)["error"]["code"] == CANCELLED
        assert not is_running(begun)


def test_leaving_waits_for_what_is_installed_already(home: Home) -> None:
    home.put(work())
    begun, go_on = waiting_hook(home, "postCompact")
    with Peer(home.root) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1)})
        eventually(begun.exists)
        leaving = peer.ask("shutdown")
        assert peer.error("checkpoints/sessions")["code"] == CANCELLED
        go_on.touch()

        assert peer.answer(number)["result"]["hooks"][-1]["outcome"] == "passed"
        assert peer.answer(leaving)["result"] is None


def test_leaving_calls_off_what_still_can_be(home: Home, large: bytes) -> None:
    home.put(large)
    with Peer(home.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        before = written(home)
        number = peer.ask("checkpoints/compact", {"sessionId": thread(1), "workDoneToken": "t"})
        progress_of(peer, "t", "report")
        peer.call("shutdown")
        answer = peer.answer(number)

    assert answer["error"]["code"] == CANCELLED
    assert written(home) == before


# --- the command line ----------------------------------------------------------------------------


def interrupted(home: Home, *arguments: str, when: Callable[[], object]) -> int:
    """Start a command, interrupt it as Ctrl-C does when it is so, and return its exit code."""
    process = home.start(*arguments)
    try:
        eventually(lambda: when() or process.poll() is not None)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return process.returncode


posix = pytest.mark.skipif(os.name == "nt", reason="sends a signal")


@posix
def test_interrupted_while_a_hook_decides_nothing_is_written(home: Home) -> None:
    home.put(work())
    home.json("show", thread(1))
    begun, _ = waiting_hook(home, "preCompact")
    before = written(home)

    code = interrupted(home, "compact", thread(1), when=begun.exists)

    assert code == 130
    assert written(home) == before
