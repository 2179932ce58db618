"""Codex's own summary, made in a scratch fork, is installed by us like any other replacement."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from codex.child import Child, eventually
from codex.codex_cli import HERE, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import PATIENCE, environment, product, run, service_over, worked
from codex.requests import sent
from codex.scripted_model import Answer, Json, say, shell
from codex_checkpoints.codex import SCRATCH, program
from codex_checkpoints.core.agents.codex.history.item_kinds import kind_of
from codex_checkpoints.core.agents.codex.history.tokens import of_items
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest
from codex_checkpoints.service.history.lineages import around, lineage
from codex_checkpoints.service.refusal import Cancelled, Refusal
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import ThreadQuery
from peer import Peer
from rollouts import rollout, session, tokens, turn, user
from rollouts import shell as commanded

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.codex

both = pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])

WORK = "I read it all, and this is what I saw. " * 200
SUMMARY = "The login is fixed, the logout is not."
LARGE = "01a1f865-0000-7000-8000-000000000001"
WINDOW = 60_000
CANCELLED = -32800
INTERRUPTED = 130
OUTPUT = "all of this was printed. " * 1_500
PATH = os.pathsep.join((str(HERE / "node_modules" / ".bin"), os.environ["PATH"]))


def script() -> list[Answer]:
    return [
        Answer(shell("cat README.md", "call_1")),
        Answer(say(WORK)),
        Answer(say(WORK)),
        *(Answer(say("Going on.")) for _ in range(3)),
    ]


def held() -> Answer:
    return Answer(say(SUMMARY), held=True)


def by_a_service(home: CodexHome) -> None:
    """Make Codex take its provider for one that compacts by itself."""
    config = home.codex_home / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('name = "scripted"', 'name = "OpenAI"'), encoding="utf-8")


def put(home: CodexHome, data: bytes) -> Path:
    """Put a session into a home as Codex would have."""
    path = home.codex_home / f"sessions/2026/11/20/rollout-2026-11-20T10-00-00-{LARGE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def surroundings(home: CodexHome) -> dict[str, str]:
    """What a person's terminal has: Codex on the PATH, and the key of its provider."""
    return home.environment() | {"PATH": PATH}


def compacting(home: CodexHome, sessions: Sessions) -> Compacting:
    return Compacting(sessions, outside(surroundings(home)))


def compacted(home: CodexHome, thread: str, into: Any = "new", **more: Any) -> Compacted:  # noqa: ANN401
    with service_over(home) as sessions:
        request = CompactionRequest(thread, into=into, strategy="codex", **more)
        return compacting(home, sessions).compact(request)


def refusal(home: CodexHome, thread: str, **more: Any) -> Refusal:  # noqa: ANN401
    with pytest.raises(Refusal) as refused:
        compacted(home, thread, **more)
    return refused.value


def scratches(home: CodexHome) -> list[str]:
    """The ids of the scratch forks, each of them put away and in no list."""
    with AppServer(home) as server:
        archived = server.listed(archived=True)
        assert not set(archived) & set(server.listed())
        assert [server.read(each)["name"] for each in archived] == [program.SCRATCH_NAME] * len(
            archived
        )
    return archived


def processes(home: CodexHome) -> list[str]:
    """The processes that work in this home."""
    wanted = f"CODEX_HOME={home.codex_home}".encode()
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (each / "environ").read_bytes().split(b"\0"):
                found.append((each / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def audit(home: CodexHome) -> list[Any]:
    path = home.codex_home / "codex-checkpoints" / "audit.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def records(home: CodexHome, session: str) -> list[Any]:
    path = home.codex_home / "codex-checkpoints" / "sessions" / session / "compactions.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def trust(home: CodexHome) -> None:
    """Trust the hooks of a home, as a person does in Codex."""
    with AppServer(home) as server:
        listed = server.call("hooks/list", {"cwds": [str(home.project)]})
        (entry,) = cast("list[dict[str, Any]]", listed["data"])
        trusted: Json = {
            hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in entry["hooks"]
        }
        edit: Json = {"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"}
        server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})


@both
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_summary_of_one_model_call_is_the_next_history_that_codex_sends(
    scripted: MakeHome, into: str, legacy: bool
) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, path = worked(home, legacy=legacy)
    before, calls = path.read_bytes(), len(model.turns)

    done = compacted(home, thread, into)

    assert (done.strategy, done.determinism) == ("codex", "model")
    assert [kind_of(item) for item in done.replacement] == ["user", "user", "summary"]
    assert path.read_bytes().startswith(before)
    assert into == "in-place" or path.read_bytes() == before
    assert len(scratches(home)) == 1
    for prompt in ("Go on.", "And on."):
        home.exec(prompt, resume=str(done.session_id))
        request = model.turns[-1]
        assert sent(request)[: len(done.replacement)] == list(done.replacement)
        assert request.texts("user")[-1] == prompt
        assert any(SUMMARY in text for text in request.texts("user"))
        assert not any(WORK[:30] in text for text in request.texts("assistant"))
    assert (len(model.turns), len(model.compactions)) == (calls + 2, 1)


