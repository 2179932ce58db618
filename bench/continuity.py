"""How much of what the agent writes next does a replacement still hold?  No model is asked.

    python bench/continuity.py [--tokens 4000 8000] [PATH]

PATH is a rollout or a folder of them; without it sessions are made for it, the same ones each time.
A session is cut before a turn.  What the agent wrote in the next turn, in arguments of calls
and in messages, is searched for *names* (paths, identifiers, URLs, numbers) and *lines* (whole ones
of 20 characters or more).  A name or a line is needed when it occurred before the cut and
nothing brought it back before the agent used it.  A name counts 1 / (1 + log(occurrences before)).

It is also cut in the middle of turns, where Codex compacts by itself.  A hunk of a patch is held
when all lines that it must match are.  The share of needed items in the replacement of `compact`
is printed over all cuts and as the mean of the cuts, for hunks over all cuts, beside the share in
the last part of the conversation of the same size, which anybody could keep.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, cast

from attrs import frozen
from measure import product, run

_NAME = re.compile(
    r"https?://[^\s\"'<>)\]]+"
    r"|[A-Za-z0-9_.~@-]*(?:/[A-Za-z0-9_.@~-]+)+"
    r"|[A-Za-z_][A-Za-z0-9_]*(?:[.:-]{1,2}[A-Za-z0-9_]+)*"
    r"|\d{3,}"
)
_SESSION = "01a1f865-0000-7000-8000-0000000000aa"
_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_HUNK = re.compile(r"(?m)^@@.*$")
_LEAST_TOKENS = 5_000
_CUTS = 6
_SHORTEST = 5
_LEAST_OUTPUTS = 4
"""A turn with so many outputs is cut in its middle, too."""


@frozen
class Said:
    """One text of a session: who wrote it, and the size of the file behind its line.

    Behind `before` bytes begins the turn that a user message opens.
    """

    author: str
    text: str
    end: int
    before: int = 0


def names(text: str) -> list[str]:
    """Return the names in a text, with their repetitions."""
    words = (match[0].strip(".-:/~@") for match in _NAME.finditer(text))
    return [word for word in words if len(word) >= _SHORTEST and not _is_plain(word)]


def _is_plain(word: str) -> bool:
    return word.isalpha() and (word.islower() or word.istitle() or word.isupper())


def lines(text: str) -> set[str]:
    """Return the whole lines of a text, without the marks of a patch."""
    rows = (row.strip().lstrip("+- ").strip() for row in text.replace("\\n", "\n").splitlines())
    return {row for row in rows if len(row) >= 20}  # noqa: PLR2004 - as the page says


def read(path: Path) -> list[Said]:
    """Return the texts of a rollout in their order; what Codex injects is left out."""
    found: list[Said] = []
    end = begun = 0
    for line in path.open("rb"):
        start, end = end, end + len(line)
        try:
            record: dict[str, Any] = json.loads(line)
        except ValueError:  # a line that was cut off, as the product passes over it
            continue
        payload: dict[str, Any] = record.get("payload") or {}
        if payload.get("type") == "task_started":
            begun = start
        if record.get("type") == "response_item" or "payload" not in record:
            author, text = _text(payload or record)
            if author and not text.lstrip().startswith("<"):
                since = found[-1].end if found else 0
                found.append(Said(author, text, end, begun if begun >= since else start))
    return found


def _text(payload: dict[str, Any]) -> tuple[str | None, str]:
    """Return who wrote an item, None for what is neither said nor done, and its text."""
    kind = str(payload.get("type"))
    if kind == "message" and payload.get("role") in {"user", "assistant"}:
        parts: list[dict[str, str]] = payload.get("content") or []
        return payload["role"], "\n".join(part.get("text") or "" for part in parts)
    if kind in _CALLS:
        return "call", _values(str(payload.get("arguments") or payload.get("input") or ""))
    if kind in _OUTPUTS:
        return "output", _values(str(payload.get("output") or ""))
    return None, ""


def _values(text: str) -> str:
    """Return the values in the arguments of a call or in an output; most of these are texts."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict):
        return text
    told = list[object]()
    for each in cast("dict[str, object]", value).values():
        if isinstance(each, list):
            told += cast("list[object]", each)
        else:
            told.append(each)
    return "\n".join(map(str, told))


