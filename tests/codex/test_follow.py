"""The checkpoint follows Codex: while it works, and afterwards in every kind of session.

The expectations are written by hand; only the numbers that Codex gave to its records are looked
up (`session_file.py`), and hashes are taken from the files as they lie there.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex.child import eventually
from codex.codex_cli import CODE_MODE_MODEL, PROJECT, AppServer, CodexHome
from codex.conftest import MakeHome
from codex.product import Document, Watch, environment, run, stored_checkpoint
from codex.scripted_model import (
    Answer,
    Json,
    Usage,
    apply_patch,
    call,
    say,
    script,
    shell,
    update_plan,
)
from codex.session_file import SessionFile, content_hash, hash_of
from peer import Peer

pytestmark = pytest.mark.codex

FRESH = 2.0
"""Seconds within which what happened must show."""

START = 20.0
"""Seconds that a follower may take to be up and to have read what was there before it."""

FIX = """\
*** Begin Patch
*** Update File: calc/core.py
@@
 def div(a, b):
-    return a // b
+    return a / b
*** Add File: CHANGES.md
+Division is true division.
*** End Patch"""

NOTE = "*** Begin Patch\n*** Add File: {name}\n+A note.\n*** End Patch"

COUNT = "wc -l calc/core.py"
SLOW = "until [ -e go ]; do sleep 0.05; done"
"""It only looks, and so it is no recent artifact."""

CORE = PROJECT["calc/core.py"]
FIXED = CORE.replace("a // b", "a / b")
PROVED = {
    "README.md": PROJECT["README.md"],  # printed whole
    "CHANGES.md": "Division is true division.\n",  # added, like the others
    **dict.fromkeys(("source.txt", "fork.txt", "reverted.txt"), "A note.\n"),
}

# What a checkpoint holds ---------------------------------------------------------------------

NO_PLAN: Document = {"steps": [], "done": {}}


def plan(call_id: str, *steps: tuple[str, bool]) -> Document:
    texts: list[Json] = [{"id": f"s{n}", "text": text} for n, (text, _) in enumerate(steps, 1)]
    done: Document = {f"s{n}": is_done for n, (_, is_done) in enumerate(steps, 1)}
    evidence: Document = {"source": "tool_output", "ref": call_id}
    return {"steps": texts, "done": done, "evidence": evidence}


def file(home: CodexHome, name: str, seq: int, seen: str = "") -> Document:
    """A file as it lies there, and as it was seen: by its whole content, where that is known."""
    then = seen or PROVED.get(name)
    known: Document = {} if then is None else {"seenHash": hash_of(then)}
    now: Document = {"uri": name, "kind": "file", "hash": content_hash(home.project / name)}
    return now | known | {"lastObservedSeq": seq}


def command(text: str, seq: int) -> Document:
    return {"uri": text, "kind": "command", "lastObservedSeq": seq}


def checkpoint(said: SessionFile, task: str, steps: Document, *artifacts: Document) -> bytes:
    """The bytes of a checkpoint with these artifacts, the most recent first."""
    uris = [str(artifact["uri"]) for artifact in artifacts]
    evidence: Document = {"source": "user", "ref": said.user_message(task)}
    document: Document = {
        "schemaVersion": 1,
        "seq": said.seq,
        "task": {"text": task, "evidence": evidence},
        "plan": steps,
        "decisions": [],
        "artifacts": {uri: artifacts[uris.index(uri)] for uri in sorted(uris)},
        "facts": {},
        "recentArtifacts": [uri for uri in uris if uri not in (COUNT, SLOW)],
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# One session, step by step -------------------------------------------------------------------

TASK = "Fix the division in calc."
STEPS = ("Read the module", "Fix the division", "Count the lines")


class Work:
    """A session in which Codex plans, reads, changes and counts, one held step after the other."""

    def __init__(self) -> None:
        read, fix, count = STEPS
        open_steps = [(read, "in_progress"), (fix, "pending"), (count, "pending")]
        done_steps = [(step, "completed") for step in STEPS]
        self.asks = Answer(update_plan(open_steps, "call_plan"), held=True)
        self.has_planned = Answer(shell("cat calc/core.py", "call_read"), held=True)
        self.has_read = Answer(apply_patch(FIX, "call_fix"), held=True)
        self.has_fixed = Answer(shell(COUNT, "call_count"), held=True)
        self.has_counted = Answer(update_plan(done_steps, "call_done"), held=True)
        self.is_done = Answer(say("Fixed."), usage=Usage(input=4321, output=21), held=True)

    def answers(self) -> tuple[Answer, ...]:
        return (
            self.asks,
            self.has_planned,
            self.has_read,
            self.has_fixed,
            self.has_counted,
            self.is_done,
        )

    def states(self, home: CodexHome) -> list[tuple[Answer, Callable[[SessionFile], bytes]]]:
        """What the checkpoint is while each of the answers is held."""

        def read(said: SessionFile) -> Document:
            return file(home, "calc/core.py", said.outcome("call_read"), CORE)

        def fixed(said: SessionFile) -> list[Document]:
            seq = said.outcome("call_fix")
            return [file(home, "CHANGES.md", seq), file(home, "calc/core.py", seq, FIXED)]

        def counted(said: SessionFile) -> Document:
            return command(COUNT, said.outcome("call_count"))

        begun = plan("call_plan", *((step, False) for step in STEPS))
        return [
            (self.asks, lambda said: checkpoint(said, TASK, NO_PLAN)),
            (self.has_planned, lambda said: checkpoint(said, TASK, begun)),
            (self.has_read, lambda said: checkpoint(said, TASK, begun, read(said))),
            (self.has_fixed, lambda said: checkpoint(said, TASK, begun, *fixed(said))),
            (
                self.has_counted,
                lambda said: checkpoint(said, TASK, begun, counted(said), *fixed(said)),
            ),
            (self.is_done, lambda said: self.end(home, said)),
        ]

    def end(self, home: CodexHome, said: SessionFile, task: str = TASK) -> bytes:
        """What the checkpoint is when all is done."""
        seq = said.outcome("call_fix")
        return checkpoint(
            said,
            task,
            plan("call_done", *((step, True) for step in STEPS)),
            command(COUNT, said.outcome("call_count")),
            file(home, "CHANGES.md", seq),
            file(home, "calc/core.py", seq, FIXED),
        )


def session_file(home: CodexHome, session: str) -> SessionFile:
    (path,) = (path for path in home.rollouts() if session in path.name)
    return SessionFile(path)


def edit(path: Path) -> None:
    """Change a file as an editor does that is not ours."""
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")


def test_watch_keeps_the_checkpoint_current_while_codex_works(scripted: MakeHome) -> None:
    work = Work()
    home, model = scripted(Answer(say("Hello.")), *work.answers(), Answer(say("Thanks.")))

    def is_stored(session: str, expected: Callable[[SessionFile], bytes], within: float) -> None:
        eventually(
            lambda: stored_checkpoint(home, session),
            lambda: expected(session_file(home, session)),
            within,
        )

    earlier = home.exec("Hello?")
    with Watch(home) as watch:
        is_stored(earlier, lambda said: checkpoint(said, "Hello?", NO_PLAN), START)

        with home.run(TASK) as codex:
            session = codex.session_id()
            for answer, expected in work.states(home):
                answer.wait_until_asked()
                is_stored(session, expected, FRESH)
                answer.release()
            codex.finish()
        is_stored(session, lambda said: work.end(home, said), FRESH)

        edit(home.project / "calc/core.py")
        is_stored(session, lambda said: work.end(home, said), FRESH)

        home.exec("Thank you very much, Codex.", resume=session)
        is_stored(session, lambda said: work.end(home, said, "Thank you very much, Codex."), FRESH)

        assert watch.stop() == 130
    assert "Traceback" not in watch.log()
    assert model.unscripted == []


def test_serve_notifies_its_client_while_codex_works(scripted: MakeHome) -> None:
    work = Work()
    home, model = scripted(*work.answers())

    with Peer(home.codex_home, env=environment(home)) as server:
        server.start()
        assert server.call("checkpoints/sessions", {})["items"] == []
        changes: list[Any] = []

        def catch_up() -> None:
            while not server.notifications.empty():
                changes.append(server.heard("checkpoints/changed"))

        def tells(session: str, expected: Callable[[SessionFile], bytes]) -> None:
            start, named = time.monotonic(), list[str]()
            while session not in named:
                changes.append(server.heard("checkpoints/changed"))
                named = changes[-1]["sessionIds"]
            assert time.monotonic() - start < FRESH, "".join(server.log)
            eventually(
                lambda: server.call("checkpoints/show", {"sessionId": session})["text"],
                lambda: expected(session_file(home, session)).decode(),
                start + FRESH - time.monotonic(),
            )

        with home.run(TASK) as codex:
            session = codex.session_id()
            for answer, expected in work.states(home):
                answer.wait_until_asked()
                tells(session, expected)
                assert row(server)["live"] is True
                catch_up()
                answer.release()
            codex.finish()
        tells(session, lambda said: work.end(home, said))
        assert server.call("checkpoints/view", {"sessionId": session})["text"] == view(home)

        catch_up()
        edit(home.project / "calc/core.py")
        tells(session, lambda said: work.end(home, said))
        assert server.call("checkpoints/view", {"sessionId": session})["text"] == view(home)

        catch_up()
        assert [change["seq"] for change in changes] == list(range(1, len(changes) + 1))
        assert {type(change["reason"]) for change in changes} == {str}
        assert {
            "sessionId": session,
            "path": str(home.rollouts()[0]),
            "cwd": str(home.project),
            "title": TASK,
            "task": TASK,
            "model": "gpt-5.5",
            "contextTokens": 4342,
            "contextTokensSource": "reported",
            "compactions": 0,
            "suspectFacts": 0,
            "live": False,
            "archived": False,
            "forkedFrom": None,
            "parentSession": None,
        }.items() <= row(server).items()

        assert server.stop() == 0
    assert "Traceback" not in "".join(server.log)
    assert model.unscripted == []


def row(server: Peer) -> Document:
    """The one session that the server lists."""
    (only,) = server.call("checkpoints/sessions", {})["items"]
    return only


def view(home: CodexHome) -> str:
    core = home.project / "calc/core.py"
    changed = "" if core.read_text(encoding="utf-8") == FIXED else " changed"
    return f"""\
