"""The language server as any client sees it: the real process, JSON-RPC over its pipes."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

import rollouts as r
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.doors.lsp.app import next_look
from codex_checkpoints.doors.protocol import METHODS
from codex_checkpoints.service.sessions.session_watcher import SessionWatcher
from homes import Home, chat, eventually, more, summary, thread
from peer import WAIT, Peer

SECRET = "the-words-of-the-user-5f2a"

Json = dict[str, Any]


def fill(home: Home) -> None:
    """Two sessions, and an archived one that had a line which gave nothing."""
    first = r.turn(
        r.turn_context(),
        r.user(f"why? {SECRET}"),
        r.patch(add="auth.py"),
        r.plan(("look", True), ("fix", False)),
        r.tokens(1000),
    )
    home.put(
        r.rollout(
            r.session(thread=thread(1)), first, r.started("b"), r.user("go on with all of it")
        )
    )
    home.put(chat("two", 2, cwd="/home/ana/two").replace(b"T10:00", b"T09:00"), 2)
    damaged = r.rollout(r.session(thread=thread(3)), r.turn(r.user("three")), r.raw(b"no json\n"))
    home.put(damaged, 3, archived=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("protocol"))
    fill(home)
    return home


@pytest.fixture(scope="module")
def client(home: Home) -> Generator[Peer]:
    """One server for all tests that change nothing."""
    with Peer(home.root) as peer:
        peer.start()
        yield peer


@pytest.fixture
def own(tmp_path: Path) -> Home:
    """A home of the test's own."""
    return Home(tmp_path)


def one(home: Home) -> Json:
    return summary(home, title=f"why? {SECRET}")


def two(home: Home) -> Json:
    return summary(
        home,
        sessionId=thread(2),
        path=str(home.path(2)),
        cwd="/home/ana/two",
        title="two",
        task="two",
        updatedAt="2026-11-20T09:00:04.000Z",
        model=None,
        contextTokens=None,
        contextTokensSource="estimated",
        turns=1,
        seq=4,
    )


def refused(code: str, message: str, facts: Json) -> Json:
    return {"code": 1, "message": message, "data": {"code": code, "facts": facts}}


# --- one test a method ---------------------------------------------------------------------------


def test_initialize_announces_the_server_and_no_documents(own: Home):
    with Peer(own.root) as peer:
        result = peer.start()
        assert peer.stop() == 0

    assert result["serverInfo"]["name"] == "codex-checkpoints"
    sync = result["capabilities"]["textDocumentSync"]
    assert (sync if isinstance(sync, int) else sync["change"]) == 0
    assert (
        "executeCommandProvider" not in result["capabilities"]
        or not (result["capabilities"]["executeCommandProvider"]["commands"])
    )


def test_sessions_lists_sessions(client: Peer, home: Home):
    whole = client.call("checkpoints/sessions", {})
    first = client.call("checkpoints/sessions", {"limit": 1})
    rest = client.call("checkpoints/sessions", {"limit": 1, "cursor": first["nextCursor"]})

    assert whole == {"items": [one(home), two(home)], "nextCursor": None, "left": 0}
    assert first["items"] == [one(home)]
    assert rest == {"items": [two(home)], "nextCursor": None, "left": 0}
    choice = {"archived": True, "search": "THREE", "cwd": "/home/ana"}
    (found,) = client.call("checkpoints/sessions", choice)["items"]
    assert found["title"] == "three"


def test_show_returns_the_checkpoint(client: Peer, home: Home):
    answer = client.call("checkpoints/show", {"sessionId": thread(1)})

    assert answer == {
        "text": home.checkpoint().read_text(encoding="utf-8"),
        "changed": [],
        "planOrigin": "from turn 1",
        "recent": [
            {"uri": "auth.py", "kind": "file", "state": None, "words": "", "seen": "turn 1"}
        ],
    }
    assert json.loads(answer["text"])["task"]["text"] == "go on with all of it"
    at = client.call("checkpoints/show", {"sessionId": thread(1), "turnId": "t1"})
    assert json.loads(at["text"])["task"]["text"] == f"why? {SECRET}"
    assert client.call("checkpoints/show", {"sessionId": thread(1), "turnId": "1"}) == at


