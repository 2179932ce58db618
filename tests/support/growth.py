"""Check that the time of work grows linearly with its input, on a busy machine too."""

import time
from collections.abc import Callable
from typing import Any

ENOUGH = 0.003
"""Seconds of processor time that can be told from nothing."""

TIMES = 8
"""How many times larger the second input is; work that is quadratic takes 64 times as long."""

MOST = 24.0


def takes_linear_time(
    work: Callable[[Any], object], make: Callable[[int], Any], *, first: int = 4_000
) -> None:
    """Do `work` over inputs of growing size; it is an error when time grows faster than they do.

    The size begins at `first` and doubles until the work takes a time that can be measured, or is
    so long that work of any other growth would have shown it.
    """
    size = first
    while (small := _seconds(work, make(size))) < ENOUGH and size < 16 * first:
        size *= 2
    small, large = max(small, ENOUGH), _seconds(work, make(size * TIMES))
    for _ in range(5):  # what else the machine does may have been in the way
        if large < MOST * small:
            return
        small = max(small, _seconds(work, make(size)))
        large = min(large, _seconds(work, make(size * TIMES)))
    ratio = large / small
    raise AssertionError(f"{TIMES} times as much takes {ratio:.1f} times as long, from {size} on")


def _seconds(work: Callable[[Any], object], given: Any) -> float:  # noqa: ANN401 - as it is made
    begin = time.process_time()
    work(given)
    return time.process_time() - begin
