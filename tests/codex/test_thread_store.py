"""The real Codex accepts the files of the store; neither writes while the other does.

All goes through `LocalThreadStore`; Codex is asked afterwards, in a process of its own.
"""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from codex.child import eventually
from codex.codex_cli import AppServer, CodexHome
from codex.conftest import MakeHome
from codex.scripted_model import Answer, Usage, say
from codex_checkpoints.storage import locks, records
from codex_checkpoints.storage.contract import HistoryItem, NewThread, Patch, ThreadIsLive
from codex_checkpoints.storage.local import LocalThreadStore

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.codex

SERVER = Path(__file__).parents[2] / "server"
NEW = "01a1f865-0000-7000-8000-0000000000aa"
CHECKPOINT = "[SESSION_CHECKPOINT v1]\n- größer 日本 🙂"
ZERO = {
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 0,
    "reasoning_output_tokens": 0,
    "total_tokens": 0,
}


def now() -> datetime:
    return datetime.now(UTC)


def message(text: str) -> dict[str, object]:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }


def compacted(*texts: str) -> HistoryItem:
    replacement = [message(text) for text in texts]
    return HistoryItem("compacted", {"message": texts[-1], "replacement_history": replacement})


TOKENS = HistoryItem(
    "event_msg",
    {
        "type": "token_count",
        "info": {
            "total_token_usage": ZERO,
            "last_token_usage": ZERO,
            "model_context_window": 258_400,
        },
        "rate_limits": None,
    },
)


@contextmanager
def opened(home: CodexHome) -> Generator[LocalThreadStore]:
    """Open the store of a home as one process of ours does."""
    folder = str(home.codex_home)
    store = LocalThreadStore(folder, f"{folder}/codex-checkpoints", records.now)
    try:
        yield store
    finally:
        store.close()


def new_session(mode: str, cwd: Path) -> NewThread:
    """Return a session that begins with a replacement, and two lines that name it for people."""
    moment = now()
    text = "Restored from a checkpoint"
    at = moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
    meta: dict[str, object] = {
        "session_id": NEW,
        "id": NEW,
        "timestamp": at,
        "cwd": str(cwd),
        "originator": "codex-checkpoints",
        "cli_version": "0.169.0",
        "source": "cli",
        "model_provider": "scripted",
        "history_mode": mode,
    }
    said: dict[str, object] = {
        "type": "item_completed",
        "thread_id": NEW,
        "turn_id": "t1",
        "item": {
            "type": "UserMessage",
            "id": "u1",
            "content": [{"type": "text", "text": text, "text_elements": []}],
        },
        "started_at_ms": int(moment.timestamp() * 1000),
        "completed_at_ms": int(moment.timestamp() * 1000),
    }
    if mode == "legacy":
        said = {"type": "user_message", "message": text, "images": [], "text_elements": []}
    begun = {"started_at": int(moment.timestamp()), "collaboration_mode_kind": "default"}
    ended = {"completed_at": int(moment.timestamp()), "duration_ms": 0}
    done = {"type": "task_complete", "turn_id": "t1", "last_agent_message": None, **ended}
    return NewThread(
        meta,
        (
            compacted("Hello world", CHECKPOINT),
            HistoryItem("event_msg", {"type": "task_started", "turn_id": "t1", **begun}),
            HistoryItem("event_msg", said),
            HistoryItem("event_msg", done),
        ),
    )


def published(home: CodexHome, mode: str = "paginated") -> Path:
    with opened(home) as store:
        return Path(store.create_thread(new_session(mode, home.project), now()).path)


def append(home: CodexHome, thread: str, *items: HistoryItem) -> None:
    with opened(home) as store:
        store.append_items(thread, items, now())


def archive(home: CodexHome, thread: str) -> None:
    with opened(home) as store:
        assert store.archive_thread(thread).archived


def unarchive(home: CodexHome, thread: str) -> None:
    with opened(home) as store:
        assert not store.unarchive_thread(thread).archived


def rename(home: CodexHome, thread: str, name: str | None) -> None:
    with opened(home) as store:
        store.update_thread_metadata([(thread, Patch(name=name))])
        assert store.read_thread(thread).name == name


def of_people(texts: list[str], *known: str) -> list[str]:
    return [text for text in texts if text in known]


def lock_files(home: CodexHome) -> list[str]:
    return sorted(path.name for path in (home.codex_home / "thread-writer-locks").iterdir())


def forget(home: CodexHome) -> None:
    """Take away all that Codex knows beside its session files."""
    for database in home.codex_home.glob("*.sqlite*"):
        database.unlink()


