"""Chooses the lines of calls, outputs and answers that a digest quotes for what the rest lacks.

Each line is worth the names in it that the digest does not hold yet: paths, identifiers, URLs,
numbers.  A name is worth more when the agent wrote it, and in a newer turn.  A whole line is worth
something by itself where the next patch may have to match it: most where the agent wrote it into a
file, less where an output shows a file that was edited, and nearly nothing elsewhere.  The line
that adds most for its bytes comes first.  Lines of one record share an anchor, so the second one
costs less.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from attrs import define

from codex_checkpoints.core.digest.cutting import GAP
from codex_checkpoints.core.digest.records import Quote

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

_BY_AUTHOR: Final = {
    "patch": 5.0,
    "written": 5.0,
    "call": 5.0,
    "answer": 6.0,
    "output": 1.5,
}
"""What a name of the newest turn is worth."""

_PROGRAM: Final = re.compile(r"(?:cd \S+ *(?:&&|;) *)?((?:git )?(?:-\S+ +)*(?:rg --files|[\w.-]+))")
_BY_PROGRAM: Final = {
    **dict.fromkeys(
        ["cat", "sed", "nl", "head", "tail", "git diff", "git show", "git status"], 1.0
    ),
    **dict.fromkeys(["rg", "grep", "git grep"], 0.8),
    **dict.fromkeys(["ls", "find", "fd", "tree", "rg --files", "git ls-files"], 0.0),
}
_OF_EDITED, _OF_OTHERS = 1.2, 0.4
"""How much of its worth a name has in an output, by what printed it: lines of a file that was
edited, of other files, of a search, of a long list of files, of all other programs."""

_LONG_LIST: Final = 8

_OF_FILES: Final = frozenset({"patch", "written", "output"})
"""Quotes that may show what stands in files."""

_AGING: Final = 0.5
"""A turn of the age n counts 1 / (1 + `_AGING` * n): most of what is needed is of the newest."""

_OLDEST: Final = 1000
"""The age from which on a turn counts nothing."""

_WRITTEN: Final = 2.2
"""What a whole line is worth that the agent wrote into a file, with `_USUAL_ROOM` bytes or less.

