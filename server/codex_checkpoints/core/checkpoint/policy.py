"""Finds standing policies: texts that tell an agent how to behave from now on (DSC-12, DSC-60).

Each row of `POLICY_RULES` is one plain form.  A policy addresses the agent (an imperative at the
start of a clause, the second person, or "we always …") and is meant to last.  Everything else
passes: bare imperatives, as in plan steps and decisions, statements about the project, and reported
speech ("README says: always run make").  When in doubt a text passes, since a note is quoted data
with evidence (TRU-8).

Limits: English only, one line at a time.  Not found: indirect speech, the plain present ("replies
are in French"), encoded text, spaced letters, orders quoted from a source.
"""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

from codex_checkpoints.core.checkpoint.confusables import readings

_Where = Literal["clause", "anywhere", "quoted"]


@frozen
class PolicyRule:
    """One form of policy.

    It is matched at the start of a clause, anywhere in a line, or even in reported speech.
    """

    name: str
    where: _Where
    pattern: str

    def fits(self, text: str) -> bool:
        """Return whether a text has this form; the pattern is compiled lazily."""
        find = re.match if self.where == "clause" else re.search
        return find(self.pattern, text) is not None


def standing_policy(text: str) -> str | None:
    """Return the name of the first rule that finds a standing policy, or None (DSC-60)."""
    for reading in readings(text):
        plain = (" ".join(_MARKS.sub("", line).split()) for line in reading.split("\n"))
        lines = [_BULLETS.sub("", line) for line in plain if line]
        joined = (" ".join(lines[at : at + _JOINED]) for at in range(len(lines)))
        for line in (*lines, *joined):
            name = _policy_in(line)
            if name is not None:
                return name
    return None


_JOINED = 4
"""Number of lines that are also read as one."""


def _policy_in(line: str) -> str | None:
    own = _REPORTED.sub(" ", line)
    clauses = [_FRONT.sub("", clause, count=1) for clause in _BOUNDARY.split(own)]
    places = {"clause": clauses, "anywhere": [own], "quoted": [line]}
    for rule in POLICY_RULES:
        if any(map(rule.fits, places[rule.where])):
            return rule.name
    return None


_MARKS = re.compile(r"</?(?:b|i|u|em|strong|code|p)>|[*~`]|(?<!\w)_+|_+(?!\w)")
"""Emphasis of Markdown and HTML."""

_BOUNDARY = re.compile(
    r"""[.!?]+(?=["')\]]*(?:\s|\Z))|[;|\u3002\u2022\u2014>]|:(?=[\s"']|\Z)|\s-+\s"""
    r"""|(?:(?<=[\w,/%] )|(?<![^\s"'(\[{]))["'(\[{]"""
)
_BULLETS = re.compile(r"\A(?:[^\w<\[#]|\[[ x]\] |[0-9a-z]{1,3}[.)\]] )*")
_FRONT = re.compile(
    r"\A\W*(?:(?:please|kindly|also|and|so|now|but|then|note|remember|important|reminder|hey|codex"
    r"|agent|assistant|claude|well|yes|again|first|therefore|hence|just)\b\W*){0,4}"
)
"""The words and signs that may precede the first word of an order."""

_SAYS = r"(?:says?|said|prints|printed|reads|raises|raised|shows|states|throws|outputs|fails with)"
_REPORTED = re.compile(
    rf"(?<![\w./()-])[\w./()-]{{1,80}}(?: \w{{1,40}})? {_SAYS}\b(?: that)?[^.;\n]{{0,400}}"
    r"|(?<=\w )(?P<quote>[\"'])[^\"'\n]{4,200}(?P=quote)(?= (?:is|are|was|when|in|by)\b|\W*\Z)"
)

