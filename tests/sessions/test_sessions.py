"""Requests about sessions, and following them: the service over real files."""

import errno
import json
import os
import threading
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from codex_checkpoints import assembly
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.core.checkpoint.records import Caps
from codex_checkpoints.places import Places
from codex_checkpoints.service.doctor import Finding, diagnose
from codex_checkpoints.service.reading.checkpoints import StoredCheckpoint
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.session_watcher import Changed, SessionWatcher
from codex_checkpoints.service.sessions.summaries import SessionSummary
from codex_checkpoints.service.settings import (
    UNREADABLE,
    Settings,
    overridden,
    read_settings,
    with_editor,
)
from codex_checkpoints.storage.contract import Rollout, Row, ThreadQuery
from derived_state import compressed
from homes import (
    Home,
    chat,
    eventually,
    following,
    go_on,
    more,
    refusal,
    snapshot,
    thread,
    without_rights,
)
from rollouts import (
    SUMMARY_OF_CODEX,
    Step,
    based_on,
    blank,
    compacted,
    environment,
    event,
    patch,
    plan,
    raw,
    record,
    rollback,
    rollout,
    session,
    shell,
    started,
    tokens,
    torn,
    turn,
    turn_context,
    user,
)
from updates import fact, sha


def listed(home: Home, **asked: Any) -> list[SessionSummary]:  # noqa: ANN401 - as `Summaries.page`
    with home.house() as house:
        return list(house.sessions.summaries.page(ThreadQuery(**asked)).items)


def shown_titles(house: Assembly) -> list[str | None]:
    return [item.title for item in house.sessions.summaries.page().items]


def titles(home: Home, **asked: Any) -> list[str | None]:  # noqa: ANN401 - as `Summaries.page`
    return [item.title for item in listed(home, **asked)]


def task(shown: StoredCheckpoint) -> str | None:
    return None if shown.checkpoint.task is None else shown.checkpoint.task.text


def shown(home: Home, session_id: str = thread(1), at: str | int | None = None) -> StoredCheckpoint:
    with home.house() as house:
        return house.sessions.show(session_id, at)


def findings(house: Assembly) -> dict[str, Finding]:
    found = diagnose(house.sessions, house.problems).findings
    return {each.code: each for each in found}


# --- naming a session ----------------------------------------------------------------------------


def test_session_is_found_by_its_id_a_prefix_or_its_path(home: Home):
    path = home.put(chat("one"))
    home.put(chat("two", 700), 700)

    with home.house() as house:
        for name in (thread(1), thread(1).upper(), thread(1)[:-2], str(path)):
            assert task(house.sessions.show(name)) == "one"
        assert task(house.sessions.show(os.path.relpath(path))) == "one"


@pytest.mark.parametrize("name", ["", "01a1f86", thread(3), "nobody-else"])
def test_unknown_name_is_refused(home: Home, name: str):
    home.put(chat("one"))

    refused = refusal(lambda: shown(home, name))

    assert (refused.code, refused.facts) == ("unknown_session", {"session": name})


def test_latest_names_the_newest_session_unless_one_has_that_name(home: Home):
    home.put(chat("one"))
    home.put(chat("two", 2), 2)
    newest = task(shown(home, "latest"))
    home.put(chat("latest", 3), 3)
    home.put(chat("four", 4), 4)

    assert newest == "two"
    assert task(shown(home, "latest")) == "latest"


def test_latest_without_a_session_of_a_person_says_so(home: Home):
    assert "no session 'latest'" in refusal(lambda: shown(home, "latest")).message

    home.put(chat("one", source="exec"))
    one = refusal(lambda: shown(home, "latest"))
    home.put(chat("two", 2, source="exec"), 2)
    two = refusal(lambda: shown(home, "latest"))

    assert (one.code, one.facts) == ("unknown_session", {"session": "latest"})
    assert one.message.startswith(f"no person typed in the only session under {home.root}")
    assert two.message.startswith(f"no person typed in any of the 2 sessions under {home.root}")


def test_prefix_of_several_ids_is_ambiguous(home: Home):
    for number in (1, 2, 30):
        home.put(chat("x", number), number)

    refused = refusal(lambda: shown(home, thread(1)[:-4]))

    assert task(shown(home, thread(30)[:-1])) == "x"
    assert refused.code == "ambiguous_session"
    assert refused.facts == {"candidates": [thread(1), thread(2), thread(30)]}


def test_whole_id_is_never_ambiguous_even_as_a_prefix_of_another(home: Home):
    home.put(rollout(session(thread="abcdefgh"), turn(user("short"))), 1)
    home.put(rollout(session(thread="abcdefgh-longer"), turn(user("long"))), 2)

    assert [task(shown(home, name)) for name in ("abcdefgh", "abcdefgh-l")] == ["short", "long"]


def test_session_created_since_the_last_scan_is_found(home: Home):
    with home.house() as house:
        home.put(chat("brand new"))

        assert task(house.sessions.show(thread(1))) == "brand new"


def test_head_of_a_file_decides_its_id_and_not_its_name(home: Home):
    home.put(chat("one", 5), 1)

    assert [item.session_id for item in listed(home)] == [thread(5)]
    assert home.stored(5) is None
    assert task(shown(home, thread(5))) == "one"
    assert home.stored(5) is not None


@pytest.mark.parametrize("name", ["/nowhere/x.jsonl", "x.jsonl", "/", "./.", "a\0b.jsonl"])
def test_path_without_a_file_is_unreadable(home: Home, name: str):
    refused = refusal(lambda: shown(home, name))

    assert (refused.code, refused.facts["path"]) == ("unreadable_source", os.path.abspath(name))


# --- a file that is named by its path ------------------------------------------------------------


