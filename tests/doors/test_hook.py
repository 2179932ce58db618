"""The hook as a process: its answers, and failures that affect nobody.

Which bundle stands, and in which window, is held against the whole history by a law at the end.
What the real Codex makes of it is in `codex/test_hook.py`.
"""

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import forked_python
import rollouts as r
from codex_checkpoints import assembly
from codex_checkpoints.core.compaction.handoff import (
    COMPACTION,
    bundle,
    handoff,
    last_bundle,
    shows,
)
from codex_checkpoints.doors import hook
from codex_checkpoints.places import Places
from codex_checkpoints.service.connect.hook_calls import Call
from codex_checkpoints.service.connect.hook_handler import HookHandler, window_of
from codex_checkpoints.service.history import current_window, digests
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.reading.session_file import bytes_between
from codex_checkpoints.storage import index
from codex_checkpoints.storage.contract import RolloutReader
from homes import WAIT, Home, cached_value, more, refusal, snapshot, thread

SESSION = thread(1)
BEGINNING = ["resume", "fork", "compact"]
TURN = r.turn(
    r.user("Mend the sesame."),
    r.plan(("Look.", True), ("Mend.", False)),
    r.shell("cat a.py", "x = 1", reads=["a.py"]),
)
WORK = r.rollout(r.session(), TURN)


@pytest.fixture
def home(home: Home) -> Home:
    home.put(WORK)
    return home


def call(event: str = "SessionStart", **more: object) -> dict[str, object]:
    """Make a call as Codex does, without the file."""
    said = {"session_id": SESSION, "cwd": r.FOLDER, "hook_event_name": event, "model": "gpt-5.5"}
    return said | more


def ask(
    home: Home, told: Mapping[str, object] | bytes, *options: str, path: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Call the hook; it ends well, whatever it was told."""
    done = home.run("hook", *options, said=as_said(home, told, path))
    assert done.returncode == 0, done.stderr.decode()
    return done


def as_said(home: Home, told: Mapping[str, object] | bytes, path: Path | None = None) -> bytes:
    """Return what Codex writes to the hook: a call names the file of its session."""
    if isinstance(told, bytes):
        return told
    return json.dumps({"transcript_path": str(path or home.path()), **told}).encode()


def alone(home: Home, program: str) -> subprocess.CompletedProcess[bytes]:
    """Resume the session in an interpreter that runs this program."""
    done = home.alone(sys.executable, "-c", program, said=as_said(home, call(source="resume")))
    assert done.returncode == 0, done.stderr.decode()
    return done


def answer(home: Home, told: Mapping[str, object], path: Path | None = None) -> Any:  # noqa: ANN401 - any JSON value
    """Return what Codex would read: a JSON value, or None for nothing."""
    done = ask(home, told, path=path)
    assert not list(failures(home)), done.stderr
    return json.loads(done.stdout) if done.stdout else None


def given_to(home: Home, source: str) -> str | None:
    said = answer(home, call(source=source))
    return None if said is None else said["hookSpecificOutput"]["additionalContext"]


def expected(home: Home, *digested: str) -> str:
    """Return the bundle of a view alone, or with the digest that these options ask for."""
    view = home.here("view", SESSION).stdout.decode()
    return bundle(view, home.here("digest", SESSION, *digested).stdout.decode() if digested else "")


WHOLE = ("--tokens", "4000")


def without_requests(text: str) -> str:
    """Return a bundle as it is where the history holds the user's messages."""
    return re.sub(r"\n\[REQUESTS\]\n(?:- .*\n)+", "", text)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def receipts(home: Home) -> list[Any]:
    return lines(home.checkpoint().with_name("receipts.jsonl"))


def markers(home: Home) -> list[Any]:
    return lines(home.checkpoint().with_name("markers.jsonl"))


def failures(home: Home) -> Iterator[tuple[Any, ...]]:
    for event in lines(home.state / "audit.jsonl"):
        if event["type"] == "HookFailed":
            yield event["event"], event["sessionId"], event["code"]


def grow(home: Home, *steps: r.Step, path: Path | None = None) -> None:
    """Write on behind what stands in the file of the session, or in another one of it."""
    path = path or home.path()
    *_, last = path.read_bytes().splitlines()
    with path.open("ab") as file:
        file.write(more(*steps, thread=SESSION, ordinal=json.loads(last)["ordinal"] + 1))


def window_id(number: int) -> str:
    return f"01a1f865-0000-7000-8000-{number:012x}"


def opened(number: int) -> r.Step:
    """Compact into a window of its own."""
    nothing: list[object] = []
    told = {"message": "", "replacement_history": nothing, "window_id": window_id(number)}
    return r.record("compacted", told)


def begun(form: r.Form = "paginated", base: dict[str, object] | None = None) -> r.Step:
    """Begin a session that names its first window, as Codex does."""
    below: dict[str, Any] = {} if base is None else {"history_base": base}
    return r.session(form, context_window={"window_id": window_id(0)}, **below)


def told_windows(home: Home) -> list[tuple[str, str | None]]:
    return [(each.get("source"), each["windowId"]) for each in receipts(home)]


# --- what is given -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", BEGINNING)
def test_new_window_gets_the_bundle_with_a_digest_after_a_compaction(home: Home, source: str):
    said = answer(home, call(source=source, permission_mode="never"))

    # Codex takes no other key.
    text = expected(home, *WHOLE) if source == "compact" else expected(home)
    assert said == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}
    }
    assert "Mend the sesame." in text
    assert "- [ ] Mend." in text
    (receipt,) = receipts(home)
    assert receipt.pop("at").endswith("Z")
    assert receipt == {
        "door": "hook",
        "event": "SessionStart",
        "source": source,
        "sessionId": SESSION,
        "windowId": None,
        "seq": len(WORK.splitlines()) - 1,
        "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        "size": len(text.encode()),
        "view": f"sha256:{hashlib.sha256(home.here('view', SESSION).stdout).hexdigest()}",
    }


