"""Makes the page of one record of a session: its place, and its text."""

from __future__ import annotations

from codex_checkpoints.sections.model import Link, Page, PageLine, Part, Section, line
from codex_checkpoints.service.history.digests import Recalled

_KINDS = {
    "user": "Request",
    "assistant": "Answer",
    "call": "Call",
    "output": "Output",
    "patch": "Patch",
    "summary": "Summary",
}


def record_page(found: Recalled, about: PageLine, text: str | None = None) -> Page:
    """Return the page; `text` is more of the record than `found` holds."""
    body = found.text if text is None else text
    turn = () if found.turn is None else (", ", _turn(found))
    end = found.offset + len(body)
    size = f"{found.total:,} characters"
    if found.offset or end < found.total:
        size = f"characters {found.offset + 1:,} to {end:,} of {found.total:,}"
    is_turn = found.ref.startswith("t") and found.ref[1:].isdigit()
    kind = "The whole turn" if is_turn else _KINDS.get(found.kind, found.kind)
    section = Section("text", "", text=body)
    about = PageLine((*about.parts, *line(*turn).parts))
    return Page(f"Record {found.ref}", (about, line(f"{kind}, {size}")), (section,))


def _turn(found: Recalled) -> Part:
    return Part(f"turn {found.turn}", link=Link("turn", str(found.turn), found.session_id))
