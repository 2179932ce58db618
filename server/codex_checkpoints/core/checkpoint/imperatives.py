r"""English as far as the rules about policies need it: clauses, imperatives, "always" and "never".

Everything here is a pattern for text that `lookalikes` has read: lower case, plain letters, single
spaces.  Which of it makes a policy is left to `policy.py`.

An imperative is told by a list of verbs (`DO`).  Behind *always* and *never* at the start of a
clause any word counts as one (`EVER_DO`), but for those that make a fragment of a fact: "never
null", "always enabled", "never throws", "always on port 80".

Every pattern is linear: runs are possessive, gaps are bounded or come once a clause.
"""

import re

SHORTEST = len("act as")


def any_of(words: str) -> str:
    """Return a pattern for any of some words or patterns, split at white space."""
    return "(?:" + "|".join(words.split()) + ")"


def clauses(line: str) -> list[str]:
    """Split where a new clause may begin: sentence ends, colons, dashes, opening quotes, brackets.

    Commas stay, as do brackets behind a word, which are calls: `from now() on`.
    """
    return [
        clause for clause in _BOUNDARY.split(_EMPHASIS.sub("", line)) if len(clause) >= SHORTEST
    ]


_EMPHASIS = re.compile(r"[*~#]|(?<!\w)_+|_+(?!\w)")
_BOUNDARY = re.compile(
    r"""[.!?]+(?=["')\]]*(?:\s|\Z))|[\u3002;|\u2022\u00b7\u2014>]|:(?=[\s"']|\Z)|\s-+\s"""
    r"""|(?<=[\w,/%] )["'(\[{]"""
)

_VERB = any_of(
    "accept act add adopt answer apologi[sz]e append apply approve archive ask assume avoid be"
    " begin bring build bump call cancel change check choose clean clear close comment commit"
    " communicate compile confirm consider consult continue copy create debug default delete"
    " deploy describe disable disclose discuss do document drop edit enable end enforce ensure"
    " escape execute explain export favou?r feed fetch find fix follow format generate give go"
    " guess handle hide hold ignore implement import include inform insert install introduce"
    " invoke keep let limit lint list load log look make mention merge minimi[sz]e mock modify"
    " move notify obey omit open optimi[sz]e output overwrite pass pause perform pick pin prefer"
    " prefix prepare proceed produce prompt propose provide publish pull push quote raise re-?run"
    " rebase recommend record refactor refer refuse reject release rely remember remind remove"
    " rename repeat replace reply report request require reset respect respond restart retry"
    " return reuse reveal revert review rewrite roll save say search seek send share show sign"
    " skip speak split squash stage start stay stick stop store strip submit suggest summari[sz]e"
    " switch take talk tell test think touch track translate treat trust try type undo update"
    r" upgrade use validate verify wait warn work wrap write run(?!\x20(?:by|once|twice)\b)"
    r" read(?!\x20(?:by|from|at|as|once|into|in)\b)"
    r" (?:cut|hit|put|set)(?!\x20(?:as|at|by|from|in|to)\b)"
)
_IS_A_VERB = (
    r"(?![\w(\[./=-])"
    r"(?! (?:is|are|was|were|has|had|will|would|can|could|may|must|of|does|did)\b)"
)

DO = rf"(?:(?:please|then|also) )?{_VERB}{_IS_A_VERB}"
"""An imperative: a verb of the list, not the subject of what follows ("test is …")."""

_FRAGMENT = (
    any_of(
        r"a an the null nil none nan undefined true false zero one two empty full same more fewer"
        r" less equal constant up down on off in at of from by via per under over into through"
        r" during between as than that which because since for to when while if unless until or"
        r" and but nor not will would can could may might must should shall did had are were am"
        r" there it its their this these those he she they we i any some both before after exactly"
        r" only just utf\w* ascii ready stale fresh safe last first cold hot warm dirty new old"
        r" small large big short long fast slow cheap free busy idle dead alive live wrong right"
        r" low high late early good bad better worse unique sync async mind sent written seen"
        r" built thrown known shown done made taken given kept held found lost left bound drawn"
        r" chosen broken been gone hidden driven read cut hit put set run \w+ing \w+ed \w*[^\Wsu]s"
        r" \w+able \w+al \w+ic \w+ive \w+ous \w+ful \w+less \w+[ae]nt"
    )
    + r"(?![\w-])"
)
_LOOKS_LIKE_ONE = any_of("bring embed exceed ping speed succeed shed string drive strive arrive")

EVER = r"(?:always(?:,? always)?|never(?:,? ever)?(?: again)?)"

EVER_DO = (
    rf"{EVER},? (?:{DO}|(?:{_LOOKS_LIKE_ONE}\b|(?!{_VERB}\b|{_FRAGMENT})[a-z])"
    r"[\w'-]*+(?![\w(\[./=]))"
)
"""*Always* or *never* and what may be an imperative."""

IF = "(?:before|after|when|while|once|until|if|unless)"

YOU_DO = r"you(?!'| (?:are|can|want|need|know|prefer|would|wish|like|find|get|see|have|intend)\b)"
"""Somebody who acts; "if you want tabs" speaks to a reader of manuals."""

OFTEN = "(?:whenever|(?:every|each|any) ?time|(?:at|before|after) (?:the \\w+ of )?(?:each|every))"

MUST = (
    "(?:must|shall|ought to|ha(?:ve|s) to|needs? to|had better|better|mustn't|shouldn't|shan't"
    r"|should(?! (?:see|get|find|notice|have|end)\b))"
)
"""What makes a duty of it; "you should see 12 tests" is none."""

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
"""What may stand before the first word of a clause: quotes, bullets, numbers, a few words."""
