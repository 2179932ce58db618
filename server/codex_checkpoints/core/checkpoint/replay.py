"""Makes the checkpoint of a session from its bytes.

`Replay` takes bytes in pieces of any size; the result is the same as for one pass over the whole
(DSC-75).  It can be saved and loaded.  Other folds can take the same lines in the same pass.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

import orjson
from attrs import define

from codex_checkpoints.core import events
from codex_checkpoints.core.agents.codex.derive import Derivation, Deriver
from codex_checkpoints.core.agents.codex.quoted_texts import QuotedTexts
from codex_checkpoints.core.agents.codex.reader import Reader, ReadPosition, is_whole
from codex_checkpoints.core.agents.codex.recorded_texts import RecordedTexts
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.checkpoint.redaction import find_secret
from codex_checkpoints.core.checkpoint.state import State
from codex_checkpoints.core.checkpoint.stream import Stream
from codex_checkpoints.core.converters import read_or_none, states
from codex_checkpoints.core.events import RecordedText, SessionMeta, Source

LONGEST_TAIL = 1 << 23
"""A longer last line, in bytes, is not read before its line feed is written."""

SAVED = 29
"""The version of the result of `Replay.save`."""


@define
class _Saved:
    version: int
    scale: ReadPosition
    derivation: Derivation
    state: State


class Replay(Reader, Stream):
    """A reader of a rollout whose events keep the state of the session after the bytes so far."""

    def __init__(
        self,
        state: State | None = None,
        scale: ReadPosition | None = None,
        derivation: Derivation | None = None,
    ) -> None:
        """Begin before the first byte of a session, or after a saved state."""
        Reader.__init__(self, scale=scale)
        Stream.__init__(self, state)
        self.derivation = Derivation() if derivation is None else derivation
        self.deriver = Deriver(self.derivation, self.scale, self.state.turns, self.give)
        self.folds.append(self.deriver)

    def follow(self, fold: events.Fold, *, texts: bool = False) -> None:
        """Give the records to another fold as well, after the state has taken them.

        `texts`: with the `TextEvent`s.
        """
        super().follow(fold, texts=texts)
        self.deriver.whole = True
        if texts and self.deriver.texts is None:
            quoted = QuotedTexts(self.deriver)
            self.deriver.texts = quoted.of
            self.folds.append(quoted)

    def give_texts(
        self,
        give: Callable[[RecordedText], None],
        is_wanted: Callable[[Source], bool],
        shorten: Callable[[str], str],
        *,
        scripts: bool,
    ) -> None:
        """Also give the texts that can be recalled, as `RecordedTexts`."""
        turns = self.state.turns
        self.folds.append(
            RecordedTexts(self.deriver, turns, give, is_wanted, shorten, scripts=scripts)
        )

    def read_alone(self) -> None:
        """Drop the folds that share the pass."""
        self.folds[:] = [self.deriver]
        self.followers.clear()
        self.deriver.whole, self.deriver.texts = False, None

    @property
    def seq(self) -> int:
        """Return `seq` after the last whole line."""
        return self.scale.seq

    def begin(self, head: SessionMeta) -> None:
        """Take the head before the first line, for a session whose history begins elsewhere."""
        self.derivation.begin(head)
        self.state.begin(head)
        self.scale.paginated = self.scale.ordinals = head.paginated

    def begin_from(self, seed: Checkpoint) -> None:
        """Take the checkpoint that the session begins with, before its first line (JUN-46)."""
        super().begin_from(seed)
        self.scale.seed = seed.seq

    def with_tail(self, tail: bytes) -> Self:
        """Return a copy that has read an unfinished last line; itself if the line is not whole."""
        if self.stopped or not is_whole(tail):
            return self
        ahead = copy.deepcopy(self)
        ahead.drop_unfinished()
        ahead.close(tail)
        return ahead

    def near_the_end(self, lines: bytes, position: int | None = None) -> Replay:
        """Return a replay positioned before the last `lines` that this one has read.

        `position` is the position of the last of them, if it is not the last line read.
        """
        scale, state = self.scale, self.state
        count = sum(1 for line in lines.split(b"\n") if line.strip())
        seed = None if state.seed is None else state.seed.seq
        first = (scale.lines if position is None else position) - count
        at = ReadPosition(first, -1, scale.ordinals, scale.paginated, seed=seed)
        known = self.derivation
        end = State(state.head, state.base, state.typed, seed=state.seed, recovered=state.recovered)
        begun = Derivation(known.head, known.base, own_from=known.own_from, typed=known.typed)
        return Replay(end, at, begun)

    def save(self) -> object | None:
        """Return everything as JSON values; call it only between lines.

        Returns None while a waiting call holds a secret: no secret is stored on disk (DSC-81), and
        the call cannot be read without it when its outcome comes.
        """
        waiting = (states.unstructure(call) for call, _ in self.derivation.calls.waiting.values())
        if any(find_secret(orjson.dumps(call).decode()) for call in waiting):
            return None
        self.state.observations.settle()
        return states.unstructure(_Saved(SAVED, self.scale, self.derivation, self.state))

    @classmethod
    def load(cls, value: object) -> Replay | None:
        """Return the replay that `save` stored; None if it is damaged or of another version."""
        kept = read_or_none(states, value, _Saved)
        if kept is None or kept.version != SAVED:
            return None
        return cls(kept.state, kept.scale, kept.derivation)
