"""Everything at once for a while: `python tests/soak.py --hours 2`.

Two language servers and two command lines compact, take back, restore, mark, note and delete; two
writers go on with sessions, the real Codex among them where it is installed; files change below.
At the end nothing is lost or mixed, and the servers hold as much memory as at the beginning.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import queue
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).with_name("support")))

import peer
import rollouts as r
from bookkeeping import faults
from codex import codex_cli, product, scripted_model
from codex_checkpoints.assembly import assemble
from codex_checkpoints.places import Places
from codex_checkpoints.storage import locks
from codex_checkpoints.storage.contract import StoreError
from homes import go_on, thread

SESSIONS = 4
"""So many sessions each writer goes on with at a time."""

TURNS = 300
"""After so many turns a session is left as it is, and another one begun."""

WINDOW = 60
"""After so many turns a session is compacted as Codex does, so no history outgrows a model."""

MOST = 40
"""Of more branches than that those that nothing refers to are deleted."""

BUSY = 120.0
"""Seconds that an answer may take while everything else is at work."""

GROWTH = 32 << 20
"""Bytes that a server may hold more at the end than after its first fifth."""

FAULTS = {"internal", "storage_error", "unreadable_record"}
"""Codes that no race explains."""

SAID = re.compile(r"\bsoak-\d+\b")


class Lab:
    """One home with its sessions, and what was done to each."""

    def __init__(self, root: Path, seed: int, model: scripted_model.ScriptedModel) -> None:
        self.dice = random.Random(seed)
        self.home = codex_cli.CodexHome(root, model)
        self.state = self.home.codex_home / "codex-checkpoints"
        self.model = model
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.done = Counter[str]()
        self.refused = Counter[str]()
        self.faults: list[str] = []
        self.said: dict[str, list[str]] = {}
        """What was said in a session, by the writer that said it."""
        self.made: dict[str, str] = {}
        """The source of each session that an operation made."""
        self.events = Counter[tuple[str, str]]()
        """How often the audit must tell of which event of which operation or session."""
        self.marks: dict[str, list[str]] = {}
        self.compactions: list[str] = []
        self.deleted: set[str] = set()
        self._count = 0

    def word(self) -> str:
        """Return a text that nobody has said yet."""
        with self.lock:
            self._count += 1
            return f"soak-{self._count}"

    def session(self) -> str | None:
        """Return any session that is there."""
        with self.lock:
            known = [each for each in (*self.said, *self.made) if each not in self.deleted]
            return self.dice.choice(known) if known else None

    def path(self, session: str) -> Path | None:
        """Return the newest file of a session."""
        return max(
            self.home.codex_home.glob(f"*sessions/**/rollout-*{session}.jsonl"), default=None
        )

    def note(self, what: str, refusal: str | None) -> None:
        """Count what was done, or the code of its refusal."""
        code = (refusal or "").partition(":")[0]
        with self.lock:
            if refusal is None:
                self.done[what] += 1
            else:
                self.refused[code] += 1
            if code in FAULTS:
                self.faults.append(f"{what}: {refusal}")

    def happened(self, what: str, answer: Any) -> None:  # noqa: ANN401 - any JSON value
        """Remember an operation that was done."""
        with self.lock:
            match what:
                case "compact":
                    self.compactions.append(answer["compactionId"])
                    self.events["CompactionInstalled", answer["compactionId"]] += 1
                    if answer["sessionId"] != answer["sourceSessionId"]:
                        self.made[answer["sessionId"]] = answer["sourceSessionId"]
                case "uncompact":
                    self.events["CompactionUndone", answer["compactionId"]] += 1
                case "restore":
                    self.events["RestoreCompleted", answer["operationId"]] += 1
                    self.made[answer["sessionId"]] = answer["sourceSessionId"]
                case "mark":
                    self.marks.setdefault(answer["sessionId"], []).append(answer["checkpointId"])
                case "delete":
                    self.deleted.add(answer["sessionId"])
                    self.events["SessionDeleted", answer["sessionId"]] += 1
                case _:
                    pass


# --- who says something --------------------------------------------------------------------------


def script_writer(lab: Lab) -> None:
    """Go on with sessions as Codex writes them, under its lock."""
    numbers, at_work = itertools.count(1), list[str]()
    while not lab.stop.wait(lab.dice.uniform(0.05, 0.4)):
        at_work = [each for each in at_work if len(lab.said[each]) < TURNS]
        if len(at_work) < SESSIONS:
            at_work.append(begun(lab, next(numbers)))
        session, word = lab.dice.choice(at_work), lab.word()
        path = lab.path(session)
        if path is None:
            continue
        steps = (
            r.user(word),
            r.shell("cat README.md", "# calc", reads=["README.md"], call=f"r-{word}"),
            r.patch(update="calc/core.py", call=f"p-{word}"),
            r.assistant("I read it and changed it. " * 200),
            r.tokens(20_000),
            *([r.compacted("What was said.")] if len(lab.said[session]) % WINDOW == 0 else []),
        )
        try:
            with locks.hold(str(lab.home.codex_home), session):
                go_on(path, session, r.turn(*steps, name=word))
                lab.said[session].append(word)
                lab.note("write", None)
        except StoreError:
            lab.note("write", "session_live")


def begun(lab: Lab, number: int) -> str:
    """Begin a session with one turn; return its id."""
    session, word = thread(number), lab.word()
    folder = lab.home.codex_home / "sessions/2026/11/20"
    folder.mkdir(parents=True, exist_ok=True)
    head = r.session(thread=session, cwd=str(lab.home.project))
    turn = r.turn(r.user(word), r.assistant("Done. " * 400), name="first")
    (folder / f"rollout-2026-11-20T10-00-00-{session}.jsonl").write_bytes(r.rollout(head, turn))
    with lab.lock:
        lab.said[session] = [word]
    return session


def codex_writer(lab: Lab) -> None:
    """Have the real Codex take turns, in sessions of its own and in those that we made."""
    own: list[str] = []
    while not lab.stop.wait(0.2):
        word = lab.word()
        resumed = lab.dice.choice(own) if len(own) >= SESSIONS else ""
        with lab.lock:
            made = [each for each in lab.made if each not in lab.deleted]
        if made and lab.dice.random() < 1 - 0.8 ** len(made):
            resumed = lab.dice.choice(made)
        order = f"echo {word} >> notes.txt; cat calc/core.py"
        answers = scripted_model.shell(order, f"c-{word}"), scripted_model.say("Done. " * 300)
        lab.model.add(*(scripted_model.Answer(each, to=word) for each in answers))
        try:
            session = lab.home.exec(word, resume=resumed, within=BUSY)
        except (AssertionError, TimeoutError):
            lab.note("codex", "session_live")  # we held its lock, or deleted it
            continue
        lab.model.requests.clear()
        with lab.lock:
            lab.said.setdefault(session, []).append(word)
        own += [] if session in own or resumed else [session]
        lab.note("codex", None)


def editor(lab: Lab) -> None:
    """Change files of the project."""
    while not lab.stop.wait(lab.dice.uniform(0.1, 0.5)):
        name = lab.dice.choice(["README.md", "calc/core.py"])
        (lab.home.project / name).write_text(f"{lab.dice.random()}\n", encoding="utf-8")
        lab.note("edit", None)


# --- who asks for something ----------------------------------------------------------------------

ACTS = ("compact", "compact", "uncompact", "mark", "restore", "restore", "apply", "delete")
LOOKS = ("view", "show", "history", "windows", "losses", "digest", "sessions", "audit", "notes")

Ask = Callable[[str, dict[str, Any]], tuple[Any, str | None]]
"""Do an operation with its params; return the answer, or the code and message of the refusal."""


def client(lab: Lab, ask: Ask, dice: random.Random) -> None:
    """Do one thing after the other until it is time."""
    while not lab.stop.is_set():
        session = lab.session()
        if session is None:
            time.sleep(0.1)
            continue
        what, params = wanted(lab, dice, session)
        answer, code = ask(what, params)
        if code is None:
            lab.happened(what, answer)
        lab.note(what, code)


def wanted(lab: Lab, dice: random.Random, session: str) -> tuple[str, dict[str, Any]]:
    """Return something to ask for, and its params."""
    here = {"sessionId": session}
    evidence = {"source": "user", "ref": "task"}
    text = f"noted in {session}"
    note = {"kind": "fact", "key": f"k{dice.randint(1, 9)}", "value": text, "evidence": evidence}
    what = dice.choice(ACTS + LOOKS)
    with lab.lock:
        left = {each: source for each, source in lab.made.items() if each not in lab.deleted}
    leaves = [each for each in left if each not in left.values()]
    if what in {"compact", "restore", "delete"} and len(left) > MOST:
        return "delete", {"sessionId": dice.choice(leaves), "force": True}
    match what:
        case "compact":
            return what, {**here, "into": dice.choice(["new", "in-place"]), "force": True}
        case "uncompact" if lab.compactions:
            return what, {"compactionId": dice.choice(lab.compactions[-20:])}
        case "mark":
            return what, {**here, "label": f"mark of {session}"}
        case "restore" if lab.marks:
            source = dice.choice(list(lab.marks))
            mode = dice.choice(["soft", "hard"])
            chosen = {"sessionId": source, "checkpointId": dice.choice(lab.marks[source])}
            return what, {**chosen, "mode": mode}
        case "apply":
            return what, {**here, "payload": note}
        case "uncompact" | "restore" | "delete" | "sessions":
            return "sessions", {}
        case _:
            return what, here


METHODS = {"apply": "applyUpdate"}


def asker(server: peer.Peer) -> Ask:
    """Return what asks a language server."""

    def ask(what: str, params: dict[str, Any]) -> tuple[Any, str | None]:
        answer = server.answer(server.ask(f"checkpoints/{METHODS.get(what, what)}", params))
        if "error" in answer:
            data: Any = answer["error"].get("data") or {"code": "internal"}
            return None, f"{data['code']}: {answer['error']['message']}"
        return answer["result"], None

    return ask


def commander(lab: Lab, number: int) -> Ask:
    """Return what calls the command line."""

    def ask(what: str, params: dict[str, Any]) -> tuple[Any, str | None]:
        given = dict(params)
        words = [str(given.pop(name)) for name in ("sessionId", "compactionId") if name in given]
        if what == "audit":
            words = ["--session", *words]
        if "payload" in given:
            file = lab.home.root / f"note-{number}.json"
            file.write_text(json.dumps(given.pop("payload")), encoding="utf-8")
            words.append(str(file))
        words += [str(given.pop("checkpointId"))] if "checkpointId" in given else []
        for name, value in given.items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return command(lab, what, *words)

    return ask


def command(lab: Lab, *words: str) -> tuple[Any, str | None]:
    """Run a command; return its JSON, or its refusal."""
    plain = words[0] in {"view", "show", "digest"}
    done = subprocess.run(
        product.product(*words, *([] if plain else ["--json"])),
        env=product.environment(lab.home),
        cwd=lab.home.root,
        capture_output=True,
        timeout=BUSY,
        check=False,
    )
    errors = done.stderr.decode(errors="replace")
    if "Traceback" in errors or done.returncode not in {0, 1}:
        lab.faults.append(f"{words}: {done.returncode}: {errors[-400:]}")
    if plain:
        code = errors.rstrip().rpartition("[")[2].rstrip("]")
        return done.stdout, f"{code}: {errors}" if done.returncode else None
    answer: Any = json.loads(done.stdout or b"null")
    if done.returncode:
        return None, f"{answer['error']['code']}: {answer['error']['message']}"
    return answer, None


# --- what must be so at the end ------------------------------------------------------------------


def sources(lab: Lab, session: str) -> Iterator[str]:
    """Yield a session and those that it goes on from."""
    step: str | None = session
    while step is not None:
        yield step
        step = lab.made.get(step)


def checked(lab: Lab, ask: Ask, scratch: Ask) -> Iterator[str]:
    """Yield what was lost, mixed or is not as it is derived from scratch, which `scratch` does."""
    there = [each for each in (*lab.said, *lab.made) if each not in lab.deleted]
    for session in there:
        path = lab.path(session)
        if path is None:
            yield f"{session}: its file is gone"
            continue
        found = set(SAID.findall(path.read_text(encoding="utf-8", errors="replace")))
        own = {word for each in sources(lab, session) for word in lab.said.get(each, ())}
        if lost := set(lab.said.get(session, ())) - found:
            yield f"{session}: lost {sorted(lost)[:5]}"
        # What a writer said that ended in an error may stand in its file, and nowhere else.
        known = {word for words in lab.said.values() for word in words}
        if mixed := (found & known) - own:
            yield f"{session}: holds {sorted(mixed)[:5]} of others"
        notes, code = ask("notes", {"sessionId": session})
        items: list[Any] = notes["items"] if notes else []
        whose = {str(each["value"]).rpartition(" ")[2] for each in items}
        if code is not None or not whose <= {*sources(lab, session)}:
            yield f"{session}: its notes are {code or whose}"
        (known, code), (again, other) = (
            each("show", {"sessionId": session}) for each in (ask, scratch)
        )
        if code or other or known != again:
            yield f"{session}: its checkpoint is another one from scratch ({code}, {other})"
    yield from _audit(lab, ask, there)
    house = assemble(Places(str(lab.home.codex_home), str(lab.state)))
    try:
        house.sessions.refresh()
        yield from faults(house.sessions)[:3]
    finally:
        house.sessions.close()


def _audit(lab: Lab, ask: Ask, there: list[str]) -> Iterator[str]:
    """Compare the audit with what was done: each thing that stands has its event once."""
    lines = (lab.state / "audit.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    keys = ("operationId", "compactionId", "sessionId")
    told = Counter(
        (event["type"], name) for event in events for name in {event.get(key) for key in keys}
    )
    for what, count in lab.events.items():
        if told[what] != count:
            yield f"audit: {what} {told[what]} times, done {count} times"
    for session in there:
        page, _ = ask("audit", {"sessionId": session})
        own = {each["operationId"] for each in events if session in _named(each)}
        if any(each["operationId"] not in own for each in page["items"]):
            yield f"audit of {session}: an event of another"


def _named(event: Any) -> tuple[object, ...]:  # noqa: ANN401 - any JSON value
    turn: Any = event["sourceTurn"] or {"sessionId": None}
    return event["sessionId"], event["sourceSessionId"], turn["sessionId"]


def underived(lab: Lab) -> Path:
    """Return a copy of the state without all that may be deleted."""
    scratch = lab.home.root / "scratch"
    shutil.copytree(lab.state, scratch)
    for path in [*scratch.rglob("checkpoint_v1.json"), *scratch.glob("index.sqlite*")]:
        path.unlink()
    return scratch


def memory(pid: int) -> int:
    """Return the bytes that a process holds; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


