"""When a compaction is offered: between two turns, by the window that counts, and never else."""

import pytest

from codex_checkpoints.core.compaction.offering import (
    Between,
    Named,
    Offer,
    OfferMode,
    budget,
    offer,
    outline_budget,
)

FULL = Between(ended=True, tokens=153_000, source="reported", window=272_000)
NOBODY = Named()


def between(
    *, ended: bool = True, tokens: int | None = 153_000, window: int | None = 272_000
) -> Between:
    return Between(ended, tokens, "reported", window)


@pytest.mark.parametrize("mode", ["offer", "automatic"])
def test_an_offer_says_what_is_in_use_and_from_where_on_that_is_too_much(mode: OfferMode):
    made = offer(mode, FULL, NOBODY)

    assert made is not None
    assert (made.tokens, made.tokens_source, made.window_source) == (
        153_000,
        "reported",
        "advertised",
    )
    assert (made.window, made.trigger, made.target) == (272_000, 153_000, 122_400)


@pytest.mark.parametrize(
    ("session", "offered"),
    [
        (FULL, True),
        (between(tokens=152_999), False),
        (between(tokens=272_000), True),  # as full as it can be
        (between(tokens=272_001), False),  # more than that is impossible
        (between(tokens=None), False),  # nobody told, or the window was replaced since
        (between(tokens=0), False),
        (between(ended=False), False),  # its turn runs, waits or was cut off
        (between(window=None), False),  # an unknown window is taken to be larger
        (between(tokens=225_000, window=None), True),
        (between(tokens=153_000, window=400_000), False),
    ],
)
def test_it_is_offered_between_turns_where_the_trigger_is_reached(session: Between, offered: bool):
    assert (offer("offer", session, NOBODY) is not None) is offered


def test_whoever_switched_it_off_is_offered_nothing():
    assert offer("off", FULL, NOBODY) is None


@pytest.mark.parametrize("tokens", [160_000, 300_000])
def test_an_estimate_counts_also_above_the_window_and_is_called_one(tokens: int):
    session = Between(ended=True, tokens=tokens, source="estimated", window=272_000)

    made = offer("offer", session, NOBODY)

    assert made is not None
    assert made.tokens_source == "estimated"


@pytest.mark.parametrize(
    ("named", "window", "source"),
    [
        (Named(), 272_000, "advertised"),
        (Named(environment="100000"), 100_000, "environment"),
        (Named(setting=50_000), 50_000, "setting"),
        (Named(setting=50_000, environment="100000"), 50_000, "setting"),
        (Named(fast_setting=50_000, fast_environment="9"), 272_000, "advertised"),
        (Named(environment="0"), 272_000, "advertised"),
        (Named(environment="-5"), 272_000, "advertised"),
        (Named(environment="large"), 272_000, "advertised"),
    ],
)
def test_settings_go_before_the_environment_and_that_before_the_model(
    named: Named, window: int, source: str
):
    its = budget(272_000, named)

    assert (its.window, its.window_source) == (window, source)


@pytest.mark.parametrize(
    ("named", "window", "source"),
    [
        (Named(), 400_000, "unknown"),
        (Named(setting=50_000, environment="100000"), 400_000, "unknown"),
        (Named(fast_environment="64000"), 64_000, "environment"),
        (Named(fast_setting=32_000, fast_environment="64000"), 32_000, "setting"),
    ],
)
def test_the_outline_goes_by_the_window_of_the_smaller_model(
    named: Named, window: int, source: str
):
    its = outline_budget(named)

    assert (its.window, its.window_source) == (window, source)


def test_two_windows_give_two_thresholds_by_one_rule():
    named = Named(setting=272_000, fast_setting=64_000)

    triggers = budget(None, named).trigger, outline_budget(named).trigger

    assert triggers == (153_000, 36_000)


def test_a_window_that_is_deliberately_limited_moves_the_trigger():
    session = between(tokens=60_000)

    assert offer("offer", session, NOBODY) is None
    made: Offer | None = offer("offer", session, Named(setting=100_000))
    assert made is not None
    assert made.trigger == 56_250
