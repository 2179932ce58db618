"""Shares parsers, arguments, sessions, and running one operation among the commands."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn, cast

from attrs import fields

from codex_checkpoints import wire
from codex_checkpoints.doors.cli import output
from codex_checkpoints.doors.cli.session_scope import Terminal, opened
from codex_checkpoints.doors.folder_options import folder_options
from codex_checkpoints.operations.services import Services, records_of
from codex_checkpoints.places import Places
from codex_checkpoints.sections.terminal import Screen, plain
from codex_checkpoints.service.progress import Steps, run_steps
from codex_checkpoints.service.refusal import Refusal
from codex_checkpoints.service.sessions.sessions import LATEST
from codex_checkpoints.storage.contract import is_windows_path

Run = Callable[[argparse.Namespace, "Terminal"], int]
RunAlone = Callable[[argparse.Namespace, "Places"], int]
Before = Callable[["Terminal", argparse.Namespace], None]
"""A step on the sessions before the command runs."""

Check = Callable[[argparse.Namespace], str | None]
"""Returns the problem of arguments that depend on each other, or None."""

Argument = Callable[[Any], object]
"""Adds an argument to a parser, or to a group of one."""

Operation = Callable[..., Any]

Lines = Callable[[Any, "Screen"], Iterable[str]]
"""Returns the lines for people from the result of an operation."""

DONE, REFUSED, INTERRUPTED = 0, 1, 130
"""Exit codes; argparse itself ends with 2 for wrong usage."""

_NO_COMMAND = "argument COMMAND: invalid choice: "


class _Format(argparse.HelpFormatter):
    """The format of help, as wide as the terminal; argparse itself would load `shutil` for it."""

    def __init__(self, prog: str) -> None:
        chosen = os.environ.get("COLUMNS", "")
        columns = int(chosen) if chosen.isdecimal() else 0
        super().__init__(prog, width=(columns or output.width() or 80) - 2)


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the problem and where help is, without a list of choices."""

    options_first = False
    """Whether an option precedes the command."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as argparse has them
        super().__init__(**options, formatter_class=_Format)

    def error(self, message: str) -> NoReturn:
        """Print the problem in one sentence; exit with the code of wrong usage."""
        if message.startswith(_NO_COMMAND):
            name, _, choices = message.removeprefix(_NO_COMMAND).partition(" (choose from ")
            near = get_close_matches(name.strip("'"), re.findall("[a-z-]+", choices), 1)
            way_out = f"; did you mean `{near[0]}`?" if near else ""
            message = f"no command {name}; --help lists them{way_out}"
            if not near and self.options_first:
                message += "; options come after the command"
        elif message.endswith("required: COMMAND"):
            message = "which command? --help lists them; `sessions` is one to begin with"

        super().error(plain(message))

    def read(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Return the options; unknown ones end with the usage of their command."""
        self.options_first = bool(arguments) and arguments[0].startswith("-")
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            options.wrong(f"unknown: {' '.join(unknown)}; --help lists the options")
        return options


def refresh(services: Terminal, _options: argparse.Namespace) -> None:
    """Update the index."""
    services.update_index()


def refresh_for_session(services: Terminal, options: argparse.Namespace) -> None:
    """Update the index; warn if the named file is not a session of Codex's.

    Reading never fails, so the answer about such a file would be an empty one.
    """
    services.update_index()
    row = services.sessions.find(options.session_id)
    if row.history_mode is None and row.turns == 0:
        output.say(f"{row.path}: neither the head of a session nor a turn; is it a session file?")


def with_sessions(
    run: Run, before: Before | None, options: argparse.Namespace, where: Places
) -> int:
    """Run a command with the sessions of a home, and close them in the end."""
    with opened(where) as services:
        if before is not None:
            before(services, options)
            _name_latest(services, options)
        return run(options, services)


def _name_latest(services: Terminal, options: argparse.Namespace) -> None:
    """Say which session is the latest; a pipe or a JSON document goes without that."""
    is_named = "names_session" in options and options.session_id == LATEST
    shown = screen(options)
    if is_named and shown.width is not None and not getattr(options, "json", False):
        row = services.sessions.find(LATEST)
        title = services.sessions.title(row) or "(no message yet)"
        output.say(shown.cut(f"latest: {row.session_id}  {plain(title)}"))


