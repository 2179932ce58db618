"""Restores of unusual sources: compressed, archived, subagents, chains; and by reference."""

import json
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookkeeping import faults
from codex_checkpoints.core.restore.events import RestoreMode
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.restore.branch_copy import WindowNames
from codex_checkpoints.service.restore.plan import Planner, RestoreParams, find_source
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.sessions import Sessions
from derived_state import compressed
from homes import Home, just_written, refusal, thread
from restores import MODES, marked, put, restore, restored, state, three_turns
from rollouts import (
    WINDOW,
    Form,
    Step,
    Writer,
    assistant,
    based_on,
    compacted,
    environment,
    event,
    injected,
    patch,
    plan,
    record,
    rollout,
    session,
    shell,
    started,
    tokens,
    turn,
    turn_context,
    user,
)

Json = dict[str, Any]


KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}


def oldest_mark(writer: Writer) -> None:
    """Write what the oldest versions wrote between items."""
    if writer.form == "bare":
        writer.write(b'{"record_type":"state"}\n')


@contextmanager
def sessions_of(home: Home) -> Generator[Sessions]:
    with home.house() as house:
        yield house.sessions


def lines(sessions: Sessions, session_id: str) -> list[Json]:
    path = sessions.find(session_id).path
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def packed(path: Path) -> Path:
    """Pack a session file as Codex does in time."""
    into = path.with_name(path.name + ".zst")
    into.write_bytes(compressed(path.read_bytes()))
    path.unlink()
    return into


def told(home: Home, kind: str, key: str) -> list[Any]:
    return [event[key] for event in home.audited() if event["type"] == kind]


# --- sources -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["packed", "archived"])
def test_archived_source_is_restored_and_stays_archived(home: Home, mode: RestoreMode, where: str):
    path = put(home, archived=where == "archived")
    if where == "packed":
        path = packed(path)
    before = path.read_bytes()

    with sessions_of(home) as sessions:
        done = restored(sessions, mode)

        assert state(sessions, done.record.session_id) == state(sessions, thread(1), "2")
        assert faults(sessions) == []
    assert path.read_bytes() == before
    assert len(list(home.root.rglob("rollout-*"))) == 2


@pytest.mark.parametrize("mode", MODES)
def test_subagent_is_restored_as_a_listed_session(home: Home, mode: RestoreMode):
    agent = {"subagent": {"thread_spawn": {"parent_thread_id": thread(9), "depth": 1}}}
    more: Json = {"source": agent, "parent_thread_id": thread(9), "thread_source": "subagent"}
    home.put(rollout(session(cwd=str(home.user), **more), *three_turns()))

    with sessions_of(home) as sessions:
        done = restored(sessions, mode)

        name = done.record.session_id
        assert state(sessions, name) == state(sessions, thread(1), "2")
        own = lines(sessions, name)[0]["payload"]
        assert own["source"] == "cli"
        assert "parent_thread_id" not in own
        assert sessions.find(name).parent_session is None


def test_history_inherited_by_a_subagent_stays_inherited_in_its_branch(home: Home):
    inherited = turn(user("the parent's words"), patch(add="parent.py"), name="p1")
    start = len(rollout(session(), inherited).splitlines())
    head = session(cwd=str(home.user), subagent_history_start_ordinal=start)
    home.put(rollout(head, inherited, *three_turns()))

    with home.house() as house:
        done = restored(house.sessions, "soft", turn=None)

        found = state(house.sessions, done.record.session_id)
        assert found == state(house.sessions, thread(1))
        assert "parent.py" not in found["artifacts"]


STATED: dict[str, tuple[Step, ...]] = {
    "nothing": (),
    "the folder": (environment(),),
    "all that holds": (
        injected("<permissions instructions>\nread\n</permissions instructions>", role="developer"),
        injected("# AGENTS.md instructions for /home/ana\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>"),
        injected("Be brief.", role="developer"),
        environment(),
    ),
    "between marks of the oldest": (oldest_mark, environment(), oldest_mark),
}
TASK = (
    started("t9"),
    injected("<permissions instructions>\nread\n</permissions instructions>", role="developer"),
    environment(),
    record("world_state", {"full": True, "state": {}}),
    turn_context(),
)
COMPACTED = (started("t9"), compacted("m", [KEPT]), environment(), turn_context())


