"""The command line as its users start it: a process, its output, its exit code, its files."""

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from codex_checkpoints import __version__
from codex_checkpoints.doors.cli import COMMANDS as TABLE
from codex_checkpoints.doors.cli import main
from codex_checkpoints.sections.terminal import Bar, columns
from codex_checkpoints.service.reading.session_index import IndexProgress
from codex_checkpoints.service.sessions.sessions import Sessions
from homes import (
    WAIT,
    Home,
    chat,
    eventually,
    following,
    more,
    on_a_terminal,
    snapshot,
    summary,
    thread,
)
from peer import Peer
from rollouts import (
    compacted,
    environment,
    event,
    patch,
    plan,
    raw,
    rollout,
    session,
    shell,
    started,
    tokens,
    turn,
    turn_context,
    user,
)
from updates import fact

LISTED = [
    *("sessionId", "path", "cwd", "title", "task", "updatedAt", "cliVersion", "model"),
    *("contextTokens", "contextTokensSource", "contextWindow", "windows", "compactions"),
    *("suspectFacts", "live", "archived", "forkedFrom", "parentSession"),
    *("source", "background"),
    *("continuedBy", "turns", "seq", "named", "markers", "branches", "madeBy", "undone"),
    *("nearlyFull", "overWindow", "refused", "git", "offer", "startFolder", "fileTime"),
]

COMMANDS = [
    *("sessions", "show", "view", "apply", "notes", "rename", "archive", "unarchive", "delete"),
    *("watch", "connect", "doctor", "serve", "mcp", "hook"),
]

CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

NO_NETWORK = """
import socket

class Socket(socket.socket):
    def __init__(self, family=-1, *arguments, **more):
        if family != getattr(socket, "AF_UNIX", None):
            raise RuntimeError("the network was asked for")
        super().__init__(family, *arguments, **more)

socket.socket = Socket
socket.create_connection = socket.getaddrinfo = None
"""


@pytest.fixture
def home(home: Home) -> Home:
    steps = (turn_context(), user("why does login fail?"), patch(add="auth.py"), tokens(1000))
    home.put(rollout(session(thread=thread(1)), turn(*steps), turn(user("fix it for everybody"))))
    return home


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what went to stderr; a traceback is a defect whatever else is expected."""
    text = done.stderr.decode()
    assert "Traceback" not in text, text
    return text


def error(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert done.returncode == 1, (done.returncode, done.stdout)
    assert said(done) == ""
    document = json.loads(done.stdout)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["code", "message", "facts"]
    return document["error"]


# --- sessions ------------------------------------------------------------------------------------


def test_sessions_prints_exactly_the_keys_of_the_interfaces_page(home: Home) -> None:
    (only,) = home.json("sessions")

    assert list(only) == LISTED
    assert only == summary(
        home,
        title="why does login fail?",
        task="fix it for everybody",
        updatedAt="2026-11-20T10:00:13.000Z",
        seq=13,
    )


def test_unknown_value_is_null_and_not_omitted(home: Home) -> None:
    home.put(rollout(session("bare", thread=thread(1))))

    (only,) = home.json("sessions")

    assert list(only) == LISTED
    assert [key for key in LISTED if only[key] is None] == [
        *("cwd", "title", "task", "cliVersion", "model", "contextTokens", "contextWindow"),
        *(
            "forkedFrom",
            "parentSession",
            "source",
            "continuedBy",
            "madeBy",
            "refused",
            "git",
            "offer",
            "startFolder",
        ),
    ]


def test_session_shows_its_first_repository_without_the_password(home: Home) -> None:
    url = "https://ana:hunter2x@git.example.org/shop.git"
    git = {"commit_hash": "4f1c0de9", "branch": "main\n", "repository_url": url}
    home.put(rollout(session(thread=thread(1), git=git), turn(user("Fix it."))))

    (only,) = home.json("sessions")

    url = "https://[redacted]@git.example.org/shop.git"
    assert only["git"] == {"commit": "4f1c0de9", "branch": "main", "repositoryUrl": url}


def test_impossible_token_count_is_flagged_and_gives_no_percentage(home: Home) -> None:
    steps = (turn(user("Fix it."), tokens(900_001, window=272_000)),)
    home.put(rollout(session(thread=thread(1)), *steps))

    (only,) = home.json("sessions")
    (found,) = (each for each in home.json("doctor")["findings"] if each["code"] == "over_window")

    assert (only["overWindow"], only["nearlyFull"], only["offer"]) == (True, False, None)
    assert (found["severity"], found["path"], found["count"]) == ("warning", only["path"], 1)
    assert b">100%" in home.run("sessions").stdout


def test_sessions_prints_one_line_each_for_people(home: Home) -> None:
    home.put(chat("日本語のタイトル", 2, cwd=None), 2)

    done = home.run("sessions")

    assert (done.returncode, said(done)) == (0, "")
    first, second = done.stdout.decode().splitlines()
    assert all(word in first for word in ("why does login fail?", "shop", "0%"))
    assert "日本語のタイトル" in second
    assert "\x1b" not in done.stdout.decode()


def test_options_filter_sessions(home: Home) -> None:
    home.put(chat("two", 2, cwd="C:\\work\\two"), 2)
    home.put(chat("three", 3), 3, archived=True)

    def titles(*options: str) -> list[str]:
        return [
            item["title"] for item in json.loads(home.here("sessions", *options, "--json").stdout)
        ]

    assert titles() == ["why does login fail?", "two"]
    assert titles("--limit", "1") == ["why does login fail?"]
    assert titles("--archived") == ["three"]
    assert titles("--search", "LOGIN") == ["why does login fail?"]
    assert titles("--cwd", "/home/ana") == ["why does login fail?"]
    assert titles("--cwd", "c:\\WORK") == ["two"]
    assert titles("--cwd", "shop", "--search", "login") == []


def test_limit_keeps_the_first_lines_of_the_list(home: Home) -> None:
    home.put(chat("the latest record", 2), 2)
    marker = home.json("mark", thread(1), "--label", "start")["checkpointId"]
    made = home.json("restore", thread(1), marker, "--mode", "soft")["sessionId"]

    lines = home.run("sessions").stdout.decode().splitlines()

    assert len(lines) == 3
    assert made[:13] in lines[0]
    for most in (1, 2):
        found = home.run("sessions", "--limit", str(most)).stdout.decode().splitlines()
        assert [each.split() for each in found] == [each.split() for each in lines[:most]]


def test_relative_folder_is_resolved_against_the_working_directory(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / "api").mkdir(parents=True)
    home.put(chat("here", 2, cwd=str(tmp_path / "shop")), 2)

    def count(cwd: str) -> int:
        return len(json.loads(home.here("sessions", "--cwd", cwd, "--json").stdout))

    monkeypatch.chdir(tmp_path / "shop")
    assert (count("."), count(".."), count("api")) == (1, 1, 0)
    monkeypatch.chdir(tmp_path / "shop" / "api")
    assert (count("."), count("..")) == (0, 1)


@pytest.mark.parametrize("way", ["--codex-home", "CODEX_HOME"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_empty_or_missing_home_prints_an_empty_list_with_a_hint(
    home: Home, way: str, form: list[str]
) -> None:
    missing, printed = home.root / "mistyped", b"[]\n" if form else b""
    home.path().unlink()
    done = home.here("sessions", *form)
    assert (done.returncode, done.stdout, str(home.root) in said(done)) == (0, printed, not form)
    named, env = ([way, str(missing)], {}) if way == "--codex-home" else ([], {way: str(missing)})

    done = home.here("sessions", *named, *form, env=env)

    assert (done.returncode, done.stdout) == (0, printed)
    assert said(done).splitlines()[0] == f"there is no folder {missing}"
    assert not missing.exists()


LOADED = """
import os, sys
os._exit = sys.exit
from codex_checkpoints import __main__ as command
try:
    command.main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def loaded_by(home: Home, *arguments: str) -> set[str]:
    """Return the modules that a command loads."""
    words = [sys.executable, "-c", LOADED, *arguments]
    done = home.alone(*words)
    assert done.returncode == 0, said(done)
    return set(done.stderr.decode().split())