# --- the run -------------------------------------------------------------------------------------


def run(seconds: float, seed: int, root: Path, *, with_codex: bool) -> list[str]:
    """Let everybody work for a time; return what is wrong afterwards."""
    peer.WAIT, scripted_model.MAX_REQUESTS = BUSY, sys.maxsize
    problems: queue.Queue[str] = queue.Queue()
    held: list[list[int]] = [[], []]
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(scripted_model.ScriptedModel(()))
        lab = Lab(root / "lab", seed, model)
        environment = product.environment(lab.home)
        servers = [
            stack.enter_context(peer.Peer(lab.home.codex_home, env=environment)) for _ in range(2)
        ]
        for server in servers:
            server.start()
        asks = [*map(asker, servers), *(commander(lab, number) for number in range(2))]
        jobs: list[Callable[[], None]] = [lambda: script_writer(lab), lambda: editor(lab)]
        for number, ask in enumerate(asks):
            dice = random.Random(seed + number)
            jobs.append(lambda ask=ask, dice=dice: client(lab, ask, dice))
        jobs += [lambda: codex_writer(lab)] if with_codex else []

        def guarded(job: Callable[[], None]) -> None:
            try:
                job()
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                problems.put(f"{type(error).__name__}: {str(error)[:400]}")
                lab.stop.set()

        threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
        for each in threads:
            each.start()
        begun = time.monotonic()
        while not lab.stop.wait(min(2.0, seconds / 10)) and time.monotonic() - begun < seconds:
            for server, sizes in zip(servers, held, strict=True):
                sizes.append(memory(server.process.pid))
        lab.stop.set()
        for each in threads:
            each.join(BUSY + 10)
        took = time.monotonic() - begun
        codes = [server.stop() for server in servers]
        faults = [line for server in servers for line in server.log if "Traceback" in line]
        found = [*problems.queue, *lab.faults, *faults, *(f"server: {c}" for c in codes if c)]
        print(f"{took:.0f} s, {sum(lab.done.values()):,} done: {dict(lab.done.most_common())}")
        print(f"{sum(lab.refused.values()):,} refused: {dict(lab.refused.most_common())}")
        print(f"{len(lab.said)} sessions, {len(lab.made)} made of them, {len(lab.deleted)} deleted")
        for number, sizes in enumerate(held, 1):
            fifth = max(1, len(sizes) // 5)
            early = statistics.median(sizes[fifth : 2 * fifth] or sizes)
            late = statistics.median(sizes[-fifth:])
            print(f"server {number}: {early / 2**20:.1f} MB early, {late / 2**20:.1f} MB late")
            if late > early + GROWTH:
                found.append(f"server {number} holds {late - early:,.0f} bytes more than at first")
        begun = time.monotonic()
        places = (), ("--state-dir", str(underived(lab)))
        last = [
            stack.enter_context(peer.Peer(lab.home.codex_home, *place, env=environment))
            for place in places
        ]
        for server in last:
            server.start()
        found += checked(lab, *map(asker, last))
        print(f"looked at everything in {time.monotonic() - begun:.0f} s")
    return found


def main() -> int:
    """Run it in a folder that is thrown away, unless something is wrong in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="lab-"))
    with_codex = sys.platform != "win32" and codex_cli.installed()
    print(f"{asked.hours:g} hours, {'with' if with_codex else 'without'} Codex, seed {asked.seed}")
    found = run(asked.hours * 3600, asked.seed, root, with_codex=with_codex)
    for line in found[:20]:
        print(f"  {line}")
    if found:
        print(f"{len(found)} problems; everything is left in {root}")
    else:
        shutil.rmtree(root)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
