"""When a compaction is offered: between two turns, by the window that counts, and never else."""

import pytest

from codex_checkpoints.core.compaction.token_budget import (
    Between,
    Offer,
    OfferMode,
    WindowOverrides,
    budget,
    offer,
    outline_budget,
)


def between(
    *, ended: bool = True, tokens: int | None = 153_000, window: int | None = 272_000
) -> Between:
    return Between(ended, tokens, "reported", window)


FULL = between()
NOBODY = WindowOverrides()


@pytest.mark.parametrize("mode", ["offer", "automatic"])
def test_offer_shows_the_tokens_in_use_and_the_trigger(mode: OfferMode):
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
def test_compaction_is_offered_between_turns_at_the_trigger(session: Between, offered: bool):
    assert (offer("offer", session, NOBODY) is not None) is offered


def test_disabled_setting_offers_nothing():
    assert offer("off", FULL, NOBODY) is None


@pytest.mark.parametrize("tokens", [160_000, 300_000])
def test_estimate_above_the_window_counts_and_is_marked_as_an_estimate(tokens: int):
    session = Between(ended=True, tokens=tokens, source="estimated", window=272_000)

    made = offer("offer", session, NOBODY)

    assert made is not None
    assert made.tokens_source == "estimated"


NOBODYS = WindowOverrides(setting=50_000, environment="100000")
FAST = WindowOverrides(fast_setting=32_000, fast_environment="64000")


@pytest.mark.parametrize(
    ("named", "main", "fast"),
    [
        (NOBODY, (272_000, "advertised"), (400_000, "unknown")),
        (WindowOverrides(environment="100000"), (100_000, "environment"), (400_000, "unknown")),
        (NOBODYS, (50_000, "setting"), (400_000, "unknown")),
        (WindowOverrides(environment="0"), (272_000, "advertised"), (400_000, "unknown")),
        (
            WindowOverrides(fast_environment="64000"),
            (272_000, "advertised"),
            (64_000, "environment"),
        ),
        (FAST, (272_000, "advertised"), (32_000, "setting")),
    ],
)
def test_settings_override_the_environment_and_it_overrides_the_model(
    named: WindowOverrides, main: tuple[int, str], fast: tuple[int, str]
):
    """The outline goes by the window of the smaller model."""
    its, outlines = budget(272_000, named), outline_budget(named)

    assert (its.window, its.window_source) == main
    assert (outlines.window, outlines.window_source) == fast


def test_limited_window_moves_the_trigger():
    session = between(tokens=60_000)

    assert offer("offer", session, NOBODY) is None
    made: Offer | None = offer("offer", session, WindowOverrides(setting=100_000))
    assert made is not None
    assert made.trigger == 56_250
