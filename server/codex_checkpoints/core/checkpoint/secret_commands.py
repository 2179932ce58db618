"""The patterns of secrets on the command lines of single programs (TRU-10).

Programs are named since options differ: `-p` is a password of `mysql` and a port of `ssh`.  A row
of the table is the text before a secret: the programs, then the rest of the command.  In the rest a
space is one to three blanks, `~` one to three of blank or `=`, and `…` any words of the same
command; ` ?` and `~?` may be absent.
"""

import re
from collections.abc import Mapping

from codex_checkpoints.core.checkpoint.secret_rules import NEXT_WORD, QUOTE, SecretRule, rule

_MEANINGS = {
    "… ": "…",
    " ": rf"(?:[\t\x20]{{1,3}}|{NEXT_WORD})",
    "~": rf"(?:[\t\x20=]{{1,3}}|{NEXT_WORD})",
    "…": rf"(?:[^\n|;&]{{0,200}}?(?:[\t\x20]|{NEXT_WORD}))?",
}

_SECRET = rf"""
    (?P<quote> {QUOTE} )? (?! [\0$<{{*-] | %[(s] )
    (?P<secret> (?(quote) (?: (?! (?P=quote) ) (?: [^\\\n] | \\. ) ){{3,200}}+
                        | [^\s"'`|;&<>()\\]{{3,200}}+ ) )
"""
_NAME_QUOTE = r"""(?:\\{0,3}["'])?"""
_NAME = (
    _NAME_QUOTE
    + r"[\w.:-]{0,40}?(?i:key|token|secret|passw|passphrase|_pass|pwd|auth)[\w.:-]{0,24}"
    + _NAME_QUOTE
)
"""The name of a variable that holds a secret."""

_MYSQL = "mysql mysqldump mysqladmin mysqlimport mysqlsh mysqlcheck mysqlpump mysqlslap"
_MARIADB = "mariadb mariadb-dump mariadb-admin mariadb-import mariadb-check"
_MONGO = "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop"
_LDAP = "ldapsearch ldapadd ldapmodify ldapdelete ldapcompare ldapwhoami ldappasswd"
_SNMP = "snmpget snmpgetnext snmpwalk snmpset snmpbulkget snmpbulkwalk snmptrap snmptable"
_PDF = "pdftotext pdftoppm pdftocairo pdfimages pdfinfo pdffonts pdfseparate"

_WITH_P = (
    "snowsql cqlsh cypher-shell psexec psexec64 rdesktop ncftp ncftpput ncftpget altool"
    " supervisorctl rabbitmqadmin elasticsearch-users useradd usermod certutil"
)
_WITH_OPTIONS = (
    "aws az gcloud kubectl helm docker podman psql curl wget gh glab npm yarn pnpm pip twine uv"
    " poetry vault terraform heroku fly flyctl vercel netlify stripe snyk firebase supabase argocd"
    " oc svn rclone clickhouse-client cargo dotnet gpg restic qpdf"
)
_OPTION = (
    r"… --[a-z-]{0,30}(?:password|passwd|passphrase|pass|pwd|secret(?!=[a-z-]{1,60}(?:\s|\Z))|token"
    r"|api-?key|access-?key)~"
)
"""An option for a secret, which may have only letters; `--secret=a-name` is the name of one."""

