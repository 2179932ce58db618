"""What the text of a shell call shows: its script, the files it only reads, its patch.

Nothing is run and nothing is guessed.  The caller joins paths to folders and knows whether the call
succeeded.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from codex_checkpoints.core.rollout.patch import BEGIN
from codex_checkpoints.values import frozen

SEPARATORS: Final = frozenset({"&&", "||", ";", "\n", "|", "&"})


@frozen
class Word:
    """A word without its quotes; `literal` if the shell expands nothing in it."""

    text: str
    literal: bool


@frozen
class Part:
    """One simple command, up to the separator that ends it.

    `operators` has what is neither word nor separator: redirections, the `&` of a background
    command, and the token where splitting ended.  `heredocs` has the complete bodies; their
    delimiters are no words.
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
    """Split a script into its simple commands; None if a quote in it has no end."""
    splitter = _Splitter(script)
    try:
        splitter.run()
    except _NotAScriptError:
        return None
    return tuple(splitter.parts)


class _Splitter:
    """One pass over a script, in linear time."""

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
                # Nobody escapes a letter in a file name: this is a Windows path.
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
        if operator not in SEPARATORS or operator == "&":
            self.operators.append(operator)
        if operator in SEPARATORS:
            self._end_part(operator)
        self.expects_delimiter = operator if operator in {"<<", "<<-"} else ""
        return operator in _ENDS_HERE

    def _end_word(self) -> None:
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
        if self.words or self.operators:
            content = tuple(self.words), tuple(self.operators), tuple(self.bodies)
            self.parts.append(Part(*content, separator))
        self.words, self.operators, self.bodies = [], [], []

    def _read_heredocs(self) -> None:
        """Read the bodies that begin on this line; one without a delimiter takes the rest."""
        for delimiter, indent in self.awaited:
            lines: list[str] = []
            while self.at < len(self.script):
                end = self.script.find("\n", self.at)
                end = len(self.script) if end < 0 else end
                line = self.script[self.at : end].lstrip(indent)
                self.at = end + 1
                # Without quotes around its delimiter, a heredoc continues after such a line end.
                if line == delimiter and not (lines and lines[-1].endswith("\\\n")):
                    self.bodies.append("".join(lines))
                    break
                lines.append(line + "\n")
        self.awaited = []


_Span = tuple[int | None, int | None]
_Given = Sequence[tuple[str, str]]


@frozen
class Read:
    """A file that a command reads, by the name in the command.

    `start` and `end` are the first and last line, from 1.  Both are None for a whole file, and for
    a part without known line numbers (`tail -n 5`).
    """

    path: str
    start: int | None = None
    end: int | None = None


class _UnclearError(Exception):
    """The command has an unknown option or form."""


@frozen
class _Command:
    """The options of a command, and the function that returns its reads.

    `flags` and `valued` are option letters without and with a value, `long` maps long names to
    letters, and `number` is the letter for a bare `-5`.
    """

    read: Callable[[_Given, list[str]], Iterator[Read]]
    flags: str
    valued: str = ""
    long: Mapping[str, str] = {}
    number: str = ""


def reads_of(part: Part) -> tuple[Read, ...]:
    """List what a command reads; empty if it does anything but read named files."""
    if part.operators or not all(word.literal for word in part.words):
        return ()
    name, *arguments = [word.text for word in part.words] or [""]
    command = _COMMANDS.get(name)
    if command is None:
        return ()
    options = list(_options(arguments, command))
    if any(letter not in command.flags + command.valued for letter, _ in options):
        return ()
    given = [(letter, value) for letter, value in options if letter]
    try:
        return tuple(command.read(given, [value for letter, value in options if not letter]))
    except _UnclearError:
        return ()


