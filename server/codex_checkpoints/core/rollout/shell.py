"""What a shell call plainly does: its script, the files it only reads, the patch it only applies.

Everything here is read off the text, nothing is run and nothing is guessed. Splitting a script
into words is the work of `shell_words`, and what one command reads that of `shell_reads`; joining
names to a folder, and whether the call succeeded, are for the caller.
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


_Span = tuple[int | None, int | None]
_Given = Sequence[tuple[str, str]]


@frozen
class Read:
    """A file that is read, by the name it is called by.

    `start` and `end` are the first and last line, from 1, as far as the command names them.
    Both are None for a whole file, and for a part that line numbers do not tell (`tail -n 5`).
    """

    path: str
    start: int | None = None
    end: int | None = None


class _UnclearError(Exception):
    """The command holds something that we do not understand."""


@frozen
class _Command:
    """The options of a command, and what it makes of them and its operands.

    `flags` and `valued` are option letters without and with a value, `long` maps long names to
    letters, and `number` is the letter that a bare `-5` stands for.
    """

    read: Callable[[_Given, list[str]], Iterator[Read]]
    flags: str
    valued: str = ""
    long: Mapping[str, str] = {}
    number: str = ""


def reads_of(part: Part) -> tuple[Read, ...]:
    """List what a command plainly reads; nothing when it is not a plain read of named files."""
    if part.operators or not all(word.literal for word in part.words):
        return ()
    name, *arguments = [word.text for word in part.words] or [""]
    command = _COMMANDS.get(name)
    if command is None:
        return ()
    try:
        return tuple(command.read(*_sorted_out(arguments, command)))
    except _UnclearError:
        return ()


def _sorted_out(arguments: list[str], command: _Command) -> tuple[_Given, list[str]]:
    """Tell options from operands, which may stand in any order."""
    given: list[tuple[str, str]] = []
    operands: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            operands.extend(rest)
        elif argument.startswith("--"):
            name, has_value, value = argument[2:].partition("=")
            letter = command.long.get(name, "-")
            if letter in command.valued and not has_value:
                value = next(rest, "")
            given.append((letter, value))
        elif command.number and re.fullmatch("-[0-9]+", argument):
            given.append((command.number, argument[1:]))
        elif argument.startswith("-"):
            given.extend(_letters(argument, command, rest))
        else:
            operands.append(argument)
    if any(letter not in command.flags + command.valued for letter, _ in given):
        raise _UnclearError
    return given, operands


def _letters(argument: str, command: _Command, rest: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the options in one argument: flags, and perhaps one with a value behind it."""
    # A lone `-` is standard input; it comes out as an option that no command has.
    for place, letter in enumerate(argument[1:] or "-", start=2):
        if letter in command.valued:
            yield letter, argument[place:] or next(rest, "")
            return
        yield letter, ""


def _named(names: list[str]) -> list[str]:
    """Pass on the names of files, if there are any and none is standard input."""
    if not names or any(name in {"", "-"} for name in names):
        raise _UnclearError
    return names


def _whole(_given: _Given, names: list[str]) -> Iterator[Read]:
    """Read files from end to end."""
    for name in _named(names):
        yield Read(name)


def _head(given: _Given, names: list[str]) -> Iterator[Read]:
    """Read the first lines, ten unless told; counted from the end they have no last number."""
    count = _count(given, "-?[0-9]{1,15}")
    for name in _named(names):
        yield Read(name, 1, int(count)) if count.isdigit() else Read(name)


def _tail(given: _Given, names: list[str]) -> Iterator[Read]:
    """Read the last lines, which have numbers only when they are counted from the first."""
    count = _count(given, "[+-]?[0-9]{1,15}")
    # Old versions take `tail +7 f` for a count, newer ones for two files.
    if names and names[0].startswith("+"):
        raise _UnclearError
    for name in _named(names):
        yield Read(name, max(int(count), 1)) if count.startswith("+") else Read(name)


