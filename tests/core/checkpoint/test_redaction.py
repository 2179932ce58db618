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

MIXED = "a1B2c3D4e5F6"
LONG = MIXED * 4
HEX = "0123456789abcdef"
JWT_HEAD = "ey" + "JhbGciOiJIUzI1NiJ9"
JWT_BODY = "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0"
PEM = "-----" + "BEGIN {0}PRIVATE KEY{1}-----"
END = "-----" + "END {0}PRIVATE KEY{1}-----"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2

COMMANDS = [
    ("docker login -u me -p hunter2x reg.io", "docker login -u me -p • reg.io"),
    ("docker login -phunter2x", "docker login -p•"),
    ("helm registry login -p hunter2x r", "helm registry login -p • r"),
    ("mysql -phunter2x -u root db", "mysql -p• -u root db"),
    ("mysqldump -uroot -p'hunter 2x' app", "mysqldump -uroot -p'•' app"),
    ("sshpass -p hunter2x ssh a@b", "sshpass -p • ssh a@b"),
    ("redis-cli -h h -a hunter2x ping", "redis-cli -h h -a • ping"),
    (
        "openssl pkcs12 -passin pass:hunter2x -passout pass:hunter3x",
        "openssl pkcs12 -passin pass:• -passout pass:•",
    ),
    (
        "aws configure set aws_secret_access_key hunter2x",
        "aws configure set aws_secret_access_key •",
    ),
    ("mongosh -u a -p hunter2x", "mongosh -u a -p •"),
    ("ftp -u user:pass1234 h", "ftp -u user:• h"),
    ("7z a -phunter2x a.7z", "7z a -p• a.7z"),
    ("unzip -P hunter2x a.zip", "unzip -P • a.zip"),
    ("twine upload -u __token__ -p hunter2x dist/a", "twine upload -u __token__ -p • dist/a"),
    ("vault login hunter2x", "vault login •"),
    ("npm config set //registry/:_authToken hunter2x", "npm config set //registry/:_authToken •"),
    ("smbclient -U user%hunter2x //h/s", "smbclient -U user%• //h/s"),
    ("ldapsearch -D cn=a -w hunter2x", "ldapsearch -D cn=a -w •"),
    ("sqlcmd -S h -U sa -P hunter2x", "sqlcmd -S h -U sa -P •"),
    ("sqlplus scott/tiger99@db", "sqlplus scott/•"),
    ("htpasswd -b f me hunter2x", "htpasswd -b f me •"),
    ("keytool -storepass hunter2x -keypass hunter3x", "keytool -storepass • -keypass •"),
    ("plink -pw hunter2x h", "plink -pw • h"),
    ("nmcli dev wifi connect X password hunter2x", "nmcli dev wifi connect X password •"),
    ("echo 'me:hunter2x' | chpasswd", "echo '•' | chpasswd"),
    ("echo hunter2x | sudo -S ls", "echo • | sudo -S ls"),
    ("echo hunter2x | docker login --password-stdin", "echo • | docker login --password-stdin"),
]
"""What is given on the command line of a tool, and what is left of it."""

