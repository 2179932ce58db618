"""Makes the digest of a session, including the sessions that it continues.

A compaction into a new session and a hard restore replace records by a state.  So the digest covers
the source up to the cut, which is the `seq` of the state that the session begins with, and then the
session's own records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import islice

from attrs import evolve, frozen

from codex_checkpoints.core.checkpoint.records import FOLDER, MAX_VALUE_CHARS, to_bytes
from codex_checkpoints.core.checkpoint.redaction import value
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.compaction.handoff import COMPACTION
from codex_checkpoints.core.digest import status
from codex_checkpoints.core.digest.allocation import DigestTerms
from codex_checkpoints.core.digest.extract import DigestExtract
from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.digest.records import DigestSource
from codex_checkpoints.core.digest.render import Digest, digest_v1
from codex_checkpoints.core.recall.entries import (
    MOST_HITS,
    MOST_TEXT,
    Entry,
    Recall,
    Ref,
    says_more,
    shown,
)
from codex_checkpoints.core.recall.search import Needle, with_lines
from codex_checkpoints.core.restore.markers import PinnedWords, marker_set_of
from codex_checkpoints.core.restore.pinned import pinned_texts
from codex_checkpoints.service.history.current_window import last_line_with, line_at
from codex_checkpoints.service.reading.derived_cache import DIGEST_RULES, CachedKind
from codex_checkpoints.service.reading.session_file import (
    SessionFile,
    bytes_between,
    end_of,
    find_turn,
)
from codex_checkpoints.service.records.operation_records import continued_from
from codex_checkpoints.service.refusal import Refusal, keeping, misfit
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage.contract import Row
from codex_checkpoints.storage.records import MARKERS

MOST_TOKENS = 32_000
_NEAR = 1 << 21
"""Bytes before the last compaction that a hook reads for a session's digest."""

_MESSAGES = frozenset({"user", "assistant"})

_FAR = 1 << 25
"""Maximum distance in bytes at which a hook searches for that compaction."""


