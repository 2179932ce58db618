"""Recent artifacts as people read them, and the turn that a plan is from."""

import pytest

import rollouts as r
from codex_checkpoints.operations.checkpoint import CheckpointText, ShowParams, show
from codex_checkpoints.operations.services import Services
from codex_checkpoints.places import Places
from homes import Home, thread
from updates import steps

PLAN = r.plan(("read", True), ("fix", False))


def shown(home: Home, *steps: r.Step, form: r.Form = "paginated", turn: str | None = None):
    folder = home.user / "shop"
    folder.mkdir(exist_ok=True)
    home.put(r.rollout(r.session(form, thread=thread(1), cwd=str(folder)), *steps))
    return asked(home, turn)


def asked(home: Home, turn: str | None = None) -> CheckpointText:
    with home.house() as house:
        services = Services(Places(str(home.root), str(home.state)), house)
        return show(services, ShowParams(thread(1), turn))


def rows(found: CheckpointText) -> list[tuple[str, str | None, str]]:
    return [(each.uri, each.state, each.words) for each in found.recent]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_files_come_first_then_commands_with_their_failure_then_tool_outputs(
    home: Home, form: r.Form
):
    found = shown(
        home,
        r.turn(
            r.user("Go"),
            r.shell("cat a.py", "x\n", reads=["a.py"]),
            r.shell("cat /srv/run.log", "log\n", reads=["/srv/run.log"]),
            r.shell("make test", "1 failed", exit_code=2, status="failed"),
            r.shell("make lint"),
            r.mcp("web", "run", "found", call="c9"),
        ),
        form=form,
    )

    assert rows(found) == [
        ("a.py", "gone", "no longer there"),
        ("/srv/run.log", None, ""),
        ("make lint", None, ""),
        ("make test", "failed", "exit 2"),
        ("web.run/c9", None, ""),
    ]


def test_command_that_passes_later_shows_no_earlier_failure(home: Home):
    test = r.shell("make test", "1 failed", exit_code=2, status="failed")
    found = shown(
        home, r.turn(r.user("Go"), test), r.turn(r.user("On"), r.shell("make test", "ok"))
    )

    assert rows(found) == [("make test", None, "")]
    assert rows(asked(home, "1")) == [("make test", None, "")]


def test_file_shows_when_it_was_seen_and_whether_it_changed_since(home: Home):
    read = r.shell("cat b.py", "b\n", reads=["b.py"])
    add = r.patch(add="a.py", content="1\n")
    turns = r.turn(r.user("Go"), read), r.turn(r.user("On"), add), r.turn(r.user("Wait"))
    shown(home, *turns)
    shop = home.user / "shop"
    (shop / "a.py").write_text("1\n")
    (shop / "b.py").write_text("c\n")

    found = asked(home)
    assert rows(found) == [
        ("a.py", None, "as the session left it"),
        ("b.py", "changed", "changed since turn 1"),
    ]
    assert [each.seen for each in found.recent] == ["turn 2", "turn 1"]
    assert rows(asked(home, "1")) == [("b.py", "changed", "changed since turn 1")]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_plan_shows_its_turn_once_a_later_turn_began(home: Home, form: r.Form):
    found = shown(
        home, r.turn(r.user("Go"), PLAN), r.turn(r.user("On")), r.turn(r.user("Also")), form=form
    )

    assert found.plan_origin == "from turn 1"
    assert asked(home, "1").plan_origin == ""
    assert asked(home, "2").plan_origin == "from turn 1"


def test_accepted_plan_shows_the_turn_of_its_acceptance(home: Home):
    turns = [r.turn(r.user(text), *more) for text, *more in (("Go", PLAN), ("On",), ("Also",))]
    shown(home, *turns)
    with home.house() as house:
        second = [*house.sessions.open(thread(1))[1].now().state.turns.counting()][1]
    home.remember([steps("a", seq=second.opened_seq, turn=second.turn_id)])

    assert asked(home).plan_origin == "from turn 2"


def test_session_without_a_plan_shows_no_turn(home: Home):
    assert shown(home, r.turn(r.user("Go")), r.turn(r.user("On"))).plan_origin == ""
