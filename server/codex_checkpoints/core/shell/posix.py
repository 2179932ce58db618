"""Splits the script of a call into its simple commands, by the rules of POSIX shells.

Nothing is run and nothing is guessed.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal

from attrs import evolve, frozen

SEPARATORS: Final = frozenset({"&&", "||", ";", "\n", "|", "&"})
_REDIRECTS: Final = frozenset({">", ">>", ">|", "&>", "&>>", "<", "<>", "<<<", "<&", ">&"})
_HEREDOCS: Final = frozenset({"<<", "<<-"})


@frozen
class Word:
    """A word without its quotes; `literal` if the shell expands nothing in it."""

    text: str
    literal: bool


@frozen
class Redirect:
    """A redirection and its target, without the redirected descriptor."""

    operator: str
    target: Word


@frozen
class SimpleCommand:
    """One simple command, up to the separator that ends it.

    `operators` has everything that is neither word nor redirection nor separator: the `&` of a
    background command, and the token where splitting ended.  `heredocs` has the bodies; a body
    whose closing word is missing takes the rest of the script.  `group` is the number of the
    innermost subshell, 0 outside of any.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    operators: tuple[str, ...] = ()
    heredocs: tuple[str, ...] = ()
    then: str = ""
    group: int = 0

    @property
    def name(self) -> str:
        """The word in front, empty if there is none."""
        return self.words[0].text if self.words else ""


@frozen
class Read:
    """A file that a command reads, by the name in the command.

    `start` and `end` are the first and last line, from 1.  Both are None for a whole file, and for
    a part without known line numbers (`tail -n 5`).
    """

    path: str
    start: int | None = None
    end: int | None = None


@frozen
class Write:
    """A file that a command changes, by the name in the command.

    `target` is the target of a copy or a move: if it is a folder, the files have other names.
    """

    path: str
    action: Literal["update", "delete", "move"] = "update"
    target: str | None = None


class UnclearError(Exception):
    """The command has an unknown option or form."""


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


_KEPT = 4
"""Size of the cache of split scripts: one is read for its files and for its kind."""

_WORD = r"(?:[\w./:=,@%+-]|'[^']*'|\"[^\"$`\\]*\")++"
_SIMPLE = re.compile(rf"(?:[ ]|{_WORD}|&&|\|{{1,2}})*+", re.ASCII)
_SIMPLE_TOKEN = re.compile(rf"({_WORD})|(&&|\|{{1,2}})", re.ASCII)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
"""Most scripts have only words, pipes and `&&`; these are split several times faster."""


@lru_cache(_KEPT)
def parts_of(script: str) -> tuple[SimpleCommand, ...] | None:
    """Split a script into its simple commands; None if a quote in it has no end."""
    if _SIMPLE.fullmatch(script):
        return tuple(_simple_parts(script))
    splitter = _Splitter(script)
    try:
        splitter.run()
    except _NotAScriptError:
        return None
    parts = splitter.parts
    for number, bodies in splitter.bodies.items():
        parts[number] = evolve(parts[number], heredocs=tuple(bodies))
    return tuple(parts)


def _simple_parts(script: str) -> Iterator[SimpleCommand]:
    words: list[Word] = []
    for word, separator in (*_SIMPLE_TOKEN.findall(script), ("", "")):
        if word:
            text = _QUOTED.sub(_unquoted, word) if "'" in word or '"' in word else word
            words.append(Word(text, literal=True))
        elif words:
            yield SimpleCommand(tuple(words), then=separator)
            words = []


def _unquoted(quoted: re.Match[str]) -> str:
    return quoted[0][1:-1]


class Collected:
    """The parts of a script of any shell, as a pass over it in linear time finds them."""

    def __init__(self) -> None:
        self.parts: list[SimpleCommand] = []
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.operators: list[str] = []
        self.into = ""
        """The redirection whose target is the next word."""
        self.groups = [0]
        """The subshells that are open, by their numbers."""

    def add_word(self, text: str, *, literal: bool) -> None:
        """Add a word, or the target of a redirection."""
        word = Word(text, literal)
        if self.into:
            self.redirects.append(Redirect(self.into, word))
        else:
            self.words.append(word)
        self.into = ""

    def add_part(self, separator: str, *, empty: bool = False) -> None:
        """Add the collected words as a part, if there are any or it may be `empty`."""
        if self.words or self.redirects or self.operators or empty:
            content = tuple(self.words), tuple(self.redirects), tuple(self.operators)
            self.parts.append(SimpleCommand(*content, (), separator, self.groups[-1]))
        self.words, self.redirects, self.operators = [], [], []