@pytest.mark.parametrize(
    "told",
    [
        *(call(source="startup"), call(source="clear"), call("SessionEnd")),
        *(call("from the future"), call(source="resume", transcript_path=None)),
    ],
    ids=["startup", "clear", "another event", "an unknown event", "no file"],
)
def test_nothing_is_opened_without_text_to_inject(home: Home, told: dict[str, object]):
    before = snapshot(home.root)

    assert answer(home, told) is None

    assert snapshot(home.root) == before


@pytest.mark.parametrize("source", [*BEGINNING, "from the future", ""])
def test_empty_checkpoint_is_not_injected(home: Home, source: str):
    home.put(r.rollout(r.session()))

    assert given_to(home, source) is None


def test_bundle_is_repeated_only_after_a_compaction(home: Home):
    text = given_to(home, "resume")
    assert text is not None
    grow(home, r.injected(text, role="developer"), r.turn(r.user("Mend the sesame."), name="t9"))

    assert [given_to(home, source) for source in ("resume", "fork", "compact")] == [
        *(None, None, without_requests(expected(home, *WHOLE))),
    ]
    assert [receipt["digest"] is None for receipt in receipts(home)] == [False, True, True, False]


def handed_over(text: str) -> r.Step:
    return r.compacted("Handed over.", [handoff(text.partition("\n\n")[2])])


LATER: dict[str, tuple[Callable[[str], list[r.Step]], bool, tuple[str, ...]]] = {
    "the view has changed": (
        lambda text: [r.injected(text, role="developer"), r.turn(r.user("Paint it."))],
        True,
        (),
    ),
    "a compaction took it away": (
        lambda text: [
            r.injected(text, role="developer"),
            r.compacted("Done.", [{"type": "other"}]),
        ],
        True,
        (*WHOLE, "--at", "1"),
    ),
    "we made the session": (lambda text: [handed_over(text)], False, ()),
}


@pytest.mark.parametrize(("later", "is_given", "digested"), LATER.values(), ids=LATER)
def test_bundle_removed_from_the_window_is_injected_again_with_lost_records(
    home: Home, later: Callable[[str], list[r.Step]], is_given: bool, digested: tuple[str, ...]
):
    grow(home, *later(expected(home)))

    assert given_to(home, "resume") == (expected(home, *digested) if is_given else None)


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_digest_needs_a_budget(home: Home, source: str):
    home.config("hookDigestTokens = 0\n")
    grow(home, r.compacted("Done.", [{"type": "other"}]))

    assert given_to(home, source) == expected(home)


