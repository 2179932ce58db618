"""An operation cut off at any step is recorded, or absent.

After every fault and the next start each operation that stands has its closing event exactly once,
one that does not stand has none, nothing half-done is left, and a caller was told what is there.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from bookkeeping import ORDER, faults
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.core.compaction.records import Into
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.operations.compaction import outside
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.storage.records import MARKERS
from fault_steps import How, home_at, killed_at_each_step
from homes import Home, refusal, thread
from restores import put
from updates import fact

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800 if os.environ.get("CODEX_CHECKPOINTS_EACH_FAULT") else 300),
    pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does"),
]

WORK = """
import os

from codex_checkpoints.operations import compaction
from codex_checkpoints.codex.entries import HOOKS, Entries
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import CompactionRequest
from codex_checkpoints.service.connect.codex_config import Connector
from codex_checkpoints.service.sessions.deletion import delete
from codex_checkpoints.service.packs import export, import_pack
from codex_checkpoints.service.restore.plan import RestoreParams
from codex_checkpoints.service.restore.restore import Restoring

def work(sessions, root, what, *given):
    outside = compaction.outside({})
    match what:
        case "compact":
            Compacting(sessions, outside).compact(
                CompactionRequest(given[0], into=given[1], force=True)
            )
        case "uncompact":
            Undoing(sessions, outside).uncompact(given[0])
        case "restore":
            Restoring(sessions).restore(RestoreParams(*given))
        case "import":
            import_pack(sessions, given[0], os.path.join(root, "user"))
        case "export":
            file = os.path.join(root, "user", "a.pack")
            export(sessions, [], given[0], file, *given[1:])
        case "delete":
            delete(sessions, given[0])
        case _:
            codex = os.path.join(root, "codex")
            # The entries name no folder, so that they are the same in each copy of the home.
            entries = Entries(("python", "-m", "codex_checkpoints"), (), HOOKS)
            state = os.path.join(codex, "codex-checkpoints")
            Connector(codex, state, entries, {"PATH": ""}).carry_out(given[0])
"""

EVERY = 1 if os.environ.get("CODEX_CHECKPOINTS_EACH_FAULT") else 25 if os.environ.get("CI") else 50
"""How far it is from one step of a second run that is cut off to the next."""

Holds = Callable[[Home, Assembly, bool], None]
"""What else holds after the next start of a home, whether the operation stands there or not."""

Made = tuple[tuple[str, ...], Callable[[Home], int], Holds]
"""The arguments of an operation, how many times it stands, by what is on the disk, and the rest."""

HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'


def files(home: Home) -> set[Path]:
    return set(home.root.glob("sessions/**/rollout-*.jsonl"))


def new_sessions(home: Home) -> Callable[[Home], int]:
    count = len(files(home))
    return lambda after: len(files(after)) - count


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a file but for those that were cut off."""
    return [line for line in path.read_bytes().splitlines() if line.endswith(b"}")]


def nothing_else(_home: Home, _house: Assembly, _stands: bool) -> None:
    """Hold nothing."""


def are_whole(home: Home, house: Assembly) -> set[str]:
    """Hold that each new session has whole lines, and nothing of ours is of another; return all."""
    current = set(house.sessions.catalogue.current())
    assert all(path.read_bytes().endswith(b"\n") for path in files(home) - {home.path()})
    assert {path.name for path in (home.state / "sessions").iterdir()} == current
    return current


def kept(home: Home, session_id: str, name: str) -> list[Any]:
    """Read a record of a session."""
    path = home.state / "sessions" / session_id / f"{name}.jsonl"
    return [json.loads(line) for line in whole_lines(path)] if path.exists() else []


def compact(home: Home, into: Into) -> Made:
    before = home.path().read_bytes()

    def holds(after: Home, house: Assembly, stands: bool) -> None:
        new = sorted(are_whole(after, house) - {thread(1)})
        data = after.path().read_bytes()
        assert data.startswith(before)
        assert data[len(before) :].count(b"\n") == (2 if stands and into == "in-place" else 0)
        pointer = house.sessions.compactions.continued_by(thread(1))
        assert (new, pointer) == (([pointer], *new) if stands and into == "new" else ([], None))
        assert house.sessions.records.holding(MARKERS) == {thread(1), *new}
        told = kept(after, thread(1), "compactions")
        assert [each["type"] for each in told] == (["prepared", "installed"] if stands else [])
        if stands:
            task = house.sessions.show(pointer or thread(1)).checkpoint.task
            assert task is not None
            assert task.text == "later-words"
            Undoing(house.sessions, outside({})).uncompact(told[-1]["compactionId"])
        else:
            Compacting(house.sessions, outside({})).compact(
                CompactionRequest(thread(1), into, force=True)
            )

    return ("compact", thread(1), into), new_sessions(home) if into == "new" else windows, holds


