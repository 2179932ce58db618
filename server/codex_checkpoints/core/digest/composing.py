"""`digest_v1`: from what was gathered to a text inside a budget (rules, "Digest").

Each section gets a share of the budget, and what one leaves the next may use; the key lines get the
rest.  The cost of a text is ceil(UTF-8 bytes / 4).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, takewhile
from typing import Final

from attrs import Factory, define, evolve, frozen

from codex_checkpoints.core.checkpoint.policy import standing_policy
from codex_checkpoints.core.checkpoint.records import IGNORED
from codex_checkpoints.core.checkpoint.text import redact
from codex_checkpoints.core.digest.choosing import choose, names_in, rows_with, shortened
from codex_checkpoints.core.digest.cutting import GAP, PROPOSED, ends_of, without_plan
from codex_checkpoints.core.digest.ignoring import Ignoring
from codex_checkpoints.core.digest.outcomes import plain
from codex_checkpoints.core.digest.records import Answer, Check, Gathered, Quote, Trail, Where
from codex_checkpoints.core.digest.status import ended_line, goal_line, plan_line
from codex_checkpoints.core.rollout import script
from codex_checkpoints.core.rollout.commands import only_looks
from codex_checkpoints.core.rollout.fields import CONTROLS
from codex_checkpoints.core.rollout.ours import DIGEST_LINE

SECTIONS: Final = (
    "STATUS",
    "REQUESTS",
    "OUTCOMES",
    "CHANGES",
    "CHECKS",
    "PINNED",
    "EARLIER_SUMMARY",
    "KEY_LINES",
)
LEAST_TOKENS: Final = 50
"""With a smaller budget there is no text."""

_SHARES: Final = {
    "REQUESTS": 0.25,
    "OUTCOMES": 0.05,
    "CHANGES": 0.3,
    "CHECKS": 0.06,
    "EARLIER_SUMMARY": 0.15,
}
"""The most of the budget that a section takes, outcomes beside those that are told at length."""

_IN_TWO_ROUNDS: Final = frozenset({"REQUESTS", "OUTCOMES", "CHANGES"})
"""Sections that say something of everything before they say more of the newest."""

_PINNED: Final = 0.5
"""The most of the budget that pins take: the longest are cut to the first of these that fits."""

_PIN_LIMITS: Final = (1200, 600, 300, 150, 80)

_REQUEST, _SUMMARY_LINE = 1200, 400
_REQUEST_LIMITS: Final = ((300, 3), (150, 3), (80, 2), (80, 1), (80, 0))
"""Code points of a request that is cut, and how many of its rules stand all the same."""

_ASSENT, _QUESTION = 24, 200
"""A message so short stands with the question that it answers."""

_SHORT, _RULES, _RULE_CHARS = 300, 3, 160
_RULE: Final = re.compile(
    r"\b(?:always|never|must|(?:make|be) sure|ensure|do not|don't|commit|from now on)\b"
    r"|\u5fc5\u305a|\u3057\u306a\u3044\u3067|\u4e0d\u8981|\u3057\u3066\u304f\u3060\u3055\u3044",
    re.IGNORECASE,
)
"""What the user says for good: it stands where the rest of a message is cut."""

_DIGITS: Final = re.compile(r"\d+")
_TIME: Final = re.compile(r"\d:\d\d")
_REPEATS, _LEAST_REPEATED = 5, 4
"""How often a line stands in a log, and its least code points: a brace repeats in any code."""

_BEGINNING: Final = 200
"""A request that begins like a message beside it was only cut there: it stands in short."""

_ANSWER_LIMITS: Final = (1 << 14, 4800, 2400, 1600, 1000, 600, 400, 250, 130)
"""Code points of an answer, the whole one first."""

_LAST, _CHANGED, _PLAN = 0.1, 0.03, 0.5
"""The most of the budget that is sure for the last answer, for that of the newest turn that changed
files, and for the newest one that proposes a plan; each is cut to the first length that fits."""

_LEAST_SECONDS: Final = 0.1
"""How long a command took is not worth saying below that."""
_TURNS: Final = 6
"""So many of the turns that changed a file are named, the newest."""

_LABEL, _FILES = 40, 160
"""Code points of the call, or of the files, that lines of an output stand in."""

_BREAKS: Final = re.compile(
    r"(?:(?<![ \t])[ \t]++)?(?:\r\n|[\n\r\v\f\x85\u2028\u2029])[\s\x00-\x1f]*"
)
_CONTROLS: Final = re.compile(f"[{CONTROLS}]+")
_BUT_LF: Final = re.compile(rf"(?:(?!\n)[{CONTROLS}])+")
_ENDS: Final = (re.compile(r"\\n|[.!?;:](?= |\\n)|[\u3002\uff01\uff1f]"), re.compile(" "))
"""Ends of sentences and lines, else of words, in a text of one line."""

_WORDS: Final = re.compile(r"[^\s'\"/;|&<>(),]+")
_LONE: Final = re.compile(r"[\ud800-\udfff]")


@frozen
class DigestTerms:
    """What a caller wants of a digest.

    `beside`: the user's messages that stand whole beside it.  `ignore`: patterns of file names that
    are never quoted.  `before`: only records below this `seq` are quoted, since the history holds
    the rest.  `status_room`: so many bytes at least are left to the section `[STATUS]`.
    """

    budget: int
    beside: Collection[str] = ()
    ignore: tuple[str, ...] = IGNORED
    before: int | None = None
    status_room: int = 0


@frozen
class DigestLine:
    """One line: its section, its anchor, the turn it is of, and why it stands.

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
    """A digest: its text, its cost, and its lines; `left` counts by section what is left out."""

    text: str = ""
    tokens: int = 0
    budget: int = 0
    lines: tuple[DigestLine, ...] = ()
    left: Mapping[str, int] = Factory(dict[str, int])


