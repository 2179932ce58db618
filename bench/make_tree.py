"""Make Codex homes to measure with: large, deterministic, and with the truth beside them.

    make_tree.py --out HOME --files 400 --bytes 1G --seed 1 --manifest truth.json

Sessions of every generation of Codex, with log-normal sizes: paginated ones, legacy ones with and
without task events, those of the `shell` tool, and bare ones without envelope.  A session is a
series of turns in which the model thinks, runs commands, patches, plans and looks at images, and
now and then its context is replaced.  The lines have Codex's order of keys, its repetitions and
its ballast.  The same options give the same bytes.

The manifest says what a reader must find: last prompt, turns, commands, patched files, plan, the
newest artifacts, tokens.  It is kept while writing and knows nothing of how we read.
"""

from __future__ import annotations

import argparse
import base64
import bisect
import itertools
import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, TypeVar

import orjson
from attrs import Factory, asdict, define, frozen

T = TypeVar("T")

LAST_DAY = datetime(2026, 11, 20, tzinfo=UTC)
DAY_MS = 86_400_000
FLUSH = 1 << 22
RECENT = 16
PROJECTS = 12
FILES_A_PROJECT = 60
WINDOW = 258_400

_LOOKS = ("rg ", "wc ", "git status")
"""How commands begin that change nothing: no recent artifacts."""

_WORDS = """
    account address amount audit badge basket batch billing branch bucket buffer cache cart catalog
    channel charge checkout client column coupon cursor customer deadline delivery digest discount
    draft editor export filter folder gateway header history import index invoice item journal
    label ledger limit locale login mailer margin member message metric notice offer order page
    parser payment picture policy price profile queue quota rating receipt refund region report
    request retry review role route schema search segment session setting shipment stock store
    summary supplier tariff ticket timer tracker transfer upload user vendor voucher
"""
WORDS = tuple(_WORDS.split())
ASKS = (
    "Find out why {a} and {b} disagree in {file} and fix it.",
    "Add a test for an empty {a} in {file}.",
    "Rename {a} to {b} everywhere, {file} first.",
    "Warum ist {a} in {file} so langsam? Miß es erst, ändere dann, und sag' mir, was du tust.",
    'The log says "{a}: no such {b}". Look at {file}.\n\nDo not touch the tests.',
    "{file} の {a} を {b} に合わせてください。",
    """Split {file}: one module for {a}, one for {b}.

- keep the names that others import, and add no new dependency
- a sentence of documentation for every function that stays public, a paragraph for {a} and {b}
- then run all tests""",
)
STEPS = ("Read {a}", "Reproduce the failure", "Change {a}", "Test {a} with {b}", "Tidy up {b}")
OUTPUT = ("    return {}(", "{}: ", "  {} = ", "\t# {} ", '"{}", ', "E   {} != ")


@frozen
class Form:
    """How one generation of Codex writes a session."""

    name: str
    version: str
    share: float
    envelope: bool = True
    items: bool = False
    tasks: bool = False
    tool: str = "shell"


FORMS = (
    Form("paginated", "0.169.0", 0.55, items=True, tasks=True, tool="exec_command"),
    Form("legacy", "0.147.0", 0.15, tasks=True, tool="exec_command"),
    Form("legacy", "0.98.0", 0.15, tool="shell_command"),
    Form("legacy", "0.44.0", 0.10),
    Form("bare", "0.20.0", 0.05, envelope=False),
)


@frozen
class Project:
    """A folder that sessions work in."""

    cwd: str
    files: tuple[str, ...]


@define
class Truth:
    """What a reader must find in one session."""

    session: str
    path: str
    form: str
    version: str
    cwd: str
    size: int = 0
    seq: int = -1
    last_prompt: str = ""
    turns: int = 0
    commands: int = 0
    patched: list[str] = Factory(list[str])
    recent: list[str] = Factory(list[str])
    plan: list[tuple[str, bool]] = Factory(list[tuple[str, bool]])
    tokens: int | None = None
    compactions: int = 0
    images: int = 0


