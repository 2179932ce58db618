"""Search in a remote: the same hits from every store, of readable sessions alone (TEA-5, TEA-8)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from codex_checkpoints.core.digest.ignored_files import Ignoring
from codex_checkpoints.core.portable.said import words_in
from codex_checkpoints.service.remote.search import RemoteSearch
from codex_checkpoints.storage.remote.contract import HistoryStore, RowQuery, TeamStore
from codex_checkpoints.storage.remote.folder import FolderHistoryStore
from codex_checkpoints.storage.remote.memory import MemoryHistoryStore
from codex_checkpoints.storage.remote.migrations import FIRST
from homes import go_on, thread
from peer import Peer
from planted_secrets import TOKEN, everything
from postgres_server import ADMIN, Team
from rollouts import (
    Form,
    assistant,
    compacted,
    patch,
    rollback,
    rollout,
    session,
    shell,
    turn,
    user,
)
from two_machines import Machines, pushed

Json = dict[str, Any]

Hit = tuple[int | None, str, str]


@pytest.fixture(params=["folder", "memory", "postgres"])
def store(request: pytest.FixtureRequest, machines: Machines) -> HistoryStore:
    """Return each kind of store that this program has."""
    match request.param:
        case "folder":
            made: HistoryStore = FolderHistoryStore(str(machines.folder))
        case "memory":
            made = MemoryHistoryStore()
        case _:
            made = request.getfixturevalue("team").store(ADMIN)
    made.make()
    return made


def found(store: HistoryStore, text: str, *kinds: str, **query: str) -> list[Hit]:
    search = RemoteSearch(text, RowQuery(**query), kinds)
    search.check()
    hits = (hit for each in search.hits(store, Ignoring(())) for hit in each.hits)
    return [(hit.turn, hit.kind, hit.line) for hit in hits]


# --- what is a hit -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paginated", "legacy"])
def test_prompts_answers_commands_and_paths_are_found(
    machines: Machines, store: HistoryStore, form: Form
) -> None:
    machines.there.put(
        rollout(
            session(form, thread=thread(1), cwd=machines.shop),
            turn(
                user("Mend the sesame door."),
                shell("cat cave.py", "the output says sesame", reads=["cave.py"]),
                patch(add="doors/sesame.py", content="sesame = 1\n"),
                assistant("It opens now.\nSay Sesame."),
                name="a",
            ),
            turn(user("Run it."), shell("python doors/sesame.py", "open"), name="b"),
        )
    )
    pushed(machines.there, store)

    assert found(store, "sesame") == [
        (2, "command", "python doors/sesame.py"),
        (1, "assistant", "Say Sesame."),
        (1, "file", "doors/sesame.py"),
        (1, "user", "Mend the sesame door."),
    ]
    assert found(store, "Sesame") == [(1, "assistant", "Say Sesame.")], "a capital: case counts"
    assert found(store, "sesame", "file", "user") == [
        (1, "file", "doors/sesame.py"),
        (1, "user", "Mend the sesame door."),
    ]
    assert found(store, "the sesame do") == [(1, "user", "Mend the sesame door.")]
    assert found(store, "esame") == [], "a word is found from its beginning"
    assert found(store, "output says") == []


def test_hit_has_the_seq_that_a_reader_of_the_session_sees(
    machines: Machines, store: HistoryStore
) -> None:
    machines.write(turn(user("one")), turn(user("sesame"), name="b"))
    pushed(machines.there, store)

    (each,) = RemoteSearch("sesame").hits(store, Ignoring(()))

    (local,) = machines.there.json("search", "sesame")
    (hit,) = each.hits
    assert {
        "turn": hit.turn, "turnId": hit.turn_id, "seq": hit.seq, "kind": hit.kind,
        "line": hit.line, "at": hit.at,
    }.items() <= local.items()  # fmt: skip


def test_search_matches_parts_of_words_from_a_capital_without_case(
    machines: Machines, store: HistoryStore
) -> None:
    machines.chat("set maxTokensPerTurn and GRÖSSE to it_is_large")
    pushed(machines.there, store)

    for text in ("Tokens", "TokensPer", "PerTurn", "GRÖSSE", "large", "is_large", "maxtok"):
        assert found(store, text), text
    assert found(store, "okens") == []
    assert "tokensperturn" in words_in("maxTokensPerTurn")


def test_grown_or_reverted_session_is_found_in_its_current_form(
    machines: Machines, store: HistoryStore
) -> None:
    path = machines.chat("one sesame")
    first = path.read_bytes()
    pushed(machines.there, store)
    go_on(path, thread(1), turn(user("two sesame"), name="x"))
    pushed(machines.there, store)
    assert [hit[::2] for hit in found(store, "sesame", "user")] == [
        (2, "two sesame"), (1, "one sesame"),
    ]  # fmt: skip

    go_on(path, thread(1), rollback(1))
    pushed(machines.there, store)
    assert [hit[0] for hit in found(store, "sesame", "user")] == [None, 1], "its turn is gone"

    path.write_bytes(first)
    pushed(machines.there, store)
    assert [hit[::2] for hit in found(store, "sesame", "user")] == [(1, "one sesame")]


def test_prompt_repeated_by_a_compaction_is_found_once(
    machines: Machines, store: HistoryStore
) -> None:
    machines.write(turn(user("sesame")), compacted("a summary"), turn(user("go on"), name="b"))
    pushed(machines.there, store)

    assert found(store, "sesame") == [(1, "user", "sesame")]


def test_long_prompt_is_found_by_every_line(machines: Machines, store: HistoryStore) -> None:
    lines = [f"number{line} " + "word " * 20 for line in range(2_000)]
    machines.chat("\n".join(lines))
    pushed(machines.there, store)

    for number in (0, 700, 1_999):
        assert [hit[2][:12] for hit in found(store, f"number{number} word", "user")] == [
            f"number{number} word"[:12]
        ]


def test_session_is_found_until_it_is_deleted(machines: Machines, store: HistoryStore) -> None:
    machines.chat("sesame")
    pushed(machines.there, store)
    assert found(store, "sesame", "user", cwd=machines.shop)
    assert found(store, "sesame", "user", cwd="/elsewhere") == []
    assert found(store, "sesame", "user", owner="nobody") == []

    store.delete(thread(1))

    assert found(store, "sesame") == []


# --- who finds it --------------------------------------------------------------------------------


def push_as(team: Team, machines: Machines, login: str, its: str | None) -> None:
    pushed(machines.there, team.store(login), team=its, owner=login)


def test_member_finds_shared_sessions_and_never_a_private_one(
    machines: Machines, team: Team
) -> None:
    ana, ben, eve = team.join("ana", "shop"), team.join("ben", "shop"), team.join("eve", "web")
    other = team.join("zoe", "shop", org="elsewhere")
    machines.chat("sesame")

    def finders() -> set[str]:
        logins = (ana, ben, eve, other)
        return {each for each in logins if found(team.store(each), "sesame", "user")}

    push_as(team, machines, ana, None)
    assert finders() == {ana}
    push_as(team, machines, ana, "shop")
    assert finders() == {ana, ben}
    push_as(team, machines, ana, None)
    assert finders() == {ana}, "it was taken back"


def test_member_reads_texts_of_others_only_through_the_search(
    machines: Machines, team: Team
) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    eve = team.join("eve", role="auditor")
    machines.chat("sesame")
    push_as(team, machines, ana, "shop")

    count = "select count(*) from codex_checkpoints.said"
    assert team.sql(ana).run(count)[0][0] > 0
    assert team.sql(ben).run(count) == [[0]]
    for statement in (count, "select * from codex_checkpoints.search('a', 0, 9)"):
        with pytest.raises(Exception, match="42501"):
            team.sql(eve).run(statement)


def test_deleted_and_removed_lines_leave_the_index(machines: Machines, team: Team) -> None:
    ana, boss = team.join("ana"), team.join("boss", role="admin")
    count: Callable[[], int] = lambda: team.sql(ADMIN).run(  # noqa: E731
        "select count(*) from codex_checkpoints.said"
    )[0][0]
    machines.chat("sesame")
    push_as(team, machines, ana, None)
    assert count() > 0
    team.sql(ADMIN).run(
        "update codex_checkpoints.session set pushed_at = now() - interval '8 days'"
    )
    assert team.store(boss).retain(7) == 1
    assert (count(), found(team.store(ana), "sesame")) == (0, [])

    push_as(team, machines, ana, None)
    assert found(team.store(ana), "sesame", "user")
    # As a client does that does not know the index.
    team.sql(ana).run("delete from codex_checkpoints.rollout")
    assert count() == 0


def test_no_planted_secret_is_in_the_index(machines: Machines, team: Team) -> None:
    ana = team.join("ana")
    for number, form in enumerate(("paginated", "legacy"), 1):
        data = everything(TOKEN, form, thread=thread(number), cwd=f"{machines.shop}/{TOKEN}")
        machines.there.put(data, number)
        pushed(machines.there, team.store(ana), owner=ana, number=number)

    rows = team.sql(ADMIN).run("select text, words::text from codex_checkpoints.said")

    assert len(rows) > 10
    hidden = TOKEN.rpartition("_")[2].lower()
    assert hidden not in json.dumps(rows).lower()
    assert "gaaaa" not in json.dumps(rows).lower()


def test_store_of_an_older_version_is_read_pushed_to_and_then_migrated(
    machines: Machines, database: Team
) -> None:
    admin = database.admin()
    admin.execute_simple(f"begin;{FIRST};commit")
    admin.close()
    ana = database.join("ana")
    machines.chat("sesame")
    store = database.store(ana)
    store.make()
    pushed(machines.there, store, owner=ana)
    assert [each.row.session_id for each in store.rows().rows] == [thread(1)]
    with pytest.raises(Exception, match="without an index"):
        found(store, "sesame")

    database.store(ADMIN).make()

    assert found(database.store(ana), "sesame") == []
    pushed(machines.there, database.store(ana), owner=ana)
    assert found(database.store(ana), "sesame", "user") == [(1, "user", "sesame")]


def test_only_new_texts_are_sent(machines: Machines, team: Team) -> None:
    ana = team.join("ana")
    path = machines.chat(*(f"sesame {number}" for number in range(20)))
    push_as(team, machines, ana, None)
    query = "select xmin::text from codex_checkpoints.said order by number"
    before = team.sql(ADMIN).run(query)
    go_on(path, thread(1), turn(user("sesame again"), name="x"))

    push_as(team, machines, ana, None)

    after = team.sql(ADMIN).run(query)
    assert after[: len(before)] == before
    assert len(after) > len(before)


# --- the command and the method ------------------------------------------------------------------


def test_command_groups_hits_and_its_json_has_the_owner(machines: Machines) -> None:
    machines.chat("mend the sesame door")
    machines.push()

    (hit,) = [
        each
        for each in machines.here.json("search", "sesame", "--remote")
        if each["kind"] == "user"
    ]
    assert {
        "sessionId": thread(1), "title": "mend the sesame door", "cwd": machines.shop, "turn": 1,
        "line": "mend the sesame door",
    }.items() <= hit.items()  # fmt: skip
    assert hit.keys() == {
        "sessionId", "title", "cwd", "updatedAt", "turn", "turnId", "seq", "kind", "line", "at",
        "owner",
    }  # fmt: skip
    head, *lines = machines.here.run("search", "sesame", "--remote").stdout.decode().splitlines()
    assert "@there" in head
    assert f"t1 #{hit['seq']}  user  mend the sesame door" in "\n".join(lines)
    assert len(machines.here.json("search", "sesame", "--remote", "--limit", "1")) == 1
    assert machines.here.json("search", "nothing", "--remote") == []
    for words in (("==>",), ("x", "--kind", "output")):
        assert machines.here.refused("search", *words, "--remote")["code"] == "invalid_payload"
    assert machines.here.here("search", "x", "--remote", "--archived").returncode == 2


def test_editor_searches_the_remote(machines: Machines) -> None:
    machines.chat("mend the sesame door")
    machines.push()
    with Peer(machines.here.root, env=machines.here.environment()) as peer:
        peer.start()
        asked: Json = {"text": "sesame", "kinds": ["user"]}
        answer = peer.call("checkpoints/searchRemote", asked)

    (item,) = answer["items"]
    assert (item["session"]["sessionId"], answer["more"]) == (thread(1), False)
    assert [hit["line"] for hit in item["hits"]] == ["mend the sesame door"]


def test_stores_of_teams_have_an_index(team: Team) -> None:
    assert isinstance(team.store(ADMIN), TeamStore)
