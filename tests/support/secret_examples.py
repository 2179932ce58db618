"""A secret of every documented form, and the text that is left of it.

The keys here are made up, and put together at run time so that no scanner takes them for real ones.
"""

from codex_checkpoints.core.checkpoint.redaction import MARK

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
"""Secrets on the command line of a tool, and the text that remains."""

# Name, text, remaining text; `•` is the mark.
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