class _Splitter(Collected):
    def __init__(self, script: str) -> None:
        super().__init__()
        self.script = script
        self.at = 0
        self.pieces: list[str] | None = None
        self.literal = True
        self.opened = 0
        self.closed = False
        self.awaited: list[tuple[int, str, str]] = []
        self.bodies: dict[int, list[str]] = {}

    def run(self) -> None:
        """Split to the end of the script, or to the first token that is not supported."""
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
        """Take one token; return whether splitting ends with it."""
        match kind:
            case "blank":
                self._end_word()
            case "operator":
                # In `2>&1` the 2 is not a word.
                if self.pieces is None or not (text[0] in "<>" and "".join(self.pieces).isdigit()):
                    self._end_word()
                self.pieces = None
                return self._operator(text)
            case "hash" if self.pieces is None:
                end = self.script.find("\n", self.at)
                self.at = len(self.script) if end < 0 else end
            case "expands":
                return self._expansion(text)
            case "join":
                pass
            case "escape":
                # A letter in a file name is never escaped: this is a Windows path.
                self._piece(text[1], literal=not text[1].isalnum())
            case "single":
                self._piece(text[1:-1])
            case "home":
                self._piece(text, literal=self.pieces is not None)
            case _:
                self._piece(text, literal=kind in {"plain", "hash"})
        return False

    def _piece(self, text: str, *, literal: bool = True) -> None:
        if self.pieces is None:
            self.pieces, self.literal = [], True
        self.pieces.append(text)
        self.literal = self.literal and literal

    def _expansion(self, opener: str) -> bool:
        """Take a whole string in double quotes or substitution; True if its end is unclear."""
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
        """Take an operator; return whether splitting ends with it."""
        if operator == "\n":
            self._read_heredocs()
        if operator in "()" and self._subshell(operator):
            return False
        if operator in SEPARATORS:
            if operator == "&":
                self.operators.append(operator)
            self._end_part(operator)
        elif operator not in _REDIRECTS | _HEREDOCS:
            self.operators.append(operator)
        self.into = operator if operator in _REDIRECTS | _HEREDOCS else ""
        return operator in _ENDS_HERE

    def _subshell(self, operator: str) -> bool:
        """Open or close a subshell; False if the parenthesis belongs to something else."""
        if operator == "(" and not (self.words or self.redirects or self.into):
            self.opened += 1
            self.groups.append(self.opened)
            return True
        if operator == ")" and len(self.groups) > 1:
            self._end_part("")
            self.groups.pop()
            self.closed = True
            return True
        return False

    def _end_word(self) -> None:
        if self.pieces is None:
            return
        text, self.pieces = "".join(self.pieces), None
        if self.into not in _HEREDOCS:
            self.add_word(text, literal=self.literal)
            return
        # The body comes after the line, and so perhaps after other parts.
        self.awaited.append((len(self.parts), text, "\t" if self.into == "<<-" else ""))
        self.bodies[len(self.parts)] = []
        self.into = ""

    def _end_part(self, separator: str) -> None:
        known = len(self.parts)
        self.add_part(separator, empty=known in self.bodies)
        if self.closed and self.parts and known == len(self.parts):
            self.parts[-1] = evolve(self.parts[-1], then=separator)
        self.closed = False

    def _read_heredocs(self) -> None:
        """Read the bodies that begin on this line; one without a delimiter takes the rest."""
        for part, delimiter, indent in self.awaited:
            lines: list[str] = []
            while self.at < len(self.script):
                end = self.script.find("\n", self.at)
                end = len(self.script) if end < 0 else end
                line = self.script[self.at : end].lstrip(indent)
                self.at = end + 1
                # Without quotes around its delimiter, a heredoc continues after such a line end.
                if line == delimiter and not (lines and lines[-1].endswith("\\\n")):
                    break
                lines.append(line + "\n")
            self.bodies[part].append("".join(lines))
        self.awaited = []


def is_one_cat(script: str) -> bool:
    """Return whether a script is nothing but `cat FILE`."""
    match parts_of(script):
        case (SimpleCommand((Word("cat"), Word(name, literal=True)), (), (), (), "" | "\n"),):
            return not name.startswith("-")
        case _:
            return False


POSIX_SHELLS: Final = frozenset({"sh", "bash", "zsh"})
POWERSHELLS: Final = frozenset({"powershell", "pwsh"})
_SCRIPT_OPTION: Final = {**dict.fromkeys(POWERSHELLS, ("-command", "-c")), "cmd": ("/c", "/k")}
_RUNS_WORD: Final = re.compile(r"-[eilux]{0,4}c")


def script_of(argv: Sequence[str]) -> str:
    """Return the script in a shell's arguments, or the joined words of any other command."""
    script = nested_script(argv)
    return shlex.join(argv) if script is None else script


def nested_script(argv: Sequence[str]) -> str | None:
    """Return the script that a shell gets as an argument, None without one."""
    program, options = program_of(argv), argv[1:]
    if program in POSIX_SHELLS and len(options) > 1 and _RUNS_WORD.fullmatch(options[0]):
        return options[1]
    if wanted := _SCRIPT_OPTION.get(program):
        for place, option in enumerate(options[:-1], start=1):
            if option.lower() in wanted:
                return " ".join(options[place:])
    return None


def argv_of(script: str, program: str) -> tuple[str, str, str]:
    """Return the arguments of a shell, by its name, that runs a script."""
    option = _SCRIPT_OPTION.get(program_of([program]))
    return ("sh", "-c", script) if option is None else (program, option[0], script)


def program_of(argv: Sequence[str]) -> str:
    """Return the program of a call, without its folder and ending, in lower case."""
    return _name_of(argv[0]) if argv else ""


@lru_cache(64)  # most commands are run by one shell
def _name_of(program: str) -> str:
    return re.split(r"[/\\]", program)[-1].lower().removesuffix(".exe")
