"""Recorded or not done: what holds wherever an operation is cut off, whichever it is.

After every fault and the next start each operation that stands has its closing event exactly once,
one that does not stand has none, nothing half-done is left, and a caller was told what is there.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_checkpoints.service.restore.verifying import verify
from homes import Home, thread
from killing import How, again, killed_at_each_step
from restores import put

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800 if os.environ.get("CODEX_CHECKPOINTS_EACH_FAULT") else 300),
    pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does"),
]

WORK = """
import os

from codex_checkpoints import wiring
from codex_checkpoints.codex.entries import HOOKS, Entries
from codex_checkpoints.service.compaction.compacting import Compacting
from codex_checkpoints.service.compaction.installing import Undoing
from codex_checkpoints.service.compaction.request import Request
from codex_checkpoints.service.connect.connecting import Connector
from codex_checkpoints.service.connect.status import Surroundings
from codex_checkpoints.service.deleting import Deleting
from codex_checkpoints.service.portable import Importing
from codex_checkpoints.service.portable import Packing
from codex_checkpoints.service.restore.planning import RestoreOptions
from codex_checkpoints.service.restore.restoring import Restoring

def work(sessions, root, what, *given):
    outside, clock = wiring.outside({}), (stamps.now, stamps.new_id)
    match what:
        case "compact":
            Compacting(sessions, outside).compact(Request(given[0], into=given[1], force=True))
        case "uncompact":
            Undoing(sessions, outside).uncompact(given[0])
        case "restore":
            Restoring(sessions, *clock).restore(*given[:2], RestoreOptions(given[2]))
        case "import":
            Importing(sessions, *clock).make(given[0], os.path.join(root, "user"))
        case "export":
            file = os.path.join(root, "user", "a.pack")
            Packing(sessions, [], *clock).write(given[0], file)
        case "delete":
            Deleting(sessions, *clock).delete(given[0])
        case _:
            codex = os.path.join(root, "codex")
            # The entries name no folder, so that they are the same in each copy of the home.
            entries = Entries(("python", "-m", "codex_checkpoints"), (), HOOKS)
            around = Surroundings(root, {"PATH": ""}, ())
            state = os.path.join(codex, "codex-checkpoints")
            Connector(codex, state, entries, around).carry_out(given[0])
"""

EVERY = 1 if os.environ.get("CODEX_CHECKPOINTS_EACH_FAULT") else 25
"""How far it is from one step of a second run that is cut off to the next."""

Made = tuple[tuple[str, ...], Callable[[Home], int]]
"""The arguments of an operation, and how many times it stands, by what is on the disk."""

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'


def files(home: Home) -> set[Path]:
    return set(home.root.glob("sessions/**/rollout-*.jsonl"))


def new_sessions(home: Home) -> Callable[[Home], int]:
    count = len(files(home))
    return lambda after: len(files(after)) - count


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a file but for those that were cut off."""
    return [line for line in path.read_bytes().splitlines() if line.endswith(b"}")]


def compact(home: Home, into: str) -> Made:
    if into == "new":
        return ("compact", thread(1), into), new_sessions(home)
    return ("compact", thread(1), into), windows


def windows(home: Home) -> int:
    """Return how many windows we opened in the first session."""
    return sum(b'"type":"compacted"' in line for line in whole_lines(home.path()))


def undone(home: Home) -> int:
    path = home.state / "sessions" / thread(1) / "compactions.jsonl"
    return sum(b'{"type":"undone"' in line for line in whole_lines(path))


def uncompact(home: Home, into: str) -> Made:
    made: str = home.json("compact", thread(1), "--into", into, "--force")["compactionId"]
    if into == "new":
        return ("uncompact", made), undone
    return ("uncompact", made), lambda after: windows(after) - 1


def restore(home: Home, mode: str) -> Made:
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    return ("restore", thread(1), marker, mode), new_sessions(home)


def imports(home: Home) -> Made:
    pack = str(home.root.parent.parent / "a.pack")
    home.json("export", thread(1), pack)
    return ("import", pack), new_sessions(home)


def export(home: Home) -> Made:
    del home
    return ("export", thread(1)), lambda after: (after.user / "a.pack").exists()


def delete(home: Home) -> Made:
    (_, _, marker, _), _ = restore(home, "soft")
    made = home.json("restore", thread(1), marker, "--mode", "soft")["sessionId"]
    count = len(files(home))
    return ("delete", made), lambda after: count - len(files(after))


