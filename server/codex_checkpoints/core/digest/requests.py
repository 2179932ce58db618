"""Makes the rows of the section `[REQUESTS]`, short enough to fit all requests."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Final

from codex_checkpoints.core.digest.allocation import DigestTerms, SectionRow, size_of
from codex_checkpoints.core.digest.one_line import (
    BREAK,
    ENDS,
    anchor,
    cut,
    ends_within,
    inline,
    quoted,
)
from codex_checkpoints.core.digest.records import Answer, DigestSource
from codex_checkpoints.core.digest.truncate import GAP, ends_of
from codex_checkpoints.core.record_place import RecordPlace

_REQUEST: Final = 1200
_REQUEST_LIMITS: Final = ((300, 3), (150, 3), (80, 2), (80, 1), (80, 0))
"""The code points of a cut request, and the most of its rules that are kept nevertheless."""

_ASSENT, _QUESTION = 24, 200
"""A message this short is quoted with the question that it answers."""

_SHORT, _RULES, _RULE_CHARS = 300, 3, 160
_RULE: Final = re.compile(
    r"\b(?:always|never|must|(?:make|be) sure|ensure|do not|don't|commit|from now on)\b"
    r"|\u5fc5\u305a|\u3057\u306a\u3044\u3067|\u4e0d\u8981|\u3057\u3066\u304f\u3060\u3055\u3044",
    re.IGNORECASE,
)
"""Standing rules of the user: they are kept when the rest of a message is cut."""

_DIGITS: Final = re.compile(r"\d+")
_TIME: Final = re.compile(r"\d:\d\d")
_REPEATS, _LEAST_REPEATED = 5, 4
"""The least repeats of a line in a log, and its least code points: any code repeats a brace."""

_BEGINNING: Final = 200
"""A request that begins like a message beside it was only cut there: it is abbreviated."""


QuotableRequest = tuple[RecordPlace, str, str, bool]
"""A request: its place, its text, the reason for quoting it, and whether a message beside the
digest begins with it."""


def request_rows(
    gathered: DigestSource, terms: DigestTerms, room: int, allowed: Callable[[str], str]
) -> list[SectionRow]:
    """Return the requests, the newest first, short enough to fit all of them if possible.

    `allowed` removes the lines of a text that give orders to the agent.
    """
    requests = [*_quotable(gathered, terms, allowed)]
    rows = list[SectionRow]()
    for limit, rules in _REQUEST_LIMITS:
        rows = [
            SectionRow(
                where,
                f"{anchor(where)} {_with_rules(text, limit if is_beside else _REQUEST, _RULES)}",
                why,
                (f"{anchor(where)} {_with_rules(text, limit, rules)}",),
            )
            for where, text, why, is_beside in requests
        ]
        if sum(size_of(row.forms[-1]) for row in rows) <= room:
            break
    return rows


def _quotable(
    gathered: DigestSource, terms: DigestTerms, allowed: Callable[[str], str]
) -> Iterator[QuotableRequest]:
    """Yield the requests that are not beside the digest, each text once."""
    beside = {" ".join(ends_of(text.strip()).split()) for text in terms.beside}
    begun = {text[:_BEGINNING] for text in beside}
    answers = sorted(gathered.answers, key=lambda each: each.said.where.seq)
    places = [each.said.where.seq for each in answers]
    seen = set[str]()
    for said in reversed(gathered.requests):
        folded = " ".join(said.text.split())
        if not terms.quotes(said.where) or folded in beside:
            continue
        text, why = said.text, "a request of the user"
        if said.chosen:
            text, why = allowed(text), "chosen by the user"
        clean = quoted(_collapsed(text) if len(text) > _SHORT else text)
        before = answers[at - 1] if (at := bisect_left(places, said.where.seq)) else None
        if before and len(clean) <= _ASSENT and not said.chosen:
            clean += _question(before, allowed)
        if text and clean not in seen:
            seen.add(clean)
            yield said.where, clean, why, folded[:_BEGINNING] in begun


def _question(before: Answer, allowed: Callable[[str], str]) -> str:
    """Return the question that an assent answers, in brackets."""
    question = before.said.text.rstrip().rpartition("\n")[2] if before.is_question else ""
    shown = inline(allowed(question), _QUESTION)
    return f" (asked: {shown})" if shown else ""


def _with_rules(clean: str, limit: int, most: int) -> str:
    """Return a text cut by `cut`, with the first rules of the omitted part."""
    if len(clean) <= limit:
        return clean
    head, tail = ends_within(clean, limit)
    ends = [0, *(found.end() for found in ENDS[0].finditer(clean)), len(clean)]
    sentences = (clean[begin:end].removesuffix(BREAK).strip() for begin, end in pairwise(ends))
    standing = f"{head}{GAP}{tail}"
    rules = (each for each in sentences if _RULE.search(each) and each not in standing)
    lost = (cut(each, _RULE_CHARS if most > 1 else limit) for each in rules)
    return GAP.join([head, *islice(lost, most), tail])


def _collapsed(text: str) -> str:
    """Return a text with repeated log lines shown once, each with its count.

    Lines are repeats if they are equal, or differ only in digits and contain a time of day.
    """
    rows = text.split("\n")
    keys = [_DIGITS.sub("0", each.strip()) if _TIME.search(each) else each.strip() for each in rows]
    times = Counter(keys)
    seen = set[str]()
    kept = list[str]()
    for row, key in zip(rows, keys, strict=True):
        if times[key] < _REPEATS or len(key) < _LEAST_REPEATED:
            kept.append(row)
        elif key not in seen:
            seen.add(key)
            kept.append(f"{row} (\u00d7{times[key]})")
    return "\n".join(kept)
