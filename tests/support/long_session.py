"""A session of thousands of records: round after round of looking, changing, trying, planning."""

import rollouts as r
from homes import more

LAST = 300
"""The number of the last round."""

SUMMARY = "I did much."
"""What Codex said of the first two hundred rounds, of which it kept nothing else."""


def long_session(**head: object) -> bytes:
    """Write it; Codex itself compacted after every hundredth round but the last."""
    data = r.rollout(r.session(**head))  # pyright: ignore[reportArgumentType]
    for number in range(1, LAST + 1):
        cut = number % 100 == 0 and number < LAST
        steps = (_round(number), *([r.compacted(SUMMARY, [])] if cut else []))
        data += more(*steps, thread=r.THREAD, ordinal=data.count(b"\n"))
    assert data.count(b"\n") >= 5_000
    return data


def _round(number: int) -> r.Step:
    parts = range(number - 1, number + 2)
    return r.turn(
        r.turn_context(),
        r.user(f"Round {number}: go on with part {number}.", ref=f"u{number}"),
        r.reasoning(),
        r.shell(f"cat part{number}.py", "x" * 40, reads=[f"part{number}.py"], call=f"read{number}"),
        r.patch(update=f"part{number}.py", call=f"patch{number}"),
        r.shell("make test", "F" * 40, exit_code=number % 2, call=f"test{number}"),
        r.plan(*((f"Do part {each}", each < number) for each in parts), call=f"plan{number}"),
        r.assistant(f"Part {number} is done."),
        r.tokens(20_000 + number * 200),
        name=f"round {number}",
    )
