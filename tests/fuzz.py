"""Feed the core with broken input on each core for a while: `python tests/fuzz.py --seconds 600`.

What may happen is an answer or a refusal: no other exception, no hang, nothing beyond its bound, no
fact that is VALID without evidence.  What fails is written down with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).with_name("support")))

import peer
import rollouts as r
from codex_checkpoints import wire
from codex_checkpoints.core.checkpoint import note_rules
from codex_checkpoints.core.checkpoint.records import Artifact, Caps, from_bytes, to_bytes
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.view import view_v1
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.fields import is_list, is_object
from codex_checkpoints.core.portable import pack_import
from codex_checkpoints.doors import protocol
from compaction_losses import losses
from generated_rollouts import EVENTS, FIELDS, ITEMS, LINES, RESPONSES
from histories import history
from homes import Home, thread

SLOWEST = 10.0
"""Seconds that one input may take."""

BIGGEST = 1 << 21
"""Bytes of a checkpoint that a few lines may make."""

HASH = "sha256:" + "1" * 64
LEAVES: list[Any] = [
    *(None, True, False, 0, -1, 7, 2**31, 2**53, 2**64, 10**30, 1.5, float("1e308"), "", " ", "t1"),
    *("c1", "a.py", "../../etc/passwd", "/", "~", "$HOME/x", "file:///a%00b", "C:\\x", "\\\\h\\s"),
    *("\ud83d", "\u202e", "\x00", "\x1b[31m", "\u2028[STATUS]", "completed", "failed", "user"),
    *("*** Begin Patch\n*** Add File: a.py\n+x\n", "cat <<EOF | apply_patch", "seq:1", "task"),
    *("[SESSION_CHECKPOINT v1]", "[SESSION_DIGEST v1]\n\n[STATUS]\n- x", "<environment_context>"),
    *("x" * 5000, "a/" * 2000, '{"plan":[{"step":7}]}', HASH, "unknown:", [], {}, [[]], {"": {}}),
]
NAMES = [*FIELDS, *LINES, *EVENTS, *ITEMS, *RESPONSES]


def session(form: r.Form) -> list[bytes]:
    """Return the lines of a session with one of everything."""
    data = r.rollout(
        r.session(form),
        r.turn(
            r.user("Fix the login."),
            r.plan(("Read it", True), ("Fix it", False)),
            r.shell("cat src/auth.py", "import os", reads=["src/auth.py"]),
            r.patch(update="src/auth.py"),
            r.patch(add="b.py"),
            r.shell("make test", "E   AssertionError\nFAILED a.py::b", exit_code=1),
            r.assistant("It rounds down. Shall I go on?"),
            r.tokens(9_000),
        ),
        r.compacted("A summary.", [{"type": "message", "role": "user", "content": []}]),
        r.turn(r.user("Yes."), r.patch(move=("b.py", "c.py")), r.assistant("Done.")),
        *([r.rollback(1)] if form == "legacy" else []),
    )
    return data.splitlines(keepends=True)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - any JSON value
    """Yield every place in a JSON value: what holds it, and its key or index."""
    waiting: list[Any] = [value]
    while waiting:
        held = waiting.pop()
        keys: list[Any] = list(held) if is_object(held) else [*range(len(held))]
        for key in keys:
            part = held[key]
            yield held, key
            if is_object(part) or is_list(part):
                waiting.append(part)


def changed(dice: random.Random, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value that is broken in a place or several."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 4))):
        places = list(nodes(value)) if is_object(value) or is_list(value) else []
        if not places:
            return dice.choice(LEAVES)
        held, key = dice.choice(places)
        match dice.randrange(7):
            case 0 | 1:
                held[key] = copy.deepcopy(dice.choice(LEAVES))
            case 2:
                del held[key]
            case 3 if is_object(held):
                held[dice.choice(NAMES)] = held.pop(key)
            case 4:
                for _ in range(dice.choice((3, 40))):
                    held[key] = [held[key]]
            case 5:
                other, place = dice.choice(places)
                if place in other if is_object(other) else place < len(other):
                    held[key] = copy.deepcopy(other[place])
            case _:
                if isinstance(held[key], str):
                    text = held[key]
                    at = dice.randrange(len(text) + 1)
                    held[key] = text[:at] + str(dice.choice(LEAVES)) + text[at:]
    return value


def cut(dice: random.Random, data: bytes) -> bytes:
    """Return bytes with some of them changed, doubled or gone."""
    at, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
    match dice.randrange(5):
        case 0:
            return data[:at] + data[end:]
        case 3:
            return data[:at] + dice.choice((b"[", b'{"a":')) * 20_000 + data[at:]
        case 1:
            return data[:at] + dice.randbytes(dice.choice((1, 3))) + data[at:]
        case 2:
            return data[:end] + data[at:end] + data[end:]
        case _:
            return data[:at]


def dumped(value: object) -> bytes:
    """Write a JSON value as it may come."""
    return json.dumps(value, ensure_ascii=True).encode()


SESSIONS = {form: session(form) for form in ("paginated", "legacy", "bare")}


def lines(dice: random.Random) -> int:
    """Read a session of broken lines with every fold; return how many were broken."""
    rows = list(SESSIONS[dice.choice(list(SESSIONS))])
    broken = dice.choice((3, len(rows), len(rows)))
    for at in dice.sample(range(len(rows)), broken):
        if dice.random() < 0.3:
            rows[at] = cut(dice, rows[at])
        else:
            rows[at] = dumped(changed(dice, json.loads(rows[at]))) + b"\n"
    data = b"".join(rows)
    replay = Replay()
    gathering = DigestExtract(replay, r.THREAD)
    replay.close(data[replay.feed(data) :])
    made = replay.checkpoint([], {})
    assert not made.facts
    assert not made.decisions
    written = to_bytes(made)
    assert to_bytes(from_bytes(written)) == written
    assert len(written) <= BIGGEST, len(written)
    view_v1(made, Caps())
    budget = dice.choice((0, 60, 400, 4000))
    found = digest_v1(gathering.gathered(), DigestTerms(budget))
    assert found.tokens <= budget
    for line in found.text.split("\n"):
        assert line[:2] in {"", "- "} or line.startswith("["), line
    history(data)
    losses(data)
    return broken


KNOWN = note_rules.SessionFacts(
    task_ref="u1",
    user_refs=frozenset({"u1"}),
    call_ids=frozenset({"c1"}),
    artifacts={
        "a.py": Artifact("a.py", "file", HASH, 3),
        "b.py": Artifact("b.py", "file", None, 4),
    },
    decisions=frozenset({"d1"}),
    used_decision_ids=frozenset({"d0", "d1"}),
)
FILE = {"source": "file", "ref": "a.py"}
PAYLOADS: list[Any] = [
    {"kind": "fact", "key": "k", "value": "v", "evidence": FILE, "dependsOn": [{"uri": "b.py"}]},
    {
        "kind": "decision",
        "decisionId": "d2",
        "topic": "t",
        "decision": "d",
        "rationale": "r",
        "supersedes": "d1",
        "evidence": {"source": "user", "ref": "task"},
    },
    {
        "kind": "plan",
        "steps": [{"id": "s1", "text": "x"}],
        "done": {"s1": True},
        "evidence": {"source": "tool_output", "ref": "c1"},
    },
]


def payloads(dice: random.Random) -> int:
    """Check a broken payload: what is accepted has evidence that this session knows."""
    data = dumped(changed(dice, dice.choice(PAYLOADS)))
    found = note_rules.check(cut(dice, data) if dice.random() < 0.2 else data, KNOWN)
    if isinstance(found, note_rules.Accepted):
        evidence: Any = found.payload["evidence"]
        known = {"file": {"a.py", "b.py"}, "tool_output": {"c1"}, "user": {"u1"}}
        assert evidence["ref"] in known[evidence["source"]], evidence
        assert set(found.hashes.values()) <= {HASH, "unknown:"}, found.hashes
    return 1


def messages(dice: random.Random) -> int:
    """Read broken params of every method."""
    method = dice.choice(protocol.METHODS)
    given: Any = {name: dice.choice(LEAVES) for name in dice.sample(NAMES, 3)}
    given |= {"sessionId": dice.choice(LEAVES), "turnId": dice.choice(LEAVES)}
    with suppress(wire.BadParams):
        assert isinstance(wire.structure(changed(dice, given), method.params), method.params)
    return 1


@cache
def pack() -> Any:  # noqa: ANN401 - any JSON value
    """Return a whole pack: of a session with a note and a marker."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        home.put(b"".join(SESSIONS["paginated"]))
        evidence = {"source": "user", "ref": "task"}
        note = {"kind": "fact", "key": "k", "value": "v", "evidence": evidence}
        (home.user / "note.json").write_bytes(dumped(note))
        home.json("apply", thread(1), str(home.user / "note.json"))
        home.json("mark", thread(1), "--label", "before")
        home.json("export", thread(1), str(home.user / "pack.json"))
        return json.loads((home.user / "pack.json").read_bytes())


