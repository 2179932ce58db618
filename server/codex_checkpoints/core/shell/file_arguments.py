"""Finds the files that a command reads and writes by its words (rules, "Observations").

Each known command has its options in `_COMMANDS`; a command with another option names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from codex_checkpoints.core.shell.file_writers import formatted_by, looks_like_a_file
from codex_checkpoints.core.shell.posix import Read, SimpleCommand, UnclearError, Write

_Span = tuple[int | None, int | None]
_Given = Sequence[tuple[str, str]]
INTO: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
"""The redirections that write a file."""

_FED: Final = frozenset({"tee", "set-content", "out-file"})
"""They write their input into the files that they name."""

_EXPANDS: Final = "\0"
"""Prefix of a word that is not literal; such a word names no file."""


def named_by(part: SimpleCommand) -> tuple[tuple[Read, ...], tuple[Write, ...]]:
    """Return the files that the words of a part name."""
    if formatted := formatted_by(part.words):
        return (), tuple(Write(each, "update", each) for each in formatted)
    words, name = part.words, part.name
    if name == "git" and len(words) > 1 and f"git {words[1].text}" in _COMMANDS:
        words, name = words[1:], f"git {words[1].text}"
        if name == "git checkout":  # a commit precedes `--`; without it the word is a branch
            at = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
            words = (words[0], *words[at:])
    command = _COMMANDS.get(name)
    is_fed = part.heredocs or any(each.operator not in INTO for each in part.redirects)
    if command is None or (is_fed and name not in _FED) or not (words and words[0].literal):
        return (), ()
    words = words[1:]
    arguments = [word.text if word.literal else _EXPANDS + word.text for word in words]
    options = list(_options(arguments, command))
    known = command.flags + command.valued + command.attached
    if any(letter not in known for letter, _ in options):
        return (), ()
    given = [(letter, value) for letter, value in options if letter]
    try:
        named = tuple(command.files(given, [value for letter, value in options if not letter]))
    except UnclearError:
        return (), ()
    files = [each for each in named if not each.path.startswith("/dev/")]
    return (
        tuple(each for each in files if isinstance(each, Read)),
        tuple(each for each in files if isinstance(each, Write)),
    )


@frozen
class _Command:
    """The options of a command, and the function that returns the files it names.

    `flags` and `valued` are option letters without and with a value; the rest of the argument is
    the value of an `attached` one.  `long` maps long names to letters, and `number` is the letter
    for a bare `-5`.
    """

    files: Callable[[_Given, list[str]], Iterator[Read | Write]]
    flags: str
    valued: str = ""
    long: Mapping[str, str] = {}
    number: str = ""
    attached: str = ""


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
        if letter in command.attached:
            yield letter, argument[place:]
            return
        if letter in command.valued:
            yield letter, argument[place:] or next(rest, "")
            return
        yield letter, ""


def _named(names: list[str]) -> list[str]:
    """Return the names of files; there must be some, literal, and none may be standard input."""
    if not names or any(name in {"", "-"} or name.startswith(_EXPANDS) for name in names):
        raise UnclearError
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
        raise UnclearError
    for name in _named(names):
        yield Read(name, max(int(count), 1)) if count.startswith("+") else Read(name)


def _count(given: _Given, form: str) -> str:
    """Return the number of lines as text, `-` if bytes are counted."""
    values = dict(given)
    count = values.get("n", "10")
    if not re.fullmatch(form, count) or not re.fullmatch(
        "[+-]?[0-9]+[A-Za-z]*", values.get("c", "1")
    ):
        raise UnclearError
    if not count.strip("-0"):
        raise UnclearError
    return "-" if "c" in values else count


def _sed(given: _Given, names: list[str]) -> Iterator[Read | Write]:
    scripts = [value for letter, value in given if letter == "e"]
    letters = {letter for letter, _ in given}
    if "i" in letters and names and re.fullmatch(r"(\.\w+)?", names[0]) is not None:
        names = names[1:]  # a suffix, as BSD has it
    if not scripts and "f" not in letters:
        scripts, names = names[:1], names[1:]
    if "i" in letters:
        yield from map(Write, _named(names))
        return
    if "n" not in letters or "f" in letters:
        raise UnclearError
    spans = [_span(line) for line in re.split("[;\n]", "\n".join(scripts)) if line.strip()]
    names = _named(names)
    if not spans:
        raise UnclearError
    # sed numbers the lines of several files as one text.
    for name in names:
        yield from [Read(name, *span) for span in spans] if len(names) == 1 else [Read(name)]


_PRINTED: Final = re.compile(
    r"\s*(?:([0-9]{1,15}|\$)(?:,(\+?[0-9]{1,15}|\$))?)?\s*p\s*",
)


def _span(line: str) -> _Span:
    """Read one `10,20p` of a sed script."""
    prints = _PRINTED.fullmatch(line)
    if prints is None:
        raise UnclearError
    first, last = prints.groups()
    if first is None or first == "$":
        return None, None
    start = int(first)
    if start == 0:
        raise UnclearError
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


def _perl(given: _Given, names: list[str]) -> Iterator[Write]:
    letters = {letter for letter, _ in given}
    if "i" not in letters or "e" not in letters or letters.isdisjoint("pn"):
        raise UnclearError
    yield from map(Write, _named(names))


def _touch(_given: _Given, names: list[str]) -> Iterator[Write]:
    yield from map(Write, _named(names))


def _truncate(given: _Given, names: list[str]) -> Iterator[Write]:
    if "s" not in dict(given):
        raise UnclearError
    yield from map(Write, _named(names))


def _remove(_given: _Given, names: list[str]) -> Iterator[Write]:
    for name in _named(names):
        yield Write(name, "delete")


def _git_remove(given: _Given, names: list[str]) -> Iterator[Write]:
    """Name the files that `git rm` deletes; a folder needs `-r`."""
    if any(letter == "c" for letter, _ in given):
        raise UnclearError
    yield from _remove(given, names)


def _git_restored(_given: _Given, names: list[str]) -> Iterator[Write]:
    """Name the files that git puts back; a path that looks like a folder is left out."""
    for name in _named(names):
        if looks_like_a_file(name):
            yield Write(name, "update", name)


def _fetched(given: _Given, _names: list[str]) -> Iterator[Write]:
    """Name the target file of a download."""
    into = [value for letter, value in given if letter in {"o", "O"}]
    if len(into) != 1 or into == ["-"]:
        raise UnclearError
    yield from map(Write, _named(into))


def _copy(_given: _Given, names: list[str]) -> Iterator[Write]:
    _, target = _ends(names)
    yield Write(target, "update", target)


def _move(_given: _Given, names: list[str]) -> Iterator[Write]:
    for name in (ends := _ends(names)):
        yield Write(name, "move", ends[1])


def _ends(names: list[str]) -> tuple[str, str]:
    """Return source and target; with several sources the target is a folder."""
    source, target, *more = [*_named(names), ""]
    if more != [""] or target.endswith(("/", "/.", "/..")) or target in {".", ".."}:
        raise UnclearError
    return source, target


def _get_content(given: _Given, names: list[str]) -> Iterator[Read]:
    """Read files in PowerShell; of the first lines the numbers are known."""
    first = dict(given).get("t", "")
    for name in _named([*_paths(given), *names]):
        yield Read(name, 1, int(first)) if re.fullmatch("[0-9]{1,15}", first) else Read(name)


def _set_content(given: _Given, names: list[str]) -> Iterator[Write]:
    """Write files in PowerShell: the first word is the path, a second one the value."""
    yield from map(Write, _named([*_paths(given)] or names[:1]))


def _paths(given: _Given) -> list[str]:
    return [value for letter, value in given if letter == "p"]


_LENGTHS: Final = {"lines": "n", "bytes": "c"}
_ASKS: Final = {"force": "f", "verbose": "v", "interactive": "i"}
_PATHS: Final = {"path": "p", "literalpath": "p", "filepath": "p"} | dict.fromkeys(
    ("encoding", "erroraction", "ea"), "e"
)
_FIRST: Final = {"totalcount": "t", "head": "t", "first": "t"}
_LAST: Final = {"tail": "l", "last": "l"}
_COMMANDS: Final[Mapping[str, _Command]] = {
    "cat": _Command(_whole, "AbeEnstTuv"),
    "nl": _Command(_whole, "p", "bdfhilnsvw"),
    "head": _Command(_head, "qv", "nc", _LENGTHS, "n"),
    "tail": _Command(_tail, "qv", "nc", _LENGTHS, "n"),
    "sed": _Command(
        _sed,
        "nErsu",
        "ef",
        {"quiet": "n", "silent": "n", "expression": "e", "in-place": "i", "regexp-extended": "E"},
        attached="i",
    ),
    "perl": _Command(_perl, "pnwl", "e", attached="i0"),
    "tee": _Command(_touch, "aip", long={"append": "a"}),
    "touch": _Command(_touch, "cm", "dt", {"no-create": "c", "date": "d"}),
    "truncate": _Command(_truncate, "co", "s", {"size": "s", "no-create": "c"}),
    "rm": _Command(_remove, "fvi", long=_ASKS),
    "cp": _Command(_copy, "fvipT", long=_ASKS | {"preserve": "p"}),
    "mv": _Command(_move, "fviT", long=_ASKS),
    "git mv": _Command(_move, "fvk", long=_ASKS),
    "git rm": _Command(_git_remove, "fqc", long=_ASKS | {"quiet": "q", "cached": "c"}),
    "git checkout": _Command(_git_restored, ""),
    "git restore": _Command(_git_restored, "qW", "s", {"source": "s", "worktree": "W"}),
    "curl": _Command(
        _fetched,
        "sSLfkgvi#46",
        "oHXdAuemw",
        {"output": "o", "silent": "s", "show-error": "S", "location": "L", "fail": "f"}
        | {"compressed": "g", "create-dirs": "g", "header": "H", "retry": "m", "max-time": "m"},
    ),
    "wget": _Command(_fetched, "qcNv46", "OTt", {"quiet": "q", "output-document": "O"}),
    # PowerShell's parameters are read as long options.
    "get-content": _Command(
        _get_content, "r", "ptle", _PATHS | _FIRST | _LAST | {"raw": "r", "readcount": "e"}
    ),
    "set-content": _Command(
        _set_content, "f", "pve", _PATHS | {"value": "v", "force": "f", "nonewline": "f"}
    ),
    "out-file": _Command(
        _set_content,
        "f",
        "pve",
        _PATHS
        | {"inputobject": "v", "width": "e"}
        | dict.fromkeys(("append", "force", "nonewline"), "f"),
    ),
}