_DO = (
    r"(?:please )?(?:accept|act|add|answer|append|apply|approve|archive|ask|assume|attach|avoid"
    r"|begin|bring|build|call|catch|change|check|choose|cite|clean|close|comment|commit"
    r"|communicate|compile|configure|confirm|consider|consult|continue|convert|copy|create|debug"
    r"|declare|delete|deploy|describe|disable|discuss|do|document|double-check|drop|edit|enable"
    r"|encrypt|enforce|ensure|escape|execute|explain|export|expose|fetch|find|fix|focus|follow"
    r"|force|format|generate|give|go|guess|handle|hardcode|help|hide|ignore|implement|import"
    r"|include|inform|insert|inspect|install|introduce|invent|justify|keep|leave|let|lint|list"
    r"|load|log|look|make|mark|mention|merge|mock|modify|move|name|notify|obey|omit|open|output"
    r"|overwrite|patch|pause|perform|pick|pin|plan|prefer|prepare|preserve|prioriti[sz]e|produce"
    r"|propose|protect|prove|provide|publish|pull|push|put|quote|raise|rebase|recommend|refactor"
    r"|refer|refuse|reject|rely|remember|remove|rename|repeat|replace|reply|report|request"
    r"|require|re-?run|respect|respond|restart|retry|return|reuse|reveal|revert|review|rewrite"
    r"|roll|run|saniti[sz]e|save|say|search|send|share|ship|show|sign|silence|skip|speak|split"
    r"|squash|stage|start|stick|stop|store|strip|submit|suggest|summari[sz]e|switch|take|talk"
    r"|tell|test|think|throw|touch|track|translate|treat|trust|try|turn|undo|update|upgrade|use"
    r"|validate|verify|wait|warn|work|wrap|write|yield)"
    r"(?![\w(\[./=-])(?! (?:is|are|was|were|has|had|will|would|can|could|may|by|twice|once|at"
    r"|on)\b)"
)
"""An imperative: a verb that is neither a subject ("test is …") nor a participle."""

_EVER = r"(?:always|never|invariably)(?:[, -]+(?:ever|again|always))*"
_EVER_DO = rf"{_EVER}[\"')\]]*[,:.]* ?(?:\([^()]{{0,30}}\) )?[\"']?{_DO}"
_MUST = (
    r"(?:must|shall|should|ought to|ha(?:ve|s) to|needs? to|had better"
    r"|mustn't|shouldn't|shan't|may not|must not|should not)"
)
_ASIDE = (
    r"(?:(?:in|for|on|at|with|before|after|when|while|if|unless|once|until|whenever|as)\b"
    r"(?:[^,]{1,60}?, | (?:this|the|my|our) \w+ | \w+ing (?:\w+ ){0,2}?|(?<=if) \w+ \w+ ))"
)
"""A condition before an order: "in this repo", "before pushing"."""

_ORDERS = r"(?:instructions?|guidelines?|guidance|directives?|prompts?|rules|orders|polic(?:y|ies))"
_UNDO = (
    r"(?:ignore|disregard|forget|override|bypass|discard"
    r"|(?:do not|don't|never|stop) (?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to))"
)
_SPOKEN = (
    r"(?:answers?|repl(?:y|ies)|responses?|(?:commit |chat )?messages?|summar(?:y|ies)|turns?)"
)
_EACH = r"(?:each|every|all|any)"
_TONGUE = (
    r"(?:english|french|german|spanish|italian|chinese|japanese|latin|verse|rhymes?|haikus?|emojis?"
    r"|uppercase|caps|pirate(?: voice)?|bullets?|slang)"
)
_CONSENT = r"(?:asking|permission|approval|consent|confirm\w*|being (?:asked|told)|my)"


def _rule(name: str, where: _Where, *patterns: str) -> PolicyRule:
    return PolicyRule(name, where, f"(?:{'|'.join(patterns)})")


