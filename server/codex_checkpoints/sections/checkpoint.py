"""Makes the page of a checkpoint from its view, the text that a model reads."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from codex_checkpoints.sections.model import (
    Page,
    PageLine,
    PageTable,
    Part,
    Section,
    code,
    file,
    line,
    table,
)

_TITLES = {
    "TASK": ("Task", "no request yet"),
    "PLAN": ("Plan", "no plan"),
    "RECENT_ARTIFACTS": ("Recent files and commands", "none"),
    "DECISIONS": ("Decisions", "none"),
    "FACTS_VALID": ("Facts", "none"),
    "FACTS_SUSPECT": ("Suspect facts", "none"),
}
"""The title of each heading of a view, and the words where it has no line."""

_KINDS = {"file": "File", "cmd": "Command", "tool": "Tool output"}
_STEP = re.compile(r"\[([ x])\] (.*)", re.DOTALL)
_ARTIFACT = re.compile(r"(file|cmd|tool): +(.*?)(?: \(((?:hash=\S+)?(?: ?changed)?)\))?", re.DOTALL)


def checkpoint_page(
    view: str, about: PageLine, session_id: str, files: Container[str], origin: str = ""
) -> Page:
    """Return the page of a view.

    `files` are the paths in the checkpoint, `origin` says which turn the plan is from.
    """
    sections = tuple(
        _section(heading, lines, session_id, files, origin) for heading, lines in _parts(view)
    )
    return Page("Checkpoint", (about,), sections)


def _parts(view: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the headings of a view, each with its lines without their mark."""
    for part in view.split("\n\n")[1:]:
        heading, *lines = part.removesuffix("\n").split("\n")
        yield heading.strip("[]"), [each.removeprefix("- ") for each in lines]


def _section(
    heading: str, lines: list[str], session_id: str, files: Container[str], origin: str
) -> Section:
    title, nothing = _TITLES[heading]
    if heading == "PLAN" and lines and origin:
        title = f"{title}, {origin}"
    if not lines:
        return Section(heading, title, sentences=(line(nothing),))
    if heading == "PLAN":
        return Section(heading, title, table=_plan(lines))
    if heading == "RECENT_ARTIFACTS":
        return Section(heading, title, table=_recent(lines, session_id, files))
    return Section(heading, title, sentences=tuple(map(line, lines)))


def _plan(lines: list[str]) -> PageTable | None:
    steps = (found for each in lines if (found := _STEP.fullmatch(each)))
    return table(
        ("State", "Step"),
        (
            (Part("done", state="done") if mark == "x" else Part("open", state="open"), text)
            for mark, text in (each.groups() for each in steps)
        ),
    )


def _recent(lines: list[str], session_id: str, files: Container[str]) -> PageTable | None:
    rows: list[tuple[Part | str, ...]] = []
    for each in lines:
        found = _ARTIFACT.fullmatch(each)
        kind, uri, known = found.groups() if found else ("tool", each, None)
        item = file(uri, session_id) if kind == "file" and uri in files else code(uri)
        rows.append((_KINDS[kind], code(known or ""), item))
    return table(("Kind", "Content", "Item"), rows)
