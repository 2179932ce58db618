"""Lookups in a session and its sources."""

import json
from pathlib import Path

import pytest

import rollouts as r
from codex_checkpoints.service.history.digests import Digests, Recalled, default_budget
from codex_checkpoints.service.history.timelines import transcript
from codex_checkpoints.service.refusal import Refusal
from homes import Home, thread


def home_of(root: Path, *steps: r.Step, form: r.Form = "paginated") -> Home:
    home = Home(root)
    home.put(r.rollout(r.session(form, thread=thread(1), cwd=str(home.user)), *steps))
    return home


def recalled(home: Home, ref: str) -> Recalled:
    with home.house() as house:
        return Digests(house.sessions).recall(thread(1), ref)


def hits(home: Home, query: str) -> list[str]:
    with home.house() as house:
        return [each.line for each in Digests(house.sessions).search(thread(1), query, 50)]


def test_early_turn_of_a_long_session_can_be_recalled(tmp_path: Path) -> None:
    first = r.turn(r.user("where is the well?"), r.assistant("Behind the barn."))
    more = [r.turn(r.user("on"), r.assistant("so")) for _ in range(600)]
    home = home_of(tmp_path, first, *more)
    assert recalled(home, "t1").text == "where is the well?\nBehind the barn."
    assert recalled(home, "t601").turn == 601
    with pytest.raises(Refusal, match="no record 't602'"):
        recalled(home, "t602")


def test_part_around_a_line_of_a_long_record_is_returned(tmp_path: Path) -> None:
    lines = [f"stone {each}" for each in range(20_000)]
    lines[15_000] = f"{'a' * 3000} the well {'b' * 3000}"
    home = home_of(tmp_path, r.turn(r.user("dig"), r.shell("dig", "\n".join(lines))))
    with home.house() as house:
        digests = Digests(house.sessions)
        (line,) = [each.line for each in digests.search(thread(1), "the well", 50)]
        whole = digests.recall(thread(1), "t1")
        (output,) = (each.ref for each in digests.search(thread(1), "stone 19999", 1))
        near = digests.recall(thread(1), output, near=line)
        early = digests.recall(thread(1), output, near="stone 3")
        missing = digests.recall(thread(1), output, 500, near="a river")

    assert whole.total > near.offset > 8_000
    assert line in near.text
    assert (early.offset, missing.offset) == (0, 500)


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_message_is_found_once_in_every_file_format(tmp_path: Path, form: r.Form) -> None:
    turns = [r.turn(r.user(f"dig well {each}"), r.assistant("Dug.")) for each in range(2)]
    home = home_of(tmp_path, *turns, form=form)
    assert hits(home, "dig well") == ["dig well 1", "dig well 0"]
    assert recalled(home, "t1").text == "dig well 0\nDug."


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (r.call("read_file", {"path": "conf/.env"}, "c1"), "HIDDEN_77"),
        (r.call("exec_command", {"cmd": f"echo {'x' * 500}; cat .env"}, "c1"), "HIDDEN_77"),
        (r.call("exec_command", {"cmd": "rg KEY"}, "c1"), "a.py:1:SHOWN\n.env:3:HIDDEN_77"),
        (
            r.response("local_shell_call", call_id="c1", action={"command": ["cat", ".env"]}),
            "HIDDEN_77",
        ),
    ],
)
def test_ignored_files_cannot_be_recalled(tmp_path: Path, call: r.Step, output: str) -> None:
    home = home_of(tmp_path, r.turn(r.user("look"), call, r.output("c1", output)))
    assert hits(home, "HIDDEN_77") == []
    assert "HIDDEN_77" not in recalled(home, "t1").text
    if "SHOWN" in output:
        assert "SHOWN" in recalled(home, "c1").text


def test_answer_to_a_secret_question_cannot_be_recalled(tmp_path: Path) -> None:
    asked = {
        "questions": [
            {"id": "a", "question": "The word?", "isSecret": True},
            {"id": "b", "question": "Which well?"},
        ]
    }
    told = {"answers": {"a": {"answers": ["sesame_77"]}, "b": {"answers": ["the deep_77"]}}}
    dialog = r.call("request_user_input", asked, "c1"), r.output("c1", json.dumps(told))
    home = home_of(tmp_path, r.turn(r.user("dig"), *dialog))
    assert hits(home, "sesame_77") == []
    with home.house() as house:
        said = [each.text for each in transcript(house.sessions, thread(1), "t1", 0).items]
    for text in (recalled(home, "t1").text, "\n".join(said)):
        assert "sesame_77" not in text
        assert "the deep_77" in text


def test_command_about_secret_questions_keeps_its_output(tmp_path: Path) -> None:
    script = """printf '{"questions": [{"id": "a", "isSecret": true}]}'"""
    home = home_of(tmp_path, r.turn(r.user("dig"), r.shell(script, "bedrock_77")))
    assert hits(home, "bedrock_77") == ["bedrock_77"]