class Dice:
    """What is left to chance; the same for the same seed."""

    def __init__(self, seed: str) -> None:
        """Begin to throw."""
        self._random = random.Random(seed)
        self.chance = self._random.random

    def below(self, count: int) -> int:
        """Return a number below `count`."""
        return int(self.chance() * count)

    def one(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[int(self.chance() * len(choices))]

    def size(self, median: int, sigma: float, most: int) -> int:
        """Return a size around a median, seldom much larger."""
        return min(int(median * self._random.lognormvariate(0.0, sigma)), most)

    def hex(self, digits: int) -> str:
        """Return an id."""
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self, ms: int) -> str:
        """Return an id as Codex makes them, of this time."""
        time, rest = f"{ms:012x}", self.hex(18)
        return f"{time[:8]}-{time[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:]}"


class Ballast:
    """The text and the noise that most bytes of a session are made of, cut from a supply."""

    def __init__(self) -> None:
        """Make the supply; it is the same whatever the seed."""
        dice = Dice("ballast")
        lines = [
            dice.one(OUTPUT).format(dice.one(WORDS))
            + " ".join(dice.one(WORDS) for _ in range(2 + dice.below(9)))
            + "\n"
            for _ in range(24_000)
        ]
        self._text = "".join(lines)
        self._starts = [0, *itertools.accumulate(map(len, lines))]
        self._noise = base64.b64encode(random.Random("noise").randbytes(3 << 20)).decode()

    def text(self, dice: Dice, size: int) -> str:
        """Return about so many characters of output, in whole lines."""
        starts = self._starts
        first = dice.below(len(starts) * 3 // 4)
        last = bisect.bisect(starts, starts[first] + size)
        return self._text[starts[first] : starts[min(last, len(starts) - 1)]]

    def noise(self, dice: Dice, size: int) -> str:
        """Return base64 of an image, or of something encrypted."""
        start = dice.below(len(self._noise) - size)
        return self._noise[start : start + size]


def projects(workspace: str) -> list[Project]:
    """Return the folders; what is in them is the same for every seed."""
    dice = Dice("projects")
    numbers = range(FILES_A_PROJECT)
    return [
        Project(
            f"{workspace}/{WORDS[number * 7]}",
            tuple(f"src/{dice.one(WORDS)}/{dice.one(WORDS)}_{n}.py" for n in numbers),
        )
        for number in range(PROJECTS)
    ]


class Session:
    """One session as it is written: lines into a file, and the truth about them."""

    def __init__(
        self, stream: BinaryIO, truth: Truth, form: Form, project: Project, ballast: Ballast
    ) -> None:
        """Take an empty file."""
        self.truth = truth
        self._stream = stream
        self._form = form
        self._project = project
        self._ballast = ballast
        self._dice = Dice(truth.session)
        self._parts: list[bytes] = []
        self._held = 0
        self._lines = 0
        self._ms = 0
        self._today = -1
        self._day = ""
        self._turn = ""
        self._used = 0
        self._seen: dict[str, int] = {}

    def write(self, start_ms: int, size: int, image_rate: float) -> None:
        """Write turns until the file has about this size."""
        self._ms = start_ms
        self._head()
        while self.truth.turns == 0 or self.truth.size < size:
            self._begin_turn()
            for _ in range(1 + self._dice.size(8, 0.8, 200)):
                self._step(image_rate)
                if self.truth.size >= size:
                    break
            self._end_turn()
        self._flush()
        newest = sorted(self._seen, key=lambda uri: (-self._seen[uri], uri))
        self.truth.recent = newest[:RECENT]

    # --- lines -----------------------------------------------------------------------------------

    def _put(self, kind: str, payload: object, **after: object) -> int:
        """Write one line; return the number by which it is known."""
        self._ms += 3 + self._dice.below(900)
        line = payload
        if self._form.items:
            head = {"timestamp": self._stamp(), "ordinal": self._lines, "type": kind}
            line = head | {"payload": payload, **after}
        elif self._form.envelope:
            line = {"timestamp": self._stamp(), "type": kind, "payload": payload}
        data = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        self._parts.append(data)
        self._held += len(data)
        self._lines += 1
        self.truth.size += len(data)
        self.truth.seq = self._lines - self._form.items
        if self._held > FLUSH:
            self._flush()
        return self.truth.seq

    def _flush(self) -> None:
        self._stream.write(b"".join(self._parts))
        self._parts, self._held = [], 0

    def _stamp(self) -> str:
        day, rest = divmod(self._ms, DAY_MS)
        if day != self._today:
            self._today = day
            self._day = f"{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y-%m-%d}"
        minutes, ms = divmod(rest, 60_000)
        hour, minute = divmod(minutes, 60)
        return f"{self._day}T{hour:02}:{minute:02}:{ms // 1000:02}.{ms % 1000:03}Z"

    def _event(self, kind: str, /, **fields: object) -> int | None:
        """Write an event, where the form has events."""
        if not self._form.envelope:
            return None
        return self._put("event_msg", {"type": kind, **fields})

    def _item(self, kind: str, /, **fields: object) -> int | None:
        """Write an item that tells what happened, where the form has such."""
        if not self._form.items:
            return None
        return self._event(
            "item_completed",
            thread_id=self.truth.session,
            turn_id=self._turn,
            item={"type": kind, **fields},
            started_at_ms=self._ms,
            completed_at_ms=self._ms + 3,
        )

    def _response(self, kind: str, /, **fields: object) -> int:
        """Write an item of the model's history."""
        if not self._form.items:
            return self._put("response_item", {"type": kind, **fields})
        own = {"type": kind, "id": f"it_{self._dice.hex(24)}"}
        turn = {"internal_chat_message_metadata_passthrough": {"turn_id": self._turn}}
        order = {"history_sequence": self._lines // 2, "client_authored": False}
        return self._put("response_item", own | fields | turn, metadata=order)

    def _message(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self._response("message", role=role, content=[{"type": kind, "text": text}])

    # --- the file and its turns ------------------------------------------------------------------

    def _head(self) -> None:
        truth, text = self.truth, self._ballast.text(self._dice, 14_000)
        head: dict[str, object] = {"id": truth.session, "timestamp": self._stamp()}
        if not self._form.envelope:
            self._put("", head | {"instructions": text[:4_000]})
        else:
            mode = {"history_mode": "paginated"} if self._form.items else {}
            head |= {"cwd": truth.cwd, "originator": "codex_cli_rs", "cli_version": truth.version}
            head |= {"source": "cli", "model_provider": "openai", **mode}
            self._put("session_meta", head | {"base_instructions": {"text": text}})
        self._inject()

    def _inject(self) -> None:
        """Write the context that Codex puts in front of a prompt."""
        cwd, text = self.truth.cwd, self._ballast.text(self._dice, 6_000)
        if self._form.envelope:
            note = f"# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\n{text}</INSTRUCTIONS>"
            self._message("user", note)
        about = f"<environment_context>\n  <cwd>{cwd}</cwd>\n</environment_context>"
        self._message("user", about)
        if self._form.items:
            self._put("world_state", {"full": True, "state": {"host_skills": {"body": text}}})

    def _begin_turn(self) -> None:
        dice, form, truth = self._dice, self._form, self.truth
        self._turn = dice.uuid(self._ms)
        truth.turns += 1
        if form.tasks:
            self._event("task_started", turn_id=self._turn, model_context_window=WINDOW)
        if form.envelope:
            if truth.turns > 1 and dice.below(50) == 0:
                self._compact()
            policy = {"type": "workspace-write", "network_access": False}
            context = {"turn_id": self._turn, "cwd": truth.cwd, "approval_policy": "never"}
            context |= {"model": "gpt-5.5", "sandbox_policy": policy, "summary": "auto"}
            self._put("turn_context", context)
        words = {"a": dice.one(WORDS), "b": dice.one(WORDS)}
        prompt = dice.one(ASKS).format(**words, file=dice.one(self._project.files))
        truth.last_prompt = prompt
        self._message("user", prompt)
        typed = [{"type": "text", "text": prompt}]
        if self._item("UserMessage", id=dice.uuid(self._ms), content=typed) is None:
            plain = {"kind": "plain"} if truth.version == "0.44.0" else {}
            self._event("user_message", message=prompt, **plain)

    def _end_turn(self) -> None:
        text = self._ballast.text(self._dice, self._dice.size(300, 0.8, 4_000))
        said = [{"type": "Text", "text": text}]
        if self._item("AgentMessage", id=self._dice.hex(12), content=said) is None:
            self._event("agent_message", message=text)
        self._message("assistant", text)
        self._tokens()
        if self._form.tasks:
            self._event("task_complete", turn_id=self._turn, last_agent_message=text)
        elif not self._form.envelope:
            self._put("", {"record_type": "state"})

    def _compact(self) -> None:
        """Replace the context by a summary and some messages of the user."""
        self.truth.compactions += 1
        kept = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
            for text in [self._ballast.text(self._dice, 3_000)] * (1 + self._dice.below(12))
        ]
        summary = self._ballast.text(self._dice, 6_000)
        self._put("compacted", {"message": summary, "replacement_history": kept})
        self._inject()

    # --- what the model does ---------------------------------------------------------------------

    def _step(self, image_rate: float) -> None:
        """Let the model think and act once."""
        dice = self._dice
        self._reason()
        what = dice.below(100)
        if what < 12:  # noqa: PLR2004 - how often of a hundred a model patches
            self._patch(sorted({dice.one(self._project.files) for _ in range(1 + dice.below(2))}))
        elif what < 18:  # noqa: PLR2004 - and plans
            self._plan()
        else:
            self._run()
        if dice.chance() < image_rate and self._form.envelope:
            self._image()
        self._tokens()

    def _reason(self) -> None:
        about = f"**Looking at the {self._dice.one(WORDS)}**"
        if self._item("Reasoning", id="rs", summary_text=[about], raw_content=[]) is None:
            self._event("agent_reasoning", text=about)
        secret = "gAAAAAB" + self._ballast.noise(self._dice, self._dice.size(1_400, 0.6, 20_000))
        summary = [{"type": "summary_text", "text": about}]
        self._response("reasoning", summary=summary, content=None, encrypted_content=secret)

    def _call(self, name: str, arguments: object) -> str:
        call = f"call_{self._dice.hex(24)}"
        text = orjson.dumps(arguments).decode()
        self._response("function_call", name=name, arguments=text, call_id=call)
        return call

    def _answer(self, call: str, output: object, kind: str = "function_call_output") -> int:
        return self._response(kind, call_id=call, output=output)

    def _shell(self, script: str) -> str:
        """Call the tool of the form that runs commands."""
        tool = self._form.tool
        if tool == "exec_command":
            return self._call(tool, {"cmd": script})
        argv = script if tool == "shell_command" else ["bash", "-lc", script]
        return self._call(tool, {"command": argv})

    def _printed(self, output: str, code: int) -> str:
        """Return what a command printed, as the form hands it to the model."""
        if self._form.tool == "shell":
            return orjson.dumps({"output": output, "metadata": {"exit_code": code}}).decode()
        if self._form.tool == "shell_command":
            return f"Exit code: {code}\nWall time: 0.4 seconds\nOutput:\n{output}"
        return f"Chunk ID: 0625ab\nProcess exited with code {code}\nOutput:\n{output}"

    def _run(self) -> None:
        script, read = self._command()
        code = int(self._dice.below(6) == 0)
        output = self._ballast.text(self._dice, self._dice.size(1_100, 1.3, 400_000))
        call = self._shell(script)
        parsed = {"type": "unknown", "cmd": script}
        if read is not None:
            parsed = {"type": "read", "cmd": script, "name": read.split("/")[-1], "path": read}
        told = self._item(
            "CommandExecution",
            id=call,
            command=["/bin/bash", "-lc", script],
            cwd=f"file://{self.truth.cwd}",
            parsed_cmd=[parsed],
            status="failed" if code else "completed",
            aggregated_output=output,
            exit_code=code,
            duration={"secs": 0, "nanos": 9284},
        )
        answered = self._answer(call, self._printed(output, code))
        self.truth.commands += read is None
        if read is not None or not script.startswith(_LOOKS):
            self._meet(answered if told is None else told, script if read is None else read)

    def _command(self) -> tuple[str, str | None]:
        """Return a command, and the file that it plainly reads."""
        dice = self._dice
        file, word, number = dice.one(self._project.files), dice.one(WORDS), 1 + dice.below(200)
        what = dice.below(10)
        if what < 4:  # noqa: PLR2004 - four commands of ten read one file
            script = f"sed -n '{number},{number + 160}p' {file}" if what else f"cat {file}"
            return script, file
        return dice.one(
            (
                f'rg -n "{word}" src | head -{20 + number}',
                f"python -m pytest -q {file.replace('src/', 'tests/')} -k {word}",
                f"wc -l {file}; git log --oneline -{number} -- {file}",
                "git status --short",
                "git diff --stat && make lint",
            )
        ), None

    def _patch(self, files: Sequence[str]) -> None:
        body = self._ballast.text(self._dice, 200 + self._dice.below(1_500)).replace("\n", "\n+")
        hunks = "".join(f"*** Update File: {file}\n@@\n-x\n+{body}y\n" for file in files)
        text = f"*** Begin Patch\n{hunks}*** End Patch"
        done = "".join(
            ("Success. Updated the following files:\n", *(f"M {file}\n" for file in files))
        )
        change = {"type": "update", "unified_diff": f"@@\n-x\n+{body}y\n", "move_path": None}
        changes = {f"{self.truth.cwd}/{file}": change for file in files}
        told: int | None = None
        if self._form.tool == "shell":
            call = self._shell(f"apply_patch <<'EOP'\n{text}\nEOP")
            answered = self._answer(call, self._printed(done, 0))
        else:
            call, tool = f"call_{self._dice.hex(24)}", "custom_tool_call"
            self._response(tool, status="completed", call_id=call, name="apply_patch", input=text)
            told = self._item("FileChange", id=call, changes=changes, status="completed")
            if told is None and self._form.tasks:
                told = self._event("patch_apply_end", call_id=call, success=True, changes=changes)
            answered = self._answer(call, f"Exit code: 0\nOutput:\n{done}", f"{tool}_output")
        self.truth.patched = sorted({*self.truth.patched, *files})
        self._meet(answered if told is None else told, *files)

    def _plan(self) -> None:
        dice = self._dice
        words = {"a": dice.one(WORDS), "b": dice.one(WORDS)}
        steps = [step.format(**words) for step in STEPS[: 2 + dice.below(4)]]
        done = dice.below(len(steps) + 1)
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(steps)
        told = [{"step": step, "status": state} for step, state in zip(steps, states, strict=False)]
        self._answer(self._call("update_plan", {"plan": told}), "Plan updated")
        self.truth.plan = [(step, number < done) for number, step in enumerate(steps)]

    def _image(self) -> None:
        """Show the model a picture: base64, a hundred kilobytes and more."""
        noise = self._ballast.noise(self._dice, self._dice.size(250_000, 0.9, 2_000_000))
        shown = [{"type": "input_image", "image_url": f"data:image/png;base64,{noise}"}]
        self.truth.images += 1
        if not self._form.items:
            self._response("message", role="user", content=shown)
            return
        name = f"shots/{self._dice.one(WORDS)}.png"
        call = self._call("view_image", {"path": name})
        told = self._item("ImageView", id=call, path=f"file://{self.truth.cwd}/{name}")
        self._answer(call, shown)
        self._meet(told or 0, name)

    def _tokens(self) -> None:
        """Write what the last call of the model used; every call makes the context longer."""
        used = self._used = 9_000 + (self._used + 700 + self._dice.below(1_500)) % 200_000
        usage = {"input_tokens": used - 120, "cached_input_tokens": used // 2}
        usage |= {"output_tokens": 120, "reasoning_output_tokens": 0, "total_tokens": used}
        if self._form.items:
            record = {"thread_id": self.truth.session, "turn_id": self._turn, "usage": usage}
            self._put("token_usage_record", record | {"thread_token_usage": usage})
        info = {"total_token_usage": usage, "last_token_usage": usage}
        limits = {"primary": None, "secondary": None}
        info |= {"model_context_window": WINDOW}
        if self._event("token_count", info=info, rate_limits=limits) is not None:
            self.truth.tokens = used

    def _meet(self, seq: int, *uris: str) -> None:
        for uri in uris:
            self._seen[uri] = seq


def sizes(dice: Dice, files: int, total: int) -> list[int]:
    """Return log-normal sizes that add up to about `total`."""
    weights = [dice.size(1_000, 1.1, 60_000) + 20 for _ in range(files)]
    return [total * weight // sum(weights) for weight in weights]


def chosen(dice: Dice, wanted: str) -> Form:
    """Return the form of the next file."""
    forms = [form for form in FORMS if wanted in {"mixed", form.name}]
    left = dice.chance() * sum(form.share for form in forms)
    for form in forms:
        left -= form.share
        if left < 0:
            return form
    return forms[0]


def make_tree(  # noqa: PLR0913 - each is an option of its own
    out: str,
    *,
    files: int,
    total: int,
    seed: int,
    image_rate: float,
    form: str,
    workspace: str,
) -> list[Truth]:
    """Write a Codex home; return the truth about each session, in the order of their numbers."""
    dice = Dice(f"tree {seed}")
    ballast = Ballast()
    places = projects(workspace)
    truths: list[Truth] = []
    for number, size in enumerate(sizes(dice, files, total)):
        start = LAST_DAY - timedelta(days=number % 365, seconds=dice.below(80_000))
        start_ms = int(start.timestamp()) * 1000
        session = dice.uuid(start_ms)
        folder = os.path.join(out, "sessions", *start.strftime("%Y %m %d").split())
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rollout-{start:%Y-%m-%dT%H-%M-%S}-{session}.jsonl")
        kind, project = chosen(dice, form), dice.one(places)
        truth = Truth(session, path, kind.name, kind.version, project.cwd)
        with open(path, "wb", buffering=0) as stream:
            Session(stream, truth, kind, project, ballast).write(start_ms, size, image_rate)
        truths.append(truth)
    return truths


def make_workspace(workspace: str) -> None:
    """Write the files that the sessions observed, so that there is something to hash and watch."""
    for project in projects(workspace):
        for file in project.files:
            path = os.path.join(project.cwd, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(f"# {file}\n" * 50)


def in_bytes(text: str) -> int:
    """Return a size such as 300K, 20M or 1G as a number."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 0)
    return int(float(text[:-1]) * unit) if unit else int(text)


def main() -> None:
    """Make one tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True, help="the home to make")
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--bytes", type=in_bytes, default="1G", help="in all, as 300M")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--image-rate", type=float, default=0.02, help="images a step of the model")
    parser.add_argument(
        "--form", choices=["mixed", *dict.fromkeys(form.name for form in FORMS)], default="mixed"
    )
    parser.add_argument("--workspace", help="a folder to make the files in that sessions observed")
    parser.add_argument("--manifest", help="where to write what a reader must find")
    options = parser.parse_args()
    if options.workspace:
        make_workspace(options.workspace)
    truths = make_tree(
        options.out,
        files=options.files,
        total=options.bytes,
        seed=options.seed,
        image_rate=options.image_rate,
        form=options.form,
        workspace=options.workspace or "/home/dev",
    )
    print(f"{len(truths)} sessions, {sum(truth.size for truth in truths)} bytes")
    if options.manifest:
        with open(options.manifest, "wb") as stream:
            stream.write(orjson.dumps([asdict(truth, recurse=False) for truth in truths]))


if __name__ == "__main__":
    main()
