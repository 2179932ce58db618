"""Splits a script by the rules of `cmd`, into the same parts as `shell` does.

Commands of its own get the names that the rules know, and lose switches that change no name.  A
word with `%`, `!` or `^` is not literal, nor is a pattern, another switch, or what ends as folders.
"""

import re
from functools import lru_cache
from typing import Final

from codex_checkpoints.core.rollout.shell import Part, Redirect, Word

_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t\r,;=]+)|(?P<separator>&&|\|\||[&|\n])|(?P<into>[0-9]?>&[0-9]|[0-9]?>>?|<)"
    r"|(?P<bracket>[()])|(?P<word>(?:\"[^\"\n]*\"|[^ \t\r\n,;=&|<>()\"])+)"
)
_NAMES: Final = {
    "type": "cat",
    "del": "rm",
    "erase": "rm",
    "copy": "cp",
    "move": "mv",
    "chdir": "cd",
}
_KNOWN: Final = frozenset(_NAMES.values())
_SWITCHES: Final = frozenset({"/y", "/-y", "/q", "/f", "/d", "/b", "/v"})
"""Of these commands: they ask or they do not, or say how a file is copied."""

_NOT_LITERAL: Final = re.compile(r"[%!^*?]|^/|\\\Z")
_KEPT = 4


@lru_cache(_KEPT)
def parts_of(script: str) -> tuple[Part, ...] | None:
    """Split a script into its commands; None where it cannot be split."""
    parts: list[Part] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    operators: list[str] = []
    into, at = "", 0
    while at < len(script):
        token = _TOKEN.match(script, at)
        if token is None:
            return None
        kind, text, at = token.lastgroup, token[0], token.end()
        if kind == "word":
            text = text.replace('"', "")
            word = Word(text, _NOT_LITERAL.search(text) is None)
            if into:
                redirects.append(Redirect(into.lstrip("0123456789"), word))
            else:
                words.append(word)
            into = ""
        elif kind == "into" and "&" not in text:
            into = text
        elif kind == "bracket":
            operators.append(text)
        elif kind == "separator":
            parts.append(_part(words, redirects, operators, text))
            words, redirects, operators, into = [], [], [], ""
    parts.append(_part(words, redirects, operators, ""))
    return tuple(part for part in parts if part != Part((), then=part.then))


def _part(
    words: list[Word], redirects: list[Redirect], operators: list[str], separator: str
) -> Part:
    if words:
        name = words[0].text.lower().lstrip("@")
        known = _NAMES.get(name, name)
        if known in _KNOWN:
            words = [word for word in words if word.text.lower() not in _SWITCHES]
        words = [Word(known, words[0].literal), *words[1:]]
    return Part(tuple(words), tuple(redirects), tuple(operators), (), separator)
