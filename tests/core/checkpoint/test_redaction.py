"""What is a secret and what is not (DSC-81, JUN-44).

The keys here are made up, and put together at run time so that no scanner takes them for real ones.
"""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_checkpoints.core.checkpoint.redaction import (
    MARK,
    SECRET_RULES,
    find_secret,
    named_secrets,
    redact,
    secrets_across,
    secrets_of_part,
)
from growth import takes_linear_time
from secret_examples import BODY, END, HEX, LONG, PEM, SECRETS

PLAIN = [
    "mkdir -p src/app/models && cp -p a1 b1 && rsync -a src1 dst1",
    "docker run -p 8080:80 image1 && docker login registry1.io",
    "mysql -p shop1; mysql -u root -p",
    "ssh -p 2222 host1; psql -p 5432 shop1",
    "zip -r a1.zip files1; unzip -q a1.zip",
    "git add -p file1; pytest -p no:cacheprovider",
    "docker login -p $TOKEN && mysql -p$PASS1 && redis-cli -a ${REDIS1}",
    "openssl enc -pass env:PW1 && openssl enc -pass file:pw1",
    "sshpass -e ssh a1; sshpass -f file1 ssh a1",
    "gcc -pedantic a1.c; python -m http.server -p 8000",
    "echo done1 | tee log1; echo hello1 | sudo tee f1",
    "",
    "4f1c0de9a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8",
    "019fdc01-7a10-7c31-9d5e-2b61f0c4a9d2",
    "sha256:" + HEX * 4,
    f"the key is the sha256 of the file, {HEX * 4}",
    f"tokens were counted in commit {HEX * 2}12345678",
    "the key src/very/long/path/of/some/module/number1/index.ts",
    "keys are a_very_long_name_of_a_function_with_2_digits",
    "unknown:",
    "pip install sk-learn scikit-learn",
    "sk-toggleable__content sk-estimator-doc-link sk-top-container-id-12",
    "task-0123456789abcdef0123",
    "eyJhIjoxfQ==",
    "password reset flow",
    "token: 5",
    "token: 2026-11-20",
    "max_tokens=4096, input_tokens: 150000",
    "the password: it must be long",
    "password: required",
    'token: ""',
    '{"token": "string", "password": "undefined"}',
    "src/auth/token.py and tests/test_password_reset.py",
    "API_KEY_FILE=/run/secrets/key",
    "SECRET=/run/secrets/key1",
    "TOKEN=$GITHUB_TOKEN PASSWORD=${PW} SECRET=$(cat x1)",
    "password=<your password1>",
    "password: ${{ secrets.PASSWORD1 }}",
    "PASSWORD=PASSWORD",
    "API_KEY=****************",
    "PWD=/home/ana/shop1 OLDPWD=~/x12345",
    "token = parser.next_token2()",
    "secret=config.v2.secret",
    "token = tokens1[0]",
    "def f(token: uint64, password: str) -> None:",
    "use --token instead of --password-file x1234567",
    "tool --token TOKEN --password $PASSWORD",
    "http://localhost:8080/path@2x.png",
    "git@github.com:a/b.git",
    "postgres://ana:$PGPASSWORD@db/shop",
    "https://user:@host/",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer tokens are checked here",
    "Authorization: Basic auth",
    f"why does `{PEM.format('', '')}` not parse?",
    "-----" + "BEGIN PUBLIC KEY-----\n" + BODY,
    "curl -u $USER:$PASS https://x; docker run -u 1000:1000 x",
    "npm_config_registry npm_lifecycle_event",
    "pypi-publish-workflow-for-all-of-our-packages",
    "hf_hub_download ghp_x glpat-x xoxb-1 AKIA AIza npm_x",
    "AKIAABCDEFGHIJKLMNOPQ",
    "const monkey = 'banana12', compass = 'north123'",
    "密码: token：令牌2的流程很复杂",
    MARK,
    f'password: "{MARK}" --token {MARK} https://{MARK}@host',
]


@pytest.mark.parametrize(
    ("text", "left"), [row[1:] for row in SECRETS], ids=[row[0] for row in SECRETS]
)
def test_secret_is_replaced_and_its_surroundings_stay(text: str, left: str) -> None:
    assert redact(text) == left.replace("•", MARK)
    assert find_secret(text) is not None
    assert find_secret(redact(text)) is None


@pytest.mark.parametrize("text", PLAIN, ids=range(len(PLAIN)))
def test_harmless_text_stays(text: str) -> None:
    assert redact(text) == text
    assert find_secret(text) is None


def test_first_matching_rule_is_named() -> None:
    key = "ghp" + "_" + LONG[:36]
    assert find_secret(f"look: {key}") == "github"
    assert find_secret(f"GITHUB_TOKEN={key}") == "assignment"
    assert find_secret(f"{key} and {PEM.format('', '')}\n{BODY}") == "private_key"


