"""`history` and `windows` as users meet them: on the command line, over the wire, for any file."""

from typing import Any

import pytest

from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.history.windows import windows_in
from homes import Home, more, refusal, thread
from peer import Peer
from rollouts import (
    assistant,
    based_on,
    compacted,
    record,
    rollout,
    session,
    shell,
    tokens,
    turn,
    user,
)

KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}
SECRET = "ghp_" + "a1B2" * 9


def said(items: list[dict[str, Any]]) -> list[str]:
    return [
        item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in items
    ]


def test_history_prints_the_items_that_codex_would_send(home: Home):
    home.put(rollout(session(), turn(user("fix it"), shell("make", "ok"), tokens(9_000))))

    found = home.json("history", thread(1))

    items = found.pop("items")
    assert list(found.items()) == [
        ("reconstructed", False),
        ("windows", {"first": None, "previous": None, "current": None, "number": 0}),
        ("contextTokens", 9_000),
        ("contextTokensSource", "reported"),
        ("contextTokensFlagged", False),
        ("contextWindow", 258_400),
    ]
    assert said(items) == ["fix it", "function_call", "function_call_output"]
    assert items[1]["call_id"] == "c1"


def test_windows_prints_a_row_each(home: Home):
    home.put(rollout(session(), turn(user("a")), compacted("m", [KEPT]), turn(user("b"))))

    first, second = home.json("windows", thread(1))

    assert list(first) == [
        *("number", "windowId", "previousWindowId", "openedAtSeq", "openedAt", "trigger"),
        *("strategy", "tokensBefore", "tokensAfter", "received", "compactionId", "undone"),
    ]
    assert (first["number"], first["openedAtSeq"], first["trigger"]) == (0, 0, None)
    assert (second["number"], second["openedAtSeq"], second["tokensAfter"]) == (1, 5, 20)
    assert second["openedAt"] == "2026-11-20T10:00:05.000Z"
    with Peer(home.root) as peer:
        peer.start()
        named = {"sessionId": thread(1)}
        history = peer.call("checkpoints/history", named)
        windows = peer.call("checkpoints/windows", named)
    assert history == home.json("history", thread(1))
    assert windows == {"items": [first, second], "nextCursor": None}


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
def test_size_before_a_window_of_ours_is_the_compactions_figure(
    home: Home, into: str, told: int | None, before: tuple[str, int]
):
    said = () if told is None else (tokens(told),)
    home.put(rollout(session(), turn(user("fix it"), assistant("I did. " * 400), *said)))

    done = home.json("compact", thread(1), "--into", into)

    *_, newest = home.json("windows", done["sessionId"])
    assert (done["tokensBeforeSource"], done["tokensBefore"]) == before
    assert newest["tokensBefore"] == done["tokensBefore"]
    assert newest["tokensAfter"] == done["tokensAfter"]


def test_items_are_cut_escaped_and_redacted_for_people(home: Home):
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
        "part of it was rebuilt from the user's messages",
    ]
    assert home.json("history", thread(1))["items"][0]["content"][0]["text"] == told


def test_window_is_one_line_for_people(home: Home):
    home.put(rollout(session(), turn(user("a"), shell("ls"), tokens(800), compacted("m"))))

    head, first, second = home.run("windows", thread(1)).stdout.decode().splitlines()

    assert head.split() == ["#", "opened", "how", "made", "by", "before", "→", "after", "id"]
    assert first.split() == ["0", "2026-11-20T10:00:00.000Z", "-", "-", "-", "→", "-", "-"]
    assert second.split()[2:] == ["during", "a", "turn", "Codex", "800", "→", "-", "-"]


def test_fork_and_revert_begin_with_their_base(home: Home):
    home.put(rollout(session(), turn(user("a")), compacted("m", [KEPT]), turn(user("no"))))
    at = based_on(thread(1), 6, 0)
    home.put(rollout(session(thread=thread(2), history_base=at), turn(user("b"))), 2)
    revert = home.put(rollout(session(history_base=at), turn(user("c"))), segment=3)
    lost = session(thread=thread(4), history_base=based_on(thread(7), 6, 0))
    home.put(rollout(lost, turn(user("alone"))), 4)

    with home.house() as house:
        histories = Histories(house.sessions)

        def told(number: int) -> list[str]:
            return said([dict(item) for item in histories.history(thread(number)).items])

        assert (told(2), told(1), told(4)) == (["kept", "b"], ["kept", "c"], ["alone"])
        assert [window.number for window in windows_in(house.sessions, thread(2))] == [0, 1]
        with revert.open("ab") as file:
            file.write(more(turn(user("d")), thread=thread(1), ordinal=11))
        assert told(1) == ["kept", "c", "d"]
        revert.unlink()
        assert refusal(lambda: told(1)).code == "unreadable_source"


def test_window_ids_are_printed_as_codex_names_them(home: Home):
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
