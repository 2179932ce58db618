"""The patterns of secrets: assignments, options, headers, URLs, and keys with a known beginning.

`secret_commands` has the patterns for the command lines of single tools; `text.redact` applies all.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from attrs import frozen


@frozen
class SecretRule:
    """One kind of secret; it is searched for only in texts with one of the lower-case `hints`."""

    name: str
    hints: tuple[str, ...]
    source: str
    flags: re.RegexFlag
    signs: str = ""
    """Each match contains one of these characters."""
    needs: str = ""
    """A pattern that is quick to find in small letters; without it the rule finds nothing."""
    begins: tuple[str, ...] = ()
    """Small letters of which each match begins with some; any place, if it is empty."""
    within: bool = False
    """Whether no match extends over the end of a text in a list or an object, written as JSON."""
    repeats: bool = False
    """Whether one command may hold several, but only the first follows its program."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the compiled pattern; all of them take 85 ms, and few texts have a hint."""
        return re.compile(self.source, self.flags)

    @cached_property
    def _beginning(self) -> re.Pattern[str]:
        # The first letter outside the lookahead makes it ten times faster than the pattern.
        return re.compile("|".join(f"{each[0]}(?={each[1:]})" for each in self.begins))

    def matches(self, text: str, lower: str) -> Iterator[re.Match[str]]:
        """Yield the matches in a text, which is also given in small letters, as `finditer` does."""
        if not self.begins or len(lower) != len(text):  # a capital may become two characters
            yield from self.pattern.finditer(text)
            return
        end = 0
        for place in self._beginning.finditer(lower):
            if place.start() >= end:
                match = self.pattern.match(text, place.start())
                if match is not None:
                    yield match
                    end = match.end()


_ANY_CASE = re.ASCII | re.IGNORECASE

_NAME = r"""
    (?: (?P<count> token | credentials? | (?<=["'_,&?;])pass )
      | passw(?:or)?d | passphrase | pwd | secret | api[_-]?key
      | (?: access | account | auth | client | encryption | master | private | secret | session
          | shared | signing | storage | subscription ) [_-]?key )
    (?: [_-] (?: base | value ) )?
"""
_NAME_BEGINS = (
    *("token", "credential", "pass", "pwd", "secret", "api", "access", "account", "auth", "client"),
    *("encryption", "master", "private", "session", "shared", "signing", "storage", "subscription"),
)
QUOTE = r"""(?: \\{0,3} ["'`] )"""
NEXT_WORD = r"""\\{0,3}["'],[ ]?\\{0,3}["']"""
"""The transition from one word of a command to the next in a list, as in `["mysql", "-pX"]`."""

_BECOMES = rf"""
    {QUOTE}? \]? \s{{0,3}}
    (?: : \s{{0,2}} [a-z_]\w{{0,20}} \s{{0,2}} = | => | :?={{1,3}} | : ) \s{{0,3}}
"""
_WORD = r"[!#-%*+\-./0-9:=?@A-Z^_a-z~\u00a1-\u024f]"
"""One character of a value without quotes: not white space, nor the end of a word in code."""

_PLAUSIBLE = rf"""
    (?! [$<{{*(\[-] | %[(s] | \.\.\. | \.[*+] | [~.]{{0,2}}/ | [a-z]:[\\/]
      | [a-z][a-z0-9+.-]{{1,20}}:// )
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

QUOTED = r"(?: (?! (?P=quote) ) (?: [^\\\n] | \\. ) ){6,}+"
_BARE = rf"{_WORD}{{6,}}+ (?! [(\[] )"

_START = "(?<![A-Za-z0-9])"
_BLOB = "[A-Za-z0-9_-]"
_RANDOM = r"""
    (?= (?: [A-Za-z0-9]++ [_-]++ ){0,6}?
        (?: [A-Za-z0-9]{20} | (?= [A-Za-z]*+ [0-9] ) [A-Za-z0-9]{10} ) )