def test_bundle_may_be_in_the_base_of_a_fork(home: Home):
    grow(home, r.injected(expected(home), role="developer"))
    base = home.path().read_bytes()
    cut = r.based_on(SESSION, len(base.splitlines()), len(base))
    fork = r.rollout(r.session(thread=thread(2), forked_from_id=SESSION, history_base=cut))

    said = answer(home, call(source="fork", session_id=thread(2)), home.put(fork, 2))

    assert said is None


def test_bundle_after_a_compaction_belongs_to_its_window(home: Home):
    home.put(r.rollout(begun(), TURN, opened(1)))
    text = expected(home, *WHOLE)
    assert given_to(home, "compact") == text
    grow(home, r.injected(text, role="developer"), r.turn(r.user("Mend the sesame."), name="t9"))

    assert given_to(home, "resume") is None
    assert "- t1 #3 Mend the sesame." in text
    assert given_to(home, "compact") == without_requests(expected(home, *WHOLE))
    assert answer(home, call("PostCompact", trigger="auto")) is None

    assert told_windows(home) == [
        (source, window_id(1)) for source in ("compact", "resume", "compact", "auto")
    ]
    first, second = home.json("windows", SESSION)
    assert first["received"] is None
    assert second["received"]["source"] == "compact"


@pytest.mark.parametrize(("kept", "number"), [([TURN, opened(1)], 1), ([TURN], 0)])
def test_revert_stays_in_the_window_that_it_returns_to(home: Home, kept: list[r.Step], number: int):
    cut = r.rollout(begun(), *kept)
    ordinal = len(cut.splitlines())
    taken_back = more(r.turn(r.user("Paint it.")), opened(2), thread=SESSION, ordinal=ordinal)
    home.put(cut + taken_back)
    head = begun(base=r.based_on(SESSION, ordinal, len(cut)))
    path = home.put(r.rollout(head, r.turn(r.user("Paint it anew."))), segment=2)

    for source in ("resume", "compact"):
        said = answer(home, call(source=source), path)
        text = said["hookSpecificOutput"]["additionalContext"]
        grow(home, r.injected(text, role="developer"), path=path)

    with home.house() as house:
        assert Histories(house.sessions).history(SESSION).chain.current == window_id(number)
    assert told_windows(home) == [("resume", window_id(number)), ("compact", window_id(number))]


def test_subagent_call_concerns_its_own_thread(home: Home):
    child = r.session(thread=thread(2), parent_thread_id=SESSION)
    path = home.put(r.rollout(child, TURN, r.started("t2"), opened(1)), 2)
    own = home.checkpoint(2).with_name

    for event in ("PreCompact", "PostCompact"):
        assert answer(home, call(event, trigger="auto", agent_id=thread(2)), path) is None

    assert [each["sessionId"] for each in lines(own("receipts.jsonl"))] == [thread(2)] * 2
    assert [each["turnId"] for each in lines(own("markers.jsonl"))] == ["t1"]
    (event,) = lines(home.state / "audit.jsonl")
    assert (event["type"], event["sessionId"], event["windowId"]) == (
        *("CodexCompacted", thread(2), window_id(1)),
    )
    assert not receipts(home)


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        (thread(2), "unknown_session"),
        (thread(9), "unknown_session"),
        ("../..", "invalid_payload"),
        ("", "invalid_payload"),
        (7, "invalid_payload"),
    ],
)
def test_subagent_is_served_only_from_its_own_file(home: Home, agent: object, code: str):
    home.put(r.rollout(r.session(thread=thread(2)), TURN), 2)

    assert ask(home, call("PreCompact", trigger="auto", agent_id=agent)).stdout == b""
    assert [each for *_, each in failures(home)] == [code]


def test_prompt_gets_no_text(home: Home):
    assert answer(home, call("UserPromptSubmit", prompt="Go on.", turn_id="t2")) is None


