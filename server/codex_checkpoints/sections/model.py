"""Defines a page: a title, and sections of sentences, rows, a table or a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import frozen

LinkKind = Literal["session", "record", "turn", "file", "command", "setting"]
State = Literal["lost", "kept", "unknown", "error", "warning", "info", "done", "open"]
COMMANDS = (
    *("archive", "compact", "connect", "disconnect", "doctor", "lineage", "resume", "unarchive"),
    *("uncompact", "view", "watch"),
)
ACTIONS = (*COMMANDS, "restore-again", "reset-context", "import")
"""The commands of a page: two restore its marker once more, the last one imports its pack."""

SETTINGS = {"--codex-home": "codexHome", "--state-dir": "stateDir"}
"""The settings of an editor by the options of the command line."""

Form = Literal["text", "code", "time"]
TextForm = Literal["text", "prose", "diff"]


@frozen
class Link:
    """The target of a part, by its name: never an address.

    `kind` is `session`, `record`, `turn`, `file`, `command` or `setting`; `name` is an id, the
    reference of a record, the id or number of a turn, a path as the checkpoint has it, one of
    `COMMANDS`, or one of `SETTINGS`.  `sessionId` is the session of the target, null if there is
    none.
    """

    kind: LinkKind
    name: str
    session_id: str | None


@frozen
class Part:
    """A part of a line.

    `form` is `text`, `code` or `time` (UTC, ISO 8601); `state` names an icon: `lost`, `kept`,
    `unknown`, `error`, `warning`, `info`, `done`, `open`, or null.
    """

    text: str
    form: Form = "text"
    state: State | None = None
    link: Link | None = None


@frozen
class PageLine:
    """A line: its parts, side by side."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Return the text of all parts."""
        return "".join(each.text for each in self.parts)


@frozen
class PageRow:
    """A label, empty where it repeats the row above, and a value."""

    label: str
    value: PageLine


@frozen
class PageTable:
    """The names of the columns, and the rows with a part for each column."""

    head: tuple[str, ...]
    rows: tuple[tuple[Part, ...], ...]


@frozen
class Section:
    """A part of a page below a heading: sentences, then rows, a table and a text, as there are.

    `id` is unique on its page.  `count` is shown beside the title; `state` is as in `Part`.
    `isOpen`: the section begins unfolded.  `textForm` is `text`, `prose`
    or `diff`; the first and the last are in the font of code.
    """

    id: str
    title: str
    sentences: tuple[PageLine, ...] = ()
    rows: tuple[PageRow, ...] = ()
    table: PageTable | None = None
    text: str | None = None
    text_form: TextForm = "text"
    count: int | None = None
    state: State | None = None
    is_open: bool = True


@frozen
class Page:
    """A page: its title, the lines below the title, its sections, and the commands for its subject.

    `actions` are links to commands; a terminal does not show them.
    """

    title: str
    about: tuple[PageLine, ...]
    sections: tuple[Section, ...]
    actions: tuple[Link, ...] = ()


def action(name: str, session_id: str | None = None) -> Link:
    """Return the link to a command on a session."""
    return Link("command", name, session_id)


def line(*parts: Part | str) -> PageLine:
    """Return a line of parts and plain texts."""
    return PageLine(tuple(Part(each) if isinstance(each, str) else each for each in parts))


def row(label: str, *parts: Part | str) -> PageRow:
    """Return a row of a label and the parts of its value."""
    return PageRow(label, line(*parts))


def code(text: str) -> Part:
    """Return a part in the font of code."""
    return Part(text, "code")


def table(head: tuple[str, ...], rows: Iterable[tuple[Part | str, ...]]) -> PageTable | None:
    """Return a table of parts and plain texts; None without rows."""
    parts = tuple(
        tuple(Part(each) if isinstance(each, str) else each for each in cells) for cells in rows
    )
    return PageTable(head, parts) if parts else None


def record(seq: int | str | None, session_id: str) -> Part:
    """Return a link to a record by its number or its reference; an empty part without one."""
    if seq is None:
        return Part("")
    name = f"#{seq}" if isinstance(seq, int) else seq
    return Part(name, "code", link=Link("record", name, session_id))


def file(uri: str, session_id: str) -> Part:
    """Return a link to a file of a session, by its path in the checkpoint."""
    return Part(uri, "code", link=Link("file", uri, session_id))