def packs(dice: random.Random) -> int:
    """Read a broken pack."""
    data = dumped(changed(dice, pack()))
    with suppress(pack_import.BadPack):
        pack_import.pack_in(cut(dice, data) if dice.random() < 0.2 else data)
    return 1


@cache
def served() -> tuple[peer.Peer, Path]:
    """Return a server that runs, over a home with a session."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    home = Home(folder / "home")
    home.put(b"".join(SESSIONS["paginated"]))
    server = peer.Peer(home.root, env=home.environment())
    server.start()
    return server, folder


def unserved() -> list[str]:
    """End that server, if it runs; return what it logged of faults."""
    if not served.cache_info().currsize:
        return []
    server, folder = served()
    code = server.stop()
    served.cache_clear()
    shutil.rmtree(folder)
    faults = [line.strip() for line in server.log if "Traceback" in line]
    return [*faults, *([] if code == 0 else [f"exit code {code}"])]


LSP = (
    *("initialize", "$/cancelRequest", "$/setTrace", "$/progress", "textDocument/didOpen"),
    *("workspace/executeCommand", "window/workDoneProgress/cancel", "no/such", "checkpoints/"),
)


def frames(dice: random.Random) -> int:
    """Send a server frames that are broken inside; it answers the next whole one."""
    server, _ = served()
    names = [*(method.name for method in protocol.METHODS), *LSP]
    count = dice.choice((1, 8, 40))
    for _ in range(count):
        given: Any = {name: dice.choice(LEAVES) for name in dice.sample(NAMES, 2)}
        given |= {"sessionId": dice.choice([thread(1), "x", None]), "turnId": "t1"}
        message = {"jsonrpc": "2.0", "method": dice.choice(names), "params": given}
        if dice.random() < 0.7:
            message["id"] = f"fuzz-{dice.random()}"
        data = dumped(changed(dice, message))
        server.send_bytes(cut(dice, data) if dice.random() < 0.3 else data)
    assert "result" in server.answer(server.ask("checkpoints/sessions", {}))
    server.forget()
    return count


TARGETS: dict[str, Callable[[random.Random], int]] = {
    "lines": lines,
    "payloads": payloads,
    "messages": messages,
    "packs": packs,
    "frames": frames,
}


def run(target: str, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Feed one target; return how many inputs it took, and what failed, each with its seed."""
    fed, failed, end = 0, list[str](), time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        begun = time.monotonic()
        try:
            fed += TARGETS[target](random.Random(seed))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            failed.append(f"{target} {seed}: {type(error).__name__}: {str(error)[:200]}")
        if (took := time.monotonic() - begun) > SLOWEST:
            failed.append(f"{target} {seed}: took {took:.1f} s")
    failed += [f"{target}: {fault}" for fault in unserved()]
    return fed, failed


APART = 10**9
"""How far the seeds of one process are from those of the next."""


def side_by_side(target: str, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Feed one target on each core, with other seeds; return the same of all of them."""
    cores = min(os.cpu_count() or 1, 4)
    with ProcessPoolExecutor(cores, get_context("spawn")) as pool:
        seeds = [seed + APART * core for core in range(cores)]
        done = list(pool.map(run, [target] * cores, [seconds] * cores, seeds))
    return sum(fed for fed, _ in done), [each for _, failed in done for each in failed]


def main() -> int:
    """Feed all targets, the lines for most of the time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(TARGETS))
    asked = parser.parse_args()
    shares = {name: 0.6 if name == "lines" else 0.1 for name in TARGETS}
    kinds = Counter[str]()
    bad = False
    for name, share in shares.items() if asked.only is None else {asked.only: 1.0}.items():
        fed, failed = side_by_side(name, asked.seconds * share, asked.seed)
        print(f"{name}: {fed:,} inputs, {len(failed)} failed")
        for line in failed:
            kind = line.partition(": ")[2][:60]
            kinds[kind] += 1
            if kinds[kind] <= 3:
                print(f"  {line}")
        bad = bad or bool(failed)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
