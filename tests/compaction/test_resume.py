"""The check between two turns: who is offered a compaction, and the steps before a resume."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homes import Home, go_on, on_a_terminal, snapshot, thread
from peer import Peer
from rollouts import (
    Step,
    aborted,
    assistant,
    call,
    event,
    output,
    plan,
    rollout,
    session,
    shell,
    started,
    tokens,
    turn,
    user,
)

WORK = "I looked at every file of it. " * 400
SMALL = 10_000
"""A window whose trigger is 5,625 tokens, so that a small session is too full."""
TRIGGER = 5_625

Ask = Callable[[Home, str], dict[str, Any]]


def full(*more: Step, used: int = 6_000, number: int = 1) -> bytes:
    """Write a session that fills its window with `used` tokens, and what comes behind."""
    return rollout(
        session(thread=thread(number)),
        turn(user("Fix the login"), plan(("Fix it", False)), shell("make"), assistant(WORK)),
        turn(user("And the logout"), assistant(WORK), tokens(used, window=SMALL)),
        *more,
    )


def by_command(home: Home, session_id: str) -> dict[str, Any]:
    return home.json("resume", session_id)


def by_request(home: Home, session_id: str) -> dict[str, Any]:
    with Peer(home.root) as peer:
        peer.start()
        return peer.call("checkpoints/resume", {"sessionId": session_id})


@pytest.fixture(params=[by_command, by_request], ids=["command line", "editor"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param


AUTOMATIC = 'compactionOffer = "automatic"'


@pytest.fixture
def due(home: Home) -> Home:
    """Hold a session that is due, where compacting is automatic."""
    home.put(full())
    home.config(AUTOMATIC)
    return home


def listed(home: Home, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as `Home.run`
    (found,) = [each for each in home.json("sessions", **more) if each["sessionId"] == thread(1)]
    return found


def gone_on(home: Home, session_id: str, **more: Any) -> tuple[str, str]:  # noqa: ANN401 - as `Home.run`
    """Go on with a session by the command itself; return which one that is, and what is told."""
    done = home.run("resume", session_id, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().removeprefix("codex resume ").strip(), done.stderr.decode()


def rollouts_of(home: Home) -> dict[str, str]:
    return snapshot(home.root / "sessions")


# --- who is offered one --------------------------------------------------------------------------


def test_list_shows_the_reason_for_a_compaction(home: Home):
    home.put(full())

    row = listed(home)

    assert row["offer"] == {
        "tokens": 6_000,
        "tokensSource": "reported",
        "trigger": TRIGGER,
        "target": 4_500,
        "window": SMALL,
        "windowSource": "advertised",
    }
    assert (row["nearlyFull"], row["contextTokens"]) == (True, 6_000)


def cumulative(total: int, last: int) -> Step:
    used = {"input_tokens": last - 11, "total_tokens": last}
    whole = {"input_tokens": total, "total_tokens": total}
    told = {"total_token_usage": whole, "last_token_usage": used, "model_context_window": SMALL}
    return event("token_count", info=told, rate_limits=None)


REPORT = tokens(6_000, window=SMALL)
OPEN: dict[str, tuple[Step, ...]] = {
    "runs": (started(), user("And now?"), REPORT),
    "waits for a call": (started(), user("And now?"), call("exec_command", {}, "c9"), REPORT),
    "was begun": (started(), REPORT),
}
NOTHING: dict[str, tuple[Step, ...]] = {
    "a small last call of a long session": (cumulative(9_000_000, 900),),
    "more than the window holds": (tokens(SMALL + 1, window=SMALL),),
    "a larger model since": (turn(user("go on"), tokens(6_000, window=272_000)),),
}


@pytest.mark.parametrize("how", OPEN)
def test_nothing_is_offered_during_a_turn(home: Home, how: str):
    home.put(full(*OPEN[how]))
    row = listed(home)
    assert (row["offer"], row["nearlyFull"]) == (None, True)

    home.put(full(*OPEN[how], aborted()))
    assert listed(home)["offer"]["tokens"] == 6_000


@pytest.mark.parametrize("how", NOTHING)
def test_other_token_reports_cause_no_offer(home: Home, how: str):
    home.put(full(*NOTHING[how]))

    row = listed(home)

    assert (row["offer"], row["nearlyFull"]) == (None, False)


def test_nothing_is_offered_after_a_compaction_until_the_next_report(home: Home):
    path = home.put(full())
    home.json("compact", thread(1), "--into", "in-place")
    assert listed(home)["offer"] is None

    go_on(path, thread(1), turn(user("go on"), assistant(WORK), tokens(7_000, window=SMALL)))

    assert listed(home)["offer"]["tokens"] == 7_000


@pytest.mark.parametrize(
    ("config", "variable", "window", "source"),
    [
        ("", None, SMALL, "advertised"),
        ("", "8000", 8_000, "environment"),
        ("contextWindowTokens = 7000", "8000", 7_000, "setting"),
        ("contextWindowTokens = 7000", None, 7_000, "setting"),
        ("", "-8000", SMALL, "advertised"),
        ("", "much", SMALL, "advertised"),
        ("contextWindowTokens = -1", "much", SMALL, "advertised"),
    ],
)
def test_settings_override_the_environment_and_it_overrides_the_model(
    home: Home, config: str, variable: str | None, window: int, source: str
):
    home.put(full())
    home.config(config)
    env = {"AI_MODEL_CONTEXT_WINDOW_TOKENS": variable}

    row = listed(home, env=env)

    assert (row["offer"]["window"], row["offer"]["windowSource"]) == (window, source)
    assert row["contextWindow"] == window  # how full it is shown to be fits what is offered


def test_details_show_both_windows_and_their_sources(home: Home):
    home.put(full())
    env = {"AI_FAST_MODEL_CONTEXT_WINDOW_TOKENS": "64000"}

    with Peer(home.root, env=env) as peer:
        peer.start()
        shown = peer.call("checkpoints/session", {"sessionId": thread(1)})

    assert shown["summary"]["offer"]["tokens"] == 6_000
    told = [
        [shown[name][key] for key in ("window", "windowSource", "reserve", "trigger", "target")]
        for name in ("budget", "outlineBudget")
    ]
    assert told == [
        [SMALL, "advertised", 2_500, TRIGGER, 4_500],
        [64_000, "environment", 16_000, 36_000, 28_800],
    ]


def test_variable_that_is_not_a_number_is_reported_and_ignored(home: Home):
    home.put(full())
    env = {"AI_MODEL_CONTEXT_WINDOW_TOKENS": "0", "AI_FAST_MODEL_CONTEXT_WINDOW_TOKENS": "many"}

    found = home.json("doctor", env=env)["findings"]

    told = [each["message"] for each in found if each["code"] == "bad_variable"]
    assert [message.split()[0] for message in told] == list(env)
    words = [message.removesuffix(".") for message in told]
    warned = home.run("compact", thread(1), "--dry-run", env=env)
    assert warned.stderr.decode().splitlines() == words


@pytest.mark.parametrize("setting", ["off", "automatic"])
def test_resume_reports_an_invalid_variable_once_in_the_same_words(home: Home, setting: str):
    home.put(full())
    home.config(f'compactionOffer = "{setting}"')
    env = {"AI_MODEL_CONTEXT_WINDOW_TOKENS": "much"}
    words = home.run("compact", thread(1), "--dry-run", env=env).stderr.decode()

    line = home.run("resume", thread(1), env=env)
    as_json = home.run("resume", thread(1), "--json", env=env)

    assert words.startswith("AI_MODEL_CONTEXT_WINDOW_TOKENS is not a positive whole number")
    assert line.stdout.decode().startswith("codex resume ")
    assert line.stderr.decode().startswith(words)
    assert line.stderr.decode().count("AI_MODEL_CONTEXT_WINDOW_TOKENS") == 1
    assert as_json.stderr.decode() == words


# --- before a resume -----------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["off", "offer", None])
def test_nothing_is_compacted_automatically_unless_enabled(
    home: Home, ask: Ask, setting: str | None
):
    home.put(full())
    home.config("" if setting is None else f'compactionOffer = "{setting}"')
    before = rollouts_of(home)

    ready = ask(home, thread(1))

    assert rollouts_of(home) == before
    assert home.audited() == []
    assert (ready["sessionId"], ready["sourceSessionId"]) == (thread(1), thread(1))
    assert ready["resume"] == f"codex resume {thread(1)}"
    assert ready["cwd"] == "/home/ana/shop"
    assert ready["compacted"] is None
    if setting == "off":
        assert (ready["offer"], ready["notice"]) == (None, None)
    else:
        assert ready["offer"]["tokens"] == 6_000
        assert "6,000 of 10,000 tokens" in ready["notice"]


@pytest.mark.parametrize("way", ["command line", "editor"])
def test_automatic_mode_compacts_into_a_new_session_and_reports_it(due: Home, way: str):
    data = due.path().read_bytes()

    if way == "editor":
        ready = by_request(due, thread(1))
        done, new = ready["compacted"], ready["sessionId"]
        assert (done["into"], done["strategy"], done["sessionId"]) == ("new", "checkpoint", new)
        assert (ready["resume"], ready["offer"]) == (f"codex resume {new}", None)
        assert "Compacted" in ready["notice"]
        assert due.json("history", new)["items"] == done["replacement"]
    else:
        new, told = gone_on(due, thread(1))
        operation = due.audited()[0]["operationId"]
        assert "\nCompacted before going on" in told
        assert told.endswith(f"codex-checkpoints uncompact {operation}\n")

    (event,) = due.audited()
    assert due.path().read_bytes() == data
    assert new == event["sessionId"] != thread(1)
    assert (event["type"], event["requestedBy"]) == ("CompactionInstalled", "automatic")
    assert event["placement"] == "pre_turn"
    assert [each["trigger"] for each in due.json("windows", new)] == [None, "pre_turn"]


def files_of(home: Home) -> set[Path]:
    """Return the files of a home; those that a database in use has beside it come and go."""
    return {path for path in home.root.rglob("*") if not path.name.startswith("index.sqlite-")}


def test_json_reports_a_due_compaction_without_making_it(due: Home):
    would = due.json("compact", thread(1), "--dry-run")
    before, files = rollouts_of(due), files_of(due)

    ready = by_command(due, thread(1))

    told = ready["compacted"]
    assert (rollouts_of(due), files_of(due)) == (before, files)
    assert {told["compactionId"], told["sessionId"], told["resume"]} == {None}
    assert (told["placement"], told["into"]) == ("pre_turn", "new")
    for key in ("replacement", "tokensAfter", "bound"):
        assert told[key] == would[key]
    assert (ready["sessionId"], ready["resume"]) == (thread(1), f"codex resume {thread(1)}")
    assert (ready["offer"]["tokens"], ready["notCompacted"]) == (6_000, None)
    assert f"it would be compacted to {would['tokensAfter']:,}" in ready["notice"]


def test_printing_a_command_changes_nothing_and_reports_a_due_compaction(due: Home):
    due.json("sessions")
    before, files = rollouts_of(due), files_of(due)

    done = due.run("resume", thread(1), "--print")

    assert (rollouts_of(due), files_of(due)) == (before, files)
    assert done.stdout.decode() == f"codex resume {thread(1)}\n"
    gone, line = done.stderr.decode().splitlines()
    assert gone == "/home/ana/shop is gone: Codex goes on in the folder where you run it."
    assert line.startswith("6,000 of 10,000 tokens are in use; it would be compacted")
    assert line.endswith(f"codex-checkpoints resume {thread(1)}")


def test_expected_refusal_of_a_compaction_is_reported_in_advance(home: Home, ask: Ask):
    home.put(rollout(session(thread=thread(1)), turn(user("Hi"), tokens(6_000, window=SMALL))))
    home.config(AUTOMATIC)

    assert ask(home, thread(1))["notCompacted"]["code"] == "not_smaller"


def test_session_that_continues_elsewhere_is_not_compacted_again(due: Home, ask: Ask):
    new, _ = gone_on(due, thread(1))
    before = rollouts_of(due)

    again = ask(due, thread(1))
    by_the_command = gone_on(due, thread(1))

    assert rollouts_of(due) == before
    assert (again["continuedBy"], again["resume"]) == (new, f"codex resume {thread(1)}")
    assert new in again["notice"]
    assert by_the_command[0] == thread(1)
    assert ask(due, new)["compacted"] is None
    assert gone_on(due, new)[0] == new


def test_session_loaded_in_codex_gets_only_a_hint(due: Home, ask: Ask):
    before = rollouts_of(due)

    with due.loaded():
        ready = ask(due, thread(1))

    assert rollouts_of(due) == before
    assert (ready["live"], ready["compacted"]) == (True, None)
    assert ready["offer"]["tokens"] == 6_000
    assert "open in Codex" in ready["notice"]


@pytest.mark.parametrize("how", OPEN)
def test_automatic_mode_skips_a_session_during_a_turn(due: Home, ask: Ask, how: str):
    due.put(full(*OPEN[how]))
    before = rollouts_of(due)

    ready = ask(due, thread(1))

    assert rollouts_of(due) == before
    assert (ready["offer"], ready["compacted"]) == (None, None)


def test_compaction_blocked_by_a_hook_is_reported_and_the_session_resumes(home: Home):
    home.put(full())
    told = home.user / "told"
    script = home.user / "hook.sh"
    stop = """echo '{"continue":false,"stopReason":"not today"}'"""
    script.write_text(f"#!/bin/sh\ncat > '{told}'\n{stop}\n")
    script.chmod(0o755)
    home.config(f'{AUTOMATIC}\n[[hooks.preCompact]]\ncommand = ["{script}"]\n')

    foretold = by_command(home, thread(1))
    assert not told.exists()  # who only asks asks no hook
    new, line = gone_on(home, thread(1))
    assert json.loads(told.read_bytes())["trigger"] == "auto"
    told.unlink()
    ready = by_request(home, thread(1))

    assert foretold["notCompacted"] is None
    assert (new, "not today" in line) == (thread(1), True)
    assert json.loads(told.read_bytes())["trigger"] == "auto"
    assert ready["notCompacted"]["code"] == "blocked_by_hook"
    assert "not today" in ready["notice"]
    assert (ready["sessionId"], ready["compacted"]) == (thread(1), None)


def test_archived_session_is_not_resumed(home: Home):
    home.put(full(), archived=True)

    refused = home.run("resume", thread(1), "--json")

    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert (error["code"], error["facts"]["reason"]) == ("conflict", "archived")


def test_session_that_codex_refuses_is_compacted_instead_of_resumed(home: Home):
    turns = turn(user("Fix the login"), shell("make", "PLAIN")), turn(user("And the logout"))
    home.put(rollout(session("legacy"), *turns).replace(b"PLAIN", b"\xff\xfe"))

    refused = home.run("resume", thread(1), "--json")

    error = json.loads(refused.stdout)["error"]
    assert (error["code"], error["facts"]["reason"]) == ("conflict", "refused")
    assert f"`codex-checkpoints compact {thread(1)}`" in error["facts"]["hint"]
    made = home.json("compact", thread(1), "--force")["sessionId"]
    assert home.json("resume", made)["sessionId"] == made


@pytest.mark.parametrize(
    "name",
    [
        *("--dangerously-bypass-approvals-and-sandbox", "x; touch here", "$(touch here)"),
        *("a\nb", "../a"),
    ],
)
def test_session_named_like_an_option_or_a_command_is_not_resumed(home: Home, name: str):
    home.put(rollout(session(thread=name), turn(user("Hello"), assistant(WORK))))

    refused = home.run("resume", "--print", str(home.path()), "--json")
    with Peer(home.root) as peer:
        peer.start()
        error = peer.error("checkpoints/resume", {"sessionId": str(home.path())})

    assert refused.returncode == 1
    for told in (json.loads(refused.stdout)["error"], error["data"]):
        assert (told["code"], told["facts"]["reason"]) == ("conflict", "no_id")


def test_no_text_of_a_session_and_no_tool_starts_a_compaction(home: Home, ask: Ask):
    asking = turn(
        user("/compact"),
        call("compact", {"sessionId": thread(1)}, "c1"),
        output("c1", "please run codex-checkpoints compact"),
        assistant("Compacting now. /compact " + WORK),
        tokens(900, window=SMALL),
    )
    home.put(rollout(session(thread=thread(1)), asking))
    home.config(AUTOMATIC)
    before = rollouts_of(home)

    ready = ask(home, thread(1))
    home.json("sessions")
    home.run("view", thread(1))

    assert rollouts_of(home) == before
    assert (ready["offer"], ready["compacted"]) == (None, None)
    assert home.audited() == []


def test_editor_chooses_with_its_own_settings_and_gets_the_result(home: Home):
    home.put(full())
    with Peer(home.root) as peer:
        peer.start({"settings": {"compactionOffer": "automatic"}})
        ready = peer.call("checkpoints/resume", {"sessionId": thread(1), "workDoneToken": "t"})
        told: set[str] = set()
        while not told >= {thread(1), ready["sessionId"]}:
            told |= set(peer.heard("checkpoints/changed")["sessionIds"])
        done = {"compactionId": ready["compacted"]["compactionId"]}
        undone = peer.call("checkpoints/uncompact", done)
        again = peer.call("checkpoints/session", {"sessionId": thread(1)})["summary"]

    assert undone["sessionId"] == thread(1)
    assert (again["continuedBy"], again["offer"]["tokens"]) == (None, 6_000)


# --- the command line ----------------------------------------------------------------------------


def codex(home: Home) -> Path:
    """Put a Codex on a PATH of its own that notes how it was started; return the folder."""
    folder = home.user / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "codex"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" "$PWD" "$CODEX_HOME" > "{home.user}/started"\nexit 7\n'
    )
    program.chmod(0o755)
    return folder


posix = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo terminal")


@posix
def test_terminal_starts_codex_in_the_folder_of_the_session(home: Home):
    folder = home.user / "shop"
    folder.mkdir()
    home.put(rollout(session(thread=thread(1), cwd=str(folder)), turn(user("hello"))))

    done, _ = on_a_terminal(home, "resume", thread(1), env={"PATH": str(codex(home))})

    started = (home.user / "started").read_text().splitlines()
    assert started == ["resume", thread(1), str(folder.resolve()), str(home.root)]
    assert done.returncode == 7
    assert done.stderr == b""


@posix
def test_terminal_shows_a_hint_as_one_line_with_its_command(home: Home):
    home.put(full())

    done, _ = on_a_terminal(home, "resume", thread(1), env={"PATH": str(codex(home))})

    hint, where = done.stderr.decode().splitlines()
    assert hint.endswith(f"codex-checkpoints compact {thread(1)}")
    assert where.startswith("/home/ana/shop")  # a folder that is not there
    assert (home.user / "started").exists()


@posix
def test_terminal_continues_with_the_new_session_in_automatic_mode(due: Home):
    on_a_terminal(due, "resume", thread(1), env={"PATH": str(codex(due))})

    (new,) = [each for each in due.json("sessions") if each["sessionId"] != thread(1)]
    assert (due.user / "started").read_text().splitlines()[:2] == ["resume", new["sessionId"]]


@posix
def test_nothing_starts_without_codex(due: Home):
    before = rollouts_of(due)

    done, _ = on_a_terminal(due, "resume", thread(1), env={"PATH": str(due.user)})

    assert done.returncode == 1
    assert done.stderr.endswith(b" [codex_not_found]\n")
    assert rollouts_of(due) == before


@pytest.mark.parametrize("arguments", [(), ("--print",)])
def test_command_is_printed_outside_a_terminal(home: Home, arguments: tuple[str, ...]):
    home.put(full())

    done = home.run("resume", thread(1), *arguments, env={"PATH": str(codex(home))})

    assert done.stdout.decode() == f"codex resume {thread(1)}\n"
    assert done.stderr.decode().count("\n") == 2
    assert not (home.user / "started").exists()


def test_printed_command_changes_to_the_folder_of_the_session(home: Home):
    folder = home.user / "my shop"
    folder.mkdir()
    home.put(rollout(session(thread=thread(1), cwd=str(folder)), turn(user("Fix the shop"))))

    done = home.here("resume", thread(1), "--print")

    assert done.stdout.decode() == f"cd '{folder}' && codex resume {thread(1)}\n"
    assert done.stderr == b""
    told = home.json("resume", thread(1))
    assert (told["cwd"], told["cwdGone"]) == (str(folder), False)


def test_missing_folder_is_named(home: Home):
    home.put(rollout(session(thread=thread(1), cwd="/home/ana/gone"), turn(user("Fix the shop"))))

    done = home.here("resume", thread(1), "--print")

    assert done.stdout.decode() == f"codex resume {thread(1)}\n"
    assert done.stderr.decode().startswith("/home/ana/gone is gone: ")
    assert home.json("resume", thread(1))["cwdGone"] is True
