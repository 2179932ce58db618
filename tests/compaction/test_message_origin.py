"""Where the user's words first stood, and when, from one compaction to the next (JUN-43)."""

import json
from collections.abc import Generator

import pytest

from codex_checkpoints.core.compaction.records import Installed, Into
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import Compacted, CompactionRequest
from codex_checkpoints.service.sessions.sessions import Sessions
from compaction.test_compact import OUTSIDE, WORK, compacting, records
from homes import Home, more, thread
from rollouts import (
    Form,
    assistant,
    based_on,
    compacted,
    patch,
    plan,
    record,
    rollout,
    session,
    tokens,
    turn,
    user,
)

Place = tuple[str | None, str | None]


def work(form: Form = "paginated") -> bytes:
    return rollout(
        session(form, thread=thread(1)),
        turn(user("Fix the login."), plan(("Fix it", False)), assistant(WORK)),
        turn(user("And the logout."), patch(update="auth.py"), assistant(WORK), tokens(19_000)),
    )


@pytest.fixture(params=["paginated", "legacy"])
def form(request: pytest.FixtureRequest) -> Form:
    return request.param


@pytest.fixture
def sessions(home: Home, form: Form) -> Generator[Sessions]:
    home.put(work(form))
    with home.house() as house:
        yield house.sessions


def asked(session_id: str = thread(1), into: Into = "new") -> CompactionRequest:
    return CompactionRequest(session_id, into=into, force=True)


def kept(done: Compacted) -> list[Place]:
    return [(piece.at, piece.ref) for piece in done.kept]


def in_place(sessions: Sessions) -> Compacted:
    return compacting(sessions).compact(asked(into="in-place"))


def take_back(sessions: Sessions, done: Compacted) -> None:
    Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))


def say(home: Home, sessions: Sessions, text: str, form: Form) -> None:
    """Have the user say something in the session, and be answered."""
    path = home.path()
    number = path.read_bytes().count(b"\n")
    steps = turn(user(text), assistant("Done."), name=f"t{number}")
    with path.open("ab") as file:
        file.write(more(steps, thread=thread(1), ordinal=number, form=form))
    sessions.refresh()


def place_of(home: Home, text: str) -> Place:
    """Return when the user said something, and where, as it stands in the file."""
    lines = [json.loads(line) for line in home.path().read_bytes().splitlines()]
    at, line = next(
        (at, line)
        for at, line in enumerate(lines, 1)
        if line["type"] == "response_item" and text in json.dumps(line)
    )
    return line["timestamp"], f"seq:{line.get('ordinal', at)}"


def fork(home: Home, sessions: Sessions, number: int) -> str:
    """Have Codex fork the session as it is, with a prompt of its own."""
    data = home.path().read_bytes()
    base = based_on(thread(1), data.count(b"\n"), len(data))
    head = session(thread=thread(number), history_base=base)
    home.put(rollout(head, turn(user("In the fork."), assistant(WORK))), number)
    sessions.refresh()
    return thread(number)


def test_first_lines_are_known_after_an_undo(home: Home, sessions: Sessions, form: Form):
    first = in_place(sessions)
    say(home, sessions, "Now the docs.", form)
    take_back(sessions, first)
    second = in_place(sessions)
    say(home, sessions, "Now the tests.", form)
    take_back(sessions, second)

    third = in_place(sessions)
    new = compacting(sessions).compact(asked())

    said = ["Fix the login.", "And the logout.", "Now the docs.", "Now the tests."]
    places = [place_of(home, text) for text in said]
    assert kept(first) == places[:2]
    assert kept(second) == places[:3]
    assert kept(third) == kept(new) == places
    dropped = [piece.ref for piece in third.dropped]
    assert dropped[: len(first.dropped)] == [piece.ref for piece in first.dropped]


@pytest.mark.parametrize("undone", [False, True])
def test_fork_knows_the_first_lines_of_its_base(home: Home, undone: bool):
    home.put(work())
    with home.house() as house:
        done = in_place(house.sessions)
        if undone:
            take_back(house.sessions, done)
        based = fork(home, house.sessions, 5)

        found = compacting(house.sessions).preview(asked(based))

    assert kept(found)[:2] == kept(done)
    assert len(kept(found)) == 3


def test_first_lines_are_known_over_generations_of_forks(home: Home):
    home.put(work())
    with home.house() as house:
        done = in_place(house.sessions)
        take_back(house.sessions, done)
        again = compacting(house.sessions).compact(asked())
        last = compacting(house.sessions).compact(asked(str(again.session_id)))

    assert kept(again) == kept(done)
    assert kept(last) == kept(done)


def test_lines_after_a_compaction_are_numbered_as_in_the_whole_file(
    home: Home, sessions: Sessions, form: Form
):
    in_place(sessions)
    say(home, sessions, "Now the docs.", form)

    assert kept(in_place(sessions))[-1] == place_of(home, "Now the docs.")


@pytest.mark.parametrize("named", [True, False])
def test_message_kept_by_codexs_compaction_has_its_own_time_and_line(home: Home, named: bool):
    said = ["Go on.", "Fix the login.", "Go on.", "And the docs."]
    ids: list[dict[str, object]] = [{"id": f"msg_{number}"} if named else {} for number in range(4)]
    prompts = [
        {
            **ids[number],
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        for number, text in enumerate(said)
    ]
    summary = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "It was all done."}],
    }
    told = [turn(record("response_item", each), assistant(WORK)) for each in prompts]
    compaction = compacted("It was all done.", [*prompts[2:], summary])
    head = session(thread=thread(1))
    home.put(
        rollout(
            head, *told, compaction, turn(user("Now the tests."), assistant(WORK), tokens(9_000))
        )
    )
    lines = home.path().read_bytes().splitlines()
    places = [
        (each["timestamp"], f"seq:{each['ordinal']}")
        for each in map(json.loads, lines)
        if each["payload"].get("role") == "user" or each["type"] == "compacted"
    ]

    with home.house() as house:
        found = compacting(house.sessions).preview(asked())

    assert kept(found) == places[2:]


def test_dropped_handoff_is_reported_with_its_line(home: Home):
    home.put(work())
    with home.house() as house:
        first = in_place(house.sessions)
        line = home.path().read_bytes().count(b"\n") - 2

        second = compacting(house.sessions).compact(asked())
        (handoff,) = second.dropped

    assert first.dropped[0].ref != handoff.ref
    assert (handoff.kind, handoff.ref) == ("handoff", f"seq:{line}")
    assert handoff.at is not None
    newest = [each for each in records(home, thread(1)) if isinstance(each, Installed)][-1].counts
    assert (newest.dropped, newest.first_dropped, newest.last_dropped) == (
        1,
        handoff.ref,
        handoff.ref,
    )
