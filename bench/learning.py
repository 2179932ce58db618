"""Counts how often lines and names of a session were needed next, for the tables of `scoring`.

    python bench/learning.py [--every 3] FOLDER...

Each FOLDER is a repository with sessions of Codex somewhere below it.  A session is cut before a
turn and in the middle of one; what is needed then is what `continuity.py` says.  Of a thousand
lines, or names, of each source, and with each amount of text behind them, it is counted how many
were needed; of lines also by how often they occur.  The tables are counted on all folders and
printed as `core/digest/scoring.py` holds them.  Then they are counted on all folders but one and
measured on that one, in turn, so that no session is measured with what its own repository taught.
`--every` takes one of so many cuts.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, get_args

import continuity
from attrs import Factory, define

from codex_checkpoints.core.checkpoint.records import IGNORED
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.digest import scoring
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.key_lines import quotable, request_in
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.digest.rows import WHOLE_LINE
from codex_checkpoints.core.digest.scoring import BUCKETS, LineFeatures, Source, Table, Tables

_ROUNDS: Final = 6
_DRAWN: Final = 0.5
"""Smoothing: the weight of the common rate, counted in needed rows, in the rate of a source."""

_MOST_SEEN: Final = 3
"""More occurrences count as so many."""

_SOURCES: Final[tuple[Source, ...]] = get_args(Source)


@define(eq=False)
class Case:
    """A cut, the candidates before it, and the user messages that are kept beside their digest."""

    cut: continuity.Cut
    gathered: DigestSource
    users: tuple[str, ...]
    in_turn: bool

    @property
    def is_open(self) -> bool:
        """Return whether the last turn is open."""
        return self.gathered.ended == "open"


def cases(paths: Iterable[Path], every: int) -> Iterator[Case]:
    """Yield the cuts of sessions between their turns and in the middle of them, each one once."""
    seen = set[tuple[bool, frozenset[str], frozenset[str]]]()
    number = 0
    for path in paths:
        for in_turn in (False, True):
            for cut in continuity.cuts(path, in_turn=in_turn):
                key = in_turn, frozenset(cut.names), cut.lines
                if key in seen:
                    continue
                seen.add(key)
                number += 1
                if number % every == 0:
                    users = tuple(said.text for said in cut.before if said.author == "user")
                    yield Case(cut, _gathered(cut), users, in_turn)


def _gathered(cut: continuity.Cut) -> DigestSource:
    data = cut.path.read_bytes()[: cut.end]
    replay = Replay()
    gathering = DigestExtract(replay, "session")
    replay.close(data[replay.feed(data) :])
    return gathering.gathered()


Place = tuple[bool, Source, int, int]
"""Whether a turn is open, a source, a bucket of how much text follows, how often it was seen."""


@define(eq=False)
class Counts:
    """How many lines, or names, there were, and how many of these were needed."""

    all: Counter[Place] = Factory(Counter[Place])
    needed: defaultdict[Place, float] = Factory(lambda: defaultdict[Place, float](float))

    def add(self, row: LineFeatures, seen: int, *, is_open: bool, needed: float) -> None:
        """Count one."""
        place = is_open, row.source, row.bucket, min(seen, _MOST_SEEN)
        self.all[place] += 1
        self.needed[place] += needed

    def take(self, other: Counts) -> None:
        """Add the counts of other cuts."""
        self.all.update(other.all)
        for place, needed in other.needed.items():
            self.needed[place] += needed

    def tables(self) -> tuple[Table, Table]:
        """Return the table after a turn and that inside one; they differ in the rates alone.

        What was seen seldom is drawn to the rate of both together.
        """
        rates, falling = dict.fromkeys(_SOURCES, 1.0), [1.0] * BUCKETS
        seen = [1.0] * _MOST_SEEN
        for _ in range(_ROUNDS):
            by_rest = {place: falling[place[2]] * seen[place[3] - 1] for place in self.all}
            rates = {source: self._rate(source, by_rest, 0.02, 1) for source in _SOURCES}
            by_rest = {place: rates[place[1]] * seen[place[3] - 1] for place in self.all}
            shares = [self._share(by_rest, 2, bucket) for bucket in range(BUCKETS)]
            falling = _falling(shares)
            by_rest = {place: rates[place[1]] * falling[place[2]] for place in self.all}
            needed = [self._share(by_rest, 3, 1 + times) for times in range(_MOST_SEEN)]
            once = max(needed[0][0] / needed[0][1], 1e-9)
            seen = [some / every / once if some else 1.0 for some, every in needed]
        percents = tuple(round(100 * each) for each in falling)
        found = list[Table]()
        for is_open in (False, True):
            by_rest = {
                place: falling[place[2]] * seen[place[3] - 1]
                for place in self.all
                if place[0] == is_open
            }
            own: dict[Source, float] = {
                source: self._rate(source, by_rest, _DRAWN, _DRAWN / rates[source])
                for source in _SOURCES
            }
            own["written"] = own["patch"]  # the same, of other tools, and seldom
            per_mille: dict[Source, int] = {each: round(1000 * own[each]) for each in _SOURCES}
            found.append(Table(per_mille, percents, tuple(round(100 * each) for each in seen)))
        return found[0], found[1]

    def _rate(
        self, source: Source, weights: Mapping[Place, float], needed: float, every: float
    ) -> float:
        for place, weight in weights.items():
            if place[1] == source:
                needed += self.needed[place]
                every += self.all[place] * weight
        return needed / every

    def _share(self, rates: Mapping[Place, float], at: int, value: int) -> tuple[float, float]:
        """Return the needed and the expected ones where a part of the place has a value."""
        places = [place for place in rates if place[at] == value]
        expected = sum(self.all[place] * rates[place] for place in places)
        return sum(self.needed[place] for place in places), max(expected, 1e-9)


def _falling(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the shares as parts of the first one, none larger than the one before."""
    pools = list[tuple[float, float, int]]()
    for pair in pairs:
        pool = *pair, 1
        while pools and pools[-1][0] * pool[1] <= pool[0] * pools[-1][1]:
            before = pools.pop()
            pool = before[0] + pool[0], before[1] + pool[1], before[2] + pool[2]
        pools.append(pool)
    shares = [some / every for some, every, count in pools for _ in range(count)]
    return [each / shares[0] for each in shares]


