"""Gathers the input of the choice of key lines: quotable texts, headings, and known lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from attrs import evolve

from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.one_line import BREAK, clean_rows, label_line
from codex_checkpoints.core.digest.quotes import files_of
from codex_checkpoints.core.digest.records import DigestSource, Quote
from codex_checkpoints.core.digest.scoring import TABLES, QuotableLines, known_of
from codex_checkpoints.core.shell.commands import only_looks

_LABEL, _FILES = 40, 160
"""The code points of a heading: for the call of an output, and for files."""

_WORDS: Final = re.compile(r"[^\s'\"/;|&<>(),]+")


def quotable(gathered: DigestSource, ignored: Ignoring, before: int | None) -> list[Quote]:
    """Return the texts whose lines may be quoted, redacted: those before a `seq`."""
    whole = {uri: each.whole for uri, each in gathered.changes.items() if each.whole >= 0}
    return [
        evolve(each, text=clean_rows(_without_ignored(each, ignored)))
        for each in _current(gathered, whole)
        if (before is None or each.where.seq < before) and not _is_unquotable(each, ignored)
    ]


def known_in(gathered: DigestSource, quotes: list[Quote]) -> QuotableLines:
    """Return the scores of the lines that may be quoted."""
    return known_of(quotes, request_in(gathered), TABLES[gathered.ended == "open"])


def request_in(gathered: DigestSource) -> str:
    """Return the newest request, empty without any."""
    return gathered.requests[-1].text if gathered.requests else ""


def _current(gathered: DigestSource, whole: Mapping[str, int]) -> Iterator[Quote]:
    """Yield the quotes, without those whose files were all rewritten or deleted since.

    Of earlier turns, the remarks before an answer are left out.
    """
    told = {each.said.where.seq for each in gathered.answers}
    names = {uri.rpartition("/")[2] for uri in whole}
    for quote in gathered.quotes:
        if quote.kind == "answer" and quote.where.age and quote.where.seq not in told:
            continue
        is_named = not names.isdisjoint(_WORDS.findall(quote.label))
        files = files_of(quote) if is_named and quote.kind != "answer" else ()
        if not files or any(whole.get(file, -1) <= quote.where.seq for file in files):
            yield quote


def _is_unquotable(quote: Quote, ignored: Ignoring) -> bool:
    if quote.kind == "answer":
        return False
    if quote.kind == "call" and quote.where.age and only_looks(quote.label):
        return True
    if quote.kind == "patch" and ignored.patch(quote.text):
        return True
    return ignored.script(quote.about)


def _without_ignored(quote: Quote, ignored: Ignoring) -> str:
    return ignored.without(quote.text) if quote.kind == "output" else quote.text


def heading_of(quote: Quote) -> str:
    """Return the heading of a record's lines: its anchor, its file or its call."""
    at = f"#{quote.where.seq} "
    match quote.kind:
        case "answer":
            return at
        case "call":
            return f"{at}call:{BREAK}"
        case "written":
            return f"{at}{label_line(quote.label, _FILES)}:{BREAK}"
        case "patch":
            headings = takewhile(lambda row: row.startswith("*** "), quote.text.split("\n"))
            told = " ".join(filter(None, ("apply_patch", quote.failed)))
            return f"{at}{told}:{BREAK}" + "".join(f"{row}{BREAK}" for row in headings)
        case "output":
            files = ", ".join(files_of(quote))
            label = label_line(files, _FILES) if files else label_line(quote.label, _LABEL)
            told = ": ".join(each for each in (quote.failed, label) if each)
            return f"{at}out: {told}:{BREAK}" if told else f"{at}out: "
