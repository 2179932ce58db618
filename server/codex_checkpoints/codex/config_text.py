"""Our tables in the text of Codex's `config.toml`: how they are written, found and taken out.

They are a block at the end, between two comments, and are found by what they say, since Codex moves
and copies tables between the comments when it writes.  How they are corrected where they stand is
known to `config_changes`; whether the outcome says what is meant, `config_file` looks at.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.amending import Place
from codex_checkpoints.codex.entries import SERVER_NAME, Entries, Hook, Unreadable
from codex_checkpoints.codex.toml_text import Kind, Statement, statements
from codex_checkpoints.values import frozen

BEGIN = "# >>> codex-checkpoints: added by `codex-checkpoints connect`, removed by `--remove`"
END = "# <<< codex-checkpoints"
"""A comment is one of the two only where it is all of the line: others may name us as well."""

SERVER = ("mcp_servers", SERVER_NAME)
GROUP = -1
"""Stands for the group itself where a place would name one of its handlers."""

Edit = tuple[int, int, str]
"""A stretch from here to there, and what is to stand in its place."""

_HEADERS = frozenset({Kind.TABLE, Kind.ELEMENT})


@frozen
class Left:
    """A text without ours: where the block stood, and the line end that was put before it."""

    text: str
    place: int | None
    lead: str | None


def parsed(text: str) -> dict[str, object]:
    """Return what a text says.  Raises `Unreadable`."""
    try:
        # A float is compared as it is written: not every one equals itself.
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=str)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Codex takes what TOML 1.1 allows; whether `tomllib` does hangs on the Python.
        reason = "it is not valid TOML to this program, though Codex may read a newer form of it"
        raise Unreadable(f"{reason}: {error}") from error


def table(value: object) -> Mapping[str, object]:
    """Return a value that is a table; an empty one for any other."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def with_block(text: str | None, wanted: Entries) -> str:
    """Put our block into a text that has no entries of ours; None is a file that is not there."""
    before = "" if text is None else text
    left = without(before)
    newline = newline_of(before)
    lead = left.lead if left.lead is not None else "" if text is None else newline
    tables = [line for entry in _tables(wanted) for line in entry]
    place = len(left.text) if left.place is None else left.place
    block = newline.join([BEGIN, *tables[1:], END]) + newline
    return left.text[:place] + lead + block + left.text[place:]


def without(text: str) -> Left:
    """Take out our tables and comments, and the line end that `with_block` put before them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    ours = _ours(body)
    if not ours:
        return Left(text, None, None)
    start = ours[0].start
    rest = edited(body, ((each.start, each.end, "") for each in ours))
    head, tail = body[:start], rest[start:]
    lead: str | None = ""
    if head.endswith("\n"):
        lead = "\r\n" if head.endswith("\r\n") else "\n"
        shorter = head[: -len(lead)]
        if not tail or not shorter or shorter.endswith("\n"):
            head = shorter
        else:
            lead = None
    return Left(mark + head + tail, len(mark + head), lead)


# --- writing -------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    """Return the line end that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def _tables(wanted: Entries) -> Iterator[list[str]]:
    """Yield the lines of each entry, a blank one before each table."""
    if wanted.has_server:
        yield server_lines(wanted)
    yield from (hook_lines(wanted, hook) for hook in wanted.hooks)


def server_lines(wanted: Entries) -> list[str]:
    """Return the table of our server, a blank line before it."""
    return ["", f"[mcp_servers.{SERVER_NAME}]", *_pairs(wanted.server())]


def hook_lines(wanted: Entries, hook: Hook, handler: str | None = None) -> list[str]:
    """Return the tables of a hook, a blank line before each.

    `handler` is the text of a handler that is there already.
    """
    group = wanted.group(hook)
    (said,) = entries.handlers_of(group)
    below = (
        [f"[[hooks.{hook.event}.hooks]]", *_pairs(table(said))] if handler is None else [handler]
    )
    return ["", f"[[hooks.{hook.event}]]", *_pairs(group), "", *below]


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{key} = {value_text(value)}" for key, value in values.items() if key != "hooks"]