def test_nothing_is_stored_for_a_file_outside_the_home(home: Home, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(chat("from elsewhere", 9))
    before = snapshot(home.root, home.user)

    with home.house() as house:
        found = house.sessions.show(str(elsewhere))
        assert task(found) == "from elsewhere"
        assert house.sessions.view(str(elsewhere)).text.count("from elsewhere") == 1
        assert house.sessions.summaries.page().items == ()

    assert (found.stored, found.changed) == (None, False)
    assert {path for path in snapshot(home.root, home.user) if path not in before} <= {
        str(home.state),
        *map(str, home.state.glob("index.sqlite*")),
    }


def test_copy_outside_the_home_does_not_change_the_stored_session(home: Home, tmp_path: Path):
    home.put(chat("one"))
    copy = tmp_path / home.path().name
    copy.write_bytes(chat("one, but older"))

    stored = shown(home).data
    assert task(shown(home, str(copy))) == "one, but older"
    assert home.checkpoint().read_bytes() == stored


def test_file_outside_the_home_finds_its_base_beside_it(home: Home, tmp_path: Path):
    base = rollout(session(thread=thread(1)), turn(user("the beginning")))
    later = rollout(
        session(thread=thread(2), history_base=based_on(thread(1), 5, len(base))),
        turn(shell("make", reads=())),
    )
    (tmp_path / home.path(1).name).write_bytes(base)
    (tmp_path / home.path(2).name).write_bytes(later)

    assert task(shown(home, str(tmp_path / home.path(2).name))) == "the beginning"


# --- segments ------------------------------------------------------------------------------------


FIRST = turn(user("first"), patch(add="a.py"))


def on_the_first(said: str) -> bytes:
    """Write a segment that builds on the first turn alone."""
    kept = rollout(session(thread=thread(1)), FIRST)
    base = based_on(thread(1), kept.count(b"\n"), len(kept))
    return rollout(session(thread=thread(1), history_base=base), turn(user(said), name="t9"))


@pytest.fixture
def reverted(home: Home) -> Home:
    """A thread whose second turn was taken back."""
    home.put(rollout(session(thread=thread(1)), FIRST, turn(user("second"), patch(add="b.py"))))
    home.put(on_the_first("another second, longer"), segment=50)
    return home


def test_newest_segment_is_the_session_and_an_older_one_is_read_by_its_path(
    reverted: Home,
):
    (only,) = listed(reverted)
    current = shown(reverted)

    older = shown(reverted, str(reverted.path()))

    assert (only.path, only.task) == (str(reverted.path(segment=50)), "another second, longer")
    assert (task(older), older.stored) == ("second", None)
    assert list(current.checkpoint.artifacts) == ["a.py"]
    assert sorted(older.checkpoint.artifacts) == ["a.py", "b.py"]
    assert reverted.checkpoint().read_bytes() == current.data


def test_segment_out_of_reach_of_the_newest_one_is_reported(reverted: Home):
    reverted.put(on_the_first("third try of the same"), segment=60)

    with reverted.house() as house:
        found = findings(house)["unreached_segment"]
        assert [item.task for item in house.sessions.summaries.page().items] == [
            "third try of the same"
        ]
        assert diagnose(house.sessions).sessions == 1

    assert (found.path, found.severity) == (str(reverted.path(segment=50)), "info")
    assert found.way_out


def test_segment_is_newer_than_the_first_file_whatever_its_id(home: Home):
    """Thread ids need not be UUIDv7, so their order says nothing."""
    name = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
    folder = home.put(rollout(session(thread=name), turn(user("old"))), 1).parent
    first = folder / f"rollout-2026-11-20T10-00-00-{name}.jsonl"
    home.path(1).rename(first)
    later = rollout(session(thread=name), turn(user("new")))
    first.with_name(f"rollout-2026-11-20T10-00-00-{name}_{thread(50)}.jsonl").write_bytes(later)

    assert [item.task for item in listed(home)] == ["new"]


def test_missing_base_is_reported_and_read_once_it_appears(reverted: Home):
    base = reverted.path()
    data = base.read_bytes()
    base.unlink()

    with reverted.house() as house:
        assert detail_of(house.sessions, thread(1)).problems == (f"base_missing:{thread(1)}",)
        assert house.sessions.show(thread(1)).checkpoint.artifacts == {}
        assert findings(house)["base_missing"].path == str(reverted.path(segment=50))

        base.write_bytes(data)
        house.sessions.refresh()

        assert detail_of(house.sessions, thread(1)).problems == ()
        assert list(house.sessions.show(thread(1)).checkpoint.artifacts) == ["a.py"]
        assert data_anew(reverted) == house.sessions.show(thread(1)).data


HEAD_SIZE = on_the_first("x").index(b"\n")


@pytest.mark.parametrize("seen", [0, 1, HEAD_SIZE // 2, HEAD_SIZE, HEAD_SIZE + 40])
def test_segment_seen_during_the_write_of_its_head_has_its_base(reverted: Home, seen: int) -> None:
    whole = on_the_first("third try of the same")
    with reverted.house() as house:
        followed = Followed(house)
        before = reverted.checkpoint().read_bytes()
        path = reverted.put(whole[:seen], segment=60)
        followed.told(path)
        if seen < HEAD_SIZE:
            assert reverted.checkpoint().read_bytes() == before
        path.write_bytes(whole)
        followed.told(path)

        assert reverted.checkpoint().read_bytes() == data_anew(reverted)
        assert detail_of(house.sessions, thread(1)).problems == ()
    assert list(reverted.stored()["artifacts"]) == ["a.py"]


@pytest.mark.parametrize("seen", [0, 0.01, 0.5, 0.9])
@pytest.mark.parametrize("restarted", [False, True])
def test_base_that_appears_after_its_fork_is_read_to_the_cut(
    reverted: Home, seen: float, restarted: bool
) -> None:
    """As a folder is filled by a copy: in any order, and a part at a time."""
    base = reverted.path()
    whole = base.read_bytes()
    base.write_bytes(whole[: int(seen * len(rollout(session(thread=thread(1)), FIRST)))])
    with reverted.house() as house:
        followed = Followed(house)
        assert detail_of(house.sessions, thread(1)).problems == (f"base_short:{thread(1)}",)
        if not restarted:
            base.write_bytes(whole)
            followed.told(base)
            assert detail_of(house.sessions, thread(1)).problems == ()
            assert reverted.checkpoint().read_bytes() == data_anew(reverted)
    if restarted:
        base.write_bytes(whole)
    with reverted.house() as house:
        assert detail_of(house.sessions, thread(1)).problems == ()
        assert house.sessions.show(thread(1)).data == data_anew(reverted)


def data_anew(home: Home) -> bytes:
    """Return the checkpoint that a service with an empty state folder makes."""
    house = assembly.assemble(Places(str(home.root), str(home.user / "state")))
    try:
        house.sessions.refresh()
        return house.sessions.show(thread(1)).data
    finally:
        house.sessions.close()


@pytest.mark.parametrize("moved", [False, True])
def test_watched_base_counts_until_it_is_gone(reverted: Home, moved: bool):
    archived = reverted.path(archived=True)
    archived.parent.mkdir()
    with reverted.house() as house:
        followed = Followed(house)
        before = house.sessions.show(thread(1)).data
        reverted.path().rename(archived if moved else reverted.user / "away")
        followed.told(reverted.path(), archived)

        assert (house.sessions.show(thread(1)).data == before) is moved
        assert (detail_of(house.sessions, thread(1)).problems == ()) is moved
        assert data_anew(reverted) == house.sessions.show(thread(1)).data


def test_hostile_name_of_a_base_is_reported_literally(home: Home):
    base = {"thread_id": "a b\n\x1b[2J:c", "end_ordinal_exclusive": 3, "end_byte_offset": 10}
    home.put(rollout(session(thread=thread(1), history_base=base), turn(user("hi"))))

    with home.house() as house:
        assert "base_missing" in findings(house)
        assert len(detail_of(house.sessions, thread(1)).problems) == 1


# --- lists ---------------------------------------------------------------------------------------


def test_session_is_listed_with_all_its_values(home: Home):
    """What the wire shows of a plain one, each field of it, is in `test_protocol`."""
    home.put(
        rollout(
            session(thread=thread(1), forked_from_id=thread(7)),
            turn(turn_context(), user("why?"), tokens(1000), name="t1"),
            compacted(),
            turn(user("and now?"), tokens(2500, window=10_000), name="t2"),
        )
    )

    (only,) = listed(home)

    assert (only.title, only.task, only.model) == ("why?", "and now?", "gpt-5.5")
    assert (only.context_tokens, only.context_window) == (2500, 10_000)
    assert (only.windows, only.compactions, only.turns, only.seq) == (2, 1, 2, 12)
    assert (only.forked_from, only.updated_at) == (thread(7), "2026-11-20T10:00:12.000Z")


def test_subagent_is_listed_with_its_parent(home: Home):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": thread(1), "depth": 1}}}
    home.put(chat("the parent"))
    home.put(chat("a part of it", 2, source=source, parent_thread_id=thread(1)), 2)

    assert {item.title: item.parent_session for item in listed(home)} == {
        "the parent": None,
        "a part of it": thread(1),
    }


def test_times_of_different_zones_are_sorted_by_instant(home: Home):
    home.put(chat("early").replace(b".000Z", b".000+05:00"))
    home.put(chat("late", 2).replace(b".000Z", b".000-05:00"), 2)
    home.put(chat("between", 3), 3)

    assert titles(home) == ["late", "between", "early"]
    assert [item.updated_at and item.updated_at[11:] for item in listed(home)] == [
        "15:00:04.000Z",
        "10:00:04.000Z",
        "05:00:04.000Z",
    ]


def test_invalid_time_is_replaced_by_the_time_of_the_file(home: Home):
    path = home.put(chat("x").replace(b"2026-11-20T10:00:", b"2026-13-40T99:00:"))
    os.utime(path, (1_700_000_000, 1_700_000_000))

    assert [item.updated_at for item in listed(home)] == ["2023-11-14T22:13:20.000Z"]


def test_archived_session_is_listed_as_archived_and_shown_like_any_other(home: Home):
    home.put(chat("archived", 2), 2, archived=True)

    assert [item.archived for item in listed(home, archived=True)] == [True]
    assert task(shown(home, thread(2))) == "archived"
    assert home.stored(2)["task"]["text"] == "archived"


# --- titles --------------------------------------------------------------------------------------


def name(number: int, given: object) -> str:
    return json.dumps({"id": thread(number), "thread_name": given, "updated_at": "x"}) + "\n"


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (name(1, "Given") + name(1, "Given anew"), "Given anew"),
        (name(1, "Given") + name(2, "Another's"), "Given"),
        (name(1, "Given") + name(1, ""), "first words"),
        (name(1, "") + name(1, "Given"), "Given"),
        (name(1, "Given") + "not json\n[]\n{}\n\xff", "Given"),
        (name(1, "Given") + '{"id":5,"thread_name":"x"}\n', "Given"),
        (name(1, None), "first words"),
        (name(1, ["x"]), "first words"),
        (name(1, "Given")[:-5], "first words"),
    ],
)
def test_newest_name_in_codexs_list_is_the_title(home: Home, lines: str, title: str):
    home.put(rollout(session(thread=thread(1)), turn(user("first words")), turn(user("last"))))
    (home.root / "session_index.jsonl").write_bytes(lines.encode("latin-1"))

    assert titles(home) == [title]


def test_name_is_treated_like_any_value(home: Home):
    secret = "sk-proj-Zq8LmN4vTb2XrWc9Ys6DfGh1JkPoQe7uAi3BnMt5"
    told = event("thread_name_updated", thread_name=f"told\x1b[2J {secret} " + "x" * 300)
    home.put(rollout(session("legacy", thread=thread(1)), turn(user("first words"), told)))
    (home.root / "session_index.jsonl").write_text(name(2, f"given\n{secret}"))
    home.put(chat("x", 2), 2)

    first, second = titles(home)

    assert (first or "").startswith("told [2J [redacted] xxx")
    assert len(first or "") == 160
    assert second == "given [redacted]"
    assert secret.encode() not in (home.state / "index.sqlite").read_bytes()


def test_later_name_is_seen_by_a_running_process(home: Home):
    home.put(chat("first words"))

    with home.house() as house:
        assert shown_titles(house) == ["first words"]
        (home.root / "session_index.jsonl").write_text(name(1, "Given"))
        assert shown_titles(house) == ["Given"]
        (home.root / "session_index.jsonl").unlink()
        assert shown_titles(house) == ["first words"]


def test_title_is_the_first_message_of_a_person_cut_like_a_task(home: Home):
    home.put(
        rollout(
            session("legacy", thread=thread(1), events=False),
            environment(),
            user("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nbe nice\n</INSTRUCTIONS>"),
            user("first\n\x1b[31mwords " + "x" * 300),
            user("later"),
        )
    )

    (title,) = titles(home)

    assert title == "first [31mwords " + "x" * 143 + "…"


# --- how full the window is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], (None, "estimated", 258_400)),
        ([tokens(500)], (500, "reported", 258_400)),
        ([tokens(500), tokens(700, window=900)], (700, "reported", 900)),
        ([tokens(500, read=0)], (500, "estimated", 258_400)),
        ([tokens(500), event("token_count", info=None)], (500, "reported", 258_400)),
        ([tokens(500), compacted()], (None, "estimated", 258_400)),
        ([tokens(500), compacted(), tokens(90)], (90, "reported", 258_400)),
        ([tokens(500), compacted(), tokens(90, read=0)], (90, "estimated", 258_400)),
    ],
    ids=["nothing", "one", "last", "estimate", "null", "compacted", "used again", "own estimate"],
)
def test_fullness_of_the_window_has_its_source(
    home: Home, steps: list[Any], expected: tuple[int | None, str, int]
):
    home.put(rollout(session(thread=thread(1)), turn(user("x"), *steps)))

    (only,) = listed(home)

    assert (only.context_tokens, only.context_tokens_source, only.context_window) == expected