def row(home: CodexHome, thread: str) -> Any:  # noqa: ANN401 - any row
    """Return what Codex's database says of a thread, None where it says nothing."""
    if not (home.codex_home / "state_5.sqlite").exists():
        return None
    with closing(sqlite3.connect(home.codex_home / "state_5.sqlite")) as database:
        query = "SELECT rollout_path, archived FROM threads WHERE id = ?"
        return database.execute(query, (thread,)).fetchone()


# --- a new thread --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["paginated", "legacy"])
def test_codex_lists_reads_resumes_and_forks_our_thread(scripted: MakeHome, mode: str) -> None:
    home, model = scripted(*(Answer(say(f"Answer {n}.")) for n in range(3)))
    path = published(home, mode)
    before = path.read_bytes()
    assert row(home, NEW) is None

    with AppServer(home) as server:
        assert server.listed() == [NEW]
        read = server.read(NEW)
        assert (read["preview"], read["path"]) == ("Restored from a checkpoint", str(path))
        assert read["historyMode"] == mode
        fork = server.fork(NEW)
        server.turn(fork, "In the fork.")
    home.exec("Next.", resume=NEW)

    known = ("Hello world", CHECKPOINT, "In the fork.", "Next.", "Restored from a checkpoint")
    assert [of_people(request.texts("user"), *known) for request in model.turns] == [
        ["Hello world", CHECKPOINT, "In the fork."],
        ["Hello world", CHECKPOINT, "Next."],
    ]
    assert path.read_bytes().startswith(before)
    assert model.unscripted == []


def test_new_thread_is_listed_at_once_while_codex_runs(scripted: MakeHome) -> None:
    home, _ = scripted()

    with AppServer(home) as server:
        assert server.listed() == []
        published(home)
        assert server.listed() == [NEW]


# --- an append -----------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", [False, True])
def test_append_counts_at_the_next_resume_without_another_model_call(
    scripted: MakeHome, legacy: bool
) -> None:
    # So much that Codex would compact by itself before the next turn.
    home, model = scripted(
        Answer(say("Big answer."), usage=Usage(input=255_000)), Answer(say("Small answer."))
    )
    with AppServer(home) as server:
        thread = server.start(legacy=legacy)
        server.turn(thread, "First.")
    (path,) = home.rollouts()
    before = path.read_bytes()

    append(home, thread, compacted("First.", CHECKPOINT), TOKENS)
    after = path.read_bytes()
    home.exec("Second.", resume=thread)

    assert len(model.turns) == 2
    assert model.compactions == []
    sent = model.turns[-1]
    assert of_people(sent.texts("user"), "First.", CHECKPOINT, "Second.") == [
        "First.",
        CHECKPOINT,
        "Second.",
    ]
    assert sent.texts("assistant") == []
    assert after.startswith(before)
    assert path.read_bytes().startswith(after)
    if not legacy:
        ordinals = [json.loads(line)["ordinal"] for line in path.read_bytes().splitlines()]
        assert ordinals == list(range(len(ordinals)))


@pytest.mark.parametrize(
    "end",
    [b'{"timestamp":"2026-11-20T10:00:0', b"\0" * 100, b'{"timestamp":"t","type":"x"}\n', b"\n\n"],
    ids=["torn", "zeros", "unknown", "blank"],
)
def test_codex_continues_a_damaged_file_that_we_appended_to(scripted: MakeHome, end: bytes) -> None:
    home, model = scripted(Answer(say("One.")), Answer(say("Two.")))
    thread = home.exec("First.")
    (path,) = home.rollouts()
    with path.open("ab") as file:
        file.write(end)

    append(home, thread, compacted(CHECKPOINT), TOKENS)
    home.exec("Second.", resume=thread)

    sent = model.turns[-1].texts("user")
    assert of_people(sent, "First.", CHECKPOINT, "Second.") == [CHECKPOINT, "Second."]


def test_our_torn_line_never_prevents_codex_from_resuming(scripted: MakeHome) -> None:
    """Were it not ASCII, a cut inside a letter would, once its database is gone."""
    home, _ = scripted(Answer(say("One.")))
    thread = home.exec("First.")
    (path,) = home.rollouts()
    whole = path.read_bytes()
    append(home, thread, compacted("ä"))
    ours = path.read_bytes()
    inside = len(whole) + ours[len(whole) :].index(b"\\u00e4") + 3

    path.write_bytes(ours[:inside])
    forget(home)
    with AppServer(home) as server:
        assert server.resume(thread) == thread

    path.write_bytes(whole + "ä".encode()[:1])
    forget(home)
    with AppServer(home) as server:
        assert server.refusal("thread/resume", {"threadId": thread})


