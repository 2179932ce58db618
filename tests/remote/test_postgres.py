"""Access on a PostgreSQL server, and interrupted pushes to it."""

import hashlib
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import evolve
from pg8000.exceptions import DatabaseError
from pg8000.native import Connection

from codex_checkpoints.storage.remote.contract import (
    NO_PREFIX,
    AppendResult,
    Elsewhere,
    Head,
    RemoteDamaged,
    RemoteError,
    RemoteNewer,
    RemoteRefused,
    RemoteUnreachable,
    SessionRow,
    StoredRow,
)
from codex_checkpoints.storage.remote.postgres import PostgresHistoryStore
from homes import WAIT
from postgres_server import ADMIN, Team, cutting
from two_machines import segments

SESSION = "01a1f865-0000-7000-8000-000000000001"
TABLES = ("session", "rollout", "segment")


def text(lines: int, word: str = "y") -> bytes:
    return b"".join(b'{"line":%d,"x":"%s"}\n' % (n, word.encode() * (n % 90)) for n in range(lines))


def head_of(data: bytes, generation: int = 1) -> Head:
    return Head(generation, len(data), hashlib.sha256(data).hexdigest())


def row_of(
    data: bytes, team: str | None = None, session: str = SESSION, at: str = ""
) -> SessionRow:
    head = head_of(data)
    ends = head.generation, head.size, head.prefix, data.count(b"\n")
    return SessionRow(session, *ends, "whoever", "laptop", "m1", updated_at=at, team=team)


def send(store: PostgresHistoryStore, data: bytes, most: int = 700, session: str = SESSION) -> None:
    """Append what a store lacks, as a pusher does."""
    while (end := (store.head(session) or Head(1, 0, NO_PREFIX))).size < len(data):
        for segment in segments(data, end.size, most):
            answer = store.append(session, 1, segment)
            if isinstance(answer, Elsewhere):
                break


def push(store: PostgresHistoryStore, data: bytes, team: str | None = None) -> SessionRow:
    send(store, data)
    row = row_of(data, team)
    store.put(row, b"records")
    return row


def read(store: PostgresHistoryStore, data: bytes) -> bytes:
    return b"".join(store.read(SESSION, head_of(data)))


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as error:
        work()
    return error.value.args[0]["C"]


# --- who sees what -------------------------------------------------------------------------------


