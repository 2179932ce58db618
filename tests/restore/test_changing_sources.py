"""Restores of a source that others change at the same time, or that was damaged before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.service.restore.restore import RestoreResult
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records
from homes import Home, more, refusal, snapshot, thread
from restores import MODES, marked, put, put_fork, restore, state
from rollouts import Form, turn, user

Change = Callable[[Path], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    put(home)
    return home


# --- what others do to a file --------------------------------------------------------------------


def cut(path: Path) -> None:
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(data[:4]))


def rewrite(path: Path) -> None:
    """Put another file under the name, as Codex does when it drops lines of old files."""
    kept = [line for line in path.read_bytes().splitlines(True) if b"turn_context" not in line]
    twin = path.with_name("new.tmp")
    twin.write_bytes(kept[0] + b"".join(kept[2:]))
    twin.replace(path)


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Read.", b"Gone."))


def remove(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(more(turn(user("Go on")), thread=thread(1), ordinal=99))


changes = pytest.mark.parametrize("change", [cut, rewrite, edit, remove])


def restored(
    sessions: Sessions,
    home: Home,
    change: Callable[[], object],
    mode: RestoreMode,
    *,
    number: int = 1,
    when: str = "RestoreValidated",
) -> RestoreResult:
    """Restore, and change something as soon as the audit tells that the restore got so far."""
    audit, left = home.state / "audit.jsonl", [change]
    name = marked(sessions, thread(number), None if number > 1 else "2")

    def now() -> str:
        # Each event takes the time of day, so this is asked between any two of them.
        so_far = audit.read_bytes() if audit.exists() else b""
        if left and when.encode() in so_far:
            left.pop()()
        return records.now()

    try:
        return restore(sessions, name, mode, thread(number), now=now)
    finally:
        assert not left, "it was changed in time"


def refused(home: Home, path: Path, change: Change, number: int = 1) -> None:
    """Restore a source that changes on the way, and find that nothing came of it."""
    there: dict[str, Any] = {}

    def changing() -> None:
        change(path)
        there.update(snapshot(home.root / "sessions"))

    with home.house() as house:
        met = refusal(lambda: restored(house.sessions, home, changing, "soft", number=number))

    assert met.code == "unreadable_source"
    assert met.facts["sessionId"] == thread(number)
    assert str(home.path(number)) in str(met)
    assert snapshot(home.root / "sessions") == there
    assert {each.name for each in (home.state / "sessions").iterdir()} == {thread(number)}
    told = [(event["type"], event.get("code")) for event in home.audited()]
    assert told == [
        ("RestoreRequested", None),
        ("RestoreValidated", None),
        ("RestoreFailed", "unreadable_source"),
    ]


# --- a source that changes -----------------------------------------------------------------------


@changes
@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_soft_branch_holds_the_planned_lines_or_is_not_made(home: Home, form: Form, change: Change):
    refused(home, put(home, form), change)


@changes
def test_file_at_the_start_of_the_history_counts_as_the_source(home: Home, change: Change):
    put_fork(home)
    refused(home, home.path(), change, 2)


def test_part_of_a_file_that_is_not_copied_counts_as_the_source(home: Home):
    def end(path: Path) -> None:
        path.write_bytes(path.read_bytes().replace(b"later-words", b"other-words"))

    refused(home, home.path(), end)


@changes
def test_hard_branch_holds_the_planned_pack(home: Home, change: Change):
    with home.house() as house:
        before = state(house.sessions, thread(1), "2")
        done = restored(house.sessions, home, lambda: change(home.path()), "hard")
        assert state(house.sessions, done.record.session_id) == before


@pytest.mark.parametrize("base", [False, True], ids=["source", "base"])
def test_growing_source_is_restored(home: Home, base: bool):
    number = 2 if base else 1
    put_fork(home)
    with home.house() as house:
        before = state(house.sessions, thread(number), None if base else "2")
        done = restored(house.sessions, home, lambda: grow(home.path()), "soft", number=number)
        assert state(house.sessions, done.record.session_id) == before


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", [cut, rewrite, remove])
def test_source_that_changes_before_it_is_read_is_refused(
    home: Home, mode: RestoreMode, change: Change
):
    with home.house() as house:
        met = refusal(
            lambda: restored(house.sessions, home, lambda: change(home.path()), mode, when="")
        )

    assert met.code == "unreadable_source"
    assert str(home.path()) in str(met)
    assert [event["type"] for event in home.audited()] == ["RestoreRequested", "RestoreFailed"]


# --- a source that was damaged -------------------------------------------------------------------


def insert(line: bytes) -> Change:
    """Return what puts a line into a file, behind the second."""

    def put_in(path: Path) -> None:
        kept = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join((*kept[:2], line, *kept[2:])))

    return put_in


def spoil(path: Path) -> None:
    """Damage a line that says something, ordinal and all."""
    path.write_bytes(path.read_bytes().replace(b"Read.", b"Read\\\xff"))


DAMAGES: dict[str, Change] = {
    "litter": insert(b"\xff\xfe garbage\n"),
    "half a pair": insert(b'{"type":"event_msg","payload":{"type":"x\xed\xa0\x80"}}\n'),
    "half a line": insert(b'{"half": \n'),
    "spoilt": spoil,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_source_is_restored_without_its_unreadable_line(
    home: Home, form: Form, mode: RestoreMode, damage: Change
):
    path = put(home, form)
    damage(path)
    with home.house() as house:
        sessions = house.sessions
        before = state(sessions, thread(1), "2")
        done = restore(sessions, marked(sessions), mode).record

        assert state(sessions, done.session_id) == before
        made = Path(sessions.find(done.session_id).path).read_bytes()

    made.decode()  # or else Codex refuses it
    if mode == "soft" and form != "bare":
        own, source = made.splitlines(), path.read_bytes().splitlines()
        assert [len(line) for line in own[1:]] == [len(line) for line in source[1 : len(own)]]


def test_last_line_of_a_source_is_copied_without_its_newline(home: Home):
    path = home.path()
    said = b'{"type":"event_msg","payload":{"type":"error","message":"\\ud800"}}'
    path.write_bytes(path.read_bytes() + said)
    with home.house() as house:
        done = restore(house.sessions, marked(house.sessions, turn=None), "soft").record
        assert Path(house.sessions.find(done.session_id).path).exists()