_TABLE = (
    # The user precedes the secret.
    ("http https xh ftp lftp", r"… (?:-[au]|--auth|--user)~[^\s:,\"']{1,64}[:,]"),
    ("http https xh", "… (?:-A|--auth-type)~bearer … (?:-a|--auth)~"),
    ("jenkins-cli", r"(?:\.jar)? … -auth~[^\s:\"']{1,64}:"),
    ("curl wget", r"… (?:--proxy-user|-U)~[\"']?[^\s:\"']{1,64}:"),
    ("skopeo crane oras", r"… --(?:src-|dest-)?creds~[^\s:\"']{1,64}:"),
    ("smbclient", r"… -U ?[^\s%]{1,64}%"),
    ("sqlplus impdp expdp rman sqlldr", r"… [\w$#]{1,30}/"),
    ("bundle", r"config … [\w.:/-]{3,100} [\w.+@-]{1,64}:"),
    # The secret is an argument of its own, after words.
    ("redis-cli", "… (?:auth|AUTH)(?: default)? "),
    ("openssl", r"passwd(?: -salt \S{1,32}| -(?!salt|in|stdin)\w{1,9}){0,4} "),
    ("aws", r"… \S{0,60}(?:aws_secret_access_key|aws_session_token)~"),
    ("aws", "… --secret-string~"),
    ("aws", r"ssm put-parameter (?=[^\n|;&]{0,400}SecureString)… --value~"),
    ("az", "keyvault secret set … --value~"),
    ("eas", "secret:create … --value~"),
    ("gcloud", "config set auth/access_token "),
    ("rclone", "… (?:secret_access_key|pass|token)~"),
    ("rclone", "obscure "),
    ("npm yarn pnpm", r"… \S{0,100}(?:_authToken|_auth|_password|npmAuthToken|npmAuthIdent)~"),
    ("vault", "(?:login|unwrap|unseal|operator unseal|token (?:revoke|lookup|renew)) "),
    ("vault", r"(?:kv put|kv patch|write) … [\w.-]{1,60}="),
    ("bw", "unlock "),
    ("bw", r"login [^\s-]\S{1,100} "),
    ("fly flyctl turso", "auth token "),
    ("heroku", "auth:token "),
    ("doctl", "auth … -t "),
    ("snyk", "(?:auth |config set api=)"),
    ("cargo wandb", r"login(?: --\w{1,20}){0,3} "),
    ("ngrok", "(?:authtoken|config add-authtoken) "),
    ("cloudflared", "service install "),
    ("nuget", "setapikey "),
    ("nuget", r"push \S{1,200} "),
    ("travis", "encrypt "),
    ("caddy", "hash-password … --plaintext "),
    ("ansible-vault", "encrypt_string "),
    ("neo4j-admin", "… set-initial-password "),
    ("b2", r"(?:authorize-account|account authorize) \S{1,64} "),
    ("mc", r"(?:alias set|config host add) \S{1,64} \S{1,200} \S{1,128} "),
    ("cf", r"auth \S{1,100} "),
    ("rabbitmqctl", r"(?:add_user|change_password) \S{1,64} "),
    ("net", r"user [^\s/]\S{0,63} (?!/)"),
    ("net", r"use \S{1,8} \\\\\S{1,200} (?!/)"),
    ("mysqladmin mariadb-admin", "… password "),
    ("tower-cli", "config password "),
    ("dvc", r"remote modify … (?:password|\w{0,20}secret\w{0,20}|\w{0,20}token) "),
    ("poetry", r"config (?:pypi-token\.\S{1,64}|http-basic\.\S{1,64} \S{1,64}) "),
    ("composer", r"… (?:github-oauth|gitlab-token|gitlab-oauth|bearer)\.\S{1,100} "),
    ("composer", r"… http-basic\.\S{1,100} \S{1,64} "),
    ("db2", "connect … using "),
    ("isql", r"[\w.-]{1,64} \w{1,64} "),
    ("nmcli", "… password "),
    ("wpa_passphrase", r"\S{1,64} "),
    ("iw", r"… key \d:"),
    ("iwconfig", r"\S{1,16} key (?:s:)?"),
    ("qpdf", r"… --encrypt (?:\S{1,64} )?"),
    ("pdftk", "… (?:user_pw|owner_pw|input_pw) "),
    ("htpasswd", r"… -[a-zA-Z]{0,4}b[a-zA-Z]{0,4} (?:-\w{1,4} )?\S{1,100} \S{1,64} "),
    ("htpasswd", r"… -(?=[a-zA-Z]{0,5}n)[a-zA-Z]{0,4}b[a-zA-Z]{0,4} (?:\d{1,2} )?\S{1,64} "),
    ("mosquitto_passwd", r"… -\w{0,3}b \S{1,100} \S{1,64} "),
    ("pulumi", r"config set --secret \S{1,100} "),
    ("pulumi", r"config set [^\s-]\S{0,100} (?=[^\n|;&]{1,200}--secret\b)"),
    ("dotnet", r"user-secrets set \S{1,100} "),
    ("fly flyctl supabase doppler railway wrangler gh glab", r"secrets? set … [A-Za-z_]\w{0,60}="),
    ("firebase", r"functions:config:set … [\w.]{1,60}="),
    ("sonar-scanner mvn gradle", r"… -[DP][\w.]{0,40}login="),
    ("setx setenv", rf"{_NAME} "),
    ("set", rf"-[a-zA-Z]{{0,3}}x[a-zA-Z]{{0,2}} {_NAME} "),
    ("netlify", rf"env:set {_NAME} "),
    ("glab gh", rf"variable set {_NAME} "),
    # The secret follows an option.
    ("docker podman buildah crane skopeo helm oras az twine oc cf ibmcloud expo poetry supabase",
     "… (?:login|upload|publish|link) … -p~?"),
    ("dotnet nuget", "nuget … -[pk] "),
    ("sshpass", "… -p~?"),
    (f"{_MONGO} {_WITH_P}", "… -p "),
    (f"{_MYSQL} {_MARIADB} 7z 7za 7zr", "… -p"),
    ("unrar rar", "… -h?p"),
    ("redis-cli", "… (?:-a|--pass)~"),
    ("zip unzip sqlcmd mosquitto_pub mosquitto_sub mosquitto_rr ipmitool p4 bcp", "… -P ?"),
    ("ssh-keygen", "… -[NP] "),
    ("plink pscp psftp", "… -pw "),
    (_PDF, "… -[uo]pw "),
    (f"{_LDAP} kadmin", "… -w "),
    ("ldappasswd", "… -[sa] "),
    ("influx", "… -password "),
    ("security", r"(?:unlock|create|set)-keychain\w{0,9} … -p "),
    ("security", "import … -P "),
    ("security", r"add-\w{1,9}-password … -w "),
    ("security", "set-key-partition-list … -k "),
    ("signtool", "… /p "),
    ("xfreerdp wlfreerdp", "… /p:"),
    ("cmdkey", "… /pass:"),
    ("schtasks", "… /rp "),
    (_SNMP, "… (?:-[AX] |-c (?!public|private))"),
    ("openssl", "(?:enc|aes|des|rc|cast|bf)[a-z0-9-]{0,16} … -[kK] "),
    ("openssl", "… -hmac "),
    ("uv vercel fly flyctl doctl influx codecov glab",
     "… (?:publish|deploy|login|config create|auth init|compute|account) … -t "),
    ("vercel doctl codecov", "-t "),
    ("codecov", r"\.io/\w{0,20}\) -t "),
    ("netlify hatch", "… (?:deploy|publish) … (?:-a|--auth)~"),
    ("gitlab-runner", "register … -r "),
    ("swaks", "… -ap "),
    ("sendemail", "… -xp "),
    ("zerotier-cli", "… -T"),
    ("consul nomad", "… -token~"),
    ("gh glab", "(?:secret|variable) set … (?:-[bv] ?|--(?:body|value)~)"),
    ("kaggle", "config … -v "),
    (f"{_MYSQL} {_MARIADB} {_MONGO} {_WITH_OPTIONS}", _OPTION),
)  # fmt: skip