def default_budget(setting: int, window: int | None, before: int | None = None) -> int:
    """Return the default budget of a digest.

    At most 1/16 of the context window, in a replacement also a quarter of the tokens `before`, and
    300 at least, but never more than the setting; 0 switches digests off.
    """
    if not setting:
        return 0
    limits = [setting]
    limits += [] if not window else [window // 16]
    limits += [] if before is None else [before // 4]
    return min(setting, max(300, min(limits)))


def checked_budget(tokens: int | None, default: int) -> int:
    """Return a budget in tokens; refuses `limit_exceeded` outside 0 to 32,000."""
    if tokens is None:
        return default
    if not 0 <= tokens <= MOST_TOKENS:
        message = f"a digest has 0 to {MOST_TOKENS:,} tokens, not {tokens:,}"
        raise Refusal("limit_exceeded", message, {"limit": MOST_TOKENS, "tokens": tokens})
    return tokens


@frozen
class Recalled:
    """The record of an anchor: at most 8,000 code points of its text, from `offset` on.

    `total` is the length of the whole text, redacted.  `turn` is the number of its turn, null in a
    session that this one continues.  `kind` is `user`, `assistant`, `call`, `output`, `patch` or
    `summary`, the first record's if several have the number.
    """

    ref: str
    session_id: str
    turn: int | None
    turn_id: str | None
    kind: str
    text: str
    offset: int
    total: int

    @property
    def end(self) -> int:
        """Return the end of this part in the whole text."""
        return self.offset + len(self.text)

    @property
    def heading(self) -> str:
        """Return the heading for a model: the kind of the text, and the part of it."""
        end = self.end
        part = f"{end} of {self.total} characters"
        if self.offset:
            part = f"characters {self.offset + 1} to {end} of {self.total}"
        what = "the whole turn" if Ref.of(self.ref.strip()).turn is not None else self.kind
        return f"{what}, {part}" + (f"; offset {end} goes on" if end < self.total else "")


@frozen
class Hit:
    """A line that contains the text, and the anchor of its record."""

    ref: str
    session_id: str
    turn: int | None
    turn_id: str | None
    kind: str
    line: str


@frozen
class LossDigest:
    """A digest of everything that a history has lost, empty if that is nothing.

    `seq` is the compaction's, and `place` where its line begins; `files` and `commands` are the
    ones in the digest that may be marked when they change or run again.
    """

    text: str = ""
    seq: int = 0
    place: int | None = None
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@frozen
class _WholeDigest:
    """The current digest of a session, and the uris for which it depends on a folder."""

    digest: Digest
    targets: tuple[str, ...]


WHOLE_DIGEST = CachedKind("whole digest", DIGEST_RULES, _WholeDigest, most=116 << 10)
"""Room for a digest of 8,000 tokens with the reason of each line."""


class Digests:
    """Makes the digests of the sessions of one home."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def digest(
        self, session: str, turn: str | int | None = None, tokens: int | None = None
    ) -> Digest:
        """Return the digest of a session, at the end of a turn or now.

        Refuses `unknown_session`, `unknown_turn`, `limit_exceeded`, `unreadable_source`.
        """
        row, opened, own = self._opened(self._sessions.find(session))
        until = None
        if turn is not None:
            replay = opened.now()
            until = end_of(find_turn(replay, turn, row.session_id), replay.state.turns.turns)
        setting = self._sessions.settings.digest_tokens
        budget = checked_budget(tokens, default_budget(setting, row.context_window))
        terms = self.terms(budget)
        if until is not None or not budget:
            return digest_v1(self.gathered(row, until) if budget else DigestSource(), terms)

        def make() -> _WholeDigest:
            replay, gathered = self._gathered(row, own=own)
            whole = self.as_of_now(row, opened, replay, gathered)
            return _WholeDigest(digest_v1(whole, terms), tuple(sorted(gathered.targets)))

        def inputs(made: _WholeDigest | None) -> object:
            return self._inputs(row, opened, terms, () if made is None else made.targets)

        cache = self._sessions.catalogue.cache
        if not cache.may_quote(self._sessions.settings):
            return make().digest
        return cache.get_or_make(opened, WHOLE_DIGEST, inputs, make).digest

    def _opened(self, row: Row) -> tuple[Row, SessionFile, tuple[Replay, DigestSource] | None]:
        """Return a session read to its end, and its own quotable part if it was not read before.

        Then one pass gives both.
        """
        first = Replay()
        DigestExtract(first, row.session_id)
        row, opened = self._sessions.open_row(row, first)
        if opened.replay is not first:
            return row, opened, None
        now = opened.now()
        (gathering,) = (fold for fold in now.followers if isinstance(fold, DigestExtract))
        first.read_alone()
        now.read_alone()
        return row, opened, (now, gathering.gathered())

    def _inputs(
        self, row: Row, opened: SessionFile, terms: DigestTerms, targets: Collection[str]
    ) -> object:
        """Return the inputs of a session's current digest other than its file."""
        projections, now = self._sessions.projections, opened.now()
        return (
            terms.budget,
            terms.ignore,
            to_bytes(projections.current(opened)).decode(),
            sorted(self._drifted(opened, now)),
            sorted(self._folders(now, targets)),
            self._sessions.records.stamp(row.session_id, MARKERS),
        )

    def injected(self, row: Row, setting: int, beside: Collection[str] = ()) -> str:
        """Return the digest of a session for a hook, for which Codex waits.

        `beside` are the user's messages in the history.  Only the end of a large file is read.
        """
        budget = default_budget(setting, row.context_window)
        opened = self._sessions.catalogue.open(row)
        place = self._last_compaction(opened)
        size = _NEAR if place is None else opened.mark.offset - place + _NEAR
        near = None if row.rollout.compressed else opened.last(size)
        if near is None:
            gathered = self.gathered(row)
        else:
            found = DigestExtract.near_the_end(opened.replay, near, row.session_id).gathered()
            gathered = evolve(self._as_it_is(row, opened, found), carried=())
        return digest_v1(gathered, self.terms(budget, beside)).text

    def lost(self, row: Row, setting: int, beside: Collection[str] = ()) -> LossDigest:
        """Return everything a session's history has lost, for a hook, without its outcome.

        It covers the records before the newest compaction, which never change while the session
        goes on.  Files changed and commands run since are only marked, or left out.
        """
        opened, compressed = self._sessions.catalogue.open(row), row.rollout.compressed
        state = opened.now().state
        place = None if compressed else self._last_compaction(opened)
        if place is not None and place > _NEAR:
            near = self._before(opened, place)
            position = state.compacted_at
            found = DigestExtract.near_the_end(
                opened.now(), near, row.session_id, position
            ).gathered()
            found = evolve(found, carried=())
        elif place is None and not compressed and opened.mark.offset > _NEAR:
            return LossDigest()  # the compaction is too far away
        else:
            found = self.gathered(row, state.compacted_at, now=state)
        if not found.replaced_below:
            return LossDigest()
        before = found.replaced_below
        edited, commands = state.observations.since(before)
        gathered = self._as_it_is(row, opened, found.since(commands, edited=edited))
        gathered = evolve(gathered, ended=None, plan_age=None, goal=None)
        budget = default_budget(setting, row.context_window)
        terms = evolve(self.terms(budget, beside, before), status_room=status.ROOM)
        ran = (value(each.command, MAX_VALUE_CHARS) for each in found.checks)
        text = digest_v1(gathered, terms).text
        return LossDigest(text, before, place, tuple(found.changes), tuple(dict.fromkeys(ran)))

    def _before(self, opened: SessionFile, place: int) -> bytes:
        """Return the lines before the compaction at a position, and its own line."""
        reader, path = opened.reader, opened.path
        data = bytes_between(reader, path, place - _NEAR, place)
        line = line_at(reader, path, place, opened.mark.offset + len(opened.tail))
        return data[data.find(b"\n") + 1 :] + line + b"\n"

    def _last_compaction(self, opened: SessionFile) -> int | None:
        size = opened.mark.offset + len(opened.tail)
        reader, least = self._sessions.catalogue.reader, max(0, size - _FAR)
        return last_line_with(reader, opened.path, size, (COMPACTION,), least)

    def _as_it_is(self, row: Row, opened: SessionFile, gathered: DigestSource) -> DigestSource:
        """Return the collected part of a session with its current pins and files."""
        now = opened.now()
        return evolve(gathered, pinned=self._pinned(row, now), drifted=self._drifted(opened, now))

    def terms(
        self, budget: int, beside: Collection[str] = (), before: int | None = None
    ) -> DigestTerms:
        """Return the terms of a digest."""
        ignore = self._sessions.settings.digest_ignore
        return DigestTerms(budget, beside, ignore=ignore, before=before)

    def gathered(
        self,
        row: Row,
        until: int | None = None,
        own: tuple[Replay, DigestSource] | None = None,
        now: State | None = None,
    ) -> DigestSource:
        """Return the quotable part of a session and of the sessions it continues.

        `until` is the position of the last line to read; `own` has read the session's own records;
        `now` is the state of the whole session, if that is not read to its end.
        """
        replay, gathered = self._gathered(row, until, own, now)
        return self.as_of_now(row, self._sessions.catalogue.open(row), replay, gathered)

    def _gathered(
        self,
        row: Row,
        until: int | None = None,
        own: tuple[Replay, DigestSource] | None = None,
        now: State | None = None,
    ) -> tuple[Replay, DigestSource]:
        """Return the same as recorded, and the replay of the session itself."""
        replay, gathered = self._read(row, until, None, now) if own is None else own
        at_its_end = replay
        parts = [gathered]
        read = {row.session_id}
        at = row
        while (seed := replay.state.seed) is not None:
            source = self._source_of(at)
            if source is None or source.session_id in read:
                break
            at = source
            parts[-1] = evolve(parts[-1], carried=())
            read.add(at.session_id)
            replay, gathered = self._read(at, None, seed.seq)
            parts.append(gathered)
        else:
            parts[-1] = evolve(parts[-1], carried=())  # its quotes are in the file
        whole = parts.pop()
        while parts:
            whole = parts.pop().after(whole)
        return at_its_end, whole

    def as_of_now(
        self, row: Row, opened: SessionFile, replay: Replay, gathered: DigestSource
    ) -> DigestSource:
        """Return the collected part with the current pins and files of a session."""
        drifted = self._drifted(opened, replay)
        gathered = gathered.without(self._folders(replay, gathered.targets))
        return evolve(gathered, pinned=self._pinned(row, replay), drifted=drifted)

    def _folders(self, replay: Replay, targets: Collection[str]) -> frozenset[str]:
        """Return the uris that are folders now."""
        looks = self._sessions.workspace.looks(replay.state.base, targets) if targets else {}
        return frozenset(uri for uri, now in looks.items() if now == FOLDER)

    def _drifted(self, opened: SessionFile, replay: Replay) -> frozenset[str]:
        """Return the files that differ from their state at the end of a replay."""
        artifacts = self._sessions.projections.project(opened, replay, ()).artifacts.values()
        return frozenset(each.uri for each in artifacts if each.is_changed)

    def _pinned(self, row: Row, replay: Replay) -> tuple[str, ...]:
        """Return the texts of a session's pins at the end of a replay."""
        session_id, records = row.session_id, self._sessions.records
        if records.stamp(session_id, MARKERS) is None:
            return ()
        with keeping("markers", session_id):
            pins = marker_set_of(records.lines(session_id, MARKERS)).pins
        words = [pin for pin in pins if isinstance(pin, PinnedWords)]
        wanted = {pin.value for pin in words if pin.kind == "message"}
        notes = None
        if any(pin.kind == "note" for pin in words):
            projections, opened = self._sessions.projections, self._sessions.catalogue.open(row)
            updates = projections.updates_of(opened)
            known = tuple(update for update in updates if update.seq <= replay.seq)
            notes = projections.project(opened, replay, known)
        messages = dict[str, Entry]()
        if wanted:
            named = self._entries(row, lambda entry: f"#{entry.seq}" in wanted, rolled_back=False)
            for entry in (each for found in named for each in found.entries):
                if entry.kind in _MESSAGES and entry.seq <= replay.seq:
                    messages.setdefault(f"#{entry.seq}", entry)
        return pinned_texts(pins, messages, notes)

    def _read(
        self, row: Row, until: int | None, last: int | None, whole: State | None = None
    ) -> tuple[Replay, DigestSource]:
        replay = Replay()
        gathering = DigestExtract(replay, row.session_id, whole)
        self._sessions.catalogue.read_with(replay, row, until, last)
        return replay, gathering.gathered()

    def _source_of(self, row: Row) -> Row | None:
        """Return the session that one of ours continues, None if it is gone."""
        below = tuple(self._sessions.catalogue.chains.below(row))
        made = below[-1].session_id if below else row.session_id
        source = continued_from(self._sessions.records, made)
        return None if source is None else self._sessions.catalogue.current().get(source[0])

    # --- recall and search ------------------------------------------------------------------------

    def recall(
        self,
        session: str,
        ref: str,
        offset: int = 0,
        *,
        near: str | None = None,
        rolled_back: bool = True,
    ) -> Recalled:
        """Return the record of an anchor, of a session or of those it continues.

        The part begins at `offset`, or above the line `near` if the record has that.
        `rolled_back`: turns that were rolled back count too.  Refuses `unknown_session`,
        `unknown_ref`, `invalid_payload`.
        """
        row = self._sessions.find(session)
        for found, entries in self._named(session, ref, rolled_back=rolled_back):
            if entries:
                first = entries[0]
                text = "\n".join(each.text for each in entries)
                begin = offset if near is None else _above(text, near, offset)
                return Recalled(
                    ref,
                    found.session_id,
                    found.numbers.get(first.turn_id or "") if found.is_own else None,
                    first.turn_id,
                    first.kind,
                    text[begin : begin + MOST_TEXT],
                    begin,
                    len(text),
                )
        raise _unknown(row, ref, f"record {ref[:80]!r} that can be recalled")

    def message(self, session: str, ref: str) -> str:
        """Return the anchor of the referenced message, for a turn its request.

        Rolled back turns do not count.  Refuses `unknown_session`, `unknown_ref`.
        """
        for _, entries in self._named(session, ref, rolled_back=False):
            for entry in entries:
                if entry.kind in _MESSAGES:
                    return f"#{entry.seq}"
        raise _unknown(self._sessions.find(session), ref, f"message {ref[:80]!r}")

    def _named(
        self, session: str, ref: str, *, rolled_back: bool
    ) -> Iterator[tuple[_Found, list[Entry]]]:
        """Yield the referenced entries of a session, then of those it continues."""
        wanted = Ref.of(ref.strip())
        named = _naming(wanted, self._turn_id(session, wanted.turn))
        row = self._sessions.find(session)
        for found in self._entries(row, named, rolled_back=rolled_back):
            if wanted.turn is not None:
                yield found, [each for each in found.entries if not found.is_copy(each)]
                return
            yield found, found.entries

    def search(
        self, session: str, query: str, limit: int, *, rolled_back: bool = True
    ) -> tuple[Hit, ...]:
        """Return the lines of a session, and of those it continues, that contain a text.

        The newest come first.
        """
        if not query.strip():
            raise misfit("query: must not be empty")
        row = self._sessions.find(session)
        ignored, needle = Ignoring(self._sessions.settings.digest_ignore), Needle.of(query)
        hits: list[Hit] = []

        part = partial(with_lines, needle=needle, ignored=ignored)
        for found in self._entries(row, says_more, part, MOST_HITS, rolled_back=rolled_back):
            for entry in reversed(found.entries):
                if found.is_copy(entry):
                    continue
                turn = found.numbers.get(entry.turn_id or "") if found.is_own else None
                hits += (
                    Hit(f"#{entry.seq}", found.session_id, turn, entry.turn_id, entry.kind, line)
                    for line in entry.text.split("\n")
                )
                if len(hits) >= limit:
                    return tuple(hits[:limit])
        return tuple(hits)

    def _turn_id(self, session: str, number: int | None) -> str | None:
        """Return the id of the turn with a number, None if there is none."""
        if number is None:
            return None
        _, opened = self._sessions.open(session)
        counted = opened.now().state.turns.counting()
        return next((turn.turn_id for turn in islice(counted, number - 1, number)), None)

    def _entries(
        self,
        row: Row,
        is_named: Callable[[Entry], bool],
        part: Callable[[Entry], Entry | None] | None = None,
        most: int | None = None,
        *,
        rolled_back: bool,
    ) -> Iterator[_Found]:
        """Yield the accepted entries of a session, then of each that it continues.

        `part` and `most` are as in `Recall`; without a part all entries that may be shown are
        accepted.
        """
        ignored = Ignoring(self._sessions.settings.digest_ignore)
        last: int | None = None
        at: Row | None = row
        read = set[str]()
        while at is not None and at.session_id not in read:
            read.add(at.session_id)
            replay = Replay()
            recall = Recall(replay, is_named, part or partial(shown, ignored=ignored), most)
            self._sessions.catalogue.read_with(replay, at, last=last)
            counted = enumerate(recall.turns.counting(), 1)
            gone = {turn.turn_id for turn in recall.turns.turns if turn.rolled_back}
            entries = [each for each in recall.entries if rolled_back or each.turn_id not in gone]
            numbers = {turn.turn_id: number for number, turn in counted}
            yield _Found(at.session_id, at is row, entries, numbers, recall.typed)
            seed = replay.state.seed
            if seed is None:
                return
            last, at = seed.seq, self._source_of(at)


@frozen
class _Found:
    """Entries of one session in the chain; `is_own`: of the session itself."""

    session_id: str
    is_own: bool
    entries: list[Entry]
    numbers: dict[str, int]
    typed: bool

    def is_copy(self, entry: Entry) -> bool:
        """Return whether an entry is the history's copy of a message that is also in the file."""
        return self.typed and entry.in_history


def _above(text: str, line: str, otherwise: int) -> int:
    """Return where a part of a text begins that has a line and some lines above it."""
    found = text.find(line)
    if found < 0:
        return otherwise
    begin = max(0, found - MOST_TEXT // 4)
    return begin if begin == 0 else max(begin, text.rfind("\n", begin, found - MOST_TEXT // 8) + 1)


def _unknown(row: Row, ref: str, what: str) -> Refusal:
    message = f"session {row.session_id} has no {what}"
    return Refusal("unknown_ref", message, {"sessionId": row.session_id, "ref": ref[:200]})


def _naming(wanted: Ref, turn_id: str | None) -> Callable[[Entry], bool]:
    """Return the test for the referenced entries; `turn_id` is its turn's."""
    if wanted.seq is not None:
        return lambda entry: entry.seq == wanted.seq
    if wanted.id is not None:
        return lambda entry: wanted.id in entry.ids
    return lambda entry: turn_id is not None and entry.turn_id == turn_id and not entry.repeats
