"""Finds standing policies: texts that tell the agent how to behave from now on (DSC-12, DSC-60).

The table `RULES` has the name and patterns of each.  A policy addresses the agent (an
imperative at the start of a clause, the second person, or "we always …") and is meant to last:
*always*, *never*, *from now on*, *whenever you*, *you must*.  Texts that change the agent's role,
cancel its instructions or look like prompt markup are policies without such a word.  A bare
imperative passes, since plan steps and decisions have that form, and so do statements about the
project in the third person: "the API never returns null".

Lines are read alone, with the next ones, and as a whole, without hidden characters and with letters
that look like Latin ones replaced by these.  What a source of the project says or prints ("README
says: always run make", an error "You must log in") is reported, not said: of that only the markup
of a prompt and orders to ignore instructions count.

Limits.  English only.  Not found: irony, indirect speech ("the user would be glad of tabs"), the
plain present ("replies are in French"), digits for letters, encoded text, words spelt with gaps,
orders in the words of a source.  Wrongly refused: facts that address a reader ("you need to start
redis", "we never retry") or that begin like an imperative ("always run on 8080").
"""

import re
from functools import cache
from typing import Literal

from codex_checkpoints.core.checkpoint.lookalikes import readings
from codex_checkpoints.values import frozen

SHORTEST = len("act as")


def clauses(line: str) -> list[str]:
    """Split at sentence ends, colons, dashes, opening quotes and brackets.

    Not at commas, nor at brackets after a word, which are calls: `from now() on`.
    """
    return [
        clause for clause in _BOUNDARY.split(_EMPHASIS.sub("", line)) if len(clause) >= SHORTEST
    ]


def any_of(words: str) -> str:
    """Return a pattern for any of some words or patterns, split at white space."""
    return "(?:" + "|".join(words.split()) + ")"


_TAG = re.compile(r"</?(?:b|i|u|em|strong|mark|code|kbd|br|p|span|div|li|h\d)\b[^<>]{0,40}>")

_SOURCE = any_of(
    # words of documentation
    r"readmes? docs? documentation manual guide tutorial wiki handbook runbook faq comments?"
    r" docstring man\x20page page changelog contributing license spec rfc help(?:\x20text)? website"
    r" issue ticket e?-?mail subject slogan title heading header footer caption copy"
    # what a program shows
    r" (?:\w+)?(?:errors?|exceptions?|warnings?) messages? logs? output trace(?:back)? report"
    r" banner dialog tooltip label form button toast popup modal alert notification placeholder"
    r" string line phrase sentence text value response"
    # programs, and what they are made of
    r" cli tool app api sdk server client service endpoint database db schema migration query"
    r" library framework package plugin module class function macro decorator config template"
    r" (?:type\x20)?checker linter formatter compiler bundler parser interpreter runtime installer"
    r" wizard shell terminal console browser kernel hook script workflow pipeline build ci"
    r" runner tests? fixture assertion makefile dockerfile"
    # tools
    r" ansible apt aws az babel bash bazel biome black brew bun bundler bundle cargo clang clippy"
    r" cmake composer conda cypress deno django docker eslint esbuild flake8 flask flutter gcc gh"
    r" git go gofmt gradle grep helm java javac jest kubectl make maven meson mvn mypy mysql next"
    r" nginx ninja node npm npx openssl php pip playwright pnpm poetry postgres(?:ql)? prettier"
    r" psql pylint pyright pytest python3? rails rake redis ruby ruff rustc rustfmt shellcheck"
    r" sqlite ssh swift systemd terraform tox tsc typescript uv valgrind vite vitest webpack yarn"
    r" zsh"
    # names: files, calls, identifiers
    r" (?!agents\.|claude\.)[\w/-]{1,80}\.[a-z]{1,4} [\w.-]{0,80}/[\w/.-]{1,80} \w{1,80}\(\)"
    r" [a-z]\w{0,60}_\w{1,60}"
)
"""The sources of a work: what it is documented in, its programs, and its files."""

