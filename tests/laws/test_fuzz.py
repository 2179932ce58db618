"""A second of each target of `make fuzz`: broken input is answered or refused."""

import pytest

import fuzz


@pytest.mark.parametrize("target", sorted(fuzz.TARGETS))
def test_broken_input_is_answered_or_refused(target: str) -> None:
    fed, failed = fuzz.run(target, seconds=1.0, seed=0)

    assert failed == []
    assert fed > 0


def test_failure_is_reported_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_dice: object) -> int:
        raise KeyError("x")

    monkeypatch.setitem(fuzz.TARGETS, "lines", fails)
    _, failed = fuzz.run("lines", seconds=0.01, seed=7)

    assert failed[0] == "lines 8: KeyError: 'x'"