def _count(given: _Given, form: str) -> str:
    """Find how many lines are asked for; a count of bytes says nothing about lines."""
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
    """Read the lines that a script of addresses prints."""
    scripts = [value for letter, value in given if letter == "e"]
    if ("n", "") not in given:
        raise _UnclearError
    if not scripts:
        scripts, names = names[:1], names[1:]
    spans = [_span(line) for line in re.split("[;\n]", "\n".join(scripts)) if line.strip()]
    names = _named(names)
    if not spans:
        raise _UnclearError
    # Several files count as one text, so that no line number is a file's own.
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


__all__ = [
    "Read",
    "ShellPatch",
    "ShellReading",
    "patch_in",
    "patch_in_argv",
    "read_argv",
    "read_script",
    "script_of",
]


@frozen
class ShellReading:
    """What a script plainly reads, and the folder that it changes to before anything else.

    `plain` says that the script does nothing but read these files.
    """

    folder: str | None
    reads: tuple[Read, ...]
    plain: bool


@frozen
class ShellPatch:
    """A patch that is all of a script, and the folder that the script changes to first."""

    folder: str | None
    text: str


_NOTHING: Final = ShellReading(None, (), plain=False)
_POSIX_SHELLS: Final = frozenset({"sh", "bash", "zsh"})
_SCRIPT_OPTION: Final = {"powershell": "-command", "pwsh": "-command", "cmd": "/c"}
_APPLY_PATCH: Final = frozenset({"apply_patch", "applypatch"})
# After a change of folder, or where a part may run never, twice or as something else, a name no
# longer tells which file was read.
_MOVES: Final = frozenset({"cd", "pushd", "popd"})
_FLOW: Final = re.compile(
    r"case|coproc|do|done|elif|else|esac|eval|exec|exit|fi|for|function|if|return|select|then"
    r"|until|while|[{}]|\[\["
)


def script_of(argv: Sequence[str]) -> str:
    """Take the script out of a shell's arguments, or join the words of any other command."""
    program, options = _program(argv), argv[1:]
    if program in _POSIX_SHELLS and len(options) > 1 and options[0] in {"-c", "-lc"}:
        return options[1]
    if wanted := _SCRIPT_OPTION.get(program):
        for place, option in enumerate(options[:-1], start=1):
            if option.lower() == wanted:
                return " ".join(options[place:])
    return shlex.join(argv)


def _program(argv: Sequence[str]) -> str:
    """Name the program of a call without its folder."""
    return re.split(r"[/\\]", argv[0])[-1].lower().removesuffix(".exe") if argv else ""


def read_argv(argv: Sequence[str]) -> ShellReading:
    """Read a call by its arguments; of PowerShell's and cmd's scripts nothing is read."""
    return _NOTHING if _program(argv) in _SCRIPT_OPTION else read_script(script_of(argv))


def read_script(script: str) -> ShellReading:
    """Find the files that a POSIX script plainly reads, and whether that is all it does."""
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


def _leads_away(part: Part) -> bool:
    """Tell whether names in later commands may mean something else, or may not be reached."""
    words = [word.text for word in part.words]
    return not _MOVES.isdisjoint(words) or _FLOW.fullmatch("".join(words[:1])) is not None


def patch_in_argv(argv: Sequence[str]) -> ShellPatch | None:
    """Find the patch of a call that only applies one, by itself or through any shell."""
    # A joined call reads like a script, and Codex takes the heredoc form from PowerShell too.
    return patch_in(script_of(argv))


def patch_in(script: str) -> ShellPatch | None:
    """Find the patch of a script that does nothing but apply it."""
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
    """Take a `cd DIR &&` off the front of a script."""
    match parts:
        case (Part((Word("cd"), Word("--"), folder), (), (), "&&"), *_):
            pass
        case (Part((Word("cd"), folder), (), (), "&&"), *_) if not folder.text.startswith("-"):
            pass
        case _:
            return None, parts
    return (folder.text, parts[1:]) if folder.literal and folder.text else (None, parts)