"""
"""After the prefix there is a piece that is not a word: `sk-…` also begins CSS classes."""


def rule(
    name: str,
    hints: tuple[str, ...],
    pattern: str,
    flags: re.RegexFlag = _ANY_CASE,
    **more: Any,  # noqa: ANN401 - the other fields
) -> SecretRule:
    """Return a rule whose pattern is verbose and has a group `secret`."""
    return SecretRule(name, hints, pattern, flags | re.VERBOSE, **more)


def _key(
    name: str, hints: tuple[str, ...], pattern: str, signs: str = "", needs: str = ""
) -> SecretRule:
    """Return a rule for keys with a known beginning."""
    source = rf"{_START} (?P<secret> {pattern} )"
    return rule(name, hints, source, re.ASCII, signs=signs, needs=needs, within=True)


_NAMES_HINTS = ("token", "credential", "pass", "pwd", "secret", "key", "_auth")
_IS_GIVEN = rf"(?:{'|'.join(_NAMES_HINTS)})[^=:]{{0,24}}[=:]"
"""The longest text between a hint and the sign after the name that contains it."""

GENERAL = (
    rule(  # a PEM or PGP block, to its end or to the end of the text
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
    rule(  # a header `Authorization: Bearer …`, `Basic …`, `Token …`
        "authorization",
        ("authorization",),
        rf"""
        authorization {QUOTE}? \s{{0,3}} [:=] \s{{0,3}} {QUOTE}?
        (?: (?: bearer | basic | token | apikey ) \s{{1,3}} {_PLAUSIBLE}
            (?= {_TELLING} | (?-i: [A-Za-z]*[a-z][A-Z] ) | {_WORD}++ (?: ["'`\\\n] | \Z ) )
          | (?: [a-z][\w-]{{1,20}} \s{{1,3}} )? {_PLAUSIBLE}
            (?= {_TELLING} {_WORD}{{6,}}+ \\{{0,3}} ["'`] ) )
        (?P<secret> {_WORD}{{6,}}+ )
        """,
        signs=":=",
    ),
    rule(  # `Cookie: session=…`, `curl -b "sessionid=…"`
        "cookie",
        ("cookie", "curl"),
        rf"""
        (?: cookie {QUOTE}? \s{{0,2}} [:=] | --cookie [\s=]
          | \bcurl\b [^\n|;]{{0,200}}? (?: \s | {NEXT_WORD} ) (?: -b | --cookie ) )
        (?: \s{{0,3}} {QUOTE}? | {NEXT_WORD} ) [^\n"'`]{{0,200}}?
        (?: sess | sid | auth | token | jwt ) [\w.-]{{0,20}} =
        {_PLAUSIBLE} (?P<secret> {_TELLING} [^\s;"'`\\]{{6,}}+ )
        """,
        signs=":=-",
    ),
    rule(  # a bearer token anywhere else: 16 characters or more with a digit
        "bearer",
        ("bearer",),
        r"""
        (?<![a-z]) bearer \s{1,3}
        (?P<secret> (?= [a-z._~+/-]*+ [0-9] ) [a-z0-9._~+/-]{16,}+ =*+ )
        """,
    ),
    rule(  # the 40 characters of an AWS secret access key after its name
        "aws_secret_key",
        ("secret",),
        rf"secret_?access_?key {_BECOMES} {QUOTE}? (?P<secret> [a-z0-9/+]{{40}} (?![a-z0-9/+]) )",
        signs=":=",
    ),
    rule(  # `password: "…"`, `token = …`; without quotes not only letters
        "assignment",
        _NAMES_HINTS,
        rf"""
        {_NAME} {_BECOMES} (?P<quote> {QUOTE} )? {_PLAUSIBLE}
        (?P<secret> (?(quote) {QUOTED} | {_NOT_CODE} {_NOT_A_NUMBER} {_TELLING} {_BARE} ) )
        """,
        needs=_IS_GIVEN,
        begins=_NAME_BEGINS,
        signs=":=",
    ),
    rule(  # `API_KEY=…` in capitals without spaces, as shells write it: 6 characters or more
        "environment",
        _NAMES_HINTS,
        rf"""
        (?-i: PASSWORD | PASSWD | PASSPHRASE | _PASS | SSHPASS | PWD | SECRET | [A-Z]_?KEY
            | TOKEN (?: _[a-z_]{{1,60}} )? | _AUTH (?= = {_TELLING} ) )
        = {_PLAUSIBLE} {_NOT_CODE} {_NOT_A_CONSTANT} (?P<secret> {_BARE} )
        """,
        needs=_IS_GIVEN,
        signs="=",
        within=True,
    ),
    rule(  # `--token …`, `--password=…`: 6 characters or more, after a space not only letters
        "option",
        _NAMES_HINTS,
        rf"""
        (?<![\w-]) (?! --secret= (?! {_TELLING} ) ) -- [a-z.-]{{0,30}}? {_NAME}
        (?: (?P<equals> = ) | \s{{1,3}} | {NEXT_WORD} ) (?P<quote> {QUOTE} )? {_PLAUSIBLE}
        (?P<secret> (?(quote) {QUOTED}
                      | {_NOT_CODE} {_NOT_A_CONSTANT} (?(equals) | {_TELLING} ) {_BARE} ) )
        """,
        needs="--",
        begins=("--",),
        signs="-",
    ),
    rule(  # user and password of `scheme://user:password@host`; scheme and host stay
        "url_password",
        ("://",),
        r"""
        (?<=[a-z0-9])://
        (?P<secret> [^\s/@:"'`<>]{0,128} : (?! [$<{*] | %[(s] ) [^\s/"'`<>]{1,256} )
        @ (?=[\w\[$<{-])
        """,
        needs="@",
        signs="@",
        within=True,
    ),
    rule(  # `https://X@host`, `:pserver:ana:X@host`, `jdbc:oracle:thin:ana/X@host`
        "url_token",
        ("://", ":pserver:", ":thin:"),
        r"""
        (?: (?<=[a-z0-9])://  (?= [\w.-]*+ @ ) (?= [a-z_.-]*+ [0-9] ) (?= [0-9_.-]*+ [a-z] )
            (?= [\w.-]{16} )
          | :pserver: [^\s:@/]{1,64} : | :thin: \w{1,64} / )
        (?P<secret> (?! [$<{*] ) [^\s@/:"'`<>]{3,200}+ ) @
        """,
        needs="@",
        signs="@",
        within=True,
    ),
    rule(  # `?key=…`, `&sig=…`: 16 characters or more with a digit; `?password=…`
        "url_parameter",
        ("key=", "sig=", "signature=", "auth=", "code=", "token=", "secret=", "password=", "pwd="),
        rf"""
        [?&](?: (?: key | sig | signature | auth | code ) = (?= [a-z_.%~+/-]*+ [0-9] )
                (?= [\w.%~+/-]{{16}} )
              | (?: access_?token | api_?key | client_?secret | passwd | password | pwd | token ) =
                {_PLAUSIBLE} )
        (?P<secret> [\w.%~+/!@-]{{6,}}+ =*+ )
        """,
        signs="=",
        within=True,
    ),
    rule(  # `…;Password=X;` of a connection string
        "connection",
        (";",),
        rf"""
        ; \s? (?: password | pwd | accountkey | sharedaccesskey | accesskey ) \s? = \s?
        {_PLAUSIBLE} (?P<secret> [^\s;"'`<>]{{3,200}}+ ) (?= ; | ["'\s] | \Z )
        """,
        needs=r";\s?(?:password|pwd|\w{0,12}key)\s?=",
        signs="=",
        within=True,
    ),
    rule(  # `-Dpassword=X`, `-e API_KEY=X`, `--set auth.password=X`, `-d "a=b&password=X"`
        "parameter",
        ("pass", "pwd", "secret", "key", "token"),
        rf"""
        (?<![\w-]) (?: -[eFdDPmo] | -{{1,2}}(?: var | set | set-string | env | build-arg | form
            | data | data-urlencode | extra-vars | backend-config | config ) ) [\s=]{{0,2}} ["']?
        (?: [\w.-]{{1,60}} = [^\s"'=]{{0,100}} [\s,&] ){{0,4}}?
        [\w.-]{{0,60}}? (?: password | passwd | passphrase | _pass | pwd | (?<!existing)secret
                | api_?key | access_?key | secret_?key | token ) = ["']? {_PLAUSIBLE}
        (?P<secret> [^\s"'`|;&,<>()\\]{{6,200}}+ )
        """,
        needs="(?:pass|password|passwd|passphrase|pwd|secret|key|token)=",
        begins=("-",),
        signs="=",
    ),
    rule(  # `name: DB_PASSWORD` and `value: X` as YAML, JSON and XML have them
        "named_value",
        ("value",),
        rf"""
        (?: name | key ) {QUOTE}? \s{{0,3}} [:=] \s{{0,3}} {QUOTE}? (?-i: [\w.:-]{{0,40}}? )
        (?: password | passwd | passphrase | secret | token | api_?key | access_?key
          | _pass | _pwd ) {QUOTE}? \s{{0,3}} ,? \s{{0,40}}
        {QUOTE}? value {QUOTE}? \s{{0,3}} [:=] \s{{0,3}} (?P<quote> {QUOTE} )? {_PLAUSIBLE}
        (?P<secret> (?(quote) {QUOTED} | {_TELLING} {_BARE} ) )
        """,
        begins=("name", "key"),
        signs=":=",
    ),
    rule(  # `<password>X</password>`
        "xml_element",
        ("</",),
        rf"""
        < (?P<name> [\w.:-]{{0,40}}?
                    (?: password | passwd | passphrase | secret | api-?key | token ) )
        (?: \s [^<>\n]{{0,200}} )? > {_PLAUSIBLE} (?P<secret> {_TELLING} [^\s<>]{{6,200}}+ )
        </ (?P=name) >
        """,
        needs=r"</[\w.:-]{0,40}(?:pass|secret|key|token)",
        signs="/",
    ),
    rule(  # 32 characters or more of hex or base64 a few words after "key", "token", "password"
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
        begins=(
            *("api", "access", "account", "client", "private", "secret", "encryption"),
            *("key", "token", "password", "credential"),
        ),
    ),
)
"""Rules that match much text come first."""

KEYS = (
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
        needs="gl[a-z]{2,5}-",
    ),
    _key(
        "slack",
        ("xox", "xapp-"),
        r"(?: xox[abceoprs]- | xapp-[0-9]- ) [A-Za-z0-9-]{10,}+",
        signs="-",
    ),
    rule(  # the path of a Slack webhook
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
        needs="k_live_|k_test_|whsec_",
    ),
    _key("hugging_face", ("hf_",), r"hf_[A-Za-z0-9]{30,}+", signs="_"),
    _key(
        "other_vendor",
        (
            *(
                "sg.",
                "dop_v1_",
                "shpat_",
                "gsk_",
                "xai-",
                "hvs.",
                "dckr_pat_",
                "lin_api_",
                "rubygems_",
            ),
            *("sbp_", "tskey-", "glsa_", "nfp_", "figd_", "pmak-", "atatt3", "xkeysib-", "sntrys_"),
            *("nvapi-", "dp.pt.", "ccipat_", "rubygems_"),
        ),
        rf"""
        (?: SG\.{_BLOB}{{16,}}+\.{_BLOB}{{16,}}+
          | (?: dop_v1_ | shpat_ | gsk_ | xai- | hvs\. | dckr_pat_ | lin_api_ | rubygems_ | sbp_
              | tskey-[a-z]{{1,12}}- | glsa_ | nfp_ | figd_ | PMAK- | ATATT3 | xkeysib- | sntrys_
              | nvapi- | dp\.pt\. | CCIPAT_ )
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
"""Keys with a known beginning, at any place."""