@pytest.mark.parametrize(
    ("form", "events", "stated"),
    [
        pytest.param(form, events, stated, id=f"{form} {events} {name}")
        for form, events in (("legacy", True), ("legacy", False), ("bare", True))
        for name, stated in STATED.items()
    ]
    + [
        pytest.param("legacy", True, TASK, id="a task of a newer version"),
        pytest.param("legacy", True, COMPACTED, id="a task that begins with a compaction"),
    ],
)
def test_soft_branch_of_an_old_file_holds_nothing_of_the_next_turn(
    home: Home, form: Form, events: bool, stated: tuple[Step, ...]
):
    worked = (environment(), user("Fix the login"), turn_context(), shell("make"), assistant("Ok."))
    later = (user("And the logout"), turn_context(), assistant("Done."))
    for number, told in ((1, worked), (2, (*worked, *stated, *later))):
        head = session(form, thread=thread(number), cwd=str(home.user), events=events)
        home.put(rollout(head, *told), number)

    with sessions_of(home) as sessions:
        name = restored(sessions, "soft", thread(2), "1").record.session_id

        histories = Histories(sessions)
        assert histories.history(name).items == histories.history(thread(1)).items
        assert state(sessions, name) == state(sessions, thread(2), "1")
        assert [turn.number for turn in detail_of(sessions, name).turns] == [1]


def test_hard_branch_of_an_old_turn_omits_the_later_task(home: Home):
    worked = (user("Fix the login"), turn_context(), tokens(900), assistant("Ok."))
    planning = {"collaboration_mode_kind": "plan", "model_context_window": 1000}
    later = (event("task_started", turn_id="t9", **planning), turn_context(), user("And so on"))
    head = session("legacy", thread=thread(1), cwd=str(home.user))
    home.put(rollout(head, *worked, *later))

    with sessions_of(home) as sessions:
        made = restored(sessions, "hard", turn="1").record

        assert made.tokens.window == WINDOW
        assert "plan" not in str(lines(sessions, made.session_id)[2])


def test_message_without_an_answer_stays_the_end_of_its_turn(home: Home):
    head = session("legacy", thread=thread(1), cwd=str(home.user), events=False)
    home.put(rollout(head, user("Fix the login"), environment(), user("Or rather the logout")))

    with sessions_of(home) as sessions:
        name = restored(sessions, "soft", turn="1").record.session_id

        said = [item["content"] for item in Histories(sessions).history(name).items]
        assert said == [[{"type": "input_text", "text": "Fix the login"}]]


@pytest.mark.parametrize("mode", MODES)
def test_unfinished_turn_is_refused_in_both_modes(home: Home, mode: RestoreMode):
    put(home)
    with sessions_of(home) as sessions:
        name = marked(sessions, turn="3")
    head = session(thread=thread(1), cwd=str(home.user))
    data = rollout(head, *three_turns()[:2], started("t3"), user("later-words"))
    home.put(just_written(data))
    with sessions_of(home) as sessions:
        met = refusal(lambda: restore(sessions, name, mode))

    assert met.code == "turn_not_complete"
    assert len(list(home.root.rglob("rollout-*"))) == 1


@pytest.mark.parametrize("mode", MODES)
def test_interrupted_turn_is_restored_up_to_its_last_record(home: Home, mode: RestoreMode):
    head = session(thread=thread(1), cwd=str(home.user))
    home.put(rollout(head, *three_turns()[:2], started("t3"), user("later-words")))
    with sessions_of(home) as sessions:
        name = marked(sessions, turn="3")
        done = restore(sessions, name, mode)
        then = state(sessions, thread(1), "3")
        assert state(sessions, done.record.session_id) == then

    if done.pack is not None:
        assert "The marked turn had not ended: go on with the task" in done.pack


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("last", [b"", b"{}"])
def test_later_message_is_left_out_where_no_line_ends_a_turn(home: Home, based: bool, last: bytes):
    put(home)
    data, base = home.path().read_bytes(), {}
    if based:
        base = {"history_base": based_on(thread(1), len(data.splitlines()), len(data))}
    head = session("legacy", events=False, thread=thread(2), cwd=str(home.user), **base)
    path = home.put(rollout(head, user("Fix the cart"), assistant("Fixed.")) + last, 2)
    with sessions_of(home) as sessions:
        name = marked(sessions, thread(2), None)
        before = sessions.show(thread(2)).checkpoint

        source = find_source(sessions, thread(2), name)
        said = rollout(session("legacy", events=False), user("Now the till"))
        with path.open("ab") as file:
            file.write((b"\n" if last else b"") + said.split(b"\n", 1)[1])
        plan = Planner(sessions, source, RestoreParams("", "", "hard", window=3)).plan()

        assert before != sessions.show(thread(2)).checkpoint
        assert plan.contents.checkpoint == before
        assert plan.until == source.until
        assert "Now the till" not in [each.text for each in plan.contents.window]


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_branch_without_its_state_folder_reads_task_and_plan_from_its_file(home: Home, form: Form):
    work = turn(user("Fix the login"), plan(("read", True), ("fix (now)", False)))
    home.put(rollout(session(form, thread=thread(1)), work, turn(user("Wait"), assistant("Yes."))))
    marker = home.json("mark", thread(1), "--turn", "1", "--label", "good")["checkpointId"]
    made = home.json("restore", thread(1), marker, "--mode", "hard")["sessionId"]
    before = home.json("show", made)

    shutil.rmtree(home.state)

    (row,) = (each for each in home.json("sessions", "--read") if each["sessionId"] == made)
    assert (row["madeBy"], row["task"]) == ("restore", "Fix the login")
    shown = home.json("show", made)
    assert shown["task"]["text"] == before["task"]["text"]
    assert shown["plan"]["steps"] == [{"id": "s2", "text": "fix (now)"}]
    assert shown["plan"]["done"] == {"s2": False}


