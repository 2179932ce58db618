"""Lists by a glance: a row by the two ends of a file, until the session is read whole."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict

import rollouts as r
from codex_checkpoints.assembly import Assembly
from codex_checkpoints.service.doctor import diagnose
from codex_checkpoints.service.reading.session_file import SessionFile
from codex_checkpoints.service.sessions.details import detail_of
from codex_checkpoints.service.sessions.session_watcher import SessionWatcher
from codex_checkpoints.service.sessions.summaries import SessionSummary
from derived_state import compressed
from homes import Home, chat, go_on, thread
from peer import Peer

UNREAD = ("windows", "compactions", "turns", "seq")


def long(
    *last: r.Step,
    number: int = 1,
    form: Any = "paginated",  # noqa: ANN401 - one of the forms
    **head: Any,  # noqa: ANN401 - fields of a head
) -> bytes:
    work = (
        r.turn(
            r.user(f"take the next step {n}"),
            r.shell("ls", "x" * 3000),
            r.tokens(100 + n),
            name=f"{number}-{n}",
        )
        for n in range(40)
    )
    return r.rollout(r.session(form, thread=thread(number), **head), *work, *last)


def rows(house: Assembly) -> dict[str, SessionSummary]:
    house.sessions.refresh()
    return {each.session_id: each for each in house.sessions.summaries.page().items}


FOLDERS = ("/home/ana/other", "/home/ana/shop", "/home/ana")


def add_huge_line(path: Path) -> None:
    """Add a prompt with a hole in it that would take long to read."""
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b'{"timestamp":"2026-11-20T10:00:02.000Z","type":"event_msg","payload":{"m":"')
        file.seek(20 << 30, os.SEEK_CUR)
        file.write(b'"}}\n')
    if os.stat(path).st_blocks * 512 > 1 << 20:
        pytest.skip("files have no holes here")


def row(home: Home, number: int = 1) -> SessionSummary:
    with home.house() as house:
        return rows(house)[thread(number)]


def read(home: Home, number: int = 1) -> SessionSummary:
    with home.house() as house:
        house.sessions.refresh()
        house.sessions.read_all()
        return rows(house)[thread(number)]


def assert_exact(glance: SessionSummary, whole: SessionSummary, *unknown: str) -> None:
    """Check that all is equal but what is not known."""
    told, all_of_it = asdict(glance), asdict(whole)
    for name in (*UNREAD, *unknown):
        assert told.pop(name) is None, name
        assert all_of_it.pop(name) is not None, name
    assert told == all_of_it


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_row_comes_from_the_ends_of_a_file(home: Home, form: str):
    home.put(long(form=form))

    glance = row(home)

    assert (glance.title, glance.task, glance.context_tokens) == (
        "take the next step 0",
        "take the next step 39",
        139,
    )
    assert_exact(glance, read(home))


def test_row_of_a_compressed_file_comes_from_its_ends(home: Home):
    home.put(compressed(long()), form=".jsonl.zst")

    assert_exact(row(home), read(home))


def based(home: Home, *steps: r.Step, end: int = 100) -> None:
    """Put a fork of the long session, with steps of its own."""
    home.put(long(number=1), 1)
    base = r.based_on(thread(1), end, 1)
    home.put(r.rollout(r.session(thread=thread(2), history_base=base), *steps), 2)


def test_fork_is_named_by_its_own_first_prompt(home: Home):
    based(home, r.turn(r.user("Try it the other way"), r.assistant("Yes.")), r.turn(r.user("On")))

    assert row(home, 2).title == "Try it the other way"
    assert read(home, 2).title == "Try it the other way"


def test_fork_without_its_own_prompt_is_named_by_its_source(home: Home):
    based(home)

    assert row(home, 2).title == "take the next step 0"
    assert read(home, 2).title == "take the next step 0"


def test_session_without_its_base_says_that_codex_refuses_it(home: Home):
    based(home, r.turn(r.user("Try it the other way")))
    assert (row(home, 1).refused, row(home, 2).refused) == (None, None)

    home.path(1).unlink()

    assert "earlier part is missing" in str(row(home, 2).refused)
    assert "earlier part is missing" in str(read(home, 2).refused)
    assert "(Codex cannot resume it)" in home.here("sessions").stdout.decode()


def test_invalid_utf8_is_reported_once_the_session_was_read(home: Home):
    turns = r.turn(r.user("Fix it"), r.shell("make", "PLAIN"))
    home.put(r.rollout(r.session("legacy"), turns).replace(b"PLAIN", b"\xff\xfe"))

    assert "not UTF-8" in str(read(home).refused)


def test_reverted_session_keeps_its_first_prompt(home: Home):
    home.put(long())
    base = r.based_on(thread(1), 100, 1)
    home.put(r.rollout(r.session(history_base=base), r.turn(r.user("Other words"))), segment=3)

    assert row(home).title == "take the next step 0"
    assert read(home).title == "take the next step 0"
    assert read(home).task == "Other words — of: take the next step 12"


def test_fork_cut_before_the_first_words_has_its_own(home: Home):
    based(home, r.turn(r.user("mine")), end=1)

    assert row(home, 2).title == "mine"
    assert read(home, 2).title == "mine"


def test_values_removed_by_a_rollback_at_the_end_are_null(home: Home):
    home.put(long(r.rollback(1), form="legacy"))

    assert_exact(row(home), read(home), "task", "cwd")


def moved(by: str) -> tuple[r.Step, ...]:
    """Go on in another folder, as Codex records it."""
    if by == "turn context":
        return (r.turn(r.turn_context("/home/ana/other"), r.user("Go on there"), name="moved"),)
    settings = r.event("thread_settings_applied", thread_settings={"cwd": "/home/ana/other"})
    return (settings,)


@pytest.mark.parametrize("by", ["turn context", "settings"])
@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_session_is_listed_in_its_newest_folder(home: Home, form: str, by: str):
    home.put(long(*moved(by), form=form))

    assert row(home).cwd == "/home/ana/other"
    assert_exact(row(home), read(home))
    found = {folder: home.json("sessions", "--cwd", folder) for folder in FOLDERS}
    assert [folder for folder in FOLDERS if found[folder]] == ["/home/ana/other", "/home/ana"]


def test_fork_is_listed_in_its_own_folder_and_not_its_bases(home: Home):
    home.put(long(*moved("turn context"), number=1), 1)
    base = {"thread_id": thread(1), "end_ordinal_exclusive": 9000, "end_byte_offset": 1}
    home.put(long(number=2, history_base=base, forked_from_id=thread(1)), 2)

    assert row(home, 2).cwd == "/home/ana/shop"
    assert_exact(row(home, 2), read(home, 2), "model")


def test_paths_stay_relative_to_the_folder_of_the_head(home: Home):
    shop = home.user / "shop"
    shop.mkdir()
    (shop / "a.py").write_text("one\n")
    head = r.session(thread=thread(1), cwd=str(shop))
    first = r.turn(r.user("Look"), r.shell("cat a.py", "one\n", reads=["a.py"]))
    home.put(r.rollout(head, first, *moved("turn context")))

    (artifact,) = home.json("show", thread(1))["artifacts"].values()
    assert (artifact["uri"], "hash" in artifact) == ("a.py", True)
    made = home.json("compact", thread(1), "--force")["sessionId"]
    assert home.json("sessions")[0]["cwd"] == "/home/ana/other"
    seeded = home.json("show", made)["artifacts"]["a.py"]
    assert seeded["hash"] == artifact["hash"]


def test_compaction_at_the_end_gives_no_tokens(home: Home):
    home.put(long(r.compacted("so far")))

    assert row(home).context_tokens is None
    assert_exact(row(home), read(home))


def test_damage_at_the_end_is_skipped(home: Home):
    home.put(long(r.raw(b'{"timestamp":"2027-01-01T00:00:00.000Z","type":"event_msg","pay\n')))

    assert_exact(row(home), read(home))


def test_running_turn_is_open(home: Home):
    home.config("contextWindowTokens = 100\n")
    home.put(long(r.complete(), r.started(), r.user("more than that, please")))

    assert row(home).offer is None
    assert_exact(row(home), read(home))


READERS: dict[str, Callable[[Assembly], object]] = {
    "show": lambda house: house.sessions.show(thread(1)),
    "detail": lambda house: detail_of(house.sessions, thread(1)),
    "read": lambda house: house.sessions.read_all(),
    "follow": lambda house: SessionWatcher(house.sessions).begin(),
    "doctor": lambda house: diagnose(house.sessions),
}


def fail(_session: SessionFile) -> bool:
    raise AssertionError("the file was read again")


@pytest.mark.parametrize("reads", READERS.values(), ids=READERS)
def test_full_reading_is_stored_in_the_index(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    reads: Callable[[Assembly], object],
):
    home.put(long())
    with home.house() as house:
        assert rows(house)[thread(1)].turns is None
        reads(house)
        assert rows(house)[thread(1)].turns == 40

    monkeypatch.setattr(SessionFile, "moves_on", fail)
    assert row(home).turns == 40


def test_list_from_the_index_equals_the_first_list(home: Home):
    home.config("contextWindowTokens = 100\n")
    home.put(long())

    assert row(home).offer is not None
    assert row(home) == row(home)


def test_grown_file_is_summarised_again(home: Home):
    path = home.put(long())
    with home.house() as house:
        assert rows(house)[thread(1)].task == "take the next step 39"
        go_on(path, thread(1), r.turn(r.user("one more of the same")))
        now = rows(house)[thread(1)]
    assert (now.task, now.turns) == ("one more of the same", None)


def test_small_file_is_read_whole_at_once(home: Home):
    home.put(chat("hello"))

    assert row(home).turns == 1


def test_list_reads_only_the_ends_of_a_file(home: Home):
    """A hole in the middle would take long to read."""
    path = home.put(long())
    end = path.read_bytes()[-9000:]
    size = 40 << 30
    with path.open("r+b") as file:
        file.truncate(9000)
        file.seek(size)
        file.write(b"\n" + end)
    if os.stat(path).st_blocks * 512 > 1 << 20:
        pytest.skip("files have no holes here")

    assert row(home).task == "take the next step 39"


def test_huge_prompt_and_end_without_a_prompt_are_not_read_whole(home: Home):
    path = home.put(r.rollout(r.session(), r.started()))
    add_huge_line(path)

    glance = row(home)

    assert (glance.title, glance.task, glance.updated_at) == (None, None, None)


def test_row_without_a_time_is_sorted_by_the_time_of_its_file(home: Home):
    old, huge = (
        home.put(chat("old"), 1),
        home.put(r.rollout(r.session(thread=thread(2)), r.started()), 2),
    )
    add_huge_line(huge)
    os.utime(huge, (2e9, 2e9))

    with home.house() as house:
        assert [*rows(house)] == [thread(2), thread(1)]
    assert old.exists()


def test_row_with_a_long_last_record_has_its_first_folder_and_the_time_of_its_file(home: Home):
    path = home.put(r.rollout(r.session(), r.started(), r.turn_context("/home/ana")))
    with path.open("ab") as file:
        file.write(
            b'{"timestamp":"2026-11-20T10:00:02.000Z","type":"event_msg",'
            b'"payload":{"type":"agent_message","message":"%s"}}\n' % (b"x" * (5 << 20))
        )
    os.utime(path, (2e9, 2e9))

    glance, (line,) = row(home), home.here("sessions").stdout.decode().splitlines()
    whole = read(home)

    assert (glance.cwd, glance.updated_at) == (None, None)
    assert (whole.cwd, whole.updated_at) == ("/home/ana", "2026-11-20T10:00:02.000Z")
    for each in glance, whole:
        assert (each.start_folder, each.file_time) == ("/home/ana/shop", "2033-05-18T03:33:20.000Z")
    assert re.match(r" +now +- +shop ", line)


def test_suspect_facts_count_once_the_session_is_read(home: Home):
    home.put(long())
    home.remember([{"revoke": {"kind": "fact", "id": "k"}, "seq": 1, "turnId": None, "at": None}])

    assert row(home).suspect_facts is None
    assert read(home).suspect_facts == 0


def test_sessions_read_prints_the_values_that_the_list_omits(home: Home):
    home.put(long())

    first = json.loads(home.here("sessions", "--json").stdout)
    whole = json.loads(home.here("sessions", "--json", "--read").stdout)

    assert [first[0][name] for name in ("windows", "compactions", "turns", "seq")] == [None] * 4
    assert [whole[0][name] for name in ("windows", "compactions", "turns")] == [1, 0, 40]
    assert first[0].keys() == whole[0].keys()


def test_list_for_people_leaves_unknown_values_blank(home: Home):
    home.put(long())

    printed = home.here("sessions").stdout.decode()

    assert "None" not in printed
    assert "take the next step 0" in printed


@pytest.mark.parametrize("count", [1, 3])
def test_list_for_people_counts_sessions_without_a_message(home: Home, count: int):
    for number in range(2, 2 + count):
        home.put(r.rollout(r.session(thread=thread(number))), number)
    home.put(long())

    lines = home.here("sessions").stdout.decode().splitlines()

    assert len(home.json("sessions")) == 1 + count
    assert len(lines) == 2
    last = "(no message yet)" if count == 1 else "and 3 without a message (--json lists them)"
    assert any(line.endswith(last) for line in lines)


def test_early_request_gets_the_newest_rows_before_all_are_known(home: Home):
    for number in range(1, 801):  # a server looks at 250 files at once
        path, at = home.put(chat(f"Errand {number}", number), number), 1_700_000_000 + number
        os.utime(path, (at, at))
    with Peer(home.root) as peer:
        peer.start()
        early = peer.call("checkpoints/sessions", {"early": True})["items"]
        whole = peer.call("checkpoints/sessions", {})["items"]
        again = peer.call("checkpoints/sessions", {"early": True})["items"]

    newest = {thread(number) for number in range(551, 801)}
    assert newest <= {each["sessionId"] for each in early}
    assert len(early) < len(whole) == len(again) == 800


SOURCES: list[tuple[Any, str, bool]] = [
    ("cli", "cli", False),
    ("vscode", "vscode", False),
    (None, "vscode", False),
    ({"custom": "atlas"}, "atlas", False),
    ("unknown", "unknown", False),
    (7, "unknown", False),
    ({"other": 1}, "unknown", False),
    ("exec", "exec", True),
    ("mcp", "mcp", True),
    ({"internal": "memory_consolidation"}, "memory", True),
    ({"subagent": "memory_consolidation"}, "memory", True),
    ({"subagent": "review"}, "review", True),
    ({"subagent": "compact"}, "compact", True),
    ({"subagent": {"other": "guardian"}}, "guardian", True),
    ({"subagent": {"thread_spawn": {"parent_thread_id": thread(9)}}}, "subagent", True),
    ({"subagent": 3}, "subagent", True),
]


@pytest.mark.parametrize(("source", "word", "background"), SOURCES)
def test_row_names_the_source_of_its_session(
    home: Home, source: object, word: str, background: bool
):
    home.put(long(source=source))

    glance = row(home)

    assert (glance.source, glance.background) == (word, background)
    assert_exact(glance, read(home))


def test_head_without_a_source_belongs_to_a_helper_if_it_names_a_parent(home: Home):
    home.put(long(source=None, parent_thread_id=thread(9)))

    assert (row(home).source, row(home).background) == ("subagent", True)


def test_terminal_lists_peoples_sessions_first_and_the_source_of_others(home: Home):
    for number, source in enumerate(({"subagent": "review"}, "exec", "cli"), 1):
        told = r.turn(r.user(f"Request {number}"))
        home.put(r.rollout(r.session(thread=thread(number), source=source), told), number)

    lines = home.here("sessions").stdout.decode().splitlines()

    assert [line.split("  ")[-1] for line in lines] == [
        "Request 3",
        "Request 1 (review)",
        "Request 2 (exec)",
    ]


def two_named(home: Home) -> None:
    """Put two sessions with the same first request, of which one has a name."""
    for number in (1, 2):
        head = r.session("legacy", thread=thread(number))
        home.put(r.rollout(head, r.turn(r.user("Fix the shop"))), number)
    home.json("rename", thread(2), "The Shop/till")


def test_session_can_be_named_by_its_name(home: Home):
    two_named(home)

    assert home.json("resume", "the shop/till")["sourceSessionId"] == thread(2)


def test_session_can_be_named_by_a_unique_title(home: Home):
    two_named(home)

    assert home.json("resume", "Fix  the shop")["sourceSessionId"] == thread(1)


def test_name_of_several_sessions_is_ambiguous(home: Home):
    two_named(home)
    home.json("rename", thread(1), "the shop/till")

    refused = home.refused("show", "The Shop/till")

    assert (refused["code"], refused["facts"]["candidates"]) == (
        "ambiguous_session",
        [thread(1), thread(2)],
    )


@pytest.mark.parametrize(("form", "said"), [("paginated", True), ("legacy", False)])
def test_name_invisible_to_codex_is_marked_as_ours_alone(home: Home, form: r.Form, said: bool):
    home.put(long(form=form))

    done = home.here("rename", thread(1), "The till")

    assert done.returncode == 0
    assert (b"its own database" in done.stderr) is said
    assert home.here("rename", thread(1), "").stderr == b"", "no name is to be seen"