def test_view_returns_the_view(client: Peer):
    params = {"sessionId": thread(1), "caps": {"maxDonePlanSteps": 0, "maxDecisions": 3}}

    assert client.call("checkpoints/view", params) == {
        "text": "[SESSION_CHECKPOINT v1]\n\n[TASK]\n- go on with all of it\n\n[PLAN]\n"
        "- [ ] fix (id=s2)\n\n"
        "[RECENT_ARTIFACTS]\n- file: auth.py\n\n[DECISIONS]\n\n[FACTS_VALID]\n\n[FACTS_SUSPECT]\n",
        "caps": Caps(max_done_plan_steps=0, max_decisions=3).as_json(),
    }
    at = client.call("checkpoints/view", {"sessionId": thread(1), "turnId": "t1"})
    assert f"- why? {SECRET}\n" in at["text"]


def test_every_method_of_the_table_answers(client: Peer):
    """Whatever is said to it: a method without a handler would be unknown."""
    for method in METHODS:
        message = client.answer(client.ask(method.name, {"neverHeardOf": 1}))
        assert message["error"]["code"] == -32602, method.name


# --- one test a refusal --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "params", "facts"),
    [
        (
            "unknown_session",
            "No session 'nobody-here' under {root}.",
            {"sessionId": "nobody-here"},
            {"session": "nobody-here"},
        ),
        (
            "ambiguous_session",
            "3 sessions begin with '01a1f865-0000'.",
            {"sessionId": "01a1f865-0000"},
            {"candidates": [thread(1), thread(2), thread(3)]},
        ),
        (
            "unknown_turn",
            f"Session {thread(1)} has no turn '9'.",
            {"sessionId": thread(1), "turnId": "9"},
            {"sessionId": thread(1), "turnId": "9", "turns": 2},
        ),
    ],
)
def test_missing_subject_is_refused_by_every_method(  # noqa: PLR0917 - a row
    client: Peer, home: Home, code: str, message: str, params: Json, facts: Json
):
    wanted = refused(code, message.replace("{root}", str(home.root)), facts)
    for method in ("show", "view") if "turnId" in params else ("session", "show", "view"):
        assert client.error(f"checkpoints/{method}", params) == wanted


@pytest.mark.parametrize(
    ("method", "params", "problem"),
    [
        ("view", {"caps": {"maxDecisions": -1}}, "maxDecisions must be a whole number"),
        ("sessions", {"cursor": "x"}, "cursor"),
        ("sessions", {"cursor": "\ud800"}, "cursor"),
        ("sessions", {"cursor": "W1tdLHt9XQ="}, "cursor"),
        ("sessions", {"limit": -1}, "limit"),
    ],
)
def test_invalid_value_is_refused(client: Peer, method: str, params: Json, problem: str):
    session = {"sessionId": thread(1)} if method == "view" else {}
    told = client.error(f"checkpoints/{method}", session | params)

    (found,) = told["data"]["facts"]["problems"]
    assert (told["code"], told["data"]["code"]) == (1, "invalid_payload")
    assert found.startswith(problem)


def test_params_that_do_not_fit_are_refused_with_all_problems(client: Peer):
    told = client.error("checkpoints/show", {"turnId": 3, "more": 1})

    problems = told["data"]["facts"].pop("problems")
    assert told == {
        "code": -32602,
        "message": "params do not fit",
        "data": {"code": "invalid_payload", "facts": {}},
    }
    assert sorted(problems) == [
        "extra fields found (more) @ params",
        "invalid value for type, expected str | None @ params.turnId",
        "required field missing @ params.sessionId",
    ]
    for params in (None, [], ["x"]):
        assert client.error("checkpoints/show", params)["code"] == -32602


# --- requests in an unusual order ----------------------------------------------------------------


def test_request_before_initialized_is_answered(own: Home):
    own.put(chat("one"))

    with Peer(own.root) as peer:
        peer.initialize()
        assert peer.call("checkpoints/sessions")["items"][0]["title"] == "one"
        peer.start()
        assert peer.call("checkpoints/sessions")["items"][0]["title"] == "one"
        assert peer.stop() == 0