def connect(home: Home, request: str) -> Made:
    (home.root / "hooks.json").write_text(HOOKS)
    if request == "remove":
        home.json("connect")
    before = configuration(home)

    def stands(after: Home) -> int:
        changed = {name for name, data in configuration(after).items() if data != before[name]}
        told = [event["files"] for event in home_events(after) if event["type"] == CLOSING[request]]
        assert sorted(name for names in told for name in names) == sorted(changed)
        return len(told)

    return ("connect", request), stands


def configuration(home: Home) -> dict[str, bytes | None]:
    paths = (home.root / name for name in ("config.toml", "hooks.json"))
    return {path.name: path.read_bytes() if path.exists() else None for path in paths}


CLOSING = {
    "compact": "CompactionInstalled",
    "uncompact": "CompactionUndone",
    "restore": "RestoreCompleted",
    "export": "PackExported",
    "import": "PackImported",
    "delete": "SessionDeleted",
    "connect": "CodexConnected",
    "remove": "CodexDisconnected",
}

CASES: dict[str, Callable[[Home], Made]] = {
    "compact into new": lambda home: compact(home, "new"),
    "compact in place": lambda home: compact(home, "in-place"),
    "uncompact of new": lambda home: uncompact(home, "new"),
    "uncompact in place": lambda home: uncompact(home, "in-place"),
    "restore soft": lambda home: restore(home, "soft"),
    "restore hard": lambda home: restore(home, "hard"),
    "export": export,
    "import": imports,
    "delete": delete,
    "connect": lambda home: connect(home, "connect"),
    "disconnect": lambda home: connect(home, "remove"),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "template")
    put(home)
    home.json("sessions")
    return home


def home_events(home: Home) -> Iterator[Any]:
    """Yield the events of a home; a line that was cut off is none."""
    path = home.state / "audit.jsonl"
    for line in path.read_bytes().splitlines() if path.exists() else []:
        if line.endswith(b"}"):
            yield json.loads(line)


def settled(home: Home, made: Made, kind: str) -> int:
    """Start again where a process was cut off; return how many times the operation stands."""
    with home.house() as house:
        findings = verify(house.sessions).findings
    assert list((home.state / "restoring").glob("*")) == []
    assert list(home.root.rglob(".*.tmp")) == []
    count = made[1](home)
    assert [each["type"] for each in home_events(home)].count(kind) == count
    assert findings == ()
    return count


@each_case
@pytest.mark.parametrize("how", ["kill", "refuse", "full"])
def test_an_operation_that_is_cut_off_stands_with_its_event_or_not_at_all(
    home: Home, tmp_path: Path, case: Callable[[Home], Made], how: How
):
    made = case(home)
    kind = CLOSING[made[0][1] if made[0][0] == "connect" else made[0][0]]

    tries = killed_at_each_step(WORK, home, tmp_path / "cut", *made[0], how=how)

    counts: list[int] = []
    for at in range(1, tries):
        here = again(tmp_path / "cut" / str(at))
        counts.append(settled(here, made, kind))
        told = here.root.parent / "answer"
        if told.exists():
            said = told.read_text()
            is_told = said == "done" or said.endswith("is changed already")
            assert is_told == bool(counts[-1]), (at, said)
    assert set(counts) >= {0, 1}, "both are tried"
    print(f"{len(counts)} points")


@each_case
def test_a_second_run_over_what_the_first_left_is_no_exception(
    home: Home, tmp_path: Path, case: Callable[[Home], Made]
):
    made = case(home)
    kind = CLOSING[made[0][1] if made[0][0] == "connect" else made[0][0]]
    tries = killed_at_each_step(WORK, home, tmp_path / "cut", *made[0])
    left = {shape(tmp_path / "cut" / str(at)): at for at in range(1, tries)}

    points = 0
    for place, first in enumerate(left.values()):
        template, folder = again(tmp_path / "cut" / str(first)), tmp_path / f"again-{first}"
        steps = place % EVERY + 1, EVERY
        end = killed_at_each_step(WORK, template, folder, *made[0], begin="start", steps=steps)
        for at in range(steps[0], end, EVERY):
            points += 1
            settled(again(folder / str(at)), made, kind)
    print(f"{len(left)} states, {points} points")


def shape(root: Path) -> tuple[tuple[str, int], ...]:
    """Return what a home looks like, whatever its ids and times are."""
    return tuple(
        sorted(
            (re.sub(r"[0-9a-f-]{16,}", "*", str(path.relative_to(root))), lines_in(path))
            for path in root.rglob("*")
            if path.is_file() and "sqlite" not in path.name
        )
    )


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n")