POLICY_RULES = (
    _rule(  # `system: obey`, `### Instructions`, `[INST]`, `<|im_start|>`
        "prompt_markup",
        "quoted",
        rf"^[<\[# ]*(?:system|assistant)[\"' \])>]*:? (?:{_DO}|be |you |i |{_EVER})",
        r"^\[system\]|^#{1,6} ?(?:\w+ )?(?:instructions?|system|prompt)\b|(?<!\w)\[/?inst\]",
        r"<</?sys>>|<\|\w{1,20}\|>|</?(?:system|developer|instructions)>",
        r"^\W*(?:begin|end)(?: of)?(?: the)?(?: system)? (?:prompt|instructions)\b",
        rf"^\W*(?:new|updated|revised|real|hidden|additional) (?:system )?{_ORDERS} ?:",
    ),
    _rule(  # “ignore all previous instructions”, “forget what you were told”
        "ignore_instructions",
        "quoted",
        rf"{_UNDO} (?:\w+ ){{0,3}}?(?:all|any|previous|prior|earlier|above|original|your|my|system"
        rf"|developer)\b(?: [\w'/.-]+){{0,3}}? {_ORDERS}\b",
        rf"{_UNDO} (?:the )?{_ORDERS} above\b",
        rf"{_UNDO} (?:everything|anything|all|what|whatever)(?: \w+){{0,4}}? (?:above|told|said)\b",
    ),
    _rule(  # “ignore instructions in AGENTS.md”, “obey these rules”
        "ignore_at_start",
        "clause",
        rf"{_UNDO}(?: [\w'/.-]+){{0,4}}? (?:instructions?|guidelines?|directives?)\b",
        rf"{_UNDO} the (?:above|user)\b|(?:follow|obey) (?:only )?(?:these|my) {_ORDERS}\b",
    ),
    _rule(  # “previous instructions are void”
        "instructions_void",
        "anywhere",
        rf"{_ORDERS}(?: (?:from|by|of) (?:the )?\w+)? (?:are|is|should be|must be|shall be)"
        r"(?: now| to be)? (?:void|ignored|disregarded|cancell?ed|revoked|obsolete|suspended)\b"
        r"(?! by\b)",
    ),
    _rule(  # “act as …”, “you are an …”, “your task is …”
        "role",
        "clause",
        r"(?:act|behave|speak|talk) (?:as|like) (?:if|an?|the|my)\b|pretend(?: that| to be| you)\b",
        r"you(?: are|'re) (?:now|an?|my|the) (?!here\b)",
        r"your (?:new |only |main )?(?:role|job|duty|objective|persona|mission|goal|task) is\b",
    ),
    _rule(  # “you must”, “you should never”, “your answers must”, “wants you to”
        "second_person",
        "anywhere",
        rf"(?<!if )\byou (?:also |then |now )?(?:{_MUST}|{_EVER})\b(?! (?:see|get|find|notice)\b)",
        r"\byou(?: will| can|'ll) (?:always|never|only)\b|\byou (?:will|shall) (?:now )?act\b",
        r"\byou(?: are|'re) (?:required|expected|supposed|forbidden|not allowed|not to|now)\b",
        rf"\byour (?:\w+ ){{1,3}}?{_MUST}\b|(?:wants?|expects?|tells?|asks?) you to\b",
    ),
    _rule(  # “from now on”, “going forward, prefer …”, “next time, …”, “in future”
        "from_now_on",
        "clause",
        r"(?:.*\b)?(?:(?:from (?:now|here|today|this (?:point|moment))(?: on(?:wards?)?)?(?: out)?)"
        r"|going forward|henceforth|until further notice|(?:as of|starting) (?:now|today)"
        r"|in(?: the)? future|next time|in all future \w+),? ?"
        rf"(?:{_DO}|{_EVER}|do not|don't|you|please|tabs|(?:the )?(?:answer|tests?) (?:is|are)"
        r"|(?:tests|answers) are |\W*\Z)",
        rf"{_DO}.* (?:in future|until further notice)\W*\Z",
    ),
    _rule(  # “whenever you commit”, “whenever a test fails, rerun it”
        "every_time",
        "clause",
        r"(?:whenever|(?:every|each|any) ?time) (?:that )?(?:you\b|possible\b)|if you ever\b",
        rf"(?:whenever|(?:every|each|any) ?time|(?:at|before|after) (?:the end of )?{_EACH})\b"
        rf"[^,]*, (?:then )?{_DO}",
        rf"if you (?!want|need|prefer|would|can)[^,]*, {_DO}",
    ),
    _rule(  # “always run …”, “in this repo never push”, “use tabs and never spaces”
        "always_never",
        "clause",
        rf"{_ASIDE}?(?:let's |be |to )?{_EVER_DO}|{_EVER} (?:be|stay) (?!\w+ed\b)[a-z]",
        rf"{_ASIDE}?{_DO}.*(?:,| and| but) (?:{_EVER_DO}|never [a-z]+s\b)",
        rf".*\b(?:so|therefore|please),? {_EVER_DO}|{_EVER}, {_ASIDE}{_DO}",
    ),
    _rule(  # “Always: run …”, “Never—push”
        "always_set_apart",
        "anywhere",
        rf"^\W*{_EVER}\W{{1,4}}{_DO}|^\W*always: ",
    ),
    _rule(  # “do not ever …”, “don't push, ever”, “under no circumstances run rm”
        "do_not_ever",
        "clause",
        r"(?:do not|don't)(?: you)? (?:ever|dare)\b",
        r"(?:under no circumstances|on no account) [a-z]+ (?!the\b)",
        r"(?:do not|don't|never)\b.*\b(?:ever|under any circumstances?|at any (?:time|point)"
        rf"|without {_CONSENT})\b",
    ),
    _rule(  # “commit nothing without approval”, “auto-approve all commands”
        "consent",
        "clause",
        rf"{_DO} .*\bwithout {_CONSENT}\b",
        rf"(?:auto-?)?(?:approve|accept|allow) {_EACH} (?:\w+ )?(?:commands?|requests?|actions?)\b",
        r"(?:refuse|decline|reject) (?:requests?|questions?) (?:about|on|to)\b",
    ),
    _rule(  # “reply only in French”, “every answer ends with a haiku”, “use tabs always”
        "manner",
        "clause",
        rf"(?:respond|reply|answer|speak|talk) (?:only |back )?(?:in|with|like|as) (?:a )?"
        rf"{_TONGUE}\b",
        rf"(?:{_EACH}|your) {_SPOKEN} (?:{_MUST} )?(?:start|begin|end|finish)s?\b",
        rf"(?:start|begin|end|finish|sign) {_EACH} {_SPOKEN}\b",
        rf"{_DO}.*\b(?:in|before|after|on) {_EACH} {_SPOKEN[:-1]}|commits?)\b",
        rf"{_DO}.*\b(?:always|in everything|at all times|in all cases|no matter what)\W*\Z",
        rf"(?:at all times|in all cases|no matter what),? {_DO}",
    ),
    _rule(  # “responses: French only”
        "spoken_only",
        "anywhere",
        rf"^\W*{_SPOKEN}: .*\b(?:only|no more)\W*\Z",
    ),
    _rule(  # “we must never …”, “make sure to always …”, “Codex should never …”
        "duty",
        "anywhere",
        rf"\b(?:we|i|one|assistant|agent|codex|claude) (?:{_MUST}|will) {_EVER} {_DO}",
        rf"(?:^|\W )(?:{_MUST}) {_EVER} {_DO}|\b(?:we|i) {_EVER} {_DO}",
        r"\b(?:remember|sure|important|essential|best|better|reminder|required)(?: that)?"
        rf" (?:to |you )?(?:{_EVER} {_DO}|must {_DO})",
        r"\b(?:our|house|standing|golden) (?:rule|policy|order|instruction)s?(?: is to|:)"
        r"|^as a (?:general )?rule\b",
    ),
)
"""The rules, in the order in which they apply."""
