"""Arguments that several commands take, and how their texts are read."""

from __future__ import annotations

import argparse

from codex_checkpoints.service.refusal import Refusal

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