class Commands:
    """The commands of a parser by name, each with the two options about folders.

    A module adds the arguments of all its commands; arguments of other commands are left out.
    """

    def __init__(self, parser: argparse.ArgumentParser, abouts: Mapping[str, str]) -> None:
        folders = folder_options(Parser(add_help=False))
        parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
        self._parsers: dict[str, argparse.ArgumentParser] = {}
        for name, about in abouts.items():
            description = f"{about[0].upper()}{about[1:]}."
            added = parsers.add_parser(name, help=about, description=description, parents=[folders])
            self._parsers[name] = added

    def add(
        self,
        name: str,
        run: Run,
        *arguments: Argument,
        check: Check | None = None,
        before: Before | None = refresh,
        usage: str | None = None,
    ) -> None:
        """Add a command that works with sessions."""
        run_alone = partial(with_sessions, run, before)
        self.add_alone(name, run_alone, *arguments, check=check, usage=usage)

    def add_alone(
        self,
        name: str,
        run: RunAlone,
        *arguments: Argument,
        check: Check | None = None,
        usage: str | None = None,
    ) -> None:
        """Add a command that opens its resources itself, from the given folders."""
        added = self._parsers.get(name)
        if added is None:
            return
        added.usage = usage
        added.set_defaults(run=run, check=check, wrong=added.error)
        for argument in arguments:
            argument(added)


def ask(
    options: argparse.Namespace, services: Services, operation: Operation, *others: object
) -> Any:  # noqa: ANN401 - the record of any operation
    """Run an operation; its params are the arguments with the names of their fields.

    `others` are given after the params.
    """
    kind, _ = records_of(operation)
    names = [field.name for field in fields(kind) if field.name in options]
    found = operation(services, kind(**{name: getattr(options, name) for name in names}), *others)
    return run_steps(cast("Steps[Any]", found)) if isinstance(found, Generator) else found


def answer(
    options: argparse.Namespace,
    services: Services,
    operation: Operation,
    lines: Lines,
    *others: object,
) -> int:
    """Run an operation as `ask` does, and print its result."""
    record = ask(options, services, operation, *others)
    return report(options, record, lines(record, screen(options)))


def asks(operation: Operation, lines: Lines) -> Run:
    """Return how to run a command that is one operation."""
    return lambda options, services: answer(options, services, operation, lines)


def report(options: argparse.Namespace, record: object, lines: Iterable[str]) -> int:
    """Print a record as JSON (a list as an array), or the lines for people."""
    if options.json:
        found = wire.unstructure(record)
        command = found.get("resume")
        if isinstance(command, str):  # as the text has it, with the home
            found["resume"] = screen(options).codex(command)
        output.write_json(found["items"] if "nextCursor" in found else found)
    else:
        output.write_lines(lines)
    return DONE


def screen(options: argparse.Namespace) -> Screen:
    """Return the screen for lines, with the folders given as options."""
    folders = (options.codex_home, options.state_dir)
    named = (os.path.abspath(folder) if folder else None for folder in folders)
    return Screen(output.width(), output.colour(), *named)


def value(name: str, metavar: str | None, about: str, **more: object) -> Argument:
    """Return an argument that has a value; `more` goes to `add_argument`."""
    options: dict[str, Any] = {"metavar": metavar, "help": about, **more}
    return lambda parser: parser.add_argument(name, **options)


def flag(name: str, about: str) -> Argument:
    """Return an option without a value."""
    return lambda parser: parser.add_argument(name, action="store_true", help=about)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Return arguments of which at most one is given, with `required` exactly one."""

    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for argument in arguments:
            argument(group)

    return add


OF_ANY = "an id, its beginning, a file, a name, or latest"
"""The names of a session that is read."""

OF_OURS = "an id, its beginning, a name, or latest"
"""The names of a session that is changed: never a file by its path."""

A_TURN = "an id, or a number from 1"
"""The names of a turn; `outline` shows the numbers."""

AT_TURN = value("--at", "TURN", f"at the end of this turn: {A_TURN}", dest="turn_id")


def _session(about: str) -> Argument:
    """Return the argument for one session of this home."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session_id", metavar="SESSION", help=about)
        parser.set_defaults(names_session=True)

    return add


ANY_SESSION = _session(OF_ANY)
SESSION = _session(OF_OURS)
MARKER = value("checkpoint_id", "CHECKPOINT", "a marker: its id, the beginning of it, or its label")
JSON = flag("--json", "print JSON")


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        message = f"{text[:40]!r} is not a whole number"
        raise argparse.ArgumentTypeError(message) from None


def bounded(least: int, message: str, most: int | None = None) -> Callable[[str], int]:
    """Return a function that reads a whole number within bounds; `message` is for one outside."""

    def read(text: str) -> int:
        number = whole(text)
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(message)
        return number

    return read


count = bounded(0, "must not be negative")
positive = bounded(1, "must be 1 or more")


def _folder(path: str) -> str:
    """Return an absolute path; one of another system stays as written."""
    return path if not path or is_windows_path(path) else os.path.abspath(path)


CHOSEN = (
    value("--cwd", "DIR", "only sessions of this folder or below it", type=_folder),
    flag("--archived", "only archived sessions"),
)
"""Options that restrict a list or a search to some sessions."""

DIGEST_TOKENS = value(
    "--digest-tokens", "N", "size limit of the digest in tokens of 4 bytes, 0 for none", type=whole
)


def wrong(problem: str) -> Refusal:
    """Return the refusal of an argument that only its command can check."""
    return Refusal("invalid_payload", problem, {"problems": [problem]})
