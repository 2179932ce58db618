"""A session as a compaction finds it: all of it read up to one and the same point.

The checkpoint, the history, the state of the last turn and the digests must tell of the same
bytes, while somebody may be writing behind them.  What is done with it is known to `compacting`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

from attrs import evolve

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.replay import Replay
from codex_checkpoints.core.compaction.effect import effective
from codex_checkpoints.core.compaction.installed import Line, Moment, in_place, in_task
from codex_checkpoints.core.compaction.kinds import Past
from codex_checkpoints.core.compaction.records import Range, digest_of
from codex_checkpoints.core.history.tokens import of_items
from codex_checkpoints.core.history.windows import Chain
from codex_checkpoints.core.rollout.fields import Json
from codex_checkpoints.core.rollout.turns import Turn
from codex_checkpoints.service.compaction.provenance import Provenance
from codex_checkpoints.service.history import Histories, Traced
from codex_checkpoints.service.reading.fingerprints import fingerprint
from codex_checkpoints.service.reading.first_pass import FirstPass, Listening
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.reading.turn_names import is_between_turns
from codex_checkpoints.service.refusal import Refusal, unreadable
from codex_checkpoints.service.session_names import may_mean
from codex_checkpoints.service.sessions import Sessions
from codex_checkpoints.threads.contract import Item, Look, Row, UnreadableSource
from codex_checkpoints.values import frozen


def nothing() -> None:
    """Do nothing: the index is kept up to date by who asks."""


@frozen
class Source:
    """A session up to the byte `end` of its file; `live` while somebody has it loaded.

    `prefix` is the digest of these bytes, where it was asked for.
    """

    row: Row
    opened: SessionFile
    replay: Replay
    live: bool
    end: int
    traced: Traced
    prefix: str | None = None

    @property
    def session_id(self) -> str:
        """Return who the session is."""
        return self.row.session_id

    @property
    def look(self) -> Look:
        """Return what must be equal for the session to be unchanged."""
        return self.row.rollout.look

    @property
    def window(self) -> int | None:
        """Return the size of its model's window, as far as the session tells."""
        return self.traced.history.context.window or self.row.context_window

    @property
    def last_turn(self) -> Turn | None:
        """Return the newest turn that counts."""
        return next(reversed([*self.replay.state.turns.counting()]), None)

    @property
    def ended(self) -> bool:
        """Return whether nothing more is to come in the session as it stands (JUN-17)."""
        return is_between_turns(self.replay.state)


class Sources:
    """Reads sessions for compactions."""

    def __init__(self, sessions: Sessions, look_around: Callable[[], object] = nothing) -> None:
        """Read sessions of this service; `look_around` brings its index up to date before."""
        self._sessions = sessions
        self._look_around = look_around
        self._histories = Histories(sessions)
        self._provenance = Provenance(sessions, self._histories)

    def read(self, session: str) -> Source:
        """Read a session of this home; refuses as `Sessions.find`, `unreadable_source`."""
        return self._read(session, self._histories.first_pass)

    def sealed(self, session: str) -> Source:
        """Read a session, and in the same pass the digest of its bytes, for who installs (CKP-33).

        Refuses as `read`.
        """

        def begin(path: str) -> FirstPass:
            return self._histories.first_pass(path, digest=hashlib.sha256())

        return self._read(session, begin)

    def split(self, session: str, at: int) -> Source:
        """Read a session, and in the same pass what its history was in front of a byte.

        Refuses as `read`.
        """
        return self._read(session, partial(self._histories.first_pass, cut=at))

    def _read(self, session: str, begin: Callable[[str], FirstPass]) -> Source:
        catalogue = self._sessions.catalogue
        listening = Listening(partial(may_mean, session), begin)
        with catalogue.heard_by(listening):
            self._look_around()
            row = self._sessions.own(session)
            catalogue.look([row.path])
            row = catalogue.current().get(row.session_id, row)
            opened = catalogue.open(row)
        broken = [each for each in opened.problems if each.code != "base_short"]
        if broken:
            message = f"session {row.session_id} builds on a rollout that is not there"
            facts = {"path": row.path, "reason": broken[0].code}
            raise Refusal("unreadable_source", message, facts)
        replay = opened.now()
        whole = replay is not opened.replay
        end = opened.mark.offset + (len(opened.tail) if whole else 0)
        first = listening.heard(row, end)
        self._sessions.pace.expect(2 * catalogue.chains.weight(row) - first.at)
        traced = self._histories.traced(row, end, replay.scale.shift, first)
        live = row.session_id in catalogue.store.live_threads()
        return Source(row, opened, replay, live, end, traced, first.seal)

    def is_changed(self, source: Source) -> bool:
        """Return whether a session is no longer as it was read."""
        path = source.row.path
        seen = self._sessions.catalogue.store.look([path]).get(path)
        return seen is None or seen.look != source.look

    def items_in_front(self, source: Source) -> tuple[Json, ...]:
        """Return the history in front of the byte at which a session was `split`."""
        in_front = source.traced.in_front
        return () if in_front is None else self._histories.items(source.row, in_front)

    def checkpoint(self, source: Source) -> Checkpoint:
        """Return the checkpoint of a session, with the hashes of now; nothing is stored."""
        return self._sessions.projections.project(
            source.replay, self._sessions.projections.updates_of(source.opened)
        )

    def past(self, source: Source) -> tuple[Past, ...]:
        """Return the history with the time and the place that each item had first (JUN-43).

        Refuses `storage_error`, `unreadable_source`.
        """
        return self._provenance.of(source.row, source.traced)

    def range_of(self, source: Source) -> Range:
        """Return what a compaction replaces, with digests of the history and the bytes (CKP-33)."""
        traced = source.traced
        return Range(
            source.session_id,
            traced.from_seq,
            traced.to_seq,
            digest_of(traced.history.items),
            source.end,
            source.prefix or self._prefix(source.row, source.end),
        )

    def _prefix(self, row: Row, end: int) -> str:
        try:
            return fingerprint(self._sessions.catalogue.reader, row.path, end)[0]
        except UnreadableSource as error:
            raise unreadable(row.path, str(error)) from error


# --- what is appended ----------------------------------------------------------------------------


def opened_after(chain: Chain, window_id: str) -> Chain:
    """Return a chain after one more window; where no window had a number, this one is the first."""
    return evolve(chain, number=chain.number or 0).opened(window_id)


def items_of(lines: tuple[Line, ...]) -> tuple[Item, ...]:
    """Return lines as a store takes them."""
    return tuple(Item(line.type, line.payload) for line in lines)


def behind(
    source: Source, items: Sequence[Json], chain: Chain, turn_id: str, at: Moment
) -> tuple[Item, ...]:
    """Return what is appended to a session so that its history is these items from then on.

    `turn_id` is a new one, for lines that need a task of their own.  Refuses `conflict` where
    nothing that is appended would do it.
    """
    traced = source.traced
    lines = in_place(items, chain, of_items(items) + traced.instructions, traced.last_report)
    forms = lines, in_task(lines, turn_id, source.window, at)
    form = effective(traced.outline, forms, items)
    if form is None:
        message = f"session {source.session_id}: Codex would not go by what is appended to it"
        hint = "Compact it into a new session, or restore one of its turns into a branch."
        facts = {"sessionId": source.session_id, "reason": "without_effect", "hint": hint}
        raise Refusal("conflict", message, facts)
    return items_of(form)


def check_behind(source: Source, items: Sequence[Json]) -> None:
    """Make sure that a session can get these items as its history; refuses as `behind`."""
    behind(source, items, opened_after(source.traced.history.chain, ""), "", Moment("", 0))