def test_session_is_private_unless_shared_with_a_team(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    data = text(50)
    push(team.store(ana), data)

    store = team.store(ben)
    assert store.rows().rows == ()
    assert store.row(SESSION) is None
    assert store.head(SESSION) is None
    with pytest.raises(RemoteDamaged):
        read(store, data)
    assert read(team.store(ana), data) == data
    plain = team.sql(ben)
    assert [plain.run(f"select count(*) from codex_checkpoints.{each}") for each in TABLES] == [
        [[0]]
    ] * 3


def test_only_the_team_reads_a_session_shared_with_it(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop", "web")
    others = [team.join("carl", "web"), team.join("dora", "shop", org="other")]
    data = text(50)
    row = push(team.store(ana), data, team="shop")

    store = team.store(ben)
    (listed,) = store.rows().rows
    assert listed.row == evolve(row, owner=ana)
    assert store.records(SESSION, listed.version) == b"records"
    assert read(store, data) == data
    for other in others:
        assert team.store(other).rows().rows == ()
        assert team.sql(other).run("select count(*) from codex_checkpoints.segment") == [[0]]


def test_session_taken_from_its_team_is_private_again(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    data = text(50)
    row = push(team.store(ana), data, team="shop")
    team.store(ana).put(evolve(row, team=None, revision=1), b"")

    assert team.store(ben).rows().rows == ()
    assert team.sql(ben).run("select count(*) from codex_checkpoints.segment") == [[0]]


def test_two_people_may_push_a_session_with_the_same_id(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    push(team.store(ana), text(50, "a"), team="shop")
    push(team.store(ben), text(40, "b"), team="shop")

    assert read(team.store(ben), text(40, "b")) == text(40, "b")
    found = team.store(ana).row(SESSION)
    assert found is not None
    assert found.row.owner == ana
    assert {each.row.owner for each in team.store(ana).rows().rows} == {ana, ben}


@pytest.mark.parametrize("name", ["../../evil", "\x1b[2J", SESSION[:-1] + "2"])
def test_row_with_another_id_than_its_session_is_unreadable(team: Team, name: str) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    push(team.store(ana), text(9), team="shop")
    team.sql(ana).run(
        "update codex_checkpoints.session"
        " set row = jsonb_set(row::jsonb, '{sessionId}', to_jsonb(:name::text))::text",
        name=name,
    )

    page = team.store(ben).rows()
    assert (page.rows, page.unreadable) == ((), 1)
    assert team.store(ben).row(SESSION) is None


def test_plain_sql_of_a_member_changes_nothing_of_others(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    push(team.store(ana), text(50), team="shop")
    plain = team.sql(ben)

    for table in TABLES:
        plain.run(f"update codex_checkpoints.{table} set team = 'shop'")
        assert plain.row_count == 0
        plain.run(f"delete from codex_checkpoints.{table}")
        assert plain.row_count == 0
    with pytest.raises(RemoteRefused, match=f"belongs to {ana}"):
        team.store(ben).delete(SESSION)
    assert read(team.store(ana), text(50)) == text(50)


@pytest.mark.parametrize(
    ("owner", "org", "group"),
    [("{ana}", "default", None), ("{ben}", "other", None), ("{ben}", "default", "board")],
)
def test_plain_sql_of_a_member_writes_only_as_itself(
    team: Team, owner: str, org: str, group: str | None
) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    plain = team.sql(ben)
    query = (
        "insert into codex_checkpoints.rollout (org, owner, session_id, generation, team, prefix)"
        " values (:org, :owner, 's', 1, :team, '')"
    )
    its = {"org": org, "owner": owner.format(ana=ana, ben=ben), "team": group}
    assert refused(lambda: plain.run(query, **its)) == "42501"


@pytest.mark.parametrize(
    "statement",
    [
        "update codex_checkpoints.member set teams = '{board}'",
        "insert into codex_checkpoints.member values ('eve', 'default', '{}')",
        "select * from codex_checkpoints.event",
        "delete from codex_checkpoints.event",
        "insert into codex_checkpoints.event (kind, owner, session_id) values ('x', 'x', 'x')",
        "select codex_checkpoints.retain(1)",
        "set session authorization administrator",
        "set role codex_checkpoints_owner",
        "alter table codex_checkpoints.session disable row level security",
        "create or replace function codex_checkpoints.my_org() returns text return null",
    ],
)
def test_plain_sql_cannot_impersonate_another_member(team: Team, statement: str) -> None:
    plain = team.sql(team.join("ben", "shop"))

    assert refused(lambda: plain.run(statement)) == "42501"


def test_audit_records_who_pushed_pulled_and_deleted(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop")
    eve = team.join("eve", role="auditor")
    push(team.store(ana), text(50), team="shop")
    listed = team.store(ben).row(SESSION)
    assert listed is not None
    team.store(ben).records(SESSION, listed.version)
    team.store(ben).note_pull(listed.row)
    assert team.store(ana).delete(SESSION)

    plain = team.sql(eve)
    found = plain.run("select login, kind, owner from codex_checkpoints.event order by number")
    assert found == [[ana, "pushed", ana], [ben, "pulled", ana], [ana, "deleted", ana]]
    assert refused(lambda: plain.run("delete from codex_checkpoints.event")) == "42501"
    assert plain.run("select * from codex_checkpoints.session") == []
    for table in ("rollout", "segment"):
        assert refused(lambda: plain.run(f"select * from codex_checkpoints.{table}")) == "42501"  # noqa: B023


def test_pull_event_names_only_readable_sessions(team: Team) -> None:
    ana, ben = team.join("ana", "shop"), team.join("ben", "web")
    push(team.store(ana), text(50), team="shop")

    team.sql(ben).run(
        "select codex_checkpoints.note_pull(:ana, :session)", ana=ana, session=SESSION
    )

    kinds = team.sql(ADMIN).run("select kind from codex_checkpoints.event")
    assert kinds == [["pushed"]]


def test_retention_removes_lines_and_keeps_rows(team: Team) -> None:
    ana, boss = team.join("ana"), team.join("boss", role="admin")
    data = text(50)
    row = push(team.store(ana), data)
    team.sql(ADMIN).run(
        "update codex_checkpoints.session set pushed_at = now() - interval '8 days'"
    )

    assert team.sql(boss).run("select codex_checkpoints.retain(9)") == [[0]]
    assert team.sql(boss).run("select codex_checkpoints.retain(7)") == [[1]]

    store = team.store(ana)
    assert [each.row for each in store.rows().rows] == [evolve(row, owner=ana)]
    with pytest.raises(RemoteRefused, match="removed"):
        read(store, data)
    send(store, data)
    store.put(evolve(row, revision=1), b"")
    assert read(store, data) == data


# --- the store -----------------------------------------------------------------------------------


def test_pages_hold_each_row_once_newest_first(team: Team) -> None:
    ana, ben = team.join("ana", "shop", "web"), team.join("ben", "shop", "web")
    for number in range(23):
        store, group = team.store((ana, ben)[number % 2]), ("shop", "web", None)[number % 3]
        session = f"{SESSION[:-2]}{number:02}"
        store.put(row_of(b"", group, session, f"2026-11-{number % 5 + 10}"), b"")

    whole = team.store(ana).rows().rows
    visible = [n for n in range(23) if n % 2 == 0 or n % 3 < 2]
    assert len(whole) == len(visible)
    assert [each.row.updated_at for each in whole] == sorted(
        (each.row.updated_at or "" for each in whole), reverse=True
    )
    paged: list[StoredRow] = []
    cursor = None
    for _ in range(9):
        page = team.store(ana).rows(4, cursor)
        paged += page.rows
        if (cursor := page.next_cursor) is None:
            break
    assert paged == [*whole]


def test_first_page_and_lineage_read_few_of_many_rows(team: Team) -> None:
    """A lineage is in the records beside the row of its session (TEA-7)."""
    ana, ben = team.join("ana", "shop"), team.join("ben", "shop", "web")
    team.store(ana).put(row_of(b"", "shop"), b"records")
    with team.admin() as admin:
        admin.run(_MANY, ana=ana, first=SESSION)
        admin.run("analyze")
    store, counted = team.store(ben), team.sql(ADMIN)
    store.rows(1)

    for work in (lambda: store.rows(20), lambda: store.row("s1999"), lambda: _lineage(store)):
        before = _read_rows(counted)
        assert work()
        store.close()  # a server's process adds its counts when it ends
        assert 0 < _read_rows(counted, before) - before < 200


def _lineage(store: PostgresHistoryStore) -> bytes:
    found = store.row("s1999")
    assert found is not None
    return store.records("s1999", found.version)


def _read_rows(admin: Connection, before: int = -1) -> int:
    """Return how many rows of sessions were read, as soon as there are more than before."""
    count, until = before, time.monotonic() + WAIT
    while count <= before and time.monotonic() < until:
        ((count,),) = admin.run(_READ)
        time.sleep(0.05)
    return count


_READ = """
select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint from pg_stat_all_tables
where schemaname = 'codex_checkpoints' and relname like 'session%'
"""
_MANY = """
insert into codex_checkpoints.session
    (org, owner, session_id, team, generation, size, revision, updated_at, row, records)
select org, :ana, 's' || n, case when n % 3 = 1 then 'shop' end, 1, 0, 0,
    to_char(timestamp '2026-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS'),
    replace(row, :first, 's' || n), records
from codex_checkpoints.session, generate_series(1, 6000) as n
"""


def test_one_of_several_concurrent_creators_makes_the_store(database: Team) -> None:
    stores = [database.store(ADMIN) for _ in range(3)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(PostgresHistoryStore.make, stores))

    assert database.store(ADMIN).is_made()
    plain = database.sql(ADMIN)
    assert plain.run("select count(*) from codex_checkpoints.schema_version") == [[1]]


def test_non_member_is_told_so(team: Team) -> None:
    login = f"guest_{team.name}"
    with team.admin() as admin:
        admin.run(f"create role {login} login")

    with pytest.raises(RemoteRefused, match="is not a member"):
        team.store(login).is_made()
    with pytest.raises(RemoteRefused):
        team.store(login).rows()


def test_store_of_a_newer_version_is_not_touched(team: Team) -> None:
    team.sql(ADMIN).run("update codex_checkpoints.schema_version set major = 2")

    with pytest.raises(RemoteNewer):
        team.store(ADMIN).is_made()


@pytest.mark.parametrize("sizes", [(700, 1_333), (97, 4_000, 512)])
def test_pushers_with_other_segments_give_the_same_bytes(
    team: Team, sizes: tuple[int, ...]
) -> None:
    ana, data = team.join("ana"), text(900)

    def send_as(most: int) -> None:
        send(team.store(ana), data, most)

    with ThreadPoolExecutor() as pool:
        list(pool.map(send_as, sizes))

    assert team.store(ana).head(SESSION) == head_of(data)
    assert read(team.store(ana), data) == data


def test_push_cut_off_anywhere_resumes(team: Team) -> None:
    ana, data = team.join("ana"), text(300)
    store = team.store(ana)
    for number in range(200):
        with cutting(team.server.port, 400 + number * 61) as port:
            url = f"postgresql://{ana}@127.0.0.1:{port}/{team.name}"
            cut = PostgresHistoryStore(url, {})
            with suppress(RemoteError):
                send(cut, data, 2_000 + number)
            cut.close()
        if number % 20 == 19:
            head = store.head(SESSION) or Head(1, 0, NO_PREFIX)
            assert head == head_of(data[: head.size])
            if head.size == len(data):
                store.delete(SESSION)
    send(store, data)

    assert read(store, data) == data


def test_stopped_server_is_reported_and_found_again(team: Team) -> None:
    ana = team.join("ana")
    store, data = team.store(ana), text(50)
    send(store, data[:2_000])
    team.server.stop()
    with pytest.raises(RemoteUnreachable, match=r"PostgreSQL server at 127\.0\.0\.1"):
        store.head(SESSION)
    with pytest.raises(RemoteUnreachable):
        store.head(SESSION)
    team.server.start()

    send(store, data)
    assert read(store, data) == data


def test_remote_connection_is_encrypted_and_its_certificate_checked(
    team: Team, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("there is no openssl here")
    team.server.use_certificate(certificate, key)
    ana = team.join("ana")
    url = f"postgresql://{ana}@localhost:{team.server.port}/{team.name}?sslmode=verify-full"

    with pytest.raises(RemoteUnreachable, match="certificate"):
        PostgresHistoryStore(url, {}).is_made()
    store = PostgresHistoryStore(f"{url}&sslrootcert={certificate}", {})
    assert store.is_made()
    store.close()


def test_errors_hold_no_parameters_of_a_query(team: Team) -> None:
    secret = "a sentence that somebody typed"
    ana = team.join("ana")
    store = team.store(ana)

    with pytest.raises(RemoteRefused) as error:
        store.put(evolve(row_of(b"", "board"), title=secret), secret.encode())

    assert secret not in str(error.value)


def test_answers_to_an_append_match_the_contract(team: Team) -> None:
    (segment,) = segments(text(9), 0, 1 << 20)
    store = team.store(team.join("ana"))

    assert store.append(SESSION, 1, segment) is AppendResult.TAKEN
    with pytest.raises(RemoteRefused):
        store.append("../x", 1, segment)
