"""Words that several pages share, and sentences with the commands in them as links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from codex_checkpoints.sections.model import COMMANDS, SETTINGS, Link, PageLine, Part, line

TRIGGERS: dict[str | None, str] = {
    "manual": "on request",
    "pre_turn": "before a turn",
    "mid_turn": "during a turn",
}
MAKERS: dict[str | None, str] = {
    "checkpoint": "from the checkpoint",
    "codex": "with a summary by Codex",
    "local": "by Codex",
    "remote": "by Codex's service",
    "fresh": "with an empty context",
}
PROGRAM = "codex-checkpoints"
_MARKED = re.compile(rf"`([^`]+)`|({'|'.join(SETTINGS)})\b")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def listed(words: Iterable[str | None]) -> str:
    """Return the words that are there, with commas."""
    return ", ".join(each for each in words if each)


def joined(*groups: Sequence[Part | str]) -> PageLine:
    """Return the groups that are there as one line, with commas between them."""
    found = [each for each in groups if any(each)]
    return line(*(part for place, each in enumerate(found) for part in (", " * bool(place), *each)))


def times(number: int) -> str:
    """Return how often, as `once` and `3 times`."""
    return "once" if number == 1 else f"{number} times"


def advice(sentence: str) -> PageLine:
    """Return a sentence of ours as a line: its commands in backticks, and its options, are links.

    Text of a session never goes through here.
    """
    return line(*_parts(sentence))


def _parts(sentence: str) -> Iterator[Part]:
    end = 0
    for found in _MARKED.finditer(sentence):
        yield Part(sentence[end : found.start()])
        quoted, option = found.groups()
        yield (
            Part(option, "code", link=Link("setting", SETTINGS[option], None))
            if option
            else (_quoted(quoted))
        )
        end = found.end()
    yield Part(sentence[end:])


def _quoted(text: str) -> Part:
    """Return a text in backticks: a command of ours, or code."""
    program, _, rest = text.partition(" ")
    verb = rest.partition(" ")[0]
    if program != PROGRAM or verb not in COMMANDS:
        return Part(text, "code")
    name = "disconnect" if rest.startswith("connect --remove") else verb
    session = _ID.search(rest)
    return Part(text, "code", link=Link("command", name, session[0] if session else None))