def test_request_before_initialize_does_nothing(own: Home, tmp_path: Path):
    """And the life cycle has an order, in which nothing stands twice."""
    own.put(chat("one"))
    pack = tmp_path / "pack.jsonl"
    request = {"method": "checkpoints/export", "params": {"sessionId": thread(1), "to": str(pack)}}

    with Peer(own.root) as peer:
        peer.send({"id": 7, **request})
        peer.send(request)
        peer.notify("initialized")
        early = peer.answer(7)["error"]
        assert (early["code"], early["data"]["code"]) == (-32002, "not_initialized")
        peer.send({"id": 8, "method": "shutdown"})
        assert peer.answer(8)["error"]["code"] == -32002
        assert not own.state.exists()

        peer.start()
        assert peer.error("initialize", {"capabilities": {}})["code"] == -32600
        assert peer.call("checkpoints/doctor")["sessions"] == 1
        peer.call("shutdown")
        assert peer.error("checkpoints/doctor")["code"] == -32800
        peer.notify("exit")
        assert peer.process.wait(WAIT) == 0
    assert not pack.exists()


def test_concurrent_requests_are_all_answered(client: Peer):
    numbers = [
        client.ask("checkpoints/show", {"sessionId": thread(1)})
        if number % 2
        else client.ask("checkpoints/sessions", {})
        for number in range(40)
    ]

    answers = [client.answer(number) for number in reversed(numbers)]

    assert [each for each in answers if "error" in each] == []


@pytest.mark.parametrize("number", ["text", "", 0, -1, 2**60])
def test_answer_has_the_id_of_its_request(client: Peer, number: int | str):
    client.send({"id": number, "method": "checkpoints/doctor", "params": {}})

    assert client.answer(number)["result"]["sessions"] == 3


def test_unknown_request_is_an_error_and_an_unknown_notification_is_ignored(client: Peer):
    client.notify("checkpoints/neverHeardOf")

    assert client.error("checkpoints/neverHeardOf", {})["code"] == -32601


# --- options -------------------------------------------------------------------------------------


def test_client_options_choose_folders_and_settings(own: Home, tmp_path: Path):
    own.put(
        r.rollout(
            r.session(thread=thread(1)), r.turn(r.user("one"), r.plan(("a", False), ("b", False)))
        )
    )
    own.config("[caps]\nmaxOpenPlanSteps = 2\nmaxDecisions = 7")
    (tmp_path / "other").mkdir()
    options = {
        "codexHome": str(own.root),
        "stateDir": str(own.state),
        "settings": {"caps": {"maxOpenPlanSteps": 1}},
    }

    with Peer(tmp_path / "other") as peer:
        peer.start(options)
        view = peer.call("checkpoints/view", {"sessionId": thread(1)})
        assert peer.stop() == 0

    assert view["caps"] == Caps(max_open_plan_steps=1, max_decisions=7).as_json()
    assert own.stored() is not None
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        {"neverHeardOf": 1, "settings": []},
        {"codexHome": "a\0b"},
        {"settings": {"neverHeardOf": 1, "hashLimitBytes": "x"}},
    ],
    ids=lambda options: ascii(options)[:40],
)
def test_invalid_options_are_ignored_and_reported_by_doctor(own: Home, options: object):
    own.put(chat("one"))

    with Peer(own.root) as peer:
        peer.start(options)
        report = peer.call("checkpoints/doctor")
        assert peer.call("checkpoints/sessions")["items"][0]["title"] == "one"

    assert report["codexHome"] == str(own.root)
    assert {finding["code"] for finding in report["findings"]} == {"bad_setting"}


# --- what changes is told ------------------------------------------------------------------------


def test_changes_are_notified_and_numbered_from_one(own: Home, tmp_path: Path):
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "a.py").write_text("v1")
    steps = r.turn(r.user("one"), r.patch(add="a.py"))
    own.put(r.rollout(r.session(thread=thread(1), cwd=str(shop)), steps))

    def told(seq: int, number: int, reason: str) -> Json:
        return {"sessionIds": [thread(number)], "seq": seq, "reason": reason}

    with Peer(own.root) as peer:
        peer.start()
        assert peer.heard("checkpoints/changed") == told(1, 1, "rollout")
        with own.path().open("ab") as file:
            file.write(more(r.started("z"), r.user("two"), thread=thread(1), ordinal=9))
        assert peer.heard("checkpoints/changed") == told(2, 1, "rollout")
        assert own.stored()["task"]["text"] == "two"

        (shop / "a.py").write_text("v2")
        assert peer.heard("checkpoints/changed") == told(3, 1, "workspace")
        wanted = "sha256:" + sha256(b"v2").hexdigest()
        assert own.stored()["artifacts"]["a.py"]["hash"] == wanted

        own.put(chat("a new day", 2, cwd=None), 2, day="2026/11/21")
        assert peer.heard("checkpoints/changed") == told(4, 2, "rollout")
        own.path(2, day="2026/11/21").unlink()
        assert peer.heard("checkpoints/changed") == told(5, 2, "rollout")
        assert len(peer.call("checkpoints/sessions")["items"]) == 1
        assert peer.stop() == 0


