"""Tell whether a text lays down how the agent is to behave from now on (DSC-12, DSC-60).

The table `RULES` is the documentation: a name, what it finds, how.  A text is a policy when it is
addressed to the agent, as an imperative at the start of a clause, in the second person or as "we
always …", and also says that it is to last: *always*, *never*, *from now on*, *whenever you*, *you
must*.  What changes who the agent is, undoes its instructions or looks like the markup of a prompt
need not say so.  A bare imperative passes, since plan steps and decisions are written that way, and
so does what is said of the project in the third person: "the API never returns null".

A text is read as `lookalikes` reads it: line by line, each line with the next ones, and as a whole.
Clauses and imperatives are found by `imperatives`.

Limits.  English only.  Not seen are: other languages, irony, indirect speech ("the user would be
glad of tabs"), policies in the plain present ("replies are in French"), digits for letters, encoded
text, words spelt with gaps.  Wrongly refused are facts that speak to a reader ("you need to start
redis", a quoted "You must log in", "we never retry") or that begin as an imperative would ("always
run on 8080"): said of the project in the third person they pass.
"""

import re
from functools import cache
from typing import Literal

from codex_checkpoints.core.checkpoint.imperatives import (
    DO,
    EVER,
    EVER_DO,
    FRONT,
    IF,
    MUST,
    OFTEN,
    YOU_DO,
    any_of,
    clauses,
)
from codex_checkpoints.core.checkpoint.lookalikes import readings
from codex_checkpoints.values import frozen

_Where = Literal["line", "clause", "anywhere"]


@frozen
class Rule:
    """One way to lay down behaviour, at the start of a line or clause or anywhere in the text."""

    name: str
    finds: str
    where: _Where
    pattern: str


def standing_policy(text: str) -> str | None:
    """Name the first rule of the table that finds a standing policy in `text` (DSC-60)."""
    places: dict[tuple[_Where, str], None] = {}
    for reading in readings(text):
        lines = [" ".join(line.split()) for line in reading.split("\n") if line.strip()]
        whole = " ".join(lines)
        lines += [" ".join(lines[place : place + _JOINED]) for place in range(len(lines))]
        places |= {("line", line): None for line in lines}
        places |= {("clause", each): None for line in (*lines, whole) for each in clauses(line)}
        places["anywhere", whole] = None
    for rule in RULES:
        pattern = _compiled(rule.pattern)
        finds = pattern.search if rule.where == "anywhere" else pattern.match
        if any(where == rule.where and finds(place) for where, place in places):
            return rule.name
    return None


@cache  # Compiled no sooner than needed: it takes longer than a door may take to open.
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _rule(name: str, finds: str, where: _Where, *patterns: str) -> Rule:
    front = {"line": _LINE, "clause": FRONT, "anywhere": r"\b"}[where]
    return Rule(name, finds, where, f"{front}(?:{'|'.join(patterns)})")


_JOINED = 4  # lines
_LINE = r"[^\w#<\[]*+(?:(?:\[[ x]\]|\d{1,3}[.)]) )?"
_WORD = r"[\w'/-]++"
_TO_LAST = (
    r"(?:always|at all times|in (?:all|every|any) cases?|every (?:single )?time|without exception"
    r"|no matter what|under (?:all|any) circumstances|ever again|until further notice)"
)
_UNDO = (
    r"(?:ignore|disregard|forget|override|bypass|neglect|overlook|discard|pay no attention to"
    r"|(?:do not|don't|never|stop|quit|cease) (?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to))"
)
_OF_NOW = any_of("previous prior earlier preceding above original initial your my system developer")
_ORDERS = "(?:instructions?|guidelines?)"
_ANY_ORDERS = rf"(?:{_ORDERS}|prompts?|rules?|directives?|orders|commands|polic(?:y|ies)|messages?)"
_TALK = any_of("answers? repl(?:y|ies) responses? messages? prompts? sessions? turns? commits?")