def test_version_loads_no_service(home: Home) -> None:
    assert "codex_checkpoints.assembly" not in loaded_by(home, "--version")


def test_only_serve_imports_pygls(home: Home) -> None:
    assert loaded_by(home, "--help") & {"pygls", "lsprotocol"} == set()
    assert loaded_by(home, "view", thread(1)) & {"pygls", "lsprotocol", "asyncio"} == set()


def test_command_table_names_every_command_of_its_modules() -> None:
    for name, command in TABLE.items():
        module = importlib.import_module(f"codex_checkpoints.doors.cli.{command.module}")
        source = inspect.getsource(module)
        assert f'"{name}"' in source


def test_help_imports_no_module_of_a_command() -> None:
    program = (
        "import sys; from codex_checkpoints.doors import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = done.stderr.decode().split()

    assert "codex_checkpoints.doors.cli" in loaded
    assert {f"codex_checkpoints.doors.cli.{each.module}" for each in TABLE.values()}.isdisjoint(
        loaded
    )


# --- show and view -------------------------------------------------------------------------------


def test_show_prints_the_bytes_of_the_stored_checkpoint(home: Home) -> None:
    done = home.run("show", thread(1))

    assert (done.returncode, said(done)) == (0, "")
    assert done.stdout == home.checkpoint().read_bytes()
    assert list(json.loads(done.stdout)) == [
        *("schemaVersion", "seq", "task", "plan", "decisions", "artifacts", "facts"),
        "recentArtifacts",
    ]
    for name in (thread(1)[:8], home.path().name):
        assert home.run("show", name, cwd=home.path().parent).stdout == done.stdout


def test_show_and_view_print_the_same_bytes_in_any_environment(home: Home, tmp_path: Path) -> None:
    home.remember([fact("known", seq=3), fact("ünïcode", "日本", seq=4)])
    worlds: list[dict[str, str | None]] = [
        {},
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "Asia/Kolkata"},
        {"PYTHONHASHSEED": "99", "TZ": "America/St_Johns", "PYTHONIOENCODING": "latin-1"},
    ]
    for command in (("show", thread(1)), ("view", thread(1), "--at", "1")):
        printed = {
            home.run(*command, env=world, cwd=place).stdout
            for world, place in zip(worlds, (tmp_path, "/", home.user), strict=True)
        }
        assert len(printed) == 1
        assert printed != {b""}


def test_view_prints_the_view(home: Home) -> None:
    steps = (user("x"), plan(("one", True), ("two", False)))
    home.put(rollout(session(thread=thread(1)), turn(*steps)))

    done = home.run("view", thread(1), "--caps", '{"maxDonePlanSteps": 0}')

    assert (done.returncode, said(done)) == (0, "")
    assert done.stdout.decode() == (
        "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- x\n\n[PLAN]\n- [ ] two (id=s2)\n\n"
        "[RECENT_ARTIFACTS]\n\n[DECISIONS]\n\n[FACTS_VALID]\n\n[FACTS_SUSPECT]\n"
    )