def test_compacted_session_without_its_state_folder_reads_its_task_and_plan(
    home: Home,
):
    work = turn(user("Fix the login"), plan(("read", True), ("fix (now)", False)))
    home.put(rollout(session(thread=thread(1)), work, turn(user("And commit every step"))))
    made = home.json("compact", thread(1), "--force")["sessionId"]
    before = home.json("show", made)

    shutil.rmtree(home.state)

    shown = home.json("show", made)
    assert shown["task"]["text"] == before["task"]["text"] == "And commit every step"
    read, fix = before["plan"]["steps"]
    assert shown["plan"]["steps"] == [fix, read]  # in the order of the view
    assert shown["plan"]["done"] == {"s1": True, "s2": False}


def test_bare_turn_id_names_no_session(home: Home):
    put(home)
    home.put(rollout(session(thread=thread(2), cwd=str(home.user)), *three_turns()), 2)
    for command in (
        ("show", "t2"),
        ("mark", "t2", "--label", "x"),
        ("marks", "t2"),
        ("restore", "t2", "t2", "--mode", "hard"),
        ("diff", "t1", "--from", "t1", "--to", "t2"),
    ):
        done = home.run(*command, "--json")
        assert json.loads(done.stdout)["error"]["code"] == "unknown_session"
    assert not (home.state / "sessions" / thread(1) / "markers.jsonl").exists()


def test_restore_works_without_an_index_and_says_so(home: Home):
    put(home)
    (home.state / "index.sqlite").mkdir(parents=True)

    with sessions_of(home) as sessions:
        done = restored(sessions, "hard")

    assert [each.fallback for each in done.record.fallbacks] == ["file_only_store"]
    assert told(home, "FallbackUsed", "uri") == [None]


# --- windows -------------------------------------------------------------------------------------

IDS = [f"01a1f865-1111-7000-8000-00000000000{n}" for n in range(4)]


def opened(number: int, order: Callable[[Json], Json] = dict) -> Any:  # noqa: ANN401 - a step
    written: Json = {
        "message": f'"window_id":"{IDS[0]}"',
        "replacement_history": [],
        "window_number": number,
        "first_window_id": IDS[0],
        "previous_window_id": IDS[number - 1],
        "window_id": IDS[number],
        "more": {"kept": True},
    }
    return record("compacted", order(written))


def backwards(written: Json) -> Json:
    return dict(reversed(written.items()))


@pytest.mark.parametrize("order", [dict, backwards])
def test_windows_of_a_branch_share_no_id_with_its_source(home: Home, order: Callable[[Json], Json]):
    head = session(thread=thread(1), cwd=str(home.user), context_window={"window_id": IDS[0]})
    one, two, three = three_turns()
    home.put(rollout(head, one, opened(1, order), two, opened(2, order), three))
    before = home.path().read_bytes()

    with sessions_of(home) as sessions:
        done = restored(sessions, "soft", turn="3")
        found = lines(sessions, done.record.session_id)

    chain = [line["payload"] for line in found if line["type"] == "compacted"]
    first = found[0]["payload"]["context_window"]["window_id"]
    assert [each["first_window_id"] for each in chain] == [first, first]
    assert [each["previous_window_id"] for each in chain] == [first, chain[0]["window_id"]]
    new = {first, *(each["window_id"] for each in chain)}
    assert len(new) == 3
    assert new.isdisjoint(IDS)
    windows = done.record.windows
    assert (windows.first, windows.current, windows.source) == (
        first,
        chain[1]["window_id"],
        IDS[2],
    )
    # Everything else of these lines is as it was, also where a text looks like such a key.
    assert [each["message"] for each in chain] == [f'"window_id":"{IDS[0]}"'] * 2
    assert [each["more"] for each in chain] == [{"kept": True}] * 2
    assert home.path().read_bytes() == before