def _options(arguments: list[str], command: _Command) -> Iterator[tuple[str, str]]:
    """Yield options with their values, in any order; an operand has an empty letter."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            yield from (("", each) for each in rest)
        elif argument.startswith("--"):
            name, has_value, value = argument[2:].partition("=")
            letter = command.long.get(name, "-")
            yield letter, next(rest, "") if letter in command.valued and not has_value else value
        elif command.number and re.fullmatch("-[0-9]+", argument):
            yield command.number, argument[1:]
        elif argument.startswith("-"):
            yield from _letters(argument, command, rest)
        else:
            yield "", argument


def _letters(argument: str, command: _Command, rest: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the options in one argument: flags, and perhaps one with its value."""
    # A lone `-` is standard input; it becomes an option that no command has.
    for place, letter in enumerate(argument[1:] or "-", start=2):
        if letter in command.valued:
            yield letter, argument[place:] or next(rest, "")
            return
        yield letter, ""


def _named(names: list[str]) -> list[str]:
    """Return the names of files; there must be some, and none may be standard input."""
    if not names or any(name in {"", "-"} for name in names):
        raise _UnclearError
    return names


def _whole(_given: _Given, names: list[str]) -> Iterator[Read]:
    for name in _named(names):
        yield Read(name)


def _head(given: _Given, names: list[str]) -> Iterator[Read]:
    """Read the first lines; with a count from the end the last line is unknown."""
    count = _count(given, "-?[0-9]{1,15}")
    for name in _named(names):
        yield Read(name, 1, int(count)) if count.isdigit() else Read(name)


def _tail(given: _Given, names: list[str]) -> Iterator[Read]:
    """Read the last lines; their numbers are known only with a count from the first."""
    count = _count(given, "[+-]?[0-9]{1,15}")
    # Old versions read `tail +7 f` as a count, newer ones as two files.
    if names and names[0].startswith("+"):
        raise _UnclearError
    for name in _named(names):
        yield Read(name, max(int(count), 1)) if count.startswith("+") else Read(name)


def _count(given: _Given, form: str) -> str:
    """Return the number of lines as text, `-` if bytes are counted."""
    values = dict(given)
    count = values.get("n", "10")
    if not re.fullmatch(form, count) or not re.fullmatch(
        "[+-]?[0-9]+[A-Za-z]*", values.get("c", "1")
    ):
        raise _UnclearError
    if not count.strip("-0"):
        raise _UnclearError
    return "-" if "c" in values else count


def _sed(given: _Given, names: list[str]) -> Iterator[Read]:
    scripts = [value for letter, value in given if letter == "e"]
    if ("n", "") not in given:
        raise _UnclearError
    if not scripts:
        scripts, names = names[:1], names[1:]
    spans = [_span(line) for line in re.split("[;\n]", "\n".join(scripts)) if line.strip()]
    names = _named(names)
    if not spans:
        raise _UnclearError
    # sed numbers the lines of several files as one text.
    for name in names:
        yield from [Read(name, *span) for span in spans] if len(names) == 1 else [Read(name)]


_PRINTS: Final = re.compile(
    r"\s*(?:([0-9]{1,15}|\$)(?:,(\+?[0-9]{1,15}|\$))?)?\s*p\s*",
)


def _span(line: str) -> _Span:
    """Read one `10,20p` of a sed script."""
    prints = _PRINTS.fullmatch(line)
    if prints is None:
        raise _UnclearError
    first, last = prints.groups()
    if first is None or first == "$":
        return None, None
    start = int(first)
    if start == 0:
        raise _UnclearError
    match last:
        case None:
            return start, start
        case "$":
            return start, None
        case _ if last.startswith("+"):
            return start, start + int(last)
        case _:
            # A range that ends before it begins is its first line.
            return start, max(start, int(last))


_LENGTHS: Final = {"lines": "n", "bytes": "c"}
_COMMANDS: Final[Mapping[str, _Command]] = {
    "cat": _Command(_whole, "AbeEnstTuv"),
    "nl": _Command(_whole, "p", "bdfhilnsvw"),
    "head": _Command(_head, "qv", "nc", _LENGTHS, "n"),
    "tail": _Command(_tail, "qv", "nc", _LENGTHS, "n"),
    "sed": _Command(_sed, "nErsu", "e", {"quiet": "n", "silent": "n", "expression": "e"}),
}


@frozen
class ShellReading:
    """The files that a script reads, and the folder that it changes to first.

    `plain`: the script does nothing but read these files.
    """

    folder: str | None
    reads: tuple[Read, ...]
    plain: bool


