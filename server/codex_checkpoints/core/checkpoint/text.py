"""The text of values: secrets redacted, one line, no control characters, cut to a limit.

See (rules, "Text of values"), DSC-51, DSC-52 and DSC-81.
"""

import re
from collections.abc import Iterator
from functools import cache

from attrs import frozen

from codex_checkpoints.core.rollout.fields import CONTROLS
from codex_checkpoints.patterns import pattern

MARK = "[redacted]"


@frozen
class SecretRule:
    """One kind of secret; it is searched for only in texts with one of the lower-case `hints`."""

    name: str
    hints: tuple[str, ...]
    source: str
    flags: re.RegexFlag
    signs: str = ""
    """One of these characters stands in all that it finds."""
    needs: str = ""
    """A pattern that is quick to find in small letters; without it the rule finds nothing."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern; compiled when needed, since few texts have a hint."""
        return _compiled(self.source, self.flags)


@cache
def _compiled(source: str, flags: re.RegexFlag) -> re.Pattern[str]:
    return re.compile(source, flags)


_NO_FLAG = re.RegexFlag(0)


def redact(text: str) -> str:
    """Replace each secret by `[redacted]` (DSC-81)."""
    parts: list[str] = []
    end = 0
    for start, behind in secrets(text):
        parts += [text[end:start], MARK]
        end = behind
    return "".join(parts) + text[end:] if parts else text


def secrets(text: str) -> list[tuple[int, int]]:
    """Return where the secrets of a text begin and end, in order."""
    rules = _hinted(text)
    if not rules:
        return []
    pieces = list(_between_marks(text))
    found: list[tuple[int, int]] = []
    while True:
        # An early rule may find a secret only after a later rule has cut out its neighbour.
        known = len(found)
        for rule in rules:
            pieces = [part for piece in pieces for part in _without_secrets(piece, rule, found)]
        if len(found) == known:
            return sorted(found)


def _hinted(text: str) -> list[SecretRule]:
    """Return the rules of which a hint and a sign stand in a text; others find nothing there."""
    lower = text.lower()
    # One character is found many times sooner than a hint.
    here = {sign for sign in _SIGNS if sign in lower}
    groups = [their for signs, their in _HINTS if not signs or not here.isdisjoint(signs)]
    hints = [hint for their in groups for hint in their if hint in lower]
    if not hints:
        return []
    hinted = [
        rule
        for rule in RULES
        if any(hint in hints for hint in rule.hints)
        and not (rule.signs and here.isdisjoint(rule.signs))
    ]
    needs = {rule.needs for rule in hinted if rule.needs}
    lacking = {each for each in needs if not _compiled(each, _NO_FLAG).search(lower)}
    return [rule for rule in hinted if rule.needs not in lacking]


def find_secret(text: str) -> str | None:
    """Return the name of the first rule that finds a secret, or None (DSC-81)."""
    pieces = [(piece, piece.lower()) for piece in text.split(MARK)]
    for rule in RULES:
        for piece, lower in pieces:
            if any(hint in lower for hint in rule.hints) and rule.pattern.search(piece):
                return rule.name
    return None


def secret_in(text: str) -> str | None:
    """Return the rule of a secret in a text as it is, or in one line, which joins two halves."""
    return find_secret(text) or find_secret(one_line(text))