def _commands() -> Mapping[str, SecretRule]:
    rows: dict[str, list[str]] = {}
    for programs, rest in _TABLE:
        is_joined = rest.startswith((r"\.", r"(?:\."))
        before = rest if is_joined else f" {rest}"
        for sign, meaning in _MEANINGS.items():
            before = before.replace(sign, meaning)
        for program in programs.split():
            rows.setdefault(program, []).append(before)
    return {program: _command(program, each) for program, each in rows.items()}


def _command(program: str, rows: list[str]) -> SecretRule:
    # The program comes first, where a search finds it soonest; the rows are not verbose.
    name = re.escape(program)
    pattern = rf"(?-x:{name}(?<![\w.-]{name})(?:{'|'.join(rows)})) {_SECRET}"
    return rule("command_line", (program,), pattern, re.ASCII, repeats=True)


COMMANDS = _commands()
"""The rule of each program."""

_FED = r"""
    (?: sudo \s{1,3} (?: -\w{1,5} \s{1,3} )*? -\w{0,5}S \b
      | (?: sudo \s )? (?: chpasswd | passwd | kinit | su ) (?! [\w-] )
      | p4 \s login \b | pass \s insert \b
      | (?: docker | podman ) \s secret \s create \b
      | (?: npx \s )? (?: gh | glab | wrangler | fly | flyctl | eas ) \s secrets? [\s:]
            (?: set | put | create | import ) \b
      | vercel \s env \s add \b
      | [^\n|;&<]{1,200}? (?: --password-stdin | --with-token | --passwd-on-stdin
            | --passphrase-fd \s 0 | passwd \s --stdin
            | secrets \s [^\n|;&]{1,100}? --data-file=- ) )
"""
"""A command that reads a secret from its input."""