FAILING_ONCE = """
from codex_checkpoints.service.sessions.session_watcher import SessionWatcher
plain, failed = SessionWatcher.{look}, []
def once(self):
    if not failed:
        failed.append(True)
        raise ZeroDivisionError("{secret}")
    return plain(self)
SessionWatcher.{look} = once
"""


@pytest.mark.parametrize("look", ["beginning", "drain"])
def test_failed_check_is_logged_and_the_next_one_finds_the_missed_change(own: Home, look: str):
    own.put(chat("one"))
    with Peer(own.root, first=FAILING_ONCE.format(look=look, secret=SECRET)) as peer:
        peer.start()
        if look == "drain":
            assert peer.heard("checkpoints/changed")["sessionIds"] == [thread(1)]
            own.put(chat("two", 2), 2)
        eventually(lambda: any("follow: ZeroDivisionError" in line for line in peer.log))
        own.put(chat("three", 3), 3)

        told: set[str] = set()
        while thread(3) not in told:
            told |= {*peer.heard("checkpoints/changed")["sessionIds"]}
        assert told >= ({thread(2), thread(3)} if look == "drain" else {thread(1), thread(3)})
        assert peer.stop() == 0
        assert SECRET not in "".join(peer.log)


# --- the first index: progress and cancellation --------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """So many sessions that the first index takes several slices."""
    home = Home(tmp_path_factory.mktemp("many"))
    data = chat("one")
    for number in range(1, 1501):
        home.put(data.replace(thread(1).encode(), thread(number).encode()), number)
    return home


def progress(peer: Peer, token: object) -> Json:
    params = peer.heard("$/progress")
    assert params["token"] == token
    return params["value"]


