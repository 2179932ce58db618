"""A shell script as its simple commands: words with their quotes resolved, and what joins them.

This is far less than a shell. What it does not follow (subshells, functions, `case`, a heredoc
inside a substitution) ends the splitting there, and the last part says so. What the commands
mean is for `shell` to tell.
"""

import re
from typing import Final

from codex_checkpoints.values import frozen

SEPARATORS: Final = frozenset({"&&", "||", ";", "\n", "|", "&"})


@frozen
class Word:
    """A word after the removal of quotes; `literal` when the shell puts nothing else for it."""

    text: str
    literal: bool


@frozen
class Part:
    """One simple command, up to the separator that ends it.

    `operators` holds whatever is neither word nor separator: redirections, the `&` that sends
    the command to the background, and the place where splitting ended. `heredocs` holds the
    bodies that are complete; their delimiters are no words of the command.
    """

    words: tuple[Word, ...]
    operators: tuple[str, ...]
    heredocs: tuple[str, ...]
    then: str


# Backslash and `'` without a partner match nothing: such a script cannot be split at all.
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)|(?P<join>\\\n)|(?P<escape>\\.)|(?P<single>'[^']*')"
    r"|(?P<ansi>\$'[^'\\]*(?:\\.[^'\\]*)*')|(?P<expands>\$[({]|[\"`])|(?P<hash>\#)|(?P<home>~)"
    r"|(?P<operator>&&|&>>?|&|\|\||\|&|\||;;&|;;|;&|;|<<<|<<-|<<|<>|<&|<|>>|>\||>&|>|[()\n])"
    r"|(?P<pattern>\$(?!')|[*?\[{}])|(?P<plain>[^ \t\n\\'\"`$;&|<>()*?\[{}\#~]+)",
    re.DOTALL,
)
_CLOSERS = {"$(": ")", "(": ")", "${": "}", '"': '"', "`": "`"}
_WITHIN = {
    '"': re.compile(r"\\.|\$[({]|[\"`]", re.DOTALL),
    "`": re.compile(r"\\.|`", re.DOTALL),
    "}": re.compile(r"\\.|\$[({]|[\"'`}]", re.DOTALL),
    ")": re.compile(r"\\.|\$[({]|'[^']*'|[\"'`()]|<<|(?<=\s)\#", re.DOTALL),
}
_ESCAPED = re.compile(r"\\([$`\"\\\n])")
_ENDS_HERE = frozenset({"(", ")", ";;", ";&", ";;&"})


class _NotAScriptError(Exception):
    """A quote, a substitution or an escape has no end."""


def parts_of(script: str) -> tuple[Part, ...] | None:
    """Split a script into its simple commands; None when a quote in it has no end."""
    splitter = _Splitter(script)
    try:
        splitter.run()
    except _NotAScriptError:
        return None
    return tuple(splitter.parts)


class _Splitter:
    """One pass over a script, each character looked at a fixed number of times."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self.parts: list[Part] = []
        self.words: list[Word] = []
        self.operators: list[str] = []
        self.bodies: list[str] = []
        self.pieces: list[str] | None = None
        self.literal = True
        self.awaited: list[tuple[str, str]] = []
        self.expects_delimiter = ""

    def run(self) -> None:
        """Split to the end of the script, or to the first thing that is not followed."""
        ended = False
        while self.at < len(self.script) and not ended:
            token = _TOKEN.match(self.script, self.at)
            if token is None:
                raise _NotAScriptError
            self.at = token.end()
            ended = self._take(token.lastgroup or "", token[0])
        self._end_word()
        self._end_part("")

    def _take(self, kind: str, text: str) -> bool:
        """Take one token; tell whether splitting ends with it."""
        match kind:
            case "blank":
                self._end_word()
            case "operator":
                self._end_word()
                return self._operator(text)
            case "hash" if self.pieces is None:
                end = self.script.find("\n", self.at)
                self.at = len(self.script) if end < 0 else end
            case "expands":
                return self._expansion(text)
            case "join":
                pass
            case "escape":
                # Nobody escapes a letter in a file name: that is a Windows path, which a POSIX
                # shell would read as something else than its author meant.
                self._piece(text[1], literal=not text[1].isalnum())
            case "single":
                self._piece(text[1:-1])
            case "home":
                self._piece(text, literal=self.pieces is not None)
            case _:
                self._piece(text, literal=kind in {"plain", "hash"})
        return False

    def _piece(self, text: str, *, literal: bool = True) -> None:
        """Add to the word that is being read, or begin one."""
        if self.pieces is None:
            self.pieces, self.literal = [], True
        self.pieces.append(text)
        self.literal = self.literal and literal

    def _expansion(self, opener: str) -> bool:
        """Take a double-quoted string or a substitution, whole; True when its end is unclear."""
        start = self.at
        open_ones = [_CLOSERS[opener]]
        while open_ones:
            found = _WITHIN[open_ones[-1]].search(self.script, self.at)
            if found is None:
                raise _NotAScriptError
            self.at = found.end()
            if found[0] == open_ones[-1]:
                open_ones.pop()
            elif found[0] in _CLOSERS:
                open_ones.append(_CLOSERS[found[0]])
            elif found[0] in {"<<", "#", "'"}:
                self._piece("", literal=False)
                self.operators.append(found[0])
                return True
        inner = self.script[start : self.at - 1]
        bare = re.sub(r"\\.", "", inner, flags=re.DOTALL)
        text = _ESCAPED.sub(lambda escape: escape[1].replace("\n", ""), inner)
        self._piece(text, literal=opener == '"' and "$" not in bare and "`" not in bare)
        return False

    def _operator(self, operator: str) -> bool:
        """Take an operator; tell whether splitting ends with it."""
        if operator == "\n":
            self._read_heredocs()
        if operator not in SEPARATORS or operator == "&":
            self.operators.append(operator)
        if operator in SEPARATORS:
            self._end_part(operator)
        self.expects_delimiter = operator if operator in {"<<", "<<-"} else ""
        return operator in _ENDS_HERE

    def _end_word(self) -> None:
        """Put the word that was read where it belongs, if there is one."""
        if self.pieces is None:
            return
        text = "".join(self.pieces)
        self.pieces = None
        if self.expects_delimiter:
            self.awaited.append((text, "\t" if self.expects_delimiter == "<<-" else ""))
            self.expects_delimiter = ""
        else:
            self.words.append(Word(text, self.literal))

    def _end_part(self, separator: str) -> None:
        """Close the command that was read, if there is one."""
        if self.words or self.operators:
            content = tuple(self.words), tuple(self.operators), tuple(self.bodies)
            self.parts.append(Part(*content, separator))
        self.words, self.operators, self.bodies = [], [], []

    def _read_heredocs(self) -> None:
        """Read the bodies that begin on this line; one without its delimiter takes the rest."""
        for delimiter, indent in self.awaited:
            lines: list[str] = []
            while self.at < len(self.script):
                end = self.script.find("\n", self.at)
                end = len(self.script) if end < 0 else end
                line = self.script[self.at : end].lstrip(indent)
                self.at = end + 1
                # Without quotes around its delimiter, a heredoc goes on after such a line end.
                if line == delimiter and not (lines and lines[-1].endswith("\\\n")):
                    self.bodies.append("".join(lines))
                    break
                lines.append(line + "\n")
        self.awaited = []