DEEP = '{"window_id":"A","more":' + "[" * 200_000 + "]" * 200_000 + "}"


def renamed(*found: str) -> list[str]:
    """Rename the windows of records, of which only the payload is told; ids count from N1."""
    new = (f"N{number}" for number in range(1, 9))
    names = WindowNames("FIRST", lambda: next(new))
    lines = (f'{{"type":"compacted","payload":{payload},"window_id":"W"}}' for payload in found)
    done = [names.renamed(line.encode()).decode() for line in lines]
    return [
        each.removeprefix('{"type":"compacted","payload":').removesuffix(',"window_id":"W"}')
        for each in done
    ]


@pytest.mark.parametrize(
    ("payload", "new"),
    [
        pytest.param(
            '{"window_id":"B","first_window_id":"A","previous_window_id":"A"}',
            '{"window_id":"N1","first_window_id":"FIRST","previous_window_id":"FIRST"}',
            id="each id has one new id",
        ),
        pytest.param(
            '{"replacement_history":[{"arguments":{"first_window_id":"X","window_id":"A"}}],'
            '"first_window_id":"A","more":{"previous_window_id":"A"},"window_id":"B"}',
            '{"replacement_history":[{"arguments":{"first_window_id":"X","window_id":"A"}}],'
            '"first_window_id":"FIRST","more":{"previous_window_id":"A"},"window_id":"N1"}',
            id="keys of what the record holds are not its own",
        ),
        pytest.param(
            r'{"message":"\"window_id\":\"A\" é \ud800","first_window_id":"A","x":1.5}',
            r'{"message":"\"window_id\":\"A\" é \ud800","first_window_id":"FIRST","x":1.5}',
            id="texts and numbers stay",
        ),
        pytest.param(
            '{"window_id":3,"previous_window_id":null,"first_window_id":["A"]}',
            '{"window_id":3,"previous_window_id":null,"first_window_id":["A"]}',
            id="what is no text stays",
        ),
        pytest.param('{"message":"é"}', '{"message":"é"}', id="no ids"),
        pytest.param("[]", "[]", id="no payload"),
        pytest.param(DEEP, DEEP, id="nested too deeply for Python"),
    ],
)
def test_record_has_new_ids_only_where_it_names_its_windows(payload: str, new: str):
    assert renamed(payload) == [new]


def test_id_is_renamed_alike_in_all_records():
    assert renamed(
        '{"window_id":"B"}',
        '{"window_id":"C","previous_window_id":"B","first_window_id":"A"}',
        '{"window_id":"D","previous_window_id":"C","first_window_id":"A"}',
    ) == [
        '{"window_id":"N1"}',
        '{"window_id":"N2","previous_window_id":"N1","first_window_id":"FIRST"}',
        '{"window_id":"N3","previous_window_id":"N2","first_window_id":"FIRST"}',
    ]
    assert renamed('{"window_id":"A"}', '{"window_id":"B","first_window_id":"A"}') == [
        '{"window_id":"N1"}',
        '{"window_id":"N2","first_window_id":"N1"}',
    ]


def test_history_with_windows_of_another_program_is_copied_unchanged(home: Home):
    """Their ids stand in arguments and schemas, as objects; the window's own come behind them."""
    ids = {"window_id": "w-main", "first_window_id": IDS[3]}
    known = {"call_id": "s1", "execution": "client"}
    call = {"type": "tool_search_call", **known, "arguments": {"query": "x", **ids, "limit": 3}}
    tool = {"type": "function", "name": "focus", "parameters": {"default": ids}}
    found = {"type": "tool_search_output", **known, "tools": [tool], "status": "completed"}
    installed = opened(1, lambda written: written | {"replacement_history": [call, found]})
    head = session(thread=thread(1), cwd=str(home.user), context_window={"window_id": IDS[0]})
    one, two, _ = three_turns()
    home.put(rollout(head, one, installed, two))

    with sessions_of(home) as sessions:
        done = restored(sessions, "soft", turn="2").record

    source = home.json("history", thread(1))
    branch = home.json("history", done.session_id)
    assert branch["items"] == source["items"]
    assert [each["type"] for each in branch["items"][:2]] == [call["type"], found["type"]]
    assert branch["items"][0]["arguments"] == call["arguments"]
    windows = branch["windows"]
    assert windows["first"] == windows["previous"] == done.windows.first
    assert windows["current"] == done.windows.current
    assert {windows["first"], windows["current"]}.isdisjoint(IDS)