def _between_marks(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for piece in text.split(MARK):
        yield start, piece
        start += len(piece) + len(MARK)


def _without_secrets(
    piece: tuple[int, str], rule: SecretRule, found: list[tuple[int, int]]
) -> Iterator[tuple[int, str]]:
    """Yield the rest of a piece with its offsets; add the secrets to `found`."""
    at, text = piece
    lower = text.lower()
    end = 0
    if any(hint in lower for hint in rule.hints):
        for match in rule.pattern.finditer(text):
            start, behind = match.span("secret")
            found.append((at + start, at + behind))
            yield at + end, text[end:start]
            end = behind
    yield at + end, text[end:]


_ANY_CASE = re.ASCII | re.IGNORECASE

_NAME = r"""
    (?: (?P<count> token | credentials? | (?<=["'_])pass )
      | passw(?:or)?d | passphrase | pwd | secret | api[_-]?key
      | (?: access | account | auth | client | encryption | master | private | secret | session
          | shared | signing | storage ) [_-]?key )
    (?: [_-] (?: base | value ) )?
"""
_QUOTE = r"""(?: \\{0,3} ["'`] )"""
_BECOMES = rf"""
    {_QUOTE}? \]? \s{{0,3}}
    (?: : \s{{0,2}} [a-z_]\w{{0,20}} \s{{0,2}} = | => | :?={{1,3}} | : ) \s{{0,3}}
"""
_WORD = r"[!#-%*+\-./0-9:=?@A-Z^_a-z~\u00a1-\u024f]"
"""One character of a value without quotes: no white space, and nothing that ends a word in code."""

_PLAUSIBLE = rf"""
    (?! [$<{{*(\[-] | %[(s] | \.\.\. | [~.]{{0,2}}/ | [a-z]:[\\/] | [a-z][a-z0-9+.-]{{1,20}}:// )
    (?! (?: access | bearer | boolean | changed | false | hidden | none | null | number | object
          | optional | password | refresh | required | secret | string | tokens? | undefined
          | u?int\d+ | float\d+ | auth[a-z]* | headers? | schemes? ) (?!{_WORD}) )
"""
"""Not a secret: variables, options, paths, URLs, and some words."""

_NOT_CODE = rf"(?! [a-z_]\w* (?: \.[a-z_]\w* )+ (?!{_WORD}) ) (?! [\w.$]*+ [(\[] )"
_NOT_A_CONSTANT = rf"(?! (?-i:[A-Z_]++) (?!{_WORD}) )"
_TELLING = r"(?= [!:?./$\-A-Z_a-z]*+ [0-9#%*+=@^~] )"
"""More than letters; names in code and words in prose mostly have no digits."""

_NOT_A_NUMBER = rf"(?(count) (?! [0-9.:/_%-]++ (?!{_WORD}) ) )"
"""`token: 150000` counts tokens, while `password: 150000` is a password."""

_QUOTED = r"(?: (?! (?P=quote) ) (?: [^\\\n] | \\. ) ){6,}+"
_BARE = rf"{_WORD}{{6,}}+ (?! [(\[] )"

_START = "(?<![A-Za-z0-9])"
_BLOB = "[A-Za-z0-9_-]"
_RANDOM = r"""
    (?= (?: [A-Za-z0-9]++ [_-]++ ){0,6}?
        (?: [A-Za-z0-9]{20} | (?= [A-Za-z]*+ [0-9] ) [A-Za-z0-9]{10} ) )
"""
"""After the prefix there is a piece that is no word: `sk-…` also begins CSS classes."""


def _rule(
    name: str,
    hints: tuple[str, ...],
    pattern: str,
    flags: re.RegexFlag = _ANY_CASE,
    **more: str,
) -> SecretRule:
    return SecretRule(name, hints, pattern, flags | re.VERBOSE, **more)


def _key(name: str, hints: tuple[str, ...], pattern: str, signs: str = "") -> SecretRule:
    """Return a rule for keys with a known beginning."""
    return _rule(name, hints, rf"{_START} (?P<secret> {pattern} )", re.ASCII, signs=signs)


_TO = r"[^\n|;&]{0,200}? \s"
"""To a later word of the same command."""

_COMMANDS = rf"""
    (?: (?: docker | podman | buildah | skopeo | helm | oras | az | twine ) \s {_TO}?
            (?: login | upload ) \s (?: {_TO} )? -p \s{{0,3}}
      | sshpass \s (?: {_TO} )? -p \s{{0,3}}
      | (?: mongo\w{{0,8}} | snowsql | cqlsh ) \s (?: {_TO} )? -p \s{{1,3}}
      | (?: mysql\w{{0,8}} | mariadb[\w-]{{0,8}} | 7z[ar]? ) \s (?: {_TO} )? -p
      | redis-cli \s (?: {_TO} )? -a \s{{1,3}}
      | (?: zip | unzip | sqlcmd | mosquitto_\w{{3}} ) \s (?: {_TO} )? -P \s{{0,3}}
      | (?: plink | pscp | psftp ) \s (?: {_TO} )? -pw \s{{1,3}}
      | ldap\w{{3,8}} \s (?: {_TO} )? -w \s{{1,3}}
      | influx \s (?: {_TO} )? -password \s{{1,3}}
      | (?: https? | xh | l?ftp ) \s (?: {_TO} )? (?: -[au] | --auth | --user ) [\s=]{{1,3}}
            [^\s:,]{{1,64}} [:,]
      | smbclient \s (?: {_TO} )? -U \s{{0,3}} [^\s%]{{1,64}} %
      | sqlplus \s (?: {_TO} )? [^\s/@]{{1,64}} /
      | htpasswd \s (?: {_TO} )? -[a-zA-Z]{{0,4}}b[a-zA-Z]{{0,4}} \s \S{{1,100}} \s \S{{1,64}} \s
      | aws \s {_TO} (?: aws_secret_access_key | aws_session_token ) \s{{1,3}}
      | rclone \s {_TO} (?: secret_access_key | pass | token ) [\s=]{{1,3}}
      | (?: npm | yarn | pnpm ) \s (?: {_TO} )? \S{{0,100}}
            _(?: authToken | auth | password ) [\s=]{{1,3}}
      | vault \s login \s | bw \s unlock \s | fly(?: ctl )? \s auth \s token \s
      | doctl \s auth \s (?: {_TO} )? -t \s | nmcli \s {_TO} password \s
      | wpa_passphrase \s \S{{1,64}} \s )
"""
"""What stands before a secret on the command line of the tools most used."""

_NAMES_HINTS = ("token", "credential", "pass", "pwd", "secret", "key")
_IS_GIVEN = rf"(?:{'|'.join(_NAMES_HINTS)})[^=:]{{0,24}}[=:]"
"""Not more than that stands between a hint and the sign behind the name that holds it."""

RULES = (
    _rule(  # a PEM or PGP block, to its end or to the end of the text
        "private_key",
        ("private key",),
        r"""
        (?P<secret> -----BEGIN[ ](?:[A-Z0-9]{1,12}[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
          (?: (?= (?: [\s"'+,]++ | \\[nr] | [A-Z-]{1,24}+:[^\n\\]{0,100}+ ){0,12}+ [A-Z0-9+/]{16} )
            | (?= [^-]{1,2000}+ -----END ) )
          (?: [^-] | -(?!----(?:BEGIN|END)) )*+
          (?: -----END[A-Z0-9 ]{0,50}----- )? )
        """,
        signs="-",
    ),
    _rule(  # a header `Authorization: Bearer …`, `Basic …`, `Token …`
        "authorization",
        ("authorization",),
        rf"""
        authorization {_QUOTE}? \s{{0,3}} [:=] \s{{0,3}} {_QUOTE}?
        (?: bearer | basic | token | apikey ) \s{{1,3}} {_PLAUSIBLE}
        (?P<secret> (?: {_TELLING} | (?= (?-i: [A-Za-z]*[a-z][A-Z] ) )
                      | (?= {_WORD}++ (?: ["'`\\\n] | \Z ) ) ) {_WORD}{{6,}}+ )
        """,
        signs=":=",
    ),
    _rule(  # a bearer token anywhere else: 16 characters or more with a digit
        "bearer",
        ("bearer",),
        r"""
        (?<![a-z]) bearer \s{1,3}
        (?P<secret> (?= [a-z._~+/-]*+ [0-9] ) [a-z0-9._~+/-]{16,}+ =*+ )
        """,
    ),
    _rule(  # the 40 characters of an AWS secret access key behind its name
        "aws_secret_key",
        ("secret",),
        rf"secret_?access_?key {_BECOMES} {_QUOTE}? (?P<secret> [a-z0-9/+]{{40}} (?![a-z0-9/+]) )",
        signs=":=",
    ),
    _rule(  # `password: "…"`, `token = …`; without quotes not only letters
        "assignment",
        _NAMES_HINTS,
        rf"""
        {_NAME} {_BECOMES} (?P<quote> {_QUOTE} )? {_PLAUSIBLE}
        (?P<secret> (?(quote) {_QUOTED} | {_NOT_CODE} {_NOT_A_NUMBER} {_TELLING} {_BARE} ) )
        """,
        needs=_IS_GIVEN,
        signs=":=",
    ),
    _rule(  # `API_KEY=…` in capitals without spaces, as shells write it: 6 characters or more
        "environment",
        _NAMES_HINTS,
        rf"""
        (?-i: PASSWORD | PASSWD | PASSPHRASE | _PASS | PWD | SECRET | TOKEN | [A-Z]_?KEY )
        = {_PLAUSIBLE} {_NOT_CODE} {_NOT_A_CONSTANT} (?P<secret> {_BARE} )
        """,
        needs=_IS_GIVEN,
        signs="=",
    ),
    _rule(  # `--token …`, `--password=…`: 6 characters or more, after a space not only letters
        "option",
        _NAMES_HINTS,
        rf"""
        (?<![\w-]) -- [a-z-]{{0,30}}? {_NAME} (?: (?P<equals> = ) | \s{{1,3}} )
        (?P<quote> {_QUOTE} )? {_PLAUSIBLE}
        (?P<secret> (?(quote) {_QUOTED}
                      | {_NOT_CODE} {_NOT_A_CONSTANT} (?(equals) | {_TELLING} ) {_BARE} ) )
        """,
        needs="--",
        signs="-",
    ),
    _rule(  # user and password of `scheme://user:password@host`; scheme and host stay
        "url_password",
        ("://",),
        r"""
        (?<=[a-z0-9])://
        (?P<secret> [^\s/@:"'`<>]{0,128} : (?! [$<{*] | %[(s] ) [^\s/"'`<>]{1,256} )
        @ (?=[\w\[$<{-])
        """,
        needs="@",
        signs="@",
    ),
    _rule(  # user and password of `curl -u user:password`
        "curl_user",
        ("curl",),
        r"""
        \bcurl\b [^\n|;]{0,200}? \s (?: -u | --user ) [\s=]{0,2} ["']?
        (?P<secret> [^\s:"'$<{]{1,64} : (?![$<{*]) [^\s"']{3,}+ )
        """,
        signs="-",
    ),
    _rule(  # `mysql -pX`, `docker login -p X`, `redis-cli -a X`, …
        "command_line",
        (
            *(" -p", " -a ", " -w ", " -u", "sqlplus", "htpasswd", "aws_se", "_auth", "_password"),
            *("vault login", "unlock", "auth token", "auth init", "nmcli", "wpa_", "rclone"),
        ),
        rf"""
        (?<![\w.-]) {_COMMANDS} (?P<quote> {_QUOTE} )? (?! [$<{{*-] | %[(s] )
        (?P<secret> (?(quote) {_QUOTED} | [^\s"'`|;&<>\\]{{3,200}}+ ) )
        """,
        re.ASCII,
    ),
    _rule(  # `-passin pass:X` of openssl, `-storepass X` of keytool
        "pass_option",
        ("pass",),
        r"""
        (?<![\w-]) (?: -pass(?: in | out )? \s{1,3} pass:
                     | -(?: src | dest )?(?: store | key )pass \s{1,3} )
        (?P<secret> (?! [$<{*-] ) [^\s"'`|;&<>\\]{3,200}+ )
        """,
        needs="-[a-z]{0,9}pass",
        signs="-",
    ),
    _rule(  # `echo X | sudo -S …`, `echo user:X | chpasswd`, `echo X | … --password-stdin`
        "piped",
        ("sudo", "chpasswd", "stdin"),
        rf"""
        (?<![\w.-]) (?: echo | printf ) \s{{1,3}} (?: -\w \s{{1,3}} )?
        (?P<quote> {_QUOTE} )? (?! [$<{{*-] )
        (?P<secret> (?(quote) {_QUOTED} | [^\s"'`|;&<>\\]{{3,200}}+ ) ) {_QUOTE}? \s{{0,3}} \|
        \s{{0,3}} (?: sudo \s{{1,3}} (?: -\w{{1,5}} \s{{1,3}} )*? -\w{{0,5}}S \b
                   | (?: sudo \s )? chpasswd \b
                   | [^\n|;&]{{1,200}}? (?: --password-stdin | --with-token | passwd \s --stdin ) )
        """,
        re.ASCII,
        signs="|",
    ),
    _rule(  # 32 characters or more of hex or base64 a few words behind "key", "token", "password"
        "told",
        ("key", "token", "secret", "password", "credential"),
        r"""
        (?<![a-z0-9]) (?: (?: api | access | account | client | private | secret | encryption )
                          [\s_-]{1,3} keys? | keys? (?= \s{1,3} (?: is | are | = ) )
                        | tokens? | secrets? | passwords? | credentials? ) (?![a-z0-9_(.])
        (?: (?! sha | hash | commit | checksum | digest | fingerprint | integrity ) [^\n] ){0,80}?
        (?<![a-z0-9+/_.-]) (?P<secret> (?= [a-z]{0,31}? [0-9] ) (?= [^a-z]{0,31}? [a-z] )
                                   [a-z0-9+/_]{32,128}+ =*+ ) (?![a-z0-9.(/-])
        """,
        needs=r"\A(?:[a-z0-9+/_]{0,31}+[^a-z0-9+/_]++)*+[a-z0-9+/_]{32}",  # in one pass
    ),
    _key("openai_or_anthropic", ("sk-",), rf"sk- {_RANDOM} {_BLOB}{{16,}}+", signs="-"),
    _key(
        "github",
        ("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_"),
        r"(?: gh[oprsu]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+ )",
        signs="_",
    ),
    _key(
        "gitlab",
        ("gl",),
        rf"gl(?: pat | ptt | rt | dt | oas | cbt | agent | ft | imt | soat )- {_BLOB}{{16,}}+",
        signs="-",
    ),
    _key(
        "slack",
        ("xox", "xapp-"),
        r"(?: xox[abceoprs]- | xapp-[0-9]- ) [A-Za-z0-9-]{10,}+",
        signs="-",
    ),
    _rule(  # the path of a Slack webhook
        "slack_webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|triggers|workflows)/ (?P<secret> [a-z0-9/_-]{20,}+ )",
        signs="/",
    ),
    _key(
        "google",
        ("aiza", "ya29.", "gocspx-"),
        rf"(?: AIza{_BLOB}{{30,}}+ | ya29\.{_BLOB}{{20,}}+ | GOCSPX-{_BLOB}{{20,}}+ )",
    ),
    _key(
        "aws_key_id",
        ("akia", "asia", "abia", "acca"),
        r"(?: AKIA | ASIA | ABIA | ACCA ) [A-Z0-9]{16} (?![A-Za-z0-9])",
    ),
    _key("npm", ("npm_",), r"npm_[A-Za-z0-9]{30,}+", signs="_"),
    _key("pypi", ("pypi-",), rf"pypi- {_RANDOM} {_BLOB}{{32,}}+", signs="-"),
    _key(
        "stripe",
        ("sk_", "rk_", "whsec_"),
        r"(?: [rs]k_(?:live|test)_[A-Za-z0-9]{10,}+ | whsec_[A-Za-z0-9+/]{20,}+ =*+ )",
        signs="_",
    ),
    _key("hugging_face", ("hf_",), r"hf_[A-Za-z0-9]{30,}+", signs="_"),
    _key(
        "other_vendor",
        ("sg.", "dop_v1_", "shpat_", "gsk_", "xai-", "hvs.", "dckr_pat_", "lin_api_", "rubygems_"),
        rf"""
        (?: SG\.{_BLOB}{{16,}}+\.{_BLOB}{{16,}}+
          | (?: dop_v1_ | shpat_ | gsk_ | xai- | hvs\. | dckr_pat_ | lin_api_ | rubygems_ )
            {_RANDOM} {_BLOB}{{20,}}+ )
        """,
        signs="._-",
    ),
    _key(
        "jwt",
        ("eyj",),
        rf"""
        (?<!{_BLOB}) eyJ{_BLOB}{{10,}}+ \. (?: eyJ{_BLOB}{{4,}}+ | {_BLOB}*+ \. {_BLOB}{{10,}}+ )
        (?: \.{_BLOB}++ ){{0,3}}+
        """,
        signs=".",
    ),
)
"""The rules in the order in which they apply: those that match much text first."""

_SIGNS = "-_:=.@/|"


def _signs_of(hint: str) -> str:
    """Return characters of which one stands in all that rules with this hint find, if any."""
    own = "".join(sign for sign in _SIGNS if sign in hint)
    by_rules = [rule.signs for rule in RULES if hint in rule.hints]
    return own[:1] or ("".join(by_rules) if all(by_rules) else "")


def _grouped() -> tuple[tuple[str, tuple[str, ...]], ...]:
    groups: dict[str, list[str]] = {}
    for hint in dict.fromkeys(hint for rule in RULES for hint in rule.hints):
        groups.setdefault(_signs_of(hint), []).append(hint)
    return tuple((signs, tuple(hints)) for signs, hints in groups.items())


_HINTS = _grouped()
"""The hints of all rules, by the characters without which they are of no use."""


SCANNED = 65_536
"""Code points of a text that `value` reads after its leading white space."""

_RUN = pattern(f"[{CONTROLS}]+")
_FRONT = pattern(rf"[\s{CONTROLS}]*+")
_LONE = pattern(r"[\ud800-\udfff]")


def one_line(text: str) -> str:
    """Replace each run of control characters by one space, and trim the ends (DSC-52)."""
    # A run of line breaks alone, as most are, is found many times sooner.
    line = " ".join(filter(None, text.split("\n")))
    if line.isprintable():  # neither of the two is
        return line.strip()
    return _whole(_RUN.sub(" ", text)).strip()


def cut(text: str, limit: int) -> str:
    """Shorten to `limit` code points; the last one is `…` if the text was longer (DSC-51)."""
    if limit < 1:
        return ""
    return _whole(text if len(text) <= limit else text[: limit - 1] + "…")


def _whole(text: str) -> str:
    """Replace half a surrogate pair, which cannot be written as UTF-8."""
    return text if text.isascii() or text.isprintable() else _LONE.sub("\ufffd", text)


def value(text: str, limit: int) -> str:
    """Return the text redacted (DSC-81), on one line (DSC-52), and cut (DSC-24, DSC-51).

    Only the first `SCANNED` code points count.  If they shrink below the limit, their last word is
    dropped: it may be the first half of a secret.
    """
    front = _FRONT.match(text)
    start = front.end() if front else 0
    seen = text[start : start + SCANNED]
    line = one_line(redact(seen))
    if len(text) - start > SCANNED and len(line) < limit:
        ends_in_a_word = one_line(seen[-1]) and not line.endswith(MARK)
        line = (line.rpartition(" ")[0].rstrip() if ends_in_a_word else line) + "…"
    return cut(line, limit)