def value_text(value: object) -> str:
    """Write a value as TOML: a JSON string is a basic string, but for one escape."""
    if isinstance(value, list):
        return f"[{', '.join(value_text(each) for each in cast('list[object]', value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with edits that do not overlap; of two at one place the first is first."""
    after, position = "", 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        after += text[position:start] + new
        position = end
    return after + text[position:]


# --- reading -------------------------------------------------------------------------------------


@frozen
class Section:
    """A header with the lines below it; `place` is that of a handler or of a group."""

    header: Statement
    lines: Sequence[Statement]
    is_ours: bool
    place: Place | None

    @property
    def said(self) -> list[Statement]:
        """Return its header and its pairs."""
        return [self.header, *(each for each in self.lines if each.kind is Kind.PAIR)]


def sections_of(body: str) -> Iterator[Section]:
    """Yield the tables of a valid text, in its order, and whether each is ours."""
    data = parsed(body)
    events = entries.groups_by_event(data.get("hooks"))
    server_is_ours = entries.is_our_server(table(data.get("mcp_servers")).get(SERVER_NAME))
    everything = list(statements(body))
    starts = [number for number, each in enumerate(everything) if each.kind in _HEADERS]
    groups: dict[str, int] = {}
    handlers: dict[str, int] = {}
    for start, end in itertools.pairwise([*starts, len(everything)]):
        header, lines = everything[start], everything[start + 1 : end]
        place, is_ours = None, False
        match header.path:
            case ("mcp_servers", name, *_):
                is_ours = name == SERVER_NAME and server_is_ours
            case ("hooks", event) if header.kind is Kind.ELEMENT:
                groups[event], handlers[event] = groups.get(event, -1) + 1, -1
                place = (event, groups[event], GROUP)
                is_ours = entries.is_our_group(events[event][groups[event]])
            case ("hooks", event, "hooks") if header.kind is Kind.ELEMENT and event in groups:
                handlers[event] += 1
                place = (event, groups[event], handlers[event])
                group = events[event][groups[event]]
                is_ours = entries.is_our_handler(entries.handlers_of(group)[handlers[event]])
            case _:
                pass
        yield Section(header, lines, is_ours, place)


def _ours(body: str) -> list[Statement]:
    """Return what is to go: our tables and two comments, and the blank lines between those two."""
    sections = list(sections_of(body))
    ours = {section.header.start for section in sections if section.is_ours}
    marks = marks_in(body, sections)
    found: list[Statement] = []
    within = mine = False
    for statement in statements(body):
        match statement.kind:
            case Kind.COMMENT if statement.start in marks:
                within = mine = marks[statement.start] == BEGIN
                found.append(statement)
            case Kind.TABLE | Kind.ELEMENT:
                mine = statement.start in ours
                if mine:
                    found.append(statement)
            case Kind.BLANK if mine and within:
                found.append(statement)
            case Kind.PAIR if mine:
                found.append(statement)
            case _:
                pass
    return found


def marks_in(body: str, sections: Iterable[Section]) -> dict[int, str]:
    """Return which of our two comments begins at a place, `BEGIN` or `END`.

    The second one is so short that a person may have written it: it is ours only somewhere behind
    the first one, or behind a table of ours.
    """
    comments = [
        (each.start, body[each.start : each.end].strip())
        for each in statements(body)
        if each.kind is Kind.COMMENT
    ]
    firsts = [start for start, text in comments if text == BEGIN]
    tables = [section.header.start for section in sections if section.is_ours]
    begun = min((*firsts, *tables), default=len(body))
    seconds = (start for start, text in comments if text == END and start > begun)
    return {**dict.fromkeys(firsts, BEGIN), **dict.fromkeys(seconds, END)}
