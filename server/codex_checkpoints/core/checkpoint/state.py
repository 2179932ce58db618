"""Everything the reducer knows of a session after some of its lines.

Most of what a line says is replaced before anybody asks, so the newest of a kind is held as it
came and read late: `catch_up` reads what is cheap and often asked, `Observations` reads its own,
and a text becomes a value when it is asked for.  What is held so is bounded.
"""

from __future__ import annotations

from collections import deque

from attrs import Factory, field

from codex_checkpoints.core.checkpoint.calls import Calls
from codex_checkpoints.core.checkpoint.observations import Observations
from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.rollout.glimpse import folder_key
from codex_checkpoints.core.rollout.items import SessionMeta, Tokens, TurnContext
from codex_checkpoints.core.rollout.parsing import item_of
from codex_checkpoints.core.rollout.turns import Planned, Said, Turns
from codex_checkpoints.values import define

NAMED = frozenset({None, "due", "done"})
"""The values of `State.naming` with which a message is no part of the naming task."""

_HELD = 1 << 18
"""How many code points of texts may be held that are no values yet."""


@define
class State:
    """A session so far; `…_at` are positions of lines."""

    head: SessionMeta | None = None
    base: str | None = None
    paginated: bool = False
    own_from: int = -1
    """The first `seq` of a subagent's own lines."""
    typed: bool = False
    """Whether typed messages were found, so that the model's history is no longer asked."""
    model: str | None = None
    name: str | None = None
    first_said: Said | None = None
    turn_folder: str | None = None
    folder_key: bytes = b""
    """How a line names that folder; empty before there is one."""
    turns: Turns = Factory(Turns)
    planned: Planned | None = None
    """A plan recorded before the first turn."""
    observations: Observations = Factory(Observations)
    calls: Calls = Factory(Calls)
    compactions: int = 0
    compacted_at: int = 0
    tokens: Tokens | None = None
    tokens_at: int = 0
    window: int | None = None
    window_at: int = 0
    model_at: int = 0
    naming: str | None = None
    """`due` until the naming task of a file of ours begins, then its id, then `done`."""
    seed: Checkpoint | None = None
    """What the session began with, where an operation of ours made it."""
    order: int = 0
    unread_calls: int = 0
    answered_at: int = 0
    worked_at: int = 0
    _context: tuple[int, bytes] | None = field(init=False, default=None)
    _late: deque[tuple[Said | Planned, int]] = field(
        init=False, factory=deque[tuple[Said | Planned, int]]
    )
    _held: int = field(init=False, default=0)

    @property
    def first_text(self) -> str | None:
        """Return the first message of a person, which names the session for people."""
        return None if self.first_said is None else self.first_said.text

    @property
    def tokens_stale(self) -> bool:
        """Return whether the window was replaced since its size was told."""
        return self.compacted_at > self.tokens_at

    @property
    def ends_with_answer(self) -> bool:
        """Return whether an older file ends with an answer: no work after it, no call waiting."""
        answered = self.answered_at > self.worked_at and not self.calls.waiting
        return answered and not self.paginated

    def hold(self, late: Said | Planned, size: int) -> None:
        """Keep account of texts that are no values yet; of too many the oldest become values."""
        self._late.append((late, size))
        self._held += size
        while self._held > _HELD:
            oldest, size = self._late.popleft()
            self._held -= size
            oldest.settle()

    def hold_context(self, position: int, raw: bytes) -> None:
        """Hold the newest line with the settings of a turn."""
        self._context = position, raw

    def catch_up(self) -> None:
        """Read the lines of which only the newest counts."""
        if self._context is not None:
            (position, raw), self._context = self._context, None
            context = item_of(raw)
            if isinstance(context, TurnContext):
                self.set_model(context.model, position)

    def settle(self) -> None:
        """Read everything that is held."""
        self.catch_up()
        self.observations.settle()
        while self._late:
            self._late.pop()[0].settle()
        self._held = 0

    def set_folder(self, folder: str) -> None:
        """Take the folder of the turn."""
        self.turn_folder, self.folder_key = folder, folder_key(folder)

    def set_model(self, model: str | None, position: int) -> None:
        """Take the model, unless a later line has told one."""
        if model is not None and position >= self.model_at:
            self.model, self.model_at = model, position

    def set_window(self, window: int | None, position: int) -> None:
        """Take the size of the model's window, unless a later line has told one."""
        if window is not None and position >= self.window_at:
            self.window, self.window_at = window, position

    def set_tokens(self, tokens: Tokens, position: int) -> None:
        """Take how full the window is, unless a later line has told it."""
        if position >= self.tokens_at:
            self.tokens, self.tokens_at = tokens, position
        self.set_window(tokens.window, position)