def tokens_of(text: str) -> int:
    """Return ceil(UTF-8 bytes / 4)."""
    return -(-len(text.encode()) // 4)


def digest_v1(gathered: Gathered, terms: DigestTerms) -> Digest:
    """Return the digest; its text is empty below `LEAST_TOKENS`."""
    if terms.budget < LEAST_TOKENS:
        return Digest("", 0, terms.budget)
    composing = _Composing(gathered, terms)
    composing.compose()
    return composing.digest()


@define(eq=False)
class _Row:
    """A line that may stand: its text without the `- `, and shorter forms, the longest first."""

    where: Where | None
    text: str
    why: str
    shorter: tuple[str, ...] = ()

    @property
    def forms(self) -> list[str]:
        """The whole lines, the longest first."""
        return [f"- {form}" for form in (self.text, *self.shorter)]


class _Composing:
    """One digest while its sections are filled."""

    def __init__(self, gathered: Gathered, terms: DigestTerms) -> None:
        self._gathered = gathered
        self._terms = terms
        self._room = 4 * terms.budget - len(DIGEST_LINE) - 1
        self._budget = self._room
        self._lines: dict[str, list[DigestLine]] = {name: [] for name in SECTIONS}
        self._left: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._ignored = Ignoring(terms.ignore)
        self._whole = {uri: each.whole for uri, each in gathered.changes.items() if each.whole >= 0}
        self._names = {uri.rpartition("/")[2] for uri in self._whole}

    def compose(self) -> None:
        gathered = self._gathered
        self._fill("STATUS", self._status(), self._room)
        self._room = min(self._room, self._budget - self._terms.status_room)
        self._fill("PINNED", self._pins(), int(self._room * _PINNED))
        answers = [each for each in gathered.answers if self._is_quoted(each.said.where)]
        sure = dict(self._told_at_length(answers))
        told = (
            (self._outcome(each, sure.get(each.said.where.seq, 0)), each)
            for each in reversed(answers)
        )
        rows = [(row, each.said.where.seq in sure) for row, each in told if row is not None]
        rows += ((row, False) for row in self._carried("OUTCOMES"))
        self._outcomes(rows, self._share("OUTCOMES"))
        self._section("CHANGES", self._change_rows())
        self._section("CHECKS", self._check_rows())
        self._section("REQUESTS", self._request_rows())
        self._lines["REQUESTS"].reverse()
        self._section("EARLIER_SUMMARY", self._summary_rows())
        self._fill("KEY_LINES", self._carried("KEY_LINES"), self._room // 2)
        before = self._room, [*self._lines["KEY_LINES"]], self._refused["KEY_LINES"]
        self._key_lines()
        standing = sum(_size(line.text) for line in self._lines["OUTCOMES"])
        at_length = sum(_size(row.forms[-1]) for row, told_at_length in rows if told_at_length)
        left = self._room
        self._outcomes(rows, self._room + standing - at_length)
        if (grown := left - self._room) > 0:  # no key line says again what stands there now
            self._room, self._lines["KEY_LINES"], self._refused["KEY_LINES"] = before
            self._room -= grown
            self._key_lines()

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

    def _section(self, name: str, rows: Iterable[_Row]) -> None:
        self._fill(name, chain(rows, self._carried(name)), self._share(name))

    def _share(self, name: str) -> int:
        return min(self._room, int(self._budget * _SHARES[name]))

    def _carried(self, name: str) -> Iterator[_Row]:
        """Yield the lines of a section that stand in for a source that is gone."""
        for each in self._gathered.carried:
            if each.section == name:
                text = inline(each.text, _ANSWER_LIMITS[0])
                if name != "REQUESTS" and _is_policy(text):
                    self._refused[name] += 1
                else:
                    where = Where(None, each.seq)
                    at, why = anchor(where), "of a session that is gone"
                    shorter = (f"{at} {_cut(text, n)}" for n in _ANSWER_LIMITS[1:] if n < len(text))
                    yield _Row(where, f"{at} {text}", why, tuple(shorter))

    def _fill(self, name: str, rows: Iterable[_Row], share: int) -> None:
        """Add rows in their order while they fit; count the others."""
        share -= len(name) + 4  # the empty line and the heading
        fitting = list[tuple[_Row, str]]()
        for row in rows:
            forms = row.forms[-1:] if name in _IN_TWO_ROUNDS else row.forms
            line = next((form for form in forms if _size(form) <= share), None)
            if line is None or self._left[name]:
                self._left[name] += 1
                continue
            share -= _size(line)
            fitting.append((row, line))
        for row, line in fitting:
            more = next((form for form in row.forms if _size(form) - _size(line) <= share), line)
            share -= _size(more) - _size(line)
            self._add(name, row, more)

    def _outcomes(self, rows: Sequence[tuple[_Row, bool]], room: int) -> None:
        """Fill the section with answers, those that are not told at length within `room`."""
        name, picked, cost = "OUTCOMES", list[_Row](), len("OUTCOMES") + 4
        self._room += cost * bool(self._lines[name]) + sum(
            _size(line.text) for line in self._lines[name]
        )
        self._lines[name], self._left[name], left = [], 0, 0
        for row, is_told_at_length in rows:
            size = _size(row.forms[-1])
            room -= 0 if is_told_at_length else size
            if room < 0 and not is_told_at_length:
                left += 1
                continue
            cost += size
            picked.append(row)
        self._fill(name, picked, min(self._room, cost + max(room, 0)))
        self._left[name] += left

    def _add(self, name: str, row: _Row, line: str) -> None:
        if not self._lines[name]:
            self._room -= len(name) + 4
        self._room -= _size(line)
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

    def _is_quoted(self, where: Where) -> bool:
        return self._terms.before is None or where.seq < self._terms.before

    # --- sections --------------------------------------------------------------------------------

    def _status(self) -> Iterator[_Row]:
        gathered = self._gathered
        if gathered.ended is not None:
            last = gathered.last_answer
            asks = last is not None and last.said.where.age == 0 and _asks(last)
            ended = ended_line(gathered.ended, asks=asks, reason=gathered.reason)
            yield _Row(None, ended, "how the last turn ended")
        if gathered.goal is not None:
            yield _Row(None, goal_line(gathered.goal), "the state of the goal")
        if gathered.plan_age is not None:
            yield _Row(None, plan_line(gathered.plan_age), "the age of the plan")
        if gathered.changes:
            yield _Row(None, f"changed files: {len(gathered.changes)}", "counted")

    def _pins(self) -> list[_Row]:
        """Return the pins in their order, so short that all have room, as far as that goes."""
        texts = [text for text in self._gathered.pinned if text]
        self._refused["PINNED"] += len(self._gathered.pinned) - len(texts)
        room = int(self._room * _PINNED) - len("PINNED") - 4
        rows = list[_Row]()
        for limit in _PIN_LIMITS:
            rows = [_Row(None, inline(text, limit), "pinned by the user") for text in texts]
            if sum(_size(f"- {row.text}") for row in rows) <= room:
                break
        return rows

    def _told_at_length(self, answers: Iterable[Answer]) -> Iterator[tuple[int, float]]:
        """Yield the answers that are told at length by `seq`, with the part of the budget for each.

        The last one, that of the newest turn that changed files, the newest that proposes a plan.
        """
        own = [each for each in reversed(list(answers)) if not each.by_subagent]
        trails = self._gathered.changes.values()
        newest = max((each.where for each in trails), key=_seq, default=None)
        changed = (each for each in own if newest and each.said.where.turn_id == newest.turn_id)
        plans = (each for each in own if PROPOSED in each.said.text)
        for found, part in ((changed, _CHANGED), (iter(own), _LAST), (plans, _PLAN)):
            yield from ((each.said.where.seq, part) for each in islice(found, 1))

    def _outcome(self, answer: Answer, sure: float) -> _Row | None:
        mark = f"{answer.ended}{' asks' if _asks(answer) else ''}: "
        text = answer.said.text
        if answer.by_subagent:
            mark, text = "subagent: ", self._allowed(text, "OUTCOMES")
            if not text:
                return None
        text = without_plan(text, self._terms.beside)
        head, clean = f"{anchor(answer.said.where)} {mark}", _quoted(text)
        lengths = [limit for limit in _ANSWER_LIMITS[1:] if limit < len(clean)]
        forms = [head + _cut(clean, limit) for limit in (_ANSWER_LIMITS[0], *lengths)]
        most = self._budget * sure
        last = next((at for at, form in enumerate(forms) if _size(form) <= most), len(forms) - 1)
        why = "the answer of a subagent" if answer.by_subagent else "the last answer of its turn"
        return _Row(answer.said.where, forms[0], why, tuple(forms[1 : last + 1]))

    def _allowed(self, text: str, section: str) -> str:
        """Return a text without the lines that order the agent about; count them."""
        lines = text.split("\n")
        allowed = [line for line in lines if not _is_policy(line)]
        self._refused[section] += len(lines) - len(allowed)
        return "\n".join(allowed)

    def _change_rows(self) -> Iterator[_Row]:
        trails = self._gathered.changes
        for uri in sorted(trails, key=lambda uri: (-trails[uri].where.seq, uri)):
            trail = trails[uri]
            if not self._ignored.path(uri):
                yield self._change(uri, trail)
        if unnamed := self._gathered.unnamed:
            where, script = unnamed[-1]
            commands = "1 command" if len(unnamed) == 1 else f"{len(unnamed)} commands"
            text = f"{anchor(where)} {commands} may have changed more"
            said = "" if self._ignored.script(script) else f", the last: {inline(script, 80)}"
            yield _Row(where, f"{text}{said}", "counted", (text,))

    def _change(self, uri: str, trail: Trail) -> _Row:
        words = [f"{anchor(trail.where)} {inline(uri, 1024)}"]
        if trail.added or trail.removed:
            words.append(f"+{trail.added} -{trail.removed}")
        if trail.turns:
            turns = ",".join(map(str, trail.turns[-_TURNS:]))
            turns += " and earlier" if len(trail.turns) > _TURNS else ""
            words.append(f"turn{'s' if len(trail.turns) > 1 else ''} {turns}")
        if trail.created:
            words.append("created")
        if trail.deleted:
            words.append("deleted")
        if trail.moved_from is not None:
            words.append(f"moved from {inline(trail.moved_from, 1024)}")
        if trail.moved_to is not None:
            words.append(f"moved to {inline(trail.moved_to, 1024)}")
        if trail.put_back is not None:
            again = ", then changed again" if trail.where.seq > trail.put_back else ""
            words.append(f"put back by git #{trail.put_back}{again}")
        if uri in self._gathered.drifted:
            words.append("changed since")
        names = f": {inline(', '.join(trail.names), 400)}" if trail.names else ""
        return _Row(trail.where, " ".join(words) + names, "a changed file", (words[0],))

    def _check_rows(self) -> Iterator[_Row]:
        """Yield failing commands, passing ones, then failing ones from before later edits."""
        groups: tuple[list[_Row], list[_Row], list[_Row]] = [], [], []
        for check in reversed(self._gathered.checks):
            if not self._is_quoted(check.where) or self._ignored.script(check.command):
                continue
            failed = bool(check.outcome.failed)
            stale = failed and self._gathered.is_stale(check)
            group = 0 if failed and not stale else 2 if stale else 1
            late = stale or self._gathered.is_late(check)
            groups[group].append(self._check(check, late=late))
        for group in groups:
            yield from group

    def _check(self, check: Check, *, late: bool) -> _Row:
        ended = check.outcome.ended
        if check.seconds is not None and check.seconds >= _LEAST_SECONDS:
            ended += f" ({check.seconds:.1f} s)"
        ended += f" in {inline(check.folder, _FILES)}" if check.folder else ""
        before = " before later edits" if late else ""
        head = f"{anchor(check.where)} {ended}{before}: {inline(check.command, 160)}"
        told = [line for line in (check.outcome.printed or "").split("\n") if line]
        lines = [line for line in told if not (_is_policy(line) or self._ignored.line(line))]
        self._refused["CHECKS"] += len(told) - len(lines)
        full = BREAK.join([head, *(inline(line, 240) for line in lines)])
        why = _WHY_CHECKED[check.outcome.failed]
        return _Row(check.where, full, why, (head,))

    def _request_rows(self) -> list[_Row]:
        """Return the requests, the newest first, so short that all have room if that goes."""
        beside = {" ".join(ends_of(text.strip()).split()) for text in self._terms.beside}
        begun = {text[:_BEGINNING] for text in beside}
        answers = sorted(self._gathered.answers, key=lambda each: each.said.where.seq)
        places = [each.said.where.seq for each in answers]
        seen, told = set[str](), list[tuple[Where, str, str, bool]]()
        for said in reversed(self._gathered.requests):
            folded = " ".join(said.text.split())
            if not self._is_quoted(said.where) or folded in beside:
                continue
            text, why = said.text, "a request of the user"
            if said.chosen:
                text, why = self._allowed(text, "REQUESTS"), "chosen by the user"
            if text:
                clean = _quoted(_collapsed(text) if len(text) > _SHORT else text)
                before = answers[at - 1] if (at := bisect_left(places, said.where.seq)) else None
                if before and _asks(before) and len(clean) <= _ASSENT and not said.chosen:
                    question = before.said.text.rstrip().rpartition("\n")[2]
                    told_too = "" if _is_policy(question) else inline(question, _QUESTION)
                    clean = f"{clean} (asked: {told_too})" if told_too else clean
                if clean not in seen:
                    seen.add(clean)
                    told.append((said.where, clean, why, folded[:_BEGINNING] in begun))
        room = self._share("REQUESTS") - len("REQUESTS") - 4
        rows = list[_Row]()
        for limit, rules in _REQUEST_LIMITS:
            rows = [
                _Row(
                    where,
                    f"{at} {_with_rules(text, limit if is_beside else _REQUEST, _RULES)}",
                    why,
                    (f"{at} {_with_rules(text, limit, rules)}",),
                )
                for where, text, why, is_beside in told
                for at in (anchor(where),)
            ]
            if sum(_size(row.forms[-1]) for row in rows) <= room:
                break
        return rows

    def _summary_rows(self) -> Iterator[_Row]:
        summary = self._gathered.summary
        if summary is None or not self._is_quoted(summary.where):
            return
        for line in plain(summary.text).split("\n"):
            if line.strip():
                if _is_policy(line):
                    self._refused["EARLIER_SUMMARY"] += 1
                    continue
                text = f"{anchor(summary.where)} {inline(line, _SUMMARY_LINE)}"
                yield _Row(summary.where, text, "Codex's own summary")

    # --- key lines -------------------------------------------------------------------------------

    def _key_lines(self) -> None:
        room = self._room - len("KEY_LINES") - 4
        quotes = [
            evolve(each, text=_clean(self._quotable(each)))
            for each in self._gathered.quotes
            if self._is_quoted(each.where) and not self._is_unquotable(each)
        ]

        def head(quote: Quote) -> str:
            return f"- {_head(quote)}"

        def allowed(quote: Quote, line: str) -> bool:
            return not (quote.kind == "output" and _is_policy(line))

        stands = [line.text for name in SECTIONS[1:] for line in self._lines[name]]
        known = (name for text in stands for name in names_in(text))
        beside = (name for text in self._terms.beside for name in names_in(text))
        bodies = [text.partition(": ")[2] for text in stands]
        parts = [part for body in bodies for part in (body, *body.split(BREAK))]
        parts += [part for text in self._terms.beside for part in text.split("\n")]
        held = {shortened(part.strip()) for part in parts}
        chosen = choose(quotes, {*known, *beside}, held, room, head=head, allowed=allowed)
        self._refused["KEY_LINES"] += chosen.refused
        for number in sorted(chosen.lines):
            quote = quotes[number]
            added = rows_with("+", quote)
            rows = ("+" * (place in added) + line for place, line in chosen.lines[number])
            lines = BREAK.join(rows)
            row = _Row(quote.where, "", _WHY[quote.kind])
            self._add("KEY_LINES", row, f"- {_head(quote)}{lines}")

    def _is_unquotable(self, quote: Quote) -> bool:
        if quote.kind == "answer":
            return False
        if quote.kind == "call" and quote.where.age and only_looks(quote.label):
            return True
        if quote.kind == "patch" and self._ignored.patch(quote.text):
            return True
        return self._ignored.script(quote.about) or self._is_outdated(quote)

    def _is_outdated(self, quote: Quote) -> bool:
        """Return whether all files that a quote is of were written anew or deleted since."""
        if self._names.isdisjoint(_WORDS.findall(quote.label)):
            return False
        files = _files(quote)
        return bool(files) and all(self._whole.get(file, -1) > quote.where.seq for file in files)

    def _quotable(self, quote: Quote) -> str:
        return self._ignored.without(quote.text) if quote.kind == "output" else quote.text


_WHY_CHECKED: Final = {
    True: "a failing command",
    False: "a command that passed",
    None: "a command of which nobody knows how it ended",
}
_WHY: Final = {
    "call": "names in a call",
    "patch": "lines of a patch",
    "written": "lines that a call hands over",
    "output": "lines of an output",
    "answer": "words of an answer",
}

BREAK: Final = r"\n"
"""Stands where the quoted text has a break of lines, as in JSON."""


def inline(text: str, limit: int) -> str:
    """Return a quoted text as one line: redacted, `BREAK` for breaks, cut in its middle."""
    return _cut(_quoted(text), limit)


def _quoted(text: str) -> str:
    return _one_line(redact(plain(text)).strip())


def _cut(clean: str, limit: int) -> str:
    return clean if len(clean) <= limit else GAP.join(_ends_within(clean, limit))


def _ends_within(clean: str, limit: int) -> tuple[str, str]:
    """Return both ends of a text that is longer, cut where a line, a sentence or a word ends."""
    half = (limit - len(GAP)) // 2
    tail = clean[-half:]
    for ends in _ENDS:
        if found := ends.search(tail, 0, half // 2):
            tail = tail[found.end() :]
            break
    head = clean[: 2 * half - len(tail)]
    for ends in _ENDS:
        if found := deque(ends.finditer(head, len(head) // 2), 1):
            head = head[: found[0].end()]
            break
    return head.removesuffix(BREAK).rstrip(), tail.lstrip()


def _with_rules(clean: str, limit: int, most: int) -> str:
    """Return a text that is cut as `_cut` does it, with the first rules of what is left out."""
    if len(clean) <= limit:
        return clean
    head, tail = _ends_within(clean, limit)
    ends = [0, *(found.end() for found in _ENDS[0].finditer(clean)), len(clean)]
    sentences = (clean[begin:end].removesuffix(BREAK).strip() for begin, end in pairwise(ends))
    standing = f"{head}{GAP}{tail}"
    rules = (each for each in sentences if _RULE.search(each) and each not in standing)
    lost = (_cut(each, _RULE_CHARS if most > 1 else limit) for each in rules)
    return GAP.join([head, *islice(lost, most), tail])


def _collapsed(text: str) -> str:
    """Return a text with what repeats in it as logs do told once, with how often it stands there.

    Lines repeat that are equal, or differ in digits alone and hold a time of day.
    """
    rows = text.split("\n")
    keys = [_DIGITS.sub("0", each.strip()) if _TIME.search(each) else each.strip() for each in rows]
    times = Counter(keys)
    told = set[str]()
    kept = list[str]()
    for row, key in zip(rows, keys, strict=True):
        if times[key] < _REPEATS or len(key) < _LEAST_REPEATED:
            kept.append(row)
        elif key not in told:
            told.add(key)
            kept.append(f"{row} (\u00d7{times[key]})")
    return "\n".join(kept)


def anchor(where: Where) -> str:
    """Return the anchor of a record: `t3 #120`, or `#120` in an earlier session."""
    return f"#{where.seq}" if where.turn is None else f"t{where.turn} #{where.seq}"


def _one_line(text: str) -> str:
    return _LONE.sub("\ufffd", _CONTROLS.sub(" ", _BREAKS.sub(lambda _: BREAK, text)))


def _head(quote: Quote) -> str:
    """Return what stands before the lines of a record: its anchor, its file or its call."""
    at = f"#{quote.where.seq} "
    match quote.kind:
        case "answer" | "call":
            return at
        case "written":
            return f"{at}{_cut_label(quote.label, _FILES)}:{BREAK}"
        case "patch":
            headings = takewhile(lambda row: row.startswith("*** "), quote.text.split("\n"))
            return f"{at}apply_patch:{BREAK}" + "".join(f"{row}{BREAK}" for row in headings)
        case "output":
            files = ", ".join(_files(quote))
            label = _cut_label(files, _FILES) if files else _cut_label(quote.label, _LABEL)
            told = ": ".join(each for each in (quote.failed, label) if each)
            return f"{at}out: {told}:{BREAK}" if told else f"{at}out: "


def _files(quote: Quote) -> tuple[str, ...]:
    """Return the files that a quote is of; none where it may be of something else."""
    if quote.kind == "patch":
        return tuple(quote.label.split(", "))
    reading = script.read_script(quote.label)
    touched = reading.writes if quote.kind == "call" else reading.reads
    return tuple(dict.fromkeys(each.path for each in touched)) if reading.plain else ()


def _cut_label(label: str, limit: int) -> str:
    clean = _one_line(redact(label).split("\n")[0].strip())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def _clean(text: str) -> str:
    """Return a text that may be quoted line by line."""
    return _LONE.sub("\ufffd", _BUT_LF.sub(" ", redact(plain(text))))


def _asks(answer: Answer) -> bool:
    return answer.ended == "answered" and answer.asks


def _is_policy(line: str) -> bool:
    return standing_policy(line) is not None


def _seq(where: Where) -> int:
    return where.seq


def _size(line: str) -> int:
    return len(line.encode(errors="replace")) + 1
