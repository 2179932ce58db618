"""The conversation of one turn: its records in order, whole turns and no others, redacted."""

import pytest

import rollouts as r
from codex_checkpoints.service.history.timelines import (
    MOST_ITEMS,
    MOST_TEXT,
    OUTPUT_ENDS,
    TurnTranscript,
    transcript,
)
from derived_state import reads
from homes import Home, refusal, thread

SECRET = "ghp_" + "a1B2" * 9
WORK = (
    r.turn(
        r.user("Fix the login"),
        r.assistant("I look."),
        r.shell(f"TOKEN={SECRET} pytest -q", "1 failed", exit_code=1, status="failed"),
        r.patch(update="auth.py"),
        r.assistant("Fixed."),
    ),
    r.turn(r.user("Thanks"), r.assistant("You are welcome.")),
)


def read(home: Home, turn: str, offset: int = 0) -> TurnTranscript:
    with home.house() as house:
        return transcript(house.sessions, thread(1), turn, offset)


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_turn_lists_each_record_once_in_order(home: Home, form: r.Form):
    home.put(r.rollout(r.session(form), *WORK))

    found = read(home, "1")

    assert (found.turn, found.turn_id, found.next_offset) == (1, "t1", None)
    assert [each.kind for each in found.items] == [
        *("user", "assistant", "call", "output", "patch", "assistant"),
    ]
    texts = [each.text for each in found.items]
    assert (texts[0], texts[-1]) == ("Fix the login", "Fixed.")
    assert [each.text for each in read(home, "t2").items] == ["Thanks", "You are welcome."]


def test_output_has_its_command_and_outcome_and_no_secret(home: Home):
    home.put(r.rollout(r.session("legacy"), *WORK))

    output = next(each for each in read(home, "1").items if each.kind == "output")

    assert (output.exit_code, output.text) == (1, "1 failed")
    assert output.about.endswith("pytest -q")
    assert SECRET not in repr(read(home, "1"))


@pytest.mark.parametrize(
    ("answer", "failed", "outputs"),
    [
        ("Success. Updated the following files:\nM auth.py\n", False, []),
        ("Success. Updated the following files:\nM auth.py\n2 passed", False, [("apply", False)]),
        ("error: Failed to find expected lines in auth.py", True, [("apply", False)]),
        ('{"output":"no such file","metadata":{"exit_code":1}}', True, [("apply", True)]),
    ],
    ids=["applied", "and more printed", "refused", "failed with a code"],
)
def test_patch_says_whether_it_was_applied_and_shows_further_output(
    home: Home, answer: str, failed: bool, outputs: list[tuple[str, bool]]
):
    patch = r.custom_call("apply_patch", r.patch_text(update="auth.py"), "c1")
    home.put(
        r.rollout(r.session(), r.turn(r.user("Go"), patch, r.output("c1", answer, custom=True)))
    )

    items = read(home, "1").items

    assert [each.failed for each in items if each.kind == "patch"] == [failed]
    found = [(each.about[:5], each.failed) for each in items if each.kind == "output"]
    assert found == outputs


def test_call_says_whether_its_output_follows_in_any_part_of_the_turn(home: Home):
    said = (r.assistant(f"Step {number}") for number in range(MOST_ITEMS))
    first, last = (r.call("shell", {"command": ["make"]}, name) for name in ("c1", "c2"))
    turn = r.turn(r.user("Go"), first, *said, r.output("c1", "ok"), last)
    home.put(r.rollout(r.session(), turn))

    calls = [
        each
        for offset in (0, MOST_ITEMS)
        for each in read(home, "1", offset).items
        if each.kind == "call"
    ]

    assert [each.answered for each in calls] == [True, False]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_plan_is_shown_by_its_steps_and_their_state(home: Home, form: r.Form):
    steps = [("Find it", "completed"), ("Mend it", "in_progress"), ("Test it", "pending")]
    told = [{"step": step, "status": status} for step, status in steps]
    call = r.call("update_plan", {"explanation": "So far:", "plan": told}, "c1")
    turn = r.turn(r.user("Go"), call, r.output("c1", "Plan updated"), r.plan(("Ship it", True)))
    home.put(r.rollout(r.session(form), turn))

    items = read(home, "1").items

    assert [(each.kind, each.text) for each in items[1:]] == [
        ("plan", "So far:\n[x] Find it\n[>] Mend it\n[ ] Test it"),
        ("plan", "[x] Ship it"),
    ]