With more room it is worth less, so that more names stand, too.
"""

_HANDED_OVER: Final = 1.3
"""The same of what a call hands to another tool: such texts are long, and crowd names out."""

_BESIDE: Final = 0.7
"""How much of that a row has that a patch only stands beside."""

_IMPORTS: Final = 2.5
"""The same of a row that imports something: a patch that uses more changes it again."""

_IMPORT: Final = re.compile(r"(?:import|from|use|#include|export \{|const .* = require)\b")

_WHOLE: Final = "*** Add File"
"""How a patch begins that brings all of a file."""

_SHOWN: Final = 0.25
"""The same of an output that shows a line of a patch, for each time that it was shown."""

_TIMES: Final = 4
"""A line that was shown more often is worth no more."""

_ELSEWHERE: Final = 0.05

_SAID: Final = 0.009
"""The same of each byte of an answer in a script whose words are no names, so that some
of the newest turn stands where there is room."""

_USUAL_ROOM: Final = 13_000
_TELLING: Final = 8
"""A shorter line stands in many files: it does not say that an output shows an edited one."""

_LEAST_GAIN: Final = 0.001
"""A line that brings less for each of its bytes is not worth reading."""

_OVERHEAD: Final = 20
"""Bytes added to the cost of each line: short lines say little."""

_WORD: Final = re.compile(r"\w{2}")
_HEADERS: Final = re.compile(r"\*\*\* |@@|-|\\ No newline")
_DIFF: Final = re.compile(r"git (?:-[Cc] \S+ |-(?![Cc] )\S+ )*(?:diff|show)\b[^:;&\n]*")
"""A command that prints differences and nothing else."""

_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_OF_DIFF: Final = re.compile(
    r"@@|--- |\+\+\+ |(?:diff --git|index|similarity index|rename (?:from|to)) "
)
"""Headings of a difference."""

_LISTED: Final = re.compile(
    r"[-dlbcps][-rwxsStT]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[KMGT]?\s+"
    r"(?:\d{4}-\d\d-\d\d\s+[\d:.]+(?:\s+[-+]\d{4})?|\S+\s+\S+\s+\S+)\s+(?=\S)"
)
"""What `ls -l` writes in front of a name."""

_NUMBERING: Final = re.compile(r"\b(?:nl|cat(?: -\w+)*? -\w*n\w*|(?:rg|grep)\b.*? -\w*n\w*)\b")
_NUMBERED: Final = re.compile(r"\s*\d{1,7}(?:[:-]|[ \t]+|$)")
"""What commands write in front of the lines of a file that they number."""

_SEARCH: Final = re.compile(r"\b(?:rg|grep|ag)\b")
_FOUND_AT: Final = re.compile(r"[^\s:]+[:-]\d{1,7}[:-]\s*")
"""What a search writes in front of a line of one of several files."""

_NO_NEWS: Final = re.compile(
    r"\s*(?:at |\u276f |File \").*(?:node_modules|node:internal|site-packages|<frozen )"
    r"|\s*Traceback \(most recent call last\):|\s*\d+ files? changed, \d"
    r"|\s*[\u2713\u2714] |\s*\S+\.\w+\s+\d[\d.,]{0,12} [kM]i?B\b|> @?[^\s@]+@\d\S* \S+$"
    r"|\s*\"[\w@/.-]+\": \"(?:[\^~]|[<>]=? ?|npm:)?\d[\w.+-]*\",?\s*$"
    r"|(?:[^\s:]+:\d+:)?\s*(?:import\b.*['\"]|[a-z]+(?:-[a-z]+)+: [^;()]+;\s*$)|\S{300}"
)
"""A frame of a stack in code of others, the line above a stack, the sum below a list of changes,
tests that passed, sizes of what was built, the banner of a script, versions of packages, what a
file imports, how a page looks, and code that no person wrote."""

_PART: Final = re.compile(r"[^./:-]+")
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
    head: Callable[[Quote], str],
    allowed: Callable[[Quote, str], bool],
) -> Chosen:
    """Return the best lines within `room` bytes.

    `known` are the names that stand already, `held` the lines that do; `head` is what stands before
    the first line of a quote, `allowed` whether a line may be quoted.
    """
    worth, candidates = _candidates(quotes, held, _USUAL_ROOM / max(room, _USUAL_ROOM))
    had, opened = set(chain.from_iterable(map(_inside, known))), set[int]()
    heads: dict[int, tuple[tuple[str, ...], int]] = {}
    chosen = Chosen({}, 0)

    def names_of(candidate: Candidate) -> tuple[tuple[str, ...], int]:
        """Return the names that a line brings, with those before it, and what it costs."""
        number = candidate.quote
        cost = len(candidate.text.encode()) + 2 + (quotes[number].kind == "patch")
        if number in opened:
            return candidate.names, cost
        if number not in heads:
            text = head(quotes[number])
            heads[number] = tuple(names_in(text)), len(text.encode()) + 1
        names, size = heads[number]
        return tuple(dict.fromkeys((*candidate.names, *names))), cost + size

    def gain(candidate: Candidate) -> tuple[float, int]:
        names, cost = names_of(candidate)
        value = candidate.worth
        for name in names:
            if name not in had:
                value += worth.get(name, 0.0)
        return value / (cost + _OVERHEAD), cost

    heap = [(-gain(each)[0], number) for number, each in enumerate(candidates)]
    heapq.heapify(heap)
    while heap and room > _OVERHEAD:
        _, number = heapq.heappop(heap)
        candidate = candidates[number]
        value, cost = gain(candidate)
        if value <= _LEAST_GAIN or cost > room:
            continue
        if heap and value < -heap[0][0] - 1e-12:
            heapq.heappush(heap, (-value, number))
            continue
        if not allowed(quotes[candidate.quote], candidate.text):
            chosen.refused += 1
            continue
        room -= cost
        had.update(chain.from_iterable(map(_inside, names_of(candidate)[0])))
        opened.add(candidate.quote)
        chosen.lines.setdefault(candidate.quote, []).append((candidate.place, candidate.text))
    for lines in chosen.lines.values():
        lines.sort()
    return chosen


def _inside(name: str) -> set[str]:
    """Return a name and those that stand in it: `a.b.c` holds `b.c`, `a.b` and `b`."""
    parts = [found.span() for found in _PART.finditer(name)]
    starts, ends = {start for start, _ in parts}, {end for _, end in parts}
    begun, ended = {name[start:] for start in starts}, {name[:end] for end in ends}
    return {name} | begun | ended | {name[start:end] for start, end in parts}


def _candidates(
    quotes: Sequence[Quote], held: Container[str], scale: float
) -> tuple[dict[str, float], list[Candidate]]:
    """Return what each name is worth, and the lines; of equal lines the one worth most.

    What a line is worth by itself counts `scale` times.
    """
    worths: dict[str, float] = {}
    lines: dict[str, Candidate] = {}
    shown: Counter[str] = Counter()
    gone, edited = _removed_since(quotes), _edited(quotes)
    for number, quote in enumerate(quotes):
        age = quote.where.age
        newness = 1 / (1 + _AGING * age) if age < _OLDEST else 0.0
        by_author = _BY_AUTHOR[quote.kind] * newness
        rows = tuple(_lines_of(quote))
        whole = scale * newness * _by_itself(quote, rows, edited)
        by_author *= _by_program(quote, rows, edited)
        if not by_author:
            continue
        is_found = quote.kind == "output" and _SEARCH.search(quote.label) is not None
        shown.update(row for _, row in rows)
        beside = rows_with(" ", quote)
        for place, line in rows:
            found_at = _FOUND_AT.match(line) if is_found else None
            plain = _in_file(line if found_at is None else line[found_at.end() :])
            if line in held or (quote.kind in _OF_FILES and gone.get(plain, -1) > number):
                continue
            names = tuple(dict.fromkeys(names_in(line)))
            for name in names:
                worths[name] = max(by_author, worths.get(name, 0.0))
            worth = whole if len(line) >= _WHOLE_LINE else 0.0
            worth *= min(shown[line], _TIMES) if quote.kind == "output" else 1
            worth *= _BESIDE if place in beside else 1
            worth *= _IMPORTS if quote.kind == "patch" and _IMPORT.match(line) else 1
            if quote.kind == "answer" and not line.isascii():
                worth = newness * _SAID * len(line.encode())
            known = lines.get(line)
            if known is None or worth >= known.worth:
                lines[line] = Candidate(number, place, line, worth, names)
    return worths, [each for each in lines.values() if each.worth or each.names]


def _by_itself(quote: Quote, rows: Iterable[tuple[int, str]], edited: Container[str]) -> float:
    """Return what a whole line of a quote is worth by itself."""
    match quote.kind:
        case "patch":
            return _WRITTEN
        case "written":
            return _HANDED_OVER
        case "output":
            is_edited = any(len(row) >= _TELLING and _in_file(row) in edited for _, row in rows)
            return _SHOWN if is_edited else _ELSEWHERE
        case _:
            return 0.0


def rows_with(sign: str, quote: Quote) -> frozenset[int]:
    """Return the places of the rows that a patch adds to a file that was there, or leaves in it."""
    if quote.kind != "patch" or quote.text.startswith(_WHOLE):
        return frozenset()
    return frozenset([at for at, row in enumerate(quote.text.split("\n")) if row[:1] == sign])


def _by_program(quote: Quote, rows: Sequence[tuple[int, str]], edited: Container[str]) -> float:
    """Return how much of its worth a name has in a quote."""
    if quote.kind != "output":
        return 1.0
    if any(len(row) >= _TELLING and _in_file(row) in edited for _, row in rows):
        return _OF_EDITED
    if quote.about.startswith("{"):  # a tool that is no shell
        return 1.0
    if "node_modules/" in quote.label:
        return _OF_OTHERS / 2
    program = _PROGRAM.match(quote.label)
    part = _BY_PROGRAM.get(program[1] if program else "", _OF_OTHERS)
    return part if part or len(rows) > _LONG_LIST else _OF_OTHERS


def _edited(quotes: Sequence[Quote]) -> set[str]:
    """Return the lines that were written into files, and those beside them in patches."""
    own = [each for each in quotes if each.kind in {"patch", "written"}]
    rows = ((each, row) for each in own for row in each.text.split("\n"))
    return {_in_file(row[each.kind == "patch" :].strip()) for each, row in rows}


def _removed_since(quotes: Sequence[Quote]) -> dict[str, int]:
    """Return the lines that patches took away and did not bring again, each with the last quote."""
    gone: dict[str, int] = {}
    for number, quote in enumerate(quotes):
        if quote.kind == "patch":
            rows = quote.text.split("\n")
            gone.update((_in_file(row[1:].strip()), number) for row in rows if row.startswith("-"))
            for row in rows:
                if row.startswith("+"):
                    gone.pop(_in_file(row[1:].strip()), None)
    return gone


def _in_file(row: str) -> str:
    """Return a row as it stands in a file, also where it is quoted as JSON writes it."""
    return row.replace('\\"', '"').replace("\\\\", "\\") if "\\" in row else row


def shortened(line: str) -> str:
    """Return a line as it is quoted: a long one cut in its middle."""
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[: _LONGEST_LINE // 2]}{GAP}{line[-(_LONGEST_LINE // 2) :]}"


def _lines_of(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the lines that may be chosen, without indentation, each with its place."""
    for place, row in _rows_of(quote):
        line = shortened(row.strip())
        if len(line) >= _LEAST_LINE and _WORD.search(line):
            yield place, line