[SESSION_CHECKPOINT v1]

[TASK]
- Fix the division in calc.

[PLAN]
- [x] Read the module (id=s1)
- [x] Fix the division (id=s2)
- [x] Count the lines (id=s3)

[RECENT_ARTIFACTS]
- file: CHANGES.md (hash={content_hash(home.project / "CHANGES.md")[:19]})
- file: calc/core.py (hash={content_hash(core)[:19]}{changed})

[DECISIONS]

[FACTS_VALID]

[FACTS_SUSPECT]
"""


# Every kind of session, afterwards -----------------------------------------------------------


def look_and_fix() -> tuple[Answer, ...]:
    """One turn: a plan, a read, a change, a command."""
    return (
        Answer(update_plan([("Look", "completed"), ("Fix", "in_progress")], "call_plan")),
        Answer(shell("cat README.md", "call_read")),
        Answer(apply_patch(FIX, "call_fix")),
        Answer(shell(COUNT, "call_count")),
        Answer(say("Fixed.")),
    )


def looked_and_fixed(home: CodexHome, said: SessionFile) -> list[Document]:
    """The artifacts of that turn, the most recent first."""
    seq = said.outcome("call_fix")
    return [
        command(COUNT, said.outcome("call_count")),
        file(home, "CHANGES.md", seq),
        file(home, "calc/core.py", seq),
        file(home, "README.md", said.outcome("call_read")),
    ]


PLANNED = plan("call_plan", ("Look", True), ("Fix", False))


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_a_compaction_loses_neither_task_nor_plan_nor_files(
    scripted: MakeHome, legacy: bool
) -> None:
    home, model = scripted(*look_and_fix(), Answer(say("Here.")), summaries=("Do something else.",))

    with AppServer(home) as server:
        session = server.start(legacy=legacy)
        server.turn(session, TASK)
        server.compact(session)
        compacted = session_file(home, session)
        artifacts = looked_and_fixed(home, compacted)
        expected = checkpoint(compacted, TASK, PLANNED, *artifacts)
        assert run(home, "show", session) == expected

        server.turn(session, "Are you still there, Codex?")

    said = session_file(home, session)
    expected = checkpoint(
        said, "Are you still there, Codex?", PLANNED, *looked_and_fixed(home, said)
    )
    assert run(home, "show", session) == expected
    assert model.unscripted == []


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_fork_has_its_own_work_and_the_work_before_it(scripted: MakeHome, legacy: bool) -> None:
    home, model = scripted(
        *look_and_fix(),
        Answer(apply_patch(NOTE.format(name="source.txt"), "call_source")),
        Answer(say("Noted.")),
        Answer(apply_patch(NOTE.format(name="fork.txt"), "call_fork")),
        Answer(say("Noted as well.")),
    )

    with AppServer(home) as server:
        source = server.start(legacy=legacy)
        first = server.turn(source, TASK)
        server.turn(source, "Write a note for later.")
        fork = server.fork(source, first)
        server.turn(fork, "Write another note, too.")

    base = session_file(home, source)
    (path,) = (path for path in home.rollouts() if fork in path.name)
    said = SessionFile(path) if legacy else SessionFile(path, base)
    assert run(home, "show", fork) == checkpoint(
        said,
        "Write another note, too.",
        PLANNED,
        file(home, "fork.txt", said.outcome("call_fork")),
        *looked_and_fixed(home, said),
    )
    assert run(home, "show", source) == checkpoint(
        base,
        "Write a note for later.",
        PLANNED,
        file(home, "source.txt", base.outcome("call_source")),
        *looked_and_fixed(home, base),
    )
    assert model.unscripted == []


def test_a_reverted_turn_no_longer_counts(scripted: MakeHome) -> None:
    home, model = scripted(
        *look_and_fix(),
        Answer(update_plan([("Write a note", "pending")], "call_other_plan")),
        Answer(apply_patch(NOTE.format(name="reverted.txt"), "call_note")),
        Answer(say("Noted.")),
        Answer(say("Forgotten.")),
    )

    with AppServer(home) as server:
        session = server.start()
        server.turn(session, TASK)
        wrong = server.turn(session, "Write a note for later.")
        server.revert(session, wrong)
        server.turn(session, "Forget about the note.")

    first, segment = home.rollouts()
    said = SessionFile(segment, SessionFile(first))
    expected = checkpoint(said, "Forget about the note.", PLANNED, *looked_and_fixed(home, said))
    assert run(home, "show", session) == expected
    assert model.unscripted == []


@pytest.mark.parametrize("legacy", [False, True], ids=["paginated", "legacy"])
def test_interrupted_turn_keeps_its_work(scripted: MakeHome, legacy: bool) -> None:
    thinking = Answer(say("Never said."), held=True)
    home, model = scripted(*look_and_fix()[:-1], thinking)

    with AppServer(home) as server:
        session = server.start(legacy=legacy)
        turn = server.begin(session, TASK)
        thinking.wait_until_asked()
        server.interrupt(session, turn)

    said = session_file(home, session)
    expected = checkpoint(said, TASK, PLANNED, *looked_and_fixed(home, said))
    assert run(home, "show", session) == expected
    assert model.unscripted == []


def test_interrupted_command_counts_as_run(scripted: MakeHome) -> None:
    home, model = scripted(Answer(shell(SLOW, "call_slow", yield_time_ms=20_000)))

    with AppServer(home) as server:
        session = server.start()
        turn = server.begin(session, TASK)
        server.wait_for("item/started", lambda params: "[ -e go ]" in json.dumps(params))
        server.interrupt(session, turn)
        running = checkpoint(session_file(home, session), TASK, NO_PLAN)
        assert run(home, "show", session) == running

        # Codex lets an interrupted command go on; its record comes when it ends.
        (home.project / "go").touch()
        server.wait_for("item/completed", lambda params: "[ -e go ]" in json.dumps(params))

    said = session_file(home, session)
    expected = checkpoint(said, TASK, NO_PLAN, command(SLOW, said.outcome("call_slow")))
    assert run(home, "show", session) == expected
    assert model.unscripted == []


def test_a_subagent_has_a_checkpoint_of_its_own(scripted: MakeHome) -> None:
    errand = "Count the lines of calc/core.py."
    # The report waits for the end of the parent's turn: inside it Codex would ask the model again.
    reports = Answer(say("Six."), to=errand, held=True)
    home, model = scripted(
        Answer(call("spawn_agent", {"message": errand}, "call_spawn", "multi_agent_v1")),
        Answer(shell("cat README.md", "call_read")),
        Answer(say("The helper counts.")),
        Answer(shell(COUNT, "call_count"), to=errand),
        reports,
    )

    with AppServer(home) as server:
        parent = server.start()
        server.turn(parent, TASK)
        reports.wait_until_asked()
        reports.release()
        server.wait_for("turn/completed", lambda params: params.get("threadId") != parent)

    (child_path,) = (path for path in home.rollouts() if parent not in path.name)
    helper = SessionFile(child_path)
    child = str(helper.meta["id"])
    counted = command(COUNT, helper.outcome("call_count"))
    assert run(home, "show", child) == checkpoint(helper, errand, NO_PLAN, counted)

    shown: Document = json.loads(run(home, "show", parent))
    said = session_file(home, parent)
    assert shown["task"] == {
        "text": TASK,
        "evidence": {"source": "user", "ref": said.user_message(TASK)},
    }
    assert shown["recentArtifacts"] == ["README.md", "spawn_agent/call_spawn"]

    rows: list[Document] = json.loads(run(home, "sessions", "--json"))
    assert {row["sessionId"]: row["parentSession"] for row in rows} == {parent: None, child: parent}
    assert model.unscripted == []


def test_code_mode_calls_inside_a_script_count(scripted: MakeHome) -> None:
    source = f"""
        await tools.exec_command({{cmd: "cat README.md"}});
        await tools.apply_patch({json.dumps(FIX)});
        const r = await tools.exec_command({{cmd: "{COUNT}"}});
        text(r.output);
    """
    home, model = scripted(
        Answer(update_plan([("Look", "completed"), ("Fix", "in_progress")], "call_plan")),
        Answer(script(source, "call_script")),
        Answer(say("Fixed.")),
        model_name=CODE_MODE_MODEL,
    )

    session = home.exec(TASK)

    said = session_file(home, session)
    fixed = said.change(home.project / "calc/core.py")
    assert run(home, "show", session) == checkpoint(
        said,
        TASK,
        PLANNED,
        command(COUNT, said.command(COUNT)),
        file(home, "CHANGES.md", fixed),
        file(home, "calc/core.py", fixed),
        file(home, "README.md", said.command("cat README.md")),
    )
    assert model.unscripted == []


def test_an_archived_session_is_still_shown(scripted: MakeHome) -> None:
    home, model = scripted(*look_and_fix())

    with AppServer(home) as server:
        session = server.start()
        server.turn(session, TASK)
        server.archive(session)

    said = session_file(home, session)
    expected = checkpoint(said, TASK, PLANNED, *looked_and_fixed(home, said))
    assert run(home, "show", session) == expected
    assert model.unscripted == []
