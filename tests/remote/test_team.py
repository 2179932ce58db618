"""A team on a PostgreSQL server, by the command line of two people."""

from pathlib import Path

import pytest

from codex_checkpoints.storage.remote.contract import Segment
from codex_checkpoints.storage.remote.packing import unpacked
from homes import Home, thread
from planted_secrets import TOKEN, every_form, everything, planted
from postgres_server import ADMIN, Team
from two_machines import Machines


@pytest.fixture
def people(team: Team, tmp_path: Path) -> Machines:
    """Ana there and Ben here, both of the team `shop`."""
    logins = team.join("ana", "shop"), team.join("ben", "shop", "web")
    ana, ben = (team.server.url(login, team.name) for login in logins)
    return Machines(tmp_path, (ana, ben))


def test_session_of_one_person_is_pulled_by_a_team_member(people: Machines) -> None:
    people.chat("Fix the login.", "And the logout.")
    assert people.push(1, "--team", "shop")["state"] == "pushed"
    assert people.push(1, "--team", "shop")["state"] == "unchanged"

    (listed,) = people.listed()
    assert (listed["team"], listed["owner"][:4]) == ("shop", "ana_")
    pulled = people.pull()
    assert pulled["sourceSessionId"] == thread(1)
    texts = [str(each) for each in people.branch(pulled["sessionId"])]
    assert any("And the logout." in each for each in texts)


def test_push_is_private_unless_a_team_is_named(people: Machines) -> None:
    people.chat("Fix the login.")
    people.push()
    assert people.listed() == []

    people.push(1, "--team", "shop")
    assert len(people.listed()) == 1
    people.push(1, "--private")
    assert people.listed() == []
    refused = people.here.refused("pull", thread(1))
    assert refused["code"] == "unknown_session"


def test_private_push_adds_no_line_that_the_former_team_may_read(
    people: Machines, team: Team
) -> None:
    people.chat("Fix the login.")
    people.push(1, "--team", "shop")
    for table in ("segment", "said"):
        team.sql(ADMIN).run(
            f"alter table codex_checkpoints.{table}"
            " add constraint only_private check (team is null) not valid"
        )

    people.chat("Fix the login.", "And a secret plan.")
    assert people.push(1, "--private")["state"] == "pushed"
    assert people.listed() == []


def test_push_to_a_team_of_others_is_refused(people: Machines) -> None:
    people.chat("Fix the login.")

    refused = people.there.refused("push", thread(1), "--yes", "--team", "web")

    assert refused["code"] == "remote_refused"
    assert people.listed() == []


def test_preview_names_the_teams_of_the_login(people: Machines) -> None:
    people.chat("Fix the login.")

    shown = people.there.json("push", thread(1), "--dry-run")

    assert shown["teams"] == ["shop"]


def test_no_secret_reaches_any_table(people: Machines, team: Team) -> None:
    people.there.put(everything(thread=thread(1), cwd=people.shop), 1)
    people.there.put(every_form(thread=thread(2), cwd=people.shop), 2)
    for number in (1, 2):
        people.push(number, "--team", "shop", "--allow-redacted")

    admin = team.sql(ADMIN)
    tables = [name for (name,) in admin.run(_TABLES)]
    assert {"session", "rollout", "segment", "said", "event", "member"} <= {*tables}
    stored = [str(admin.run(f"select * from codex_checkpoints.{each}")) for each in tables]
    records = admin.run("select records from codex_checkpoints.session")
    bodies = admin.run('select start, "end", before, after, body from codex_checkpoints.segment')
    stored += [bytes(each).decode() for (each,) in records]
    stored += [unpacked(Segment(*each)).decode() for each in bodies]
    wanted = {*planted(), TOKEN, "gAAAA", "encrypted_content"}
    assert [each for each in sorted(wanted) if any(each in text for text in stored)] == []


_TABLES = """
select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where nspname = 'codex_checkpoints' and relkind in ('r', 'p') and not relispartition
"""


def test_audit_and_retention_need_the_right_role(people: Machines, team: Team) -> None:
    people.chat("Fix the login.")
    people.push(1, "--team", "shop")
    people.pull()
    for words in (("audit",), ("retain", "--days", "1", "--yes")):
        assert people.there.refused("remote", *words)["code"] == "remote_refused"

    boss = team.join("boss", role="admin")
    people.here.json("remote", "set", team.server.url(boss, team.name), "--yes")
    kinds = [each["kind"] for each in people.here.json("remote", "audit")["items"]]
    assert kinds == ["pulled", "pushed"]
    assert people.here.json("remote", "retain", "--days", "1", "--yes")["sessions"] == 0


def test_impossible_retention_is_wrong_usage_before_anybody_is_asked(tmp_path: Path) -> None:
    done = Home(tmp_path).run("remote", "retain", "--days", "0")

    assert (done.returncode, b"--days must be 1 or more" in done.stderr) == (2, True)


def test_remote_in_a_folder_has_no_teams(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.chat("Fix the login.")

    for words in (("push", thread(1), "--yes", "--team", "shop"), ("remote", "audit")):
        refused = machines.there.refused(*words)
        assert refused["code"] == "remote_refused"
        assert "docs/team.md" in str(refused)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("postgresql://ana:secret@db.example.com/codex", "leave the password out"),
        ("postgresql://db.example.com/codex", "postgresql://USER@HOST/DATABASE"),
        ("postgresql://ana@db.example.com/codex?sslmode=disable", "sslmode"),
        ("postgresql://ana@db.example.com:x/codex", "port"),
        ("https://example.com/codex", "https"),
        ("postgresql:/ana:secret@db.example.com/codex", "two slashes"),
        ("postgresql:ana:secret@db.example.com/codex", "two slashes"),
        ("postgres//ana:secret@db.example.com/codex", "two slashes"),
        (" postgresql:/ana:secret@db.example.com/codex", "two slashes"),
        ("ana:secret@db.example.com/codex", "two slashes"),
    ],
)
def test_invalid_address_is_refused_without_repeating_its_password(
    tmp_path: Path, place: str, says: str
) -> None:
    refused = Home(tmp_path).refused("remote", "set", place, "--yes")

    assert (refused["code"], says in refused["message"]) == ("invalid_payload", True)
    assert "secret" not in str(refused)


def test_local_commands_contact_no_server(people: Machines, team: Team) -> None:
    people.chat("Fix the login.")
    team.server.stop()
    try:
        assert [each["sessionId"] for each in people.there.json("sessions")] == [thread(1)]
        people.there.json("show", thread(1))
        refused = people.there.refused("sessions", "--remote")
    finally:
        team.server.start()

    assert refused["code"] == "remote_unreachable"
    assert "127.0.0.1" in refused["message"]
    assert "disk" not in str(refused)
