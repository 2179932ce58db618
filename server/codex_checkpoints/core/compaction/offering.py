"""When a compaction is offered: between two turns, once the window is fuller than is good for it.

The rule is the same for both surfaces (JUN-20): what a model is sent, by that model's window, and
the outline that people see, by the window of the smaller one.  What is done about an offer is the
business of whoever asks; no text of a session and no tool can bring one about (JUN-22).
"""

from __future__ import annotations

from typing import Literal

from codex_checkpoints.core.history.tokens import (
    Chosen,
    Source,
    Thresholds,
    thresholds,
    window_size,
)
from codex_checkpoints.values import frozen

OfferMode = Literal["off", "offer", "automatic"]
"""Never, as a hint, or before the work goes on (JUN-36)."""


@frozen
class Named:
    """What somebody says of the windows: the settings, 0 for nothing, and the environment."""

    setting: int = 0
    fast_setting: int = 0
    environment: str | None = None
    fast_environment: str | None = None


@frozen
class Budget:
    """The thresholds of a surface, and where the size of its window comes from (JUN-21)."""

    source: Chosen
    limits: Thresholds


def window(advertised: int | None, named: Named) -> int | None:
    """Return how much fits into the window of a session, None where nobody says (JUN-21)."""
    return window_size(advertised, named.environment, named.setting or None).tokens


def budget(advertised: int | None, named: Named) -> Budget:
    """Return the budget of what a model is sent, by what its session tells of its window."""
    chosen = window_size(advertised, named.environment, named.setting or None)
    return Budget(chosen.source, thresholds(chosen.tokens))


def outline_budget(named: Named) -> Budget:
    """Return the budget of the outline; no session tells anything of the smaller model (JUN-20)."""
    chosen = window_size(None, named.fast_environment, named.fast_setting or None)
    return Budget(chosen.source, thresholds(chosen.tokens))


@frozen
class Between:
    """A session as it stands: whether its last turn has ended, and how full its window is.

    `tokens` were in use at the last call, never the sum over calls (JUN-29); None where nobody
    told, or where the window was replaced since.  `window` is what was advertised.
    """

    ended: bool
    tokens: int | None
    source: Source
    window: int | None

    @property
    def is_impossible(self) -> bool:
        """Return whether a service reported more than the window holds (ROL-9).

        What was counted by the bytes may well be more: such a window is more than full (DSC-55).
        """
        if self.source != "reported" or self.tokens is None or self.window is None:
            return False
        return self.tokens > self.window


@frozen
class Offer:
    """A compaction that is worth its while: what is in use has reached the trigger."""

    tokens: int
    source: Source
    budget: Budget


def is_nearly_full(session: Between, named: Named) -> bool:
    """Return whether what is in use has reached the trigger, also while a turn is open (JUN-18)."""
    if session.tokens is None or session.is_impossible:
        return False
    return session.tokens >= budget(session.window, named).limits.trigger


def offer(mode: OfferMode, session: Between, named: Named) -> Offer | None:
    """Return what speaks for a compaction now, None where nothing does (JUN-16, JUN-18)."""
    is_due = mode != "off" and session.ended and is_nearly_full(session, named)
    if not is_due or session.tokens is None:
        return None
    return Offer(session.tokens, session.source, budget(session.window, named))
