"""`history` and `windows` as users meet them: on the command line, over the wire, for any file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.service.history import Histories
from codex_checkpoints.service.refusal import Refusal
from homes import Home, more, thread
from peer import Peer
from rollouts import (
    assistant,
    based_on,
    compacted,
    environment,
    record,
    rollback,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)

KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}
SECRET = "ghp_" + "a1B2" * 9


def asked(home: Home, *arguments: str) -> Any:  # noqa: ANN401 - any JSON document
    """Run a command with `--json`; what it printed."""
    done = home.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def said(items: list[dict[str, Any]]) -> list[str]:
    return [
        item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in items
    ]


def test_history_prints_what_codex_would_send(home: Home):
    home.put(rollout(session(), turn(user("fix it"), shell("make", "ok"), tokens(9_000))))

    found = asked(home, "history", thread(1))

    assert list(found) == [
        "items",
        "reconstructed",
        "windows",
        "contextTokens",
        "contextTokensSource",
        "contextTokensFlagged",
        "contextWindow",
    ]
    assert said(found["items"]) == ["fix it", "function_call", "function_call_output"]
    assert found["items"][1]["call_id"] == "c1"
    assert found["windows"] == {"first": None, "previous": None, "current": None, "number": 0}
    assert (found["contextTokens"], found["contextTokensSource"]) == (9_000, "reported")
    assert found["reconstructed"] is False


def test_windows_prints_a_row_for_each(home: Home):
    home.put(rollout(session(), turn(user("a")), compacted("m", [KEPT]), turn(user("b"))))

    first, second = asked(home, "windows", thread(1))

    assert list(first) == [
        "number",
        "windowId",
        "previousWindowId",
        "openedAtSeq",
        "openedAt",
        "trigger",
        "strategy",
        "tokensBefore",
        "tokensAfter",
        "received",
        "compactionId",
    ]
    assert (first["number"], first["openedAtSeq"], first["trigger"]) == (0, 0, None)
    assert (second["number"], second["openedAtSeq"], second["tokensAfter"]) == (1, 5, 20)
    assert second["openedAt"] == "2026-11-20T10:00:05.000Z"


@pytest.mark.parametrize(
    ("told", "before"),
    [
        (None, ("estimated", 742)),
        (300_000, ("estimated", 742)),
        (150_000, ("reported", 150_000)),
    ],
    ids=["nothing was reported", "more than fits", "a report"],
)
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_a_window_of_ours_was_as_full_before_as_its_compaction_says(
    home: Home, into: str, told: int | None, before: tuple[str, int]
):
    said = () if told is None else (tokens(told),)
    home.put(rollout(session(), turn(user("fix it"), assistant("I did. " * 400), *said)))

    done = home.json("compact", thread(1), "--into", into)

    *_, newest = home.json("windows", done["sessionId"])
    assert (done["tokensBeforeSource"], done["tokensBefore"]) == before
    assert newest["tokensBefore"] == done["tokensBefore"]
    assert newest["tokensAfter"] == done["tokensAfter"]


def test_for_people_items_are_cut_escaped_and_without_secrets(home: Home):
    told = f"use {SECRET}\x1b[31m now " + "and on " * 100
    home.put(rollout(session(), turn(user(told), shell("make")), compacted("m"), tokens(70)))

    lines = home.run("history", thread(1)).stdout.decode().splitlines()

    assert lines[0].startswith("user ")
    assert "[redacted]" in lines[0]
    assert SECRET not in "".join(lines)
    assert "\x1b" not in "".join(lines)
    assert all(len(line) < 160 for line in lines)
    assert lines[-3:] == [
        "tokens  70 of 258,400",
        "window  1",
        "part of it was made of user messages",
    ]
    assert asked(home, "history", thread(1))["items"][0]["content"][0]["text"] == told


def test_for_people_a_window_is_a_line(home: Home):
    home.put(rollout(session(), turn(user("a"), shell("ls"), tokens(800), compacted("m"))))

    first, second = home.run("windows", thread(1)).stdout.decode().splitlines()

    assert first.split() == ["0", "2026-11-20T10:00:00.000Z", "-", "-", "-", "→", "-", "-"]
    assert second.split()[2:] == ["mid_turn", "local", "800", "→", "-", "-"]


def test_a_session_that_nobody_knows_is_refused(home: Home):
    done = home.run("history", thread(9), "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "unknown_session"


def test_a_path_is_read_with_what_lies_beside_it(home: Home, tmp_path: Path):
    base = rollout(session(thread=thread(1)), turn(user("a")), turn(user("not in the fork")))
    at = based_on(thread(1), 5, 0)
    fork = rollout(session(thread=thread(2), history_base=at), turn(user("b")))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number, data in ((1, base), (2, fork)):
        (elsewhere / home.path(number).name).write_bytes(data)

    found = asked(home, "history", str(elsewhere / home.path(2).name))

    assert said(found["items"]) == ["a", "b"]
    assert not home.state.exists() or not (home.state / "sessions").exists()


def test_a_fork_and_a_revert_begin_with_their_base(home: Home):
    home.put(
        rollout(
            session(thread=thread(1)), turn(user("a")), compacted("m", [KEPT]), turn(user("no"))
        )
    )
    at = based_on(thread(1), 6, 0)
    home.put(rollout(session(thread=thread(2), history_base=at), turn(user("b"))), 2)
    home.put(rollout(session(thread=thread(1), history_base=at), turn(user("c"))), 1, segment=3)

    with home.house() as house:
        histories = Histories(house.sessions)
        assert said([dict(item) for item in histories.history(thread(2)).items]) == ["kept", "b"]
        assert said([dict(item) for item in histories.history(thread(1)).items]) == ["kept", "c"]
        assert [window.number for window in histories.windows(thread(2))] == [0, 1]


def test_what_can_be_read_is_read_without_the_base(home: Home):
    at = based_on(thread(7), 6, 0)
    home.put(rollout(session(history_base=at), turn(user("b"))))

    assert said(asked(home, "history", thread(1))["items"]) == ["b"]


def test_a_compressed_session_is_read_to_its_newest_window(home: Home):
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    data = rollout(session(), turn(user("a" * 200_000)), compacted("m", [KEPT]), turn(user("b")))
    home.put(zstd.compress(data), form=".jsonl.zst")

    assert said(asked(home, "history", thread(1))["items"]) == ["kept", "b"]


def test_a_session_that_grew_is_read_anew(home: Home):
    path = home.put(rollout(session(), turn(user("a"))))

    with home.house() as house:
        histories = Histories(house.sessions)
        assert len(histories.history(thread(1)).items) == 1
        with path.open("ab") as file:
            file.write(more(turn(user("b")), thread=thread(1), ordinal=5))
        assert len(histories.history(thread(1)).items) == 2


def test_a_session_that_vanished_is_refused(home: Home):
    path = home.put(rollout(session(), turn(user("a"))))

    with home.house() as house:
        path.unlink()
        with pytest.raises(Refusal) as refused:
            Histories(house.sessions).history(thread(1))

    assert refused.value.code == "unreadable_source"


def test_a_rollback_past_a_compaction_is_seen_at_every_door(home: Home):
    home.put(
        rollout(
            session("legacy"),
            turn(environment(), user("a"), assistant("1")),
            turn(user("b"), compacted("m", [KEPT])),
            rollback(1),
        )
    )

    assert said(asked(home, "history", thread(1))["items"])[1:] == ["a", "1"]
    assert len(asked(home, "windows", thread(1))) == 1


def test_the_server_answers_with_the_same_keys(home: Home):
    home.put(rollout(session(), turn(user("a")), compacted("m", [KEPT]), turn(user("b"))))

    with Peer(home.root) as peer:
        peer.start()
        named = {"sessionId": thread(1)}
        history = peer.call("checkpoints/history", named)
        windows = peer.call("checkpoints/windows", named)

    assert history == asked(home, "history", thread(1))
    assert windows == {"items": asked(home, "windows", thread(1)), "nextCursor": None}


def test_the_ids_of_the_windows_are_printed_as_codex_tells_them(home: Home):
    first, second = (f"01a1f865-0000-7000-9000-{number:012d}" for number in (1, 2))
    window = {"first_window_id": first, "previous_window_id": first, "window_id": second}
    told = {"message": "", "replacement_history": [KEPT], "window_number": 1, **window}
    head = session(context_window={"window_id": first})
    home.put(rollout(head, turn(user("fix it")), record("compacted", told)))
    home.put(rollout(session(form="legacy", thread=thread(2)), turn(user("fix it"))), 2)

    done = home.run("windows", thread(1), "--fragment")
    unknown = home.run("windows", thread(2), "--fragment")
    both = home.run("windows", thread(1), "--fragment", "--json")

    assert done.stdout.decode().splitlines() == [
        "<context_window>",
        f"Thread id: {thread(1)}",
        f"First context window id: {first}",
        f"Current context window id: {second}",
        f"Previous context window id: {first}",
        "</context_window>",
    ]
    assert (unknown.returncode, unknown.stdout) == (1, b"")
    assert both.returncode == 2
