"""When a compaction is offered: between two turns, once the window is too full.

Both surfaces have the same rule (JUN-20): what a model is sent, by the window of that model, and
the outline for people, by the window of the smaller one.  No text of a session and no tool can
cause an offer (JUN-22).
"""

from __future__ import annotations

from typing import Literal

from codex_checkpoints.core.history.tokens import Source, WindowSize, thresholds, window_size
from codex_checkpoints.values import frozen

OfferMode = Literal["off", "offer", "automatic"]
"""Never, as a hint, or before the work continues (JUN-36)."""


@frozen
class Named:
    """The sizes of windows in the settings, 0 for none, and in the environment."""

    setting: int = 0
    fast_setting: int = 0
    environment: str | None = None
    fast_environment: str | None = None


@frozen
class WindowBudget:
    """The size of a window, and the trigger and target of a compaction, in tokens.

    `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
    """

    window: int
    window_source: str
    reserve: int
    trigger: int
    target: int


def window(advertised: int | None, named: Named) -> int | None:
    """Return the window size of a session, None where nobody names one (JUN-21)."""
    return window_size(advertised, named.environment, named.setting or None).tokens


def budget(advertised: int | None, named: Named) -> WindowBudget:
    """Return the budget of what a model is sent."""
    return _budget(window_size(advertised, named.environment, named.setting or None))


def outline_budget(named: Named) -> WindowBudget:
    """Return the budget of the outline; no session names the smaller model (JUN-20)."""
    return _budget(window_size(None, named.fast_environment, named.fast_setting or None))


def _budget(chosen: WindowSize) -> WindowBudget:
    limits = thresholds(chosen.tokens)
    return WindowBudget(limits.window, chosen.source, limits.reserve, limits.trigger, limits.target)


@frozen
class Between:
    """The state of a session: whether its last turn ended, and how full its window is.

    `tokens` were in use at the last call, never the sum over calls (JUN-29); None where there is no
    report, or where the window was replaced since.  `window` is the advertised size.
    """

    ended: bool
    tokens: int | None
    source: Source
    window: int | None

    @property
    def is_impossible(self) -> bool:
        """Return whether a service reported more than the window holds (ROL-9).

        An estimate by the bytes may be more: the window is then more than full (DSC-55).
        """
        if self.source != "reported" or self.tokens is None or self.window is None:
            return False
        return self.tokens > self.window


@frozen
class Offer:
    """A proposal to compact before the next turn: `tokens` have reached `trigger`.

    A compaction stays below `target`.  `tokensSource` is `reported` or `estimated`;
    `windowSource` is `setting`, `environment`, `advertised` or `unknown`.
    """

    tokens: int
    tokens_source: str
    trigger: int
    target: int
    window: int
    window_source: str


def is_nearly_full(session: Between, named: Named) -> bool:
    """Return whether the tokens in use have reached the trigger, in a turn too (JUN-18)."""
    if session.tokens is None or session.is_impossible:
        return False
    return session.tokens >= budget(session.window, named).trigger


def offer(mode: OfferMode, session: Between, named: Named) -> Offer | None:
    """Return the reason for a compaction now, None where there is none (JUN-16, JUN-18)."""
    is_due = mode != "off" and session.ended and is_nearly_full(session, named)
    if not is_due or session.tokens is None:
        return None
    its = budget(session.window, named)
    return Offer(
        session.tokens, session.source, its.trigger, its.target, its.window, its.window_source
    )
