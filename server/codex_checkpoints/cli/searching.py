"""The command `search`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import orjson

from codex_checkpoints import wire
from codex_checkpoints.cli import output
from codex_checkpoints.cli.commands import (
    CHOSEN,
    DONE,
    JSON,
    Commands,
    ask,
    positive,
    screen,
    value,
)
from codex_checkpoints.cli.opening import Terminal
from codex_checkpoints.operations import searching
from codex_checkpoints.presentation import searching as texts
from codex_checkpoints.service.searching import SearchHit

_KINDS = ("user", "assistant", "command", "output", "file")


KINDS_OF_HITS = (
    f"only hits of this kind: {', '.join(_KINDS)}; with `file` TEXT is a path, and the hits are "
    "the turns that read or changed that file"
)


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add(
        "search",
        _search,
        value("text", "TEXT", "a text of one line; case counts if it has a capital", nargs="+"),
        *CHOSEN,
        value("--limit", "N", "show at most N lines", type=positive),
        value("--kind", "KIND", KINDS_OF_HITS, choices=_KINDS),
        JSON,
    )


def _search(options: argparse.Namespace, services: Terminal) -> int:

    count, options.text = 0, " ".join(options.text)

    def show(hits: Sequence[SearchHit]) -> None:
        nonlocal count
        if options.json:
            for number, hit in enumerate(hits, count):
                line = orjson.dumps(wire.unstructure(hit))
                output.write((b",\n" if number else b"[\n") + line)
        else:
            output.write_lines(texts.found_lines(hits, screen(options)))
        count += len(hits)

    options.cwd = options.cwd or None
    services.show = show
    answer = ask(options, services, searching.search)
    if options.json:
        output.write(b"\n]\n" if count else b"[]\n")
    elif not count:
        output.say(texts.nothing_found(options.text))
    if answer.more:
        output.say(texts.more_hits(count))
    return DONE