def windows(home: Home) -> int:
    """Return how many windows we opened in the first session."""
    return sum(b'"type":"compacted"' in line for line in whole_lines(home.path()))


def undone(home: Home) -> int:
    return sum(each["type"] == "undone" for each in kept(home, thread(1), "compactions"))


def uncompact(home: Home, into: Into) -> Made:
    with home.house() as house:
        old = Histories(house.sessions).history(thread(1)).items
        made = Compacting(house.sessions, outside({})).compact(
            CompactionRequest(thread(1), into=into, force=True)
        )
        compacted = Histories(house.sessions).history(thread(1)).items
    before, name = home.path().read_bytes(), str(made.compaction_id)

    def holds(after: Home, house: Assembly, stands: bool) -> None:
        data = after.path().read_bytes()
        assert data.startswith(before)
        assert data[len(before) :].count(b"\n") == (2 if stands and into == "in-place" else 0)
        now = Histories(house.sessions).history(thread(1)).items
        assert now == (old if stands else compacted)
        pointer = house.sessions.compactions.continued_by(thread(1))
        assert pointer == (None if stands or into == "in-place" else made.session_id)
        undoing = Undoing(house.sessions, outside({}))
        if stands:
            assert refusal(lambda: undoing.uncompact(name)).code == "conflict"
        else:
            undoing.uncompact(name)

    if into == "new":
        return ("uncompact", name), undone, holds
    return ("uncompact", name), lambda after: windows(after) - 1, holds


def restore(home: Home, mode: RestoreMode) -> Made:
    marker = home.json("mark", thread(1), "--label", "x", "--turn", "2")["checkpointId"]
    source = home.path().read_bytes()

    def holds(after: Home, house: Assembly, stands: bool) -> None:
        current = are_whole(after, house)
        assert after.path().read_bytes() == source
        assert {name: len(kept(after, name, "restores")) for name in current} == dict.fromkeys(
            current, int(stands)
        )
        kinds = [event["type"] for event in home_events(after)]
        if not stands:
            assert "BranchCreated" not in kinds
            assert not kinds or kinds[-1] == "RestoreFailed"
            return
        assert tuple(kinds) == ORDER[mode]
        (made,) = current - {thread(1)}
        shown = house.sessions.show(made).checkpoint
        assert (shown.task and shown.task.text, list(shown.facts)) == ("And the logout", ["k"])
        if mode == "soft" and not answer_of(after).exists():  # killed, not refused
            listed = whole_lines(after.root / "session_index.jsonl")
            assert {json.loads(line)["thread_name"] for line in listed} == {"x: Fix the login"}

    return ("restore", thread(1), marker, mode), new_sessions(home), holds


def imports(home: Home) -> Made:
    pack = str(home.root.parent.parent / "a.pack")
    home.json("export", thread(1), pack)

    def holds(after: Home, house: Assembly, _stands: bool) -> None:
        for name in are_whole(after, house):
            task = house.sessions.show(name).checkpoint.task
            assert task is not None
            assert task.text == "later-words"

    return ("import", pack), new_sessions(home), holds


def export(home: Home, *replace: str) -> Made:
    if replace:
        (home.user / "a.pack").write_text("old")

    def stands(after: Home) -> int:
        path = after.user / "a.pack"
        text = path.read_text() if path.exists() else "old"
        return 0 if text == "old" else cast("int", json.loads(text)["version"])

    return ("export", thread(1), *replace), stands, nothing_else


def delete(home: Home) -> Made:
    (_, _, marker, _), *_ = restore(home, "soft")
    made = home.json("restore", thread(1), marker, "--mode", "soft")["sessionId"]
    count = len(files(home))
    return ("delete", made), lambda after: count - len(files(after)), nothing_else


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

    return ("connect", request), stands, nothing_else


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
    "export over another": lambda home: export(home, "replace"),
    "import": imports,
    "delete": delete,
    "connect": lambda home: connect(home, "connect"),
    "disconnect": lambda home: connect(home, "remove"),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "template")
    put(home)
    home.remember([fact("k", seq=3)])
    home.json("pin", thread(1), "a.py")
    return home