_SAYS = (
    r"(?:says?|said|prints?|printed|reads|begins|raise[sd]|logs|logged|shows?|states?|displays?"
    r"|warns?|throws|outputs|mentions|claims|contains|recommends|advises|reports)"
)
_REPORTED = re.compile(
    rf"(?<![\w./-])(?:{_SOURCE}(?: (?!must|should|shall)\w+){{0,2}}? {_SAYS}|notes say)(?: that)?\b"
    r"(?:(?![.!?](?:\s|\Z)|;| so\b)[^\n]){0,400}"
    rf"|(?<![\w./-]){_SOURCE}(?: is| was|:)? ?(?P<quote>['\"])"
    r"(?:(?!(?P=quote)(?!\w))[^\n]){1,200}(?P=quote)(?!\w)"
    r"|\b(?:with|raise[sd]|returns?|returned|prints?|printed|renders|label(?:l?ed|s)|titled|named)"
    r" (?P<words>['\"])(?:(?!(?P=words)(?!\w))[^\n]){4,200}(?P=words)"
    r"(?=[.,]? [a-z]|\W*\Z)"
)
"""What a source says, to the end of the sentence, or what stands in quotes behind its name."""

_EMPHASIS = re.compile(r"[*~#]|(?<!\w)_+|_+(?!\w)")
_BOUNDARY = re.compile(
    r"""[.!?]+(?=["')\]]*(?:\s|\Z))|[\u3002;|\u2022\u00b7\u2014>]|:(?=[\s"']|\Z)|\s-+\s"""
    r"""|(?<=[\w,/%] )["'(\[{]"""
)

_VERB = any_of(
    r"accept act add adopt amend attach answer apologi[sz]e append apply approve archive ask"
    r" assume avoid be begin bring build bump call cancel change check choose clean clear close"
    r" comment commit communicate compile cite confirm consider consult continue copy create debug"
    r" default delete deny deploy describe disable disclose discuss do document drop edit enable"
    r" end enforce ensure escape execute explain export favou?r feed fetch find fix follow format"
    r" generate give go guess halt handle hardcode hesitate hide hold ignore implement import"
    r" include inform insert install introduce invoke justify keep leave let limit lint list load"
    r" log look make mention merge minimi[sz]e mock modify move notify obey omit open optimi[sz]e"
    r" output overwrite pass pause perform pick pin prefer prefix prepare prioriti[sz]e proceed"
    r" produce prompt propose provide publish pull push quote raise re-?run rebase recommend record"
    r" refactor refer refuse reject release rely remember remind remove rename repeat replace reply"
    r" report request require reset respect respond restart retry return reuse reveal revert review"
    r" rewrite roll save say search seek send share show shorten sign silence simplify skip speak"
    r" split squash stage start stay stick stop store strip submit suggest summari[sz]e switch take"
    r" talk tell test think touch track translate treat trust try type undo update upgrade use"
    r" validate verify wait warn work wrap write run(?!\x20(?:by|once|twice)\b)"
    r" read(?!\x20(?:by|from|at|as|once|into|in)\b)"
    r" (?:cut|hit|put|set)(?!\x20(?:as|at|by|from|in|to)\b)"
)
_IS_A_VERB = (
    r"(?![\w(\[./=-])"
    r"(?! (?:is|are|was|were|has|had|will|would|can|could|may|must|of|does|did)\b)"
)

DO = rf"(?:(?:please|then|also) )?{_VERB}{_IS_A_VERB}"
"""An imperative: a verb of the list that is not a subject ("test is …")."""

_FRAGMENT = (
    any_of(
        r"a an the null nil none nan undefined true false zero one two empty full same more fewer"
        r" less equal constant up down on off in at of from by via per under over into through"
        r" during between as than that which because since for to when while if unless until or and"
        r" but nor not will would can could may might must should shall did had are were am there"
        r" it its their this these those he she they we i any some both before after exactly only"
        r" just utf\w* ascii ready stale fresh safe last first cold hot warm dirty new old small"
        r" large big short long fast slow cheap free busy idle dead alive live wrong right low high"
        r" late early good bad better worse unique sync async mind sent written seen built thrown"
        r" known shown done made taken given kept held found lost left bound drawn chosen broken"
        r" been gone got went came saw knew began ran fell met said stood told thought wrote hidden"
        r" driven read cut hit put set run \w+ing \w+ed \w*[^\Wsu]s \w+able \w+al \w+ic \w+ive"
        r" \w+ous \w+ful \w+less \w+[ae]nt"
    )
    + r"(?![\w-])"
)
_LOOKS_LIKE_ONE = any_of("bring embed exceed ping speed succeed shed string drive strive arrive")

