"""What changes in the text of a `config.toml` that has entries of ours, so that they are right.

A value is corrected where it stands; tables come and go by the hook.  What a person or Codex added
to ours, by keys, comments or tables below them, is not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codex_checkpoints.codex import entries
from codex_checkpoints.codex.amending import amendment, stands
from codex_checkpoints.codex.config_text import (
    BEGIN,
    END,
    GROUP,
    SERVER,
    Edit,
    Section,
    edited,
    hook_lines,
    marks_in,
    newline_of,
    parsed,
    sections_of,
    server_lines,
    value_text,
)
from codex_checkpoints.codex.entries import Entries
from codex_checkpoints.codex.toml_text import Kind, statements, value_in
from codex_checkpoints.values import frozen


def amended(text: str, wanted: Entries) -> str:
    """Correct our entries where they stand, take out what is too many, put in what is missing."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix(mark)
    corrected = edited(body, _corrections(body, wanted))
    return mark + edited(corrected, _moves(corrected, wanted))


def _corrections(body: str, wanted: Entries) -> Iterator[Edit]:
    """Yield the values of ours that are not what they ought to be."""
    events = entries.groups_by_event(parsed(body).get("hooks"))
    plan = amendment(events, wanted)
    groups = {place[:2]: hook for place, hook in plan.kept.items()}
    for section in sections_of(body):
        if not section.is_ours:
            continue
        if section.header.path == SERVER:
            for key in ("command", "args"):
                yield from _correction(body, section, key, wanted.server()[key])
        elif section.place is None:
            continue
        elif section.place[2] == GROUP:
            group = events[section.place[0]][section.place[1]]
            hook = groups.get(section.place[:2])
            if hook is not None and entries.written(group, None).matcher != hook.matcher:
                yield from _correction(body, section, "matcher", hook.matcher)
        elif (hook := plan.called.get(section.place)) is not None:
            yield from _correction(body, section, "command", wanted.hook_command)
            if (limit := hook.context_limit) is not None:
                yield from _correction(body, section, "additionalContextLimit", limit)


def _correction(body: str, section: Section, key: str, value: object) -> Iterator[Edit]:
    """Yield what makes a table say this of a key, and the key alone; None is no such key."""
    pairs = ((pair, parsed(body[pair.start : pair.end])) for pair in section.said[1:])
    there, said = next(((pair, data[key]) for pair, data in pairs if key in data), (None, None))
    if there is None:
        if value is not None:
            end = section.header.end
            yield end, end, f"{key} = {value_text(value)}{newline_of(body)}"
    elif value is None:
        yield there.start, there.end, ""
    elif said != value:
        yield *value_in(body, there), value_text(value)


def _moves(body: str, wanted: Entries) -> Iterator[Edit]:
    """Yield the tables that go and those that come."""
    events = entries.groups_by_event(parsed(body).get("hooks"))
    plan = amendment(events, wanted)
    # What could not be corrected, since it has no table of its own, is written anew.
    staying = {p: hook for p, hook in plan.kept.items() if stands(events, p, hook, wanted)}
    places = {*staying, *((event, number, GROUP) for event, number, _ in staying)}
    sections = list(sections_of(body))
    going = [
        section
        for section in sections
        if section.is_ours
        and not (wanted.has_server if section.place is None else section.place in places)
    ]
    yield from _removals(body, sections, going)
    coming: list[_Coming] = []
    if wanted.has_server and not any(each.is_ours and each.place is None for each in sections):
        coming.append(_Coming(SERVER, server_lines(wanted)))
    texts = {each.place: _text_of(body, each) for each in going if each.place is not None}
    olds = {hook: texts.get(place) for place, hook in plan.called.items()}
    for hook in wanted.hooks:
        if hook not in staying.values():
            lines = hook_lines(wanted, hook, olds.get(hook))
            coming.append(_Coming(("hooks", hook.event), lines))
    yield from _insertions(body, sections, coming)


@frozen
class _Coming:
    """The lines of tables that are put in, and what their headers begin with."""

    path: tuple[str, str]
    lines: list[str]


def _text_of(body: str, section: Section) -> str:
    return "".join(body[each.start : each.end] for each in section.said).rstrip("\r\n")


def _removals(body: str, sections: Sequence[Section], going: Sequence[Section]) -> Iterator[Edit]:
    """Yield tables, and within our two comments the blank line that was put before each."""
    for section in going:
        yield from ((each.start, each.end, "") for each in section.said)
    starts = {section.header.start for section in going}
    marks = marks_in(body, sections)
    within, blank = False, None
    for statement in statements(body):
        if blank is not None and within and statement.start in starts:
            yield blank.start, blank.end, ""
        blank = statement if statement.kind is Kind.BLANK else None
        if statement.start in marks:
            within = marks[statement.start] == BEGIN


def _insertions(
    body: str, sections: Sequence[Section], coming: Sequence[_Coming]
) -> Iterator[Edit]:
    """Yield what is put behind our tables; at the very end what would stand before a person's own.

    Codex keeps the trust in a hook by its place, so that theirs have to stay the first.  Blank
    lines are put between our two comments alone: there they are known as ours.
    """
    end = _second_comment(body, sections)
    place = _place(body, sections, end)
    lines: dict[int, list[str]] = {}
    for each in coming:
        later = (section.header for section in sections if section.header.start >= place)
        at = len(body) if any(header.path[:2] == each.path for header in later) else place
        is_inside = end is not None and at <= end
        lines.setdefault(at, []).extend(line for line in each.lines if line or is_inside)
    newline = newline_of(body)
    for at, new in lines.items():
        lead = newline if at and body[at - 1] != "\n" else ""
        yield at, at, lead + newline.join(new) + newline


def _place(body: str, sections: Sequence[Section], end: int | None) -> int:
    """Return where the last table before our second comment ends, or else the last of ours.

    A pair behind that comment belongs to this table, too.
    """
    ours = (section.header.start for section in sections if section.is_ours)
    anchor = max(ours, default=0) if end is None else end
    headers = (section.header.start for section in sections)
    until = min((start for start in headers if start > anchor), default=len(body))
    said = (each for each in statements(body) if each.kind not in {Kind.BLANK, Kind.COMMENT})
    return max((each.end for each in said if each.end <= until), default=len(body))


def _second_comment(body: str, sections: Sequence[Section]) -> int | None:
    """Return where the comment at the end of our tables begins, the last of several."""
    marks = marks_in(body, sections)
    return max((start for start, mark in marks.items() if mark == END), default=None)