def home_events(home: Home) -> Iterator[Any]:
    """Yield the events of a home; a line that was cut off is none."""
    path = home.state / "audit.jsonl"
    for line in path.read_bytes().splitlines() if path.exists() else []:
        if line.endswith(b"}"):
            yield json.loads(line)


def answer_of(home: Home) -> Path:
    """Return where a caller that met a refusal says what it was told."""
    return home.root.parent / "answer"


def settled(home: Home, made: Made, kind: str) -> int:
    """Start again where a process was cut off; return how many times the operation stands."""
    with home.house() as house:
        contradictions = faults(house.sessions)
        assert list((home.state / "restoring").glob("*")) == []
        assert list(home.root.rglob(".*.tmp")) == []
        count = made[1](home)
        assert [each["type"] for each in home_events(home)].count(kind) == count
        assert contradictions == []
        made[2](home, house, bool(count))
    return count


# To be interrupted is to be killed, but that the process tidies up by itself.
CUT_OFF = [
    (how, name)
    for how in ("kill", "interrupt", "refuse", "full")
    for name in CASES
    if how != "interrupt" or name.split()[0] in {"compact", "import", "export"}
]


@pytest.mark.parametrize(("how", "name"), CUT_OFF)
def test_interrupted_operation_is_complete_with_its_event_or_absent(
    home: Home, tmp_path: Path, how: How, name: str
):
    made = CASES[name](home)
    kind = CLOSING[made[0][1] if made[0][0] == "connect" else made[0][0]]

    tries = killed_at_each_step(WORK, home, tmp_path / "cut", *made[0], how=how)
    if how == "kill" and name != "export over another":  # it stands once, however often it is done
        run_again(made, kind, tmp_path, tries)

    counts: dict[object, int] = {}
    for at in range(1, tries):
        here = home_at(tmp_path / "cut" / str(at))
        left, told = shape(here.root.parent, digest_without_ids), answer_of(here)
        if left not in counts:  # what is the same is gone on with in the same way
            counts[left] = settled(here, made, kind)
        if told.exists():
            said = told.read_text()
            is_told = said == "done" or said.endswith("is changed already")
            assert is_told == bool(counts[left]), (at, said)
    assert {*counts.values()} >= {0, 1}, "both are tried"
    if how == "interrupt" and made[0][0] == "export":  # while it is being removed, it stays
        assert len(list((tmp_path / "cut").glob("*/user/.a.pack.*.tmp"))) <= 1
    print(f"{tries - 1} points, {len(counts)} states")


def run_again(made: Made, kind: str, folder: Path, tries: int) -> None:
    """Hold the same of a second run, over each state in which the first was cut off."""
    left = {shape(folder / "cut" / str(at), lines_in): at for at in range(1, tries)}
    seen: set[object] = set()
    for place, first in enumerate(left.values()):
        template, cut = home_at(folder / "cut" / str(first)), folder / f"again-{first}"
        steps = place % EVERY + 1, EVERY
        end = killed_at_each_step(WORK, template, cut, *made[0], begin="start", steps=steps)
        for at in range(steps[0], end, EVERY):
            state = shape(cut / str(at), digest_without_ids)
            if state not in seen:  # it may stand twice now
                settled(home_at(cut / str(at)), (*made[:2], nothing_else), kind)
            seen.add(state)
    print(f"{len(left)} states, {len(seen)} of a second run")


def shape(root: Path, of: Callable[[bytes], object]) -> tuple[tuple[str, object], ...]:
    """Return what a home looks like, whatever its ids and times are."""
    return tuple(
        sorted(
            (IDS.sub(b"*", os.fsencode(path.relative_to(root))).decode(), of(path.read_bytes()))
            for path in root.rglob("*")
            if path.is_file() and "sqlite" not in path.name
        )
    )


IDS = re.compile(rb"[0-9a-f-]{10,}|\d\d:\d\d:\d\d\.\d+")


def digest_without_ids(data: bytes) -> str:
    return sha256(IDS.sub(b"*", data)).hexdigest()


def lines_in(data: bytes) -> int:
    return data.count(b"\n")