EVER = r"(?:invariably|always(?:[, -]+always)?|never(?:,? ever)?(?: again)?)"

EVER_DO = (
    rf"{EVER},? (?:{DO}|(?:{_LOOKS_LIKE_ONE}\b|(?!{_VERB}\b|{_FRAGMENT})[a-z])"
    r"[\w'-]*+(?![\w(\[./=])(?! (?:on|in|at|since|when|until|during)\b))"
)
"""*Always* or *never* with a possible imperative."""

IF = "(?:before|after|when|while|once|until|if|unless)"

YOU_DO = r"you(?!'| (?:are|can|want|need|know|prefer|would|wish|like|find|get|see|have|intend)\b)"
"""Someone who acts; "if you want tabs" addresses a reader of manuals."""

OFTEN = "(?:whenever|(?:every|each|any) ?time|(?:at|before|after) (?:the \\w+ of )?(?:each|every))"

MUST = (
    "(?:must|shall|ought to|ha(?:ve|s) to|needs? to|had better|better|mustn't|shouldn't|shan't"
    r"|should(?! (?:see|get|find|notice|have|end)\b))"
)
"""A duty; "you should see 12 tests" is none."""

FRONT = (
    r"(?:[\W_]*+|(?:[^\w(]|_)*+\([^()]{0,40}\)[\W_]*+)(?:[0-9a-z]{1,3}[.)\]]++[\W_]*+){0,2}(?:"
    + any_of(
        "please kindly also and so ok okay but now just then note remember important attention"
        " reminder hey hi dear codex assistant agent claude copilot chatgpt gpt everyone again"
        " first finally lastly additionally furthermore moreover therefore hence thus instead"
        " otherwise generally absolutely definitely strictly simply really btw fyi todo yes no well"
    )
    + r"\b[ ,]*+){0,5}?"
)
"""What may come before the first word of a clause: quotes, bullets, numbers, a few words."""


_Where = Literal["line", "clause", "anywhere"]


@frozen
class PolicyRule:
    """One form of policy, at the start of a line or a clause, or anywhere in the text.

    It is searched for only in texts with one of the `hints`; all have one where there is none.
    """

    name: str
    where: _Where
    hints: tuple[str, ...]
    pattern: str


def standing_policy(text: str) -> str | None:
    """Return the name of the first rule that finds a standing policy, or None (DSC-60)."""
    rows = [[_TAG.sub("", line) for line in reading.split("\n")] for reading in readings(text)]
    own = [[_REPORTED.sub(" ", line) for line in lines] for lines in rows]
    said = _places(own)
    told = said if own == rows else _places(rows)
    seen = "\n".join(line for where, line in told if where == "anywhere")
    for rule in RULES:
        if rule.hints and not any(hint in seen for hint in rule.hints):
            continue
        places = told if rule.name in _EVEN_REPORTED else said
        pattern = _compiled(rule.pattern)
        finds = pattern.search if rule.where == "anywhere" else pattern.match
        if any(where == rule.where and finds(place) for where, place in places):
            return rule.name
    return None


_EVEN_REPORTED = frozenset({"prompt_markup", "ignore_instructions"})
"""Rules for what is no statement, whoever is said to have said it."""


def _places(readings_of_lines: list[list[str]]) -> dict[tuple[_Where, str], None]:
    """Return where rules look: the lines, some joined, their clauses, and the whole."""
    places: dict[tuple[_Where, str], None] = {}
    for rows in readings_of_lines:
        lines = [" ".join(line.split()) for line in rows if line.strip()]
        whole = " ".join(lines)
        lines += [" ".join(lines[place : place + _JOINED]) for place in range(len(lines))]
        places |= {("line", line): None for line in lines}
        places |= {("clause", each): None for line in (*lines, whole) for each in clauses(line)}
        places["anywhere", whole] = None
    return places


@cache  # Compiled when needed, since it takes long.
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _rule(name: str, where: _Where, *patterns: str, hints: str = "") -> PolicyRule:
    front = {"line": _LINE, "clause": FRONT, "anywhere": r"\b"}[where]
    return PolicyRule(name, where, tuple(hints.split()), f"{front}(?:{'|'.join(patterns)})")


