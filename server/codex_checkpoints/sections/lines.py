"""Renders a page as text, for a terminal, a file or the clipboard."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from codex_checkpoints.sections.model import Page, PageLine, PageTable, Part, Section, State
from codex_checkpoints.sections.terminal import (
    AMBER,
    DIM,
    GREEN,
    RED,
    Screen,
    columns,
    fit,
    moment,
    moment_here,
    plain,
)

_TINTS: dict[State | None, str] = {
    "lost": RED,
    "kept": DIM,
    "unknown": AMBER,
    "error": RED,
    "warning": AMBER,
    "info": DIM,
    "done": GREEN,
}
_DIFF_TINTS = {"+": GREEN, "-": RED}
_INDENT = "  "
_LABELS = 28
"""The most columns of a label; the value of a longer one begins in the next line."""

_CELLS = 40
"""The most columns that a cell pads a table to."""


def page_lines(page: Page, screen: Screen) -> list[str]:
    """Return the lines of a page without its title, sections with an empty line between them."""
    parts = [[*_sentences(page.about, "", screen)]] if page.about else []
    parts += [[*_section(each, screen)] for each in page.sections]
    return [each for place, part in enumerate(parts) for each in ([""] if place else []) + part]


def _section(section: Section, screen: Screen) -> Iterator[str]:
    if section.title:
        title = plain(section.title)
        title += "" if section.count is None else f" ({section.count})"
        tint = _TINTS.get(section.state)
        yield title if tint is None else screen.tinted(tint, title)
    indent = _INDENT if section.title else ""
    yield from _sentences(section.sentences, indent, screen)
    if section.table is not None:
        yield from _table(section.table, screen)
    yield from _rows(section, screen)
    for each in (section.text or "").removesuffix("\n").split("\n") if section.text else ():
        tint = _DIFF_TINTS.get(each[:1], DIM) if section.text_form == "diff" else None
        text = plain(each).rstrip()
        yield text if tint is None else screen.tinted(tint, text)


def _sentences(sentences: tuple[PageLine, ...], indent: str, screen: Screen) -> Iterator[str]:
    """Yield sentences, wrapped to a terminal."""
    for each in sentences:
        text = "".join(_text(part, screen) for part in each.parts)
        if screen.width is None:
            yield indent + text
        else:
            room = max(screen.width - 1, 20)
            yield from textwrap.wrap(
                text, room, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )


def _rows(section: Section, screen: Screen) -> Iterator[str]:
    """Yield rows of a label and a value.

    A value is never cut, since people copy it; a sentence is wrapped to a terminal.
    """
    labels = [columns(plain(each.label)) for each in section.rows]
    room = max((size for size in labels if size <= _LABELS), default=0)
    for each in section.rows:
        value = "".join(_tinted(part, screen) for part in each.value.parts)
        label = plain(each.label)
        if columns(label) > room:
            yield f"{_INDENT}{label}"
            label = ""
        head = f"{_INDENT}{screen.tinted(DIM, fit(label, room))}{_INDENT}"
        under = " " * (room + 2 * len(_INDENT))
        first, *others = _wrapped(each.value, value, len(under), screen)
        yield f"{head}{first}".rstrip()
        yield from (f"{under}{other}" for other in others)


def _wrapped(value: PageLine, text: str, indent: int, screen: Screen) -> list[str]:
    """Return the lines of a value; only one of plain words is wrapped."""
    is_prose = all(
        (part.form, part.link, part.state) == ("text", None, None) for part in value.parts
    )
    if screen.width is None or not is_prose:
        return [text]
    room = max(screen.width - indent - 1, 20)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [text]


def _table(table: PageTable, screen: Screen) -> Iterator[str]:
    """Yield the head and the rows of a table; the last column is cut to a terminal."""
    texts = [[_text(each, screen) for each in cells] for cells in table.rows]
    sizes = [
        max(columns(text) for text in column) for column in zip(table.head, *texts, strict=True)
    ]

    def padded(cells: list[str]) -> str:
        *front, last = [
            text if columns(text) > _CELLS else fit(text, min(size, _CELLS))
            for text, size in zip(cells, sizes, strict=True)
        ]
        head = _INDENT + "".join(f"{each}{_INDENT}" for each in front)
        return f"{head}{screen.cut_after(head, last.rstrip())}".rstrip()

    yield screen.tinted(DIM, padded([plain(each) for each in table.head]))
    for cells, shown in zip(table.rows, texts, strict=True):
        tint = next((_TINTS[each.state] for each in cells if each.state in _TINTS), None)
        text = padded(shown)
        yield text if tint is None else screen.tinted(tint, text)


def _text(part: Part, screen: Screen) -> str:
    """Return the text of a part: a time by the local clock, in a file also in UTC."""
    if part.form == "time":
        return moment_here(part.text) if screen.width is None else moment(part.text, screen)
    if part.link is not None and part.link.kind == "command":
        return screen.within(f"`{plain(part.text)}`")
    return plain(part.text)


def _tinted(part: Part, screen: Screen) -> str:
    text = _text(part, screen)
    tint = _TINTS.get(part.state)
    return text if tint is None else screen.tinted(tint, text)
