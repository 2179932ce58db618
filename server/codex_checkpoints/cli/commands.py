"""What every command is made of: its name, its arguments, what runs, and what it runs with."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import NoReturn

from codex_checkpoints import assembly
from codex_checkpoints.assembly import Places
from codex_checkpoints.cli import output
from codex_checkpoints.folder_options import folder_options
from codex_checkpoints.operations.services import Services
from codex_checkpoints.presentation.restores import Named
from codex_checkpoints.presentation.terminal import Bar, plain
from codex_checkpoints.service.reading.catalogue import Progress
from codex_checkpoints.service.recovery import recover_prepared
from codex_checkpoints.service.refusal import Refusal

DONE, REFUSED, INTERRUPTED = 0, 1, 130
"""Exit codes; argparse itself ends with 2 for wrong usage."""

Run = Callable[[argparse.Namespace, "Terminal"], int]
RunAlone = Callable[[argparse.Namespace, Places], int]
Check = Callable[[argparse.Namespace], str | None]
"""Say what is wrong with arguments that depend on each other; None where nothing is."""


_NO_COMMAND = "argument COMMAND: invalid choice: "


class Parser(argparse.ArgumentParser):
    """A parser that says of a slip what is wrong and where help is, not all that there could be."""

    def error(self, message: str) -> NoReturn:
        """End with what is wrong, in a sentence, and the exit code of wrong usage."""
        if message.startswith(_NO_COMMAND):
            said = message.removeprefix(_NO_COMMAND).split(" (choose", 1)[0]
            message = f"no command {said}; --help lists them, and options stand behind the command"
        elif message.endswith("required: COMMAND"):
            message = "which command? --help lists them; `sessions` is one to begin with"
        super().error(plain(message))

    def read(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Return what was asked for; what its command does not know ends with the usage of that."""
        options, unknown = self.parse_known_args(arguments)
        if unknown:
            options.wrong(f"unknown: {' '.join(unknown)}; --help lists the options")
        return options


class Commands:
    """The commands of a parser, each with the two options about folders."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        """Begin without any."""
        self._folders = folder_options()
        self._parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(
        self, name: str, about: str, run: Run, check: Check | None = None
    ) -> argparse.ArgumentParser:
        """Add a command that works with sessions; return its parser, for its own arguments."""
        return self.add_alone(name, about, partial(with_sessions, run), check)

    def add_alone(
        self, name: str, about: str, run: RunAlone, check: Check | None = None
    ) -> argparse.ArgumentParser:
        """Add a command that is told where the folders are, and opens what it needs itself."""
        added = self._parsers.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            parents=[self._folders],
        )
        added.set_defaults(run=run, check=check, wrong=added.error)
        return added


class Terminal(Services):
    """The sessions of one home, for a command: operations report to whoever sits there."""

    def asks_codex(self) -> None:
        """Say why it takes a while."""
        output.say("Codex is asked for a summary, which takes a while; Ctrl-C stops it")

    def look_around(self) -> None:
        """Bring the index up to date; show how far it is when a person waits for it.

        A home that is not there holds no session, which is no error, but mostly a slip.
        """
        place = self.where.codex_home
        if not os.path.isdir(place):
            output.say(f"there is no folder {place}")
        bar = Bar(sys.stderr, output.width(sys.stderr)) if sys.stderr.isatty() else None

        def report(progress: Progress) -> bool:
            if bar is not None:
                bar.show(progress)
            return True

        try:
            self.sessions.refresh(report)
        finally:
            if bar is not None:
                bar.clear()
        recover_prepared(self.sessions)

    def look_around_for(self, session: str) -> None:
        """Bring the index up to date, and say so where what is named is no session of Codex's.

        Reading never fails, so the answer about any file at all would be an empty one.
        """
        self.look_around()
        row = self.sessions.find(session)
        if row.history_mode is None and not row.turns:
            output.say(
                f"{row.path}: neither the head of a session nor a turn; is it a session file?"
            )


def with_sessions(run: Run, options: argparse.Namespace, where: Places) -> int:
    """Run a command with the sessions of a home, and let go of them in the end."""
    with opened(where) as services:
        return run(options, services)


@contextlib.contextmanager
def opened(where: Places) -> Generator[Terminal]:
    """Open the sessions of a home for a block, and let go of them in the end."""
    house = assembly.assemble(where, environment=os.environ)
    for problem in house.problems:
        output.say(f"config.toml: {problem}")
    try:
        yield Terminal(where, house)
    finally:
        house.sessions.close()


def told(options: argparse.Namespace, record: object, lines: Iterable[str]) -> int:
    """Print a record as JSON, a list as an array; or the lines for people."""
    if options.json:
        from codex_checkpoints import wire

        found = wire.unstructure(record)
        output.write_json(found["items"] if "nextCursor" in found else found)
    else:
        output.write_lines(lines)
    return DONE


def named(options: argparse.Namespace) -> Named:
    """Return the folders that were named as options, for the commands that an answer suggests."""
    folders = (options.codex_home, options.state_dir)
    return Named(*(os.path.abspath(folder) if folder else None for folder in folders))


OF_ANY = "an id, its beginning, or a file"
"""What names a session that is read."""

OF_OURS = "an id, or its beginning"
"""What names a session that is changed: never a file by its path."""

A_TURN = "an id, or a number from 1"
"""What names a turn; `outline` shows the numbers."""


def add_session(parser: argparse.ArgumentParser, about: str = OF_ANY) -> None:
    """Add which session it is about."""
    parser.add_argument("session", metavar="SESSION", help=about)


def add_marker(parser: argparse.ArgumentParser) -> None:
    """Add which marker it is about."""
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="the id of a marker; `marks` lists them"
    )


def add_turn(parser: argparse.ArgumentParser) -> None:
    """Add at the end of which turn."""
    parser.add_argument("--at", metavar="TURN", help=f"at the end of this turn: {A_TURN}")


def add_json(parser: argparse.ArgumentParser, about: str = "print JSON") -> None:
    """Add the wish for JSON."""
    parser.add_argument("--json", action="store_true", help=about)


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        message = f"{text[:40]!r} is no whole number"
        raise argparse.ArgumentTypeError(message) from None


def count(text: str) -> int:
    """Read how many."""
    number = whole(text)
    if number < 0:
        message = "must not be negative"
        raise argparse.ArgumentTypeError(message)
    return number


def positive(text: str) -> int:
    """Read how many, one at least."""
    number = whole(text)
    if number < 1:
        message = "must be 1 or more"
        raise argparse.ArgumentTypeError(message)
    return number


def port(text: str) -> int:
    """Read a port."""
    number = whole(text)
    if not 0 < number < 1 << 16:
        message = "must be a port: 1 to 65535"
        raise argparse.ArgumentTypeError(message)
    return number


def wrong(problem: str) -> Refusal:
    """Return the refusal of an argument that only its command can judge."""
    return Refusal("invalid_payload", problem, {"problems": [problem]})