def test_summary_of_an_undone_compaction_is_not_found(tmp_path: Path) -> None:
    undo = r.record("compacted", {"type": "undo", "message": "A well.", "replacement_history": []})
    dig = r.turn(r.user("dig"), r.assistant("A well."))
    home = home_of(tmp_path, dig, r.compacted("One well."), r.compacted("Two well."), undo)
    assert hits(home, "well") == ["One well.", "A well."]
    assert [each["line"] for each in home.json("search", "well")] == ["One well.", "A well."]


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_each_anchor_of_a_digest_can_be_recalled(tmp_path: Path, form: r.Form) -> None:
    steps = (r.shell("make hay", "no grass", exit_code=1), r.patch(update="a.py"))
    turn = r.turn(r.user("mend it"), *steps, r.assistant("Mended."))
    home = home_of(tmp_path, turn, r.compacted("It was mended."), turn, form=form)
    with home.house() as house:
        digests = Digests(house.sessions)
        lines = digests.digest(thread(1), None, 4000).lines
        anchors = [each.ref for each in lines if each.ref]
        assert len(anchors) > 5
        for anchor in anchors:
            assert digests.recall(thread(1), anchor, rolled_back=False).text


def test_message_before_the_turn_that_it_opens_belongs_to_it(tmp_path: Path) -> None:
    content = [{"type": "input_text", "text": "and the barn?"}]
    steps = (
        r.turn(r.user("where is the well?"), r.assistant("Here.")),
        r.response("message", role="user", content=content),
        r.started("t2"),
        r.event("user_message", message="and the barn?"),
        r.assistant("There."),
    )
    home = home_of(tmp_path, *steps, form="legacy")
    with home.house() as house:
        (hit, *_) = Digests(house.sessions).search(thread(1), "the barn", 9)
    copy = f"#{int(hit.ref[1:]) - 2}"
    found = recalled(home, copy)
    assert (found.text, found.turn) == ("and the barn?", hit.turn)
    assert hit.turn == 2


def test_part_of_a_long_turn_shows_its_number(tmp_path: Path) -> None:
    home = home_of(tmp_path, r.turn(r.user("dig"), r.assistant("x" * 20_000)))
    with home.house() as house:
        first, next_one = (Digests(house.sessions).recall(thread(1), "t1", at) for at in (0, 8000))
    assert first.heading == "the whole turn, 8000 of 20004 characters; offset 8000 goes on"
    assert next_one.heading == (
        "the whole turn, characters 8001 to 16000 of 20004; offset 16000 goes on"
    )


def test_local_call_can_be_recalled(tmp_path: Path) -> None:
    call = r.response("local_shell_call", call_id="c1", action={"command": ["make", "hay"]})
    home = home_of(tmp_path, r.turn(r.user("go"), call, r.output("c1", "made")))
    assert recalled(home, "c1").text == "make hay\nmade"


@pytest.mark.parametrize(
    ("setting", "window", "before", "budget"),
    [
        *((8000, None, None, 8000), (8000, 64_000, None, 4000), (8000, 64_000, 400, 300)),
        *((100, None, None, 100), (100, 64_000, 400, 100), (0, 64_000, 400, 0)),
    ],
)
def test_default_budget_is_never_above_the_setting(
    setting: int, window: int | None, before: int | None, budget: int
) -> None:
    assert default_budget(setting, window, before) == budget


def test_goals_plans_helper_results_and_errors_can_be_recalled_and_found(
    tmp_path: Path,
) -> None:
    done = r.letter("FINAL_ANSWER", "The quince is ripe.", author="/lead/x", recipient="/lead")
    failed = r.complete(error={"message": "429 Too Many Quinces"})
    home = home_of(
        tmp_path,
        r.approved_plan("# Quince\n- plant it\n"),
        r.turn(r.user("Begin with the garden."), r.assistant("Begun."), done),
        r.goal("Harvest each quince of the garden"),
        r.goal("Harvest each quince of the garden", "paused"),
        r.several(r.started("t2", trigger="goal"), r.for_goal(), r.shell("ls", "a"), failed),
    )

    assert hits(home, "quince") == [
        "429 Too Many Quinces",
        "Harvest each quince of the garden",
        "The quince is ripe.",
        "# Quince",
    ]
    assert recalled(home, "#1").text == "# Quince\n- plant it\n"
    assert "429 Too Many Quinces" in recalled(home, "t2").text
    found = home.json("search", "Too Many Quinces")
    assert [(each["kind"], each["turn"]) for each in found] == [("error", 2)]
    assert [each["kind"] for each in home.json("search", "Harvest each")] == ["user"]
    text = home.here("timeline", thread(1)).stdout.decode()
    assert "failed (429 Too Many Quinces): Harvest each quince of the garden" in text
    (row,) = [each for each in home.json("timeline", thread(1))["turns"] if each["reason"]]
    assert (row["turn"], row["outcome"], row["reason"]) == (2, "failed", "429 Too Many Quinces")