@frozen
class Cut:
    """A session up to a turn, and what the next turn needs of it."""

    path: Path
    before: tuple[Said, ...]
    end: int
    names: dict[str, float]
    lines: frozenset[str]
    hunks: tuple[frozenset[str], ...]


def cuts(path: Path, *, in_turn: bool = False) -> Iterator[Cut]:
    """Yield the cuts of a session, spread evenly over its turns.

    With `in_turn` a session is cut in the middle of a turn, behind an output.  A cut between turns
    is before the first line that tells of the next one.
    """
    told = read(path)
    starts = [place for place, said in enumerate(told) if said.author == "user"]
    if in_turn:
        spans = [
            (middle, end)
            for start, end in pairwise([*starts, len(told)])
            if (middle := _middle(told, start, end))
        ]
    else:
        spans = list(pairwise([*starts[1:], len(told)]))
    sizes = [0, *accumulate(len(said.text) for said in told)]
    fitting = [span for span in spans if sizes[span[0]] >= 4 * _LEAST_TOKENS]
    if len(fitting) > _CUTS:
        step = (len(fitting) - 1) / (_CUTS - 1)
        fitting = [fitting[round(place * step)] for place in range(_CUTS)]
    for start, end in fitting:
        cut = _needs(path, told, start, end, in_turn=in_turn)
        if cut.names:
            yield cut


