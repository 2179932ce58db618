"""Counts how often lines and names of a session were needed next, for the tables of `scoring`.

    python bench/learning.py [--every 3] FOLDER...

Each FOLDER is a repository with sessions of Codex somewhere below it.  A session is cut before a
turn and in the middle of one; what is needed then is what `continuity.py` says.  Of a thousand
lines, or names, of each source, and with each amount of text behind them, it is counted how many
were needed.  The tables are counted on all folders but one and measured on that one, in turn, so
that no session is measured with what its own repository taught; in the end they are counted on all
and printed as `core/digest/scoring.py` holds them.  `--every` takes one of so many cuts.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
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
from codex_checkpoints.core.digest.key_lines import quotable
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.digest.render import digest_v1
from codex_checkpoints.core.digest.rows import WHOLE_LINE
from codex_checkpoints.core.digest.scoring import BUCKETS, LineFeatures, Source, Table, Tables

_ROUNDS: Final = 6
_DRAWN: Final = 0.5
"""Smoothing: the weight of the common rate, counted in needed rows, in the rate of a source."""

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


Place = tuple[bool, Source, int]
"""Whether a turn is open, a source, and a bucket of how much text follows."""


@define(eq=False)
class Counts:
    """How many lines, or names, there were, and how many of these were needed."""

    all: dict[Place, int] = Factory(lambda: defaultdict[Place, int](int))
    needed: dict[Place, float] = Factory(lambda: defaultdict[Place, float](float))

    def add(self, row: LineFeatures, *, is_open: bool, needed: float) -> None:
        """Count one."""
        self.all[is_open, row.source, row.bucket] += 1
        self.needed[is_open, row.source, row.bucket] += needed

    def tables(self) -> tuple[Table, Table]:
        """Return the table after a turn and that inside one; the falling is the same in both.

        What was seen seldom is drawn to the rate of both together.
        """
        places = [*product((False, True), _SOURCES, range(BUCKETS))]
        rates, falling = dict.fromkeys(_SOURCES, 1.0), [1.0] * BUCKETS
        for _ in range(_ROUNDS):
            rates = {source: self._rate(places, source, falling, 0.02, 1) for source in _SOURCES}
            needed, expected = [0.0] * BUCKETS, [0.0] * BUCKETS
            for place in places:
                needed[place[2]] += self.needed[place]
                expected[place[2]] += self.all[place] * rates[place[1]]
            falling = _falling(needed, expected)
        percents = tuple(round(100 * each) for each in falling)
        found = list[Table]()
        for is_open in (False, True):
            some = [place for place in places if place[0] == is_open]
            own: dict[Source, float] = {
                source: self._rate(some, source, falling, _DRAWN, _DRAWN / rates[source])
                for source in _SOURCES
            }
            own["written"] = own["patch"]  # the same, of other tools, and seldom
            per_mille: dict[Source, int] = {each: round(1000 * own[each]) for each in _SOURCES}
            found.append(Table(per_mille, percents))
        return found[0], found[1]

    def _rate(
        self,
        places: Iterable[Place],
        source: Source,
        falling: Sequence[float],
        needed: float,
        every: float,
    ) -> float:
        for place in places:
            if place[1] == source:
                needed += self.needed[place]
                every += self.all[place] * falling[place[2]]
        return needed / every


def _falling(needed: Sequence[float], expected: Sequence[float]) -> list[float]:
    """Return the shares as parts of the first one, none larger than the one before."""
    pools = list[tuple[float, float, int]]()
    for pair in zip(needed, expected, strict=True):
        pool = *pair, 1
        while pools and pools[-1][0] * max(pool[1], 1e-9) <= pool[0] * max(pools[-1][1], 1e-9):
            before = pools.pop()
            pool = before[0] + pool[0], before[1] + pool[1], before[2] + pool[2]
        pools.append(pool)
    shares = [some / max(every, 1e-9) for some, every, count in pools for _ in range(count)]
    return [each / shares[0] for each in shares]


def counted(given: Iterable[Case]) -> dict[bool, Tables]:
    """Return the tables by whether the last turn is open."""
    names, lines = Counts(), Counts()
    for case in given:
        newest, best = dict[str, LineFeatures](), dict[str, LineFeatures]()
        for row in scoring.rows_of(quotable(case.gathered, Ignoring(IGNORED), None)):
            if len(row.text) >= WHOLE_LINE:
                newest[row.text] = row
            at = _SOURCES.index(row.source)
            for name in row.names:
                if name not in best or at <= _SOURCES.index(best[name].source):
                    best[name] = row
        for text, row in newest.items():
            needed = bool(continuity.lines(text) & case.cut.lines)
            lines.add(row, is_open=case.is_open, needed=needed)
        for name, row in best.items():
            names.add(row, is_open=case.is_open, needed=case.cut.names.get(name, 0.0))
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
    every = list(chain.from_iterable(groups))
    for is_open, tables in counted(every).items():
        print("in a turn" if is_open else "after a turn")
        for what, table in (("names", tables.names), ("lines", tables.lines)):
            print(f"  {what}, falling {table.falling}:", dict(table.rates), flush=True)
    kept = dict(scoring.TABLES)
    for budget in options.tokens:
        report(f"{budget}, the tables as they are", every, digests(every, budget))
        left_out = list[str]()
        for group in groups:
            others = chain.from_iterable(other for other in groups if other is not group)
            scoring.TABLES.update(counted(others))
            left_out += digests(group, budget)
        scoring.TABLES.update(kept)
        report(f"{budget}, without its own folder", every, left_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
