"""Compaction as an operation: its refusals, its files, and its undo."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs
import pytest

import rollouts as r
from codex_checkpoints.assembly import archive_forks
from codex_checkpoints.codex.app_server import run
from codex_checkpoints.core.agents.codex.history.item_kinds import kind_of
from codex_checkpoints.core.agents.codex.history.tokens import of_items
from codex_checkpoints.core.agents.codex.own_messages import DIGEST_LINE
from codex_checkpoints.core.checkpoint.records import Checkpoint, from_bytes
from codex_checkpoints.core.compaction.records import Installed, Into, Undone, digest_of, record_of
from codex_checkpoints.core.fields import texts_of
from codex_checkpoints.service.compaction.compact import Compacting
from codex_checkpoints.service.compaction.install import Undoing
from codex_checkpoints.service.compaction.request import CompactionRequest, HookRunner
from codex_checkpoints.service.history.compaction_losses import losses_of
from codex_checkpoints.service.history.digests import Digests
from codex_checkpoints.service.history.resumed_history import Histories
from codex_checkpoints.service.history.timelines import timeline
from codex_checkpoints.service.history.windows import windows_in
from codex_checkpoints.service.notes import Notes
from codex_checkpoints.service.sessions.deletion import delete
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.sessions import Sessions
from codex_checkpoints.storage import records as stamps
from homes import Home, go_on, just_written, more, refusal, snapshot, thread
from peer import Peer

WORK = "I looked at every file of it. " * 400
FORMS = ["paginated", "legacy"]
INTO: tuple[Into, ...] = ("new", "in-place")


def work(form: str = "paginated", number: int = 1, **head: Any) -> bytes:  # noqa: ANN401 - fields of a head
    """Write a session with something to forget and something to keep."""
    return r.rollout(
        r.session(form=form, thread=thread(number), **head),  # pyright: ignore[reportArgumentType]
        r.turn(
            r.user("Fix the login, größer 日本 🙂"),
            r.plan(("Read auth.py", True), ("Fix it", False)),
            r.shell("cat auth.py", reads=["auth.py"]),
            r.patch(update="auth.py"),
            r.assistant(WORK),
            r.tokens(9_000),
        ),
        r.turn(
            r.user("And the logout as well."),
            r.shell("make test"),
            r.assistant(WORK),
            r.tokens(19_000),
        ),
    )


@pytest.fixture
def home(home: Home) -> Home:
    home.put(work())
    return home


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def sessions(home: Home, form: str) -> Generator[Sessions]:
    home.put(work(form))
    with home.house() as house:
        yield house.sessions


def no_codex() -> None:
    return None


def no_summary(*_asked: object) -> NoReturn:
    raise AssertionError


OUTSIDE = HookRunner(stamps.moment, stamps.new_ids, run, no_codex, no_summary)


def compacting(sessions: Sessions) -> Compacting:
    return Compacting(sessions, OUTSIDE)


def asked(into: Into = "new", **more: Any) -> CompactionRequest:  # noqa: ANN401 - its fields
    return CompactionRequest(thread(1), into=into, **more)


def shown(sessions: Sessions, session_id: str) -> Checkpoint:
    return from_bytes(sessions.show(session_id).data)


def without_seq(checkpoint: Checkpoint) -> Checkpoint:
    return attrs.evolve(checkpoint, seq=0)


def records(home: Home, session_id: str) -> list[Any]:
    path = home.state / "sessions" / session_id / "compactions.jsonl"
    return [record_of(json.loads(line)) for line in path.read_bytes().splitlines()]


def written(home: Home) -> dict[str, str]:
    """Return what lies in a home, but for the index, which any look at a session may write to."""
    return {path: seen for path, seen in snapshot(home.root).items() if "index.sqlite" not in path}


def handed_over(items: Sequence[Any]) -> tuple[str, str]:
    """Return the view and the digest of the handoff that ends a replacement."""
    view, line, digest = "".join(texts_of(items[-1]["content"])).partition(DIGEST_LINE)
    return view, line + digest


def history_of(sessions: Sessions, session_id: str) -> list[Any]:
    return list(Histories(sessions).history(session_id).items)


# --- a new session -------------------------------------------------------------------------------


def test_new_session_is_resumed_and_the_source_stays_unchanged(
    home: Home, sessions: Sessions
) -> None:
    before = home.path().read_bytes()

    done = compacting(sessions).compact(asked())

    assert home.path().read_bytes() == before
    assert done.session_id != thread(1)
    assert history_of(sessions, str(done.session_id)) == list(done.replacement)
    assert [kind_of(item) for item in done.replacement] == ["user", "user", "handoff"]
    assert "".join(texts_of(done.replacement[0]["content"])) == "Fix the login, größer 日本 🙂"
    view, digest = handed_over(done.replacement)
    assert WORK[:40] not in json.dumps(done.replacement[:-1]) + view
    assert f" answered: {WORK[:40]}" in digest, "quoted, and cut"
    assert WORK not in digest
    assert done.tokens_after <= done.bound
    assert (done.tokens_before, done.tokens_before_source) == (19_000, "reported")


def note(kind: str, source: str, ref: str, **fields: object) -> bytes:
    """Write a payload as an agent hands it over."""
    return json.dumps({"kind": kind, "evidence": {"source": source, "ref": ref}, **fields}).encode()


COOKIE = {"decisionId": "d1", "decision": "Use a cookie", "rationale": "It was asked for"}


def test_new_session_begins_with_the_checkpoint_of_its_source(
    home: Home, sessions: Sessions
) -> None:
    notes = Notes(sessions)
    on = [{"uri": "auth.py"}]
    notes.apply(thread(1), note("fact", "file", "auth.py", key="port", value="8080", dependsOn=on))
    notes.apply(thread(1), note("decision", "user", "task", **COOKIE))
    source = shown(sessions, thread(1))

    made = str(compacting(sessions).compact(asked()).session_id)

    began = shown(sessions, made)
    assert without_seq(began) == without_seq(source)
    assert began.seq > source.seq
    stored = home.state / "sessions" / made / "checkpoint_v1.json"
    assert stored.read_bytes() == sessions.show(made).data
    assert [(each.kind, each.id, each.turn_id) for each in notes.notes(made)] == [
        ("fact", "port", None),
        ("decision", "d1", None),
    ]


def test_initial_notes_can_be_cited_superseded_and_revoked(
    sessions: Sessions,
) -> None:
    notes = Notes(sessions)
    task = json.loads(sessions.show(thread(1)).data)["task"]["evidence"]["ref"]
    decision = note("decision", "user", task, **COOKIE)
    notes.apply(thread(1), decision)
    made = str(compacting(sessions).compact(asked()).session_id)

    def decisions(session_id: str) -> list[str]:
        return [each.decision_id for each in shown(sessions, session_id).decisions]

    assert refusal(lambda: notes.apply(made, decision)).code == "conflict"
    later = COOKIE | {"decisionId": "d2", "supersedes": "d1"}
    notes.apply(made, note("decision", "user", task, **later))
    assert decisions(made) == ["d1", "d2"]
    notes.revoke(made, "d1")
    assert (decisions(made), decisions(thread(1))) == (["d2"], ["d1"])


def test_rebuilt_index_gives_the_same_made_session(home: Home, form: str) -> None:
    home.put(work(form))
    with home.house() as house:
        done = compacting(house.sessions).compact(asked())
        made = str(done.session_id)
        before = house.sessions.show(made).data
    (home.state / "index.sqlite").unlink()
    (home.state / "sessions" / made / "checkpoint_v1.json").unlink()

    with home.house() as house:
        assert house.sessions.show(made).data == before
        listed = {s.session_id: s for s in house.sessions.summaries.page().items}[made]
        assert (listed.task, listed.title, listed.forked_from) == (
            "And the logout as well.",
            "Fix the login, größer 日本 🙂",
            thread(1),
        )
        assert (listed.context_tokens_source, listed.windows) == ("estimated", 2)
        assert (listed.context_tokens or 0) >= done.tokens_after


def test_pointer_is_the_newest_record_and_names_the_new_session(
    home: Home, sessions: Sessions
) -> None:
    first, second = (compacting(sessions).compact(asked(force=True)) for _ in range(2))

    def continued() -> str | None:
        listed = sessions.summaries.page().items
        return {each.session_id: each.continued_by for each in listed}[thread(1)]

    assert continued() == second.session_id
    for done, before in ((second, first.session_id), (first, None)):
        Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))
        assert continued() == before
    kinds = [
        type(each) for each in records(home, thread(1)) if isinstance(each, Installed | Undone)
    ]
    assert kinds == [Installed, Installed, Undone, Undone]


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_second_compaction_of_an_unchanged_session_names_the_first(home: Home, into: str) -> None:
    first = home.json("compact", thread(1), "--into", into)
    if into == "new":
        more = r.turn(r.user("Continue there."), name="more")
        (made,) = home.root.glob(f"sessions/**/*{first['sessionId']}.jsonl")
        go_on(made, first["sessionId"], more)
    before = snapshot(home.root / "sessions")

    for option in ([], ["--dry-run"]):
        refused = home.refused("compact", thread(1), "--into", into, *option)
        assert (refused["code"], refused["facts"]["reason"]) == ("conflict", "nothing_new")
        assert refused["facts"]["into"] == first["sessionId"]
        assert refused["facts"]["compactionId"] == first["compactionId"]
        assert refused["facts"]["resume"] == first["resume"]
        named = ("--codex-home", str(home.root), *option)
        refused = home.refused("compact", thread(1), "--into", into, *named)
        assert refused["facts"]["resume"] == f"CODEX_HOME={home.root} {first['resume']}"

    assert snapshot(home.root / "sessions") == before
    home.json("compact", thread(1), "--into", into, "--force")
    go_on(home.path(), thread(1), r.turn(r.user("Something new."), name="new"))
    home.json("compact", thread(1), "--into", into)
    home.json("uncompact", home.json("compact", thread(1), "--force")["compactionId"])


def test_record_says_who_compacted_which_lines_and_what_remains(
    home: Home, sessions: Sessions
) -> None:
    before = home.path().read_bytes()

    done = compacting(sessions).compact(asked(why="it is full"))

    (record,) = [each for each in records(home, thread(1)) if isinstance(each, Installed)]
    assert (record.requested_by, record.why, record.placement) == ("user", "it is full", "manual")
    assert (record.strategy, record.determinism) == ("checkpoint", "deterministic")
    source = record.source
    assert (source.session_id, source.bytes_before, source.prefix) == (
        *(thread(1), len(before), f"sha256:{hashlib.sha256(before).hexdigest()}"),
    )
    assert source.from_seq <= source.to_seq
    assert record.replacement == digest_of(history_of(sessions, str(done.session_id)))
    assert [each.author for each in record.items] == ["user", "user", "codex-checkpoints"]
    assert all(each.at and each.ref for each in record.items[:2])
    assert records(home, str(done.session_id)) == [record]
    assert record.baseline is None


def test_compaction_events_hold_no_text(home: Home, sessions: Sessions) -> None:
    done = compacting(sessions).compact(asked())
    Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))

    told = home.audited()
    assert [(each["type"], each["operationId"]) for each in told] == [
        ("CompactionInstalled", done.compaction_id),
        ("CompactionUndone", done.compaction_id),
    ]
    assert told[0]["sessionId"] == done.session_id
    assert told[0]["sourceTurn"]["sessionId"] == thread(1)
    assert "login" not in json.dumps(told, ensure_ascii=False)


def test_preview_shows_the_result_and_writes_nothing(home: Home, form: str) -> None:
    home.put(work(form))
    home.run("watch", "--once")
    with home.house() as house:
        before = written(home)

        preview, told = (compacting(house.sessions).preview(asked(into)) for into in INTO)

        assert written(home) == before
        done = compacting(house.sessions).compact(asked())
        assert done.replacement == preview.replacement == told.replacement
        assert (preview.compaction_id, preview.session_id) == (None, None)
        assert told.session_id == thread(1)


def test_compaction_of_a_compaction_holds_one_handoff(
    home: Home, sessions: Sessions, form: str
) -> None:
    source, sizes = thread(1), []
    for round_ in range(3):
        done = compacting(sessions).compact(CompactionRequest(source))
        source = str(done.session_id)
        sizes.append(done.tokens_after)
        kinds = [kind_of(item) for item in done.replacement]
        assert kinds.count("handoff") == 1
        assert kinds[-1] == "handoff"
        steps = r.turn(r.user("Go on."), r.assistant(WORK), name=f"round {round_}")
        go_on(Path(sessions.find(source).path), source, steps, form=form)
        sessions.refresh()
    assert sizes[-1] - sizes[0] < 200
    (newest,) = [each for each in records(home, source) if each.session_id == source]
    times = [each.at for each in newest.items[:2]]
    assert times == [each.at for each in records(home, thread(1))[-1].items[:2]]


def test_live_session_continues_only_in_a_new_one(home: Home, sessions: Sessions) -> None:
    placed = compacting(sessions).compact(asked("in-place"))
    before = home.path().read_bytes()
    undo = str(placed.compaction_id)
    with home.loaded():
        for attempt in (
            lambda: compacting(sessions).compact(asked("in-place", force=True)),
            lambda: Undoing(sessions, OUTSIDE).uncompact(undo),
        ):
            assert refusal(attempt).code == "session_live"
        assert compacting(sessions).compact(asked(force=True)).session_id is not None
    assert home.path().read_bytes() == before


# --- in place ------------------------------------------------------------------------------------


def test_compaction_in_place_keeps_earlier_bytes_and_the_replacement_counts(
    home: Home, sessions: Sessions
) -> None:
    before, source = home.path().read_bytes(), shown(sessions, thread(1))

    done = compacting(sessions).compact(asked("in-place"))

    after = home.path().read_bytes()
    assert after.startswith(before)
    assert after[len(before) :].count(b"\n") == 2
    assert done.session_id == thread(1)
    assert history_of(sessions, thread(1)) == list(done.replacement)
    assert without_seq(shown(sessions, thread(1))) == without_seq(source)
    old, new = done.windows.before, done.windows.after
    assert (new.first, new.previous, new.number) == (old.first, old.current, (old.number or 0) + 1)
    (listed,) = sessions.summaries.page().items
    assert (listed.context_tokens, listed.context_tokens_source, listed.continued_by) == (
        done.tokens_after,
        "estimated",
        None,
    )


def test_window_before_any_report_shows_its_estimate(sessions: Sessions) -> None:
    done = compacting(sessions).compact(asked("in-place"))
    Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))

    windows = windows_in(sessions, thread(1))

    assert [(each.strategy, each.trigger) for each in windows] == [
        (None, None),
        ("checkpoint", "manual"),
        (None, "manual"),
    ]
    _, compacted, undone = windows
    assert undone.tokens_before == compacted.tokens_after
    assert undone.tokens_after == compacted.tokens_before


@pytest.mark.parametrize("reported", [None, 90, 9_150, 19_150, 250_000, 270_000])
@pytest.mark.parametrize("into", ["new", "in-place"])
def test_all_doors_show_the_same_token_figures_of_a_compaction(
    home: Home, into: Into, reported: int | None
) -> None:
    usage = [] if reported is None else [r.tokens(reported, window=258_400)]
    head = r.session(base_instructions={"text": "Be plain. " * 400})
    home.put(r.rollout(head, r.turn(r.user("Fix the login."), r.assistant(WORK * 9), *usage)))
    with home.house() as house:
        sessions = house.sessions

        def listed(session_id: str) -> int | None:
            sessions.refresh()
            rows = sessions.summaries.page().items
            return next(each.context_tokens for each in rows if each.session_id == session_id)

        before = listed(thread(1))
        preview = compacting(sessions).preview(asked(into))
        done = compacting(sessions).compact(asked(into))
        made = str(done.session_id)
        newest = windows_in(sessions, made)[-1]
        was, now, beside = done.tokens_before, done.tokens_after, done.tokens_beside
        assert done.tokens_scale == 1000
        assert (was, now) == (preview.tokens_before, preview.tokens_after)
        assert reported in {before, None, 270_000}
        assert before in {was, None, 270_000}
        assert (newest.tokens_before, newest.tokens_after) == (was, now)
        assert listed(made) == Histories(sessions).history(made).context.tokens == now
        assert now == of_items(done.replacement) + (beside or 0) <= done.bound
        assert (beside is None) == (reported in {None, 270_000})

        Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))
        assert listed(thread(1)) == (before if into == "new" else was)


def test_undone_compaction_is_not_shown_as_current(sessions: Sessions) -> None:
    digests = Digests(sessions)

    def told() -> Sequence[object]:
        text, hits = digests.digest(thread(1)).text, digests.search(thread(1), "a", 99)
        compactions = sessions.open(thread(1))[0].compactions
        return text, hits, timeline(sessions, thread(1)).events, compactions

    before = told()
    for _ in range(2):
        done = compacting(sessions).compact(asked("in-place"))
        assert told() != before
        Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))
        assert told() == before
    row, _ = sessions.open(thread(1))
    assert digests.lost(row, 4000).text == "", "the history holds everything again"
    assert row.windows == len(windows_in(sessions, thread(1))) == 5
    assert len(losses_of(sessions, thread(1))) == 2, "one a compaction in the file, none an undo"


@pytest.mark.parametrize("later", [[], ["user", "assistant"]], ids=["nothing", "a turn"])
def test_undo_restores_the_earlier_history_and_keeps_later_messages(
    home: Home, sessions: Sessions, form: str, later: list[str]
) -> None:
    old = history_of(sessions, thread(1))
    done = compacting(sessions).compact(asked("in-place"))
    if later:
        goes_on(home, form, r.turn(r.user("Now the docs."), r.assistant("Done."), name="after"))
        sessions.refresh()
    between = home.path().read_bytes()

    undone = Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))

    assert home.path().read_bytes().startswith(between)
    now = history_of(sessions, thread(1))
    assert (now[: len(old)], [kind_of(item) for item in now[len(old) :]]) == (old, later)
    assert undone.source.session_id == thread(1)
    assert isinstance(records(home, thread(1))[-1], Undone)


def test_only_the_newest_active_compaction_can_be_undone(sessions: Sessions) -> None:
    first, second = (
        str(compacting(sessions).compact(asked("in-place", force=True)).compaction_id)
        for _ in range(2)
    )
    undoing = Undoing(sessions, OUTSIDE)

    refused = refusal(lambda: undoing.uncompact(first))
    undoing.uncompact(second)
    again = refusal(lambda: undoing.uncompact(second))

    assert (refused.code, refused.facts["reason"]) == ("conflict", "later_compaction")
    assert (again.code, again.facts["reason"]) == ("conflict", "undone")
    assert refusal(lambda: undoing.uncompact("nobody")).code == "unknown_compaction"


@pytest.mark.parametrize("between", ["nothing", "a turn"])
def test_all_compactions_in_place_can_be_undone_one_by_one(
    home: Home, sessions: Sessions, form: str, between: str
) -> None:
    old = history_of(sessions, thread(1))
    dones: list[str] = []
    for number in range(3):
        if between == "a turn":
            said = r.turn(r.user(f"Part {number}."), r.assistant("Done."), name=f"p{number}")
            goes_on(home, form, said)
            sessions.refresh()
        done = compacting(sessions).compact(asked("in-place", force=True))
        dones.append(str(done.compaction_id))

    for compaction_id in reversed(dones):
        Undoing(sessions, OUTSIDE).uncompact(compaction_id)

    now = history_of(sessions, thread(1))
    assert now[: len(old)] == old
    assert len(now) == len(old) + (6 if between == "a turn" else 0)


def test_undo_leaves_windows_before_an_undone_compaction(
    home: Home, sessions: Sessions, form: str
) -> None:
    first = compacting(sessions).compact(asked("in-place"))
    Undoing(sessions, OUTSIDE).uncompact(str(first.compaction_id))
    goes_on(home, form, r.turn(r.user("Now the docs."), r.assistant("Done."), name="after"))
    sessions.refresh()
    second = compacting(sessions).compact(asked("in-place", force=True))
    goes_on(home, form, r.rollback(1))
    sessions.refresh()
    assert history_of(sessions, thread(1)) != list(second.replacement)
    before = home.path().read_bytes()

    refused = refusal(lambda: Undoing(sessions, OUTSIDE).uncompact(str(second.compaction_id)))

    assert (refused.code, refused.facts["reason"]) == ("conflict", "later_window")
    assert home.path().read_bytes() == before


def goes_on(home: Home, form: str, *steps: r.Step) -> None:
    go_on(home.path(), thread(1), *steps, form=form)


# --- in place behind a rollback ------------------------------------------------------------------


@pytest.mark.parametrize("events", [True, False], ids=["tasks", "no tasks"])
def test_replacement_after_a_rollback_counts_and_adds_no_turn(
    home: Home, form: str, events: bool
) -> None:
    # That nothing else changes, and that it can be taken back, is a law in `test_in_place_laws.py`.
    taken_back = r.record("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    steps = [r.turn(r.user(f"Part {each}."), r.assistant(WORK)) for each in range(3)]
    head = r.session(form=form, events=events)  # pyright: ignore[reportArgumentType]
    home.put(r.rollout(head, *steps, taken_back))
    with home.house() as house:
        done = compacting(house.sessions).compact(asked("in-place"))

        assert history_of(house.sessions, thread(1)) == list(done.replacement)
        first, opened = windows_in(house.sessions, thread(1))
    assert (opened.trigger, opened.strategy) == ("manual", "checkpoint")
    assert (opened.number, opened.previous_id, opened.window_id) == (
        *(1, first.window_id, done.windows.after.current),
    )
    lines = home.path().read_bytes().splitlines()[-4:]
    kinds = [json.loads(line)["payload"].get("type") for line in lines]
    assert kinds == ["task_started", None, "token_count", "task_complete"]


def test_later_rollback_ignores_the_task_of_a_compaction(home: Home) -> None:
    steps = [r.turn(r.user(f"Part {each}."), r.assistant(WORK)) for each in range(3)]
    home.put(r.rollout(r.session(form="legacy"), *steps, r.rollback(1)))
    with home.house() as house:
        sessions = house.sessions
        done = compacting(sessions).compact(asked("in-place"))
        goes_on(
            home,
            "legacy",
            r.turn(r.user("Drop it."), r.assistant("Done."), name="late"),
            r.rollback(1),
        )
        sessions.refresh()

        assert history_of(sessions, thread(1)) == list(done.replacement)
        told = [each.task for each in detail_of(sessions, thread(1)).turns]
        assert told == ["Part 0.", "Part 1."]


def test_nothing_is_written_where_appended_lines_would_not_count(home: Home) -> None:
    numbered: Any = {"message": "", "replacement_history": [], "window_number": (1 << 64) - 1}
    full = r.turn(r.user("Fix it."), r.assistant(WORK))
    home.put(r.rollout(r.session(), r.record("compacted", numbered), full))
    with home.house() as house:
        before = written(home)

        for attempt in (compacting(house.sessions).preview, compacting(house.sessions).compact):
            refused = refusal(lambda attempt=attempt: attempt(asked("in-place")))
            assert (refused.code, refused.facts["reason"]) == ("conflict", "without_effect")
            assert "into a new session" in str(refused.facts["hint"])

        assert written(home) == before
        assert compacting(house.sessions).compact(asked()).session_id != thread(1)


def test_summary_known_only_by_its_position_is_not_a_user_message(home: Home) -> None:
    old = "Added the error class; three tests pass."
    lines = (
        r.turn(r.user("Fix it."), r.assistant(WORK)),
        r.compacted(old),
        r.turn(r.user(old[:5]), r.assistant(WORK)),
    )
    home.put(r.rollout(r.session(form="legacy"), *lines))
    with home.house() as house:
        seen = compacting(house.sessions).preview(asked())

    summary = next(each for each in seen.dropped if each.kind == "summary")
    assert (summary.author, summary.fate) == ("codex", "replaced")
    kept = [texts_of(item["content"]) for item in seen.replacement[:-1]]
    assert kept == [("Fix it.",), (old[:5],)]


# --- refusals ------------------------------------------------------------------------------------


OPEN = r.rollout(r.session(), r.started("t"), r.user("Fix it."), r.assistant(WORK))
WAITING = r.rollout(r.session(), r.started("t"), r.user("Fix it."), r.call("shell", {}, "c1"))
SMALL = r.rollout(r.session(), r.turn(r.user("Hello."), r.assistant("Hello.")))
EMPTY = r.rollout(r.session())
BASELESS = r.rollout(
    r.session(history_base=r.based_on(thread(7), 5, 100)), r.turn(r.assistant(WORK))
)
BARE = r.rollout(
    r.session(form="bare"), r.environment(), r.turn(r.user("Fix it."), r.assistant(WORK))
)
SHORT_WINDOW = r.rollout(
    r.session(), r.turn(r.user("Fix it."), r.assistant(WORK), r.tokens(90, window=100))
)


@pytest.mark.parametrize(
    ("data", "request_", "code"),
    [
        (just_written(OPEN), asked(), "turn_not_complete"),
        (just_written(WAITING), asked(), "turn_not_complete"),
        (SMALL, asked(), "not_smaller"),
        (EMPTY, asked(), "missing_context"),
        (SHORT_WINDOW, asked(), "item_too_large"),
        (work(), asked(placement="mid_turn"), "unsupported_placement"),
        (work(), asked(placement="whenever"), "unsupported_placement"),
        (work(), asked(strategy="codex"), "codex_not_found"),
        (work(), asked(strategy="magic"), "invalid_payload"),
        (work(), CompactionRequest(thread(9)), "unknown_session"),
        (b"\x00" * 10, asked(), "missing_context"),
        (BASELESS, asked(), "unreadable_source"),
        (work(), CompactionRequest("/tmp/elsewhere.jsonl"), "unreadable_source"),
    ],
)
def test_refused_compaction_writes_nothing(
    home: Home, data: bytes, request_: CompactionRequest, code: str
) -> None:
    home.put(data)
    with home.house() as house:
        sessions = house.sessions
        before = written(home)

        for into in ("new", "in-place"):
            wish = attrs.evolve(request_, into=into)
            assert refusal(lambda wish=wish: compacting(sessions).compact(wish)).code == code
            assert refusal(lambda wish=wish: compacting(sessions).preview(wish)).code == code

        assert written(home) == before


@pytest.mark.parametrize("data", [just_written(OPEN), SMALL], ids=["open", "small"])
def test_only_the_command_line_names_the_force_flag(home: Home, data: bytes) -> None:
    home.put(data)

    said = home.run("compact", thread(1)).stderr.decode()
    refused = home.refused("compact", thread(1))

    code = refused["code"]
    assert said.rstrip().endswith(f"--force does it anyway. [{code}]")
    assert refused["facts"]["canForce"] is True
    assert "--" not in json.dumps(refused)


@pytest.mark.parametrize("into", ["new", "in-place"])
def test_interrupted_turn_is_compacted_with_a_remark(home: Home, into: str) -> None:
    home.put(OPEN)

    preview = home.json("compact", thread(1), "--into", into, "--dry-run")
    with home.loaded():
        refused = home.refused("compact", thread(1), "--into", "new")
    done = home.json("compact", thread(1), "--into", into)

    assert (preview["remark"], refused["code"]) == ("cut_off", "turn_not_complete")
    assert done["remark"] == "cut_off"
    assert done["remarkText"] == "The last turn was cut off: no process has the session open."


def test_refusal_of_an_open_turn_says_that_it_may_have_been_cut_off(home: Home):
    home.put(just_written(OPEN))

    idle = home.here("compact", thread(1), "--dry-run").stderr.decode()
    with home.loaded():
        at_work = home.here("compact", thread(1), "--dry-run").stderr.decode()

    said = "The last turn has not ended yet."
    cut_off = "If Codex no longer works on it, it was cut off. --force does it anyway."
    assert idle == f"{said} {cut_off} [turn_not_complete]\n"
    assert at_work == f"{said} Let Codex finish it, or stop it there. [turn_not_complete]\n"


def test_interrupted_turn_is_compacted_on_request_if_nobody_holds_it(
    home: Home,
) -> None:
    home.put(OPEN)
    with home.house() as house:
        old = history_of(house.sessions, thread(1))

        def compact() -> str:
            done = compacting(house.sessions).compact(asked("in-place", force=True))
            return str(done.compaction_id)

        def take_back(compaction_id: str) -> None:
            Undoing(house.sessions, OUTSIDE).uncompact(compaction_id)

        with home.loaded():
            new = asked(force=True)
            refused = refusal(lambda: compacting(house.sessions).compact(new))
            assert (refused.code, refused.facts["canForce"]) == ("turn_not_complete", False)
        take_back(compact())
        assert history_of(house.sessions, thread(1)) == old

        last = compact()
        go_on(home.path(), thread(1), r.started("later"), r.user("Go on."))
        house.sessions.refresh()
        assert refusal(lambda: take_back(last)).code == "turn_not_complete"


@pytest.mark.parametrize(
    "steps",
    [
        [r.started("t"), r.user("Fix it."), r.assistant(WORK), r.aborted("t")],
        [r.turn(r.user("Fix it."), r.assistant(WORK), r.tokens(270_000, window=258_400))],
    ],
    ids=["a turn that was interrupted has ended", "more than full"],
)
def test_unusual_sessions_can_be_compacted_in_place(home: Home, steps: list[r.Step]) -> None:
    home.put(r.rollout(r.session(), *steps))
    with home.house() as house:
        done = compacting(house.sessions).compact(asked("in-place"))
        (listed,) = house.sessions.summaries.page().items

    assert done.tokens_before_source == "estimated"
    assert listed.context_tokens == done.tokens_after


def test_session_in_the_oldest_format_continues_in_a_legacy_session(home: Home) -> None:
    home.put(BARE)
    with home.house() as house:
        sessions = house.sessions
        source = shown(sessions, thread(1))

        made = str(compacting(sessions).compact(asked()).session_id)

        assert without_seq(shown(sessions, made)) == without_seq(source)
        head = json.loads(Path(sessions.find(made).path).read_bytes().splitlines()[0])["payload"]
        assert (head["cwd"], head["history_mode"]) == ("/home/ana/shop", "legacy")


@pytest.mark.parametrize("data", [BARE, work().replace(b"login", b"log\xff", 1)])
def test_session_that_codex_would_refuse_is_refused_before_any_hook(
    home: Home, data: bytes
) -> None:
    hook = home.user / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch '{home.user}/asked'\n")
    hook.chmod(0o755)
    home.config(f'[[hooks.preCompact]]\ncommand = ["{hook}"]\n')
    home.put(data)
    with home.house() as house:
        before = written(home)
        for attempt in (compacting(house.sessions).preview, compacting(house.sessions).compact):
            refused = refusal(lambda attempt=attempt: attempt(asked("in-place")))
            told = refused.code, refused.facts["hint"]
            assert told == ("conflict", "Compact into a new session.")
        assert written(home) == before
        assert not (home.user / "asked").exists()
        assert compacting(house.sessions).preview(asked()).source_session_id == thread(1)


def test_archived_session_is_not_compacted_in_place(home: Home) -> None:
    home.path().unlink()
    home.put(work(), archived=True)
    with home.house() as house:
        refused = refusal(lambda: compacting(house.sessions).compact(asked("in-place")))
        done = compacting(house.sessions).compact(asked())

    assert (refused.code, refused.facts["reason"]) == ("conflict", "archived")
    assert done.session_id is not None


def test_codexs_fork_of_a_made_session_begins_with_the_same_state(home: Home) -> None:
    # Of a legacy session Codex copies the lines.
    with home.house() as house:
        sessions = house.sessions
        made = str(compacting(sessions).compact(asked()).session_id)
        source = shown(sessions, made)
        data = Path(sessions.find(made).path).read_bytes()
        ordinal = data.count(b"\n")
        base = r.based_on(made, ordinal, len(data))
        home.put(r.rollout(r.session(thread=thread(5), history_base=base, start=ordinal)), 5)
        sessions.refresh()

        fork = shown(sessions, thread(5))

    assert fork == attrs.evolve(source, seq=source.seq + 1)


def test_made_session_referenced_by_a_compaction_is_not_deleted(sessions: Sessions) -> None:
    done = compacting(sessions).compact(asked())

    refused = refusal(lambda: delete(sessions, str(done.session_id)))
    Undoing(sessions, OUTSIDE).uncompact(str(done.compaction_id))
    delete(sessions, str(done.session_id))

    assert (refused.code, refused.facts["reason"]) == ("conflict", "standing")
    assert f"`codex-checkpoints uncompact {done.session_id}`" in str(refused.facts["hint"])
    assert [each.session_id for each in sessions.summaries.page().items] == [thread(1)]
    archive_forks(sessions)


def test_made_session_with_unreadable_records_is_not_deleted(
    home: Home, sessions: Sessions
) -> None:
    made = str(compacting(sessions).compact(asked()).session_id)
    path = home.state / "sessions" / made / "compactions.jsonl"
    path.unlink()
    path.mkdir()

    assert refusal(lambda: delete(sessions, made)).code == "storage_error"
    assert Path(sessions.find(made).path).exists()


# --- hooks ---------------------------------------------------------------------------------------


def hook(
    home: Home,
    script: str,
    event: str = "preCompact",
    *,
    name: str = "",
    **more: Any,  # noqa: ANN401 - settings
) -> Path:
    """Name a program that runs around a compaction; return where it notes what it was told."""
    path = home.user / f"{event}{name}.sh"
    told = path.with_suffix(".told")
    path.write_text(f"#!/bin/sh\ncat > '{told}'\n{script}\n")
    path.chmod(0o755)
    settings = {"command": [str(path)], **more}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    old = home.state / "config.toml"
    text = old.read_text() if old.exists() else ""
    home.config(f"{text}[[hooks.{event}]]\n{lines}")
    return told


def test_hooks_get_codexs_fields_and_the_outcome(home: Home) -> None:
    before = hook(home, "")
    after = hook(home, """echo '{"systemMessage":"seen"}'""", "postCompact")
    failing = hook(home, "exit 1", "postCompact", name="failing")
    with home.house() as house:
        assert house.problems == ()
        done = compacting(house.sessions).compact(asked())

    told = json.loads(before.read_bytes())
    assert set(told) == {
        *("session_id", "turn_id", "transcript_path", "cwd"),
        *("hook_event_name", "model", "trigger"),
    }
    assert (told["hook_event_name"], told["session_id"], told["trigger"]) == (
        "PreCompact",
        thread(1),
        "manual",
    )
    observed = json.loads(after.read_bytes())
    assert observed["hook_event_name"] == "PostCompact"
    assert observed["compaction"]["session_id"] == done.session_id
    assert observed["compaction"]["replacement"] == digest_of(done.replacement)
    assert "login" not in after.read_text() + failing.read_text()
    assert [each.outcome for each in done.hooks] == ["passed", "passed", "failed"]
    assert [each["type"] for each in home.audited()] == [
        "CompactionInstalled",
        "CompactionObserved",
    ]


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("""echo '{"continue":false,"stopReason":"not now"}'""", "blocked"),
        ("exit 3", "failed"),
        ("echo garbage", "garbage"),
        ("yes", "garbage"),
        ("""echo '{"continue":1}'""", "garbage"),
        ("""echo '{"decision":"block"}'""", "garbage"),
        ("sleep 60", "timed_out"),
    ],
)
@pytest.mark.parametrize("policy", ["stop", "continue"])
def test_blocking_or_failing_hook_has_a_defined_outcome(
    home: Home, script: str, outcome: str, policy: str
) -> None:
    hook(home, script, onFailure=policy, timeoutSeconds=0.5)
    rollouts = snapshot(home.root / "sessions")
    with home.house() as house:
        if outcome != "blocked" and policy == "continue":
            done = compacting(house.sessions).compact(asked())
            assert [each.outcome for each in done.hooks] == [outcome]
            return
        refused = refusal(lambda: compacting(house.sessions).compact(asked()))

    assert refused.code == "blocked_by_hook"
    assert refused.facts["outcome"] == outcome
    assert snapshot(home.root / "sessions") == rollouts
    (event,) = home.audited()
    assert event["type"] == "CompactionBlocked"
    assert event["hooks"] == [{"number": 1, "outcome": outcome}]
    assert not (home.state / "sessions" / thread(1) / "compactions.jsonl").exists()


def test_message_written_while_a_hook_ran_is_kept(home: Home) -> None:
    later = more(
        r.turn(r.user("One more thing."), r.assistant("Yes."), name="later"),
        thread=thread(1),
        ordinal=work().count(b"\n"),
    )
    (home.user / "later").write_bytes(later)
    hook(home, f"cat '{home.user}/later' >> '{home.path()}'")
    with home.house() as house:
        done = compacting(house.sessions).compact(asked("in-place"))
        (newest,) = [texts_of(item["content"]) for item in done.replacement[-2:-1]]

        assert newest == ("One more thing.",)
        assert history_of(house.sessions, thread(1)) == list(done.replacement)


def test_child_processes_of_a_hook_end_with_it(home: Home) -> None:
    hook(home, f"sleep 60 & echo $! > '{home.user}/child'")
    with home.house() as house:
        compacting(house.sessions).compact(asked())

    child = (home.user / "child").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, check=False)
    assert state.stdout.strip()[:1] in {b"", b"Z"}


@pytest.mark.skipif(shutil.which("setsid") is None, reason="no way to leave a group")
@pytest.mark.parametrize(
    ("and_then", "outcome"), [("", "passed"), ("sleep 60", "timed_out")], ids=["ends", "hangs"]
)
def test_process_outside_the_hooks_group_is_not_awaited(
    home: Home, and_then: str, outcome: str
) -> None:
    child = home.user / "child"
    script = f"setsid sh -c 'echo $$ > \"{child}\"; exec sleep 60' &\n"
    script += f"while [ ! -s '{child}' ]; do sleep 0.02; done\n{and_then}"
    hook(home, script, onFailure="continue", timeoutSeconds=5)
    begun = time.monotonic()
    try:
        with home.house() as house:
            done = compacting(house.sessions).compact(asked())
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)

    assert [each.outcome for each in done.hooks] == [outcome]
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    "text",
    [
        b"hooks = 1",
        b'[[hooks.other]]\ncommand = ["/bin/true"]',
        b'[[hooks.preCompact]]\ncommand = "/bin/true"',
        b'[[hooks.preCompact]]\ncommand = ["./hook.sh"]',
        b'[[hooks.preCompact]]\ncommand = ["true"]',
        b'[[hooks.preCompact]]\ncommand = ["/bin/true"]\ntimeoutSeconds = 0',
        b'[[hooks.preCompact]]\ncommand = ["/bin/true"]\nonFailure = "perhaps"',
        b'[[hooks.preCompact]]\ncommand = ["/bin/true"]\nshell = true',
        b'[[hooks.preCompact]]\ncommand = ["/bin/true"',
        b"# hooks \xff\n[[hooks.preCompact]]\n",
        b"# hooks\na = " + b"9" * 5000,
    ],
    ids=lambda text: text[-20:].decode(errors="replace"),
)
def test_unreadable_hooks_are_reported_and_block_compaction(home: Home, text: bytes) -> None:
    home.config("")
    (home.state / "config.toml").write_bytes(text)
    with home.house() as house:
        refused = refusal(lambda: compacting(house.sessions).compact(asked()))

        (problem,) = house.problems
    assert any(word in problem for word in ("hooks", "TOML", "cannot be read"))
    assert (refused.code, refused.facts["outcome"]) == ("blocked_by_hook", "not_started")
    assert refused.message.startswith("the settings cannot be read")
    assert "doctor" in str(refused.facts["hint"])
    assert (refused.facts["hook"], refused.facts["reason"]) == (None, "settings")
    (event,) = home.audited()
    assert (event["type"], event["hooks"], event["reason"]) == ("CompactionBlocked", [], "settings")


def test_editor_cannot_name_programs_to_run(home: Home) -> None:
    from codex_checkpoints import assembly
    from codex_checkpoints.places import Places

    wish = {"hooks": {"preCompact": [{"command": ["/bin/true"]}]}}
    house = assembly.assemble(Places(str(home.root), str(home.state)), wish)
    try:
        assert house.sessions.settings.hooks == {}
    finally:
        house.sessions.close()


# --- the doors -----------------------------------------------------------------------------------

KEYS = {
    *("compactionId", "sessionId", "sourceSessionId", "strategy", "placement", "replacement"),
    *("tokensBefore", "tokensAfter", "bound", "kept", "dropped", "truncated", "windows", "resume"),
}


def test_command_line_compacts_and_undoes(home: Home) -> None:
    preview = home.json("compact", thread(1), "--dry-run")
    done = home.json("compact", thread(1))
    undone = home.json("uncompact", done["compactionId"])

    assert set(done) >= KEYS
    ids = {"compactionId", "sessionId", "windows", "contents", "resume", "headline"}
    assert {key: done[key] for key in done.keys() - ids} == {
        key: preview[key] for key in preview.keys() - ids
    }
    assert done["resume"] == f"codex resume {done['sessionId']}"
    assert home.json("history", done["sessionId"])["items"] == done["replacement"]
    assert (undone["sessionId"], undone["into"]) == (thread(1), "new")
    assert home.refused("uncompact", "nobody")["code"] == "unknown_compaction"


def test_undo_accepts_the_made_session_or_an_id_prefix(home: Home):
    made = ""
    for key, length in (("sessionId", 36), ("sessionId", 13), ("compactionId", 23)):
        done = home.json("compact", thread(1))
        made = done["sessionId"]
        again = home.json("uncompact", done[key][:length].upper())
        assert again["compactionId"] == done["compactionId"]
    assert home.refused("uncompact", made[:7])["code"] == "unknown_compaction"


def test_undo_of_a_compacted_session_names_its_compactions_in_force(home: Home):
    home.json("uncompact", home.json("compact", thread(1))["compactionId"])
    made = home.json("compact", thread(1))["compactionId"]

    for name in (thread(1), thread(1)[:13]):
        refused = home.refused("uncompact", name)
        assert refused["code"] == "unknown_compaction"
        assert refused["facts"]["candidates"] == [made]
        text = home.here("uncompact", name).stderr.decode()
        assert f"`codex-checkpoints uncompact {made}` undoes the latest of this session." in text
    assert home.refused("uncompact", thread(1)[:7])["facts"]["candidates"] == []


def test_another_process_and_locale_writes_the_same_bytes(home: Home) -> None:
    worlds = (
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "2", "TZ": "America/Lima", "LC_ALL": "C.UTF-8"},
    )

    written = set[bytes]()
    for world in worlds:
        done = home.run("compact", thread(1), "--force", "--json", env=world)
        made = json.loads(done.stdout)["sessionId"]
        (path,) = home.root.glob(f"sessions/**/rollout-*-{made}.jsonl")
        line = next(line for line in path.read_bytes().splitlines() if b'"compacted"' in line)
        begin, end = line.index(b'"replacement_history":'), line.index(b',"first_window_id"')
        written.add(line[begin:end])

    assert len(written) == 1


def test_command_line_tells_people_how_to_continue(home: Home) -> None:
    text = home.run("compact", thread(1), "--into", "in-place").stdout.decode()
    name = text.split()[1]

    assert f"codex-checkpoints uncompact {name}" in text
    assert f"codex resume {thread(1)}" in text
    assert f"compaction {name}" in home.run("windows", thread(1)).stdout.decode()
    assert f"codex resume {thread(1)}" in home.run("uncompact", name).stdout.decode()


def test_editor_compacts_and_undoes_with_notifications(home: Home) -> None:
    with Peer(home.root) as peer:
        peer.start()
        preview = peer.call("checkpoints/compactPreview", {"sessionId": thread(1)})
        done = peer.call("checkpoints/compact", {"sessionId": thread(1)})
        undone = peer.call("checkpoints/uncompact", {"compactionId": done["compactionId"]})
        wrong = peer.error(
            "checkpoints/compact", {"sessionId": thread(1), "into": "air", "strategy": "luck"}
        )
        told: set[str] = set()
        while not told >= {thread(1), done["sessionId"]}:
            told |= set(peer.heard("checkpoints/changed")["sessionIds"])

    assert preview["replacement"] == done["replacement"]
    assert set(done) >= KEYS
    assert undone["sessionId"] == thread(1)
    assert (wrong["code"], wrong["data"]["code"]) == (-32602, "invalid_payload")
    assert len(wrong["data"]["facts"]["problems"]) == 2
