"""Session files that arrive in any order and in parts, followed at every moment (DSC-75).

Codex writes the head of a file first, and a copy of a folder writes its files in any order: a
follower may see an empty file, half a head, or a fork before its base.
"""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

import rollouts as r
import updates
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.session_watcher import SessionWatcher
from homes import Home, more, thread

SESSIONS = range(1, 6)


class Part(NamedTuple):
    """A part of a session file: the thread and the segment it belongs to, and where it ends."""

    number: int
    segment: int | None
    end: int


def size(data: bytes, lines: int) -> int:
    return len(b"\n".join(data.split(b"\n")[:lines])) + 1


def files(dice: random.Random) -> dict[tuple[int, int | None], bytes]:
    """Write a session, a later segment of it, a fork, a fork of that, and an older fork."""
    turn = r.turn(r.user("one"), r.patch(add="a.py", call="c1"))
    base = r.rollout(r.session(), turn, r.turn(r.user("two"), r.patch(add="b.py", call="c2")))
    cut = dice.choice([5, 8, base.count(b"\n")])

    def on(number: int, below: bytes, ordinal: int, whose: int, said: str) -> bytes:
        end = size(below, ordinal) if whose == 1 else len(below)
        head = r.session(
            thread=thread(number), history_base=r.based_on(thread(whose), ordinal, end)
        )
        own = r.turn(r.user(said, ref=said), r.patch(add=f"{said}.py", call=said), name=said)
        return r.rollout(head, own)

    fork = on(2, base, cut, 1, "fork")
    older = r.rollout(r.session("legacy", thread=thread(4)), turn, r.turn(r.user("then")))
    head = r.rollout(r.session("legacy", thread=thread(5), forked_from_id=thread(4)))
    own = r.turn(r.user("own"), r.patch(add="own.py", call="c7"), name="t9")
    return {
        (1, None): base,
        (1, 50): on(1, base, cut, 1, "segment"),
        (2, None): fork,
        (3, None): on(3, fork, cut + fork.count(b"\n"), 2, "again"),
        (4, None): older,
        (5, None): head + older + more(own, thread=thread(5), ordinal=0, form="legacy"),
    }


def parts(dice: random.Random, whole: dict[tuple[int, int | None], bytes]) -> Iterator[Part]:
    """Yield the parts of the files, those of each in order; half of them end in its head."""
    waiting: list[list[Part]] = []
    for (number, segment), data in whole.items():
        most = (data.index(b"\n") + 2, len(data) + 1)
        ends = sorted(dice.randrange(dice.choice(most)) for _ in range(dice.randrange(4)))
        waiting.append([Part(number, segment, end) for end in (*ends, len(data))])
    while waiting:
        one = dice.choice(waiting)
        yield one.pop(0)
        waiting = [each for each in waiting if each]


def shown(house: Assembly) -> list[bytes]:
    return [house.sessions.show(thread(number)).data for number in SESSIONS]


@settings(max_examples=settings().max_examples // 2)
@given(dice=st.randoms(use_true_random=False))
def test_sessions_arriving_in_any_order_end_as_if_read_at_once(
    dice: random.Random,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, whole = Home(Path(folder)), files(dice)
        for number in (1, 4):
            home.remember([updates.fact("noted", seq=3, turn="t1")], number)
        with home.house() as house:
            follower = SessionWatcher(house.sessions)
            follower.begin()
            for number, segment, end in parts(dice, whole):
                path = home.put(whole[number, segment][:end], number, segment=segment)
                seen = dice.randrange(4)
                if seen <= 1:
                    follower.mark(str(path))
                    follower.drain()
                elif seen == 2:
                    follower.reconcile()
                if dice.randrange(3) == 0:
                    for each in SESSIONS:
                        with contextlib.suppress(Refusal):  # it is not there yet
                            house.sessions.show(thread(each))
            house.sessions.refresh()

            at_last = shown(house)
            assert [detail_of(house.sessions, thread(each)).problems for each in SESSIONS] == [
                ()
            ] * 5
        assert [home.checkpoint(each).read_bytes() for each in SESSIONS] == at_last

        (home.state / "index.sqlite").unlink()
        with home.house() as house:
            assert at_last == shown(house)


def test_fork_of_a_grown_fork_is_read_again_when_only_their_base_is_reported(home: Home) -> None:
    whole = files(random.Random(0))
    base = home.put(whole[1, None][: size(whole[1, None], 1)], 1)
    fork = home.put(b"", 2)
    home.put(whole[3, None], 3)
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        assert detail_of(house.sessions, thread(3)).problems == (f"base_short:{thread(2)}",)
        fork.write_bytes(whole[2, None])
        house.sessions.show(thread(2))

        base.write_bytes(whole[1, None])
        follower.mark(str(base))
        follower.drain()

        assert detail_of(house.sessions, thread(3)).problems == ()
