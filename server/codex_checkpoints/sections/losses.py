"""Makes the page of a session's compactions: lost and kept parts, and repeated reads."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from codex_checkpoints.core.losses.file_activity import Loss, Totals
from codex_checkpoints.core.restore.records import counted
from codex_checkpoints.sections.model import (
    Page,
    PageLine,
    PageRow,
    Part,
    Section,
    State,
    code,
    file,
    line,
    record,
    row,
    table,
)
from codex_checkpoints.sections.words import MAKERS, TRIGGERS, listed, times

_FATES: dict[bool | None, State] = {True: "lost", None: "unknown", False: "kept"}
_HEAD = ("Fate", "Kind", "Record", "Item")


def losses_page(
    losses: Sequence[Loss], about: PageLine, session_id: str, undone: Container[str | None]
) -> Page:
    """Return the page, the newest compaction first.

    `about` names the session; `undone` are the ids of the windows of compactions that were undone.
    """
    sections = [_section(each, session_id, undone) for each in reversed(losses)]
    lines = [about] if sections else [about, line("No compactions yet, so nothing was lost.")]
    return Page("Lost in Compaction", tuple(lines), tuple(sections))


def _section(loss: Loss, session_id: str, undone: Container[str | None]) -> Section:
    window = "A window that was rolled back" if loss.number is None else f"Window {loss.number}"
    how = (MAKERS.get(loss.strategy), TRIGGERS.get(loss.trigger))
    when = () if loss.opened_at is None else (Part(loss.opened_at, "time"),)
    state = ("undone since",) if loss.window_id in undone else ()
    sentences = [line(*when, *(", " for _ in (when and state)), *state)] if when or state else []
    sentences += [line(_summary(loss))]
    if loss.not_listed:
        sentences.append(line(f"{counted(loss.not_listed, 'item')} not listed."))
    return Section(
        id=f"window-{loss.opened_at_seq}",
        title=" ".join((f"{window}, compacted", *filter(None, how))),
        sentences=tuple(sentences),
        table=table(_HEAD, _entries(loss, session_id)),
        rows=tuple(_readings(loss, session_id)),
    )


def fates(totals: Totals) -> str:
    """Return how much was lost; if not all is known, how much of each."""
    lost, kept, unknown = totals.lost, totals.kept, totals.unknown
    if unknown:
        counts = {"lost": lost, "kept": kept, "unknown": unknown}
        return listed(f"{count} {fate}" for fate, count in counts.items() if count)
    return f"{lost} of {lost + kept} lost"


def _summary(loss: Loss) -> str:
    totals = loss.totals
    if not totals.lost + totals.kept + totals.unknown:
        return "There was nothing to lose."
    if totals.unknown and loss.sealed:
        return f"{fates(totals)}: this part is encrypted by the provider."
    if totals.unknown:
        return f"{fates(totals)}: the replacement is too long to search all of it."
    return f"{fates(totals)}."


def _entries(loss: Loss, session_id: str) -> Iterator[tuple[Part | str, ...]]:
    """Yield a row of the table for each known fact."""

    def entry(kind: str, seq: int | None, item: Part, state: State) -> tuple[Part | str, ...]:

        return Part(state, state=state), kind, record(seq, session_id), item

    if (task := loss.task) is not None:
        yield entry("Last request", task.seq, Part(task.text), _FATES[task.lost])
    for step in loss.open_plan_steps:
        yield entry("Open step", step.seq, Part(step.text), _FATES[step.lost])
    for each in loss.edited_files:
        yield entry(
            _CHANGED.get(each.change, "File"),
            each.seq,
            file(each.uri, session_id),
            _FATES[each.lost],
        )
    for command in loss.failing_commands:
        kind = "Failed command"
        kind += "" if command.exit_code is None else f", exit {command.exit_code}"
        yield entry(kind, command.seq, code(command.command), _FATES[command.lost])


_CHANGED = {
    "add": "Added file",
    "update": "Changed file",
    "delete": "Deleted file",
    "move": "Moved file",
    "read": "Read file",
}


def _readings(loss: Loss, session_id: str) -> Iterator[PageRow]:
    """Yield the files that were read since, and how many of them again."""
    if not loss.reads:
        yield row("Read since then", "no file")
        return
    count = loss.rereads_unchanged
    again = "none of an unchanged file"
    if count:
        size = "1 byte" if loss.bytes == 1 else f"{loss.bytes:,} bytes"
        again = f"{count} of {'an unchanged file' if count == 1 else 'unchanged files'} ({size})"
    yield row("Read since then", f"{counted(loss.reads, 'read')}, {again}")
    for place, each in enumerate(loss.rereads):
        label = "" if place else "Read again"
        yield row(label, file(each.uri, session_id), f", {times(each.times)}")