COMMAND_RULES = (
    rule(  # user and password of `curl -u user:password`
        "curl_user",
        ("curl",),
        rf"""
        \bcurl\b [^\n|;]{{0,200}}? (?: \s | {NEXT_WORD} ) (?: -u | --user )
        (?: [\s=]{{0,2}} ["']? | {NEXT_WORD} )
        (?P<secret> [^\s:"'$<{{]{{1,64}} : (?![$<{{*]) [^\s"'\\]{{3,}}+ )
        """,
        signs="-",
    ),
    rule(  # `--oauth2-bearer X`, `requirepass X`, `--from-literal=name=X`
        "named_option",
        ("-bearer", "requirepass", "paperkey", "-literal"),
        rf"""
        (?<![\w-]) (?: --oauth2-bearer | (?:--)?requirepass | --paperkey
                     | --from-literal (?: [\s=]{{1,3}} | {NEXT_WORD} ) [\w.-]{{1,100}} (?= = ) )
        (?: [ \t=]{{1,3}} | {NEXT_WORD} ) {_SECRET}
        """,
    ),
    rule(  # `-passin pass:X` of openssl, `-storepass X` of keytool
        "pass_option",
        ("pass",),
        rf"""
        (?<![\w-]) (?: -{{1,2}}[a-z-]{{0,12}}pass(?: in | out | word )?
                          (?: [\s=]{{1,3}} ["']? | {NEXT_WORD} ) pass:
                     | -(?: src | dest )?(?: store | key )pass (?: \s{{1,3}} | {NEXT_WORD} ) )
        (?P<secret> (?! [$<{{*-] ) [^\s"'`|;&<>\\]{{3,200}}+ )
        """,
        needs="-[a-z-]{0,12}pass",
        signs="-",
    ),
    rule(  # `echo X | sudo -S …`, `echo user:X | chpasswd`, `echo X | … --password-stdin`
        "piped",
        ("echo", "printf"),
        rf"""
        (?<![\w.-]) (?: echo | printf ) \s{{1,3}} (?: -\w{{1,3}} \s{{1,3}} )?
        (?: ["']? (?: %s | \\{{1,2}}n ){{1,3}} ["']? \s{{1,3}} )?
        (?P<quote> {QUOTE} )? (?! [$<{{*-] )
        (?P<secret> (?(quote) (?: (?! (?P=quote) ) (?: [^\\\n] | \\. ) ){{3,}}+
                            | [^\s"'`|;&<>\\]{{3,200}}+ ) ) {QUOTE}? \s{{0,3}} \|
        \s{{0,3}} {_FED}
        """,
        re.ASCII,
        needs=r"\|",
        signs="|",
    ),
    rule(  # `machine h login a password X` of a `.netrc`
        "netrc",
        ("login",),
        rf"""
        login \s{{1,3}} \S{{1,100}}? (?: \s | \\{{1,2}}n ){{1,3}} password \s{{1,3}} {_SECRET}
        """,
        needs=r"password\s",
    ),
    rule(  # `gh auth login --with-token <<< X`
        "here_string",
        ("<<<",),
        rf"(?<![\w.-]) {_FED} [^\n|;&<]{{0,100}}? <<< \s{{0,3}} {_SECRET}",
        re.ASCII,
    ),
    rule(  # `ConvertTo-SecureString "X"`, `"X" | ConvertTo-SecureString`, `-Password "X"`
        "powershell",
        ("securestring", "-password", "environmentvariable", "$pw", "$pass", "env:"),
        rf"""
        (?: convertto-securestring \s (?: -[a-z]{{1,12}} \s ){{0,3}} {QUOTE}?
          | (?= {QUOTE} [^"'\n]{{1,200}} {QUOTE} \s{{0,3}} \| \s{{0,3}} convertto-secure ) {QUOTE}
          | (?<![a-z]) [a-z]{{2,12}}-[a-z]{{2,40}} \s (?: [^\n|;&]{{0,200}}? \s )?
                -[a-z]{{0,12}}password \s {QUOTE}?
          | setenvironmentvariable\( \s? {_NAME} \s? , \s? {QUOTE}
          | env: {_NAME} \s (?: -value \s )? {QUOTE}?
          | \$(?: pw | pass ) \s{{0,2}} = \s{{0,2}} {QUOTE} )
        (?P<secret> (?! [$<{{*(-] ) [^\s"'`|;&<>()\\]{{3,200}}+ )
        """,
    ),
    rule(  # `IDENTIFIED BY 'X'`, `ALTER USER a WITH PASSWORD 'X'`
        "sql",
        ("identified", "password"),
        r"""
        (?: identified \s (?: with \s \S{1,40} \s )? by \s (?: password \s )?
          | (?<![a-z]) (?: user | role | login | with | encrypted | set ) (?![a-z])
            [^\n;]{0,80}? password \s{0,2} [=(]? \s{0,2} (?: password \( )? )
        \\{0,3}' (?P<secret> [^'\n\\]{3,200}+ ) (?= \\{0,3}' )
        """,
        needs="identified|password.{0,12}'",
    ),
)
"""The other rules of command lines."""