# --- whether it is in use ------------------------------------------------------------------------


def test_session_is_live_while_a_process_holds_its_lock(home: Home):
    home.put(chat("x"))
    assert listed(home)[0].live is False
    assert not (home.root / "thread-writer-locks").exists()

    with home.house() as house:
        with home.loaded():
            assert detail_of(house.sessions, thread(1)).summary.live
        assert not detail_of(house.sessions, thread(1)).summary.live


# --- a session at the end of a turn --------------------------------------------------------------


def at_turns(data: bytes, home: Home, *turns: str | int) -> list[str | None]:
    home.put(data)
    with home.house() as house:
        return [task(house.sessions.show(thread(1), each)) for each in turns]


def test_turn_is_named_by_its_id_or_its_number_among_active_turns(home: Home):
    data = rollout(
        session("legacy", thread=thread(1)),
        turn(user("one"), patch(add="a.py"), plan(("do it", False)), name="a"),
        turn(user("two"), patch(add="b.py"), name="b"),
        rollback(1),
        turn(user("another two"), patch(add="c.py"), name="c"),
    )

    assert at_turns(data, home, 1, "1", "a") == ["one"] * 3
    assert at_turns(data, home, 2, "b", "c") == ["another two", "two", "another two"]
    first = shown(home, at=1)
    assert list(first.checkpoint.artifacts) == ["a.py"]
    assert [step.text for step in first.checkpoint.plan.steps] == ["do it"]
    assert (first.stored, home.stored()) == (None, None)
    with home.house() as house:
        turns = detail_of(house.sessions, thread(1)).turns
        assert refusal(lambda: house.sessions.show(thread(1), 3)).code == "unknown_turn"
    assert [(each.number, each.turn_id, each.task) for each in turns] == [
        (1, "a", "one"),
        (2, "c", "another two"),
    ]