def _rows_of(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the rows of a quote; of a patch or a difference those that it leaves in a file."""
    if quote.kind == "patch":
        for place, row in enumerate(quote.text.split("\n")):
            if not _HEADERS.match(row):
                yield place, row[1:] if row[:1] in {"+", " "} else row
    elif quote.kind == "output":
        is_numbered = _NUMBERING.search(quote.label) is not None
        for place, row in _without_removed(quote):
            number = _NUMBERED.match(row) if is_numbered else None
            line = row if number is None else row[number.end() :]
            if not _NO_NEWS.match(line):
                listed = _LISTED.match(line)
                yield place, line[listed.end() :] if listed else line
    else:
        is_json = quote.kind == "call" and quote.text.startswith("{")
        yield from enumerate(_BREAK.split(quote.text) if is_json else quote.text.split("\n"))


def _without_removed(quote: Quote) -> Iterator[tuple[int, str]]:
    """Yield the rows of an output without those that a difference in it takes away.

    In an output that is all differences a hunk may lack its heading, since the middle was cut out.
    """
    is_diff = _DIFF.fullmatch(quote.label) is not None
    old = new = 0
    for place, row in enumerate(quote.text.split("\n")):
        if hunk := _HUNK.match(row):
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif not (is_diff or old > 0 or new > 0):
            yield place, row
        elif not _OF_DIFF.match(row):
            old, new = old - (row[:1] != "+"), new - (row[:1] != "-")
            if row[:1] != "-":
                yield place, row.removeprefix("+")