# --- who holds the lock --------------------------------------------------------------------------


def test_nothing_is_written_while_codex_has_the_thread_loaded(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")))

    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "First.")
        (path,) = home.rollouts()
        before, files = path.read_bytes(), lock_files(home)
        with pytest.raises(ThreadIsLive):
            append(home, thread, TOKENS)
        for change in (archive, unarchive):
            with pytest.raises(ThreadIsLive):
                change(home, thread)
        with opened(home) as store:
            assert store.live_threads() == {thread}
        assert (path.read_bytes(), lock_files(home)) == (before, files)
    append(home, thread, TOKENS)

    assert lock_files(home) == [".coordination.lock"]


def test_codex_is_refused_while_we_hold_the_lock(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")))
    thread = home.exec("First.")

    with AppServer(home) as server:
        with locks.hold(str(home.codex_home), thread):  # as the store does to write
            said = server.refusal("thread/resume", {"threadId": thread})
            assert "already has an active writer" in said
            assert server.read(thread)["id"] == thread
        assert server.resume(thread) == thread


def test_killed_codex_no_longer_blocks_us(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")), Answer(say("Two.")))
    server = AppServer(home)
    try:
        thread = server.start()
        server.turn(thread, "First.")
    finally:
        server.kill()
    assert f"{thread}.lock" in lock_files(home)
    # The launcher is gone at once, the program that it started a moment later.
    eventually(lambda: locks.is_live(str(home.codex_home), thread), lambda: False, 10)

    append(home, thread, TOKENS)

    assert lock_files(home) == [".coordination.lock"]
    home.exec("Second.", resume=thread)


DIE = """
import os, signal, sys
from datetime import UTC, datetime
from codex_checkpoints.storage import records
from codex_checkpoints.storage.contract import HistoryItem
from codex_checkpoints.storage.local import LocalThreadStore

home, thread = sys.argv[1:]
store = LocalThreadStore(home, home + "/codex-checkpoints", records.now)
plain = os.write

def write(file, data):
    plain(file, data[: len(data) // 2])
    print("held", flush=True)
    sys.stdin.read()

os.write = write
store.append_items(thread, [HistoryItem("event_msg", {"type": "x"})] * 3, datetime.now(UTC))
"""


def test_codex_continues_after_we_were_killed_during_a_write(scripted: MakeHome) -> None:
    home, model = scripted(*(Answer(say(f"Answer {n}.")) for n in range(3)))
    thread = home.exec("First.")
    (path,) = home.rollouts()
    before = path.read_bytes()
    command = [sys.executable, "-c", DIE, str(home.codex_home), thread]
    env = {**os.environ, "PYTHONPATH": str(SERVER)}
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as writer,
        AppServer(home) as server,
    ):
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"held\n"
        assert "active writer" in server.refusal("thread/resume", {"threadId": thread})
        writer.kill()
        writer.wait(10)

        torn = path.read_bytes()
        assert torn.startswith(before)
        assert not torn.endswith(b"\n")
        assert f"{thread}.lock" in lock_files(home)
        assert server.resume(thread) == thread

    home.exec("Second.", resume=thread)
    append(home, thread, compacted(CHECKPOINT), TOKENS)
    home.exec("Third.", resume=thread)

    assert of_people(model.turns[1].texts("user"), "First.", "Second.") == ["First.", "Second."]
    sent = model.turns[-1].texts("user")
    assert of_people(sent, "First.", CHECKPOINT, "Third.") == [CHECKPOINT, "Third."]
    assert path.read_bytes().startswith(torn)


# --- cold threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["known to Codex", "known by its file alone"])
def test_codex_resumes_a_compressed_thread_that_we_appended_to(
    scripted: MakeHome, known: bool
) -> None:
    home, model = scripted(Answer(say("One.")), Answer(say("Two.")))
    thread = home.exec("First.")
    (path,) = home.rollouts()
    plain = path.read_bytes()
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstd.compress(plain, 3))
    path.unlink()
    if not known:
        forget(home)

    append(home, thread, compacted(CHECKPOINT), TOKENS)
    assert not packed.exists()
    home.exec("Second.", resume=thread)

    assert path.read_bytes().startswith(plain)
    sent = model.turns[-1].texts("user")
    assert of_people(sent, "First.", CHECKPOINT, "Second.") == [CHECKPOINT, "Second."]


# --- names ---------------------------------------------------------------------------------------


