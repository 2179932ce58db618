"""Makes the page of a pack before it becomes a session: everything that a model will read."""

from __future__ import annotations

from attrs import frozen

from codex_checkpoints.sections.model import Page, PageRow, Part, Section, action, code, line, row


@frozen
class ArrivingPack:
    """A pack for a folder of this machine: its contents and omissions, and the text for a model.

    `tokens` is an estimate for `handoff`.
    """

    name: str
    source_session_id: str
    cwd: str
    contents: str
    notices: tuple[str, ...]
    handoff: str
    tokens: int


def import_page(pack: ArrivingPack) -> Page:
    """Return the page, for a person to agree."""
    about = (
        line("Import this pack as a new session for ", code(pack.cwd), "?"),
        line("A pack may come from anybody. Below is everything that a model will be told."),
    )
    rows = (
        row("Name", pack.name),
        row("Made from session", code(pack.source_session_id)),
        row("Contents", pack.contents),
        *(
            PageRow("" if place else "Note", line(Part(each, state="warning")))
            for place, each in enumerate(pack.notices)
        ),
    )
    title = f"Text for the model, about {pack.tokens:,} tokens"
    sections = (
        Section("pack", "Pack", rows=rows),
        Section("handoff", title, text=pack.handoff, text_form="text"),
    )
    return Page("Import", about, sections, (action("import"),))