def _middle(told: Sequence[Said], start: int, end: int) -> int | None:
    """Return the place behind the output in the middle of a turn; None in a short turn."""
    outputs = [place for place in range(start, end) if told[place].author == "output"]
    return outputs[len(outputs) // 2] + 1 if len(outputs) >= _LEAST_OUTPUTS else None


def _needs(path: Path, told: Sequence[Said], start: int, end: int, *, in_turn: bool) -> Cut:
    times = Counter(name for said in told[:start] for name in names(said.text))
    old = {row for said in told[:start] for row in lines(said.text)}
    back, back_lines = set[str](), set[str]()
    if not in_turn:
        back, back_lines = set(names(told[start].text)), lines(told[start].text)
    wanted: dict[str, float] = {}
    wanted_lines: set[str] = set()
    for said in told[start + (not in_turn) : end]:
        if said.author == "output":
            back |= set(names(said.text))
            back_lines |= lines(said.text)
            continue
        for name in (set(names(said.text)) & times.keys()) - back:
            wanted[name] = 1 / (1 + math.log(times[name]))
        if said.author == "call":
            wanted_lines |= (lines(said.text) & old) - back_lines
    behind = told[start - 1].end if in_turn else told[start].before
    calls = (said.text for said in told[start:end] if said.author == "call")
    hunks = [hunk for text in calls for hunk in _hunks(text) if hunk and hunk <= wanted_lines]
    before = tuple(told[:start])
    return Cut(path, before, behind, wanted, frozenset(wanted_lines), tuple(hunks))


def _hunks(text: str) -> Iterator[frozenset[str]]:
    """Yield the lines that each hunk of a patch must match."""
    if "*** Begin Patch" in text:
        for part in _HUNK.split(text)[1:]:
            rows = part.partition("\n*** ")[0].split("\n")
            yield frozenset(lines("\n".join(row for row in rows if row[:1] in {"-", " "})))


def replacement(cut: Cut, tokens: int) -> str:
    """Return the text of what `compact` would install, with a digest of so many tokens."""
    with tempfile.TemporaryDirectory() as folder:
        day = Path(folder, "home/sessions/2026/01/01")
        day.mkdir(parents=True)
        data = cut.path.read_bytes()[: cut.end]
        head: dict[str, Any] = json.loads(data.split(b"\n", 1)[0])
        head = head.get("payload") or head  # the oldest files have bare lines
        (day / f"rollout-2026-01-01T00-00-00-{head['id']}.jsonl").write_bytes(data)
        home, state = str(day.parents[3]), os.path.join(folder, "state")
        asked = ("--dry-run", "--force", "--json", "--digest-tokens", str(tokens))
        done = run(product("compact", home, state, head["id"], *asked))
    items: list[dict[str, Any]] = json.loads(done.said)["replacement"]
    return "\n".join(part["text"] for item in items for part in item["content"])


def tail(cut: Cut, size: int) -> str:
    """Return the last part of a conversation."""
    return "\n".join(said.text for said in cut.before)[-size:]


@frozen
class Held:
    """How much of the needed stands in a text: shares of names, lines and hunks, and its tokens.

    Of names and lines there is the share over all cuts, and the mean of the cuts.
    """

    names: tuple[float, float]
    lines: tuple[float, float]
    hunks: float
    tokens: float


def measured(found: Sequence[Cut], texts: Sequence[str]) -> Held:
    """Return the shares over all cuts, and the mean of each cut's."""
    names: list[tuple[float, float]] = []
    rows: list[tuple[float, float]] = []
    hunks: list[tuple[float, float]] = []
    for cut, text in zip(found, texts, strict=True):
        have = lines(text)
        worth = sum(each for name, each in cut.names.items() if name in text)
        names.append((worth, sum(cut.names.values())))
        rows.append((len(cut.lines & have), len(cut.lines)))
        hunks.append((sum(each <= have for each in cut.hunks), len(cut.hunks)))
    tokens = sum(map(len, texts)) / 4 / max(len(texts), 1)
    return Held(_shares(names), _shares(rows), _shares(hunks)[0], tokens)


def _shares(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the share of the held in all that is needed, and the mean of the cuts."""
    needing = [(held, needed) for held, needed in pairs if needed]
    each = [held / needed for held, needed in needing]
    every = sum(held for held, _ in needing) / max(sum(needed for _, needed in needing), 1)
    return every, sum(each) / max(len(each), 1)


# --- sessions that are made for it ---------------------------------------------------------------


_WORDS = (
    *("cart", "order", "price", "stock", "user", "login"),
    *("token", "mail", "page", "report", "cache", "queue"),
)
_SEEN_AGAIN, _FAILING, _LOG_LINES = 0.6, 0.3, 80
"""How often a turn goes back to a file that was read, and how often its tests fail, and how
much a log prints that nobody needs again."""


def make_sessions(folder: Path, count: int = 3, turns: int = 24) -> list[Path]:
    """Write sessions of a person who works on one project; the same bytes each time."""
    return [
        _made(folder / f"made-{number}.jsonl", random.Random(number), turns)
        for number in range(count)
    ]


def _made(path: Path, chance: random.Random, turns: int) -> Path:
    modules = [f"shop/{a}_{b}.py" for a in _WORDS[:8] for b in ("store", "view", "rules")]
    bodies = {
        module: [
            f"def {chance.choice(_WORDS)}_{chance.choice(_WORDS)}_{number}"
            f"(self, {chance.choice(_WORDS)}_id):\n"
            f"    return self.{chance.choice(_WORDS)}_table[{chance.randrange(100, 9999)}]"
            for number in range(24)
        ]
        for module in modules
    }
    out = [
        _line("session_meta", {"id": _SESSION, "cwd": "/home/ana/shop", "cli_version": "0.98.0"})
    ]
    known: list[str] = []
    for turn in range(turns):
        again = bool(known) and chance.random() < _SEEN_AGAIN
        module = chance.choice(known[-6:] if again else modules)
        known.append(module)
        body = bodies[module]
        old = chance.choice(body)
        name = old.split("(")[0].removeprefix("def ")
        new = old.replace("return", f"# {chance.choice(_WORDS)} {turn}\n    return")
        patch = f"*** Begin Patch\n*** Update File: {module}\n@@\n-{old}\n+{new}\n*** End Patch"
        body[body.index(old)] = new
        failed = chance.random() < _FAILING
        test = f"pytest -q tests/test_{Path(module).stem}.py"
        result = (
            f"FAILED tests/test_{Path(module).stem}.py::test_{name} - KeyError\n1 failed"
            if failed
            else "8 passed"
        )
        read_it = {"cmd": f"cat {module}"}
        log = "\n".join(
            f"2026-01-01 worker-{chance.randrange(10**6)} handled request_{chance.randrange(10**9)}"
            for _ in range(_LOG_LINES)
        )
        out += [
            _line("event_msg", {"type": "task_started", "turn_id": f"t{turn}"}),
            _message("user", f"Please go on with {_WORDS[turn % len(_WORDS)]}, step {turn}."),
            _line("event_msg", {"type": "user_message", "message": f"step {turn}"}),
            *([] if again else _call(turn, 0, "exec_command", read_it, "\n".join(body))),
            *_call(turn, 3, "exec_command", {"cmd": "tail -n 80 var/worker.log"}, log),
            *_call(
                turn, 1, "apply_patch", {"input": patch}, "Success. Updated the following files:"
            ),
            *_call(turn, 2, "exec_command", {"cmd": test}, result, failed=failed),
            _message("assistant", f"`{name}` in {module} is changed; {result.splitlines()[0]}."),
            _line("event_msg", {"type": "task_complete", "turn_id": f"t{turn}"}),
        ]
    path.write_text("".join(out))
    return path


def _line(kind: str, payload: dict[str, Any]) -> str:
    return (
        json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})
        + "\n"
    )


def _message(role: str, text: str) -> str:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return _line("response_item", {"type": "message", "role": role, "content": [part]})


def _call(  # noqa: PLR0913 - a call with its answer
    turn: int,
    number: int,
    name: str,
    arguments: dict[str, str],
    answer: str,
    *,
    failed: bool = False,
) -> list[str]:
    call = {"call_id": f"c{turn}-{number}"}
    text = f"Process exited with code {int(failed)}\nOutput:\n{answer}"
    return [
        _line(
            "response_item",
            {"type": "function_call", "name": name, "arguments": json.dumps(arguments), **call},
        ),
        _line("response_item", {"type": "function_call_output", "output": text, **call}),
    ]


def table(found: Sequence[Cut], budgets: Sequence[int]) -> Iterator[tuple[int, Held, Held]]:
    """Yield for each budget what the replacement holds, and what the tail of its size does."""
    for budget in budgets:
        ours = [replacement(cut, budget) for cut in found]
        tails = [tail(cut, len(text)) for cut, text in zip(found, ours, strict=True)]
        yield budget, measured(found, ours), measured(found, tails)


def row(held: Held) -> str:
    """Return the figures of a row of the table."""
    shares = (*held.names, *held.lines, held.hunks)
    return "".join(f"{share:>7.3f}" for share in shares)


def main() -> int:
    """Print the table; end with 1 where the tail of its size holds more names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("path", nargs="?", type=Path, help="a rollout, or a folder of them")
    parser.add_argument("--tokens", type=int, nargs="+", default=[2000, 4000, 8000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.path is None:
            paths = make_sessions(Path(folder))
        else:
            paths = (
                [options.path] if options.path.is_file() else sorted(options.path.rglob("*.jsonl"))
            )
        lost = 0
        for in_turn in (False, True):
            found = [cut for path in paths for cut in cuts(path, in_turn=in_turn)]
            print(f"{len(found)} cuts {'in the middle of' if in_turn else 'between'} turns")
            heads = f"{'names':>14}{'lines':>14}{'hunks':>7}"
            print(f"{'digest':>8}{heads}{'tokens':>8}{heads}   of the tail of its size")
            for budget, ours, last in table(found, options.tokens):
                print(f"{budget:>8}{row(ours)}{ours.tokens:>8.0f}{row(last)}")
                lost += ours.names[0] < last.names[0] and not in_turn
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