_WAYS_OUT = {
    "unknown_session": (
        "`sessions` lists them; give an id, at least its first 8 characters, or a whole name."
    ),
    "ambiguous_session": f"Give more of one: {thread(1)}, {thread(2)}",
    "unknown_turn": "`outline` lists the turns of a session.",
}
"""What words say beyond JSON: which command helps."""


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        (["show", "nobody-here"], "unknown_session", {"session": "nobody-here"}),
        (["show", "01a1f865-0000"], "ambiguous_session", {"candidates": [thread(1), thread(2)]}),
        (
            ["show", "/nowhere.jsonl"],
            "unreadable_source",
            {"path": "/nowhere.jsonl", "reason": "No such file or directory"},
        ),
        (
            ["show", thread(1), "--at", "7"],
            "unknown_turn",
            {"sessionId": thread(1), "turnId": "7", "turns": 2},
        ),
        *(
            (["view", thread(1), "--caps", caps], "invalid_payload", None)
            for caps in ('{"maxFacts": 1}', "{", "[]", "[" * 100_000, "9" * 9_000)
        ),
        (["show", b"\xff\xfe-nobody"], "unknown_session", {"session": "??-nobody"}),
        (["notes", "anchors", thread(1), "--limit=257"], "invalid_payload", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusal_exits_with_1_in_json_and_in_words(
    home: Home, arguments: list[str], code: str, facts: dict[str, Any] | None
) -> None:
    home.put(chat("two", 2), 2)

    told = error(home.here(*arguments, "--json"))
    assert told["code"] == code
    assert told["message"]
    problem = "".join(told["facts"].get("problems", ()))
    assert told["facts"] == (facts or {"problems": [problem]})
    assert facts or told["message"] == f"This is not valid: {problem}."

    done = home.here(*arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    sentence, way_out = told["message"], _WAYS_OUT.get(code)
    assert said(done) == f"{sentence}{f' {way_out}' if way_out else ''} [{code}]\n"


def test_file_that_is_not_a_session_is_answered_with_a_remark(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "junk.jsonl"
    notice = f"{file}: neither the head of a session nor a turn; is it a session file?\n"

    for data in (b"", b"hello\n", b'{"a":1}\n'):
        file.write_bytes(data)
        for command in ("show", "view", "history", "windows", "outline", "losses", "notes"):
            done = home.here(command, str(file))
            assert (done.returncode, done.stdout != b"", said(done)) == (0, True, notice)
    for data in (home.path().read_bytes(), rollout(session("bare", thread=thread(1)))):
        file.write_bytes(data)
        assert said(home.here("view", str(file))) == ""
    assert home.here("outline", str(file)).stdout == b"No turns yet.\n"


@pytest.mark.parametrize(
    ("place", "why"),
    [("outside", "lies outside the Codex home"), ("older_file", "is an older file of its session")],
)
def test_every_command_explains_in_the_same_words_why_a_file_is_not_stored(
    home: Home, tmp_path: Path, place: str, why: str
) -> None:
    elsewhere = tmp_path / home.path(9).name
    elsewhere.write_bytes(chat("far away", 9))
    home.put(home.path().read_bytes(), segment=5)
    path = str(elsewhere if place == "outside" else home.path())
    storing = (
        *(["mark", path, "--label", "x"], ["unmark", path, "x"], ["relabel", path, "x", "y"]),
        *(["pin", path, "auth.py"], ["unpin", path, "auth.py"]),
        *(["restore", path, "x", "--mode", "hard"], ["notes", "revoke", path, "x"]),
        ["apply", path, note(tmp_path, kind="fact")],
    )
    changing = (
        *(["rename", path, "x"], ["archive", path], ["unarchive", path], ["delete", path]),
        *(["compact", path], ["resume", path, "--print"]),
    )
    for code, commands in (("conflict", storing), ("unknown_session", changing)):
        for command in commands:
            met = error(home.here(*command, "--json"))
            assert (met["code"], met["message"]) == (
                code,
                f"{path} {why}: nothing is stored for it.",
            ), command
            assert met["facts"]["reason"] == place


def test_checkpoint_that_cannot_be_stored_is_printed_with_a_warning(home: Home) -> None:
    whole = home.run("show", thread(1)).stdout
    home.checkpoint().unlink()
    home.checkpoint().mkdir()

    done = home.run("show", thread(1))

    assert (done.returncode, done.stdout) == (0, whole)
    assert said(done).startswith("storage_error: ")
    assert len(said(done).splitlines()) == 1


@pytest.mark.parametrize("spoilt", [b"garbage", b"", b'{"schemaVersion":2}\n'])
def test_damaged_checkpoint_is_rebuilt_and_reported(home: Home, spoilt: bytes) -> None:
    whole = home.run("show", thread(1)).stdout
    home.checkpoint().write_bytes(spoilt)

    (found,) = (
        each for each in home.json("doctor")["findings"] if each["code"] == "damaged_checkpoint"
    )
    done = home.run("show", thread(1))
    again = home.run("show", thread(1))

    assert (found["path"], found["count"]) == (str(home.checkpoint()), 1)
    assert (done.returncode, done.stdout) == (0, whole)
    (line,) = said(done).splitlines()
    assert str(home.checkpoint()) in line
    assert home.checkpoint().read_bytes() == whole
    assert (again.stdout, again.stderr) == (whole, b"")


# --- notes, names, places ------------------------------------------------------------------------


def note(tmp_path: Path, **payload: object) -> str:
    file = tmp_path / "note.json"
    file.write_text(json.dumps(payload | {"evidence": {"source": "user", "ref": "task"}}))
    return str(file)


def test_payload_schema_needs_no_session_and_no_home(home: Home) -> None:
    done = home.here("apply", "--schema")

    assert done.returncode == 0
    assert json.loads(done.stdout)["properties"]["kind"]["enum"] == ["fact", "decision", "plan"]


def test_notes_shows_valid_suspect_and_replaced_notes(home: Home, tmp_path: Path) -> None:
    hostile = "\x1b[31m8080\nSUSPECT"
    home.here("apply", thread(1), note(tmp_path, kind="fact", key="port", value=hostile))
    on = [{"uri": "auth.py"}]
    home.here("apply", thread(1), note(tmp_path, kind="fact", key="who", value="ana", dependsOn=on))
    use = {"kind": "decision", "decision": "use x", "rationale": "it is there"}
    home.here("apply", thread(1), note(tmp_path, **use, decisionId="d1"))
    home.here("apply", thread(1), note(tmp_path, **use, decisionId="d2", supersedes="d1"))

    text = home.here("notes", thread(1)).stdout.decode()

    assert text.splitlines() == [
        "facts",
        "  port  [31m8080 SUSPECT",
        "        from user u2",
        "",
        "SUSPECT",
        "  who   ana",
        "        because of auth.py, from user u2",
        "",
        "decisions",
        "  d2    use x — it is there",
        "        from user u2",
        "",
        "superseded",
        "  d1    use x — it is there",
        "        replaced by d2, from user u2",
    ]
    assert CONTROLS.search(text) is None


def test_fact_on_a_file_known_by_size_and_time_says_so(home: Home) -> None:
    (home.user / "big.bin").write_bytes(b"x" * 40)
    home.config("hashLimitBytes = 32\n")
    head = session(thread=thread(1), cwd=str(home.user))
    home.put(rollout(head, turn(user("look"), shell("cat big.bin", reads=["big.bin"]))))
    payload = home.user / "payload.json"
    evidence = {"source": "file", "ref": "big.bin"}
    told = {"kind": "fact", "key": "size", "value": "40 bytes", "evidence": evidence}
    payload.write_text(json.dumps({**told, "dependsOn": [{"uri": "big.bin"}]}))
    assert home.here("notes", thread(1)).stdout == b"No facts and no decisions yet.\n"

    assert home.here("apply", thread(1), str(payload)).returncode == 0

    told = home.here("notes", thread(1)).stdout.decode()
    assert told.endswith("from file big.bin, by size and time only: big.bin\n")


def test_anchors_are_printed_as_they_are_cited(home: Home) -> None:
    text = home.here("notes", "anchors", thread(1)).stdout.decode()

    assert text.splitlines() == [
        "user         u2       fix it for everybody",
        "user         u1       why does login fail?",
        "tool_output  c1       auth.py",
        "file         auth.py",
    ]
    assert [each["ref"] for each in home.json("notes", "anchors", thread(1), "--limit", "1")] == [
        *("u2", "c1", "auth.py")
    ]


def test_session_is_renamed_and_its_name_removed(home: Home) -> None:
    for blank in ("", "  ", "\t\n"):
        told = home.here("rename", thread(1), "Login").stdout.decode()
        assert told == f"renamed: {thread(1)}  Login\n"
        assert home.json("sessions")[0]["title"] == "Login"

        assert home.here("rename", thread(1), blank).stdout.decode() == (
            f"name removed: {thread(1)}; it is listed by its first words: why does login fail?\n"
        )
    assert home.json("rename", thread(1), "Again")["title"] == "Again"


def test_session_is_archived_and_unarchived_and_only_ours_is_deleted(home: Home) -> None:
    assert home.json("archive", thread(1))["archived"]
    assert home.json("sessions") == []
    assert error(home.here("archive", thread(1), "--json"))["code"] == "conflict"
    assert home.here("unarchive", thread(1)).stdout.decode().startswith(f"unarchived: {thread(1)}")
    ours = session(thread=thread(2), originator="codex-checkpoints")
    home.put(rollout(ours, turn(user("go on"))), 2)

    assert error(home.here("delete", thread(1), "--json"))["code"] == "conflict"
    assert error(home.here("delete", thread(2), "--json"))["code"] == "has_own_turns"
    gone = home.json("delete", thread(2), "--force")
    assert gone == {"sessionId": thread(2), "deleted": True}
    listed = home.json("sessions")
    assert [(each["sessionId"], each["archived"]) for each in listed] == [(thread(1), False)]


# --- wrong usage ---------------------------------------------------------------------------------


WRONG = [
    *(b"", b"never-heard-of", b"show", b"show a b", b"rename a", b"archive", b"delete"),
    *(b"sessions --limit %s" % number for number in (b"0", b"-1", b"many", b"9" * 5000)),
    *(b"sessions --never-heard-of", b"sessions --never\x1b[2J", b"sessions --codex-home"),
    *(b"sessions --codex-home /tmp/\xff", b"sessions --state-dir /tmp/\xff"),
    *(b"apply", b"apply --dry-run", b"apply a b c"),
    *(b"notes", b"notes a b", b"notes revoke a", b"notes anchors", b"notes a --kind fact"),
    *(b"notes a --limit 1", b"notes revoke a b --kind plan"),
    *(b"serve --tcp 65536", b"serve --tcp 0", b"serve --tcp x"),
    *(b"diff a --from 1", b"compact a --timeout 9", b"restore a b --mode hard --window few"),
    *(b"connect --status --remove", b"connect --status --dry-run"),
]


@pytest.mark.parametrize("line", WRONG, ids=[repr(line[:30]) for line in WRONG])
def test_wrong_usage_exits_with_2(home: Home, line: bytes) -> None:
    done = home.here(*line.split())

    assert CONTROLS.search(said(done)) is None
    assert (done.returncode, done.stdout) == (2, b"")
    assert said(done).startswith("usage: codex-checkpoints")


@pytest.mark.parametrize(
    ("arguments", "usage", "words"),
    [
        ([], "codex-checkpoints [-h]", "which command? --help lists them"),
        (
            *(["sesions"], "codex-checkpoints [-h]"),
            "no command 'sesions'; --help lists them; did you mean `sessions`?",
        ),
        (
            *(["--json", "x"], "codex-checkpoints [-h]"),
            "no command 'x'; --help lists them; options come after the command",
        ),
        (["x"], "codex-checkpoints [-h]", "no command 'x'; --help lists them"),
        (["view", "a", "b"], "codex-checkpoints view", "unknown: b; --help lists the options"),
        (["sessions", "--user", "bo"], "codex-checkpoints sessions", "--user goes with --remote"),
        (["view", "a", "--jsn"], "codex-checkpoints view", "unknown: --jsn; --help lists"),
        (
            ["sessions", "--limit", "many"],
            "codex-checkpoints sessions",
            "argument --limit: 'many' is not a whole number",
        ),
    ],
    ids=[
        *("no command", "a slip", "an option before", "no option before", "too many"),
        *("only for a remote", "an option", "a number"),
    ],
)
def test_wrong_usage_prints_the_problem_and_the_usage_of_the_command(
    home: Home, arguments: list[str], usage: str, words: str
) -> None:
    told = said(home.here(*arguments))

    assert told.startswith(f"usage: {usage}")
    assert words in told.splitlines()[-1]


def test_help_names_every_command_and_common_option_and_version_is_printed(
    home: Home,
) -> None:
    text = home.here("--help").stdout.decode()

    assert [command for command in COMMANDS if command not in text] == []
    for command in COMMANDS:
        its = home.here(command, "--help").stdout.decode()
        assert "--codex-home" in its, command
        assert "--state-dir" in its, command
    assert home.here("help").stdout.decode() == text
    assert home.here("help", "view").stdout == home.here("view", "--help").stdout
    assert home.run("--version").stdout.decode() == f"codex-checkpoints {__version__}\n"
    assert home.run("--nonsense").returncode == 2


# --- doctor --------------------------------------------------------------------------------------


def test_home_with_only_archived_sessions_says_so(home: Home) -> None:
    assert home.here("archive", thread(1)).returncode == 0

    words = said(home.here("sessions"))

    assert words == "The only session here is archived; `sessions --archived` lists it.\n"
    assert said(home.here("sessions", "--search", "x")).startswith("No session matches;")


def test_ambiguous_id_names_a_few_of_many_sessions(home: Home) -> None:
    for number in range(2, 31):
        home.put(chat("more", number), number)

    words = said(home.here("view", thread(1)[:20]))

    assert words.startswith("30 sessions begin with ")
    assert f": {', '.join(map(thread, range(1, 5)))}, … [ambiguous_session]" in words


def test_doctor_prints_its_keys_and_the_file_with_the_most_unused_lines(
    home: Home,
) -> None:
    for number in range(2, 9):
        garbage = [raw(b"no json\n")] * number
        home.put(rollout(session(thread=thread(number)), *garbage), number)

    report = home.json("doctor")

    (found,) = report.pop("findings")
    assert report == {
        "codexHome": str(home.root),
        "stateDir": str(home.state),
        "sessions": 8,
        "skipped": {"not_json": 35},
    }
    assert found.pop("wayOut")
    assert found == {
        "code": "not_json",
        "severity": "warning",
        "message": "Lines that are not JSON: 35, in 7 session files.",
        "path": str(home.path(8)),
        "count": 35,
    }


@pytest.mark.skipif(os.name == "nt", reason="links and pipes are made otherwise there")
def test_doctor_names_files_with_a_session_name_that_are_not_sessions(home: Home) -> None:
    day = home.path(1).parent
    home.path(2).mkdir()
    os.mkfifo(home.path(3))
    home.path(4).symlink_to(home.path(1))
    (day / "rollout-foo.jsonl").write_bytes(b"{}\n")
    (day / "rollout-goo.jsonl.zst").write_bytes(b"")
    (day / "notes.txt").write_bytes(b"")
    elsewhere = home.root.with_name("elsewhere")
    elsewhere.mkdir()
    (home.root / "sessions/2025").symlink_to(elsewhere, target_is_directory=True)

    report = home.json("doctor")

    assert report["sessions"] == 1
    expected = [
        (home.path(2), 1, "a folder"),
        (home.root / "sessions/2025", 2, "links are not followed. So are 1 more"),
        (home.path(3), 1, "no regular file"),
        (day / "rollout-foo.jsonl", 2, "name that Codex gives"),
    ]
    for found, (path, count, words) in zip(report["findings"], expected, strict=True):
        assert (found["code"], found["path"], found["count"]) == ("passed_over", str(path), count)
        assert words in found["message"]


def test_doctor_counts_the_sessions_that_a_list_has(home: Home) -> None:
    home.put(b'{"a": 1}\n', 2)

    assert len(home.json("sessions")) == home.json("doctor")["sessions"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a name is always UTF-8")
def test_doctor_shows_a_name_that_is_not_utf8(home: Home) -> None:
    name = os.fsencode(home.path(1).parent) + b"/rollout-\xff.jsonl"
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))

    (finding,) = home.json("doctor")["findings"]

    assert "rollout-\\udcff.jsonl" in finding["path"]


@pytest.mark.parametrize(
    ("text", "stops", "holds"),
    [
        (b"unheardOf = 1", False, "it has no effect"),
        (b"retainedTokens = 0", False, "its default applies"),
        (b"no TOML", False, "all defaults apply"),
        (b"hooks = [", True, "all defaults apply, and no compaction starts"),
        (b"hooks = 1", True, "until then no compaction starts"),
        (b"# \xff", True, "all defaults apply, and no compaction starts"),
    ],
)
def test_doctor_reports_the_effect_of_a_wrong_setting(
    home: Home, text: bytes, stops: bool, holds: str
) -> None:
    home.config("")
    (home.state / "config.toml").write_bytes(text)

    (finding,) = home.json("doctor")["findings"]
    compacted = home.run("compact", thread(1), "--force", "--json")

    assert finding["code"] == "bad_setting"
    assert holds in finding["wayOut"]
    assert ("compaction" in finding["wayOut"]) == stops
    assert (b"blocked_by_hook" in compacted.stdout) == stops


def test_doctor_reports_the_same_in_words(home: Home) -> None:
    assert b"Nothing to report" in home.run("doctor").stdout

    home.config("unheardOf = 1")
    done = home.run("doctor")
    assert (done.returncode, b"bad_setting" in done.stdout) == (0, True)
    assert "config.toml: unknown setting 'unheardOf'" in said(done)


# --- commands to go on with ----------------------------------------------------------------------


def commands_in(done: subprocess.CompletedProcess[bytes]) -> dict[str, list[str]]:
    """Return the commands that an answer suggests, in words of a shell, by what stands before."""
    assert done.returncode == 0, done.stderr
    lines = (line.partition(": ") for line in done.stdout.decode().splitlines())
    return {label: shlex.split(command) for label, _, command in lines if "codex" in command}


def test_suggested_command_repeats_the_named_folders(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"CODEX_HOME": None}
    root, state = str(tmp_path / "Ana's home"), str(tmp_path / "a state")
    home.root.rename(root)
    monkeypatch.chdir(tmp_path)
    named = ("--codex-home", "Ana's home", "--state-dir", state)

    done = home.here("compact", thread(1), "--force", *named, env=env)
    told = commands_in(done)
    program, *words = told["undo"]
    undone = commands_in(home.here(*words, env=env))

    assert told["continue"][:-1] == [f"CODEX_HOME={root}", "codex", "resume"]
    assert program == "codex-checkpoints"
    assert words[2:] == ["--codex-home", root, "--state-dir", state]
    assert undone["continue"] == [f"CODEX_HOME={root}", "codex", "resume", thread(1)]


def test_suggested_command_names_no_default_folder(home: Home) -> None:
    told = commands_in(home.run("compact", thread(1), "--force"))

    assert told["continue"][:-1] == ["codex", "resume"]
    assert told["undo"][:-1] == ["codex-checkpoints", "uncompact"]
    done = home.json("compact", thread(1), "--force", "--codex-home", str(home.root))
    assert done["resume"] == f"CODEX_HOME={home.root} codex resume {done['sessionId']}"


# --- folders -------------------------------------------------------------------------------------


def test_home_comes_from_the_option_the_variable_or_the_users_folder(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number, place in enumerate(("a", "b", "user/.codex"), 1):
        other = Home(tmp_path / f"at{number}")
        other.put(chat(place, number), number)
        other.root.rename(tmp_path / place)

    def title(*options: str, **env: str | None) -> str:
        (only,) = home.json("sessions", *options, env=env)
        return only["title"]

    assert title(CODEX_HOME=str(tmp_path / "a")) == "a"
    assert title(CODEX_HOME=None) == "user/.codex"
    assert title(CODEX_HOME="") == "user/.codex"
    assert title("--codex-home", str(tmp_path / "b"), CODEX_HOME=str(tmp_path / "a")) == "b"
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert title("--codex-home", str(tmp_path / "link")) == "b"


def test_folders_may_be_named_before_the_command(home: Home, tmp_path: Path) -> None:
    state = tmp_path / "elsewhere"
    before = ("--codex-home", str(home.root), f"--state-dir={state}")

    done = home.run(*before, "doctor", "--json", env={"CODEX_HOME": str(tmp_path / "none")})

    report = json.loads(done.stdout)
    assert (report["codexHome"], report["stateDir"]) == (str(home.root), str(state))
    assert b"which command?" in home.run("--codex-home", str(home.root)).stderr


@pytest.mark.parametrize("way", ["variable", "both"])
def test_state_folder_is_as_named(home: Home, tmp_path: Path, way: str) -> None:
    state = tmp_path / "elsewhere" / "deep"
    option = [] if way == "variable" else ["--state-dir", str(state)]
    named = state if way == "variable" else tmp_path / "not here"
    env = {"CODEX_CHECKPOINTS_STATE": str(named)}

    done = home.run("show", thread(1), *option, env=env)

    assert (state / "sessions" / thread(1) / "checkpoint_v1.json").read_bytes() == done.stdout
    assert home.json("doctor", *option, env=env)["stateDir"] == str(state)
    assert not home.state.exists()
    assert not (tmp_path / "not here").exists()


def test_only_permitted_files_are_written(home: Home) -> None:
    home.put(chat("two", 2), 2)
    home.put(chat("three", 3), 3, archived=True)
    (home.root / "config.toml").write_text("model = 'x'\n")
    before = snapshot(home.root, home.user)

    for command in (
        *(["sessions"], ["sessions", "--archived", "--json"], ["show", thread(1)]),
        *(["view", thread(3)], ["doctor"], ["watch", "--once"]),
    ):
        assert home.run(*command, cwd=home.user).returncode == 0
    with following(home):
        eventually(home.stored)

    after = snapshot(home.root, home.user)
    stored = [home.checkpoint(number) for number in (1, 2, 3)]
    folders = [home.state, home.state / "sessions", *(path.parent for path in stored)]
    expected = [home.state / "index.sqlite", *folders, *stored]
    assert after.keys() - before.keys() == set(map(str, expected))
    assert {path: after.get(path) for path in before} == before


def test_no_command_opens_the_network(home: Home) -> None:
    blocked = home.run("sessions", first=f"{NO_NETWORK}\nsocket.socket(socket.AF_INET)")
    assert b"the network was asked for" in blocked.stderr

    for command in (
        *(["sessions"], ["show", thread(1)], ["view", thread(1)], ["doctor"]),
        ["watch", "--once"],
    ):
        done = home.run(*command, first=NO_NETWORK)
        assert (done.returncode, said(done)) == (0, ""), command


# --- hostile rollouts ----------------------------------------------------------------------------

NASTY = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202etxt\u2066\u2028line\r\x08\x00\x7f"


EVIL = f"evil{NASTY}"[:10]
"""Names that session, and is a word that the system takes."""


@pytest.fixture
def hostile(home: Home) -> Home:
    """Everything that a session can say says something to the terminal."""
    home.put(
        rollout(
            session("legacy", thread=f"evil{NASTY}", cwd=f"/home/{NASTY}/shop", cli_version=NASTY),
            environment(NASTY),
            turn(
                turn_context(model=NASTY),
                user(f"task {NASTY} task", ref=NASTY),
                shell(f"echo {NASTY}", NASTY, call=NASTY),
                patch(add=f"a{NASTY}.py"),
                plan((f"step {NASTY}", False)),
                event("thread_name_updated", thread_name=f"name {NASTY}"),
                name=f"turn{NASTY}",
            ),
            raw(NASTY.encode() + b"\n"),
        )
    )
    base = {"thread_id": NASTY, "end_ordinal_exclusive": 3, "end_byte_offset": 10}
    home.put(rollout(session(thread=thread(2), history_base=base), turn(user("x"))), 2)
    home.put(b"damaged", 3, form=".jsonl.zst")
    return home


HOSTILE = [
    *(["sessions"], ["sessions", "--search", NASTY], ["doctor"], ["watch", "--once"]),
    *([word, "PATH"] for word in ("view", "history", "windows", "outline", "losses", "notes")),
    *(
        ["windows", "PATH", "--fragment"],
        ["notes", "anchors", "PATH"],
        ["show", "PATH", "--at", "9"],
    ),
    *([word, EVIL] for word in ("compact", "marks", "restores", "lineage", "archive", "delete")),
    *(["resume", EVIL, "--print"], ["diff", EVIL, "--from", "1", "--to", "1"]),
    *(["mark", EVIL, "--label", f"label {NASTY[:-2]}"], ["pin", EVIL, f"a{NASTY[:-2]}.py"]),
    *(["audit", "--session", EVIL], ["rename", EVIL, f"name {NASTY[:-2]}"]),
    *(["show", thread(3)], ["show", "evil nobody \x1b[2J"]),
    *(["view", "PATH", "--caps", caps] for caps in ('{"\x1b[2J": 1}', '{"\\u001b[2J": 1}')),
]


@pytest.mark.parametrize(
    "arguments",
    HOSTILE,
    ids=lambda arguments: "-".join(arguments)[:20].encode("ascii", "replace").decode(),
)
def test_control_characters_of_a_rollout_never_reach_a_terminal(
    hostile: Home, arguments: list[str]
) -> None:
    path = str(hostile.path())
    done = hostile.here(*(path if each == "PATH" else each for each in arguments))

    assert done.returncode in {0, 1}
    assert CONTROLS.search(done.stdout.decode()) is None
    assert CONTROLS.search(said(done)) is None


def test_storage_problem_is_printed_without_control_characters(hostile: Home) -> None:
    hostile.config('checkpointLocation = "beside"')
    target = hostile.path().with_name(hostile.path().name.replace(".jsonl", ".checkpoint_v1.json"))
    target.mkdir()

    done = hostile.run("watch", "--once")

    assert "storage_error" in said(done)
    assert CONTROLS.search(said(done)) is None
    listed = hostile.json("sessions")
    assert {item["sessionId"] for item in listed} == {f"evil{NASTY}", thread(2)}


# --- streams -------------------------------------------------------------------------------------


def shell_run(home: Home, script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell in which `$CC` is the product."""
    env = {"CC": f"{sys.executable} -m codex_checkpoints"}
    return home.alone("bash", "-c", script, env=env)


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a line of bash")


GOOD, FULL = (0, ""), (1, "No space left on device [storage_error]\n")
OURS = "exit ${PIPESTATUS[0]}"
STREAMS = [
    (f"set -o pipefail; $CC sessions --json | head -n 1; {OURS}", b"[\n", GOOD),
    (f"$CC sessions | head -n 1 >/dev/null; {OURS}", b"", GOOD),
    ("$CC sessions >/dev/full", b"", FULL),
    (f"$CC show {thread(1)} >/dev/full", b"", FULL),
    ("$CC sessions --json >&-", b"", GOOD),
    (f"$CC sessions --json 2>&- | sed -n '1p;$p'; {OURS}", b"[\n]\n", GOOD),
    ("$CC sessions --json <&- >&- 2>&-", b"", GOOD),
]


@posix_only
@pytest.mark.parametrize(("script", "printed", "ended"), STREAMS)
def test_closed_output_is_not_an_error_and_a_full_disk_is(
    home: Home, script: str, printed: bytes, ended: tuple[int, str]
) -> None:
    if "/dev/full" in script and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    data = chat("x" * 150)
    for number in range(2, 300 if "head" in script else 3):
        home.put(data.replace(thread(1).encode(), thread(number).encode()), number)

    done = shell_run(home, script)

    assert done.stdout == printed
    assert (done.returncode, said(done)) == ended


@posix_only
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_connect_writes_nothing_if_its_diff_cannot_be_printed(home: Home) -> None:
    done = shell_run(home, "$CC connect --yes >/dev/full")

    assert (done.returncode, said(done)) == FULL
    done = shell_run(
        home, "cd $CODEX_HOME && mkfifo pipe; true <pipe & exec >pipe; wait; $CC connect --yes"
    )
    told = "Nothing was written: it could not be shown. [cancelled]\n"
    assert (done.returncode, said(done)) == (1, told)
    assert not (home.root / "config.toml").exists()


@posix_only
def test_only_a_terminal_gets_colour(home: Home) -> None:
    def shown(**env: str) -> str:
        return on_a_terminal(home, "sessions", env=env)[1]

    assert "\x1b[" in shown(NO_COLOR="")
    assert "\x1b[" not in shown(NO_COLOR="1")
    assert "\x1b[" not in shown(TERM="dumb")
    assert b"\x1b[" not in home.run("sessions", env={"FORCE_COLOR": "1", "TERM": "xterm"}).stdout


# --- terminals -----------------------------------------------------------------------------------

WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


OnTerminal = Callable[..., list[str]]
"""Run a command inside this process, on a terminal of so many columns; return its lines."""


@pytest.fixture
def on_terminal(home: Home) -> OnTerminal:
    import fcntl
    import pty
    import termios

    def run(*arguments: str, columns: int, **env: str) -> list[str]:
        environment = home.environment({"NO_COLOR": "1", "TERM": "xterm", **env})
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with (
            open(ours, "rb", buffering=0) as end,
            open(theirs, "w", encoding="utf-8") as stream,
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch.object(sys, "stdout", stream),
        ):
            assert main(arguments) == 0
            os.write(theirs, b"\x00")
            printed = b""
            while not printed.endswith(b"\x00"):
                printed += end.read(65_536) or b""
        return printed[:-1].decode().splitlines()

    return run


@posix_only
def test_latest_is_named_on_a_terminal_alone(
    on_terminal: OnTerminal, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.put(chat("Mend the login. " * 20, 1), 1)
    whole = on_terminal("view", thread(1), columns=80)
    assert capsys.readouterr().err == ""

    assert on_terminal("view", "latest", columns=80) == whole
    named = capsys.readouterr().err
    on_terminal("view", "latest", "--json", columns=80)

    assert named.startswith(f"latest: {thread(1)}  Mend the login.")
    assert columns(named.removesuffix("\n")) < 80
    assert named.count("\n") == 1
    assert capsys.readouterr().err == ""
    assert home.here("view", "latest").stderr == b""


@pytest.fixture
def worked_with(home: Home) -> Home:
    """A session that was marked, restored and compacted, and whose first words are many."""
    told = "why does the login of the shop fail on Mondays " * 3
    head = session(thread=thread(1))
    home.put(rollout(head, turn(user(told), shell("make")), turn(user("go on"), compacted("m"))))
    marker = json.loads(
        home.here("mark", thread(1), "--label", told, "--turn", "1", "--json").stdout
    )
    for mode in ("soft", "hard"):
        wish = ("--mode", mode, "--json")
        assert home.here("restore", thread(1), marker["checkpointId"], *wish).returncode == 0
    assert home.here("compact", thread(1), "--into", "in-place", "--force").returncode == 0
    return home


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_times_are_local_on_a_terminal_and_utc_elsewhere(
    home: Home, on_terminal: OnTerminal
) -> None:
    here = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b")
    utc = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
    for command in (
        *(["windows", thread(1)], ["losses", thread(1)], ["timeline", thread(1)]),
        *(["marks", thread(1)], ["restores"], ["audit"], ["search", "login"]),
    ):
        shown = "\n".join(on_terminal(*command, columns=200))
        for form, text in ((here, shown), (utc, home.here(*command).stdout.decode())):
            assert form.search(text), command
            assert not re.search(r"\d\d:\d\d|\d{4}-\d\d-", form.sub("", text)), command


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_list_line_fits_the_terminal_unless_it_holds_an_id_to_copy(
    on_terminal: OnTerminal,
) -> None:
    for command in (
        *(["sessions"], ["history", thread(1)], ["windows", thread(1)], ["outline", thread(1)]),
        *(["lineage", thread(1)], ["marks", thread(1)], ["restores"], ["audit"]),
        *(["losses", thread(1)], ["diff", thread(1), "--from", "1", "--to", "2"]),
        ["timeline", thread(1)],
    ):
        for width in (60, 80, 200):
            lines = on_terminal(*command, columns=width)
            wide = [line for line in lines if columns(line) >= width]
            assert lines
            assert [line for line in wide if not WHOLE_ID.search(line)] == [], (command, width)


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_details_are_cut_except_for_ids_and_commands(on_terminal: OnTerminal, home: Home) -> None:
    operation = json.loads(home.here("restores", "--json").stdout)[0]["operationId"]
    for command, is_wrapped in (
        (["restore-details", operation], True),
        (["losses", thread(1)], True),
        (["diff", thread(1), "--from", "1", "--to", "2"], False),
    ):
        whole = home.here(*command).stdout.decode().splitlines()
        lines = on_terminal(*command, columns=60)

        assert max(map(columns, whole)) > 60
        # A stored text has at most 160 characters itself.
        assert not any(line.endswith("…") and columns(line) < 160 for line in whole)
        assert len(lines) == len(whole) or is_wrapped
        assert any("…" in line for line in lines)
        long = [line for line in lines if columns(line) >= 60]
        assert [line for line in long if line not in whole and not WHOLE_ID.search(line)] == []
        assert all(found in "\n".join(lines) for found in WHOLE_ID.findall("\n".join(whole)))


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_narrow_timeline_keeps_the_requests_and_the_failed_checks(on_terminal: OnTerminal) -> None:
    wide, narrow, least = (
        "\n".join(on_terminal("timeline", thread(1), columns=each)) for each in (120, 80, 60)
    )

    assert re.search(r"turn  began +context  calls  files  failed  request\n", wide)
    assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", wide)
    assert re.search(r"turn  began +context  calls  files  failed  request\n", narrow)
    assert re.search(r"turn  began +context  failed  request\n", least)
    for shown in (narrow, least):
        assert re.search(r"\n +1  \d\d-\d\d \d\d:\d\d .*  failed \(no ans", shown)


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_narrow_windows_show_the_sizes_and_a_wide_one_the_ids(on_terminal: OnTerminal) -> None:
    for width in (60, 80, 200):
        head, *rows = on_terminal("windows", thread(1), columns=width)
        assert re.search(r"before → +after", head)
        assert ("made by" in head) == (width > 60)
        assert any(WHOLE_ID.search(row) for row in rows if " → " in row) == (width == 200)


@posix_only
@pytest.mark.usefixtures("home")
def test_remedy_of_a_finding_is_wrapped_to_the_terminal(
    home: Home, on_terminal: OnTerminal
) -> None:
    home.put(b'{"a": 1}\n', 2)

    lines = on_terminal("doctor", columns=60)

    at = next(place for place, line in enumerate(lines) if "What to do" in line)
    assert columns(lines[at]) < 60
    assert re.match(r" {14}\w", lines[at + 1])
    assert any(columns(line) > 60 for line in lines if "Where" in line), "a path is not broken"


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_columns_overrides_the_terminal_and_the_width_may_be_unknown(
    on_terminal: OnTerminal, home: Home
) -> None:
    whole = home.here("lineage", thread(1)).stdout.decode().splitlines()

    assert all(WHOLE_ID.search(line) for line in whole)
    assert max(map(columns, whole)) > 160
    assert on_terminal("lineage", thread(1), columns=0) == whole
    fifty = on_terminal("lineage", thread(1), columns=400, COLUMNS="50")
    assert max(map(columns, fifty)) < 50
    assert on_terminal("lineage", thread(1), columns=400, COLUMNS="many") == whole
    done = home.here("lineage", thread(1), env={"COLUMNS": "50"})
    assert done.stdout.decode().splitlines() == whole


def test_progress_bar_fits_a_terminal() -> None:
    drawn = io.StringIO()
    Bar(drawn).show(IndexProgress(3, 4000, 10, 4000, frozenset()))

    assert columns(drawn.getvalue().lstrip("\r")) < 80
    assert drawn.getvalue().endswith("3/4000")


@posix_only
@pytest.mark.usefixtures("worked_with")
def test_audit_names_both_sessions_and_prints_a_dash_for_missing_ones(home: Home) -> None:
    assert shell_run(home, "echo nonsense | $CC hook").returncode == 0

    *_, compaction, failed = home.run("audit").stdout.decode().splitlines()

    assert compaction.endswith(f"  CompactionInstalled  {thread(1)}")
    assert re.fullmatch(r"2\S+Z  - +HookFailed  invalid_payload", failed)


@pytest.mark.usefixtures("worked_with")
def test_restore_details_link_only_to_an_existing_branch(home: Home) -> None:
    operation = json.loads(home.here("restores", "--json").stdout)[0]
    details = ("restore-details", operation["operationId"])
    branch = operation["sessionId"]

    assert home.here(*details).stdout.endswith(f"\n→ codex resume {branch}\n".encode())
    assert home.here("delete", branch).returncode == 0
    told = home.here(*details).stdout.decode()
    assert "codex resume" not in told
    assert f"Branch            {branch} (no longer here)" in told


@posix_only
def test_long_change_shows_both_its_ends(home: Home, on_terminal: OnTerminal) -> None:
    asked = ("login " * 20, "logout " * 20, "something short only")
    home.put(rollout(session(thread=thread(1)), *(turn(user(each)) for each in asked)))

    def shown(first: int, second: int) -> str:
        turns = ("--from", str(first), "--to", str(second))
        (line,) = on_terminal("diff", thread(1), *turns, columns=60)
        return line

    assert re.fullmatch(r"~ task: (login )+\S*… → (logout )+\S*…", shown(1, 2))
    assert re.fullmatch(r"~ task: (login ){4,}\S*… → something short only", shown(1, 3))
    assert re.fullmatch(r"~ task: something short only → (logout ){3,}\S*…", shown(3, 2))


@pytest.mark.usefixtures("worked_with")
def test_window_opened_by_an_undo_says_so(home: Home) -> None:
    windows = json.loads(home.here("windows", thread(1), "--json").stdout)
    assert home.here("uncompact", windows[-1]["compactionId"]).returncode == 0

    again = json.loads(home.here("windows", thread(1), "--json").stdout)
    lines = home.here("windows", thread(1)).stdout.decode().splitlines()

    assert [each["strategy"] for each in again[-2:]] == ["checkpoint", None]
    assert re.search(r"  asked for +undo  ", lines[-1])
    losses = home.here("losses", thread(1)).stdout.decode()
    assert re.search(
        r"^Window \d, compacted from the checkpoint on request\n"
        r"  \S+Z, undone since\n  \d of \d lost\.$",
        losses,
        re.MULTILINE,
    )


def test_windows_name_a_compaction_that_continued_in_a_new_session(home: Home) -> None:
    done = json.loads(home.here("compact", thread(1), "--force", "--json").stdout)
    name, went_on = done["compactionId"], f"     went on in session {done['sessionId']}"

    def told() -> list[str]:
        return home.here("windows", thread(1)).stdout.decode().splitlines()[-2:]

    assert told() == [f"     compaction {name}", went_on]
    assert home.here("uncompact", name).returncode == 0
    assert told() == [f"     compaction {name}, undone since", went_on]


def test_compaction_and_windows_agree_about_the_size(home: Home) -> None:
    head = session(thread=thread(1), base_instructions={"text": "be kind " * 1000})
    home.put(rollout(head, turn(user("fix it"), shell("make", "noise " * 9000), tokens(90_000))))

    words = home.here("compact", thread(1), "--into", "in-place").stdout.decode()
    after = json.loads(home.here("windows", thread(1), "--json").stdout)[-1]["tokensAfter"]

    sizes = (
        r"Compacted in place: (.+) → ~(.+) tokens\. .+\n"
        r"At most .+ tokens\. Instructions and tools stay: about (.+) tokens\.\n"
    )
    (told,) = re.findall(sizes, words)
    before, size, beside = (int(each.replace(",", "")) for each in told)
    assert (before, size) == (90_000, after)
    assert "saves little" not in words
    assert 2000 < beside < size


def test_figures_of_a_compaction_add_up(home: Home) -> None:
    head = session(thread=thread(1), base_instructions={"text": "be kind " * 1000})
    long = ("fix it " * 9000, "and that " * 9000, "thanks")
    home.put(rollout(head, *(turn(user(each), shell("make", "noise " * 900)) for each in long)))

    command = ("compact", thread(1), "--dry-run")
    done, words = (
        json.loads(home.here(*command, "--json").stdout),
        home.here(*command).stdout.decode(),
    )

    def told(name: str) -> int:
        (found,) = re.findall(rf"^{name}: .*?([0-9,]+) tokens", words, re.MULTILINE)
        return int(found.replace(",", ""))

    new = told("kept") + told("cut in the middle") + told("added")
    assert abs(done["tokensAfter"] - new) <= 50, "a note stands in each cut"
    old = told("kept") + told("left out") + sum(each["tokens"] for each in done["truncated"])
    assert (done["tokensBefore"], done["tokensBeside"]) == (old, None)
    assert f"\n{done['sizeText']}\n" in words
    assert done["sizeText"].endswith(" Plus Codex's own instructions, usually 6,000 to 18,000.")
    contents = done["contents"]
    parts = contents["stateTokens"] + contents["digest"]["tokens"]
    parts += sum(each["tokens"] for each in contents["messages"])
    assert parts == done["tokensAfter"]


def test_scaled_total_of_a_compaction_is_explained(home: Home) -> None:
    head = session(thread=thread(1), base_instructions={"text": "be kind " * 1000})
    turns = (
        turn(user("fix it"), shell("make", "noise " * 9000), tokens(used))
        for used in (20_000, 40_000)
    )
    home.put(rollout(head, *turns))

    done = home.json("compact", thread(1), "--dry-run")
    words = home.here("compact", thread(1), "--dry-run").stdout.decode()

    scale = done["tokensScale"] / 1000
    assert scale != 1
    parts = sum(each["tokens"] for each in done["kept"]) + done["tokensAdded"]
    parts += done["tokensSentAgain"]
    assert abs(done["tokensBeside"] + parts * scale - done["tokensAfter"]) <= 2
    assert f"\n{done['sizeText']}\n" in words
    assert f" The other parts count {scale:.2f} times in a total," in done["sizeText"]


def test_compaction_that_saves_nothing_says_so_before_and_after(home: Home) -> None:
    home.put(rollout(session(thread=thread(1)), turn(user("fix it"), shell("make", "noise " * 90))))

    for options in (["--dry-run"], []):
        words = home.here("compact", thread(1), "--force", *options).stdout.decode()
        assert re.search(r"\n! Not worth it: [0-9,]+ tokens become [0-9,]+\.\n", words)


def test_internal_error_shows_its_type_and_place_and_never_its_message(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("a prompt")

    monkeypatch.setattr(Sessions, "find", fail)
    place = r"LookupError at codex_checkpoints\.doors\.cli\.commands:[0-9]+"

    told, done = error(home.here("history", thread(1), "--json")), home.here("history", thread(1))

    assert told["code"] == "internal"
    assert re.fullmatch(place, told["message"])
    assert (done.returncode, done.stdout) == (1, b"")
    assert re.fullmatch(f"error: internal: {place}\n", said(done))


@posix_only
@pytest.mark.parametrize("answer", ["\x04", "Ctrl+C", "n\n", "\n", "y\n"])
def test_only_the_answer_yes_allows_writing(home: Home, answer: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    with (
        open(ours, "r+b", buffering=0) as terminal,
        subprocess.Popen(
            [sys.executable, "-m", "codex_checkpoints", "connect"],
            env=home.environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        os.close(theirs)
        try:
            printed = b""
            while not printed.endswith(b"Write this? [y/N] "):
                printed += terminal.read(65_536) or b""
            if answer == "Ctrl+C":
                process.send_signal(signal.SIGINT)
                # Between the question and the reading of its answer a signal is kept waiting.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(WAIT / 4)
                process.send_signal(signal.SIGINT)
            else:
                terminal.write(answer.encode())
            _, errors = process.communicate(timeout=WAIT)
        finally:
            process.kill()

    refused = (1, b"Nothing was written. [cancelled]\n")
    expected = {"Ctrl+C": (130, b""), "y\n": (0, b"")}.get(answer, refused)
    assert b"+[mcp_servers.codex-checkpoints]" in printed
    assert (process.returncode, errors) == expected
    assert (home.root / "config.toml").exists() is (answer == "y\n")


@pytest.mark.parametrize(("command", "code"), [("sessions", 130), ("mcp", 130), ("hook", 0)])
def test_ctrl_c_during_start_prints_no_traceback(home: Home, command: str, code: int) -> None:
    door = {"sessions": "doors.cli"}.get(command, f"doors.{command}")
    program = f"""
import sys
from codex_checkpoints import __main__

class Impatient:
    def find_spec(self, name, path, target=None):
        if name == "codex_checkpoints.{door}":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
sys.argv = ["codex-checkpoints", "{command}"]
sys.exit(__main__.main())
"""
    done = home.alone(sys.executable, "-c", program)

    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


# --- watch ---------------------------------------------------------------------------------------


def test_watch_once_updates_every_checkpoint(home: Home) -> None:
    for number in range(2, 40):
        home.put(chat(f"{number}", number), number)

    done = home.run("watch", "--once", "--json")

    assert (done.returncode, said(done)) == (0, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [{"sessionId": thread(n), "reason": "rollout"} for n in range(1, 40)]
    assert all(home.stored(number) for number in range(1, 40))
    assert home.run("watch", "--once", "--json").stdout == b""


def test_watch_prints_changes(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.py").write_text("v1")
    steps = turn(user("one"), patch(add="a.py"))
    home.put(rollout(session(thread=thread(1), cwd=str(folder)), steps))

    with following(home, "--json") as process:
        assert process.stdout is not None
        line = {"sessionId": thread(1), "reason": "rollout"}
        assert json.loads(process.stdout.readline()) == line
        (folder / "a.py").write_text("v2")
        assert json.loads(process.stdout.readline()) == line | {"reason": "workspace"}
        with home.path().open("ab") as file:
            file.write(more(started("z"), user("two"), thread=thread(1), ordinal=9))
        assert json.loads(process.stdout.readline()) == line
        assert home.stored()["task"]["text"] == "two"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts otherwise")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_watch_exits_with_130_when_interrupted(home: Home, number: signal.Signals) -> None:
    with following(home) as process:
        assert process.stdout is not None
        assert b"why does login fail?" in process.stdout.readline()

        os.killpg(process.pid, number)

        assert (*process.communicate(timeout=WAIT), process.returncode) == (b"", b"", 130)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts otherwise")
def test_interrupted_index_exits_with_130_and_keeps_its_progress(home: Home) -> None:
    data = chat("one")
    for number in range(2, 1001):
        home.put(data.replace(thread(1).encode(), thread(number).encode()), number)
    process = home.start("sessions", "--json")
    eventually(lambda: any(home.state.glob("index.sqlite-wal")))

    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=WAIT)

    assert b"Traceback" not in errors
    assert (process.returncode, output) == (130, b"") or process.returncode == 0
    assert len(home.json("sessions")) == 1000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_watch_ends_when_its_output_is_closed(home: Home) -> None:
    with following(home, "--json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None

        for number in range(2, 4):
            home.put(chat(f"{number}", number), number)

        assert process.wait(WAIT) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


# --- serve ---------------------------------------------------------------------------------------


def test_occupied_port_is_reported(home: Home) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = home.run("serve", "--tcp", str(taken.getsockname()[1]))

    assert done.returncode == 1
    assert "in use" in said(done)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts otherwise")
def test_interrupted_serve_prints_no_traceback(home: Home) -> None:
    with Peer(home.root) as peer:
        peer.call("checkpoints/doctor")
        peer.process.send_signal(signal.SIGINT)
        assert peer.process.stdin is not None
        peer.process.stdin.close()

        assert peer.process.wait(WAIT) in {0, 130}
    assert "Traceback" not in "".join(peer.log)


def test_soft_preview_counts_notes_and_files_known_to_be_unchanged(
    home: Home, tmp_path: Path
) -> None:
    for name in ("seen.py", "same.py", "part.py"):
        (tmp_path / name).write_text("old\n")
    steps = (
        user("fix it"),
        plan(("Find the cause", True), ("Mend it", False)),
        *(shell(f"cat {name}", "old\n", reads=[name]) for name in ("seen.py", "same.py")),
        shell("head -n 1 part.py", "old\n", reads=["part.py"]),
    )
    home.put(rollout(session(thread=thread(2), cwd=str(tmp_path)), turn(*steps)), 2)
    marker = json.loads(home.here("mark", thread(2), "--label", "m", "--json").stdout)[
        "checkpointId"
    ]
    (tmp_path / "seen.py").write_text("new\n")

    told = home.here("restore", thread(2), marker, "--mode", "soft", "--dry-run").stdout.decode()

    assert "\nNotes:\n  step: Find the cause (done)\n  step: Mend it\n" in told
    assert "\nNot as they were at the end of the marker's turn:\n  seen.py  changed since\n" in told
    assert told.endswith("\nNot known whether they are as they were then:\n  part.py\n")


def test_unwritable_state_folder_is_named_with_an_alternative(home: Home) -> None:
    state = home.user / "state"
    state.write_text("a file\n")

    done = home.here("mark", thread(1), "--label", "x", "--state-dir", str(state))

    assert done.returncode == 1
    said_so = done.stderr.decode()
    assert f"It is {state}" in said_so
    assert "--state-dir names another state folder" in said_so