def test_every_rule_has_its_own_name_and_an_example() -> None:
    names = [rule.name for rule in SECRET_RULES]
    assert len(names) == len(set(names))
    assert {find_secret(text) for _, text, _ in SECRETS} == {*names, "command_line"}


def test_every_hint_is_lower_case_and_in_every_match() -> None:
    for rule in SECRET_RULES:
        assert all(hint == hint.lower() for hint in rule.hints)
        for _, text, _ in SECRETS:
            found = rule.pattern.search(text)
            assert found is None or any(hint in found[0].lower() for hint in rule.hints)


PIECES = [text for _, text, _ in SECRETS] + PLAIN
WORDS = sorted({word for piece in PIECES for word in piece.split()})
TEXTS = st.lists(
    st.sampled_from(PIECES)
    | st.sampled_from([piece[: len(piece) // 2] for piece in PIECES])
    | st.sampled_from([*" \n\"'`\\=:@/-_.[(&$", "password", "token=", "--secret ", "sk-", "://"])
    | st.text(max_size=5),
    max_size=8,
).map("".join)


@given(TEXTS)
def test_required_substring_of_a_rule_is_in_every_match(text: str) -> None:
    for rule in SECRET_RULES:
        found = rule.pattern.search(text)
        assert found is None or re.search(rule.needs, text.lower())
        assert found is None or not rule.signs or any(sign in found[0] for sign in rule.signs)


@given(TEXTS)
def test_matches_from_their_beginnings_equal_a_whole_search(text: str) -> None:
    for rule in SECRET_RULES:
        found = [match.span() for match in rule.matches(text, text.lower())]
        assert found == [match.span() for match in rule.pattern.finditer(text)]


@given(st.lists(st.sampled_from(WORDS) | TEXTS, min_size=2, max_size=6))
def test_only_texts_beside_a_hint_are_secrets_together(texts: list[str]) -> None:
    alone = [redact(text) for text in texts]
    listed = json.dumps(alone, ensure_ascii=False)

    assert secrets_across(listed) == named_secrets(listed)
    assert not named_secrets(listed) or any(secrets_of_part(text)[1] for text in alone)


@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert (find_secret(text) is None) == (once == text)
    assert find_secret(once) is None


@given(before=TEXTS, after=TEXTS, key=st.text("abcXYZ0189", min_size=40, max_size=60))
def test_key_is_redacted_in_any_surroundings(before: str, after: str, key: str) -> None:
    assert key not in redact(f"{before} {'sk' + '-'}{key} {after}").split()


HOSTILE = [
    "a",
    " ",
    "-",
    "_eyJ",
    "-eyJa.",
    "eyJaaaaaaaaaaaa.",
    "sk-",
    "sk-a-",
    "sk-aaaaaaaaaaaaaaa-",
    "token=",
    'token="',
    "token='x\"",
    'token=\\"',
    "token: a.",
    "token=aaaaa.",
    "password=$",
    "TOKEN=a[",
    "_KEY=A_",
    "--token ",
    "--a-",
    "------",
    "://",
    "://a:",
    "://a:bbbbbbbb",
    "curl ",
    "curl -u a:",
    "mysql ",
    "mysql -p",
    "docker login ",
    "npm a",
    "vault kv put a=",
    "vault kv put a=bbb ",
    "aws ssm put-parameter ",
    "login a password ",
    "isql a a ",
    "qpdf --encrypt aaa ",
    "curl -b a=",
    "cookie: sid=",
    "name: password value: ",
    "<password>",
    "<password>a1b2c3",
    "?key=",
    ";password=",
    "-e a=b ",
    "-e password=",
    "echo a | gh secret",
    "convertto-securestring -a ",
    "identified by '",
    "set password '",
    "a-b -password ",
    "env:key ",
    "sqlplus a",
    "htpasswd -b a ",
    "echo a ",
    "echo a | sudo ",
    "http -u a",
    "bearer ",
    "bearer a",
    "authorization: bearer ",
    "authorization: bearer aaaaaaaaB",
    PEM.format("", ""),
    PEM.format("", "") + "a:",
    PEM.format("", "") + "\n",
    PEM.format("", "") + "aaaa ",
    PEM.format("", "") + BODY,
    END.format("", ""),
    "SG.aaaaaaaaaaaaaaaaaaaa.",
    "\\",
    "\\'",
    "x: y = ",
    MARK,
    "[redacted",
    "ghp" + "_" + LONG[:36],
    "ghp" + "_" + LONG[:36] + " ",
    "password=abc123 ",
    "\u0130",
    "\ud800",
]


def both(text: str) -> None:
    redact(text)
    find_secret(text)


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    takes_linear_time(both, lambda size: piece * (size // len(piece)) + "x1")


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join))
def test_hostile_mixture_takes_linear_time(piece: str) -> None:
    takes_linear_time(redact, lambda size: piece * (size // len(piece)))
