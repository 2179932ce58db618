"""Splits a script by the rules of PowerShell, into the same parts as `shell` does.

Names of commands are in lower case, aliases in full, and a parameter `-Path` becomes `--path`.  An
expression in front of a pipe, such as a quoted text, becomes the output of `echo`.  A variable has
the literal text that was assigned to it.
"""

import re
from functools import lru_cache
from typing import Final

from codex_checkpoints.core.shell.posix import SEPARATORS, Collected, SimpleCommand, Word

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r,]+|`\r?\n)|(?P<hash>\#[^\n]*)"
    r"|(?P<single>'(?:[^']|'')*')|(?P<double>\"(?:[^\"`]|`.|\"\")*\")|(?P<escape>`.)"
    r"|(?P<operator>&&|\|\||[|;\n]|[0-9*]?>&[0-9]|[0-9*]?>>?|[&(){}])"
    r"|(?P<expands>[$@~*?\[\]])|(?P<plain>[^ \t\r\n,`'\"|;&<>(){}$@~*?\[\]]+)",
    re.DOTALL,
)
_HERE: Final = re.compile(r"(?P<here>@(?P<mark>[\"'])\r?\n(?P<body>.*?)\r?\n(?P=mark)@)", re.DOTALL)
_ALIASES: Final = {"gc": "get-content", "cat": "get-content", "type": "get-content"}
_PARAMETER: Final = re.compile(r"-([A-Za-z]+)(:?)(.*)", re.DOTALL)
_ECHO: Final = Word("echo", literal=True)
_KEPT = 4


@lru_cache(_KEPT)
def parts_of(script: str) -> tuple[SimpleCommand, ...] | None:
    """Split a script into its commands; None if it cannot be split.

    Brackets and blocks are not followed: a part that contains one, or is in one, has it among its
    operators.
    """
    splitter = _PowerShell()
    # A missing end mark would be searched for to the end of the script, once for each token.
    ends = {mark: script.rfind(f"\n{mark}@") for mark in ("'", '"')}
    at = 0
    while at < len(script):
        here = script[at] == "@" and ends.get(script[at + 1 : at + 2], -1) > at
        token = (_HERE.match(script, at) if here else None) or _TOKEN.match(script, at)
        if token is None:
            return None
        at = token.end()
        splitter.take(token)
    splitter.end_part("")
    return tuple(splitter.parts)


class _PowerShell(Collected):
    def __init__(self) -> None:
        super().__init__()
        self.bare: list[bool] = []
        """For each word, whether it begins neither with a quote nor with a variable."""
        self.pieces: list[Word] = []
        self.is_bare = True
        self.is_called = False
        self.depth = 0
        self.texts: dict[str, Word] = {}
        """The values of variables to which a literal text was assigned."""

    def take(self, token: re.Match[str]) -> None:
        """Take one token."""
        kind, text = token.lastgroup, token[0]
        match kind:
            case "operator":
                self._end_word()
                self._operator(text)
            case "blank" | "hash":
                self._end_word()
            case "here":
                self._split_assignment()
                self._piece(token["body"], literal="$" not in token["body"] or text[1] == "'")
            case "single":
                self._piece(text[1:-1].replace("''", "'"))
            case "double":
                self._piece(text[1:-1].replace('""', '"'), literal=not {"$", "`"} & set(text))
            case "escape":
                self._piece(text[1])
            case _:
                bare = kind == "plain" or text != "$"
                self._piece(text, literal=kind == "plain", bare=bare)

    def _piece(self, text: str, *, literal: bool = True, bare: bool = False) -> None:
        if not self.pieces:
            self.is_bare = bare
        self.pieces.append(Word(text, literal))

    def _split_assignment(self) -> None:
        """Make words of `$a=` in front of a text."""
        text = "".join(each.text for each in self.pieces[:2])
        if len(self.pieces) == 2 and re.fullmatch(r"\$\w+=", text):  # noqa: PLR2004 - `$` and `a=`
            for word in (text[:-1], "="):
                self.pieces = [Word(word, literal=False)]
                self._end_word()

    def _operator(self, operator: str) -> None:
        if operator in SEPARATORS and operator != "&":
            self.end_part(operator)
        elif operator == "&":
            self.is_called = True
        elif ">" not in operator:
            self.operators.append(operator)
            self.depth += 1 if operator in "({" else -1
        elif "&" not in operator:
            self.into = operator.lstrip("0123456789*")

    def _end_word(self) -> None:
        if not self.pieces:
            return
        text = "".join(each.text for each in self.pieces)
        if not self.into:
            self.bare.append(self.is_bare)
        self.add_word(text, literal=all(each.literal for each in self.pieces))
        self.pieces = []

    def end_part(self, separator: str) -> None:
        """End the part, and give its words the form that the rules know."""
        self._end_word()
        words, bare = self.words, self.bare
        if len(words) > 1 and words[0].text[:1] == "$" and words[1].text == "=":
            self._assign(words)
            words, bare = words[2:], bare[2:]
        words = [self.texts.get(word.text.lower(), word) for word in words]
        if words and not bare[0] and not self.is_called:
            words, bare = [_ECHO, *words], [True, *bare]
        elif words:
            name = words[0].text.lower()
            words = [Word(_ALIASES.get(name, name), words[0].literal), *words[1:]]
            if "-" in words[0].text:
                words = [
                    _parameter(word) if plain else word
                    for word, plain in zip(words, bare, strict=True)
                ]
        if self.depth > 0:
            self.operators.append("{")
        self.words = words
        self.add_part(separator)
        self.bare, self.is_called = [], False

    def _assign(self, words: list[Word]) -> None:
        """Remember the literal text of a variable, or that it is not known any more."""
        name, value = words[0].text.lower(), words[2:]
        self.texts.pop(name, None)
        if len(value) == 1 and value[0].literal and not self.depth:
            self.texts[name] = value[0]


def _parameter(word: Word) -> Word:
    """Return `-Path` as `--path`, and `-Path:x` as `--path=x`; any other word as it is."""
    found = _PARAMETER.fullmatch(word.text)
    if found is None:
        return word
    name, colon, value = found.groups()
    return Word(f"--{name.lower()}{'=' if colon else ''}{value}", word.literal)