def test_long_turn_is_returned_in_parts(home: Home):
    said = (r.assistant(f"Step {number}") for number in range(MOST_ITEMS + 5))
    home.put(r.rollout(r.session(), r.turn(r.user("Go"), *said)))

    first = read(home, "1")
    rest = read(home, "1", MOST_ITEMS)

    assert first.next_offset == MOST_ITEMS
    assert first.total == rest.total == MOST_ITEMS + 6
    assert (len(first.items), len(rest.items), rest.next_offset) == (MOST_ITEMS, 6, None)
    assert rest.items[-1].text == f"Step {MOST_ITEMS + 4}"


def test_long_output_keeps_both_ends_and_other_text_its_beginning(home: Home):
    lines = "".join(f"line {number}\n" for number in range(1, 2_001))
    work = r.turn(r.user(lines), r.shell("make", lines), r.shell("ls", "short"))
    home.put(r.rollout(r.session(), work))

    request, *_, long, _call, short = read(home, "1").items

    assert (request.text, request.tail) == (lines[:MOST_TEXT], "")
    assert (long.text, long.tail) == (lines[: OUTPUT_ENDS[0]], lines[-OUTPUT_ENDS[1] :])
    assert request.total == long.total == len(lines)
    assert (short.text, short.tail, short.total) == ("short", "", 5)


@pytest.mark.parametrize("form", ["paginated", "legacy", "bare"])
def test_word_of_megabytes_shows_that_it_was_cut(home: Home, form: r.Form):
    printed = f"before\n{'x' * 5_000_000}\nafter"
    home.put(r.rollout(r.session(form), r.turn(r.user("Go"), r.shell("cat", printed))))

    output = read(home, "1").items[-1]
    shown = output.text + output.tail

    assert shown.startswith("before\nxxxxxxxxxxxxxxx…")
    assert shown.endswith("after")


def test_missing_turn_is_refused(home: Home):
    home.put(r.rollout(r.session(), *WORK))

    assert refusal(lambda: read(home, "9")).code == "unknown_turn"
    assert refusal(lambda: read(home, "1", -1)).code == "invalid_payload"


def test_records_before_a_turn_change_nothing(home: Home):
    before = (r.turn(r.user(f"{n}"), r.shell("make", "ok")) for n in range(5))
    home.put(r.rollout(r.session(), *before, *WORK))

    assert [each.text for each in read(home, "7").items] == ["Thanks", "You are welcome."]
    assert read(home, "6").items[0].text == "Fix the login"


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_turn_near_the_end_equals_a_full_reading(
    home: Home, monkeypatch: pytest.MonkeyPatch, form: r.Form
):
    data = r.rollout(r.session(form), *WORK, r.turn(r.user("Once more"), name="t3"), *WORK[:1])
    unfinished = home.put(data.rstrip(b"\n"))
    with home.house() as house:
        known = house.sessions.open(thread(1))[1].now().state.turns.counting()
        turns = [turn.turn_id for turn in known]
        told = [transcript(house.sessions, thread(1), turn, 0) for turn in turns]
        counted, sizes = reads(monkeypatch), set[int]()
        for near in range(100, len(data), 900):
            monkeypatch.setattr("codex_checkpoints.service.history.timelines.NEAR", near)
            assert [transcript(house.sessions, thread(1), turn, 0) for turn in turns] == told
            counted.clear()
            transcript(house.sessions, thread(1), turns[-1], 0)
            sizes.add(sum(counted))

    assert len(turns) > 2
    assert (min(sizes) < unfinished.stat().st_size / 2) is (form == "paginated")
