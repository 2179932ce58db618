"""Makes the page of a digest: a table for each of its sections, with links to the records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from codex_checkpoints.core.digest.render import Digest, DigestLine
from codex_checkpoints.sections.model import (
    Link,
    Page,
    PageLine,
    Part,
    Section,
    line,
    record,
    table,
)
from codex_checkpoints.sections.previews import DIGEST_SECTIONS
from codex_checkpoints.sections.words import listed

_ANCHOR = re.compile(r"- (?:t\d+ )?#\d+ ")
"""The beginning of a line with an anchor, which has columns of its own."""


def digest_page(digest: Digest, about: PageLine, session_id: str) -> Page:
    """Return the page; records without a session of their own are of `session_id`."""
    if digest.text == "":
        return Page("Digest", (about, line(no_digest(digest.budget))), ())
    cost = f"{digest.tokens:,} of at most {digest.budget:,} tokens"
    left = listed(_counted(name, digest.left.get(name, 0)) for name in DIGEST_SECTIONS)
    lines = [about, line(cost), *([line(f"Left out: {left}")] if left else [])]
    groups = groupby(digest.lines, lambda each: each.section)
    return Page(
        "Digest", tuple(lines), tuple(_section(name, [*each], session_id) for name, each in groups)
    )


def no_digest(budget: int) -> str:
    """Return the reason why there is no digest."""
    return f"A digest needs a budget of 50 tokens or more; this one is {budget}."


def _counted(section: str, count: int) -> str | None:
    _, one, many = DIGEST_SECTIONS[section]
    return f"{count:,} {one if count == 1 else many}" if count else None


def _section(name: str, lines: Sequence[DigestLine], session_id: str) -> Section:
    title = DIGEST_SECTIONS.get(name, (name,))[0]
    if all(each.ref is None for each in lines):
        return Section(
            name, title, sentences=tuple(line(each.text.removeprefix("- ")) for each in lines)
        )
    has_turns = any(each.turn is not None for each in lines)
    rows = (
        (
            *((_turn(each, session_id),) if has_turns else ()),
            record(each.ref, each.session_id or session_id),
            _ANCHOR.sub("", each.text),
        )
        for each in lines
    )
    head = ("Turn", "Record", "Line") if has_turns else ("Record", "Line")
    return Section(name, title, table=table(head, rows))


def _turn(of: DigestLine, session_id: str) -> Part:
    if of.turn is None:
        return Part("")
    number = str(of.turn)
    return Part(number, link=Link("turn", of.turn_id or number, of.session_id or session_id))
