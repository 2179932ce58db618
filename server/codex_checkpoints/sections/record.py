"""Makes the page of one record of a session: its place, and its text."""

from __future__ import annotations

from codex_checkpoints.core.fields import load, object_of
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


_PROSE = frozenset({"user", "assistant", "summary"})


def record_page(found: Recalled, about: PageLine, text: str | None = None) -> Page:
    """Return the page; `text` is more of the record than `found` holds."""
    body = _unpacked(found, found.text if text is None else text)
    turn = () if found.turn is None else (" · ", _turn(found))
    end = found.offset + len(found.text if text is None else text)
    size = f"{found.total:,} characters"
    if found.offset or end < found.total:
        size = f"characters {found.offset + 1:,} to {end:,} of {found.total:,}"
    is_turn = found.ref.startswith("t") and found.ref[1:].isdigit()
    kind = "The whole turn" if is_turn else _KINDS.get(found.kind, found.kind)
    form = "prose" if found.kind in _PROSE and not is_turn else "text"
    section = Section("text", "", text=body, text_form=form)
    about = PageLine((*about.parts, *line(*turn).parts))
    return Page(f"Record {found.ref}", (about, line(f"{kind}, {size}")), (section,))


def _unpacked(found: Recalled, text: str) -> str:
    """Return the output in the JSON that older sessions have around it."""
    if found.kind == "output" and text.startswith('{"output":'):
        output = object_of(load(text.encode())).get("output")
        return output if isinstance(output, str) else text
    return text


def _turn(found: Recalled) -> Part:
    return Part(f"turn {found.turn}", link=Link("turn", str(found.turn), found.session_id))