# --- around a compaction -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_open", "settings", "marked"),
    [
        (False, "", [("t1", "before compaction", "compaction")]),
        (True, "", []),
        (False, "markBeforeCompaction = false\n", []),
    ],
    ids=["as it is", "no turn has ended", "switched off"],
)
def test_last_ended_turn_is_marked_before_a_compaction(
    home: Home, is_open: bool, settings: str, marked: list[tuple[str, ...]]
):
    ended = [] if is_open else [TURN]
    home.put(r.rollout(r.session(), *ended, r.started("t2"), r.user("Paint it.")))
    home.config(settings)

    for _ in range(2):
        assert answer(home, call("PreCompact", trigger="auto", turn_id="t2")) is None

    keys = ("turnId", "label", "origin")
    assert [tuple(each[key] for key in keys) for each in markers(home)] == marked
    assert home.stored()["task"]["text"] == "Paint it."
    assert [receipt["source"] for receipt in receipts(home)] == ["auto", "auto"]


def test_compaction_is_logged(home: Home):
    grow(home, r.turn(r.user("Paint it.")), opened(1))

    assert answer(home, call("PostCompact", trigger="auto")) is None

    (event,) = lines(home.state / "audit.jsonl")
    keys = ("type", "sessionId", "windowId", "trigger")
    assert [event[key] for key in keys] == ["CodexCompacted", SESSION, window_id(1), "auto"]
    assert b"Paint" not in (home.state / "audit.jsonl").read_bytes()
    assert home.json("audit", "--session", SESSION)[-1]["type"] == "CodexCompacted"


# --- what goes wrong -----------------------------------------------------------------------------


def hooks_state(home: Home) -> tuple[str | None, list[str]]:
    told = home.json("connect", "--status")
    return told["doors"][0]["problem"], told["problems"]


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        json.dumps(call(source="resume")).encode(),
        json.dumps(call(source="resume", session_id=7, transcript_path="/x")).encode(),
        json.dumps(call(source="resume", session_id="../..", transcript_path="/x")).encode(),
        json.dumps(call(source="resume", transcript_path="a\0b")).encode(),
        json.dumps(call(source="resume", transcript_path=["a"])).encode(),
        json.dumps(call(source="resume", prompt="x" * hook.LONGEST)).encode(),
    ],
    ids=lambda told: repr(told[:12]) if len(told) < 100 else repr(told[-24:]),
)
def test_invalid_call_is_logged_and_prints_nothing(home: Home, told: bytes):
    assert ask(home, told).stdout == b""

    code = "limit_exceeded" if len(told) > hook.LONGEST else "invalid_payload"
    assert [*failures(home)] == [(None, None, code)]


@pytest.mark.parametrize("options", [("--nonsense",), ("--codex-home",), ("more",)])
def test_wrong_command_line_blocks_no_prompt(home: Home, options: tuple[str, ...]):
    assert ask(home, call(source="resume"), *options).stdout == b""


@pytest.mark.parametrize("told", [b"garbage", call(source="resume")])
def test_failure_creates_no_codex_home(home: Home, tmp_path: Path, told: bytes | dict[str, object]):
    missing, kept = tmp_path / "none", tmp_path / "state"

    for state in (missing / "state", kept):
        ask(home, told, "--codex-home", str(missing), "--state-dir", str(state))
        assert not missing.exists()

    assert len(lines(kept / "audit.jsonl")) == 1


