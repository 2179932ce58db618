"""The files, and the lines of them, that one simple command plainly reads.

Known are `cat`, `head`, `tail`, `nl` and `sed -n` with the options that people use. A command
with anything else in it reads nothing here. Splitting a script into commands is the work of
`shell_words`, following its folder that of `shell`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from codex_checkpoints.core.rollout.shell_words import Part
from codex_checkpoints.values import frozen

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