_JOINED = 4  # lines
_LINE = r"[^\w#<\[]*+(?:(?:\[[ x]\]|\d{1,3}[.)]) )?"
_WORD = r"[\w'/-]++"
_TO_LAST = (
    r"(?:always|in everything|at all times|in (?:all|every|any) cases?|every (?:single )?time"
    r"|without (?:exception|fail)|no exceptions"
    r"|no matter what|under (?:all|any) circumstances|ever again|until further notice)"
)
_UNDO = (
    r"(?:ignore|disregard|forget|override|bypass|neglect|overlook|discard|pay no attention to"
    r"|(?:do not|don't|never|stop|quit|cease)"
    r" (?:mind|follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to))"
)
_ASIDE = (
    r"(?:(?:in|for|on|at|with|within|inside|under)(?: [\w'./-]+){1,5}?(?<![a-rt-z]s)"
    r"|(?:in|for|on|with) \w+|(?:before|after|when|while) \w+ing(?: \w+){0,4}?"
    r"|(?:if|when|once|while|unless)(?: \w+){2,4}?),?"
)
"""What may stand before an order: "in this repo", "when editing python".

No plural noun after others, which is a subject: "after a crash workers never restart".
"""
_OF_NOW = any_of("previous prior earlier preceding above original initial your my system developer")
_ORDERS = "(?:instructions?|guidelines?|guidance)"
_ANY_ORDERS = rf"(?:{_ORDERS}|prompts?|rules?|directives?|orders|commands|polic(?:y|ies)|messages?)"
_SPEAK = "(?:respond|reply|answer|speak|talk|communicate|converse)"
_SPOKEN = (
    r"(?:answers?|repl(?:y|ies)|responses?|(?:commit |chat |final )?(?:messages?|titles?)"
    r"|summar(?:y|ies)|explanations?|turns?)"
)
_TONGUE = any_of(
    "english french german spanish italian portuguese dutch russian polish turkish arabic hindi"
    " chinese mandarin japanese korean latin swedish danish norwegian finnish greek hebrew klingon"
    " verse rhymes? haikus? emojis? uppercase lowercase capitals caps pirate poems? limericks?"
    " shakespeare bullets? slang"
)
_VOID = (
    r"(?:(?:are|were|is|should|must|shall|can|may|will|have|has)(?: not| now| no longer| to)*"
    r"(?: be| been)*(?: to be)?|no longer) (?:now )?(?:ignored|disregarded|void|null|cancell?ed"
    r"|overrid\w+|superseded|suspended|revoked|obsolete|invalid|valid|forgotten|followed|obeyed"
    r"|appl(?:y|ies)|binding|in (?:force|effect))\b"
)
_NOT_OF_A_THING = (
    r"(?!,? (?:the|an?|this|its|their) (?!answer|repl|response|message|agent|assistant|user|commit)"
    r"(?:[\w./-]+ ){1,3}?(?:is|are|was|has|have|will|can|must be|\w+s)\b"
    r"|(?!,? (?:answer|repl|response|message|agent|assistant|user|commit)),? \w+s (?:use|have|live"
    r"|come|go|carry|store|contain|expire|arrive|point|return|need|require|include"
    r"|are \w+ed (?:in|by|on|to|with|from|via|as|at))\b)"
)
"""Not before a statement about a thing: "from now on the endpoint is /v2"."""
_TALK = any_of("answers? repl(?:y|ies) responses? messages? prompts? sessions? turns? commits?")