def test_summary_is_recorded_like_any_compaction_with_its_strategy(scripted: MakeHome) -> None:
    home, _ = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home)

    done = compacted(home, thread)

    (record,) = [each for each in records(home, thread) if each["type"] == "installed"]
    assert (record["strategy"], record["determinism"]) == ("codex", "model")
    assert record["sessionId"] == done.session_id
    assert SUMMARY not in json.dumps(record)
    (event,) = audit(home)
    assert (event["type"], event["strategy"]) == ("CompactionInstalled", "codex")
    with service_over(home) as sessions:
        assert sessions.show(str(done.session_id)).data  # it goes on from the seed
    shown = json.loads(run(home, "windows", str(done.session_id), "--json"))
    assert shown[-1]["strategy"] == "codex"


@both
def test_encrypted_summary_is_installed_unchanged(scripted: MakeHome, legacy: bool) -> None:
    home, model = scripted(*script(), summaries=("gAAAAABsecret",))
    thread, path = worked(home, legacy=legacy)
    by_a_service(home)
    before = path.read_bytes()

    done = compacted(home, thread)
    home.exec("Go on.", resume=str(done.session_id))

    assert done.determinism == "provider"
    assert [kind_of(item) for item in done.replacement] == ["user", "user", "compaction"]
    assert sent(model.turns[-1])[:3] == list(done.replacement)
    assert len(model.compactions) == 1
    assert path.read_bytes() == before


@both
def test_undo_in_place_makes_codex_send_the_earlier_history(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home, legacy=legacy)
    done = compacted(home, thread, "in-place")

    with service_over(home) as sessions:
        Undoing(sessions, outside({})).uncompact(str(done.compaction_id))
    home.exec("Go on.", resume=thread)

    assert model.turns[-1].texts("assistant") == [WORK, WORK]
    assert not any(SUMMARY in text for text in model.turns[-1].texts("user"))


def test_calls_are_dropped_from_a_session_that_does_not_fit(scripted: MakeHome) -> None:
    home, model = scripted(Answer(say("Going on.")), summaries=(SUMMARY,))
    path = put(
        home,
        rollout(
            session(model_provider="scripted"),
            *(
                turn(
                    user(f"Fix {each}."),
                    commanded("make test", output=OUTPUT),
                    tokens(WINDOW, window=WINDOW),
                )
                for each in range(9)
            ),
        ),
    )
    before = path.read_bytes()

    done = compacted(home, LARGE)
    home.exec("Go on.", resume=str(done.session_id))

    (asked,) = model.compactions
    said = [text for text in asked.texts("user") if text.startswith("Fix")]
    assert said == [f"Fix {each}." for each in range(9)]
    kept = [item for item in asked.input if item["type"] == "function_call_output"]
    assert 0 < len(kept) < 9
    assert of_items(asked.input) < WINDOW
    assert sent(model.turns[-1])[: len(done.replacement)] == list(done.replacement)
    assert path.read_bytes() == before
    assert len(scratches(home)) == 1


