"""Chooses the lines of calls, outputs and answers that a digest quotes for what the rest lacks.

Each line is worth the names in it that the digest does not hold yet: paths, identifiers, URLs,
numbers.  A name is worth more when the agent wrote it, in a newer turn, and often.  A whole line is
worth something by itself, more where the agent wrote it into a file: patches must match it.  The
line that adds most for its bytes comes first.  Lines of one record share an anchor, so the second
one costs less.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Final

from codex_checkpoints.core.digest.cutting import GAP
from codex_checkpoints.core.digest.records import Quote
from codex_checkpoints.values import define

NAME: Final = re.compile(
    r"https?://[^\s\"'<>)\]]+"
    r"|(?:(?<![A-Za-z0-9_.~@-])[A-Za-z0-9_.~@-]++)?(?:/[A-Za-z0-9_.@~-]+)+"
    r"|[A-Za-z_][A-Za-z0-9_]*(?:[.:-]{1,2}[A-Za-z0-9_]+)*"
    r"|\d{3,}"
)
"""What an agent must write exactly: URLs, paths, identifiers, numbers."""

_SHORTEST: Final = 5
_LONGEST_LINE: Final = 240
_LEAST_LINE: Final = 4
_WHOLE_LINE: Final = 20
"""A line of so many code points may be needed as it stands."""

_BY_AUTHOR: Final = {"patch": 3.0, "call": 3.0, "answer": 3.0, "output": 1.0}
_PER_TURN: Final = 0.7
"""What a name is worth in a turn, against the turn behind it."""

_WHOLE: Final = 0.6
"""What a whole line is worth by itself with `_USUAL_ROOM`; less where more names find room too."""

_USUAL_ROOM: Final = 10_000
_IN_PATCH: Final = (1.0, 3.7)
"""What such a line of a patch is worth against others, with much room and with little."""

_OVERHEAD: Final = 8
"""Bytes added to the cost of each line: short lines say little."""

_WORD: Final = re.compile(r"\w{2}")
_HEADERS: Final = re.compile(r"\*\*\* |@@|-|\\ No newline")
_DIFF: Final = re.compile(r"git (?:-[Cc] \S+ |-(?![Cc] )\S+ )*(?:diff|show)\b(?![^|;&]*:)")
_OF_DIFF: Final = re.compile(
    r"-|@@|\+\+\+ |(?:diff --git|index|similarity index|rename (?:from|to)) "
)
"""Rows of a difference that are no line of a file as it is now."""

_LISTED: Final = re.compile(
    r"[-dlbcps][-rwxsStT]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+"
    r"(?:\d{4}-\d\d-\d\d\s+[\d:.]+(?:\s+[-+]\d{4})?|\S+\s+\S+\s+\S+)\s+(?=\S)"
)
"""What `ls -l` writes in front of a name."""

_NO_NEWS: Final = re.compile(
    r"\s*(?:at |\u276f |File \").*(?:node_modules|node:internal|site-packages|<frozen )"
    r"|\s*Traceback \(most recent call last\):|\s*\d+ files? changed, \d"
)
"""A frame of a stack in code of others, the line above a stack, the sum below a list of changes."""

_BREAK: Final = re.compile(r"\\n|\n")
"""A break of lines: an output has one, the arguments of a call have it as JSON writes it."""


def names_in(text: str) -> list[str]:
    """Return the names in a text, in their order."""
    found: list[str] = []
    for match in NAME.finditer(text):
        word = match[0].strip(".-:/~@")
        simple = word.isalpha() and (word.islower() or word.istitle() or word.isupper())
        if len(word) >= _SHORTEST and not simple:
            found.append(word)
    return found


@define(eq=False)
class Candidate:
    """A line that may be chosen; `quote` and `place` say where it stands."""

    quote: int
    place: int
    text: str
    worth: float
    names: tuple[str, ...]


@define(eq=False)
class Chosen:
    """The chosen lines by quote, each with its place in the text; `refused` counts others."""

    lines: dict[int, list[tuple[int, str]]]
    refused: int


def choose(  # noqa: PLR0913 - what a choice depends on
    quotes: Sequence[Quote],
    known: Iterable[str],
    held: Container[str],
    room: int,
    *,
    head: Callable[[Quote], int],
    allowed: Callable[[Quote, str], bool],
) -> Chosen:
    """Return the best lines within `room` bytes.

    `known` are the names that stand already, `held` the lines that do; `head` is what the first
    line of a quote costs beside its text, `allowed` whether a line may be quoted.
    """
    decay = [_PER_TURN**quote.where.age for quote in quotes]
    whole = _WHOLE * _USUAL_ROOM / max(room, 1)
    in_patch = max(_IN_PATCH[0], _IN_PATCH[1] * min(1.0, _USUAL_ROOM / max(room, 1)))
    worth, candidates = _candidates(quotes, decay, held, min(whole, 2 * _WHOLE), in_patch)
    had, opened = set(known), set[int]()
    heads = [0] * len(quotes)
    chosen = Chosen({}, 0)

    def gain(candidate: Candidate) -> tuple[float, int]:
        value = candidate.worth
        for name in candidate.names:
            if name not in had:
                value += worth.get(name, 0.0)
        if candidate.quote not in opened and not heads[candidate.quote]:
            heads[candidate.quote] = head(quotes[candidate.quote])
        cost = len(candidate.text.encode()) + 2
        cost += 0 if candidate.quote in opened else heads[candidate.quote]
        return value / (cost + _OVERHEAD), cost

    heap = [(-gain(each)[0], number) for number, each in enumerate(candidates)]
    heapq.heapify(heap)
    while heap and room > _OVERHEAD:
        _, number = heapq.heappop(heap)
        candidate = candidates[number]
        value, cost = gain(candidate)
        if value <= 0 or cost > room:
            continue
        if heap and value < -heap[0][0] - 1e-12:
            heapq.heappush(heap, (-value, number))
            continue
        if not allowed(quotes[candidate.quote], candidate.text):
            chosen.refused += 1
            continue
        room -= cost
        opened.add(candidate.quote)
        had.update(candidate.names)
        chosen.lines.setdefault(candidate.quote, []).append((candidate.place, candidate.text))
    for lines in chosen.lines.values():
        lines.sort()
    return chosen


def _candidates(
    quotes: Sequence[Quote],
    decay: Sequence[float],
    held: Container[str],
    by_itself: float,
    in_patch: float,
) -> tuple[dict[str, float], list[Candidate]]:
    """Return what each name is worth, and the lines; of equal lines the one worth most."""
    times: Counter[str] = Counter()
    best: dict[str, float] = {}
    lines: dict[str, Candidate] = {}
    gone = _removed_since(quotes)
    for number, quote in enumerate(quotes):
        by_author = _BY_AUTHOR[quote.kind] * decay[number]
        for place, line in _lines_of(quote):
            names = names_in(line)
            times.update(names)
            if line in held or (quote.kind in {"patch", "output"} and gone.get(line, -1) > number):
                continue
            told = quote.kind == "call" and quote.label in held
            for name in names:
                if best.get(name, 0.0) < by_author:
                    best[name] = by_author
            whole = by_itself * decay[number] if len(line) >= _WHOLE_LINE and not told else 0.0
            worth = whole * in_patch if quote.kind == "patch" else whole
            known = lines.get(line)
            if known is None or worth >= known.worth:
                kept = tuple(dict.fromkeys(names))
                lines[line] = Candidate(number, place, line, worth, kept)
    # Rounded, since the last digit of a logarithm is not the same on all machines.
    worths = {
        name: value * (1 + round(math.log(1 + times[name]), 6)) for name, value in best.items()
    }
    return worths, [each for each in lines.values() if each.worth or each.names]


def _removed_since(quotes: Sequence[Quote]) -> dict[str, int]:
    """Return the lines that patches took away and did not bring again, each with the last quote."""
    gone: dict[str, int] = {}
    for number, quote in enumerate(quotes):
        if quote.kind == "patch":
            rows = quote.text.split("\n")
            gone.update((row[1:].strip(), number) for row in rows if row.startswith("-"))
            for row in rows:
                if row.startswith("+"):
                    gone.pop(row[1:].strip(), None)
    return gone


def _lines_of(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be chosen, without indentation; of a patch those that it leaves."""
    is_patch = quote.kind == "patch"
    is_output = quote.kind == "output"
    is_diff = is_output and _DIFF.search(quote.label) is not None
    is_json = quote.kind == "call" and quote.text.startswith("{")
    split = _BREAK.split(quote.text) if is_json else quote.text.split("\n")
    for place, row in enumerate(split):
        line = row
        if is_patch:
            if _HEADERS.match(line):
                continue
            line = line[1:] if line[:1] in {"+", " "} else line
        elif is_diff:
            if _OF_DIFF.match(line):
                continue
            line = line.removeprefix("+")
        elif is_output:
            if _NO_NEWS.match(line):
                continue
            if listed := _LISTED.match(line):
                line = line[listed.end() :]
        line = line.strip()
        if len(line) > _LONGEST_LINE:
            line = f"{line[: _LONGEST_LINE // 2]}{GAP}{line[-(_LONGEST_LINE // 2) :]}"
        if len(line) >= _LEAST_LINE and _WORD.search(line):
            yield place, line