def counted(given: Iterable[Case]) -> tuple[Counts, Counts]:
    """Return the counts of names and of lines."""
    names, lines = Counts(), Counts()
    for case in given:
        newest, best = dict[str, LineFeatures](), dict[str, LineFeatures]()
        seen = Counter[str]()
        quotes = quotable(case.gathered, Ignoring(IGNORED), None)
        for row in scoring.rows_of(quotes, request_in(case.gathered)):
            seen[row.text] += 1
            if len(row.text) >= WHOLE_LINE:
                newest[row.text] = row
            at = _SOURCES.index(row.source)
            for name in row.names:
                if name not in best or at <= _SOURCES.index(best[name].source):
                    best[name] = row
        for text, row in newest.items():
            needed = bool(continuity.lines(text) & case.cut.lines)
            lines.add(row, seen[text], is_open=case.is_open, needed=needed)
        for name, row in best.items():
            names.add(row, 1, is_open=case.is_open, needed=case.cut.names.get(name, 0.0))
    return names, lines


def tables_of(given: Iterable[tuple[Counts, Counts]]) -> dict[bool, Tables]:
    """Return the tables by whether the last turn is open."""
    names, lines = Counts(), Counts()
    for more_names, more_lines in given:
        names.take(more_names)
        lines.take(more_lines)
    after, inside = zip(names.tables(), lines.tables(), strict=True)
    return {False: Tables(*after), True: Tables(*inside)}


def report(what: str, given: Sequence[Case], texts: Sequence[str]) -> None:
    """Print names and lines, all and the mean of the cuts, and hunks."""
    for in_turn in (False, True):
        some = [pair for pair in zip(given, texts, strict=True) if pair[0].in_turn == in_turn]
        held = continuity.measured([case.cut for case, _ in some], [text for _, text in some])
        place = "in the middle of turns" if in_turn else "between turns"
        print(f"{what}, {len(some)} cuts {place}:{continuity.row(held)}", flush=True)


def digests(given: Sequence[Case], budget: int) -> list[str]:
    """Return the digests, each with the user's messages."""
    return [
        "\n".join([*case.users, digest_v1(case.gathered, DigestTerms(budget, case.users)).text])
        for case in given
    ]


def main() -> int:
    """Print the tables of all cuts, then the shares on the repositories left out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--tokens", type=int, nargs="+", default=[4000, 8000])
    options = parser.parse_args()
    folders: list[Path] = options.folder
    groups = [[*cases(sorted(each.rglob("*.jsonl")), options.every)] for each in folders]
    counts = [counted(group) for group in groups]
    learned = tables_of(counts)
    columns = [table for each in learned.values() for table in (each.names, each.lines)]
    for source in _SOURCES:
        print(f'"{source}": {tuple(each.rates[source] for each in columns)},')
    for what, table in zip(("names", "lines"), columns, strict=False):
        print(f"{what}: falling {table.falling}, seen {table.seen}", flush=True)
    kept, every = dict(scoring.TABLES), list(chain.from_iterable(groups))
    for budget in options.tokens:
        report(f"{budget}, the tables as they are", every, digests(every, budget))
        left_out = list[str]()
        for group, own in zip(groups, counts, strict=True):
            scoring.TABLES.update(tables_of(each for each in counts if each is not own))
            left_out += digests(group, budget)
        scoring.TABLES.update(kept)
        report(f"{budget}, without its own folder", every, left_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
