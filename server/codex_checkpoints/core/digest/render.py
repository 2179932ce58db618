"""Composes `digest_v1`: a text inside a budget from the gathered records (rules, "Digest").

Each section has a share of the budget and passes its unused bytes on; the key lines get the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from attrs import Factory, frozen

from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.digest.allocation import (
    LEAST_TOKENS,
    SECTIONS,
    DigestTerms,
    SectionRow,
    heading_size,
    pinned_share,
    share_of,
    size_of,
    tokens_of,
)
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.key_lines import heading_of, known_in, quotable
from codex_checkpoints.core.digest.line_selection import Candidate, Chosen, Heading, choose
from codex_checkpoints.core.digest.one_line import BREAK
from codex_checkpoints.core.digest.records import DigestSource, Quote
from codex_checkpoints.core.digest.requests import request_rows
from codex_checkpoints.core.digest.rows import names_in, rows_with, shortened
from codex_checkpoints.core.digest.scoring import QuotableLines
from codex_checkpoints.core.digest.sections import Sections, is_policy

_IN_TWO_ROUNDS: Final = frozenset({"REQUESTS", "OUTCOMES", "CHANGES"})
"""Sections that give every entry a short form before they quote the newest at length."""

_WHY: Final = {
    "call": "names in a call",
    "patch": "lines of a patch",
    "written": "lines that a call hands over",
    "output": "lines of an output",
    "answer": "words of an answer",
}


@frozen
class DigestLine:
    """One line: its section, its anchor, its turn, and the reason it is quoted.

    `tokens` is ceil(UTF-8 bytes / 4) of the line with its LF.
    """

    section: str
    ref: str | None
    turn: int | None
    turn_id: str | None
    session_id: str | None
    text: str
    tokens: int
    why: str


@frozen
class Digest:
    """A digest: its text, its cost, and its lines; `left` counts the omitted entries by section."""

    text: str = ""
    tokens: int = 0
    budget: int = 0
    lines: tuple[DigestLine, ...] = ()
    left: Mapping[str, int] = Factory(dict[str, int])


def digest_v1(gathered: DigestSource, terms: DigestTerms) -> Digest:
    """Return the digest; its text is empty below `LEAST_TOKENS`."""
    if terms.budget < LEAST_TOKENS:
        return Digest("", 0, terms.budget)
    composing = _Composing(gathered, terms)
    composing.compose()
    return composing.digest()


class _Composing:
    """One digest under construction; `_room` is the number of remaining bytes."""

    def __init__(self, gathered: DigestSource, terms: DigestTerms) -> None:
        self._gathered = gathered
        self._terms = terms
        self._room = 4 * terms.budget - len(DIGEST_LINE) - 1
        self._budget = self._room
        self._lines: dict[str, list[DigestLine]] = {name: [] for name in SECTIONS}
        self._left: Counter[str] = Counter()
        self._ignored = Ignoring(terms.ignore)
        self._sections = Sections(gathered, terms, self._ignored, self._budget)
        self._refused = self._sections.refused

    def compose(self) -> None:
        sections = self._sections
        self._fill("STATUS", sections.status(), self._room)
        self._room = min(self._room, self._budget - self._terms.status_room)
        pinned = pinned_share(self._room)
        self._fill("PINNED", sections.pins(pinned), pinned)
        outcomes = [*sections.outcomes()]
        self._outcomes(outcomes, share_of("OUTCOMES", self._budget, self._room))
        self._section("CHANGES", sections.changes())
        self._section("CHECKS", sections.checks())
        room = share_of("REQUESTS", self._budget, self._room) - heading_size("REQUESTS")
        requests = request_rows(self._gathered, self._terms, room, sections.allowed_request)
        self._section("REQUESTS", requests)
        self._lines["REQUESTS"].reverse()
        self._section("EARLIER_SUMMARY", sections.summary())
        self._fill("KEY_LINES", sections.carried("KEY_LINES"), self._room // 2)
        self._key_lines(outcomes)

    def _key_lines(self, outcomes: Sequence[tuple[SectionRow, bool]]) -> None:
        """Choose the key lines, give their unused bytes to the answers, and choose again.

        The second choice avoids lines that the longer answers now quote.
        """
        quotes = quotable(self._gathered, self._ignored, self._terms.before)
        known = known_in(self._gathered, quotes)
        chosen = self._chosen(quotes, known)
        free = self._room - self._cost(quotes, chosen)
        before = self._room
        answers = sum(size_of(line.text) for line in self._lines["OUTCOMES"])
        at_length = sum(size_of(row.forms[-1]) for row, is_sure in outcomes if is_sure)
        self._room = free
        self._outcomes(outcomes, free + answers - at_length)
        grown = free - self._room
        self._room = before - grown
        if grown > 0:
            chosen = self._chosen(quotes, known)
        self._refused["KEY_LINES"] += chosen.refused
        for number, text in _rendered(quotes, chosen):
            quote = quotes[number]
            self._add("KEY_LINES", SectionRow(quote.where, "", _WHY[quote.kind]), text)

    def _cost(self, quotes: Sequence[Quote], chosen: Chosen) -> int:
        cost = sum(size_of(text) for _, text in _rendered(quotes, chosen))
        return cost + heading_size("KEY_LINES") * bool(cost and not self._lines["KEY_LINES"])

    def _chosen(self, quotes: Sequence[Quote], known: QuotableLines) -> Chosen:
        """Choose among the lines that are neither in the other sections nor beside the digest."""
        headings = dict[int, Heading]()

        def heading(number: int) -> Heading:
            if number not in headings:
                text = f"- {heading_of(quotes[number])}"
                headings[number] = Heading(tuple(names_in(text)), size_of(text))
            return headings[number]

        def allowed(each: Candidate) -> bool:
            return not (quotes[each.place[0]].kind == "output" and is_policy(each.text))

        shown = [line.text for name in SECTIONS[1:] for line in self._lines[name]]
        names = [name for text in [*shown, *self._terms.beside] for name in names_in(text)]
        bodies = [text.partition(": ")[2] for text in shown]
        parts = [part for body in bodies for part in (body, *body.split(BREAK))]
        parts += [part for text in shown for part in text.split(BREAK)]
        parts += [part for text in self._terms.beside for part in text.split("\n")]
        quoted = {shortened(part.strip()) for part in parts}
        room = self._room - heading_size("KEY_LINES")
        free = known.free(quoted)
        return choose(free, known.worths, names, room, heading=heading, allowed=allowed)

    def digest(self) -> Digest:
        parts = [DIGEST_LINE]
        for name in SECTIONS:
            if self._lines[name]:
                parts += ["", f"[{name}]", *(line.text for line in self._lines[name])]
        text = "\n".join(parts) + "\n"
        lines = tuple(line for name in SECTIONS for line in self._lines[name])
        left = self._left + self._refused
        return Digest(text, tokens_of(text), self._terms.budget, lines, dict(left))

    # --- filling ---------------------------------------------------------------------------------

    def _section(self, name: str, rows: Iterable[SectionRow]) -> None:
        share = share_of(name, self._budget, self._room)
        self._fill(name, chain(rows, self._sections.carried(name)), share)

    def _fill(self, name: str, rows: Iterable[SectionRow], share: int) -> None:
        """Add rows in their order while they fit; count the rest."""
        share -= heading_size(name)
        fitting = list[tuple[SectionRow, str]]()
        for row in rows:
            forms = row.forms[-1:] if name in _IN_TWO_ROUNDS else row.forms
            line = next((form for form in forms if size_of(form) <= share), None)
            if line is None or self._left[name]:
                self._left[name] += 1
                continue
            share -= size_of(line)
            fitting.append((row, line))
        for row, line in fitting:
            more = next(
                (form for form in row.forms if size_of(form) - size_of(line) <= share), line
            )
            share -= size_of(more) - size_of(line)
            self._add(name, row, more)

    def _outcomes(self, rows: Sequence[tuple[SectionRow, bool]], room: int) -> None:
        """Fill the section with answers; those not quoted at length share `room`."""
        name, picked, cost = "OUTCOMES", list[SectionRow](), heading_size("OUTCOMES")
        self._room += cost * bool(self._lines[name]) + sum(
            size_of(line.text) for line in self._lines[name]
        )
        self._lines[name], self._left[name], left = [], 0, 0
        for row, is_at_length in rows:
            size = size_of(row.forms[-1])
            room -= 0 if is_at_length else size
            if room < 0 and not is_at_length:
                left += 1
                continue
            cost += size
            picked.append(row)
        self._fill(name, picked, min(self._room, cost + max(room, 0)))
        self._left[name] += left

    def _add(self, name: str, row: SectionRow, line: str) -> None:
        if not self._lines[name]:
            self._room -= heading_size(name)
        self._room -= size_of(line)
        where = row.where
        self._lines[name].append(
            DigestLine(
                name,
                None if where is None else f"#{where.seq}",
                None if where is None else where.turn,
                None if where is None else where.turn_id,
                None if where is None else where.session_id,
                line,
                tokens_of(line + "\n"),
                row.why,
            )
        )


def _rendered(quotes: Sequence[Quote], chosen: Chosen) -> Iterator[tuple[int, str]]:
    """Yield the chosen lines, joined to one line per record; lines added by a patch are marked."""
    for number in sorted(chosen.lines):
        added = rows_with("+", quotes[number])
        rows = ("+" * (place in added) + row for place, row in chosen.rows(number))
        yield number, f"- {heading_of(quotes[number])}{BREAK.join(rows)}"