@pytest.mark.parametrize("outputs", [1, 4])
def test_request_with_codexs_additions_fits_a_small_window(
    scripted: MakeHome, outputs: int
) -> None:
    home, model = scripted(Answer(say("Going on.")), summaries=(SUMMARY,))
    window, text = 16_000, "all of this was printed. " * (6_400 // outputs)
    put(
        home,
        rollout(
            session(model_provider="scripted"),
            *(
                turn(user(f"Fix {each}."), commanded("make test", output=text))
                for each in range(outputs)
            ),
            turn(user("And what is next here?"), tokens(window, window=window)),
        ),
    )

    compacted(home, LARGE)

    (asked,) = model.compactions
    assert -(-len(json.dumps(asked.body)) // 4) < window


def test_compressed_session_is_not_unpacked_for_a_summary(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, path = worked(home)
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstd.compress(path.read_bytes()))
    path.unlink()
    before = packed.read_bytes()

    done = compacted(home, thread)

    assert (packed.read_bytes(), path.exists()) == (before, False)
    assert [kind_of(item) for item in done.replacement] == ["user", "user", "summary"]
    (asked,) = model.compactions
    assert asked.texts("assistant") == [WORK, WORK]
    home.exec("Go on.", resume=str(done.session_id))
    assert sent(model.turns[-1])[: len(done.replacement)] == list(done.replacement)


def test_session_loaded_in_codex_continues_only_in_a_new_one(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, path = worked(home)
    with AppServer(home) as server:
        server.resume(thread)
        before = path.read_bytes()

        assert refusal(home, thread, into="in-place").code == "session_live"
        assert model.compactions == []
        done = compacted(home, thread)

        assert path.read_bytes() == before
        assert server.listed() == [done.session_id, thread]


def test_slow_model_leaves_no_files(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(held(),))
    thread, path = worked(home)
    before = path.read_bytes()

    refused = refusal(home, thread, seconds=3)

    assert (refused.code, refused.facts["seconds"]) == ("timed_out", 3)
    assert processes(home) == []
    assert path.read_bytes() == before
    assert len(model.compactions) == 1
    assert [(each["type"], each["code"]) for each in audit(home)] == [
        ("CompactionFailed", "timed_out")
    ]
    assert len(scratches(home)) == 1


def test_caller_can_cancel_while_the_model_works(scripted: MakeHome) -> None:
    summary = held()
    home, _ = scripted(*script(), summaries=(summary,))
    thread, path = worked(home)
    before, unwanted = path.read_bytes(), threading.Event()

    def cancel() -> None:
        summary.wait_until_asked()
        unwanted.set()

    with service_over(home) as sessions:
        service = compacting(home, sessions)
        steps = service.in_steps(CompactionRequest(thread, strategy="codex"), unwanted.is_set)
        asks_codex = next(steps)
        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(Cancelled):
            asks_codex()
        canceller.join()

    assert processes(home) == []
    assert path.read_bytes() == before
    assert len(scratches(home)) == 1


def test_failure_of_the_model_is_reported_in_its_own_words(scripted: MakeHome) -> None:
    home, _ = scripted(*script())
    thread, path = worked(home)
    before = path.read_bytes()

    refused = refusal(home, thread)

    assert refused.code == "codex_failed"
    assert "the script has no summary left" in str(refused.facts["reason"])
    assert [each["code"] for each in audit(home)] == ["codex_failed"]
    assert "summary" not in json.dumps(audit(home))
    assert path.read_bytes() == before
    assert len(scratches(home)) == 1


def test_session_that_grew_meanwhile_is_left_unchanged(scripted: MakeHome) -> None:
    home, _ = scripted(*script(), summaries=(SUMMARY,))
    thread, path = worked(home)

    with service_over(home) as sessions:
        service = compacting(home, sessions)
        steps = service.in_steps(CompactionRequest(thread, strategy="codex"))
        consulted = next(steps)()
        home.exec("And then?", resume=thread)
        before = path.read_bytes()
        with pytest.raises(Refusal) as refused:
            steps.send(consulted)

    assert (refused.value.code, refused.value.facts["reason"]) == ("conflict", "gone_on")
    assert path.read_bytes() == before


def test_preview_makes_no_model_call(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home)

    with service_over(home) as sessions, pytest.raises(Refusal) as refused:
        compacting(home, sessions).preview(CompactionRequest(thread, strategy="codex"))

    assert refused.value.code == "no_preview"
    assert refused.value.facts["tokensBefore"] == 1050
    assert model.compactions == []
    assert scratches(home) == []


def test_our_hook_adds_no_text_to_a_scratch_fork(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY, SUMMARY))
    thread, _ = worked(home)
    assert json.loads(run(home, "connect", "--json"))["written"] is True
    trust(home)

    compacted(home, thread)

    kept = home.codex_home / "codex-checkpoints" / "sessions"
    (fork,) = scratches(home)
    assert not (kept / fork / "markers.jsonl").exists()
    assert not (kept / fork / "receipts.jsonl").exists()
    assert [each["type"] for each in audit(home)] == ["CodexConnected", "CompactionInstalled"]
    with AppServer(home) as server:  # the same hook speaks where Codex compacts for itself
        server.resume(thread)
        server.compact(thread)
    assert (kept / thread / "receipts.jsonl").exists()
    assert len(model.compactions) == 2


def test_user_hook_that_stops_codex_stops_the_summary(scripted: MakeHome) -> None:
    home, model = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home)
    config = home.codex_home / "config.toml"
    answer = json.dumps({"continue": False, "stopReason": "not now"})
    with config.open("a", encoding="utf-8") as file:
        file.write("\n[[hooks.PreCompact]]\n[[hooks.PreCompact.hooks]]\ntype = 'command'\n")
        file.write(f"command = '''echo '{answer}' '''\n")
    trust(home)

    assert refusal(home, thread).code == "codex_failed"

    assert model.compactions == []
    assert len(scratches(home)) == 1


def test_next_start_archives_the_fork_of_a_killed_process(
    scripted: MakeHome,
) -> None:
    summary = held()
    home, _ = scripted(*script(), summaries=(summary, SUMMARY))
    thread, path = worked(home)
    before = path.read_bytes()
    command = product("compact", thread, "--strategy", "codex")
    with Child(
        command, home.root, environment(home) | surroundings(home), home.root / "compact.log"
    ) as child:
        child.stdout.close()
        summary.wait_until_asked()
        child.kill()

        eventually(lambda: processes(home), list, PATIENCE)

    assert path.read_bytes() == before
    (left,) = {thread_of(rollout) for rollout in home.rollouts()} - {thread}
    assert doctor(home, "scratch_left") == []
    assert archived(home) == [left]
    summary.release()
    assert compacted(home, thread).determinism == "model"


@both
def test_archived_scratch_fork_is_in_no_list_and_not_a_branch(
    scripted: MakeHome, legacy: bool
) -> None:
    home, _ = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home, legacy=legacy)

    done = compacted(home, thread)

    (fork,) = scratches(home)
    with service_over(home) as sessions:
        listed = {each.session_id: each.branches for each in sessions.summaries.page().items}
        assert listed == {thread: 1, done.session_id: 0}
        assert sessions.summaries.page(ThreadQuery(archived=True)).items == ()
        assert [each.session_id for each in around(sessions, thread).items] == [done.session_id]
        assert fork not in {node.id for node in lineage(sessions, thread).nodes}
        assert sessions.summaries.of(sessions.own(fork)).made_by is None