def test_last_turn_is_the_current_state(home: Home):
    home.put(rollout(session(thread=thread(1)), turn(user("one")), turn(user("two"))))

    assert shown(home, at=2).data == shown(home).data


@pytest.mark.parametrize("later", [(user("one"),), (user("one"), turn(user("two")))])
def test_open_turn_is_shown_up_to_now_and_an_interrupted_one_up_to_the_next(
    home: Home, later: tuple[Step, ...]
):
    """Where a second turn follows, Codex was killed in the first."""
    home.put(rollout(session(thread=thread(1)), started(), *later))

    assert task(shown(home, at=1)) == "one"
    with home.house() as house:
        ended = [each.ended for each in detail_of(house.sessions, thread(1)).turns]
    assert ended == [False, True][: len(later)]


def test_notes_at_a_turn_are_those_accepted_by_then(home: Home):
    home.put(rollout(session(thread=thread(1)), turn(user("one")), turn(user("two"))))
    home.remember([fact("early", seq=3), fact("late", seq=8)])

    assert list(shown(home, at=1).checkpoint.facts) == ["early"]
    assert list(shown(home, at=2).checkpoint.facts) == ["early", "late"]


@pytest.mark.parametrize("name", ["0", "3", "-1", "", "nobody", "1.0", "٣", "9" * 5000, "9" * 12])
def test_unknown_turn_is_refused(home: Home, name: str):
    home.put(rollout(session(thread=thread(1)), turn(user("one")), turn(user("two"))))

    refused = refusal(lambda: shown(home, at=name))

    assert refused.code == "unknown_turn"
    assert refused.facts == {"sessionId": thread(1), "turnId": name[:200], "turns": 2}


# --- facts ---------------------------------------------------------------------------------------


def test_suspect_facts_are_counted_in_the_list(home: Home, shop: Path):
    (shop / "a.py").write_text("v1")
    seen = "sha256:" + sha256(b"v1").hexdigest()
    home.put(rollout(session(thread=thread(1), cwd=str(shop)), turn(user("x"), patch(add="a.py"))))
    home.remember(
        [
            fact("stands", on={"a.py": seen}, source="file", ref="a.py", seq=5),
            fact("fell", on={"a.py": sha("v0")}, source="file", ref="a.py", seq=5),
            fact("said", seq=5),
        ]
    )

    assert [item.suspect_facts for item in listed(home)] == [1]
    (shop / "a.py").write_text("v2")
    assert [item.suspect_facts for item in listed(home)] == [2]


def test_unreadable_updates_are_an_error_and_not_forgotten(home: Home):
    home.put(chat("one"))
    home.remember([fact("known", seq=4)])
    assert list(shown(home).checkpoint.facts) == ["known"]
    stored = home.checkpoint().read_bytes()
    home.checkpoint().with_name("updates.jsonl").unlink()
    home.checkpoint().with_name("updates.jsonl").mkdir()

    with home.house() as house:
        for ask in (
            lambda: house.sessions.show(thread(1)),
            lambda: house.sessions.show(thread(1), 1),
            lambda: house.sessions.view(thread(1)),
        ):
            refused = refusal(ask)
            assert refused.code == "storage_error"
            assert refused.facts["sessionId"] == thread(1)
        assert len(house.sessions.summaries.page().items) == 1

    assert home.checkpoint().read_bytes() == stored


# --- views and settings --------------------------------------------------------------------------


def test_view_has_the_caps_of_the_model(home: Home):
    home.config('[caps]\nmaxOpenPlanSteps = 2\n[caps.models."gpt-5.5"]\nmaxOpenPlanSteps = 1')
    steps = plan(("one", False), ("two", False), ("three", False))
    for number, model in ((1, "gpt-5.5"), (2, "another")):
        told = turn(turn_context(model=model), user("x"), steps)
        home.put(rollout(session(thread=thread(number)), told), number)

    for _ in range(2):  # whether or not somebody asked before
        with home.house() as house:
            for number in (1, 2):
                view = house.sessions.view(thread(number))
                assert view.caps == Caps(max_open_plan_steps=number)
                assert view.text.count("- [ ]") == number
                assert detail_of(house.sessions, thread(number)).caps == view.caps
            chosen = house.sessions.view(thread(1), caps={"maxRecentArtifacts": 3})
            assert chosen.caps == Caps(max_open_plan_steps=1, max_recent_artifacts=3)


