"""A fact reads VALID only while everything it rests on is as it was; held against a plain oracle.

The oracle knows nothing of the product: it looks at the files itself, before and after.
"""

import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from codex_checkpoints.core.checkpoint.records import status_of
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.service.notes import Notes
from homes import Home, go_on, thread
from rollouts import compacted, rollout, session, shell, turn, user

LIMIT = 32
"""Files of more bytes get a hash of size and time alone."""

FILES = ("a.py", "b.py", "c/d.py")
CONTENTS = st.sampled_from([b"", b"one\n", b"two\n", b"x" * LIMIT, b"y" * (LIMIT + 1)])
TIMES = st.integers(10**9, 2 * 10**9)
NAMES = st.sampled_from(FILES)


def seen(path: Path, base: Path) -> str | None:
    """Say what a host can know of a file now, None where it must know nothing."""
    try:
        look = path.lstat()
        if not path.resolve(strict=True).is_relative_to(base.resolve()):
            return None
        look = path.stat()
        if not stat.S_ISREG(look.st_mode):
            return None
        if look.st_size > LIMIT:
            return f"stat:{look.st_size}-{look.st_mtime_ns}"
        return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError:
        return None


def note(home: Home, key: str, value: str, evidence: dict[str, str], uris: list[str]) -> None:
    """Accept a fact that rests on files."""
    fact = {"kind": "fact", "key": key, "value": value, "evidence": evidence}
    resting = {"dependsOn": [{"uri": uri} for uri in uris]}
    with home.house() as house:
        notes = Notes(house.sessions)
        notes.apply(thread(1), json.dumps(fact | resting).encode())


class Staleness(RuleBasedStateMachine):
    """A session with facts on files, while anybody does anything to the files."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.home = Home(self.root)
        self.home.config(f"hashLimitBytes = {LIMIT}\n")
        self.base = self.root / "project"
        (self.base / "c").mkdir(parents=True)
        (self.root / "outside").write_bytes(b"one\n")
        reads = [shell(f"cat {name}", reads=[name]) for name in FILES]
        data = rollout(session(thread=thread(1), cwd=str(self.base)), turn(user("go"), *reads))
        self.path = self.home.put(data)
        self.accepted: dict[str, dict[str, str | None]] = {}
        self.evicted = False

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        path = self.base / name
        self._clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    @rule(name=NAMES, content=CONTENTS, time=TIMES)
    def write_under_another_clock(self, name: str, content: bytes, time: int) -> None:
        self.write(name, content)
        os.utime(self.base / name, (time, time))

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self._clear(self.base / name)

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        source, target = self.base / name, self.base / other
        if source != target and os.path.lexists(source):
            self._clear(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)

    @rule(name=NAMES, kind=st.sampled_from(["folder", "pipe", "link out", "link in", "dangling"]))
    def put_something_else_there(self, name: str, kind: str) -> None:
        path = self.base / name
        self._clear(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "link out":
                path.symlink_to(self.root / "outside")
            case "link in":
                (self.base / "target").write_bytes(b"one\n")
                path.symlink_to(self.base / "target")
            case _:
                path.symlink_to(self.base / "nowhere")

    @rule()
    def take_the_folder_away(self) -> None:
        shutil.rmtree(self.base / "c", ignore_errors=True)

    @rule(key=st.sampled_from(["k1", "k2", "k3"]), names=st.sets(NAMES, min_size=1))
    @precondition(lambda self: not self.evicted)
    def state_a_fact(self, key: str, names: set[str]) -> None:
        uris = sorted(names)
        before = {uri: seen(self.base / uri, self.base) for uri in uris}
        note(self.home, key, "so it is", {"source": "file", "ref": uris[0]}, uris)
        self.accepted[key] = before

    @rule()
    @precondition(lambda self: not self.evicted)
    def observe_so_much_that_the_files_are_forgotten(self) -> None:
        read = [shell(f"cat f{n}", reads=[f"f{n}"]) for n in range(260)]
        go_on(self.path, thread(1), turn(user("on"), *read))
        self.evicted = True

    @invariant()
    def a_fact_is_valid_exactly_while_all_it_rests_on_is_as_it_was(self) -> None:
        with self.home.house() as house:
            shown = house.sessions.show(thread(1))
            view = house.sessions.view(thread(1)).text
        checkpoint = shown.checkpoint
        valid, suspect = view.split("[FACTS_VALID]")[1].split("[FACTS_SUSPECT]")
        for key, before in self.accepted.items():
            now = {uri: seen(self.base / uri, self.base) for uri in before}
            stands = not self.evicted and all(
                before[uri] is not None and before[uri] == now[uri] for uri in before
            )
            status = status_of(checkpoint.facts[key], checkpoint.artifacts)
            assert status == ("VALID" if stands else "SUSPECT"), (key, before, now)
            assert (f"- {key}: " in valid) is stands
            assert (f"- {key}: " in suspect) is not stands
            assert f'"status":"{status}"' in shown.data.decode()

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _clear(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


TestStaleness = pytest.mark.skipif(sys.platform == "win32", reason="it makes pipes and links")(
    Staleness.TestCase
)
TestStaleness.settings = settings(
    max_examples=max(10, settings().max_examples // 4), stateful_step_count=12, deadline=None
)


def test_invariant_of_the_third_turn_survives_five_hundred_turns(home: Home, tmp_path: Path):
    base = tmp_path / "project"
    base.mkdir()
    (base / "conf.py").write_text("TTL = 900\n")
    early = [turn(user(f"turn {n}"), shell("cat conf.py", reads=["conf.py"])) for n in range(3)]
    data = rollout(session(thread=thread(1), cwd=str(base)), *early)
    path = home.put(data)
    text = "the time to live stays below 1,000 seconds"
    note(home, "ttl", text, {"source": "user", "ref": "task"}, ["conf.py"])
    later = [turn(user(f"turn {n}"), shell(f"make step{n % 7}")) for n in range(3, 500)]
    later.insert(200, compacted("", []))
    go_on(path, thread(1), *later, turn(user("again"), shell("cat conf.py", reads=["conf.py"])))

    with home.house() as house:  # another process than the one that noted it
        view = house.sessions.view(thread(1))

    assert view.of.checkpoint.facts["ttl"].last_touched_seq < data.count(b"\n")
    assert view.text == view_v1(view.of.checkpoint, view.caps)
    [valid, _] = view.text.split("[FACTS_VALID]")[1].split("[FACTS_SUSPECT]")
    assert f"- ttl: {text}" in valid
