"""Ask Codex for a summary, where Codex is any program: it may say or do anything."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

from codex_checkpoints.codex import SCRATCH, program
from codex_checkpoints.codex.app_server import AskingFailed, Deadline, RequestDeclined, run
from codex_checkpoints.core.agents.codex.history.item_kinds import kind_of
from codex_checkpoints.core.agents.codex.history.tokens import budget_of, of_items
from codex_checkpoints.service.compaction.codex_summary import (
    BASE_TOKENS,
    CONTEXT_TOKENS,
    Job,
    determinism_of,
)
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.request import CompactionRequest, HookRunner
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.storage import file_lock, records
from history_items import SUMMARY, compaction, user
from homes import Home, eventually, just_written, refusal, thread
from rollouts import FOLDER, rollout, session, shell, started, tokens, turn
from rollouts import user as user_said

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a program that POSIX starts by its name")

THREAD = "01a1f865-0000-7000-8000-000000000001"
FORK = "01a1f865-0000-7000-8000-00000000000f"

WINDOW = 40_000
OUTPUT = "all of this was printed. " * 1_500

FAKE = """\
#!{python}
import json, os, sys, time

def say(message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()

def tell(method, **params):
    say({{"method": method, "params": {{"threadId": FORK, **params}}}})

def end(status="completed", error=None):
    tell("turn/completed", turn={{"status": status, "error": error}})

FORK = "{fork}"
RESULTS = {{"initialize": {{"userAgent": "fake/1"}}, "thread/fork": {{"thread": {{"id": FORK}}}}}}
open("pids", "a").write(f"{{os.getpid()}}\\n")
asked = open("asked", "a")

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    print(json.dumps(message), file=asked, flush=True)
    {behaviour}
    if "id" in message and method is not None:
        say({{"id": message["id"], "result": RESULTS.get(method, {{}})}})
    if method == "thread/compact/start":
        {summary}
"""

COMPACTED = 'tell("item/completed", item={"type": "contextCompaction"}); end()'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The home that Codex is started in: the fake writes down there what it was asked."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def fake(folder: Path, behaviour: str = "pass", summary: str = COMPACTED) -> str:
    """Write a Codex that does something with a message before, or instead of, its answer."""
    path = folder.parent / "codex"
    text = FAKE.format(python=sys.executable, fork=FORK, behaviour=behaviour, summary=summary)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def ask(folder: Path, codex: str, patience: Deadline | None = None) -> str:
    patience = patience or Deadline(20)
    return program.compacted(codex, str(folder), THREAD, dict(os.environ), patience)


def failure(folder: Path, codex: str, patience: Deadline | None = None) -> AskingFailed:
    """Return how it fails; nothing of what was started is left."""
    with pytest.raises(AskingFailed) as failed:
        ask(folder, codex, patience)
    for pid in (folder / "pids").read_text().split() if (folder / "pids").exists() else ():
        with pytest.raises(ProcessLookupError):
            os.killpg(int(pid), 0)
    return failed.value


def asked(folder: Path) -> list[str]:
    lines = (folder / "asked").read_text(encoding="utf-8").splitlines()
    return [json.loads(line).get("method", "") for line in lines]


REFUSING = """
    if "threadSource" in message.get("params", {}):
        say({"id": message["id"], "error": {"code": -32600, "message": "unknown variant"}})
        continue"""


@pytest.mark.parametrize("behaviour", ["pass", REFUSING], ids=["new", "old"])
def test_codex_is_asked_to_fork_compact_and_archive_the_fork(folder: Path, behaviour: str):
    """A Codex that takes no word of ours is asked without it."""
    assert ask(folder, fake(folder, behaviour)) == FORK

    assert asked(folder) == [
        *("initialize", "initialized"),
        *["thread/fork"] * (1 if behaviour == "pass" else 2),
        *("thread/name/set", "thread/compact/start", "thread/archive"),
    ]
    (pid,) = (folder / "pids").read_text().split()
    with pytest.raises(ProcessLookupError):
        os.killpg(int(pid), 0)


def test_fork_is_archived_after_a_failure(folder: Path):
    codex = fake(folder, summary='end("failed", {"message": "no credit left"})')

    failed = failure(folder, codex)

    assert isinstance(failed, RequestDeclined)
    assert failed.reason == "no credit left"
    assert asked(folder)[-1] == "thread/archive"


FORK_OTHERWISE = {
    "names no fork": {},
    "names the thread itself": {"thread": {"id": THREAD}},
    "names a path": {"thread": {"id": "../../x"}},
    "names a list": {"thread": [7]},
    "has no result": None,
}


@pytest.mark.parametrize(
    ("behaviour", "summary"),
    [
        pytest.param("sys.exit(3)", COMPACTED, id="ends at once"),
        pytest.param("print('{') or sys.exit()", COMPACTED, id="talks nonsense and ends"),
        *(
            pytest.param(f"RESULTS['thread/fork'] = {result}", COMPACTED, id=name)
            for name, result in FORK_OTHERWISE.items()
        ),
        pytest.param("pass", "end()", id="compacts nothing"),
        pytest.param("pass", "end('interrupted')", id="is interrupted"),
        pytest.param("pass", "end('failed', 'no object')", id="fails without a word"),
        pytest.param("pass", "sys.exit(1)", id="ends amid the summary"),
        pytest.param("pass", "os.kill(os.getpid(), 9)", id="is killed amid the summary"),
    ],
)
def test_unexpected_behaviour_of_codex_is_a_failure(folder: Path, behaviour: str, summary: str):
    assert failure(folder, fake(folder, behaviour, summary)).code == "codex_failed"


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param("print('garbage', flush=True)", id="garbage"),
        pytest.param("print('[' * 100_000, flush=True)", id="depth"),
        pytest.param("print('[1, 2]', flush=True)", id="no objects"),
        pytest.param("say({'id': 'x' * (5 << 20)})", id="a line that is too long"),
        pytest.param(r"sys.stdout.buffer.write(b'\xff\xfe{}\n' * 99)", id="no text"),
        pytest.param("[tell('noise', number=each) for each in range(999)]", id="much of it"),
        pytest.param("say({'method': 'turn/completed', 'params': [FORK]})", id="no params"),
        pytest.param("say({'method': 7, 'id': 1})", id="a method that is none"),
        pytest.param(
            "say({'method': 'turn/completed', 'params': {'threadId': 'x', 'turn': {}}})",
            id="another thread",
        ),
    ],
)
def test_unrelated_messages_are_ignored(folder: Path, noise: str):
    assert ask(folder, fake(folder, noise, f"{noise}; {COMPACTED}")) == FORK


def test_requests_from_codex_are_declined(folder: Path):
    asks = "say({'id': 'q1', 'method': 'item/tool/requestUserInput', 'params': {}})"
    wait = f"{asks}; print(sys.stdin.readline(), file=asked, flush=True); {COMPACTED}"

    assert ask(folder, fake(folder, summary=wait)) == FORK

    assert '{"id":"q1","error":{"code":-32601,' in (folder / "asked").read_text()


@pytest.mark.parametrize("at", ["initialize", "thread/fork", "thread/compact/start", "flood"])
def test_codex_that_hangs_or_floods_is_stopped_after_the_timeout(
    folder: Path, at: str, monkeypatch: pytest.MonkeyPatch
):
    codex = fake(folder, f"if method == '{at}': time.sleep(600)")
    if at == "flood":
        codex = fake(folder, "while True: tell('noise', text='x' * 100_000)")
    elif at == "thread/compact/start":
        monkeypatch.setattr(program, "SECONDS_TO_ARCHIVE", 0.2)
    began = time.monotonic()

    # Long enough for the fake, which is a Python of its own, to come to where it hangs.
    failed = failure(folder, codex, Deadline(0.5))

    assert (failed.code, str(failed)) == ("timed_out", "Codex gave no answer within 0.5 seconds")
    assert time.monotonic() - began < 60


def test_child_processes_of_codex_end_with_it(folder: Path):
    """The lock is held by both of them, and free when both have ended."""
    start = (
        "import fcntl, subprocess; held = open('held', 'w'); fcntl.flock(held, fcntl.LOCK_EX);"
        " subprocess.Popen(['sleep', '600'], pass_fds=[held.fileno()]); time.sleep(600)"
    )

    with pytest.raises(AskingFailed) as failed:
        ask(folder, fake(folder, start), Deadline(1))

    assert failed.value.code == "timed_out"

    with (folder / "held").open("w") as file:
        assert eventually(lambda: file_lock.take(file.fileno()))


def test_summary_can_be_cancelled_while_the_model_works(folder: Path):
    codex = fake(folder, summary="open('working', 'w')")
    unwanted = threading.Event()

    def cancel() -> None:
        while not (folder / "working").exists():
            unwanted.wait(0.01)
        unwanted.set()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    failed = failure(folder, codex, Deadline(60, unwanted.is_set))
    canceller.join()

    assert failed.code == "cancelled"
    assert asked(folder)[-1] == "thread/archive"


def test_fork_that_could_not_be_archived_is_logged(folder: Path, caplog: pytest.LogCaptureFixture):
    codex = fake(folder, "if method == 'thread/archive': sys.exit()")

    assert ask(folder, codex) == FORK

    assert caplog.messages == [f"codex_failed: the scratch fork {FORK} is not archived"]


def test_next_start_archives_the_fork_of_a_killed_process(home: Home):
    fork = rollout(session(thread=thread(7), thread_source=SCRATCH), turn(user_said("Fix it")))
    home.put(fork, 7)
    lock = home.root / "thread-writer-locks" / f"{thread(7)}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        assert file_lock.take(file.fileno())
        assert [each["sessionId"] for each in home.json("sessions")] == [thread(7)], "it is at work"
    assert home.path(7).exists()

    assert home.json("sessions") == home.json("sessions", "--archived") == []

    assert not home.path(7).exists()
    assert [path.read_bytes() for path in home.root.glob("archived_sessions/*")] == [fork]
    assert "scratch_left" not in {each["code"] for each in home.json("doctor")["findings"]}


def test_program_that_cannot_start_is_reported(folder: Path):
    path = folder.parent / "codex"
    path.write_text("#!/no/such/program\n")
    path.chmod(0o755)

    assert failure(folder, str(path)).code == "codex_failed"


def test_environment_tells_codex_that_it_works_on_a_fork(folder: Path):
    ask(folder, fake(folder, "json.dump(dict(os.environ), open('told', 'w'))"))

    told = json.loads((folder / "told").read_text(encoding="utf-8"))
    assert (told["CODEX_CHECKPOINTS_SCRATCH"], told["CODEX_HOME"]) == ("1", str(folder))


def test_hook_called_for_a_fork_writes_no_text_and_no_log(home: Home):
    done = home.run("hook", said=b"{ no call", env={"CODEX_CHECKPOINTS_SCRATCH": "1"})

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (home.state / "audit.jsonl").exists()


def errand(error: AskingFailed) -> Job:
    def summarise(*_asked: object) -> str:
        raise error

    return Job(summarise, "/bin/codex", "/home", THREAD, 300.0)


def refused(error: AskingFailed) -> Refusal:
    return refusal(lambda: errand(error).run(lambda: False))


def test_codexs_message_becomes_one_short_line_without_secrets():
    refusal = refused(RequestDeclined("401:\n\x1b[31mkey sk-proj-" + "a1B2" * 12 + " " + "x" * 500))

    reason = str(refusal.facts["reason"])
    assert reason.startswith("401:")
    assert not [text for text in ("a1B2", "\x1b", "\n") if text in reason]
    assert (refusal.code, len(reason)) == ("codex_failed", 300)
    assert refusal.message == f"Codex made no summary: {reason}"


def test_every_failure_is_reported_and_cancelling_is_not_a_refusal():
    assert refused(RequestDeclined("")).message == "Codex made no summary: it did not say why"
    late = refused(AskingFailed("timed_out", "late"))
    assert (late.code, late.facts["seconds"]) == ("timed_out", 300.0)
    assert "codexTimeoutSeconds" in str(late.facts["hint"])
    with pytest.raises(Cancelled):
        errand(AskingFailed("cancelled", "no longer wanted")).run(lambda: True)


@pytest.mark.parametrize(
    ("items", "determinism"),
    [
        ((user("Fix it."), user(SUMMARY)), "model"),
        ((user("Fix it."), compaction()), "provider"),
        ((), "model"),
    ],
)
def test_determinism_of_a_summary_follows_from_its_encrypted_items(
    items: tuple[Any, ...], determinism: str
):
    assert determinism_of(items) == determinism


# --- what Codex is asked for, and what is made of its answer --------------------------------------


def long_session(form: str = "paginated", calls: int = 9) -> bytes:
    work = (shell("make test", output=OUTPUT), tokens(9_000, window=WINDOW))
    turns = (turn(user_said(f"Fix {each}."), *work) for each in range(calls))
    return rollout(session(form=cast("Any", form)), *turns)


def outside(asked_for: list[Any], answer: str = thread(9)) -> HookRunner:
    """Everything outside, with a Codex that names a fork and does nothing."""

    def summarise(*asked: Any) -> str:  # noqa: ANN401 - as `Summarise` has it
        asked_for.append(asked[2])
        return answer

    return HookRunner(records.moment, records.new_ids, run, lambda: "/bin/codex", summarise)


WISH = CompactionRequest(thread(1), strategy="codex")


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_handed_over_history_fits_the_window_with_all_user_messages(home: Home, form: str):
    asked_for = list[Any]()
    home.put(long_session(form))

    with home.house() as house:
        next(Compacting(house.sessions, outside(asked_for)).in_steps(WISH))()

    (excerpt,) = asked_for
    limits = budget_of(WINDOW)
    added = BASE_TOKENS + CONTEXT_TOKENS  # Codex sends them as well
    assert of_items(excerpt.items) <= limits.window - limits.reserve - added
    kinds = [kind_of(item) for item in excerpt.items]
    assert kinds.count("user") == 9
    assert 0 < kinds.count("tool_call") == kinds.count("tool_output") < 9
    assert (excerpt.model, excerpt.cwd) == (None, FOLDER)


def test_session_that_fits_is_forked(home: Home):
    asked_for = list[Any]()
    home.put(long_session(calls=1))

    with home.house() as house:
        next(Compacting(house.sessions, outside(asked_for)).in_steps(WISH))()

    assert asked_for == [thread(1)]


@pytest.mark.parametrize("fork", [9, 2], ids=["no such session", "nothing compacted"])
def test_fork_without_a_summary_installs_nothing(home: Home, fork: int):
    source = home.put(long_session())
    home.put(long_session().replace(thread(1).encode(), thread(2).encode()), number=2)
    before = source.read_bytes()

    with home.house() as house:
        compacting = Compacting(house.sessions, outside([], thread(fork)))
        assert refusal(lambda: compacting.compact(WISH)).code == "codex_failed"
    assert source.read_bytes() == before
    assert list(home.state.glob("sessions/*/compactions.jsonl")) == []


OPEN = rollout(session(), started("t"), user_said("Fix it."))
HUGE = turn(user_said("x" * 9 * WINDOW), tokens(9, window=WINDOW))


@pytest.mark.parametrize(
    ("data", "wish", "code"),
    [
        (just_written(OPEN), WISH, "turn_not_complete"),
        (rollout(session()), WISH, "missing_context"),
        (rollout(session(), HUGE), WISH, "item_too_large"),
        (long_session(), evolve(WISH, placement="mid_turn"), "unsupported_placement"),
    ],
    ids=["open turn", "empty", "one message too large", "mid"],
)
def test_predictable_refusal_comes_before_codex_is_asked(
    home: Home, data: bytes, wish: CompactionRequest, code: str
):
    asked_for = list[Any]()
    home.put(data)

    with home.house() as house:
        compacting = Compacting(house.sessions, outside(asked_for))
        assert refusal(lambda: compacting.compact(wish)).code == code

    assert asked_for == []


def test_setting_limits_the_time_of_codex_unless_the_request_does(home: Home):
    home.put(long_session(calls=1))
    home.config("codexTimeoutSeconds = 7")

    with home.house() as house:
        compacting = Compacting(house.sessions, outside([]))
        for wish, seconds in [(WISH, 7.0), (evolve(WISH, seconds=3.0), 3.0)]:
            refused = refusal(lambda wish=wish: compacting.preview(wish))
            told = (refused.code, refused.facts["seconds"], refused.facts["tokensBefore"])
            assert told == ("no_preview", seconds, 9_000)
