"""Secrets on command lines that set, send or configure them (TRU-10).

`commands_with_secrets.txt` has a form a line, in which `•` stands for the secret, and
`harmless_commands.txt` what must stay whole; `\n` in them is a line break.
"""

import json
import shlex
from pathlib import Path

import pytest

from codex_checkpoints.core.checkpoint.redaction import MARK, find_secret, redact
from codex_checkpoints.core.checkpoint.secret_commands import COMMANDS

FOLDER = Path(__file__).parent


def lines(name: str) -> list[str]:
    found = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    assert len(found) == len(set(found))
    return found


FORMS = lines("commands_with_secrets.txt")
HARMLESS = lines("harmless_commands.txt")
VALUES = ["hunter2x", "S3cr3t!pw", "9f8e7d6c5b4a39281706", "Xk9-Tq_72ab.Zz"]
"""As people choose them, and as programs make them."""


def broken(text: str) -> str:
    """Return a form as it stands in a file of several lines."""
    return text.replace("\\n", "\n") if text.startswith(("- name", "machine")) else text


def test_example_tables_have_enough_forms() -> None:
    assert len(FORMS) >= 120
    assert len(HARMLESS) >= 150


@pytest.mark.parametrize("form", FORMS)
def test_secret_in_a_command_is_redacted(form: str) -> None:
    for secret in VALUES:
        text = broken(form.replace("•", secret))

        once = redact(text)

        assert secret not in once
        assert redact(once) == once
        assert find_secret(text) is not None


@pytest.mark.parametrize("form", FORMS[::3])
def test_secret_in_a_command_inside_a_script_or_json_is_redacted(form: str) -> None:
    secret = VALUES[0]
    text = broken(form.replace("•", secret))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')

    for around in (f"cd /srv && {text}", f"$ {text}\n", f'{{"cmd":"{escaped}"}}', f"`{text}`"):
        assert secret not in redact(around)


LISTED = [
    each for each in FORMS if each.split()[0] in COMMANDS and not set(each) & set("|<>$;&`{}")
]


@pytest.mark.parametrize("form", LISTED)
def test_secret_in_a_command_given_as_a_list_is_redacted(form: str) -> None:
    words = shlex.split(form.replace("•", VALUES[0]))

    for listed in (json.dumps(words), json.dumps({"command": words}, separators=(",", ":"))):
        assert VALUES[0] not in redact(listed)
        assert redact(redact(listed)) == redact(listed)


@pytest.mark.parametrize(
    "form",
    [
        "mysql -u root -p• shop",
        "mysql --user root --password • shop",
        "docker login -u me -p • reg.io",
        "docker login --password=• -u me",
        "az login -u me -p •",
        "redis-cli -a • ping",
        "sshpass -p • ssh a@b",
        "PGPASSWORD=• psql shop",
        "psql postgres://ana:•@db/shop",
        "psql -c \"ALTER USER ana WITH PASSWORD '•'\"",
        "aws rds modify-db-instance --master-user-password •",
        "gcloud sql users set-password root --password=•",
        "kubectl create secret generic db --from-literal=password=•",
        "helm repo add r https://x --username me --password •",
        "helm upgrade a b --set auth.rootPassword=•,replicas=2",
        "terraform apply -var db_password=•",
        "ansible all -m ping -e ansible_password=•",
        "curl -u ana:• https://x",
        "curl -d 'username=a&password=•' https://x",
        "wget --user=ana --password=• https://x",
        "http -a ana:• https://x",
        "vault kv put secret/a value=•",
        "Server=db;Database=shop;Uid=ana;Pwd=•;",
        '$env:DB_PASSWORD = "•"',
        'ConvertTo-SecureString "•" -AsPlainText -Force',
        "echo • | sudo -S ls",
        'echo "ana:•" | chpasswd',
    ],
)
def test_password_of_letters_alone_is_redacted(form: str) -> None:
    assert redact(form.replace("•", "swordfish")).count(MARK) == 1
    assert "swordfish" not in redact(form.replace("•", "swordfish"))


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("vault kv put secret/a one=hunter2x two=hunter3x", "vault kv put secret/a one=• two=•"),
        ("fly secrets set A=hunter2x B=hunter3x -a app", "fly secrets set A=• B=• -a app"),
        ("mysqladmin -u root -phunter2x password hunter3x", "mysqladmin -u root -p• password •"),
        ("snmpwalk -v3 -A hunter2x -X hunter3x h", "snmpwalk -v3 -A • -X • h"),
        ("qpdf --encrypt hunter2x hunter3x 256 -- a b", "qpdf --encrypt • • 256 -- a b"),
        (
            "kubectl create secret generic a --from-literal=b=hunter2x --from-literal=c=hunter3x",
            "kubectl create secret generic a --from-literal=b=• --from-literal=c=•",
        ),
        ("mysql -phunter2x; redis-cli -a hunter3x ping", "mysql -p•; redis-cli -a • ping"),
        ("mysql -phunter2x && mysql -phunter3x", "mysql -p• && mysql -p•"),
    ],
)
def test_every_secret_of_a_command_is_replaced_and_the_rest_stays(command: str, left: str) -> None:
    assert redact(command) == left.replace("•", MARK)


@pytest.mark.parametrize("command", HARMLESS)
def test_command_without_a_secret_stays_whole(command: str) -> None:
    text = broken(command)

    assert redact(text) == text
    assert find_secret(text) is None


@pytest.mark.parametrize("program", sorted(COMMANDS))
def test_names_of_programs_in_the_rules_are_lower_case(program: str) -> None:
    assert program == program.lower()
    assert not set(program) - set("abcdefghijklmnopqrstuvwxyz0123456789-_")


@pytest.mark.parametrize("program", sorted(COMMANDS))
def test_variable_used_as_a_secret_stays(program: str) -> None:
    for value in ("$SECRET1", "${SECRET1}", "$(cat f1)", "<secret1>", "{{ secret1 }}"):
        for before in ("-p", "-a", "--password", "-w", "-P", "-k"):
            text = f"{program} {before} {value}"
            assert redact(text) == text