def test_file_outside_the_home_or_of_another_session_is_refused(home: Home, tmp_path: Path):
    other = tmp_path / home.path().name
    other.write_bytes(WORK.replace(b"sesame", b"secret"))
    paths = [
        *(other, home.root / "sessions" / ".." / ".." / other.name),
        home.put(r.rollout(r.session(thread=thread(2)), TURN), 2),
    ]
    if sys.platform != "win32":
        home.path(3).symlink_to(other)
        paths.append(home.path(3))

    for path in paths:
        done = ask(home, call(source="resume"), path=path)
        assert (done.stdout, b"secret" in done.stderr) == (b"", False)

    assert [each[1:] for each in failures(home)] == [(SESSION, "unknown_session")] * len(paths)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_home_behind_a_link_is_recognised_by_either_name(home: Home, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(home.root)

    assert answer(home, call(source="resume"), link / home.path().relative_to(home.root))


def test_failure_shows_in_the_status_until_a_call_succeeds(home: Home):
    assert home.json("connect")["written"]
    ask(home, call(source="resume", session_id=thread(9)))
    at = lines(home.state / "audit.jsonl")[-1]["at"]
    sentence = f"the hook failed at {at} for session {thread(9)}: unknown_session"
    assert hooks_state(home) == ("failed", [sentence])

    assert ask(home, call(source="resume")).stdout
    assert hooks_state(home) == (None, [])


def test_no_text_of_a_session_is_logged_or_printed(home: Home):
    for told in (
        call(source="resume"),
        call("PreCompact", prompt="sesame", session_id="x"),
        b'{"hook_event_name": "sesame", "source": "sesame"}',
        b"sesame",
    ):
        assert b"sesame" not in ask(home, told).stderr

    for name in ("audit.jsonl", f"sessions/{SESSION}/receipts.jsonl"):
        assert b"sesame" not in (home.state / name).read_bytes()


def test_hanging_call_times_out(home: Home):
    program = "from codex_checkpoints.doors import hook; hook.SECONDS = 0.2; hook.serve(None, None)"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=home.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.wait(WAIT) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""

    assert [*failures(home)] == [(None, None, "timed_out")]


# The session is slow to open; the process would answer, had it not given up.
SLOW = """
import threading
from codex_checkpoints import assembly
from codex_checkpoints.doors import hook
assemble = assembly.assemble
def slow(where):
    threading.Event().wait(30)
    return assemble(where)
assembly.assemble = slow; hook.SECONDS = 0.5; hook.serve(None, None)
"""
DEFECT = """
from codex_checkpoints import assembly
from codex_checkpoints.doors import hook
from codex_checkpoints.service.connect import hook_handler
def defect(self, call): raise KeyError('sesame')
hook_handler.HookHandler.answer = defect; hook.serve(None, None)
"""


@pytest.mark.parametrize(
    ("program", "code", "error"),
    [(SLOW, "timed_out", None), (DEFECT, "internal", "KeyError")],
    ids=["too slow", "a defect"],
)
def test_timeout_or_failure_is_logged_and_prints_nothing_later(
    home: Home, program: str, code: str, error: str | None
):
    done = alone(home, program)

    assert done.stdout == b""
    assert b"sesame" not in done.stderr
    assert [*failures(home)] == [("SessionStart", SESSION, code)]
    assert lines(home.state / "audit.jsonl")[0].get("error") == error


def test_unwritable_state_folder_does_not_prevent_the_view(home: Home):
    home.state.write_bytes(b"in the way")

    done = ask(home, call(source="resume"))

    assert b"additionalContext" in done.stdout
    assert b"not recorded" in done.stderr


def test_locked_index_does_not_prevent_the_view(home: Home, monkeypatch: pytest.MonkeyPatch):
    assert index.BUSY_SECONDS < hook.SECONDS / 2, "a call waits for it once"
    monkeypatch.setattr(index, "BUSY_SECONDS", 0.05)
    assert resumed(home, home.state)
    with closing(sqlite3.connect(home.state / "index.sqlite", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        grow(home, r.turn(r.user("Paint it.")))

        assert "Paint it." in (resumed(home, home.state) or "")


def test_closed_output_is_not_a_failure(home: Home):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = forked_python.run(
            forked_python.product("hook"),
            input=as_said(home, call(source="resume")),
            env=home.environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=WAIT,
            check=False,
        )
    finally:
        os.close(writing)

    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert not receipts(home)
    assert [code for *_, code in failures(home)] == ["not_taken"]


def test_killed_call_does_not_affect_the_next_one(home: Home):
    with home.start("hook", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(as_said(home, call(source="resume")))
        process.stdin.close()
        process.kill()

    assert given_to(home, "resume") == expected(home)


def at_once(home: Home, told: Mapping[str, object], count: int) -> list[bytes]:
    """Call the hook several times at once; what each said."""
    started = [home.start("hook", stdin=subprocess.PIPE) for _ in range(count)]
    for process in started:  # all of them wait for their call now
        assert process.stdin is not None
        process.stdin.write(as_said(home, told))
        process.stdin.flush()
    said = [process.communicate(None, WAIT)[0] for process in started]
    assert [process.returncode for process in started] == [0] * count
    return said


def test_concurrent_calls_get_equal_answers_and_make_one_marker(home: Home):
    first, second = at_once(home, call(source="resume"), 2)
    assert first == second != b""
    assert at_once(home, call("PreCompact", trigger="auto"), 4) == [b""] * 4

    assert [marker["turnId"] for marker in markers(home)] == ["t1"]
    assert len(receipts(home)) == 6
    assert not list(failures(home))
    assert home.stored()["task"]["text"] == "Mend the sesame."


# --- the digest that is kept ---------------------------------------------------------------------


def lost_some(home: Home) -> None:
    """Let the session have lost more to a compaction than its history holds."""
    grow(home, r.turn(r.patch(update="b.py"), r.shell("make", "no", exit_code=2, status="failed")))
    grow(home, r.compacted("Done.", [{"type": "other"}]), r.turn(r.user("Paint it.")))


def made_anew(home: Home) -> str | None:
    """Return what is given where nothing was kept."""
    (home.state / "index.sqlite").unlink()
    return given_to(home, "resume")


def kept(home: Home) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        return index.execute(
            "SELECT path, CAST(state AS TEXT) FROM states WHERE fold = 'digest'"
        ).fetchall()


def test_grown_session_gets_the_cached_digest_with_its_current_status(home: Home):
    lost_some(home)
    first = given_to(home, "resume")
    assert first is not None
    ((path, state),) = kept(home)
    assert path == str(home.path())
    grow(home, r.turn(r.user("Which colour?"), r.assistant("Blue or red?"), name="t9"))

    text = given_to(home, "resume")

    assert text is not None
    digest = text.partition("[SESSION_DIGEST v1]")[2]
    rest = cached_value(state)["text"].partition("[STATUS]")[2]
    assert digest.startswith("\n\n[STATUS]\n- last turn: answered asks\n- plan: last changed 1 ")
    assert digest.endswith(rest)
    assert made_anew(home) == text


def lost(home: Home) -> str:
    """Return the digest that a resumed session is given."""
    return str(given_to(home, "resume")).partition("[SESSION_DIGEST v1]")[2]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (r.turn(r.user("a"), r.assistant("Is it **blue?**"), name="t9"), "answered asks"),
        (r.turn(r.user("a"), r.assistant("Blue?"), r.assistant("Yes."), name="t9"), "answered"),
        (r.several(r.started("t9"), r.user("a"), r.assistant("Blue?")), "open"),
        (r.several(r.started("t9"), r.user("a"), r.assistant("Blue?"), r.aborted("t9")), "aborted"),
        (
            r.several(
                r.started("t9"), r.user("a"), r.event("task_complete", turn_id="t9", error={})
            ),
            "failed: no answer, and Codex recorded no reason",
        ),
    ],
)
def test_status_of_a_digest_is_current(home: Home, end: r.Step, told: str):
    lost_some(home)
    assert "- last turn: failed: no answer" in lost(home)
    grow(home, end)

    assert f"[STATUS]\n- last turn: {told}\n" in lost(home)


def test_work_since_the_compaction_is_marked_without_text(home: Home):
    lost_some(home)
    assert " exit 2: make" in lost(home)

    grow(home, r.turn(r.user("Go on."), r.patch(update="new.py")))
    assert " exit 2 before later edits: make" in lost(home)
    assert "new.py" not in lost(home)
    grow(home, r.turn(r.user("Check it."), r.shell("make", "yes")))
    assert ": make" not in lost(home)
    assert lost(home) == str(made_anew(home)).partition("[SESSION_DIGEST v1]")[2]


def pinned(home: Home) -> None:
    home.json("pin", SESSION, "--text", "Mind the sesame.")


def other_files_ignored(home: Home) -> None:
    home.config('digestIgnore = ["b.py"]\n')


def a_smaller_budget(home: Home) -> None:
    home.config("hookDigestTokens = 60\n")


def gone_on(home: Home) -> None:
    grow(home, r.turn(r.user("Dry it.")))


def unfinished(home: Home) -> None:
    with home.path().open("ab") as file:
        file.write(more(r.user("Dry it."), thread=SESSION, ordinal=900).rstrip(b"\n"))


def written_anew(home: Home) -> None:
    lines = home.path().read_bytes().replace(b"b.py", b"c.py")
    home.path().write_bytes(lines)


def compacted_again(home: Home) -> None:
    grow(home, r.compacted("Dried.", [{"type": "other"}]))


@pytest.mark.parametrize(
    "change",
    [
        *(pinned, other_files_ignored, a_smaller_budget, gone_on, unfinished, written_anew),
        compacted_again,
    ],
)
def test_cached_digest_counts_only_with_unchanged_inputs(
    home: Home, change: Callable[[Home], None]
):
    lost_some(home)
    before = given_to(home, "resume")
    change(home)

    after = given_to(home, "resume")

    assert before != after == made_anew(home)


@pytest.mark.parametrize("state", ["x'00'", "'sesame'", "'{}'", "replace(state, 'made', 'mode')"])
def test_damaged_digest_or_one_of_another_build_is_not_injected(home: Home, state: str):
    lost_some(home)
    first = given_to(home, "resume")
    with closing(sqlite3.connect(home.state / "index.sqlite")) as index:
        index.execute(f"UPDATE states SET state = {state} WHERE fold = 'digest'")
        index.commit()
    assert given_to(home, "resume") == first


def test_no_digest_is_cached_without_a_budget(home: Home):
    lost_some(home)
    given_to(home, "resume")
    home.config("hookDigestTokens = 0\n")
    given_to(home, "resume")
    assert len(kept(home)) == 1

    home.config("hookDigestTokens = 0\ndigestTokens = 0\n")
    given_to(home, "resume")

    assert kept(home) == []


def test_cached_digest_is_removed_with_its_session_file(home: Home):
    lost_some(home)
    given_to(home, "resume")
    home.path().unlink()

    home.json("sessions")

    assert kept(home) == []


# --- in parts ------------------------------------------------------------------------------------


def test_checkpoint_that_cannot_be_stored_is_reported_before_a_compaction(home: Home):
    home.checkpoint().mkdir(parents=True)
    told = Call("PreCompact", SESSION, str(home.path()), "auto")

    with home.house() as house:
        hooking = HookHandler(house.sessions)
        assert refusal(lambda: hooking.answer(told)).code == "storage_error"


VIEWS = {name: f"[SESSION_CHECKPOINT v1]\n\n[TASK]\n- {name} ü\n" for name in "AB"}
DIGEST = "[SESSION_DIGEST v1]\n\n[STATUS]\n- last turn: answered\n"
BUNDLES = {
    **{name: bundle(view) for name, view in VIEWS.items()},
    "A with a digest": bundle(VIEWS["A"], DIGEST),
}
OURS = r.compacted("Summed up.", [handoff(VIEWS["A"])])
DIGESTED = r.compacted("Summed up.", [handoff(VIEWS["B"], DIGEST)])
FORMS: tuple[r.Form, ...] = ("paginated", "legacy")
STEPS = st.one_of(
    st.sampled_from(
        [
            r.turn(r.user("Go on."), r.assistant("Done.")),
            r.injected("Theirs.", role="developer"),
            r.compacted("Summed up.", []),
            opened(1),
            opened(2),
            OURS,
            DIGESTED,
            r.compacted("As of old."),
            r.rollback(1),
            r.assistant(BUNDLES["A"]),
            r.shell("cat notes", json.dumps({"type": "compacted", "payload": {"x": 1}})),
            r.shell("cat notes", "x" * 70_000),
        ]
    ),
    st.sampled_from([r.injected(text, role="developer") for text in BUNDLES.values()]),
)


@example("paginated", [r.rollback(1), OURS])
@example("legacy", [opened(1), r.turn(r.user("Go on.")), r.rollback(1), opened(2)])
@given(st.sampled_from(FORMS), st.lists(STEPS, max_size=8))
def test_tail_of_a_session_gives_the_same_as_the_whole(form: r.Form, steps: list[r.Step]):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        home = Home(Path(folder))
        patched.setattr(current_window, "_LONG", 0)
        for so_far in (steps[: len(steps) // 2], steps):  # what a search found is kept for the next
            home.put(r.rollout(begun(form), r.turn(r.user("Mend it.")), *so_far))
            with home.house() as house:
                row = house.sessions.find(SESSION)
                whole = Histories(house.sessions).history(SESSION)
                for view in VIEWS.values():
                    window = window_of(house.sessions, row, view)
                    stands = shows(last_bundle(window.items), view)
                    assert stands == shows(last_bundle(whole.items), view)
                    assert window.window_id == whole.chain.current


def test_start_of_the_window_is_not_searched_twice_in_the_same_bytes(home: Home):
    home.put(r.rollout(r.session(), TURN, r.turn(*[r.shell("make", "y" * 4000)] * 600)))
    searched: list[int] = []

    def look() -> None:
        with home.house() as house, pytest.MonkeyPatch.context() as patched:
            row = house.sessions.find(SESSION)
            patched.setattr(current_window, "bytes_between", counted)
            window_of(house.sessions, row, VIEWS["A"])

    def counted(reader: RolloutReader, path: str, start: int, end: int) -> bytes:
        searched.append(end - start)
        return bytes_between(reader, path, start, end)

    look()
    assert sum(searched) > 1 << 20
    searched.clear()
    grow(home, r.turn(r.user("Go on.")))
    look()
    assert 0 < sum(searched) < 1 << 12


def resumed(home: Home, state: Path) -> str | None:
    """Return what a session is given on a resume, by a process with this state folder."""
    house = assembly.assemble(Places(str(home.root), str(state)))
    try:
        hooking = HookHandler(house.sessions)
        return hooking.answer(Call("SessionStart", SESSION, str(home.path()), "resume")).text
    finally:
        house.sessions.close()


WENT_ON = st.sampled_from(
    [
        r.turn(r.user("Go on."), r.assistant("Done.")),
        r.turn(r.user("Go on."), r.plan(("Mend.", False)), r.assistant("Or not?")),
        r.turn(r.user("Mend it."), r.patch(update="a.py")),
        r.turn(r.user("Paint it."), r.patch(add="b.py"), r.patch(delete="a.py")),
        r.turn(r.user("Check."), r.shell("make", "no", exit_code=2, status="failed")),
        r.turn(r.user("Check."), r.shell("make", "yes")),
        r.turn(r.user("Look."), r.shell("cat a.py", "sesame_opens = 1", reads=["a.py"])),
        r.several(r.started(), r.user("Wait."), r.aborted()),
        r.several(r.started(), r.user("Wait.")),
        r.assistant("And so on."),
        r.compacted("Summed up.", []),
        r.compacted("Summed up.", []),
        opened(2),
        DIGESTED,
        r.injected(BUNDLES["A"], role="developer"),
        r.compacted("As of old."),
        r.rollback(1),
        r.rollback(2),
        r.tokens(1000),
        r.blank(),
        r.raw(b"not json\n"),
    ]
)


def check_every_step(form: r.Form, steps: list[r.Step], near: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        home = Home(Path(folder))
        for count in range(len(steps) + 1):
            patched.setattr(current_window, "_LONG", 0)
            data = r.rollout(begun(form), TURN, *steps[:count])
            path = home.put(data)
            anew = Path(folder, f"anew-{count}")
            whole = resumed(home, anew)
            assert resumed(home, home.state) == whole
            place = data.rfind(b"\n", 0, max(0, data.rfind(COMPACTION))) + 1
            if near is not None and place > 1:
                patched.setattr(digests, "_NEAR", place - 1)
                assert resumed(home, Path(folder, f"near-{count}")) == whole
                patched.undo()
            assert path.read_bytes() == data


@example("paginated", [opened(1), r.turn(r.user("Go on.")), r.rollback(2)], 1)
@example("legacy", [r.compacted("Summed up.", []), r.turn(r.user("a"), r.assistant("b?"))], 1)
@given(st.sampled_from(FORMS), st.lists(WENT_ON, max_size=9), st.sampled_from([None, 1]))
def test_digest_from_the_cache_or_the_tail_equals_a_full_one(
    form: r.Form, steps: list[r.Step], near: int | None
):
    check_every_step(form, steps, near)