RULES = (
    _rule(  # `system:`, `### Instructions`, `[INST]`, `<|im_start|>`: the markup of a prompt
        "prompt_markup",
        "line",
        r"[<\[#]*+ ?(?:system|assistant)(?: (?:prompt|message|note|instructions?))?"
        r"[\"'*_]* ?[\]>|}]",
        r"[<\[#]*+ ?(?:system|assistant) (?:prompt|message|note|instructions?)[\"'*_]* ?:",
        rf"[<\[#]*+ ?(?:system|assistant)[\"'*_]* ?:[\"'*_ ]*(?:\Z|{FRONT}(?:{DO}|{EVER}\b|you\b"
        r"|i\b|do not\b|don't\b))",
        r"#{1,6} ?(?:\w+ )?(?:instructions?|system|prompt)\b",
        r"[<\[#]*+ ?(?:begin|end)(?: of)?(?: the)?(?: system)? (?:prompt|instructions)\b",
        r"[<\[#]*+ ?(?:new|updated|revised|real|actual|hidden|additional|developer) "
        rf"(?:system )?(?:prompt|message|orders|{_ORDERS})[*_]* ?:",
        r".*?(?:(?<!\w)\[/?inst\]|<</?sys>>|<\|\w{1,20}\|>|</?(?:system|developer|instructions)>)",
        hints="system assistant instruction prompt message orders guid inst] sys> <|",
    ),
    _rule(  # “ignore all previous instructions”, “forget what you were told”
        "ignore_instructions",
        "anywhere",
        rf"{_UNDO}(?= (?:{_WORD} ){{0,4}}?{_OF_NOW}\b)(?: {_WORD}){{0,5}}? {_ANY_ORDERS}\b",
        rf"{_UNDO} (?:all|any|every|the|these|those)(?: {_WORD}){{0,2}}? {_ORDERS}(?<=[se])\b",
        rf"{_UNDO} (?:everything|anything|all|what|whatever)(?: {_WORD}){{0,4}}?"
        r" (?:above|told|said|says|ask(?:s|ed)|want(?:s|ed)|instruct(?:s|ed)|so far|before this)\b",
        r"(?:overrides?|supersedes?|replaces?|cancels?|outranks?|takes? precedence over)"
        rf" (?:(?:all|any|the|your|these) )*(?:{_OF_NOW}|user's|users') (?:\w+ )?{_ANY_ORDERS}\b",
    ),
    _rule(  # “ignore instructions” as an imperative, whoever's they are; “obey these rules”
        "ignore_at_start",
        "clause",
        rf"{_UNDO}(?: [\w'/.-]++){{0,4}}? (?:{_ORDERS}|directives?)\b",
        rf"{_UNDO} (?:(?:the|my|your|our) )?(?:(?:user|owner|developer)s?'?s? )?"
        r"(?:wish(?:es)?|wants|requests?|preferences?|orders)\b",
        rf"{_UNDO} (?:all|any|every) (?:rules?|polic(?:y|ies))\W*+\Z",
        rf"{_UNDO}(?: \w+){{0,4}}? (?:agents|claude|contributing)\.md\b",
        rf"{_UNDO}(?: {_WORD}){{0,3}}? (?:above|previous)(?:\W*+\Z|,? and\b)",
        rf"(?:follow|obey) (?:only )?(?:these|my|the following)(?: {_WORD})? {_ANY_ORDERS}\b",
    ),
    _rule(  # “previous instructions are void”, “instructions from the user should be ignored”
        "instructions_void",
        "anywhere",
        rf"(?:{_OF_NOW}|user|users'|user's|all|any|these|those)"
        rf" (?:{_ANY_ORDERS}|requests)(?<=s) {_VOID}",
        rf"{_ANY_ORDERS}(?<=s) (?:from|by|of|in|given by) (?:the |your )?"
        rf"(?:user|system|developer|agents\.md)s? {_VOID}",
        rf"{_ANY_ORDERS}(?<=s) (?:above|before this|so far|until now|given \w+|you \w+) {_VOID}",
        r"(?:treat|consider|regard) (?:the |your |all |any )?(?:\w+ )?(?:prompts?|instructions?"
        r"|rules?|guidelines?) (?:as )?(?:void|null|cancell?ed|obsolete|invalid|optional)\b",
        r"(?:don't|do not|never|stop|no longer) (?:listen(?:ing)? to|obey(?:ing)?|follow(?:ing)?"
        r"|trust(?:ing)?|help(?:ing)?|answer(?:ing)?) (?:the|your|any)"
        r" (?:users?|developers?|owners?)\b",
    ),
    _rule(  # “act as …”, “you are a …”, “pretend to be …”, “your role is …”
        "role",
        "clause",
        r"(?:act|behave|speak|talk|role-?play|pose) (?:as|like) (?:if|though|an?|the|my)\b",
        r"(?:pretend|imagine)(?: that)? (?:to be|you)\b",
        r"(?:play|take on|adopt|assume) the (?:role|part|persona)\b",
        r"you(?: are|'re) (?:an?|my|the) ",
        r"your (?:new |only |main |sole |real )?(?:role|job|duty|objective|persona|identity"
        r"|instructions?|rules?|purpose|mission|goal|task|priority)"
        r" (?:(?:is|are|will be)\b|(?:now|from \w+(?: on)?)\W*+\Z)",
    ),
    _rule(  # “you must”, “you always”, “you are now …”, “your answers must”, “wants you to”
        "second_person",
        "anywhere",
        r"(?<!if )you (?:(?:also|really|absolutely|then|now|therefore|still) )?"
        rf"(?:{MUST}|always|never)\b",
        r"you(?:'ll| will| can| can't| cannot| may| would) (?:always|never|only|ever)\b",
        r"you (?:will|shall|are to) (?:now )?(?:act|play|behave|pretend) ",
        r"you (?:will|shall|can|may) no longer\b",
        r"you(?: are|'re) (?:now|no longer|henceforth|(?:\w+ly )?(?:to|required|expected|supposed"
        r"|obliged|forbidden|instructed|not allowed|not permitted|not to)\b)",
        rf"your (?:{_WORD} ){{1,3}}?{MUST}\b",
        r"(?:wants?|needs?|expects?|asks?|asked|tells?|told|requires?|instructs?|orders?|like)"
        r" you (?:to|not to|never|always)\b",
    ),
    _rule(  # “from now on”, “from this point on”, “going forward”, “henceforth”
        "from_now_on",
        "anywhere",
        r"(?:from (?:now|here|today|this (?:point|moment|turn|message))"
        rf" (?:on|onwards?|forward)|(?:going|moving) forward|henceforth)\b{_NOT_OF_A_THING}",
        rf"until further notice\b{_NOT_OF_A_THING}",
        rf"(?:in|for) all (?:future|subsequent|later|further) (?:\w+ )?(?:{_TALK}|tasks)\b",
        r"for the rest of (?:this|the|our) (?:conversation|session|chat)\b",
        hints="from forward henceforth notice future subsequent later further rest",
    ),
    _rule(  # “from this point skip …”, “from here on out use …”
        "from_here",
        "clause",
        rf"from (?:now|here|today|this (?:point|moment))(?: on)?(?: out)?,? (?:{DO}|{EVER_DO})",
        hints="from",
    ),
    _rule(  # “in future, use …”, “next time, …”, “use … in future”
        "in_future",
        "clause",
        r"(?:in (?:the )?future|next time|hereafter|for now on"
        r"|(?:as of|starting|effective) (?:now|today|immediately)"
        r"|(?:until|unless) (?:i say|told|instructed) otherwise"
        r"|(?:in|for|during) (?:(?:every|all|any|each|the) )?(?:future|later|next|subsequent)"
        r" (?:sessions?|turns?|runs?|tasks?|chats?)),?"
        rf" (?:{DO}|{EVER_DO}|do not|don't|you|please)",
        rf"{DO}.* in future\W*+\Z",
        rf"(?:the )?next time\b[^,]*, {DO}",
        hints="future next hereafter now today immediately otherwise later subsequent",
    ),
    _rule(  # “every time you …”, “whenever you …”, “if you ever …”
        "every_time_you",
        "anywhere",
        r"(?:whenever|(?:every|each|any) ?time(?: that)?|at any time|as soon as) you\b",
        r"(?:if|when|should|before|after) you ever\b",
    ),
    _rule(  # “always …”, “never …” with an imperative
        "always_never",
        "clause",
        EVER_DO,
        rf"(?:(?:be|stay|remain|keep|to)|let us|let's|lets) {EVER} [a-z]",
        rf"(?:(?:in|for|on|at|with)(?: [\w-]+){{1,3}}?,? |{_ASIDE} )?"
        rf"(?!(?:return|throw)\b){DO}.*?(?:,| and| but) (?:{EVER_DO}|{EVER} [a-z]{{2,}}s\b)",
        rf"{_ASIDE} (?!{EVER},? (?:be|return)\b){EVER_DO}",
        rf".*\b(?:{_SAYS}|insists|wrote)(?: that)?,? (?:to )?{EVER_DO}",  # who is no source
        hints="always never invariably",
    ),
    _rule(  # “Always: run …”, “'never' commit …”: the same with something in between
        "always_set_apart",
        "line",
        rf"{FRONT}{EVER}(?: ?:|[)\]]+ [a-z])",
        rf"{FRONT}{EVER}[\"'*_)\]]*(?: ?[:,;\u2014.-]+)?(?: \([^()]{{0,40}}\))?[ \u2014][\"']?{DO}",
        hints="always never invariably",
    ),
    _rule(  # “before committing, always …”, “whenever a test fails, rerun …”, “if you …, do …”
        "always_after_condition",
        "clause",
        r"(?:before|after|when|while|whenever|once|until|if|unless|for|in|on|at|with|as|to)\b"
        rf"(?:[^,]*+,)+? (?:then |please |you |and )*+{EVER_DO}",
        rf"(?:{OFTEN}|{IF} {YOU_DO}|(?:for|in|on|with) (?:each|every|all|any) {_TALK})\b"
        r"(?:[^,]*+,)+? (?:then |and )*+(?:do not\b|don't\b|" + DO + ")",
        rf"{EVER},? (?:before|after|when|if|on|for)\b[^,]*+, {DO}",
        r"(?:whenever|wherever|if|when|as (?:often|much|far) as) (?:possible|in doubt|unsure),?"
        rf" {DO}",
        rf".*\b(?:so|therefore|hence|please),? {EVER_DO}",
        hints="always never invariably each every all any before after when while once until if"
        " unless",
    ),
    _rule(  # “do not ever …”, “don't … under any circumstances”, “never … without asking”
        "do_not_ever",
        "clause",
        r"(?:do not|don't|dont)(?: you)? (?:ever|dare|under any|in any case|at any time)\b",
        r"(?:do not|don't|dont|never)\b.*\b(?:ever|under any circumstances?|in any case"
        r"|at any (?:time|point)|without (?:asking|permission|approval|my|being asked|confirm\w*)"
        r"|unless (?:i|you|told|asked|instructed|explicitly))\b",
        r"(?:under no circumstances|on no account|at no time|by no means),?"
        r" (?!(?:is|are|was|were|do|does|did|will|can|has|have)\b)[a-z]",
    ),
    _rule(  # “commit nothing without approval”, “auto-approve all commands”, “refuse to edit …”
        "consent",
        "clause",
        rf"{DO} (?:nothing|no)\b.*\b(?:without|unless|until) (?:an? |any )?(?:asking|permission"
        r"|approval|consent|review|sign-?off|go-ahead"
        r"|i|my|confirm\w*|told|asked)\b",
        r"(?:(?:auto-?|automatically )?(?:approve|confirm|accept|allow|grant)|(?:say|answer) yes to"
        r"|agree (?:to|with)) (?:\w+ ){0,2}?(?:every|all|each|any)"
        r" (?:\w+ ){0,2}?(?:commands?|requests?|actions?|permissions?|prompts?|edits?|calls?"
        r"|patch(?:es)?|diffs?)\b"
        r"(?! (?:from|of|to|on|with|that|which)\b)",
        r"(?:refuse|decline|reject) (?:\w+ ){0,2}?(?:requests?|questions?|tasks?) (?:about|on"
        r"|regarding|concerning|related to)\b",
        r"(?:refuse|decline) (?:\w+ ){0,2}?(?:requests?|questions?|tasks?) to [a-z]",
        r"(?:refuse|decline) to (?:answer|help|discuss|talk|comply|obey|edit|write|run|review|work"
        r"|touch|commit|push|do|follow|change|read)\b",
        hints="nothing no approve confirm accept allow grant yes agree refuse decline reject",
    ),
    _rule(  # “reply only in French”, “end every answer with a haiku”, “call me captain”
        "manner_of_speech",
        "clause",
        rf"{_SPEAK},? (?:(?:to me|back|only|just|exclusively|strictly|always) )*"
        rf"(?:in|using|with|as) (?:\w+ )?{_TONGUE}\b",
        rf"{_SPEAK},? (?:only|just|exclusively|strictly) (?:in|with|using|by|as)\b",
        rf"(?:each|every|all|your) (?:of your )?{_SPOKEN} (?:(?:must|should|shall|ha(?:s|ve) to"
        r"|needs? to) )?(?:(?:start|begin|end|finish|close|open)s?"
        r"|(?:is|are|be) (?:written|given|in))\b",
        rf"(?:each|every|all|your) (?:of your )?{_SPOKEN} .*\b{_TONGUE}\b",
        r"(?:start|begin|end|finish|close|open|prefix|sign|keep|make|write)"
        rf" (?:each|every|all|your) (?:of your )?{_SPOKEN}\b",
        r"(?:address|call|greet|thank|flatter|praise|obey) (?:me|the user|everyone)\b",
    ),
    _rule(  # “responses: French only”, “replies: one sentence, no more”
        "spoken_only",
        "line",
        rf"{FRONT}(?:all |your )?{_SPOKEN} ?(?:[:=-]|(?:are|is|only)\b).*\b(?:only|no more"
        r"|brief|short|terse|concise|polite|formal|informal"
        r"|(?:no|at most|under|within)\b.* (?:words|lines?)"
        rf"|sentences?|paragraphs?|{_TONGUE})\W*+\Z",
    ),
    _rule(  # “use tabs always”, “run lint before you commit”, “sign off in every message”
        "imperative_to_last",
        "clause",
        rf"{DO}.*\b{_TO_LAST}(?: (?:you|we) \w+)?\W*+\Z",
        rf"{DO}.*, {_TO_LAST},",
        rf"{DO}.*\bwithout (?:asking|permission|being (?:asked|told)|confirmation|approval)\b",
        rf"{DO}.*\b(?:whenever you|(?:every|each) time you|(?:before|after|when|once) {YOU_DO})\b",
        rf"{DO}.*\b(?:before|after|on|in|with|for|at the \w+ of) (?:each|every|all|any) {_TALK}\b",
        r"(?:only ever|at all times|with(?:out| no) exceptions?|no matter what|in all cases),?"
        rf" {DO}",
        rf"{_ASIDE} {DO}.*, {_TO_LAST}\W*+\Z",
        hints="always every all any each without exception matter ever notice you",
    ),
    _rule(  # “we always use …”, “I must never …”, “our rule is to never …”: the agent is one of us
        "we_always",
        "anywhere",
        rf"(?:we|i) (?:{MUST}|will) {EVER} (?!be\b)[a-z]|(?:we|i) {EVER} (?:{MUST} )?{DO}",
        rf"(?:our|the|my) (?:rule|policy|convention|custom) is (?:to )?{EVER}\b",
        hints="always never invariably rule policy convention custom",
    ),
    _rule(  # “make sure to always …”, “remember to never …”, “it is important to always …”
        "see_to_it",
        "anywhere",
        r"(?:remember|forget|sure|certain|try|careful|care|important|essential|crucial|vital|mandatory|best"
        r"|better|wise|advisable|preferable|reminder|(?:practice|idea|habit) is"
        rf"|required|instructed|told|asked)(?: that)? (?:to )?{EVER} [a-z]",
        hints="always never invariably",
    ),
    _rule(  # “the assistant must always …”, “Codex should never …”
        "assistant_must",
        "anywhere",
        r"(?:assistants?|agents?|codex|chatgpt|claude|copilot|ai|llm|model)"
        rf" (?:must|shall|should|ha(?:s|ve) to|needs? to|is to|are to) {EVER}\b",
        hints="always never invariably",
    ),
    _rule(  # “should always run lint”, “one must never push”
        "bare_duty",
        "clause",
        rf"(?:one )?{MUST} {EVER} (?!be\b){DO}",
        hints="always never invariably",
    ),
    _rule(  # “as a rule, …”, “house rule: …”, “standing instruction: …”
        "as_a_rule",
        "clause",
        r"as a (?:general |standing |strict )?(?:rule|policy|matter of (?:policy|principle))\b",
        r"(?:the |a |our |my )?(?:house|standing|golden|permanent)"
        r" (?:rules?|orders?|polic(?:y|ies)|instructions?)\b",
    ),
)
"""The rules in the order in which they apply."""
