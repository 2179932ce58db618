"""The last delivery to Codex at each door: its window, and whether it is still current."""

import hashlib
import json
from pathlib import Path

import pytest

import rollouts as r
from codex_checkpoints.core.compaction.handoff import bundle
from codex_checkpoints.core.windows import HistoryWindow
from codex_checkpoints.service.connect.delivery_log import by_window
from codex_checkpoints.service.sessions.summaries import Receipt
from homes import Home, thread
from peer import Peer

SESSION = thread(1)
WORK = r.rollout(
    r.session(), r.turn(r.user("Mend the sesame.")), r.compacted("m", []), r.turn(r.user("Go on."))
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.put(WORK)
    return made


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def note(home: Home, *receipts: object) -> None:
    path = home.checkpoint().with_name("receipts.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in receipts), encoding="utf-8")


def given(at: str, text: str | None, **more: object) -> dict[str, object]:
    """Write a receipt as a hook does."""
    said: dict[str, object] = {"at": at, "door": "hook", "event": "SessionStart"}
    handed = {"digest": text and digest(text), "size": len((text or "").encode())}
    return {**said, "source": "resume", "windowId": None, "seq": 3, **handed, **more}


def test_session_shows_the_last_delivery_to_codex(home: Home):
    view = home.here("view", SESSION).stdout.decode()
    note(home, given("1", "old"), given("2", bundle(view), seq=9), given("3", None))

    with Peer(home.root, env={"PATH": ""}) as peer:
        peer.start()
        received = peer.call("checkpoints/session", {"sessionId": SESSION})["received"]
        windows = peer.call("checkpoints/windows", {"sessionId": SESSION})["items"]

    assert received == {
        "at": "2",
        "door": "hook",
        "event": "SessionStart",
        "source": "resume",
        "windowId": None,
        "seq": 9,
        "digest": digest(bundle(view)),
        "size": len(bundle(view).encode()),
        "isCurrent": True,
    }
    assert [each["received"] and each["received"]["at"] for each in windows] == ["1", "2"]
    assert windows[0]["received"]["isCurrent"] is False


def test_view_delivered_by_a_tool_is_current_too(home: Home):
    view = home.here("view", SESSION).stdout.decode()
    note(home, given("1", view, door="memory.read", event=None, windowId=f"{SESSION}:1"))

    first, second = home.json("windows", SESSION)

    assert first["received"] is None
    assert (second["received"]["door"], second["received"]["isCurrent"]) == ("memory.read", True)
    shown = home.here("windows", SESSION).stdout.decode()
    assert (
        f"Codex was given {len(view.encode())} bytes (as it is now), {digest(view)[:15]}" in shown
    )


def test_without_receipts_nothing_was_delivered(home: Home):
    assert [each["received"] for each in home.json("windows", SESSION)] == [None, None]


def test_invalid_receipts_are_skipped(home: Home):
    odd = {**given("1", "x"), "at": 7, "size": "x", "seq": None, "door": None}
    note(home, "no receipt", {"digest": 7}, odd)

    first, second = home.json("windows", SESSION)

    assert (first["received"]["at"], first["received"]["size"]) == ("", 0)
    assert second["received"] is None


def test_unreadable_receipts_are_refused(home: Home):
    home.checkpoint().with_name("receipts.jsonl").mkdir(parents=True)

    with Peer(home.root, env={"PATH": ""}) as peer:
        peer.start()
        error = peer.error("checkpoints/windows", {"sessionId": SESSION})

    assert error["data"]["code"] == "storage_error"


WINDOWS = (HistoryWindow(0, "A", None, 0, None), HistoryWindow(1, "B", "A", 10, None))


@pytest.mark.parametrize(
    ("window_id", "seq", "number"),
    [
        ("A", 99, 0),
        ("B", 0, 1),
        (f"{SESSION}:0", 99, 0),
        (f"{SESSION}:1", 0, 1),
        (f"{SESSION}:2", 0, None),
        ("C", 99, None),
        (None, 9, 0),
        (None, 10, 1),
        (None, None, 0),
    ],
)
def test_receipt_belongs_to_its_window_and_the_last_of_several_counts(
    window_id: str | None, seq: int | None, number: int | None
):
    receipt = Receipt("1", "hook", None, None, window_id, seq, "sha256:x", 1)
    earlier = Receipt("0", "hook", None, None, window_id, seq, "sha256:y", 1)

    last = {} if number is None else {number: receipt}
    assert by_window([earlier, receipt], WINDOWS) == last