# Name, text, what is left of it; `•` stands for the mark.
SECRETS = [
    *((text, text, left) for text, left in COMMANDS),
    ("openai", "sk-" + LONG, "•"),
    ("openai project", "use sk-" + "proj-" + LONG + "-_x, please", "use •, please"),
    ("openai test key", "sk-" + "test-1234567890abcdef", "•"),
    ("anthropic", "key is sk-" + "ant-api03-" + LONG + "-AA.", "key is •."),
    ("github", "ghp" + "_" + LONG[:36], "•"),
    (
        "github in a url",
        "https://ghs" + "_" + LONG[:36] + "@github.com/a/b",
        "https://•@github.com/a/b",
    ),
    ("github fine-grained", "github" + "_pat_" + LONG, "•"),
    ("gitlab", "gl" + "pat-" + MIXED + "xy-z_Q12", "•"),
    ("slack", "xox" + "b-123456789012-" + MIXED, "•"),
    ("slack app", "xapp" + "-1-A012-" + MIXED, "•"),
    (
        "slack webhook",
        "https://hooks.slack.com/services/T0/B0/" + LONG,
        "https://hooks.slack.com/services/•",
    ),
    ("google", "AI" + "za" + LONG[:35], "•"),
    ("google oauth", "ya" + "29." + LONG, "•"),
    ("google client", "GOCSPX" + "-" + LONG[:28], "•"),
    ("aws id", "AKIA" + "ABCDEFGHIJKLMNOP", "•"),
    ("aws secret", "aws_secret_access_key = /" + LONG[:38] + "+", "aws_secret_access_key = •"),
    ("npm", "npm" + "_" + LONG[:36], "•"),
    ("npmrc", "//npm.example.com/:_authToken=" + HEX, "//npm.example.com/:_authToken=•"),
    ("pypi", "pypi" + "-AgEIcHlwaS5vcmc" + LONG, "•"),
    ("stripe", "sk" + "_live_" + LONG[:24], "•"),
    ("stripe restricted", "rk" + "_test_" + LONG[:24], "•"),
    ("stripe webhook", "whsec" + "_" + LONG[:32], "•"),
    ("hugging face", "hf" + "_" + LONG[:34], "•"),
    ("sendgrid", "SG" + "." + LONG[:22] + "." + LONG[:43], "•"),
    ("groq", "gsk" + "_" + LONG, "•"),
    *(
        (f"of a vendor, {front}", f"a {front}{LONG} b", "a • b")
        for front in ("sbp" + "_", "tskey" + "-auth-", "glsa" + "_", "nfp" + "_", "PMAK" + "-")
    ),
    ("jwt", f"t={JWT_HEAD}.{JWT_BODY}.{LONG} x", "t=• x"),
    ("jwt cut off", f"{JWT_HEAD}.{JWT_BODY}", "•"),
    ("jwe", f"{JWT_HEAD}.{LONG}.{LONG}.x.{LONG}", "•"),
    ("bearer", f'-H "Authorization: Bearer {MIXED}"', '-H "Authorization: Bearer •"'),
    ("basic", "Authorization: Basic dXNlcjpwYXNz and", "Authorization: Basic • and"),
    ("header in json", f'{{"Authorization":"Bearer {LONG}"}}', '{"Authorization":"Bearer •"}'),
    ("github header", f"Authorization: token {HEX}", "Authorization: token •"),
    ("bearer alone", f"the bearer {LONG} is", "the bearer • is"),
    ("api key header", f"X-Api-Key: {MIXED}", "X-Api-Key: •"),
    ("pem", f"a\n{PEM.format('', '')}\n{BODY}\n{END.format('', '')}\nb", "a\n•\nb"),
    ("pem rsa", f"{PEM.format('RSA ', '')}\n{BODY}\n{END.format('RSA ', '')}", "•"),
    ("pem encrypted", f"{PEM.format('EC ', '')}\nProc-Type: 4,ENCRYPTED\n\n{BODY}", "•"),
    ("pem escaped", f"{PEM.format('', '')}\\n{BODY}\\n{END.format('', '')}\\n", "•\\n"),
    ("pem cut off", f"key: {PEM.format('', '')}\n{BODY}", "key: •"),
    ("pem short", f"{PEM.format('', '')}\nabc\n{END.format('', '')}", "•"),
    ("pem twice", f"{PEM.format('', '')}\n{BODY}\n{PEM.format('', '')}\n{BODY}", "••"),
    ("pgp", f"{PEM.format('PGP ', ' BLOCK')}\nVersion: 1\n\n{BODY}", "•"),
    (
        "postgres",
        "postgres://ana:hunter2@db.example.com:5432/shop",
        "postgres://•@db.example.com:5432/shop",
    ),
    ("password with at", "mysql://u:p@ss:w@h/db", "mysql://•@h/db"),
    (
        "https",
        "git clone https://ana:pw@example.com/x.git",
        "git clone https://•@example.com/x.git",
    ),
    ("quoted", 'password: "hunter2!"', 'password: "•"'),
    ("quoted words", "passphrase = 'correct horse battery'", "passphrase = '•'"),
    ("quoted with escapes", 'secret = "ab\\"cdefg"', 'secret = "•"'),
    ("json", '{"client_secret": "abcdefgh", "x": 1}', '{"client_secret": "•", "x": 1}'),
    ("escaped json", '{\\"password\\":\\"hunter2\\"}', '{\\"password\\":\\"•\\"}'),
    ("unterminated", 'token: "abcdef', 'token: "•'),
    ("typed", 'API_KEY: str = "abcdefgh"', 'API_KEY: str = "•"'),
    ("subscript", "os.environ['API_KEY'] = 'abcdefgh'", "os.environ['API_KEY'] = '•'"),
    ("environment of letters", "DB_PASSWORD=swordfish make", "DB_PASSWORD=• make"),
    ("environment", "export OPENAI_API_KEY=abc123def run", "export OPENAI_API_KEY=• run"),
    ("short name", "SMTP_PASS=hunter2", "SMTP_PASS=•"),
    ("yaml", "password: hunter2", "password: •"),
    ("query", "https://x/y?access_token=abc123def&z=1", "https://x/y?access_token=•&z=1"),
    ("call", "connect(password=hunter2x)", "connect(password=•)"),
    ("option", "tool --token abc123def --x", "tool --token • --x"),
    ("option of letters", "mysql --password=swordfish -u ana", "mysql --password=• -u ana"),
    ("long option", f"tool --my-auth-token {HEX}", "tool --my-auth-token •"),
    ("curl", "curl -s -u ana:hunter2 https://x", "curl -s -u • https://x"),
    ("cookie", "Cookie: theme=dark; session=abc123def; x=1", "Cookie: theme=dark; session=•; x=1"),
    ("url parameter", f"https://x/y?q=1&key={HEX}&z=1", "https://x/y?q=1&key=•&z=1"),
    ("token in a url", f"git clone https://x{HEX}@h/a.git", "git clone https://•@h/a.git"),
    ("connection", "Server=db;Uid=ana;Pwd=swordfish;X=1", "Server=db;Uid=ana;Pwd=•;X=1"),
    ("parameter", "mvn deploy -Dgpg.passphrase=swordfish -q", "mvn deploy -Dgpg.passphrase=• -q"),
    (
        "named value",
        '{"name":"DB_PASSWORD","value":"hunter2x"}',
        '{"name":"DB_PASSWORD","value":"•"}',
    ),
    ("netrc", "machine h login ana password hunter2x", "machine h login ana password •"),
    ("xml", "<password>hunter2x</password>", "<password>•</password>"),
    ("named option", "curl --oauth2-bearer hunter2x https://x", "curl --oauth2-bearer • https://x"),
    ("here string", "gh auth login --with-token <<< hunter2x", "gh auth login --with-token <<< •"),
    ("powershell", "ConvertTo-SecureString 'hunter2x' -Force", "ConvertTo-SecureString '•' -Force"),
    ("sql", "ALTER USER ana IDENTIFIED BY 'hunter2x';", "ALTER USER ana IDENTIFIED BY '•';"),
    ("in prose", f"my secret key for it is {HEX * 4}, use it", "my secret key for it is •, use it"),
    ("in a list", f"the tokens: first, then {LONG}", "the tokens: first, then •"),
    ("after a mark", f"password=abc123{MARK}", "password=••"),
]


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