def test_checkpoints_may_be_stored_beside_their_rollouts(home: Home):
    home.config('checkpointLocation = "beside"')
    first = home.put(chat("one"))
    home.put(chat("two", 2), 2)
    home.put(chat("three", 3), 3, archived=True)

    with home.house() as house:
        SessionWatcher(house.sessions).keep_all()
        found = house.sessions.show(thread(1))

    assert found.stored == str(first).replace(".jsonl", ".checkpoint_v1.json")
    assert Path(found.stored or "").read_bytes() == found.data
    assert len(list(first.parent.iterdir())) == 4
    assert len(list(home.path(3, archived=True).parent.iterdir())) == 2
    assert not (home.state / "sessions").exists()
    assert len(listed(home)) == 2


def test_invalid_setting_keeps_its_default_and_is_reported():
    for text, problems in {
        "": 0,
        'checkpointLocation = "elsewhere"': 1,
        'compactionOffer = "always"': 1,
        "checkpointLocation = 5": 1,
        "checkpointLocation = []": 1,
        "hashLimitBytes = -1": 1,
        "hashLimitBytes = 1.5": 1,
        "hashLimitBytes = true": 1,
        'hashOutsideFolder = "yes"': 1,
        "followedSessions = -3": 1,
        "caps = 5": 1,
        "[caps]\nmaxDecisions = -1": 1,
        "[caps]\nunheardOf = 1": 1,
        "[caps]\nmodels = 5": 1,
        "[caps.models]\nx = 5": 1,
        "[caps.models.x]\nmaxDecisions = 1.5": 1,
        "unheardOf = 1\nandAnother = 2": 2,
        "this is no TOML": 1,
        "a = " + "[" * 20_000: 1,
        "a = 1\na = 2": 1,
    }.items():
        settings, told = read_settings(text)
        assert (settings, len(told)) == (Settings(), problems), text[:40]


def test_invalid_setting_affects_no_other_and_the_editor_overrides_the_file():
    settings, told = read_settings(
        "hashLimitBytes = -1\nfollowedSessions = 3\n[caps]\nmaxDecisions = 1"
    )

    assert settings == Settings(followed_sessions=3, caps=Caps(max_decisions=1))
    assert ["hashLimitBytes" in each for each in told] == [True]
    assert overridden(settings, {"followedSessions": 4}) == (
        Settings(followed_sessions=4, caps=Caps(max_decisions=1)),
        (),
    )


def test_editor_adds_to_digest_ignore_and_removes_nothing():
    # A folder has settings of the editor, too, and must not have its secrets quoted.
    settings, _ = read_settings('digestIgnore = ["*.pem", "vault.*"]')
    assert with_editor(settings, {"digestIgnore": ["*.pem", "notes.md"]}) == (
        evolve(settings, digest_ignore=("*.pem", "vault.*", "notes.md")),
        (),
    )
    assert with_editor(settings, {"digestIgnore": []}) == (settings, ())
    assert with_editor(settings, {}) == (settings, ())
    wrong, told = with_editor(settings, {"digestIgnore": [7], "digestTokens": 2000})
    assert wrong == evolve(settings, digest_tokens=2000)
    assert ["digestIgnore" in each for each in told] == [True]


KEPT = ("updates", "metadata", "markers", "compactions", "restores", "imports")


def test_doctor_reports_an_unreadable_line_of_a_record(home: Home):
    home.put(chat("one"))
    paths = [home.state / "sessions" / thread(1) / f"{name}.jsonl" for name in KEPT]
    paths.append(home.state / "audit.jsonl")
    garbage = (b'{"a": "\xff"}', b"no json", b'{"a": 1', b"[1]", b"", *[b"x"] * 9)
    paths[0].parent.mkdir(parents=True)
    for path in paths:
        path.write_bytes(b"".join(b'{"b": 2}\n{}\n' + line + b"\n" for line in garbage))

    told = {each["path"]: each for each in home.json("doctor")["findings"]}

    for path in paths:
        found = told[str(path)]
        assert (found["code"], found["severity"], found["count"]) == (
            "damaged_record",
            "warning",
            14,
        )
        assert found["message"].startswith("Lines 3, 6, 9, 12, 15, 18, 21, 24 and 6 more of this")
        assert "backup" in found["wayOut"]


@pytest.mark.parametrize(
    ("tail", "told"),
    [
        (b'{"a": "\xff"}\n', "Line 2 of this record"),
        (b"", ""),
        (b'{"type": "Res', ""),
        (b'{"a": "\xe2\x82', ""),
    ],
)
def test_doctor_reports_a_damaged_record_line_and_not_an_unfinished_one(
    home: Home, tail: bytes, told: str
):
    home.state.mkdir()
    (home.state / "audit.jsonl").write_bytes(b'{"a": 1}\n' + tail)
    closed = home.state / "sessions" / thread(1) / "restores.jsonl"
    closed.mkdir(parents=True)

    with home.house() as house:
        found = findings(house)

    assert ("damaged_record" in found) is bool(told)
    assert not told or found["damaged_record"].message.startswith(told)
    unreadable = found["unreadable_record"]
    assert (unreadable.severity, unreadable.path) == ("error", str(closed))


@pytest.mark.parametrize("how", ["bytes", "folder"])
def test_doctor_reports_an_unreadable_settings_file(home: Home, how: str):
    home.put(chat("x"))
    path = home.state / "config.toml"
    home.state.mkdir()
    path.mkdir() if how == "folder" else path.write_bytes(b"\xff\xfe = 1")

    with home.house() as house:
        found = findings(house)["bad_setting"]
        # Nothing it said counts, and a hook that it may have held still stands in the way.
        assert house.sessions.settings == UNREADABLE
        assert shown_titles(house) == ["x"]

    assert (found.path, bool(found.way_out)) == (str(path), True)