def test_first_index_reports_progress(many: Home, tmp_path: Path):
    with Peer(many.root, "--state-dir", str(tmp_path / "state")) as peer:
        peer.start()
        number = peer.ask("checkpoints/sessions", {"limit": 1, "workDoneToken": "t"})
        seen = [progress(peer, "t")]
        while seen[-1]["kind"] != "end":
            seen.append(progress(peer, "t"))
        assert peer.answer(number)["result"]["items"][0]["title"] == "one"
        # Now it is there, and nobody waits.
        peer.call("checkpoints/sessions", {"limit": 1, "workDoneToken": "u"})
        assert peer.stop() == 0
        assert not [each for each in peer.notifications.queue if each["method"] == "$/progress"]

    assert seen[0] == {"kind": "begin", "title": "Reading sessions", "cancellable": True}
    reports = seen[1:-1]
    assert {each["kind"] for each in reports} == {"report"}
    shares = [each["percentage"] for each in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert reports[-1]["message"] == "1500 of 1500 session files"


def test_running_index_reports_progress_to_later_clients(many: Home, tmp_path: Path):
    with Peer(many.root, "--state-dir", str(tmp_path / "state")) as peer:
        peer.start()
        first = peer.ask("checkpoints/sessions", {"limit": 1})
        second = peer.ask("checkpoints/sessions", {"limit": 1, "workDoneToken": 7})

        assert progress(peer, 7)["kind"] == "begin"
        assert progress(peer, 7)["kind"] == "report"
        assert "result" in peer.answer(first)
        assert "result" in peer.answer(second)


def test_first_index_can_be_cancelled_and_requested_again(many: Home, tmp_path: Path):
    with Peer(many.root, "--state-dir", str(tmp_path / "state")) as peer:
        number = peer.ask("checkpoints/sessions", {"workDoneToken": "t"})
        assert progress(peer, "t")["kind"] == "begin"
        peer.notify("$/cancelRequest", {"id": number})
        answer = peer.answer(number)
        assert answer["error"]["code"] == -32800

        assert len(peer.call("checkpoints/sessions")["items"]) == 1500
        assert peer.call("checkpoints/doctor")["sessions"] == 1500
        peer.start()
        assert peer.stop() == 0
        assert peer.log == []


def test_cancelling_a_finished_or_unknown_request_changes_nothing(client: Peer):
    number = client.ask("checkpoints/doctor")
    client.answer(number)
    client.notify("$/cancelRequest", {"id": number})
    client.notify("$/cancelRequest", {"id": 99_999})

    assert client.call("checkpoints/doctor")["sessions"] == 3


# --- the end -------------------------------------------------------------------------------------


def children(pid: int) -> list[str]:
    found: list[str] = []
    for path in Path("/proc").glob(f"{pid}/task/*/children"):
        found += path.read_text().split()
    return found


def test_shutdown_and_exit_end_the_process_with_0_and_no_child(own: Home):
    own.put(chat("one"))

    with Peer(own.root) as peer:
        peer.start()
        peer.call("checkpoints/show", {"sessionId": thread(1)})
        assert children(peer.process.pid) == []
        assert peer.stop() == 0
        assert peer.log == []

    assert own.stored() is not None
    assert not list(own.state.glob("index.sqlite-*"))


def test_shutdown_during_the_first_index_ends_the_process(many: Home, tmp_path: Path):
    with Peer(many.root, "--state-dir", str(tmp_path / "state")) as peer:
        peer.start()
        number = peer.ask("checkpoints/sessions", {"workDoneToken": "t"})
        progress(peer, "t")
        assert peer.stop() == 0
        answer = peer.answer(number)
        assert "result" in answer or answer["error"]["code"] == -32800
        assert peer.log == []


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("last", [b"", b'Content-Length: 1000\r\n\r\n{"jsonrpc"'])
def test_end_of_input_ends_the_process(own: Home, begun: bool, last: bytes):
    own.put(chat("one"))

    with Peer(own.root) as peer:
        if begun:
            peer.start()
            peer.heard("checkpoints/changed")
        assert peer.process.stdin is not None
        peer.process.stdin.write(last)
        peer.process.stdin.close()
        assert peer.process.wait(WAIT) == 0
        assert last or peer.log == []


@pytest.mark.parametrize("steps", range(4))
def test_watcher_cancelled_while_a_change_wakes_it_ends(steps: int):
    async def story() -> None:
        wake = asyncio.Event()
        looking = asyncio.create_task(
            next_look(wake, cast("SessionWatcher", SimpleNamespace(patience=60)))
        )
        await asyncio.sleep(0)
        wake.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking

    asyncio.run(story())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_server_ends_with_its_killed_parent(own: Home):
    own.put(chat("one"))
    program = f"""
import json, subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "codex_checkpoints", "serve"],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
for method, params in (("initialize", {{"capabilities": {{}}}}),
                       ("checkpoints/show", {{"sessionId": "{thread(1)}"}})):
    message = {{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
server.stdin.flush()
print(server.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], env=own.environment(), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    server = int(parent.stdout.readline())
    eventually(own.stored)

    parent.send_signal(signal.SIGKILL)
    parent.wait(WAIT)
    parent.stdout.close()

    eventually(lambda: not is_running(server))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# --- clean streams -------------------------------------------------------------------------------


PRINTING = """
import sys
from codex_checkpoints.service.sessions.sessions import Sessions
plain = Sessions.refresh
def refresh(self, *asked):
    print("a stray line")
    sys.stdout.write("Content-Length: 5\\r\\n\\r\\n")
    return plain(self, *asked)
Sessions.refresh = refresh
"""
DEFECT = """
from codex_checkpoints.service.sessions.sessions import Sessions
def open(self, session):
    raise ZeroDivisionError("words\\n\\x1b[2J /home/ana")
Sessions.open = open
"""


def test_stray_print_does_not_reach_the_client(own: Home):
    own.put(chat("one"))

    with Peer(own.root, first=PRINTING) as peer:
        peer.start()
        assert peer.call("checkpoints/sessions")["items"][0]["title"] == "one"
        assert peer.call("checkpoints/doctor")["sessions"] == 1
        assert peer.stop() == 0
        assert "a stray line\n" in peer.log


def test_no_text_of_a_session_is_in_the_log(own: Home):
    fill(own)
    own.put(b"no zstd at all " + SECRET.encode(), 4, form=".jsonl.zst")
    own.put(r.rollout(r.session(thread=thread(5)), r.raw(f'{{"{SECRET}\n'.encode())), 5)

    with Peer(own.root) as peer:
        peer.start({"neverHeardOf": SECRET})
        peer.call("checkpoints/sessions", {"search": SECRET})
        peer.call("checkpoints/view", {"sessionId": thread(1)})
        peer.error("checkpoints/show", {"sessionId": SECRET})
        peer.error("checkpoints/show", {"sessionId": thread(4)})
        peer.error("checkpoints/show", {"sessionId": [SECRET]})
        peer.error(f"checkpoints/{SECRET}", {})
        peer.send_bytes(f'{{"{SECRET}'.encode())
        peer.call("checkpoints/doctor")
        assert peer.stop() == 0
        log = "".join(peer.log)

    assert SECRET not in log
    assert "Traceback" not in log


def test_internal_error_has_no_paths_and_the_server_continues(own: Home):
    own.put(chat("one"))

    with Peer(own.root, first=DEFECT) as peer:
        peer.start()
        assert peer.error("checkpoints/session", {"sessionId": thread(1)}) == {
            "code": -32603,
            "message": "checkpoints/session failed: ZeroDivisionError",
            "data": {"code": "internal", "facts": {}},
        }
        assert peer.call("checkpoints/doctor")["sessions"] == 1
        assert peer.stop() == 0
        log = "".join(peer.log)

    assert "ZeroDivisionError\n" in log
    assert "words" not in log
    assert "\x1b" not in log


# --- hostile bytes -------------------------------------------------------------------------------


def asking(method: str, params: bytes) -> bytes:
    """Write a request with params as they are."""
    head = b'{"jsonrpc":"2.0","id":900,"method":"checkpoints/%b","params":' % method.encode()
    return head + params + b"}"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"no json", b"\xff\xfe\x00", b"null", b"5", b'"text"', b"[]", b"{}"),
        b'[{"jsonrpc":"2.0","id":1,"method":"checkpoints/doctor"}]',
        b'{"jsonrpc":"1.0","id":900,"method":"checkpoints/doctor"}',
        b'{"id":900,"method":"checkpoints/doctor"}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":900}',
        b'{"jsonrpc":"2.0","method":5}',
        b'{"jsonrpc":"2.0","id":900,"method":null}',
        b'{"jsonrpc":"2.0","id":[1],"method":"checkpoints/doctor","params":{}}',
        b'{"jsonrpc":"2.0","id":null,"method":"checkpoints/doctor","params":{}}',
        b'{"jsonrpc":"2.0","id":900,"result":{}}',
        b'{"jsonrpc":"2.0","id":900,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":900,"result":1,"error":5}',
        b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":[]}}',
        b'{"jsonrpc":"2.0","method":"initialized","params":5}',
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}',
        b'{"jsonrpc":"2.0","method":"window/workDoneProgress/cancel","params":{"token":"x"}}',
        asking("show", b'{"sessionId":{"jsonrpc":"2.0","id":901,"method":"shutdown"}}'),
        asking("view", b'{"sessionId":"x","caps":{"jsonrpc":"2.0","method":"exit"}}'),
        asking("view", b'{"sessionId":"x","caps":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        asking("view", b'{"sessionId":"x","caps":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001),
        b"[" * 100_000 + b"]" * 100_000,
        asking("sessions", b'{"limit":NaN}'),
        asking("sessions", b'{"limit":1e999}'),
        asking("sessions", b'{"limit":' + b"9" * 5_000 + b"}"),
        asking("show", b'{"sessionId":"' + b"x" * 5_000_000 + b'"}'),
        b'{"jsonrpc":"2.0","id":900,"method":"' + b"x" * 1_000_000 + b'","params":{}}',
    ],
    ids=lambda body: body[:60].decode(errors="replace").encode("ascii", "replace").decode(),
)
def test_any_message_leaves_the_next_request_answered(client: Peer, body: bytes):
    client.send_bytes(body)

    assert client.call("checkpoints/doctor")["sessions"] == 3
    assert client.process.poll() is None


INVALID, UNKNOWN, MISFIT, UNREADABLE = -32600, -32601, -32602, -32700
DOCTOR: Json = {"jsonrpc": "2.0", "method": "checkpoints/doctor", "params": {}}


STRANGE: list[object] = [*([], [1], {}, {"a": []}, None, True, 1.5, [[[]]], {"id": 1})]
HELLOS: list[object] = [None, [], 5, "x", {}, {"capabilities": 5, "rootUri": [[]]}]
STRANGE_PARAMS: list[object] = [{}, [], {"textDocument": 5, "command": "x", "value": []}]


@pytest.mark.parametrize("number", STRANGE)
def test_id_of_another_type_is_refused(client: Peer, number: object):
    client.forget()
    for message in ({"id": number}, {"id": number, "method": 5}, DOCTOR | {"id": number}):
        client.send(message)

        told = client.answer(None)
        assert (told["error"]["code"], told["error"]["data"]) == (INVALID, None)
    for response in ({"result": 1}, {"error": {"code": 1, "message": "x"}}, {"error": 5}):
        client.send({"id": number, **response})
    assert client.call("checkpoints/doctor")["sessions"] == 3


@pytest.mark.parametrize(
    ("body", "number", "code"),
    [
        (b"[]", None, INVALID),
        (orjson.dumps([DOCTOR | {"id": 900}]), None, INVALID),
        (b"null", None, INVALID),
        (b'"text"', None, INVALID),
        (b"{}", None, INVALID),
        (b'{"jsonrpc":"2.0","id":900}', 900, INVALID),
        (b'{"jsonrpc":"1.0","id":900,"method":"checkpoints/doctor"}', 900, INVALID),
        (b'{"id":900,"method":"checkpoints/doctor"}', 900, INVALID),
        (b'{"jsonrpc":"2.0","id":900,"method":["checkpoints/doctor"]}', 900, INVALID),
        (b'{"jsonrpc":"2.0","id":900,"method":null}', 900, INVALID),
        (b"no json", None, UNREADABLE),
        (b"\xff\xfe\x00", None, UNREADABLE),
        (b"[" * 200_000, None, UNREADABLE),
        *(
            (orjson.dumps(DOCTOR | {"id": 900, "params": params}), 900, MISFIT)
            for params in ([], [1], "text", 5, True, {"nobody": 1})
        ),
        *(
            (orjson.dumps(DOCTOR | {"id": 900, "method": method, "params": params}), 900, UNKNOWN)
            for method in (
                "textDocument/didOpen",
                "textDocument/didChange",
                "workspace/executeCommand",
                "workspace/didChangeWorkspaceFolders",
                "notebookDocument/didOpen",
                "$/setTrace",
                "__init__",
                "",
            )
            for params in STRANGE_PARAMS
        ),
    ],
    ids=lambda value: value[:70].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_invalid_request_is_refused(client: Peer, body: bytes, number: int | None, code: int):
    client.forget()
    client.send_bytes(body)

    told = client.answer(number)
    assert told["error"]["code"] == code
    assert "Traceback" not in json.dumps(told)
    assert ".py" not in json.dumps(told)


@pytest.mark.parametrize("params", HELLOS)
@pytest.mark.parametrize("more", [{}, {"workspaceFolders": 5}, {"processId": {}, "trace": []}])
def test_initialize_accepts_unused_params(own: Home, params: object, more: Json):
    is_taken = isinstance(params, dict)
    given = {**cast("Json", params), **more} if is_taken else params

    with Peer(own.root) as peer:
        told = peer.answer(peer.ask("initialize", given))
        assert "Traceback" not in json.dumps(told)
        if is_taken:
            assert told["result"]["serverInfo"]["name"] == "codex-checkpoints"
        else:
            assert told["error"]["code"] == MISFIT
            peer.initialize()
        assert peer.call("checkpoints/doctor")["sessions"] == 0


def test_params_may_quote_a_message(client: Peer):
    """pygls looks for messages in the objects of params, too."""
    quoted = {"jsonrpc": "2.0", "id": 901, "method": "shutdown"}

    told = client.error("checkpoints/view", {"sessionId": thread(1), "caps": quoted})

    assert (told["code"], told["data"]["code"]) == (1, "invalid_payload")


def test_unknown_headers_do_not_end_the_server(client: Peer):
    assert client.process.stdin is not None
    for noise in (
        b"\r\n",
        b"X-Nobody: 1\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 100 + b"\r\n\r\n",
        b"x" * 50_000 + b"\r\n\r\n",
    ):
        client.process.stdin.write(noise)
        client.process.stdin.flush()

        assert client.call("checkpoints/doctor")["sessions"] == 3, noise[:30]


def test_hostile_session_names_are_refused_like_any_other(client: Peer):
    names = ("", "\0", "\ud800" * 10, "../" * 50, "x" * 100_000, "%s%n{}", "\x1b[2J-nobody")
    for name in (*names, "/nowhere/x.jsonl", "/\ud800.jsonl", "/a\0b.jsonl"):
        told = client.error("checkpoints/show", {"sessionId": name})
        assert told["code"] == 1, name
        assert told["data"]["code"] in {"unknown_session", "unreadable_source"}
