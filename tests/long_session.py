"""A session of thousands of records: round after round of looking, changing, trying, planning."""

from homes import more
from rollouts import (
    THREAD,
    Step,
    assistant,
    compacted,
    patch,
    plan,
    reasoning,
    rollout,
    session,
    shell,
    tokens,
    turn,
    turn_context,
    user,
)

LAST = 300
"""The number of the last round."""

SUMMARY = "I did much."
"""What Codex said of the first two hundred rounds, of which it kept nothing else."""


def long_session(**head: object) -> bytes:
    """Write it; Codex itself compacted after every hundredth round but the last."""
    data = rollout(session(**head))  # pyright: ignore[reportArgumentType]
    for number in range(1, LAST + 1):
        cut = number % 100 == 0 and number < LAST
        steps = (_round(number), *([compacted(SUMMARY, [])] if cut else []))
        data += more(*steps, thread=THREAD, ordinal=data.count(b"\n"))
    assert data.count(b"\n") >= 5_000
    return data


def _round(number: int) -> Step:
    parts = range(number - 1, number + 2)
    return turn(
        turn_context(),
        user(f"Round {number}: go on with part {number}.", ref=f"u{number}"),
        reasoning(),
        shell(f"cat part{number}.py", "x" * 40, reads=[f"part{number}.py"], call=f"read{number}"),
        patch(update=f"part{number}.py", call=f"patch{number}"),
        shell("make test", "F" * 40, exit_code=number % 2, call=f"test{number}"),
        plan(*((f"Do part {each}", each < number) for each in parts), call=f"plan{number}"),
        assistant(f"Part {number} is done."),
        tokens(20_000 + number * 200),
        name=f"round {number}",
    )
