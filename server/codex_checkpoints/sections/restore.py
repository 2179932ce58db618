"""Makes the page of a restore: its origin, its contents, and the differences since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from codex_checkpoints.core.checkpoint.records import Checkpoint
from codex_checkpoints.core.context_text import beside_text
from codex_checkpoints.core.restore.lineage import Node
from codex_checkpoints.core.restore.pack_items import Deferred, Item, LinkKind, Reason, pin_id
from codex_checkpoints.core.restore.records import (
    Restore,
    carried_in,
    headline_of,
)
from codex_checkpoints.sections.model import (
    Link,
    Page,
    PageRow,
    Part,
    Section,
    action,
    code,
    file,
    line,
    row,
    table,
)
from codex_checkpoints.sections.previews import MODES, PACK_PARTS, item_name
from codex_checkpoints.service.restore.listing import Listed

_MADE: dict[LinkKind, str] = {
    "restore": "restored",
    "compaction": "compacted",
    "import": "imported",
    "pull": "pulled",
    "revert": "rolled back",
    "subagent": "subagent",
}
_REASONS: dict[Reason, str] = {
    "budget": "no room within the size limit",
    "filtered": "done, superseded, or never quoted",
    "evicted": "newer ones took its place",
    "missing": "no longer there",
    "no_lines": "the file has no such lines",
    "unreadable": "cannot be read",
    "bound": "longer than it may be",
}
_UNREAD: frozenset[Reason] = frozenset({"missing", "no_lines", "unreadable"})
_GROUPS = {
    **{part: PACK_PARTS[part] for part in ("notice", "mode", "notes", "files")},
    "reread": "Lines to read again, by file",
    **{part: PACK_PARTS[part] for part in ("pinned", "commands", "window", "digest")},
}
"""The names of the parts in their order; an item of `reread` is all lines of one file."""
_FALLBACKS = {
    "weak_hash": "compared by size and time, not by content",
    "file_only_store": "the session files alone",
    "copied_legacy": "a copy of the lines: the source has an older format",
    "copied_compressed": "a copy of the lines: the source is compressed",
    "copied_windows": "a copy of the lines: the source was compacted",
    "copied_in_base": "a copy of the lines: the turn is in a file before the source's",
    "copied_damaged": "a copy of the lines: the source is not valid text",
    "earlier_unknown": "reads and changes before the source began are not known",
}


def restore_page(
    listed: Listed,
    warnings: tuple[str, ...],
    nodes: Mapping[str, Node],
    state: Checkpoint | None,
) -> Page:
    """Return the page.

    `warnings` are the sentences of the warnings without their full stops, `nodes` the sessions
    around the restore by id; `state` is the checkpoint at the marker's turn, None if it cannot be
    read.
    """
    restore = listed.record
    about = (
        line(headline_of(restore)),
        line(carried_in(restore)),
        line(f"{MODES.get(restore.mode, restore.mode)}, ", Part(restore.restored_at, "time")),
        line("Context: ", _size(restore.tokens.before), " → ", _size(restore.tokens.after)),
        *([line(beside_text(None))] if restore.context_reset else []),
        *(line(Part(f"{each}.", state="warning")) for each in warnings),
    )
    sections = (
        _origin(listed),
        _lineage(listed, nodes),
        _carried(restore),
        *_pack(listed, state),
        *_known(state, restore),
        *_references(restore),
        *_differences(restore),
        _caps(restore),
        _ids(restore),
    )
    title = f"Restored “{restore.label or restore.checkpoint_id}”"
    resume = action("resume", restore.session_id)
    way = "restore-again" if restore.context_reset else "reset-context"
    again = action(way, restore.source_session_id)
    actions = (
        *([resume] if listed.branch_available else []),
        *([again] if listed.source_available else []),
    )
    return Page(title, about, sections, actions)


def _size(tokens: int | None) -> str:
    return "not known" if tokens is None else f"{tokens:,} tokens"


def _session(session_id: str, title: str | None, *, there: bool) -> Part:
    name = title or session_id
    if there:
        return Part(name, link=Link("session", session_id, None))
    return Part(f"{name} (no longer here)")


def _origin(listed: Listed) -> Section:
    restore = listed.record
    source = _session(restore.source_session_id, listed.source_title, there=listed.source_available)
    branch = _session(restore.session_id, listed.branch_title, there=listed.branch_available)
    unchanged = {True: "unchanged in the source", False: "changed in the source since"}
    known = unchanged.get(listed.source_unchanged) if listed.source_unchanged is not None else None
    return Section(
        "origin",
        "Where it came from",
        rows=(
            row("Source", source),
            *([row("Restored records", known)] if known else []),
            row("Branch", branch),
            row("Marker", restore.label or code(restore.checkpoint_id)),
            row("Marked", Part(restore.marked_at, "time")),
            row("Reason", restore.reason),
        ),
    )


def _lineage(listed: Listed, nodes: Mapping[str, Node]) -> Section:
    """Return the branch and its ancestors, up to the first session."""
    restore = listed.record

    def named(session_id: str, title: str | None, *, there: bool) -> Part:
        node = nodes.get(session_id)
        if node is None:
            return _session(session_id, title, there=there)
        return _session(session_id, node.title, there=node.available)

    def made(session_id: str, kind: LinkKind) -> str:
        node = nodes.get(session_id)
        turn = None if node is None or node.link is None else node.link.cut.after_turn
        words = _MADE.get(kind, "forked")
        if turn is None:
            return words
        return f"{words} after turn {turn}" if turn else f"{words} before turn 1"

    branch = named(restore.session_id, listed.branch_title, there=listed.branch_available)
    rows = [(made(restore.session_id, "restore"), branch)]
    rows += [
        (made(each.session_id, each.kind), named(each.session_id, None, there=True))
        for each in restore.chain
    ]
    first = restore.chain[-1].source_turn.session_id if restore.chain else ""
    root = (
        named(first, None, there=True)
        if first
        else named(restore.source_session_id, listed.source_title, there=listed.source_available)
    )
    rows.append(("the original session", root))
    return Section(
        "lineage", "Lineage", table=table(("How it was made", "Session"), rows), count=len(rows)
    )


def _carried(restore: Restore) -> Section:
    """Return the section; the numbers of its parts add up to the one of all items (NUM-2)."""
    shown, left = _shown(restore), _left(restore)

    def count(of: str, items: Iterable[Item | Deferred]) -> int:
        return sum(_group(item) == of for item in items)

    def numbers(of: str) -> str:
        kept, out = count(of, shown), count(of, left)
        if not kept + out:
            return "none"
        return str(kept) if restore.pack is None else f"{kept} in the pack, {out} left out"

    always = ("notes", "files", "pinned", "commands", "window")[: 5 if restore.context_reset else 3]
    groups = {*always} | {_group(item) for item in (*shown, *left)}
    all_items = (
        row("Items", str(len(shown)))
        if restore.pack is None
        else row("Items in the pack", f"{len(shown)} of {len(shown) + len(left)}")
    )
    conversation = "none" if restore.context_reset else "up to the marker"
    reset = (
        "The context. The original session keeps its own."
        if restore.context_reset
        else "Nothing. The context was kept."
    )
    return Section(
        "carried",
        "Carried over",
        rows=(
            all_items,
            *(row(name, numbers(of)) for of, name in _GROUPS.items() if of in groups),
            row("Excerpts", str(len(restore.references.chunks))),
            row("Patches and tool outputs", str(len(restore.references.system))),
            row("Conversation", conversation),
            row("Reset", reset),
        ),
    )


def _group(item: Item | Deferred) -> str:
    """Return the key of an item in `_GROUPS`: its part; excerpts are apart from their files."""
    is_excerpt = item.part == "files" and item.id.startswith("reread:")
    return "reread" if is_excerpt else item.part


def _shown(restore: Restore) -> tuple[Item | Deferred, ...]:
    """Return the items that the branch begins with, whole or not.

    A pack also names a shortened item, and a pinned file that could not be read.
    """
    pins = {pin_id(each.uri, each.start, each.end) for each in restore.pinned}
    return (
        *restore.included,
        *(
            each
            for each in restore.deferred
            if each.reason == "bound" or (each.reason in _UNREAD and each.id in pins)
        ),
    )


def _left(restore: Restore) -> tuple[Deferred, ...]:
    """Return the items left out; only these are counted so, here and in the preview (NUM-2)."""
    return tuple(each for each in restore.deferred if each.reason == "budget")


def _pack(listed: Listed, state: Checkpoint | None) -> Iterator[Section]:
    restore = listed.record
    if restore.pack is not None:
        title = f"State pack, {restore.pack.tokens:,} of {restore.pack.budget:,} tokens"
        gone = "Its text was in the branch, which is gone or has changed."
        sentences = () if listed.pack is not None else (line(gone),)
        yield Section("pack", title, sentences=sentences, text=listed.pack, is_open=False)
    notes = _notes_in(state)

    def listing(
        name: str, title: str, items: tuple[Item | Deferred, ...], remark: str
    ) -> Iterator[Section]:
        has_remark = any(isinstance(each, Deferred) for each in items)
        rows = (
            (
                PACK_PARTS.get(each.part, each.part),
                *([_remark(each)] if has_remark else []),
                (notes.get(each.id) if each.part == "notes" else None)
                or item_name(each.part, each.id),
            )
            for each in items
        )
        head = ("Part", remark, "Item") if has_remark else ("Part", "Item")
        if items:
            yield Section(name, title, table=table(head, rows), count=len(items), is_open=False)

    shown, left = _shown(restore), _left(restore)
    others = tuple(each for each in restore.deferred if each not in {*shown, *left})
    included = "Carried items" if restore.pack is None else "In the pack"
    yield from listing("included", included, shown, "Note")
    yield from listing("deferred", "Left out of the pack", left, "Why")
    yield from listing("unquoted", "Never part of the pack", others, "Why")


def _remark(item: Item | Deferred) -> str:
    """Return why an item is shortened or left out; empty for a whole one."""
    return _REASONS.get(item.reason, item.reason) if isinstance(item, Deferred) else ""


def _notes_in(state: Checkpoint | None) -> Mapping[str, str]:
    """Return the texts of steps and decisions by the ids of their items."""
    if state is None:
        return {}
    steps = {f"step:{each.id}": each.text for each in state.plan.steps}
    return steps | {f"decision:{each.decision_id}": each.decision for each in state.decisions}


def _known(state: Checkpoint | None, restore: Restore) -> Iterator[Section]:
    if state is not None:
        if state.task is not None:
            rows = (row("Task", state.task.text),)
            yield Section("state", "Known at the turn", rows=rows)
        done = state.plan.done
        steps = (
            (
                Part("done", state="done") if done.get(each.id) else Part("open", state="open"),
                each.text,
            )
            for each in state.plan.steps
        )
        yield from _folded("plan", "Plan", ("State", "Step"), steps)
        replaced = {each.supersedes for each in state.decisions}
        decisions = (
            (
                code(each.decision_id),
                "replaced" if each.decision_id in replaced else "in force",
                each.decision,
            )
            for each in state.decisions
        )
        yield from _folded("decisions", "Decisions", ("ID", "State", "Decision"), decisions)
        facts = ((code(key), each.value) for key, each in state.facts.items())
        yield from _folded("facts", "Facts", ("Key", "Value"), facts)
    modes = ((str(each.seq), code(each.turn_id or ""), each.mode) for each in restore.modes)
    yield from _folded("modes", "Modes", ("From record", "Turn", "Mode"), modes)


def _folded(
    name: str, title: str, head: tuple[str, ...], rows: Iterator[tuple[Part | str, ...]]
) -> Iterator[Section]:
    """Yield a folded section with a table; none without rows."""
    found = table(head, rows)
    if found is not None:
        yield Section(name, title, table=found, count=len(found.rows), is_open=False)


def _references(restore: Restore) -> Iterator[Section]:
    """Yield everything that was copied as a reference: files, lines, patches, outputs, pins."""
    session_id, references = restore.session_id, restore.references
    files = (
        (
            _yes(each.touched),
            _yes(each.sent_to_model),
            "" if each.size is None else f"{each.size:,}",
            _hash(each.hash),
            file(each.uri, session_id),
        )
        for each in references.files
    )
    head = ("Changed", "Read by the model", "Bytes", "Hash", "File")
    yield from _folded("files", "Files", head, files)
    chunks = (
        (f"{each.start} to {each.end}", _hash(each.hash), file(each.uri, session_id))
        for each in references.chunks
    )
    yield from _folded("chunks", "Excerpts", ("Lines", "Hash", "File"), chunks)
    system = (
        ("patch" if each.kind == "patch" else "tool output", _hash(each.hash), code(each.id))
        for each in references.system
    )
    yield from _folded("system", "Patches and tool outputs", ("Kind", "Hash", "Name"), system)
    pinned = (
        (
            "all" if each.start is None else f"{each.start} to {each.end}",
            _hash(each.hash),
            file(each.uri, session_id),
        )
        for each in restore.pinned
    )
    yield from _folded("pinned", "Pinned", ("Lines", "Hash", "File"), pinned)


def _differences(restore: Restore) -> Iterator[Section]:
    session_id = restore.session_id
    drift = (
        (_hash(each.then), _hash(each.now), file(each.uri, session_id)) for each in restore.drift
    )
    yield from _folded("drift", "Changed since the marker", ("Then", "Now", "File"), drift)
    missing = ((_hash(each.then), code(each.uri)) for each in restore.missing)
    yield from _folded("missing", "No longer there", ("Then", "File"), missing)
    fallbacks = (
        (_FALLBACKS.get(each.fallback, each.fallback), code(each.uri or ""))
        for each in restore.fallbacks
    )
    yield from _folded("fallbacks", "Replacements", ("How", "File"), fallbacks)


def _yes(value: bool) -> str:  # noqa: FBT001 - it is the value that is shown
    return "yes" if value else "no"


def _hash(known: str | None) -> Part:
    """Return the first digits of a hash, without its prefix."""
    return code((known or "").removeprefix("sha256:")[:16])


def _caps(restore: Restore) -> Section:
    rows = tuple(row(name, f"{most:,}") for name, most in restore.caps.items())
    return Section("caps", "Limits of a view for this model", rows=rows, is_open=False)


def _ids(restore: Restore) -> Section:
    windows = restore.windows
    above = (
        row(
            f"Turn and marker of {each.session_id}",
            code(
                f"{each.source_turn.turn_id or ''} ({each.source_turn.session_id}) "
                f"{each.checkpoint_id or ''}".strip()
            ),
        )
        for each in restore.chain
    )
    rows: tuple[PageRow, ...] = (
        row("Operation", code(restore.operation_id)),
        row("Marker", code(restore.checkpoint_id)),
        row("Turn", code(f"{restore.source_turn.turn_id} ({restore.source_turn.session_id})")),
        row("Branch", code(restore.session_id)),
        row("Source", code(restore.source_session_id)),
        *above,
        row("Window of the source", code(windows.source or "not known")),
        row("First window of the branch", code(windows.first or "not known")),
        row("Current window of the branch", code(windows.current or "not known")),
    )
    return Section("ids", "Technical details", rows=rows, is_open=False)