RULES = (
    _rule(
        "prompt_markup",
        "`system:`, `### Instructions`, `[INST]`, `<|im_start|>`: the markup of a prompt",
        "line",
        r"[<\[#]*+ ?(?:system|assistant)(?: (?:prompt|message|note|instructions?))?"
        r"[\"'*_]* ?[:\]>|}]",
        r"#{1,6} ?(?:\w+ )?(?:instructions?|system|prompt)\b",
        r"[<\[#]*+ ?(?:begin|end)(?: of)?(?: the)?(?: system)? (?:prompt|instructions)\b",
        r"[<\[#]*+ ?(?:new|updated|revised|real|actual|hidden|additional|developer) "
        rf"(?:system )?(?:prompt|message|orders|{_ORDERS})[*_]* ?:",
        r".*?(?:(?<!\w)\[/?inst\]|<</?sys>>|<\|\w{1,20}\|>|</?(?:system|developer|instructions)>)",
    ),
    _rule(
        "ignore_instructions",
        "“ignore all previous instructions”, “disregard your rules”, “forget what you were told”",
        "anywhere",
        rf"{_UNDO}(?= (?:{_WORD} ){{0,4}}?{_OF_NOW}\b)(?: {_WORD}){{0,5}}? {_ANY_ORDERS}\b",
        rf"{_UNDO} (?:all|any|every|the|these|those)(?: {_WORD}){{0,2}}? {_ORDERS}(?<=s)\b",
        rf"{_UNDO} (?:everything|anything|all|what|whatever)(?: {_WORD}){{0,4}}?"
        r" (?:above|told|said|so far|before this)\b",
    ),
    _rule(
        "ignore_at_start",
        "“ignore instructions” as an imperative, whoever's they are; “obey these rules”",
        "clause",
        rf"{_UNDO}(?: {_WORD}){{0,4}}? {_ORDERS}\b",
        rf"{_UNDO}(?: {_WORD}){{0,3}}? (?:above|previous)(?:\W*+\Z|,? and\b)",
        rf"(?:follow|obey) (?:only )?(?:these|my|the following)(?: {_WORD})? {_ANY_ORDERS}\b",
    ),
    _rule(
        "role",
        "“act as …”, “you are a …”, “pretend to be …”, “your role is …”",
        "clause",
        r"(?:act|behave|speak|talk|role-?play|pose) (?:as|like) (?:if|though|an?|the|my)\b",
        r"(?:pretend|imagine)(?: that)? (?:to be|you)\b",
        r"(?:play|take on|adopt|assume) the (?:role|part|persona)\b",
        r"you(?: are|'re) (?:an?|my|the) ",
        r"your (?:new |only |main |sole |real )?(?:role|job|persona|identity|instructions?|rules?"
        r"|purpose|mission|goal|task|priority) (?:is|are|will be)\b",
    ),
    _rule(
        "second_person",
        "“you must”, “you always”, “you are now …”, “your answers must”, “wants you to”",
        "anywhere",
        r"(?<!if )you (?:(?:also|really|absolutely|then|now|therefore|still) )?"
        rf"(?:{MUST}|always|never)\b",
        r"you(?:'ll| will| can| can't| cannot| may| would) (?:always|never|only|ever)\b",
        r"you (?:will|shall|are to) (?:now )?(?:act|play|behave|pretend) ",
        r"you(?: are|'re) (?:now|no longer|henceforth|(?:\w+ly )?(?:to|required|expected|supposed"
        r"|obliged|forbidden|instructed|not allowed|not permitted|not to)\b)",
        rf"your (?:{_WORD} ){{1,3}}?{MUST}\b",
        r"(?:wants?|needs?|expects?|asks?|asked|tells?|told|requires?|instructs?|orders?|like)"
        r" you (?:to|not to|never|always)\b",
    ),
    _rule(
        "from_now_on",
        "“from now on”, “from this point on”, “going forward”, “henceforth”",
        "anywhere",
        r"from (?:now|here|today|this (?:point|moment|turn|message)) (?:on|onwards?|forward)\b",
        r"(?:going|moving) forward\b|henceforth\b|until further notice\b",
        rf"(?:in|for) all (?:future|subsequent|later|further) (?:\w+ )?(?:{_TALK}|tasks)\b",
        r"for the rest of (?:this|the|our) (?:conversation|session|chat)\b",
    ),
    _rule(
        "in_future",
        "“in future, use …”, “next time, …”, “use … in future”",
        "clause",
        r"(?:in (?:the )?future|next time|hereafter|(?:as of|starting) (?:now|today)|for now on),?"
        rf" (?:{DO}|{EVER_DO}|do not|don't|you|please)",
        rf"{DO}.* in future\W*+\Z",
    ),
    _rule(
        "every_time_you",
        "“every time you …”, “whenever you …”, “if you ever …”",
        "anywhere",
        r"(?:whenever|(?:every|each|any) ?time(?: that)?|at any time|as soon as) you\b",
        r"(?:if|when|should|before|after) you ever\b",
    ),
    _rule(
        "always_never",
        "“always …”, “never …” with an imperative",
        "clause",
        EVER_DO,
        rf"(?:(?:be|stay|remain|keep|to)|let us|let's|lets) {EVER} [a-z]",
    ),
    _rule(
        "always_set_apart",
        "“Always: run …”, “'never' commit …”: the same with something in between",
        "line",
        rf"{FRONT}{EVER}[\"'*_)\]]*(?: ?[:,;\u2014.-]+)?(?: \([^()]{{0,40}}\))?[ \u2014][\"']?{DO}",
    ),
    _rule(
        "always_after_condition",
        "“before committing, always …”, “whenever a test fails, rerun …”, “if you …, do …”",
        "clause",
        r"(?:before|after|when|while|whenever|once|until|if|unless|for|in|on|at|with|as|to)\b"
        rf"(?:[^,]*+,)+? (?:then |please |you |and )*+{EVER_DO}",
        rf"(?:{OFTEN}|{IF} {YOU_DO}|(?:for|in|on|with) (?:each|every|all|any) {_TALK})\b"
        r"(?:[^,]*+,)+? (?:then |and )*+(?:do not\b|don't\b|" + DO + ")",
        rf"{EVER},? (?:before|after|when|if|on|for)\b[^,]*+, {DO}",
        rf".*\b(?:so|therefore|hence|please),? {EVER_DO}",
    ),
    _rule(
        "do_not_ever",
        "“do not ever …”, “don't … under any circumstances”, “never … without asking”",
        "clause",
        r"(?:do not|don't|dont)(?: you)? (?:ever|dare|under any|in any case|at any time)\b",
        r"(?:do not|don't|dont|never)\b.*\b(?:ever|under any circumstances?|in any case"
        r"|at any time|without (?:asking|permission|approval|my|being asked|confirm\w*)"
        r"|unless (?:i|you|told|asked|instructed|explicitly))\b",
        r"(?:under no circumstances|on no account|at no time|by no means),?"
        r" (?!(?:is|are|was|were|do|does|did|will|can|has|have)\b)[a-z]",
    ),
    _rule(
        "imperative_to_last",
        "“use tabs always”, “run lint before you commit”, “sign off in every message”",
        "clause",
        rf"{DO}.*\b{_TO_LAST}\W*+\Z",
        rf"{DO}.*\b(?:whenever you|(?:every|each) time you|(?:before|after|when|once) {YOU_DO})\b",
        rf"{DO}.*\b(?:before|after|on|in|with|for|at the \w+ of) (?:each|every|all|any) {_TALK}\b",
        rf"(?:only ever|at all times,?|without exception,?|no matter what,?) {DO}",
    ),
    _rule(
        "we_always",
        "“we always use …”, “I must never …”, “our rule is to never …”: the agent is one of us",
        "anywhere",
        rf"(?:we|i) (?:(?:{MUST}|will) )?{EVER} {DO}",
        rf"(?:our|the|my) (?:rule|policy|convention|custom) is (?:to )?{EVER}\b",
    ),
    _rule(
        "see_to_it",
        "“make sure to always …”, “remember to never …”, “it is important to always …”",
        "anywhere",
        r"(?:remember|sure|certain|try|careful|care|important|essential|crucial|vital|mandatory"
        rf"|required|instructed|told|asked)(?: that)? (?:to )?{EVER} [a-z]",
    ),
    _rule(
        "assistant_must",
        "“the assistant must always …”, “Codex should never …”",
        "anywhere",
        r"(?:assistants?|agents?|codex|chatgpt|claude|copilot|ai|llm|model)"
        rf" (?:must|shall|should|ha(?:s|ve) to|needs? to|is to|are to) {EVER}\b",
    ),
    _rule(
        "as_a_rule",
        "“as a rule, …”, “house rule: …”, “standing instruction: …”",
        "clause",
        r"as a (?:general |standing |strict )?(?:rule|policy|matter of (?:policy|principle))\b",
        r"(?:the |a |our |my )?(?:house|standing|golden|permanent)"
        r" (?:rules?|orders?|polic(?:y|ies)|instructions?)\b",
    ),
)
"""Every rule, in the order in which they are asked."""