def test_codex_shows_the_same_name_for_a_legacy_thread(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")))
    with AppServer(home) as server:
        thread = server.start(legacy=True)
        server.turn(thread, "First.")

    rename(home, thread, "größer 日本 🙂")
    with AppServer(home) as server:
        assert server.read(thread)["name"] == "größer 日本 🙂"
        (shown,) = cast("list[dict[str, Any]]", server.call("thread/list", {})["data"])
        assert shown["name"] == "größer 日本 🙂"
    rename(home, thread, None)
    with AppServer(home) as server:
        assert not server.read(thread)["name"]
        server.call("thread/name/set", {"threadId": thread, "name": "theirs"})

    with opened(home) as store:
        assert store.read_thread(thread).name == "theirs"

    # What Codex has once named, it knows by its database, which we never write.
    rename(home, thread, "ours again")
    with AppServer(home) as server:
        assert server.read(thread)["name"] == "theirs"
    forget(home)
    with AppServer(home) as server:
        assert server.read(thread)["name"] == "ours again"


def test_naming_a_paginated_thread_changes_no_record_of_codex(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")))
    thread = home.exec("First.")
    before = files_of_codex(home)

    rename(home, thread, "ours")

    assert files_of_codex(home) == before
    with opened(home) as store:
        assert store.read_thread(thread).name == "ours"


def files_of_codex(home: CodexHome) -> dict[str, bytes]:
    """Read all that lies in the home but for our own folder."""
    root = home.codex_home
    files = (path for path in root.rglob("*") if path.is_file())
    named = ((path.relative_to(root), path) for path in files)
    return {str(at): path.read_bytes() for at, path in named if at.parts[0] != "codex-checkpoints"}


# --- archived threads ----------------------------------------------------------------------------


def test_session_without_a_row_in_codex_is_archived_by_its_place(scripted: MakeHome) -> None:
    home, _ = scripted(Answer(say("One.")))
    path = published(home)

    archive(home, NEW)
    with AppServer(home) as server:
        assert (server.listed(), server.listed(archived=True)) == ([], [NEW])
        assert "is archived" in server.refusal("thread/resume", {"threadId": NEW})
        server.unarchive(NEW)
        assert (server.listed(), server.listed(archived=True)) == ([NEW], [])
    assert path.exists()

    home.exec("Next.", resume=NEW)


def test_session_with_a_row_in_codex_is_lost_to_it_until_moved_back(
    scripted: MakeHome,
) -> None:
    """Codex shows it where it lies, but goes by the path in its database for all else."""
    home, _ = scripted(Answer(say("One.")), Answer(say("Two.")))
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "First.")
    (path,) = home.rollouts()

    archive(home, thread)
    with AppServer(home) as server:
        assert (server.listed(), server.listed(archived=True)) == ([], [thread])
        assert "no rollout found" in server.refusal("thread/resume", {"threadId": thread})
        said = server.refusal("thread/unarchive", {"threadId": thread})
        assert "no archived rollout found" in said
    assert row(home, thread) == (str(path), 0)

    unarchive(home, thread)
    home.exec("Second.", resume=thread)


def test_session_archived_by_codex_resumes_only_after_codex_unarchives_it(
    scripted: MakeHome,
) -> None:
    home, _ = scripted(Answer(say("One.")))
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "First.")
        server.archive(thread)

    unarchive(home, thread)
    with AppServer(home) as server:
        assert (server.listed(), server.listed(archived=True)) == ([thread], [])
        assert "is archived" in server.refusal("thread/resume", {"threadId": thread})
        assert server.refusal("thread/unarchive", {"threadId": thread})

    archive(home, thread)
    with AppServer(home) as server:
        server.unarchive(thread)
        assert server.resume(thread) == thread


def test_codex_archives_all_segments_of_a_thread(scripted: MakeHome) -> None:
    home, _ = scripted(*(Answer(say(f"Answer {n}.")) for n in range(3)))
    with AppServer(home) as server:
        thread = server.start()
        server.turn(thread, "One.")
        server.revert(thread, server.turn(thread, "Two."))
        server.turn(thread, "Two again.")
        before = [path.name for path in home.rollouts()]
        assert len(before) == 2

        server.archive(thread)
        folder = home.codex_home / "archived_sessions"
        assert sorted(path.name for path in folder.iterdir()) == before
        server.unarchive(thread)
        assert list(folder.iterdir()) == []

    # Moved by us, as they lie there, with no database to contradict.
    forget(home)
    archive(home, thread)
    with AppServer(home) as server:
        assert server.listed() == []
        assert set(server.listed(archived=True)) == {thread}
        server.unarchive(thread)
        assert list(folder.iterdir()) == []
        assert server.resume(thread) == thread
