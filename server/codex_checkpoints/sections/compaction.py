"""Makes the page of a compaction that was done, from its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from codex_checkpoints.core.agents.codex.history.item_kinds import ItemKind
from codex_checkpoints.core.agents.codex.history.tokens import Figure
from codex_checkpoints.core.compaction.records import Installed
from codex_checkpoints.sections.model import (
    Link,
    Page,
    PageRow,
    PageTable,
    Part,
    Section,
    action,
    code,
    line,
    row,
    table,
)
from codex_checkpoints.sections.words import MAKERS, TRIGGERS


def compaction_page(made: Installed, names: dict[str, str | None], *, undone: bool) -> Page:
    """Return the page; `names` are the titles of the sessions that are still there, by id."""

    def session(session_id: str) -> Part:
        if session_id not in names:
            return Part(f"{session_id} (no longer here)")
        title = names[session_id] or "(no message yet)"
        return Part(title, link=Link("session", session_id, None))

    source, sizes = made.source.session_id, made.sizes
    how = " ".join(filter(None, (MAKERS.get(made.strategy), TRIGGERS.get(made.placement))))
    where = "in the same session" if made.into == "in-place" else "in a new session"
    state = [line(Part("It was undone since.", state="warning"))] if undone else []
    about = (
        line(_tokens(sizes.before), " → ", _tokens(sizes.after), " tokens in use"),
        line("Compacted ", Part(made.at, "time"), f" {how}; the work continues {where}."),
        *state,
    )
    effects = (
        row("Source", session(source)),
        *([row("Continues in", session(made.session_id))] if made.into == "new" else []),
        row("Reason", made.why),
        row("Size limit", f"{sizes.bound:,} tokens, for a session of any length"),
    )
    return Page(
        "Compaction Report",
        about,
        (
            Section("effects", "What was done", rows=effects),
            Section("kept", "What the model still has", table=_kept(made)),
            Section(
                "dropped",
                "Left out",
                count=made.counts.dropped,
                sentences=() if made.counts.dropped else (line("Nothing."),),
                table=_dropped(made),
            ),
            Section("ids", "Technical details", rows=_ids(made), is_open=False),
        ),
        () if undone else _actions(made, names),
    )


def _actions(made: Installed, names: Container[str]) -> tuple[Link, ...]:
    there = made.session_id in names
    session_id = made.session_id
    return (action("resume", session_id), action("uncompact", session_id)) if there else ()


def _tokens(figure: Figure) -> str:
    return f"{'about ' * (figure.source == 'estimated')}{figure.tokens:,}"


_KINDS: dict[ItemKind, str] = {
    "user": "request",
    "handoff": "handoff of the checkpoint",
    "summary": "summary",
    "context": "standing context",
    "assistant": "answer",
    "instructions": "instructions",
    "reasoning": "reasoning",
    "tool_call": "tool call",
    "tool_output": "tool output",
    "compaction": "encrypted part",
    "unknown": "other",
}


def _kept(made: Installed) -> PageTable | None:
    """Return the items of the replacement by their kind, in their order."""
    sizes: dict[ItemKind, list[int]] = {}
    for each in made.items:
        sizes.setdefault(each.kind, []).append(each.tokens)
    cuts = Counter(each.kind for each in made.items if each.cut_tokens)
    return table(
        ("Kind", "Items", "Tokens", *(("Shortened",) if cuts else ())),
        (
            (
                _KINDS.get(kind, kind),
                str(len(each)),
                f"{sum(each):,}",
                *((str(cuts[kind] or ""),) if cuts else ()),
            )
            for kind, each in sizes.items()
        ),
    )


def _dropped(made: Installed) -> PageTable | None:
    kinds = made.counts.dropped_kinds
    return table(
        ("Kind", "Items"), ((_KINDS.get(kind, kind), f"{count:,}") for kind, count in kinds.items())
    )


def _ids(made: Installed) -> tuple[PageRow, ...]:
    before, after = (each.current for each in (made.windows.before, made.windows.after))
    return (
        row("Compaction", code(made.compaction_id)),
        row("Window before", code(before or "not in the session file")),
        row("Window after", code(after or "not in the session file")),
        row("Replacement", code(made.replacement)),
    )