@frozen
class ShellPatch:
    """The patch that a script applies, and the folder that it changes to first."""

    folder: str | None
    text: str


_NOTHING: Final = ShellReading(None, (), plain=False)
_POSIX_SHELLS: Final = frozenset({"sh", "bash", "zsh"})
_SCRIPT_OPTION: Final = {"powershell": "-command", "pwsh": "-command", "cmd": "/c"}
_APPLY_PATCH: Final = frozenset({"apply_patch", "applypatch"})
# After a change of folder, a condition or a loop it is unknown which file a name means.
_MOVES: Final = frozenset({"cd", "pushd", "popd"})
_FLOW: Final = re.compile(
    r"case|coproc|do|done|elif|else|esac|eval|exec|exit|fi|for|function|if|return|select|then"
    r"|until|while|[{}]|\[\["
)


def script_of(argv: Sequence[str]) -> str:
    """Return the script in a shell's arguments, or the joined words of any other command."""
    program, options = _program(argv), argv[1:]
    if program in _POSIX_SHELLS and len(options) > 1 and options[0] in {"-c", "-lc"}:
        return options[1]
    if wanted := _SCRIPT_OPTION.get(program):
        for place, option in enumerate(options[:-1], start=1):
            if option.lower() == wanted:
                return " ".join(options[place:])
    return shlex.join(argv)


def _program(argv: Sequence[str]) -> str:
    return re.split(r"[/\\]", argv[0])[-1].lower().removesuffix(".exe") if argv else ""


def read_argv(argv: Sequence[str]) -> ShellReading:
    """Parse the arguments of a call; scripts of PowerShell and cmd give nothing."""
    return _NOTHING if _program(argv) in _SCRIPT_OPTION else read_script(script_of(argv))


def read_script(script: str) -> ShellReading:
    """Find the files that a POSIX script reads, and whether that is all it does."""
    parts = parts_of(script)
    if parts is None:
        return _NOTHING
    folder, parts = _leading_folder(parts)
    reads: list[Read] = []
    plain = bool(parts)
    for part in parts:
        found = reads_of(part)
        reads.extend(found)
        plain = plain and bool(found)
        if not found and _leads_away(part):
            break
    return ShellReading(folder, tuple(reads), plain)


def is_one_cat(script: str) -> bool:
    """Return whether a script is nothing but `cat FILE`."""
    match parts_of(script):
        case (Part((Word("cat"), Word(name, literal=True)), (), (), "" | "\n"),):
            return not name.startswith("-")
        case _:
            return False


def _leads_away(part: Part) -> bool:
    """Return whether the names of later commands are uncertain after this one."""
    words = [word.text for word in part.words]
    return not _MOVES.isdisjoint(words) or _FLOW.fullmatch("".join(words[:1])) is not None


def patch_in(script: str) -> ShellPatch | None:
    """Return the patch of a script that does nothing but apply it, in any shell."""
    # White space after the last line would hide the delimiter of a heredoc.
    folder, parts = _leading_folder(parts_of(script.rstrip(" \t\n")) or ())
    if len(parts) != 1 or parts[0].then not in {"", "\n"}:
        return None
    match parts[0]:
        case Part((Word(name),), ("<<" | "<<-",), (text,)) if name in _APPLY_PATCH:
            pass
        case Part((Word(name), Word(text, literal=True)), (), ()) if name in _APPLY_PATCH:
            pass
        case _:
            return None
    return ShellPatch(folder, text) if BEGIN in text else None


def _leading_folder(parts: tuple[Part, ...]) -> tuple[str | None, tuple[Part, ...]]:
    """Return the folder of a leading `cd DIR &&`, and the rest of the script."""
    match parts:
        case (Part((Word("cd"), Word("--"), folder), (), (), "&&"), *_):
            pass
        case (Part((Word("cd"), folder), (), (), "&&"), *_) if not folder.text.startswith("-"):
            pass
        case _:
            return None, parts
    return (folder.text, parts[1:]) if folder.literal and folder.text else (None, parts)