def test_unnamed_scratch_fork_is_archived_and_no_other_session(scripted: MakeHome) -> None:
    home, _ = scripted(*script())
    thread, _ = worked(home)
    with AppServer(home) as server:
        fork = server.call("thread/fork", {"threadId": thread, "threadSource": SCRATCH})
        own = server.call("thread/fork", {"threadId": thread})

    assert doctor(home, "scratch_left") == []

    assert archived(home) == [str(cast("Any", fork["thread"])["id"])]
    assert str(cast("Any", own["thread"])["id"]) in map(thread_of, home.rollouts())


def archived(home: CodexHome) -> list[str]:
    folder = home.codex_home / "archived_sessions"
    return [thread_of(rollout) for rollout in folder.glob("*.jsonl")]


def doctor(home: CodexHome, code: str) -> Sequence[Any]:
    findings = json.loads(run(home, "doctor", "--json"))["findings"]
    return [each for each in findings if each["code"] == code]


def thread_of(rollout: Path) -> str:
    return rollout.stem[-36:]


def test_command_reports_the_result(scripted: MakeHome) -> None:
    home, _ = scripted(*script(), summaries=(SUMMARY,))
    thread, _ = worked(home)

    done = subprocess.run(
        product("compact", thread, "--strategy", "codex", "--timeout", "60"),
        cwd=home.root,
        env=environment(home) | surroundings(home),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )

    said = done.stdout.decode()
    assert "summary: written by Codex's model; it would not write the same twice" in said
    assert "codex resume" in said
    assert SUMMARY not in said
    assert done.stderr.decode().startswith("Codex is asked for a summary")


def test_editor_is_served_meanwhile_and_can_cancel(scripted: MakeHome) -> None:
    summary = held()
    home, _ = scripted(*script(), summaries=(summary, SUMMARY))
    thread, path = worked(home)
    before = path.read_bytes()
    wish = {"sessionId": thread, "strategy": "codex"}

    def others() -> list[str]:
        """Return what works in the home beside the server."""
        return [each for each in processes(home) if "codex_checkpoints serve" not in each]

    with Peer(home.codex_home, env=surroundings(home)) as peer:
        peer.start()
        number = peer.ask("checkpoints/compact", wish)
        summary.wait_until_asked()
        assert others() != []
        assert len(peer.call("checkpoints/session", {"sessionId": thread})["turns"]) == 2
        assert peer.error("checkpoints/compactPreview", wish)["data"]["code"] == "no_preview"
        peer.notify("$/cancelRequest", {"id": number})
        assert peer.answer(number)["error"]["code"] == CANCELLED
        eventually(others, list, PATIENCE)
        assert path.read_bytes() == before
        done = peer.call("checkpoints/compact", wish)
        assert peer.stop() == 0

    assert (done["strategy"], done["determinism"]) == ("codex", "model")
    assert len(scratches(home)) == 2


def test_ctrl_c_cancels_while_the_model_works(scripted: MakeHome) -> None:
    summary = held()
    home, _ = scripted(*script(), summaries=(summary,))
    thread, path = worked(home)
    before = path.read_bytes()
    command = product("compact", thread, "--strategy", "codex")
    log = home.root / "compact.log"
    with Child(
        command, home.root, environment(home) | surroundings(home), log, piped=False
    ) as child:
        summary.wait_until_asked()
        child.interrupt()

        assert child.wait(PATIENCE) == INTERRUPTED

        assert child.errors().startswith("Codex is asked for a summary")
        assert "Traceback" not in child.errors()
    assert processes(home) == []
    assert path.read_bytes() == before
    assert len(scratches(home)) == 1