# --- what stands in the way ----------------------------------------------------------------------


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("open", errno.EACCES),
        ("open", errno.EROFS),
        ("fsync", errno.ENOSPC),
        ("replace", errno.EIO),
    ],
)
def test_checkpoint_that_cannot_be_stored_is_still_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch, call: str, number: int
):
    home.put(chat("one"))
    real = getattr(os, call)

    def fail(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401 - as `os` has it
        if call == "open" and not str(arguments[0]).endswith(".tmp"):
            return real(*arguments, **more)
        raise OSError(number, os.strerror(number))

    with home.house() as house:
        with monkeypatch.context() as broken:
            broken.setattr(os, call, fail)
            found = house.sessions.show(thread(1))
            assert task(found) == "one"
            assert found.storage_problem == os.strerror(number)
            assert (found.stored, found.changed) == (None, False)
            assert "- one\n" in house.sessions.view(thread(1)).text
            told = findings(house)["storage_error"]
        assert os.strerror(number) in told.message
        assert told.severity == "error"

        assert house.sessions.show(thread(1)).changed
        assert "storage_error" not in findings(house)
    assert [path.name for path in home.checkpoint().parent.iterdir()] == ["checkpoint_v1.json"]


def test_full_disk_is_reported_once_and_not_for_every_session(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    for number in range(1, 30):
        home.put(chat(f"{number}", number), number)

    with home.house() as house:
        monkeypatch.setattr(os, "fsync", full)
        SessionWatcher(house.sessions).keep_all()

    assert [each.getMessage().split(":")[0] for each in caplog.records] == ["storage_error"]


def test_file_without_permission_is_reported_and_the_others_are_served(home: Home):
    try:
        before = without_rights()
    except LookupError as reason:
        pytest.skip(str(reason))
    home.put(chat("one"))
    path = home.put(chat("two", 2), 2)

    mode = path.stat().st_mode
    path.chmod(0)
    refused = home.run("show", thread(2), "--json", before=before)
    assert home.json("sessions", before=before)[0]["title"] == "one"
    told = home.json("doctor", before=before)["findings"]
    path.chmod(mode)

    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "unreadable_source"
    assert error["facts"] == {"path": str(path), "reason": "Permission denied"}
    assert [each["path"] for each in told if each["code"] == "unreadable_source"] == [str(path)]
    # Rights given back do not show in size or time of a file.
    assert home.run("show", thread(2), before=before).returncode == 0


@pytest.mark.parametrize("what", ["folder", "link to nothing", "link", "pipe"])
def test_entry_with_a_session_file_name_may_not_be_one(home: Home, what: str):
    home.put(chat("one"))
    path = home.path(2)
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to(path.with_name("elsewhere"))
    if what == "link":
        path.with_name("elsewhere").write_bytes(chat("elsewhere", 2))

    assert titles(home) == ["one"]
    assert refusal(lambda: shown(home, thread(2))).code == "unknown_session"
    if what == "pipe":  # nobody waits for it when it is named by its path either
        assert refusal(lambda: shown(home, str(path))).code == "unreadable_source"


def test_damaged_compressed_file_is_reported_and_the_others_are_served(home: Home):
    home.put(chat("one"))
    path = home.put(b"no zstd at all", 2, form=".jsonl.zst")

    with home.house() as house:
        assert shown_titles(house) == ["one"]
        assert task(house.sessions.show(thread(1))) == "one"
        assert refusal(lambda: house.sessions.show(thread(2))).code == "unreadable_source"
        assert findings(house)["unreadable_source"].path == str(path)


def test_id_prefix_gets_the_answer_of_the_whole_id_for_an_unreadable_file(
    home: Home,
):
    home.put(compressed(chat("x" * 50_000))[:-10], form=".jsonl.zst")

    whole, part = (
        refusal(lambda name=name: shown(home, name)) for name in (thread(1), "01A1F865-0000")
    )
    home.put(chat("two", 2), 2)
    refused = refusal(lambda: shown(home, thread(1)[:12]))

    assert whole.code == "unreadable_source"
    assert (part.code, part.message, part.facts) == (whole.code, whole.message, whole.facts)
    assert task(shown(home, thread(2))) == "two"
    assert refused.code == "ambiguous_session"
    assert refused.facts["candidates"] == [thread(1), thread(2)]


def test_plain_form_of_a_file_precedes_the_compressed_one(home: Home):
    packed = home.put(compressed(chat("packed")), form=".jsonl.zst")
    assert titles(home) == ["packed"]

    with home.house() as house:
        followed = Followed(house)

        def now(*marked: Path) -> list[str | None]:
            followed.told(*marked)
            assert titles(home) == shown_titles(house)
            return shown_titles(house)

        plain = home.put(chat("plain"))
        assert now(plain) == ["plain"]
        plain.unlink()
        assert now(plain) == ["packed"]
        plain.write_bytes(chat("plain again"))
        packed.unlink()
        assert now(packed, plain) == ["plain again"]
        packed.write_bytes(compressed(chat("packed again")))
        plain.unlink()
        assert now(plain) == ["packed again"]


def test_folder_with_an_undecodable_name_is_left_out(home: Home):
    home.put(chat("one"))
    strange = os.fsencode(home.root / "sessions") + b"/\xff\xfe"
    try:
        os.mkdir(strange)
    except OSError:
        pytest.skip("no such names here")
    with open(os.path.join(strange, os.fsencode(home.path(2).name)), "wb") as file:
        file.write(chat("two", 2))

    with home.house() as house:
        assert shown_titles(house) == ["one"]


def test_internal_error_in_one_file_does_not_affect_the_others(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    from codex_checkpoints.service.reading import session_index, session_row

    home.put(chat("one"))
    home.put(chat("two", 2), 2)
    plain = session_row.row_of

    def row_of(file: Rollout, opened: SessionFile) -> Row:
        if opened.session_id == thread(2):
            raise ZeroDivisionError
        return plain(file, opened)

    monkeypatch.setattr(session_index, "row_of", row_of)

    with home.house() as house:
        assert shown_titles(house) == ["one"]
        assert "ZeroDivisionError" in findings(house)["unreadable_source"].message


# --- diagnosis -----------------------------------------------------------------------------------


def test_healthy_home_has_nothing_to_report(home: Home):
    home.put(chat("one"))

    with home.house() as house:
        found = diagnose(house.sessions, house.problems)

    assert found.findings == ()
    assert (found.sessions, found.skipped) == (1, {})
    assert (found.codex_home, found.state_dir) == (str(home.root), str(home.state))


@pytest.mark.parametrize("state", ["state", "none/codex-checkpoints"])
def test_home_without_sessions_or_missing_home_is_reported(home: Home, tmp_path: Path, state: str):
    with home.house() as house:
        assert list(findings(house)) == ["sessions_folder_missing"]
    missing = assembly.assemble(Places(str(tmp_path / "none"), str(tmp_path / state)))
    missing.sessions.refresh()
    assert list(findings(missing)) == ["codex_home_missing"]
    missing.sessions.close()
    assert not (tmp_path / "none").exists()


def test_unused_lines_are_counted_by_reason(home: Home):
    strange = (
        raw(b"not json\n"),
        raw(b"[]\n"),
        raw(b'{"a":"\xff"}\n'),
        record("never_heard_of", {}),
    )
    steps = (turn(user("one")), *strange, blank(), torn(user("two")))
    home.put(rollout(session(thread=thread(1)), *steps))

    with home.house() as house:
        found = diagnose(house.sessions)
        detail = detail_of(house.sessions, thread(1))

    reasons = ("not_json", "not_object", "not_utf8", "torn_tail", "unknown_type")
    assert found.skipped == detail.skipped == dict.fromkeys(reasons, 1)
    assert {each.code for each in found.findings} == set(found.skipped)
    assert all(each.way_out for each in found.findings)


# --- following -----------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


class Followed:
    """A follower and what it says when it is told of paths."""

    def __init__(self, house: Assembly) -> None:
        self.house = house
        self.follower = SessionWatcher(house.sessions)
        self.begun = self.follower.begin()

    def told(self, *paths: Path | str) -> list[Changed]:
        for path in paths:
            self.follower.mark(str(path))
        return self.follower.drain()


@pytest.fixture
def followed(home: Home, shop: Path) -> Generator[Followed]:
    (shop / "a.py").write_text("v1")
    data = rollout(session(thread=thread(1), cwd=str(shop)), turn(user("one"), patch(add="a.py")))
    home.put(data)
    with home.house() as house:
        yield Followed(house)


ROLLOUT = [Changed((thread(1),), "rollout")]
WORKSPACE = [Changed((thread(1),), "workspace")]


def grow(home: Home, *steps: Any, number: int = 1) -> Path:  # noqa: ANN401 - steps
    return go_on(home.path(number), thread(number), *steps)


def test_watcher_updates_checkpoints_and_keeps_them_current(home: Home, followed: Followed):
    assert followed.begun == Changed((thread(1),), "rollout")
    assert home.stored()["task"]["text"] == "one"
    assert followed.told() == []

    path = grow(home, turn(user("two"), name="b"))

    assert followed.told(path) == ROLLOUT
    assert home.stored()["task"]["text"] == "two"
    assert followed.told(path) == []


def test_truncated_replaced_or_rewritten_file_is_read_again(home: Home, followed: Followed):
    data, before = home.path().read_bytes(), home.stored()
    followed.told(grow(home, turn(user("two"), name="b")))
    os.truncate(home.path(), len(data))
    assert followed.told(home.path()) == ROLLOUT
    assert home.stored() == before

    home.path().write_bytes(data.replace(b"a.py", b"longer-name.py"))
    assert followed.told(home.path()) == ROLLOUT
    assert list(home.stored()["artifacts"]) == ["longer-name.py"]

    fresh = home.path().with_suffix(".new")
    fresh.write_bytes(chat("another"))
    os.replace(fresh, home.path())

    assert followed.told(home.path()) == ROLLOUT
    assert (home.stored()["task"]["text"], home.stored()["artifacts"]) == ("another", {})


def test_archived_or_deleted_session_is_reported(home: Home, followed: Followed):
    archived = home.path(archived=True)
    archived.parent.mkdir()
    home.path().rename(archived)

    assert followed.told(home.path(), archived) == ROLLOUT
    assert shown_titles(followed.house) == []
    assert followed.house.sessions.summaries.page(ThreadQuery(archived=True)).items[0].path == str(
        archived
    )
    assert task(followed.house.sessions.show(thread(1))) == "one"

    archived.unlink()
    assert followed.told(archived) == ROLLOUT
    assert followed.house.sessions.summaries.page(ThreadQuery(archived=True)).items == ()


def test_observed_file_is_hashed_again_when_it_changes(home: Home, followed: Followed, shop: Path):
    def now() -> str | None:
        return home.stored()["artifacts"]["a.py"].get("hash")

    first = now()
    assert first == "sha256:" + sha256(b"v1").hexdigest()
    (shop / "a.py").write_text("v2")
    assert followed.told(shop / "a.py") == WORKSPACE
    assert now() == "sha256:" + sha256(b"v2").hexdigest()
    (shop / "a.py").unlink()
    assert followed.told(shop / "a.py") == WORKSPACE
    assert now() is None
    (shop / "a.py").write_text("v1")
    assert followed.told(shop / "a.py") == WORKSPACE
    assert now() == first


def test_unobserved_file_or_equal_content_is_not_a_change(
    home: Home, followed: Followed, shop: Path
):
    before = home.checkpoint().stat()
    (shop / "b.py").write_text("v1")
    (shop / "a.py").write_text("v1")

    assert followed.told(shop / "a.py", shop / "b.py", shop.parent / "c.py") == []
    assert home.checkpoint().stat().st_mtime_ns == before.st_mtime_ns
    assert home.checkpoint().stat().st_ino == before.st_ino


def test_deleted_or_damaged_checkpoint_is_rebuilt(home: Home, followed: Followed):
    good = home.checkpoint().read_bytes()
    other = good.replace(b'"schemaVersion":1', b'"schemaVersion":2')

    for spoilt in (None, b"", b"no json", good[:-20], other):
        home.checkpoint().unlink()
        if spoilt is not None:
            home.checkpoint().write_bytes(spoilt)
        followed.follower.reconcile()
        assert home.checkpoint().read_bytes() == good


@pytest.mark.parametrize("another_process", [True, False])
def test_checkpoint_stored_first_by_another_process_is_still_a_change(
    home: Home, followed: Followed, shop: Path, another_process: bool
):
    (shop / "a.py").write_text("v2")
    with home.house() as other:
        house = other if another_process else followed.house
        assert house.sessions.view(thread(1)).of.changed

    assert followed.told(shop / "a.py") == WORKSPACE


def test_session_noticed_first_by_a_list_is_still_stored(home: Home, followed: Followed):
    path = grow(home, turn(user("two"), name="b"))
    followed.house.sessions.refresh()  # as the request for a list does
    assert home.stored()["task"]["text"] == "one"

    assert followed.told(path) == ROLLOUT
    assert home.stored()["task"]["text"] == "two"
    assert followed.follower.reconcile() == []


def test_change_is_reported_even_if_nothing_can_be_stored(
    followed: Followed, shop: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "fsync", full)
    (shop / "a.py").write_text("v2")

    assert followed.told(shop / "a.py") == WORKSPACE
    assert followed.told(shop / "a.py") == []


def test_many_marks_are_one_check_and_an_error_in_one_session_ends_no_other(
    home: Home, followed: Followed, monkeypatch: pytest.MonkeyPatch
):
    looked: list[str] = []
    plain = followed.house.sessions.projections.keep

    def keep(row: Row, opened: SessionFile) -> StoredCheckpoint:
        looked.append(row.session_id)
        if row.session_id == thread(1):
            raise ZeroDivisionError
        return plain(row, opened)

    monkeypatch.setattr(followed.house.sessions.projections, "keep", keep)
    path = home.put(chat("two", 2), 2)
    grow(home, turn(user("more"), name="b"))

    followed.told(*[path, home.path(), home.path(3)] * 1000)

    assert sorted(looked) == [thread(1), thread(2)]
    assert home.stored(2)["task"]["text"] == "two"


def test_check_without_an_event_takes_visible_files_and_others_in_turn(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    everybody = {thread(number) for number in range(1, 17)}
    for number in range(1, 17):
        home.put(chat("one", number), number)
    with home.house() as house:
        follower = SessionWatcher(house.sessions)
        follower.begin()
        follower.attend(thread(1))
        looks: list[set[str]] = []
        plain = house.sessions.projections.keep

        def keep(row: Row, opened: SessionFile) -> StoredCheckpoint:
            looks[-1].add(row.session_id)
            return plain(row, opened)

        monkeypatch.setattr(house.sessions.projections, "keep", keep)
        for _ in range(5):
            looks.append(set())
            follower.reconcile()

    assert all(thread(1) in look and len(look) == 4 for look in looks)
    assert set().union(*looks) == everybody


def test_temporarily_unreadable_file_is_reported_once_each_way(home: Home, followed: Followed):
    packed = home.put(b"damaged", 2, form=".jsonl.zst")
    assert followed.told(packed) == [Changed((thread(2),), "rollout")]
    assert followed.told(packed) == []
    assert followed.follower.reconcile() == []

    packed.write_bytes(compressed(chat("one", 2)))

    assert followed.told(packed) == [Changed((thread(2),), "rollout")]
    assert home.stored(2)["task"]["text"] == "one"


def test_only_the_newest_sessions_have_their_files_watched(home: Home, tmp_path: Path):
    home.config("followedSessions = 2")
    for number in range(1, 5):
        folder = tmp_path / f"shop{number}"
        folder.mkdir()
        (folder / "a.py").write_text("v1")
        data = rollout(
            session(thread=thread(number), cwd=str(folder)), turn(user("x"), patch(add="a.py"))
        )
        home.put(data.replace(b"2026-11-20T10:00:", b"2026-11-20T10:%02d:" % number), number)

    with home.house() as house:
        followed = Followed(house)
        assert followed.begun.session_ids == (thread(3), thread(4))
        assert followed.follower.folders() == {str(tmp_path / "shop3"), str(tmp_path / "shop4")}
        (tmp_path / "shop1" / "a.py").write_text("v2")
        assert followed.told(tmp_path / "shop1" / "a.py") == []
        # A session that goes on is the newest.
        path = home.path(1)
        data = more(turn(user("go on"), name="z"), thread=thread(1), ordinal=20)
        path.write_bytes(path.read_bytes() + data.replace(b"T10:00:", b"T11:00:"))
        assert followed.told(path) == ROLLOUT
        assert followed.follower.folders() == {str(tmp_path / "shop1"), str(tmp_path / "shop4")}


def test_marks_may_come_from_any_thread(home: Home, followed: Followed):
    path = str(grow(home, turn(user("two"), name="b")))
    threads = [
        threading.Thread(target=lambda: [followed.follower.mark(path) for _ in range(200)])
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert followed.follower.marked.is_set()
    assert followed.follower.drain() == ROLLOUT
    assert not followed.follower.marked.is_set()


# --- following, with the real watcher and real processes -----------------------------------------


def test_session_folder_may_appear_later_vanish_and_return(home: Home):
    with following(home):
        home.put(chat("one"))
        assert eventually(home.stored)["task"]["text"] == "one"
        (home.root / "sessions").rename(home.root / "gone")
        home.checkpoint().unlink()
        (home.root / "gone").rename(home.root / "sessions")
        home.put(chat("two", 2), 2)

        assert eventually(lambda: home.stored(2))["task"]["text"] == "two"
        grow(home, turn(user("one, again"), name="b"))
        eventually(home.stored, lambda it: it and it["task"]["text"] == "one, again")


def test_two_concurrent_watchers_keep_one_whole_checkpoint(home: Home, shop: Path):
    (shop / "a.py").write_text("0")
    first = turn(user("one"), patch(add="a.py"))
    home.put(rollout(session(thread=thread(1), cwd=str(shop)), first))

    def now() -> tuple[str, str] | None:
        it = home.stored()
        return it and (it["task"]["text"], it["artifacts"]["a.py"]["hash"])

    with following(home), following(home):
        for number in range(1, 8):
            (shop / "a.py").write_text(f"{number}")
            grow(home, turn(user(f"task {number}"), name=f"n{number}"))
            digest = "sha256:" + sha256(f"{number}".encode()).hexdigest()
            eventually(now, lambda seen, wanted=(f"task {number}", digest): seen == wanted)
        stored = home.checkpoint().read_bytes()

    assert [path.name for path in home.checkpoint().parent.iterdir()] == ["checkpoint_v1.json"]
    assert data_anew(home) == stored


# --- what must not matter ------------------------------------------------------------------------


def test_deleted_derived_files_are_rebuilt_with_the_same_bytes(home: Home, shop: Path):
    (shop / "a.py").write_text("v1")
    for number in range(1, 4):
        summary = f"{SUMMARY_OF_CODEX} it"
        steps = (user(f"{number}"), patch(add="a.py"), compacted(summary), user("more"))
        home.put(rollout(session(thread=thread(number), cwd=str(shop)), turn(*steps)), number)
    home.remember([fact("known", seq=4)])

    def stored() -> list[bytes]:
        with home.house() as house:
            SessionWatcher(house.sessions).keep_all()
        return [home.checkpoint(number).read_bytes() for number in range(1, 4)]

    first = stored()
    for pattern in ("index.sqlite*", "sessions/*/checkpoint_v1.json"):
        for path in home.state.glob(pattern):
            path.unlink()

    assert stored() == first


def test_no_session_contains_data_of_another(home: Home):
    home.put(rollout(session(thread=thread(1)), turn(user("alpha"), patch(add="alpha.py"))))
    home.put(rollout(session(thread=thread(2)), turn(user("beta"), patch(add="beta.py"))), 2)
    home.remember([fact("alpha.fact", seq=3)])

    with home.house() as house:
        SessionWatcher(house.sessions).keep_all()
        assert b"alpha" not in house.sessions.show(thread(2)).data
        assert "alpha" not in house.sessions.view(thread(2)).text
